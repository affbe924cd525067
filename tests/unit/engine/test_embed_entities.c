/*
 * hx_entity_*, as an embedding program uses them: a claimed step whose action is a function of the program's. What the function
 * says decides what the caller is told, and where the entity is afterwards.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "hapax.h"
#include "support/await.h"
#include "support/store.h"

#define DEADLINE_MS 60000
#define CALLERS 8

static const char config[] =
	"{\"modules\": {\"billing\": {\"janitor\": {\"every\": \"50ms\", \"stuck_after\": \"1500ms\"}}}}";
static const char definition[] =
	"{\"workflow\": \"invoice\", \"kind\": \"entity\", \"meta\": {\"module\": \"billing\"},"
	" \"status_types\": [\"open\", \"paying\", \"paid\"], \"initial_status\": \"open\","
	" \"actions\": {\"pay\": {\"kind\": \"native\", \"function\": \"pay\"}},"
	" \"steps\": [{\"step_id\": 1, \"step_key\": \"pay\", \"status\": \"open\","
	"  \"claim_state\": {\"admin\": [\"paying\", \"open\"]}, \"successful_state\": {\"admin\": \"paid\"},"
	"  \"action\": {\"admin\": \"pay\"}}]}";

static struct store *store;
static struct hx_engine *engine;
static struct hx_error error;
static const struct hx_caller admin = {HX_SIZE(hx_caller), .requester = "admin"};
static const struct hx_fire_request fire_pay = {HX_SIZE(hx_fire_request), "invoice", "inv-1", "pay",
						.input = "{\"cents\": 5}"};

static struct {
	pthread_mutex_t mutex;
	pthread_cond_t news;
	bool shut;
	int calls;
	enum hx_native_outcome says;
	const char *words;
	char input[100];
} bank = {.mutex = PTHREAD_MUTEX_INITIALIZER, .news = PTHREAD_COND_INITIALIZER};

static enum hx_native_outcome pay(void *context, const struct hx_native_call *call, struct hx_output *output)
{
	enum hx_native_outcome says;

	(void)context;
	pthread_mutex_lock(&bank.mutex);
	bank.calls++;
	snprintf(bank.input, sizeof bank.input, "%s", call->input);
	while (bank.shut)
		pthread_cond_wait(&bank.news, &bank.mutex);
	hx_output_add(output, bank.words);
	says = bank.says;
	pthread_mutex_unlock(&bank.mutex);
	return says;
}

static void shut(bool is_shut)
{
	pthread_mutex_lock(&bank.mutex);
	bank.shut = is_shut;
	pthread_cond_broadcast(&bank.news);
	pthread_mutex_unlock(&bank.mutex);
}

static int calls(void)
{
	int n;

	pthread_mutex_lock(&bank.mutex);
	n = bank.calls;
	pthread_mutex_unlock(&bank.mutex);
	return n;
}

static void must(enum hx_code code)
{
	if (code)
		fail_msg("%s: %s", hx_code_name(code), error.detail);
}

static int set_up(void **state)
{
	struct hx_native natives[] = {{"pay", pay, NULL}};
	struct hx_engine_options options = {HX_SIZE(hx_engine_options), .config = config, .natives = natives,
					    .natives_n = 1};
	struct hx_result *made;

	bank.calls = 0;
	bank.says = HX_NATIVE_DONE;
	bank.words = "{\"receipt\": 9}";
	store = store_new(*(enum store_kind *)*state);
	options.store = store->url;
	must(hx_engine_open(&options, &engine, &error));
	must(hx_engine_define(engine, "invoice", definition, &error));
	must(hx_entity_create(engine, NULL, "invoice", "inv-1", "{\"to\": \"acme\"}", &made, &error));
	assert_string_equal(made->id, "inv-1");
	assert_string_equal(made->status, "open");
	assert_int_equal(made->version, 1);
	hx_result_free(made);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	shut(false);
	hx_engine_close(engine);
	store_free(store);
	return 0;
}

static bool is_in(const char *status, int64_t version)
{
	struct hx_result *now;
	bool is;

	must(hx_entity_read(engine, NULL, "invoice", "inv-1", &now, &error));
	assert_string_equal(now->data, "{\"to\": \"acme\"}");
	is = strcmp(now->status, status) == 0 && now->version == version;
	hx_result_free(now);
	return is;
}

static void a_step_is_fired(void **state)
{
	struct hx_result *done;

	(void)state;
	must(hx_entity_fire(engine, &admin, &fire_pay, &done, &error));
	assert_string_equal(done->status, "paid");
	assert_int_equal(done->version, 3);
	assert_string_equal(done->output, "{\"receipt\": 9}");
	assert_string_equal(done->data, "{\"to\": \"acme\"}");
	assert_string_equal(bank.input, "{\"cents\": 5}");
	hx_result_free(done);
	assert_true(is_in("paid", 3));
	assert_int_equal(hx_entity_fire(engine, &admin, &fire_pay, NULL, &error), HX_WRONG_STATUS);
	assert_int_equal(calls(), 1);
}

static void *fire_once(void *ret_code)
{
	*(enum hx_code *)ret_code = hx_entity_fire(engine, &admin, &fire_pay, NULL, NULL);
	return NULL;
}

static void of_many_that_fire_one_acts(void **state)
{
	pthread_t threads[CALLERS];
	enum hx_code codes[CALLERS];
	int won = 0;

	(void)state;
	shut(true);
	for (size_t i = 0; i < CALLERS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, fire_once, &codes[i]), 0);
	AWAIT(DEADLINE_MS, calls() == 1);
	assert_int_equal(hx_entity_fire(engine, &admin, &fire_pay, NULL, &error), HX_CLAIM_FAILED);
	assert_string_equal(error.detail, hx_code_text(HX_CLAIM_FAILED));
	shut(false);
	for (size_t i = 0; i < CALLERS; i++) {
		pthread_join(threads[i], NULL);
		won += codes[i] == HX_OK;
		assert_true(codes[i] == HX_OK || codes[i] == HX_CLAIM_FAILED || codes[i] == HX_WRONG_STATUS);
	}
	assert_int_equal(won, 1);
	assert_int_equal(calls(), 1);
	assert_true(is_in("paid", 3));
}

static void what_failed_goes_back(void **state)
{
	struct hx_result *none = NULL;

	(void)state;
	bank.says = HX_NATIVE_FAILED;
	bank.words = "the bank is closed";
	assert_int_equal(hx_entity_fire(engine, &admin, &fire_pay, &none, &error), HX_ACTION_FAILED);
	assert_string_equal(error.detail, "the bank is closed");
	assert_null(none);
	assert_true(is_in("open", 3)); /* claim and release */
	bank.says = HX_NATIVE_DONE;
	bank.words = "null";
	must(hx_entity_fire(engine, &admin, &fire_pay, NULL, &error));
	assert_true(is_in("paid", 5));
}

