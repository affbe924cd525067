/* The reasons of jobs, for test_why.c: whoever has seen all reasons has seen these, too. */
#ifndef HX_TESTS_HTTP_WHY_JOBS_H
#define HX_TESTS_HTTP_WHY_JOBS_H

#include "http/why.h"

static const char order[] = "{'workflow':'order','kind':'run','actions':{"
			    "'reserve':{'kind':'worker','queue':'stock','effect':'keyed','max_in_flight':1}},"
			    "'steps':[{'name':'reserve','type':'task','action':'reserve'}]}";

static const char paper[] =
	"{'workflow':'billing','kind':'entity','status_types':['open','paid'],'initial_status':'open',"
	"'actions':{'Mail':{'kind':'http','url':'@/mail','effect':'keyed'}},'steps':[{'step_id':1,"
	"'step_key':'pay','status':'open','successful_state':'paid','success_after_effect':['Mail']}]}";

static void push(struct scene *scene, const char *body, char ret_id[64])
{
	scene_must(scene, 0, "POST", JOBS, body, 201, "");
	snprintf(ret_id, 64, "%s", reply_text(&scene->last, "jobs.0.id"));
}

/* Returns the fence; the id of the job goes to ret_id. */
static int64_t claim(struct scene *scene, const char *queue, char ret_id[64])
{
	char body[200];

	snprintf(body, sizeof body, "{'queues':['%s'],'owner':'w','max':1,'leaseMs':60000,'waitMs':20000}", queue);
	scene_must(scene, 0, "POST", JOBS "/claim", body, 200, "");
	assert_int_equal(reply_count(&scene->last, "jobs"), 1);
	snprintf(ret_id, 64, "%s", reply_text(&scene->last, "jobs.0.id"));
	return reply_int(&scene->last, "jobs.0.fence");
}

static void settle(struct scene *scene, const char *id, int64_t fence, const char *verb, const char *more)
{
	char path[200], body[300];

	snprintf(path, sizeof path, JOBS "/%s/%s", id, verb);
	snprintf(body, sizeof body, "{'owner':'w','fence':%lld%s}", (long long)fence, more);
	scene_must(scene, 0, "POST", path, body, 200, "");
}

static void test_jobs(void **state)
{
	struct scene *scene = *state;
	char id[64], later[64];
	int64_t fence;

	scene_start(scene, 0);
	push(scene, "{'queue':'q'}", id);
	because(scene, id, WHY_JOB_WORKER, "waits for a worker to claim from the queue \"q\"");
	fence = claim(scene, "q", id);
	because(scene, id, WHY_JOB_CLAIMED, "is under way: attempt 1 is with \"w\"" LASTS);
	settle(scene, id, fence, "fail", ",'error':'no\\nluck'");
	because(scene, id, WHY_JOB_RETRY, "waits for its time, " TIME "; attempt 1 did not succeed: no luck");
	fence = claim(scene, "q", id);
	settle(scene, id, fence, "fail", ",'error':'never','retryable':false");
	because(scene, id, WHY_JOB_PARKED, "is parked, and waits for a person to redrive it: never");
	push(scene, "{'queue':'q','runAt':'2099-01-01T00:00:00Z'}", later);
	because(scene, later, WHY_JOB_TIMER, "waits for its time, 2099-01-01T00:00:00.000Z");
	push(scene, "{'queue':'q'}", id);
	fence = claim(scene, "q", id);
	because_of_row(scene, "UPDATE hx_subject SET until = 1000 WHERE owner = 'w'", id, WHY_JOB_LAPSED,
		       "is under way: attempt 1 is with \"w\", whose lease was over at 1970-01-01T00:00:01.000Z: it "
		       "waits for the janitor");
	fence = claim(scene, "q", id); /* the janitor was there */
	settle(scene, id, fence, "complete", "");
	because(scene, id, WHY_JOB_COMPLETED, "waits for nothing: it is completed");
	scene_must(scene, 0, "GET", "/api/v1/why/job_0000000000001", NULL, 404, "NOT_FOUND");
	scene_stop(scene, 0);
}

/* The job of a run's step: the run says what its job waits for. */
static void test_jobs_of_runs(void **state)
{
	struct scene *scene = *state;
	char first[64], second[64], id[64], pattern[300];
	int64_t fence;

	scene_define(scene, "order", order);
	scene_start(scene, 0);
	run_create_id(scene, "{'definitionId':'order'}", first);
	because(scene, first, WHY_JOB_WORKER,
		"the step \"reserve\" is the job job_*, which waits for a worker to claim from the queue \"stock\"");
	fence = claim(scene, "stock", id);
	because(scene, first, WHY_JOB_CLAIMED,
		"the step \"reserve\" is the job job_*, which is under way: attempt 1 is with \"w\"" LASTS);
	run_create_id(scene, "{'definitionId':'order'}", second);
	because(scene, second, WHY_JOB_LIMIT,
		"the step \"reserve\" is the job job_*, which waits for a place: 1 job of the queue \"stock\" is "
		"running, and that is its limit");
	run_do(scene, first, "pause", "{}", 200, "");
	because(scene, first, WHY_JOB_CLAIMED,
		"the step \"reserve\" is the job job_*" LASTS
		"; the run is paused, and begins nothing else until a person resumes it");
	run_do(scene, first, "cancel", "{}", 202, "");
	because(scene, first, WHY_JOB_CLAIMED,
		"the step \"reserve\" is the job job_*" LASTS
		"; the run is being cancelled, and what is done is undone after that");
	settle(scene, id, fence, "complete", "");
	fence = claim(scene, "stock", id);
	settle(scene, id, fence, "fail", ",'error':'sold out','retryable':false");
	snprintf(pattern, sizeof pattern,
		 "waits for nothing: it is given up, and its run %s is what may be retried: sold out", second);
	because(scene, id, WHY_JOB_PARKED_OF_RUN, pattern);
	because(scene, second, WHY_RUN_FAILED,
		"has failed at the step \"reserve\", and waits for a person to retry or cancel it: sold out");
	scene_stop(scene, 0);
}

