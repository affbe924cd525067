/*
 * The audit beside servers that are busy: callers start runs, move entities, push and settle jobs, start and cancel batches,
 * all on few accounts, while retention strips what ended a second ago; and audits go on all the while, slowed down between their
 * slices so that the store moves on under them. None of them may raise an alarm. SQLite: one node; PostgreSQL: two.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/audit.h"
#include "support/await.h"
#include "support/fleet.h"
#include "support/run_scene.h"
#include "support/worker.h"

#define CALLERS 6
#define BUSY_MS 6000
#define ENOUGH_MS 60000 /* at most, on a machine that is slow */
#define ITEMS 700       /* more than one slice */

static const char billing[] =
	"{'workflow':'billing','kind':'entity','status_types':['open','closing','closed'],'initial_status':'open',"
	"'actions':{'Close':{'kind':'noop','effect':'claimed'},'Mail':{'kind':'noop'}},"
	"'steps':[{'step_id':1,'step_key':'close','status':'open','successful_state':'closed','action':'Close',"
	"'success_after_effect':['Mail'],'claim_state':['closing','open']},"
	"{'step_id':2,'step_key':'open','status':'closed','successful_state':'open'}]}";
static const char sale[] = "{'workflow':'sale','kind':'run','actions':{'Do':{'kind':'noop'},"
			   "'Ship':{'kind':'worker','queue':'stock','effect':'keyed'}},'steps':["
			   "{'name':'a','type':'task','action':'Do','compensate':'Do'},"
			   "{'name':'b','type':'task','action':'Ship'},{'name':'c','type':'task','action':'Do'}]}";
static const char render[] =
	"{'workflow':'render','kind':'batch','actions':{'One':{'kind':'noop'},'Delete':{'kind':'noop'}},"
	"'item_action':'One','cleanup_action':'Delete','concurrency':8}";

struct crowd {
	struct fleet fleet;
	_Atomic bool stops;
	_Atomic size_t done; /* calls that did something */
	char *order;
};

struct member {
	struct crowd *crowd;
	struct caller *caller;
	pthread_t thread;
	int i;
};

/* ---- those who are busy ---- */

static bool call(struct member *m, const char *method, const char *path, const char *body, struct reply *ret_reply)
{
	bool good = caller_call(m->caller, method, path, body, ret_reply) && ret_reply->status < 300;

	atomic_fetch_add(&m->crowd->done, good);
	return good;
}

static void do_entity(struct member *m)
{
	static const char *const steps[] = {"close", "open"};
	struct reply reply = {0};
	char path[100];

	snprintf(path, sizeof path, "/api/v1/entities/billing/e%d/steps/%s", m->i, steps[caller_draw(m->caller, 2)]);
	(void)call(m, "POST", path, "", &reply); /* another may have been first */
	reply_release(&reply);
}

static void do_run(struct member *m)
{
	struct reply reply = {0};
	char path[100], id[64] = "";

	if (call(m, "POST", RUNS, "{\"definitionId\":\"sale\"}", &reply))
		(void)sscanf(strstr(reply.body, "run_"), "%63[a-z0-9_]", id);
	reply_release(&reply);
	if (!id[0] || caller_draw(m->caller, 3))
		return;
	snprintf(path, sizeof path, RUNS "/%s/cancel", id);
	(void)call(m, "POST", path, "", &reply);
	reply_release(&reply);
}

static void do_batch(struct member *m)
{
	struct reply reply = {0};
	char path[100], id[64] = "";

	if (call(m, "POST", "/api/v1/batches", m->crowd->order, &reply))
		(void)sscanf(strstr(reply.body, "batch_"), "%63[a-z0-9_]", id);
	reply_release(&reply);
	if (!id[0] || caller_draw(m->caller, 2))
		return;
	snprintf(path, sizeof path, "/api/v1/batches/%s/cancel", id);
	(void)call(m, "POST", path, "", &reply);
	reply_release(&reply);
}

static void *be_busy(void *context)
{
	struct member *m = context;

	if (m->i < 2)
		do_batch(m);
	while (!atomic_load(&m->crowd->stops)) {
		uint64_t draw = caller_draw(m->caller, 20);

		if (draw == 0)
			do_batch(m);
		else if (draw < 10)
			do_run(m);
		else
			do_entity(m);
	}
	return NULL;
}

static void *work(void *context)
{
	struct member *m = context;
	struct worker worker;

	worker_init(&worker, /* port= */ 0, "ann", "stock", 5000);
	worker.caller = m->caller;
	while (!atomic_load(&m->crowd->stops)) {
		size_t n = worker_claim(&worker, 20, /* wait_ms= */ 100);

		for (size_t i = 0; i < n; i++)
			(void)worker_say(&worker, &worker.jobs[i], "complete", "", NULL); /* its run may be cancelled */
	}
	worker_release(&worker);
	return NULL;
}

/* ---- the audits ---- */

static void slow_down(void *context, const struct auditor *auditor)
{
	(void)context, (void)auditor;
	await_pause();
}

