/*
 * Schedules: the look and the verbs as tasks over a store in memory; the guards of their units. Those that a mutant is about say so with
 * MUST_HOLD. What is decided about a slot: test_schedule_plan.
 */
#include "unit/flow/schedule_text.h"
#include "unit/flow/world.h"

#include <stdio.h>

#include "base/id.h"
#include "base/json.h"
#include "flow/attention.h"
#include "flow/schedule_look.h"
#include "flow/schedule_verb.h"
#include "model/findings.h"
#include "support/must_hold.h"

static const struct run_machine *machine;

static const struct zone *zone_of(const void *context, struct slice name)
{
	(void)context;
	return slice_is(name, "UTC") ? &zone_utc : NULL;
}

static const struct run_machine *run_of(const void *context, struct slice workflow)
{
	(void)context;
	return slice_is(workflow, "quick") ? machine : NULL;
}

static const struct run_machine *run_of_nobody(const void *context, struct slice workflow)
{
	(void)context, (void)workflow;
	return NULL;
}

static const struct batch_machine *batch_of(const void *context, struct slice workflow)
{
	(void)context, (void)workflow;
	return NULL;
}

static const struct schedule_policy policy = {zone_of, run_of, batch_of, NULL, NULL, NULL, NULL};

/* ---- a look, over a store ---- */

static struct id_source ids;

static struct answer answer_of(struct world *w)
{
	struct answer answer = {.now = w->clock.wall, .mono = w->clock.mono, .node = "here", .ids = &ids};

	answer.id = id_next(&ids, answer.now);
	for (int i = 0; i < ANSWER_IDS_MAX; i++)
		answer.more_ids[i] = id_next(&ids, answer.now);
	return answer;
}

/* One unit of the task; `lost`: it lands, and the answer is lost. */
static void step(struct world *w, struct task *task, bool lost)
{
	static struct unit unit;
	struct ask ask = {.unit = &unit};
	struct answer answer;

	unit_init(&unit, 0);
	task->kind->ask(task, &ask);
	assert_int_equal(ask.kind, ASK_COMMIT);
	w->unit = unit;
	(void)world_run(w);
	answer = answer_of(w);
	answer.kind = ANSWER_COMMIT;
	answer.result = &w->result;
	if (lost)
		w->result.verdict = UNIT_UNKNOWN;
	assert_true(task_take(task, task->turn, &answer));
}

static enum hx_code finish(struct world *w, struct task *task)
{
	while (!task_is_done(task))
		step(w, task, false);
	return task->code;
}

static void begin(struct world *w, struct task *task)
{
	struct answer start = answer_of(w);

	start.kind = ANSWER_START;
	assert_true(task_take(task, task->turn, &start));
}

static int64_t number(struct world *w, const char *sql)
{
	static struct db_stmt stmts[100];
	static unsigned used;
	struct db_stmt *stmt = &stmts[used++];

	assert_true(used <= 100);
	*stmt = (struct db_stmt){.name = "test_number", .sql = sql, .in = "", .out = "i"};
	unit_init(&w->unit, 0);
	unit_add(&w->unit, UNIT_ANY, stmt, 0, NULL);
	assert_int_equal(world_run(w), UNIT_WON);
	return w->result.rows[0].n ? db_cell(&w->result.rows[0], 0, 0)->i : -1;
}

static void script(struct world *w, const char *sql)
{
	struct hx_error err;

	if (w->db->driver->script(w->db, sql, &err))
		fail_msg("%s: %s", sql, err.detail);
}

static void put_as_is(struct world *w, const char *text)
{
	struct schedule_spec spec = spec_of(text);
	struct schedule_verb_request rq = {.kind = SCHEDULE_PUT,
					   .workspace = slice_str("default"),
					   .requester = slice_str("me"),
					   .name = slice_str("s"),
					   .spec = &spec,
					   .policy = &policy};
	struct schedule_verb verb;
	struct strbuf canonical;

	strbuf_init(&canonical, 4096);
	schedule_spec_write(&spec, &canonical);
	rq.text = arena_keep(&arena, &canonical);
	schedule_verb_init(&verb, &rq, &arena);
	begin(w, &verb.task);
	assert_int_equal(finish(w, &verb.task), HX_OK);
}

