/* `singleton`, unit by unit: which start makes a run, which is told of another, and what counts. Many at once: http/test_singleton.sh. */
#include "unit/flow/guards.h"

#include "flow/run_verb_parts.h"
#include "flow/singleton.h"
#include "support/must_hold.h"

static const struct run_step step = {.name = "a", .type = RUN_WAIT};
static const struct run_definition definition = {
	.name = "sync", .steps_n = 1, .steps = &step, .limits = {.singleton = {.set = true}}};
static const struct run_machine machine = {.definition = &definition, .version = 1};

static struct run_spec spec_of(struct world *w, int64_t subject, const char *workspace, const char *key)
{
	struct run_spec spec = {
		.subject = subject,
		.workspace = slice_str(workspace),
		.requester = slice_str("me"),
		.key = key ? slice_str(key) : slice_of(NULL, 0),
		.machine = &machine,
		.input = slice_str("{}"),
	};

	run_describe(&spec, &w->arena);
	assert_true(spec.singleton < 0);
	return spec;
}

static bool creates(struct world *w, const struct run_spec *spec)
{
	struct stamp stamp = world_begin(w);

	run_create(&w->unit, &stamp, spec);
	return world_run(w) == UNIT_WON;
}

static bool starts(struct world *w, int64_t subject, const char *key)
{
	struct run_spec spec = spec_of(w, subject, "default", key);

	return creates(w, &spec);
}

static void becomes(struct world *w, int64_t subject, const char *status)
{
	char sql[200];

	snprintf(sql, sizeof sql, "UPDATE hx_subject SET status = '%s' WHERE id = %lld", status, (long long)subject);
	guards_script(w, sql);
}

/* 0: none. */
static int64_t finds(struct world *w, const char *key, bool ended)
{
	struct run_spec spec = spec_of(w, 1, "default", key);
	int64_t subject = 0;
	enum hx_code code;

	unit_init(&w->unit, 0);
	singleton_find(&w->unit, spec.workspace, spec.key, spec.singleton, ended);
	assert_int_equal(world_run(w), UNIT_WON);
	code = run_found(&w->result, slice_str("sync"), &subject);
	assert_true(code == HX_OK || code == HX_NOT_FOUND);
	return subject;
}

static void one_that_is_not_terminal(void **state)
{
	static const char *const live[] = {"PENDING", "RUNNING", "WAITING", "PAUSED", "CANCELLING"};
	struct world *w = *state;

	assert_int_equal(finds(w, NULL, true), 0);
	assert_true(starts(w, 1, NULL));
	for (size_t i = 0; i < sizeof live / sizeof *live; i++) {
		becomes(w, 1, live[i]);
		MUST_HOLD(!starts(w, 2, NULL), "two runs of one singleton are not terminal");
		assert_int_equal(finds(w, NULL, false), 1);
	}
	MUST_HOLD(!guards_finds(w, "SELECT 1 FROM hx_subject WHERE id = 2"), "a start that was lost leaves a run");
}

static void after_its_end(void **state)
{
	static const char *const over[] = {"COMPLETED", "FAILED", "CANCELLED"};
	struct world *w = *state;

	for (int64_t i = 1; i <= 3; i++) {
		assert_true(starts(w, i, NULL));
		becomes(w, i, over[i - 1]);
		assert_int_equal(finds(w, NULL, false), 0);
		assert_int_equal(finds(w, NULL, true), i); /* for whom it has ended while they asked */
	}
	assert_true(guards_finds(w, "SELECT 1 FROM hx_singleton WHERE run = 3"));
	assert_false(guards_finds(w, "SELECT 1 FROM hx_singleton WHERE run < 3"));
}

