/*
 * The contract of driver.h, the same for every store: each test below runs on a SQLite file, on SQLite in memory
 * and on PostgreSQL. What only one store can do (a connection that breaks) has suites of its own.
 * Here: verdicts, values and rows, and many units.
 */
#include "sessions.h"

/* ---- verdicts ---- */

static void zero_rows_mean_what_the_rule_says(void **state)
{
	struct session *s = *state;

	item_must_put(s, 1, 10);
	item_must_put(s, 2, 20);
	session_reset(s);
	add_move(session_unit(s), UNIT_VERDICT, 1, 10, 11);
	add_move(session_unit(s), UNIT_VERDICT, 2, 99, 21);
	add_move(session_unit(s), UNIT_MUST, 3, 0, 1);
	add_move(session_unit(s), UNIT_ANY, 4, 0, 1);
	session_must(s, session_run(s));
	assert_verdict(s, 0, UNIT_WON, -1);
	assert_verdict(s, 1, UNIT_LOST, 0);
	assert_verdict(s, 2, UNIT_REFUSED, 0);
	assert_verdict(s, 3, UNIT_WON, -1);
	assert_int_equal(s->result[0].rows[0].n, 1);
	assert_int_equal(cell(s, 0, 0, 0, 1)->i, 11);
	assert_int_equal(s->result[1].rows[0].n, 0);
	assert_int_equal(item_n(s, 1, ABSENT), 11);
	assert_int_equal(item_n(s, 2, ABSENT), 20);
}

static void a_single_unit_is_judged_alike(void **state)
{
	struct session *s = *state;

	item_must_put(s, 1, 10);
	session_reset(s);
	add_move(session_unit(s), UNIT_VERDICT, 1, 11, 12);
	session_must(s, session_run(s));
	assert_verdict(s, 0, UNIT_LOST, 0);
	session_reset(s);
	add_move(session_unit(s), UNIT_MUST, 1, 11, 12);
	session_must(s, session_run(s));
	assert_verdict(s, 0, UNIT_REFUSED, 0);
	session_reset(s);
	add_move(session_unit(s), UNIT_VERDICT, 1, 10, 12);
	session_must(s, session_run(s));
	assert_verdict(s, 0, UNIT_WON, -1);
	assert_int_equal(item_n(s, 1, ABSENT), 12);
}

static void a_lost_unit_leaves_no_row(void **state)
{
	struct session *s = *state;

	item_must_put(s, 1, 10);
	session_reset(s);
	for (int64_t id = 0; id < 4; id++) { /* only id 1 exists */
		struct unit *unit = session_unit(s);

		add_move(unit, UNIT_VERDICT, id, 10, 11);
		add_put(unit, UNIT_ANY, 100 + id, 1);
		UNIT_ADD(unit, UNIT_ANY, &item_bump, db_int(1));
	}
	session_must(s, session_run(s));
	for (size_t i = 0; i < 4; i++)
		assert_verdict(s, i, i == 1 ? UNIT_WON : UNIT_LOST, i == 1 ? -1 : 0);
	assert_int_equal(item_count(s), 2);
	assert_int_equal(item_n(s, 101, ABSENT), 1);
	assert_int_equal(item_n(s, 1, ABSENT), 12); /* bumped once */
}

static void a_late_verdict_leaves_no_row(void **state)
{
	struct session *s = *state;
	struct unit *unit;

	item_must_put(s, 1, 10);
	session_reset(s);
	unit = session_unit(s);
	add_put(unit, UNIT_ANY, 100, 1);
	add_move(unit, UNIT_VERDICT, 1, 99, 11);
	add_put(unit, UNIT_ANY, 101, 1);
	session_must(s, session_run(s));
	assert_verdict(s, 0, UNIT_LOST, 1);
	assert_int_equal(item_count(s), 1);
}

static void must_names_the_line_and_undoes(void **state)
{
	struct session *s = *state;
	struct unit *unit;

	item_must_put(s, 1, 10);
	session_reset(s);
	unit = session_unit(s);
	add_move(unit, UNIT_VERDICT, 1, 10, 11);
	add_put(unit, UNIT_ANY, 100, 1);
	UNIT_ADD(unit, UNIT_MUST, &item_bump, db_int(1));
	UNIT_ADD(unit, UNIT_MUST, &item_bump, db_int(55)); /* nobody there */
	add_put(unit, UNIT_ANY, 101, 1);
	session_must(s, session_run(s));
	assert_verdict(s, 0, UNIT_REFUSED, 3);
	assert_int_equal(item_count(s), 1);
	assert_int_equal(item_n(s, 1, ABSENT), 10);
}

