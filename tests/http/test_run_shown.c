/*
 * What a run shows of its steps, and the log of the runs, when something has gone wrong: attempt and start stay as they were, also
 * after a cancel; a compensation that has failed is told of the step that it is for, and of no other; a takeover is told when
 * it happens.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/await.h"
#include "support/run_scene.h"

#define TIME_BYTES 64

static const char order[] =
	"{'workflow':'order','kind':'run','actions':{"
	"'reserve':{'kind':'http','url':'@/reserve','effect':'keyed'},"
	"'release':{'kind':'http','url':'@/release','effect':'keyed'},"
	"'send':{'kind':'http','url':'@/send','effect':'claimed'},"
	"'pack':{'kind':'worker','queue':'pack'},"
	"'pay':{'kind':'http','url':'@/pay','effect':'keyed'}},"
	"'steps':[{'name':'reserve','type':'task','action':'reserve','compensate':'release'},"
	"{'name':'how','type':'condition','when':'.input.how == \\'worker\\'','then':'pack','else':'other'},"
	"{'name':'pack','type':'task','action':'pack','retry':{'max_attempts':2,'initial':'1ms'}},"
	"{'name':'other','type':'condition','when':'.input.how == \\'claimed\\'','then':'send','else':'pay'},"
	"{'name':'send','type':'task','action':'send'},"
	"{'name':'pay','type':'task','action':'pay','retry':{'max_attempts':2,'initial':'1ms'}},"
	"{'name':'paid','type':'external_event','event':'payment'}]}";

enum { RESERVE, HOW, PACK, OTHER, SEND, PAY, PAID };

static void begin(struct scene *scene, const char *how, char id[64])
{
	char body[200];

	scene_define(scene, "order", order);
	scene_configure(scene, "{'lease':'2s'}");
	scene_start(scene, 0);
	snprintf(body, sizeof body, "{'definitionId':'order','input':{'how':'%s'}}", how);
	run_create_id(scene, body, id);
}

static const char *of_step(struct scene *scene, int step, const char *member)
{
	char path[64];

	snprintf(path, sizeof path, "steps.%d.%s", step, member);
	return reply_text(&scene->last, path);
}

/* The step that went wrong; its start, which is not before the end of what came before it, goes to ret_started. */
static void assert_step(struct scene *scene, int step, const char *status, int attempt, char ret_started[TIME_BYTES])
{
	char path[64];

	snprintf(path, sizeof path, "steps.%d.attempt", step);
	assert_string_equal(of_step(scene, step, "status"), status);
	assert_int_equal(reply_int(&scene->last, path), attempt);
	snprintf(ret_started, TIME_BYTES, "%s", of_step(scene, step, "startedAt"));
	assert_string_not_equal(ret_started, "null");
	assert_true(strcmp(ret_started, of_step(scene, RESERVE, "completedAt")) >= 0);
	assert_string_equal(of_step(scene, step, "completedAt"), "null");
}

static void assert_as_before(struct scene *scene, int step, const char *status, int attempt, const char *started)
{
	char again[TIME_BYTES];

	assert_step(scene, step, status, attempt, again);
	assert_string_equal(again, started);
}

/* Cancels the run, whose compensation fails for good: that is told of it, and of no other step. */
static void cancel_in_vain(struct scene *scene, const char *id)
{
	service_play(scene->service, "/release", &(struct play){.status = 400, .body = "\"never\""});
	run_do(scene, id, "cancel", "{}", 202, "");
	serve_await_log(scene->nodes[0], "a compensation has failed: it waits for a person to retry it", 1,
			RUN_ARRIVE_MS);
	run_show(scene, id);
	assert_string_equal(reply_text(&scene->last, "status"), "CANCELLING");
	assert_string_equal(reply_text(&scene->last, "error.step"), "reserve");
	assert_string_equal(of_step(scene, RESERVE, "status"), "COMPLETED");
	assert_string_equal(of_step(scene, RESERVE, "error.step"), "reserve");
}

