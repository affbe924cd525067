/* Values and their bytes on PostgreSQL's wire, without a server. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "db/postgres.h"

static void assert_param(const struct pg_params *p, unsigned i, const void *bytes, int n, int format)
{
	assert_int_equal(p->formats[i], format);
	assert_int_equal(p->lengths[i], n);
	assert_memory_equal(p->values[i], bytes, (size_t)n);
}

static void parameters_are_binary(void **state)
{
	const struct db_value values[] = {db_int(-2),
					  db_int(INT64_MIN),
					  db_str("añ"),
					  db_str(""),
					  db_blob(slice_of("\0\xff", 2)),
					  db_blob(slice_of(NULL, 0)),
					  db_null()};
	struct pg_params p;
	struct arena arena;

	(void)state;
	arena_init(&arena, 1000);
	for (unsigned i = 0; i < 7; i++)
		assert_int_equal(pg_params_set(&p, i, "iittbbi"[i], &values[i], &arena, NULL), HX_OK);
	assert_param(&p, 0, "\xff\xff\xff\xff\xff\xff\xff\xfe", 8, 1);
	assert_param(&p, 1, "\x80\0\0\0\0\0\0\0", 8, 1);
	assert_param(&p, 2, "añ", 3, 1);
	assert_param(&p, 4, "\0\xff", 2, 1);
	assert_non_null(p.values[3]); /* empty is not NULL */
	assert_non_null(p.values[5]);
	assert_int_equal(p.lengths[3], 0);
	assert_null(p.values[6]);
	arena_release(&arena);
}

static void inferred_parameters_are_text(void **state)
{
	const struct db_value number = db_int(INT64_MIN), part = db_text(slice_of("abc", 2)), null = db_null();
	const struct db_value nul = db_text(slice_of("a\0b", 3));
	struct pg_params p;
	struct arena arena;

	(void)state;
	arena_init(&arena, 1000);
	assert_int_equal(pg_params_set(&p, 0, 's', &number, &arena, NULL), HX_OK);
	assert_int_equal(pg_params_set(&p, 1, 's', &part, &arena, NULL), HX_OK);
	assert_int_equal(pg_params_set(&p, 2, 's', &null, &arena, NULL), HX_OK);
	assert_string_equal(p.values[0], "-9223372036854775808");
	assert_string_equal(p.values[1], "ab");
	assert_null(p.values[2]);
	assert_int_equal(p.formats[0], 0);
	assert_int_equal(p.formats[1], 0);
	assert_int_equal(pg_params_set(&p, 0, 's', &nul, &arena, NULL), HX_DATA_ERROR);
	assert_int_equal(pg_type('s', /* array= */ false), 0);
	arena_release(&arena);
}

static void a_value_has_a_ceiling(void **state)
{
	char *bytes = calloc(1, PG_VALUE_BYTES_MAX + 1);
	struct db_value at_limit = db_blob(slice_of(bytes, PG_VALUE_BYTES_MAX));
	struct db_value past_it = db_blob(slice_of(bytes, PG_VALUE_BYTES_MAX + 1));
	struct pg_params p;

	(void)state;
	assert_non_null(bytes);
	assert_int_equal(pg_params_set(&p, 0, 'b', &at_limit, NULL, NULL), HX_OK);
	assert_int_equal(pg_params_set(&p, 0, 'b', &past_it, NULL, NULL), HX_TOO_LARGE);
	free(bytes);
}

static void an_array_of_text(void **state)
{
	static const char wanted[] =
		"\0\0\0\1\0\0\0\1\0\0\0\x19\0\0\0\3\0\0\0\1" /* 1 dimension, NULLs, text, 3, from 1 */
		"\0\0\0\2ab"
		"\xff\xff\xff\xff"
		"\0\0\0\0";
	const struct db_value values[] = {db_str("ab"), db_null(), db_str("")};
	struct strbuf out;

	(void)state;
	strbuf_init(&out, 100);
	pg_array_start(&out, 't');
	for (int i = 0; i < 3; i++)
		pg_array_add(&out, &values[i]);
	pg_array_end(&out, 3);
	assert_false(out.failed);
	assert_int_equal(out.n, sizeof wanted - 1);
	assert_memory_equal(out.p, wanted, out.n);
	strbuf_release(&out);
}

