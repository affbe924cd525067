/* Connections to PostgreSQL that are cut, and commits whose answer is lost: a proxy stands in between. See test_postgres.c. */
#include "contract/postgres_items.h"
#include "support/pg_proxy.h"

struct proxied {
	struct pg_proxy *proxy;
	struct session *session;
};

static struct proxied proxied_open(const struct session *s, struct clock *clock)
{
	struct proxied p = {.proxy = pg_proxy_new(store_pg_port())};
	char url[512];

	assert_non_null(p.proxy);
	store_url(s->store, pg_proxy_port(p.proxy), "proxied", url, sizeof url);
	p.session = session_new(s->store, store_open_url(url, clock));
	return p;
}

static void proxied_close(struct proxied *p)
{
	session_free(p->session);
	pg_proxy_free(p->proxy);
}

static void a_dropped_connection_is_made_again(void **state)
{
	struct session *s = *state;
	struct proxied p = proxied_open(s, NULL);

	ask_put(p.session, 1);
	session_must(p.session, session_execute(p.session));
	pg_proxy_drop(p.proxy);
	ask_put(p.session, 2);
	assert_int_equal(p.session->db->driver->execute(p.session->db, p.session->units, 1, p.session->result,
							&p.session->arena, &p.session->err),
			 HX_STORE_UNAVAILABLE);
	ask_put(p.session, 3);
	session_must(p.session, session_run(p.session));
	assert_int_equal(item_count(s), 1);
	proxied_close(&p);
}

/* More than fits the socket's buffer: sending itself fails, and that too is a lost connection. */
static void a_connection_dropped_under_a_large_batch(void **state)
{
	struct session *s = *state;
	struct proxied p = proxied_open(s, NULL);
	static const char payload[40000];

	ask_put(p.session, 1);
	session_must(p.session, session_execute(p.session));
	pg_proxy_drop(p.proxy);
	session_reset(p.session);
	for (int64_t i = 0; i < SESSION_UNITS_MAX; i++)
		UNIT_ADD(session_unit(p.session), UNIT_VERDICT, &item_put, db_int(i), db_int(0), db_null(),
			 db_blob(slice_of(payload, sizeof payload)));
	assert_int_equal(p.session->db->driver->execute(p.session->db, p.session->units, p.session->n,
							p.session->result, &p.session->arena, &p.session->err),
			 HX_STORE_UNAVAILABLE);
	assert_int_equal(item_count(s), 0);
	ask_put(p.session, 1);
	session_must(p.session, session_run(p.session));
	proxied_close(&p);
}

static void a_commit_cut_before_the_server(void **state)
{
	struct session *s = *state;
	struct proxied p = proxied_open(s, NULL);

	ask_put(p.session, 1);
	pg_proxy_arm(p.proxy, PG_PROXY_CUT_BEFORE);
	assert_int_equal(session_run(p.session), HX_OUTCOME_UNKNOWN);
	assert_int_equal(pg_proxy_cuts(p.proxy), 1);
	assert_int_equal(resolve(p.session, 5000), HX_STORE_UNAVAILABLE); /* certainly not */
	assert_int_equal(item_count(s), 0);
	ask_put(p.session, 1);
	session_must(p.session, session_run(p.session));
	proxied_close(&p);
}

static void a_commit_cut_behind_the_server(void **state)
{
	struct session *s = *state;
	struct proxied p = proxied_open(s, NULL);

	ask_put(p.session, 1);
	pg_proxy_arm(p.proxy, PG_PROXY_CUT_AFTER);
	assert_int_equal(session_run(p.session), HX_OUTCOME_UNKNOWN);
	assert_int_equal(pg_proxy_cuts(p.proxy), 1);
	session_must(p.session, resolve(p.session, 5000));
	assert_int_equal(p.session->result[0].verdict, UNIT_WON); /* and counts now */
	assert_int_equal(item_n(s, 1, ABSENT), 1);
	proxied_close(&p);
}

static void a_commit_that_lands_later(void **state)
{
	struct session *s = *state;
	struct proxied p = proxied_open(s, NULL);

	ask_put(p.session, 1);
	pg_proxy_arm(p.proxy, PG_PROXY_HOLD);
	assert_int_equal(session_run(p.session), HX_OUTCOME_UNKNOWN);
	assert_int_equal(resolve(p.session, 100), HX_OUTCOME_UNKNOWN); /* still in progress */
	assert_int_equal(item_count(s), 0);
	pg_proxy_let_go(p.proxy);
	session_must(p.session, resolve(p.session, 5000));
	assert_int_equal(item_count(s), 1);
	proxied_close(&p);
}

