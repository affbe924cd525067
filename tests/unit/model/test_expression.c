/* Expressions: what they give, what is refused and where, their limits; and that jq, where it is installed, agrees. */
#include "definition.h"

#include <errno.h>

#include "base/hash.h"
#include "base/json_canonical.h"
#include "base/json_walk.h"
#include "model/expression.h"

static const char *const input_text =
	"{'sku': 'A-1', 'total': 1000.50, 'n': 3, 'odd name': 1, 'no': false, 'yes': true, 'nil': null,"
	" 'items': [10, {'q': 2}, 'é😀', [], null], 'big': 9007199254740993, 'deep': {'a': {'b': [[7]]}},"
	" 'esc': '\\u0041\\n', 's': 'b', 'neg': -0.50}";
static const char *const state_text = "{'reservation': {'id': 'r1'}, 'empty': {}, 'list': []}";
static const char *const steps_text = "{'reserve': {'status': 'COMPLETED', 'output': [1]}}";

static struct expression_env env;
static struct strbuf out;
static struct hx_error err;

static struct json checked(const char *text)
{
	struct json json;

	if (json_check(slice_str(text), &err, &json) != HX_OK)
		fail_msg("%s: %s", text, err.detail);
	return json;
}

static int set_up_env(void **state)
{
	(void)set_up(state);
	strbuf_init(&out, 16u << 20);
	env = (struct expression_env){checked(json_text(input_text)), checked(json_text(state_text)),
				      checked(json_text(steps_text))};
	return 0;
}

static int tear_down_env(void **state)
{
	strbuf_release(&out);
	return tear_down(state);
}

static const struct expression *parsed(const char *text)
{
	const struct expression *expression = NULL;

	if (expression_parse(slice_str(text), &arena, &err, &expression) != HX_OK)
		fail_msg("%s: %s", text, err.detail);
	return expression;
}

static enum hx_code evaluate(const char *text)
{
	struct arena scratch;
	enum hx_code code;

	strbuf_reset(&out);
	arena_init(&scratch, 64u << 20);
	code = expression_eval(parsed(text), &env, &scratch, &err, &out);
	assert_int_equal(scratch.used_bytes, 0);
	arena_release(&scratch);
	return code;
}

/* Expressions and values are written with single quotes. */
static void gives(const char *text, const char *expected)
{
	char *expression = json_text(text);

	if (evaluate(expression) != HX_OK)
		fail_msg("%s: %s", expression, err.detail);
	assert_string_equal(out.p, json_text(expected));
	(void)checked(out.p);
}

static void breaks(const char *text, const char *detail)
{
	char *expression = json_text(text);

	assert_int_equal(evaluate(expression), HX_VALIDATION_ERROR);
	assert_int_equal(out.n, 0);
	assert_string_equal(err.detail, json_text(detail));
}

static void refused(const char *text, const char *begin)
{
	const struct expression *expression = NULL;
	char *quoted = json_text(text);

	if (expression_parse(slice_str(quoted), &arena, &err, &expression) != HX_VALIDATION_ERROR)
		fail_msg("%s is accepted", quoted);
	assert_null(expression);
	if (strncmp(err.detail, begin, strlen(begin)) != 0)
		fail_msg("%s: %s", quoted, err.detail);
}

static void paths(void **state)
{
	(void)state;
	gives(".input.sku", "'A-1'");
	gives(" .input . 'odd name' ", "1");
	gives(".input.'odd name'", "1");
	gives(".['input']['odd name']", "1");
	gives(".'input'[ 'n' ]", "3");
	gives(".input.items[1].q", "2");
	gives(".input.items[0]", "10");
	gives(".input.items[-1]", "null");
	gives(".input.items[-5]", "10");
	gives(".input.items[-6]", "null");
	gives(".input.items[5]", "null");
	gives(".input.items[2e0]", "'é😀'");
	gives(".input.deep.a.b[0][0]", "7");
	gives(". .input .n", "3");
	gives("(.input).n", "3");
	gives("{a: [1, 2]}.a[1]", "2");
	gives("'abc' | .", "'abc'");
	gives(".steps.reserve.output[0]", "1");
	gives(".and.or.not", "null");
	gives(". | . | .input | .n", "3");
}

static void nothing_is_in_null(void **state)
{
	(void)state;
	gives(".input.nil.a.b[3]['x']", "null");
	gives(".input.missing.a", "null");
	gives(".inputs", "null"); /* the load refuses it, see roots */
	gives("null.a[0]", "null");
}

static void the_environment_is_one_object(void **state)
{
	(void)state;
	env = (struct expression_env){checked("1"), checked("[ 2 ]"), checked("{}")};
	gives(".", "{'input':1,'state':[ 2 ],'steps':{}}");
	gives("[., . == {steps: {}, state: [2.0], input: 1e0}]", "[{'input':1,'state':[ 2 ],'steps':{}},true]");
	gives("length", "3");
	gives("has('state')", "true");
	gives("has('inputs')", "false");
	gives("not", "false");
	gives("{input}", "{'input':1}");
	gives("{a: .} | .a.state[0]", "2");
	breaks(".[0]", "column 2: . is of type object, but [0] needs an array");
}

