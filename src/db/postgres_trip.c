/*
 * One round trip to the server, in libpq's pipeline mode.
 *
 *   start ─ enter the pipeline
 *   row/set ─ [Parse, the first time on this connection] Bind Execute      … noted in a list, in order
 *   finish ─ Sync, flush; answers are matched with the list; leave the pipeline
 *
 * After an error the server skips everything up to the Sync, Parses included: a slot counts as prepared only
 * once its answer says so. Prepared statements are not part of the transaction and outlive its rollback.
 *
 * The socket never blocks. All waiting is in wait_answer(), which sends what is still to be sent, reads what
 * comes (both, or two full buffers would wait for each other) and gives up at the deadline. The deadline is on
 * the injected clock; poll() returns at least every POLL_STEP_MS to look at it.
 */
#include <poll.h>
#include <stdio.h>

#include "db/postgres.h"

#define POLL_STEP_MS 50
#define SQL_BYTES_MAX 16384
#define NAME_BYTES_MAX 64 /* the server cuts names at 63 */

/* ---- errors ---- */

/*
 * SQLSTATE by prefix, the first that fits. `lost`: the session is of no use any more even if it still answers,
 * and a new one may do better (another server is the primary now, a prepared plan is out of date).
 */
static const struct {
	const char *prefix;
	enum hx_code code;
	bool lost;
} sqlstates[] = {
	{"40", HX_CONCURRENCY_ERROR, false},    /* deadlock, serialisation */
	{"55P03", HX_CONCURRENCY_ERROR, false}, /* lock timeout */
	{"57014", HX_CONCURRENCY_ERROR, false}, /* somebody cancelled the statement */
	{"08", HX_STORE_UNAVAILABLE, true},     /* connection */
	{"57P", HX_STORE_UNAVAILABLE, true},    /* shutting down, starting up */
	{"25006", HX_STORE_UNAVAILABLE, true},  /* read-only: it has become a standby */
	{"25P03", HX_STORE_UNAVAILABLE, true},  /* idle in transaction for too long */
	{"0A000", HX_STORE_UNAVAILABLE, true},  /* "cached plan must not change result type", after a migration */
	{"26000", HX_STORE_UNAVAILABLE, true},  /* our prepared statement has gone: a pooler, DISCARD ALL */
	{"53", HX_STORE_UNAVAILABLE, false},    /* no room, no memory, too many connections */
	{"58", HX_STORE_UNAVAILABLE, false},    /* the server's own disk */
	{"42501", HX_CONFIG_ERROR, false},      /* a right that the role does not have */
	{"3F000", HX_CONFIG_ERROR, false},      /* no schema of the search path exists */
	{"21", HX_DATA_ERROR, false},           /* cardinality */
	{"22", HX_DATA_ERROR, false},           /* values: ranges, encodings */
	{"23", HX_DATA_ERROR, false},           /* constraints */
	{"42804", HX_DATA_ERROR, false},        /* types */
	{"44", HX_DATA_ERROR, false},           /* check options */
	{"54", HX_DATA_ERROR, false},           /* a row or key that is too large */
	{"P0", HX_DATA_ERROR, false},           /* raised by a trigger of the user's */
};

void pg_lose(struct pg *pg)
{
	PQfinish(pg->conn);
	pg->conn = NULL;
	memset(pg->slots, 0, sizeof pg->slots);
	pg->slots_used = 0;
}

enum hx_code pg_lost(struct pg *pg, struct hx_error *err, const char *words)
{
	pg_lose(pg);
	return error_set(err, HX_STORE_UNAVAILABLE, "postgres: %s", words);
}

enum hx_code pg_failed(struct pg *pg, const PGresult *res, const char *what, struct hx_error *err)
{
	const char *state = PQresultErrorField(res, PG_DIAG_SQLSTATE);
	const char *words = PQresultErrorField(res, PG_DIAG_MESSAGE_PRIMARY);
	const char *severity = PQresultErrorField(res, PG_DIAG_SEVERITY_NONLOCALIZED);
	enum hx_code code = HX_INTERNAL, over;
	bool lost = false;

