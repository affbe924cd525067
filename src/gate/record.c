/*
 * The statements and the task behind record.h. Each guard stands on a line of its own: tests/mutants removes them one
 * by one (the lines marked "mutant:") and the simulator must notice.
 *
 * Invariants (tests/sim/test_gate.c checks each of them on every edge):
 *  G1  A live record passes to another token only past its lease, to the same fingerprint, and never while it is held.
 *  G2  Complete and remove are guarded by the token: from a stale holder they change nothing.
 *  G3  A response is written once, with the change to COMPLETED, and never changed while the record lives.
 *  G4  created_at is that of the first acquisition for as long as the record lives.
 *  G5  Past expires_at a row counts as absent, whether it is still there or not.
 */
#include "gate/record.h"

#include "base/hash.h"

#define SPAN_MS_MAX (INT64_C(1) << 50) /* longer is as good as for ever, and adds up without overflow */

/* A line is a guard. */
/* clang-format off */

/*
 * May a row be taken by this token with this fingerprint? Only what is not expired is anybody's; a holder that asks
 * again, because an answer was lost, gets its own record with a new lease.
 */
#define TAKEABLE(row, token, fingerprint, now)                                                                         \
	"(" row ".status = 1"                                                                                          \
	" AND " row ".fingerprint = " fingerprint /* mutant: gate-take-fingerprint */                                  \
	" AND (" row ".token = " token " OR " row ".held = 0)" /* mutant: gate-take-held */                            \
	" AND (" row ".token = " token " OR " row ".until <= " now ")" /* mutant: gate-take-lease */                   \
	" OR " row ".expires_at <= " now /* mutant: gate-take-expired */                                               \
	")"

/*
 * Takes the row of a key. ?1 to ?3 are key, token and fingerprint in both uses. The condition in front spares those who
 * find a record that they cannot take a write: INSERT … ON CONFLICT locks the row that it meets, which on PostgreSQL
 * is a write, with a sync, and may wait for another node. The one behind decides, and its now is that of the row that
 * was to be inserted: older than the truth if it had to wait, never younger.
 *
 * In set form the rows are met in the order of their keys, the same on every node; no two units of a batch have the same
 * key (unit_keep_apart), as a row cannot be met twice by one statement.
 */
#define TAKE(columns, values, order)                                                                                   \
	"INSERT INTO hx_gate_record (key, token, fingerprint, created_at, " columns ")"                                   \
	" SELECT ?1, ?2, ?3, hx_now_ms(), " values "{from}"                                                            \
	" WHERE NOT EXISTS (SELECT 1 FROM hx_gate_record r WHERE r.key = ?1"                                              \
	" AND NOT " TAKEABLE("r", "?2", "?3", "hx_now_ms()") ")" order                                                 \
	" ON CONFLICT (key) DO UPDATE SET status = excluded.status, token = excluded.token,"                           \
	" fingerprint = excluded.fingerprint, held = excluded.held, until = excluded.until,"                           \
	" expires_at = excluded.expires_at, sweep_at = excluded.sweep_at, key_text = excluded.key_text,"               \
	" endpoint = excluded.endpoint, response = excluded.response,"                                                 \
	" created_at = CASE WHEN hx_gate_record.expires_at <= excluded.created_at THEN excluded.created_at"               \
	" ELSE hx_gate_record.created_at END,"                                                                            \
	" takeovers = CASE WHEN hx_gate_record.expires_at <= excluded.created_at THEN 0"                                  \
	" WHEN hx_gate_record.token = excluded.token THEN hx_gate_record.takeovers ELSE hx_gate_record.takeovers + 1 END"       \
	" WHERE " TAKEABLE("hx_gate_record", "excluded.token", "excluded.fingerprint", "excluded.created_at")

#define TAKE_FORMS(columns, values)                                                                                    \
	.sql = TAKE(columns, values, ""),                                                                              \
	.set_sql = "WITH taken AS (" TAKE(columns, values, " ORDER BY ?1") " RETURNING key)"                           \
		   " SELECT u.ord FROM taken JOIN {u} ON u.p1 = taken.key",                                            \
	.counted = true

