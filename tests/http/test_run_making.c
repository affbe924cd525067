/*
 * Which runs begin their first step in the unit that makes them, as a caller sees it: the row of history of their beginning and that
 * of their first move are of one op then. Only a call goes along, and only where nothing is counted: whatever may be refused, and what
 * lets go of the run, is a unit of its own. How that unit lives and dies is tests/sim/test_run_make.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/await.h"
#include "support/run_scene.h"

#define FIRST(action) "'steps':[{'name':'a','type':'task','action':'" action "'}]"
#define ACTIONS                                                                                                        \
	"'actions':{'call':{'kind':'http','url':'@/call','effect':'keyed'},"                                           \
	"'local':{'kind':'exec','argv':['/bin/true'],'effect':'keyed'},"                                               \
	"'nothing':{'kind':'noop'},'work':{'kind':'worker','queue':'work'},"                                           \
	"'row':{'kind':'sql','statements':[{'name':'row','sql':'SELECT 1'}]}},"
#define COUNTED "'actions':{'call':{'kind':'http','url':'@/call','effect':'keyed','limits':{'concurrency':{'max':9}}}},"

static const struct {
	const char *name, *rest;
	bool goes_along;
} first_moves[] = {
	{"call", ACTIONS FIRST("call"), true},
	{"local", ACTIONS FIRST("local"), true},
	{"timed", ACTIONS "'timeout':'1h','attributes':{'n':'.input.n'},'on_failure':'compensate'," FIRST("call"),
	 true},
	/* Its start may be refused, and nothing that follows. */
	{"one", ACTIONS "'limits':{'singleton':{}}," FIRST("call"), true},
	/* It is done by the unit, or by somebody else, or by nobody. */
	{"row", ACTIONS FIRST("row"), false},
	{"nothing", ACTIONS FIRST("nothing"), false},
	{"work", ACTIONS FIRST("work"), false},
	{"rest", "'steps':[{'name':'a','type':'wait','for':'1h'}]", false},
	{"ask", "'steps':[{'name':'a','type':'approval'}]", false},
	{"other", "'steps':[{'name':'a','type':'child','workflow':'rest'}]", false},
	{"which",
	 ACTIONS "'steps':[{'name':'w','type':'condition','when':'true','then':'a','else':'a'},"
		 "{'name':'a','type':'task','action':'call'}]",
	 false},
	/* It cannot be begun. */
	{"broken", ACTIONS "'steps':[{'name':'a','type':'task','action':'call','input':'{x: has(.input.n)}'}]", false},
	/* It may be refused. */
	{"slots", ACTIONS "'limits':{'concurrency':{'max':9}}," FIRST("call"), false},
	{"rate", ACTIONS "'limits':{'rate':{'max':9,'per':'1s'}}," FIRST("call"), false},
	{"counted", COUNTED FIRST("call"), false},
};

static bool has_moved(struct scene *scene, const char *path)
{
	return reply_count(scene_must(scene, 0, "GET", path, NULL, 200, ""), "items") >= 2;
}

static void assert_goes_along(struct scene *scene, size_t i)
{
	char body[80], id[64], path[100], op[64];
	bool along;

	snprintf(body, sizeof body, "{'definitionId':'%s'}", first_moves[i].name);
	run_create_id(scene, body, id);
	snprintf(path, sizeof path, "/api/v1/history/%s", id);
	AWAIT(RUN_ARRIVE_MS, has_moved(scene, path));
	snprintf(op, sizeof op, "%s", reply_text(&scene->last, "items.0.op"));
	along = strcmp(reply_text(&scene->last, "items.1.op"), op) == 0;
	if (along != first_moves[i].goes_along)
		fail_msg("%s: %s", first_moves[i].name, scene->last.body);
}

static void test_a_call_goes_along_that_nothing_counts(void **state)
{
	struct scene *scene = *state;
	char text[1200];

	for (size_t i = 0; i < sizeof first_moves / sizeof *first_moves; i++) {
		snprintf(text, sizeof text, "{'workflow':'%s','kind':'run',%s}", first_moves[i].name,
			 first_moves[i].rest);
		scene_define(scene, first_moves[i].name, text);
	}
	scene_start(scene, 0);
	for (size_t i = 0; i < sizeof first_moves / sizeof *first_moves; i++)
		assert_goes_along(scene, i);
	scene_stop(scene, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_a_call_goes_along_that_nothing_counts, scene_set_up_sqlite,
						scene_tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
