/* See run_load.h. */
#include "support/run_load.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "base/id.h"
#include "base/json.h"
#include "base/json_number.h"
#include "base/json_walk.h"
#include "support/audit.h"
#include "support/await.h"

#define CREATORS 4
#define POLL_PAUSE_MS 5
#define RUNS "/api/v1/workflow-runs"

static const char *const step_names[RUN_LOAD_STEPS] = {"a", "b", "c", "d", "e"};

static const char definition[] =
	"{'workflow':'load','kind':'run','actions':{"
	"'A':{'kind':'http','url':'@/a','effect':'keyed'},'B':{'kind':'http','url':'@/b','effect':'keyed'},"
	"'C':{'kind':'http','url':'@/c','effect':'keyed'},'D':{'kind':'http','url':'@/d','effect':'keyed'},"
	"'E':{'kind':'http','url':'@/e','effect':'keyed'}},'steps':["
	"{'name':'a','type':'task','action':'A','retry':{'max_attempts':1000,'initial':'100ms','max':'1s'}},"
	"{'name':'b','type':'task','action':'B','retry':{'max_attempts':1000,'initial':'100ms','max':'1s'}},"
	"{'name':'c','type':'task','action':'C','retry':{'max_attempts':1000,'initial':'100ms','max':'1s'}},"
	"{'name':'d','type':'task','action':'D','retry':{'max_attempts':1000,'initial':'100ms','max':'1s'}},"
	"{'name':'e','type':'task','action':'E','retry':{'max_attempts':1000,'initial':'100ms','max':'1s'},"
	"'save_as':'last'}],'output':'{last: .state.last.receipt}'}";

/* One run: its slot is written by the creator that makes it, and then only read. */
struct loaded {
	char id[ID_TEXT_BYTES];
	_Atomic bool acknowledged;
	/* What the poller has seen of it. */
	int64_t version;
	bool completed;
};

struct creator {
	struct run_load *load;
	size_t i;
	pthread_t thread;
	size_t tries;
};

struct run_load {
	struct fleet *fleet;
	struct effects *effects;
	size_t runs_n;
	int64_t from_ms, over_ms;
	struct loaded *runs;
	_Atomic bool stops; /* the poller; and the creators, when the test has failed */
	struct creator creators[CREATORS];
	bool creating, polling; /* their threads are there */
	pthread_t poller;
	size_t polls;
	pthread_mutex_t mutex;
	char wrong[1000]; /* under the mutex: the first thing that a thread saw go wrong; empty: nothing */
};

void run_load_define(struct scene *scene, struct effects *effects)
{
	/* How long each step takes. The effect is there at the beginning of it, so a kill leaves it in doubt. */
	static const int64_t delays_ms[RUN_LOAD_STEPS] = {0, 20, 50, 100, 200};
	char path[8], config[100];

	scene_define(scene, "load", definition);
	snprintf(config, sizeof config, "{'lease':'%dms'}", RUN_LOAD_LEASE_MS);
	scene_configure(scene, config);
	for (size_t i = 0; i < RUN_LOAD_STEPS; i++) {
		snprintf(path, sizeof path, "/%s", step_names[i]);
		service_play(scene->service, path,
			     &(struct play){.apply = effects_apply, .context = effects, .delay_ms = delays_ms[i]});
	}
}

/* ---- in threads ---- */

static void note_wrong(struct run_load *load, const char *what, size_t i, const struct reply *reply)
{
	pthread_mutex_lock(&load->mutex);
	if (!load->wrong[0])
		snprintf(load->wrong, sizeof load->wrong, "run %zu (%s): %s: %d %.600s", i, load->runs[i].id, what,
			 reply->status, reply->body ? reply->body : "");
	pthread_mutex_unlock(&load->mutex);
}

/* A member of the answer's object, or of the object under its name. */
static bool peek(const struct reply *reply, const char *object, const char *name, struct json *ret)
{
	struct hx_error err;

	return reply->body && !json_check(slice_of(reply->body, reply->body_n), &err, ret) &&
	       (!object || json_find(*ret, slice_str(object), ret)) && json_find(*ret, slice_str(name), ret);
}

static void sleep_until_ms(int64_t at_ms)
{
	struct timespec at = {at_ms / 1000, at_ms % 1000 * 1000000};

	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
}

/* 201 once; 200 only when it may have been created by a try that was not answered. */
static void acknowledge(struct run_load *load, size_t i, unsigned tries, const struct reply *reply)
{
	struct json id, created;

	if (reply->status != 201 && (reply->status != 200 || tries == 1))
		return note_wrong(load, tries ? "not created" : "no node answers", i, reply);
	if (!peek(reply, "run", "id", &id) || id.raw.n - 2 >= ID_TEXT_BYTES ||
	    !peek(reply, NULL, "created", &created) || !slice_is(created.raw, reply->status == 201 ? "true" : "false"))
		return note_wrong(load, "not the answer to a creation", i, reply);
	snprintf(load->runs[i].id, sizeof load->runs[i].id, "%.*s", (int)id.raw.n - 2, id.raw.p + 1);
	atomic_store(&load->runs[i].acknowledged, true);
}

