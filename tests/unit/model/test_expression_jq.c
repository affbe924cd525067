/* Expressions: jq, where it is installed, gives the same for what is made at random. */
#include "expressed.h"

#include <errno.h>

#include "base/hash.h"
#include "base/json_canonical.h"
#include "base/json_walk.h"

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

/* All of them as one program, and what jq says to it. */
static void make_texts(char *texts[JQ_EXPRESSIONS], struct strbuf *answer)
{
	struct strbuf program, text;
	struct maker maker = {.seed = 20260101, .text = &text};

	strbuf_init(&program, 16u << 20);
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
	ask_jq(&program, answer);
	strbuf_release(&text);
	strbuf_release(&program);
}

static void jq_agrees(void **state)
{
	char *texts[JQ_EXPRESSIONS];
	struct strbuf answer, ours, theirs;
	size_t values = 0;

	(void)state;
	if (system("command -v jq >/dev/null 2>&1") != 0)
		skip();
	env.input = checked(
		json_text("{'sku': 'A-1', 'n': 3, 'odd name': 1, 'no': false, 'nil': null, 's': 'b', 'neg': -0.50,"
			  " 'items': [10, {'q': 2}, 'é😀', [], null], 'deep': {'a': {'b': [[7]]}}}"));
	strbuf_init(&answer, 64u << 20);
	strbuf_init(&ours, 1u << 20);
	strbuf_init(&theirs, 1u << 20);
	make_texts(texts, &answer);

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
	strbuf_release(&theirs);
	strbuf_release(&ours);
	strbuf_release(&answer);
}

int main(void)
{
	const struct CMUnitTest tests[] = {TEST(jq_agrees)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
