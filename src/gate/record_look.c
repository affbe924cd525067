/* See record_look.h. Guards stand on lines of their own, as in record.c. */
#include "gate/record_look.h"

#include <stdio.h>

#include "base/utf8.h"
#include "gate/sight.h"

/* clang-format off */

DB_STMT(stmt_forget, "gate_forget", "bb", "i",
	"DELETE FROM hx_gate_record WHERE key = ?1 AND token = ?2"
	" AND (status = 2 OR until <= hx_now_ms()) AND expires_at > hx_now_ms() RETURNING created_at");

/* Of a lease; one that has ended since the statement before has nothing left. */
#define LEFT "CASE WHEN until > hx_now_ms() THEN until - hx_now_ms() ELSE 0 END"

/* Why it was not forgotten: what is left of its lease, or NULL if it is another's. */
DB_STMT(stmt_kept, "gate_kept", "bb", "i",
	"SELECT CASE WHEN token <> ?2 THEN NULL WHEN status = 1 THEN " LEFT " ELSE 0 END"
	" FROM hx_gate_record WHERE key = ?1 AND expires_at > hx_now_ms()");

/*
 * What a person has found out about a record that nobody is at work on. The first is repeated with the same ?3 when its
 * answer was lost.
 */
DB_STMT(stmt_resolve_done, "gate_resolve_done", "bbbbi", "i",
	"UPDATE hx_gate_record SET status = 2, token = ?3, response = ?4, expires_at = hx_now_ms() + ?5,"
	" sweep_at = coalesce(sweep_at, hx_now_ms() + ?5) WHERE key = ?1"
	" AND (token = ?3 AND status = 2 OR status = 1"
	" AND token = ?2" /* mutant: gate-resolve-done-token */
	" AND until <= hx_now_ms()" /* mutant: gate-resolve-done-lease */
	") AND expires_at > hx_now_ms() RETURNING created_at");

DB_STMT(stmt_resolve_not_done, "gate_resolve_not_done", "bb", "i",
	"DELETE FROM hx_gate_record WHERE key = ?1 AND status = 1"
	" AND token = ?2" /* mutant: gate-resolve-token -> " AND ?2 IS NOT NULL" */
	" AND until <= hx_now_ms()" /* mutant: gate-resolve-lease */
	" AND expires_at > hx_now_ms() RETURNING created_at");

/* Why it was not resolved: what is left of its lease, -1 if it is COMPLETED, or NULL if it is another's. */
DB_STMT(stmt_unresolved, "gate_unresolved", "bb", "i",
	"SELECT CASE WHEN token <> ?2 THEN NULL WHEN status = 2 THEN -1 ELSE " LEFT " END"
	" FROM hx_gate_record WHERE key = ?1 AND expires_at > hx_now_ms()");

/* A slice: ?2 rows after ?1. It is found by id alone, so that no response is read. */
#define SLICE "(SELECT id FROM hx_gate_record WHERE id > ?1 ORDER BY id LIMIT ?2) AS slice"

DB_STMT(stmt_slice, "gate_slice", "ii", "ii", "SELECT max(id), count(*) FROM " SLICE);

/* The columns, in the order of gate_read_sight(); flow/attention.c has the same. */
#define SIGHT                                                                                                          \
	"SELECT id, key, status, held, endpoint, created_at, until - hx_now_ms(), token,"                              \
	" coalesce(CAST(length(response) AS bigint), 0), about, key_text FROM hx_gate_record"
#define SIGHT_OUT "ibiibiibibb"

/* ?3 the key, or NULL: ?5 0 those that nobody is at work on, 1 all. */
DB_STMT(stmt_look, "gate_look", "iibii", SIGHT_OUT,
	SIGHT " WHERE id > ?1 AND id <= (SELECT max(id) FROM " SLICE ")"
	" AND (key_text = ?3 OR (?3 IS NULL AND (?5 = 1 OR status = 1 AND until <= hx_now_ms())))"
	" AND expires_at > hx_now_ms() ORDER BY id LIMIT ?4");

/* There is an index of these alone; the now is one value, as for the sweep. */
#define HELD "held = 1 AND status = 1 AND until <= (SELECT hx_now_ms())"

DB_STMT(stmt_look_held, "gate_look_held", "ii", SIGHT_OUT,
	SIGHT " WHERE " HELD " AND id > ?1 ORDER BY id LIMIT ?2");

DB_STMT(stmt_tally, "gate_tally", "", "i",
	"SELECT count(*) FROM hx_gate_record WHERE " HELD);

DB_STMT(stmt_held_last, "gate_held_last", "i", SIGHT_OUT,
	SIGHT " WHERE " HELD " ORDER BY until DESC LIMIT ?1");

/* clang-format on */

/* ---- units ---- */

void gate_add_forget(struct unit *unit, const struct gate_ask *ask)
{
	struct db_value key = DB_BYTES(ask->claim.key), token = DB_BYTES(ask->claim.token);

	UNIT_ADD(unit, UNIT_ANY, &stmt_forget, key, token);
	UNIT_ADD(unit, UNIT_ANY, &stmt_kept, key, token);
}

void gate_add_resolve(struct unit *unit, const struct gate_ask *ask)
{
	struct db_value key = DB_BYTES(ask->claim.key), token = DB_BYTES(ask->claim.token);

	if (ask->response.n)
		UNIT_ADD(unit, UNIT_ANY, &stmt_resolve_done, key, token, DB_BYTES(ask->resolver),
			 db_blob(ask->response), gate_span(ask->claim.ttl_ms));
	else
		UNIT_ADD(unit, UNIT_ANY, &stmt_resolve_not_done, key, token);
	UNIT_ADD(unit, UNIT_ANY, &stmt_unresolved, key, token);
}

