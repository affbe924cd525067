/*
 * The statements and the task of record.h. Each guard stands on a line of its own: tests/mutants removes them one
 * by one (the lines marked "mutant:") and the simulator must notice.
 *
 * Invariants (tests/sim/test_gate.c checks each of them on every edge):
 *  G1  A live record passes to another token only past its lease, to the same caller and fingerprint, and never while it
 *      is held.
 *  G2  Complete and remove are guarded by the token: from a stale holder they change nothing.
 *  G3  A response is written once, with the change to COMPLETED, and never changed while the record lives.
 *  G4  created_at is that of the first acquisition for as long as the record lives.
 *  G5  Past expires_at a row counts as absent, whether it is still there or not.
 */
#include "gate/record.h"

#include "base/hash.h"
#include "gate/record_look.h"
#include "task/shape.h"
#include "task/states.h"

/* A line is a guard. */
/* clang-format off */

/*
 * May a row be taken by this token, with this fingerprint, by this caller? Only what is not expired is anybody's; a holder that asks
 * again, because an answer was lost, gets its own record with a new lease. A caller who is not known, here or there, is
 * not compared.
 */
#define SAME_CALLER(row, caller) "(" row ".caller IS NULL OR " caller " IS NULL OR " row ".caller = " caller ")"
#define TAKEABLE(row, token, fingerprint, caller, now)                                                                 \
	"(" row ".status = 1"                                                                                          \
	" AND " SAME_CALLER(row, caller) /* mutant: gate-take-caller */                                                \
	" AND " row ".fingerprint = " fingerprint /* mutant: gate-take-fingerprint */                                  \
	" AND (" row ".token = " token " OR " row ".held = 0)" /* mutant: gate-take-held */                            \
	" AND (" row ".token = " token " OR " row ".until <= " now ")" /* mutant: gate-take-lease */                   \
	" OR " row ".expires_at <= " now /* mutant: gate-take-expired */                                               \
	")"

/*
 * Takes the row of a key. ?1 to ?4 are key, token, fingerprint and caller in both uses. The condition in front spares those who
 * find a record that they cannot take a write: INSERT … ON CONFLICT locks the row that it meets, which on PostgreSQL
 * is a write, with a sync, and may wait for another node. The one after decides, and its now is that of the row that
 * was to be inserted: older than the truth if it had to wait, never younger.
 *
 * In set form the rows are met in the order of their keys, the same on every node; no two units of a batch have the same
 * key (unit_keep_apart), as a row cannot be met twice by one statement.
 */
#define TAKE(columns, values, order)                                                                                   \
	INTO_RECORD(columns)                                                                                           \
	" SELECT ?1, ?2, ?3, ?4, hx_now_ms(), " values "{from}"                                                            \
	" WHERE NOT EXISTS (SELECT 1 FROM hx_gate_record r WHERE r.key = ?1"                                              \
	" AND NOT " TAKEABLE("r", "?2", "?3", "?4", "hx_now_ms()") ")" order                                                 \
	IF_TAKEABLE
#define INTO_RECORD(columns) "INSERT INTO hx_gate_record (key, token, fingerprint, caller, created_at, " columns ")"
#define IF_TAKEABLE                                                                                                    \
	" ON CONFLICT (key) DO UPDATE SET status = excluded.status, token = excluded.token,"                           \
	" fingerprint = excluded.fingerprint, held = excluded.held, until = excluded.until,"                           \
	" expires_at = excluded.expires_at, sweep_at = excluded.sweep_at, key_text = excluded.key_text,"               \
	" endpoint = excluded.endpoint, about = excluded.about, response = excluded.response,"                         \
	" caller = CASE WHEN hx_gate_record.expires_at <= excluded.created_at THEN excluded.caller"                    \
	" ELSE coalesce(excluded.caller, hx_gate_record.caller) END,"                                                  \
	" created_at = CASE WHEN hx_gate_record.expires_at <= excluded.created_at THEN excluded.created_at"               \
	" ELSE hx_gate_record.created_at END,"                                                                            \
	" takeovers = CASE WHEN hx_gate_record.expires_at <= excluded.created_at THEN 0"                                  \
	" WHEN hx_gate_record.token = excluded.token THEN hx_gate_record.takeovers ELSE hx_gate_record.takeovers + 1 END"       \
	" WHERE " TAKEABLE("hx_gate_record", "excluded.token", "excluded.fingerprint", "excluded.caller",                \
			 "excluded.created_at")

