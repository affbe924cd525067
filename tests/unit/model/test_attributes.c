/* Attributes of a definition: what is refused, and what is kept of values. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "model/run_definition.h"

#define ROOM (4u << 20)

static const struct run_definition *parsed(const char *attributes, struct arena *arena, struct findings *findings)
{
	const struct run_definition *definition = NULL;
	char text[4000];

	snprintf(text, sizeof text,
		 "{\"workflow\": \"w\", \"kind\": \"run\", \"attributes\": %s,"
		 " \"steps\": [{\"name\": \"a\", \"type\": \"wait\", \"for\": \"1s\"}]}",
		 attributes);
	run_definition_parse("w.json", slice_str(text), arena, findings, &definition);
	return definition;
}

static void assert_refused(const char *attributes, const char *words)
{
	struct findings findings;
	char said[1000] = "";

	LOCAL_ARENA(arena, ROOM);
	findings_init(&findings, &arena);
	assert_null(parsed(attributes, &arena, &findings));
	for (const struct finding *f = findings.first; f; f = f->next)
		snprintf(said + strlen(said), sizeof said - strlen(said), "%s\n", f->text);
	if (!strstr(said, words))
		fail_msg("%s: %s", attributes, said);
}

static void bad_ones_are_refused(void **state)
{
	(void)state;
	assert_refused("[]", "object");
	assert_refused("{\"9a\": \".input.a\"}", "no name");
	assert_refused("{\"a-b\": \".input.a\"}", "no name");
	assert_refused("{\"\": \".input.a\"}", "no name");
	assert_refused("{\"status\": \".input.a\"}", "field or a word");
	assert_refused("{\"startswith\": \".input.a\"}", "field or a word");
	assert_refused("{\"a\": 5}", "string");
	assert_refused("{\"a\": \".input.\"}", "column");
	assert_refused("{\"a\": \".inptu.a\"}", "input");
	assert_refused(
		"{\"a1\":\".input\",\"a2\":\".input\",\"a3\":\".input\",\"a4\":\".input\",\"a5\":\".input\",\"a6\":\".input\","
		"\"a7\":\".input\",\"a8\":\".input\",\"a9\":\".input\",\"b1\":\".input\",\"b2\":\".input\",\"b3\":\".input\","
		"\"b4\":\".input\",\"b5\":\".input\",\"b6\":\".input\",\"b7\":\".input\",\"b8\":\".input\"}",
		"at most 16");
}

static void assert_kept(const char *attributes, const char *input, const char *kept, const char *shown)
{
	const struct run_definition *definition;
	struct findings findings;
	struct expression_env env = {.input = json_trust(slice_str(input)),
				     .state = json_trust(slice_str("{}")),
				     .steps = json_trust(slice_str("{}"))};
	struct slice got;

	LOCAL_ARENA(arena, ROOM);
	LOCAL_STRBUF(text, ROOM);
	findings_init(&findings, &arena);
	definition = parsed(attributes, &arena, &findings);
	assert_non_null(definition);
	got = attributes_of(&definition->attributes, &env, &arena);
	if (!kept)
		assert_null(got.p);
	else
		assert_true(slice_is(got, kept));
	attributes_json(got, &text);
	strbuf_add_char(&text, '\0');
	assert_string_equal(text.p, shown);
}

static void values_are_kept_by_type(void **state)
{
	(void)state;
	assert_kept("{\"c\": \".input.c\", \"t\": \".input.t\", \"v\": \".input.v\"}",
		    "{\"c\":\"a\\n\\u00e9\",\"t\":12.50,\"v\":false}",
		    "{\"c\":\"sa\\n\xc3\xa9\",\"t\":\"n25000000002125\",\"v\":\"b0\"}",
		    "{\"c\":\"a\\n\xc3\xa9\",\"t\":12.5,\"v\":false}");
	assert_kept("{\"a\": \".input.a\", \"b\": \".input.b\"}", "{\"a\":null,\"b\":[1]}", NULL, "{}");
	assert_kept("{\"a\": \".input.a.b\", \"b\": \".input.b\"}", "{\"a\":5,\"b\":1}", "{\"b\":\"n250000000011\"}",
		    "{\"b\":1}");
	assert_kept("{}", "{}", NULL, "{}");
}

static void only_those_that_see_the_state_follow(void **state)
{
	struct findings findings;

	(void)state;
	LOCAL_ARENA(arena, ROOM);
	findings_init(&findings, &arena);
	assert_false(parsed("{\"a\": \".input.a\"}", &arena, &findings)->attributes.follow);
	assert_true(
		parsed("{\"a\": \".input.a\", \"b\": \".state.b // .input.b\"}", &arena, &findings)->attributes.follow);
	assert_true(parsed("{\"a\": \".steps.a.output\"}", &arena, &findings)->attributes.follow);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bad_ones_are_refused),
		cmocka_unit_test(values_are_kept_by_type),
		cmocka_unit_test(only_those_that_see_the_state_follow),
	};

	return cmocka_run_group_tests_name("attributes", tests, NULL, NULL);
}
