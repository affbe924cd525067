/* The table of statuses, and the page that shows it: one is written from the other, word by word. */
#include "act/status.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/strbuf.h"

#define PAGE "docs/actions.md"
#define PAGE_BYTES_MAX (1u << 20)
#define BEGIN "<!-- statuses -->\n"
#define END "<!-- /statuses -->\n"

static const char *meaning(enum outcome_word word)
{
	static const char *const words[] = {
		[OUTCOME_DONE] = "done",         [OUTCOME_FAILED] = "failed for good",
		[OUTCOME_REJECTED] = "rejected", [OUTCOME_RETRY] = "not done, tried again",
		[OUTCOME_UNKNOWN] = "unknown",   [OUTCOME_UNSETTLED] = "unsettled",
	};

	return words[word];
}

/* As the page says it; "": always. */
static const char *when_words(enum status_when when)
{
	static const char *const words[] = {
		[WHEN_ALWAYS] = "",
		[WHEN_CLEANUP] = "of a cleanup action",
		[WHEN_INVALID] = "with `\"is_invalid\": true` in the body",
		[WHEN_KEYED_OPEN] = "of a `keyed` action, with `Retry-After` or after a try that is in doubt",
		[WHEN_RETRY_AFTER] = "with `Retry-After`",
		[WHEN_ON_5XX] = "where `on_5xx` is `unknown`",
	};

	return words[when];
}

static void write_rule(const struct status_rule *rule, struct strbuf *out)
{
	const char *when = when_words(rule->when);

	if (rule->from == 0)
		strbuf_add_str(out, "| any other number");
	else if (rule->from == rule->to)
		strbuf_addf(out, "| %ld", rule->from);
	else
		strbuf_addf(out, "| %ld to %ld", rule->from, rule->to);
	strbuf_addf(out, "%s%s | %s |\n", *when ? " " : "", when, meaning(rule->word));
}

static char *read_page(void)
{
	FILE *f = fopen(PAGE, "r");
	char *text = calloc(1, PAGE_BYTES_MAX);

	if (!f || !text || fread(text, 1, PAGE_BYTES_MAX - 1, f) == 0)
		fail_msg("%s cannot be read", PAGE);
	fclose(f);
	return text;
}

static void test_page_shows_the_table(void **state)
{
	char *page = read_page(), *begin = strstr(page, BEGIN), *end = strstr(page, END);
	struct strbuf table;

	(void)state;
	strbuf_init(&table, PAGE_BYTES_MAX);
	strbuf_add_str(&table, "| status | means |\n| --- | --- |\n");
	for (size_t i = 0; i < status_rules_n; i++)
		write_rule(&status_rules[i], &table);
	assert_true(begin && end);
	*end = '\0';
	if (strcmp(begin + strlen(BEGIN), table.p) != 0)
		fail_msg("%s has another table than act/status.c, which is\n%s", PAGE, table.p);
	strbuf_release(&table);
	free(page);
}

/* Each line is there for some answer: none stands after another that takes all of its. */
static void test_every_line_is_reached(void **state)
{
	(void)state;
	for (size_t i = 0; i < status_rules_n; i++) {
		bool reached = false;

		for (unsigned mask = 0; mask < 64; mask++) {
			struct status_facts facts = {.cleanup = mask & 1,
						     .keyed = mask & 2,
						     .in_doubt = mask & 4,
						     .retry_after = mask & 8,
						     .invalid = mask & 16,
						     .unknown_on_5xx = mask & 32};

			for (long status = 0; status <= 999; status++)
				reached |= status_meaning_of(status, &facts).rule == &status_rules[i];
		}
		assert_true(reached);
	}
}

static void test_own_words_come_first(void **state)
{
	static const struct outcome_range ranges[] = {
		{400, 499, OUTCOME_UNKNOWN}, {404, 404, OUTCOME_DONE}, {500, 599, OUTCOME_FAILED}};
	static const struct outcomes outcomes = {3, ranges};
	struct status_facts facts = {.outcomes = &outcomes, .cleanup = true, .invalid = true};

	(void)state;
	assert_int_equal(status_meaning_of(404, &facts).word, OUTCOME_DONE);
	assert_null(status_meaning_of(404, &facts).rule);
	assert_int_equal(status_meaning_of(410, &facts).word, OUTCOME_UNKNOWN);
	assert_int_equal(status_meaning_of(422, &facts).word, OUTCOME_UNKNOWN);
	assert_int_equal(status_meaning_of(599, &facts).word, OUTCOME_FAILED);
	assert_int_equal(status_meaning_of(399, &facts).word, OUTCOME_FAILED);
	assert_int_equal(status_meaning_of(600, &facts).word, OUTCOME_UNKNOWN);
	assert_non_null(status_meaning_of(200, &facts).rule);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_page_shows_the_table),
		cmocka_unit_test(test_every_line_is_reached),
		cmocka_unit_test(test_own_words_come_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
