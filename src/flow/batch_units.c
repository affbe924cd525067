/*
 * What changes a whole batch: its loading, its holders, its end. See batch.h for the states, batch_item.c for the items.
 *
 * The status and the claim are the subject's business (subject.c); what stands here guards by the batch's own row: the flag,
 * the counts, the cursors. Each guard stands on a line of its own.
 */
#include <string.h>

#include "flow/attribute.h"
#include "flow/batch_parts.h"
#include "flow/job.h"

DB_STMT(stmt_create, "batch_create", "ittitttiiiiitt", "",
	"INSERT INTO hx_batch (subject, workspace, workflow, definition_version, batch_key, requester, trace, account,"
	" created_at, total, loaded_at, due_at, data, attributes) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11,"
	" CASE WHEN ?12 = 1 THEN hx_now_ms() END, ?13, ?14)"
	" ON CONFLICT (workspace, batch_key) WHERE batch_key IS NOT NULL DO NOTHING");

DB_STMT(stmt_keep, "batch_keep", "iiti", "",
	"UPDATE hx_subject SET until = hx_now_ms() + ?4 WHERE id = ?1"
	" AND fence = ?2" /* mutant: batch-keep-fence */
	" AND owner IS NOT NULL"
	" AND status = ?3",
	.fenced = true);

#define INTO_ITEM "INSERT INTO hx_batch_item (batch, n, input, cost)"
/* What a lost loader has left after its total was never begun: input and cost are all that it has. */
#define REPLACED " ON CONFLICT (batch, n) DO UPDATE SET input = excluded.input, cost = excluded.cost"

DB_STMT(stmt_load, "batch_load", "iit", "",
	INTO_ITEM " SELECT ?1, ?2 + key, json_extract(value, '$[1]'), json_extract(value, '$[0]') FROM json_each(?3)"
	" WHERE true" REPLACED,
	.pg_sql = INTO_ITEM " SELECT ?1, ?2 + ord - 1, r->>1, (r->>0)::bigint"
		  " FROM json_array_elements(?3::json) WITH ORDINALITY AS t(r, ord)" REPLACED);

DB_STMT(stmt_load_end, "batch_load_end", "iiii", "",
	"UPDATE hx_batch SET total = ?2, loaded_at = coalesce(loaded_at, ?3),"
	" due_at = CASE WHEN ?4 = 1 THEN hx_now_ms() END WHERE subject = ?1");

DB_STMT(stmt_load_failed, "batch_load_failed", "ii", "",
	"UPDATE hx_batch SET batch_key = NULL, completed_at = ?2, error = 'whoever loaded it was lost: it was never'"
	" || ' acknowledged, and its key is free' WHERE subject = ?1"
	" AND loaded_at IS NULL");

DB_STMT(stmt_due, "batch_due", "i", "", "UPDATE hx_batch SET due_at = hx_now_ms() WHERE subject = ?1");

DB_STMT(stmt_seized, "batch_seized", "ii", "",
	"UPDATE hx_batch SET due_at = NULL, needs = NULL, started_at = coalesce(started_at, ?2) WHERE subject = ?1"
	" AND cancel_requested = 0" /* mutant: unconditional-claim */
);

DB_STMT(stmt_seized_down, "batch_seized_down", "ii", "",
	"UPDATE hx_batch SET due_at = CASE WHEN ?2 = 0 THEN hx_now_ms() END, needs = NULL, cancel_requested = 1 WHERE subject = ?1");

#define RESTING "FROM hx_batch_item WHERE batch = ?1 AND " ITEM_IS_OPEN " AND status = 'PENDING'"

/* ?2 the status is RUNNING   ?3 rest   ?4 cleanups   ?5 error */
DB_STMT(stmt_let_go, "batch_let_go", "iiiit", "",
	"UPDATE hx_batch SET cleanups = cleanups + ?4, error = ?5, due_at = CASE"
	" WHEN ?2 = 1 AND cancel_requested = 1 THEN hx_now_ms()" /* mutant: flag-not-due */
	" WHEN ?3 > 0 THEN hx_now_ms() + ?3"
	" ELSE coalesce((SELECT min(due_at) " RESTING "), hx_now_ms() + 1000) END"
	" WHERE subject = ?1");

/*
 * The next item cannot be paid, so the batch stops. It is due again when a resting item can go on that the balance covers: one that
 * falls due later, or one that is paid for and in doubt. One that is due now and not paid for does not count: its turn comes after
 * the item that cannot be paid.
 */
