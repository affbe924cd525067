/* See run_children.h. */
#include "flow/run_children.h"

#include "base/id.h"
#include "flow/attribute.h"
#include "flow/due_watch.h"
#include "flow/function.h"
#include "flow/run_count.h"
#include "flow/subject_change.h"

/* clang-format off */

/* A caller of an older program may have taken the key: then the child has none, and is found by its parent as ever. */
#define CHILD_KEY(n)                                                                                                   \
	"(SELECT CASE WHEN NOT EXISTS (SELECT 1 FROM hx_run x WHERE x.workspace = p.workspace AND x.run_key = ?7 || " n ")"    \
	" THEN ?7 || " n " END)"
#define INTO_CHILD INTO_RUN(", parent, parent_step, parent_n, child, scope, around, depth, limit_key")
#define CHILD_COLUMNS(id, n, input, scope, attributes)                                                                             \
	" SELECT " id ", p.workspace, ?4, ?5, " CHILD_KEY(n) ", p.requester, p.trace, " input ", CASE WHEN ?5 > 0 THEN ?8 END, ?8, ?10, " attributes ","  \
	" p.subject, ?6, " n ", 'open', " scope ", CASE WHEN ?9 = 1 THEN coalesce(p.around, p.subject) END, p.depth + 1, ?11"

DB_STMT(stmt_make, "run_children_make", "iittittiiit", "",
	INTO_CHILD CHILD_COLUMNS("json_extract(value, '$[0]')", "(?2 + key)", "json_extract(value, '$[1]')", "json_extract(value, '$[2]')", "json_extract(value, '$[3]')")
	" FROM json_each(?3), hx_run p WHERE p.subject = ?1",
	.pg_sql = INTO_CHILD CHILD_COLUMNS("(r->>0)::bigint", "(?2 + ord - 1)", "r->>1", "r->>2", "r->>3")
	          " FROM json_array_elements(?3::json) WITH ORDINALITY AS t(r, ord), hx_run p WHERE p.subject = ?1");

#define OF_STEP " WHERE k.parent = ?1 AND k.parent_step = ?2"
#define KIDS " FROM hx_run k" OF_STEP
#define FROM_N " AND k.parent_n >= ?3"

DB_STMT(stmt_subjects, "run_children_subjects", "itiiiit", "",
	INTO_SUBJECT NEW_SUBJECT("k.subject", "?4", "'PENDING'", "?5", "?6", "?7") KIDS FROM_N);

/* Functions (definition_version 0) are due for workers, and not here. */
DB_STMT(stmt_functions, "run_children_functions", "itiitti", "",
	INTO_FUNCTION("") " SELECT k.subject, k.workspace, k.workflow, ?4, ?5, ?6, k.times_out_at, ?7" KIDS FROM_N);

DB_STMT(stmt_histories, "run_children_histories", "itit", "",
	INTO_HISTORY " SELECT s.id, s.seq, '', s.status, s.version, s.fence, s.op, ?4, s.updated_at, s.head"
	" FROM hx_run k JOIN hx_subject s ON s.id = k.subject" OF_STEP FROM_N);

/*
 * Every word but `fail` is carried out as a verb, by whoever finds it (run_asked_source). `fail` is for who drives the
 * child: one that rests is made due, and one that is held loses its next move (struct stride). Whether it rests is
 * asked of this very row: of all other rows a statement of PostgreSQL that had to wait for a lock sees what was there
 * before.
 */
#define ASK                                                                                                            \
	"UPDATE hx_run SET asked = ?2, child = 'open', due_at = CASE WHEN ?2 = 'fail' AND (due_at IS NOT NULL"             \
	" OR awaits LIKE 'event %' OR awaits LIKE 'approval %' OR awaits = 'child') THEN hx_now_ms() ELSE due_at END"      \
	" WHERE parent = ?1"                                                                                               \
	" AND coalesce(asked, '') <> ?2" /* mutant: asked-once-more */                                                     \
	" AND coalesce(asked, '') <> 'cancelling'" /* mutant: heard-asked-anew */                                          \
	" AND CASE ?2 WHEN 'cancel' THEN child <> 'cancelled' WHEN 'retry' THEN child = 'failed' ELSE child = 'open' END"

