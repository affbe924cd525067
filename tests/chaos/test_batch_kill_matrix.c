/*
 * kill -9 at every point of a cancel, on SQLite (one node, started again) and on PostgreSQL (another node goes on):
 *
 *   RUNNING ─ flag ─┬─▶ CANCELLING ─┬─ refund ─┬─ refund ─┬─ cleanup ─┬─ … ─┬─▶ CANCELLED ─┬─
 *                   1               2          3          4           5     6              7
 *
 *   1 after the flag                     calls of items are held by the service
 *   2 before the refund                  a void is held
 *   3 between the refunds of two slices  a void of the second slice is held
 *   4 after the refund, before cleanup   deletes are held
 *   5 in the middle of the cleanup       some deletes were answered
 *   6 before the end, 7 after it         as soon as the store says so
 *
 * And the same by chance, to meet the commits themselves: batches begin their teardown together, and the node is killed some
 * moment later, or in the moment in which the service sees this or that; what the store says then is where it was killed. It
 * goes on until every point was met.
 *
 * Whenever it was, the batch ends CANCELLED, all that it was charged is given back, once, and no artifact is left.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "flow/batch.h"
#include "support/await.h"
#include "support/studio.h"

#define OPENING 1000000
#define COST 11
#define ITEMS 10
#define CONCURRENCY 4
#define LEASE_MS 2000 /* nobody loses one who lives, also on a busy machine: calls are counted */
#define LARGE (BATCH_SLICE + 100)
#define DEADLINE_MS 90000

#define AT_ONCE 3  /* batches that are torn down at the same time */
#define HITS_MIN 1 /* of each point */
#define ROUNDS_MIN 25
#define ROUNDS_MAX 300

struct matrix {
	struct studio *studio;
	int node; /* the one that lives */
};

/* ---- a node dies, and another lives ---- */

/* Without a word: what is to be known was read before. On PostgreSQL its last commit may still be under way. */
static void die(struct matrix *m)
{
	struct scene *scene = m->studio->scene;

	kill(scene->nodes[m->node]->pid, SIGKILL);
	scene_kill(scene, m->node);
	atomic_store(&m->studio->fleet.ports[m->node], 0);
	m->studio->fleet.kills++;
	if (studio_is_postgres(m->studio))
		AWAIT(DEADLINE_MS,
		      studio_number(m->studio, "SELECT count(*) FROM pg_stat_activity"
					       " WHERE application_name = 'hapax' AND state <> 'idle'") == 0);
}

static void live(struct matrix *m)
{
	m->node = studio_is_postgres(m->studio) ? !m->node : 0;
	fleet_revive(&m->studio->fleet, m->node);
}

static void hold(struct matrix *m, const char *path)
{
	artifacts_hold(m->studio->artifacts, path, true);
}

static void let_go(struct matrix *m, const char *path)
{
	artifacts_hold(m->studio->artifacts, path, false);
	service_release(m->studio->scene->service);
}

static size_t deletes_begun(struct matrix *m, const char *id)
{
	size_t begun, answered;

	artifacts_cleaned(m->studio->artifacts, id, &begun, &answered);
	return begun;
}

static size_t deletes_done(struct matrix *m, const char *id)
{
	size_t begun, answered;

	artifacts_cleaned(m->studio->artifacts, id, &begun, &answered);
	return answered;
}

static struct books_row row_of(struct matrix *m, const char *id)
{
	struct books_row row;

	studio_row(m->studio, id, &row);
	return row;
}

/* ---- a batch that runs ---- */

/* Some items are done, and the calls of CONCURRENCY others are held. */
static void run_into_hold(struct matrix *m, size_t items, size_t done, char id[ID_TEXT_BYTES])
{
	size_t before = artifacts_begun(m->studio->artifacts, "/render");

	studio_create(m->studio, m->node, &(struct studio_order){.account = "alice", .items = items, .cost = COST}, id);
	AWAIT(DEADLINE_MS, artifacts_begun(m->studio->artifacts, "/render") >= before + done);
	hold(m, "/render");
	AWAIT(DEADLINE_MS, reply_int(studio_show(m->studio, m->node, id), "running") == CONCURRENCY &&
				   reply_int(&m->studio->scene->last, "succeeded") >= (int64_t)done - CONCURRENCY);
}

