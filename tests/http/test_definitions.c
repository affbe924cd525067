/*
 * Putting definitions, and what it must not cost: memory for what is refused, other nodes that do not hear of it, a
 * mistake in SQL that is found by the first entity, a crash when the server stops meanwhile. What was put is shown, for ever.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"
#include "support/await.h"
#include "support/scene.h"

#define ARRIVE_MS 60000
#define FOLLOWED_MS 60000
#define PUT "/api/v1/definitions/billing"
#define BIG_BYTES (1u << 20)
#define BIG_PUTS 200
#ifdef __SANITIZE_ADDRESS__
#define GROWTH_KB_MAX (1 << 30) /* its quarantine keeps what was freed: there is nothing to measure */
#else
#define GROWTH_KB_MAX (50 * 1024)
#endif
#define PUTTERS 4
#define STOPS 5

#define DEFINITION(module, more)                                                                                       \
	"{'workflow':'billing','kind':'entity','meta':{'module':'" module "'},"                                        \
	"'status_types':['approved','closing','closed','archived'],'initial_status':'approved',"                       \
	"'actions':{'Close':{'kind':'http','url':'@/close','effect':'claimed'}},"                                      \
	"'steps':[{'step_id':20,'step_key':'close','status':'approved','successful_state':'closed','action':'Close',"  \
	"'claim_state':['closing','approved']}" more "]}"

static const char first[] = DEFINITION("billing", "");
static const char second[] = DEFINITION(
	"billing", ",{'step_id':30,'step_key':'archive','status':'closed','successful_state':'archived'}");
static const char stock[] = DEFINITION("stock", "");

#define SQL_DEFINITION(statement)                                                                                      \
	"{'workflow':'billing','kind':'entity','status_types':['approved','closed'],'initial_status':'approved',"      \
	"'actions':{'Book':{'kind':'sql','statements':[{'name':'book_it','sql':'" statement "'}]}},"                   \
	"'steps':[{'step_id':20,'step_key':'close','status':'approved','successful_state':'closed','action':'Book'}]}"

static const char sql_insert[] = SQL_DEFINITION("INSERT INTO booked_rows (id, amount) VALUES (:id, :input.amount)");
static const char sql_update[] = SQL_DEFINITION("UPDATE booked_rows SET amount = :input.amount + 1 WHERE id = :id");
static const char sql_column[] = SQL_DEFINITION("UPDATE booked_rows SET amuont = 1 WHERE id = :id");
static const char sql_broken[] = SQL_DEFINITION("UPDAET booked_rows SET amount = 1");

#define RUN_DEFINITION(steps)                                                                                          \
	"{'workflow':'order','kind':'run','meta':{'module':'shop'},"                                                   \
	"'actions':{'Tell':{'kind':'http','url':'@/tell','effect':'keyed'},'Book':{'kind':'sql','statements':["        \
	"{'name':'book_it','sql':'INSERT INTO booked_rows (id, amount) VALUES (:key, :input.amount)'}]}},"             \
	"'steps':[" steps "]}"

static const char run_first[] = RUN_DEFINITION("{'name':'tell','type':'task','action':'Tell'}");
static const char run_second[] = RUN_DEFINITION(
	"{'name':'rest','type':'wait','for':'1s'},{'name':'tell','type':'task','action':'Tell'}");
static const char run_broken[] = RUN_DEFINITION("{'name':'tell','type':'task','action':'Tlel'}");

#define BATCH_DEFINITION(item, more)                                                                                   \
	"{'workflow':'render','kind':'batch','meta':{'module':'studio'},"                                              \
	"'actions':{'Draw':{'kind':'http','url':'@/draw','effect':'keyed'},"                                           \
	"'Delete':{'kind':'http','url':'@/delete','effect':'idempotent'}},"                                            \
	"'item_action':'" item "','cleanup_action':'Delete'" more "}"

static const char batch_first[] = BATCH_DEFINITION("Draw", "");
static const char batch_second[] = BATCH_DEFINITION("Draw", ",'concurrency':2");
static const char batch_broken[] = BATCH_DEFINITION("Darw", "");

static void begin(struct scene *scene)
{
	scene_define(scene, "billing", first);
	scene_configure(scene, "{'modules':{'billing':{'janitor':{}}}}");
	scene_start(scene, 0);
}

