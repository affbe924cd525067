/* hx_run_start() and hx_run_wait(): one key is one run, and what functions say decides what becomes of it. */
#include "unit/engine/embed_test.h"

#define STARTERS 16

static void one_key_is_one_run_and_one_effect(void **state)
{
	char first[64], second[64];
	struct hx_result *end;

	(void)state;
	assert_true(start(&one_order, first));
	assert_false(start(&one_order, second));
	assert_string_equal(first, second);
	assert_string_equal(end_of(first, &end), "COMPLETED");
	assert_string_equal(end->id, first);
	assert_string_equal(end->output, "{\"n\": 1}");
	assert_string_equal(end->data, "{\"receipt\":{\"n\": 1}}");
	assert_int_equal(end->version, 5); /* created, and two for each step */
	assert_null(end->step);
	assert_null(end->error);
	hx_result_free(end);
	assert_false(start(&one_order, second)); /* also now that it has ended */
	assert_int_equal(locked(&bank.calls), 2);
	assert_string_equal(bank.seen[0].input, "1200");
	assert_string_equal(bank.seen[1].input, "{\"cents\": 1200}"); /* without an expression: the run's */
	assert_string_not_equal(bank.seen[0].key, bank.seen[1].key);
	assert_int_equal(bank.seen[0].timeout_ms, 7000);
	assert_int_equal(bank.seen[0].attempt, 1);
	assert_true(bank.seen[0].fence >= 1);
}

static void without_a_key_every_start_is_a_run(void **state)
{
	struct hx_run_request request = {HX_SIZE(hx_run_request), .workflow = "order"};
	char first[64], second[64];

	(void)state;
	assert_true(start(&request, first));
	assert_true(start(&request, second));
	assert_string_not_equal(first, second);
	completes(first);
	completes(second);
}

struct starter {
	pthread_t thread;
	pthread_barrier_t *barrier;
	struct hx_engine *engine;
	struct hx_result *run;
	enum hx_code code;
};

static void *start_at_once(void *context)
{
	struct starter *s = context;

	pthread_barrier_wait(s->barrier);
	s->code = hx_run_start(s->engine, NULL, &one_order, &s->run, NULL);
	return NULL;
}

static void start_together(struct hx_engine *const engines[2], struct starter *starters)
{
	pthread_barrier_t barrier;

	pthread_barrier_init(&barrier, NULL, STARTERS);
	for (size_t i = 0; i < STARTERS; i++) {
		starters[i] = (struct starter){.barrier = &barrier, .engine = engines[i % 2]};
		assert_int_equal(pthread_create(&starters[i].thread, NULL, start_at_once, &starters[i]), 0);
	}
	for (size_t i = 0; i < STARTERS; i++)
		pthread_join(starters[i].thread, NULL);
	pthread_barrier_destroy(&barrier);
}

static void check_together(struct hx_engine *const engines[2])
{
	struct starter starters[STARTERS];
	int created = 0;

	start_together(engines, starters);
	for (size_t i = 0; i < STARTERS; i++) {
		assert_int_equal(starters[i].code, HX_OK);
		assert_string_equal(starters[i].run->id, starters[0].run->id);
		created += starters[i].run->created;
	}
	assert_int_equal(created, 1);
	completes(starters[0].run->id);
	assert_int_equal(locked(&bank.calls), 2);
	for (size_t i = 0; i < STARTERS; i++)
		hx_result_free(starters[i].run);
}

static void many_threads_start_one_run(void **state)
{
	struct hx_engine *const engines[2] = {engine, engine};

	(void)state;
	check_together(engines);
}

static void two_engines_on_one_postgres_start_one_run(void **state)
{
	struct hx_engine *engines[2] = {engine};

	(void)state;
	must(try_open(store->url, 1, &engines[1]));
	check_together(engines);
	hx_engine_close(engines[1]);
}

static void what_failed_is_tried_again_with_its_key(void **state)
{
	char id[64];

	(void)state;
	bank.says[0] = HX_NATIVE_FAILED;
	bank.says[1] = HX_NATIVE_FAILED;
	assert_true(start(&one_order, id));
	completes(id);
	assert_int_equal(locked(&bank.calls), 4);
	assert_string_equal(bank.seen[0].key, bank.seen[2].key);
	assert_int_equal(bank.seen[2].attempt, 3);
	assert_int_equal(locked(&bank.effects), 2); /* one for each step */
}

static void what_fails_for_good_fails_the_run(void **state)
{
	struct hx_result *end;
	char id[64];

	(void)state;
	bank.says[0] = HX_NATIVE_FAILED_FOR_GOOD;
	bank.words = "the card is \"closed\"";
	assert_true(start(&one_order, id));
	assert_string_equal(end_of(id, &end), "FAILED");
	assert_non_null(strstr(end->error, "the card is \\\"closed\\\""));
	assert_non_null(strstr(end->error, "\"step\":\"pay\""));
	assert_string_equal(end->step, "pay");
	assert_null(end->output);
	hx_result_free(end);
	assert_int_equal(locked(&bank.calls), 1);
}

static void a_rejection_fails_the_run(void **state)
{
	struct hx_result *end;
	char id[64];

	(void)state;
	bank.says[0] = HX_NATIVE_REJECTED;
	bank.words = "{\"reason\": \"too much\"}";
	assert_true(start(&one_order, id));
	assert_string_equal(end_of(id, &end), "FAILED");
	assert_non_null(strstr(end->error, "too much"));
	hx_result_free(end);
	assert_int_equal(locked(&bank.calls), 1);
}