static int64_t audit_once(const struct scene *scene, struct audit_counts *ret_counts)
{
	struct audit_options options = {.url = scene->store->url, .told = slow_down};
	struct auditor *a = malloc(sizeof *a);
	struct hx_error err = {0};

	assert_non_null(a);
	if (audit_store(&options, a, &err) != HX_OK)
		fail_msg("%s", err.detail);
	if (a->finding.there)
		fail_msg("a false alarm: %s (%lld), %s %lld: %s: expected %s, found %s", a->finding.subject,
			 (long long)a->finding.id, a->finding.row ? a->finding.row : "", (long long)a->finding.seq,
			 a->finding.what, a->finding.expected, a->finding.found);
	*ret_counts = a->counts;
	auditor_release(a);
	free(a);
	return ret_counts->history_rows;
}

static void set_out(struct crowd *crowd, struct scene *scene, int nodes)
{
	struct strbuf order;

	scene_define(scene, "billing", billing);
	scene_define(scene, "sale", sale);
	scene_define(scene, "render", render);
	scene_configure(scene, "{'lease':'5s','retention':{'runs':'1s','jobs':'1s','batches':'1s'},"
			       "'modules':{'billing':{'janitor':{'every':'1s','stuck_after':'5s'}}}}");
	fleet_start(&crowd->fleet, scene, nodes);
	scene_must(scene, 0, "POST", "/api/v1/accounts", "{'id':'alice','balance':1000000}", 201, NULL);
	for (int i = 0; i < CALLERS; i++) {
		char id[16];

		snprintf(id, sizeof id, "e%d", i);
		scene_create(scene, id);
	}
	strbuf_init(&order, 1u << 20);
	strbuf_add_str(&order, "{\"workflow\":\"render\",\"account\":\"alice\",\"items\":[{\"cost\":1}");
	for (int i = 1; i < ITEMS; i++)
		strbuf_add_str(&order, ",{\"cost\":1}");
	strbuf_add_str(&order, "]}");
	crowd->order = strdup(order.p);
	strbuf_release(&order);
}

static int64_t stripped(struct scene *scene)
{
	char cell[64];

	scene_sql(
		scene,
		"SELECT (SELECT count(*) FROM hx_run WHERE expired > 0) + (SELECT count(*) FROM hx_batch WHERE expired > 0)",
		cell, sizeof cell);
	return strtoll(cell, NULL, 10);
}

/* Has so much happened that something could have gone wrong? */
static bool is_enough(struct crowd *crowd, struct scene *scene, const struct audit_counts *seen)
{
	return atomic_load(&crowd->done) > 100 && stripped(scene) > 20 && seen->entries > ITEMS && seen->batches > 1 &&
	       seen->history_rows > 100;
}

static void audit_beside(struct scene *scene, int nodes)
{
	struct crowd *crowd = calloc(1, sizeof *crowd);
	struct member members[CALLERS + 1];
	struct audit_counts counts = {0};
	int64_t from_ms, rows = 0;
	size_t audits = 0;

	assert_non_null(crowd);
	set_out(crowd, scene, nodes);
	for (int i = 0; i <= CALLERS; i++) {
		members[i] = (struct member){
			.crowd = crowd, .caller = caller_new(&crowd->fleet, (uint64_t)i + 1), .i = i};
		assert_int_equal(pthread_create(&members[i].thread, NULL, i < CALLERS ? be_busy : work, &members[i]),
				 0);
	}
	for (from_ms = await_now_ms(); await_now_ms() < from_ms + BUSY_MS ||
				       (await_now_ms() < from_ms + ENOUGH_MS && !is_enough(crowd, scene, &counts));
	     audits++)
		rows += audit_once(scene, &counts);
	atomic_store(&crowd->stops, true);
	for (int i = 0; i <= CALLERS; i++) {
		pthread_join(members[i].thread, NULL);
		caller_free(members[i].caller);
	}
	printf("# audit beside %d busy node%s on %s: %zu audits of %lld history rows, %zu calls, %lld stripped, no alarm\n",
	       nodes, nodes > 1 ? "s" : "", scene->store->kind == STORE_POSTGRES ? "PostgreSQL" : "SQLite", audits,
	       (long long)rows, atomic_load(&crowd->done), (long long)stripped(scene));
	assert_true(audits > 1 && is_enough(crowd, scene, &counts));
	fleet_stop(&crowd->fleet);
	(void)audit_once(scene, &counts);
	fleet_release(&crowd->fleet);
	free(crowd->order);
	free(crowd);
}

static void test_no_alarm_beside_a_busy_server(void **state)
{
	audit_beside(*state, 1);
}

static void test_no_alarm_beside_two_busy_nodes(void **state)
{
	audit_beside(*state, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_no_alarm_beside_a_busy_server, scene_set_up_sqlite,
						scene_tear_down),
		cmocka_unit_test_setup_teardown(test_no_alarm_beside_two_busy_nodes, scene_set_up_postgres,
						scene_tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
