/* recall.c: what is given again, for how long, and what takes the place of what. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "gate/recall.h"

#define TTL_MS 86400000

static struct recall *recall;
static struct strbuf found;

static int set_up(void **state)
{
	(void)state;
	recall = recall_new();
	strbuf_init(&found, RECALL_BYTES_MAX);
	return recall ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	recall_free(recall);
	strbuf_release(&found);
	return 0;
}

/* Keys of the same slot differ in their second half only. */
static struct hx_gate_claim claim_of(int slot, int key, int fingerprint)
{
	struct hx_gate_claim claim = {.ttl_ms = TTL_MS};

	claim.key[0] = (unsigned char)slot;
	claim.key[20] = (unsigned char)key;
	claim.fingerprint[31] = (unsigned char)fingerprint;
	return claim;
}

static struct mono_time at_ms(int64_t ms)
{
	return mono_add_ms((struct mono_time){1}, ms);
}

static const char *find(const struct hx_gate_claim *claim, int64_t ms)
{
	strbuf_reset(&found);
	assert_int_equal(recall_find(recall, claim, at_ms(ms), NULL), recall_find(recall, claim, at_ms(ms), &found));
	return found.n ? found.p : NULL;
}

static void for_a_second(void **state)
{
	struct hx_gate_claim claim = claim_of(1, 1, 1);

	(void)state;
	assert_null(find(&claim, 0));
	recall_keep(recall, &claim, slice_str("answer"), TTL_MS, at_ms(0));
	assert_string_equal(find(&claim, 0), "answer");
	assert_string_equal(find(&claim, RECALL_MS - 1), "answer");
	assert_null(find(&claim, RECALL_MS));
}

static void never_beyond_the_record(void **state)
{
	struct hx_gate_claim claim = claim_of(1, 1, 1);

	(void)state;
	recall_keep(recall, &claim, slice_str("answer"), 250, at_ms(0));
	assert_string_equal(find(&claim, 249), "answer");
	assert_null(find(&claim, 250));
	recall_keep(recall, &claim, slice_str("answer"), 0, at_ms(0));
	assert_null(find(&claim, 250));
}

static void for_the_same_request_alone(void **state)
{
	struct hx_gate_claim claim = claim_of(1, 1, 1), other = claim_of(1, 1, 2), neighbour = claim_of(1, 2, 1);

	(void)state;
	recall_keep(recall, &claim, slice_str("answer"), TTL_MS, at_ms(0));
	assert_null(find(&other, 1));
	assert_null(find(&neighbour, 1));
	recall_keep(recall, &neighbour, slice_str("its own"), TTL_MS, at_ms(1));
	assert_string_equal(find(&neighbour, 1), "its own");
	assert_null(find(&claim, 1)); /* its place was taken */
}

static void until_it_is_forgotten(void **state)
{
	struct hx_gate_claim claim = claim_of(1, 1, 1), neighbour = claim_of(1, 2, 1);

	(void)state;
	recall_keep(recall, &claim, slice_str("answer"), TTL_MS, at_ms(0));
	recall_drop(recall, neighbour.key);
	assert_string_equal(find(&claim, 1), "answer");
	recall_drop(recall, claim.key);
	assert_null(find(&claim, 1));
}

static void up_to_a_size(void **state)
{
	struct hx_gate_claim claim = claim_of(1, 1, 1);
	static char large[RECALL_BYTES_MAX + 1];

	(void)state;
	memset(large, 'x', sizeof large);
	recall_keep(recall, &claim, slice_of(large, sizeof large), TTL_MS, at_ms(0));
	assert_null(find(&claim, 1));
	recall_keep(recall, &claim, slice_of(large, RECALL_BYTES_MAX), TTL_MS, at_ms(0));
	assert_non_null(find(&claim, 1));
	assert_int_equal(found.n, RECALL_BYTES_MAX);
	recall_keep(recall, &claim, slice_str(""), TTL_MS, at_ms(0));
	assert_true(recall_find(recall, &claim, at_ms(1), NULL));
	recall_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(for_a_second, set_up, tear_down),
		cmocka_unit_test_setup_teardown(never_beyond_the_record, set_up, tear_down),
		cmocka_unit_test_setup_teardown(for_the_same_request_alone, set_up, tear_down),
		cmocka_unit_test_setup_teardown(until_it_is_forgotten, set_up, tear_down),
		cmocka_unit_test_setup_teardown(up_to_a_size, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
