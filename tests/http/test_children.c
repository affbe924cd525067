/*
 * Steps with children over the API of a real server: child, map, parallel and repeat; what fails, what is cancelled with its
 * parent, and what a caller says to a part.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/id.h"
#include "support/await.h"
#include "support/run_scene.h"

#define ACTIONS                                                                                                                 \
	"'actions':{'Do':{'kind':'http','url':'@/do','effect':'keyed'},'Undo':{'kind':'http','url':'@/undo','effect':'keyed'}," \
	"'Pick':{'kind':'http','url':'@/pick','effect':'keyed'},'Once':{'kind':'http','url':'@/once','effect':'claimed'}}"

static const char leaf[] = "{'workflow':'leaf','kind':'run'," ACTIONS ",'steps':["
			   "{'name':'act','type':'task','action':'Do','compensate':'Undo','retry':{'max_attempts':1}}],"
			   "'output':'{twice: [.input.n, .input.n]}'}";

static const char shapes[] =
	"{'workflow':'shapes','kind':'run'," ACTIONS ",'steps':["
	"{'name':'one','type':'child','workflow':'leaf','input':'{n: .input.n}','save_as':'one'},"
	"{'name':'all','type':'map','over':'.input.items','workflow':'leaf','input':'{n: .item, at: .index}','concurrency':2,'save_as':'all'},"
	"{'name':'tasks','type':'map','over':'.input.items','action':'Pick','save_as':'tasks'},"
	"{'name':'both','type':'parallel','branches':{"
	"'left':[{'name':'l1','type':'child','workflow':'leaf','input':'{n: .state.one.twice}','save_as':'l'}],"
	"'right':[{'name':'r1','type':'task','action':'Pick','input':'{n: .input.n}','save_as':'r'},"
	"{'name':'r2','type':'condition','when':'.state.r.got == null'}]},'save_as':'both'},"
	"{'name':'again','type':'repeat','steps':[{'name':'draw','type':'task','action':'Once','save_as':'drawn'}],"
	"'until':'.state.drawn.call >= 3','max':5}],"
	"'output':'{one: .state.one, all: .state.all, tasks: .state.tasks, both: .state.both, drawn: .state.drawn.call}'}";

/* Two branches and a wait in each of them. */
static const char fork[] = "{'workflow':'fork','kind':'run'," ACTIONS ",'steps':["
			   "{'name':'first','type':'task','action':'Do','compensate':'Undo'},"
			   "{'name':'many','type':'map','over':'[1,2,3]','workflow':'leaf','input':'{n: .item}'},"
			   "{'name':'ways','type':'parallel','branches':{"
			   "'a':[{'name':'a1','type':'task','action':'Do','compensate':'Undo'},"
			   "{'name':'a2','type':'external_event','event':'go'}],"
			   "'b':[{'name':'b1','type':'task','action':'Do','compensate':'Undo'},"
			   "{'name':'b2','type':'approval'}]},'save_as':'ways'}]}";

static const char race[] = "{'workflow':'race','kind':'run'," ACTIONS ",'steps':["
			   "{'name':'ways','type':'parallel','join':'any','branches':{"
			   "'slow':[{'name':'s1','type':'task','action':'Do','compensate':'Undo','save_as':'s'},"
			   "{'name':'s2','type':'external_event','event':'never'}],"
			   "'quick':[{'name':'q1','type':'external_event','event':'go'},"
			   "{'name':'q2','type':'task','action':'Pick','save_as':'q'}]},'save_as':'won'}],"
			   "'output':'.state.won'}";

static const char tolerant[] =
	"{'workflow':'tolerant','kind':'run','steps':["
	"{'name':'all','type':'map','over':'[1,2,3]','workflow':'leaf','input':'{n: .item}','on_failure':'collect','save_as':'all'},"
	"{'name':'w','type':'external_event','event':'go'}],'output':'.state.all'}";

static const char deep[] = "{'workflow':'deep','kind':'run','steps':["
			   "{'name':'down','type':'child','workflow':'deep'}]}";

static int draws;

static int draw(void *context, const struct service_call *call, char *body, size_t bytes)
{
	(void)context;
	(void)call;
	snprintf(body, bytes, "{\"call\":%d}", ++draws);
	return 200;
}

static void begin(struct scene *scene)
{
	scene_define(scene, "leaf", leaf);
	scene_define(scene, "shapes", shapes);
	scene_define(scene, "fork", fork);
	scene_define(scene, "race", race);
	scene_define(scene, "deep", deep);
	scene_define(scene, "tolerant", tolerant);
	service_play(scene->service, "/pick", &(struct play){.body = "{\"picked\":true}"});
	draws = 0;
	service_play(scene->service, "/once", &(struct play){.respond = draw});
	scene_start(scene, 0);
}

