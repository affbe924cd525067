/*
 * The entry lock at the API, with each of its stores: the second click on a step that is under way is told so at once,
 * in a friendly sentence. It is the outermost door and nothing rests on it: when it has expired, or its store is gone,
 * the claim decides, and a metric says that the door stood open.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/await.h"
#include "support/scene.h"

#define ARRIVE_MS 60000
#define QUICK_MS 4000 /* nobody waits for a lock's store that is silent */

static const char definition[] =
	"{'workflow':'billing','kind':'entity','status_types':['approved','closing','closed','told'],"
	"'initial_status':'approved','actions':{'Close':{'kind':'http','url':'@/close','effect':'claimed'}},"
	"'steps':[{'step_id':20,'step_key':'close','status':'approved','successful_state':'closed',"
	"'action':'Close','claim_state':['closing','approved'],'entry_lock':'30s'},"
	"{'step_id':21,'step_key':'close_soon','status':'approved','successful_state':'closed',"
	"'action':'Close','claim_state':['closing','approved'],'entry_lock':'300ms'},"
	"{'step_id':30,'step_key':'tell','status':'approved','successful_state':'told'}]}";

static void begin(struct scene *scene, const char *store, int nodes)
{
	char config[600];

	snprintf(config, sizeof config, "{'modules':{'billing':{'janitor':{}}},'entry_lock_store':'%s'}", store);
	scene_define(scene, "billing", definition);
	/* The url of Redis holds an @, which stands for the service in a scene's texts. */
	for (char *at; (at = strchr(config, '@'));)
		memmove(at + 6, at + 1, strlen(at)), memcpy(at, "\\u0040", 6);
	scene_configure(scene, config);
	for (int node = 0; node < nodes; node++)
		scene_start(scene, node);
}

static const char *redis_url(void)
{
	const char *url = getenv("HAPAX_TEST_REDIS");

	if (!url || !*url)
		fail_msg("HAPAX_TEST_REDIS is not set: run this through tests/with-redis (make test does)");
	return url;
}

static struct firing *start_closing(struct scene *scene, int node, const char *id, const char *step)
{
	size_t n = service_count(scene->service, "/close", NULL);
	struct firing *firing;

	service_play(scene->service, "/close", &(struct play){.hold = true});
	firing = firing_start(scene, node, id, step);
	service_await(scene->service, "/close", n + 1, ARRIVE_MS);
	return firing;
}

static void end_closing(struct scene *scene, struct firing *firing)
{
	service_release(scene->service);
	firing_join(firing, 200, NULL);
	firing_free(firing);
}

/* ---- locked ---- */

/* One click on the first node, and one on the last. */
static void second_click_is_told(struct scene *scene, const char *store, int nodes)
{
	int last = nodes - 1;
	struct firing *firing;

	begin(scene, store, nodes);
	scene_create(scene, "a");
	scene_create(scene, "b");
	firing = start_closing(scene, 0, "a", "close");
	for (int i = 0; i < 3; i++) {
		scene_fire(scene, last, "a", "close", 409, "ENTRY_LOCKED");
		assert_non_null(strstr(reply_text(&scene->last, "detail"),
				       "is being processed, please do not submit it again"));
		assert_non_null(strcasestr(scene->last.head, "\r\nRetry-After: "));
	}
	assert_int_equal(scene_metric(scene, last, "hapax_entry_locked_total"), 3);
	/* The lock is that of this entity and this step: others come as far as the claim, or pass. */
	scene_fire(scene, last, "a", "close_soon", 409, "CLAIM_FAILED");
	scene_fire(scene, last, "a", "tell", 409, "CLAIM_FAILED");
	service_play(scene->service, "/close", &(struct play){0});
	scene_fire(scene, last, "b", "close", 200, NULL);
	end_closing(scene, firing);
	/* It is given back before the caller hears: the next click is not refused because of the last. */
	scene_fire(scene, last, "a", "close", 409, "WRONG_STATUS");
	assert_int_equal(service_count(scene->service, "/close", "a"), 1);
	for (int node = 0; node < nodes; node++) {
		assert_int_equal(scene_metric(scene, node, "hapax_entry_lock_unavailable_total"), 0);
		scene_stop(scene, node);
	}
}

static void test_second_click_is_told_in_memory(void **state)
{
	second_click_is_told(*state, "memory:", 1);
}

static void test_second_click_is_told_with_redis_on_two_nodes(void **state)
{
	second_click_is_told(*state, redis_url(), 2);
}

static void test_second_click_is_told_with_sql_on_two_nodes(void **state)
{
	second_click_is_told(*state, "postgres://", 2); /* the engine's own store */
}

/* Also when the step fails: whoever tries again at once is let in. */
static void test_lock_is_given_back_after_a_failure(void **state)
{
	struct scene *scene = *state;

	begin(scene, "memory:", 1);
	scene_create(scene, "a");
	service_play(scene->service, "/close", &(struct play){.status = 500});
	for (int i = 0; i < 5; i++)
		scene_fire(scene, 0, "a", "close", 502, "ACTION_FAILED");
	service_play(scene->service, "/close", &(struct play){0});
	scene_fire(scene, 0, "a", "close", 200, NULL);
	assert_int_equal(scene_metric(scene, 0, "hapax_entry_locked_total"), 0);
	scene_stop(scene, 0);
}

static bool comes_to_the_claim(struct scene *scene, int node)
{
	struct reply *reply = scene_call(scene, node, "POST", "/api/v1/entities/billing/a/steps/close_soon", NULL);

	assert_int_equal(reply->status, 409);
	return strcmp(reply->code, "CLAIM_FAILED") == 0;
}

