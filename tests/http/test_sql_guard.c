/*
 * sql actions that reach for what is the engine's, over HTTP: a definition is refused where it can be seen (422, a finding), and a step
 * fails alone where it cannot; what others do meanwhile is done, and durable. Attacks as a table: contract/test_sql_guard.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/scene.h"

#define PUT "/api/v1/definitions/billing"
#define DEFINITION(statement)                                                                                           \
	"{'workflow':'billing','kind':'entity','meta':{'module':'billing'},'status_types':['approved','closed'],"       \
	"'initial_status':'approved','actions':{'Book':{'kind':'sql','statements':[{'name':'book_it','sql':'" statement \
	"'}]}},'steps':[{'step_id':20,'step_key':'close','status':'approved','successful_state':'closed','action':'Book'}]}"

static bool on_postgres(const struct scene *scene)
{
	return scene->store->kind == STORE_POSTGRES;
}

static void begin(struct scene *scene, const char *config)
{
	scene_define(scene, "billing", DEFINITION("INSERT INTO booked (id) VALUES (:id)"));
	scene_configure(scene, config);
	scene_sql(scene, "CREATE TABLE booked (id text PRIMARY KEY, who text)", NULL, 0);
	scene_start(scene, 0);
}

static void refused(struct scene *scene, const char *definition, const char *words)
{
	scene_must(scene, 0, "PUT", PUT, definition, 422, "DEFINITION_INVALID");
	if (!strstr(reply_text(&scene->last, "findings.0.text"), words))
		fail_msg("\"%s\" does not say \"%s\"", reply_text(&scene->last, "findings.0.text"), words);
}

static void definitions_that_reach_out_are_refused(void **state)
{
	struct scene *scene = *state;

	begin(scene, "{'modules':{'billing':{'janitor':{}}}}");
	scene_sql(scene, "CREATE VIEW others AS SELECT workspace FROM hx_entity", NULL, 0);
	refused(scene, DEFINITION("DELETE FROM hx_history"), "hx_history");
	refused(scene, DEFINITION("SELECT set_config(NULL, NULL, false)"), "set_config()");
	refused(scene, DEFINITION("INSERT INTO booked (id) SELECT workspace FROM others"),
		on_postgres(scene) ? "reach" : "hx_entity.workspace is prohibited");
	if (on_postgres(scene)) {
		refused(scene,
			DEFINITION("INSERT INTO booked (id) SELECT most_common_vals FROM pg_stats WHERE 1 = :version"),
			"pg_stats is PostgreSQL's own"); /* a plan with NULL in place of the version would be empty */
		refused(scene, DEFINITION("INSERT INTO booked (id) SELECT extname FROM pg_extension"), "it reaches");
	}
	scene_must(scene, 0, "PUT", PUT, DEFINITION("UPDATE booked SET who = :id"), 200, NULL);
	scene_stop(scene, 0);
}

static void make_trap(struct scene *scene)
{
	if (!on_postgres(scene)) {
		scene_sql(
			scene,
			"CREATE TRIGGER trap AFTER INSERT ON booked WHEN NEW.id = 'bad' BEGIN DELETE FROM hx_history; END",
			NULL, 0);
		return;
	}
	scene_sql(
		scene,
		"CREATE FUNCTION trap() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF NEW.id = 'bad' THEN DELETE FROM"
		" hx_history; ELSIF NEW.id = 'worse' THEN PERFORM set_config('synchronous_commit', 'off', false); END IF;"
		" RETURN NEW; END $$",
		NULL, 0);
	scene_sql(scene, "CREATE TRIGGER trap BEFORE INSERT ON booked FOR EACH ROW EXECUTE FUNCTION trap()", NULL, 0);
}

/* On SQLite the statement itself is refused, and with it every step; on PostgreSQL the one that does it. */
static void a_step_that_reaches_out_fails_alone(void **state)
{
	struct scene *scene = *state;
	char before[32], after[32];

	begin(scene, "{'modules':{'billing':{'janitor':{}}}}");
	scene_create(scene, "good");
	scene_create(scene, "bad");
	scene_create(scene, "worse");
	if (!on_postgres(scene))
		scene_fire(scene, 0, "good", "close", 200, NULL);
	make_trap(scene);
	scene_sql(scene, "SELECT count(*) FROM hx_history", before, sizeof before);
	scene_call(scene, 0, "POST", "/api/v1/entities/billing/bad/steps/close", "{}");
	assert_true(scene->last.status >= 400);
	if (on_postgres(scene)) {
		scene_call(scene, 0, "POST", "/api/v1/entities/billing/worse/steps/close", "{}");
		assert_true(scene->last.status >= 400);
		scene_fire(scene, 0, "good", "close", 200, NULL);
	}
	scene_sql(scene, "SELECT count(*) FROM booked", after, sizeof after);
	assert_string_equal(after, "1");
	scene_sql(scene, "SELECT count(*) FROM hx_history", after, sizeof after);
	assert_true(atoi(after) >= atoi(before));
	scene_stop(scene, 0);
}

static void actions_run_as_the_role_that_is_configured(void **state)
{
	struct scene *scene = *state;
	char role[80], sql[400], config[300], who[80];

	snprintf(role, sizeof role, "app_%s", scene->store->schema);
	snprintf(sql, sizeof sql, "CREATE ROLE %s; GRANT USAGE ON SCHEMA %s TO %s", role, scene->store->schema, role);
	scene_sql(scene, sql, NULL, 0);
	snprintf(config, sizeof config, "{'modules':{'billing':{'janitor':{}}},'sql':{'role':'%s'}}", role);
	scene_define(scene, "billing", DEFINITION("INSERT INTO booked (id, who) VALUES (:id, current_user)"));
	scene_configure(scene, config);
	scene_sql(scene, "CREATE TABLE booked (id text PRIMARY KEY, who text); CREATE TABLE secret (id text)", NULL, 0);
	snprintf(sql, sizeof sql, "GRANT SELECT, INSERT ON booked TO %s", role);
	scene_sql(scene, sql, NULL, 0);
	scene_start(scene, 0);
	scene_create(scene, "a");
	scene_fire(scene, 0, "a", "close", 200, NULL);
	scene_sql(scene, "SELECT who FROM booked", who, sizeof who);
	assert_string_equal(who, role);
	refused(scene, DEFINITION("INSERT INTO secret (id) VALUES (:id)"), "permission denied");
	scene_stop(scene, 0);
	snprintf(sql, sizeof sql, "DROP OWNED BY %s; DROP ROLE %s", role, role);
	scene_sql(scene, sql, NULL, 0);
}

#define ON(test, store)                                                                                                \
	{                                                                                                              \
#test ", " #store, test, scene_set_up_##store, scene_tear_down, NULL                                   \
	}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON(definitions_that_reach_out_are_refused, sqlite),
		ON(definitions_that_reach_out_are_refused, postgres),
		ON(a_step_that_reaches_out_fails_alone, sqlite),
		ON(a_step_that_reaches_out_fails_alone, postgres),
		ON(actions_run_as_the_role_that_is_configured, postgres),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
