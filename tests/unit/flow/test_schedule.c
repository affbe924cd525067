/*
 * Schedules: what is decided about a slot, row by row (schedule_plan()); the look as a task over a store in memory; the guards of its
 * units. Those that a mutant is about say so with MUST_HOLD.
 */
#include "unit/flow/world.h"

#include <stdio.h>

#include "base/id.h"
#include "base/json.h"
#include "flow/schedule_look.h"
#include "flow/schedule_verb.h"
#include "model/findings.h"
#include "support/must_hold.h"

#define SECOND 1000
#define SUBJECT 77

static struct arena arena;
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

static const struct schedule_policy policy = {zone_of, run_of, batch_of, NULL, NULL};

static struct schedule_spec spec_of(const char *text)
{
	struct schedule_spec spec;
	struct hx_error err;
	struct json json;

	assert_int_equal(json_check(slice_str(text), &err, &json), HX_OK);
	if (schedule_spec_read(json, /* file= */ false, &arena, &err, &spec))
		fail_msg("%s: %s", text, err.detail);
	spec.timing.zone = &zone_utc;
	return spec;
}

#define EVERY(more) "{\"workflow\":\"quick\",\"every\":\"10s\"" more "}"

/* Its slots are 100 s, 110 s, 120 s …; the next one is at 100 s. */
static struct schedule_row row_of(const char *text, int64_t now)
{
	return (struct schedule_row){.subject = SUBJECT,
				     .revision = 1,
				     .slot_at = 100 * SECOND,
				     .due_at = 100 * SECOND,
				     .now = now,
				     .name = slice_str("s"),
				     .spec = spec_of(text)};
}

/* ---- what is decided ---- */

static void nothing_is_due(void **state)
{
	struct schedule_row row = row_of(EVERY(""), 99 * SECOND);
	struct schedule_move move = schedule_plan(&row);

	(void)state;
	assert_int_equal(move.what, SCHEDULE_RESTS);
	assert_int_equal(move.slot_at, 100 * SECOND);
	assert_int_equal(move.due_at, 100 * SECOND);
}

static void a_slot_starts_and_the_next_is_due(void **state)
{
	struct schedule_row row = row_of(EVERY(""), 100 * SECOND);
	struct schedule_move move = schedule_plan(&row);

	(void)state;
	assert_int_equal(move.what, SCHEDULE_STARTS);
	assert_int_equal(move.slot_s, 100);
	assert_int_equal(move.slot_at, 110 * SECOND);
	assert_int_equal(move.due_at, 110 * SECOND);
	assert_false(move.from_waiting);
}

static void the_last_slot_is_followed_by_none(void **state)
{
	struct schedule_row row = row_of(EVERY(",\"to\":\"1970-01-01T00:01:40Z\""), 100 * SECOND);
	struct schedule_move move = schedule_plan(&row);

	(void)state;
	assert_int_equal(move.what, SCHEDULE_STARTS);
	assert_int_equal(move.slot_at, 0);
	assert_int_equal(move.due_at, 0);
}

static void jitter_is_of_the_slot(void **state)
{
	struct schedule_row row = row_of(EVERY(",\"jitter\":\"5s\""), 100 * SECOND);
	int64_t late = schedule_due(&row, 100 * SECOND) - 100 * SECOND, other = 0;

	(void)state;
	assert_in_range(late, 0, 4999);
	for (int64_t slot = 110; slot < 300; slot += 10)
		other += schedule_due(&row, slot * SECOND) - slot * SECOND != late;
	assert_true(other > 10);
	row.now = 100 * SECOND + late;
	assert_int_equal(schedule_plan(&row).slot_s, 100);
	if (late) {
		row.now--;
		assert_int_equal(schedule_plan(&row).what, SCHEDULE_RESTS);
	}
}

/* overlap, while something is open. */
static void overlap(void **state)
{
	struct schedule_row row = row_of(EVERY(""), 100 * SECOND);
	struct schedule_move move;

	(void)state;
	row.open = 1;
	MUST_HOLD(schedule_plan(&row).what == SCHEDULE_SKIPS, "a slot starts beside the one before it");
	row.spec.overlap = OVERLAP_ALLOW;
	assert_int_equal(schedule_plan(&row).what, SCHEDULE_STARTS);
	row.spec.overlap = OVERLAP_QUEUE;
	move = schedule_plan(&row);
	assert_int_equal(move.what, SCHEDULE_WAITS_FOR);
	assert_int_equal(move.due_at, row.now + SCHEDULE_OPEN_LOOK_MS);
	assert_false(move.replaces || move.cancels);
	row.queued = row.waiting = SCHEDULE_QUEUE_MAX;
	row.first = 10 * SECOND;
	assert_int_equal(schedule_plan(&row).what, SCHEDULE_SKIPS);
	row.spec.overlap = OVERLAP_CANCEL;
	row.queued = row.waiting = 1;
	move = schedule_plan(&row);
	assert_int_equal(move.what, SCHEDULE_WAITS_FOR);
	assert_true(move.replaces && move.cancels);
}

static void what_waits_goes_first(void **state)
{
	struct schedule_row row = row_of(EVERY(",\"overlap\":\"queue\""), 100 * SECOND);
	struct schedule_move move;

	(void)state;
	row.first = 80 * SECOND;
	row.queued = row.waiting = 2;
	move = schedule_plan(&row);
	assert_int_equal(move.what, SCHEDULE_STARTS);
	assert_int_equal(move.slot_s, 80);
	assert_true(move.from_waiting);
	assert_int_equal(move.slot_at, 100 * SECOND); /* which is still to come */
	row.open = 1;
	move = schedule_plan(&row);
	assert_int_equal(move.what, SCHEDULE_WAITS_FOR);
	assert_int_equal(move.slot_s, 100);
}