static void types_that_do_not_fit(void **state)
{
	(void)state;
	breaks(".input.items.sku", "column 13: .input.items is of type array, but .sku needs an object");
	breaks(".input.sku.x", "column 11: .input.sku is of type string, but .x needs an object");
	breaks(".input[0]", "column 7: .input is of type object, but [0] needs an array");
	breaks(".input.n | .x", "column 12: . is of type number, but .x needs an object");
	breaks("'é' | .input.x[ 'y' ]", "column 7: . is of type string, but .input needs an object");
	breaks("(.input.yes)['y']", "column 13: (.input.yes) is of type boolean, but [\"y\"] needs an object");
	breaks("true | length", "column 8: a boolean has no length");
	breaks(".input | has(0)", "column 10: has(number) cannot be asked of a value of type object");
	breaks(".input.items | has('a')", "column 16: has(string) cannot be asked of a value of type array");
	breaks(".input.n | has('a')", "column 12: has(string) cannot be asked of a value of type number");
	breaks("[1] | has(0.5)", "column 7: 0.5 is not an index");
	breaks("[1] | has(1e30)", "column 7: 1e30 is not an index");
	breaks("{(.input.n): 1}", "column 3: the name of a member is a string, this is of type number");
	breaks(".input.n.x // 1", "column 9: .input.n is of type number, but .x needs an object");
}

static void literals_and_construction(void **state)
{
	(void)state;
	gives("{}", "{}");
	gives("[]", "[]");
	gives("{sku: .input.sku}", "{'sku':'A-1'}");
	gives("{'a b': 1, c: [.input.n, 'x'], d: {e: null}}", "{'a b':1,'c':[3,'x'],'d':{'e':null}}");
	gives(".input | {sku, 'odd name', n}", "{'sku':'A-1','odd name':1,'n':3}");
	gives("{and: 1, if: 2, true: 3}", "{'and':1,'if':2,'true':3}");
	gives("{(.input.sku): 1, ('b'): 2}", "{'A-1':1,'b':2}");
	gives("{a: .input.items | length, b: -1}", "{'a':5,'b':-1}");
	gives("{a: (.input.n == 3)}", "{'a':true}");
	gives("[.input.items | length]", "[5]");
	gives("[(.input.items | length), .input.n // 1, 1 == 1.0 and true]", "[5,3,true]");
	gives("'a\\u0041\\/\\ud83d\\ude00'", "'a\\u0041\\/\\ud83d\\ude00'");
	gives("\n[\t1 ,2\n]", "[1,2]");
	gives("[true, false, null]", "[true,false,null]");
}

/* Of computed names that are the same the first has the place, the last the value. */
static void computed_names(void **state)
{
	(void)state;
	gives("{b: 1, a: 3, ('b'|.): 2}", "{'b':2,'a':3}");
	gives("{(.input.s): 1, 'b': 2, (.input.s): 3}", "{'b':3}");
	gives("{(.input.esc): 1, 'A\\n': 2}", "{'\\u0041\\n':2}");
}

static void logic(void **state)
{
	(void)state;
	gives("1 and 2", "true");
	gives("null or false", "false");
	gives("true or .input.n.x", "true"); /* stops where it is decided */
	gives("false and .input.n.x", "false");
	gives("true and true and null", "false");
	gives("false or true and false", "false");
	gives("true or true and false", "true");
	gives(".input.no | not", "true");
	gives("[0, '', [], {}] | [(.[0] | not), (.[1] | not), (.[2] | not), (.[3] | not)]",
	      "[false,false,false,false]");
	gives("not == false", "true");
	gives("1 == 1 and 2 != 1 or false", "true");
	gives("1 == 2 | not", "true");
}

static void alternatives(void **state)
{
	(void)state;
	gives(".input.nil // .input.no // .input.n", "3");
	gives(".input.nil // .input.no", "false");
	gives(".input.no // .input.nil", "null");
	gives("0 // 1", "0");
	gives("1 == 2 // 5", "5"); /* // is weaker than == */
	gives("false or false // 5", "5");
	gives(".input.sku // .input.n.x", "'A-1'");
}

static void lengths(void **state)
{
	(void)state;
	gives("null | length", "0");
	gives(".input.items[2] | length", "2");
	gives("'\\ud83d\\ude00\\n\\u0000' | length", "3");
	gives(".input.items | length", "5");
	gives(".state | length", "3");
	gives(".state.empty | length", "0");
	gives(".input.neg | length", "0.50");
	gives("1e400 | length", "1e400");
	gives("[] | length == 0", "true");
}