DB_STMT(stmt_ask, "run_children_ask", "ittii", "",
	ASK " AND parent_step = ?3 AND (?4 < 0 OR parent_n = ?4) AND parent_n <> ?5");

DB_STMT(stmt_no_winner, "run_no_winner", "i", "", "UPDATE hx_run SET winner = NULL{from} WHERE subject = ?1");

DB_STMT(stmt_ask_all, "run_children_ask_all", "it", "",
	ASK);

#define UNHEARD CHILD_UNHEARD("?2") /* mutant: cancel-unheard -> #define UNHEARD "1 = 0" */
DB_STMT(stmt_ended, "run_child_ended", "it", "", "UPDATE hx_run SET " CHILD_SEEN("?2", UNHEARD) "{from} WHERE subject = ?1");

/* Its row says who its parent is: a restart may have given the child to another run. */
#define PARENT_ROW "{from} WHERE subject = (SELECT c.parent FROM hx_run c WHERE c.subject = ?1)"
DB_STMT(stmt_tell, "run_child_tells", "i", "",
	"UPDATE hx_run SET due_at = CASE WHEN awaits = 'child' AND definition_version > 0"
	" AND EXISTS (SELECT 1 FROM hx_subject s WHERE s.id = hx_run.subject AND s.status <> 'PAUSED')"
	" THEN coalesce(due_at, hx_now_ms()) ELSE due_at END" /* mutant: parent-not-due -> " THEN due_at ELSE due_at END" */
	PARENT_ROW);

/* The first branch that is done is the winner, whoever is done later; of several that are at once, any. */
DB_STMT(stmt_win, "run_child_wins", "ii", "",
	"UPDATE hx_run SET winner = coalesce(winner, ?2)" /* mutant: winner-overwritten -> "UPDATE hx_run SET winner = ?2" */
	PARENT_ROW);

DB_STMT(stmt_heard, "run_child_heard", "it", "",
	"UPDATE hx_run SET asked = CASE WHEN asked = 'cancel' THEN 'cancelling' END WHERE subject = ?1 AND asked = ?2");

DB_STMT(stmt_scan_asked, "run_scan_asked", "i", "i",
	"SELECT subject FROM hx_run WHERE asked IS NOT NULL AND asked NOT IN ('fail', 'cancelling') ORDER BY subject LIMIT ?1");
const struct due_source run_asked_source = {"asked", RUN_TOPIC, 1000, .found = &stmt_scan_asked};

DB_STMT(stmt_parts, "run_read_parts", "i", "it",
	"SELECT subject, scope FROM hx_run WHERE around = ?1 AND child = 'open' ORDER BY subject");

/* (Nothing takes an event while its run is paused; resume makes it due.) */
DB_STMT(stmt_parts_due, "run_parts_due", "it", "",
	"UPDATE hx_run SET due_at = hx_now_ms() WHERE around = ?1 AND awaits = ?2"
	" AND EXISTS (SELECT 1 FROM hx_subject s WHERE s.id = hx_run.subject AND s.owner IS NULL AND s.status <> 'PAUSED')");

DB_STMT(stmt_no_more, "run_children_guard", "i", "i",
	"SELECT CAST(1 AS bigint) FROM hx_run r WHERE r.subject = ?1"
	" AND NOT " RUN_IS_STOPPED("r.parent") /* mutant: made-under-cancel -> " AND r.parent IS NOT NULL" */
);

/*
 * In the words of the index of those that have ended: of each state the first and the last. Not by min() and max():
 * without statistics PostgreSQL goes through all rows for these, and a map with 10,000 children is looked at once for
 * each slice of them.
 */