static void passes(const char *text, int64_t now, int64_t passed, int64_t slot)
{
	struct schedule_row row = row_of(text, now);
	struct schedule_move move = schedule_plan(&row);

	if (move.passed != passed || (passed ? move.slot_at : move.slot_s * SECOND) != slot * SECOND)
		fail_msg("%s at %lld: %lld are let go, and it goes on with %lld", text, (long long)now,
			 (long long)move.passed, (long long)(passed ? move.slot_at : move.slot_s * SECOND));
}

static void catching_up(void **state)
{
	(void)state;
	/* On time: late by less than half of the way to the next. */
	passes(EVERY(",\"catchUp\":\"none\""), 104 * SECOND, 0, 100);
	passes(EVERY(",\"catchUp\":\"none\""), 105 * SECOND, 1, 110);
	passes(EVERY(",\"catchUp\":\"none\""), 153 * SECOND, 5, 150);
	passes(EVERY(",\"catchUp\":\"last\""), 153 * SECOND, 5, 150);
	passes(EVERY(",\"catchUp\":\"last\""), 157 * SECOND, 5, 150);
	passes(EVERY(",\"catchUp\":\"last\""), 107 * SECOND, 0, 100);
	passes(EVERY(",\"catchUp\":\"all\""), 100000 * SECOND, 0, 100);
	passes(EVERY(",\"catchUp\":\"20s\""), 153 * SECOND, 4, 140);
	passes(EVERY(",\"catchUp\":{\"all\":\"20s\"}"), 153 * SECOND, 4, 140);
	passes(EVERY(""), 24 * 3600 * SECOND + 100 * SECOND, 0, 100);
	passes(EVERY(""), 24 * 3600 * SECOND + 101 * SECOND, 1, 110);
	/* So many at once, and not more. */
	passes("{\"workflow\":\"quick\",\"every\":\"1s\",\"catchUp\":\"none\"}", 1000000 * SECOND, SCHEDULE_PASS_MAX,
	       100 + SCHEDULE_PASS_MAX);
}

/* The jitter is no part of how late it is. */
static void catching_up_counts_from_the_start(void **state)
{
	struct schedule_row row = row_of(
		"{\"workflow\":\"quick\",\"every\":\"1h\",\"jitter\":\"30m\",\"catchUp\":\"1m\"}", 0);

	(void)state;
	row.slot_at = 3600 * SECOND;
	while (schedule_due(&row, row.slot_at) < row.slot_at + 120 * SECOND)
		row.slot_at += 3600 * SECOND;
	row.now = schedule_due(&row, row.slot_at);
	assert_int_equal(schedule_plan(&row).what, SCHEDULE_STARTS);
	row.now += 60 * SECOND;
	assert_int_equal(schedule_plan(&row).what, SCHEDULE_STARTS);
	row.now++;
	assert_int_equal(schedule_plan(&row).passed, 1);
}

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

/* By its catchUp, and as many as may wait. */
static void leaves(const char *text, int64_t now, int64_t first, int64_t n, int64_t passed)
{
	struct schedule_row row = row_of(text, now);
	struct schedule_late late;

	schedule_leave(&row, &late);
	if (late.slots_n != n || late.passed != passed || (n && late.slots[0] != first * SECOND))
		fail_msg("%s at %lld: %lld wait, %lld are let go", text, (long long)now, (long long)late.slots_n,
			 (long long)late.passed);
}

static void slots_that_are_left(void **state)
{
	(void)state;
	leaves(EVERY(""), 99 * SECOND, 0, 0, 0);
	leaves(EVERY(""), 100 * SECOND, 100, 1, 0);
	leaves(EVERY(""), 121 * SECOND, 100, 1, 2); /* overlap skip: the first */
	leaves(EVERY(",\"overlap\":\"allow\""), 121 * SECOND, 100, 3, 0);
	leaves(EVERY(",\"overlap\":\"queue\""), 2099 * SECOND, 100, 100, 100);
	leaves(EVERY(",\"overlap\":\"queue\",\"catchUp\":\"none\""), 121 * SECOND, 120, 1, 2);
	leaves(EVERY(",\"overlap\":\"queue\",\"catchUp\":\"last\""), 127 * SECOND, 120, 1, 2);
	leaves(EVERY(",\"overlap\":\"queue\",\"catchUp\":\"10s\""), 125 * SECOND, 120, 1, 2);
}

/* Ever so much is open: a look reads so much, and what can still be cancelled first. */
static void what_is_open_is_read_in_part(void **state)
{
	struct world *w = *state;
	int64_t subject;

	put(w, EVERY(",\"overlap\":\"cancel\""));
	script(w,
	       "INSERT INTO hx_subject (id, kind, status, version, op, updated_at, seq, head)"
	       " WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300)"
	       " SELECT i, 1, CASE WHEN i <= 50 THEN 'CANCELLING' ELSE 'RUNNING' END, 1, 1, 0, 1, x'' FROM n;"
	       "INSERT INTO hx_schedule_open (schedule, subject) SELECT c.subject, s.id FROM hx_schedule c, hx_subject s"
	       " WHERE s.id <= 300");
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
		cmocka_unit_test(nothing_is_due),
		cmocka_unit_test(a_slot_starts_and_the_next_is_due),
		cmocka_unit_test(the_last_slot_is_followed_by_none),
		cmocka_unit_test(jitter_is_of_the_slot),
		cmocka_unit_test(overlap),
		cmocka_unit_test(what_waits_goes_first),
		cmocka_unit_test(catching_up),
		cmocka_unit_test(catching_up_counts_from_the_start),
		cmocka_unit_test(slots_that_are_left),
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
