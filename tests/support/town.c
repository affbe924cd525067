/* See town.h. */
#include "support/town.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/id.h"
#include "base/strbuf.h"
#include "flow/batch_retention.h"
#include "flow/run.h"
#include "support/await.h"
#include "support/worker.h"

#define BATCHES "/api/v1/batches"
#define SOME_MS 120000
#define ITEMS 1100 /* three slices */

/* clang-format off */
static const char billing[] =
	"{'workflow':'billing','kind':'entity','status_types':['draft','approved','closing','closed'],'initial_status':'draft',"
	"'actions':{'Close':{'kind':'http','url':'@/close','effect':'claimed'},'Mail':{'kind':'http','url':'@/mail','effect':'keyed'}},"
	"'steps':[{'step_id':10,'step_key':'approve','status':'draft','successful_state':'approved'},"
	"{'step_id':20,'step_key':'close','status':'approved','successful_state':'closed','action':'Close',"
	"'success_after_effect':['Mail'],'claim_state':['closing','approved']}]}";
static const char paper[] =
	"{'workflow':'paper','kind':'entity','meta':{'table':'invoice','module':'billing'},"
	"'status_types':['approved','closing','closed'],'initial_status':'approved',"
	"'actions':{'Close':{'kind':'http','url':'@/close','effect':'claimed'}},"
	"'steps':[{'step_id':20,'step_key':'close','status':'approved','successful_state':'closed','action':'Close',"
	"'claim_state':['closing','approved']},"
	"{'step_id':30,'step_key':'open','status':'closed','successful_state':'approved'}]}";
static const char sale[] =
	"{'workflow':'sale','kind':'run','actions':{'Pay':{'kind':'http','url':'@/pay','effect':'keyed'},"
	"'Back':{'kind':'http','url':'@/back','effect':'keyed'},'Ship':{'kind':'worker','queue':'stock','effect':'keyed'}},"
	"'steps':[{'name':'pay','type':'task','action':'Pay','compensate':'Back'},"
	"{'name':'ship','type':'task','action':'Ship'}]}";
static const char visit[] =
	"{'workflow':'visit','kind':'run','actions':{'Pay':{'kind':'http','url':'@/pay','effect':'keyed'},"
	"'Back':{'kind':'http','url':'@/back','effect':'keyed'},'Fall':{'kind':'http','url':'@/fall','effect':'keyed'}},"
	"'steps':[{'name':'pay','type':'task','action':'Pay','compensate':'Back'},"
	"{'name':'arrived','type':'external_event','event':'arrived'},"
	"{'name':'fall','type':'task','action':'Fall','retry':{'max_attempts':1}}]}";
static const char render[] =
	"{'workflow':'render','kind':'batch','actions':{'One':{'kind':'http','url':'@/one','effect':'keyed'},"
	"'Delete':{'kind':'http','url':'@/delete','effect':'idempotent'}},'item_action':'One','cleanup_action':'Delete',"
	"'concurrency':16,'retry':{'max_attempts':3,'initial':'10ms','max':'20ms'}}";
/* clang-format on */

void town_define(struct scene *scene)
{
	scene_define(scene, "billing", billing);
	scene_define(scene, "paper", paper);
	scene_define(scene, "sale", sale);
	scene_define(scene, "visit", visit);
	scene_define(scene, "render", render);
	scene_configure(scene, "{'lease':'5s','modules':{'billing':{'janitor':{'every':'200ms','stuck_after':'5s'}}}}");
	scene_sql(scene,
		  "CREATE TABLE invoice (id INTEGER PRIMARY KEY, status TEXT NOT NULL, version INTEGER NOT NULL,"
		  " updated_at TEXT); INSERT INTO invoice VALUES (7, 'approved', 0, '')",
		  NULL, 0);
}

static int64_t number(struct scene *scene, const char *sql)
{
	char cell[64];

	scene_sql(scene, sql, cell, sizeof cell);
	return strtoll(cell, NULL, 10);
}

static int64_t id_of(const char *prefix, const char *text)
{
	int64_t id = 0;

	assert_true(id_parse(prefix, slice_str(text), &id));
	return id;
}

/* ---- entities ---- */