/* As when the limit of the unit passes just then: the transaction and its locks must not outlive it, and the next one begins. */
static void an_end_that_is_refused(void **state)
{
	struct session *s = *state;
	struct proxied p = proxied_open(s, NULL);

	ask_put(p.session, 1);
	session_must(p.session, session_execute(p.session));
	pg_proxy_arm(p.proxy, PG_PROXY_REFUSE);
	p.session->db->driver->rollback(p.session->db);
	assert_int_equal(pg_proxy_cuts(p.proxy), 1);
	ask_put(s, 1);
	session_must(s, session_run(s));
	ask_put(p.session, 2);
	pg_proxy_arm(p.proxy, PG_PROXY_REFUSE);
	assert_int_equal(session_run(p.session), HX_CONCURRENCY_ERROR);
	assert_int_equal(pg_proxy_cuts(p.proxy), 2);
	ask_put(s, 2);
	session_must(s, session_run(s));
	ask_put(p.session, 3);
	session_must(p.session, session_run(p.session));
	assert_int_equal(item_count(s), 3);
	proxied_close(&p);
}

/* What has only read is rolled back: there is no commit to be in doubt about. */
static void reads_are_not_committed(void **state)
{
	struct session *s = *state;
	struct proxied p = proxied_open(s, NULL);

	session_reset(p.session);
	UNIT_ADD(session_unit(p.session), UNIT_ANY, &item_get, db_int(1));
	pg_proxy_arm(p.proxy, PG_PROXY_CUT_BEFORE);
	session_must(p.session, session_run(p.session));
	assert_int_equal(pg_proxy_cuts(p.proxy), 0);
	assert_int_equal(item_count(s), 0);
	proxied_close(&p);
}

/* How many trips a group takes: units of three lines, of which the first one decides or does not. */
static unsigned trips_of(struct proxied *p, int64_t first, enum unit_rule rule, bool writes)
{
	unsigned before = pg_proxy_trips(p->proxy);

	session_reset(p->session);
	for (int64_t id = first; id < first + 4; id++) {
		struct unit *unit = session_unit(p->session);

		if (writes)
			UNIT_ADD(unit, rule, &item_put, db_int(id), db_int(1), db_str(""), db_null());
		UNIT_ADD(unit, writes ? UNIT_ANY : rule, &item_get, db_int(id));
		UNIT_ADD(unit, UNIT_ANY, &item_get, db_int(id));
	}
	p->session->db->whole = true;
	session_must(p->session, session_run(p->session));
	p->session->db->whole = false;
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(p->session->result[i].rows[1].n, writes);
	return pg_proxy_trips(p->proxy) - before;
}

static void no_trip_is_for_a_verdict_that_nobody_waits_for(void **state)
{
	struct proxied p = proxied_open(*state, NULL);

	(void)trips_of(&p, 1, UNIT_ANY, true); /* what is prepared once */
	assert_int_equal(trips_of(&p, 11, UNIT_VERDICT, true), 3);
	assert_int_equal(trips_of(&p, 21, UNIT_ANY, true), 2);
	assert_int_equal(trips_of(&p, 31, UNIT_ANY, false), 1);
	proxied_close(&p);
}

static void run_unit_resolves_by_itself(void **state)
{
	struct session *s = *state;
	struct proxied p = proxied_open(s, NULL);

	for (int i = 0; i < 2; i++) {
		ask_put(p.session, i);
		pg_proxy_arm(p.proxy, i == 0 ? PG_PROXY_CUT_BEFORE : PG_PROXY_CUT_AFTER);
		assert_int_equal(db_run_unit(p.session->db, &p.session->unit[0], &p.session->result[0],
					     &p.session->arena, &p.session->err),
				 i == 0 ? HX_STORE_UNAVAILABLE : HX_OK);
	}
	assert_int_equal(item_count(s), 1);
	proxied_close(&p);
}