/* SQLite has one writer, and a row that is not changed costs it nothing; the SELECT would go by way of a table in memory. */
#define TAKE_FORMS(columns, values)                                                                                    \
	.sql = INTO_RECORD(columns) " VALUES (?1, ?2, ?3, ?4, hx_now_ms(), " values ")" IF_TAKEABLE,                   \
	.pg_sql = TAKE(columns, values, ""),                                                                           \
	.set_sql = "WITH taken AS (" TAKE(columns, values, " ORDER BY ?1") " RETURNING key)"                           \
		   " SELECT u.ord FROM taken JOIN {u} ON u.p1 = taken.key",                                            \
	.counted = true

/* ?5 lease   ?6 ttl, NULL: it is held and has no end   ?7 held   ?8 key_text   ?9 endpoint   ?10 about */
DB_STMT(stmt_acquire, "gate_acquire", "bbbbiiibbb", "",
	TAKE_FORMS("status, until, expires_at, sweep_at, held, key_text, endpoint, about",
	"1, hx_now_ms() + ?5, coalesce(hx_now_ms() + ?5 + ?6, 9223372036854775807),"
	" hx_now_ms() + ?5 + ?6, ?7, ?8, ?9, ?10"));

/* ?5 ttl   ?6 response */
DB_STMT(stmt_completed, "gate_completed", "bbbbib", "",
	TAKE_FORMS("status, until, expires_at, sweep_at, held, response",
	"2, hx_now_ms(), hx_now_ms() + ?5, hx_now_ms() + ?5, 0, ?6"));

/* For those who could not take it. A record that expires between the two was there when they came. */
DB_STMT(stmt_read, "gate_read", "b", "ibiiiibb",
	"SELECT {ord}status, fingerprint, held, created_at, until - hx_now_ms(), expires_at - hx_now_ms(),"
	" response, caller FROM hx_gate_record{join} WHERE key = ?1");

/* What the same holder has completed already stays as it is. */
DB_STMT(stmt_complete, "gate_complete", "bbbi", "",
	"UPDATE hx_gate_record SET status = 2,"
	" response = CASE WHEN status = 1 THEN ?3 ELSE response END,"
	" expires_at = CASE WHEN status = 1 THEN hx_now_ms() + ?4 ELSE expires_at END,"
	" sweep_at = coalesce(sweep_at, hx_now_ms() + ?4)"
	"{from} WHERE key = ?1"
	" AND token = ?2" /* mutant: gate-complete-token */
	" AND expires_at > hx_now_ms()",
	.fenced = true,
	.counted = true);

/*
 * The completion that goes along with the work itself in one unit: that unit's verdict proves who did the work, so the
 * token is not asked for, but written. Whoever has taken the record over meanwhile is then stale.
 */
#define COMPLETE_ALONG(guard)                                                                                          \
	"UPDATE hx_gate_record SET status = 2, token = ?2, response = ?4, expires_at = hx_now_ms() + ?5,"                 \
	" sweep_at = coalesce(sweep_at, hx_now_ms() + ?5)"                                                             \
	"{from} WHERE key = ?1"                                                                                        \
	" AND fingerprint = ?3"                                                                                        \
	" AND " SAME_CALLER("hx_gate_record", "?6")                                                                    \
	" AND status = 1"                                                                                              \
	guard                                                                                                          \
	" AND expires_at > hx_now_ms()"                                                                                \
	" RETURNING {ord}created_at"

DB_STMT(stmt_complete_along, "gate_complete_along", "bbbbib", "i", COMPLETE_ALONG(""));

/* Once more, after a unit that may have been committed: a record that has been begun anew since is not this one. */
DB_STMT(stmt_complete_along_again, "gate_complete_along_again", "bbbbib", "i",
	COMPLETE_ALONG(" AND token = ?2"));

/* A record of one holder only: nobody else has executed anything under it. */
DB_STMT(stmt_remove, "gate_remove", "bb", "",
	"DELETE FROM hx_gate_record WHERE status = 1 AND"
	" token = ?1 AND"    /* mutant: gate-remove-token */
	" takeovers = 0 AND" /* mutant: gate-remove-taken-over */
	" key = ?2",
	.fenced = true,
	.set_sql = "DELETE FROM hx_gate_record USING {u} WHERE status = 1 AND token = ?1 AND takeovers = 0 AND key = ?2");

/* Its last holder has executed nothing, but one before may have: the next one may come at once, and is the next one. */
DB_STMT(stmt_end_lease, "gate_end_lease", "bb", "",
	"UPDATE hx_gate_record SET until = hx_now_ms()"
	"{from} WHERE key = ?1 AND token = ?2 AND status = 1 AND takeovers > 0 AND until > hx_now_ms()",
	.fenced = true);