static int64_t count(struct scene *scene, const char *sql)
{
	char cell[64];

	scene_sql(scene, sql, cell, sizeof cell);
	return strtoll(cell, NULL, 10);
}

/* How many children of the run are in this status; NULL: in any. */
static int64_t children(struct scene *scene, const char *status)
{
	char sql[300];

	snprintf(sql, sizeof sql,
		 "SELECT count(*) FROM hx_run r JOIN hx_subject s ON s.id = r.subject WHERE r.parent IS NOT NULL%s%s%s",
		 status ? " AND s.status = '" : "", status ? status : "", status ? "'" : "");
	return count(scene, sql);
}

/* ---- all goes well ---- */

static void test_all_shapes(void **state)
{
	struct scene *scene = *state;
	char id[64], path[200];

	begin(scene);
	run_create_id(scene, "{'definitionId':'shapes','input':{'n':7,'items':[1,2,3]}}", id);
	run_await(scene, id, "COMPLETED");
	assert_string_equal(reply_text(&scene->last, "output.one.twice.1"), "7");
	assert_string_equal(reply_text(&scene->last, "output.all.2.twice.0"), "3");
	assert_string_equal(reply_text(&scene->last, "output.tasks.1.picked"), "true");
	assert_string_equal(reply_text(&scene->last, "output.both.left.l.twice.0.0"), "7");
	assert_string_equal(reply_text(&scene->last, "output.both.right.r.picked"), "true");
	assert_string_equal(reply_text(&scene->last, "output.drawn"), "3");
	assert_int_equal(service_count(scene->service, "/once", NULL), 3);
	assert_int_equal(children(scene, "COMPLETED"), 1 + 3 + 3 + 2 + 1 + 3);
	snprintf(path, sizeof path, RUNS "?parent=%s&definitionId=leaf", id);
	scene_must(scene, 0, "GET", path, NULL, 200, NULL);
	assert_string_equal(reply_text(&scene->last, "items.0.parent.run"), id);
	assert_string_equal(reply_text(&scene->last, "items.0.parent.step"), "all");
	assert_string_equal(reply_text(&scene->last, "items.0.parent.n"), "2");
	assert_string_equal(reply_text(&scene->last, "items.3.parent.step"), "one");
	scene_must(scene, 0, "GET", RUNS "?parent=run_0000000000001", NULL, 200, NULL);
	assert_null(strstr(scene->last.body, "\"id\""));
	assert_int_equal(children(scene, NULL), 1 + 3 + 3 + 2 + 1 + 3);
}

static const char heavy[] =
	"{'workflow':'heavy','kind':'run','steps':["
	"{'name':'all','type':'map','over':'.input.items','workflow':'light','input':'{n: .item, text: .input.text}',"
	"'concurrency':64}]}";
static const char light[] = "{'workflow':'light','kind':'run','actions':{'N':{'kind':'noop'}},"
			    "'steps':[{'name':'n','type':'task','action':'N'}]}";

/* All of them together have more input than one unit takes. */
static void test_children_with_much_input(void **state)
{
	enum { TEXT_BYTES = 900000, BODY_BYTES = TEXT_BYTES + 1000, ITEMS = 40 };
	struct scene *scene = *state;
	char *body = malloc(BODY_BYTES), id[64];
	int n;

	assert_non_null(body);
	scene_define(scene, "heavy", heavy);
	scene_define(scene, "light", light);
	begin(scene);
	n = snprintf(body, BODY_BYTES, "{'definitionId':'heavy','input':{'items':[0");
	for (int i = 1; i < ITEMS; i++)
		n += snprintf(body + n, BODY_BYTES - (size_t)n, ",%d", i);
	n += snprintf(body + n, BODY_BYTES - (size_t)n, "],'text':'");
	memset(body + n, 'x', TEXT_BYTES);
	snprintf(body + n + TEXT_BYTES, BODY_BYTES - (size_t)n - TEXT_BYTES, "'}}");
	run_create_id(scene, body, id);
	free(body);
	run_await(scene, id, "COMPLETED");
	assert_int_equal(children(scene, "COMPLETED"), ITEMS);
	scene_stop(scene, 0);
}

static void test_a_map_of_nothing_and_of_what_is_no_list(void **state)
{
	struct scene *scene = *state;
	char id[64];

	begin(scene);
	run_create_id(scene, "{'definitionId':'shapes','input':{'n':7,'items':[]}}", id);
	run_await(scene, id, "COMPLETED");
	assert_string_equal(reply_text(&scene->last, "output.drawn"), "3");
	draws = 0;
	run_create_id(scene, "{'definitionId':'shapes','input':{'n':7,'items':{'a':1}}}", id);
	run_await(scene, id, "FAILED");
	assert_string_equal(reply_text(&scene->last, "error.code"), "VALIDATION_ERROR");
	assert_string_equal(reply_text(&scene->last, "error.step"), "all");
}