static void units_under_savepoints_do_not_touch_each_other(void **state)
{
	struct session *s = *state;

	item_must_put(s, 1, 10);
	item_must_put(s, 2, 10);
	item_must_put(s, 3, 10);
	session_reset(s);
	for (int64_t id = 1; id <= 3; id++) {
		struct unit *unit = session_unit(s);

		add_put(unit, UNIT_VERDICT, 100 + id, id);
		add_move(unit, UNIT_VERDICT, id, id == 2 ? 99 : 10, 11);
	}
	add_put(session_unit(s), UNIT_VERDICT, 200, 1);
	session_must(s, session_run(s));
	assert_verdict(s, 0, UNIT_WON, -1);
	assert_verdict(s, 1, UNIT_LOST, 1);
	assert_verdict(s, 2, UNIT_WON, -1);
	assert_verdict(s, 3, UNIT_WON, -1);
	assert_int_equal(item_n(s, 101, ABSENT), 1);
	assert_int_equal(item_n(s, 102, ABSENT), ABSENT);
	assert_int_equal(item_n(s, 103, ABSENT), 3);
	assert_int_equal(item_n(s, 200, ABSENT), 1);
}

static void insert_and_see(void **state)
{
	struct session *s = *state;

	item_must_put(s, 2, 0);
	session_reset(s);
	for (int64_t id = 1; id <= 3; id++)
		add_put(session_unit(s), UNIT_VERDICT, id, 5);
	session_must(s, session_run(s));
	assert_verdict(s, 0, UNIT_WON, -1);
	assert_verdict(s, 1, UNIT_LOST, 0);
	assert_verdict(s, 2, UNIT_WON, -1);
	assert_int_equal(item_n(s, 2, ABSENT), 0);
}

static void all_lines_of_a_unit_run_in_order(void **state)
{
	struct session *s = *state;
	struct unit *unit;

	session_reset(s);
	unit = session_unit(s);
	add_put(unit, UNIT_VERDICT, 1, 100);
	for (int64_t line = 1; line < UNIT_LINES_MAX; line++)
		add_move(unit, UNIT_ANY, 1, 99 + line, 100 + line); /* each needs the one before */
	assert_int_equal(unit->lines_n, UNIT_LINES_MAX);
	session_must(s, session_run(s));
	for (unsigned line = 0; line < UNIT_LINES_MAX; line++)
		assert_int_equal(s->result[0].rows[line].n, 1);
	assert_int_equal(item_n(s, 1, ABSENT), 100 + UNIT_LINES_MAX - 1);
}

/* ---- values and rows ---- */

static const char unicode[] = "naïve – ἅπαξ – 一度 – 🦉";
static const char bytes_with_nul[] = "a\0b\xff\xfe\0";

static void add_value_units(struct session *s, int64_t first)
{
	static const int64_t numbers[] = {INT64_MIN, INT64_MAX, 0, -1, 1};

	for (int64_t i = 0; i < 5; i++)
		UNIT_ADD(session_unit(s), UNIT_VERDICT, &item_put, db_int(first + i), db_int(numbers[i]),
			 i == 1 ? db_null() : db_str(i == 2 ? "" : unicode),
			 i == 3   ? db_null()
			 : i == 2 ? db_blob(slice_of(NULL, 0))
				  : db_blob(slice_of(bytes_with_nul, sizeof bytes_with_nul)));
}

static void assert_value_rows(struct session *s)
{
	static const int64_t numbers[] = {INT64_MIN, INT64_MAX, 0, -1, 1};

	for (size_t i = 0; i < 5; i++) {
		const struct db_value *row = cell(s, i, 0, 0, 0);

		assert_int_equal(s->result[i].rows[0].columns, 4);
		assert_int_equal(row[1].type, DB_INT);
		assert_true(row[1].i == numbers[i]);
		assert_int_equal(row[2].type, i == 1 ? DB_NULL : DB_TEXT);
		if (i != 1)
			assert_true(slice_is(row[2].s, i == 2 ? "" : unicode));
		assert_int_equal(row[3].type, i == 3 ? DB_NULL : DB_BLOB);
		if (i != 3)
			assert_true(slice_eq(row[3].s, slice_of(bytes_with_nul, i == 2 ? 0 : sizeof bytes_with_nul)));
	}
}

static void add_gets(struct session *s, int64_t first, int64_t n)
{
	for (int64_t i = 0; i < n; i++)
		UNIT_ADD(session_unit(s), UNIT_ANY, &item_get, db_int(first + i));
}

