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

static void what_is_far_from_all_finds_none(void **state)
{
	static const char *const statuses[] = {"PENDING", "RUNNING", "COMPLETED", "FAILED", NULL};
	static const char *const short_names[] = {"db", "x", NULL};
	static const char *const none[] = {NULL};
	char long_name[5000];

	(void)state;
	memset(long_name, 'x', sizeof long_name);
	assert_null(nearest_name(slice_of(long_name, sizeof long_name), fields));
	assert_null(nearest_name(slice_of("\0\xff", 2), fields));
	assert_null(nearest_name(slice_str(""), fields));
	assert_null(nearest_name(slice_str(""), short_names));
	assert_null(nearest_name(slice_str("y"), short_names)); /* nothing of it would stay */
	assert_null(nearest_name(slice_str("zzzzzz"), fields));
	assert_null(nearest_name(slice_str("DONE"), statuses));
	assert_null(nearest_name(slice_str("x"), none));
	assert_string_equal(nearest_name(slice_str("dv"), short_names), "db");
	assert_string_equal(nearest_name(slice_str("pending"), statuses), "PENDING");
}

static void words_name_the_nearest_or_the_few(void **state)
{
	static const char *const shells[] = {"bash", "zsh", NULL};
	static const char *const eleven[] = {"aa", "bb", "cc", "dd", "ee", "ff", "gg", "hh", "ii", "jj", "kk", NULL};
	static const char *const none[] = {NULL};
	char long_name[101];
	const char *const long_names[] = {long_name, long_name, long_name, long_name, NULL};

	(void)state;
	memset(long_name, 'x', sizeof long_name - 1);
	long_name[sizeof long_name - 1] = '\0';
	assert_string_equal(nearest_words(slice_str("bsh"), shells, "--", "").text, "; did you mean --bash?");
	assert_string_equal(nearest_words(slice_str("fish"), shells, "", "").text, "; did you mean bash?");
	assert_string_equal(nearest_words(slice_str("powers"), shells, "\"", "\"").text,
			    "; there are \"bash\", \"zsh\"");
	assert_string_equal(nearest_words(slice_str("123456"), eleven + 1, "", "").text,
			    "; there are bb, cc, dd, ee, ff, gg, hh, ii, jj, kk");
	assert_string_equal(nearest_words(slice_str("123456"), eleven + 10, "", "").text, "; there is kk");
	assert_string_equal(nearest_words(slice_str("123456"), eleven, "", "").text, "");
	assert_string_equal(nearest_words(slice_str("123456"), long_names, "", "").text, "");
	assert_string_equal(nearest_words(slice_str("x"), none, "", "").text, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		model_test(misspelt_names_find_theirs),
		model_test(what_is_far_from_all_finds_none),
		model_test(words_name_the_nearest_or_the_few),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