/* The clock stands at 1000 s; its next slot is then. */
static void put(struct world *w, const char *text)
{
	put_as_is(w, text);
	script(w, "UPDATE hx_schedule SET slot_at = 1000000, due_at = 1000000");
}

static void verb_is(struct world *w, enum schedule_verb_kind kind)
{
	struct schedule_verb_request rq = {
		.kind = kind, .workspace = slice_str("default"), .name = slice_str("s"), .policy = &policy};
	struct schedule_verb verb;

	schedule_verb_init(&verb, &rq, &arena);
	begin(w, &verb.task);
	assert_int_equal(finish(w, &verb.task), HX_OK);
}

static void look_at(struct world *w, struct schedule_look *look)
{
	schedule_look_init(look, number(w, "SELECT subject FROM hx_schedule"), &policy, &arena);
	begin(w, &look->task);
}

static void a_slot_is_started_with_its_key(void **state)
{
	struct world *w = *state;
	struct schedule_look look;

	put(w, EVERY(""));
	look_at(w, &look);
	assert_int_equal(finish(w, &look.task), HX_OK);
	assert_int_equal(look.started, 1);
	MUST_HOLD(number(w, "SELECT count(*) FROM hx_run WHERE run_key = 'schedule:s:1970-01-01T00:16:40Z'") == 1,
		  "a slot has no key");
	assert_int_equal(number(w, "SELECT slot_at FROM hx_schedule"), 1010000);
	assert_int_equal(number(w, "SELECT count(*) FROM hx_schedule_open"), 1);
	assert_int_equal(number(w, "SELECT started FROM hx_schedule"), 1);
}

/* A crash, or an answer that is lost, after the slot was left. */
static void a_slot_is_left_with_its_start(void **state)
{
	struct world *w = *state;
	struct schedule_look look;

	put(w, EVERY(",\"overlap\":\"allow\""));
	look_at(w, &look);
	step(w, &look.task, false);
	step(w, &look.task, true);
	MUST_HOLD(number(w, "SELECT slot_at FROM hx_schedule") == 1000000 ||
			  number(w, "SELECT count(*) FROM hx_run") == 1,
		  "a slot was left, and its run is not there");
	assert_int_equal(finish(w, &look.task), HX_OK);
	assert_int_equal(number(w, "SELECT count(*) FROM hx_run"), 1);
}

/* Two nodes have read the same. */
static void of_two_nodes_one_wins(void **state)
{
	struct world *w = *state;
	struct schedule_look one, other;

	put(w, EVERY(",\"overlap\":\"allow\""));
	look_at(w, &one);
	look_at(w, &other);
	step(w, &one.task, false);
	step(w, &other.task, false);
	step(w, &one.task, false);
	step(w, &other.task, false);
	assert_int_equal(finish(w, &one.task), HX_OK);
	assert_int_equal(finish(w, &other.task), HX_OK);
	assert_int_equal(number(w, "SELECT count(*) FROM hx_run"), 1);
	MUST_HOLD(number(w, "SELECT slot_at * 10 + started FROM hx_schedule") == 10100001, "a slot was left twice");
}

/* Another look, by a store that was put back in time, or a backfill: the key is there. */
static void a_slot_that_was_started_is_left_alone(void **state)
{
	struct world *w = *state;
	struct schedule_look look;

	put(w, EVERY(",\"overlap\":\"allow\""));
	look_at(w, &look);
	assert_int_equal(finish(w, &look.task), HX_OK);
	script(w, "UPDATE hx_schedule SET slot_at = 1000000, due_at = 1000000");
	look_at(w, &look);
	assert_int_equal(finish(w, &look.task), HX_OK);
	assert_int_equal(look.started, 0);
	assert_int_equal(number(w, "SELECT count(*) FROM hx_run"), 1);
	assert_int_equal(number(w, "SELECT slot_at FROM hx_schedule"), 1010000);
}