static void values_come_back_as_they_went(void **state)
{
	struct session *s = *state;

	session_reset(s);
	add_value_units(s, 10);
	session_must(s, session_run(s));
	session_reset(s);
	add_gets(s, 10, 5); /* together: the set form where there is one */
	session_must(s, session_run(s));
	assert_value_rows(s);
}

static void values_come_back_from_single_units(void **state)
{
	struct session *s = *state;
	struct unit_result results[5];

	for (size_t i = 0; i < 5; i++) {
		session_reset(s);
		add_value_units(s, 10);
		s->units[0] = &s->unit[i];
		s->n = 1;
		session_must(s, session_run(s));
		s->units[0] = &s->unit[0];
	}
	session_reset(s);
	for (int64_t i = 0; i < 5; i++) {
		struct unit unit, *units = &unit;

		unit_init(&unit, 1);
		UNIT_ADD(&unit, UNIT_ANY, &item_get, db_int(10 + i));
		session_must(s, s->db->driver->begin(s->db, &s->err));
		session_must(s, s->db->driver->execute(s->db, &units, 1, &results[i], &s->arena, &s->err));
		session_must(s, s->db->driver->commit(s->db, &s->err));
	}
	memcpy(s->result, results, sizeof results);
	assert_value_rows(s);
}

/* As wide as a statement can be, whatever that is: parameter i is an i, t or b in turn, and so are the columns. */
static struct {
	char sql[512], in[STMT_PARAMS_MAX + 1], out[STMT_COLUMNS_MAX + 1];
	struct db_stmt stmt;
} wide;

static void make_wide(void)
{
	struct strbuf sql;

	strbuf_init(&sql, sizeof wide.sql - 1);
	strbuf_add_str(&sql, "SELECT {ord}");
	for (int i = 0; i < STMT_PARAMS_MAX; i++)
		wide.in[i] = "itb"[i % 3];
	for (int i = 0; i < STMT_COLUMNS_MAX; i++) {
		wide.out[i] = wide.in[i % STMT_PARAMS_MAX];
		strbuf_addf(&sql, "%s?%d", i ? ", " : "", i % STMT_PARAMS_MAX + 1);
	}
	strbuf_add_str(&sql, "{from}");
	assert_false(sql.failed);
	memcpy(wide.sql, sql.p, sql.n + 1);
	wide.stmt = (struct db_stmt){.name = "test_wide", .sql = wide.sql, .in = wide.in, .out = wide.out};
	strbuf_release(&sql);
}

static struct db_value wide_value(size_t unit, size_t i)
{
	switch (i % 3) {
	case 0:
		return db_int((int64_t)(unit * 100 + i));
	case 1:
		return i == 7 ? db_null() : db_str("text");
	}
	return db_blob(slice_of("\0\1", 2));
}

static void as_many_parameters_and_columns_as_allowed(void **state)
{
	struct session *s = *state;

	make_wide();
	for (size_t n = 1; n <= 3; n += 2) { /* alone, and together */
		session_reset(s);
		for (size_t u = 0; u < n; u++) {
			struct db_value params[STMT_PARAMS_MAX];

			for (size_t i = 0; i < STMT_PARAMS_MAX; i++)
				params[i] = wide_value(u, i);
			unit_add(session_unit(s), UNIT_ANY, &wide.stmt, STMT_PARAMS_MAX, params);
		}
		session_must(s, session_run(s));
		for (size_t u = 0; u < n; u++) {
			assert_int_equal(s->result[u].rows[0].columns, STMT_COLUMNS_MAX);
			for (size_t i = 0; i < STMT_COLUMNS_MAX; i++) {
				struct db_value wanted = wide_value(u, i % STMT_PARAMS_MAX);
				const struct db_value *got = cell(s, u, 0, 0, i);

				assert_int_equal(got->type, wanted.type);
				if (wanted.type == DB_INT)
					assert_int_equal(got->i, wanted.i);
				else if (wanted.type != DB_NULL)
					assert_true(slice_eq(got->s, wanted.s));
			}
		}
	}
}