DB_STMT(stmt_stop_short, "batch_stop_short", "ii", "",
	"UPDATE hx_batch SET needs = x.needs, due_at = (SELECT min(due_at) " RESTING
	" AND cost - charged <= a.balance AND (doubt = 1 AND charged = cost OR due_at > hx_now_ms()))"
	" FROM (SELECT cost - charged AS needs FROM hx_batch_item WHERE batch = ?1 AND n = " ITEM_CHOICE ") x, hx_account a"
	" WHERE hx_batch.subject = ?1 AND a.subject = hx_batch.account"
	" AND cancel_requested = 0" /* mutant: short-of-credit-flagged */
	" AND x.needs > a.balance" /* mutant: short-of-credit-enough */
	" AND NOT EXISTS (SELECT 1 FROM hx_batch_item WHERE batch = ?1 AND " ITEM_IS_OPEN " AND status = 'RUNNING')");

#define TOTALS_ARE                                                                                                     \
	" AND succeeded = ?3 AND failed = ?4 AND unknown = ?5 AND accepted = ?6 AND cancelled = ?7 AND charged = ?8"   \
	" AND refunded = ?9"

#define COMPLETED_AT "UPDATE hx_batch SET completed_at = ?2, due_at = NULL, error = NULL WHERE subject = ?1"

DB_STMT(stmt_completed, "batch_completed", "iiiiiiiii", "",
	COMPLETED_AT
	" AND cancel_requested = 0" /* mutant: unconditional-completion */
	" AND next_n = total"
	" AND NOT EXISTS (SELECT 1 FROM hx_batch_item WHERE batch = ?1 AND " ITEM_IS_OPEN ")"
	TOTALS_ARE /* mutant: stale-totals -> " AND ?3 + ?4 + ?5 + ?6 + ?7 + ?8 + ?9 >= 0" */
);

DB_STMT(stmt_cancelled, "batch_cancelled", "iiiiiiiiii", "",
	COMPLETED_AT " AND flipped_to = total AND cancelled + accepted = total"
	" AND late = ?10" /* mutant: late-after-pass -> " AND late >= ?10 - ?10" */
	TOTALS_ARE);

DB_STMT(stmt_request_cancel, "batch_request_cancel", "i", "",
	"UPDATE hx_batch SET cancel_requested = 1,"
	" due_at = CASE"
	" WHEN EXISTS (SELECT 1 FROM hx_subject WHERE id = ?1 AND owner IS NULL) THEN hx_now_ms()" /* mutant: flag-wakes-nobody -> " WHEN 1 = 0 THEN 0" */
	" ELSE due_at END WHERE subject = ?1"
	" AND cancel_requested = 0"
	" AND EXISTS (SELECT 1 FROM hx_subject WHERE id = ?1 AND status IN ('RUNNING', 'OUT_OF_CREDIT'))");

DB_STMT(stmt_wake_waiting, "batch_wake_waiting", "i", "",
	"UPDATE hx_batch SET due_at = hx_now_ms() WHERE account = ?1 AND needs IS NOT NULL"
	" AND needs <= (SELECT balance FROM hx_account WHERE subject = ?1)"
	" AND (due_at IS NULL OR due_at > hx_now_ms())" /* those that are due keep their place */
);

void batch_keep(struct unit *unit, const struct batch_hold *hold, const char *status)
{
	batch_touch(unit, hold->subject, hold->account); /* mutant: start-unlocked */
	UNIT_ADD(unit, UNIT_VERDICT, &stmt_keep, db_int(hold->subject), db_int(hold->fence), db_str(status),
		 db_int(hold->lease_ms));
}

/* Its holder moves it on; without a lease it is let go. */
static void advance(struct unit *unit, const struct stamp *stamp, const struct batch_hold *hold, const char *from,
		    const char *to, int64_t lease_ms)
{
	struct move move = {hold->subject, from, to};
	struct stride stride = {.transitions = 1, .lease_ms = lease_ms};

	batch_touch(unit, hold->subject, hold->account);
	subject_advance(unit, stamp, &move, hold->fence, &stride);
}

/* Somebody who is not its holder takes it as it was read. */
static void seize(struct unit *unit, const struct stamp *stamp, const struct batch_row *row, const char *from,
		  const char *to, int64_t lease_ms)
{
	struct move move = {row->subject, from, to};
	struct stride stride = {.transitions = 1, .lease_ms = lease_ms};

	batch_touch(unit, row->subject, row->account);
	subject_seize(unit, stamp, &move, row->version, &stride);
}

/* ---- loading ---- */