/* Lives in a table of the user's. */
static const char note[] =
	"{'workflow':'note','kind':'entity','meta':{'table':'note'},'status_types':['open','sent'],'initial_status':'open',"
	"'actions':{'Mail':{'kind':'http','url':'@/mail','effect':'keyed'}},'steps':[{'step_id':1,"
	"'step_key':'send','status':'open','successful_state':'sent','success_after_effect':['Mail']}]}";

/* The entity a has come to its end, and this job is what is left of it. */
static void because_of_effect(struct scene *scene, enum why_reason reason, const char *job, const char *how)
{
	char pattern[300];

	snprintf(pattern, sizeof pattern,
		 "waits for nothing: no step leads out of this status; its after-effect \"Mail\", the job %s, is %s",
		 job, how);
	because(scene, "entity:billing:a", reason, pattern);
}

static void move_job(struct scene *scene, int64_t from, int64_t to)
{
	char sql[300];

	snprintf(
		sql, sizeof sql,
		"UPDATE hx_job SET subject = %lld WHERE subject = %lld; UPDATE hx_subject SET id = %lld WHERE id = %lld",
		(long long)to, (long long)from, (long long)to, (long long)from);
	scene_sql(scene, sql, NULL, 0);
}

/* Both are due; the first is of the entity a. Ids that are near those of a's effects, and another lane's, are of others. */
static void assert_only_own_effects(struct scene *scene, int64_t job, int64_t other)
{
	int64_t op = job - 1, full = job / ID_COUNTER_N * ID_COUNTER_N;
	char id[ID_TEXT_BYTES], sql[300];

	id_format("job", job, id);
	move_job(scene, other, op + ID_CARRY + 1);
	because_of_effect(scene, WHY_ENTITY_EFFECTS, id, "still to be delivered");

	/* As if the ids had run over into the next millisecond between the op and the job's. */
	snprintf(sql, sizeof sql, "UPDATE hx_history SET op = %lld WHERE op = %lld", (long long)(full - ID_CARRY - 1),
		 (long long)op);
	scene_sql(scene, sql, NULL, 0);
	move_job(scene, job, full);
	move_job(scene, op + ID_CARRY + 1, full - ID_CARRY);
	id_format("job", full, id);
	because_of_effect(scene, WHY_ENTITY_EFFECTS, id, "still to be delivered");
}

static void test_after_effects(void **state)
{
	struct scene *scene = *state;
	char id[64], other[64], sql[100];
	int64_t job;

	service_play(scene->service, "/mail", &(struct play){.status = 403, .body = "\"full\""});
	scene_define(scene, "billing", paper);
	scene_define(scene, "note", note);
	scene_sql(
		scene,
		"CREATE TABLE note (id bigint PRIMARY KEY, status text NOT NULL, version bigint NOT NULL, updated_at text);"
		"INSERT INTO note VALUES (7, 'open', 1, NULL)",
		NULL, 0);
	scene_start(scene, 0);
	scene_create(scene, "a");
	scene_fire(scene, 0, "a", "pay", 200, NULL);
	scene_must(scene, 0, "GET", JOBS, NULL, 200, "");
	snprintf(id, sizeof id, "%s", reply_text(&scene->last, "items.0.id"));
	scene_create(scene, "b"); /* whose effects are not those of a */
	scene_fire(scene, 0, "b", "pay", 200, NULL);
	assert_true(id_parse("job", slice_str(id), &job));
	snprintf(sql, sizeof sql, "SELECT subject FROM hx_job WHERE subject <> %lld", (long long)job);
	scene_sql(scene, sql, other, sizeof other);
	because(scene, id, WHY_JOB_PARKED, "is parked, and waits for a person to redrive it: HTTP 403: \"full\"");
	because_of_effect(scene, WHY_ENTITY_PARKED, id, "parked, and waits for a person to redrive it");
	scene_must(scene, 0, "POST", "/api/v1/entities/note/7/steps/send", NULL, 200, "");
	because(scene, "entity:note:7", WHY_ENTITY_PARKED,
		"waits for nothing: no step leads out of this status; its after-effect \"Mail\", the job job_*, is "
		"parked, and waits for a person to redrive it");
	scene_sql(scene, "UPDATE hx_job SET due_at = NULL, ended_at = NULL, attempt = 0, error = NULL", NULL, 0);
	scene_sql(scene, "UPDATE hx_subject SET status = 'AVAILABLE' WHERE status = 'PARKED'", NULL, 0);
	because(scene, id, WHY_JOB_NODE, "is due, and waits for a node to deliver it");
	because_of_effect(scene, WHY_ENTITY_EFFECTS, id, "still to be delivered");
	assert_only_own_effects(scene, job, atoll(other));
	scene_sql(scene, "UPDATE hx_subject SET status = 'COMPLETED' WHERE status = 'AVAILABLE'", NULL, 0);
	because(scene, "entity:billing:a", WHY_ENTITY_END, "waits for nothing: no step leads out of this status");
	scene_stop(scene, 0);
}

#endif
