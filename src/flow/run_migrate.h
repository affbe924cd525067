/*
 * Migrating a run to another version of its definition: as if it had been of that version from the beginning.
 *
 *   PENDING WAITING PAUSED FAILED CANCELLING ─ migrate ─▶ the same, of the other version; due now, if it goes on by itself
 *
 * Whether it may is decided by run_fit.h, from the rows. A run of which a step is RUNNING, UNKNOWN or in doubt is left: what is known
 * about such a step is known under its own definition. Its branches, its bodies and the tasks of its maps are runs of the same
 * definition, and go along, near and far, whatever became of them, but for those that are CANCELLED, which nobody looks at again;
 * children that are runs of another workflow, or of this one by its name, keep theirs.
 *
 * All of it is one unit. Each run in it is guarded by the version that was read, and nobody held it then: whoever has seized one since
 * has raised it. Whoever reads a run while this commits sees its steps with the version that they belong to (run_row_take()).
 *
 * What changes: the version of the definition and the scope of parts; the positions of rows, where the other version has more steps or
 * fewer in what was jumped over; names of steps in the rows of children and of decisions that nobody has taken; when the run's time is
 * over, if it has another timeout; what it is searched by. What does not: rows of steps besides, outputs, attempts, keys.
 *
 * Invariants (the simulator checks them on every edge):
 *  M2  A run and its parts are of one version, but for parts that are CANCELLED.
 *  M3  The key of an effect that was done, and that of its compensation, is the same before and after it. That of a step which was
 *      tried, for certain in vain, is another one from then on: what is asked for may be something else (I8).
 */
#pragma once

#include "flow/run.h"

#define RUN_MIGRATE_PARTS_MAX 10000

struct run_migration {
	/* Asked for: */
	int64_t version;      /* of the definition */
	struct slice renames; /* JSON {"old": "new"} */
	struct slice requester;
	/* Decided; lists live in the arena of run_migrate_decide(): */
	const struct run_machine *to;
	int64_t runs_n; /* itself and its parts */
	struct slice
		runs; /* [[subject, version, "scope" or null, at_step, undo, "awaits" or null, due, redo + …], …] */
	struct slice positions; /* [[subject, from, to], …]; .p NULL: all stay */
	struct slice names;     /* [["old", "new"], …]; .p NULL: none */
	struct slice renamed;   /* {"name by now": "name in its keys"}; .p NULL: none */
	struct slice reason;
	struct slice attributes; /* that it is found by from now on; empty: none. .p NULL: as they are */
	const char *misfit;      /* with HX_CANNOT_MIGRATE: the first step that does not fit */
	int64_t times_out_at;    /* 0: never */
};

/* Old and new names of steps as they were written, without escapes and without those that stay. .p NULL: *ret_words says what is wrong
 * with them; NULL: they are too large. */
struct slice run_migrate_renames(struct json map, struct arena *arena, const char **ret_words);

/* Lines of the unit that reads, after those of run_read(). */
enum { MIGRATE_LINE_TARGET, MIGRATE_LINE_RUNS, MIGRATE_LINE_STEPS, MIGRATE_LINES };
void run_migrate_read(struct unit *unit, int64_t subject, int64_t version);
/* Is there such a version at all? `rows`: from MIGRATE_LINE_TARGET on. */
static inline bool run_migrate_has_target(const struct db_rows *rows)
{
	return rows[MIGRATE_LINE_TARGET].n > 0;
}
/*
 * HX_OK; HX_WRONG_STATUS: a step is under way, or nobody knows what became of it; HX_CANNOT_MIGRATE: the first step that does not fit;
 * HX_TOO_LARGE; HX_BUSY: it was changed while it was read. *ret_detail says it in words, in the arena.
 */
enum hx_code run_migrate_decide(const struct db_rows *rows, const struct run_row *row, struct arena *arena,
				struct run_migration *m, const char **ret_detail) HX_MUST_CHECK;
/* After the guarded write of the run's subject. */
void run_migrate_add(struct unit *unit, const struct stamp *stamp, const struct run_row *row,
		     const struct run_migration *m);