static void having(void **state)
{
	(void)state;
	gives(".input | has('nil')", "true");
	gives(".input | has('\\u006eil')", "true");
	gives(".input | has('nope')", "false");
	gives(".input | has(.s)", "false");
	gives("[1, 2] | [has(0), has(1.0), has(2), has(-1)]", "[true,true,false,false]");
	gives("null | [has('a'), has(0), has(null)]", "[false,false,false]");
	gives(".input | has ( 'n' ) and has('s')", "true");
}

static void numbers_are_exact(void **state)
{
	(void)state;
	gives("[.input.big, .input.total, 1.0, 1E+2, -0.0]", "[9007199254740993,1000.50,1.0,1E+2,-0.0]");
	gives(".input.big > 9007199254740992", "true");
	gives(".input.big == 9007199254740993.0", "true");
	gives("1e400 < 1e401", "true");
	gives("-1e400 < 0", "true");
	gives("0 == -0", "true");
	gives("100 == 1e2", "true");
	gives("0.1 < 0.10000000000000000000000000000000000001", "true");
	gives(".input.total > 1000", "true");
}

/* Each is less than all behind it; the members of a group are equal. */
static void one_order(void **state)
{
	static const char *const ranked[] = {"null",
					     "false",
					     "true",
					     "-1e400",
					     "-1",
					     "0",
					     "0.5",
					     "1",
					     "9007199254740992",
					     "9007199254740993",
					     "''",
					     "'A'",
					     "'AA'",
					     "'B'",
					     "'a'",
					     "'\\u00e9'",
					     "'\\uffff'",
					     "'\\ud83d\\ude00'",
					     "[]",
					     "[null]",
					     "[null,null]",
					     "[1]",
					     "[1,0]",
					     "[2]",
					     "[[]]",
					     "{}",
					     "{'a':1}",
					     "{'a':2}",
					     "{'a':1,'b':1}",
					     "{'b':0,'a':2}",
					     "{'a':[],'b':0}",
					     "{'a':0,'c':0}",
					     "{'b':0}"};
	static const char *const equal[][2] = {{"1", "1.0"},
					       {"1", "10e-1"},
					       {"'A'", "'\\u0041'"},
					       {"[1]", "[ 1.0 ]"},
					       {"{'a':1,'b':2}", "{ 'b':2.0, '\\u0061':1 }"}};
	char text[400];

	(void)state;
	for (size_t i = 0; i < sizeof ranked / sizeof ranked[0]; i++) {
		for (size_t j = 0; j < sizeof ranked / sizeof ranked[0]; j++) {
			const char *a = ranked[i], *b = ranked[j];

			snprintf(text, sizeof text, "[%s==%s, %s!=%s, %s<%s, %s<=%s, %s>%s, %s>=%s]", a, b, a, b, a, b,
				 a, b, a, b, a, b);
			gives(text, i < j    ? "[false,true,true,true,false,false]"
				    : i == j ? "[true,false,false,true,false,true]"
					     : "[false,true,false,false,true,true]");
		}
	}
	for (size_t i = 0; i < sizeof equal / sizeof equal[0]; i++) {
		snprintf(text, sizeof text, "[%s == %s, %s <= %s, %s > %s]", equal[i][0], equal[i][1], equal[i][1],
			 equal[i][0], equal[i][1], equal[i][0]);
		/* Space is for the input; in the expression it is between tokens. */
		gives(text, "[true,true,false]");
	}
}

static void of_a_double_name_the_first_counts(void **state)
{
	(void)state;
	env.input = checked("{\"a\":1,\"b\":0,\"\\u0061\":2}");
	gives(".input.a", "1");
	gives(".input | length", "3");
	gives(".input == {a: 1, b: 0}", "true");
	gives(".input < {a: 2, b: 0}", "true");
	gives(".input", "{'a':1,'b':0,'\\u0061':2}");
}

/* As a condition takes it (flow/run_steps.c). */
static enum hx_code test_truth(const char *text, struct arena *scratch, bool *ret_true)
{
	struct strbuf value;
	enum hx_code code;

	strbuf_init(&value, 1000);
	code = expression_eval(parsed(text), &env, scratch, &err, &value);
	if (!code)
		*ret_true = !slice_is(strbuf_slice(&value), "null") && !slice_is(strbuf_slice(&value), "false");
	strbuf_release(&value);
	return code;
}

static void the_truth(void **state)
{
	static const struct {
		const char *text;
		bool expected;
	} cases[] = {{".input.no", false},
		     {".input.nil", false},
		     {".input.n", true},
		     {"0", true},
		     {"\"\"", true},
		     {".", true},
		     {".input.total > 1000", true},
		     {".input.n > 3", false},
		     {"{a: 1} == {a: .input.n}", false}};
	struct arena scratch;
	bool truth;

	(void)state;
	arena_init(&scratch, 1u << 20);
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		truth = !cases[i].expected;
		assert_int_equal(test_truth(cases[i].text, &scratch, &truth), HX_OK);
		assert_int_equal(truth, cases[i].expected);
		assert_int_equal(scratch.used_bytes, 0);
	}
	assert_int_equal(test_truth(".input.n.x", &scratch, &truth), HX_VALIDATION_ERROR);
	arena_release(&scratch);
}