static void body_of(size_t i, char *body, size_t bytes)
{
	snprintf(body, bytes, "{\"definitionId\":\"load\",\"input\":{\"n\":%zu},\"idempotencyKey\":\"load-%zu\"}", i,
		 i);
}

static void *create_all(void *context)
{
	struct creator *creator = context;
	struct run_load *load = creator->load;
	struct caller *caller = caller_new(load->fleet, creator->i);
	struct reply reply;
	char body[200];
	unsigned tries;

	for (size_t i = creator->i; i < load->runs_n && !atomic_load(&load->stops); i += CREATORS) {
		sleep_until_ms(load->from_ms + (int64_t)i * load->over_ms / (int64_t)load->runs_n);
		body_of(i, body, sizeof body);
		tries = caller_call(caller, "POST", RUNS, body, &reply);
		acknowledge(load, i, tries, &reply);
		creator->tries += tries;
		reply_release(&reply);
	}
	caller_free(caller);
	return NULL;
}

static void look_at(struct run_load *load, size_t i, const struct reply *reply)
{
	struct loaded *run = &load->runs[i];
	struct json status, version;
	struct hx_error err;
	int64_t number;

	if (reply->status == 503)
		return;
	if (reply->status != 200 || !peek(reply, NULL, "status", &status) || !peek(reply, NULL, "version", &version) ||
	    json_int64(version, &err, &number))
		return note_wrong(load, "not to be seen", i, reply);
	if (number < run->version)
		note_wrong(load, "its version fell", i, reply);
	if (run->completed && (number != run->version || !slice_is(status.raw, "\"COMPLETED\"")))
		note_wrong(load, "it had been COMPLETED", i, reply);
	run->version = number;
	run->completed = slice_is(status.raw, "\"COMPLETED\"");
	load->polls++;
}

static void *poll_all(void *context)
{
	struct run_load *load = context;
	struct caller *caller = caller_new(load->fleet, CREATORS);
	struct reply reply;
	char path[100];
	size_t i;

	while (!atomic_load(&load->stops)) {
		sleep_until_ms(await_now_ms() + POLL_PAUSE_MS);
		i = caller_draw(caller, load->runs_n);
		if (!atomic_load(&load->runs[i].acknowledged))
			continue;
		snprintf(path, sizeof path, RUNS "/%s", load->runs[i].id);
		if (caller_try(caller, "GET", path, "", &reply))
			look_at(load, i, &reply);
		reply_release(&reply);
	}
	caller_free(caller);
	return NULL;
}

/* ---- start, await ---- */

struct run_load *run_load_start(struct fleet *fleet, struct effects *effects, size_t runs_n, int64_t over_ms)
{
	struct run_load *load = calloc(1, sizeof *load);

	assert_non_null(load);
	*load = (struct run_load){.fleet = fleet,
				  .effects = effects,
				  .runs_n = runs_n,
				  .from_ms = await_now_ms(),
				  .over_ms = over_ms,
				  .runs = calloc(runs_n, sizeof *load->runs)};
	assert_non_null(load->runs);
	pthread_mutex_init(&load->mutex, NULL);
	for (size_t i = 0; i < CREATORS; i++) {
		load->creators[i] = (struct creator){.load = load, .i = i};
		assert_int_equal(pthread_create(&load->creators[i].thread, NULL, create_all, &load->creators[i]), 0);
	}
	load->creating = true;
	assert_int_equal(pthread_create(&load->poller, NULL, poll_all, load), 0);
	load->polling = true;
	return load;
}

static void join_creators(struct run_load *load)
{
	for (size_t i = 0; load->creating && i < CREATORS; i++)
		pthread_join(load->creators[i].thread, NULL);
	load->creating = false;
}

static void join_poller(struct run_load *load)
{
	atomic_store(&load->stops, true);
	if (load->polling)
		pthread_join(load->poller, NULL);
	load->polling = false;
}

/* The words stay as they are once they are there. */
static const char *wrong_so_far(void *context)
{
	struct run_load *load = context;
	bool is_wrong;

	pthread_mutex_lock(&load->mutex);
	is_wrong = load->wrong[0] != '\0';
	pthread_mutex_unlock(&load->mutex);
	return is_wrong ? load->wrong : effects_wrong(load->effects);
}

void run_load_await(struct run_load *load, int64_t deadline_ms)
{
	join_creators(load);
	fleet_await_runs(load->fleet, deadline_ms, wrong_so_far, load);
}