/* A pause comes between the read and the move. */
static void a_pause_in_between_wins(void **state)
{
	struct world *w = *state;
	struct schedule_look look;

	put(w, EVERY(""));
	look_at(w, &look);
	step(w, &look.task, false);
	verb_is(w, SCHEDULE_PAUSE);
	assert_int_equal(finish(w, &look.task), HX_OK);
	MUST_HOLD(number(w, "SELECT count(*) FROM hx_run") == 0, "a paused schedule has started something");
	assert_int_equal(number(w, "SELECT count(*) FROM hx_schedule WHERE paused = 1 AND due_at IS NULL"), 1);
}

/* The same the other way round: a verb that has read before the move. */
static void a_verb_does_not_take_a_move_back(void **state)
{
	struct world *w = *state;
	struct schedule_spec spec = spec_of(EVERY(",\"jitter\":\"1s\""));
	struct schedule_verb_request rq = {.kind = SCHEDULE_PUT,
					   .workspace = slice_str("default"),
					   .requester = slice_str("me"),
					   .name = slice_str("s"),
					   .spec = &spec,
					   .text = slice_str(EVERY(",\"jitter\":\"1s\"")),
					   .policy = &policy};
	struct schedule_look look;
	struct schedule_verb verb;

	put(w, EVERY(""));
	schedule_verb_init(&verb, &rq, &arena);
	begin(w, &verb.task);
	step(w, &verb.task, false);
	look_at(w, &look);
	assert_int_equal(finish(w, &look.task), HX_OK);
	assert_int_equal(finish(w, &verb.task), HX_OK);
	MUST_HOLD(number(w, "SELECT slot_at FROM hx_schedule") == 1010000,
		  "a put has brought back a slot that was left");
}

static void what_is_not_there_is_said(void **state)
{
	struct world *w = *state;
	struct schedule_look look;

	put(w, "{\"workflow\":\"nothing\",\"every\":\"10s\"}");
	look_at(w, &look);
	assert_int_equal(finish(w, &look.task), HX_CONFIG_ERROR);
	assert_non_null(strstr(look.trouble, "no such workflow"));
	assert_int_equal(number(w, "SELECT slot_at FROM hx_schedule"), 1000000);
}

static void look_is(struct world *w, enum hx_code code)
{
	struct schedule_look look;

	look_at(w, &look);
	assert_int_equal(finish(w, &look.task), code);
}

/* It stands at the head of those that are due no longer. */
static void what_cannot_start_is_put_off(void **state)
{
	struct world *w = *state;
	const int64_t rests[] = {5, 10, 20, 40, 60, 60};
	int64_t now = 1000 * SECOND;

	put(w, "{\"workflow\":\"nothing\",\"every\":\"10s\"}");
	for (size_t i = 0; i < sizeof rests / sizeof rests[0]; i++) {
		look_is(w, HX_CONFIG_ERROR);
		now += rests[i] * SECOND;
		MUST_HOLD(number(w, "SELECT due_at FROM hx_schedule") == now,
			  "what cannot start stands before all others");
		assert_int_equal(number(w, "SELECT slot_at FROM hx_schedule"), 1000000);
		look_is(w, HX_OK); /* not before */
		fake_clock_advance_ms(&w->clock, rests[i] * SECOND);
	}
	script(w, "UPDATE hx_schedule SET text = replace(text, 'nothing', 'quick')");
	look_is(w, HX_OK);
	assert_int_equal(number(w, "SELECT count(*) FROM hx_run WHERE run_key = 'schedule:s:1970-01-01T00:16:40Z'"), 1);
}

/* A text of another version stands in nobody's way either. */
static void what_cannot_be_read_is_put_off(void **state)
{
	struct world *w = *state;

	put(w, EVERY(""));
	script(w, "UPDATE hx_schedule SET text = '{}'");
	look_is(w, HX_CONFIG_ERROR);
	assert_int_equal(number(w, "SELECT due_at FROM hx_schedule"), 1005000);
}

