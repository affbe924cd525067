/* The rules of what comes after a try, and the page that shows them: one is written from the other, word by word. */
#include "flow/what_next.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/strbuf.h"
#include "flow/backoff.h"
#include "support/must_hold.h"

#define PAGE "docs/actions.md"
#define PAGE_BYTES_MAX (1u << 20)
#define BEGIN "<!-- next -->\n"
#define END "<!-- /next -->\n"

static const struct run_retry thrice = {
	.max_attempts = 3, .initial_ms = 1000, .max_ms = 300000, .factor_thousandths = 2000};

static void write_policies(unsigned policies, struct strbuf *out)
{
	static const char *const names[] = {"`revert`", "`retry`", "`probe`", "`hold`"};
	const char *before = "";

	if (policies == NEXT_EVERY_POLICY)
		strbuf_add_str(out, "any");
	for (unsigned i = 0; policies != NEXT_EVERY_POLICY && i < 4; i++) {
		if (!(policies & 1u << i))
			continue;
		strbuf_addf(out, "%s%s", before, names[i]);
		before = ", ";
	}
}

static void write_rule(const struct next_rule *rule, struct strbuf *out)
{
	static const char *const heard[] = {
		[HEARD_DONE] = "done",
		[HEARD_NOT_DONE] = "not done, tried again",
		[HEARD_REFUSED] = "failed for good, rejected",
		[HEARD_UNSETTLED] = "unsettled",
		[HEARD_UNKNOWN] = "unknown",
		[HEARD_PROBE_UNKNOWN] = "unknown, and the probe does not know",
	};
	static const char *const facts[] = {[NEXT_IF_ANY] = "any", [NEXT_IF_NO] = "no", [NEXT_IF_YES] = "yes"};
	static const char *const next[] = {
		[NEXT_DONE] = "done",
		[NEXT_AGAIN] = "once more, after a rest",
		[NEXT_SAME_AGAIN] = "once more, after a rest, no attempt used",
		[NEXT_PROBE] = "the probe is asked",
		[NEXT_HOLD] = "for a person",
		[NEXT_FAIL] = "failed",
	};

	strbuf_addf(out, "| %s | %s | ", heard[rule->heard], facts[rule->doubt]);
	write_policies(rule->policies, out);
	strbuf_addf(out, " | %s | %s |\n", facts[rule->left], next[rule->next]);
}

static void test_page_shows_the_rules(void **state)
{
	char *page = calloc(1, PAGE_BYTES_MAX), *begin, *end;
	FILE *f = fopen(PAGE, "r");
	struct strbuf table;

	(void)state;
	if (!f || !page || fread(page, 1, PAGE_BYTES_MAX - 1, f) == 0)
		fail_msg("%s cannot be read", PAGE);
	fclose(f);
	begin = strstr(page, BEGIN);
	end = strstr(page, END);
	assert_true(begin && end);
	*end = '\0';
	strbuf_init(&table, PAGE_BYTES_MAX);
	strbuf_add_str(&table,
		       "| heard | in doubt before | `on_unknown` | left | next |\n| --- | --- | --- | --- | --- |\n");
	for (size_t i = 0; i < next_rules_n; i++)
		write_rule(&next_rules[i], &table);
	if (strcmp(begin + strlen(BEGIN), table.p) != 0)
		fail_msg("%s has other rules than flow/what_next.c, which are\n%s", PAGE, table.p);
	strbuf_release(&table);
	free(page);
}

static bool fits(const struct next_rule *rule, enum heard heard, bool doubt, enum on_unknown policy, bool left)
{
	return rule->heard == heard && rule->doubt != (doubt ? NEXT_IF_NO : NEXT_IF_YES) &&
	       rule->left != (left ? NEXT_IF_NO : NEXT_IF_YES) && (rule->policies & 1u << policy);
}

/* Every case has a rule, and every rule is the first that fits some case. */
static void test_every_case_has_a_rule_and_every_rule_a_case(void **state)
{
	bool reached[64] = {false};

	(void)state;
	assert_true(next_rules_n <= 64);
	for (unsigned mask = 0; mask < 6 * 2 * 4 * 2; mask++) {
		size_t i = 0;

		while (i < next_rules_n &&
		       !fits(&next_rules[i], mask / 16, mask & 1, (enum on_unknown)(mask / 2 % 4), mask / 8 % 2))
			i++;
		assert_true(i < next_rules_n);
		reached[i] = true;
	}
	for (size_t i = 0; i < next_rules_n; i++)
		assert_true(reached[i]);
}

static struct tried tried(enum heard heard, bool doubt, enum on_unknown policy, int64_t attempt)
{
	return (struct tried){.heard = heard,
			      .doubt = doubt,
			      .policy = policy,
			      .retry = &thrice,
			      .attempt = attempt,
			      .now_ms = 5000000,
			      .waits = true};
}

/* The promise: nothing that may have been done is ever told as failed. */
static void test_after_a_doubt_nothing_fails(void **state)
{
	(void)state;
	for (unsigned mask = 0; mask < 6 * 4 * 4; mask++) {
		struct tried t = tried(mask / 16, /* doubt= */ true, (enum on_unknown)(mask % 4), 1 + mask / 4 % 4);
		struct next next = what_next(&t);

		MUST_HOLD(next.what != NEXT_FAIL, "what may have been done is told as failed");
		assert_true(next.doubt);
		t.doubt = false;
		next = what_next(&t);
		assert_true(next.what != NEXT_FAIL || t.heard == HEARD_NOT_DONE || t.heard == HEARD_REFUSED);
		assert_int_equal(next.doubt, t.heard == HEARD_UNSETTLED || t.heard == HEARD_UNKNOWN ||
						     t.heard == HEARD_PROBE_UNKNOWN);
	}
}

static void test_rests(void **state)
{
	struct tried t = tried(HEARD_NOT_DONE, false, UNKNOWN_RETRY, 2);

	(void)state;
	assert_int_equal(what_next(&t).rest_ms, 2000);
	t.not_before_ms = 7000;
	assert_int_equal(what_next(&t).rest_ms, 7000);
	t.not_before_ms = 10;
	assert_int_equal(what_next(&t).rest_ms, 2000);
	t.attempt = 3;
	assert_int_equal(what_next(&t).what, NEXT_FAIL);
}

static void test_unsettled_uses_no_attempt_and_ends(void **state)
{
	struct tried t = tried(HEARD_UNSETTLED, true, UNKNOWN_RETRY, 3);
	struct next next = what_next(&t);

	(void)state;
	assert_int_equal(next.what, NEXT_SAME_AGAIN);
	assert_int_equal(next.unsettled_since, t.now_ms);
	t.unsettled_since = t.now_ms - UNSETTLED_MS_MAX;
	assert_int_equal(what_next(&t).what, NEXT_HOLD);
	t.policy = UNKNOWN_PROBE;
	assert_int_equal(what_next(&t).what, NEXT_PROBE);
	t.unsettled_since = 0;
	t.waits = false;
	assert_int_equal(what_next(&t).what, NEXT_PROBE);
	t.policy = UNKNOWN_HOLD;
	t.waits = true;
	assert_int_equal(what_next(&t).what, NEXT_HOLD);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_page_shows_the_rules),
		cmocka_unit_test(test_every_case_has_a_rule_and_every_rule_a_case),
		cmocka_unit_test(test_after_a_doubt_nothing_fails),
		cmocka_unit_test(test_rests),
		cmocka_unit_test(test_unsettled_uses_no_attempt_and_ends),
	};

	ONLY_THE_NAMED(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