/* ?4 lease   ?5 ttl, NULL: it is held and has no end   ?6 held   ?7 key_text   ?8 endpoint */
static const struct db_stmt stmt_acquire = {
	.name = "gate_acquire",
	TAKE_FORMS("status, until, expires_at, sweep_at, held, key_text, endpoint",
		   "1, hx_now_ms() + ?4, coalesce(hx_now_ms() + ?4 + ?5, 9223372036854775807),"
		   " hx_now_ms() + ?4 + ?5, ?6, ?7, ?8"),
	.in = "bbbiiibb",
	.out = "",
};

/* ?4 ttl   ?5 response */
static const struct db_stmt stmt_completed = {
	.name = "gate_completed",
	TAKE_FORMS("status, until, expires_at, sweep_at, held, response",
		   "2, hx_now_ms(), hx_now_ms() + ?4, hx_now_ms() + ?4, 0, ?5"),
	.in = "bbbib",
	.out = "",
};

/* For those who could not take it. A record that expires between the two was there when they came. */
static const struct db_stmt stmt_read = {
	.name = "gate_read",
	.sql = "SELECT {ord}status, fingerprint, held, created_at, until - hx_now_ms(), expires_at - hx_now_ms(),"
	       " response FROM hx_gate_record{join} WHERE key = ?1",
	.in = "b",
	.out = "ibiiiib",
};

/* What the same holder has completed already stays as it is. */
static const struct db_stmt stmt_complete = {
	.name = "gate_complete",
	.fenced = true,
	.sql = "UPDATE hx_gate_record SET status = 2,"
	       " response = CASE WHEN status = 1 THEN ?3 ELSE response END,"
	       " expires_at = CASE WHEN status = 1 THEN hx_now_ms() + ?4 ELSE expires_at END,"
	       " sweep_at = coalesce(sweep_at, hx_now_ms() + ?4)"
	       "{from} WHERE key = ?1"
	       " AND token = ?2" /* mutant: gate-complete-token */
	       " AND expires_at > hx_now_ms()",
	.in = "bbbi",
	.out = "",
	.counted = true,
};

/*
 * The completion that goes along with the work itself in one unit: that unit's verdict proves who did the work, so the
 * token is not asked for, but written. Whoever has taken the record over meanwhile is then stale.
 */
#define COMPLETE_ALONG(guard)                                                                                          \
	"UPDATE hx_gate_record SET status = 2, token = ?2, response = ?4, expires_at = hx_now_ms() + ?5,"                 \
	" sweep_at = coalesce(sweep_at, hx_now_ms() + ?5)"                                                             \
	"{from} WHERE key = ?1"                                                                                        \
	" AND fingerprint = ?3"                                                                                        \
	" AND status = 1"                                                                                              \
	guard                                                                                                          \
	" AND expires_at > hx_now_ms()"                                                                                \
	" RETURNING {ord}created_at"

static const struct db_stmt stmt_complete_along = {
	.name = "gate_complete_along",
	.sql = COMPLETE_ALONG(""),
	.in = "bbbbi",
	.out = "i",
};

/* Once more, after a unit that may have been committed: a record that has been begun anew since is not this one. */
static const struct db_stmt stmt_complete_along_again = {
	.name = "gate_complete_along_again",
	.sql = COMPLETE_ALONG(" AND token = ?2"),
	.in = "bbbbi",
	.out = "i",
};

/* A record of one holder only: nobody else has executed anything under it. */
static const struct db_stmt stmt_remove = {
	.name = "gate_remove",
	.fenced = true,
	.sql = "DELETE FROM hx_gate_record WHERE status = 1 AND"
	       " token = ?1 AND"    /* mutant: gate-remove-token */
	       " takeovers = 0 AND" /* mutant: gate-remove-taken-over */
	       " key = ?2",
	.set_sql = "DELETE FROM hx_gate_record USING {u} WHERE status = 1 AND token = ?1 AND takeovers = 0 AND key = ?2",
	.in = "bb",
	.out = "",
};

/* Its last holder has executed nothing, but one before may have: the next one may come at once, and is the next one. */
static const struct db_stmt stmt_end_lease = {
	.name = "gate_end_lease",
	.fenced = true,
	.sql = "UPDATE hx_gate_record SET until = hx_now_ms()"
	       "{from} WHERE key = ?1 AND token = ?2 AND status = 1 AND takeovers > 0 AND until > hx_now_ms()",
	.in = "bb",
	.out = "",
};

static const struct db_stmt stmt_others = {
	.name = "gate_others",
	.sql = "SELECT {ord}created_at FROM hx_gate_record{join}"
	       " WHERE key = ?1 AND (token <> ?2 OR status = 2) AND expires_at > hx_now_ms()",
	.in = "bb",
	.out = "i",
};

