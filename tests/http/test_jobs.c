/*
 * Jobs over the API of a real server: pushed, claimed by workers, kept, completed, failed; and that a worker whose claim has passed to
 * another changes nothing any more. Steps of runs that workers carry out: test_job_steps.c.
 */
#include "http/job_scene.h"

/* ---- push ---- */

static void test_push_and_work(void **state)
{
	struct scene *scene = *state;
	struct claimed job;
	char id[64];

	begin(scene);
	push(scene, "{'queue':'q','payload':{'n':9007199254740993,'x':1e400}}", id);
	assert_string_equal(reply_text(&scene->last, "jobs.0.created"), "true");
	show(scene, id);
	assert_string_equal(reply_text(&scene->last, "status"), "AVAILABLE");
	assert_string_equal(reply_text(&scene->last, "queue"), "q");
	run_why(scene, id, "waits for a worker to claim from the queue \"q\"");
	job = claim(scene, "q", "w-1", 5000, 0);
	assert_string_equal(job.id, id);
	assert_string_equal(reply_text(&scene->last, "jobs.0.queue"), "q");
	assert_string_equal(reply_text(&scene->last, "jobs.0.payload.n"), "9007199254740993");
	assert_string_equal(reply_text(&scene->last, "jobs.0.payload.x"), "1e400");
	assert_int_equal(reply_int(&scene->last, "jobs.0.attempt"), 1);
	assert_true(strlen(reply_text(&scene->last, "jobs.0.idempotencyKey")) > 0);
	assert_true(strlen(reply_text(&scene->last, "jobs.0.leaseUntil")) > 0);
	show(scene, id);
	assert_string_equal(reply_text(&scene->last, "status"), "RUNNING");
	assert_string_equal(reply_text(&scene->last, "owner"), "w-1");
	run_why(scene, id, "attempt 1 is with \"w-1\"");
	assert_int_equal(claim_all(scene, "q"), 0);
	settle(scene, &job, "complete", "w-1", job.fence, ",'output':{'ok':1e400}", 200, "");
	assert_string_equal(reply_text(&scene->last, "status"), "COMPLETED");
	show(scene, id);
	assert_string_equal(reply_text(&scene->last, "output.ok"), "1e400");
	assert_string_equal(reply_text(&scene->last, "owner"), "null");
	run_why(scene, id, "waits for nothing: it is completed");
	settle(scene, &job, "complete", "w-1", job.fence, "", 409, "STALE_FENCE");
	scene_stop(scene, 0);
}

static void test_push_many_in_their_order(void **state)
{
	struct scene *scene = *state;
	const struct reply *r = &scene->last;
	char first[64];

	begin(scene);
	scene_must(
		scene, 0, "POST", JOBS,
		"[{'queue':'q','payload':'low','priority':-1},{'queue':'q','payload':'high','priority':10},"
		"{'queue':'q','payload':'plain','key':'k'},{'queue':'q','payload':'later','runAt':'2199-01-01T00:00:00Z'}]",
		201, "");
	assert_int_equal(reply_count(r, "jobs"), 4);
	snprintf(first, sizeof first, "%s", reply_text(r, "jobs.2.id"));
	/* A key that the queue has seen is the job that is there; in another queue it is another. */
	scene_must(scene, 0, "POST", JOBS,
		   "[{'queue':'q','key':'k','payload':'other'},{'queue':'r','key':'k'},{'queue':'r','key':'k'}]", 201,
		   "");
	assert_string_equal(reply_text(r, "jobs.0.created"), "false");
	assert_string_equal(reply_text(r, "jobs.0.id"), first);
	assert_string_equal(reply_text(r, "jobs.1.created"), "true");
	assert_string_equal(reply_text(r, "jobs.2.created"), "false");
	assert_string_equal(reply_text(r, "jobs.2.id"), reply_text(r, "jobs.1.id"));
	scene_must(scene, 0, "POST", JOBS "/claim", "{'queues':['q'],'owner':'w','max':100}", 200, "");
	assert_int_equal(reply_count(r, "jobs"), 3);
	assert_string_equal(reply_text(r, "jobs.0.payload"), "high");
	assert_string_equal(reply_text(r, "jobs.1.payload"), "plain");
	assert_string_equal(reply_text(r, "jobs.2.payload"), "low");
	scene_must(scene, 0, "GET", JOBS "?queue=q&status=AVAILABLE", NULL, 200, "");
	assert_int_equal(reply_count(r, "items"), 1);
	assert_string_equal(reply_text(r, "items.0.runAt"), "2199-01-01T00:00:00.000Z");
	run_why(scene, reply_text(r, "items.0.id"), "waits for its time, 2199-01-01T00:00:00.000Z");
	scene_must(scene, 0, "GET", JOBS "?queue=q", NULL, 200, "");
	assert_int_equal(reply_count(r, "items"), 4);
	scene_must(scene, 0, "GET", JOBS "?limit=3", NULL, 200, "");
	assert_int_equal(reply_count(r, "items"), 3);
	assert_string_not_equal(reply_text(r, "cursor"), "null");
	scene_stop(scene, 0);
}

