/*
 * The contract of driver.h, the same for every store: each test below runs on a SQLite file, on SQLite in memory
 * and on PostgreSQL. What only one store can do (a connection that breaks) has suites of its own.
 * Here: failures, transactions, and two connections that want one row.
 */
#include <pthread.h>

#include "sessions.h"

#define RACES 1000

/* ---- failures ---- */

/* Runs a group in which one unit's data is refused, and looks that nothing of it has happened. */
static void assert_refused_whole(struct session *s)
{
	assert_int_equal(session_run(s), HX_DATA_ERROR);
	assert_int_equal(s->err.code, HX_DATA_ERROR);
	assert_true(s->err.detail[0] != '\0');
	assert_int_equal(item_n(s, 1, ABSENT), 10);
	assert_int_equal(item_count(s), 1);
}

static void refused_data_undoes_the_whole_batch(void **state)
{
	struct session *s = *state;
	struct unit *unit;

	item_must_put(s, 1, 10);

	session_reset(s); /* alone, in the first line */
	add_put(session_unit(s), UNIT_VERDICT, 100, ITEM_UNLUCKY);
	assert_refused_whole(s);

	session_reset(s); /* among good ones */
	for (int64_t i = 0; i < 8; i++)
		add_put(session_unit(s), UNIT_VERDICT, 100 + i, i == 5 ? ITEM_UNLUCKY : i);
	assert_refused_whole(s);

	session_reset(s); /* in a later line */
	for (int64_t i = 0; i < 3; i++) {
		unit = session_unit(s);
		add_put(unit, UNIT_VERDICT, 100 + i, i);
		add_move(unit, UNIT_ANY, 100 + i, i, i == 1 ? ITEM_UNLUCKY : 7);
	}
	assert_refused_whole(s);

	session_reset(s); /* under a savepoint */
	add_move(session_unit(s), UNIT_VERDICT, 1, 10, 11);
	unit = session_unit(s);
	add_put(unit, UNIT_ANY, 100, 1);
	add_move(unit, UNIT_VERDICT, 100, 1, ITEM_UNLUCKY);
	assert_refused_whole(s);

	session_reset(s); /* a key that may not be NULL */
	for (int i = 0; i < 2; i++)
		UNIT_ADD(session_unit(s), UNIT_VERDICT, &item_put, i ? db_null() : db_int(100), db_int(1), db_null(),
			 db_null());
	assert_refused_whole(s);

	session_reset(s);
	UNIT_ADD(session_unit(s), UNIT_ANY, &item_bump, db_int(1));
	UNIT_ADD(session_unit(s), UNIT_ANY, &item_bump, db_int(1));
	session_must(s, session_run(s)); /* the connection is as good as before */
	assert_int_equal(item_n(s, 1, ABSENT), 12);
}

static void a_number_that_overflows_is_refused(void **state)
{
	struct session *s = *state;

	if (s->store->kind != STORE_POSTGRES)
		return; /* SQLite turns such a sum into a float; tables of the engine are STRICT and refuse that */
	item_must_put(s, 1, INT64_MAX);
	session_reset(s);
	UNIT_ADD(session_unit(s), UNIT_ANY, &item_bump, db_int(1));
	assert_int_equal(session_run(s), HX_DATA_ERROR);
}

static const struct db_stmt nonsense = {
	.name = "test_nonsense",
	.sql = "SELECT n FROM no_such_table WHERE id = ?1",
	.in = "i",
	.out = "i",
};

static void a_statement_that_cannot_be_prepared_is_our_mistake(void **state)
{
	struct session *s = *state;

	for (int i = 0; i < 2; i++) { /* also the second time */
		session_reset(s);
		add_put(session_unit(s), UNIT_VERDICT, 1, 1);
		UNIT_ADD(session_unit(s), UNIT_ANY, &nonsense, db_int(1));
		assert_int_equal(session_run(s), HX_INTERNAL);
		assert_non_null(strstr(s->err.detail, "no_such_table"));
	}
	assert_int_equal(item_count(s), 0);
}

