/*
 * A version of an entity's definition that would leave entities behind is refused, with their count: by PUT, by SIGHUP and at
 * the boot. What nobody stands in may go. And who got lost all the same is told so, and is found again.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/error.h"
#include "flow/entity_orphans.h"
#include "support/await.h"
#include "support/scene.h"

#define ARRIVE_MS 60000
#define PUT "/api/v1/definitions/billing"

#define ENTITY(meta, statuses, steps)                                                                                  \
	"{'workflow':'billing','kind':'entity','meta':{" meta "'module':'billing'},'status_types':[" statuses "],"     \
	"'initial_status':'open','actions':{'Close':{'kind':'http','url':'@/close','effect':'claimed'}},"              \
	"'steps':[" steps "]}"
#define CLOSE(into, claim)                                                                                             \
	"{'step_id':1,'step_key':'close','status':'open','successful_state':'" into "','action':'Close',"              \
	"'claim_state':['" claim "','open']}"
#define ARCHIVE ",{'step_id':2,'step_key':'archive','status':'closed','successful_state':'archived'}"
#define REOPEN ",{'step_id':3,'step_key':'reopen','status':'archived','successful_state':'open'}"

static const char whole[] = ENTITY("", "'open','closing','closed','archived'",
				   CLOSE("closed", "closing") ARCHIVE REOPEN);
static const char no_archive[] = ENTITY("", "'open','closing','closed'", CLOSE("closed", "closing"));
static const char no_closed[] = ENTITY("", "'open','closing','archived'", CLOSE("archived", "closing") REOPEN);
static const char other_claim[] = ENTITY("", "'open','ending','closed','archived'",
					 CLOSE("closed", "ending") ARCHIVE REOPEN);
/* The status is there, and nothing claims into it. */
static const char idle_claim[] = ENTITY("", "'open','closing','ending','closed','archived'",
					CLOSE("closed", "ending") ARCHIVE REOPEN);
static const char moved[] = ENTITY("'table':'invoice',", "'open','closing','closed','archived'",
				   CLOSE("closed", "closing") ARCHIVE REOPEN);
static const char moved_no_archive[] = ENTITY("'table':'invoice',", "'open','closing','closed'",
					      CLOSE("closed", "closing"));

/* One claim status, two steps that claim into it, and one that claims elsewhere. */
#define LETTERS(meta, steps)                                                                                           \
	"{'workflow':'billing','kind':'entity','meta':{" meta "'module':'billing'},"                                   \
	"'status_types':['open','late','sending','calling','sent'],'initial_status':'open',"                           \
	"'actions':{'Send':{'kind':'http','url':'@/send','effect':'claimed'}},'steps':[" steps "]}"
#define STEP(id, key, from, claim)                                                                                     \
	"{'step_id':" id ",'step_key':'" key "','status':'" from "','successful_state':'sent','action':'Send',"        \
	"'claim_state':" claim ",'on_unknown':'hold'}"
#define INTO(status) "['" status "','open']"
#define OTHERS "," STEP("2", "remind", "late", INTO("sending")) "," STEP("3", "call", "late", INTO("calling"))

static const char letters[] = LETTERS("", STEP("1", "send", "open", INTO("sending")) OTHERS);
static const char renamed[] = LETTERS("", STEP("1", "dispatch", "open", INTO("sending")) OTHERS);
static const char elsewhere[] = LETTERS("", STEP("1", "send", "open", INTO("calling")) OTHERS);
static const char from_late[] = LETTERS("", STEP("1", "send", "late", INTO("sending")) OTHERS);
static const char admin_elsewhere[] = LETTERS(
	"", STEP("1", "send", "open", "{'admin':['calling','open'],'default':['sending','open']}") OTHERS);
static const char admin_named[] = LETTERS(
	"", STEP("1", "send", "open", "{'admin':['sending','open'],'default':['sending','open']}") OTHERS);
static const char no_remind[] = LETTERS("", STEP("1", "send", "open", INTO("sending")));
static const char in_table[] = LETTERS("'table':'letter',", STEP("1", "send", "open", INTO("sending")) OTHERS);
static const char in_table_renamed[] = LETTERS("'table':'letter',",
					       STEP("1", "dispatch", "open", INTO("sending")) OTHERS);
static const char in_other_table[] = LETTERS("'table':'parcel',", STEP("1", "send", "open", INTO("sending")) OTHERS);

#define HELD "1 entity is in the status \"sending\", claimed by the step \"send\" from \"open\", "

static void begin(struct scene *scene)
{
	scene_define(scene, "billing", whole);
	scene_configure(scene, "{'modules':{'billing':{'janitor':{}}}}");
	scene_start(scene, 0);
}