static void test_requests_that_are_refused(void **state)
{
	static const struct {
		const char *path, *body;
		int status;
		const char *code;
	} cases[] = {
		{JOBS, "", 400, "VALIDATION_ERROR"},
		{JOBS, "[]", 400, "VALIDATION_ERROR"},
		{JOBS, "7", 400, "VALIDATION_ERROR"},
		{JOBS, "[7]", 400, "VALIDATION_ERROR"},
		{JOBS, "{}", 400, "VALIDATION_ERROR"},
		{JOBS, "{'queue':''}", 400, "VALIDATION_ERROR"},
		{JOBS, "{'queue':7}", 400, "VALIDATION_ERROR"},
		{JOBS, "{'queue':'after-effects'}", 400, "VALIDATION_ERROR"},
		{JOBS, "{'queue':'q','key':''}", 400, "VALIDATION_ERROR"},
		{JOBS, "{'queue':'q','key':null}", 400, "VALIDATION_ERROR"},
		{JOBS, "{'queue':'q','priority':1001}", 400, "VALIDATION_ERROR"},
		{JOBS, "{'queue':'q','priority':0.5}", 400, "VALIDATION_ERROR"},
		{JOBS, "{'queue':'q','runAt':'tomorrow'}", 400, "VALIDATION_ERROR"},
		{JOBS, "{'queue':'q','delay':'1s'}", 400, "VALIDATION_ERROR"},
		{JOBS, "[{'queue':'q'},{'queue':'q','nonsense':1}]", 400, "VALIDATION_ERROR"},
		{JOBS "/claim", "{}", 400, "VALIDATION_ERROR"},
		{JOBS "/claim", "{'queues':[],'owner':'w'}", 400, "VALIDATION_ERROR"},
		{JOBS "/claim", "{'queues':['q']}", 400, "VALIDATION_ERROR"},
		{JOBS "/claim", "{'queues':['after-effects'],'owner':'w'}", 400, "VALIDATION_ERROR"},
		{JOBS "/claim", "{'queues':['q'],'owner':'w','max':0}", 400, "VALIDATION_ERROR"},
		{JOBS "/claim", "{'queues':['q'],'owner':'w','max':101}", 400, "VALIDATION_ERROR"},
		{JOBS "/claim", "{'queues':['q'],'owner':'w','leaseMs':1}", 400, "VALIDATION_ERROR"},
		{JOBS "/claim", "{'queues':['q'],'owner':'w','waitMs':60001}", 400, "VALIDATION_ERROR"},
		{JOBS "/job_0000000000001/complete", "{'owner':'w','fence':1}", 404, "NOT_FOUND"},
		{JOBS "/job_0000000000001/fail", "{'owner':'w','fence':1,'error':'x'}", 404, "NOT_FOUND"},
		{JOBS "/job_0000000000001/heartbeat", "{'owner':'w','fence':1}", 404, "NOT_FOUND"},
		{JOBS "/job_0000000000001/redrive", "{}", 404, "NOT_FOUND"},
		{JOBS "/nothing/redrive", "{}", 404, "NOT_FOUND"},
		{JOBS "/job_0000000000001/complete", "{'owner':'w'}", 400, "VALIDATION_ERROR"},
		{JOBS "/job_0000000000001/complete", "{'fence':1}", 400, "VALIDATION_ERROR"},
		{JOBS "/job_0000000000001/fail", "{'owner':'w','fence':1}", 400, "VALIDATION_ERROR"},
		{JOBS "/job_0000000000001/fail", "{'owner':'w','fence':1,'error':'x','retryable':1}", 400,
		 "VALIDATION_ERROR"},
	};
	struct scene *scene = *state;

	begin(scene);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		scene_must(scene, 0, "POST", cases[i].path, cases[i].body, cases[i].status, cases[i].code);
	scene_must(scene, 0, "GET", JOBS "/job_0000000000001", NULL, 404, "NOT_FOUND");
	scene_must(scene, 0, "GET", JOBS, NULL, 200, "");
	assert_int_equal(reply_count(&scene->last, "items"), 0);
	scene_stop(scene, 0);
}

