/*
 * A stale owner on PostgreSQL, with two real nodes: A claims and falls silent past its lease, the janitor of B takes the
 * claim back, B claims and finishes, and then A goes on. Whatever A still had in mind changes nothing, and both the
 * metrics and the log of A say that it came too late.
 *
 *   A is silent by     and then wants to
 *   SIGSTOP            finish · release · keep its claim alive (its action still runs)
 *   a network that     finish · release: its write is already on the way, so here it is the fence that stops it,
 *   has fallen silent                    and not A's own clock
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "support/await.h"
#include "support/pg_proxy.h"
#include "support/scene.h"

#define A 0
#define B 1
#define REVERT_MS                                                                                                      \
	90000 /* a node that is paused inside of a transaction keeps its locks until the server ends it, at 30 s */
#define NOTICE_MS 60000

static const char definition[] =
	"{'workflow':'billing','kind':'entity','status_types':['approved','closing','closed'],"
	"'initial_status':'approved','actions':{"
	"'Close':{'kind':'http','url':'@/close','effect':'claimed'},"
	"'Mail':{'kind':'http','url':'@/mail','effect':'keyed'}},"
	"'steps':[{'step_id':20,'step_key':'close','status':'approved','successful_state':'closed',"
	"'action':'Close','success_after_effect':['Mail'],'claim_state':['closing','approved']}]}";

/* A budget that outlasts the silence: what is to be refused has to be sent. */
static const char configuration[] =
	"{'store_timeout':'60s','modules':{'billing':{'janitor':{'every':'100ms','stuck_after':'2s'}}}}";

static const char id[] = "stale";

static int64_t came_late(struct scene *scene)
{
	return scene_metric(scene, A, "hapax_fenced_writes_total") +
	       scene_metric(scene, A, "hapax_claim_overruns_total");
}

/* A has claimed and its action runs, to be answered with this status. */
static struct firing *claim_on_a(struct scene *scene, int status)
{
	struct firing *firing;

	scene_create(scene, id);
	service_play(scene->service, "/close",
		     &(struct play){.hold = true, .status = status, .body = "{\"by\":\"A\"}"});
	firing = firing_start(scene, A, id, "close");
	service_await(scene->service, "/close", 1, NOTICE_MS);
	return firing;
}

/* The janitor of B takes the claim back, and B does the step. Returns the entity as it is then. */
static void finish_on_b(struct scene *scene, char *entity, size_t bytes)
{
	int64_t silent_since_ms = await_now_ms();

	scene_await_status(scene, B, id, "approved", REVERT_MS);
	printf("# stale owner: reverted %lld ms after it fell silent (lease 2 s, sweep every 100 ms)\n",
	       (long long)(await_now_ms() - silent_since_ms));
	service_play(scene->service, "/close", &(struct play){.body = "{\"by\":\"B\"}"});
	scene_fire(scene, B, id, "close", 200, NULL);
	assert_string_equal(reply_text(&scene->last, "output.by"), "B");
	assert_int_equal(reply_int(&scene->last, "entity.version"), 5);
	service_await(scene->service, "/mail", 1, NOTICE_MS);
	snprintf(entity, bytes, "%s", scene_show(scene, B, id)->body);
}

/* Nothing has changed since B finished, as both nodes see it, and A came late. */
static void check(struct scene *scene, const char *entity)
{
	AWAIT(NOTICE_MS, came_late(scene) >= 1);
	for (int node = A; node <= B; node++)
		assert_string_equal(scene_show(scene, node, id)->body, entity);
	scene_must(scene, B, "GET", "/api/v1/history/entity:billing:stale", NULL, 200, NULL);
	assert_int_equal(reply_count(&scene->last, "items"), 5); /* created, claimed, reverted, claimed, finished */
	assert_string_equal(reply_text(&scene->last, "items.1.node"), "node-a");
	assert_string_equal(reply_text(&scene->last, "items.2.node"), "node-b");
	assert_string_equal(reply_text(&scene->last, "items.4.node"), "node-b");
	scene_must(scene, B, "GET", "/api/v1/jobs", NULL, 200, NULL);
	assert_int_equal(reply_count(&scene->last, "items"), 1);
	assert_int_equal(service_count(scene->service, "/mail", NULL), 1);
	/* The outcome of A's action is not known to B: the same effect, so the same key, under a higher fence. */
	assert_int_equal(service_count(scene->service, "/close", NULL), 2);
	assert_string_equal(service_call(scene->service, "/close", 0).key,
			    service_call(scene->service, "/close", 1).key);
	assert_int_equal(service_call(scene->service, "/close", 0).fence, 1);
	assert_int_equal(service_call(scene->service, "/close", 1).fence, 2);
}

