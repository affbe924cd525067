/*
 * The store goes away in the middle of a step, on PostgreSQL:
 *
 *   before the claim         no action runs, the caller is told 503 STORE_UNAVAILABLE and may try again
 *   before the finish        one effect, the caller is told 504 OUTCOME_UNKNOWN; when the store is back the janitor
 *                            recovers the claim, and whoever fires again repeats the same effect, by the same key
 *   after the finish's       the truth is found out, and the caller is told 200
 *   commit, its answer lost
 *   not at all, but it       the effect is there and cannot be written down: told and recovered like a store that was
 *   refuses the finish       lost, with the store's words
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "support/await.h"
#include "support/pg_proxy.h"
#include "support/scene.h"

#define ARRIVE_MS 60000

static const char definition[] =
	"{'workflow':'billing','kind':'entity','status_types':['approved','closing','closed'],"
	"'initial_status':'approved','actions':{"
	"'Close':{'kind':'http','url':'@/close','effect':'claimed'},"
	"'Mail':{'kind':'http','url':'@/mail','effect':'keyed'}},"
	"'steps':[{'step_id':20,'step_key':'close','status':'approved','successful_state':'closed',"
	"'action':'Close','success_after_effect':['Mail'],'claim_state':['closing','approved']}]}";

static const char definition_of_table[] =
	"{'workflow':'billing','kind':'entity','meta':{'table':'invoice'},'status_types':['approved','closing','closed'],"
	"'initial_status':'approved','actions':{"
	"'Close':{'kind':'http','url':'@/close','effect':'claimed'},"
	"'Mail':{'kind':'http','url':'@/mail','effect':'keyed'}},"
	"'steps':[{'step_id':20,'step_key':'close','status':'approved','successful_state':'closed',"
	"'action':'Close','success_after_effect':['Mail'],'claim_state':['closing','approved']}]}";

static bool store_is_up = true;

static void stop_store(void)
{
	store_pg_ctl("stop immediate");
	store_is_up = false;
}

static void start_store(void)
{
	store_pg_ctl("start");
	store_is_up = true;
}

/* A test that failed while the store was down must not take the others with it. */
static int tear_down(void **state)
{
	if (!store_is_up)
		start_store();
	return scene_tear_down(state);
}

static void begin(struct scene *scene, const char *janitor)
{
	char config[200];

	snprintf(config, sizeof config, "{'modules':{'billing':{'janitor':%s}}}", janitor);
	scene_define(scene, "billing", definition);
	scene_configure(scene, config);
	scene_start(scene, 0);
	scene_create(scene, "a");
}

static void test_store_down_at_the_claim_runs_no_action(void **state)
{
	struct scene *scene = *state;

	begin(scene, "{}");
	stop_store();
	for (int i = 0; i < 3; i++) {
		scene_fire(scene, 0, "a", "close", 503, "STORE_UNAVAILABLE");
		assert_non_null(strcasestr(scene->last.head, "\r\nRetry-After: "));
		assert_true(scene->last.took_ms < 10000);
	}
	scene_must(scene, 0, "GET", "/api/v1/entities/billing/a", NULL, 503, "STORE_UNAVAILABLE");
	scene_must(scene, 0, "GET", "/healthz", NULL, 200, NULL);
	assert_int_equal(service_count(scene->service, NULL, NULL), 0);

	start_store();
	scene_assert(scene, 0, "a", "approved", 1);
	scene_fire(scene, 0, "a", "close", 200, NULL);
	assert_int_equal(reply_int(&scene->last, "entity.version"), 3);
	assert_int_equal(service_count(scene->service, "/close", NULL), 1);
	scene_stop(scene, 0);
}

static void test_store_down_at_the_finish_is_told_and_recovered(void **state)
{
	struct scene *scene = *state;
	struct service_call first, second;
	struct firing *firing;
	int64_t back_at_ms;

	begin(scene, "{'every':'200ms','stuck_after':'3s'}");
	service_play(scene->service, "/close", &(struct play){.hold = true});
	firing = firing_start(scene, 0, "a", "close");
	service_await(scene->service, "/close", 1, ARRIVE_MS);
	stop_store();
	service_release(scene->service);
	firing_join(firing, 504, "OUTCOME_UNKNOWN");
	assert_int_equal(service_count(scene->service, "/close", NULL), 1);

	start_store();
	back_at_ms = await_now_ms();
	scene_await_status(scene, 0, "a", "approved", ARRIVE_MS);
	printf("# store lost at the finish: recovered %lld ms after it was back (lease 3 s, sweep every 200 ms)\n",
	       (long long)(await_now_ms() - back_at_ms));
	assert_int_equal(scene_jobs(scene, 0), 0);
	assert_int_equal(scene_metric(scene, 0, "hapax_unknown_outcomes_total"), 1);
	assert_int_equal(scene_metric(scene, 0, "hapax_janitor_reverts_total"), 1);
	serve_await_log(scene->nodes[0], "the outcome of a step is unknown", 1, ARRIVE_MS);

	service_play(scene->service, "/close", &(struct play){0});
	scene_fire(scene, 0, "a", "close", 200, NULL);
	assert_int_equal(reply_int(&scene->last, "entity.version"), 5);
	first = service_call(scene->service, "/close", 0);
	second = service_call(scene->service, "/close", 1);
	assert_string_equal(first.key, second.key);
	assert_true(second.fence > first.fence);
	service_await(scene->service, "/mail", 1, ARRIVE_MS);
	assert_int_equal(scene_jobs(scene, 0), 1);
	firing_free(firing);
	scene_stop(scene, 0);
}

