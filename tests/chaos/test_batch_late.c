/*
 * A holder that falls silent in the middle of its items (SIGSTOP), past its lease, with calls on their way. Meanwhile another
 * node goes on with the batch; then the silent one wakes up, and its calls are answered.
 *
 *   cancelled meanwhile, with a void      the other node has voided the keys before it gave the money back: the service refuses
 *                                         the late effects, nothing was made and nothing is charged
 *   cancelled meanwhile, without          the late effects are there: they are recorded and shown, deleted by jobs, and never
 *                                         charged
 *   not cancelled                         the other one calls again, with the same keys: done once, charged once
 *
 * On SQLite nobody else can go on. The same node wakes up past its own lease, and is cancelled then.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "support/await.h"
#include "support/studio.h"

#define A 0
#define B 1
#define OPENING 1000
#define COST 9
#define ITEMS 7
#define CONCURRENCY 3
#define LEASE_MS 2000 /* nobody loses one who lives, also on a busy machine: calls are counted */
#define DONE_BEFORE 2 /* items that were done before it fell silent */
/* A node that is paused inside of a transaction keeps its locks until the server ends it, at 30 s. */
#define TAKE_OVER_MS 90000
#define NOTICE_MS 60000

/* ---- before ---- */

/* A alone has the batch: some items are done, and CONCURRENCY calls are on their way, unanswered. */
static void begin(struct studio *studio, bool voids, char id[ID_TEXT_BYTES])
{
	studio_define(studio, &(struct studio_shape){.voids = voids, .concurrency = CONCURRENCY, .lease_ms = LEASE_MS});
	artifacts_hold(studio->artifacts, "/render", true);
	studio_start(studio, 1);
	studio_open_account(studio, "alice", OPENING);
	studio_create(studio, A, &(struct studio_order){.account = "alice", .items = ITEMS, .cost = COST}, id);
	for (size_t i = 0; i < DONE_BEFORE; i++) {
		AWAIT(NOTICE_MS, artifacts_begun(studio->artifacts, "/render") == CONCURRENCY + i);
		service_release_one(studio->scene->service);
	}
	AWAIT(NOTICE_MS, artifacts_begun(studio->artifacts, "/render") == CONCURRENCY + DONE_BEFORE);
	AWAIT(NOTICE_MS, reply_int(studio_show(studio, A, id), "succeeded") == DONE_BEFORE);
}

static void pause_a_and_start_b(struct studio *studio)
{
	fleet_pause(&studio->fleet, A);
	studio->fleet.n = 2;
	fleet_revive(&studio->fleet, B);
}

static void tear_down_on_b(struct studio *studio, const char *id)
{
	int64_t from_ms = await_now_ms();

	pause_a_and_start_b(studio);
	assert_int_equal(studio_post(studio, B, id, "cancel"), 202);
	studio_await(studio, B, id, "CANCELLED", TAKE_OVER_MS);
	printf("# silent holder of a batch: cancelled and torn down by another %lld ms after it fell silent (lease %d ms)\n",
	       (long long)(await_now_ms() - from_ms), LEASE_MS);
	assert_int_equal(reply_int(&studio->scene->last, "cancelled"), ITEMS);
	assert_int_equal(reply_int(&studio->scene->last, "charged"), (DONE_BEFORE + CONCURRENCY) * COST);
	assert_int_equal(reply_int(&studio->scene->last, "refunded"), (DONE_BEFORE + CONCURRENCY) * COST);
	assert_int_equal(reply_int(&studio->scene->last, "late"), 0);
	assert_int_equal(studio_balance(studio, B, "alice"), OPENING);
	assert_int_equal(artifacts_there(studio->artifacts), 0);
}

static void let_go(struct studio *studio)
{
	artifacts_hold(studio->artifacts, "/render", false);
	service_release(studio->scene->service);
}

/* A has understood that it is late, and stops as one that has nothing left to do. */
static void end(struct studio *studio, struct books_sum *ret_sum)
{
	studio_end(studio, ret_sum);
	assert_int_equal(studio_takeovers(studio), 1);
}

/* ---- cancelled meanwhile ---- */

static size_t refused(struct studio *studio, const char *id)
{
	struct artifact artifact;
	char key[64];
	size_t n = 0;

	for (int i = 0; i < ITEMS; i++) {
		snprintf(key, sizeof key, "%s/%d", id, i);
		n += artifacts_find(studio->artifacts, key, &artifact) ? artifact.refused : 0;
	}
	return n;
}

/* Answered while it is silent, or after it woke up. */
static void late_effect_is_refused(struct studio *studio, bool answered_first)
{
	char id[ID_TEXT_BYTES];
	struct books_sum sum;

	begin(studio, /* voids= */ true, id);
	tear_down_on_b(studio, id);
	if (answered_first)
		let_go(studio);
	fleet_continue(&studio->fleet, A);
	if (!answered_first)
		let_go(studio);
	AWAIT(NOTICE_MS, refused(studio, id) == CONCURRENCY);
	assert_int_equal(artifacts_made(studio->artifacts), DONE_BEFORE);
	end(studio, &sum);
	assert_int_equal(sum.late, 0);
}

static void test_late_effect_of_a_voided_key_is_refused(void **state)
{
	late_effect_is_refused(*state, /* answered_first= */ true);
}

