/*
 * hx_gate_*, as an embedding program uses them: only what hapax.h has, on a database (SQLite and PostgreSQL), in memory
 * and on a store of the program's own.
 */
#include "unit/gate/embed_shop.h"

/* ---- on any store ---- */

static void test_done_once_told_again(void **state)
{
	struct shop *shop = *state;
	struct hx_gate_response answer = answer_of("{\"id\":1}");
	struct hx_gate_entry *entry = begun(shop, "k", "{\"a\":1}"), *other = NULL;
	const struct hx_gate_response *replay;
	struct hx_error err;

	assert_int_equal(begin(shop, "k", "{\"a\":1}", &other), HX_IN_FLIGHT);
	assert_int_equal(begin(shop, "k", "{\"a\":2}", &other), HX_FINGERPRINT_MISMATCH);
	assert_int_equal(begin(shop, "a b", "", &other), HX_KEY_INVALID);
	assert_int_equal(begin(shop, NULL, "", &other), HX_KEY_REQUIRED);
	assert_null(other);
	assert_int_equal(hx_gate_complete(entry, &answer, 0, NULL, &err), HX_OK);
	/* It is over: neither can be said twice. */
	assert_int_equal(hx_gate_complete(entry, &answer, 0, NULL, &err), HX_WRONG_STATUS);
	assert_int_equal(hx_gate_abort(entry, &err), HX_WRONG_STATUS);
	hx_gate_entry_free(entry);

	replays(shop, "\"k\"", "{ \"a\": 1.0 }", 201, "{\"id\":1}");
	assert_int_equal(begin(shop, "k", "{\"a\":1}", &entry), HX_OK);
	replay = hx_gate_replay(entry);
	assert_int_equal(replay->fields_n, 2); /* without the cookie */
	assert_string_equal(replay->fields[0].name, "Content-Type");
	assert_string_equal(replay->fields[1].value, "7");
	assert_int_equal(hx_gate_complete(entry, &answer, 0, NULL, &err), HX_WRONG_STATUS);
	hx_gate_entry_free(entry);

	assert_int_equal(shop->events[HX_GATE_CREATED], 1);
	assert_int_equal(shop->events[HX_GATE_REPLAYED], 2);
	assert_int_equal(shop->events[HX_GATE_CONFLICT], 1);
	assert_int_equal(shop->events[HX_GATE_MISMATCH], 1);
	assert_string_equal(shop->last_text, "POST /payments t k");
}

static void test_aborted_is_as_if_never_begun(void **state)
{
	struct shop *shop = *state;
	struct hx_gate_entry *entry = begun(shop, "k", "1");
	struct hx_error err;

	assert_int_equal(hx_gate_abort(entry, &err), HX_OK);
	assert_int_equal(hx_gate_abort(entry, &err), HX_WRONG_STATUS);
	hx_gate_entry_free(entry);
	entry = begun(shop, "k", "2");
	/* Let go without a word: the lease stays, as after a crash. */
	hx_gate_entry_free(entry);
	assert_int_equal(begin(shop, "k", "2", &entry), HX_IN_FLIGHT);
	assert_int_equal(shop->events[HX_GATE_RELEASED], 1);
}

/* Where a key counts: by tenant and endpoint, or everywhere. */
static void test_scopes(void **state)
{
	static const struct hx_gate_request requests[] = {
		{HX_SIZE(hx_gate_request), .method = "POST", .path = "/a", .key = "k"},
		{HX_SIZE(hx_gate_request), .method = "POST", .path = "/b", .key = "k"},
		{HX_SIZE(hx_gate_request), .method = "PUT", .path = "/a", .key = "k"},
		{HX_SIZE(hx_gate_request), .method = "POST", .path = "/a", .key = "k", .tenant = ""},
		{HX_SIZE(hx_gate_request), .method = "POST", .path = "/a", .key = "k", .tenant = "x"},
		{HX_SIZE(hx_gate_request), .key = "k"},
	};
	struct shop *shop = *state;
	struct hx_gate_entry *entry;
	struct hx_error err;
	int64_t after_ms = 0;

	for (size_t i = 0; i < sizeof requests / sizeof *requests; i++) {
		assert_int_equal(hx_gate_begin(shop->gate, &requests[i], &entry, NULL, &err), HX_OK);
		hx_gate_entry_free(entry);
	}
	for (size_t i = 0; i < sizeof requests / sizeof *requests; i++) {
		assert_int_equal(hx_gate_begin(shop->gate, &requests[i], &entry, &after_ms, &err), HX_IN_FLIGHT);
		assert_in_range(after_ms, 1, 60000);
	}
}

static void test_body_too_large_is_not_kept(void **state)
{
	struct shop *shop = *state;
	char *body = calloc(1, HX_GATE_BODY_BYTES_MAX + 1);
	struct hx_gate_response answer = {HX_SIZE(hx_gate_response), .status = 200, .body = body,
					  .body_bytes = HX_GATE_BODY_BYTES_MAX};
	struct hx_gate_entry *entry = begun(shop, "fits", "");
	struct hx_error err;

	assert_int_equal(hx_gate_complete(entry, &answer, 0, NULL, &err), HX_OK);
	hx_gate_entry_free(entry);
	assert_int_equal(begin(shop, "fits", "", &entry), HX_OK);
	assert_int_equal(hx_gate_replay(entry)->body_bytes, HX_GATE_BODY_BYTES_MAX);
	assert_memory_equal(hx_gate_replay(entry)->body, body, HX_GATE_BODY_BYTES_MAX);
	hx_gate_entry_free(entry);

	answer.body_bytes++;
	entry = begun(shop, "does-not", "");
	assert_int_equal(hx_gate_complete(entry, &answer, 0, NULL, &err), HX_OK);
	hx_gate_entry_free(entry);
	assert_int_equal(begin(shop, "does-not", "", &entry), HX_RESPONSE_NOT_STORED);
	assert_int_equal(shop->last.outcome, HX_GATE_CONFLICT);
	free(body);
}