static bool has_version(struct scene *scene, int node, int64_t version)
{
	scene_must(scene, node, "GET", "/api/v1/definitions", NULL, 200, NULL);
	return reply_int(&scene->last, "items.0.version") == version;
}

/* ---- memory ---- */

static long rss_kb(const struct serve *serve)
{
	char path[64], line[200];
	long kb = -1;
	FILE *file;

	snprintf(path, sizeof path, "/proc/%d/status", (int)serve->pid);
	file = fopen(path, "r");
	assert_non_null(file);
	while (kb < 0 && fgets(line, sizeof line, file))
		(void)sscanf(line, "VmRSS: %ld", &kb);
	fclose(file);
	assert_true(kb > 0);
	return kb;
}

/* A definition with as many bytes as wanted between its members. The caller frees it. */
static char *padded(const char *text, size_t bytes)
{
	size_t n = strlen(text);
	char *big = malloc(bytes + n + 1);

	assert_non_null(big);
	big[0] = '{';
	memset(big + 1, ' ', bytes);
	memcpy(big + 1 + bytes, text + 1, n);
	return big;
}

static void test_refused_puts_cost_no_memory(void **state)
{
	struct scene *scene = *state;
	char *uncovered = padded(stock, BIG_BYTES), *broken = padded("{'workflow':'billing','stps':[]}", BIG_BYTES);
	long before_kb = 0;

	begin(scene);
	for (int i = 0; i < BIG_PUTS + 10; i++) {
		scene_must(scene, 0, "PUT", PUT, i % 2 ? uncovered : broken, 422, "DEFINITION_INVALID");
		if (i == 9)
			before_kb = rss_kb(scene->nodes[0]);
	}
	if (rss_kb(scene->nodes[0]) - before_kb > GROWTH_KB_MAX)
		fail_msg("%ld KiB, and %ld after %d refused PUTs", before_kb, rss_kb(scene->nodes[0]), BIG_PUTS);
	assert_true(has_version(scene, 0, 1));
	free(uncovered);
	free(broken);
	scene_stop(scene, 0);
}

/* ---- two nodes ---- */

static void test_put_is_in_force_on_the_other_node(void **state)
{
	struct scene *scene = *state;

	begin(scene);
	scene_start(scene, 1);
	scene_create(scene, "a");
	scene_fire(scene, 0, "a", "close", 200, NULL);
	scene_fire(scene, 1, "a", "archive", 404, "NOT_FOUND");
	scene_must(scene, 0, "PUT", PUT, second, 200, NULL);
	AWAIT(FOLLOWED_MS, has_version(scene, 1, 2));
	scene_fire(scene, 1, "a", "archive", 200, NULL);
	serve_await_log(scene->nodes[1], "definitions that another node has put are in force", 1, ARRIVE_MS);
	/* The folder still has the first one, and does not come back by itself. */
	scene_must(scene, 1, "PUT", "/api/v1/definitions/parcel",
		   "{'workflow':'parcel','kind':'entity','status_types':['a','b'],'initial_status':'a','steps':["
		   "{'step_id':1,'step_key':'go','status':'a','successful_state':'b'}]}",
		   200, NULL);
	AWAIT(FOLLOWED_MS,
	      reply_count(scene_must(scene, 0, "GET", "/api/v1/definitions", NULL, 200, NULL), "items") == 2);
	assert_true(has_version(scene, 0, 2));
	assert_true(has_version(scene, 1, 2));
	scene_stop(scene, 1);
	scene_stop(scene, 0);
}