#define ENDED(how) KIDS " AND k.child <> 'open' AND k.child = '" how "'"
#define FIRST_OF(rows) "(SELECT k.parent_n" rows " ORDER BY k.parent_n LIMIT 1)"
#define LAST_OF(rows) "(SELECT k.parent_n" rows " ORDER BY k.parent_n DESC LIMIT 1)"
#define LEAST(a, b) "(SELECT min(e.n) FROM (SELECT " a " AS n UNION ALL SELECT " b ") e)"

/* The one that the others were stopped for, if it can be told. */
#define NO_SIBLING " AND coalesce(k.error, '') NOT LIKE '{\"code\":\"SIBLING_FAILED\"%'"
#define FAILED_ONE                                                                                                     \
	"coalesce(" LEAST(FIRST_OF(ENDED("failed") NO_SIBLING), FIRST_OF(ENDED("cancelled") NO_SIBLING)) ", "             \
	LEAST(FIRST_OF(ENDED("failed")), FIRST_OF(ENDED("cancelled"))) ")"

#define OPEN KIDS " AND k.child = 'open'"

DB_STMT(stmt_count, "run_children_count", "iti", "iiiiii",
	"SELECT coalesce(" LAST_OF(KIDS) " + 1, 0),"
	" (SELECT count(*)" OPEN "),"
	" " FAILED_ONE ","
	" (SELECT p.winner FROM hx_run p WHERE p.subject = ?1),"
	" (SELECT coalesce(sum(length(k.output)), 0)" ENDED("done") " AND ?3 = 1),"
	" (SELECT max(e.n) FROM (SELECT " LAST_OF(OPEN) " AS n UNION ALL SELECT " LAST_OF(ENDED("done"))
	" UNION ALL SELECT " LAST_OF(ENDED("failed")) ") e)");

/* Single ones are found by their numbers, however many there are. */
#define ROW_OF_KID "SELECT k.parent_n, k.child, k.output, k.error, k.completed_at" KIDS
DB_STMT(stmt_rows, "run_children_rows", "itiii", "ittti",
	ROW_OF_KID " AND k.parent_n = " FAILED_ONE
	" UNION ALL " ROW_OF_KID " AND ?3 = 1 AND k.parent_n = " LAST_OF(KIDS) " AND k.parent_n <> coalesce(" FAILED_ONE ", -1)"
	" UNION ALL " ROW_OF_KID " AND k.parent_n <> coalesce(" FAILED_ONE ", -1)"
	" AND ?3 >= 2 AND NOT EXISTS (SELECT 1" OPEN ") AND (?3 = 3"
	" OR (" LAST_OF(KIDS) " + 1 >= ?4"
	" AND (SELECT coalesce(sum(length(k.output)), 0)" ENDED("done") ") <= ?5))"
	" ORDER BY 1");

/* ?2: the name that a step has for its children. */
DB_STMT(stmt_polled, "run_children_polled", "it", "i",
	"SELECT CAST(1 AS bigint) FROM hx_run r JOIN hx_function_poll p ON p.workspace = r.workspace AND p.name = ?2"
	" AND p.at > (SELECT hx_now_ms()) - 2592000000 WHERE r.subject = ?1 LIMIT 1");

/* Those that are functions have no driver: a node looks at them. */
DB_STMT(stmt_functions_due, "run_children_functions_due", "i", "",
	"UPDATE hx_function SET due_at = hx_now_ms(), revision = revision + 1 WHERE subject IN (SELECT k.subject FROM hx_run k"
	" WHERE k.parent = ?1 AND k.asked = 'fail' AND k.definition_version = 0)");

/* clang-format on */

static void make_functions(struct unit *unit, const struct stamp *stamp, const struct run_row *parent,
			   const struct run_brood *brood)
{
	const struct run_definition *definition = brood->machine->definition;

	UNIT_ADD(unit, UNIT_ANY, &stmt_functions, db_int(parent->subject), db_str(brood->step->name),
		 db_int(brood->from), db_int(stamp->at.ms), db_optional(slice_str(definition->retry_json)),
		 db_optional(slice_str(function_on_failure(definition))),
		 definition->timeout_ms ? db_int(definition->timeout_ms) : db_null());
	function_offer(unit, parent->workspace, slice_str(definition->name), brood->n);
	if (definition->timeout_ms)
		unit_wake(unit, FUNCTION_TOPIC);
}