/* {"queue":"q"}, so often. */
static char *many(size_t n)
{
	size_t size = n * 16 + 10, at = 0;
	char *body = malloc(size);

	for (size_t i = 0; i < n; i++)
		at += (size_t)snprintf(body + at, size - at, "%c{'queue':'q'}", i ? ',' : '[');
	snprintf(body + at, size - at, "]");
	return body;
}

/* At each limit, and one past it. */
static void test_limits(void **state)
{
	enum { PAYLOAD = 1 << 20 };
	struct scene *scene = *state;
	static char body[PAYLOAD + 100];
	char *jobs;

	begin(scene);
	for (int past = 0; past < 2; past++) {
		jobs = many(1000 + (size_t)past);
		scene_must(scene, 0, "POST", JOBS, jobs, past ? 400 : 201, past ? "VALIDATION_ERROR" : "");
		free(jobs);
		snprintf(body, sizeof body, "{'queue':'large','payload':'%0*d'}", PAYLOAD - 2 + past, 0);
		scene_must(scene, 0, "POST", JOBS, body, past ? 413 : 201, past ? "TOO_LARGE" : "");
		snprintf(body, sizeof body, "{'queues':['q'],'owner':'%0*d'}", 128 + past, 0);
		scene_must(scene, 0, "POST", JOBS "/claim", body, past ? 400 : 200, past ? "VALIDATION_ERROR" : "");
		snprintf(body, sizeof body,
			 "{'queues':['q','q','q','q','q','q','q','q','q','q','q','q','q','q','q','q'%s],'owner':'w'}",
			 past ? ",'q'" : "");
		scene_must(scene, 0, "POST", JOBS "/claim", body, past ? 400 : 200, past ? "VALIDATION_ERROR" : "");
	}
	assert_int_equal(claim_all(scene, "q"), 100);
	assert_int_equal(claim_all(scene, "large"), 1);
	scene_stop(scene, 0);
}

static void test_jobs_of_another_workspace_are_not_there(void **state)
{
	static const char body[] = "{\"queues\":[\"q\"],\"owner\":\"w\"}";
	struct scene *scene = *state;
	char id[64], path[200];

	begin(scene);
	push(scene, "{'queue':'q'}", id);
	reply_release(&scene->last);
	assert_true(client_call_with(scene->admin[0], "POST", JOBS "/claim", "Hapax-Workspace: other\r\n", body,
				     sizeof body - 1, &scene->last));
	assert_int_equal(reply_count(&scene->last, "jobs"), 0);
	snprintf(path, sizeof path, JOBS "/%s", id);
	reply_release(&scene->last);
	assert_true(client_call_with(scene->admin[0], "GET", path, "Hapax-Workspace: other\r\n", "", 0, &scene->last));
	assert_string_equal(scene->last.code, "NOT_FOUND");
	snprintf(path, sizeof path, JOBS "/%s/redrive", id);
	reply_release(&scene->last);
	assert_true(client_call_with(scene->admin[0], "POST", path, "Hapax-Workspace: other\r\n", "", 0, &scene->last));
	assert_string_equal(scene->last.code, "NOT_FOUND");
	scene_stop(scene, 0);
}

/* ---- claim ---- */

/* A worker comes to this queue, waits, and gets the job that is then made for it: how long all that takes. */
static int64_t pick_up_ms(struct scene *scene, const char *queue, void (*make)(struct scene *scene))
{
	int64_t came_at = await_now_ms(), took_ms;
	struct run_call *waiting;
	struct claimed job;
	char body[100];

	snprintf(body, sizeof body, "{'queues':['p','%s'],'owner':'w','waitMs':30000}", queue);
	waiting = run_call_start(scene, "POST", JOBS "/claim", "", body);
	/* It has come in, and found nothing. */
	AWAIT(RUN_ARRIVE_MS, scene_metric(scene, 0, "hapax_job_waiters") == 1);
	make(scene);
	run_call_join(waiting, 200);
	took_ms = await_now_ms() - came_at;
	assert_string_equal(reply_text(&waiting->reply, "jobs.0.queue"), queue);
	snprintf(job.id, sizeof job.id, "%s", reply_text(&waiting->reply, "jobs.0.id"));
	job.fence = reply_int(&waiting->reply, "jobs.0.fence");
	run_call_free(waiting);
	settle(scene, &job, "complete", "w", job.fence, "", 200, "");
	AWAIT(RUN_ARRIVE_MS, scene_metric(scene, 0, "hapax_job_waiters") == 0);
	return took_ms;
}