/* ---- what is true in the end ---- */

static void check_step(const struct run_load *load, const struct reply *reply, const char *id, size_t step,
		       int64_t before)
{
	char key[100], path[40];
	int64_t receipt;

	snprintf(path, sizeof path, "steps.%zu.status", step);
	assert_string_equal(reply_text(reply, path), "COMPLETED");
	snprintf(path, sizeof path, "steps.%zu.output.receipt", step);
	receipt = reply_int(reply, path);
	snprintf(key, sizeof key, "%s/%s/0", id, step_names[step]);
	if (receipt != (int64_t)effects_receipt(load->effects, key))
		fail_msg("%s: the run says %lld, the service %llu", key, (long long)receipt,
			 (unsigned long long)effects_receipt(load->effects, key));
	if (receipt <= before)
		fail_msg("%s was done before the step in front of it", key);
}

static void check_run(struct run_load *load, size_t i)
{
	struct scene *scene = load->fleet->scene;
	struct loaded *run = &load->runs[i];
	struct reply *reply;
	char path[100];
	int64_t before = 0;

	snprintf(path, sizeof path, RUNS "/%s", run->id);
	reply = scene_must(scene, 0, "GET", path, NULL, 200, NULL);
	assert_string_equal(reply_text(reply, "status"), "COMPLETED");
	assert_true(reply_int(reply, "version") >= 1 + 2 * RUN_LOAD_STEPS);
	assert_true(reply_int(reply, "version") >= run->version);
	assert_int_equal(reply_count(reply, "steps"), RUN_LOAD_STEPS);
	for (size_t step = 0; step < RUN_LOAD_STEPS; step++) {
		check_step(load, reply, run->id, step, before);
		snprintf(path, sizeof path, "steps.%zu.output.receipt", step);
		before = reply_int(reply, path);
	}
	assert_int_equal(reply_int(reply, "output.last"), before);
}

/* The key still means this run. */
static void check_key(struct run_load *load, size_t i)
{
	struct reply *reply;
	char body[200];

	body_of(i, body, sizeof body);
	reply = scene_must(load->fleet->scene, 0, "POST", RUNS, body, 200, NULL);
	assert_string_equal(reply_text(reply, "created"), "false");
	assert_string_equal(reply_text(reply, "run.id"), load->runs[i].id);
}

/* A run that is RUNNING is somebody's here, so a fence that rises out of it was taken from one who went silent. */
struct fences {
	int64_t last;
	size_t takeovers;
};

static void see(void *context, const struct history_row *row)
{
	struct fences *fences = context;

	if (row->seq > 1 && row->fence > fences->last && slice_is(row->from, "RUNNING"))
		fences->takeovers++;
	fences->last = row->fence;
}

static size_t check_histories(struct run_load *load)
{
	struct fences fences = {0};
	struct audit audit = {
		.db = store_open(load->fleet->scene->store), .driven = true, .see = see, .context = &fences};
	struct hx_error err = {0};
	int64_t subject;

	arena_init(&audit.arena, AUDIT_BYTES_MAX);
	for (size_t i = 0; i < load->runs_n; i++) {
		assert_true(id_parse("run", slice_str(load->runs[i].id), &subject));
		if (audit_subject(&audit, subject, &err) < 0)
			fail_msg("%s", err.detail);
	}
	arena_release(&audit.arena);
	db_close(audit.db);
	return fences.takeovers;
}

void run_load_check(struct run_load *load, struct run_load_sum *ret_sum)
{
	char n[32];

	join_poller(load);
	if (wrong_so_far(load))
		fail_msg("%s", wrong_so_far(load));
	for (size_t i = 0; i < load->runs_n; i++) {
		check_run(load, i);
		check_key(load, i);
	}
	scene_sql(load->fleet->scene, "SELECT count(*) FROM hx_run WHERE workflow = 'load'", n, sizeof n);
	assert_int_equal(strtoul(n, NULL, 10), load->runs_n);
	assert_int_equal(effects_n(load->effects), load->runs_n * RUN_LOAD_STEPS);
	*ret_sum = (struct run_load_sum){.runs = load->runs_n,
					 .polls = load->polls,
					 .takeovers = check_histories(load),
					 .effects = effects_n(load->effects),
					 .repeated = effects_repeated(load->effects)};
	for (size_t i = 0; i < CREATORS; i++)
		ret_sum->tries += load->creators[i].tries;
	assert_true(load->polls > 0);
}

void run_load_free(struct run_load *load)
{
	if (!load)
		return;
	atomic_store(&load->stops, true);
	join_creators(load);
	join_poller(load);
	pthread_mutex_destroy(&load->mutex);
	free(load->runs);
	free(load);
}
