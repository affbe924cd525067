/* Findings: their text, their order, and that nothing is lost in silence. */
#include "definition.h"

static struct finding at(size_t line)
{
	return (struct finding){.severity = FINDING_ERROR, .file = "a.json", .line = line, .rule = "rule 4"};
}

static const char *shown(const struct finding *finding)
{
	strbuf_reset(&printed);
	finding_print(finding, &printed);
	return printed.p;
}

static void the_text_names_everything(void **state)
{
	struct finding f = at(12);

	(void)state;
	f.workflow = "billing";
	f.step = "close";
	f.requester = "admin";
	findings_add(&findings, f, "claim_into is the step's %s", "status");
	assert_string_equal(shown(findings.first),
			    "a.json:12: error: workflow billing, step close, requester admin: rule 4: "
			    "claim_into is the step's status");
	f = (struct finding){.severity = FINDING_WARNING, .file = "a.json", .workflow = "billing"};
	findings_add(&findings, f, "odd");
	assert_string_equal(shown(findings.first->next), "a.json: warning: workflow billing: odd");
	findings_add(&findings, (struct finding){.severity = FINDING_ERROR, .rule = "limit"}, "bare");
	assert_string_equal(shown(findings.first->next->next), "error: limit: bare");
	assert_int_equal(findings.errors, 2);
	assert_int_equal(findings.warnings, 1);
}

static void what_was_given_may_go(void **state)
{
	char file[] = "a.json", step[] = "close";
	struct finding f = {.severity = FINDING_ERROR, .file = file, .step = step};

	(void)state;
	findings_add(&findings, f, "x");
	file[0] = step[0] = '?';
	assert_string_equal(shown(findings.first), "a.json: error: step close: x");
}

static void foreign_text_is_made_printable(void **state)
{
	struct finding f = {.severity = FINDING_ERROR, .file = "a\nb\x1b[31m.json", .line = 1};

	(void)state;
	findings_add(&findings, f, "bad \xff byte\r");
	assert_string_equal(shown(findings.first), "a\\nb\\u001b[31m.json:1: error: bad \\xff byte\\r");
	strbuf_reset(&printed);
	finding_print_json(findings.first, &printed);
	assert_string_equal(
		printed.p,
		"{\"severity\":\"error\",\"file\":\"a\\nb\\u001b[31m.json\",\"line\":1,\"workflow\":"
		"\"\",\"step\":\"\",\"requester\":\"\",\"rule\":\"\",\"text\":\"bad \xef\xbf\xbd byte\\r\"}");
}

static void sorted_by_line_from_a_mark(void **state)
{
	static const size_t lines[] = {9, 5, 3, 5, 1};
	static const size_t expected[] = {9, 1, 3, 5, 5};
	struct finding **mark = NULL;
	size_t i = 0;

	(void)state;
	for (size_t k = 0; k < 5; k++) {
		if (k == 1)
			mark = findings.last;
		findings_add(&findings, at(lines[k]), "%zu", k);
	}
	findings_sort(&findings, mark);
	for (const struct finding *f = findings.first; f; f = f->next)
		assert_int_equal(f->line, expected[i++]);
	assert_int_equal(i, 5);
	assert_string_equal(findings.first->next->next->next->text, "1"); /* equal lines keep their order */
	findings_add(&findings, at(2), "last");
	assert_null(*findings.last);
	assert_ptr_equal(findings.last, &findings.first->next->next->next->next->next->next);
	findings_sort(&findings, findings.last);
}

static void the_ceiling_holds_and_is_said(void **state)
{
	const struct finding *f = NULL;
	size_t n = 0;

	(void)state;
	for (size_t i = 0; i < FINDINGS_MAX; i++)
		findings_add(&findings, (struct finding){.severity = FINDING_WARNING}, "one");
	assert_null(findings.overflow.text);
	findings_add(&findings, (struct finding){.severity = FINDING_WARNING}, "one past");
	assert_int_equal(findings.overflow.severity, FINDING_WARNING);
	findings_add(&findings, at(1), "an error past");
	findings_sort(&findings, &findings.first);
	for (f = findings.first; f->next; f = f->next)
		n++;
	assert_int_equal(n, FINDINGS_MAX);
	assert_ptr_equal(f, &findings.overflow);
	assert_string_equal(shown(f), "error: limit: there is more than can be shown here");
	assert_int_equal(findings.warnings, FINDINGS_MAX + 1);
	assert_int_equal(findings.errors, 1);
}

static void no_memory_is_still_an_error(void **state)
{
	struct arena small;

	(void)state;
	for (size_t room = 0; room < 400; room += 16) {
		struct findings f;

		arena_init(&small, room);
		findings_init(&f, &small);
		findings_add(&f, at(3), "a text that needs some room");
		findings_add(&f, at(4), "a text that needs some room");
		assert_int_equal(f.errors, 2);
		assert_non_null(f.first);
		for (const struct finding *one = f.first; one; one = one->next)
			assert_non_null(shown(one));
		arena_release(&small);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		model_test(the_text_names_everything),      model_test(what_was_given_may_go),
		model_test(foreign_text_is_made_printable), model_test(sorted_by_line_from_a_mark),
		model_test(the_ceiling_holds_and_is_said),  model_test(no_memory_is_still_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
