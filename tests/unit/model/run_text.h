/* Definitions of runs out of a few words, and what is said of them: what test_run_definition.c and test_run_jumps.c share. */
#ifndef HX_TESTS_UNIT_MODEL_RUN_TEXT_H
#define HX_TESTS_UNIT_MODEL_RUN_TEXT_H

#include "definition.h"

#include "model/run_definition.h"

/* From a clean sheet. */
static inline const struct run_definition *parse_run(const char *text)
{
	const struct run_definition *d = NULL;

	findings_init(&findings, &arena);
	run_definition_parse("r.json", slice_str(json_text(text)), &arena, &findings, &d);
	print_findings();
	assert_false(arena.failed);
	assert_true((d != NULL) == (findings.errors == 0));
	return d;
}

static inline const struct run_definition *parsed(const char *text)
{
	const struct run_definition *d = parse_run(text);

	if (!d)
		fail_msg("%s\nfor\n%s", printed.p, text);
	return d;
}

static inline const struct run_definition *clean(const char *text)
{
	const struct run_definition *d = parsed(text);

	if (findings.warnings)
		fail_msg("%s\nfor\n%s", printed.p, text);
	return d;
}

static inline void assert_run_errors(const char *text, size_t errors)
{
	assert_null(parse_run(text));
	if (findings.errors != errors)
		fail_msg("%zu errors, not %zu:\n%s\nfor\n%s", findings.errors, errors, printed.p, text);
}

/* With an action of each effect; the steps begin in line 6. */
static inline const char *with_steps(const char *steps)
{
	return text_printf(
		&arena,
		"{ 'workflow': 'w', 'kind': 'run', 'actions': {\n"
		"'Claimed': { 'kind': 'http', 'url': 'http://h', 'probe': 'Safe' },\n"
		"'Keyed': { 'kind': 'http', 'url': 'http://h', 'effect': 'keyed' },\n"
		"'Safe': { 'kind': 'http', 'url': 'http://h', 'effect': 'idempotent' }, 'Noop': { 'kind': 'noop' },\n"
		"'Sql': { 'kind': 'sql', 'statements': [ { 'name': 's', 'sql': 'SELECT 1' } ] } }, 'steps': [\n"
		"%s ] }",
		steps);
}

/* A step of these fields, called s, and one after it, so that a condition has something to decide. */
static inline const char *with_step(const char *fields)
{
	return with_steps(text_printf(&arena, "{ 'name': 's', %s },\n{ 'name': 'z', 'type': 'approval' }", fields));
}

static inline const struct run_step *step(const char *fields)
{
	return &clean(with_step(fields))->steps[0];
}

static inline void refused(const char *fields, const char *said)
{
	assert_run_errors(with_step(fields), 1);
	assert_int_equal(findings.warnings, 0);
	assert_said("r.json:6: error: workflow w, step s: ", said, NULL);
}

static inline void warned(const char *fields, const char *said)
{
	(void)parsed(with_step(fields));
	assert_int_equal(findings.warnings, 1);
	assert_said("r.json:6: warning: workflow w, step s: ", said, NULL);
}

#endif
