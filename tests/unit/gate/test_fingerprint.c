/* Fingerprints: what says the same is the same, what does not is not, and kinds never meet. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/hash.h"
#include "gate/fingerprint.h"

struct print {
	unsigned char bytes[HX_GATE_KEY_BYTES];
};

static const struct gate_fingerprint_rule whole = {.off = false};

/* In exactly the memory that is promised to be enough. */
static struct print print_of(const struct gate_fingerprint_rule *rule, const char *type, struct slice body)
{
	struct hx_error err = {0};
	struct arena scratch;
	struct print print;

	arena_init(&scratch, GATE_FINGERPRINT_SCRATCH_BYTES(body.n));
	if (gate_fingerprint(rule, slice_str(type), body, &scratch, &err, print.bytes) != HX_OK)
		fail_msg("%.*s: %s", SLICE_ARGS(body), err.detail);
	assert_int_equal(scratch.used_bytes, 0); /* all of it is given back */
	arena_release(&scratch);
	return print;
}

static struct print json(const char *body)
{
	return print_of(&whole, "application/json", slice_str(body));
}

static struct print bytes(const char *body)
{
	return print_of(&whole, "text/plain", slice_str(body));
}

static bool same(struct print a, struct print b)
{
	return memcmp(a.bytes, b.bytes, sizeof a.bytes) == 0;
}

static void assert_same(const char *a, const char *b)
{
	if (!same(json(a), json(b)))
		fail_msg("%s and %s differ", a, b);
}

static void assert_different(const char *a, const char *b)
{
	if (same(json(a), json(b)))
		fail_msg("%s and %s are the same", a, b);
}

/* Records outlive the program, so the bytes that are hashed are written down here. */
static void the_bytes_that_are_hashed(void **state)
{
	const struct slice pointers[] = {slice_str("/a"), slice_str("/none"), slice_str("/b")};
	const struct gate_fingerprint_rule rule = {.pointers_n = 3, .pointers = pointers};
	static const char json_text[] = "json:{\"a\":1,\"b\":[2]}", bytes_text[] = "bytes:{\"b\": [2], \"a\": 1.0}";
	static const char body[] = "{\"b\": [2], \"a\": 1.0}";
	unsigned char chain[64];
	struct print expected;

	(void)state;
	sha256(json_text, sizeof json_text - 1, expected.bytes);
	assert_true(same(json(body), expected));
	sha256(bytes_text, sizeof bytes_text - 1, expected.bytes);
	assert_true(same(bytes(body), expected));
	sha256("pointers:", 9, chain);
	chain[32] = '1';
	sha256(chain, 33, chain);
	sha256(chain, 32, chain);
	memcpy(chain + 32, "[2]", 3);
	sha256(chain, 35, expected.bytes);
	assert_true(same(print_of(&rule, "", slice_str(body)), expected));
}

static void numbers_are_exact(void **state)
{
	(void)state;
	assert_same("1", "1.0");
	assert_same("[1]", "[10e-1]");
	assert_same("{\"a\":100}", "{\"a\":1E+2}");
	assert_same("-0.0", "0");
	assert_different("9007199254740993", "9007199254740992");
	assert_different("[9007199254740993]", "[9007199254740993.1]");
	assert_different("1e400", "null");
	assert_different("1e400", "1e401");
	assert_different("{\"a\":1e400}", "{\"a\":null}");
	assert_different("1e-400", "0");
	assert_different("1", "-1");
	assert_different("1", "\"1\"");
	assert_different("1", "true");
	assert_different("0", "false");
	assert_different("0.1", "0.10000000000000000555");
}