/* A group fails in its first statement; the others were not prepared either, and are later. */
static void statements_behind_a_failure_are_prepared_later(void **state)
{
	struct session *s = *state;
	struct unit *unit;

	session_reset(s);
	unit = session_unit(s);
	add_put(unit, UNIT_VERDICT, 1, ITEM_UNLUCKY);
	add_move(unit, UNIT_ANY, 1, 1, 2);
	UNIT_ADD(session_unit(s), UNIT_ANY, &item_range, db_int(0), db_int(9));
	UNIT_ADD(session_unit(s), UNIT_ANY, &item_get, db_int(1));
	assert_int_equal(session_run(s), HX_DATA_ERROR);

	unit = &s->unit[0];
	unit_init(unit, 1);
	add_put(unit, UNIT_VERDICT, 1, 1);
	add_move(unit, UNIT_ANY, 1, 1, 2);
	arena_reset(&s->arena);
	session_must(s, session_run(s));
	assert_int_equal(item_n(s, 1, ABSENT), 2);
}

/* ---- transactions ---- */

static void rollback_leaves_nothing(void **state)
{
	struct session *s = *state;

	session_reset(s);
	add_put(session_unit(s), UNIT_VERDICT, 1, 1);
	session_must(s, session_execute(s));
	s->db->driver->rollback(s->db);
	assert_int_equal(item_count(s), 0);
}

static void closing_rolls_back(void **state)
{
	struct session *s = *state;
	struct session *other;

	if (s->store->kind == STORE_SQLITE_MEMORY)
		return; /* it ends with its connection */
	other = session_open(s->store);
	session_reset(other);
	add_put(session_unit(other), UNIT_VERDICT, 1, 1);
	session_must(other, session_execute(other));
	session_free(other);
	assert_int_equal(item_count(s), 0);
}

static void nothing_is_committed_as_well(void **state)
{
	struct session *s = *state;

	session_reset(s);
	session_must(s, session_run(s)); /* no units */
	session_must(s, s->db->driver->begin(s->db, &s->err));
	session_must(s, s->db->driver->commit(s->db, &s->err));
	session_must(s, s->db->driver->begin(s->db, &s->err));
	s->db->driver->rollback(s->db);
	s->db->driver->rollback(s->db); /* once more than needed */
	session_reset(s);
	(void)session_unit(s); /* a unit without lines is won */
	session_must(s, session_run(s));
	assert_verdict(s, 0, UNIT_WON, -1);
}

static void a_transaction_may_have_several_batches(void **state)
{
	struct session *s = *state;

	session_reset(s);
	add_put(session_unit(s), UNIT_VERDICT, 1, 10);
	session_must(s, session_execute(s));
	session_reset(s);
	add_move(session_unit(s), UNIT_VERDICT, 1, 10, 11);
	session_must(s, s->db->driver->execute(s->db, s->units, s->n, s->result, &s->arena, &s->err));
	assert_verdict(s, 0, UNIT_WON, -1);
	session_must(s, s->db->driver->commit(s->db, &s->err));
	assert_int_equal(item_n(s, 1, ABSENT), 11);
}

static void run_unit_commits(void **state)
{
	struct session *s = *state;
	struct unit unit;
	struct unit_result result;

	session_reset(s);
	unit_init(&unit, 1);
	add_put(&unit, UNIT_VERDICT, 1, 10);
	session_must(s, db_run_unit(s->db, &unit, &result, &s->arena, &s->err));
	assert_int_equal(result.verdict, UNIT_WON);
	assert_int_equal(item_n(s, 1, ABSENT), 10);
}

static void committed_rows_are_seen_by_others(void **state)
{
	struct session *s = *state;
	struct session *other;

	if (s->store->kind == STORE_SQLITE_MEMORY)
		return;
	other = session_open(s->store);
	item_must_put(s, 1, 10);
	assert_int_equal(item_n(other, 1, ABSENT), 10);
	item_must_put(other, 2, 20);
	assert_int_equal(item_n(s, 2, ABSENT), 20);
	session_free(other);
}

static void a_read_only_connection_cannot_write(void **state)
{
	struct session *s = *state;
	struct db_options options = {.url = s->store->url, .clock = clock_system(), .read_only = true};
	struct session *reader;
	struct db *db;

	if (s->store->kind == STORE_SQLITE_MEMORY)
		return;
	session_must(s, db_open(&options, &db, &s->err));
	reader = session_new(s->store, db);
	session_reset(reader);
	add_put(session_unit(reader), UNIT_VERDICT, 1, 1);
	assert_int_equal(session_run(reader), HX_STORE_UNAVAILABLE);
	session_free(reader);
	assert_int_equal(item_count(s), 0);
}