DB_STMT(stmt_others, "gate_others", "bb", "i",
	"SELECT {ord}created_at FROM hx_gate_record{join}"
	" WHERE key = ?1 AND (token <> ?2 OR status = 2) AND expires_at > hx_now_ms()");

DB_STMT(stmt_turn, "gate_turn", "i", "i",
	"UPDATE hx_gate_turn SET until = hx_now_ms() + ?1 WHERE until <= hx_now_ms() RETURNING until");

/*
 * What the sweep has to look at: most of it has expired, the rest was completed late and is put off. On PostgreSQL it
 * may wait for a record that is taken over at this moment, or even close a circle with two of them; the server breaks
 * that up and the batch is run again. The now is one value, out of a SELECT: a function that may change from row to row
 * is no condition for an index there, and a sweep that finds little would go through all of it.
 */
#define DUE "id IN (SELECT id FROM hx_gate_record WHERE sweep_at <= (SELECT hx_now_ms()) ORDER BY sweep_at LIMIT ?1)"

DB_STMT(stmt_put_off, "gate_put_off", "i", "",
	"UPDATE hx_gate_record SET sweep_at = expires_at WHERE " DUE " AND expires_at > hx_now_ms()");

DB_STMT(stmt_sweep, "gate_sweep", "i", "i",
	"DELETE FROM hx_gate_record WHERE " DUE " AND expires_at <= hx_now_ms() RETURNING id");

/* clang-format on */

/* ---- units ---- */

/* Negative, where no subject is: it keeps two units of one key out of one batch, and locks no row. */
int64_t gate_write_subject(const struct gate_ask *ask)
{
	return (int64_t)(hash_bytes(0, ask->claim.key, sizeof ask->claim.key) | (uint64_t)1 << 63);
}

struct slice gate_claim_caller(const struct hx_gate_claim *claim)
{
	static const unsigned char nobody[sizeof claim->caller];

	if (memcmp(claim->caller, nobody, sizeof nobody) == 0)
		return (struct slice){0};
	return slice_of(claim->caller, sizeof claim->caller);
}

static struct db_value caller_of(const struct hx_gate_claim *claim)
{
	struct slice caller = gate_claim_caller(claim);

	return caller.p ? db_blob(caller) : db_null();
}

static void add_acquire(struct unit *unit, const struct gate_ask *ask)
{
	const struct hx_gate_claim *c = &ask->claim;

	ASSERT(ask->about.n <= GATE_ABOUT_BYTES_MAX);
	UNIT_ADD(unit, UNIT_VERDICT, &stmt_acquire, DB_BYTES(c->key), DB_BYTES(c->token), DB_BYTES(c->fingerprint),
		 caller_of(c), gate_span(c->lease_ms), c->hold ? db_null() : gate_span(c->ttl_ms), db_int(c->hold != 0),
		 db_blob(ask->key_text), db_blob(ask->endpoint), db_blob(ask->about));
}

/* Who stands in the way. */
static void add_read(struct unit *unit, struct slice key)
{
	UNIT_ADD(unit, UNIT_ANY, &stmt_read, db_blob(key));
}

static void add_complete(struct unit *unit, const struct gate_ask *ask)
{
	UNIT_ADD(unit, UNIT_VERDICT, &stmt_complete, DB_BYTES(ask->claim.key), DB_BYTES(ask->claim.token),
		 db_blob(ask->response), gate_span(ask->claim.ttl_ms));
}

static void add_remove(struct unit *unit, const struct gate_ask *ask)
{
	struct db_value key = DB_BYTES(ask->claim.key), token = DB_BYTES(ask->claim.token);

	UNIT_ADD(unit, UNIT_ANY, &stmt_remove, token, key);
	UNIT_ADD(unit, UNIT_ANY, &stmt_end_lease, key, token);
	UNIT_ADD(unit, UNIT_ANY, &stmt_others, key, token);
}

static void add_sweep(struct unit *unit, const struct gate_ask *ask)
{
	UNIT_ADD(unit, UNIT_VERDICT, &stmt_turn, gate_span(ask->turn_ms));
	UNIT_ADD(unit, UNIT_ANY, &stmt_put_off, db_int(ask->budget));
	UNIT_ADD(unit, UNIT_ANY, &stmt_sweep, db_int(ask->budget));
}