static void test_late_call_with_a_voided_key_is_refused(void **state)
{
	late_effect_is_refused(*state, /* answered_first= */ false);
}

static void assert_late_items_are_shown(struct studio *studio, const char *id)
{
	char path[100];
	struct reply *reply;
	size_t late = 0;

	snprintf(path, sizeof path, BATCHES "/%s/items", id);
	reply = scene_must(studio->scene, B, "GET", path, NULL, 200, NULL);
	assert_int_equal(reply_count(reply, "items"), ITEMS);
	for (size_t i = 0; i < ITEMS; i++) {
		snprintf(path, sizeof path, "items.%zu.late", i);
		late += strcmp(reply_text(reply, path), "null") != 0;
		snprintf(path, sizeof path, "items.%zu.decision", i);
		assert_string_equal(reply_text(reply, path), "cancelled");
	}
	assert_int_equal(late, CONCURRENCY);
}

static void late_effect_is_seen(struct studio *studio, bool answered_first)
{
	char id[ID_TEXT_BYTES];
	struct books_sum sum;

	begin(studio, /* voids= */ false, id);
	tear_down_on_b(studio, id);
	if (answered_first)
		let_go(studio);
	fleet_continue(&studio->fleet, A);
	if (!answered_first)
		let_go(studio);
	AWAIT(NOTICE_MS, reply_int(studio_show(studio, B, id), "late") == CONCURRENCY);
	assert_string_equal(reply_text(&studio->scene->last, "status"), "CANCELLED");
	assert_int_equal(artifacts_made(studio->artifacts), DONE_BEFORE + CONCURRENCY);
	assert_late_items_are_shown(studio, id);
	AWAIT(NOTICE_MS, artifacts_there(studio->artifacts) == 0);
	assert_int_equal(studio_balance(studio, B, "alice"), OPENING);
	end(studio, &sum);
	assert_int_equal(sum.late, CONCURRENCY);
	assert_int_equal(sum.charged - sum.refunded, 0);
}

static void test_late_effect_without_a_void_is_seen_and_deleted(void **state)
{
	late_effect_is_seen(*state, /* answered_first= */ true);
}

static void test_late_answer_without_a_void_is_seen_and_deleted(void **state)
{
	late_effect_is_seen(*state, /* answered_first= */ false);
}

/* ---- not cancelled ---- */

static void test_taken_over_items_are_charged_once(void **state)
{
	struct studio *studio = *state;
	char id[ID_TEXT_BYTES];
	struct books_sum sum;

	begin(studio, /* voids= */ true, id);
	pause_a_and_start_b(studio);
	AWAIT(TAKE_OVER_MS, artifacts_begun(studio->artifacts, "/render") == 2 * CONCURRENCY + DONE_BEFORE);
	let_go(studio);
	studio_await(studio, B, id, "COMPLETED", NOTICE_MS);
	fleet_continue(&studio->fleet, A);
	assert_int_equal(studio_balance(studio, B, "alice"), OPENING - ITEMS * COST);
	end(studio, &sum);
	assert_int_equal(artifacts_made(studio->artifacts), ITEMS);
	assert_int_equal(artifacts_there(studio->artifacts), ITEMS);
	assert_int_equal(artifacts_repeated(studio->artifacts), 0);
	assert_int_equal(sum.charged, ITEMS * COST);
	assert_int_equal(sum.late, 0);
}

/* ---- alone ---- */

static void woken_past_its_own_lease(struct studio *studio, bool voids)
{
	char id[ID_TEXT_BYTES];
	struct books_sum sum;

	begin(studio, voids, id);
	fleet_pause(&studio->fleet, A);
	nanosleep(&(struct timespec){.tv_sec = 2 * LEASE_MS / 1000}, NULL); /* its lease is over: no event says so */
	fleet_continue(&studio->fleet, A);
	assert_int_equal(studio_post(studio, A, id, "cancel"), 202);
	let_go(studio);
	studio_await(studio, A, id, "CANCELLED", TAKE_OVER_MS);
	AWAIT(NOTICE_MS, artifacts_there(studio->artifacts) == 0);
	assert_int_equal(studio_balance(studio, A, "alice"), OPENING);
	studio_end(studio, &sum);
	assert_int_equal(sum.charged - sum.refunded, 0);
}

static void test_woken_past_its_own_lease_with_a_void(void **state)
{
	woken_past_its_own_lease(*state, /* voids= */ true);
}

static void test_woken_past_its_own_lease_without(void **state)
{
	woken_past_its_own_lease(*state, /* voids= */ false);
}

int main(void)
{
#define SQLITE(test) cmocka_unit_test_setup_teardown(test, studio_set_up_sqlite, studio_tear_down)
#define POSTGRES(test) cmocka_unit_test_setup_teardown(test, studio_set_up_postgres, studio_tear_down)
	const struct CMUnitTest tests[] = {
		POSTGRES(test_late_effect_of_a_voided_key_is_refused),
		POSTGRES(test_late_call_with_a_voided_key_is_refused),
		POSTGRES(test_late_effect_without_a_void_is_seen_and_deleted),
		POSTGRES(test_late_answer_without_a_void_is_seen_and_deleted),
		POSTGRES(test_taken_over_items_are_charged_once),
		SQLITE(test_woken_past_its_own_lease_with_a_void),
		SQLITE(test_woken_past_its_own_lease_without),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
