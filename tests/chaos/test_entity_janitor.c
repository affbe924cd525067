/*
 * The janitor against the owner: ROUNDS claims that are past their time, and for each of them the owner's finish (with
 * an after-effect) and a janitor's revert at the same moment, from two connections to PostgreSQL. Exactly one of them
 * wins, each often enough that the race was one, and what is left in the store is what the winner wrote.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "flow/job.h"
#include "support/audit.h"
#include "support/await.h"
#include "support/store.h"
#include "support/subjects.h"
#include "task/group.h"

#define ROUNDS 1000
#define WINS_MIN 50
#define FIRST_SUBJECT 1000
#define FIRST_JOB 1000000
#define FENCE 1
#define JITTER_NS 300000

enum side { OWNER, JANITOR, SIDES };

struct racer {
	enum side side;
	struct db *db;
	pthread_t thread;
	uint64_t random;
	enum hx_code code[ROUNDS];
	enum unit_verdict verdict[ROUNDS];
};

static pthread_barrier_t start;

/* ---- the claims ---- */

static struct stamp stamp_of(int64_t op, const char *node)
{
	return (struct stamp){.op = op, .at = clock_wall(clock_system()), .node = node};
}

static void build_claim(struct unit *unit, int64_t subject, bool create)
{
	struct stamp stamp = stamp_of(subject * 10 + !create, "owner");
	struct move move = {subject, "approved", "closing"};

	unit_init(unit, stamp.op);
	if (create)
		subject_create(unit, &stamp, subject, /* kind= */ 1, "approved");
	else
		subject_claim(unit, &stamp, &move, /* version= */ 1, /* lease_ms= */ 1);
}

/* All of them created, or claimed, in as few transactions as there can be. */
static void prepare(struct db *db, bool create)
{
	static struct unit units[GROUP_UNITS_MAX];
	static struct unit_result results[GROUP_UNITS_MAX];
	struct unit *pointers[GROUP_UNITS_MAX];
	struct hx_error err = {0};
	struct arena arena;

	arena_init(&arena, 64u << 20);
	for (int64_t from = 0; from < ROUNDS; from += GROUP_UNITS_MAX) {
		size_t n = ROUNDS - from < GROUP_UNITS_MAX ? (size_t)(ROUNDS - from) : GROUP_UNITS_MAX;

		for (size_t i = 0; i < n; i++) {
			build_claim(&units[i], FIRST_SUBJECT + from + (int64_t)i, create);
			pointers[i] = &units[i];
		}
		if (db->driver->begin(db, &err) || db->driver->execute(db, pointers, n, results, &arena, &err) ||
		    db->driver->commit(db, &err))
			fail_msg("prepare: %s", err.detail);
		for (size_t i = 0; i < n; i++)
			assert_int_equal(results[i].verdict, UNIT_WON);
	}
	arena_release(&arena);
}

/* ---- the race ---- */

static void build(struct unit *unit, enum side side, int64_t round)
{
	int64_t subject = FIRST_SUBJECT + round;
	struct stamp stamp = stamp_of(subject * 10 + 2 + side, side == OWNER ? "owner" : "janitor");
	struct move move = {subject, "closing", side == OWNER ? "closed" : "approved"};
	struct job_spec job = {
		.subject = FIRST_JOB + round,
		.workspace = slice_str("default"),
		.queue = JOB_QUEUE_AFTER_EFFECTS,
		.workflow = "billing",
		.action = "Mail",
		.effect_key = slice_str("key"),
		.payload = slice_str("{}"),
	};

	unit_init(unit, stamp.op);
	if (side == JANITOR) {
		subject_revert(unit, &stamp, &move, FENCE);
	} else {
		subject_finish(unit, &stamp, &move, FENCE);
		job_insert(unit, &stamp, &job);
	}
}

static void jitter(struct racer *r)
{
	struct mono_time now = clock_mono(clock_system());
	int64_t until;

	r->random ^= r->random << 13;
	r->random ^= r->random >> 7;
	r->random ^= r->random << 17;
	until = now.ns + (int64_t)((r->random >> 16) % JITTER_NS);
	while (clock_mono(clock_system()).ns < until)
		;
}

