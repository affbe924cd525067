/*
 * A claim of one version that a person ends after the next one was put in its place, on a real server: the first had statements, and
 * its process was killed under the claim; the second has something else to do, or nothing.
 * tests/unit/flow/test_claim_versions.c has every kind after every kind.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "support/await.h"
#include "support/scene.h"

#define ARRIVE_MS 60000

#define DEFINITION(version, action)                                                                                    \
	"{'workflow':'billing','kind':'entity','status_types':['approved','closing','closed'],"                        \
	"'initial_status':'approved','actions':{"                                                                      \
	"'Check':{'kind':'http','url':'@/check','effect':'idempotent'},"                                               \
	"'Book':{'kind':'sql','statements':[{'name':'book',"                                                           \
	"'sql':'INSERT INTO booked (version, id) VALUES (" version ", :id)'}]},"                                       \
	"'Close':{'kind':'http','url':'@/close','effect':'claimed'},'Nothing':{'kind':'noop'}},"                       \
	"'steps':[{'step_id':20,'step_key':'close','status':'approved','successful_state':'closed','validation':"      \
	"'Check','claim_state':['closing','approved'],'on_unknown':'hold'" action "}]}"

static const struct {
	const char *done, *not_done; /* entities */
	const char *text;
	bool booked;
} versions[] = {
	{"none-done", "none-not", DEFINITION("2", ""), false},
	{"http-done", "http-not", DEFINITION("3", ",'action':'Close'"), false},
	{"noop-done", "noop-not", DEFINITION("4", ",'action':'Nothing'"), false},
	{"sql-done", "sql-not", DEFINITION("5", ",'action':'Book'"), true},
};
#define VERSIONS (sizeof versions / sizeof *versions)

static size_t held(struct scene *scene)
{
	return reply_count(scene_must(scene, 0, "GET", "/api/v1/entities/billing?held=true", NULL, 200, NULL), "items");
}

/* All of them are claimed by the first version when the process dies, and parked for a person after that. */
static void park_all(struct scene *scene)
{
	struct firing *firings[2 * VERSIONS];

	service_play(scene->service, "/check", &(struct play){.hold = true});
	for (size_t i = 0; i < 2 * VERSIONS; i++) {
		const char *id = i % 2 ? versions[i / 2].not_done : versions[i / 2].done;

		scene_create(scene, id);
		firings[i] = firing_start(scene, 0, id, "close");
	}
	service_await(scene->service, "/check", 2 * VERSIONS, ARRIVE_MS);
	scene_kill(scene, 0);
	for (size_t i = 0; i < 2 * VERSIONS; i++) {
		firing_join(firings[i], 0, NULL);
		firing_free(firings[i]);
	}
	scene_start(scene, 0);
	AWAIT(ARRIVE_MS, held(scene) == 2 * VERSIONS);
}

static void resolve(struct scene *scene, const char *id, const char *outcome, const char *status)
{
	char path[200], body[100];

	snprintf(path, sizeof path, "/api/v1/entities/billing/%s/steps/close/resolve", id);
	snprintf(body, sizeof body, "{'outcome':'%s'}", outcome);
	scene_must(scene, 0, "POST", path, body, 200, NULL);
	scene_assert(scene, 0, id, status, 3);
}

static void assert_booked(struct scene *scene, const char *id, bool booked)
{
	char sql[200], count[32];

	snprintf(sql, sizeof sql, "SELECT count(*) FROM booked WHERE id = '%s'", id);
	scene_sql(scene, sql, count, sizeof count);
	assert_string_equal(count, booked ? "1" : "0");
}

static void test_a_person_ends_a_claim_of_the_version_before(void **state)
{
	struct scene *scene = *state;

	scene_sql(scene, "CREATE TABLE booked (version INTEGER, id TEXT)", NULL, 0);
	scene_define(scene, "billing", DEFINITION("1", ",'action':'Book'"));
	scene_configure(scene, "{'modules':{'billing':{'janitor':{'every':'100ms','stuck_after':'1s'}}}}");
	scene_start(scene, 0);
	park_all(scene);
	for (size_t i = 0; i < VERSIONS; i++) {
		scene_must(scene, 0, "PUT", "/api/v1/definitions/billing", versions[i].text, 200, NULL);
		resolve(scene, versions[i].done, "done", "closed");
		resolve(scene, versions[i].not_done, "not_done", "approved");
		assert_booked(scene, versions[i].done, versions[i].booked);
		assert_booked(scene, versions[i].not_done, false);
	}
	assert_int_equal(service_count(scene->service, "/close", NULL), 0);
	scene_stop(scene, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_a_person_ends_a_claim_of_the_version_before, scene_set_up_sqlite,
						scene_tear_down),
		{"test_a_person_ends_a_claim_of_the_version_before on PostgreSQL",
		 test_a_person_ends_a_claim_of_the_version_before, scene_set_up_postgres, scene_tear_down, NULL},
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