static void a_rejection_is_told_whole(void **state)
{
	struct hx_result *rejection = NULL;

	(void)state;
	bank.says = HX_NATIVE_REJECTED;
	bank.words = "{\"reason\": \"too little\"}";
	assert_int_equal(hx_entity_fire(engine, &admin, &fire_pay, &rejection, &error), HX_INVALID);
	assert_non_null(rejection);
	assert_non_null(strstr(rejection->output, "too little"));
	hx_result_free(rejection);
	assert_true(is_in("open", 3));
}

static void what_nobody_knows_is_left_to_the_janitor(void **state)
{
	(void)state;
	bank.says = HX_NATIVE_UNKNOWN;
	bank.words = "the line went dead";
	assert_int_equal(hx_entity_fire(engine, &admin, &fire_pay, NULL, &error), HX_OUTCOME_UNKNOWN);
	assert_string_equal(error.detail, "the line went dead");
	AWAIT(DEADLINE_MS, is_in("open", 3));
	assert_int_equal(calls(), 1);
}

static enum hx_code fire_with(const struct hx_caller *caller, struct hx_fire_request request)
{
	return hx_entity_fire(engine, caller, &request, NULL, &error);
}

#define FIRE(w, i, s) ((struct hx_fire_request){HX_SIZE(hx_fire_request), .workflow = w, .id = i, .step = s})