static void test_writes_need_a_database(void **state)
{
	struct shop *shop = *state;
	struct hx_gate_entry *entry = begun(shop, "k", "");
	struct hx_error err;

	assert_int_equal(pay(entry, 1, NULL, &err), HX_VALIDATION_ERROR);
	assert_int_equal(hx_gate_abort(entry, &err), HX_OK);
	hx_gate_entry_free(entry);
}

/* ---- a store that fails ---- */

static void test_store_that_is_down(void **state)
{
	struct shop *shop = *state;
	struct hx_gate_response answer = answer_of("{}");
	struct hx_gate_entry *entry, *other = NULL;
	struct hx_error err;

	user_store_set_down(shop->own, true);
	assert_int_equal(begin(shop, "k", "", &other), HX_STORE_UNAVAILABLE);
	assert_int_equal(shop->last.outcome, HX_GATE_STORE_ERROR);
	user_store_set_down(shop->own, false);
	entry = begun(shop, "k", "");
	user_store_set_down(shop->own, true);
	assert_int_equal(hx_gate_complete(entry, &answer, 0, NULL, &err), HX_STORE_UNAVAILABLE);
	assert_int_equal(shop->last.outcome, HX_GATE_UNSTORED);
	/* It may be stored: that is not let go, and can only be said again. */
	assert_int_equal(hx_gate_abort(entry, &err), HX_WRONG_STATUS);
	user_store_set_down(shop->own, false);
	assert_int_equal(begin(shop, "k", "", &other), HX_IN_FLIGHT);
	assert_int_equal(hx_gate_complete(entry, &answer, 0, NULL, &err), HX_OK);
	hx_gate_entry_free(entry);
	replays(shop, "k", "", 201, "{}");
}

static void test_options_are_checked(void **state)
{
	static const struct hx_gate_store empty = {HX_SIZE(hx_gate_store)};
	static const struct hx_gate_options bad[] = {
		{HX_SIZE(hx_gate_options), .store_url = NULL},
		{HX_SIZE(hx_gate_options), .store_url = "memory:", .store = &empty},
		{HX_SIZE(hx_gate_options), .store = &empty},
		{HX_SIZE(hx_gate_options), .store_url = "memory:", .ttl_ms = -1},
		{HX_SIZE(hx_gate_options), .store_url = "memory:", .lease_ms = -1},
		{HX_SIZE(hx_gate_options), .store_url = "mysql://x"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct hx_gate *gate = NULL;
		struct hx_error err;

		assert_int_equal(hx_gate_open(&bad[i], &gate, &err), HX_CONFIG_ERROR);
		assert_null(gate);
	}
	hx_gate_close(NULL);
	hx_gate_entry_free(NULL);
}

/* ---- many at once ---- */

struct caller {
	pthread_t thread;
	struct shop *shop;
	enum hx_code code;
	bool created;
};

static void *run_caller(void *context)
{
	struct caller *c = context;
	struct hx_gate_request request = {HX_SIZE(hx_gate_request), .method = "POST", .path = "/p", .key = "once"};
	struct hx_gate_entry *entry = NULL;
	struct hx_error err;

	c->code = hx_gate_begin(c->shop->gate, &request, &entry, NULL, &err);
	if (!c->code && !hx_gate_replay(entry)) {
		c->created = true;
		c->code = pay(entry, 10, NULL, &err);
	}
	hx_gate_entry_free(entry);
	return NULL;
}

static void test_many_callers_pay_once(void **state)
{
	struct shop *shop = *state;
	struct caller callers[CALLERS] = {0};
	int created = 0;

	for (int i = 0; i < CALLERS; i++) {
		callers[i].shop = shop;
		assert_int_equal(pthread_create(&callers[i].thread, NULL, run_caller, &callers[i]), 0);
	}
	for (int i = 0; i < CALLERS; i++) {
		pthread_join(callers[i].thread, NULL);
		created += callers[i].created;
		assert_true(callers[i].code == HX_OK || (!callers[i].created && callers[i].code == HX_IN_FLIGHT));
	}
	assert_int_equal(created, 1);
	assert_account(shop, 90, 1);
}

static void test_records_outlive_the_gate(void **state)
{
	struct shop *shop = *state;
	struct hx_gate_entry *entry = begun(shop, "k", "");
	struct hx_gate_options options = {HX_SIZE(hx_gate_options), .store_url = shop->store->url, .space = "another"};
	struct hx_error err;

	assert_int_equal(pay(entry, 1, NULL, &err), HX_OK);
	hx_gate_entry_free(entry);
	hx_gate_close(shop->gate);
	open_gate(shop, shop->store->url);
	replays(shop, "k", "", 201, "{\"paid\":true}");
	/* In another space the same key is another one. */
	hx_gate_close(shop->gate);
	shop->gate = NULL;
	assert_int_equal(hx_gate_open(&options, &shop->gate, &err), HX_OK);
	hx_gate_entry_free(begun(shop, "k", ""));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_ALL(test_done_once_told_again),
		ON_ALL(test_aborted_is_as_if_never_begun),
		ON_ALL(test_scopes),
		ON_ALL(test_body_too_large_is_not_kept),
		ON(memory, test_writes_need_a_database),
		ON(own, test_writes_need_a_database),
		ON(own, test_store_that_is_down),
		cmocka_unit_test(test_options_are_checked),
		ON_DATABASES(test_many_callers_pay_once),
		ON_DATABASES(test_records_outlive_the_gate),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