/* The other node has no janitor for it: it says so once, and keeps what it has until something better comes. */
static void test_put_that_is_not_valid_on_the_other_node(void **state)
{
	static const char kept[] = "another node has put definitions that cannot be in force here";
	struct scene *scene = *state;

	scene_define(scene, "billing", first);
	scene_configure(scene, "{'modules':{'billing':{'janitor':{}},'stock':{'janitor':{}}}}");
	scene_start(scene, 0);
	scene_configure(scene, "{'modules':{'billing':{'janitor':{}}}}");
	scene_start(scene, 1);
	scene_must(scene, 0, "PUT", PUT, stock, 200, NULL);
	serve_await_log(scene->nodes[1], kept, 1, ARRIVE_MS);
	assert_true(file_count(scene->nodes[1]->log, "stock") >= 1);
	assert_true(has_version(scene, 1, 1));
	scene_must(scene, 0, "GET", PUT, NULL, 200, NULL);
	assert_int_equal(reply_int(&scene->last, "version"), 2);
	scene_must(scene, 1, "GET", PUT, NULL, 200, NULL); /* what is in force there */
	assert_int_equal(reply_int(&scene->last, "version"), 1);
	assert_string_equal(reply_text(&scene->last, "definition.meta.module"), "billing");
	scene_must(scene, 1, "GET", PUT "?version=2", NULL, 200, NULL); /* what the store has */
	assert_string_equal(reply_text(&scene->last, "definition.meta.module"), "stock");
	scene_must(scene, 0, "PUT", PUT, second, 200, NULL);
	AWAIT(FOLLOWED_MS, has_version(scene, 1, 3));
	assert_int_equal(file_count(scene->nodes[1]->log, kept), 1);
	scene_stop(scene, 1);
	scene_stop(scene, 0);
}

/* ---- shown ---- */

/* The text of the definition is there, to the byte. */
static void assert_shows(struct scene *scene, const char *path, const char *kind, int64_t version, const char *text)
{
	char *expected = scene_text(scene, text), etag[40];

	scene_must(scene, 0, "GET", path, NULL, 200, NULL);
	assert_string_equal(reply_text(&scene->last, "kind"), kind);
	assert_int_equal(reply_int(&scene->last, "version"), version);
	snprintf(etag, sizeof etag, "ETag: \"%lld\"\r\n", (long long)version);
	assert_non_null(strstr(scene->last.head, etag));
	if (!strstr(scene->last.body, expected))
		fail_msg("%s: %s, and not %s", path, scene->last.body, expected);
	free(expected);
}

static void test_versions_are_shown(void **state)
{
	static const char nap[] =
		"{\n\t'kind' : 'run', 'workflow':'nap',\n 'steps': [ {'name':'rest','type':'wait','for':'1s'} ] }";
	struct scene *scene = *state;
	char since[64];

	begin(scene);
	assert_shows(scene, PUT, "entity", 1, first);
	assert_string_equal(reply_text(&scene->last, "name"), "billing");
	snprintf(since, sizeof since, "%s", reply_text(&scene->last, "createdAt"));
	assert_int_equal(strlen(since), strlen("2026-01-01T00:00:00.000Z"));
	scene_must(scene, 0, "PUT", PUT, second, 200, NULL);
	assert_shows(scene, PUT, "entity", 2, second);
	assert_true(strcmp(reply_text(&scene->last, "createdAt"), since) >= 0);
	assert_shows(scene, PUT "?version=1", "entity", 1, first);
	assert_string_equal(reply_text(&scene->last, "createdAt"), since);
	scene_must(scene, 0, "PUT", PUT, stock, 422, "DEFINITION_INVALID");
	assert_shows(scene, PUT, "entity", 2, second);
	scene_must(scene, 0, "PUT", "/api/v1/definitions/nap", nap, 200, NULL);
	assert_shows(scene, "/api/v1/definitions/nap", "run", 1, nap);
	/* After a restart nothing needs the first version any more. It is shown all the same. */
	scene_stop(scene, 0);
	scene_define(scene, "billing", second);
	scene_start(scene, 0);
	assert_shows(scene, PUT, "entity", 2, second);
	assert_shows(scene, PUT "?version=1", "entity", 1, first);
	assert_string_equal(reply_text(&scene->last, "createdAt"), since);
	scene_stop(scene, 0);
}

