/*
 * Does what a run has done fit another version of its definition? Pure: the way that it has taken, as its rows tell it, is walked
 * through the other version, and each row must meet the step that it is a row of.
 *
 *   rows of the run          a ── b(true) ─────────── e
 *   the version it has       a    b    c    d         e    f
 *   another                  a    b    c    d    d2   e    g      fits: what was jumped over, and what comes later, may be other
 *   another                  a    a2   b …                        does not: the second row meets a2
 *
 * A step that is begun and has no row yet is where the run stands, and has to be there, too. A step is the same one if it has the
 * name that it is to have by now, and its type. What it does may be other: the action, its input, what undoes it.
 *
 * Of a step that has started children, these fit by their numbers: branches stand in the order in which they stood, and while the
 * step goes on, a map has the same items and a parallel the same join.
 *
 * Names. A step keeps the name under which it is called for as long as it lives: the keys of its effect and of its compensation are
 * made of it, and so is what an approval is decided under. A run remembers it for each step that was renamed (hx_run.renamed, JSON
 * {"name by now": "name in its keys"}), over any number of migrations.
 *
 *  M1  No two steps of a version have one name in their keys: a name that a step of the version before has, or that stands in the
 *      keys of another one, is no new step's.
 */
#pragma once

#include "base/json.h"
#include "model/run_definition.h"

/* The first that does not fit; words: "step \"a\": " and then this. */
struct run_misfit {
	const char *step; /* NULL: nothing is wrong */
	const char *why;
	const char *other; /* a name that is told after it; NULL: none */
};

/* A row of a step. */
struct run_passed {
	size_t position;
	bool truth; /* of a condition: which way it led */
	size_t to;  /* out: its position in the other version */
};

/* renames: JSON {"old": "new"}, of names without escapes. False: *ret_misfit says why. */
bool run_fit(struct json renames, const struct run_definition *from, const struct run_definition *to,
	     struct run_passed *passed, size_t n, bool begun, size_t *ret_stands, struct run_misfit *ret_misfit);
/* The part that takes the place of the one with this scope, of the whole definitions. NULL: *ret_misfit says why. */
const struct run_definition *run_fit_part(struct json renames, const struct run_definition *from,
					  const struct run_definition *to, struct slice scope,
					  const struct run_definition **ret_from, struct run_misfit *ret_misfit);
/*
 * M1, and the names in keys from now on, appended as JSON to *ret_renamed; `renamed`: those until now. False: *ret_misfit says why; its
 * names live in the definitions, or in the arena.
 */
bool run_fit_names(struct json renames, struct json renamed, const struct run_definition *from,
		   const struct run_definition *to, struct arena *arena, struct strbuf *ret_renamed,
		   struct run_misfit *ret_misfit);