/* A node that does not know the workflow puts it off while one that does is about to start it. */
static void a_node_that_can_start_it_does(void **state)
{
	struct world *w = *state;
	struct schedule_policy ignorant = policy;
	struct schedule_look one, other;

	ignorant.run_of = run_of_nobody;
	put(w, EVERY(",\"overlap\":\"allow\""));
	look_at(w, &one);
	step(w, &one.task, false);
	schedule_look_init(&other, one.subject, &ignorant, &arena);
	begin(w, &other.task);
	assert_int_equal(finish(w, &other.task), HX_CONFIG_ERROR);
	assert_int_equal(number(w, "SELECT due_at FROM hx_schedule"), 1005000);
	assert_int_equal(finish(w, &one.task), HX_OK);
	assert_int_equal(one.started, 1);
	assert_int_equal(number(w, "SELECT due_at FROM hx_schedule"), 1010000);
}

#define WAITING(backfill)                                                                                              \
	"INSERT INTO hx_schedule_slot (schedule, slot_at, backfill) SELECT subject, 10000, " backfill                  \
	" FROM hx_schedule;"                                                                                           \
	"UPDATE hx_schedule SET slot_at = NULL, due_at = NULL"
#define OVER EVERY(",\"to\":\"1970-01-01T00:16:40Z\"") /* no slot is left */

/* A person has asked for those slots: a pause is of those that come. */
static void a_backfill_goes_on_through_a_pause(void **state)
{
	struct world *w = *state;

	put(w, OVER);
	script(w, WAITING("1"));
	verb_is(w, SCHEDULE_PAUSE);
	assert_int_equal(number(w, "SELECT due_at FROM hx_schedule"), 1000000);
	verb_is(w, SCHEDULE_RESUME);
	assert_int_equal(number(w, "SELECT due_at FROM hx_schedule"), 1000000);
	verb_is(w, SCHEDULE_PAUSE);
	look_is(w, HX_OK);
	assert_int_equal(number(w, "SELECT count(*) FROM hx_run"), 1);
}

/* Those that wait for another are of the schedule itself. */
static void the_queue_goes_on_after_a_pause(void **state)
{
	struct world *w = *state;

	put(w, OVER);
	script(w, WAITING("0"));
	verb_is(w, SCHEDULE_PAUSE);
	look_is(w, HX_OK);
	assert_int_equal(number(w, "SELECT count(*) FROM hx_run"), 0);
	assert_int_equal(number(w, "SELECT coalesce(due_at, 0) FROM hx_schedule"), 0);
	verb_is(w, SCHEDULE_RESUME);
	look_is(w, HX_OK);
	assert_int_equal(number(w, "SELECT count(*) FROM hx_run"), 1);
}

/* A pause of a moment, after a slot has come and before a node has looked. */
static void a_slot_that_has_come_outlives_a_pause(void **state)
{
	struct world *w = *state;

	put(w, EVERY(""));
	verb_is(w, SCHEDULE_PAUSE);
	look_is(w, HX_OK);
	assert_int_equal(number(w, "SELECT count(*) FROM hx_run"), 0);
	verb_is(w, SCHEDULE_RESUME);
	look_is(w, HX_OK);
	assert_int_equal(number(w, "SELECT count(*) FROM hx_run WHERE run_key = 'schedule:s:1970-01-01T00:16:40Z'"), 1);
	assert_int_equal(number(w, "SELECT slot_at FROM hx_schedule"), 1010000);
	assert_int_equal(number(w, "SELECT missed FROM hx_schedule"), 0);
}

/* Late by 40 s: what was to come of the old times waits, and none of the new ones is before the put. */
static void other_times_are_of_later_slots(void **state)
{
	struct world *w = *state;

	put(w, "{\"workflow\":\"quick\",\"every\":\"50s\"}");
	fake_clock_advance_ms(&w->clock, 40 * SECOND);
	put_as_is(w, "{\"workflow\":\"quick\",\"every\":\"7s\"}");
	assert_int_equal(number(w, "SELECT slot_at FROM hx_schedule"), 1043000);
	assert_int_equal(number(w, "SELECT slot_at FROM hx_schedule_slot WHERE backfill = 0"), 1000000);
	look_is(w, HX_OK);
	assert_int_equal(number(w, "SELECT count(*) FROM hx_run"), 1);
	assert_int_equal(number(w, "SELECT count(*) FROM hx_run WHERE run_key = 'schedule:s:1970-01-01T00:16:40Z'"), 1);
}