/* The type of an s is inferred from its place: whole numbers and text both do for either column. */
static void inferred_parameters(void **state)
{
	static const struct db_stmt by_id = {
		.name = "test_by_id", .sql = "SELECT id FROM item WHERE id = ?1", .in = "s", .out = "i"};
	static const struct db_stmt by_t = {
		.name = "test_by_t", .sql = "SELECT id FROM item WHERE t = ?1", .in = "s", .out = "i"};
	const struct db_value seven[] = {db_int(7), db_str("7"), db_text(slice_of("77", 1))};
	struct session *s = *state;

	session_reset(s);
	UNIT_ADD(session_unit(s), UNIT_VERDICT, &item_put, db_int(7), db_int(0), db_str("7"), db_null());
	UNIT_ADD(session_unit(s), UNIT_VERDICT, &item_put, db_int(8), db_int(0), db_null(), db_null());
	session_must(s, session_run(s));
	session_reset(s);
	for (size_t i = 0; i < 3; i++) {
		unit_add(session_unit(s), UNIT_MUST, &by_id, 1, &seven[i]);
		unit_add(session_unit(s), UNIT_MUST, &by_t, 1, &seven[i]);
	}
	UNIT_ADD(session_unit(s), UNIT_ANY, &by_t, db_null());
	UNIT_ADD(session_unit(s), UNIT_ANY, &by_t, db_str(""));
	session_must(s, session_run(s));
	for (size_t u = 0; u < 6; u++) {
		assert_int_equal(s->result[u].rows[0].n, 1);
		assert_int_equal(cell(s, u, 0, 0, 0)->i, 7);
	}
	assert_int_equal(s->result[6].rows[0].n, 0);
	assert_int_equal(s->result[7].rows[0].n, 0);
}

/* Where the stores need different words. Each text uses the parameters that it needs. */
static const struct db_stmt own_words = {
	.name = "test_own_words",
	.sql = "SELECT 'sqlite' WHERE ?1 = 1",
	.pg_sql = "SELECT 'postgres'::text WHERE ?1 = ?2 - 1",
	.in = "ii",
	.out = "t",
};
static const struct db_stmt sqlite_alone = {.name = "test_sqlite_alone",
					    .sql = "UPDATE item SET n = n + ?2 WHERE id = ?1",
					    .pg_sql = "",
					    .in = "ii",
					    .out = ""};
static const struct db_stmt postgres_alone = {.name = "test_postgres_alone",
					      .sql = "",
					      .pg_sql = "UPDATE item SET n = n + ?2 WHERE id = ?1",
					      .in = "ii",
					      .out = ""};

static void each_store_has_its_words(void **state)
{
	struct session *s = *state;
	bool sqlite = s->db->driver == &db_sqlite;

	item_must_put(s, 1, 10);
	for (int savepoint = 0; savepoint < 2; savepoint++) {
		session_reset(s);
		for (size_t u = 0; u < 2; u++) {
			struct unit *unit = session_unit(s);

			UNIT_ADD(unit, UNIT_VERDICT, &own_words, db_int(1), db_int(2));
			UNIT_ADD(unit, UNIT_ANY, &sqlite_alone, db_int(1), db_int(100));
			UNIT_ADD(unit, UNIT_ANY, &postgres_alone, db_int(1), db_int(2));
			UNIT_ADD(unit, savepoint ? UNIT_MUST : UNIT_ANY, &own_words, db_int((int64_t)u + 1), db_int(2));
		}
		session_must(s, session_run(s));
		assert_verdict(s, 0, UNIT_WON, -1);
		assert_verdict(s, 1, savepoint ? UNIT_REFUSED : UNIT_WON, savepoint ? 3 : -1);
		assert_true(slice_is(cell(s, 0, 0, 0, 0)->s, sqlite ? "sqlite" : "postgres"));
		assert_int_equal(s->result[0].rows[1].n + s->result[0].rows[2].n, 0);
		assert_int_equal(s->result[0].rows[3].n, 1);
	}
	assert_int_equal(item_n(s, 1, ABSENT), sqlite ? 310 : 16);
}

static void rows_keep_the_order_of_the_store(void **state)
{
	struct session *s = *state;

	for (int64_t id = 1; id <= 9; id++)
		item_must_put(s, id, id);
	session_reset(s);
	UNIT_ADD(session_unit(s), UNIT_ANY, &item_range, db_int(2), db_int(5));
	UNIT_ADD(session_unit(s), UNIT_ANY, &item_range, db_int(20), db_int(30));
	UNIT_ADD(session_unit(s), UNIT_MUST, &item_range, db_int(7), db_int(9));
	session_must(s, session_run(s));
	assert_int_equal(s->result[0].rows[0].n, 4);
	assert_int_equal(s->result[1].rows[0].n, 0);
	assert_int_equal(s->result[2].rows[0].n, 3);
	for (size_t row = 0; row < 4; row++)
		assert_int_equal(cell(s, 0, 0, row, 0)->i, 2 + row);
}

/* ---- many units ---- */