static void print_counts(struct scene *scene, const char *what)
{
	printf("# stale owner, %s: %lld fenced writes, %lld overruns\n", what,
	       (long long)scene_metric(scene, A, "hapax_fenced_writes_total"),
	       (long long)scene_metric(scene, A, "hapax_claim_overruns_total"));
}

/* ---- SIGSTOP ---- */

static void set_up_nodes(struct scene *scene)
{
	scene_define(scene, "billing", definition);
	scene_configure(scene, configuration);
	scene_start(scene, A);
	scene_start(scene, B);
}

static void stop_and_continue(struct scene *scene, int status, bool answered_meanwhile, const char *what)
{
	struct firing *firing;
	struct reply *reply;
	char entity[1000];

	set_up_nodes(scene);
	firing = claim_on_a(scene, status);
	serve_pause(scene->nodes[A]);
	finish_on_b(scene, entity, sizeof entity);
	if (answered_meanwhile)
		service_release(scene->service);
	serve_continue(scene->nodes[A]);
	check(scene, entity);
	service_release(scene->service);
	reply = firing_join(firing, 0, NULL);
	/* A definite failure of its own action may be told as one. Success never. */
	assert_true(reply->status == 504 || (status >= 400 && reply->status == 502));
	serve_await_log(scene->nodes[A], "claim was overrun", 1, NOTICE_MS);
	check(scene, entity);
	print_counts(scene, what);
	firing_free(firing);
	scene_stop(scene, A);
	scene_stop(scene, B);
}

static void test_stopped_owner_cannot_finish(void **state)
{
	stop_and_continue(*state, 200, /* answered_meanwhile= */ true, "stopped, action done");
}

static void test_stopped_owner_cannot_release(void **state)
{
	stop_and_continue(*state, 500, /* answered_meanwhile= */ true, "stopped, action failed");
}

static void test_stopped_owner_cannot_keep_its_claim(void **state)
{
	stop_and_continue(*state, 200, /* answered_meanwhile= */ false, "stopped, action runs");
}

/* ---- a silent network ---- */

static struct pg_proxy *proxy;

static int tear_down_proxy(void **state)
{
	int rc = scene_tear_down(state);

	pg_proxy_free(proxy);
	proxy = NULL;
	return rc;
}

static void fall_silent(struct scene *scene, int status, const char *what)
{
	struct firing *firing;
	char entity[1000];

	proxy = pg_proxy_new(store_pg_port());
	assert_non_null(proxy);
	store_url(scene->store, pg_proxy_port(proxy), "node-a", scene->db_urls[A], sizeof scene->db_urls[A]);
	set_up_nodes(scene);
	firing = claim_on_a(scene, status);
	pg_proxy_stall(proxy);
	service_release(scene->service); /* its write is on the way, and does not arrive */
	finish_on_b(scene, entity, sizeof entity);
	pg_proxy_drop(proxy); /* A connects again and sends it once more */
	firing_join(firing, status == 200 ? 504 : 502, status == 200 ? "OUTCOME_UNKNOWN" : "ACTION_FAILED");
	check(scene, entity);
	assert_true(scene_metric(scene, A, "hapax_fenced_writes_total") >= 1);
	serve_await_log(scene->nodes[A], "claim was overrun", 1, NOTICE_MS);
	print_counts(scene, what);
	firing_free(firing);
	scene_stop(scene, A);
	scene_stop(scene, B);
}

static void test_silent_owner_cannot_finish(void **state)
{
	fall_silent(*state, 200, "silent, action done");
}

static void test_silent_owner_cannot_release(void **state)
{
	fall_silent(*state, 500, "silent, action failed");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_stopped_owner_cannot_finish, scene_set_up_postgres,
						scene_tear_down),
		cmocka_unit_test_setup_teardown(test_stopped_owner_cannot_release, scene_set_up_postgres,
						scene_tear_down),
		cmocka_unit_test_setup_teardown(test_stopped_owner_cannot_keep_its_claim, scene_set_up_postgres,
						scene_tear_down),
		cmocka_unit_test_setup_teardown(test_silent_owner_cannot_finish, scene_set_up_postgres,
						tear_down_proxy),
		cmocka_unit_test_setup_teardown(test_silent_owner_cannot_release, scene_set_up_postgres,
						tear_down_proxy),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