/* 300 ms, and the action takes longer: from then on the claim refuses. */
static void after_the_lock_the_claim_decides(struct scene *scene, const char *store, int nodes)
{
	struct firing *firing;

	begin(scene, store, nodes);
	scene_create(scene, "a");
	firing = start_closing(scene, 0, "a", "close_soon");
	AWAIT(ARRIVE_MS, comes_to_the_claim(scene, nodes - 1));
	end_closing(scene, firing);
	assert_int_equal(service_count(scene->service, "/close", NULL), 1);
	for (int node = 0; node < nodes; node++)
		scene_stop(scene, node);
}

static void test_after_the_lock_in_memory_the_claim_decides(void **state)
{
	after_the_lock_the_claim_decides(*state, "memory:", 1);
}

static void test_after_the_lock_in_redis_the_claim_decides(void **state)
{
	after_the_lock_the_claim_decides(*state, redis_url(), 2);
}

/* ---- the lock's store is down ---- */

static bool redis_is_up = true;

static void redis_ctl(const char *what)
{
	const char *ctl = getenv("HAPAX_TEST_REDIS_CTL");
	char command[512];

	assert_non_null(ctl);
	snprintf(command, sizeof command, "'%s' %s", ctl, what);
	redis_is_up = strcmp(what, "start") == 0 || strcmp(what, "continue") == 0;
	assert_int_equal(system(command), 0);
}

static int tear_down(void **state)
{
	if (!redis_is_up) {
		redis_ctl("stop immediate");
		redis_ctl("start");
	}
	return scene_tear_down(state);
}

/* A call that is refused behind the door: did it come through a lock? Not of "a": what a silent store was sent it may
 * still take, and a lock that was given up on expires by itself. */
static bool store_is_found(struct scene *scene)
{
	int64_t before = scene_metric(scene, 0, "hapax_entry_lock_unavailable_total");

	scene_fire(scene, 0, "b", "close", 409, "WRONG_STATUS");
	return scene_metric(scene, 0, "hapax_entry_lock_unavailable_total") == before;
}

static void inner_doors_decide(struct scene *scene, const char *down, const char *up)
{
	struct firing *firing;
	int64_t open;

	begin(scene, redis_url(), 1);
	for (const char *id = "a\0b\0c\0"; *id; id += 2)
		scene_create(scene, id);
	service_play(scene->service, "/close", &(struct play){0});
	scene_fire(scene, 0, "b", "close", 200, NULL);
	assert_int_equal(scene_metric(scene, 0, "hapax_entry_lock_unavailable_total"), 0);

	redis_ctl(down);
	firing = start_closing(scene, 0, "a", "close");
	for (int i = 0; i < 3; i++) {
		scene_fire(scene, 0, "a", "close", 409, "CLAIM_FAILED");
		assert_true(scene->last.took_ms < QUICK_MS);
	}
	open = scene_metric(scene, 0, "hapax_entry_lock_unavailable_total");
	assert_int_equal(open, 4);
	end_closing(scene, firing);
	scene_assert(scene, 0, "a", "closed", 3);
	assert_int_equal(service_count(scene->service, "/close", "a"), 1);
	printf("# entry lock, %s: %lld calls let through, 1 effect\n", down, (long long)open);

	/* It is found again by itself. */
	redis_ctl(up);
	AWAIT(ARRIVE_MS, store_is_found(scene));
	firing = start_closing(scene, 0, "c", "close");
	scene_fire(scene, 0, "c", "close", 409, "ENTRY_LOCKED");
	end_closing(scene, firing);
	scene_stop(scene, 0);
}

static void test_with_redis_down_the_claim_decides(void **state)
{
	inner_doors_decide(*state, "stop immediate", "start");
}

static void test_with_redis_silent_the_claim_decides(void **state)
{
	inner_doors_decide(*state, "pause", "continue");
}

/* A server that starts without it serves, and says so. */
static void test_redis_down_at_the_start(void **state)
{
	struct scene *scene = *state;

	redis_ctl("stop immediate");
	begin(scene, redis_url(), 1);
	scene_create(scene, "a");
	scene_fire(scene, 0, "a", "close", 200, NULL);
	assert_int_equal(scene_metric(scene, 0, "hapax_entry_lock_unavailable_total"), 1);
	redis_ctl("start");
	scene_stop(scene, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_second_click_is_told_in_memory, scene_set_up_sqlite,
						scene_tear_down),
		cmocka_unit_test_setup_teardown(test_second_click_is_told_with_redis_on_two_nodes,
						scene_set_up_postgres, scene_tear_down),
		cmocka_unit_test_setup_teardown(test_second_click_is_told_with_sql_on_two_nodes, scene_set_up_postgres,
						scene_tear_down),
		cmocka_unit_test_setup_teardown(test_lock_is_given_back_after_a_failure, scene_set_up_sqlite,
						scene_tear_down),
		cmocka_unit_test_setup_teardown(test_after_the_lock_in_memory_the_claim_decides, scene_set_up_sqlite,
						scene_tear_down),
		cmocka_unit_test_setup_teardown(test_after_the_lock_in_redis_the_claim_decides, scene_set_up_postgres,
						scene_tear_down),
		cmocka_unit_test_setup_teardown(test_with_redis_down_the_claim_decides, scene_set_up_sqlite, tear_down),
		cmocka_unit_test_setup_teardown(test_with_redis_silent_the_claim_decides, scene_set_up_sqlite,
						tear_down),
		cmocka_unit_test_setup_teardown(test_redis_down_at_the_start, scene_set_up_sqlite, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
