/* The nearest known name. */
#include "definition.h"

#include "model/nearest.h"

static const char *const fields[] = {"step_id", "step_key",   "status", "claim_state", "successful_state",
				     "action",  "validation", "lease",  "entry_lock",  NULL};

static void misspelt_names_find_theirs(void **state)
{
	static const char *const cases[][2] = {
		{"claim_stat", "claim_state"},
		{"claimState", "claim_state"},
		{"cliam_state", "claim_state"},
		{"acton", "action"},
		{"leaes", "lease"},
		{"LEASE", "lease"},
		{"stepkey", "step_key"},
		{"successfulstate", "successful_state"},
		{"validations", "validation"},
		{"entry-lock", "entry_lock"},
		{"statu", "status"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
		assert_string_equal(nearest_name(slice_str(cases[i][0]), fields), cases[i][1]);
}

static void there_is_always_an_answer(void **state)
{
	static const char *const none[] = {NULL};
	char long_name[5000];

	(void)state;
	memset(long_name, 'x', sizeof long_name);
	assert_non_null(nearest_name(slice_of(long_name, sizeof long_name), fields));
	assert_non_null(nearest_name(slice_of("\0\xff", 2), fields));
	assert_string_equal(nearest_name(slice_str(""), fields), "lease");
	assert_null(nearest_name(slice_str("x"), none));
	assert_string_equal(nearest_name(slice_str("zzzzzz"), fields), "status"); /* of equals the first */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		model_test(misspelt_names_find_theirs),
		model_test(there_is_always_an_answer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