static void an_unknown_outcome_of_a_keyed_function_is_tried_again(void **state)
{
	char id[64];

	(void)state;
	bank.says[0] = HX_NATIVE_UNKNOWN;
	assert_true(start(&one_order, id));
	completes(id);
	assert_int_equal(locked(&bank.calls), 3);
	assert_string_equal(bank.seen[0].key, bank.seen[1].key);
}

static void an_unknown_outcome_of_a_claimed_function_is_held(void **state)
{
	struct hx_result *now;
	char id[64];

	(void)state;
	must(hx_engine_define(engine, "order", ORDER("claimed"), &error));
	bank.says[0] = HX_NATIVE_UNKNOWN;
	bank.words = "the line went dead";
	assert_true(start(&one_order, id));
	AWAIT(DEADLINE_MS, is_at(id, "WAITING"));
	must(hx_run_wait(engine, NULL, id, 0, &now, &error));
	assert_false(now->ended);
	assert_non_null(strstr(now->error, "the line went dead"));
	hx_result_free(now);
	assert_int_equal(locked(&bank.calls), 1);
}

static void what_is_no_json_is_not_believed(void **state)
{
	char id[64];

	(void)state;
	must(hx_engine_define(engine, "order", ORDER("claimed"), &error));
	bank.words = "done, I think";
	assert_true(start(&one_order, id));
	AWAIT(DEADLINE_MS, is_at(id, "WAITING"));
	assert_int_equal(locked(&bank.calls), 1);
}

static enum hx_code refused(const char *workflow, const char *key, const char *input, const char *workspace)
{
	struct hx_run_request request = {HX_SIZE(hx_run_request), workflow, key, input};
	struct hx_caller caller = {HX_SIZE(hx_caller), .workspace = workspace};
	struct hx_result *none = NULL;
	enum hx_code code = hx_run_start(engine, &caller, &request, &none, &error);

	assert_null(none);
	assert_int_equal(code, error.code);
	assert_true(error.detail[0]);
	return code;
}

static void bad_requests_are_refused(void **state)
{
	char key[300], *large = malloc((1u << 20) + 20);

	(void)state;
	assert_int_equal(refused("ordre", NULL, NULL, NULL), HX_NOT_FOUND);
	assert_non_null(strstr(error.detail, "ordre"));
	assert_int_equal(refused(NULL, NULL, NULL, NULL), HX_NOT_FOUND);
	assert_int_equal(refused("order", NULL, "{\"cents\": }", NULL), HX_VALIDATION_ERROR);
	assert_non_null(strstr(error.detail, "input: 1:"));
	assert_int_equal(refused("order", NULL, "[1]", NULL), HX_VALIDATION_ERROR);
	assert_int_equal(refused("order", NULL, "", NULL), HX_VALIDATION_ERROR);
	assert_int_equal(refused("order", "", NULL, NULL), HX_VALIDATION_ERROR);
	assert_int_equal(refused("order", "\xff", NULL, NULL), HX_VALIDATION_ERROR);
	assert_int_equal(refused("order", NULL, NULL, "a\nb"), HX_VALIDATION_ERROR);
	assert_int_equal(refused("order", NULL, NULL, ""), HX_VALIDATION_ERROR);
	memset(key, 'k', sizeof key);
	key[256] = '\0';
	assert_int_equal(refused("order", key, NULL, NULL), HX_VALIDATION_ERROR);
	key[255] = '\0';
	assert_int_equal(
		hx_run_start(engine, NULL,
			     &(struct hx_run_request){HX_SIZE(hx_run_request), .workflow = "order", .key = key}, NULL,
			     NULL),
		HX_OK);
	assert_non_null(large);
	memset(large, ' ', (1u << 20) + 1);
	memcpy(large, "{\"a\":", 5);
	memcpy(large + (1u << 20), "1}", 3); /* one byte too many */
	assert_int_equal(refused("order", NULL, large, NULL), HX_TOO_LARGE);
	free(large);
}

static void foreign_ids_are_not_found(void **state)
{
	struct hx_caller other = {HX_SIZE(hx_caller), .workspace = "other"};
	struct hx_result *run = NULL;
	char id[64];

	(void)state;
	assert_true(start(&one_order, id));
	completes(id);
	assert_int_equal(hx_run_wait(engine, &other, id, 0, &run, &error), HX_NOT_FOUND);
	assert_int_equal(hx_run_wait(engine, NULL, "run_0000000000001", 0, &run, &error), HX_NOT_FOUND);
	assert_int_equal(hx_run_wait(engine, NULL, "nonsense", 0, &run, &error), HX_NOT_FOUND);
	assert_int_equal(hx_run_wait(engine, NULL, NULL, 0, &run, &error), HX_NOT_FOUND);
	assert_null(run);
	must(hx_run_start(engine, &other, &one_order, &run, &error)); /* a key belongs to its workspace */
	assert_true(run->created);
	assert_string_not_equal(run->id, id);
	hx_result_free(run);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(one_key_is_one_run_and_one_effect),
		TEST(without_a_key_every_start_is_a_run),
		TEST(many_threads_start_one_run),
		ON(two_engines_on_one_postgres_start_one_run, postgres),
		TEST(what_failed_is_tried_again_with_its_key),
		TEST(what_fails_for_good_fails_the_run),
		TEST(a_rejection_fails_the_run),
		TEST(an_unknown_outcome_of_a_keyed_function_is_tried_again),
		TEST(an_unknown_outcome_of_a_claimed_function_is_held),
		ON(what_is_no_json_is_not_believed, sqlite),
		ON(bad_requests_are_refused, sqlite),
		TEST(foreign_ids_are_not_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