static void a_wrong_url_is_said_without_repeating_it(void **state)
{
	static const char *const urls[] = {"mysql://root:sesame@localhost", "", "sqlite", "sqlite:", "postgres:sesame"};

	(void)state;
	for (size_t i = 0; i < sizeof urls / sizeof *urls; i++) {
		struct db_options options = {.url = urls[i], .clock = clock_system()};
		struct hx_error err = {0};
		struct db *db = NULL;

		assert_int_equal(db_open(&options, &db, &err), HX_CONFIG_ERROR);
		assert_null(db);
		assert_null(strstr(err.detail, "sesame"));
	}
	db_close(NULL);
}

/* ---- two connections, one row ---- */

struct racer {
	struct session *session;
	pthread_barrier_t *barrier;
	int64_t name;
	int won, lost, other;
	bool won_round[RACES + 1];
};

/* Once more after a deadlock, a lock timeout, a busy file: that is what the lane does too. */
static enum hx_code run_until_decided(struct session *s)
{
	enum hx_code code;

	do
		code = session_run(s);
	while (code == HX_CONCURRENCY_ERROR);
	return code;
}

static void *race(void *context)
{
	struct racer *racer = context;
	struct session *s = racer->session;

	for (int64_t id = 1; id <= RACES; id++) {
		session_reset(s);
		add_move(session_unit(s), UNIT_VERDICT, id, 0, racer->name);
		pthread_barrier_wait(racer->barrier);
		if (run_until_decided(s) != HX_OK)
			racer->other++;
		else if (s->result[0].verdict == UNIT_WON)
			racer->won_round[id] = true, racer->won++;
		else
			racer->lost += s->result[0].verdict == UNIT_LOST;
	}
	return NULL;
}

static void put_race_rows(struct session *s)
{
	for (int64_t id = 1; id <= RACES;) {
		session_reset(s);
		for (int i = 0; i < 250; i++)
			add_put(session_unit(s), UNIT_VERDICT, id++, 0);
		session_must(s, session_run(s));
	}
}

static void one_winner_in_every_race(void **state)
{
	struct session *s = *state;
	pthread_barrier_t barrier;
	pthread_t thread;

	if (s->store->kind == STORE_SQLITE_MEMORY)
		return; /* a store of one connection */

	struct racer *racers = calloc(2, sizeof *racers);

	assert_non_null(racers);
	put_race_rows(s);
	pthread_barrier_init(&barrier, NULL, 2);
	racers[0] = (struct racer){.session = s, .barrier = &barrier, .name = 1};
	racers[1] = (struct racer){.session = session_open(s->store), .barrier = &barrier, .name = 2};
	assert_int_equal(pthread_create(&thread, NULL, race, &racers[1]), 0);
	race(&racers[0]);
	pthread_join(thread, NULL);
	assert_int_equal(racers[0].other + racers[1].other, 0);
	assert_int_equal(racers[0].won + racers[1].won, RACES);
	assert_int_equal(racers[0].lost + racers[1].lost, RACES);
	for (int64_t id = 1; id <= RACES; id++) {
		assert_int_equal(racers[0].won_round[id] + racers[1].won_round[id], 1);
		assert_int_equal(item_n(s, id, ABSENT), racers[0].won_round[id] ? 1 : 2);
	}
	printf("# %s: %d races, one winner each (%d to %d)\n", s->db->driver->name, RACES, racers[0].won,
	       racers[1].won);
	session_free(racers[1].session);
	pthread_barrier_destroy(&barrier);
	free(racers);
}

static struct CMUnitTest tests[] = {
	TEST(refused_data_undoes_the_whole_batch),
	TEST(a_number_that_overflows_is_refused),
	TEST(a_statement_that_cannot_be_prepared_is_our_mistake),
	TEST(statements_behind_a_failure_are_prepared_later),
	TEST(rollback_leaves_nothing),
	TEST(closing_rolls_back),
	TEST(nothing_is_committed_as_well),
	TEST(a_transaction_may_have_several_batches),
	TEST(run_unit_commits),
	TEST(committed_rows_are_seen_by_others),
	TEST(a_read_only_connection_cannot_write),
	TEST(a_wrong_url_is_said_without_repeating_it),
	TEST(one_winner_in_every_race),
};

int main(void)
{
	return run_on_every_store(tests, sizeof tests / sizeof *tests);
}
