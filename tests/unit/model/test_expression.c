/* Expressions: what they give, and what is refused and where. Limits, and jq, have files of their own. */
#include "expressed.h"

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
	gives(". | .item.x", "null"); /* after a pipe no name is looked at when it is loaded */
}

static void the_environment_is_one_object(void **state)
{
	(void)state;
	env = (struct expression_env){.input = checked("1"), .state = checked("[ 2 ]"), .steps = checked("{}")};
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

/* Each is less than all after it; the members of a group are equal. */
static void one_order(void **state)
{
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
	refused(".a..b", "column 4: after this dot");
	refused(".a.", "column 4: after this dot");
	refused(".a. b", "column 5: after this dot");
	refused(". a", "column 3: this is not expected here: a");
	refused(".a.[0]", "column 4: write .a[0]");
	refused(".[]", "column 3: between these brackets");
	refused(".[.a]", "column 3: between these brackets");
	refused(".[0:1]", "column 4: ] is expected");
	refused(".[0,1]", "column 4: ] is expected");
	refused(".[0.5]", "column 3: an index is an integer");
	refused(".[2147483648]", "column 3: an index is an integer");
}

static void composed_text_that_is_refused(void **state)
{
	(void)state;
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
}

static void words_that_are_refused(void **state)
{
	(void)state;
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
		if (expression_check_roots(parsed(good[i]), expression_run_roots, &err) != HX_OK)
			fail_msg("%s: %s", good[i], err.detail);
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		enum hx_code code = expression_check_roots(parsed(bad[i][0]), expression_run_roots, &err);

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
					   TEST(composed_text_that_is_refused),
					   TEST(words_that_are_refused),
					   TEST(no_NUL),
					   TEST(roots_are_known),
					   TEST(uses_are_told)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
