/*
 * A change of the definitions: a set is put together from the store, the folder and what somebody puts, checked as a
 * whole, and taken into force. Used by definitions.c alone.
 *
 *   change_begin ─▶ add_stored, add_folder, add_text ─▶ check ─▶ take ─▶ change_end
 *                                                         └ refused ────────┘
 *
 * A version that would leave entities behind is refused (flow/entity_orphans.h): they are counted before anything is written, and
 * looked for once more in the unit that writes it. On SQLite nothing can come in between. What can still come later, on both stores:
 * a step that was under way and had not claimed yet, or claims nothing; and on PostgreSQL one of a node that has not heard of the
 * version. Then the entity stands in a status that nobody knows, or under a claim whose step nobody knows, which a janitor holds
 * for a person (flow/janitor.c); and a version that has it again brings it back.
 */
#pragma once

#include "engine/definitions.h"

/* A set that is being put together: what would be in force. */
struct candidate {
	const struct definition *definition; /* in the scratch arena, unless there is a machine */
	int64_t version;                     /* that the store has already; 0: none */
	bool differs;                        /* from that version: the next one is to be written */
	const struct machine *machine;       /* the one in force while nothing changes; else made at the end */
	bool made;                           /* then */
	struct db_rows columns;              /* of the user's table, in the scratch arena */
	const struct definition *before; /* the store's latest version, which this one takes the place of; NULL: none */
	struct slice lost;               /* statuses that entities may not be in when it is written; empty: none */
	struct slice lost_claims;        /* claims that there may not be then; empty: none */
};

/*
 * One change, from the reading to the taking into force or the refusal. What it reads and parses is in its scratch
 * arena, so a refused one leaves nothing behind; only what is accepted is parsed once more, into the arena that is
 * never emptied. Findings have copies of their own of all they say.
 */
struct change {
	struct definitions *defs;
	struct runner *runner;
	struct findings *findings;
	struct arena scratch;
	size_t n;
	struct candidate set[DEFINITIONS_MAX];
};

/* Waits for the change before it. */
struct change *change_begin(struct definitions *defs, struct runner *runner, struct findings *findings);
void change_end(struct change *c);

enum hx_code change_add_stored(struct change *c, struct hx_error *err) HX_MUST_CHECK;
enum hx_code change_add_folder(struct change *c, const char *dir, struct hx_error *err) HX_MUST_CHECK;
/* NULL: it is refused, which is a finding. */
struct candidate *change_add_text(struct change *c, const char *file, struct slice text);
/* What it is, or will be, in the store. */
int64_t candidate_version(const struct candidate *candidate);
/* How many are not as they are in force. */
size_t change_count(struct change *c);
/* All but what the store has to say. HX_CONFIG_ERROR: there are errors among the findings. */
enum hx_code change_check(struct change *c, const struct config *config, struct hx_error *err) HX_MUST_CHECK;
/*
 * Asks the store, writes what is new, and takes the set into force; nothing of it on any error. HX_CONCURRENCY_ERROR:
 * another node has written the same version, so everything has to be looked at again.
 */
enum hx_code change_take(struct change *c, struct clock *clock, struct hx_error *err) HX_MUST_CHECK;

/*
 * A version that a run or a batch has. HX_CONFIG_ERROR, HX_NOT_FOUND: it cannot serve here, in words; any other is the store's
 * trouble.
 */
enum hx_code change_load_version(struct change *c, struct slice name, int64_t version,
				 struct hx_error *err) HX_MUST_CHECK;
/* All that runs and batches have. One that cannot serve is a warning: it stops those of it, and not everything else. */
enum hx_code change_load_used(struct change *c, struct hx_error *err) HX_MUST_CHECK;
void change_tell_unreadable(struct findings *findings, struct slice name, int64_t version, const char *why);

/* ---- between the files of it ---- */

/*
 * Parses a text to stay. NULL: *said has the reason, or the arena is full. columns: of the user's table, for an entity
 * that has one.
 */
struct machine *change_machine(struct change *c, struct slice file, struct slice text, int64_t version,
			       const struct db_rows *columns, struct findings *said);
/* Functions that it names and nobody has registered: an error where it is new, or all must be there; else a warning. */
void change_check_natives(const struct definitions *defs, const struct definition *definition, bool is_new,
			  struct findings *findings);
/* Before anybody sees the definition. natives NULL: every function may be there. */
void natives_mark_absent(const struct natives *natives, const struct definition *definition);
/* This version's runs, and what after-effects of the definitions in force, need a function that is absent. */
void natives_leave_run(struct definitions *defs, const struct machine *machine);
void natives_leave_jobs(struct definitions *defs);
/* How many statements connections will have to prepare for it, beyond those that they know. */
size_t change_statements(const struct definitions *defs, const struct definition *definition);
/* It stays: its statements are shared, and it counts. */
void change_keep(struct definitions *defs, const struct machine *machine);
/* Notes what is lost, and tells who is there: see flow/entity_orphans.h. */
enum hx_code change_look_for_orphans(struct change *c, struct candidate *candidate, struct hx_error *err) HX_MUST_CHECK;