static const struct db_stmt stmt_forget = {
	.name = "gate_forget",
	.sql = "DELETE FROM hx_gate_record WHERE key = ?1 AND token = ?2"
	       " AND (status = 2 OR until <= hx_now_ms()) AND expires_at > hx_now_ms() RETURNING created_at",
	.in = "bb",
	.out = "i",
};

/* Why it was not forgotten: what is left of its lease, or NULL if it is another's. */
static const struct db_stmt stmt_kept = {
	.name = "gate_kept",
	.sql = "SELECT CASE WHEN token <> ?2 THEN NULL WHEN status = 1 THEN until - hx_now_ms() ELSE 0 END"
	       " FROM hx_gate_record WHERE key = ?1 AND expires_at > hx_now_ms()",
	.in = "bb",
	.out = "i",
};

/* A slice: ?2 rows behind ?1. It is found by id alone, so that no response is read. */
#define SLICE "(SELECT id FROM hx_gate_record WHERE id > ?1 ORDER BY id LIMIT ?2) AS slice"

static const struct db_stmt stmt_slice = {
	.name = "gate_slice",
	.sql = "SELECT max(id), count(*) FROM " SLICE,
	.in = "ii",
	.out = "ii",
};

static const struct db_stmt stmt_look = {
	.name = "gate_look",
	.sql = "SELECT id, key, status, held, endpoint, created_at, until - hx_now_ms(), token,"
	       " coalesce(CAST(length(response) AS bigint), 0) FROM hx_gate_record"
	       " WHERE id > ?1 AND id <= (SELECT max(id) FROM " SLICE ")"
	       " AND (key_text = ?3 OR (?3 IS NULL AND status = 1 AND until <= hx_now_ms()))"
	       " AND expires_at > hx_now_ms() ORDER BY id LIMIT ?4",
	.in = "iibi",
	.out = "ibiibiibi",
};

static const struct db_stmt stmt_turn = {
	.name = "gate_turn",
	.sql = "UPDATE hx_gate_turn SET until = hx_now_ms() + ?1 WHERE until <= hx_now_ms() RETURNING until",
	.in = "i",
	.out = "i",
};

/*
 * What the sweep has to look at: most of it has expired, the rest was completed late and is put off. On PostgreSQL it
 * may wait for a record that is taken over at this moment, or even close a circle with two of them; the server breaks
 * that up and the batch is run again. The now is one value, out of a SELECT: a function that may change from row to row
 * is no condition for an index there, and a sweep that finds little would go through all of it.
 */
#define DUE "id IN (SELECT id FROM hx_gate_record WHERE sweep_at <= (SELECT hx_now_ms()) ORDER BY sweep_at LIMIT ?1)"

static const struct db_stmt stmt_put_off = {
	.name = "gate_put_off",
	.sql = "UPDATE hx_gate_record SET sweep_at = expires_at WHERE " DUE " AND expires_at > hx_now_ms()",
	.in = "i",
	.out = "",
};

static const struct db_stmt stmt_sweep = {
	.name = "gate_sweep",
	.sql = "DELETE FROM hx_gate_record WHERE " DUE " AND expires_at <= hx_now_ms() RETURNING id",
	.in = "i",
	.out = "i",
};

/* clang-format on */

/* ---- units ---- */

/* Negative, where no subject is: it keeps two units of one key out of one batch, and locks no row. */
int64_t gate_write_subject(const struct gate_ask *ask)
{
	return (int64_t)(hash_bytes(0, ask->claim.key, sizeof ask->claim.key) | (uint64_t)1 << 63);
}

static struct db_value bytes(const void *p, size_t n)
{
	return db_blob(slice_of(p, n));
}

static struct db_value span(int64_t ms)
{
	return db_int(ms < SPAN_MS_MAX ? ms : SPAN_MS_MAX);
}

static void add_acquire(struct unit *unit, const struct gate_ask *ask)
{
	const struct hx_gate_claim *c = &ask->claim;
	struct slice endpoint = ask->endpoint;

	if (endpoint.n > GATE_ENDPOINT_BYTES_MAX)
		endpoint.n = GATE_ENDPOINT_BYTES_MAX;
	UNIT_ADD(unit, UNIT_VERDICT, &stmt_acquire, bytes(c->key, sizeof c->key), bytes(c->token, sizeof c->token),
		 bytes(c->fingerprint, sizeof c->fingerprint), span(c->lease_ms), c->hold ? db_null() : span(c->ttl_ms),
		 db_int(c->hold != 0), db_blob(ask->key_text), db_blob(endpoint));
}