/* Whoever may put could otherwise have the server send what it can read to a service of his own. */
static void test_secrets_that_a_put_may_name(void **state)
{
	static const char put[] = "/api/v1/definitions/spy";
	static const char spy[] =
		"{'workflow':'spy','kind':'run','actions':{'A':{'kind':'http','url':'@/spied','headers':"
		"{'X-A':'${env:SHOP_%s} ${file:/run/secrets/a}'}}},'steps':[{'name':'a','type':'task','action':'A'}]}";
	struct scene *scene = *state;
	char text[600];

	begin(scene);
	snprintf(text, sizeof text, spy, "KEY");
	scene_must(scene, 0, "PUT", put, text, 422, "DEFINITION_INVALID");
	assert_non_null(strstr(reply_text(&scene->last, "findings.0.text"), "${env:SHOP_KEY} is not among what"));
	assert_int_equal(reply_count(&scene->last, "findings"), 2);
	scene_stop(scene, 0);
	scene_define(scene, "spy", text); /* a file may */
	scene_start(scene, 0);
	scene_must(scene, 0, "PUT", put, text, 200, NULL); /* and what is in force is nothing new */
	scene_stop(scene, 0);

	scene_configure(
		scene,
		"{'modules':{'billing':{'janitor':{}}},'secrets':{'allow':['env:SHOP_*','file:/run/secrets/a']}}");
	scene_start(scene, 0);
	snprintf(text, sizeof text, spy, "OTHER");
	scene_must(scene, 0, "PUT", put, text, 200, NULL);
	scene_must(
		scene, 0, "PUT", put,
		"{'workflow':'spy','kind':'run','actions':{'A':{'kind':'http','url':'@/spied','headers':{'X':'${env:PATH}'}}},"
		"'steps':[{'name':'a','type':'task','action':'A'}]}",
		422, "DEFINITION_INVALID");
	scene_stop(scene, 0);

	/* What the list forbids is not sent either, whoever brought it. */
	scene_configure(scene, "{'modules':{'billing':{'janitor':{}}},'secrets':{'allow':[]}}");
	scene_define(scene, "spy", NULL);
	scene_start(scene, 0);
	scene_must(scene, 0, "POST", "/api/v1/workflow-runs?wait=20s", "{'definitionId':'spy'}", 201, "");
	assert_string_equal(reply_text(&scene->last, "run.status"), "FAILED");
	assert_non_null(strstr(reply_text(&scene->last, "run.error.message"), "is not allowed, see secrets.allow"));
	assert_int_equal(service_count(scene->service, "/spied", NULL), 0);
	scene_stop(scene, 0);
}

static void test_what_is_not_there_is_not_shown(void **state)
{
	static const char *const wrong[] = {PUT "?version=0", PUT "?version=-1", PUT "?version=x",

					    PUT "?version=9223372036854775808", PUT "?verison=1"};
	struct scene *scene = *state;

	begin(scene);
	scene_must(scene, 0, "GET", PUT "?version=2", NULL, 404, "NOT_FOUND");
	assert_string_equal(reply_text(&scene->last, "detail"), "the workflow has no such version");
	scene_must(scene, 0, "GET", "/api/v1/definitions/biling", NULL, 404, "NOT_FOUND");
	assert_string_equal(reply_text(&scene->last, "detail"), "no workflow \"biling\"; did you mean \"billing\"?");
	scene_must(scene, 0, "GET", "/api/v1/definitions/biling?version=1", NULL, 404, "NOT_FOUND");
	assert_non_null(strstr(reply_text(&scene->last, "detail"), "did you mean \"billing\"?"));
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
		scene_must(scene, 0, "GET", wrong[i], NULL, 400, "VALIDATION_ERROR");
	scene_stop(scene, 0);
}

/* ---- SQL ---- */

static void assert_finding(struct scene *scene, const char *word)
{
	const char *text = reply_text(&scene->last, "findings.0.text");

	assert_int_equal(reply_count(&scene->last, "findings"), 1);
	if (!strstr(text, word) || !strstr(text, "Book") || !strstr(text, "book_it") || !strstr(text, "billing"))
		fail_msg("the finding does not name %s, the action and the statement: %s", word, text);
	assert_string_equal(reply_text(&scene->last, "findings.0.rule"), "sql");
}

static void test_wrong_sql_is_refused(void **state)
{
	struct scene *scene = *state;

	begin(scene);
	scene_must(scene, 0, "PUT", PUT, sql_insert, 422, "DEFINITION_INVALID");
	assert_finding(scene, "booked_rows");
	scene_must(scene, 0, "PUT", PUT, sql_broken, 422, "DEFINITION_INVALID");
	assert_finding(scene, "UPDAET");
	assert_true(has_version(scene, 0, 1));
	scene_sql(scene, "CREATE TABLE booked_rows (id text PRIMARY KEY, amount bigint)", NULL, 0);
	scene_must(scene, 0, "PUT", PUT, sql_column, 422, "DEFINITION_INVALID");
	assert_finding(scene, "amuont");
	scene_must(scene, 0, "PUT", PUT, sql_insert, 200, NULL);
	scene_must(scene, 0, "PUT", PUT, sql_update, 200, NULL);
	assert_true(has_version(scene, 0, 3));
	scene_stop(scene, 0);
}

