/* Which variables and files definitions may name. */
#include "definition.h"

#include "model/definition.h"
#include "support/must_hold.h"

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
	MUST_HOLD(!allows(rules, "env:TOKEN2"), "a secret that is not listed is read");
	assert_false(allows(rules, "env:TOKE") || allows(rules, "env:token"));
	assert_false(allows(rules, "env:PATH") || allows(rules, "file:/etc/shadow") ||
		     allows(rules, "file:/run/secret"));
	assert_false(allows(&(struct secret_rules){.given = true}, "env:TOKEN"));
}

static void a_path_does_not_go_up_again(void **state)
{
	const struct secret_rules *rules = RULES("file:/run/secrets/*");

	(void)state;
	MUST_HOLD(!allows(rules, "file:/run/secrets/../../etc/shadow"),
		  "any file is read, by way of a folder that is listed");
	assert_false(allows(rules, "file:/run/secrets/.."));
	assert_true(allows(rules, "file:/run/secrets/..a"));
}

static size_t refusals(const struct secret_rules *rules, bool put)
{
	static const struct action_header header = {.name = "Authorization", .value = "Bearer ${env:TOKEN}"};
	struct action action = {.name = "call", .request = {.headers_n = 1, .headers = &header}};
	struct definition definition = {.file = "a.json", .name = "a", .actions_n = 1, .actions = &action};
	size_t n = 0;

	findings_init(&findings, &arena);
	secret_rules_check(rules, &definition, put, &findings);
	for (const struct finding *f = findings.first; f; f = f->next)
		n++;
	return n;
}

/* Whoever may write into the folder of definitions may read what the service can read; whoever may PUT one may not. */
static void without_a_list_a_definition_that_was_put_names_nothing(void **state)
{
	(void)state;
	assert_int_equal(refusals(&(struct secret_rules){0}, /* put= */ false), 0);
	MUST_HOLD(refusals(&(struct secret_rules){0}, /* put= */ true) == 1,
		  "whoever may PUT reads what the service can read");
	assert_int_equal(refusals(RULES("env:TOKEN"), /* put= */ true), 0);
	assert_int_equal(refusals(RULES("env:OTHER"), /* put= */ false), 1);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		model_test(entries_have_one_of_two_forms),
		model_test(what_is_not_listed_is_not_allowed),
		model_test(a_path_does_not_go_up_again),
		model_test(without_a_list_a_definition_that_was_put_names_nothing),
	};

	ONLY_THE_NAMED(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