static void test_keys_of_children_are_the_engines(void **state)
{
	static const char *const keys[] = {"run_1/a/0", "schedule:x", "hook:x:1", "bulk:1"};
	struct scene *scene = *state;
	char body[200];

	begin(scene);
	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
		snprintf(body, sizeof body, "{'definitionId':'deep','idempotencyKey':'%s'}", keys[i]);
		scene_must(scene, 0, "POST", RUNS, body, 400, "KEY_RESERVED");
		snprintf(body, sizeof body, "{'queue':'q','payload':1,'key':'%s'}", keys[i]);
		scene_must(scene, 0, "POST", "/api/v1/jobs", body, 400, "KEY_RESERVED");
		snprintf(body, sizeof body, "{'workflow':'w','account':'a','items':[],'idempotencyKey':'%s'}", keys[i]);
		scene_must(scene, 0, "POST", "/api/v1/batches", body, 400, "KEY_RESERVED");
	}
	scene_must(scene, 0, "POST", RUNS, "{'definitionId':'deep','idempotencyKey':'run_1'}", 201, NULL);
}

static void test_children_of_children_end_somewhere(void **state)
{
	struct scene *scene = *state;
	char id[64];

	begin(scene);
	run_create_id(scene, "{'definitionId':'deep'}", id);
	run_await(scene, id, "FAILED");
	assert_string_equal(reply_text(&scene->last, "error.code"), "CHILD_FAILED");
	assert_non_null(strstr(scene->last.body, "TOO_DEEP"));
	assert_int_equal(children(scene, "FAILED"), 16);
}

/* ---- cancel, pause ---- */

static void await_fork(struct scene *scene, char ret_id[64])
{
	run_create_id(scene, "{'definitionId':'fork'}", ret_id);
	AWAIT(RUN_ARRIVE_MS,
	      count(scene, "SELECT count(*) FROM hx_run WHERE awaits IN ('event go', 'approval b2')") == 2);
}

/* Each effect has one compensation, of the same run and step, and those of one run come in reverse. */
static void assert_undone(struct scene *scene, size_t n)
{
	assert_int_equal(service_count(scene->service, "/do", NULL), n);
	assert_int_equal(service_count(scene->service, "/undo", NULL), n);
	for (size_t i = 0; i < n; i++) {
		struct service_call done = service_call(scene->service, "/do", i);
		size_t found = 0;
		char key[SERVICE_ID_BYTES + 8];

		snprintf(key, sizeof key, "%.*sundo", (int)(strrchr(done.key, '/') + 1 - done.key), done.key);
		for (size_t k = 0; k < n; k++)
			found += strcmp(service_call(scene->service, "/undo", k).key, key) == 0;
		assert_int_equal(found, 1);
	}
}

static void test_a_tree_is_cancelled_whole(void **state)
{
	struct scene *scene = *state;
	char id[64];

	begin(scene);
	await_fork(scene, id);
	run_do(scene, id, "cancel", "{}", 202, NULL);
	run_await(scene, id, "CANCELLED");
	assert_int_equal(children(scene, NULL), 5);
	assert_int_equal(children(scene, "CANCELLED"), 5);
	assert_undone(scene, 6);
	assert_non_null(strstr(service_call(scene->service, "/undo", 5).key, id)); /* the parent's own is the last */
	assert_non_null(strstr(service_call(scene->service, "/undo", 5).key, "/first/"));
}

static void test_pause_goes_down_and_resume_too(void **state)
{
	struct scene *scene = *state;
	char id[64];

	begin(scene);
	await_fork(scene, id);
	run_do(scene, id, "pause", "{}", 200, NULL);
	AWAIT(RUN_ARRIVE_MS, children(scene, "PAUSED") == 2);
	run_do(scene, id, "events/go", "{'id':'1'}", 202, NULL);
	run_do(scene, id, "resume", "{}", 200, NULL);
	AWAIT(RUN_ARRIVE_MS, children(scene, "COMPLETED") == 4);
	run_do(scene, id, "approvals/b2", "{'decision':'approve'}", 200, NULL);
	run_await(scene, id, "COMPLETED");
	assert_int_equal(service_count(scene->service, "/undo", NULL), 0);
}

/* ---- failures ---- */

static int fail_second(void *context, const struct service_call *call, char *body, size_t bytes)
{
	snprintf(body, bytes, "{}");
	return *(bool *)context && strstr(call->body, "\"n\":2") ? 404 : 200;
}