void run_children_make(struct unit *unit, const struct stamp *stamp, const struct run_row *parent,
		       const struct run_brood *brood)
{
	struct db_value subject = db_int(parent->subject), step = db_str(brood->step->name), from = db_int(brood->from);
	/* Of a part the time is that of the run around it. */
	int64_t times_out_at = brood->step->parts_n ? 0 : run_times_out_at(brood->machine->definition, stamp->at.ms);
	bool function = brood->machine->definition->is_function;

	UNIT_ADD(unit, UNIT_ANY, &stmt_make, subject, from, db_text(brood->rows),
		 db_str(brood->machine->definition->name), db_int(brood->machine->version), step, db_text(brood->key),
		 db_int(stamp->at.ms), db_int(brood->sees_around), times_out_at ? db_int(times_out_at) : db_null(),
		 db_optional(brood->limit_key));
	if (function)
		make_functions(unit, stamp, parent, brood);
	UNIT_ADD(unit, UNIT_ANY, &stmt_subjects, subject, step, from, db_int(function ? function_kind() : run_kind()),
		 db_int(stamp->op), db_int(stamp->at.ms), db_str(stamp->node));
	UNIT_ADD(unit, UNIT_ANY, &stmt_histories, subject, step, from, db_str(stamp->node));
	run_count_changed(unit, parent->workspace, brood->machine->definition->name, "", RUN_PENDING, brood->n);
	if (brood->described)
		attributes_of_children(unit, parent->subject, brood->step->name, brood->from);
	if (brood->step->joins_any && brood->from == 0)
		UNIT_ADD(unit, UNIT_ANY, &stmt_no_winner, subject); /* mutant: winner-of-another-step -> ; */
	unit_wake(unit, RUN_TOPIC);
}

static void tell_functions(struct unit *unit, int64_t parent)
{
	UNIT_ADD(unit, UNIT_ANY, &stmt_functions_due, db_int(parent));
	unit_wake(unit, FUNCTION_TOPIC);
}

void run_children_ask(struct unit *unit, int64_t parent, const struct run_asking *asking)
{
	UNIT_ADD(unit, UNIT_ANY, &stmt_ask, db_int(parent), db_str(asking->word), db_str(asking->step->name),
		 db_int(asking->only), db_int(asking->but));
	if (strcmp(asking->word, CHILD_ASKED_FAIL) == 0)
		tell_functions(unit, parent); /* mutant: function-not-told-to-fail -> ; */
	unit_wake(unit, RUN_TOPIC);
}

void run_children_ask_all(struct unit *unit, int64_t parent, const char *word)
{
	UNIT_ADD(unit, UNIT_ANY, &stmt_ask_all, db_int(parent), db_str(word));
	unit_wake(unit, RUN_TOPIC);
}

const char *run_child_seen(const char *to)
{
	return slice_is(slice_str(to), RUN_COMPLETED) ? CHILD_DONE
	       : slice_is(slice_str(to), RUN_FAILED)  ? CHILD_FAILED
						      : CHILD_CANCELLED;
}

void run_child_tells(struct unit *unit, const struct run_row *row, const char *to)
{
	/* Many may end at once: whoever of them is written, it is due. */
	unit_share(unit, row->parent); /* mutant: end-unheld -> ; */
	UNIT_ADD(unit, UNIT_ANY, &stmt_tell, db_int(row->subject));
	if (slice_is(slice_str(to), RUN_COMPLETED) &&
	    row->around) /* a branch, perhaps one of those of which any will do */
		UNIT_ADD(unit, UNIT_ANY, &stmt_win, db_int(row->subject), db_int(row->parent_n));
	function_due(unit, row->parent); /* if it is one */
	unit_wake(unit, RUN_TOPIC);
}

void run_child_ended(struct unit *unit, const struct run_row *row, const char *to)
{
	UNIT_ADD(unit, UNIT_ANY, &stmt_ended, db_int(row->subject), db_str(run_child_seen(to)));
	run_child_tells(unit, row, to);
}