struct slice batch_describe(const struct batch_machine *machine, struct slice data, struct arena *arena)
{
	return attributes_of_data(&machine->definition->attributes, data.p ? data : slice_str("{}"), arena);
}

static void batch_units_add_row(struct unit *unit, const struct stamp *stamp, const struct batch_spec *spec,
				int64_t total, struct db_value loaded_at, bool due)
{
	batch_touch(unit, spec->subject, spec->account);
	UNIT_ADD(unit, UNIT_VERDICT, &stmt_create, db_int(spec->subject), db_text(spec->workspace),
		 db_str(spec->machine->definition->name), db_int(spec->machine->version), db_optional(spec->key),
		 db_text(spec->requester), spec->trace.n ? db_text(spec->trace) : db_null(), db_int(spec->account),
		 db_int(stamp->at.ms), db_int(total), loaded_at, db_int(due), db_optional(spec->data),
		 db_optional(spec->attributes));
	if (spec->attributes.p)
		attributes_of_batch(unit, spec->subject); /* mutant: batch-without-its-index -> ; */
}

void batch_create(struct unit *unit, const struct stamp *stamp, const struct batch_spec *spec, int64_t lease_ms)
{
	struct move move = {spec->subject, BATCH_LOADING, BATCH_LOADING};
	struct stride stride = {.transitions = 1, .lease_ms = lease_ms};

	batch_units_add_row(unit, stamp, spec, /* total= */ 0, /* loaded_at= */ db_null(), /* due= */ false);
	subject_insert(unit, stamp, spec->subject, batch_kind(), BATCH_LOADING);
	subject_seize(unit, stamp, &move, /* version= */ 1, &stride);
}

void batch_create_whole(struct unit *unit, const struct stamp *stamp, const struct batch_spec *spec, struct slice rows,
			int64_t total, bool queued)
{
	batch_units_add_row(unit, stamp, spec, total, db_int(stamp->at.ms), queued);
	subject_insert(unit, stamp, spec->subject, batch_kind(), queued ? BATCH_QUEUED : BATCH_PENDING);
	UNIT_ADD(unit, UNIT_ANY, &stmt_load, db_int(spec->subject), db_int(0), db_text(rows));
	if (queued)
		unit_wake(unit, BATCH_TOPIC);
}

void batch_load_slice(struct unit *unit, const struct batch_hold *hold, int64_t from, struct slice rows)
{
	batch_keep(unit, hold, BATCH_LOADING);
	UNIT_ADD(unit, UNIT_ANY, &stmt_load, db_int(hold->subject), db_int(from), db_text(rows));
}

void batch_load_end(struct unit *unit, const struct stamp *stamp, const struct batch_hold *hold, int64_t total,
		    bool queued)
{
	advance(unit, stamp, hold, BATCH_LOADING, queued ? BATCH_QUEUED : BATCH_PENDING, /* lease_ms= */ 0);
	UNIT_ADD(unit, UNIT_ANY, &stmt_load_end, db_int(hold->subject), db_int(total), db_int(stamp->at.ms),
		 db_int(queued));
	if (queued)
		unit_wake(unit, BATCH_TOPIC);
}

void batch_load_more(struct unit *unit, const struct stamp *stamp, const struct batch_row *row, int64_t lease_ms)
{
	seize(unit, stamp, row, BATCH_PENDING, BATCH_LOADING, lease_ms);
}

void batch_load_lost(struct unit *unit, const struct stamp *stamp, const struct batch_row *row)
{
	seize(unit, stamp, row, BATCH_LOADING, row->loaded ? BATCH_PENDING : BATCH_FAILED, /* lease_ms= */ 0);
	if (!row->loaded) {
		UNIT_ADD(unit, UNIT_VERDICT, &stmt_load_failed, db_int(row->subject), db_int(stamp->at.ms));
		unit_wake(unit, subject_end_topic(row->subject));
	}
}

void batch_start(struct unit *unit, const struct stamp *stamp, const struct batch_row *row)
{
	struct move move = {row->subject, BATCH_PENDING, BATCH_QUEUED};

	batch_touch(unit, row->subject, row->account);
	subject_transition(unit, stamp, &move, row->version);
	UNIT_ADD(unit, UNIT_ANY, &stmt_due, db_int(row->subject));
	unit_wake(unit, BATCH_TOPIC);
}

/* ---- holders ---- */