static void undo_after_all(struct scene *scene, const char *id)
{
	service_play(scene->service, "/release", &(struct play){0});
	run_do(scene, id, "retry", "{}", 200, "");
	run_await(scene, id, "CANCELLED");
	assert_string_equal(of_step(scene, RESERVE, "error"), "null");
	assert_string_not_equal(of_step(scene, RESERVE, "compensatedAt"), "null");
}

static void test_a_step_that_waited_has_not_failed(void **state)
{
	struct scene *scene = *state;
	char id[64], started[TIME_BYTES];

	begin(scene, "http", id);
	run_await(scene, id, "WAITING");
	assert_step(scene, PAID, "WAITING", 1, started);
	cancel_in_vain(scene, id);
	assert_as_before(scene, PAID, "PENDING", 1, started);
	assert_string_equal(of_step(scene, PAID, "error"), "null");
	undo_after_all(scene, id);
	assert_as_before(scene, PAID, "PENDING", 1, started);
	assert_string_equal(reply_text(&scene->last, "error"), "null");
	scene_stop(scene, 0);
}

static void test_the_log_names_what_is_undone(void **state)
{
	struct scene *scene = *state;
	char id[64], log[300];

	begin(scene, "http", id);
	run_await(scene, id, "WAITING");
	cancel_in_vain(scene, id);
	snprintf(log, sizeof log, "%s/node-0.log", scene->dir);
	assert_int_equal(file_count(log, "outcome is unknown"), 0);
	assert_int_equal(file_count(log, "\"step\":\"reserve\""), 1);
	assert_int_equal(file_count(log, "\"step\":\"paid\""), 0);
	assert_int_equal(scene_metric(scene, 0, "hapax_runs_held_total"), 1);
	assert_int_equal(scene_metric(scene, 0, "hapax_unknown_outcomes_total"), 0);
	scene_stop(scene, 0);
}

static void test_a_failed_step_keeps_its_attempt_and_start(void **state)
{
	struct scene *scene = *state;
	char id[64], started[TIME_BYTES];

	service_play(scene->service, "/pay", &(struct play){.status = 503});
	begin(scene, "http", id);
	run_await(scene, id, "FAILED");
	assert_step(scene, PAY, "FAILED", 2, started);
	cancel_in_vain(scene, id);
	assert_as_before(scene, PAY, "FAILED", 2, started);
	assert_string_equal(of_step(scene, PAY, "error.step"), "pay");
	undo_after_all(scene, id);
	assert_as_before(scene, PAY, "FAILED", 2, started);
	assert_string_equal(reply_text(&scene->last, "error.step"), "pay");
	scene_stop(scene, 0);
}

/* Begun in the very move that ended the step before it, of which the row of the run says nothing. */
static void test_a_first_attempt_that_failed(void **state)
{
	struct scene *scene = *state;
	char id[64], started[TIME_BYTES];

	service_play(scene->service, "/pay", &(struct play){.status = 402, .delay_ms = 20});
	service_play(scene->service, "/reserve", &(struct play){.delay_ms = 20});
	begin(scene, "http", id);
	run_await(scene, id, "FAILED");
	assert_step(scene, PAY, "FAILED", 1, started);
	run_do(scene, id, "cancel", "{}", 202, "");
	run_await(scene, id, "CANCELLED");
	assert_as_before(scene, PAY, "FAILED", 1, started);
	scene_stop(scene, 0);
}

static void test_a_step_that_fails_after_the_cancel(void **state)
{
	struct scene *scene = *state;
	char id[64], started[TIME_BYTES];

	service_play(scene->service, "/pay", &(struct play){.status = 402, .hold = true});
	begin(scene, "http", id);
	service_await(scene->service, "/pay", 1, RUN_ARRIVE_MS);
	run_do(scene, id, "cancel", "{}", 202, "");
	service_release(scene->service);
	run_await(scene, id, "CANCELLED");
	assert_step(scene, PAY, "FAILED", 1, started);
	assert_string_equal(of_step(scene, PAY, "error.step"), "pay");
	scene_stop(scene, 0);
}

