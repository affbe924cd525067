/* Which variables and files definitions may name. */
#include "definition.h"

#include "model/definition.h"

#define RULES(...)                                                                                                     \
	(&(struct secret_rules){.given = true,                                                                         \
				.n = sizeof((const char *[]){__VA_ARGS__}) / sizeof(char *),                           \
				.allow = (const char *const[]){__VA_ARGS__}})

static void entries_have_one_of_two_forms(void **state)
{
	static const char *const good[] = {"env:TOKEN", "env:SHOP_*", "file:/run/secrets/*", "file:/etc/key", "env:*"};
	static const char *const bad[] = {"",        "*",           "env:", "TOKEN", "file:", "file:secrets",
					  "env:A*B", "file:/a/*/b", "Env:A"};

	(void)state;
	for (size_t i = 0; i < sizeof good / sizeof *good; i++)
		assert_true(secret_rule_is_good(slice_str(good[i])));
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_false(secret_rule_is_good(slice_str(bad[i])));
}

static bool allows(const struct secret_rules *rules, const char *reference)
{
	return secret_rules_allow(rules, slice_str(reference));
}

static void what_is_not_listed_is_not_allowed(void **state)
{
	const struct secret_rules *rules = RULES("env:TOKEN", "env:SHOP_*", "file:/run/secrets/*");

	(void)state;
	assert_true(allows(rules, "env:TOKEN") && allows(rules, "env:SHOP_KEY") &&
		    allows(rules, "file:/run/secrets/a/b"));
	assert_false(allows(rules, "env:TOKEN2") || allows(rules, "env:TOKE") || allows(rules, "env:token"));
	assert_false(allows(rules, "env:PATH") || allows(rules, "file:/etc/shadow") ||
		     allows(rules, "file:/run/secret"));
	assert_false(allows(&(struct secret_rules){.given = true}, "env:TOKEN"));
}

static void a_path_does_not_go_up_again(void **state)
{
	const struct secret_rules *rules = RULES("file:/run/secrets/*");

	(void)state;
	assert_false(allows(rules, "file:/run/secrets/../../etc/shadow"));
	assert_false(allows(rules, "file:/run/secrets/.."));
	assert_true(allows(rules, "file:/run/secrets/..a"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		model_test(entries_have_one_of_two_forms),
		model_test(what_is_not_listed_is_not_allowed),
		model_test(a_path_does_not_go_up_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