/* The key says more than the singleton: it is that run's for ever. */
static void keys_come_first(void **state)
{
	struct world *w = *state;

	assert_true(starts(w, 1, "a"));
	becomes(w, 1, "COMPLETED");
	assert_false(starts(w, 2, "a"));
	assert_true(starts(w, 3, "b"));
	assert_false(starts(w, 4, "a"));
	assert_false(starts(w, 5, "c"));
	assert_int_equal(finds(w, "a", false), 1);
	assert_int_equal(finds(w, "b", false), 3);
	assert_int_equal(finds(w, "c", false), 3);
	becomes(w, 3, "COMPLETED");
	assert_true(starts(w, 6, "c")); /* nothing was started under it */
}

static void others(void **state)
{
	struct world *w = *state;
	struct run_spec elsewhere = spec_of(w, 2, "other", NULL), slot = spec_of(w, 3, "default", "schedule:s:1");

	assert_true(starts(w, 1, NULL));
	assert_true(creates(w, &elsewhere));
	slot.joins = true;
	assert_true(creates(w, &slot)); /* it is no start, */
	becomes(w, 1, "COMPLETED");
	assert_false(starts(w, 4, NULL)); /* and counts for those after it */
	assert_int_equal(finds(w, NULL, false), 3);
}

static void retries(struct world *w, int64_t subject)
{
	struct run_verb_request rq = {.kind = RUN_RETRY};
	struct run_verb v = {
		.rq = &rq,
		.kind = RUN_RETRY,
		.subject = subject,
		.arena = &w->arena,
		.to = RUN_PENDING,
		.row = {.subject = subject,
			.status = RUN_FAILED,
			.version = 1,
			.undo = -1,
			.workspace = slice_str("default"),
			.input = slice_str("{}"),
			.machine = &machine,
			.definition = &definition},
	};

	v.singleton = verb_singleton(&v, v.to);
	assert_true(v.singleton < 0);
	v.row.parent = 9; /* its parent's */
	assert_int_equal(verb_singleton(&v, v.to), 0);
	v.row.parent = 0;
	assert_int_equal(verb_singleton(&v, RUN_CANCELLED), 0);
	v.stamp = world_begin(w);
	verb_build_write(&v, &w->unit);
	assert_int_equal(world_run(w), UNIT_WON);
}

static void what_is_retried_counts_again(void **state)
{
	struct world *w = *state;

	assert_true(starts(w, 1, NULL));
	becomes(w, 1, "FAILED");
	assert_true(starts(w, 2, NULL)); /* and the row of the first is gone */
	retries(w, 1);
	assert_false(starts(w, 3, NULL));
	becomes(w, 2, "COMPLETED");
	MUST_HOLD(!starts(w, 3, NULL), "a run starts beside one that was retried");
	assert_int_equal(finds(w, NULL, false), 1);
}

/* Of those that joined, one that is over goes, and one that is not stays. */
static void what_is_swept(void **state)
{
	struct world *w = *state;
	struct run_spec slot = spec_of(w, 2, "default", NULL);

	assert_true(starts(w, 1, NULL));
	becomes(w, 1, "COMPLETED");
	assert_true(starts(w, 3, NULL));
	slot.joins = true;
	assert_true(creates(w, &slot));
	becomes(w, 3, "FAILED");
	retries(w, 3);
	becomes(w, 2, "CANCELLED");
	assert_false(starts(w, 4, NULL));
	becomes(w, 3, "COMPLETED");
	assert_true(starts(w, 4, NULL));
	unit_init(&w->unit, 0);
	singleton_forget(&w->unit, 4);
	assert_int_equal(world_run(w), UNIT_WON);
	assert_false(guards_finds(w, "SELECT 1 FROM hx_singleton"));
}

int main(int argc, char **argv)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, world_set_up, world_tear_down)
	const struct CMUnitTest tests[] = {
		TEST(one_that_is_not_terminal),     TEST(after_its_end), TEST(keys_come_first), TEST(others),
		TEST(what_is_retried_counts_again), TEST(what_is_swept),
	};

	ONLY_THE_NAMED(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
