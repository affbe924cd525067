/* Workers that push, claim and settle jobs over the API of a real server: what test_jobs.c and test_job_steps.c share. */
#ifndef HX_TESTS_HTTP_JOB_SCENE_H
#define HX_TESTS_HTTP_JOB_SCENE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/strbuf.h"
#include "flow/job_work.h"
#include "support/await.h"
#include "support/run_scene.h"

#define JOBS "/api/v1/jobs"

static const char order[] = "{'workflow':'order','kind':'run','actions':{"
			    "'reserve':{'kind':'worker','queue':'stock','effect':'keyed','max_in_flight':2},"
			    "'pay':{'kind':'worker','queue':'money','effect':'claimed'}},"
			    "'steps':[{'name':'reserve','type':'task','action':'reserve','input':'{sku: .input.sku}',"
			    "'save_as':'reservation','retry':{'max_attempts':3,'initial':'10ms','jitter':false}},"
			    "{'name':'pay','type':'task','action':'pay'}],"
			    "'output':'.state.reservation'}";

static const char billing[] =
	"{'workflow':'billing','kind':'entity','status_types':['open','paid'],'initial_status':'open',"
	"'actions':{'Mail':{'kind':'worker','queue':'mail','effect':'keyed'}},'steps':[{'step_id':1,"
	"'step_key':'pay','status':'open','successful_state':'paid','success_after_effect':['Mail']}]}";

static inline void begin(struct scene *scene)
{
	scene_define(scene, "order", order);
	scene_start(scene, 0);
}

struct claimed {
	char id[64];
	int64_t fence;
};

/* Claims one job, which must be there within the time; its reply is scene->last. */
static inline struct claimed claim(struct scene *scene, const char *queue, const char *owner, int lease_ms, int wait_ms)
{
	struct claimed got;
	char body[300];

	snprintf(body, sizeof body, "{'queues':['%s'],'owner':'%s','max':1,'leaseMs':%d,'waitMs':%d}", queue, owner,
		 lease_ms, wait_ms);
	scene_must(scene, 0, "POST", JOBS "/claim", body, 200, "");
	if (reply_count(&scene->last, "jobs") != 1)
		fail_msg("there was no job in %s: %s", queue, scene->last.body);
	snprintf(got.id, sizeof got.id, "%s", reply_text(&scene->last, "jobs.0.id"));
	got.fence = reply_int(&scene->last, "jobs.0.fence");
	return got;
}

/* As many as there are, up to 100. */
static inline size_t claim_all(struct scene *scene, const char *queue)
{
	char body[300];

	snprintf(body, sizeof body, "{'queues':['%s'],'owner':'w','max':100}", queue);
	scene_must(scene, 0, "POST", JOBS "/claim", body, 200, "");
	return reply_count(&scene->last, "jobs");
}

/* complete, fail, heartbeat; more: further members of the body, with a comma in front. */
static inline struct reply *settle(struct scene *scene, const struct claimed *job, const char *verb, const char *owner,
				   int64_t fence, const char *more, int status, const char *code)
{
	char path[200], body[500];

	snprintf(path, sizeof path, JOBS "/%s/%s", job->id, verb);
	snprintf(body, sizeof body, "{'owner':'%s','fence':%lld%s}", owner, (long long)fence, more);
	return scene_must(scene, 0, "POST", path, body, status, code);
}

static inline struct reply *show(struct scene *scene, const char *id)
{
	char path[200];

	snprintf(path, sizeof path, JOBS "/%s", id);
	return scene_must(scene, 0, "GET", path, NULL, 200, "");
}

static inline bool has_status(struct scene *scene, const char *id, const char *status)
{
	return strcmp(reply_text(show(scene, id), "status"), status) == 0;
}

static inline void push(struct scene *scene, const char *body, char ret_id[64])
{
	scene_must(scene, 0, "POST", JOBS, body, 201, "");
	snprintf(ret_id, 64, "%s", reply_text(&scene->last, "jobs.0.id"));
}

#define ON_SQLITE(test) cmocka_unit_test_setup_teardown(test, scene_set_up_sqlite, scene_tear_down)
#define ON_POSTGRES(test)                                                                                              \
	{                                                                                                              \
#test " on PostgreSQL", test, scene_set_up_postgres, scene_tear_down, NULL                             \
	}

#endif