static void archive(struct scene *scene, const char *id)
{
	scene_create(scene, id);
	scene_fire(scene, 0, id, "close", 200, NULL);
	scene_fire(scene, 0, id, "archive", 200, NULL);
}

static void assert_version(struct scene *scene, int64_t version)
{
	scene_must(scene, 0, "GET", "/api/v1/definitions", NULL, 200, NULL);
	assert_int_equal(reply_int(&scene->last, "items.0.version"), version);
}

/* Refused with these words, in one finding; there may be warnings beside it. */
static void refuse(struct scene *scene, const char *text, const char *words)
{
	size_t n, said = 0, orphans = 0;

	scene_must(scene, 0, "PUT", PUT, text, 422, "DEFINITION_INVALID");
	n = reply_count(&scene->last, "findings");
	for (size_t i = 0; i < n; i++) {
		char rule[40], path[40];

		snprintf(rule, sizeof rule, "findings.%zu.rule", i);
		snprintf(path, sizeof path, "findings.%zu.text", i);
		if (strcmp(reply_text(&scene->last, rule), "orphans") != 0)
			continue;
		orphans++;
		said += strstr(reply_text(&scene->last, path), words) != NULL;
	}
	if (said != 1 || orphans != 1)
		fail_msg("\"%s\" is not the one finding of %s", words, scene->last.body);
}

static void test_put_that_loses_a_status_in_use_is_refused(void **state)
{
	struct scene *scene = *state;

	begin(scene);
	archive(scene, "a");
	scene_create(scene, "b");
	refuse(scene, no_archive, "1 entity is in the status \"archived\", which this definition does not have");
	archive(scene, "c");
	refuse(scene, no_archive, "2 entities are in the status \"archived\"");
	assert_version(scene, 1);
	scene_fire(scene, 0, "a", "reopen", 200, NULL);
	refuse(scene, no_archive, "1 entity is");
	scene_fire(scene, 0, "c", "reopen", 200, NULL);
	scene_must(scene, 0, "PUT", PUT, no_archive, 200, NULL);
	assert_version(scene, 2);
	scene_fire(scene, 0, "a", "close", 200, NULL);
	scene_stop(scene, 0);
}

/* Of whatever workspace. */
static void test_entities_of_all_workspaces_count(void **state)
{
	static const char fields[] = "Hapax-Workspace: elsewhere\r\n";
	struct scene *scene = *state;
	struct reply reply;

	begin(scene);
	assert_true(client_call_with(scene->admin[0], "POST", "/api/v1/entities/billing", fields, "{\"id\":\"a\"}", 10,
				     &reply));
	assert_int_equal(reply.status, 201);
	reply_release(&reply);
	scene_sql(scene, "UPDATE hx_subject SET status = 'archived' WHERE id IN (SELECT subject FROM hx_entity)", NULL,
		  0);
	refuse(scene, no_archive, "1 entity is in the status \"archived\"");
	scene_stop(scene, 0);
}

/* Whoever is under way, and where it is going. */
static void test_claims_under_way_count(void **state)
{
	struct scene *scene = *state;
	struct firing *firing;

	begin(scene);
	scene_create(scene, "a");
	service_play(scene->service, "/close", &(struct play){.hold = true});
	firing = firing_start(scene, 0, "a", "close");
	service_await(scene->service, "/close", 1, ARRIVE_MS);
	refuse(scene, other_claim, "1 entity is in the status \"closing\", which this definition does not have");
	refuse(scene, idle_claim, "1 entity is in the status \"closing\", which no step of this definition claims");
	refuse(scene, no_closed, "1 entity is in the status \"closing\" and may end in \"closed\"");
	service_release(scene->service);
	firing_join(firing, 200, NULL);
	firing_free(firing);
	refuse(scene, no_closed, "1 entity is in the status \"closed\"");
	scene_must(scene, 0, "PUT", PUT, other_claim, 200, NULL);
	scene_must(scene, 0, "PUT", PUT, whole, 200, NULL);
	scene_must(scene, 0, "PUT", PUT, idle_claim, 200, NULL);
	scene_stop(scene, 0);
}

/* Nobody knows what became of the letter: a person has to say. */
static void send_and_hold(struct scene *scene, const char *id)
{
	service_play(scene->service, "/send", &(struct play){.how = PLAY_DROP});
	scene_fire(scene, 0, id, "send", 504, "OUTCOME_UNKNOWN");
	scene_show(scene, 0, id);
	assert_string_equal(reply_text(&scene->last, "claim.held"), "true");
}