static void add_along(struct unit *unit, enum unit_rule rule, const struct db_stmt *stmt,
		      const struct gate_ask *complete)
{
	const struct hx_gate_claim *c = &complete->claim;

	unit_keep_apart(unit, gate_write_subject(complete));
	UNIT_ADD(unit, rule, stmt, DB_BYTES(c->key), DB_BYTES(c->token), DB_BYTES(c->fingerprint),
		 db_blob(complete->response), gate_span(c->ttl_ms), caller_of(c));
}

void gate_add_completion(struct unit *unit, const struct gate_ask *complete)
{
	add_along(unit, UNIT_ANY, &stmt_complete_along, complete);
}

void gate_add_completion_first(struct unit *unit, const struct gate_ask *complete, bool again)
{
	ASSERT(unit->lines_n == 0);
	add_along(unit, UNIT_VERDICT, again ? &stmt_complete_along_again : &stmt_complete_along, complete);
}

void gate_add_completed(struct unit *unit, const struct hx_gate_claim *c, struct slice response)
{
	struct gate_ask ask = {.claim = *c};

	ASSERT(unit->lines_n == 0);
	unit_keep_apart(unit, gate_write_subject(&ask));
	UNIT_ADD(unit, UNIT_VERDICT, &stmt_completed, DB_BYTES(c->key), DB_BYTES(c->token), DB_BYTES(c->fingerprint),
		 caller_of(c), gate_span(c->ttl_ms), db_blob(response));
}

/* By op. */
static const struct {
	const char *words;
	void (*add)(struct unit *unit, const struct gate_ask *ask);
} writes[] = {
	[GATE_ACQUIRE] = {"acquiring", add_acquire},     [GATE_COMPLETE] = {"completing", add_complete},
	[GATE_REMOVE] = {"removing", add_remove},        [GATE_LOOK] = {"looking", gate_add_look},
	[GATE_FORGET] = {"forgetting", gate_add_forget}, [GATE_RESOLVE] = {"resolving", gate_add_resolve},
	[GATE_TALLY] = {"tallying", gate_add_tally},     [GATE_SWEEP] = {"sweeping", add_sweep},
};

/* ---- answers ---- */

/* Who is not known, here or there, is not compared. */
static bool is_another(const struct db_value *stored, struct slice caller)
{
	return stored->type != DB_NULL && caller.p && !slice_eq(stored->s, caller);
}

/* False: it was there when it was to be taken, and is gone now. */
static bool read_found(const struct gate_write *w, const struct unit_result *result, struct gate_reply *reply)
{
	const struct db_rows *found = &result->rows[0];
	const struct hx_gate_claim *claim = &w->ask->claim;

	if (!found->n)
		return false;

	int64_t left_ms = db_cell(found, 0, 4)->i;

	reply->verdict = gate_state_of(db_cell(found, 0, 0)->i == 2, db_cell(found, 0, 2)->i != 0, left_ms);
	if (!slice_eq(db_cell(found, 0, 1)->s, slice_of(claim->fingerprint, sizeof claim->fingerprint)))
		reply->verdict = GATE_MISMATCHED;
	if (is_another(db_cell(found, 0, 7), gate_claim_caller(claim)))
		reply->verdict = GATE_OTHER_CALLER;
	reply->created_ms = db_cell(found, 0, 3)->i;
	if (reply->verdict == GATE_IN_FLIGHT)
		reply->lease_left_ms = left_ms > 0 ? left_ms : 0;
	if (reply->verdict == GATE_COMPLETED) {
		reply->ttl_left_ms = db_cell(found, 0, 5)->i > 0 ? db_cell(found, 0, 5)->i : 0;
		reply->response = db_cell(found, 0, 6)->s;
	}
	return true;
}

/*
 * Is what version 0.1 has left in the way? What was lost there is taken over under its new key, as it would have been under
 * the old one; the row itself is nobody's from then on, and goes with its time.
 */
static bool old_is_in_the_way(const struct db_rows *found, const struct gate_reply *reply)
{
	bool in_the_way = reply->verdict != GATE_IN_FLIGHT; /* mutant: gate-old-ended -> bool in_the_way = false; */

	in_the_way |= reply->lease_left_ms > 0;    /* mutant: gate-old-lease */
	in_the_way &= db_cell(found, 0, 5)->i > 0; /* mutant: gate-old-expired */
	return in_the_way;
}