static void test_one_that_fails_ends_the_step(void **state)
{
	static bool fails;
	struct scene *scene = *state;
	char id[64];

	fails = true;
	begin(scene);
	service_play(scene->service, "/do", &(struct play){.respond = fail_second, .context = &fails});
	run_create_id(scene, "{'definitionId':'fork'}", id);
	run_await(scene, id, "FAILED");
	assert_string_equal(reply_text(&scene->last, "error.code"), "CHILD_FAILED");
	assert_string_equal(reply_text(&scene->last, "error.step"), "many");
	assert_int_equal(service_count(scene->service, "/undo", NULL), 0);
	fails = false;
	run_do(scene, id, "retry", "{}", 200, NULL);
	AWAIT(RUN_ARRIVE_MS,
	      count(scene, "SELECT count(*) FROM hx_run WHERE awaits IN ('event go', 'approval b2')") == 2);
	assert_int_equal(children(scene, NULL), 5); /* the same runs */
	run_do(scene, id, "cancel", "{}", 202, NULL);
	run_await(scene, id, "CANCELLED");
	assert_int_equal(service_count(scene->service, "/undo", NULL), 6);
}

/* What has failed has an error in its place, what is done an output; a cancel undoes that, and ends the failed one. */
static void test_what_fails_is_collected(void **state)
{
	static bool fails = true;
	struct scene *scene = *state;
	char id[64];

	begin(scene);
	service_play(scene->service, "/do", &(struct play){.respond = fail_second, .context = &fails});
	run_create_id(scene, "{'definitionId':'tolerant'}", id);
	run_do(scene, id, "events/go", "{'id':'1'}", 202, NULL);
	run_await(scene, id, "COMPLETED");
	assert_string_equal(reply_text(&scene->last, "output.0.twice.0"), "1");
	assert_string_equal(reply_text(&scene->last, "output.1.error.code"), "ACTION_FAILED");
	assert_string_equal(reply_text(&scene->last, "output.2.twice.1"), "3");
	assert_int_equal(children(scene, "FAILED"), 1);
	assert_int_equal(service_count(scene->service, "/undo", NULL), 0);
	run_create_id(scene, "{'definitionId':'tolerant'}", id);
	AWAIT(RUN_ARRIVE_MS, count(scene, "SELECT count(*) FROM hx_run WHERE awaits = 'event go'") == 1);
	run_do(scene, id, "cancel", "{}", 202, NULL);
	run_await(scene, id, "CANCELLED");
	assert_int_equal(service_count(scene->service, "/undo", NULL), 2);
	assert_int_equal(children(scene, "CANCELLED"), 3);
}

static void test_the_first_branch_wins(void **state)
{
	struct scene *scene = *state;
	char id[64];

	begin(scene);
	run_create_id(scene, "{'definitionId':'race'}", id);
	AWAIT(RUN_ARRIVE_MS,
	      count(scene, "SELECT count(*) FROM hx_run WHERE awaits IN ('event go', 'event never')") == 2);
	run_do(scene, id, "events/go", "{'id':'1'}", 202, NULL);
	run_await(scene, id, "COMPLETED");
	assert_string_equal(reply_text(&scene->last, "output.quick.q.picked"), "true");
	assert_null(strstr(scene->last.body, "\"slow\":"));
	assert_int_equal(children(scene, "CANCELLED"), 1);
	assert_int_equal(children(scene, "COMPLETED"), 1);
	assert_undone(scene, 1);
}

static void test_a_child_cancelled_alone_fails_its_step(void **state)
{
	struct scene *scene = *state;
	char id[64], child[64];
	int64_t subject;

	begin(scene);
	await_fork(scene, id);
	subject = count(scene, "SELECT subject FROM hx_run WHERE awaits = 'event go'");
	id_format("run", subject, child);
	run_do(scene, child, "cancel", "{}", 202, NULL);
	run_await(scene, child, "CANCELLED");
	run_await(scene, id, "FAILED");
	assert_string_equal(reply_text(&scene->last, "error.code"), "CHILD_FAILED");
	assert_int_equal(count(scene, "SELECT count(*) FROM hx_run WHERE error LIKE '%SIBLING_FAILED%'"), 1);
}

#define ON(store, test) cmocka_unit_test_setup_teardown(test, scene_set_up_##store, scene_tear_down)
#define ON_BOTH(test) ON(sqlite, test), ON(postgres, test)

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(test_all_shapes),
		ON_BOTH(test_children_with_much_input),
		ON(sqlite, test_a_map_of_nothing_and_of_what_is_no_list),
		ON(sqlite, test_keys_of_children_are_the_engines),
		ON_BOTH(test_children_of_children_end_somewhere),
		ON_BOTH(test_a_tree_is_cancelled_whole),
		ON_BOTH(test_pause_goes_down_and_resume_too),
		ON_BOTH(test_one_that_fails_ends_the_step),
		ON_BOTH(test_what_fails_is_collected),
		ON_BOTH(test_the_first_branch_wins),
		ON(sqlite, test_a_child_cancelled_alone_fails_its_step),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
