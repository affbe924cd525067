/*
 * What one item costs must not grow with the batch: of the statements that run for each item, or each time somebody looks, none
 * walks over the items. In a batch of 40,000, half of them ended, many of them at rest, each store is asked how it would carry
 * them out: SQLite for its plan, PostgreSQL for what it then really read, with and without statistics.
 */
#include "contract/plans.h"
#include "support/subjects.h"
#include "support/tally.h"

#define BATCH 1
#define ACCOUNT 2
#define FENCE 3
#define WALKED_MAX 100 /* rows that one statement may read in vain */

/*
 * 0 to 19,999 have ended · 20,000 to 29,999 rest, the first of them in doubt · 30,000 to 30,009 run, two under an older fence ·
 * the rest was never begun
 */
#define CASES(first, rest, older, now, else_)                                                                          \
	"CASE WHEN x.n < 20000 THEN " first " WHEN x.n < 30000 THEN " rest " WHEN x.n < 30002 THEN " older             \
	" WHEN x.n < 30010 THEN " now " ELSE " else_ " END"
static const char fixture[] =
	"INSERT INTO hx_account (subject, workspace, name, balance, seq, created_at) VALUES (2, 'w2', 'a2', 1000000, 1, 1);"
	"INSERT INTO hx_batch (subject, workspace, workflow, definition_version, requester, account, created_at, loaded_at, total,"
	" next_n) VALUES (1, 'w2', 'render', 1, 'ann', 2, 1, 1, 40000, 30010);"
	"WITH RECURSIVE x(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM x WHERE n < 39999)"
	" INSERT INTO hx_batch_item (batch, n, input, cost, charged, status, attempt, fence, doubt, due_at)"
	" SELECT 1, x.n, '{}', 1, " CASES("1", "0", "1", "1", "0") ", " CASES(
		"'SUCCEEDED'", "'PENDING'", "'RUNNING'", "'RUNNING'",
		"'PENDING'") ", " CASES("1", "1", "1", "1", "0") ","
								 " " CASES("3", "3", "2", "3", "0") ", 0, " CASES(
									 "NULL", "4000000000000 + x.n", "NULL", "NULL",
									 "NULL") " FROM x";

static inline int set_up(enum store_kind kind)
{
	struct stamp stamp = {.op = 1, .at = {1}, .node = "here"};
	struct unit_result result;
	struct hx_error err = {0};
	struct unit unit;

	world_open(kind);
	script(fixture);
	unit_init(&unit, 1);
	subject_create(&unit, &stamp, ACCOUNT, account_kind(), "OPEN");
	subject_create(&unit, &stamp, BATCH, batch_kind(), BATCH_RUNNING);
	assert_int_equal(db_run_unit(world.db, &unit, &result, &world.arena, &err), HX_OK);
	script("UPDATE hx_subject SET owner = 'here', fence = 3, until = 4000000000000 WHERE id = 1");
	return 0;
}

/* ---- asking for a plan ---- */

/* What does many units at once, for one of them: each array of the set form has one element. */
static const struct db_stmt *explained_together(const struct db_stmt *stmt)
{
	struct db_stmt *one = arena_zalloc(&world.arena, sizeof *one);
	struct strbuf set, text;

	strbuf_init(&set, 65536);
	strbuf_init(&text, 65536);
	stmt_expand(stmt, STMT_POSTGRES_SET, &set);
	for (const char *p = set.p; *p;) {
		const char *end = *p == '$' ? strstr(p, "[]") : NULL;

		if (end)
			strbuf_addf(&text, "ARRAY[%.*s]", (int)(end - p), p);
		else
			strbuf_add_char(&text, *p);
		p = end ? end + 2 : p + 1;
	}
	strbuf_add_char(&text, '\0');
	one->in = stmt->in;
	one->sql = arena_copy(&world.arena, strbuf_slice(&text)).p;
	strbuf_release(&set);
	strbuf_release(&text);
	return explained(one);
}

/* Does this line of a plan walk over items? */
static bool walks(struct slice line)
{
	char text[1000];
	const char *removed;

	snprintf(text, sizeof text, "%.*s", SLICE_ARGS(line));
	if (!world.postgres)
		return (strstr(text, "SCAN") && strstr(text, "hx_batch_item")) ||
		       (strstr(text, "sqlite_autoindex_hx_batch_item_1") && !strstr(text, "n=?") &&
			!strstr(text, "n>"));
	removed = strstr(text, "Rows Removed by Filter: ");
	return strstr(text, "Seq Scan on hx_batch_item") || (removed && atoi(removed + 24) > WALKED_MAX);
}