static void text_that_is_refused(void **state)
{
	(void)state;
	refused("", "column 1: it ends too early");
	refused("  ", "column 3: it ends too early");
	refused(".a +1", "column 4: there is no arithmetic");
	refused(".a -1", "column 4: there is no arithmetic");
	refused("-.a", "column 1: there is no arithmetic");
	refused("- 1", "column 1: there is no arithmetic");
	refused(".a / 2", "column 4: there is no arithmetic");
	refused(".a = 1", "column 4: to compare, write ==");
	refused(".a //= 1", "column 6: to compare");
	refused(".a |= 1", "column 5: to compare");
	refused("!.a", "column 1: write: … | not");
	refused(".a && .b", "column 4: write: and");
	refused(".a, .b", "column 3: an expression is one value");
	refused(".a?", "column 3: there is no ?");
	refused("$x", "column 1: there are no variables");
	refused("@json", "column 1: there are no formats");
	refused(". # x", "column 3: there are no comments");
	refused("..", "column 1: there is no ..");
	refused("..a", "column 1: there is no ..");
	refused("1 | .. 'a'", "column 5: there is no ..");
	refused(".a..b", "column 4: behind this dot");
	refused(".a.", "column 4: behind this dot");
	refused(".a. b", "column 5: behind this dot");
	refused(". a", "column 3: this is not expected here: a");
	refused(".a.[0]", "column 4: write .a[0]");
	refused(".[]", "column 3: between these brackets");
	refused(".[.a]", "column 3: between these brackets");
	refused(".[0:1]", "column 4: ] is expected");
	refused(".[0,1]", "column 4: ] is expected");
	refused(".[0.5]", "column 3: an index is an integer");
	refused(".[2147483648]", "column 3: an index is an integer");
	refused("1 < 2 < 3", "column 7: a comparison of a comparison");
	refused("1 == 2 != 3", "column 8: a comparison of a comparison");
	refused("[1, 2 | length]", "column 5: beside other elements");
	refused("[1 | length, 2]", "column 2: beside other elements");
	refused("[1,]", "column 4: this is not expected here: ]");
	refused("[1 2]", "column 4: this is not expected here: 2");
	refused("[1", "column 3: it ends too early");
	refused("(1", "column 3: it ends too early");
	refused("(1))", "column 4: this is not expected");
	refused("()", "column 2: this is not expected");
	refused("{a: 1", "column 6: it ends too early");
	refused("{a: 1,}", "column 7: here the name of a member");
	refused("{1: 2}", "column 2: here the name of a member");
	refused("{.a}", "column 2: here the name of a member");
	refused("{a: .x == 1}", "column 8: in an object a value with an operator");
	refused("{a: .x // 1}", "column 8: in an object a value with an operator");
	refused("{a: .x and 1}", "column 8: in an object a value with an operator");
	refused("{a: 1, b: 2, 'a': 3}", "column 14: the name \"a\" is there already");
	refused("{a, '\\u0061'}", "column 5: the name \"a\" is there already");
	refused("{and}", "column 2: this is a word of jq");
	refused("{(1): 2}", "column 2: the name of a member is a string");
	refused("{('a')}", "column 7: this is not expected here: }");
	refused("{('a') }", "column 8: this is not expected here: }");
	refused("{(.a)}", "column 6: this is not expected here: }");
	refused("lenght", "column 1: there is no \"lenght\" here; did you mean length, or .lenght?");
	refused("has", "column 4: it ends too early");
	refused("has('a', 'b')", "column 8: an expression is one value");
	refused("and", "column 1: there is no value in front of this and");
	refused(".a and", "column 7: it ends too early");
	refused("1.a", "column 1: this is not a number of JSON");
	refused("1.", "column 1: this is not a number of JSON");
	refused("01", "column 1: this is not a number of JSON");
	refused("1e", "column 1: this is not a number of JSON");
	refused("1and 2", "column 1: this is not a number of JSON");
	refused(".5", "column 1: a number begins with a digit");
	refused("'a", "column 1: this is not a string of JSON");
	refused("'\\(1)'", "column 1: this is not a string of JSON");
	refused("'\\ud83d'", "column 1: this is not a string of JSON");
	refused("'é' 1", "column 5: this is not expected here: 1");
	refused("é", "column 1: this is not expected here: é");
	refused("1\r", "column 2: this is not expected here: \\r");
	refused("'\xff'", "column 2: this is not UTF-8");
	refused("length::x", "column 7: this is not expected here: ::x");
}