static void a_duplicate_member_never_matches_a_single_one(void **state)
{
	(void)state;
	assert_different("{\"a\":1,\"a\":1}", "{\"a\":1}");
	assert_different("{\"a\":1,\"a\":2}", "{\"a\":1}");
	assert_different("{\"a\":1,\"a\":2}", "{\"a\":2}");
	assert_different("{\"a\":1,\"\\u0061\":2}", "{\"a\":2}");
	assert_different("{\"a\":1,\"a\":2}", "{\"a\":2,\"a\":1}");
	assert_different("[{\"x\":{\"a\":1,\"a\":1}}]", "[{\"x\":{\"a\":1}}]");
	assert_same("{\"a\":1,\"b\":0,\"a\":2}", "{\"a\":1,\"a\":2,\"b\":0}");
}

static void members_have_no_order_and_elements_have_one(void **state)
{
	(void)state;
	assert_same("{\"a\":1,\"b\":{\"c\":2,\"d\":3}}", " { \"b\" : {\"d\":3, \"c\":2} ,\n\t\"a\":1 } ");
	assert_same("{\"\\u0061\":\"\\/\"}", "{\"a\":\"/\"}");
	assert_different("[1,2]", "[2,1]");
	assert_different("[{\"a\":1},{\"b\":2}]", "[{\"b\":2},{\"a\":1}]");
	assert_different("[1,2]", "[1,2,null]");
	assert_different("{\"a\":null}", "{}");
	assert_different("{}", "[]");
	assert_different("\"\"", "null");
	assert_different("[[1],2]", "[1,[2]]");
	assert_different("\"a\"", "\"A\"");
}

static void kinds_are_kept_apart(void **state)
{
	const struct slice root = slice_str("");
	const struct gate_fingerprint_rule by_pointer = {.pointers_n = 1, .pointers = &root};
	static const char *const bodies[] = {"{}", "1", "\"a\"", "{\"a\":1}", "json:{}", "bytes:", ""};

	(void)state;
	for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
		bool is_json = i < 4;
		struct print as_pointer = print_of(&by_pointer, "text/plain", slice_str(bodies[i]));

		assert_int_equal(same(json(bodies[i]), bytes(bodies[i])), !is_json);
		assert_int_equal(same(as_pointer, bytes(bodies[i])), !is_json);
		assert_int_equal(same(as_pointer, json(bodies[i])), !is_json);
		for (size_t j = 0; j < i; j++)
			assert_false(
				same(json(bodies[i]), json(bodies[j])) || same(bytes(bodies[i]), bytes(bodies[j])) ||
				same(json(bodies[i]), bytes(bodies[j])) || same(bytes(bodies[i]), json(bodies[j])));
	}
}

static void bytes_are_taken_as_they_are(void **state)
{
	(void)state;
	assert_false(same(bytes("{\"a\":1}"), bytes("{\"a\": 1}")));
	assert_false(same(bytes("a=1&b=2"), bytes("b=2&a=1")));
	assert_true(same(print_of(&whole, "application/octet-stream", slice_of("a\0b", 3)),
			 print_of(&whole, "", slice_of("a\0b", 3))));
	assert_false(same(print_of(&whole, "", slice_of("a\0b", 3)), print_of(&whole, "", slice_of("a\0c", 3))));
	assert_true(same(print_of(&whole, "", slice_of(NULL, 0)), bytes("")));
}

static void content_types(void **state)
{
	static const char *const json_types[] = {
		"application/json",
		"Application/JSON",
		"application/json;charset=utf-8",
		"application/json ; charset=\"utf-8\"",
		"application/json\t;",
		"text/json",
		"application/problem+json",
		"application/vnd.api+json; ext=bulk",
		"APPLICATION/VND.X+JSON",
		"image/x+json",
	};
	static const char *const other_types[] = {
		"",
		";",
		"json",
		"+json",
		"application",
		"application/jso",
		"application/jsonx",
		"application/json5",
		"application/x-ndjson",
		"application/json-seq",
		"application/xjson",
		"application/x+json2",
		"application/x+json, text/plain",
		"text/plain; a=application/json",
		"text/plain;application/json",
		"text/plain; x/y+json",
		"application/x-www-form-urlencoded",
		"multipart/form-data; boundary=x",
	};
	static const char spaced[] = "{ \"a\": 1 }", tight[] = "{\"a\":1}";

	(void)state;
	for (size_t i = 0; i < sizeof json_types / sizeof *json_types; i++)
		if (!same(print_of(&whole, json_types[i], slice_str(spaced)), json(tight)))
			fail_msg("\"%s\" is not taken for JSON", json_types[i]);
	for (size_t i = 0; i < sizeof other_types / sizeof *other_types; i++)
		if (!same(print_of(&whole, other_types[i], slice_str(spaced)), bytes(spaced)))
			fail_msg("\"%s\" is not taken for bytes", other_types[i]);
}

