/*
 * A store that an embedding program has left, with functions that `hapax serve` does not have: the command line does everything but
 * calling them. What waits for the program is not claimed and not changed, and holds up nobody else's work; then the program comes
 * back and goes on.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "hapax.h"
#include "support/await.h"
#include "support/must_hold.h"
#include "support/serve.h"
#include "support/store.h"

#define DEADLINE_MS 60000
#define RUNS 600 /* more than what a node sets aside (FEEDER_RESTING_MAX) */

static const char config[] =
	"{\"modules\": {\"billing\": {\"janitor\": {\"every\": \"50ms\", \"stuck_after\": \"30s\"}}}}";
static const char invoice[] =
	"{\"workflow\": \"invoice\", \"kind\": \"entity\", \"meta\": {\"module\": \"billing\"},"
	" \"status_types\": [\"open\", \"paying\", \"paid\"], \"initial_status\": \"open\","
	" \"actions\": {\"pay\": {\"kind\": \"native\", \"function\": \"pay\"}},"
	" \"steps\": [{\"step_id\": 1, \"step_key\": \"pay\", \"status\": \"open\", \"on_unknown\": \"hold\","
	"  \"claim_state\": {\"admin\": [\"paying\", \"open\"]}, \"successful_state\": {\"admin\": \"paid\"},"
	"  \"action\": {\"admin\": \"pay\"}, \"success_after_effect\": [\"pay\"]}]}";
static const char order[] =
	"{\"workflow\": \"order\", \"kind\": \"run\", \"actions\": {\"nothing\": {\"kind\": \"noop\"},"
	" \"pay\": {\"kind\": \"native\", \"function\": \"pay\", \"effect\": \"keyed\"}},"
	" \"steps\": [{\"name\": \"reserve\", \"type\": \"task\", \"action\": \"nothing\", \"compensate\": \"nothing\"},"
	"  {\"name\": \"pay\", \"type\": \"task\", \"action\": \"pay\","
	"   \"retry\": {\"max_attempts\": 100, \"initial\": \"1s\", \"max\": \"1s\"}}]}";
static const char plain[] =
	"{\"workflow\": \"plain\", \"kind\": \"run\", \"actions\": {\"nothing\": {\"kind\": \"noop\"}},"
	" \"steps\": [{\"name\": \"s\", \"type\": \"task\", \"action\": \"nothing\"}]}";

static struct store *store;
static struct hx_engine *engine;
static struct hx_error error;
static struct serve *serve;
static _Atomic int calls;
static _Atomic int says; /* enum hx_native_outcome */
static char said[200000], config_path[600], log_path[600], ids[RUNS][64];
static const struct hx_caller admin = {HX_SIZE(hx_caller), .requester = "admin"};

static enum hx_native_outcome pay(void *context, const struct hx_native_call *call, struct hx_output *output)
{
	(void)context;
	(void)call;
	calls++;
	assert_int_equal(hx_output_write(output, "\"paid\" and more", 6), HX_OK);
	return (enum hx_native_outcome)says;
}

static void must(enum hx_code code)
{
	if (code)
		fail_msg("%s: %s", hx_code_name(code), error.detail);
}

static void open_program(void)
{
	struct hx_native natives[] = {{"pay", pay, NULL}};
	struct hx_engine_options options = {HX_SIZE(hx_engine_options), .store = store->url, .config = config,
					    .natives = natives,         .natives_n = 1,      .native_threads = 8};

	must(hx_engine_open(&options, &engine, &error));
}

static void close_program(void)
{
	hx_engine_close(engine);
	engine = NULL;
}

static void open_server(void)
{
	FILE *file;

	snprintf(config_path, sizeof config_path, "%s/hapax.json", store->dir);
	snprintf(log_path, sizeof log_path, "%s/serve.log", store->dir);
	file = fopen(config_path, "w");
	assert_non_null(file);
	fputs(config, file);
	fclose(file);
	serve = serve_start(&(struct serve_options){
		.db_url = store->url, .config = config_path, .node = "operator", .log = log_path});
}