/* Waits until this many items have been begun in all. */
static void await_begun(struct matrix *m, size_t n)
{
	int64_t until_ms = await_now_ms() + DEADLINE_MS;

	while (artifacts_begun(m->studio->artifacts, "/render") != n && await_now_ms() < until_ms)
		await_pause();
	if (artifacts_begun(m->studio->artifacts, "/render") == n)
		return;
	books_show_open(m->studio->scene->store);
	fail_msg("%zu items have been begun, not %zu", artifacts_begun(m->studio->artifacts, "/render"), n);
}

/* Batches of ITEMS items, flagged, with calls on their way. */
static void flag_all(struct matrix *m, size_t n, char ids[][ID_TEXT_BYTES])
{
	struct studio_order order = {.account = "alice", .items = ITEMS, .cost = COST};
	size_t before = artifacts_begun(m->studio->artifacts, "/render");

	hold(m, "/render");
	for (size_t i = 0; i < n; i++)
		studio_create(m->studio, m->node, &order, ids[i]);
	await_begun(m, before + n * CONCURRENCY);
	service_release(m->studio->scene->service);
	await_begun(m, before + 2 * n * CONCURRENCY);
	for (size_t i = 0; i < n; i++) {
		AWAIT(DEADLINE_MS, reply_int(studio_show(m->studio, m->node, ids[i]), "succeeded") == CONCURRENCY);
		assert_int_equal(studio_post(m->studio, m->node, ids[i], "cancel"), 202);
	}
}

static void flag(struct matrix *m, char id[ID_TEXT_BYTES])
{
	flag_all(m, 1, (char(*)[ID_TEXT_BYTES])id);
}

static void assert_cancelled(struct matrix *m, const char *id)
{
	struct books_row row;

	studio_await(m->studio, m->node, id, "CANCELLED", DEADLINE_MS);
	row = row_of(m, id);
	assert_int_equal(row.cancelled, row.total);
	assert_int_equal(row.charged, row.next_n * COST);
	assert_int_equal(row.refunded, row.charged);
	assert_int_equal(row.refund_entries, (row.next_n + BATCH_SLICE - 1) / BATCH_SLICE);
	assert_int_equal(row.late, 0);
	assert_int_equal(studio_balance(m->studio, m->node, "alice"), OPENING);
	assert_int_equal(artifacts_there(m->studio->artifacts), 0);
}

/* ---- the points ---- */

static void die_after_the_flag(struct matrix *m)
{
	char id[ID_TEXT_BYTES];
	struct books_row row;

	flag(m, id);
	die(m);
	row = row_of(m, id);
	assert_true(row.flagged);
	assert_string_equal(row.status, "RUNNING");
	assert_int_equal(row.charged, 2 * CONCURRENCY * COST);
	assert_int_equal(row.refunded, 0);
	let_go(m, "/render");
	live(m);
	assert_cancelled(m, id);
}

static void die_before_the_refund(struct matrix *m)
{
	size_t before = artifacts_begun(m->studio->artifacts, "/void");
	char id[ID_TEXT_BYTES];
	struct books_row row;

	flag(m, id);
	die(m);
	let_go(m, "/render");
	hold(m, "/void");
	live(m);
	AWAIT(DEADLINE_MS, artifacts_begun(m->studio->artifacts, "/void") > before);
	die(m);
	row = row_of(m, id);
	assert_string_equal(row.status, "CANCELLING");
	assert_int_equal(row.refunded, 0);
	assert_int_equal(row.cancelled, 0);
	let_go(m, "/void");
	live(m);
	assert_cancelled(m, id);
}

static void die_between_refunds(struct matrix *m)
{
	size_t before = artifacts_begun(m->studio->artifacts, "/void");
	char id[ID_TEXT_BYTES];
	struct books_row row;

	run_into_hold(m, LARGE, BATCH_SLICE + CONCURRENCY, id);
	assert_int_equal(studio_post(m->studio, m->node, id, "cancel"), 202);
	die(m);
	let_go(m, "/render");
	hold(m, "/void");
	live(m);
	AWAIT(DEADLINE_MS, artifacts_begun(m->studio->artifacts, "/void") > before);
	die(m);
	row = row_of(m, id);
	assert_string_equal(row.status, "CANCELLING");
	assert_int_equal(row.cancelled, BATCH_SLICE);
	assert_int_equal(row.refunded, BATCH_SLICE * COST);
	assert_int_equal(row.refund_entries, 1);
	assert_true(row.charged > row.refunded);
	let_go(m, "/void");
	live(m);
	assert_cancelled(m, id);
}

