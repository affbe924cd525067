/*
 * The locks of slots (flow/slot.h), on PostgreSQL: there are fewer of them than names, and groups that take names in their order still
 * never wait for each other in a circle.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "flow/slot.h"
#include "support/item.h"

#define NAMES 24

struct taker {
	struct session *session;
	enum hx_code code;
};

static void *take_all(void *context)
{
	struct taker *taker = context;

	taker->code = session_run(taker->session);
	return NULL;
}

/* Names over the whole range that hashes have. By their last digits, those of one group are in the order in which those of the other are not. */
static int64_t name_of(int64_t i, int64_t flip)
{
	int64_t wide = INT64_MAX / (NAMES + 1) * (i + 1);

	return -(wide / 1024 * 1024 + (flip ? NAMES - i : i + 1));
}

static void add_names(struct session *s, int64_t flip)
{
	session_reset(s);
	for (int64_t i = 0; i < NAMES; i++)
		slot_lock(session_unit(s), &(struct slot){.name = name_of(i, flip)});
}

/* All are taken at first, so that each stands at its first one when they are let go. */
static void no_circle_of_locks(void **state)
{
	static const char all[] =
		"BEGIN; SELECT count(pg_advisory_xact_lock(48510712, k)) FROM generate_series(-1100, 1100) k";
	static const char waiting[] =
		"SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted AND database ="
		" (SELECT oid FROM pg_database WHERE datname = current_database())";
	struct session *s = *state;
	struct taker takers[2] = {{s, HX_OK}, {session_open(s->store), HX_OK}};
	PGconn *raw = store_raw(s->store), *look = store_raw(s->store);
	pthread_t threads[2];

	add_names(takers[0].session, /* flip= */ 0);
	add_names(takers[1].session, /* flip= */ 1);
	for (int i = 0; i < 2; i++)
		takers[i].session->db->lock_wait_ms = 60000;
	raw_run(raw, all, NULL, 0);
	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, take_all, &takers[i]), 0);
	raw_await(look, waiting, "2");
	raw_run(raw, "COMMIT", NULL, 0);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < 2; i++)
		session_must(takers[i].session, takers[i].code);
	session_free(takers[1].session);
	PQfinish(raw);
	PQfinish(look);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(no_circle_of_locks, session_set_up_postgres, session_tear_down)};

	return cmocka_run_group_tests_name("locks of slots", tests, NULL, NULL);
}
