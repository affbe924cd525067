/*
 * Starts of a workflow with a debounce, on both stores and two connections: which of them make a run, which replace the input of one that
 * has not begun, and what their keys lead to. Every interleaving of them: sim/test_debounce.
 */
#include "contract/job_desks.h"

#include "flow/debounce.h"
#include "flow/run_verb.h"

#define AT_MOST_MS 3600000
#define ASKS_MAX 64

static const struct run_step step = {.name = "a", .type = RUN_WAIT};
static struct run_definition definition = {.name = "sync",
					   .steps_n = 1,
					   .steps = &step,
					   .limits = {.debounce = {.for_ms = 60000, .at_most_ms = AT_MOST_MS}}};
static const struct run_machine machine = {.definition = &definition, .version = 1};

static const struct run_machine *machine_of(const void *context, struct slice workflow, int64_t version)
{
	(void)context, (void)workflow, (void)version;
	return &machine;
}

static const struct run_policy policy = {.lease_ms = LEASE_MS, .machine_of = machine_of};

struct started {
	enum hx_code code;
	bool created, joins;
	int64_t run, version;
};

static struct started start_in(struct desk *d, const char *workspace, const char *key, const char *input)
{
	struct run_spec spec = {.workspace = slice_str(workspace),
				.requester = slice_str("me"),
				.key = key ? slice_str(key) : slice_of(NULL, 0),
				.machine = &machine,
				.input = slice_str(input)};
	struct run_verb_request rq = {.kind = RUN_DEBOUNCE,
				      .workspace = spec.workspace,
				      .workflow = slice_str("sync"),
				      .key = spec.key,
				      .start = &spec,
				      .policy = &policy};
	struct run_verb verb;
	enum hx_code code;

	arena_reset(&d->arena);
	run_describe(&spec, &d->arena);
	assert_true(spec.debounce.name < 0);
	run_verb_init(&verb, &rq, &d->arena);
	code = desk_drive(d, &verb.task);
	return (struct started){code, verb.created, verb.joins, verb.subject, verb.version};
}

static struct started start(struct desk *d, const char *key, const char *input)
{
	return start_in(d, "default", key, input);
}

static int64_t ask(const char *sql, int64_t run)
{
	static struct db_stmt stmts[ASKS_MAX]; /* the driver keeps them by their address */
	static unsigned used;
	struct db_stmt *stmt = &stmts[used++];

	assert_true(used <= ASKS_MAX);
	*stmt = (struct db_stmt){.name = "test_debounce_ask", .sql = sql, .in = "i", .out = "i"};
	(void)desk_begin(&world.a);
	UNIT_ADD(&world.a.unit, UNIT_ANY, stmt, db_int(run));
	assert_int_equal(desk_run(&world.a), UNIT_WON);
	return world.a.result.rows[0].n ? db_cell(&world.a.result.rows[0], 0, 0)->i : 0;
}

static void change(const char *sql)
{
	struct hx_error err;

	if (world.a.db->driver->script(world.a.db, sql, &err) != HX_OK)
		fail_msg("%s: %s", sql, err.detail);
}

static bool has_input(int64_t run, const char *input)
{
	(void)desk_begin(&world.a);
	run_read(&world.a.unit, slice_str("default"), run);
	assert_int_equal(desk_run(&world.a), UNIT_WON);
	return slice_is(db_cell(&world.a.result.rows[0], 0, RUN_INPUT)->s, input);
}

static int64_t run_of_key(const char *key)
{
	int64_t run = 0;

	(void)desk_begin(&world.a);
	run_find_key(&world.a.unit, slice_str("default"), slice_str(key));
	assert_int_equal(desk_run(&world.a), UNIT_WON);
	return run_found(&world.a.result, slice_str("sync"), &run) ? 0 : run;
}

static void one_run_with_the_last_input(void **state)
{
	struct started first = start(&world.a, "a", "{\"v\":1}"), next;

	(void)state;
	assert_int_equal(first.code, HX_OK);
	assert_true(first.created && !first.joins && first.version == 1);
	next = start(&world.b, "b", "{\"v\":2}");
	assert_int_equal(next.code, HX_OK);
	assert_true(!next.created && next.joins && next.run == first.run && next.version == 2);
	assert_true(start(&world.a, NULL, "{\"v\":3}").joins);
	assert_true(has_input(first.run, "{\"v\":3}"));
	/* Repeated, for want of an answer: nothing happens again. */
	for (int i = 0; i < 2; i++) {
		next = start(i ? &world.a : &world.b, i ? "a" : "b", "{\"v\":9}");
		assert_int_equal(next.code, HX_OK);
		assert_true(!next.created && !next.joins && next.run == first.run);
	}
	assert_true(has_input(first.run, "{\"v\":3}"));
	assert_int_equal(run_of_key("a"), first.run);
	assert_int_equal(run_of_key("b"), first.run);
	assert_int_equal(run_of_key("c"), 0);
	desk_audit(&world.a, first.run);
	assert_int_equal(ask("SELECT count(*) FROM hx_run WHERE alias_of = ?1", first.run), 1);
}