	/* Without a SQLSTATE it was libpq that failed: the connection broke, or this process has no memory. */
	if (!state || PQstatus(pg->conn) == CONNECTION_BAD || (severity && strcmp(severity, "ERROR") != 0)) {
		code = HX_STORE_UNAVAILABLE;
		lost = true;
	}
	for (size_t i = 0; i < sizeof sqlstates / sizeof *sqlstates && !lost; i++) {
		if (strncmp(state, sqlstates[i].prefix, strlen(sqlstates[i].prefix)) == 0) {
			code = sqlstates[i].code;
			lost = sqlstates[i].lost;
			break;
		}
	}
	/* Our own limit, or our own cancel, looks like anybody's. */
	over = code == HX_CONCURRENCY_ERROR && strncmp(state, "40", 2) != 0 ? db_is_over(&pg->db) : HX_OK;
	if (over)
		code = over;
	error_set(err, code, "postgres, %s: %s %s", what, state ? state : "",
		  words ? words : "the connection was lost");
	if (lost)
		pg_lose(pg);
	return code;
}

/* ---- waiting ---- */

static struct mono_time deadline_in(struct pg *pg, int64_t ms)
{
	return mono_add_ms(clock_mono(pg->db.clock), ms);
}

/* The program ends, and the server is at work for a user: it is asked to leave off. Its answer is still waited for. */
static void cancel_if_stopping(struct pg *pg)
{
	char words[256];
	PGcancel *cancel;

	if (pg->cancelled || db_is_over(&pg->db) != HX_STOPPING)
		return;
	pg->cancelled = true;
	cancel = PQgetCancel(pg->conn);
	(void)(cancel && PQcancel(cancel, words, sizeof words)); /* or its limit ends it, a little later */
	PQfreeCancel(cancel);
}

/* Until PQgetResult() would not block. False: the connection broke or the deadline passed. */
static bool wait_answer(struct pg *pg, struct mono_time deadline)
{
	while (PQisBusy(pg->conn)) {
		int unsent = PQflush(pg->conn);
		struct pollfd fd = {.fd = PQsocket(pg->conn), .events = POLLIN | (unsent ? POLLOUT : 0)};

		/* Asked anew each time: patience may be shortened while we wait. */
		if (unsent < 0 || clock_mono(pg->db.clock).ns >= db_wait_until(&pg->db, deadline).ns)
			return false;
		cancel_if_stopping(pg);
		if (poll(&fd, 1, POLL_STEP_MS) == 0) /* interrupted or not, the loop looks again */
			db_tick(&pg->db);
		if ((fd.revents & (POLLIN | POLLERR | POLLHUP)) && !PQconsumeInput(pg->conn))
			return false;
	}
	return true;
}

bool pg_still_there(struct pg *pg)
{
	struct pollfd fd = {.fd = PQsocket(pg->conn), .events = POLLIN};

	/* An idle server says nothing but its farewell; a few words more (notices) are read over. */
	for (int i = 0; i < 8 && poll(&fd, 1, 0) > 0; i++) {
		if (!PQconsumeInput(pg->conn) || PQstatus(pg->conn) == CONNECTION_BAD) {
			pg_lose(pg);
			return false;
		}
		(void)PQisBusy(pg->conn); /* takes the words in */
	}
	return true;
}

enum hx_code pg_run_text(struct pg *pg, const char *sql, int64_t wait_ms, PGresult **ret_res, struct hx_error *err)
{
	struct mono_time deadline = deadline_in(pg, wait_ms);
	PGresult *res, *last = NULL;
	enum hx_code code = HX_OK;

	if (!PQsendQuery(pg->conn, sql))
		return pg_lost(pg, err, "the connection was lost");
	for (;;) {
		if (!wait_answer(pg, deadline)) {
			PQclear(last);
			return pg_lost(pg, err, "the connection was lost, or the server did not answer in time");
		}
		res = PQgetResult(pg->conn);
		if (!res)
			break;
		PQclear(last);
		last = res;
		if (PQresultStatus(res) == PGRES_FATAL_ERROR && !code) {
			code = pg_failed(pg, res, "script", err);
			if (!pg->conn)
				break;
		}
	}
	if (!code && ret_res)
		*ret_res = last;
	else
		PQclear(last);
	return code;
}

/* ---- prepared statements ---- */

/* Found by address. A new slot still has to be prepared. */
static struct pg_slot *postgres_trip_slot_of(struct pg *pg, const struct db_stmt *stmt, enum stmt_form form)
{
	size_t i = (((uintptr_t)stmt >> 3) * 2 + (form == STMT_POSTGRES_SET)) % PG_SLOTS;

	while (pg->slots[i].stmt && (pg->slots[i].stmt != stmt || pg->slots[i].form != form))
		i = (i + 1) % PG_SLOTS;
	if (!pg->slots[i].stmt) {
		ASSERT(pg->slots_used < PG_SLOTS / 4 * 3);
		pg->slots_used++;
		pg->slots[i] = (struct pg_slot){.stmt = stmt, .form = form};
	}
	return &pg->slots[i];
}

