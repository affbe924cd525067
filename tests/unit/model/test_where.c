/* Conditions: what is refused and where, what they mean of a subject, and what a plan may read off them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "../../support/must_hold.h"
#include "base/clock.h"
#include "base/id.h"
#include "model/where.h"

#define COUNT(array) (sizeof(array) / sizeof(array)[0])
#define ROOM (1u << 20)

static const char *const statuses[] = {"PENDING", "RUNNING", "FAILED", NULL};
static const struct where_names of_runs = {WHERE_RUN, statuses};

static struct where_subject a_run(void)
{
	return (struct where_subject){
		.status = slice_str("FAILED"),
		.workflow = slice_str("order"),
		.key = slice_str("k-1"),
		.requester = slice_str("alice"),
		.id = 5,
		.created_at = 1000000000000, /* 2001-09-09T01:46:40Z */
		.updated_at = 1000000001000,
		.attributes = json_trust(slice_str("{\"customer\":\"sc-1\",\"total\":\"n2500000000312\",\"vip\":\"b1\","
						   "\"said\":\"sa \\\"b\\\" \xc3\xa4\",\"debt\":\"n0499999999944~\"}")),
	};
}

static bool says(const struct where_names *names, const char *text, const struct where_subject *subject)
{
	LOCAL_ARENA(arena, ROOM);
	const struct where *where = NULL;
	struct hx_error err = {0};

	if (where_parse(slice_str(text), names, &arena, &err, NULL, &where) != HX_OK)
		fail_msg("%s: %s", text, err.detail);
	return where_holds(where, subject);
}

/* ---- refusals ---- */

static void refusals(void **state)
{
	/* clang-format off */
	static const struct { const char *text; size_t column; const char *says; } cases[] = {
		{"", 1, "it ends too early"}, {"  ", 3, "it ends too early"},
		{"true", 1, "the name stands at the left"}, {"customer", 9, "one of =="}, {"100 <= total", 1, "the name stands at the left"},
		{"\"a\" == key", 1, "the name stands at the left"}, {"total = 5", 7, "== is meant"},
		{"total == ", 10, "a value is expected"}, {"total == five", 10, "double quotes"}, {"total == 'a'", 10, "double quotes"},
		{"total == 5 and", 15, "it ends too early"}, {"total == 5 total == 6", 12, "and or or"}, {"total == 5 && vip == true", 12, "write: and"},
		{"(total == 5", 12, "and, or or )"}, {"total == 5)", 11, "and or or"}, {"total not in [5]", 7, "in front"},
		{"total in 5", 10, "a list"}, {"total in []", 11, "a value"}, {"total in [5", 12, "a comma or ]"}, {"total in [5,]", 13, "a value"},
		{"total < true", 9, "less or greater than boolean"}, {"total >= null", 10, "less or greater than null"},
		{"total startswith 5", 18, "a string is expected"}, {"total == 01", 10, "number of JSON"}, {"total == \"\\x\"", 10, "string of JSON"},
		{"total == [5]", 10, "a value"}, {"and == 5", 1, "the name of a field"}, {"\xc3\xa4 == 5", 1, "the name of a field"},
		{"key == \"\xc3\xa4\xc3\xa4\" or =", 16, "the name of a field"}, {"key == \"a\\u0000\"", 8, "U+0000"},
		{"status == \"FALED\"", 11, "did you mean \"FAILED\"?"}, {"status in [\"FAILED\", \"X\"]", 22, "no such status"},
		{"status != null", 11, "no such status"}, {"createdAt > 5", 13, "is a time"}, {"createdAt > \"yesterday\"", 13, "is a time"},
		{"createdAt startswith \"2026\"", 22, "begins with nothing"}, {"id == \"run_1\"", 7, "is an id: \"run_"},
		{"id == \"batch_0000000000005\"", 7, "is an id"}, {"parent startswith \"run_\"", 19, "as a whole"},
		{"key == \"\xff\"", 9, "not UTF-8"}, {"key == \"a\" #", 12, "and or or"},
	};
	/* clang-format on */
	const struct where *where = NULL;

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		LOCAL_ARENA(arena, ROOM);
		struct hx_error err = {0};
		char prefix[32];
		size_t column = 0;

		if (where_parse(slice_str(cases[i].text), &of_runs, &arena, &err, &column, &where) != HX_BAD_QUERY)
			fail_msg("taken: %s", cases[i].text);
		snprintf(prefix, sizeof prefix, "column %zu: ", cases[i].column);
		if (err.code != HX_BAD_QUERY || column != cases[i].column ||
		    !slice_starts(slice_str(err.detail), prefix) || !strstr(err.detail, cases[i].says))
			fail_msg("%s\n%zu %s, not %zu %s", cases[i].text, column, err.detail, cases[i].column,
				 cases[i].says);
	}
	assert_null(where);
}

/* `head`, then n times `piece`, then `tail`: taken or refused? */
static enum hx_code many(const char *head, const char *piece, size_t n, const char *tail)
{
	LOCAL_ARENA(arena, ROOM);
	LOCAL_STRBUF(text, ROOM);
	const struct where *where;

