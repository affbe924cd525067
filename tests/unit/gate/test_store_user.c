/* How the answers of a user's table are read; above all the wrong ones. A right table is in tests/contract. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "support/gate_asker.h"

/* What the table says next, and what it was asked last. */
static struct {
	enum hx_code code;
	struct hx_gate_found found;
	int stale;
	int64_t removed;
	int calls;
	struct hx_gate_claim claim;
	struct slice response;
	int64_t ttl_ms, budget;
} said;

static enum hx_code say_acquire(void *data, const struct hx_gate_claim *claim, struct hx_gate_found *ret_found)
{
	assert_ptr_equal(data, &said);
	said.calls++;
	said.claim = *claim;
	*ret_found = said.found;
	return said.code;
}

static enum hx_code say_complete(void *data, const unsigned char *key, const unsigned char *token, const void *response,
				 size_t response_bytes, int64_t ttl_ms, int *ret_stale)
{
	assert_ptr_equal(data, &said);
	said.calls++;
	memcpy(said.claim.key, key, sizeof said.claim.key);
	memcpy(said.claim.token, token, sizeof said.claim.token);
	said.response = slice_of(response, response_bytes);
	said.ttl_ms = ttl_ms;
	*ret_stale = said.stale;
	return said.code;
}

static enum hx_code say_remove(void *data, const unsigned char *key, const unsigned char *token, int *ret_stale)
{
	return say_complete(data, key, token, NULL, 0, 0, ret_stale);
}

static enum hx_code say_sweep(void *data, int64_t budget, int64_t *ret_removed)
{
	assert_ptr_equal(data, &said);
	said.calls++;
	said.budget = budget;
	*ret_removed = said.removed;
	return said.code;
}

static const struct hx_gate_store table = {HX_SIZE(hx_gate_store), &said,      say_acquire,
					   say_complete,           say_remove, say_sweep};
static struct gate_store *store;
static struct heard heard;

static int set_up(void **state)
{
	(void)state;
	memset(&said, 0, sizeof said);
	return gate_user_new(&table, clock_system(), &store, /* err= */ NULL);
}

static int tear_down(void **state)
{
	(void)state;
	gate_store_free(store);
	return 0;
}

static void verdicts_are_passed_on(void **state)
{
	static const enum gate_verdict verdicts[] = {[HX_GATE_ACQUIRED] = GATE_ACQUIRED,
						     [HX_GATE_COMPLETED] = GATE_COMPLETED,
						     [HX_GATE_IN_FLIGHT] = GATE_IN_FLIGHT,
						     [HX_GATE_HELD] = GATE_HELD,
						     [HX_GATE_MISMATCHED] = GATE_MISMATCHED};
	struct hx_gate_claim claim = claim_of(1, 2, 3, 4);

	(void)state;
	for (unsigned i = 0; i < sizeof verdicts / sizeof *verdicts; i++) {
		said.found = (struct hx_gate_found){i, 1000 + i, 77, "a\0b", 3};
		assert_int_equal(hear_acquire(store, &claim, &heard), verdicts[i]);
		assert_memory_equal(&said.claim, &claim, sizeof claim);
		assert_int_equal(heard.reply.created_ms, 1000 + i);
		assert_int_equal(heard.reply.lease_left_ms, i == HX_GATE_IN_FLIGHT ? 77 : 0);
		assert_true(heard_is(&heard, slice_of("a\0b", i == HX_GATE_COMPLETED ? 3 : 0)));
	}
	for (said.stale = 0; said.stale < 3; said.stale++) {
		enum gate_verdict wanted = said.stale ? GATE_STALE : GATE_DONE;

		assert_int_equal(hear_complete(store, &claim, slice_of("\0c", 2)), wanted);
		assert_true(slice_eq(said.response, slice_of("\0c", 2)));
		assert_int_equal(said.ttl_ms, 4);
		assert_memory_equal(said.claim.key, claim.key, sizeof claim.key);
		assert_memory_equal(said.claim.token, claim.token, sizeof claim.token);
		assert_int_equal(hear_remove(store, &claim), wanted);
	}
	said.removed = 5;
	assert_int_equal(hear_sweep(store, 9, 1000), 5);
	assert_int_equal(said.budget, 9);
}

/* Whatever goes wrong lets nobody in and says nothing was done. */
static void nonsense_is_unavailable(void **state)
{
	static const enum hx_code codes[] = {HX_STORE_UNAVAILABLE, HX_INTERNAL, HX_CODE_COUNT, (enum hx_code) - 1};
	struct hx_gate_claim claim = claim_of(1, 0, 1, 1);
	struct gate_ask sweep = {.op = GATE_SWEEP, .budget = 1};

	(void)state;
	for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
		said.code = codes[i];
		assert_int_equal(hear_acquire(store, &claim, &heard), GATE_UNAVAILABLE);
		assert_int_equal(hear_complete(store, &claim, slice_str("x")), GATE_UNAVAILABLE);
		assert_int_equal(hear_remove(store, &claim), GATE_UNAVAILABLE);
		assert_int_equal(hear(store, &sweep, &heard), GATE_UNAVAILABLE);
	}
	assert_int_equal(said.calls, 4 * 4); /* nothing was repeated: that is the table's own affair */
	said.code = HX_OK;
	said.found.verdict = (enum hx_gate_verdict)99;
	assert_int_equal(hear_acquire(store, &claim, &heard), GATE_UNAVAILABLE);
	said.found.verdict = (enum hx_gate_verdict) - 1;
	assert_int_equal(hear_acquire(store, &claim, &heard), GATE_UNAVAILABLE);
	said.found = (struct hx_gate_found){.verdict = HX_GATE_COMPLETED, .response = NULL, .response_bytes = 0};
	assert_int_equal(hear_acquire(store, &claim, &heard), GATE_COMPLETED);
	assert_int_equal(heard.response_bytes, 0);
}

static enum hx_code say_nothing(void *data, const struct hx_gate_claim *claim, struct hx_gate_found *ret_found)
{
	(void)data;
	(void)claim;
	(void)ret_found;
	return HX_OK;
}

static void a_table_may_be_incomplete_but_not_of_use(void **state)
{
	struct hx_gate_store part = table;
	struct gate_store *none = NULL;
	struct hx_gate_claim claim = claim_of(1, 0, 1, 1);
	struct hx_error err = {0};

	(void)state;
	part.acquire = NULL;
	assert_int_equal(gate_user_new(&part, clock_system(), &none, &err), HX_CONFIG_ERROR);
	part = table;
	part.complete = NULL;
	assert_int_equal(gate_user_new(&part, clock_system(), &none, &err), HX_CONFIG_ERROR);
	part = table;
	part.remove = NULL;
	assert_int_equal(gate_user_new(&part, clock_system(), &none, &err), HX_CONFIG_ERROR);
	assert_null(none);

	part = table;
	part.sweep = NULL;
	part.acquire = say_nothing;
	assert_int_equal(gate_user_new(&part, clock_system(), &none, &err), HX_OK);
	memset(&part, 0, sizeof part); /* it was copied */
	assert_int_equal(hear_sweep(none, 10, 1000), 0);
	assert_int_equal(hear_acquire(none, &claim, &heard), GATE_IN_FLIGHT); /* who says nothing lets nobody in */
	gate_store_free(none);
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(verdicts_are_passed_on),
		TEST(nonsense_is_unavailable),
		TEST(a_table_may_be_incomplete_but_not_of_use),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