static void no_NUL(void **state)
{
	const struct expression *expression = NULL;

	(void)state;
	assert_int_equal(expression_parse(slice_of(".a\0.b", 5), &arena, &err, &expression), HX_VALIDATION_ERROR);
	assert_string_equal(err.detail, "column 3: there is a NUL in it");
	assert_int_equal(expression_parse(slice_of("\0", 1), &arena, &err, &expression), HX_VALIDATION_ERROR);
	assert_int_equal(expression_parse(slice_of(NULL, 0), &arena, &err, &expression), HX_VALIDATION_ERROR);
	assert_null(expression);
}

static void roots_are_known(void **state)
{
	static const char *const good[] = {".input.x",
					   ".",
					   ".state | .anything",
					   "[.steps.a.b, {a: .input}]",
					   ".input | {sku, x: .y, (.z): 1}",
					   "{a: 1}.b",
					   "(.input).b",
					   "has(\"x\")",
					   ".[\"state\"][0]"};
	static const char *const bad[][2] = {
		{".inputs.x", "column 1: there is no .inputs; did you mean .input?"},
		{"1 == .stat", "column 6: there is no .stat; did you mean .state?"},
		{"{sku}", "column 2: there is no .sku; there are .input, .state, .steps"},
		{". | .step", "column 5: there is no .step; did you mean .steps?"},
		{"(.).step", "column 4: there is no .step; did you mean .steps?"},
		{"{(.x): 1}", "column 3: there is no .x; there are .input, .state, .steps"},
		{".input | has(.x) | .y // .z", NULL},
		{".input // (.x | .y)", "column 12: there is no .x; there are .input, .state, .steps"},
		{"has(.x)", "column 5: there is no .x; there are .input, .state, .steps"},
		{".[0]", "column 2: a path begins with .input, .state or .steps"}};

	(void)state;
	for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
		if (expression_check_roots(parsed(good[i]), &err) != HX_OK)
			fail_msg("%s: %s", good[i], err.detail);
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		enum hx_code code = expression_check_roots(parsed(bad[i][0]), &err);

		assert_int_equal(code, bad[i][1] ? HX_VALIDATION_ERROR : HX_OK);
		if (bad[i][1])
			assert_string_equal(err.detail, bad[i][1]);
	}
}

static void note_use(void *context, struct slice root, struct slice name, size_t column)
{
	strbuf_addf(context, "%.*s.%.*s@%zu ", SLICE_ARGS(root), SLICE_ARGS(name), column);
}

/* What begins at the environment and names a member of it, wherever in the expression it stands. */
static void uses_are_told(void **state)
{
	static const char *const cases[][2] = {
		{".state.a", "state.a@1 "},
		{". | .state.a", "state.a@5 "},
		{".[\"steps\"][\"a b\"].c", "steps.a b@2 "},
		{"{x: .state.a.b, (.steps.k): [.input.i, (.state.c // 1)]}",
		 "state.a@5 steps.k@18 input.i@30 state.c@41 "},
		{".state.a > 1 and (.steps.b | not) | has(.state.c)", "state.a@1 steps.b@19 "},
		{".state", ""},
		{".", ""},
		{".state | .a", ""},
		{".state[0]", ""},
		{"\"\xc3\xa9\" == .state.\"\xc3\xa9\"", "state.\xc3\xa9@8 "},
		{"{state}.state.b", ""},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct strbuf told;

		strbuf_init(&told, 1000);
		strbuf_add_str(&told, "");
		expression_each_use(parsed(cases[i][0]), note_use, &told);
		assert_string_equal(told.p ? told.p : "", cases[i][1]);
		strbuf_release(&told);
	}
}

/* ---- limits ---- */

static char *repeated(const char *open, const char *inside, const char *close, size_t times)
{
	struct strbuf sb;
	char *text;

	strbuf_init(&sb, 1u << 20);
	for (size_t i = 0; i < times; i++)
		strbuf_add_str(&sb, open);
	strbuf_add_str(&sb, inside);
	for (size_t i = 0; i < times; i++)
		strbuf_add_str(&sb, close);
	text = (char *)arena_copy(&arena, strbuf_slice(&sb)).p;
	strbuf_release(&sb);
	return text;
}

static void text_has_a_limit(void **state)
{
	const struct expression *expression = NULL;

	(void)state;
	gives(repeated(" ", ".input.n", "", EXPRESSION_BYTES_MAX - 8), "3");
	assert_int_equal(expression_parse(slice_str(repeated(" ", ".input.n", "", EXPRESSION_BYTES_MAX - 7)), &arena,
					  &err, &expression),
			 HX_TOO_LARGE);
	assert_null(expression);
}

static void brackets_have_a_limit(void **state)
{
	static const char *const pairs[][2] = {{"(", ")"}, {"[", "]"}, {"{a:", "}"}, {"has(", ")"}, {"{(", "):1}"}};

	(void)state;
	for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
		(void)parsed(repeated(pairs[i][0], "\"a\"", pairs[i][1], i == 4 ? 32 : 64));
		refused(repeated(pairs[i][0], "'a'", pairs[i][1], i == 4 ? 33 : 65), "column ");
		assert_non_null(strstr(err.detail, "more than 64 brackets are open"));
	}
	gives(repeated("[", "", "]", 64), repeated("[", "", "]", 64));
}