static void a_full_batch_with_mixed_verdicts_and_reads(void **state)
{
	struct session *s = *state;

	session_reset(s);
	for (int64_t i = 0; i < SESSION_UNITS_MAX; i++)
		add_put(session_unit(s), UNIT_VERDICT, i, i + 1000);
	session_must(s, session_run(s));
	session_reset(s);
	for (int64_t i = 0; i < SESSION_UNITS_MAX; i++) {
		struct unit *unit = session_unit(s);

		switch (i % 4) {
		case 0: /* wins, and writes after it */
			add_move(unit, UNIT_VERDICT, i, i + 1000, i);
			add_put(unit, UNIT_ANY, 10000 + i, i);
			break;
		case 1: /* loses */
			add_move(unit, UNIT_VERDICT, i, i + 1, i);
			add_put(unit, UNIT_ANY, 10000 + i, i);
			break;
		case 2: /* loses late */
			add_put(unit, UNIT_ANY, 10000 + i, i);
			add_move(unit, UNIT_MUST, i, i + 1, i);
			break;
		case 3: /* reads */
			UNIT_ADD(unit, UNIT_ANY, &item_get, db_int(i));
			break;
		}
	}
	session_must(s, session_run(s));
	for (size_t i = 0; i < SESSION_UNITS_MAX; i++) {
		assert_verdict(s, i, (enum unit_verdict[]){UNIT_WON, UNIT_LOST, UNIT_REFUSED, UNIT_WON}[i % 4],
			       (int[]){-1, 0, 1, -1}[i % 4]);
		if (i % 4 == 3)
			assert_int_equal(cell(s, i, 0, 0, 1)->i, i + 1000);
	}
	assert_int_equal(item_count(s), SESSION_UNITS_MAX + SESSION_UNITS_MAX / 4);
}

static void large_values_pass_in_both_directions(void **state)
{
	struct session *s = *state;
	size_t bytes = 40000; /* 20 MB in all: more than any socket's buffer, and more than one set holds */
	char *payload = malloc(bytes);

	assert_non_null(payload);
	for (size_t i = 0; i < bytes; i++)
		payload[i] = (char)(i * 31);
	session_reset(s);
	for (int64_t i = 0; i < SESSION_UNITS_MAX; i++)
		UNIT_ADD(session_unit(s), UNIT_VERDICT, &item_put, db_int(i), db_int(1000 + i), db_null(),
			 db_blob(slice_of(payload, bytes - (size_t)i)));
	session_must(s, session_run(s));
	session_reset(s);
	add_gets(s, 0, SESSION_UNITS_MAX);
	session_must(s, session_run(s));
	for (size_t i = 0; i < SESSION_UNITS_MAX; i++) {
		assert_int_equal(cell(s, i, 0, 0, 1)->i, 1000 + i);
		assert_true(slice_eq(cell(s, i, 0, 0, 3)->s, slice_of(payload, bytes - i)));
	}
	free(payload);
}

static void an_arena_that_is_too_small_is_said(void **state)
{
	struct session *s = *state;
	struct arena small;
	char payload[60000] = {0};

	session_reset(s);
	UNIT_ADD(session_unit(s), UNIT_VERDICT, &item_put, db_int(1), db_int(1), db_null(),
		 db_blob(slice_of(payload, sizeof payload)));
	session_must(s, session_run(s));
	for (size_t units = 1; units <= 2; units++) {
		session_reset(s);
		add_gets(s, 1, (int64_t)units);
		arena_init(&small, sizeof payload);
		session_must(s, s->db->driver->begin(s->db, &s->err));
		assert_int_equal(s->db->driver->execute(s->db, s->units, s->n, s->result, &small, &s->err),
				 HX_TOO_LARGE);
		arena_release(&small);
	}
	assert_int_equal(item_n(s, 1, ABSENT), 1); /* and the connection is as good as before */
}

static struct CMUnitTest tests[] = {
	TEST(zero_rows_mean_what_the_rule_says),
	TEST(a_single_unit_is_judged_alike),
	TEST(a_lost_unit_leaves_no_row),
	TEST(a_late_verdict_leaves_no_row),
	TEST(must_names_the_line_and_undoes),
	TEST(units_under_savepoints_do_not_touch_each_other),
	TEST(insert_and_see),
	TEST(all_lines_of_a_unit_run_in_order),
	TEST(values_come_back_as_they_went),
	TEST(values_come_back_from_single_units),
	TEST(as_many_parameters_and_columns_as_allowed),
	TEST(inferred_parameters),
	TEST(each_store_has_its_words),
	TEST(rows_keep_the_order_of_the_store),
	TEST(a_full_batch_with_mixed_verdicts_and_reads),
	TEST(large_values_pass_in_both_directions),
	TEST(an_arena_that_is_too_small_is_said),
};

int main(void)
{
	return run_on_every_store(tests, sizeof tests / sizeof *tests);
}