	strbuf_add_str(&text, head);
	for (size_t i = 0; i < n; i++)
		strbuf_add_str(&text, piece);
	strbuf_add_str(&text, tail);
	return where_parse(strbuf_slice(&text), &of_runs, &arena, NULL, NULL, &where);
}

static void limits(void **state)
{
	/* clang-format off */
	static const struct { const char *head, *piece; size_t most; const char *tail; } cases[] = {
		{"", "not ", WHERE_DEPTH_MAX, "a == 1"},
		{"a == 1", " or a == 1", WHERE_TESTS_MAX - 1, ""},
		{"a == 1", " ", WHERE_BYTES_MAX - 6, ""},
		{"a in [1", ",1", WHERE_VALUES_MAX - 1, "]"},
		{"a in [1", ",1", WHERE_VALUES_MAX - 2, "] or a in [1]"},
		{"a == \"", "\xc3\xa4", SORTABLE_CHARS_MAX, "\""},
		{"a == ", "7", SORTABLE_DIGITS_MAX, ""},
	};
	/* clang-format on */

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		assert_int_equal(many(cases[i].head, cases[i].piece, cases[i].most, cases[i].tail), HX_OK);
		assert_int_equal(many(cases[i].head, cases[i].piece, cases[i].most + 1, cases[i].tail), HX_BAD_QUERY);
	}
	assert_int_equal(many("((((((((((((((((", "", 0, "a == 1))))))))))))))))"), HX_OK);
	assert_int_equal(many("(((((((((((((((((", "", 0, "a == 1)))))))))))))))))"), HX_BAD_QUERY);
}

static void a_small_arena_is_an_error(void **state)
{
	const struct where *where;

	(void)state;
	for (size_t room = 0; room < 6000; room += 50) {
		LOCAL_ARENA(arena, room);

		assert_int_equal(where_parse(slice_str("a in [\"b\", 1] and not b == \"c\""), &of_runs, &arena, NULL,
					     NULL, &where),
				 HX_TOO_LARGE);
	}
}

/* ---- meaning ---- */

static void what_it_means(void **state)
{
	/* clang-format off */
	static const struct { const char *text; bool holds; } cases[] = {
		{"customer == \"c-1\"", true}, {"customer==\"c-1\" and total>=100", true}, {"customer == \"c-2\"", false},
		{"customer != \"c-2\"", true}, {"total == 120", true}, {"total == 1.2e2", true}, {"total < 120", false}, {"total <= 120", true},
		{"total > 119.99", true}, {"total >= 120.01", false}, {"debt < -0.5", true}, {"debt < 0", true}, {"debt > -0.56", true},
		{"vip == true", true}, {"vip == false", false}, {"said == \"a \\\"b\\\" \\u00e4\"", true}, {"said startswith \"a \\\"\"", true},
		{"customer startswith \"c-\"", true}, {"customer startswith \"\"", true}, {"customer startswith \"c-11\"", false},
		{"customer in [\"c-3\", 5, \"c-1\"]", true}, {"customer in [\"c-3\", null]", false}, {"nobody in [\"c-3\", null]", true},
		{"nobody == null", true}, {"nobody != null", false}, {"customer == null", false}, {"nobody < 5", false}, {"not (nobody < 5)", true},
		{"nobody startswith \"\"", false}, {"nobody != \"x\"", true},
		{"status == \"FAILED\"", true}, {"status in [\"RUNNING\", \"FAILED\"]", true}, {"status > \"E\"", true}, {"status startswith \"FA\"", true},
		{"workflow == \"order\" and key == \"k-1\" and requester == \"alice\"", true}, {"key == 1", false}, {"key != 1", true},
		{"createdAt == \"2001-09-09T01:46:40Z\"", true}, {"createdAt >= \"2001-09-09T03:46:40+02:00\"", true},
		{"createdAt < \"2001-09-09T01:46:40.001Z\"", true}, {"completedAt == null", true}, {"completedAt < \"2030-01-01T00:00:00Z\"", false},
		{"updatedAt > \"2001-09-09T01:46:40Z\"", true}, {"id == \"run_0000000000005\"", true}, {"id > \"run_0000000000004\"", true},
		{"id in [null, \"run_0000000000006\"]", false}, {"parent == null", true}, {"parent != \"run_0000000000005\"", true},
		/* not, and, or */
		{"vip == true or vip == true and vip == false", true}, {"(vip == true or vip == true) and vip == false", false},
		{"not vip == false and vip == false", false}, {"not (vip == false and vip == false)", true}, {"not not vip == true", true},
		{"vip == false or vip == false or vip == true", true}, {"vip == true and vip == true and vip == false", false},
		{"not\tvip == false\nand vip == true", true},
	};
	/* clang-format on */
	struct where_subject run = a_run();

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++)
		if (says(&of_runs, cases[i].text, &run) != cases[i].holds)
			fail_msg("%s is not %s", cases[i].text, cases[i].holds ? "true" : "false");
}

