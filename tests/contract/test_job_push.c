/*
 * Pushes of several callers in one transaction, on both stores: each ends as if they had come one after the other. On PostgreSQL
 * they are as many statements as one push is.
 */
#include "contract/job_desks.h"

#define PUSHES 4
#define ITEMS 2

static struct {
	struct job_push push[PUSHES];
	struct job_push_item items[PUSHES][ITEMS];
	struct unit unit[PUSHES];
	struct unit_result result[PUSHES];
} crowd;

static void begin(size_t i, const char *workspace, size_t n, const char *first, const char *second)
{
	const char *keys[ITEMS] = {first, second};
	struct ask ask = {.unit = &crowd.unit[i]};

	for (size_t k = 0; k < n; k++)
		crowd.items[i][k] = (struct job_push_item){.queue = slice_str("q"),
							   .payload = slice_str("{\"n\":1}"),
							   .key = keys[k] ? slice_str(keys[k]) : slice_of(NULL, 0)};
	job_push_init(&crowd.push[i], slice_str(workspace), crowd.items[i], n, &world.a.arena);
	desk_give(&world.a, &crowd.push[i].task, &(struct answer){.kind = ANSWER_START});
	crowd.push[i].task.kind->ask(&crowd.push[i].task, &ask);
	assert_int_equal(ask.kind, ASK_COMMIT);
}

static void run_all(void)
{
	struct unit *units[PUSHES];
	struct db *db = world.a.db;
	struct hx_error err = {0};

	for (size_t i = 0; i < PUSHES; i++)
		units[i] = &crowd.unit[i];
	if (db->driver->begin(db, &err) || db->driver->execute(db, units, PUSHES, crowd.result, &world.a.rows, &err) ||
	    db->driver->commit(db, &err))
		fail_msg("%s", err.detail);
	for (size_t i = 0; i < PUSHES; i++) {
		struct ask ask = {.unit = &crowd.unit[i]};

		desk_give(&world.a, &crowd.push[i].task,
			  &(struct answer){.kind = ANSWER_COMMIT, .result = &crowd.result[i]});
		crowd.push[i].task.kind->ask(&crowd.push[i].task, &ask);
		assert_int_equal(ask.kind, ASK_DONE);
		assert_int_equal(ask.code, HX_OK);
	}
}

static void a_key_is_one_job_among_all_of_them(void **state)
{
	(void)state;
	begin(0, "default", 2, "k", NULL);
	begin(1, "default", 1, "k", NULL);
	begin(2, "other", 1, "k", NULL);
	begin(3, "default", 2, "z", "z");
	run_all();
	assert_true(crowd.items[0][0].created && crowd.items[0][1].created);
	assert_false(crowd.items[1][0].created);
	assert_int_equal(crowd.items[1][0].subject, crowd.items[0][0].subject);
	assert_true(crowd.items[2][0].created);
	assert_true(crowd.items[3][0].created);
	assert_false(crowd.items[3][1].created);
	assert_int_equal(crowd.items[3][1].subject, crowd.items[3][0].subject);
	desk_audit(&world.a, crowd.items[0][0].subject);
	desk_audit(&world.a, crowd.items[0][1].subject);
	desk_audit(&world.a, crowd.items[2][0].subject);
	desk_audit(&world.a, crowd.items[3][0].subject);
	assert_int_equal(desk_claim(&world.a, "q", 10, LEASE_MS), 3);
}

static void many_are_as_many_statements_as_one(void **state)
{
	(void)state;
	begin(0, "default", 1, "k", NULL);
	assert_true(unit_is_plain(&crowd.unit[0]));
	for (unsigned i = 0; i < crowd.unit[0].lines_n; i++) {
		const struct db_stmt *stmt = crowd.unit[0].lines[i].stmt;

		if (!stmt_is_empty(stmt, STMT_POSTGRES_ROW) && !stmt_has_set_form(stmt))
			fail_msg("%s is executed once for each push", stmt->name);
	}
}

/* Within the time of a unit, and in a store whose tables were never analysed: there the whole queue was gone through for each key. */
static void a_thousand_keys_are_looked_up(void **state)
{
	static struct job_push_item items[JOB_PUSH_MAX];
	static char keys[JOB_PUSH_MAX][20];
	struct hx_error err = {0};
	struct job_push push;

	(void)state;
	if (world.a.db->driver->script(world.a.db, "SET statement_timeout = '2s'", &err) != HX_OK)
		fail_msg("%s", err.detail);
	for (int round = 0; round < 6; round++) {
		for (int i = 0; i < JOB_PUSH_MAX; i++) {
			snprintf(keys[i], sizeof keys[i], "%d-%d", round % 5, i);
			items[i] = (struct job_push_item){
				.queue = slice_str("q"), .payload = slice_str("{}"), .key = slice_str(keys[i])};
		}
		job_push_init(&push, slice_str("default"), items, JOB_PUSH_MAX, &world.a.arena);
		assert_int_equal(desk_drive(&world.a, &push.task), HX_OK);
		for (int i = 0; i < JOB_PUSH_MAX; i++)
			assert_int_equal(items[i].created, round < 5);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		BOTH(a_key_is_one_job_among_all_of_them),
		POSTGRES(a_thousand_keys_are_looked_up),
		POSTGRES(many_are_as_many_statements_as_one),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests_name("job push", tests, NULL, NULL);
}