/* Its next look at the store is after JOB_WORK_POLL_MS: whoever has its job before that was woken. A busy machine may be slow. */
static void assert_woken(struct scene *scene, const char *queue, void (*make)(struct scene *scene))
{
	int64_t took_ms;
	int tries = 0;

	do
		took_ms = pick_up_ms(scene, queue, make);
	while (took_ms >= JOB_WORK_POLL_MS && ++tries < 5);
	assert_true(took_ms < JOB_WORK_POLL_MS);
}

static void push_one(struct scene *scene)
{
	char id[64];

	push(scene, "{'queue':'q'}", id);
}

static void test_a_claim_waits_for_a_job(void **state)
{
	struct scene *scene = *state;

	begin(scene);
	scene_must(scene, 0, "POST", JOBS "/claim", "{'queues':['q'],'owner':'w','waitMs':200}", 200, "");
	assert_int_equal(reply_count(&scene->last, "jobs"), 0);
	assert_true(scene->last.took_ms >= 190);
	assert_woken(scene, "q", push_one);
	scene_stop(scene, 0);
}

static void run_one(struct scene *scene)
{
	char id[64];

	run_create_id(scene, "{'definitionId':'order','input':{'sku':1}}", id);
}

static void fire_one(struct scene *scene)
{
	static int n;
	char id[20];

	snprintf(id, sizeof id, "e%d", n++);
	scene_create(scene, id);
	scene_fire(scene, 0, id, "pay", 200, NULL);
}

/* Whatever makes a job for workers. (The after-effects of a batch are never theirs.) */
static void test_a_claim_waits_for_steps_and_after_effects(void **state)
{
	struct scene *scene = *state;

	scene_define(scene, SCENE_WORKFLOW, billing);
	begin(scene);
	assert_woken(scene, "stock", run_one);
	assert_woken(scene, "mail", fire_one);
	scene_stop(scene, 0);
}

/* What a client does not hear of is not claimed for it. */
static void test_nothing_is_claimed_for_who_has_gone(void **state)
{
	struct scene *scene = *state;
	char id[64];
	int fd;

	begin(scene);
	fd = run_knock(scene, "POST", JOBS "/claim", "{'queues':['q'],'owner':'w','waitMs':60000}");
	AWAIT(RUN_ARRIVE_MS, scene_metric(scene, 0, "hapax_job_waiters") == 1);
	close(fd);
	AWAIT(RUN_ARRIVE_MS, scene_metric(scene, 0, "hapax_job_waiters") == 0);
	push(scene, "{'queue':'q'}", id);
	show(scene, id);
	assert_string_equal(reply_text(&scene->last, "status"), "AVAILABLE");
	scene_stop(scene, 0);
}

static void test_every_job_goes_to_one_worker(void **state)
{
	struct scene *scene = *state;
	struct run_call *calls[20];
	size_t n = 0;

	begin(scene);
	scene_must(scene, 0, "POST", JOBS, "[{'queue':'q'},{'queue':'q'},{'queue':'q'},{'queue':'q'},{'queue':'q'}]",
		   201, "");
	for (int i = 0; i < 20; i++)
		calls[i] = run_call_start(scene, "POST", JOBS "/claim", "", "{'queues':['q'],'owner':'w','max':2}");
	for (int i = 0; i < 20; i++) {
		run_call_join(calls[i], 200);
		n += reply_count(&calls[i]->reply, "jobs");
		run_call_free(calls[i]);
	}
	assert_int_equal(n, 5);
	assert_int_equal(claim_all(scene, "q"), 0);
	scene_stop(scene, 0);
}

/* ---- keep, lose ---- */