static void test_wrong_sql_is_refused_at_boot(void **state)
{
	struct scene *scene = *state;
	struct serve_options options;

	scene_define(scene, "billing", sql_insert);
	options = scene_options(scene, 0);
	assert_int_equal(serve_refused(&options), hx_code_exit(HX_CONFIG_ERROR));
	assert_true(file_count(options.log, "booked_rows") >= 1);
	assert_true(file_count(options.log, "book_it") >= 1);
}

/* ---- runs ---- */

#define PUT_ORDER "/api/v1/definitions/order"

static void test_runs_are_definitions_too(void **state)
{
	struct scene *scene = *state;

	begin(scene);
	scene_must(scene, 0, "PUT", PUT_ORDER, run_first, 422, "DEFINITION_INVALID");
	assert_string_equal(reply_text(&scene->last, "findings.0.rule"), "sql");
	assert_non_null(strstr(reply_text(&scene->last, "findings.0.text"), "booked_rows"));
	scene_sql(scene, "CREATE TABLE booked_rows (id text PRIMARY KEY, amount bigint)", NULL, 0);
	scene_must(scene, 0, "PUT", PUT_ORDER, run_first, 200, NULL);
	scene_must(scene, 0, "PUT", PUT_ORDER, run_broken, 422, "DEFINITION_INVALID");
	assert_non_null(strstr(reply_text(&scene->last, "findings.0.text"), "did you mean \"Tell\"?"));
	scene_must(scene, 0, "PUT", PUT_ORDER, run_second, 200, NULL);
	assert_int_equal(reply_int(&scene->last, "version"), 2);
	scene_must(scene, 0, "GET", "/api/v1/definitions", NULL, 200, NULL);
	assert_int_equal(reply_count(&scene->last, "items"), 2);
	assert_string_equal(reply_text(&scene->last, "items.0.kind"), "entity");
	assert_string_equal(reply_text(&scene->last, "items.1.kind"), "run");
	assert_string_equal(reply_text(&scene->last, "items.1.name"), "order");
	assert_string_equal(reply_text(&scene->last, "items.1.module"), "shop");
	assert_int_equal(reply_int(&scene->last, "items.1.version"), 2);
	assert_int_equal(reply_int(&scene->last, "items.1.steps"), 2);
	assert_string_equal(reply_text(&scene->last, "items.1.definition.steps.0.name"), "rest");
	scene_stop(scene, 0);
	scene_start(scene, 0); /* and they are still there */
	scene_must(scene, 0, "GET", "/api/v1/definitions", NULL, 200, NULL);
	assert_int_equal(reply_int(&scene->last, "items.1.version"), 2);
	scene_stop(scene, 0);
}

#define PUT_RENDER "/api/v1/definitions/render"