/* What the store said, WON or LOST. False: it has to be asked again. */
static bool read_reply(const struct gate_write *w, const struct unit_result *result, struct gate_reply *reply)
{
	bool won = result->verdict == UNIT_WON;

	*reply = (struct gate_reply){.verdict = GATE_DONE};
	switch (w->ask->op) {
	case GATE_ACQUIRE:
		if (w->old)
			return read_found(w, result, reply) && old_is_in_the_way(&result->rows[0], reply);
		if (w->reading)
			return read_found(w, result, reply);
		reply->verdict = GATE_ACQUIRED;
		reply->lease_left_ms = w->ask->claim.lease_ms;
		break;
	case GATE_COMPLETE:
		reply->verdict = won ? GATE_DONE : GATE_STALE;
		break;
	case GATE_REMOVE:
		reply->verdict = result->rows[2].n ? GATE_STALE : GATE_DONE;
		break;
	case GATE_SWEEP:
		reply->removed = won ? (int64_t)result->rows[2].n : 0;
		break;
	default:
		return gate_read_look(w->ask, result, reply);
	}
	return true;
}

/* ---- the task ---- */

enum { GATE_WRITE_NEW, GATE_WRITE_COMMITTING, GATE_WRITE_DONE };

/* Not taken: what is there has to be read, in a unit of its own, so that those who take it pay for one statement. */
static bool has_to_read(const struct gate_write *w, const struct unit_result *result)
{
	return w->ask->op == GATE_ACQUIRE && !w->reading && result->verdict == UNIT_LOST;
}

static bool is_answered(struct gate_write *w, const struct unit_result *result)
{
	return result->verdict != UNIT_FAILED && result->verdict != UNIT_UNKNOWN && read_reply(w, result, &w->reply);
}

static void send_write(struct gate_write *w, const struct answer *answer)
{
	w->op = answer->id;
	task_go(&w->task, GATE_WRITE_COMMITTING);
}

static void record_take_written(struct gate_write *w, const struct answer *answer)
{
	ASSERT(answer->kind == ANSWER_COMMIT);
	if (has_to_read(w, answer->result)) {
		w->reading = true;
		send_write(w, answer);
		return;
	}
	w->doubt |= answer->result->verdict == UNIT_UNKNOWN;
	if (!is_answered(w, answer->result)) {
		if (w->old && answer->result->verdict == UNIT_WON) {
			w->old = false;
			send_write(w, answer);
			return;
		}
		if (w->repeats < GATE_REPEATS_MAX) {
			w->repeats++;
			w->reading = false;
			send_write(w, answer);
			return;
		}
		w->reply = (struct gate_reply){.verdict = GATE_UNAVAILABLE, .certain = !w->doubt};
	}
	task_end(&w->task, HX_OK);
	if (w->answered)
		w->answered(w);
	w->reply.response = (struct slice){0};
}

static void record_build_write(const struct gate_write *w, struct unit *unit)
{
	if (!w->old && !w->reading && w->ask->op != GATE_LOOK && w->ask->op != GATE_TALLY)
		unit_keep_apart(unit, gate_write_subject(w->ask));
	if (w->old)
		add_read(unit, w->ask->old_key);
	else if (w->reading)
		add_read(unit, slice_of(w->ask->claim.key, sizeof w->ask->claim.key));
	else
		writes[w->ask->op].add(unit, w->ask);
}

static const char *record_words(const struct gate_write *w)
{
	return writes[w->ask->op].words;
}

static const TASK_STATES(struct gate_write) gate_write_states[] = {
	[GATE_WRITE_NEW] = {.words = record_words, .take = send_write},
	[GATE_WRITE_COMMITTING] = {.words = record_words, .take = record_take_written, .commit = record_build_write},
	[GATE_WRITE_DONE] = {"done"},
};

/* A response is there only while the answer is taken. */
static const struct task_shape gate_write_shape = SHAPE(
	struct gate_write, NULL, PART(IGNORED, struct gate_write, reply.response), PART(OP, struct gate_write, op));

TASK_KIND(gate_write_kind, "gate_write", struct gate_write, gate_write_states, .op = offsetof(struct gate_write, op),
	  .shape = &gate_write_shape);

void gate_write_init(struct gate_write *write, const struct gate_ask *gate_ask)
{
	ASSERT((gate_ask->op != GATE_LOOK && gate_ask->op != GATE_SWEEP) || gate_ask->budget > 0);
	*write = (struct gate_write){.ask = gate_ask, .old = gate_ask->op == GATE_ACQUIRE && gate_ask->old_key.n};
	task_init(&write->task, &gate_write_kind, /* topic= */ 0);
}
