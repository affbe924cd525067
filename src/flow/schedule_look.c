/* See schedule_look.h. */
#include "flow/schedule_look.h"

#include "flow/account.h"
#include "flow/answer.h"
#include "flow/function.h"
#include "flow/shapes.h"
#include "task/states.h"

enum { LOOK_NEW, LOOK_READING, LOOK_READING_ACCOUNT, LOOK_READING_OPEN, LOOK_MOVING, LOOK_RESTING, LOOK_DONE };

/* It is put off, and others come first: whoever cannot start must not stand before those who can. */
static void schedule_look_rest(struct schedule_look *l, const struct answer *answer, enum hx_code code)
{
	l->cannot = code;
	l->move = (struct schedule_move){
		.what = SCHEDULE_RESTS, .slot_at = l->row.slot_at, .due_at = l->row.now + schedule_rest_ms(&l->row)};
	l->stamp = flow_stamp(answer);
	task_go(&l->task, LOOK_RESTING); /* mutant: cannot-start-stays-due -> task_end(&l->task, code); */
}

static void schedule_look_fail(struct schedule_look *l, const struct answer *answer, const char *trouble)
{
	l->trouble = trouble;
	schedule_look_rest(l, answer, HX_CONFIG_ERROR);
}

static void note_cancels(struct schedule_look *l, const struct db_rows *open)
{
	for (size_t i = 0; i < open->n && l->cancels_n < SCHEDULE_CANCEL_MAX; i++) {
		bool batch = db_cell(open, i, 1)->i == batch_kind();

		if (!batch && db_cell(open, i, 1)->i != run_kind() && db_cell(open, i, 1)->i != function_kind())
			continue; /* a step that is being fired cannot be called back: it is waited for */
		l->cancels[l->cancels_n].subject = db_cell(open, i, 0)->i;
		l->cancels[l->cancels_n++].batch = batch;
	}
}

static void schedule_look_go_on(struct schedule_look *l, const struct answer *answer)
{
	l->stamp = flow_stamp(answer);
	task_go(&l->task, LOOK_MOVING);
}

/* What the slot starts: the newest version of its workflow. */
static void prepare(struct schedule_look *l, const struct answer *answer)
{
	bool there;

	l->start = (struct schedule_start){.subject = answer->more_ids[0],
					   .key = schedule_slot_key(l->row.name, l->move.slot_s, l->arena)};
	there = schedule_start_of(l->policy, &l->row, l->arena, &l->start);
	if (!there)
		schedule_look_fail(l, answer, "there is no such workflow here");
	else if (l->arena->failed)
		schedule_look_rest(l, answer, HX_TOO_LARGE);
	else if (l->start.batch)
		task_go(&l->task, LOOK_READING_ACCOUNT);
	else
		schedule_look_go_on(l, answer);
}

static bool has_news(const struct schedule_look *l)
{
	return l->move.what != SCHEDULE_RESTS || l->move.due_at != l->row.due_at || l->move.slot_at != l->row.slot_at;
}

static void schedule_look_decide(struct schedule_look *l, const struct answer *answer)
{
	if (!l->row.spec.timing.zone) {
		schedule_look_fail(l, answer, "its timezone is not known here: is the package tzdata installed?");
		return;
	}
	l->move = schedule_plan(&l->row);
	l->there = false;
	l->cancels_n = 0;
	l->more = l->move.due_at && l->move.due_at <= l->row.now;
	if (!has_news(l))
		task_end(&l->task, HX_OK);
	else if (l->move.cancels)
		task_go(&l->task, LOOK_READING_OPEN); /* the others need not know what it is */
	else if (l->move.what == SCHEDULE_STARTS)
		prepare(l, answer);
	else
		schedule_look_go_on(l, answer);
}

static void schedule_look_take_read(struct schedule_look *l, const struct answer *answer)
{
	const struct db_rows *rows = &answer->result->rows[0];
	enum hx_code code;

	if (answer->result->verdict != UNIT_WON) {
		task_end(&l->task, HX_STORE_UNAVAILABLE);
		return;
	}
	if (rows->n == 0 || l->moves++ == SCHEDULE_LOOK_MOVES_MAX) {
		task_end(&l->task, HX_OK);
		return;
	}
	code = schedule_row_take(rows, 0, l->policy, l->arena, &l->row);
	if (!l->row.due_at || (l->row.due_at > l->row.now && !l->lost))
		task_end(&l->task, HX_OK);
	else if (code == HX_DATA_ERROR)
		schedule_look_fail(l, answer, "what it says cannot be read by this version");
	else if (code)
		schedule_look_rest(l, answer, code);
	else
		schedule_look_decide(l, answer);
}

static void take_account(struct schedule_look *l, const struct answer *answer)
{
	if (answer->result->verdict != UNIT_WON) {
		task_end(&l->task, HX_STORE_UNAVAILABLE);
	} else if (answer->result->rows[0].n == 0) {
		schedule_look_fail(l, answer, "there is no such account");
	} else {
		l->start.account = db_cell(&answer->result->rows[0], 0, 0)->i;
		schedule_look_go_on(l, answer);
	}
}