/* From the folder and by a call; in a version that is raised; listed; and still there after a restart. */
static void test_batches_are_definitions_too(void **state)
{
	struct scene *scene = *state;

	scene_define(scene, "render", batch_first);
	begin(scene);
	scene_must(scene, 0, "PUT", PUT_RENDER, batch_first, 200, NULL);
	assert_int_equal(reply_int(&scene->last, "version"), 1);
	scene_must(scene, 0, "PUT", PUT_RENDER, batch_broken, 422, "DEFINITION_INVALID");
	assert_non_null(strstr(reply_text(&scene->last, "findings.0.text"), "did you mean \"Draw\"?"));
	scene_must(scene, 0, "PUT", PUT_RENDER, BATCH_DEFINITION("Delete", ""), 422, "DEFINITION_INVALID");
	assert_non_null(strstr(reply_text(&scene->last, "findings.0.text"), "Delete is the item_action"));
	scene_must(scene, 0, "PUT", PUT_RENDER, batch_second, 200, NULL);
	assert_int_equal(reply_int(&scene->last, "version"), 2);
	scene_stop(scene, 0);
	scene_define(scene, "render", batch_second);
	scene_start(scene, 0);
	scene_must(scene, 0, "GET", "/api/v1/definitions", NULL, 200, NULL);
	assert_int_equal(reply_count(&scene->last, "items"), 2);
	assert_string_equal(reply_text(&scene->last, "items.1.kind"), "batch");
	assert_string_equal(reply_text(&scene->last, "items.1.name"), "render");
	assert_string_equal(reply_text(&scene->last, "items.1.module"), "studio");
	assert_int_equal(reply_int(&scene->last, "items.1.version"), 2);
	assert_int_equal(reply_int(&scene->last, "items.1.steps"), 0);
	assert_string_equal(reply_text(&scene->last, "items.1.definition.item_action"), "Draw");
	assert_int_equal(reply_int(&scene->last, "items.1.definition.concurrency"), 2);
	scene_must(scene, 0, "POST", "/api/v1/entities/render", "{'id':'x'}", 404, "NOT_FOUND");
	scene_must(scene, 0, "POST", "/api/v1/entities/rendr", "{'id':'x'}", 404, "NOT_FOUND");
	assert_null(strstr(scene->last.body, "did you mean \"render\"?"));
	scene_must(scene, 0, "POST", "/api/v1/workflow-runs", "{'definitionId':'render'}", 404, "NOT_FOUND");
	scene_stop(scene, 0);
}

static bool jobs_are(struct scene *scene, const char *first_status, const char *second_status)
{
	scene_must(scene, 0, "GET", "/api/v1/jobs", NULL, 200, NULL);
	return strcmp(reply_text(&scene->last, "items.0.status"), first_status) == 0 &&
	       strcmp(reply_text(&scene->last, "items.1.status"), second_status) == 0;
}

/*
 * A job finds the actions of a batch, and to the one that cleans up a 404 is a success. The jobs are after-effects of
 * entities that become a batch's while they rest between two attempts.
 */
static void test_jobs_of_batches(void **state)
{
	struct scene *scene = *state;

	scene_define(scene, "render", batch_first);
	scene_define(scene, "billing",
		     "{'workflow':'billing','kind':'entity','status_types':['open','paid'],'initial_status':'open',"
		     "'actions':{'Mail':{'kind':'http','url':'@/mail','effect':'keyed'}},'steps':[{'step_id':1,"
		     "'step_key':'pay','status':'open','successful_state':'paid','success_after_effect':['Mail']}]}");
	service_play(scene->service, "/mail", &(struct play){.status = 503});
	service_play(scene->service, "/delete", &(struct play){.status = 404, .body = "{\"no\":\"such\"}"});
	service_play(scene->service, "/draw", &(struct play){.status = 404});
	scene_start(scene, 0);
	scene_create(scene, "a");
	scene_create(scene, "b");
	scene_fire(scene, 0, "a", "pay", 200, NULL);
	AWAIT(ARRIVE_MS, service_count(scene->service, "/mail", "a") == 1);
	scene_sql(scene, "UPDATE hx_job SET workflow = 'render', action = 'Delete', effect_key = 'of-a'", NULL, 0);
	scene_fire(scene, 0, "b", "pay", 200, NULL);
	AWAIT(ARRIVE_MS, service_count(scene->service, "/mail", "b") == 1);
	scene_sql(
		scene,
		"UPDATE hx_job SET workflow = 'render', action = 'Draw', effect_key = 'of-b' WHERE workflow = 'billing'",
		NULL, 0);
	AWAIT(ARRIVE_MS, jobs_are(scene, "COMPLETED", "PARKED"));
	assert_int_equal(service_count(scene->service, "/delete", "a"), 1);
	assert_int_equal(service_count(scene->service, "/draw", "b"), 1);
	assert_string_equal(service_call(scene->service, "/delete", 0).key, "of-a");
	scene_stop(scene, 0);
}