static void it_is_put_off_but_not_for_ever(void **state)
{
	struct started first = start(&world.a, "a", "{}");
	int64_t due;

	(void)state;
	assert_true(ask("SELECT due_at - hx_now_ms() FROM hx_run WHERE subject = ?1", first.run) > 30000);
	change("UPDATE hx_run SET due_at = 1000");
	assert_true(start(&world.a, "b", "{}").joins);
	assert_true(ask("SELECT due_at - hx_now_ms() FROM hx_run WHERE subject = ?1", first.run) > 30000);
	due = ask("SELECT until - hx_now_ms() FROM hx_singleton WHERE run = ?1", first.run);
	assert_in_range(due, 1, AT_MOST_MS);
	change("UPDATE hx_singleton SET until = 2000");
	assert_true(start(&world.a, "c", "{}").joins);
	assert_int_equal(ask("SELECT due_at FROM hx_run WHERE subject = ?1", first.run), 2000);
}

static void one_that_has_begun_is_left_alone(void **state)
{
	struct started first = start(&world.a, "a", "{\"v\":1}"), second, third;

	(void)state;
	change("UPDATE hx_run SET started_at = 1000, due_at = NULL; UPDATE hx_subject SET status = 'WAITING'");
	second = start(&world.b, "b", "{\"v\":2}");
	assert_true(second.created && second.run != first.run);
	assert_true(has_input(first.run, "{\"v\":1}"));
	assert_int_equal(run_of_key("a"), first.run);
	assert_int_equal(run_of_key("b"), second.run);
	change("UPDATE hx_subject SET status = 'CANCELLED' WHERE status = 'PENDING'");
	third = start(&world.b, "c", "{\"v\":3}");
	assert_true(third.created);
	assert_int_equal(ask("SELECT count(*) FROM hx_singleton WHERE run <> ?1", third.run), 0); /* swept */
	assert_false(start(&world.a, "a", "{\"v\":4}").created); /* its key has a run */
	assert_true(has_input(third.run, "{\"v\":3}"));
	assert_true(start_in(&world.a, "other", "a", "{}").created);
}

/* A key of another workflow's run starts nothing, and replaces nothing. */
static void keys_of_others(void **state)
{
	struct started first = start(&world.a, "a", "{\"v\":1}");

	(void)state;
	change("INSERT INTO hx_run (subject, workspace, workflow, definition_version, run_key, requester, input, created_at)"
	       " VALUES (7, 'default', 'other', 1, 'theirs', 'me', '{}', 1)");
	assert_int_equal(start(&world.a, "theirs", "{\"v\":2}").code, HX_KEY_REUSED);
	assert_true(has_input(first.run, "{\"v\":1}"));
}

/* While it has a singleton, too, one that has begun is answered with. */
static void with_a_singleton(void **state)
{
	struct started first, next;

	(void)state;
	definition.limits.singleton.set = true;
	first = start(&world.a, "a", "{\"v\":1}");
	assert_true(first.created && start(&world.a, "b", "{\"v\":2}").joins);
	change("UPDATE hx_run SET started_at = 1000, due_at = NULL; UPDATE hx_subject SET status = 'WAITING'");
	next = start(&world.a, "c", "{\"v\":3}");
	definition.limits.singleton.set = false;
	assert_int_equal(next.code, HX_OK);
	assert_true(!next.created && !next.joins && next.run == first.run);
	assert_int_equal(run_of_key("c"), 0);
	assert_true(has_input(first.run, "{\"v\":2}"));
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		BOTH(one_run_with_the_last_input),
		BOTH(it_is_put_off_but_not_for_ever),
		BOTH(one_that_has_begun_is_left_alone),
		BOTH(keys_of_others),
		BOTH(with_a_singleton),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests_name("debounce", tests, NULL, NULL);
}