static void *race(void *context)
{
	struct racer *r = context;
	struct arena arena;

	arena_init(&arena, 1u << 20);
	for (int64_t round = 0; round < ROUNDS; round++) {
		struct unit unit;
		struct unit_result result = {0};
		struct hx_error err;

		build(&unit, r->side, round);
		pthread_barrier_wait(&start);
		jitter(r);
		r->code[round] = db_run_unit(r->db, &unit, &result, &arena, &err);
		r->verdict[round] = result.verdict;
		arena_reset(&arena);
	}
	arena_release(&arena);
	return NULL;
}

/* ---- what must be left ---- */

static int number(PGconn *raw, const char *sql)
{
	char cell[32];

	raw_run(raw, sql, cell, sizeof cell);
	return atoi(cell);
}

static void check_store(const struct store *store, int owner_wins)
{
	PGconn *raw = store_raw(store);
	struct audit audit = {.db = store_open(store), .claimed = "closing"};
	struct hx_error err = {0};

	assert_int_equal(number(raw, "SELECT count(*) FROM hx_subject WHERE status = 'closed' AND version = 3"),
			 owner_wins);
	assert_int_equal(number(raw, "SELECT count(*) FROM hx_subject WHERE status = 'approved' AND version = 3"),
			 ROUNDS - owner_wins);
	assert_int_equal(number(raw, "SELECT count(*) FROM hx_job"), owner_wins);
	assert_int_equal(number(raw,
				"SELECT count(*) FROM hx_job j JOIN hx_subject s ON s.id = j.subject - 1000000 + 1000"
				" WHERE s.status = 'closed'"),
			 owner_wins);
	arena_init(&audit.arena, AUDIT_BYTES_MAX);
	for (int64_t i = 0; i < ROUNDS; i++)
		if (audit_subject(&audit, FIRST_SUBJECT + i, &err) != 3)
			fail_msg("%s", err.detail);
	arena_release(&audit.arena);
	db_close(audit.db);
	PQfinish(raw);
}

static void test_of_finish_and_revert_exactly_one_wins(void **state)
{
	static struct racer racers[SIDES] = {{.side = OWNER, .random = 88172645463325252u},
					     {.side = JANITOR, .random = 1181783497276652981u}};
	struct store *store = *state;
	struct db *db = store_open_migrated(store);
	PGconn *raw = store_raw(store);
	int wins[SIDES] = {0};

	prepare(db, /* create= */ true);
	prepare(db, /* create= */ false);
	raw_await(raw, "SELECT count(*) FROM hx_subject WHERE until > extract(epoch FROM clock_timestamp()) * 1000",
		  "0");
	pthread_barrier_init(&start, NULL, SIDES);
	for (int i = 0; i < SIDES; i++)
		racers[i].db = store_open_hasty(store, "race");
	for (int i = 0; i < SIDES; i++)
		assert_int_equal(pthread_create(&racers[i].thread, NULL, race, &racers[i]), 0);
	for (int i = 0; i < SIDES; i++)
		pthread_join(racers[i].thread, NULL);
	for (int round = 0; round < ROUNDS; round++) {
		int won = 0;

		for (int i = 0; i < SIDES; i++) {
			assert_int_equal(racers[i].code[round], HX_OK);
			assert_true(racers[i].verdict[round] == UNIT_WON || racers[i].verdict[round] == UNIT_LOST);
			won += racers[i].verdict[round] == UNIT_WON;
			wins[i] += racers[i].verdict[round] == UNIT_WON;
		}
		assert_int_equal(won, 1);
	}
	printf("# janitor against finish: %d rounds, the owner won %d, the janitor %d, nobody twice\n", ROUNDS,
	       wins[OWNER], wins[JANITOR]);
	assert_true(wins[OWNER] >= WINS_MIN && wins[JANITOR] >= WINS_MIN);
	check_store(store, wins[OWNER]);
	for (int i = 0; i < SIDES; i++)
		db_close(racers[i].db);
	pthread_barrier_destroy(&start);
	PQfinish(raw);
	db_close(db);
}

static int set_up(void **state)
{
	*state = store_new(STORE_POSTGRES);
	return 0;
}

static int tear_down(void **state)
{
	store_free(*state);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_of_finish_and_revert_exactly_one_wins, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