/* Cleaning up, with this many deletes answered. */
static void die_in_cleanup(struct matrix *m, size_t deletes)
{
	char id[ID_TEXT_BYTES];
	struct books_row row;

	flag(m, id);
	hold(m, "/delete");
	let_go(m, "/render");
	AWAIT(DEADLINE_MS, deletes_begun(m, id) > 0);
	for (size_t i = 0; i < deletes; i++) {
		AWAIT(DEADLINE_MS, deletes_begun(m, id) > i);
		service_release_one(m->studio->scene->service);
		AWAIT(DEADLINE_MS, deletes_done(m, id) == i + 1);
	}
	die(m);
	row = row_of(m, id);
	assert_string_equal(row.status, "CANCELLING");
	assert_int_equal(row.cancelled, ITEMS);
	assert_int_equal(row.refunded, row.charged);
	assert_int_equal(deletes_done(m, id), deletes);
	let_go(m, "/delete");
	live(m);
	assert_cancelled(m, id);
}

static void die_at_the_end(struct matrix *m)
{
	char id[ID_TEXT_BYTES];

	flag(m, id);
	let_go(m, "/render");
	while (strcmp(row_of(m, id).status, "CANCELLED") != 0)
		;
	die(m);
	live(m);
	assert_int_equal(studio_post(m->studio, m->node, id, "cancel"), 200);
	assert_cancelled(m, id);
}

static void begin(struct matrix *m, struct studio *studio)
{
	*m = (struct matrix){.studio = studio};
	studio_define(studio, &(struct studio_shape){.voids = true, .concurrency = CONCURRENCY, .lease_ms = LEASE_MS});
	studio_start(studio, 1);
	if (studio_is_postgres(studio))
		studio->fleet.n = 2;
	studio_open_account(studio, "alice", OPENING);
}

static void end(struct matrix *m, const char *what)
{
	struct books_sum sum;
	size_t looks;

	studio_await_all(m->studio, DEADLINE_MS);
	assert_int_equal(studio_balance(m->studio, m->node, "alice"), OPENING);
	looks = studio_end(m->studio, &sum);
	printf("# batch kill matrix, %s: %zu kills, %zu batches cancelled, %lld charged and refunded, %zu takeovers, %zu looks\n",
	       what, m->studio->fleet.kills, sum.cancelled, (long long)sum.refunded, studio_takeovers(m->studio),
	       looks);
	assert_int_equal(sum.cancelled, sum.batches);
	assert_int_equal(sum.charged, sum.refunded);
}

static void die_at_every_point(struct studio *studio)
{
	struct matrix m;

	begin(&m, studio);
	die_after_the_flag(&m);
	die_before_the_refund(&m);
	die_between_refunds(&m);
	die_in_cleanup(&m, 0);
	die_in_cleanup(&m, 2);
	die_in_cleanup(&m, 2 * CONCURRENCY - 1);
	die_at_the_end(&m);
	end(&m, "by name");
}

static void test_killed_at_every_point_sqlite(void **state)
{
	die_at_every_point(*state);
}

static void test_killed_at_every_point_postgres(void **state)
{
	die_at_every_point(*state);
}

/* ---- by chance ---- */

enum point { P_FLAG, P_BEFORE_REFUND, P_AFTER_REFUND, P_CLEANUP, P_BEFORE_END, P_AFTER_END, POINTS };

static const char *const point_names[POINTS] = {"after the flag", "before the refund", "after the refund",
						"in the cleanup", "before the end",    "after the end"};

struct chance {
	struct matrix m;
	struct caller *dice;
	size_t hits[POINTS];
	int64_t teardown_us; /* from the answers of the last items to the first delete, about */
};

static enum point point_of(struct chance *c, const char *id)
{
	struct books_row row = row_of(&c->m, id);
	int64_t deletes = (int64_t)deletes_done(&c->m, id);

	if (strcmp(row.status, "RUNNING") == 0)
		return P_FLAG;
	if (strcmp(row.status, "CANCELLED") == 0)
		return P_AFTER_END;
	assert_string_equal(row.status, "CANCELLING");
	if (row.refunded == 0)
		return P_BEFORE_REFUND;
	assert_int_equal(row.refunded, row.charged);
	return deletes == 0 ? P_AFTER_REFUND : deletes < row.next_n ? P_CLEANUP : P_BEFORE_END;
}

/* One of those that were not met often enough yet; then any. */
static enum point draw_aim(struct chance *c, bool is_first)
{
	enum point open[POINTS];
	size_t n = 0;