/* Who stands in the way. */
static void add_read(struct unit *unit, const struct gate_ask *ask)
{
	UNIT_ADD(unit, UNIT_ANY, &stmt_read, bytes(ask->claim.key, sizeof ask->claim.key));
}

static void add_complete(struct unit *unit, const struct gate_ask *ask)
{
	const struct hx_gate_claim *c = &ask->claim;

	UNIT_ADD(unit, UNIT_VERDICT, &stmt_complete, bytes(c->key, sizeof c->key), bytes(c->token, sizeof c->token),
		 db_blob(ask->response), span(c->ttl_ms));
}

static void add_remove(struct unit *unit, const struct hx_gate_claim *c)
{
	struct db_value key = bytes(c->key, sizeof c->key), token = bytes(c->token, sizeof c->token);

	UNIT_ADD(unit, UNIT_ANY, &stmt_remove, token, key);
	UNIT_ADD(unit, UNIT_ANY, &stmt_end_lease, key, token);
	UNIT_ADD(unit, UNIT_ANY, &stmt_others, key, token);
}

static void add_forget(struct unit *unit, const struct hx_gate_claim *c)
{
	struct db_value key = bytes(c->key, sizeof c->key), token = bytes(c->token, sizeof c->token);

	UNIT_ADD(unit, UNIT_ANY, &stmt_forget, key, token);
	UNIT_ADD(unit, UNIT_ANY, &stmt_kept, key, token);
}

static void add_look(struct unit *unit, const struct gate_ask *ask)
{
	struct db_value after = db_int(ask->after), budget = db_int(ask->budget);

	UNIT_ADD(unit, UNIT_ANY, &stmt_slice, after, budget);
	UNIT_ADD(unit, UNIT_ANY, &stmt_look, after, budget, ask->key_text.n ? db_blob(ask->key_text) : db_null(),
		 db_int(GATE_SIGHTS_MAX));
}

static void add_sweep(struct unit *unit, const struct gate_ask *ask)
{
	UNIT_ADD(unit, UNIT_VERDICT, &stmt_turn, span(ask->turn_ms));
	UNIT_ADD(unit, UNIT_ANY, &stmt_put_off, db_int(ask->budget));
	UNIT_ADD(unit, UNIT_ANY, &stmt_sweep, db_int(ask->budget));
}

static void add_along(struct unit *unit, enum unit_rule rule, const struct db_stmt *stmt,
		      const struct gate_ask *complete)
{
	const struct hx_gate_claim *c = &complete->claim;

	unit_keep_apart(unit, gate_write_subject(complete));
	UNIT_ADD(unit, rule, stmt, bytes(c->key, sizeof c->key), bytes(c->token, sizeof c->token),
		 bytes(c->fingerprint, sizeof c->fingerprint), db_blob(complete->response), span(c->ttl_ms));
}

void gate_add_completion(struct unit *unit, const struct gate_ask *complete)
{
	add_along(unit, UNIT_ANY, &stmt_complete_along, complete);
}

void gate_add_completion_first(struct unit *unit, const struct gate_ask *complete)
{
	ASSERT(unit->lines_n == 0);
	add_along(unit, UNIT_VERDICT, &stmt_complete_along, complete);
}

void gate_add_completion_first_again(struct unit *unit, const struct gate_ask *complete)
{
	ASSERT(unit->lines_n == 0);
	add_along(unit, UNIT_VERDICT, &stmt_complete_along_again, complete);
}

void gate_add_completed(struct unit *unit, const struct hx_gate_claim *claim, struct slice response)
{
	struct gate_ask ask = {.claim = *claim};

	ASSERT(unit->lines_n == 0);
	unit_keep_apart(unit, gate_write_subject(&ask));
	UNIT_ADD(unit, UNIT_VERDICT, &stmt_completed, bytes(claim->key, sizeof claim->key),
		 bytes(claim->token, sizeof claim->token), bytes(claim->fingerprint, sizeof claim->fingerprint),
		 span(claim->ttl_ms), db_blob(response));
}