static void resolve(struct scene *scene, const char *id)
{
	char path[100];

	snprintf(path, sizeof path, "/api/v1/entities/billing/%s/steps/send/resolve", id);
	scene_must(scene, 0, "POST", path, "{'outcome':'done'}", 200, NULL);
	assert_string_equal(reply_text(&scene->last, "entity.status"), "sent");
}

/* Only the step that claimed can be resolved: a version may not take it away, and what others claim may change. */
static void test_a_held_claim_keeps_its_step(void **state)
{
	struct scene *scene = *state;

	scene_configure(scene, "{'modules':{'billing':{'janitor':{}}}}");
	scene_start(scene, 0);
	scene_must(scene, 0, "PUT", PUT, letters, 200, NULL);
	scene_create(scene, "a");
	scene_create(scene, "b");
	send_and_hold(scene, "a");
	refuse(scene, renamed, HELD "a claim that this definition does not know");
	refuse(scene, elsewhere, HELD);
	refuse(scene, from_late, HELD);
	refuse(scene, admin_elsewhere, HELD);
	scene_must(scene, 0, "PUT", PUT, admin_named, 200, NULL);
	scene_must(scene, 0, "PUT", PUT, no_remind, 200, NULL);
	scene_must(scene, 0, "PUT", PUT, letters, 200, NULL);
	resolve(scene, "a");
	scene_must(scene, 0, "PUT", PUT, renamed, 200, NULL);
	scene_must(scene, 0, "PUT", PUT, elsewhere, 200, NULL);
	scene_stop(scene, 0);
}

/* A janitor would not find that it is to be held, and would revert it. */
static void test_a_claim_of_a_node_that_died_keeps_its_step(void **state)
{
	struct scene *scene = *state;
	struct serve_options options;
	struct firing *firing;

	scene_define(scene, "billing", letters);
	scene_configure(scene, "{'modules':{'billing':{'janitor':{'every':'200ms','stuck_after':'2s'}}}}");
	scene_start(scene, 0);
	scene_create(scene, "a");
	service_play(scene->service, "/send", &(struct play){.hold = true});
	firing = firing_start(scene, 0, "a", "send");
	service_await(scene->service, "/send", 1, ARRIVE_MS);
	scene_kill(scene, 0);
	firing_join(firing, 0, NULL);
	firing_free(firing);
	service_release(scene->service);

	scene_define(scene, "billing", renamed);
	options = scene_options(scene, 0);
	assert_int_equal(serve_refused(&options), 78);
	assert_int_equal(file_count(options.log, HELD), 1);
	scene_define(scene, "billing", letters);
	scene_start(scene, 0);
	AWAIT(ARRIVE_MS, (scene_show(scene, 0, "a"), strcmp(reply_text(&scene->last, "claim.held"), "true") == 0));
	resolve(scene, "a");
	scene_stop(scene, 0);
}

/* What slipped through is told for what it is, and ends under a version that has the step again. */
static void test_a_claim_without_its_step_is_told_so(void **state)
{
	static const char path[] = "/api/v1/entities/billing/a/steps/dispatch/resolve";
	struct scene *scene = *state;

	scene_configure(scene, "{'modules':{'billing':{'janitor':{}}}}");
	scene_start(scene, 0);
	scene_must(scene, 0, "PUT", PUT, letters, 200, NULL);
	scene_must(scene, 0, "PUT", PUT, renamed, 200, NULL);
	scene_create(scene, "a");
	service_play(scene->service, "/send", &(struct play){.how = PLAY_DROP});
	scene_fire(scene, 0, "a", "dispatch", 504, "OUTCOME_UNKNOWN");
	scene_sql(scene, "UPDATE hx_entity SET claim_step = 'send'", NULL, 0);
	scene_must(scene, 0, "POST", path, "{'outcome':'done'}", 409, "WRONG_STATUS");
	assert_non_null(strstr(reply_text(&scene->last, "detail"), "does not have the step that claimed"));
	scene_must(scene, 0, "PUT", PUT, letters, 200, NULL);
	resolve(scene, "a");
	scene_stop(scene, 0);
}

/* Nobody can say what was to happen to it: it is not given back in silence. */
static void test_a_stuck_claim_without_its_step_is_held(void **state)
{
	struct scene *scene = *state;

	scene_define(scene, "billing", whole);
	scene_configure(scene, "{'modules':{'billing':{'janitor':{'every':'100ms','stuck_after':'2s'}}}}");
	scene_start(scene, 0);
	scene_create(scene, "a");
	service_play(scene->service, "/close", &(struct play){.how = PLAY_DROP});
	scene_fire(scene, 0, "a", "close", 504, "OUTCOME_UNKNOWN");
	scene_sql(scene, "UPDATE hx_entity SET claim_step = 'shut'", NULL, 0);
	AWAIT(ARRIVE_MS, scene_metric(scene, 0, "hapax_janitor_holds_total") == 1);
	scene_must(scene, 0, "GET", "/api/v1/entities/billing/a", NULL, 200, NULL);
	assert_string_equal(reply_text(&scene->last, "status"), "closing");
	scene_stop(scene, 0);
}