/* Its entities would be lost to the run, and its runs to the entity. */
static void test_a_definition_keeps_its_kind(void **state)
{
	struct scene *scene = *state;
	const char *said;

	begin(scene);
	scene_must(scene, 0, "PUT", PUT,
		   "{'workflow':'billing','kind':'run','steps':[{'name':'rest','type':'wait','for':'1s'}]}", 422,
		   "DEFINITION_INVALID");
	said = reply_text(&scene->last, "findings.0.text");
	if (!strstr(said, "kind run") || !strstr(said, "kind entity") || !strstr(said, "choose another name"))
		fail_msg("%s", said);
	scene_must(scene, 0, "PUT", PUT,
		   "{'workflow':'billing','kind':'batch','actions':{'x':{'kind':'noop'}},'item_action':'x'}", 422,
		   "DEFINITION_INVALID");
	assert_non_null(strstr(reply_text(&scene->last, "findings.0.text"), "this is of kind batch"));
	assert_true(has_version(scene, 0, 1));
	scene_create(scene, "a");
	scene_fire(scene, 0, "a", "close", 200, NULL);
	/* A run is no entity. */
	scene_must(scene, 0, "PUT", "/api/v1/definitions/pause",
		   "{'workflow':'pause','kind':'run','steps':[{'name':'rest','type':'wait','for':'1s'}]}", 200, NULL);
	scene_must(scene, 0, "POST", "/api/v1/entities/pause", "{'id':'x'}", 404, "NOT_FOUND");
	scene_stop(scene, 0);
}

static bool shows_run(struct scene *scene, int node, const char *path)
{
	scene_call(scene, node, "GET", path, NULL);
	return scene->last.status == 200;
}

/* A node that has never heard of a version brings it when a run of it is asked for; after a restart all are there. */
static void test_runs_of_a_version_that_another_node_put(void **state)
{
	static const char waits[] =
		"{'workflow':'pause','kind':'run','steps':[{'name':'rest','type':'wait','for':'7d'}]}";
	static const char other[] =
		"{'workflow':'pause','kind':'run','steps':[{'name':'nap','type':'wait','for':'8d'}]}";
	struct scene *scene = *state;
	char path[200];

	begin(scene);
	scene_start(scene, 1);
	scene_must(scene, 0, "PUT", "/api/v1/definitions/pause", waits, 200, NULL);
	scene_must(scene, 0, "POST", "/api/v1/workflow-runs", "{'definitionId':'pause'}", 201, NULL);
	snprintf(path, sizeof path, "/api/v1/workflow-runs/%s", reply_text(&scene->last, "run.id"));
	AWAIT(FOLLOWED_MS, shows_run(scene, 1, path));
	assert_int_equal(reply_int(&scene->last, "definitionVersion"), 1);
	assert_string_equal(reply_text(&scene->last, "steps.0.name"), "rest");
	scene_must(scene, 0, "PUT", "/api/v1/definitions/pause", other, 200, NULL);
	scene_stop(scene, 0);
	scene_start(scene, 0);
	scene_must(scene, 0, "GET", path, NULL, 200, NULL);
	assert_int_equal(reply_int(&scene->last, "definitionVersion"), 1);
	assert_string_equal(reply_text(&scene->last, "steps.0.name"), "rest");
	scene_stop(scene, 1);
	scene_stop(scene, 0);
}

/* ---- one at a time, and stopping ---- */

/* A caller of its own that puts one text, or two in turn until there is no answer any more. */
struct putter {
	pthread_t thread;
	struct client *client;
	char *texts[2];
	bool again;
	struct reply reply; /* the last one */
	_Atomic int answers, busy;
};

static void *put(void *context)
{
	struct putter *p = context;
	bool answered = true;

	for (int i = 0; answered && (i == 0 || p->again); i++) {
		const char *text = p->texts[i % 2];

		reply_release(&p->reply);
		answered = client_call(p->client, "PUT", PUT, text, strlen(text), &p->reply);
		p->busy += p->reply.status == 503;
		p->answers += answered;
	}
	return NULL;
}

static struct putter *putter_start(struct scene *scene, bool again)
{
	struct putter *p = calloc(1, sizeof *p);

	assert_non_null(p);
	p->client = client_new(scene->nodes[0]->port, "admin");
	p->texts[0] = scene_text(scene, second);
	p->texts[1] = scene_text(scene, first);
	p->again = again;
	assert_int_equal(pthread_create(&p->thread, NULL, put, p), 0);
	return p;
}

static void putter_free(struct putter *p)
{
	client_free(p->client);
	reply_release(&p->reply);
	free(p->texts[0]);
	free(p->texts[1]);
	free(p);
}

