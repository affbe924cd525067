/*
 * What a look at the children of a run costs must not grow with their number: a map over 10,000 is looked at each time some of them have
 * ended. PostgreSQL is asked what it really reads of 5,000 children, nearly all of which are done, by a plan that it has made while there
 * was nothing and keeps, by one made without statistics, and with them.
 */
#include "contract/plans.h"
#include "flow/run_children.h"

static inline int set_up(enum store_kind kind)
{
	world_open(kind);
	return 0;
}

#define READ_MAX 60 /* rows of one scan: as many as are open, and some */

static const char children[] =
	"INSERT INTO hx_run (subject, workspace, workflow, definition_version, requester, input, created_at, parent, parent_step,"
	" parent_n, child, output)"
	" WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 4999)"
	" SELECT i + 10, 'default', 'line', 1, 'me', '{}', 1, 1, 'each', i, CASE WHEN i < 4950 THEN 'done' ELSE 'open' END, '1' FROM n";

/* Under its name, as a lane has it: the plan is made once, for whatever parameters. */
static void prepare(const struct db_stmt *stmt)
{
	struct strbuf text;

	strbuf_init(&text, 65536);
	strbuf_addf(&text, "SET plan_cache_mode = force_generic_plan; PREPARE %s (bigint, text, bigint%s) AS ",
		    stmt->name, stmt->in[3] ? ", bigint, bigint" : "");
	stmt_expand(stmt, STMT_POSTGRES_ROW, &text);
	strbuf_add_char(&text, '\0');
	script(text.p);
	strbuf_release(&text);
}

/* How many rows a scan of this line has read, or passed over. */
static int rows_read(struct slice line)
{
	static const char rows_are[] = "(actual rows=", removed_are[] = "Rows Removed by Filter: ";
	char text[1000];
	const char *rows, *removed;

	snprintf(text, sizeof text, "%.*s", SLICE_ARGS(line));
	rows = strstr(text, "Scan") ? strstr(text, rows_are) : NULL;
	removed = strstr(text, removed_are);
	return removed ? atoi(removed + strlen(removed_are)) : rows ? atoi(rows + strlen(rows_are)) : 0;
}

/* The statement that asks what carrying the other one out has read. */
static const struct db_stmt *asking(const struct db_stmt *stmt, enum run_kids_wanted wanted)
{
	static int counter;
	struct db_stmt *asking = arena_zalloc(&world.arena, sizeof *asking);
	char *words = arena_alloc(&world.arena, 400);

	snprintf(words, 40, "ask_%d", ++counter);
	snprintf(words + 40, 360, "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) EXECUTE %s (1, 'each', %d%s)",
		 stmt->name, (int)wanted, stmt->in[3] ? ", 5000, 1000000" : "");
	*asking = (struct db_stmt){.name = words, .sql = words + 40, .in = "", .out = "t"};
	return asking;
}

/* Returns how many scans have read too much. */
static int look(const struct db_stmt *stmt, enum run_kids_wanted wanted)
{
	struct unit unit, *units[] = {&unit};
	struct unit_result result;
	struct hx_error err = {0};
	int bad = 0;

	unit_init(&unit, /* op= */ 0);
	unit_add(&unit, UNIT_ANY, asking(stmt, wanted), 0, NULL);
	assert_int_equal(world.db->driver->begin(world.db, &err), HX_OK);
	if (world.db->driver->execute(world.db, units, 1, &result, &world.arena, &err) != HX_OK)
		fail_msg("%s: %s", stmt->name, err.detail);
	for (size_t row = 0; row < result.rows[0].n; row++) {
		struct slice line = plan_line(&result.rows[0], row);

		if (rows_read(line) <= READ_MAX)
			continue;
		printf("%s: %.*s\n", stmt->name, SLICE_ARGS(line));
		bad++;
	}
	world.db->driver->rollback(world.db);
	return bad;
}

static int look_at(const struct unit *lines)
{
	int bad = 0;

	for (unsigned i = 0; i < lines->lines_n; i++)
		bad += look(lines->lines[i].stmt, KIDS_COUNT) + look(lines->lines[i].stmt, KIDS_ALL);
	return bad;
}

static void a_look_reads_what_is_open(void **state)
{
	const struct run_step step = {.name = "each", .type = RUN_MAP};
	LOCAL_UNIT(lines);

	(void)state;
	run_children_read(&lines, 1, &step, KIDS_COUNT, 0);
	assert_int_equal(lines.lines_n, 2);
	for (unsigned i = 0; i < lines.lines_n; i++)
		prepare(lines.lines[i].stmt);
	assert_int_equal(look_at(&lines), 0);
	script(children);
	assert_int_equal(look_at(&lines), 0);
	script("ANALYZE");
	assert_int_equal(look_at(&lines), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_look_reads_what_is_open, set_up_postgres, tear_down),
	};

	return cmocka_run_group_tests_name("child plans", tests, NULL, NULL);
}