static void an_outcome_cannot_be_known_while_the_server_is_away(void **state)
{
	struct session *s = *state;
	struct proxied p = proxied_open(s, NULL);
	enum hx_code away;

	ask_put(p.session, 1);
	pg_proxy_arm(p.proxy, PG_PROXY_CUT_AFTER);
	assert_int_equal(session_run(p.session), HX_OUTCOME_UNKNOWN);
	store_pg_ctl("stop fast");
	away = resolve(p.session, 300);
	store_pg_ctl("start");
	assert_int_equal(away, HX_OUTCOME_UNKNOWN);
	session_must(p.session, resolve(p.session, 5000)); /* a clean restart is the same history */
	assert_int_equal(item_count(s), 1);
	proxied_close(&p);
}

/*
 * The transaction is cut before its COMMIT, the server crashes before it has written anything of it, and hands its
 * number out again: to somebody who commits. The number is then "committed", our unit is not.
 */
static void a_number_handed_out_twice_is_not_believed(void **state)
{
	struct session *s = *state;
	struct proxied p = proxied_open(s, NULL);
	enum hx_code code;
	PGconn *raw;
	char number[32], status[32], sql[64];

	raw = store_raw(s->store);
	raw_run(raw, "SELECT txid_current() + 1", number, sizeof number);
	PQfinish(raw);
	ask_put(p.session, 1);
	pg_proxy_arm(p.proxy, PG_PROXY_CUT_BEFORE);
	assert_int_equal(session_run(p.session), HX_OUTCOME_UNKNOWN);
	store_pg_ctl("restart immediate");
	raw = store_raw(s->store);
	for (int i = 0; i < 20; i++)
		raw_run(raw, "SELECT txid_current()", NULL, 0);
	snprintf(sql, sizeof sql, "SELECT txid_status(%s)", number);
	raw_run(raw, sql, status, sizeof status);
	code = resolve(p.session, 5000);
	printf("# after a crash the number of an uncommitted transaction is \"%s\", the driver says %s\n", status,
	       hx_code_name(code));
	assert_int_equal(code, HX_OUTCOME_UNKNOWN);
	assert_int_equal(item_count(s), 0);
	PQfinish(raw);
	proxied_close(&p);
}

/* A clock that runs a hundred times as fast from a moment on: a deadline of half a minute passes while one watches. */
struct hurried_clock {
	struct clock clock;
	int64_t since_ns; /* 0: as fast as others */
};

static struct wall_time hurried_wall(struct clock *clock)
{
	(void)clock;
	return clock_wall(clock_system());
}

static struct mono_time hurried_mono(struct clock *clock)
{
	const struct hurried_clock *hurried = (const struct hurried_clock *)clock;
	int64_t now = clock_mono(clock_system()).ns;

	return (struct mono_time){hurried->since_ns ? hurried->since_ns + (now - hurried->since_ns) * 100 : now};
}

static void a_silent_server_is_given_up(void **state)
{
	struct session *s = *state;
	struct hurried_clock clock = {.clock = {.wall = hurried_wall, .mono = hurried_mono}};
	struct proxied p = proxied_open(s, &clock.clock);

	ask_put(p.session, 1);
	pg_proxy_stall(p.proxy);
	clock.since_ns = clock_mono(clock_system()).ns;
	assert_int_equal(session_run(p.session), HX_STORE_UNAVAILABLE);

	clock.since_ns = 0;
	pg_proxy_drop(p.proxy);
	ask_put(p.session, 1);
	session_must(p.session, session_execute(p.session));
	pg_proxy_stall(p.proxy);
	clock.since_ns = clock_mono(clock_system()).ns;
	assert_int_equal(commit(p.session), HX_OUTCOME_UNKNOWN);

	/* The COMMIT never left the proxy; the server learns of the drop and rolls back. */
	clock.since_ns = 0;
	pg_proxy_drop(p.proxy);
	assert_int_equal(resolve(p.session, 5000), HX_STORE_UNAVAILABLE);
	assert_int_equal(item_count(s), 0);
	proxied_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_dropped_connection_is_made_again),
		TEST(a_connection_dropped_under_a_large_batch),
		TEST(a_commit_cut_before_the_server),
		TEST(a_commit_cut_behind_the_server),
		TEST(a_commit_that_lands_later),
		TEST(an_end_that_is_refused),
		TEST(reads_are_not_committed),
		TEST(no_trip_is_for_a_verdict_that_nobody_waits_for),
		TEST(run_unit_resolves_by_itself),
		TEST(an_outcome_cannot_be_known_while_the_server_is_away),
		TEST(a_number_handed_out_twice_is_not_believed),
		TEST(a_silent_server_is_given_up),
	};

	return cmocka_run_group_tests_name("postgres", tests, NULL, NULL);
}