static void live_entities(struct scene *scene, struct town *town)
{
	static const char paper_step[] = "/api/v1/entities/paper/7/steps/";
	char path[100];

	for (int i = 0; i < 5; i++) {
		char id[16];

		snprintf(id, sizeof id, "e%d", i);
		scene_create(scene, id);
		scene_fire(scene, 0, id, "approve", 200, NULL);
	}
	service_play(scene->service, "/close", &(struct play){.status = 422, .body = "{\"error\":\"not yet\"}"});
	scene_must(scene, 0, "POST", "/api/v1/entities/billing/e0/steps/close", NULL, 422, NULL);
	service_play(scene->service, "/close", &(struct play){.status = 200});
	for (int i = 0; i < 4; i++) {
		snprintf(path, sizeof path, "%s%s", paper_step, i % 2 ? "open" : "close");
		scene_must(scene, 0, "POST", path, NULL, 200, NULL);
	}
	/* Others move it, too: it goes on from there. */
	scene_sql(scene, "UPDATE invoice SET status = 'closed', version = version + 40", NULL, 0);
	snprintf(path, sizeof path, "%sopen", paper_step);
	scene_must(scene, 0, "POST", path, NULL, 200, NULL);
	scene_fire(scene, 0, "e0", "close", 200, NULL);
	town->entity = number(scene, "SELECT subject FROM hx_entity WHERE name = 'e0'");
	town->paper = number(scene, "SELECT subject FROM hx_entity WHERE workflow = 'paper'");
}

/* ---- runs and jobs ---- */

static void work_off(struct scene *scene, const char *queue, const char *verb, const char *more)
{
	struct worker worker;

	worker_init(&worker, scene->nodes[0]->port, "ann", queue, 5000);
	assert_int_equal(worker_claim(&worker, 1, SOME_MS / 2), 1);
	assert_int_equal(worker_say(&worker, &worker.jobs[0], verb, more, NULL), 200);
	worker_release(&worker);
}

static int64_t live_sale(struct scene *scene)
{
	char id[64];

	run_create_id(scene, "{'definitionId':'sale'}", id);
	work_off(scene, "stock", "complete", ",\"output\":1");
	run_await(scene, id, "COMPLETED");
	return id_of("run", id);
}

static int64_t live_visit(struct scene *scene)
{
	char id[64];

	service_play(scene->service, "/fall", &(struct play){.status = 422, .body = "{}"});
	run_create_id(scene, "{'definitionId':'visit','idempotencyKey':'v'}", id);
	run_do(scene, id, "events/arrived", "{'id':'x'}", 202, NULL);
	run_await(scene, id, "FAILED");
	run_do(scene, id, "retry", NULL, 200, NULL);
	run_await(scene, id, "FAILED");
	run_do(scene, id, "cancel", NULL, 202, NULL);
	run_await(scene, id, "CANCELLED");
	return id_of("run", id);
}

/* What the first one has done passes on to the second, which undoes it. */
static void live_restart(struct scene *scene)
{
	char id[64], new[64];

	run_create_id(scene, "{'definitionId':'visit'}", id);
	run_do(scene, id, "events/arrived", "{'id':'x'}", 202, NULL);
	run_await(scene, id, "FAILED");
	run_do(scene, id, "restart", "{'from':'fall'}", 200, NULL);
	snprintf(new, sizeof new, "%s", reply_text(&scene->last, "id"));
	run_await(scene, new, "FAILED");
	run_do(scene, new, "cancel", NULL, 202, NULL);
	run_await(scene, new, "CANCELLED");
}

static void live_runs(struct scene *scene, struct town *town)
{
	char id[64];

	town->old_run = live_sale(scene);
	town->run = live_sale(scene);
	town->undone_run = live_visit(scene);
	live_restart(scene);
	run_create_id(scene, "{'definitionId':'visit'}", id);
	run_await(scene, id, "WAITING");
	town->run_job = number(scene, "SELECT max(subject) FROM hx_job WHERE run IS NOT NULL");
}

static void live_jobs(struct scene *scene, struct town *town)
{
	char path[100];

	scene_must(scene, 0, "POST", "/api/v1/jobs", "[{'queue':'mail','payload':{}}]", 201, NULL);
	town->job = id_of("job", reply_text(&scene->last, "jobs.0.id"));
	work_off(scene, "mail", "complete", "");
	scene_must(scene, 0, "POST", "/api/v1/jobs", "[{'queue':'mail','payload':{},'key':'k'}]", 201, NULL);
	snprintf(path, sizeof path, "/api/v1/jobs/%.40s/redrive", reply_text(&scene->last, "jobs.0.id"));
	work_off(scene, "mail", "fail", ",\"error\":\"no\",\"retryable\":false");
	scene_must(scene, 0, "POST", path, NULL, 200, NULL);
	work_off(scene, "mail", "fail", ",\"error\":\"no\",\"retryable\":true");
}

/* ---- batches ---- */

static int64_t order(struct scene *scene, const char *account, int items, int cost, const char *more)
{
	struct strbuf text;

	strbuf_init(&text, 1u << 20);
	strbuf_addf(&text, "{'workflow':'render','account':'%s'%s,'items':[", account, more);
	for (int i = 0; i < items; i++)
		strbuf_addf(&text, "%s{'cost':%d}", i ? "," : "", cost);
	strbuf_add_str(&text, "]}");
	assert_false(text.failed);
	scene_must(scene, 0, "POST", BATCHES, text.p, 201, NULL);
	strbuf_release(&text);
	return id_of("batch", reply_text(&scene->last, "id"));
}