static void nonsense_is_refused(void **state)
{
	struct hx_caller other = {HX_SIZE(hx_caller), .workspace = "other", .requester = "admin"};
	struct hx_result *made = NULL;

	(void)state;
	assert_int_equal(fire_with(NULL, fire_pay), HX_REQUESTER_NOT_ALLOWED);
	assert_int_equal(fire_with(&other, fire_pay), HX_NOT_FOUND);
	assert_int_equal(fire_with(&admin, FIRE("invoice", "inv-2", "pay")), HX_NOT_FOUND);
	assert_int_equal(fire_with(&admin, FIRE("invoices", "inv-1", "pay")), HX_NOT_FOUND);
	assert_int_equal(fire_with(&admin, FIRE(NULL, NULL, NULL)), HX_NOT_FOUND);
	assert_int_equal(fire_with(&admin, FIRE("invoice", NULL, NULL)), HX_NOT_FOUND);
	assert_int_equal(fire_with(&admin, FIRE("invoice", "inv-1", "repay")), HX_NOT_FOUND);
	assert_int_equal(fire_with(&admin, FIRE("invoice", "\xff", "pay")), HX_NOT_FOUND); /* not UTF-8 */
	assert_int_equal(fire_with(&admin, (struct hx_fire_request){HX_SIZE(hx_fire_request), "invoice", "inv-1", "pay",
								    "{", 0}),
			 HX_VALIDATION_ERROR);
	assert_int_equal(fire_with(&admin, (struct hx_fire_request){HX_SIZE(hx_fire_request), "invoice", "inv-1", "pay",
								    NULL, 7}),
			 HX_CONCURRENCY_ERROR);
	assert_int_equal(hx_entity_create(engine, NULL, "invoice", "inv-1", NULL, &made, &error), HX_ALREADY_EXISTS);
	assert_int_equal(hx_entity_create(engine, NULL, "invoice", "", NULL, &made, &error), HX_VALIDATION_ERROR);
	assert_int_equal(hx_entity_create(engine, NULL, "invoice", "inv-2", "}", &made, &error), HX_VALIDATION_ERROR);
	assert_int_equal(hx_entity_create(engine, NULL, "invoices", "inv-2", NULL, &made, &error), HX_NOT_FOUND);
	assert_int_equal(hx_entity_read(engine, NULL, "invoice", "inv-2", &made, &error), HX_NOT_FOUND);
	assert_int_equal(hx_entity_read(engine, &other, "invoice", "inv-1", &made, &error), HX_NOT_FOUND);
	assert_int_equal(hx_entity_read(engine, NULL, "invoice", "\xff", &made, &error), HX_NOT_FOUND);
	assert_null(made);
	must(hx_entity_create(engine, NULL, "invoice", NULL, NULL, &made, &error)); /* an id is made */
	assert_memory_equal(made->id, "ent_", 4);
	assert_string_equal(made->data, "{}");
	hx_result_free(made);
	assert_true(is_in("open", 1));
	assert_int_equal(calls(), 0);
}

static void a_claim_without_a_janitor_is_refused(void **state)
{
	struct hx_engine *bare = NULL;
	struct hx_native natives[] = {{"pay", pay, NULL}};
	struct hx_engine_options options = {HX_SIZE(hx_engine_options), .store = "sqlite::memory:", .natives = natives,
					    .natives_n = 1};

	(void)state;
	must(hx_engine_open(&options, &bare, &error));
	assert_int_equal(hx_engine_define(bare, "invoice", definition, &error), HX_DEFINITION_INVALID);
	assert_non_null(strstr(error.detail, "billing"));
	hx_engine_close(bare);
}

static enum store_kind sqlite = STORE_SQLITE_FILE, postgres = STORE_POSTGRES;

/* clang-format off */
#define ON(name, store) {#name " on " #store, name, set_up, tear_down, &store}
#define TEST(name) ON(name, sqlite), ON(name, postgres)
/* clang-format on */

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_step_is_fired),
		TEST(of_many_that_fire_one_acts),
		TEST(what_failed_goes_back),
		ON(a_rejection_is_told_whole, sqlite),
		ON(what_nobody_knows_is_left_to_the_janitor, sqlite),
		TEST(nonsense_is_refused),
		ON(a_claim_without_a_janitor_is_refused, sqlite),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