static PGconn *lock_definitions(struct scene *scene)
{
	PGconn *raw = store_raw(scene->store);

	raw_run(raw, "BEGIN", NULL, 0);
	raw_run(raw, "LOCK TABLE hx_definition IN ACCESS EXCLUSIVE MODE", NULL, 0);
	return raw;
}

static void test_one_put_at_a_time(void **state)
{
	struct scene *scene = *state;
	struct putter *a, *b;
	PGconn *raw;

	begin(scene);
	raw = lock_definitions(scene);
	a = putter_start(scene, /* again= */ false);
	b = putter_start(scene, /* again= */ false);
	AWAIT(ARRIVE_MS, a->busy + b->busy == 1);
	PQfinish(raw);
	pthread_join(a->thread, NULL);
	pthread_join(b->thread, NULL);
	assert_int_equal(a->busy + b->busy, 1);
	assert_int_equal(a->reply.status + b->reply.status, 503 + 200);
	assert_string_equal(a->busy ? a->reply.code : b->reply.code, "BUSY");
	putter_free(a);
	putter_free(b);
	assert_true(has_version(scene, 0, 2));
	scene_stop(scene, 0);
}

static void test_stop_waits_for_a_put(void **state)
{
	struct scene *scene = *state;
	struct putter *a, *b;
	PGconn *raw;

	begin(scene);
	raw = lock_definitions(scene);
	a = putter_start(scene, /* again= */ false);
	b = putter_start(scene, /* again= */ false);
	AWAIT(ARRIVE_MS, a->busy + b->busy == 1); /* so the other one is under way */
	assert_int_equal(kill(scene->nodes[0]->pid, SIGTERM), 0);
	serve_await_log(scene->nodes[0], "stopping", 1, ARRIVE_MS);
	PQfinish(raw);
	scene_stop(scene, 0);
	pthread_join(a->thread, NULL);
	pthread_join(b->thread, NULL);
	putter_free(a);
	putter_free(b);
}

static void test_puts_while_stopping(void **state)
{
	struct scene *scene = *state;

	begin(scene);
	for (int i = 0; i < STOPS; i++) {
		struct putter *putters[PUTTERS];

		if (i)
			scene_start(scene, 0);
		for (int k = 0; k < PUTTERS; k++)
			putters[k] = putter_start(scene, /* again= */ true);
		AWAIT(ARRIVE_MS, putters[0]->answers > 2 * i);
		scene_stop(scene, 0); /* exits 0 */
		for (int k = 0; k < PUTTERS; k++) {
			pthread_join(putters[k]->thread, NULL);
			putter_free(putters[k]);
		}
	}
}

#define ON(store, test)                                                                                                \
	{                                                                                                              \
#test " on " #store, test, scene_set_up_##store, scene_tear_down, NULL                                 \
	}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON(sqlite, test_refused_puts_cost_no_memory),
		ON(postgres, test_put_is_in_force_on_the_other_node),
		ON(postgres, test_put_that_is_not_valid_on_the_other_node),
		ON(sqlite, test_versions_are_shown),
		ON(postgres, test_versions_are_shown),
		ON(sqlite, test_secrets_that_a_put_may_name),
		ON(sqlite, test_what_is_not_there_is_not_shown),
		ON(sqlite, test_wrong_sql_is_refused),
		ON(postgres, test_wrong_sql_is_refused),
		ON(sqlite, test_wrong_sql_is_refused_at_boot),
		ON(postgres, test_wrong_sql_is_refused_at_boot),
		ON(sqlite, test_runs_are_definitions_too),
		ON(postgres, test_runs_are_definitions_too),
		ON(sqlite, test_batches_are_definitions_too),
		ON(postgres, test_batches_are_definitions_too),
		ON(sqlite, test_jobs_of_batches),
		ON(postgres, test_jobs_of_batches),
		ON(sqlite, test_a_definition_keeps_its_kind),
		ON(postgres, test_a_definition_keeps_its_kind),
		ON(postgres, test_runs_of_a_version_that_another_node_put),
		ON(postgres, test_one_put_at_a_time),
		ON(postgres, test_stop_waits_for_a_put),
		ON(sqlite, test_puts_while_stopping),
		ON(postgres, test_puts_while_stopping),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