static const char *path_of(int64_t batch, const char *verb)
{
	static char path[100];
	char id[ID_TEXT_BYTES];

	id_format("batch", batch, id);
	snprintf(path, sizeof path, BATCHES "/%s%s", id, verb);
	return path;
}

static bool is_at(struct scene *scene, int64_t batch, const char *status)
{
	return strcmp(reply_text(scene_must(scene, 0, "GET", path_of(batch, ""), NULL, 200, NULL), "status"), status) ==
	       0;
}

/* The first call of each item fails, or has no answer; of every seventh all fail. */
static int fail_first(void *context, const struct service_call *call, char *body, size_t bytes)
{
	const char *slash = strrchr(call->key, '/');
	int n = slash ? atoi(slash + 1) : 0;

	(void)context;
	snprintf(body, bytes, "{}");
	if (n % 7 == 0)
		return 503;
	return call->attempt > 1 ? 200 : n % 5 == 0 ? 0 : 503;
}

static void live_batches(struct scene *scene, struct town *town)
{
	int64_t poor;

	scene_must(scene, 0, "POST", "/api/v1/accounts", "{'id':'alice','balance':100000}", 201, NULL);
	scene_must(scene, 0, "POST", "/api/v1/accounts", "{'id':'bob','balance':5}", 201, NULL);
	scene_must(scene, 0, "POST", "/api/v1/accounts/alice/credit", "{'amount':50,'key':'k1'}", 200, NULL);
	town->account = number(scene, "SELECT subject FROM hx_account WHERE name = 'alice'");
	town->old_batch = order(scene, "alice", 3, 7, "");
	AWAIT(SOME_MS, is_at(scene, town->old_batch, "COMPLETED"));
	service_play(scene->service, "/one", &(struct play){.respond = fail_first, .unnoted = true});
	town->batch = order(scene, "alice", 20, 5, "");
	AWAIT(SOME_MS, is_at(scene, town->batch, "COMPLETED"));
	service_play(scene->service, "/one", &(struct play){.unnoted = true});
	scene_must(scene, 0, "POST", path_of(town->batch, "/items/1/accept"), NULL, 200, NULL);
	town->cancelled = order(scene, "alice", ITEMS, 3, "");
	AWAIT(SOME_MS, reply_int(scene_must(scene, 0, "GET", path_of(town->cancelled, ""), NULL, 200, NULL),
				 "succeeded") > ITEMS / 2 + 10);
	scene_must(scene, 0, "POST", path_of(town->cancelled, "/cancel"), NULL, 202, NULL);
	AWAIT(SOME_MS, is_at(scene, town->cancelled, "CANCELLED"));
	poor = order(scene, "bob", 3, 2, "");
	AWAIT(SOME_MS, is_at(scene, poor, "OUT_OF_CREDIT"));
	(void)order(scene, "bob", 2, 2, ",'hold':true");
}

/* ---- retention ---- */

static void run_unit(struct db *db, struct unit *unit)
{
	struct unit_result result;
	struct hx_error err = {0};
	struct arena arena;

	arena_init(&arena, 1u << 20);
	if (db_run_unit(db, unit, &result, &arena, &err) != HX_OK)
		fail_msg("%s", err.detail);
	assert_int_equal(result.verdict, UNIT_WON);
	arena_release(&arena);
}

/* As retention would, of these two alone. */
static void strip(struct scene *scene, const struct town *town)
{
	struct db *db = store_open(scene->store);
	struct unit unit;

	unit_init(&unit, 1);
	run_expire(&unit, town->old_run, /* age_ms= */ 0);
	run_unit(db, &unit);
	unit_init(&unit, 2);
	batch_expire(&unit, town->old_batch, town->account, /* age_ms= */ 0);
	run_unit(db, &unit);
	db_close(db);
}

static bool effects_are_done(struct scene *scene)
{
	return number(scene, "SELECT count(*) FROM hx_job j JOIN hx_subject s ON s.id = j.subject"
			     " WHERE j.queue = 'after-effects' AND s.status <> 'COMPLETED'") == 0;
}

void town_live(struct scene *scene, struct town *ret_town)
{
	*ret_town = (struct town){0};
	scene_start(scene, 0);
	live_entities(scene, ret_town);
	live_runs(scene, ret_town);
	live_jobs(scene, ret_town);
	live_batches(scene, ret_town);
	AWAIT(SOME_MS, effects_are_done(scene));
	scene_stop(scene, 0);
	strip(scene, ret_town);
}