/* What the server calls it: the name is for people who look at the server, the number makes it unique. */
static void slot_name(const struct pg *pg, const struct pg_slot *slot, char name[NAME_BYTES_MAX])
{
	snprintf(name, NAME_BYTES_MAX, "%.40s_%s%d", slot->stmt->name, slot->form == STMT_POSTGRES_SET ? "set" : "row",
		 (int)(slot - pg->slots));
}

static bool send_prepare(struct pg *pg, const struct pg_slot *slot)
{
	char name[NAME_BYTES_MAX];
	Oid types[STMT_PARAMS_MAX];
	int n = 0;

	for (; slot->stmt->in[n]; n++)
		types[n] = pg_type(slot->stmt->in[n], slot->form == STMT_POSTGRES_SET);
	LOCAL_STRBUF(sql, SQL_BYTES_MAX);
	stmt_expand(slot->stmt, slot->form, &sql);
	ASSERT(!sql.failed);
	slot_name(pg, slot, name);
	return PQsendPrepare(pg->conn, name, sql.p, n, types);
}

/* ---- a trip ---- */

/*
 * Of a program that was told of thousands of statements, one version of a definition after the other. A trip needs at most as many
 * as its units have lines, for which the rest of the slots is enough. Only between two transactions: one that has failed would refuse it.
 */
static bool forget_prepared(struct pg_trip *trip)
{
	struct pg *pg = trip->pg;

	trip->code = pg_run_text(pg, "DEALLOCATE ALL", PG_ANSWER_MS, /* ret_res= */ NULL, trip->err);
	if (trip->code)
		return false;
	memset(pg->slots, 0, sizeof pg->slots);
	pg->slots_used = 0;
	return true;
}

void pg_trip_start(struct pg_trip *trip, struct pg *pg, struct arena *arena, struct hx_error *err)
{
	*trip = (struct pg_trip){.pg = pg, .arena = arena, .err = err, .last = &trip->first};
	if (!pg->conn)
		trip->code = error_set(err, HX_STORE_UNAVAILABLE, "postgres: the connection was lost");
	else if (pg->slots_used > PG_SLOTS_KEPT && PQtransactionStatus(pg->conn) == PQTRANS_IDLE &&
		 !forget_prepared(trip))
		return;
	else if (!PQenterPipelineMode(pg->conn))
		trip->code = pg_lost(pg, err, "the connection was lost");
}

static void trip_failed(struct pg_trip *trip, enum hx_code code, const char *words)
{
	if (!trip->code)
		trip->code = error_set(trip->err, code, "postgres: %s", words);
}

/* The list holds exactly what libpq has taken, so that the answers can be read to the end in any case. */
static void postgres_trip_note(struct pg_trip *trip, struct pg_sent *sent)
{
	*trip->last = sent;
	trip->last = &sent->next;
}

static struct pg_sent *sent_new(struct pg_trip *trip, struct pg_slot *slot)
{
	struct pg_sent *sent = arena_zalloc(trip->arena, sizeof *sent);

	if (sent)
		sent->slot = slot;
	else
		trip_failed(trip, HX_TOO_LARGE, "the group is too large for its memory");
	return sent;
}

static void trip_prepare(struct pg_trip *trip, struct pg_slot *slot)
{
	struct pg_sent *sent = sent_new(trip, slot);

	if (!sent)
		return;
	sent->preparing = true;
	if (send_prepare(trip->pg, slot)) {
		postgres_trip_note(trip, sent);
		slot->prepared = true;
	} else {
		trip_failed(trip, HX_STORE_UNAVAILABLE, "a statement could not be sent");
	}
}

static void trip_send(struct pg_trip *trip, struct pg_slot *slot, const char *const values[], const int lengths[],
		      const int formats[], pg_take *take, void *context)
{
	char name[NAME_BYTES_MAX];
	struct pg *pg = trip->pg;

	if (!slot->prepared)
		trip_prepare(trip, slot);

	struct pg_sent *sent = trip->code ? NULL : sent_new(trip, slot);

	if (!sent)
		return;
	sent->take = take;
	sent->context = context;
	slot_name(pg, slot, name);
	if (PQsendQueryPrepared(pg->conn, name, (int)strlen(slot->stmt->in), values, lengths, formats, /* binary= */ 1))
		postgres_trip_note(trip, sent);
	else
		trip_failed(trip, HX_STORE_UNAVAILABLE, "a statement could not be sent");
}