static void an_array_of_numbers_up_to_its_ceiling(void **state)
{
	struct db_value one = db_int(1);

	(void)state;
	for (size_t room = 43; room <= 44; room++) { /* 20 for the head, 12 for each */
		struct strbuf out;

		strbuf_init(&out, room);
		pg_array_start(&out, 'i');
		pg_array_add(&out, &one);
		pg_array_add(&out, &one);
		pg_array_end(&out, 2);
		assert_int_equal(out.failed, room < 44);
		strbuf_release(&out);
	}
}

/* ---- results ---- */

static PGresult *result_of(Oid type, const char *bytes, int n)
{
	PGresAttDesc column = {.name = "c", .typid = type, .format = 1};
	PGresult *res = PQmakeEmptyPGresult(NULL, PGRES_TUPLES_OK);

	assert_non_null(res);
	assert_true(PQsetResultAttrs(res, 1, &column));
	assert_true(PQsetvalue(res, 0, 0, (char *)bytes, n));
	return res;
}

static void whole_numbers_of_all_sizes(void **state)
{
	static const struct {
		Oid type;
		const char *bytes;
		int n;
		int64_t value;
	} cases[] = {
		{20, "\x80\0\0\0\0\0\0\0", 8, INT64_MIN},
		{20, "\0\0\0\0\0\0\1\0", 8, 256},
		{23, "\xff\xff\xff\xfe", 4, -2},
		{21, "\xff\xfe", 2, -2},
		{16, "\1", 1, 1},
	};
	static const struct db_stmt stmt = {.name = "n", .sql = "", .in = "", .out = "i"};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		PGresult *res = result_of(cases[i].type, cases[i].bytes, cases[i].n);

		assert_int_equal(pg_check_columns(res, &stmt, 0, NULL), HX_OK);
		assert_true(pg_cell_int(res, 0, 0) == cases[i].value);
		PQclear(res);
	}
}

static void columns_are_checked(void **state)
{
	static const struct db_stmt number = {.name = "n", .sql = "", .in = "", .out = "i"};
	static const struct db_stmt text = {.name = "t", .sql = "", .in = "", .out = "t"};
	static const struct db_stmt two = {.name = "2", .sql = "", .in = "", .out = "ii"};
	static const struct db_stmt none = {.name = "0", .sql = "", .in = "", .out = ""};
	PGresult *numeric = result_of(1700, "", 0), *name = result_of(19, "x", 1);
	struct hx_error err = {0};

	(void)state;
	assert_int_equal(pg_check_columns(numeric, &number, 0, &err), HX_INTERNAL); /* sum() of bigint, say */
	assert_int_equal(pg_check_columns(numeric, &text, 0, &err), HX_INTERNAL);
	assert_int_equal(pg_check_columns(name, &text, 0, &err), HX_OK);
	assert_int_equal(pg_check_columns(name, &two, 0, &err), HX_INTERNAL);
	assert_int_equal(pg_check_columns(name, &text, 1, &err), HX_INTERNAL);
	assert_int_equal(pg_check_columns(name, &none, 0, &err), HX_INTERNAL);
	PQclear(numeric);
	PQclear(name);
}

static void cells_are_copied(void **state)
{
	PGresult *res = result_of(17, "a\0b", 3);
	struct arena arena;
	struct db_value value;

	(void)state;
	arena_init(&arena, 1000);
	value = pg_cell(res, 0, 0, 'b', &arena);
	PQclear(res);
	assert_int_equal(value.type, DB_BLOB);
	assert_true(slice_eq(value.s, slice_of("a\0b", 3)));
	res = result_of(25, NULL, -1);
	assert_int_equal(pg_cell(res, 0, 0, 't', &arena).type, DB_NULL);
	PQclear(res);
	arena_release(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parameters_are_binary),
		cmocka_unit_test(inferred_parameters_are_text),
		cmocka_unit_test(a_value_has_a_ceiling),
		cmocka_unit_test(an_array_of_text),
		cmocka_unit_test(an_array_of_numbers_up_to_its_ceiling),
		cmocka_unit_test(whole_numbers_of_all_sizes),
		cmocka_unit_test(columns_are_checked),
		cmocka_unit_test(cells_are_copied),
	};

	return cmocka_run_group_tests_name("postgres values", tests, NULL, NULL);
}