/* Chains are not nested, so they may be as long as the text. */
static void chains_have_none(void **state)
{
	(void)state;
	gives(repeated(".x", "", "", 2048), "null");
	gives(repeated("false or ", "1 == 1", "", 450), "true");
	gives(repeated("true and ", "1 == 2", "", 450), "false");
	gives(repeated("null//", "7", "", 680), "7");
	gives(repeated(".|", "7", "", 2000), "7");
}

static void values_have_a_depth(void **state)
{
	(void)state;
	env.input = checked(repeated("[", "", "]", 63));
	gives("[.input] | length", "1");
	env.input = checked(repeated("[", "", "]", 64));
	gives(".input | length", "1");
	assert_int_equal(evaluate("[.input]"), HX_TOO_LARGE);
	assert_int_equal(evaluate("."), HX_TOO_LARGE);
	assert_int_equal(evaluate(repeated("{a:.}|", ".", "", 600)), HX_TOO_LARGE);
	assert_int_equal(evaluate("[.input] // 1"), HX_TOO_LARGE);
	assert_non_null(strstr(err.detail, "64 brackets"));
}

/* Doubling: 2^600 values in 4 KiB of text. */
static void work_and_memory_have_limits(void **state)
{
	char *doubling = repeated("[.,.]|", ".", "", 60);
	struct arena scratch;

	(void)state;
	arena_init(&scratch, SIZE_MAX / 2);
	assert_int_equal(expression_eval(parsed(doubling), &env, &scratch, &err, &out), HX_TOO_LARGE);
	assert_non_null(strstr(err.detail, "too much to do"));
	assert_int_equal(scratch.used_bytes, 0);
	arena_release(&scratch);
	arena_init(&scratch, 100000);
	assert_int_equal(expression_eval(parsed(doubling), &env, &scratch, &err, &out), HX_TOO_LARGE);
	assert_non_null(strstr(err.detail, "bytes of memory"));
	/* It is as it was found, and good for the next. */
	assert_int_equal(expression_eval(parsed("[.input.n]"), &env, &scratch, &err, &out), HX_OK);
	assert_string_equal(out.p, "[3]");
	arena_release(&scratch);
}

static void a_long_input_spends_work(void **state)
{
	struct strbuf text, paths;

	(void)state;
	strbuf_init(&text, 64u << 20);
	strbuf_add_str(&text, "{\"a\":\"");
	while (text.n < 16u << 20)
		strbuf_add_str(&text, "0123456789abcdef0123456789abcdef0123456789abcdef");
	strbuf_add_str(&text, "\",\"b\":1}");
	strbuf_init(&paths, EXPRESSION_BYTES_MAX);
	for (int i = 0; i < 14; i++)
		strbuf_add_str(&paths, ".input.b == 2 or ");
	strbuf_add_str(&paths, "true");
	env.input = checked(text.p);
	gives(paths.p, "true");
	for (int i = 0; i < 14; i++)
		strbuf_add_str(&paths, " and .input.b == 1");
	assert_int_equal(evaluate(paths.p), HX_TOO_LARGE);
	assert_non_null(strstr(err.detail, "too much to do"));
	strbuf_release(&paths);
	strbuf_release(&text);
}

/* Sorting costs more than its bytes, and is refused before it begins. */
static void members_to_sort_spend_more(void **state)
{
	struct strbuf text;

	(void)state;
	strbuf_init(&text, 64u << 20);
	for (int i = 0; i < 400000; i++)
		strbuf_addf(&text, "%s\"%d\":0", i ? "," : "{", i);
	strbuf_add_str(&text, "}");
	env.input = checked(text.p);
	gives(".input == .input", "true"); /* the same bytes */
	gives(".input | length", "400000");
	assert_int_equal(evaluate(".input == {a: 1}"), HX_TOO_LARGE);
	assert_non_null(strstr(err.detail, "too much to do"));
	strbuf_release(&text);
}

static void output_has_a_ceiling(void **state)
{
	const struct expression *expression = parsed("[.input.n, 12345]");
	struct arena scratch;
	struct strbuf small;

	(void)state;
	arena_init(&scratch, 1u << 20);
	strbuf_init(&small, 8);
	assert_int_equal(expression_eval(expression, &env, &scratch, &err, &small), HX_TOO_LARGE);
	assert_int_equal(small.n, 0);
	strbuf_release(&small);
	strbuf_init(&small, 9);
	assert_int_equal(expression_eval(expression, &env, &scratch, &err, &small), HX_OK);
	assert_string_equal(small.p, "[3,12345]");
	strbuf_release(&small);
	arena_release(&scratch);
}

