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
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

#include "db/postgres.h"

#define STEP_NS 20000000

struct pg_connecting {
	pthread_mutex_t mutex; /* over what follows */
	pthread_cond_t changed;
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
	pthread_cond_destroy(&c->changed);
	pthread_mutex_destroy(&c->mutex);
	free(c->url);
	free(c);
}

static void *run(void *context)
{
	struct pg_connecting *c = context;
	PGconn *conn = connect_now(c->url, c->read_only);
	bool abandoned;

	pthread_mutex_lock(&c->mutex);
	c->conn = conn;
	c->done = true;
	abandoned = c->abandoned;
	pthread_cond_signal(&c->changed);
	pthread_mutex_unlock(&c->mutex);
	if (abandoned)
		put_away(c);
	return NULL;
}

/* Its thread takes no signals: they are for the program's own. NULL: no memory, or no thread. */
static struct pg_connecting *start(const struct pg *pg)
{
	struct pg_connecting *c = calloc(1, sizeof *c);
	sigset_t all, before;
	pthread_t thread;
	int rc;

	if (!c)
		return NULL;
	pthread_mutex_init(&c->mutex, NULL);
	pthread_cond_init(&c->changed, NULL);
	c->read_only = pg->read_only;
	c->url = strdup(pg->url);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = c->url ? pthread_create(&thread, NULL, run, c) : ENOMEM;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (rc) {
		put_away(c);
		return NULL;
	}
	pthread_detach(thread);
	return c;
}

/* For a moment, or until it is done. */
static bool is_done(struct pg_connecting *c)
{
	struct timespec until;
	bool done;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += STEP_NS;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	pthread_mutex_lock(&c->mutex);
	if (!c->done)
		(void)pthread_cond_timedwait(&c->changed, &c->mutex, &until); /* the caller looks again */
	done = c->done;
	pthread_mutex_unlock(&c->mutex);
	return done;
}

/* Made for somebody who has not waited for it: that it failed was true of that moment. */
static void forget_old_failure(struct pg *pg)
{
	bool failed;

	if (!pg->connecting)
		return;
	pthread_mutex_lock(&pg->connecting->mutex);
	failed = pg->connecting->done && PQstatus(pg->connecting->conn) != CONNECTION_OK;
	pthread_mutex_unlock(&pg->connecting->mutex);
	if (failed)
		pg_connect_abandon(pg);
}

bool pg_connect(struct pg *pg)
{
	struct pg_connecting *c;

	forget_old_failure(pg);
	c = pg->connecting ? pg->connecting : start(pg);
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
	pthread_mutex_lock(&c->mutex);
	c->abandoned = true;
	done = c->done;
	pthread_mutex_unlock(&c->mutex);
	if (done)
		put_away(c);
}