static void malformed_json_is_bytes(void **state)
{
	static const char *const bodies[] = {
		"",    " ",        "{",         "{\"a\":1,}", "{'a':1}",       "nul",
		"01",  "1 2",      "[1]]",      "\"\\x\"",    "\"\xff\"",      "\"\\ud800\"",
		"NaN", "Infinity", "{\"a\" 1}", "// c\n1",    "\xef\xbb\xbf{}"};

	(void)state;
	for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++)
		if (!same(json(bodies[i]), bytes(bodies[i])))
			fail_msg("%s is taken for JSON", bodies[i]);
	assert_different("{\"a\":1,}", "{\"a\":1, }");
}

static void too_deep_json_is_bytes(void **state)
{
	char body[2 * 65];

	(void)state;
	memset(body, '[', 65);
	memset(body + 65, ']', 65);
	assert_true(same(print_of(&whole, "text/json", slice_of(body, sizeof body)),
			 print_of(&whole, "", slice_of(body, sizeof body))));
	assert_false(same(print_of(&whole, "text/json", slice_of(body + 1, sizeof body - 2)),
			  print_of(&whole, "", slice_of(body + 1, sizeof body - 2))));
}

/* ---- pointers ---- */

static const struct slice chosen[] = {{"/type", 5}, {"/data/id", 8}};
static const struct gate_fingerprint_rule by_pointers = {.pointers_n = 2, .pointers = chosen};

static struct print picked(const char *body)
{
	return print_of(&by_pointers, "application/json", slice_str(body));
}

static void only_what_is_chosen_counts(void **state)
{
	struct print base = picked("{\"type\":\"paid\",\"data\":{\"id\":7,\"t\":1},\"t\":1}");

	(void)state;
	assert_true(same(base, picked("{\"t\":2,\"data\":{\"id\":7.0},\"type\":\"p\\u0061id\"}")));
	assert_true(
		same(base, print_of(&by_pointers, "text/plain", slice_str("{\"type\":\"paid\",\"data\":{\"id\":7}}"))));
	assert_false(same(base, picked("{\"type\":\"paid\",\"data\":{\"id\":8}}")));
	assert_false(same(base, picked("{\"type\":\"paid\",\"data\":{\"id\":\"7\"}}")));
	assert_false(same(base, picked("{\"type\":\"void\",\"data\":{\"id\":7}}")));
	assert_true(same(picked("{\"type\":{\"a\":1,\"b\":2}}"), picked("{\"type\":{\"b\":2,\"a\":1}}")));
}

static void nothing_is_not_null_and_stays_in_its_place(void **state)
{
	static const char *const bodies[] = {
		"{}",
		"{\"type\":null}",
		"{\"data\":{\"id\":null}}",
		"{\"type\":null,\"data\":{\"id\":null}}",
		"{\"type\":1}",
		"{\"data\":{\"id\":1}}",
		"{\"type\":\"\"}",
		"{\"type\":12,\"data\":{\"id\":3}}",
		"{\"type\":1,\"data\":{\"id\":23}}",
		"{\"type\":123}",
		"{\"type\":[1,2]}",
	};

	(void)state;
	for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++)
		for (size_t j = 0; j < i; j++)
			if (same(picked(bodies[i]), picked(bodies[j])))
				fail_msg("%s and %s are the same", bodies[i], bodies[j]);
	assert_true(same(picked("{}"), picked("{\"data\":{\"x\":1}}")));
	assert_true(same(picked("{}"), picked("[]")));
}