static bool seeks_held(const struct gate_ask *ask)
{
	return ask->key_text.n == 0 && ask->sought == GATE_SEEK_HELD;
}

void gate_add_look(struct unit *unit, const struct gate_ask *ask)
{
	struct db_value after = db_int(ask->after), budget = db_int(ask->budget), most = db_int(GATE_SIGHTS_MAX);

	if (seeks_held(ask)) {
		UNIT_ADD(unit, UNIT_ANY, &stmt_look_held, after, most);
		return;
	}
	UNIT_ADD(unit, UNIT_ANY, &stmt_slice, after, budget);
	UNIT_ADD(unit, UNIT_ANY, &stmt_look, after, budget, ask->key_text.n ? db_blob(ask->key_text) : db_null(), most,
		 db_int(ask->sought == GATE_SEEK_ALL));
}

void gate_add_tally(struct unit *unit, const struct gate_ask *ask)
{
	(void)ask; /* all of them are counted */
	unit_add(unit, UNIT_ANY, &stmt_tally, 0, NULL);
	UNIT_ADD(unit, UNIT_ANY, &stmt_held_last, db_int(GATE_SIGHTS_MAX));
}

/* ---- answers ---- */

enum gate_verdict gate_state_of(bool completed, bool held, int64_t left_ms)
{
	if (completed)
		return GATE_COMPLETED;
	return held && left_ms <= 0 ? GATE_HELD : GATE_IN_FLIGHT;
}

/* Of GATE_FORGET, too. False: its lease has ended just now. */
static bool read_resolved(const struct unit_result *result, struct gate_reply *reply)
{
	const struct db_rows *resolved = &result->rows[0], *kept = &result->rows[1];
	const struct db_value *left = kept->n ? db_cell(kept, 0, 0) : NULL;

	reply->verdict = resolved->n ? GATE_DONE : GATE_ABSENT;
	if (resolved->n || !left)
		return true;
	if (left->type == DB_NULL)
		reply->verdict = GATE_STALE;
	else
		reply->verdict = left->i < 0 ? GATE_COMPLETED : GATE_IN_FLIGHT;
	reply->lease_left_ms = reply->verdict == GATE_IN_FLIGHT ? left->i : 0;
	return reply->verdict != GATE_IN_FLIGHT || left->i > 0;
}

static void cut_into(char *to, size_t max, struct slice text)
{
	size_t n = text.n < max ? text.n : utf8_cut(slice_of(text.p, max));

	if (n)
		memcpy(to, text.p, n);
	to[n] = '\0';
}

void gate_sight_describe(struct gate_sight *sight, struct slice endpoint, struct slice about, struct slice key_text)
{
	cut_into(sight->endpoint, GATE_ENDPOINT_BYTES_MAX, endpoint);
	cut_into(sight->about, GATE_ABOUT_BYTES_MAX, about);
	cut_into(sight->key_text, GATE_KEY_SHOWN_BYTES_MAX, key_text);
}

struct slice gate_endpoint_text(struct slice method, struct slice path, struct arena *arena)
{
	char text[GATE_ENDPOINT_BYTES_MAX + 1];

	snprintf(text, sizeof text, "%.*s %.*s", SLICE_ARGS(method), SLICE_ARGS(path));
	return arena_copy(arena, slice_str(text));
}

void gate_read_sight(const struct db_rows *rows, size_t i, size_t at, struct gate_sight *sight)
{
	struct slice key = db_cell(rows, i, at + 1)->s, token = db_cell(rows, i, at + 7)->s;
	int64_t left_ms = db_cell(rows, i, at + 6)->i;

	*sight = (struct gate_sight){
		.state = gate_state_of(db_cell(rows, i, at + 2)->i == 2, db_cell(rows, i, at + 3)->i != 0, left_ms),
		.created_ms = db_cell(rows, i, at + 5)->i,
		.response_bytes = db_cell(rows, i, at + 8)->i,
	};
	ASSERT(key.n == sizeof sight->key && token.n == sizeof sight->token);
	memcpy(sight->key, key.p, key.n);
	memcpy(sight->token, token.p, token.n);
	gate_sight_describe(sight, db_cell(rows, i, at + 4)->s, db_cell(rows, i, at + 9)->s,
			    db_cell(rows, i, at + 10)->s);
	if (sight->state == GATE_IN_FLIGHT && left_ms > 0)
		sight->lease_left_ms = left_ms;
	if (sight->state != GATE_COMPLETED && left_ms < 0)
		sight->over_ms = -left_ms;
}

static void add_sights(const struct db_rows *rows, struct gate_reply *reply)
{
	reply->sights_n = rows->n;
	for (size_t i = 0; i < rows->n; i++)
		gate_read_sight(rows, i, /* at= */ 0, &reply->sights[i]);
}

static void read_sights(const struct gate_ask *ask, const struct unit_result *result, struct gate_reply *reply)
{
	const struct db_rows *slice = &result->rows[0], *rows = &result->rows[seeks_held(ask) ? 0 : 1];

	add_sights(rows, reply);
	if (rows->n == GATE_SIGHTS_MAX)
		reply->next = db_cell(rows, rows->n - 1, 0)->i;
	else if (!seeks_held(ask) && db_cell(slice, 0, 1)->i == ask->budget)
		reply->next = db_cell(slice, 0, 0)->i;
}

bool gate_read_look(const struct gate_ask *ask, const struct unit_result *result, struct gate_reply *reply)
{
	if (ask->op == GATE_FORGET || ask->op == GATE_RESOLVE)
		return read_resolved(result, reply);
	if (ask->op == GATE_LOOK) {
		read_sights(ask, result, reply);
	} else {
		reply->held = db_cell(&result->rows[0], 0, 0)->i;
		add_sights(&result->rows[1], reply);
	}
	return true;
}