	for (int i = 0; i < POINTS; i++)
		if (c->hits[i] < HITS_MIN)
			open[n++] = (enum point)i;
	if (is_first)
		return P_AFTER_REFUND; /* the others are timed by it */
	return n ? open[caller_draw(c->dice, n)] : (enum point)caller_draw(c->dice, POINTS);
}

static void sleep_us(int64_t us)
{
	nanosleep(&(struct timespec){us / 1000000, us % 1000000 * 1000}, NULL);
}

static int64_t us_since(int64_t from_ns)
{
	return (clock_mono(clock_system()).ns - from_ns) / 1000;
}

/* Both spin: what they wait for is over in a moment. */
static void await_first_delete(struct chance *c, const char *id, int64_t from_ns)
{
	while (deletes_begun(&c->m, id) == 0 && us_since(from_ns) < DEADLINE_MS * INT64_C(1000))
		;
	c->teardown_us = us_since(from_ns);
}

static void await_deletes(struct chance *c, const char *id, size_t n, int64_t from_ns)
{
	await_first_delete(c, id, from_ns);
	while (deletes_done(&c->m, id) < n && us_since(from_ns) < DEADLINE_MS * INT64_C(1000))
		;
}

/* Returns when it is time to kill. */
static void await_aim(struct chance *c, enum point aim, const char *id)
{
	int64_t jitter_us = (int64_t)caller_draw(c->dice, (uint64_t)c->teardown_us + 1);
	int64_t from_ns = clock_mono(clock_system()).ns;

	switch (aim) {
	case P_FLAG:
		sleep_us(jitter_us / 2);
		break;
	case P_BEFORE_REFUND:
		sleep_us((c->teardown_us + jitter_us) / 2); /* the refund is what comes before the first delete */
		break;
	case P_AFTER_REFUND:
		await_first_delete(c, id, from_ns);
		break;
	case P_CLEANUP:
		await_deletes(c, id, 1 + caller_draw(c->dice, 2 * CONCURRENCY - 1), from_ns);
		break;
	case P_BEFORE_END:
		await_deletes(c, id, 2 * CONCURRENCY, from_ns);
		break;
	default:
		studio_await(c->m.studio, c->m.node, id, "CANCELLED", DEADLINE_MS);
	}
}

/* A round begins where the calls of all its batches are held. */
static void round_by_chance(struct chance *c, bool is_first)
{
	enum point aim = draw_aim(c, is_first);
	char ids[AT_ONCE][ID_TEXT_BYTES];

	flag_all(&c->m, AT_ONCE, ids);
	let_go(&c->m, "/render");
	await_aim(c, aim, ids[0]);
	die(&c->m);
	for (int i = 0; i < AT_ONCE; i++)
		c->hits[point_of(c, ids[i])]++;
	live(&c->m);
}

static bool has_met_all(const struct chance *c)
{
	for (int i = 0; i < POINTS; i++)
		if (c->hits[i] < HITS_MIN)
			return false;
	return true;
}

static void die_by_chance(struct studio *studio)
{
	struct chance c = {.teardown_us = 10000};
	int rounds = 0;

	begin(&c.m, studio);
	c.dice = caller_new(&studio->fleet, (uint64_t)await_now_ms());
	while (rounds < ROUNDS_MIN || (!has_met_all(&c) && rounds < ROUNDS_MAX)) {
		round_by_chance(&c, rounds == 0);
		rounds++;
	}
	caller_free(c.dice);
	printf("# batch kill matrix, by chance: %d kills, the first delete %lld us behind the last item:", rounds,
	       (long long)c.teardown_us);
	for (int i = 0; i < POINTS; i++)
		printf(" %zu %s%s", c.hits[i], point_names[i], i + 1 < POINTS ? "," : "\n");
	end(&c.m, "by chance");
	assert_true(has_met_all(&c));
}

static void test_killed_by_chance_sqlite(void **state)
{
	die_by_chance(*state);
}

static void test_killed_by_chance_postgres(void **state)
{
	die_by_chance(*state);
}

int main(void)
{
#define SQLITE(test) cmocka_unit_test_setup_teardown(test, studio_set_up_sqlite, studio_tear_down)
#define POSTGRES(test) cmocka_unit_test_setup_teardown(test, studio_set_up_postgres, studio_tear_down)
	const struct CMUnitTest tests[] = {
		SQLITE(test_killed_at_every_point_sqlite),
		POSTGRES(test_killed_at_every_point_postgres),
		SQLITE(test_killed_by_chance_sqlite),
		POSTGRES(test_killed_by_chance_postgres),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