void pg_trip_row(struct pg_trip *trip, const struct db_stmt *stmt, const struct db_value *params, pg_take *take,
		 void *context)
{
	struct pg_params p;

	for (unsigned i = 0; stmt->in[i] && !trip->code; i++)
		trip->code = pg_params_set(&p, i, stmt->in[i], &params[i], trip->arena, trip->err);
	if (!trip->code)
		trip_send(trip, postgres_trip_slot_of(trip->pg, stmt, STMT_POSTGRES_ROW), p.values, p.lengths,
			  p.formats, take, context);
}

void pg_trip_set(struct pg_trip *trip, const struct db_stmt *stmt, pg_take *take, void *context)
{
	struct pg *pg = trip->pg;
	const char *values[STMT_PARAMS_MAX];
	int lengths[STMT_PARAMS_MAX], formats[STMT_PARAMS_MAX];

	for (int i = 0; stmt->in[i]; i++) {
		if (pg->arrays[i].failed)
			trip_failed(trip, HX_TOO_LARGE, "the values of a group are too large");
		values[i] = pg->arrays[i].p;
		lengths[i] = (int)pg->arrays[i].n;
		formats[i] = 1;
	}
	if (!trip->code)
		trip_send(trip, postgres_trip_slot_of(pg, stmt, STMT_POSTGRES_SET), values, lengths, formats, take,
			  context);
}

/* Reads the answer to one thing that was sent; false: the connection is lost. */
static bool take_answer(struct pg_trip *trip, struct pg_sent *sent, struct mono_time deadline)
{
	struct pg *pg = trip->pg;
	PGresult *res = wait_answer(pg, deadline) ? PQgetResult(pg->conn) : NULL;
	ExecStatusType status = PQresultStatus(res); /* FATAL_ERROR for NULL */
	bool ok = status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK;
	const struct db_stmt *stmt = sent->slot->stmt;

	if (sent->preparing && !ok)
		sent->slot->prepared = false;
	if (!res) {
		pg_lose(pg);
		trip_failed(trip, HX_STORE_UNAVAILABLE,
			    "the connection was lost, or the server did not answer in time");
	} else if (ok && !trip->code && sent->take) {
		trip->code = sent->take(sent->context, stmt, res, trip->err);
	} else if (status == PGRES_FATAL_ERROR && !trip->code) {
		trip->code = pg_failed(pg, res, stmt->name, trip->err);
		/* A right that the role of the user's statements does not have is no trouble of the store's. */
		if (stmt->foreign && trip->code == HX_CONFIG_ERROR)
			trip->code = error_set(trip->err, HX_DATA_ERROR, "%s", trip->err ? trip->err->detail : "");
	}
	PQclear(res);
	/* Each answer ends with NULL. */
	return pg->conn && wait_answer(pg, deadline) && PQgetResult(pg->conn) == NULL;
}

static bool take_sync(struct pg *pg, struct mono_time deadline)
{
	PGresult *res = wait_answer(pg, deadline) ? PQgetResult(pg->conn) : NULL;
	bool synced = PQresultStatus(res) == PGRES_PIPELINE_SYNC;

	PQclear(res);
	return synced && PQexitPipelineMode(pg->conn);
}

/* How long the server may be silent: as long as it may wait or work for us, and a while. */
static int64_t answer_ms(struct pg *pg)
{
	int64_t left_ms = pg_limit_left_ms(pg);

	return PG_ANSWER_MS + (left_ms > pg->lock_timeout_ms ? left_ms : pg->lock_timeout_ms);
}

int64_t pg_limit_left_ms(struct pg *pg)
{
	int64_t left_ns = pg->db.limit.ns ? pg->db.limit.ns - clock_mono(pg->db.clock).ns : 0;

	return left_ns > 0 ? left_ns / 1000000 + 1 : 1;
}

enum hx_code pg_trip_finish(struct pg_trip *trip)
{
	struct pg *pg = trip->pg;
	struct mono_time deadline;
	bool there;

	if (!pg->conn)
		return trip->code;
	deadline = deadline_in(pg, answer_ms(pg));
	there = PQpipelineSync(pg->conn);
	for (struct pg_sent *sent = trip->first; sent && there; sent = sent->next)
		there = take_answer(trip, sent, deadline);
	if (there)
		there = take_sync(pg, deadline);
	if (!there) {
		if (pg->conn)
			pg_lose(pg);
		trip_failed(trip, HX_STORE_UNAVAILABLE,
			    "the connection was lost, or the server did not answer in time");
	}
	return trip->code;
}