static void build(struct unit *unit, const struct gate_ask *ask)
{
	if (ask->op != GATE_LOOK)
		unit_keep_apart(unit, gate_write_subject(ask));
	switch (ask->op) {
	case GATE_ACQUIRE:
		add_acquire(unit, ask);
		break;
	case GATE_COMPLETE:
		add_complete(unit, ask);
		break;
	case GATE_REMOVE:
		add_remove(unit, &ask->claim);
		break;
	case GATE_LOOK:
		add_look(unit, ask);
		break;
	case GATE_FORGET:
		add_forget(unit, &ask->claim);
		break;
	case GATE_SWEEP:
		add_sweep(unit, ask);
		break;
	}
}

/* ---- answers ---- */

/* The state of a live record, as somebody sees it who does not hold it. */
static enum gate_verdict state_of(bool completed, bool held, int64_t left_ms)
{
	if (completed)
		return GATE_COMPLETED;
	return held && left_ms <= 0 ? GATE_HELD : GATE_IN_FLIGHT;
}

/* False: it was there when it was to be taken, and is gone now. */
static bool read_found(const struct gate_write *w, const struct unit_result *result, struct gate_reply *reply)
{
	const struct db_rows *found = &result->rows[0];
	const struct hx_gate_claim *claim = &w->ask->claim;

	if (!found->n)
		return false;

	int64_t left_ms = db_cell(found, 0, 4)->i;

	reply->verdict = state_of(db_cell(found, 0, 0)->i == 2, db_cell(found, 0, 2)->i != 0, left_ms);
	if (!slice_eq(db_cell(found, 0, 1)->s, slice_of(claim->fingerprint, sizeof claim->fingerprint)))
		reply->verdict = GATE_MISMATCHED;
	reply->created_ms = db_cell(found, 0, 3)->i;
	if (reply->verdict == GATE_IN_FLIGHT)
		reply->lease_left_ms = left_ms > 0 ? left_ms : 0;
	if (reply->verdict == GATE_COMPLETED) {
		reply->ttl_left_ms = db_cell(found, 0, 5)->i > 0 ? db_cell(found, 0, 5)->i : 0;
		reply->response = db_cell(found, 0, 6)->s;
	}
	return true;
}

/* False: its lease has ended just now. */
static bool read_forgotten(const struct unit_result *result, struct gate_reply *reply)
{
	const struct db_rows *forgotten = &result->rows[0], *kept = &result->rows[1];

	reply->verdict = forgotten->n ? GATE_DONE : GATE_ABSENT;
	if (forgotten->n || !kept->n)
		return true;

	const struct db_value *left = db_cell(kept, 0, 0);

	reply->verdict = left->type == DB_NULL ? GATE_STALE : GATE_IN_FLIGHT;
	reply->lease_left_ms = left->type == DB_NULL ? 0 : left->i;
	return left->type == DB_NULL || left->i > 0;
}

static void read_sight(const struct db_rows *rows, size_t i, struct gate_sight *sight)
{
	struct slice key = db_cell(rows, i, 1)->s, token = db_cell(rows, i, 7)->s, endpoint = db_cell(rows, i, 4)->s;
	int64_t left_ms = db_cell(rows, i, 6)->i;

	*sight = (struct gate_sight){
		.state = state_of(db_cell(rows, i, 2)->i == 2, db_cell(rows, i, 3)->i != 0, left_ms),
		.created_ms = db_cell(rows, i, 5)->i,
		.response_bytes = db_cell(rows, i, 8)->i,
	};
	ASSERT(key.n == sizeof sight->key && token.n == sizeof sight->token && endpoint.n <= GATE_ENDPOINT_BYTES_MAX);
	memcpy(sight->key, key.p, key.n);
	memcpy(sight->token, token.p, token.n);
	if (endpoint.n)
		memcpy(sight->endpoint, endpoint.p, endpoint.n);
	if (sight->state == GATE_IN_FLIGHT && left_ms > 0)
		sight->lease_left_ms = left_ms;
}

static void read_sights(const struct gate_ask *ask, const struct unit_result *result, struct gate_reply *reply)
{
	const struct db_rows *slice = &result->rows[0], *rows = &result->rows[1];

	reply->sights_n = rows->n;
	for (size_t i = 0; i < rows->n; i++)
		read_sight(rows, i, &reply->sights[i]);
	if (rows->n == GATE_SIGHTS_MAX)
		reply->next = db_cell(rows, rows->n - 1, 0)->i;
	else if (db_cell(slice, 0, 1)->i == ask->budget)
		reply->next = db_cell(slice, 0, 0)->i;
}