/* The catchUp of what was: it has let that slot go. */
static void what_is_late_is_left_by_the_old_text(void **state)
{
	struct world *w = *state;

	put(w, "{\"workflow\":\"quick\",\"every\":\"50s\",\"catchUp\":\"none\"}");
	fake_clock_advance_ms(&w->clock, 40 * SECOND);
	put_as_is(w, "{\"workflow\":\"quick\",\"every\":\"7s\"}");
	assert_int_equal(number(w, "SELECT slot_at FROM hx_schedule"), 1043000);
	assert_int_equal(number(w, "SELECT count(*) FROM hx_schedule_slot"), 0);
	assert_int_equal(number(w, "SELECT missed FROM hx_schedule"), 1);
}

/* The same times: the slot is what it was, and starts what is said now. */
static void the_same_times_leave_the_slot(void **state)
{
	struct world *w = *state;

	put(w, EVERY(""));
	put_as_is(w, EVERY(",\"input\":{\"a\":1}"));
	assert_int_equal(number(w, "SELECT slot_at FROM hx_schedule"), 1000000);
	assert_int_equal(number(w, "SELECT count(*) FROM hx_schedule_slot"), 0);
}

/* 300 that it has started, in this status. */
static void open_many(struct world *w, const char *status)
{
	char sql[1000];

	snprintf(
		sql, sizeof sql,
		"INSERT INTO hx_subject (id, kind, status, version, op, updated_at, seq, head)"
		" WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300)"
		" SELECT i, %lld, %s, 1, 1, 0, 1, x'' FROM n;"
		"INSERT INTO hx_schedule_open (schedule, subject) SELECT c.subject, s.id FROM hx_schedule c, hx_subject s"
		" WHERE s.id <= 300",
		(long long)run_kind(), status);
	script(w, sql);
}

/* Ever so much is open: a look reads so much, and what can still be cancelled first. */
static void what_is_open_is_read_in_part(void **state)
{
	struct world *w = *state;
	int64_t subject;

	put(w, EVERY(",\"overlap\":\"cancel\""));
	open_many(w, "CASE WHEN i <= 50 THEN 'CANCELLING' ELSE 'RUNNING' END");
	subject = number(w, "SELECT subject FROM hx_schedule");
	unit_init(&w->unit, 0);
	schedule_read(&w->unit, subject, slice_of(NULL, 0), slice_of(NULL, 0));
	schedule_read_open(&w->unit, subject);
	assert_int_equal(world_run(w), UNIT_WON);
	assert_int_equal(db_cell(&w->result.rows[0], 0, SCHEDULE_OPEN)->i, 101);
	assert_int_equal(w->result.rows[1].n, SCHEDULE_CANCEL_MAX);
	for (size_t i = 0; i < w->result.rows[1].n; i++)
		assert_int_equal(db_cell(&w->result.rows[1], i, 0)->i, 51 + i);
}

/* Only who is to cancel it reads what is open. */
static void what_is_to_be_cancelled_is_read(void **state)
{
	struct world *w = *state;
	struct schedule_look look;

	put(w, EVERY(",\"overlap\":\"cancel\""));
	open_many(w, "CASE WHEN i <= 50 THEN 'CANCELLING' ELSE 'RUNNING' END");
	script(w,
	       "UPDATE hx_subject SET kind = (SELECT s.kind FROM hx_schedule c JOIN hx_subject s ON s.id = c.subject)"
	       " WHERE id = 51"); /* neither a run nor a batch */
	look_at(w, &look);
	step(w, &look.task, false);
	assert_int_equal(w->unit.lines_n, 1);
	assert_int_equal(finish(w, &look.task), HX_OK);
	assert_int_equal(look.cancels_n, SCHEDULE_CANCEL_MAX - 1);
	assert_int_equal(look.cancels[0].subject, 52);
	assert_int_equal(number(w, "SELECT count(*) FROM hx_schedule_slot WHERE slot_at = 1000000"), 1);
}

