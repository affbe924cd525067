/* Building units: what fits, and what is a programmer's mistake. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "db/unit.h"

static const struct db_stmt none = {.name = "none", .sql = "SELECT 1", .in = "", .out = "i"};
static const struct db_stmt three = {.name = "three", .sql = "SELECT ?1, ?2, ?3", .in = "itb", .out = "itb"};

/* With as many parameters as a statement can have. */
static char full_in[STMT_PARAMS_MAX + 1];
static const struct db_stmt full = {.name = "full", .sql = "SELECT 1", .in = full_in, .out = "i"};

static void a_unit_starts_empty(void **state)
{
	struct unit unit;

	(void)state;
	memset(&unit, 0xff, sizeof unit);
	unit_init(&unit, 42);
	assert_int_equal(unit.op, 42);
	assert_int_equal(unit.lines_n, 0);
	assert_int_equal(unit.subjects_n, 0);
	assert_int_equal(unit.wakes_n, 0);
	assert_true(unit_is_plain(&unit));
}

static void lines_keep_their_parameters(void **state)
{
	struct unit unit;

	(void)state;
	unit_init(&unit, 1);
	UNIT_ADD(&unit, UNIT_VERDICT, &three, db_int(7), db_str("x"), db_blob(slice_of("\0", 1)));
	UNIT_ADD(&unit, UNIT_ANY, &three, db_null(), db_null(), db_null());
	unit_add(&unit, UNIT_ANY, &none, 0, NULL);
	assert_int_equal(unit.lines_n, 3);
	assert_ptr_equal(unit.lines[0].stmt, &three);
	assert_int_equal(unit.lines[0].rule, UNIT_VERDICT);
	assert_int_equal(unit.lines[0].params_n, 3);
	assert_int_equal(unit.lines[0].params[0].i, 7);
	assert_true(slice_is(unit.lines[0].params[1].s, "x"));
	assert_int_equal(unit.lines[0].params[2].s.n, 1);
	assert_int_equal(unit.lines[1].params[2].type, DB_NULL);
	assert_int_equal(unit.lines[2].params_n, 0);
}

static void add_none(struct unit *unit, enum unit_rule rule)
{
	unit_add(unit, rule, &none, 0, NULL);
}

static void plain_means_that_nothing_is_lost_late(void **state)
{
	struct unit unit;

	(void)state;
	for (int first = UNIT_VERDICT; first <= UNIT_ANY; first++) {
		for (int second = UNIT_VERDICT; second <= UNIT_ANY; second++) {
			unit_init(&unit, 1);
			add_none(&unit, (enum unit_rule)first);
			assert_true(unit_is_plain(&unit));
			add_none(&unit, (enum unit_rule)second);
			assert_int_equal(unit_is_plain(&unit), second == UNIT_ANY);
			add_none(&unit, UNIT_ANY);
			assert_int_equal(unit_is_plain(&unit), second == UNIT_ANY);
		}
	}
}

static void subjects_are_named_once(void **state)
{
	struct unit a, b;

	(void)state;
	unit_init(&a, 1);
	unit_init(&b, 2);
	assert_false(unit_touches_same(&a, &b));
	for (int64_t id = 1; id <= UNIT_SUBJECTS_MAX; id++) {
		unit_touch(&a, id);
		unit_touch(&a, id);
	}
	assert_int_equal(a.subjects_n, UNIT_SUBJECTS_MAX);
	unit_touch(&a, 1); /* full, and still no mistake */
	unit_touch(&b, 99);
	assert_false(unit_touches_same(&a, &b));
	unit_touch(&b, UNIT_SUBJECTS_MAX);
	assert_true(unit_touches_same(&a, &b));
	assert_true(unit_touches_same(&b, &a));
}

static void as_much_as_fits(struct unit *unit)
{
	struct db_value params[STMT_PARAMS_MAX];

	for (int i = 0; i < STMT_PARAMS_MAX; i++)
		params[i] = db_int(i);
	unit_init(unit, 1);
	for (int i = 0; i < UNIT_LINES_MAX; i++)
		unit_add(unit, UNIT_ANY, &full, STMT_PARAMS_MAX, params);
	for (int64_t i = 0; i < UNIT_SUBJECTS_MAX; i++)
		unit_touch(unit, i);
	for (int64_t i = 0; i < UNIT_WAKES_MAX; i++)
		unit_wake(unit, i);
}