/* One more pointer, although it selects nothing, is another fingerprint; so is another order. */
static void the_list_counts(void **state)
{
	const struct slice swapped[] = {chosen[1], chosen[0]};
	const struct gate_fingerprint_rule one = {.pointers_n = 1, .pointers = chosen};
	const struct gate_fingerprint_rule other = {.pointers_n = 2, .pointers = swapped};
	static const char body[] = "{\"type\":1,\"data\":{\"id\":2}}";

	(void)state;
	assert_false(same(print_of(&one, "", slice_str("{\"type\":1}")), picked("{\"type\":1}")));
	assert_false(same(print_of(&other, "", slice_str(body)), picked(body)));
}

static void a_duplicate_on_the_way_is_the_whole_body(void **state)
{
	static const char twice[] = "{\"type\":1,\"data\":{\"id\":7},\"type\":1}";

	(void)state;
	assert_false(same(picked(twice), picked("{\"type\":1,\"data\":{\"id\":7}}")));
	assert_true(same(picked(twice), json(twice)));
	assert_true(same(picked(twice), picked("{ \"data\":{\"id\":7.0},\"type\":1,\"type\":1}")));
	assert_false(same(picked(twice), picked("{\"type\":1,\"data\":{\"id\":7},\"type\":2}")));
	assert_false(same(picked(twice), picked("{\"type\":1,\"data\":{\"id\":7},\"type\":1,\"t\":0}")));
	assert_false(same(picked("{\"data\":{\"id\":1,\"id\":2}}"), picked("{\"data\":{\"id\":1,\"id\":3}}")));
	assert_false(same(picked("{\"data\":{\"id\":1},\"data\":{}}"), picked("{\"data\":{\"id\":1}}")));
	/* Beside the way it is nobody's business; below its end both are kept. */
	assert_true(same(picked("{\"type\":1,\"x\":1,\"x\":2}"), picked("{\"type\":1}")));
	assert_false(same(picked("{\"type\":{\"a\":1,\"a\":1}}"), picked("{\"type\":{\"a\":1}}")));
}

static void pointers_into_what_is_not_json_are_bytes(void **state)
{
	(void)state;
	assert_true(same(picked("type=paid"), bytes("type=paid")));
	assert_true(same(picked(""), bytes("")));
	assert_false(same(picked("type=paid"), picked("type=void")));
}

static void off_is_all_zero(void **state)
{
	const struct gate_fingerprint_rule off = {.off = true, .pointers_n = 2, .pointers = chosen};
	struct print zero = {{0}};

	(void)state;
	assert_true(same(print_of(&off, "application/json", slice_str("{}")), zero));
	assert_true(same(print_of(&off, "", slice_str("")), zero));
	assert_false(same(json("{}"), zero));
	assert_false(same(bytes(""), zero));
}

/* ---- memory ---- */

/* As many repetitions as fit, between the first and the last byte of the frame. */
static struct slice filled(char *text, size_t n, const char *frame, const char *item)
{
	size_t at = 1;

	text[0] = frame[0];
	while (at + strlen(item) + 1 <= n) {
		memcpy(text + at, item, strlen(item));
		at += strlen(item);
	}
	text[at - 1] = frame[1]; /* over the last comma */
	return slice_of(text, at);
}