void batch_seize(struct unit *unit, const struct stamp *stamp, const struct batch_row *row, const char *to,
		 int64_t lease_ms)
{
	seize(unit, stamp, row, row->status, to, lease_ms);
	if (strcmp(to, BATCH_RUNNING) == 0)
		UNIT_ADD(unit, UNIT_VERDICT, &stmt_seized, db_int(row->subject), db_int(stamp->at.ms));
	else
		UNIT_ADD(unit, UNIT_VERDICT, &stmt_seized_down, db_int(row->subject), db_int(lease_ms));
	if (!lease_ms)
		unit_wake(unit, BATCH_TOPIC);
}

void batch_begin_teardown(struct unit *unit, const struct stamp *stamp, const struct batch_hold *hold)
{
	advance(unit, stamp, hold, BATCH_RUNNING, BATCH_CANCELLING, hold->lease_ms);
}

void batch_let_go(struct unit *unit, const struct stamp *stamp, const struct batch_hold *hold, const char *status,
		  int64_t rest_ms, bool failed_cleanup, struct slice error)
{
	advance(unit, stamp, hold, status, status, /* lease_ms= */ 0);
	UNIT_ADD(unit, UNIT_ANY, &stmt_let_go, db_int(hold->subject), db_int(strcmp(status, BATCH_RUNNING) == 0),
		 db_int(rest_ms), db_int(failed_cleanup), db_optional(error));
	unit_wake(unit, BATCH_TOPIC);
}

void batch_stop_short(struct unit *unit, const struct stamp *stamp, const struct batch_hold *hold)
{
	advance(unit, stamp, hold, BATCH_RUNNING, BATCH_OUT_OF_CREDIT, /* lease_ms= */ 0);
	UNIT_ADD(unit, UNIT_VERDICT, &stmt_stop_short, db_int(hold->subject), db_int(hold->fence));
	unit_wake(unit, BATCH_TOPIC);
}

static void add_after_effects(struct unit *unit, const struct stamp *stamp, const struct batch_hold *hold,
			      const int64_t job_ids[], const struct slice job_keys[], struct slice payload)
{
	const struct batch_definition *definition = hold->machine->definition;

	for (size_t i = 0; i < definition->after_effects_n; i++) {
		struct job_spec spec = {
			.subject = job_ids[i],
			.workspace = hold->workspace,
			.queue = JOB_QUEUE_AFTER_EFFECTS,
			.repeatable = definition->after_effects[i]->effect != EFFECT_CLAIMED,
			.workflow = definition->name,
			.action = definition->after_effects[i]->name,
			.effect_key = job_keys[i],
			.payload = payload,
		};

		job_insert(unit, stamp, &spec);
	}
	if (definition->after_effects_n)
		unit_wake(unit, JOB_TOPIC);
}

#define TOTALS(row)                                                                                                    \
	db_int((row)->succeeded), db_int((row)->failed), db_int((row)->unknown), db_int((row)->accepted),              \
		db_int((row)->cancelled), db_int((row)->charged), db_int((row)->refunded)

void batch_end(struct unit *unit, const struct stamp *stamp, const struct batch_hold *hold, const char *to,
	       const struct batch_row *row, const int64_t job_ids[], const struct slice job_keys[],
	       struct slice payload)
{
	bool completed = strcmp(to, BATCH_COMPLETED) == 0;

	advance(unit, stamp, hold, completed ? BATCH_RUNNING : BATCH_CANCELLING, to, /* lease_ms= */ 0);
	if (completed)
		UNIT_ADD(unit, UNIT_VERDICT, &stmt_completed, db_int(hold->subject), db_int(stamp->at.ms), TOTALS(row));
	else
		UNIT_ADD(unit, UNIT_VERDICT, &stmt_cancelled, db_int(hold->subject), db_int(stamp->at.ms), TOTALS(row),
			 db_int(row->late));
	add_after_effects(unit, stamp, hold, job_ids, job_keys, payload); /* mutant: batch-effects-outside-unit */
	unit_wake(unit, subject_end_topic(hold->subject));
}

/* ---- callers ---- */

void batch_request_cancel(struct unit *unit, const struct stamp *stamp, const struct batch_row *row)
{
	(void)stamp; /* neither the status nor the holder changes: the history has nothing to tell */
	batch_touch(unit, row->subject, row->account);
	UNIT_ADD(unit, UNIT_VERDICT, &stmt_request_cancel, db_int(row->subject));
	unit_wake(unit, row->subject);
	unit_wake(unit, BATCH_TOPIC);
}

void batch_wake_waiting(struct unit *unit, int64_t account)
{
	UNIT_ADD(unit, UNIT_ANY, &stmt_wake_waiting, db_int(account)); /* mutant: money-wakes-nobody */
	unit_wake(unit, BATCH_TOPIC);
}