/* Nothing is started beside what is open. */
static void take_open(struct schedule_look *l, const struct answer *answer)
{
	if (answer->result->verdict != UNIT_WON) {
		task_end(&l->task, HX_STORE_UNAVAILABLE);
		return;
	}
	note_cancels(l, &answer->result->rows[0]);
	schedule_look_go_on(l, answer);
}

static void schedule_look_count(struct schedule_look *l)
{
	int64_t late_ms = l->row.now - schedule_due(&l->row, l->move.slot_s * 1000);

	l->skipped += l->move.what == SCHEDULE_SKIPS;
	l->missed += l->move.passed;
	if (l->move.what != SCHEDULE_STARTS || l->there)
		return;
	l->started++;
	if (!l->move.from_waiting && late_ms > l->late_ms)
		l->late_ms = late_ms;
}

/* What another node has put off, because it cannot start it, may be started here all the same. */
static void schedule_look_read_again(struct schedule_look *l)
{
	l->lost = true;
	task_go(&l->task, LOOK_READING);
}

static void take_moved(struct schedule_look *l, const struct answer *answer)
{
	enum unit_verdict verdict = answer->result->verdict;

	l->there = verdict == UNIT_LOST ? answer->result->line > 0 : l->there;
	if (verdict == UNIT_WON) {
		schedule_look_count(l);
		l->lost = false;
		if (l->more)
			task_go(&l->task, LOOK_READING);
		else
			task_end(&l->task, HX_OK);
	} else if (verdict == UNIT_LOST && l->there) {
		schedule_look_go_on(l, answer);
	} else if (verdict == UNIT_LOST) {
		schedule_look_read_again(l);
	} else if (verdict == UNIT_REFUSED && l->start.run && l->start.run->definition->is_function) {
		schedule_look_fail(l, answer, "there is no such workflow here, and nobody polls for such a function");
	} else if (flow_failure(answer->result) == HX_DATA_ERROR) {
		schedule_look_rest(l, answer, HX_DATA_ERROR);
	} else {
		task_end(&l->task, flow_failure(answer->result));
	}
}

static void take_rested(struct schedule_look *l, const struct answer *answer)
{
	if (answer->result->verdict == UNIT_LOST) {
		schedule_look_read_again(l);
		return;
	}
	l->rested = answer->result->verdict == UNIT_WON;
	task_end(&l->task, l->cannot);
}

static void build_read(const struct schedule_look *l, struct unit *unit)
{
	schedule_read(unit, l->subject, slice_of(NULL, 0), slice_of(NULL, 0));
}

static void build_open(const struct schedule_look *l, struct unit *unit)
{
	schedule_read_open(unit, l->subject);
}

static void build_account(const struct schedule_look *l, struct unit *unit)
{
	account_read(unit, l->row.workspace, l->row.spec.account);
}

/* The slot is left in the unit that starts it. */
static void build_move(const struct schedule_look *l, struct unit *unit)
{
	bool starts = l->move.what == SCHEDULE_STARTS && !l->there;

	schedule_move_on(unit, &l->stamp, &l->row, &l->move, starts ? l->start.subject : 0);
	if (!starts)
		return;
	schedule_start_add(unit, &l->stamp, &l->row, &l->start); /* mutant: slot-left-without-start */
}

static void build_rest(const struct schedule_look *l, struct unit *unit)
{
	schedule_move_on(unit, &l->stamp, &l->row, &l->move, /* subject= */ 0);
}

static const TASK_STATES(struct schedule_look) look_states[] = {
	[LOOK_NEW] = {"new", .then = LOOK_READING},
	[LOOK_READING] = {"reading", schedule_look_take_read, build_read},
	[LOOK_READING_ACCOUNT] = {"reading its account", take_account, build_account},
	[LOOK_READING_OPEN] = {"reading what is to be cancelled", take_open, build_open},
	[LOOK_MOVING] = {"leaving a slot", take_moved, build_move, .unknown = LOOK_READING},
	[LOOK_RESTING] = {"putting it off", take_rested, build_rest},
	[LOOK_DONE] = {"done"},
};

/* What is read again decides nothing; of what was read, a move is guarded by the revision, and its texts are those of that. */
static void schedule_look_forget(void *copy)
{
	struct schedule_look *l = copy;
	struct schedule_row row = {.revision = l->row.revision};
	bool moving = l->task.at == LOOK_MOVING || l->task.at == LOOK_RESTING || l->task.at == LOOK_READING_OPEN;

	l->row = moving ? row : (struct schedule_row){0};
	l->move = moving ? l->move : (struct schedule_move){0};
	l->start = (struct schedule_start){0};
	l->there = moving && l->there;
	l->started = l->skipped = l->missed = l->late_ms = 0; /* for whoever tells */
	l->moves = 0;                                         /* far from its bound */
	l->arena = NULL;
}

static const struct task_shape look_shape = SHAPE(struct schedule_look, schedule_look_forget,
						  PART_WITH(INNER, struct schedule_look, stamp, &stamp_noted_shape));

TASK_KIND_STAMPED(look_kind, "schedule look", struct schedule_look, look_states, .shape = &look_shape);

void schedule_look_init(struct schedule_look *look, int64_t subject, const struct schedule_policy *policy,
			struct arena *arena)
{
	*look = (struct schedule_look){.subject = subject, .policy = policy, .arena = arena};
	task_init(&look->task, &look_kind, /* topic= */ 0);
}