/* The command line; what it prints is in `said`. */
static int hapax(const char *arguments)
{
	char command[1000];
	FILE *out;
	size_t n;
	int status;

	snprintf(command, sizeof command, "%s/hapax %s --server http://127.0.0.1:%d 2>&1", getenv("HAPAX_BUILD"),
		 arguments, serve->port);
	out = popen(command, "r");
	assert_non_null(out);
	n = fread(said, 1, sizeof said - 1, out);
	said[n] = '\0';
	status = pclose(out);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void ok(const char *arguments, const char *words)
{
	int status = hapax(arguments);

	if (status || !strstr(said, words))
		fail_msg("hapax %s: %d, not %s in %s", arguments, status, words, said);
}

static void make_entity(const char *id)
{
	must(hx_entity_create(engine, NULL, "invoice", id, NULL, NULL, &error));
}

static enum hx_code fire(const char *id, int outcome)
{
	struct hx_fire_request request = {HX_SIZE(hx_fire_request), "invoice", id, "pay"};

	says = outcome;
	return hx_entity_fire(engine, &admin, &request, NULL, &error);
}

static void start_orders(void)
{
	for (int i = 0; i < RUNS; i++) {
		struct hx_run_request request = {HX_SIZE(hx_run_request), "order"};
		struct hx_result *run;

		must(hx_run_start(engine, NULL, &request, &run, &error));
		snprintf(ids[i], sizeof ids[i], "%s", run->id);
		hx_result_free(run);
	}
}

static int set_up(void **state)
{
	store = store_new(*(enum store_kind *)*state);
	calls = 0;
	open_program();
	must(hx_engine_define(engine, "invoice", invoice, &error));
	must(hx_engine_define(engine, "order", order, &error));
	must(hx_engine_define(engine, "plain", plain, &error));
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	serve_free(serve);
	serve = NULL;
	close_program();
	unlink(config_path);
	unlink(log_path);
	store_free(store);
	return 0;
}

static bool is_at(const char *what, const char *status)
{
	char words[100];

	snprintf(words, sizeof words, "\"status\":\"%s\"", status);
	return hapax(what) == 0 && strstr(said, words);
}

/* As the metrics say; -1: they do not. The first question starts a count, which a later one shows. */
static int due(const char *kind, const char *queue)
{
	char command[300], *at;
	FILE *out;
	size_t n;

	snprintf(command, sizeof command, "curl -sS http://127.0.0.1:%d/metrics", serve->port);
	out = popen(command, "r");
	assert_non_null(out);
	n = fread(said, 1, sizeof said - 1, out);
	said[n] = '\0';
	pclose(out);
	snprintf(command, sizeof command, "\nhapax_due{kind=\"%s\",queue=\"%s\"} ", kind, queue);
	at = strstr(said, command);
	return at ? atoi(at + strlen(command)) : -1;
}

static const char left_words[] = "waits for a program that has the function \"pay\", which this node does not have";

/* None of its runs is touched; others are not held up by them. */
static void assert_untouched(const char *id)
{
	char line[200], *before;

	snprintf(line, sizeof line, "run show %s --json", id);
	ok(line, "\"id\"");
	before = strdup(said);
	ok("run start plain --wait 60s --json", "COMPLETED");
	ok("run start plain --wait 60s --json", "COMPLETED");
	ok(line, "\"id\"");
	assert_string_equal(said, before);
	free(before);
	snprintf(line, sizeof line, "why %s", id);
	AWAIT(DEADLINE_MS,
	      hapax(line) == 0 && strstr(said, left_words)); /* after its last retry is due, or its lease over */
}

/* All but the one that was cancelled. */
static void assert_ended_by_program(void)
{
	says = HX_NATIVE_DONE;
	open_program();
	for (int i = 0; i < RUNS; i++) {
		struct hx_result *end;

		must(hx_run_wait(engine, NULL, ids[i], DEADLINE_MS, &end, &error));
		assert_string_equal(end->status, i == 1 ? "CANCELLED" : "COMPLETED");
		hx_result_free(end);
	}
	assert_int_equal(fire("held", HX_NATIVE_DONE), HX_OK);
}

static void everything_but_acting(void **state)
{
	char line[200];

	(void)state;
	make_entity("held");
	make_entity("new");
	assert_int_equal(fire("held", HX_NATIVE_UNKNOWN), HX_OUTCOME_UNKNOWN);
	says = HX_NATIVE_FAILED;
	start_orders();
	close_program();
	calls = 0;

	open_server();
	serve_await_log(serve, "no function \\\"pay\\\" is registered here", 1, DEADLINE_MS);
	ok("entity list invoice --held --json", "\"held\"");
	ok("why entity:invoice:held", "person");
	ok("entity history invoice held", "paying");
	assert_int_equal(hapax("entity fire invoice new pay --requester admin"), 2);
	assert_non_null(strstr(said, "the step needs the function \"pay\""));
	ok("entity show invoice new --json", "\"version\":1");
	ok("entity resolve invoice held pay not_done", "open");

	assert_untouched(ids[0]);
	/* But for those that the program still had when it ended: they are not due, their leases are over one day. */
	AWAIT(DEADLINE_MS, due("left_runs", "") > RUNS / 2);
	assert_int_equal(due("runs", ""), 0);
	snprintf(line, sizeof line, "run cancel %s", ids[1]);
	ok(line, "");
	snprintf(line, sizeof line, "run show %s --json", ids[1]);
	AWAIT(DEADLINE_MS, is_at(line, "CANCELLED"));
	assert_int_equal(calls, 0);
	serve_stop(serve);
	assert_ended_by_program();
}

/* An after-effect waits, too: it is neither tried nor parked. */
static void an_after_effect_waits_for_its_program(void **state)
{
	struct hx_result *made;
	char line[200];

	(void)state;
	make_entity("due");
	assert_int_equal(fire("due", HX_NATIVE_UNKNOWN), HX_OUTCOME_UNKNOWN);
	close_program();
	open_server();
	calls = 0;
	ok("entity resolve invoice due pay done", "paid"); /* which writes the after-effect */
	ok("run start plain --wait 60s --json", "COMPLETED");
	ok("job list --json", "\"attempt\":0");
	assert_non_null(strstr(said, "AVAILABLE"));
	snprintf(line, sizeof line, "why %.*s", (int)strcspn(strstr(said, "\"job_") + 1, "\""),
		 strstr(said, "\"job_") + 1);
	ok(line, left_words);
	AWAIT(DEADLINE_MS, due("left_after_effects", "after-effects") == 1);
	serve_stop(serve);
	says = HX_NATIVE_DONE;
	open_program();
	AWAIT(DEADLINE_MS, calls == 1);
	must(hx_entity_read(engine, NULL, "invoice", "due", &made, &error));
	assert_string_equal(made->status, "paid");
	hx_result_free(made);
}

/* Without any server: the program itself has the way out. */
static void a_program_resolves_by_itself(void **state)
{
	struct hx_resolve_request request = {HX_SIZE(hx_resolve_request), "invoice", "held", "pay"};
	struct hx_result *result = NULL;

	(void)state;
	make_entity("held");
	assert_int_equal(fire("held", HX_NATIVE_UNKNOWN), HX_OUTCOME_UNKNOWN);
	assert_int_equal(fire("held", HX_NATIVE_DONE), HX_CLAIM_FAILED);
	request.step = "other";
	assert_int_equal(hx_entity_resolve(engine, &admin, &request, NULL, &error), HX_WRONG_STATUS);
	request.step = "pay";
	must(hx_entity_resolve(engine, &admin, &request, &result, &error));
	assert_string_equal(result->status, "open");
	hx_result_free(result);
	assert_int_equal(hx_entity_resolve(engine, &admin, &request, NULL, &error), HX_WRONG_STATUS);
	assert_int_equal(fire("held", HX_NATIVE_UNKNOWN), HX_OUTCOME_UNKNOWN);
	request.done = 1;
	request.output = "{\"receipt\": 9}";
	says = HX_NATIVE_FAILED_FOR_GOOD; /* for the after-effect */
	must(hx_entity_resolve(engine, &admin, &request, &result, &error));
	assert_string_equal(result->status, "paid");
	hx_result_free(result);
	request.size = 0;
	assert_int_equal(hx_entity_resolve(engine, &admin, &request, NULL, &error), HX_VALIDATION_ERROR);
}

static enum store_kind sqlite = STORE_SQLITE_FILE, postgres = STORE_POSTGRES;

/* clang-format off */
#define ON(name, store) {#name " on " #store, name, set_up, tear_down, &store}
#define TEST(name) ON(name, sqlite), ON(name, postgres)
/* clang-format on */

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(everything_but_acting),
		TEST(an_after_effect_waits_for_its_program),
		TEST(a_program_resolves_by_itself),
	};

	ONLY_THE_NAMED(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