static void with_any_smaller_arena_there_is_an_error(void **state)
{
	static const char text[] = "{a: .input.\"x\\n\", (.input.s): [1, has(\"b\")], c} | .a == 1 // length";
	const struct expression *expression = NULL;
	enum hx_code code = HX_TOO_LARGE;
	struct arena small;
	size_t room = 0;

	(void)state;
	for (; code != HX_OK; room += 16) {
		arena_init(&small, room);
		code = expression_parse(slice_str(text), &small, &err, &expression);
		assert_true(code == HX_OK || (code == HX_TOO_LARGE && !expression));
		arena_release(&small);
	}
	assert_true(room > 1000 && room < 10000);
}

/* ---- jq ---- */

struct maker {
	uint64_t seed;
	struct strbuf *text;
};

static unsigned pick(struct maker *m, unsigned n)
{
	m->seed = hash_bytes(m->seed, "x", 1);
	return (unsigned)(m->seed >> 33) % n;
}

static void add_one_of(struct maker *m, const char *const *list, unsigned n)
{
	strbuf_add_str(m->text, list[pick(m, n)]);
}

#define ADD_ONE_OF(m, ...)                                                                                             \
	add_one_of(m, (const char *const[]){__VA_ARGS__}, sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *))

static void make_pipe(struct maker *m, unsigned depth);

static void make_object(struct maker *m, unsigned depth)
{
	static const char *const keys[] = {"a", "\"b c\"", "and", "\"\\u0063\"", "(.input.s)", "(.input.n)"};
	unsigned n = pick(m, 4), first = pick(m, 6);

	strbuf_add_char(m->text, '{');
	for (unsigned i = 0; i < n; i++) {
		strbuf_addf(m->text, "%s%s: ", i ? ", " : "", keys[(first + i) % 6]);
		if (pick(m, 3) == 0) {
			strbuf_add_str(m->text, ". | length");
		} else {
			strbuf_add_char(m->text, '(');
			make_pipe(m, depth);
			strbuf_add_char(m->text, ')');
		}
	}
	strbuf_add_str(m->text, pick(m, 4) ? "}" : n ? ", length}" : "length}");
}

static void make_base(struct maker *m, unsigned depth)
{
	switch (depth ? pick(m, 9) : pick(m, 3 + !pick(m, 3))) {
	case 0:
	case 1:
		ADD_ONE_OF(m, ".", ".input", ".input.n", ".input.items", ".state.reservation", ".input.nil",
			   ".input.no", ".input.\"odd name\"", ".[\"steps\"]", ".input.deep.a", ".x", ".input.sku",
			   ".input.neg");
		break;
	case 2:
		ADD_ONE_OF(m, "1", "1.0", "-3", "0", "1e3", "\"b\"", "\"\"", "\"\\u00e9\"", "true", "false", "null",
			   "[]", "{}", "\"n\"");
		break;
	case 3:
		ADD_ONE_OF(m, "not", "length", "not", "has(\"n\")", "has(0)", "has(.input.s)");
		break;
	case 4:
		make_object(m, depth - 1);
		break;
	case 5:
		strbuf_add_char(m->text, '[');
		make_pipe(m, depth - 1);
		strbuf_add_char(m->text, ']');
		break;
	case 6:
		strbuf_add_str(m->text, "[(");
		make_pipe(m, depth - 1);
		strbuf_add_str(m->text, "), .input.n // 2, (");
		make_pipe(m, depth - 1);
		strbuf_add_str(m->text, ")]");
		break;
	default:
		strbuf_add_char(m->text, '(');
		make_pipe(m, depth - 1);
		strbuf_add_char(m->text, ')');
	}
}

static void make_pipe(struct maker *m, unsigned depth)
{
	bool compared = false;

	for (unsigned terms = 1 + pick(m, 4); terms > 0; terms--) {
		make_base(m, depth);
		if (pick(m, 10) == 0)
			ADD_ONE_OF(m, " .a", "[0]", "[-1]", "[\"b c\"]", " .n", " .input.s");
		if (terms == 1)
			break;
		/* Comparisons do not chain. */
		if (compared || pick(m, 3) > 0) {
			ADD_ONE_OF(m, " | ", " // ", " and ", " or ", " // ");
			compared = false;
		} else {
			ADD_ONE_OF(m, " == ", " != ", " < ", " <= ", " > ", " >= ");
			compared = true;
		}
	}
}

#define JQ_EXPRESSIONS 300

static void write_file(const char *name, const struct strbuf *text)
{
	FILE *file = fopen(name, "w");

	assert_non_null(file);
	assert_int_equal(fwrite(text->p, 1, text->n, file), text->n);
	assert_int_equal(fclose(file), 0);
}

static void canonical(struct json value, struct strbuf *ret_text)
{
	strbuf_reset(ret_text);
	assert_int_equal(json_canonical(value, &arena, &err, ret_text), HX_OK);
}

