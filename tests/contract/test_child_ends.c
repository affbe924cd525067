/*
 * Children that end in one group tell their parent at once (unit_share): each of them is done, the parent is due, and one of them is
 * its winner, whichever; on PostgreSQL in one set, by few statements, whatever their number.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "flow/run_children.h"
#include "support/item.h"
#include "task/group.h"

#define PARENT 1
#define FIRST 10
#define KIDS 40
#define FENCE 1

static const char rows[] =
	"INSERT INTO hx_subject (id, kind, status, version, op, fence, effort, updated_at, seq, head)"
	" VALUES (1, 1, 'WAITING', 3, 0, 1, 0, 1000, 3, hx_link(NULL, 1, 1, '', 'x', 1, 0, 0, 1000, 'here'));"
	"INSERT INTO hx_run (subject, workspace, workflow, definition_version, requester, input, created_at, awaits)"
	" VALUES (1, 'default', 'lines', 1, 'me', '{}', 1, 'child');"
	"INSERT INTO hx_subject (id, kind, status, version, op, fence, effort, owner, until, updated_at, seq, head)"
	" WITH RECURSIVE n(i) AS (SELECT 10 UNION ALL SELECT i + 1 FROM n WHERE i < 49)"
	" SELECT i, 1, 'RUNNING', 3, 0, 1, 0, 'here', 9000000000000, 1000, 3, hx_link(NULL, i, 1, '', 'x', 1, 0, 0, 1000, 'here') FROM n;"
	"INSERT INTO hx_run (subject, workspace, workflow, definition_version, requester, input, created_at, parent, parent_step,"
	" parent_n, child)"
	" WITH RECURSIVE n(i) AS (SELECT 10 UNION ALL SELECT i + 1 FROM n WHERE i < 49)"
	" SELECT i, 'default', 'line', 1, 'me', '{}', 1, 1, 'each', i - 10, 'open' FROM n";

static int64_t ask(struct session *s, const char *sql)
{
	struct db_stmt stmt = {.name = "test_child_ends", .sql = sql, .in = "", .out = "i"};
	int64_t value;

	session_reset(s);
	unit_add(session_unit(s), UNIT_ANY, &stmt, 0, NULL);
	session_must(s, session_run(s));
	value = db_cell(&s->result[0].rows[0], 0, 0)->i;
	db_close(s->db); /* it keeps statements by their address */
	s->db = store_open(s->store);
	return value;
}

static void add_end(struct session *s, int64_t n, const char *to)
{
	struct run_row row = {.subject = FIRST + n, .parent = PARENT, .parent_n = n, .around = PARENT};
	struct stamp stamp = {.op = n + 100, .at = {2000}, .node = "here"};
	struct move move = {row.subject, "RUNNING", to};
	struct unit *unit = session_unit(s);

	subject_advance(unit, &stamp, &move, FENCE, &(struct stride){.transitions = 1, .child = CHILD_UNTOLD});
	run_child_ended(unit, &row, to);
}

static void all_end_at_once(void **state)
{
	struct session *s = *state;
	static size_t picked[GROUP_UNITS_MAX];
	static struct group_table table;

	db_close(s->db);
	s->db = store_open_migrated(s->store);
	session_must(s, s->db->driver->script(s->db, rows, &s->err));
	session_reset(s);
	for (int64_t n = 0; n < KIDS; n++)
		add_end(s, n, n % 4 ? "COMPLETED" : "FAILED");
	assert_int_equal(group_pick(&table, s->units, KIDS, KIDS, picked), KIDS);
	session_must(s, session_run(s));
	for (int64_t n = 0; n < KIDS; n++)
		assert_int_equal(s->result[n].verdict, UNIT_WON);
	assert_int_equal(ask(s, "SELECT count(*) FROM hx_run WHERE child = 'done'"), KIDS / 4 * 3);
	assert_int_equal(ask(s, "SELECT count(*) FROM hx_run WHERE child = 'failed'"), KIDS / 4);
	assert_int_equal(ask(s, "SELECT count(*) FROM hx_history WHERE subject >= 10"), KIDS);
	assert_int_equal(ask(s, "SELECT count(*) FROM hx_run WHERE subject = 1 AND due_at IS NOT NULL"), 1);
	assert_int_equal(
		ask(s, "SELECT count(*) FROM hx_run p JOIN hx_run k ON k.parent = p.subject AND k.parent_n = p.winner"
		       " WHERE k.child = 'done'"),
		1);
}

/* One that is to fail, and has not read it, loses; the others are not held up by that. */
static void one_is_to_fail(void **state)
{
	struct session *s = *state;

	db_close(s->db);
	s->db = store_open_migrated(s->store);
	session_must(s, s->db->driver->script(s->db, rows, &s->err));
	session_must(s, s->db->driver->script(s->db, "UPDATE hx_run SET asked = 'fail' WHERE subject = 11", &s->err));
	session_reset(s);
	for (int64_t n = 0; n < 3; n++)
		add_end(s, n, "COMPLETED");
	session_must(s, session_run(s));
	assert_int_equal(s->result[0].verdict, UNIT_WON);
	assert_int_equal(s->result[1].verdict, UNIT_LOST);
	assert_int_equal(s->result[2].verdict, UNIT_WON);
	assert_int_equal(ask(s, "SELECT count(*) FROM hx_run WHERE child = 'done'"), 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(all_end_at_once, session_set_up_file, session_tear_down),
		cmocka_unit_test_setup_teardown(all_end_at_once, session_set_up_postgres, session_tear_down),
		cmocka_unit_test_setup_teardown(one_is_to_fail, session_set_up_file, session_tear_down),
		cmocka_unit_test_setup_teardown(one_is_to_fail, session_set_up_postgres, session_tear_down),
	};

	return cmocka_run_group_tests_name("children that end at once", tests, NULL, NULL);
}