/* ---- a store that refuses ---- */

/* The user's own table does not take the status that the step leads to. */
static void test_refused_finish_keeps_the_key_of_the_effect(void **state)
{
	static const char table[] =
		"CREATE TABLE invoice (id text PRIMARY KEY, status text NOT NULL CONSTRAINT never_closed CHECK (status <> "
		"'closed'), version bigint NOT NULL, updated_at bigint NOT NULL)";
	struct scene *scene = *state;

	scene_sql(scene, table, NULL, 0);
	scene_sql(scene, "INSERT INTO invoice VALUES ('a', 'approved', 1, 0)", NULL, 0);
	scene_define(scene, "billing", definition_of_table);
	scene_configure(scene, "{'modules':{'billing':{'janitor':{'every':'200ms','stuck_after':'1s'}}}}");
	scene_start(scene, 0);
	scene_fire(scene, 0, "a", "close", 504, "OUTCOME_UNKNOWN");
	assert_non_null(strstr(reply_text(&scene->last, "detail"), "never_closed"));
	scene_await_status(scene, 0, "a", "approved", ARRIVE_MS);
	assert_int_equal(scene_jobs(scene, 0), 0);

	scene_sql(scene, "ALTER TABLE invoice DROP CONSTRAINT never_closed", NULL, 0);
	scene_fire(scene, 0, "a", "close", 200, NULL);
	scene_assert(scene, 0, "a", "closed", 5);
	assert_string_equal(service_call(scene->service, "/close", 0).key,
			    service_call(scene->service, "/close", 1).key);
	service_await(scene->service, "/mail", 1, ARRIVE_MS);
	scene_stop(scene, 0);
}

/* ---- a commit whose answer is lost ---- */

static struct pg_proxy *proxy;

static int tear_down_proxy(void **state)
{
	int rc = scene_tear_down(state);

	pg_proxy_free(proxy);
	proxy = NULL;
	return rc;
}

static void arm(void *context, const struct service_call *call)
{
	(void)call;
	pg_proxy_arm(context, PG_PROXY_CUT_AFTER);
}

/* The cut may come to another session of the node that commits at that moment: then it is tried once more. */
static void test_lost_answer_of_the_finish_is_found_out(void **state)
{
	static const char *const ids[] = {"a", "b", "c", "d", "e"};
	struct scene *scene = *state;
	int n = 0;

	proxy = pg_proxy_new(store_pg_port());
	assert_non_null(proxy);
	store_url(scene->store, pg_proxy_port(proxy), "node-a", scene->db_urls[0], sizeof scene->db_urls[0]);
	begin(scene, "{}");
	do {
		if (n > 0)
			scene_create(scene, ids[n]);
		service_play(scene->service, "/close", &(struct play){.hook = arm, .context = proxy});
		scene_fire(scene, 0, ids[n], "close", 200, NULL);
		assert_int_equal(reply_int(&scene->last, "entity.version"), 3);
		scene_assert(scene, 0, ids[n], "closed", 3);
		n++;
		assert_int_equal(pg_proxy_cuts(proxy), n);
	} while (scene_metric(scene, 0, "hapax_commits_in_doubt_total") == 0 && n < 5);
	assert_int_equal(scene_metric(scene, 0, "hapax_commits_in_doubt_total"), 1);
	service_await(scene->service, "/mail", n, ARRIVE_MS);
	assert_int_equal(scene_jobs(scene, 0), n);
	assert_int_equal(service_count(scene->service, "/close", NULL), n);
	scene_stop(scene, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_store_down_at_the_claim_runs_no_action, scene_set_up_postgres,
						tear_down),
		cmocka_unit_test_setup_teardown(test_store_down_at_the_finish_is_told_and_recovered,
						scene_set_up_postgres, tear_down),
		cmocka_unit_test_setup_teardown(test_refused_finish_keeps_the_key_of_the_effect, scene_set_up_postgres,
						scene_tear_down),
		cmocka_unit_test_setup_teardown(test_lost_answer_of_the_finish_is_found_out, scene_set_up_postgres,
						tear_down_proxy),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