/* Runs jq over all of them at once; its start takes longer than the rest. */
static void ask_jq(const struct strbuf *program, struct strbuf *answer)
{
	const char *folder = getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp";
	char program_file[500], input_file[500], command[1100], bytes[4096];
	struct strbuf input;
	FILE *pipe;
	size_t n;

	snprintf(program_file, sizeof program_file, "%s/expression.jq", folder);
	snprintf(input_file, sizeof input_file, "%s/expression.json", folder);
	snprintf(command, sizeof command, "jq -c -f '%s' '%s'", program_file, input_file);
	strbuf_init(&input, 1u << 20);
	assert_int_equal(evaluate("."), HX_OK);
	strbuf_add_slice(&input, strbuf_slice(&out));
	write_file(input_file, &input);
	write_file(program_file, program);
	strbuf_release(&input);
	pipe = popen(command, "r");
	assert_non_null(pipe);
	while ((n = fread(bytes, 1, sizeof bytes, pipe)) > 0)
		strbuf_add(answer, bytes, n);
	assert_int_equal(pclose(pipe), 0);
	assert_int_equal(remove(program_file), 0);
	assert_int_equal(remove(input_file), 0);
}

static void jq_agrees(void **state)
{
	char *texts[JQ_EXPRESSIONS];
	struct strbuf program, answer, ours, theirs, text;
	struct maker maker = {.seed = 20260101, .text = &text};
	size_t values = 0;

	(void)state;
	if (system("command -v jq >/dev/null 2>&1") != 0)
		skip();
	env.input = checked(
		json_text("{'sku': 'A-1', 'n': 3, 'odd name': 1, 'no': false, 'nil': null, 's': 'b', 'neg': -0.50,"
			  " 'items': [10, {'q': 2}, 'é😀', [], null], 'deep': {'a': {'b': [[7]]}}}"));
	strbuf_init(&program, 16u << 20);
	strbuf_init(&answer, 64u << 20);
	strbuf_init(&ours, 1u << 20);
	strbuf_init(&theirs, 1u << 20);
	strbuf_init(&text, EXPRESSION_BYTES_MAX);
	for (size_t i = 0; i < JQ_EXPRESSIONS; i++) {
		strbuf_reset(&text);
		make_pipe(&maker, 2);
		assert_false(text.failed);
		texts[i] = (char *)arena_copy(&arena, strbuf_slice(&text)).p;
		strbuf_addf(&program, "def f%zu: try (%s) catch \"an error\";\n", i, texts[i]);
	}
	for (size_t i = 0; i < JQ_EXPRESSIONS; i++)
		strbuf_addf(&program, "%sf%zu", i ? ", " : "[", i);
	strbuf_add_str(&program, "]");
	ask_jq(&program, &answer);

	struct json_iter it = json_iter_of(checked(answer.p));
	struct json value;

	for (size_t i = 0; i < JQ_EXPRESSIONS; i++) {
		assert_true(json_iter_element(&it, &value));
		if (evaluate(texts[i]) != HX_OK) {
			strbuf_reset(&out);
			strbuf_add_str(&out, "\"an error\"");
		} else {
			values++;
		}
		canonical(value, &theirs);
		canonical(checked(out.p), &ours);
		if (strcmp(ours.p, theirs.p) != 0)
			fail_msg("%s\n  ours: %s %s\n  jq's: %s", texts[i], ours.p, err.detail, theirs.p);
	}
	print_message("# jq agrees on %zu values and %zu errors\n", values, JQ_EXPRESSIONS - values);
	/* A test of errors alone would show little. */
	assert_true(values > JQ_EXPRESSIONS / 3);
	strbuf_release(&text);
	strbuf_release(&theirs);
	strbuf_release(&ours);
	strbuf_release(&answer);
	strbuf_release(&program);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up_env, tear_down_env)

int main(void)
{
	const struct CMUnitTest tests[] = {TEST(paths),
					   TEST(nothing_is_in_null),
					   TEST(the_environment_is_one_object),
					   TEST(types_that_do_not_fit),
					   TEST(literals_and_construction),
					   TEST(computed_names),
					   TEST(logic),
					   TEST(alternatives),
					   TEST(lengths),
					   TEST(having),
					   TEST(numbers_are_exact),
					   TEST(one_order),
					   TEST(of_a_double_name_the_first_counts),
					   TEST(the_truth),
					   TEST(text_that_is_refused),
					   TEST(no_NUL),
					   TEST(roots_are_known),
					   TEST(uses_are_told),
					   TEST(text_has_a_limit),
					   TEST(brackets_have_a_limit),
					   TEST(chains_have_none),
					   TEST(values_have_a_depth),
					   TEST(work_and_memory_have_limits),
					   TEST(a_long_input_spends_work),
					   TEST(members_to_sort_spend_more),
					   TEST(output_has_a_ceiling),
					   TEST(with_any_smaller_arena_there_is_an_error),
					   TEST(jq_agrees)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