/* The rows are the user's, and the claims on them are the engine's. */
static void test_claims_on_rows_of_a_table_count(void **state)
{
	struct scene *scene = *state;

	scene_configure(scene, "{'modules':{'billing':{'janitor':{}}}}");
	scene_start(scene, 0);
	for (int i = 0; i < 2; i++) {
		char sql[200];

		snprintf(sql, sizeof sql,
			 "CREATE TABLE %s (id INTEGER PRIMARY KEY, status TEXT NOT NULL,"
			 " version INTEGER NOT NULL, updated_at TEXT)",
			 i ? "parcel" : "letter");
		scene_sql(scene, sql, NULL, 0);
	}
	scene_must(scene, 0, "PUT", PUT, in_table, 200, NULL);
	scene_sql(scene, "INSERT INTO letter VALUES (1, 'open', 1, ''), (2, 'open', 1, '')", NULL, 0);
	send_and_hold(scene, "1");
	refuse(scene, in_table_renamed, HELD "a claim that this definition does not know");
	refuse(scene, in_other_table, HELD "in a table that this definition leaves");
	refuse(scene, letters, HELD "in a table that this definition leaves");
	resolve(scene, "1");
	scene_must(scene, 0, "PUT", PUT, in_table_renamed, 200, NULL);
	scene_must(scene, 0, "PUT", PUT, in_other_table, 200, NULL);
	scene_must(scene, 0, "PUT", PUT, letters, 200, NULL);
	scene_stop(scene, 0);
}

/* The folder is read at the boot and at SIGHUP, and wins over what was put. */
static void test_folder_that_loses_a_status_in_use_is_refused(void **state)
{
	static const char kept[] = "the definitions are kept as they were";
	struct scene *scene = *state;
	struct serve_options options;

	scene_define(scene, "billing", no_archive);
	scene_configure(scene, "{'modules':{'billing':{'janitor':{}}}}");
	scene_start(scene, 0);
	scene_must(scene, 0, "PUT", PUT, whole, 200, NULL);
	archive(scene, "a");
	serve_hup(scene->nodes[0]);
	serve_await_log(scene->nodes[0], kept, 1, ARRIVE_MS);
	serve_await_log(scene->nodes[0], "1 entity is in the status", 1, ARRIVE_MS);
	assert_version(scene, 2);
	scene_stop(scene, 0);

	options = scene_options(scene, 0);
	(void)unlink(options.log);
	assert_int_equal(serve_refused(&options), 78);
	if (file_count(options.log, "billing.json:1") != 1 || file_count(options.log, "workflow billing") != 1 ||
	    file_count(options.log, "1 entity is in the status \"archived\"") != 1)
		fail_msg("the log does not say what is wrong");
	scene_define(scene, "billing", NULL); /* what was put stays */
	scene_start(scene, 0);
	assert_version(scene, 2);
	scene_fire(scene, 0, "a", "reopen", 200, NULL);
	scene_stop(scene, 0);
	scene_define(scene, "billing", no_archive);
	scene_start(scene, 0);
	assert_version(scene, 3);
	scene_stop(scene, 0);
}

static void test_rows_of_a_table_count(void **state)
{
	struct scene *scene = *state;
	char sql[400];

	scene_configure(scene, "{'modules':{'billing':{'janitor':{}}}}");
	scene_start(scene, 0);
	scene_sql(scene,
		  "CREATE TABLE invoice (id INTEGER PRIMARY KEY, status TEXT NOT NULL, version INTEGER NOT NULL,"
		  " updated_at TEXT)",
		  NULL, 0);
	scene_must(scene, 0, "PUT", PUT, moved, 200, NULL);
	snprintf(sql, sizeof sql,
		 "INSERT INTO invoice VALUES (1, 'archived', 1, ''), (2, 'open', 1, ''),"
		 " (3, 'archived', 1, ''), (4, 'none of ours', 1, '')");
	scene_sql(scene, sql, NULL, 0);
	refuse(scene, moved_no_archive, "2 entities are in the status \"archived\"");
	scene_sql(scene, "DELETE FROM invoice WHERE status = 'archived'", NULL, 0);
	scene_must(scene, 0, "PUT", PUT, moved_no_archive, 200, NULL);
	scene_fire(scene, 0, "2", "close", 200, NULL);
	scene_stop(scene, 0);
}

