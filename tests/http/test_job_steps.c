/* Steps of runs, and after-effects, that workers carry out over the API of a real server. See test_jobs.c. */
#include "http/job_scene.h"

static void test_workers_carry_out_the_steps_of_a_run(void **state)
{
	struct scene *scene = *state;
	const struct reply *r = &scene->last;
	struct claimed job;
	char id[64], key[200], path[200];

	begin(scene);
	run_create_id(scene, "{'definitionId':'order','input':{'sku':9007199254740993}}", id);
	job = claim(scene, "stock", "w", 5000, 20000);
	assert_string_equal(reply_text(r, "jobs.0.payload.workflow"), "order");
	assert_string_equal(reply_text(r, "jobs.0.payload.id"), id);
	assert_string_equal(reply_text(r, "jobs.0.payload.step"), "reserve");
	assert_string_equal(reply_text(r, "jobs.0.payload.input.sku"), "9007199254740993");
	snprintf(key, sizeof key, "%s", reply_text(r, "jobs.0.idempotencyKey"));
	run_show(scene, id);
	assert_string_equal(reply_text(r, "status"), "RUNNING");
	assert_string_equal(reply_text(r, "steps.0.status"), "RUNNING");
	run_why(scene, id, "attempt 1 is with \"w\"");
	run_show(scene, id);
	assert_string_equal(reply_text(r, "job"), job.id);
	snprintf(path, sizeof path, "/api/v1/history/%s", job.id);
	scene_must(scene, 0, "GET", path, NULL, 200, "");
	assert_string_equal(reply_text(r, "items.0.worker"), "null");
	assert_string_equal(reply_text(r, "items.1.worker"), "w");
	/* It is tried again by the step's own policy, with the same key. */
	settle(scene, &job, "fail", "w", job.fence, ",'error':'not now'", 200, "");
	assert_string_equal(reply_text(r, "status"), "RETRYING");
	job = claim(scene, "stock", "w", 5000, 20000);
	assert_int_equal(reply_int(r, "jobs.0.attempt"), 2);
	assert_string_equal(reply_text(r, "jobs.0.idempotencyKey"), key);
	settle(scene, &job, "complete", "nobody", job.fence, ",'output':{'stolen':true}", 409, "STALE_FENCE");
	settle(scene, &job, "complete", "w", job.fence + 1, ",'output':{'stolen':true}", 409, "STALE_FENCE");
	settle(scene, &job, "complete", "w", job.fence, ",'output':{'shelf':1e400}", 200, "");
	settle(scene, &job, "complete", "w", job.fence, ",'output':{'twice':true}", 409, "STALE_FENCE");
	job = claim(scene, "money", "w", 5000, 20000);
	run_show(scene, id);
	assert_string_equal(reply_text(r, "steps.0.output.shelf"), "1e400");
	assert_string_equal(reply_text(r, "currentStep"), "pay");
	settle(scene, &job, "complete", "w", job.fence, "", 200, "");
	run_await(scene, id, "COMPLETED");
	assert_string_equal(reply_text(r, "output.shelf"), "1e400");
	/* Each task step raises the version by two, a worker's too. */
	assert_int_equal(reply_int(r, "version"), 5);
	assert_int_equal(reply_int(r, "steps.0.attempt"), 2);
	scene_must(scene, 0, "GET", JOBS "?queue=stock", NULL, 200, "");
	assert_string_equal(reply_text(r, "items.0.run"), id);
	scene_stop(scene, 0);
}

static void test_a_parked_job_fails_its_run(void **state)
{
	struct scene *scene = *state;
	struct claimed job;
	char id[64], path[200];

	begin(scene);
	run_create_id(scene, "{'definitionId':'order'}", id);
	job = claim(scene, "stock", "w", 5000, 20000);
	settle(scene, &job, "fail", "w", job.fence, ",'error':'sold out','retryable':false", 200, "");
	run_await(scene, id, "FAILED");
	assert_string_equal(reply_text(&scene->last, "steps.0.status"), "FAILED");
	run_why(scene, id, "sold out");
	/* It is the run that is tried again. */
	snprintf(path, sizeof path, JOBS "/%s/redrive", job.id);
	scene_must(scene, 0, "POST", path, NULL, 409, "WRONG_STATUS");
	run_do(scene, id, "retry", "{}", 200, "");
	job = claim(scene, "stock", "w", 5000, 20000);
	settle(scene, &job, "complete", "w", job.fence, "", 200, "");
	/* A cancel waits for the worker that is at it: what is done is known before anything is undone. */
	job = claim(scene, "money", "w", 30000, 20000);
	run_do(scene, id, "cancel", "{}", 202, "");
	settle(scene, &job, "complete", "w", job.fence, "", 200, "");
	run_await(scene, id, "CANCELLED");
	assert_string_equal(reply_text(&scene->last, "steps.1.status"), "COMPLETED");
	scene_stop(scene, 0);
}

/* An after-effect of kind worker is a job of that queue, made in the unit of its transition. */
static void test_workers_carry_out_after_effects(void **state)
{
	struct scene *scene = *state;
	struct claimed job;

	scene_define(scene, SCENE_WORKFLOW, billing);
	scene_start(scene, 0);
	scene_create(scene, "a");
	scene_fire(scene, 0, "a", "pay", 200, NULL);
	job = claim(scene, "mail", "w", 5000, 5000);
	assert_string_equal(reply_text(&scene->last, "jobs.0.payload.id"), "a");
	settle(scene, &job, "complete", "w", job.fence, "", 200, "");
	assert_int_equal(claim_all(scene, "mail"), 0);
	scene_stop(scene, 0);
}

static void test_no_more_in_flight_than_may_be(void **state)
{
	struct scene *scene = *state;
	struct claimed jobs[3];
	char ids[3][64];

	begin(scene);
	for (int i = 0; i < 3; i++)
		run_create_id(scene, "{'definitionId':'order'}", ids[i]);
	jobs[0] = claim(scene, "stock", "w", 30000, 20000);
	jobs[1] = claim(scene, "stock", "w", 30000, 20000);
	AWAIT(RUN_ARRIVE_MS, (scene_must(scene, 0, "GET", JOBS "?queue=stock", NULL, 200, ""),
			      reply_count(&scene->last, "items") == 3));
	assert_int_equal(claim_all(scene, "stock"), 0);
	scene_must(scene, 0, "GET", JOBS "?queue=stock&status=AVAILABLE", NULL, 200, "");
	run_why(scene, reply_text(&scene->last, "items.0.id"), "and that is its limit");
	settle(scene, &jobs[0], "complete", "w", jobs[0].fence, "", 200, "");
	jobs[2] = claim(scene, "stock", "w", 30000, 20000);
	assert_true(has_status(scene, jobs[2].id, "RUNNING"));
	scene_stop(scene, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_SQLITE(test_workers_carry_out_the_steps_of_a_run),   ON_SQLITE(test_a_parked_job_fails_its_run),
		ON_SQLITE(test_workers_carry_out_after_effects),        ON_SQLITE(test_no_more_in_flight_than_may_be),
		ON_POSTGRES(test_workers_carry_out_the_steps_of_a_run), ON_POSTGRES(test_no_more_in_flight_than_may_be),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