static void test_a_worker_that_was_too_late_changes_nothing(void **state)
{
	struct scene *scene = *state;
	struct claimed late, other;
	char id[64];

	begin(scene);
	push(scene, "{'queue':'q'}", id);
	late = claim(scene, "q", "late", 200, 0);
	/* Its time passes, and the job passes to another, with a higher fence. */
	other = claim(scene, "q", "other", 30000, 20000);
	assert_string_equal(other.id, id);
	assert_true(other.fence > late.fence);
	assert_int_equal(reply_int(&scene->last, "jobs.0.attempt"), 2);
	settle(scene, &late, "complete", "late", late.fence, ",'output':1", 409, "STALE_FENCE");
	settle(scene, &late, "fail", "late", late.fence, ",'error':'x'", 409, "STALE_FENCE");
	settle(scene, &late, "heartbeat", "late", late.fence, "", 409, "STALE_FENCE");
	/* Neither with the other's fence, nor in its name. */
	settle(scene, &late, "complete", "late", other.fence, "", 409, "STALE_FENCE");
	settle(scene, &late, "complete", "other", late.fence, "", 409, "STALE_FENCE");
	show(scene, id);
	assert_string_equal(reply_text(&scene->last, "status"), "RUNNING");
	assert_string_equal(reply_text(&scene->last, "owner"), "other");
	assert_string_equal(reply_text(&scene->last, "output"), "null");
	settle(scene, &other, "heartbeat", "other", other.fence, ",'leaseMs':60000", 200, "");
	assert_true(strlen(reply_text(&scene->last, "leaseUntil")) > 0);
	settle(scene, &other, "complete", "other", other.fence, ",'output':2", 200, "");
	assert_string_equal(reply_text(show(scene, id), "output"), "2");
	scene_stop(scene, 0);
}

static void test_fail_retry_park_redrive(void **state)
{
	struct scene *scene = *state;
	struct claimed job;
	char id[64], path[200];

	begin(scene);
	push(scene, "{'queue':'q'}", id);
	job = claim(scene, "q", "w", 5000, 0);
	settle(scene, &job, "fail", "w", job.fence, ",'error':'no luck'", 200, "");
	assert_string_equal(reply_text(&scene->last, "status"), "RETRYING");
	show(scene, id);
	assert_string_equal(reply_text(&scene->last, "error"), "no luck");
	assert_string_not_equal(reply_text(&scene->last, "runAt"), "null");
	run_why(scene, id, "attempt 1 did not succeed: no luck");
	job = claim(scene, "q", "w", 5000, 20000);
	assert_int_equal(reply_int(&scene->last, "jobs.0.attempt"), 2);
	settle(scene, &job, "fail", "w", job.fence, ",'error':'never','retryable':false", 200, "");
	assert_string_equal(reply_text(&scene->last, "status"), "PARKED");
	run_why(scene, id, "is parked, and waits for a person to redrive it: never");
	scene_must(scene, 0, "GET", JOBS "?status=PARKED", NULL, 200, "");
	assert_int_equal(reply_count(&scene->last, "items"), 1);
	snprintf(path, sizeof path, JOBS "/%s/redrive", id);
	run_keyed(scene, "POST", path, "r", "", 200, "created");
	run_keyed(scene, "POST", path, "r", "", 200, "replayed");
	scene_must(scene, 0, "POST", path, NULL, 409, "WRONG_STATUS");
	job = claim(scene, "q", "w", 5000, 5000);
	assert_int_equal(reply_int(&scene->last, "jobs.0.attempt"), 1);
	settle(scene, &job, "complete", "w", job.fence, "", 200, "");
	snprintf(path, sizeof path, "/api/v1/history/%s", id);
	scene_must(scene, 0, "GET", path, NULL, 200, "");
	assert_string_equal(reply_text(&scene->last, "items.0.to"), "AVAILABLE");
	assert_true(reply_count(&scene->last, "items") >= 7);
	scene_stop(scene, 0);
}

/* ---- Idempotency-Key ---- */