/* Every type against every type: unequal and unordered, whatever their texts. */
static void types_are_unequal_and_unordered(void **state)
{
	static const char *const attributes[] = {"{\"a\":\"b1\"}", "{\"a\":\"n250000000019\"}", "{\"a\":\"s9\"}", "{}"};
	static const char *const literals[] = {"true", "9", "\"9\"", "null"};
	static const char *const ops[] = {"==", "!=", "<", "<=", ">", ">="};
	static const bool equal[] = {true, false, false, true, false, true};

	(void)state;
	for (size_t i = 0; i < COUNT(attributes); i++) {
		for (size_t j = 0; j < COUNT(literals); j++) {
			for (size_t k = 0; k < (j == 1 || j == 2 ? COUNT(ops) : 2); k++) {
				struct where_subject run = {.attributes = json_trust(slice_str(attributes[i]))};
				bool wanted = i == j ? equal[k] : k == 1;
				char text[64];

				snprintf(text, sizeof text, "a %s %s", ops[k], literals[j]);
				MUST_HOLD(says(&of_runs, text, &run) == wanted,
					  "what has another type is unequal, and neither above nor below");
			}
		}
	}
}

static void other_kinds(void **state)
{
	static const struct where_names of_entities = {WHERE_ENTITY, NULL}, of_batches = {WHERE_BATCH, NULL},
					of_jobs = {WHERE_JOB, NULL};
	struct where_subject s = {
		.name = slice_str("o-1"), .held = true, .total = 12, .id = 5, .queue = slice_str("mail")};

	(void)state;
	assert_true(says(&of_entities, "id == \"o-1\" and held == true", &s));
	assert_true(says(&of_entities, "id startswith \"o\" and held != false", &s));
	assert_true(says(&of_entities, "workflow == null", &s)); /* an attribute, here */
	assert_true(says(&of_batches, "total == 12 and total > 2 and id == \"batch_0000000000005\"", &s));
	assert_false(says(&of_batches, "total > 12.5 or total == \"12\"", &s));
	assert_true(says(&of_jobs, "queue == \"mail\" and id == \"job_0000000000005\"", &s));
}

/* ---- for its users ---- */

static const struct where *parsed(const char *text, struct arena *arena)
{
	const struct where *where = NULL;

	assert_int_equal(where_parse(slice_str(text), &of_runs, arena, NULL, NULL, &where), HX_OK);
	return where;
}

static void names(void **state)
{
	static const char *const known[] = {"customer", "total", NULL};
	LOCAL_ARENA(arena, ROOM);
	const struct where *where = parsed("status == \"FAILED\" and custmer != \"x\" or total > 5", &arena);
	const struct where_test *unknown;
	struct hx_error err;
	size_t at = 0, column = 0;

	(void)state;
	unknown = where_unknown(where, known, &at);
	assert_true(unknown && slice_is(unknown->name, "custmer"));
	assert_null(where_unknown(where, known, &at));
	assert_int_equal(where_refuse_name(where, unknown, known, &err, &column), HX_BAD_QUERY);
	assert_int_equal(column, 24);
	assert_string_equal(err.detail,
			    "column 24: there is no field or attribute \"custmer\"; did you mean \"customer\"?");
	assert_true(where_is_reserved(WHERE_RUN, slice_str("in")) &&
		    where_is_reserved(WHERE_ENTITY, slice_str("held")) &&
		    where_is_reserved(WHERE_RUN, slice_str("createdAt")) &&
		    !where_is_reserved(WHERE_RUN, slice_str("held")) &&
		    !where_is_reserved(WHERE_RUN, slice_str("customer")) &&
		    !where_is_reserved(WHERE_RUN, slice_str("total")));
	assert_string_equal(where_field_names(WHERE_JOB)[1], "queue");
}

static void conjuncts(void **state)
{
	const struct where_test *out[WHERE_CONJUNCTS_MAX];
	LOCAL_ARENA(arena, ROOM);

	(void)state;
	assert_int_equal(where_conjuncts(parsed("a == 1", &arena), out), 1);
	assert_true(slice_is(out[0]->name, "a") && out[0]->type == WHERE_ATTRIBUTE &&
		    slice_is(out[0]->values[0].sortable, "n250000000011"));
	assert_int_equal(where_conjuncts(parsed("a == 1 or b == 2", &arena), out), 0);
	assert_int_equal(where_conjuncts(parsed("not a == 1", &arena), out), 0);
	assert_int_equal(
		where_conjuncts(parsed("(a == 1 and status == \"FAILED\") and (b == 2 or c == 3) and d > 4", &arena),
				out),
		3);
	assert_true(slice_is(out[1]->name, "status") && out[1]->steady && slice_is(out[2]->name, "d"));
	assert_int_equal(
		where_conjuncts(
			parsed("a==1 and a==2 and a==3 and a==4 and a==5 and a==6 and a==7 and a==8 and a==9", &arena),
			out),
		8);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(refusals),
		cmocka_unit_test(limits),
		cmocka_unit_test(a_small_arena_is_an_error),
		cmocka_unit_test(what_it_means),
		cmocka_unit_test(types_are_unequal_and_unordered),
		cmocka_unit_test(other_kinds),
		cmocka_unit_test(names),
		cmocka_unit_test(conjuncts),
	};

	ONLY_THE_NAMED(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
