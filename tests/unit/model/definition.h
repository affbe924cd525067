/*
 * Definitions for the tests of the model. JSON is written with single quotes, which become double ones; a text with
 * a percent sign is a format. Everything lives until the tear-down.
 */
#ifndef HX_TEST_DEFINITION_H
#define HX_TEST_DEFINITION_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "model/config.h"
#include "model/text.h"
#include "model/workflow.h"

static struct arena arena;
static struct findings findings;
static struct strbuf printed;

static int set_up(void **state)
{
	(void)state;
	arena_init(&arena, 256u << 20);
	findings_init(&findings, &arena);
	strbuf_init(&printed, 16u << 20);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	strbuf_release(&printed);
	arena_release(&arena);
	return 0;
}

/* The text with its quotes made double. */
static inline char *json_text(const char *text)
{
	struct slice copy = arena_copy(&arena, slice_str(text));
	char *p = (char *)copy.p;

	for (size_t i = 0; i < copy.n; i++)
		if (p[i] == '\'')
			p[i] = '"';
	return p;
}

static inline void print_findings(void)
{
	strbuf_reset(&printed);
	for (const struct finding *f = findings.first; f; f = f->next) {
		finding_print(f, &printed);
		strbuf_add_char(&printed, '\n');
	}
}

static inline const struct workflow *parse_as(const char *file, const char *text)
{
	const struct workflow *w = NULL;

	workflow_parse(file, slice_str(json_text(text)), &arena, &findings, &w);
	print_findings();
	assert_false(arena.failed);
	return w;
}

/* From a clean sheet: findings of an earlier text are gone. */
static inline const struct workflow *parse(const char *text)
{
	findings_init(&findings, &arena);
	return parse_as("w.json", text);
}

static inline const struct workflow *parse_clean(const char *text)
{
	const struct workflow *w = parse(text);

	if (!w || findings.warnings)
		fail_msg("%s\nfor\n%s", printed.p, text);
	return w;
}

/* A line of the findings has all of these in it (a list that ends with NULL). */
static inline void assert_said(const char *first, ...)
{
	struct slice rest = strbuf_slice(&printed);

	while (rest.n > 0) {
		const char *end = memchr(rest.p, '\n', rest.n);
		char *line = strndup(rest.p, (size_t)(end - rest.p));
		const char *fragment = first;
		bool all = true;
		va_list more;

		va_start(more, first);
		for (; fragment && all; fragment = va_arg(more, const char *))
			all = strstr(line, fragment) != NULL;
		va_end(more);
		free(line);
		if (all)
			return;
		rest = slice_of(end + 1, rest.n - (size_t)(end + 1 - rest.p));
	}
	fail_msg("no line with \"%s\" (and what belongs to it) in\n%s", first, printed.p);
}

static inline void assert_not_said(const char *fragment)
{
	if (strstr(printed.p, fragment))
		fail_msg("\"%s\" is in\n%s", fragment, printed.p);
}

/* Refused with exactly so many errors. */
static inline void assert_errors(const char *text, size_t errors)
{
	assert_null(parse(text));
	if (findings.errors != errors)
		fail_msg("%zu errors, not %zu:\n%s\nfor\n%s", findings.errors, errors, printed.p, text);
}

/* A billing workflow with these steps; line 5 is where they begin. */
static inline const char *billing(const char *steps)
{
	return text_printf(
		&arena,
		"{ 'workflow': 'billing', 'kind': 'entity',\n"
		"  'status_types': ['draft', 'approved', 'closing', 'closed'], 'initial_status': 'draft',\n"
		"  'actions': { 'Close': { 'kind': 'http', 'url': 'http://h/c' }, 'Mail': { 'kind': 'noop' } },\n"
		"  'steps': [ { 'step_id': 1, 'step_key': 'approve', 'status': 'draft', "
		"'successful_state': 'approved' },\n"
		"%s ] }",
		steps);
}

#define model_test(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

#endif
