/*
 * docs/definitions.md: its examples are what they claim to be. A fence says what is in it:
 *
 *   ```json definition          a whole one; the first of each kind is also the frame for the others
 *   ```json step                one or more steps, in place of those of the frame
 *   ```json run-step            the same for a run
 *   ```json batch               the fields of a batch, in place of those of the frame after its actions
 *   ```json actions             one or more actions, beside those of the frame
 *   ```json config              a configuration
 *   ```json step bad rule 4     refused, by rule 4 and nothing else
 */
#include "definition.h"

#include "model/definition.h"

#define DOCUMENT "docs/definitions.md"

struct example {
	char kind[32]; /* the word after "json" */
	char rule[32]; /* empty: it is a good one */
	const char *text;
	size_t line;
};

static char *document;
static const char *entity_frame, *run_frame, *batch_frame;

static char *read_document(void)
{
	FILE *f = fopen(DOCUMENT, "r");
	char *text = calloc(1, 1u << 20);

	if (!f || !text || fread(text, 1, (1u << 20) - 1, f) == 0)
		fail_msg("%s cannot be read", DOCUMENT);
	fclose(f);
	return text;
}

/* The next fenced example from *at on; false: there are no more. */
static bool next_example(const char **at, struct example *ret)
{
	const char *fence = strstr(*at, "```json");
	const char *text, *end;
	char words[80] = "";

	if (!fence)
		return false;
	text = strchr(fence, '\n') + 1;
	end = strstr(text, "\n```");
	assert_non_null(end);
	memset(ret, 0, sizeof *ret);
	snprintf(words, sizeof words, "%.*s", (int)(text - fence - 8), fence + 8);
	if (sscanf(words, "%31s bad %31[^\n]", ret->kind, ret->rule) < 1)
		fail_msg("an example does not say what it is: %.40s", fence);
	ret->text = arena_copy(&arena, slice_of(text, (size_t)(end - text))).p;
	for (const char *p = document; p < text; p++)
		ret->line += *p == '\n';
	*at = end + 4;
	return true;
}

static const struct definition *read_definition(const char *text)
{
	const struct definition *d = NULL;

	definition_parse("w.json", slice_str(text), &arena, &findings, &d);
	return d;
}

/* The frame up to where this stands in it, the example, and what closes it. */
static const char *framed(const char *frame, const char *up_to, const char *example, const char *behind)
{
	const char *cut = strstr(frame, up_to);

	assert_non_null(cut);
	return text_printf(&arena, "%.*s%s%s%s", (int)(cut - frame), frame, up_to, example, behind);
}

static const char *framed_batch(const char *example)
{
	const char *cut = strstr(batch_frame, "\"item_action\"");

	assert_non_null(cut);
	return text_printf(&arena, "%.*s%s }", (int)(cut - batch_frame), batch_frame, example);
}

static void check(const struct example *e)
{
	const char *text = e->text;
	struct config config;

	findings_init(&findings, &arena);
	if (strcmp(e->kind, "step") == 0)
		text = framed(entity_frame, "\"steps\": [", e->text, "] }");
	else if (strcmp(e->kind, "run-step") == 0)
		text = framed(run_frame, "\"steps\": [", e->text, "] }");
	else if (strcmp(e->kind, "batch") == 0)
		text = framed_batch(e->text);
	else if (strcmp(e->kind, "actions") == 0)
		text = framed(entity_frame, "\"actions\": {", e->text, "}, \"steps\": [] }");
	if (strcmp(e->kind, "config") == 0)
		config_parse("c.json", slice_str(text), &arena, &findings, &config);
	else
		(void)read_definition(text);
	print_findings();
	if ((findings.errors > 0) != (e->rule[0] != '\0'))
		fail_msg("line %zu: %s", e->line, findings.errors ? printed.p : "this is not refused");
	for (const struct finding *f = findings.first; f; f = f->next)
		if (f->severity == FINDING_ERROR && strcmp(f->rule, e->rule) != 0)
			fail_msg("line %zu: not %s: %s", e->line, e->rule, printed.p);
}