static void test_an_unknown_step_keeps_its_attempt_and_start(void **state)
{
	struct scene *scene = *state;
	char id[64], started[TIME_BYTES];

	service_play(scene->service, "/send", &(struct play){.how = PLAY_DROP});
	begin(scene, "claimed", id);
	serve_await_log(scene->nodes[0], "a step's outcome is unknown", 1, RUN_ARRIVE_MS);
	run_show(scene, id);
	assert_step(scene, SEND, "UNKNOWN", 1, started);
	cancel_in_vain(scene, id);
	assert_as_before(scene, SEND, "UNKNOWN", 1, started);
	undo_after_all(scene, id);
	assert_as_before(scene, SEND, "UNKNOWN", 1, started);
	scene_stop(scene, 0);
}

static void fail_job(struct scene *scene)
{
	char path[200], body[200];

	scene_must(scene, 0, "POST", "/api/v1/jobs/claim",
		   "{'queues':['pack'],'owner':'w','max':1,'leaseMs':20000,'waitMs':20000}", 200, NULL);
	snprintf(path, sizeof path, "/api/v1/jobs/%s/fail", reply_text(&scene->last, "jobs.0.id"));
	snprintf(body, sizeof body, "{'owner':'w','fence':%lld,'error':'broken'}",
		 (long long)reply_int(&scene->last, "jobs.0.fence"));
	scene_must(scene, 0, "POST", path, body, 200, NULL);
}

static void test_a_step_that_failed_at_a_worker(void **state)
{
	struct scene *scene = *state;
	char id[64], started[TIME_BYTES];

	begin(scene, "worker", id);
	fail_job(scene);
	fail_job(scene);
	run_await(scene, id, "FAILED");
	assert_step(scene, PACK, "FAILED", 2, started);
	cancel_in_vain(scene, id);
	assert_as_before(scene, PACK, "FAILED", 2, started);
	undo_after_all(scene, id);
	assert_as_before(scene, PACK, "FAILED", 2, started);
	scene_stop(scene, 0);
}

static void test_a_takeover_is_told_when_it_happens(void **state)
{
	struct scene *scene = *state;
	char id[64], log[300];

	service_play(scene->service, "/pay", &(struct play){.hold = true});
	begin(scene, "http", id);
	service_await(scene->service, "/pay", 1, RUN_ARRIVE_MS);
	scene_kill(scene, 0);
	scene_start(scene, 0);
	service_await(scene->service, "/pay", 2, RUN_ARRIVE_MS);
	serve_await_log(scene->nodes[0], "a run was taken over", 1, RUN_ARRIVE_MS);
	run_show(scene, id);
	assert_string_equal(reply_text(&scene->last, "status"), "RUNNING");
	snprintf(log, sizeof log, "%s/node-0.log", scene->dir);
	assert_int_equal(file_count(log, "\"step\":\"pay\""), 1);
	assert_int_equal(scene_metric(scene, 0, "hapax_runs_taken_over_total"), 1);
	service_release(scene->service);
	run_await(scene, id, "WAITING");
	scene_stop(scene, 0);
	assert_int_equal(file_count(log, "a run was taken over"), 1);
}

#define ON(store, test)                                                                                                \
	{                                                                                                              \
#test "_on_" #store, test, scene_set_up_##store, scene_tear_down, NULL                                 \
	}
#define ON_BOTH(test) ON(sqlite, test), ON(postgres, test)

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(test_a_step_that_waited_has_not_failed),
		ON(sqlite, test_the_log_names_what_is_undone),
		ON_BOTH(test_a_failed_step_keeps_its_attempt_and_start),
		ON_BOTH(test_a_first_attempt_that_failed),
		ON_BOTH(test_a_step_that_fails_after_the_cancel),
		ON_BOTH(test_an_unknown_step_keeps_its_attempt_and_start),
		ON_BOTH(test_a_step_that_failed_at_a_worker),
		ON_BOTH(test_a_takeover_is_told_when_it_happens),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