static void ceilings_can_be_reached(void **state)
{
	struct unit unit;

	(void)state;
	as_much_as_fits(&unit);
	assert_int_equal(unit.lines_n, UNIT_LINES_MAX);
	assert_int_equal(unit.wakes_n, UNIT_WAKES_MAX);
	assert_int_equal(unit.lines[UNIT_LINES_MAX - 1].params[STMT_PARAMS_MAX - 1].i, STMT_PARAMS_MAX - 1);
}

static void one_line_more(struct unit *unit)
{
	add_none(unit, UNIT_ANY);
}

static void one_subject_more(struct unit *unit)
{
	unit_touch(unit, UNIT_SUBJECTS_MAX + 1);
}

static void one_wake_more(struct unit *unit)
{
	unit_wake(unit, UNIT_WAKES_MAX); /* the same again would be no more */
}

static void one_parameter_more(struct unit *unit)
{
	struct db_value params[STMT_PARAMS_MAX + 1];

	for (int i = 0; i <= STMT_PARAMS_MAX; i++)
		params[i] = db_int(i);
	unit_init(unit, 1);
	unit_add(unit, UNIT_ANY, &full, STMT_PARAMS_MAX + 1, params);
}

static void too_few_parameters(struct unit *unit)
{
	unit_init(unit, 1);
	UNIT_ADD(unit, UNIT_ANY, &three, db_int(1), db_str("x"));
}

static void too_many_parameters(struct unit *unit)
{
	unit_init(unit, 1);
	UNIT_ADD(unit, UNIT_ANY, &none, db_int(1));
}

static void a_wrong_type(struct unit *unit)
{
	unit_init(unit, 1);
	UNIT_ADD(unit, UNIT_ANY, &three, db_str("1"), db_str("x"), db_null());
}

static void text_for_a_blob(struct unit *unit)
{
	unit_init(unit, 1);
	UNIT_ADD(unit, UNIT_ANY, &three, db_int(1), db_str("x"), db_str("x"));
}

/* In a process of its own, which must end by its assertion. */
static void assert_aborts(void (*mistake)(struct unit *))
{
	int status;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		struct unit unit;

		(void)!freopen("/dev/null", "w", stderr); /* its words are expected */
		signal(SIGABRT, SIG_DFL);
		as_much_as_fits(&unit);
		mistake(&unit);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}

static void mistakes_are_asserted(void **state)
{
	(void)state;
	assert_aborts(one_line_more);
	assert_aborts(one_subject_more);
	assert_aborts(one_wake_more);
	assert_aborts(one_parameter_more);
	assert_aborts(too_few_parameters);
	assert_aborts(too_many_parameters);
	assert_aborts(a_wrong_type);
	assert_aborts(text_for_a_blob);
}

static void verdicts_have_names(void **state)
{
	(void)state;
	assert_string_equal(unit_verdict_name(UNIT_WON), "won");
	assert_string_equal(unit_verdict_name(UNIT_LOST), "lost");
	assert_string_equal(unit_verdict_name(UNIT_REFUSED), "refused");
	assert_string_equal(unit_verdict_name(UNIT_FAILED), "failed");
	assert_string_equal(unit_verdict_name(UNIT_UNKNOWN), "unknown");
}

static void cells_are_found_by_row_and_column(void **state)
{
	struct db_value cells[6];
	struct db_rows rows = {.n = 2, .columns = 3, .cells = cells};

	(void)state;
	for (int i = 0; i < 6; i++)
		cells[i] = db_int(i);
	assert_int_equal(db_cell(&rows, 0, 0)->i, 0);
	assert_int_equal(db_cell(&rows, 0, 2)->i, 2);
	assert_int_equal(db_cell(&rows, 1, 0)->i, 3);
	assert_int_equal(db_cell(&rows, 1, 2)->i, 5);
}

int main(void)
{
	memset(full_in, 'i', STMT_PARAMS_MAX);

	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_unit_starts_empty),
		cmocka_unit_test(lines_keep_their_parameters),
		cmocka_unit_test(plain_means_that_nothing_is_lost_late),
		cmocka_unit_test(subjects_are_named_once),
		cmocka_unit_test(ceilings_can_be_reached),
		cmocka_unit_test(mistakes_are_asserted),
		cmocka_unit_test(verdicts_have_names),
		cmocka_unit_test(cells_are_found_by_row_and_column),
	};

	return cmocka_run_group_tests_name("unit", tests, NULL, NULL);
}