static void the_scratch_that_is_always_enough(void **state)
{
	static const char *const items[][2] = {
		{"{}", "\"\":0,"},     {"{}", "\"\\n\":0,"},     {"{}", "\"\\n\":\"\\n\","},
		{"[]", "\"\\n\","},    {"[]", "\"\\/\","},       {"[]", "1.1,"},
		{"[]", "10,"},         {"[]", "0.1,"},           {"[]", "{\"\":1.1},"},
		{"[]", "[],"},         {"{}", "\"\":{},"},       {"[]", "\"\\u0000\","},
		{"{}", "\"a\":1e-9,"}, {"[]", "-1.5e-9999999,"}, {"[]", "{\"\":\"\\n\"},"},
		{"{}", "\"\":1.1,"},   {"{}", "\"\\n\":10,"},
	};
	char *text = malloc(1u << 18);

	(void)state;
	assert_non_null(text);
	for (size_t i = 0; i < sizeof items / sizeof *items; i++)
		for (size_t n = 64; n <= 1u << 18; n *= 8)
			(void)print_of(&whole, "text/json", filled(text, n, items[i][0], items[i][1]));
	for (const char *const *p = (const char *const[]){"1", "1.1", "1.1e99999999999999999999", "\"\\n\"", NULL}; *p;
	     p++)
		(void)json(*p);
	free(text);
}

static void many_pointers_share_the_scratch(void **state)
{
	struct slice pointers[32];
	const struct gate_fingerprint_rule rule = {.pointers_n = 32, .pointers = pointers};
	char *text = malloc(1u << 16);

	(void)state;
	assert_non_null(text);
	for (size_t i = 0; i < 32; i++)
		pointers[i] = slice_str("");
	(void)print_of(&rule, "", filled(text, 1u << 16, "[]", "{\"a\":\"\\n\"},"));
	free(text);
}

/* Too little memory is an answer of its own: never another fingerprint. */
static void too_little_scratch(void **state)
{
	static const char body[] = "{\"b\":[1.50,\"\\n\"],\"\\u0061\":{\"x\":null}}";
	const struct slice root = slice_str("");
	const struct gate_fingerprint_rule rules[] = {whole, {.pointers_n = 1, .pointers = &root}};
	size_t enough = 0;

	(void)state;
	for (size_t r = 0; r < 2; r++) {
		struct print expected = print_of(&rules[r], "text/json", slice_str(body));

		for (size_t room = 0; room <= GATE_FINGERPRINT_SCRATCH_BYTES(sizeof body); room += 8) {
			struct print print = {{0}};
			struct hx_error err = {0};
			struct arena scratch;
			enum hx_code code;

			arena_init(&scratch, room);
			code = gate_fingerprint(&rules[r], slice_str("text/json"), slice_str(body), &scratch, &err,
						print.bytes);
			assert_true(code == HX_OK ? same(print, expected) : code == HX_TOO_LARGE && err.code == code);
			enough += code == HX_OK;
			arena_release(&scratch);
		}
	}
	assert_true(enough > 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_bytes_that_are_hashed),
		cmocka_unit_test(numbers_are_exact),
		cmocka_unit_test(a_duplicate_member_never_matches_a_single_one),
		cmocka_unit_test(members_have_no_order_and_elements_have_one),
		cmocka_unit_test(kinds_are_kept_apart),
		cmocka_unit_test(bytes_are_taken_as_they_are),
		cmocka_unit_test(content_types),
		cmocka_unit_test(malformed_json_is_bytes),
		cmocka_unit_test(too_deep_json_is_bytes),
		cmocka_unit_test(only_what_is_chosen_counts),
		cmocka_unit_test(nothing_is_not_null_and_stays_in_its_place),
		cmocka_unit_test(the_list_counts),
		cmocka_unit_test(a_duplicate_on_the_way_is_the_whole_body),
		cmocka_unit_test(pointers_into_what_is_not_json_are_bytes),
		cmocka_unit_test(off_is_all_zero),
		cmocka_unit_test(the_scratch_that_is_always_enough),
		cmocka_unit_test(many_pointers_share_the_scratch),
		cmocka_unit_test(too_little_scratch),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