/* Nor does a move ask all that was ever started whether it has ended: but those that have are gone after a few. */
static void what_has_ended_goes_in_parts(void **state)
{
	struct world *w = *state;
	const int64_t left[] = {300 - 102 + 1, 100 + 2};

	put(w, EVERY(",\"overlap\":\"allow\""));
	open_many(w, "CASE WHEN i <= 100 THEN 'RUNNING' ELSE 'COMPLETED' END");
	script(w, "DELETE FROM hx_subject WHERE id = 150"); /* by retention */
	for (size_t i = 0; i < 2; i++) {
		look_is(w, HX_OK);
		assert_int_equal(number(w, "SELECT count(*) FROM hx_schedule_open"), left[i]);
		fake_clock_advance_ms(&w->clock, 10 * SECOND);
	}
}

static size_t late_n(struct world *w, const char *set)
{
	struct attention_filter filter = {.workspace = slice_str("default"),
					  .kind = slice_str("late_schedule"),
					  .place = -1000000 * SECOND,
					  .limit = 10};

	script(w, set);
	unit_init(&w->unit, 0);
	attention_list(&w->unit, &filter);
	assert_int_equal(world_run(w), UNIT_WON);
	return w->result.rows[0].n;
}

/* The clock stands at 1000 s. */
static void a_late_one_is_told_by_its_slot(void **state)
{
	struct world *w = *state;

	put(w, EVERY(""));
	assert_int_equal(late_n(w, "UPDATE hx_schedule SET slot_at = 941000, due_at = 1060000"), 0);
	assert_int_equal(late_n(w, "UPDATE hx_schedule SET slot_at = 930000, due_at = 1060000"), 1);
	assert_int_equal(late_n(w, "UPDATE hx_schedule SET slot_at = NULL, due_at = 930000"), 1);
	put(w, EVERY(",\"jitter\":\"30m\""));
	assert_int_equal(late_n(w, "UPDATE hx_schedule SET slot_at = 900000, due_at = 1030000"), 0); /* its jitter */
	assert_int_equal(late_n(w, "UPDATE hx_schedule SET slot_at = 900000, due_at = 930000"), 1);
	assert_int_equal(late_n(w, "UPDATE hx_schedule SET slot_at = -2700000, due_at = 1030000"), 1);
}

static void make_machine(void)
{
	static const char text[] =
		"{\"workflow\":\"quick\",\"kind\":\"run\",\"steps\":[{\"name\":\"a\",\"type\":\"wait\",\"for\":\"1s\"}]}";
	const struct run_definition *definition;
	struct findings findings;

	findings_init(&findings, &arena);
	run_definition_parse("quick.json", slice_str(text), &arena, &findings, &definition);
	assert_non_null(definition);
	machine = run_machine_new(definition, 1, &arena);
}

#define IN_WORLD(test) cmocka_unit_test_setup_teardown(test, world_set_up, world_tear_down)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		IN_WORLD(a_slot_is_started_with_its_key),
		IN_WORLD(a_slot_is_left_with_its_start),
		IN_WORLD(of_two_nodes_one_wins),
		IN_WORLD(a_slot_that_was_started_is_left_alone),
		IN_WORLD(a_pause_in_between_wins),
		IN_WORLD(a_verb_does_not_take_a_move_back),
		IN_WORLD(what_is_not_there_is_said),
		IN_WORLD(what_cannot_start_is_put_off),
		IN_WORLD(what_cannot_be_read_is_put_off),
		IN_WORLD(a_node_that_can_start_it_does),
		IN_WORLD(a_backfill_goes_on_through_a_pause),
		IN_WORLD(the_queue_goes_on_after_a_pause),
		IN_WORLD(a_slot_that_has_come_outlives_a_pause),
		IN_WORLD(other_times_are_of_later_slots),
		IN_WORLD(what_is_late_is_left_by_the_old_text),
		IN_WORLD(the_same_times_leave_the_slot),
		IN_WORLD(what_is_open_is_read_in_part),
		IN_WORLD(what_is_to_be_cancelled_is_read),
		IN_WORLD(what_has_ended_goes_in_parts),
		IN_WORLD(a_late_one_is_told_by_its_slot),
	};
	int failed;

	ONLY_THE_NAMED(argc, argv);
	arena_init(&arena, 64u << 20);
	id_source_init(&ids, 1);
	make_machine();
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	arena_release(&arena);
	return failed;
}
