/*
 * Connecting beside the thread that needs the connection.
 *
 * libpq connects in one call, which goes through all hosts of the url and may take seconds for each (and as long as it
 * likes for a name that is not resolved). Whoever needs the connection has other things to do by then: a thread of the
 * attempt's own makes the call, and is waited for as long as patience lasts. It goes on after that, and the next who asks
 * finds what came of it.
 *
 *   NONE ── pg_connect ──▶ UNDER WAY ──────── done ───▶ taken by pg_connect ──▶ NONE
 *                              └─ pg_connect_abandon ─▶ its thread puts everything away at its end
 */
#include <stdlib.h>

#include "base/thread.h"
#include "db/postgres.h"

#define STEP_MS 20

struct pg_connecting {
	struct monitor monitor; /* over what follows */
	bool done, abandoned;
	PGconn *conn;
	/* constant */
	char *url;
	bool read_only;
};

/* What stands before dbname may be overruled by the url, what stands after it may not. */
static PGconn *connect_now(const char *url, bool read_only)
{
	const char *const keys[] = {"connect_timeout",
				    "application_name",
				    "keepalives_idle",
				    "keepalives_interval",
				    "keepalives_count",
				    "tcp_user_timeout",
				    "gssencmode",
				    "target_session_attrs",
				    "dbname",
				    "client_encoding",
				    NULL};
	const char *const values[] = {
		"2", "hapax", "10", "5", "3", "30000", "disable", read_only ? "any" : "read-write", url, "UTF8", NULL};

	return PQconnectdbParams(keys, values, /* expand_dbname= */ 1);
}

static void put_away(struct pg_connecting *c)
{
	PQfinish(c->conn);
	monitor_release(&c->monitor);
	free(c->url);
	free(c);
}

static void *postgres_connect_run(void *context)
{
	struct pg_connecting *c = context;
	PGconn *conn = connect_now(c->url, c->read_only);
	bool abandoned;

	monitor_lock(&c->monitor);
	c->conn = conn;
	c->done = true;
	abandoned = c->abandoned;
	monitor_wake_one(&c->monitor);
	monitor_unlock(&c->monitor);
	if (abandoned)
		put_away(c);
	return NULL;
}

/* NULL: no memory, or no thread. */
static struct pg_connecting *postgres_connect_start(const struct pg *pg)
{
	struct pg_connecting *c = calloc(1, sizeof *c);
	struct thread thread;
	struct hx_error err;

	if (!c)
		return NULL;
	monitor_init(&c->monitor);
	c->read_only = pg->read_only;
	c->url = strdup(pg->url);
	if (!c->url || thread_start(&thread, postgres_connect_run, c, "the thread of a connection", &err)) {
		put_away(c);
		return NULL;
	}
	pthread_detach(thread.id);
	return c;
}

/* For a moment, or until it is done. */
static bool is_done(struct pg_connecting *c)
{
	LOCKED(&c->monitor.mutex);
	if (!c->done)
		(void)monitor_wait_until(&c->monitor, time_in_ms(STEP_MS)); /* the caller looks again */
	return c->done;
}

/* Made for somebody who has not waited for it: that it failed was true of that moment. */
static void forget_old_failure(struct pg *pg)
{
	bool failed;

	if (!pg->connecting)
		return;
	monitor_lock(&pg->connecting->monitor);
	failed = pg->connecting->done && PQstatus(pg->connecting->conn) != CONNECTION_OK;
	monitor_unlock(&pg->connecting->monitor);
	if (failed)
		pg_connect_abandon(pg);
}

bool pg_connect(struct pg *pg)
{
	struct pg_connecting *c;

	forget_old_failure(pg);
	c = pg->connecting ? pg->connecting : postgres_connect_start(pg);
	if (!c) {
		pg->conn = connect_now(pg->url, pg->read_only);
		return true;
	}
	pg->connecting = c;
	while (!is_done(c)) {
		db_tick(&pg->db);
		if (clock_mono(pg->db.clock).ns >= db_wait_until(&pg->db, (struct mono_time){INT64_MAX}).ns)
			return false;
	}
	pg->connecting = NULL;
	pg->conn = c->conn;
	c->conn = NULL;
	put_away(c);
	return true;
}

void pg_connect_abandon(struct pg *pg)
{
	struct pg_connecting *c = pg->connecting;
	bool done;

	if (!c)
		return;
	pg->connecting = NULL;
	monitor_lock(&c->monitor);
	c->abandoned = true;
	done = c->done;
	monitor_unlock(&c->monitor);
	if (done)
		put_away(c);
}