static void test_entities_are_not_left_for_a_table(void **state)
{
	struct scene *scene = *state;

	begin(scene);
	scene_sql(scene,
		  "CREATE TABLE invoice (id INTEGER PRIMARY KEY, status TEXT NOT NULL, version INTEGER NOT NULL,"
		  " updated_at TEXT)",
		  NULL, 0);
	scene_create(scene, "a");
	refuse(scene, moved, "1 entity is in the status \"open\", kept by the engine");
	scene_stop(scene, 0);
}

/* Many at once: nobody waits for all of them to be counted. */
static void test_the_count_ends(void **state)
{
	struct scene *scene = *state;
	char sql[600];

	begin(scene);
	archive(scene, "a");
	snprintf(sql, sizeof sql,
		 "WITH RECURSIVE k(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM k WHERE i < %d)"
		 " INSERT INTO hx_entity (subject, workspace, workflow, name, data)"
		 " SELECT i, 'default', 'billing', 'n' || i, '{}' FROM k",
		 ORPHANS_COUNT_MAX + 10);
	scene_sql(scene, sql, NULL, 0);
	snprintf(sql, sizeof sql,
		 "INSERT INTO hx_subject (id, kind, status, version, op, updated_at, seq, head)"
		 " SELECT e.subject, s.kind, s.status, 1, 1, 1, 1, s.head FROM hx_entity e, hx_subject s"
		 " WHERE e.name LIKE 'n%%' AND s.id = (SELECT subject FROM hx_entity WHERE name = 'a')");
	scene_sql(scene, sql, NULL, 0);
	refuse(scene, no_archive, "at least 100000 entities are in the status \"archived\"");
	scene_stop(scene, 0);
}

/* What comes too late for the count: a step without a claim that was under way, another node's. */
static void test_a_lost_one_is_told_so_and_found_again(void **state)
{
	struct scene *scene = *state;

	begin(scene);
	archive(scene, "a");
	scene_fire(scene, 0, "a", "reopen", 200, NULL);
	scene_must(scene, 0, "PUT", PUT, no_archive, 200, NULL);
	scene_sql(scene, "UPDATE hx_subject SET status = 'archived' WHERE id IN (SELECT subject FROM hx_entity)", NULL,
		  0);
	scene_fire(scene, 0, "a", "close", 409, "WRONG_STATUS");
	assert_non_null(
		strstr(reply_text(&scene->last, "detail"), "a status that the definition in force does not have"));
	scene_kill(scene, 0);
	scene_define(scene, "billing", no_archive);
	scene_start(scene, 0); /* nothing is lost that was not lost before */
	scene_must(scene, 0, "PUT", PUT, whole, 200, NULL);
	scene_fire(scene, 0, "a", "reopen", 200, NULL);
	scene_stop(scene, 0);
}

#define ON_SQLITE(test) cmocka_unit_test_setup_teardown(test, scene_set_up_sqlite, scene_tear_down)
#define ON_POSTGRES(test)                                                                                              \
	{                                                                                                              \
#test " on PostgreSQL", test, scene_set_up_postgres, scene_tear_down, NULL                             \
	}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_SQLITE(test_put_that_loses_a_status_in_use_is_refused),
		ON_POSTGRES(test_put_that_loses_a_status_in_use_is_refused),
		ON_SQLITE(test_entities_of_all_workspaces_count),
		ON_SQLITE(test_claims_under_way_count),
		ON_SQLITE(test_folder_that_loses_a_status_in_use_is_refused),
		ON_SQLITE(test_rows_of_a_table_count),
		ON_POSTGRES(test_rows_of_a_table_count),
		ON_SQLITE(test_entities_are_not_left_for_a_table),
		ON_SQLITE(test_the_count_ends),
		ON_SQLITE(test_a_lost_one_is_told_so_and_found_again),
		ON_SQLITE(test_a_held_claim_keeps_its_step),
		ON_POSTGRES(test_a_held_claim_keeps_its_step),
		ON_SQLITE(test_a_claim_of_a_node_that_died_keeps_its_step),
		ON_POSTGRES(test_a_claim_of_a_node_that_died_keeps_its_step),
		ON_SQLITE(test_a_claim_without_its_step_is_told_so),
		ON_POSTGRES(test_a_claim_without_its_step_is_told_so),
		ON_SQLITE(test_a_stuck_claim_without_its_step_is_held),
		ON_SQLITE(test_claims_on_rows_of_a_table_count),
		ON_POSTGRES(test_claims_on_rows_of_a_table_count),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