static int look_at_line(const struct db_stmt *stmt, const struct db_stmt *asking, unsigned params_n,
			const struct db_value *params, const char *what)
{
	struct unit wrapped, *units[] = {&wrapped};
	struct unit_result result;
	struct hx_error err = {0};
	int bad = 0;

	unit_init(&wrapped, 1);
	unit_add(&wrapped, UNIT_ANY, asking, params_n, params);
	if (world.db->driver->execute(world.db, units, 1, &result, &world.arena, &err) != HX_OK)
		fail_msg("%s, %s: %s", what, stmt->name, err.detail);
	for (size_t row = 0; row < result.rows[0].n; row++) {
		struct slice text = plan_line(&result.rows[0], row);

		if (getenv("HAPAX_TEST_PLANS"))
			printf("%s, %s: %.*s\n", what, stmt->name, SLICE_ARGS(text));
		if (walks(text)) {
			printf("%s, %s walks: %.*s\n", what, stmt->name, SLICE_ARGS(text));
			bad++;
		}
	}
	return bad;
}

/* All lines of the unit, one after the other, in a transaction that is rolled back; and what does it together with others. */
static int look_at(struct unit *unit, const char *what)
{
	struct hx_error err = {0};
	int bad = 0;

	assert_int_equal(world.db->driver->begin(world.db, &err), HX_OK);
	for (unsigned i = 0; i < unit->lines_n; i++) {
		const struct unit_line *line = &unit->lines[i];

		if (stmt_is_empty(line->stmt, world.postgres ? STMT_POSTGRES_ROW : STMT_SQLITE))
			continue;
		bad += look_at_line(line->stmt, explained(line->stmt), line->params_n, line->params, what);
	}
	world.db->driver->rollback(world.db);
	if (!unit->together || !world.postgres)
		return bad;
	assert_int_equal(world.db->driver->begin(world.db, &err), HX_OK);
	bad += look_at_line(unit->together, explained_together(unit->together), unit->together_n, unit->together_params,
			    what);
	world.db->driver->rollback(world.db);
	return bad;
}

static int look_at_all(const char *when)
{
	struct batch_hold hold = {.subject = BATCH,
				  .account = ACCOUNT,
				  .fence = FENCE,
				  .lease_ms = 60000,
				  .machine = tally_machine(),
				  .ledger_prefix = slice_str("/batch_1/")};
	struct item_end failed = {.n = 30005, .attempt = 1, .status = ITEM_FAILED, .returns = true};
	struct item_end done = {.n = 30005, .attempt = 1, .status = ITEM_SUCCEEDED};
	struct batch_row row = {.subject = BATCH, .account = ACCOUNT, .version = 1};
	struct stamp stamp = {.op = 77, .at = {5}, .node = "here"};
	struct unit unit;
	int bad = 0;

	printf("%s\n", when);
#define LOOK(build)                                                                                                    \
	do {                                                                                                           \
		unit_init(&unit, stamp.op);                                                                            \
		build;                                                                                                 \
		bad += look_at(&unit, #build);                                                                         \
	} while (0)
	LOOK(item_start(&unit, &stamp, &hold));
	LOOK(item_look_up_start(&unit, &hold, 7));
	LOOK(item_end(&unit, &stamp, &hold, &failed));
	LOOK(item_end(&unit, &stamp, &hold, &done));
	LOOK(item_settle(&unit, &stamp, &hold, 30001, 1, slice_str("1")));
	LOOK(item_accept(&unit, &stamp, &hold, 5));
	LOOK(batch_read(&unit, slice_str(""), BATCH));
	LOOK(batch_let_go(&unit, &stamp, &hold, BATCH_RUNNING, 0, false, slice_of(NULL, 0)));
	LOOK(batch_stop_short(&unit, &stamp, &hold));
	LOOK(batch_end(&unit, &stamp, &hold, BATCH_COMPLETED, &row, &(int64_t){7}, &(struct slice){"k", 1},
		       slice_str("{}")));
	LOOK(item_flip(&unit, &stamp, &hold, 10, 20));
	LOOK(item_read_left(&unit, &hold, 10, 20));
	LOOK(item_list(&unit, BATCH, slice_str(""), slice_str(""), 20000, 10));
	hold.fence++; /* nothing runs under an older one: there is nothing to find */
	LOOK(item_start(&unit, &stamp, &hold));
#undef LOOK
	return bad;
}

static void no_statement_walks_over_the_items(void **state)
{
	(void)state;
	assert_int_equal(look_at_all("without statistics"), 0);
	script("ANALYZE");
	assert_int_equal(look_at_all("with statistics"), 0);
}

/* Nobody is left under an older fence, and nothing is due: the start has to find that out, and take the next. */
static void nor_where_there_is_nothing_to_find(void **state)
{
	(void)state;
	script("UPDATE hx_batch_item SET fence = 3 WHERE batch = 1 AND fence = 2");
	assert_int_equal(look_at_all("without statistics"), 0);
	script("ANALYZE");
	assert_int_equal(look_at_all("with statistics"), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(no_statement_walks_over_the_items, set_up_sqlite, tear_down),
		cmocka_unit_test_setup_teardown(nor_where_there_is_nothing_to_find, set_up_sqlite, tear_down),
		cmocka_unit_test_setup_teardown(no_statement_walks_over_the_items, set_up_postgres, tear_down),
		cmocka_unit_test_setup_teardown(nor_where_there_is_nothing_to_find, set_up_postgres, tear_down),
	};

	return cmocka_run_group_tests_name("batch plans", tests, NULL, NULL);
}