void run_read_parts(struct unit *unit, int64_t around)
{
	UNIT_ADD(unit, UNIT_ANY, &stmt_parts, db_int(around));
}

void run_parts_due(struct unit *unit, int64_t around, struct slice awaits)
{
	UNIT_ADD(unit, UNIT_ANY, &stmt_parts_due, db_int(around), db_text(awaits));
	unit_wake(unit, RUN_TOPIC);
}

void run_child_heard(struct unit *unit, const struct run_row *row)
{
	UNIT_ADD(unit, UNIT_ANY, &stmt_heard, db_int(row->subject), db_text(row->asked));
}

int run_child_knows(const struct run_row *row)
{
	if (!row->parent)
		return CHILD_NONE;
	return row->asked.p && slice_is(row->asked, CHILD_ASKED_FAIL) ? CHILD_TOLD : CHILD_UNTOLD;
}

void run_children_guard(struct unit *unit, const struct run_row *row)
{
	/* Whoever cancels one of them holds it, too. */
	unit_touch(unit, row->parent); /* mutant: cancel-of-parent -> ; */
	for (size_t i = 0; i < RUN_ABOVE_MAX && row->above[i]; i++)
		unit_touch(unit, row->above[i]); /* mutant: cancel-further-up -> ; */
	UNIT_ADD(unit, UNIT_VERDICT, &stmt_no_more, db_int(row->subject));
}

void run_children_read(struct unit *unit, int64_t parent, const struct run_step *step, enum run_kids_wanted wanted,
		       int64_t of)
{
	if (wanted == KIDS_POLLED) {
		UNIT_ADD(unit, UNIT_ANY, &stmt_polled, db_int(parent), db_str(step->workflow));
		return;
	}
	UNIT_ADD(unit, UNIT_ANY, &stmt_count, db_int(parent), db_str(step->name),
		 db_int(step->save_as != NULL || step->type == RUN_PARALLEL));
	UNIT_ADD(unit, UNIT_ANY, &stmt_rows, db_int(parent), db_str(step->name), db_int(wanted), db_int(of),
		 db_int(RUN_OUTPUT_BYTES_MAX));
}

static struct slice text(const struct db_value *value, struct arena *arena)
{
	return value->type == DB_NULL ? slice_of(NULL, 0) : arena_copy(arena, value->s);
}

static int64_t number_or(const struct db_value *value, int64_t none)
{
	return value->type == DB_NULL ? none : value->i;
}

bool run_kids_take(const struct unit_result *result, const struct run_step *step, struct arena *arena,
		   struct run_kids *ret_kids)
{
	const struct db_rows *counts = &result->rows[0], *rows = &result->rows[1];

	*ret_kids = (struct run_kids){
		.step = step,
		.begun = db_cell(counts, 0, 0)->i,
		.open = db_cell(counts, 0, 1)->i,
		.failed = number_or(db_cell(counts, 0, 2), -1),
		.winner = number_or(db_cell(counts, 0, 3), -1),
		.bytes = db_cell(counts, 0, 4)->i,
		.standing = number_or(db_cell(counts, 0, 5), -1),
	};
	/* Who has won an earlier step is there until the first branches of this one are made. */
	if (ret_kids->begun == 0)
		ret_kids->winner = -1; /* mutant: won-without-branches -> ; */
	for (size_t i = rows->n; i-- > 0;) {
		struct run_kid *kid = arena_alloc(arena, sizeof *kid);

		if (!kid)
			return false;
		*kid = (struct run_kid){.next = ret_kids->first,
					.n = db_cell(rows, i, 0)->i,
					.state = text(db_cell(rows, i, 1), arena),
					.output = text(db_cell(rows, i, 2), arena),
					.error = text(db_cell(rows, i, 3), arena),
					.completed_at = number_or(db_cell(rows, i, 4), 0)};
		ret_kids->first = kid;
	}
	return !arena->failed;
}