static void test_the_header_replays(void **state)
{
	struct scene *scene = *state;
	char *first, id[64], path[200];
	struct claimed job;

	begin(scene);
	run_keyed(scene, "POST", JOBS, "p", "{'queue':'q'}", 201, "created");
	first = strdup(scene->last.body);
	snprintf(id, sizeof id, "%s", reply_text(&scene->last, "jobs.0.id"));
	run_keyed(scene, "POST", JOBS, "p", "{'queue':'q'}", 201, "replayed");
	assert_string_equal(scene->last.body, first);
	free(first);
	scene_must(scene, 0, "GET", JOBS, NULL, 200, "");
	assert_int_equal(reply_count(&scene->last, "items"), 1);
	/* The same claim again is the same jobs. */
	run_keyed(scene, "POST", JOBS "/claim", "c", "{'queues':['q'],'owner':'w'}", 200, "created");
	snprintf(job.id, sizeof job.id, "%s", reply_text(&scene->last, "jobs.0.id"));
	job.fence = reply_int(&scene->last, "jobs.0.fence");
	run_keyed(scene, "POST", JOBS "/claim", "c", "{'queues':['q'],'owner':'w'}", 200, "replayed");
	assert_string_equal(reply_text(&scene->last, "jobs.0.id"), job.id);
	snprintf(path, sizeof path, JOBS "/%s/complete", job.id);
	run_keyed(scene, "POST", path, "d", run_path("{'owner':'w','fence':%d}", (int)job.fence), 200, "created");
	run_keyed(scene, "POST", path, "d", run_path("{'owner':'w','fence':%d}", (int)job.fence), 200, "replayed");
	scene_stop(scene, 0);
}

/* A page by status looks at 10,000 jobs: what is after them is on the next one, and a page without any has a cursor. */
static void test_a_page_by_status_ends_with_its_slice(void **state)
{
	enum { PUSHED = 1000 };
	struct scene *scene = *state;
	struct claimed last;
	struct strbuf body;
	char path[200];

	scene_start(scene, 0);
	strbuf_init(&body, 1u << 20);
	for (int i = 0; i < PUSHED; i++)
		strbuf_addf(&body, "%s{'queue':'many'}", i ? "," : "[");
	strbuf_add(&body, "]", 2);
	for (int i = 0; i < 10; i++)
		scene_must(scene, 0, "POST", JOBS, body.p, 201, "");
	strbuf_release(&body);
	push(scene, "{'queue':'last'}", last.id);
	last = claim(scene, "last", "w", 60000, 0);
	scene_must(scene, 0, "GET", JOBS "?status=RUNNING", NULL, 200, "");
	assert_int_equal(reply_count(&scene->last, "items"), 0);
	snprintf(path, sizeof path, JOBS "?status=RUNNING&cursor=%s", reply_text(&scene->last, "cursor"));
	scene_must(scene, 0, "GET", path, NULL, 200, "");
	assert_int_equal(reply_count(&scene->last, "items"), 1);
	assert_string_equal(reply_text(&scene->last, "items.0.id"), last.id);
	assert_string_equal(reply_text(&scene->last, "cursor"), "null");
	/* Of its queue alone there are few, and those that failed have an index. */
	scene_must(scene, 0, "GET", JOBS "?status=RUNNING&queue=last", NULL, 200, "");
	assert_int_equal(reply_count(&scene->last, "items"), 1);
	snprintf(path, sizeof path, JOBS "/%s/fail", last.id);
	scene_must(scene, 0, "POST", path,
		   run_path("{'owner':'w','fence':%d,'error':'no','retryable':false}", (int)last.fence), 200, "");
	scene_must(scene, 0, "GET", JOBS "?status=PARKED", NULL, 200, "");
	assert_int_equal(reply_count(&scene->last, "items"), 1);
	scene_stop(scene, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_SQLITE(test_push_and_work),
		ON_SQLITE(test_push_many_in_their_order),
		ON_SQLITE(test_requests_that_are_refused),
		ON_SQLITE(test_limits),
		ON_SQLITE(test_jobs_of_another_workspace_are_not_there),
		ON_SQLITE(test_a_claim_waits_for_a_job),
		ON_SQLITE(test_a_claim_waits_for_steps_and_after_effects),
		ON_SQLITE(test_nothing_is_claimed_for_who_has_gone),
		ON_SQLITE(test_every_job_goes_to_one_worker),
		ON_SQLITE(test_a_worker_that_was_too_late_changes_nothing),
		ON_SQLITE(test_fail_retry_park_redrive),
		ON_SQLITE(test_the_header_replays),
		ON_SQLITE(test_a_page_by_status_ends_with_its_slice),
		ON_POSTGRES(test_a_page_by_status_ends_with_its_slice),
		ON_POSTGRES(test_push_many_in_their_order),
		ON_POSTGRES(test_a_claim_waits_for_a_job),
		ON_POSTGRES(test_a_claim_waits_for_steps_and_after_effects),
		ON_POSTGRES(test_every_job_goes_to_one_worker),
		ON_POSTGRES(test_a_worker_that_was_too_late_changes_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