static void the_examples_are_what_they_say(void **state)
{
	size_t good = 0, bad = 0, of_runs = 0, of_batches = 0;
	struct example e;
	const char *at;

	(void)state;
	document = read_document();
	at = document;
	entity_frame = run_frame = batch_frame = NULL;
	while (next_example(&at, &e)) {
		if (!entity_frame)
			entity_frame = e.text;
		if (!run_frame && strstr(e.text, "\"kind\": \"run\""))
			run_frame = e.text;
		if (!batch_frame && strstr(e.text, "\"kind\": \"batch\""))
			batch_frame = e.text;
		check(&e);
		of_runs += run_frame && !batch_frame;
		of_batches += batch_frame != NULL;
		good += !e.rule[0];
		bad += e.rule[0] != '\0';
	}
	free(document);
	printf("# %s: %zu good and %zu bad examples\n", DOCUMENT, good, bad);
	assert_true(good >= 12 && bad >= 10 && of_runs >= 10 && of_batches >= 4);
}

/* Whole definitions have no warnings either. */
static void whole_definitions_are_clean(void **state)
{
	struct example e;
	const char *at;

	(void)state;
	document = read_document();
	at = document;
	while (next_example(&at, &e)) {
		if (strcmp(e.kind, "definition") != 0)
			continue;
		assert_non_null(read_definition(e.text));
		print_findings();
		assert_string_equal(printed.p ? printed.p : "", "");
	}
	free(document);
}

/* Each of the eight rules has a bad example. */
static void every_rule_has_its_example(void **state)
{
	(void)state;
	document = read_document();
	for (int rule = 1; rule <= 8; rule++)
		assert_non_null(strstr(document, text_printf(&arena, "```json step bad rule %d\n", rule)));
	free(document);
}

/* Each stands in a table of the chapter. */
static void assert_told(const char *title, const char *const *fields, size_t n)
{
	const char *chapter, *end;

	document = read_document();
	chapter = strstr(document, title);
	assert_non_null(chapter);
	end = strstr(chapter + 1, "\n# ");
	assert_non_null(end);
	chapter = arena_copy(&arena, slice_of(chapter, (size_t)(end - chapter))).p;
	for (size_t i = 0; i < n; i++)
		if (!strstr(chapter, text_printf(&arena, "\n| `%s` |", fields[i])))
			fail_msg("no table of the chapter has %s", fields[i]);
	free(document);
}

/* Every field of a run definition, of its steps and of a retry. */
static void every_field_of_runs_is_told(void **state)
{
	static const char *const fields[] = {
		"workflow",     "kind",         "meta",    "actions", "steps",      "output",  "lease",
		"action",       "input",        "retry",   "save_as", "compensate", "timeout", "for",
		"on_timeout",   "on_unknown",   "on_5xx",  "event",   "entry_lock", "until",   "when",
		"then`, `else", "max_attempts", "initial", "factor",  "max",        "jitter",
	};

	(void)state;
	assert_told("\n# Kind run\n", fields, sizeof fields / sizeof *fields);
}

static void every_field_of_batches_is_told(void **state)
{
	static const char *const fields[] = {
		"workflow",    "kind",  "meta",    "actions", "item_action", "cleanup_action", "done_after_effect",
		"concurrency", "retry", "timeout", "lease",   "on_unknown",  "on_5xx",         "cancel_check_every",
	};

	(void)state;
	assert_told("\n# Kind batch\n", fields, sizeof fields / sizeof *fields);
}

static void assert_word_told(const char *word)
{
	char text[80];

	snprintf(text, sizeof text, "`%s`", word);
	if (!strstr(document, text))
		fail_msg("%s does not tell of %s", DOCUMENT, text);
}

/* No field need name them, so nothing else would fail. */
static void every_type_and_kind_is_told(void **state)
{
	(void)state;
	document = read_document();
#define TYPE_NAME(type, name, ...) assert_word_told(name);
	RUN_STEP_TYPES(TYPE_NAME)
	ACTION_KINDS(TYPE_NAME)
#undef TYPE_NAME
	free(document);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		model_test(the_examples_are_what_they_say), model_test(whole_definitions_are_clean),
		model_test(every_rule_has_its_example),     model_test(every_field_of_runs_is_told),
		model_test(every_field_of_batches_is_told), model_test(every_type_and_kind_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