/* What the store said, WON or LOST. False: it has to be asked again. */
static bool read_reply(const struct gate_write *w, const struct unit_result *result, struct gate_reply *reply)
{
	bool won = result->verdict == UNIT_WON;

	*reply = (struct gate_reply){.verdict = GATE_DONE};
	switch (w->ask->op) {
	case GATE_ACQUIRE:
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
	case GATE_LOOK:
		read_sights(w->ask, result, reply);
		break;
	case GATE_FORGET:
		return read_forgotten(result, reply);
	case GATE_SWEEP:
		reply->removed = won ? (int64_t)result->rows[2].n : 0;
		break;
	}
	return true;
}

/* ---- the task ---- */

/* Not taken: what is there has to be read, in a unit of its own, so that those who take it pay for one statement. */
static bool has_to_read(const struct gate_write *w, const struct unit_result *result)
{
	return w->ask->op == GATE_ACQUIRE && !w->reading && result->verdict == UNIT_LOST;
}

static bool is_answered(struct gate_write *w, const struct unit_result *result)
{
	return result->verdict != UNIT_FAILED && result->verdict != UNIT_UNKNOWN && read_reply(w, result, &w->reply);
}

static void send(struct gate_write *w, const struct answer *answer)
{
	w->op = answer->id;
	w->at = GATE_WRITE_COMMITTING;
}

static void take(struct task *task, const struct answer *answer)
{
	struct gate_write *w = (struct gate_write *)task;

	if (w->at == GATE_WRITE_NEW) {
		send(w, answer);
		return;
	}
	ASSERT(w->at == GATE_WRITE_COMMITTING && answer->kind == ANSWER_COMMIT);
	if (has_to_read(w, answer->result)) {
		w->reading = true;
		send(w, answer);
		return;
	}
	if (!is_answered(w, answer->result)) {
		if (w->repeats < GATE_REPEATS_MAX) {
			w->repeats++;
			w->reading = false;
			send(w, answer);
			return;
		}
		w->reply = (struct gate_reply){.verdict = GATE_UNAVAILABLE};
	}
	w->at = GATE_WRITE_DONE;
	if (w->answered)
		w->answered(w);
	w->reply.response = (struct slice){0};
}

static void ask(const struct task *task, struct ask *ask)
{
	const struct gate_write *w = (const struct gate_write *)task;

	if (w->at == GATE_WRITE_DONE) {
		ask->kind = ASK_DONE;
		ask->code = HX_OK;
		return;
	}
	ask->kind = ASK_COMMIT;
	unit_init(ask->unit, w->op);
	if (w->reading)
		add_read(ask->unit, w->ask);
	else
		build(ask->unit, w->ask);
}

static const char *where(const struct task *task)
{
	const struct gate_write *w = (const struct gate_write *)task;
	static const char *const names[] = {"acquiring", "completing", "removing", "looking", "forgetting", "sweeping"};

	return w->at == GATE_WRITE_DONE ? "done" : names[w->ask->op];
}

static uint64_t fingerprint(const struct task *task, uint64_t hash)
{
	const struct gate_write *w = (const struct gate_write *)task;

	hash = hash_mix(hash, w->at);
	hash = hash_mix(hash, w->ask->op);
	hash = hash_mix(hash, w->repeats);
	hash = hash_mix(hash, w->reading);
	hash = hash_bytes(hash, w->ask->claim.key, sizeof w->ask->claim.key);
	hash = hash_bytes(hash, w->ask->claim.token, sizeof w->ask->claim.token);
	return hash_mix(hash, w->reply.verdict);
}

static const struct task_kind kind = {
	.name = "gate_write",
	.size = sizeof(struct gate_write),
	.take = take,
	.ask = ask,
	.where = where,
	.fingerprint = fingerprint,
};

void gate_write_init(struct gate_write *write, const struct gate_ask *gate_ask)
{
	ASSERT((gate_ask->op != GATE_LOOK && gate_ask->op != GATE_SWEEP) || gate_ask->budget > 0);
	*write = (struct gate_write){.ask = gate_ask};
	task_init(&write->task, &kind, /* topic= */ 0);
}
