/*
 * Counts of runs, on both stores: whatever units have changed statuses, many in one transaction or a few in several at once, and whoever
 * folds meanwhile, the counts are what a look at all runs says.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "flow/run.h"
#include "flow/run_count.h"
#include "support/store.h"

#define RUNS 60
#define FIRST 1000
#define ROUNDS 40

static struct {
	struct store *store;
	struct db *db, *other;
	struct arena arena;
	bool postgres;
	int64_t op;
	int64_t version[RUNS];
	const char *status[RUNS];
} world;

static int set_up(enum store_kind kind)
{
	memset(&world, 0, sizeof world);
	world.store = store_new(kind);
	world.db = store_open_migrated(world.store);
	world.postgres = kind == STORE_POSTGRES;
	if (world.postgres)
		world.other = store_open(world.store);
	arena_init(&world.arena, 512u << 20);
	return 0;
}

static int set_up_sqlite(void **state)
{
	(void)state;
	return set_up(STORE_SQLITE_FILE);
}

static int set_up_postgres(void **state)
{
	(void)state;
	return set_up(STORE_POSTGRES);
}

static int tear_down(void **state)
{
	(void)state;
	db_close(world.db);
	if (world.other)
		db_close(world.other);
	store_free(world.store);
	arena_release(&world.arena);
	return 0;
}

static void begin(struct db *db)
{
	struct hx_error err = {0};

	if (db->driver->begin(db, &err))
		fail_msg("%s", err.detail);
}

static void commit(struct db *db)
{
	struct hx_error err = {0};

	if (db->driver->commit(db, &err))
		fail_msg("%s", err.detail);
}

static void execute(struct db *db, struct unit **units, size_t n, struct unit_result *results)
{
	struct hx_error err = {0};

	if (db->driver->execute(db, units, n, results, &world.arena, &err))
		fail_msg("%s", err.detail);
	for (size_t i = 0; i < n; i++)
		if (results[i].verdict != UNIT_WON)
			fail_msg("%s: %s", units[i]->lines[0].stmt->name, results[i].error.detail);
}

static struct unit_result run_one(struct db *db, struct unit *unit)
{
	struct unit_result result;

	begin(db);
	execute(db, &unit, 1, &result);
	commit(db);
	return result;
}

/* ---- what is so ---- */

static void assert_counted(struct db *db)
{
	struct unit_result result;
	int64_t wanted[RUN_COUNT_STATUSES] = {0};
	int64_t there = 0;

	LOCAL_UNIT(unit);
	for (int i = 0; i < RUNS; i++)
		for (size_t k = 0; world.status[i] && k < RUN_COUNT_STATUSES; k++)
			if (strcmp(world.status[i], run_statuses[k]) == 0)
				wanted[k]++, there++;
	run_count_list(&unit, slice_str("w"), slice_str("f"), slice_str(""), 10);
	result = run_one(db, &unit);
	assert_int_equal(result.rows[0].n, there > 0);
	for (size_t k = 0; there && k < RUN_COUNT_STATUSES; k++)
		if (db_cell(&result.rows[0], 0, 1 + k)->i != wanted[k])
			fail_msg("%s: %lld and not %lld", run_statuses[k],
				 (long long)db_cell(&result.rows[0], 0, 1 + k)->i, (long long)wanted[k]);
}

static void fold(struct db *db)
{
	LOCAL_UNIT(unit);

	run_count_fold(&unit, 1, 0);
	(void)run_one(db, &unit);
}

/* ---- runs ---- */

static const struct run_machine *machine(void)
{
	static const struct run_definition definition = {.name = "f"};
	static const struct run_machine made = {.definition = &definition, .version = 1};

	return &made;
}

static void build_create(struct unit *unit, int i)
{
	struct stamp stamp = {.op = ++world.op, .at = {1000}, .node = "here"};
	struct run_spec spec = {.subject = FIRST + i,
				.workspace = slice_str("w"),
				.requester = slice_str("me"),
				.machine = machine(),
				.input = slice_str("{}")};

	unit_init(unit, stamp.op);
	run_create(unit, &stamp, &spec);
	world.status[i] = RUN_PENDING;
	world.version[i] = 1;
}

static void build_move(struct unit *unit, int i, const char *to)
{
	struct stamp stamp = {.op = ++world.op, .at = {2000}, .node = "here"};
	struct move move = {FIRST + i, world.status[i], to};

	unit_init(unit, stamp.op);
	subject_transition(unit, &stamp, &move, world.version[i]++);
	run_count_changed(unit, slice_str("w"), "f", move.from, to, /* n= */ 1);
	world.status[i] = to;
}

/* Many in one transaction, as a lane has them. */
static void in_groups(void **state)
{
	struct unit *all = calloc(RUNS, sizeof *all), *units[RUNS];
	struct unit_result *results = calloc(RUNS, sizeof *results);

	(void)state;
	srand(1);
	for (int i = 0; i < RUNS; i++)
		build_create(units[i] = &all[i], i);
	begin(world.db);
	execute(world.db, units, RUNS, results);
	commit(world.db);
	assert_counted(world.db);
	for (int round = 0; round < ROUNDS; round++) {
		size_t n = 0;

		for (int i = 0; i < RUNS; i++)
			if (rand() % 3 == 0) {
				build_move(units[n] = &all[n], i, run_statuses[rand() % RUN_COUNT_STATUSES]);
				n++;
			}
		begin(world.db);
		execute(world.db, units, n, results);
		commit(world.db);
		if (rand() % 4 == 0)
			fold(world.db);
		assert_counted(world.db);
	}
	free(results);
	free(all);
}

/* One is under way while another folds: its changes are counted with its commit, and are there for the next fold. */
static void beside_one_that_is_under_way(void **state)
{
	struct unit unit, *units[] = {&unit};
	struct unit_result result;

	(void)state;
	for (int i = 0; i < RUNS; i++) {
		build_create(&unit, i);
		(void)run_one(world.db, &unit);
	}
	for (int i = 0; i < RUNS; i++) {
		const char *was = world.status[i];

		build_move(&unit, i, RUN_RUNNING);
		begin(world.db);
		execute(world.db, units, 1, &result);
		world.status[i] = was;
		fold(world.other);
		assert_counted(world.other);
		commit(world.db);
		world.status[i] = RUN_RUNNING;
		assert_counted(world.other);
	}
	fold(world.db);
	fold(world.other);
	assert_counted(world.db);
}

/* What is rolled back was never counted. */
static void not_what_is_rolled_back(void **state)
{
	struct unit unit, *units[] = {&unit};
	struct unit_result result;

	(void)state;
	build_create(&unit, 0);
	(void)run_one(world.db, &unit);
	build_move(&unit, 0, RUN_FAILED);
	begin(world.db);
	execute(world.db, units, 1, &result);
	world.db->driver->rollback(world.db);
	world.status[0] = RUN_PENDING;
	assert_counted(world.db);
	fold(world.db);
	assert_counted(world.db);
}

#define ON(name)                                                                                                       \
	cmocka_unit_test_setup_teardown(name, set_up_sqlite, tear_down),                                               \
		cmocka_unit_test_setup_teardown(name, set_up_postgres, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON(in_groups),
		ON(not_what_is_rolled_back),
		cmocka_unit_test_setup_teardown(beside_one_that_is_under_way, set_up_postgres, tear_down),
	};

	return cmocka_run_group_tests_name("run counts", tests, NULL, NULL);
}
