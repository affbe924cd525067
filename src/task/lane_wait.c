/*
 * Who waits no longer. See lane.h; lane_parts.h says who calls what.
 *
 * Each ask of the store has one deadline, seat->by, from the budget of whoever waits for it. A unit that is still in the
 * lane's hands when it passes has not been sent to the store, and never will be: its task is told FAILED, which is certain.
 * One that is in the transaction under way ends with that, whose deadline is the latest of those in it.
 *
 *   inbox ─────┐ by has passed            ┌─ the task has ended, sleeps, acts
 *   pending ───┴──────────────▶ refused ──┴─ asks the store again: pending, and refused again
 *
 * The lane's thread is held up by its store, so this is done in the middle of the store's waits, too (lane_tick): callers are
 * answered in time, although the lane does not move.
 *
 * The node's own tasks have no budget. They are refused after BACKGROUND_MS, so that they see that something is wrong, and
 * come again by their own pace.
 */
#include "task/lane_parts.h"

#define BACKGROUND_MS 5000
#define ACTED_MS 20000   /* to write down what an action has answered */
#define STOPPING_MS 2000 /* where callers have no budget either */
#define REFUSALS_MAX 16  /* in a row, of one task */
#define TICK_MS 20
#define LOCKED_TELL_MS 1000

void lane_wait_init(struct lane *lane)
{
	lane->refusal = (struct unit_result){.verdict = UNIT_FAILED, .line = -1};
	error_set(&lane->refusal.error, HX_STORE_UNAVAILABLE, "the store was not to be had in time");
	lane->db->patience = (struct db_patience){.tick = lane_tick, .context = lane};
}

/* Did the store say anything? What it said of the unit's own data is a word, too. */
static bool is_heard(const struct answer *answer)
{
	if (answer->kind != ANSWER_COMMIT)
		return true;
	return answer->result->verdict < UNIT_FAILED ||
	       (answer->result->verdict == UNIT_FAILED && answer->result->error.code == HX_DATA_ERROR);
}

/*
 * A budget is for silence: it begins anew with each word of the store, of an action, and at the end of a sleep. What an action has
 * answered is the dearest word of all: whoever gives it up leaves an effect behind that nobody has recorded. So its caller
 * waits for longer, and hears how it ended.
 */
void lane_wait_heard(struct lane *lane, struct seat *seat, const struct answer *answer)
{
	int64_t budget_ms = lane->options.store_timeout_ms;

	if (answer->kind == ANSWER_ACT && budget_ms && budget_ms < ACTED_MS)
		budget_ms = ACTED_MS; /* mutant: acted-given-up -> ; */
	if (seat->bounded && answer->kind != ANSWER_START && is_heard(answer))
		seat->by = mono_add_ms(answer->mono, budget_ms);
}

static int64_t stopping_ms(const struct lane *lane)
{
	return lane->options.store_timeout_ms ? lane->options.store_timeout_ms : STOPPING_MS;
}

void lane_wait_asks(struct lane *lane, struct seat *seat)
{
	if (!seat->bounded)
		seat->by = mono_add_ms(clock_mono(lane->options.clock),
				       lane->stopping ? stopping_ms(lane) : BACKGROUND_MS);
}

/* What waits now waits no longer than what will. */
void lane_wait_stopping(struct lane *lane)
{
	for (struct seat *seat = lane->pending.first; seat; seat = seat->next)
		lane_wait_asks(lane, seat);
}

/* Certainly nothing of its unit was done. */
static void lane_wait_refuse(struct lane *lane, struct seat *seat)
{
	struct unit spare;
	struct ask ask = {.unit = &spare}; /* cppcheck-suppress uninitvar */

	lane_unit_give_back(lane, seat->unit);
	seat->unit = NULL;
	for (int i = 0; i < REFUSALS_MAX && (i == 0 || ask.kind == ASK_COMMIT); i++) {
		lane_answer_seat(lane, seat, &(struct answer){.kind = ANSWER_COMMIT, .result = &lane->refusal});
		seat->task->kind->ask(seat->task, &ask);
	}
	lane->stats.refused++;
	lane_carry_out(lane, seat, &ask, /* unit= */ NULL);
	lane_act_flush(lane); /* the round that this interrupts may last */
}

/* Out of this list into the other. */
static size_t take_late(struct seat_list *from, struct seat_list *late, struct mono_time now)
{
	struct seat **at = &from->first, *seat;
	size_t n = 0;

	while ((seat = *at)) {
		if (now.ns < seat->by.ns) {
			at = &seat->next;
			continue;
		}
		*at = seat->next;
		lane_list_push(late, seat);
		n++;
	}
	from->last = at;
	return n;
}

/* What is the user's may take longer than that; but not while nothing can be written at all. */
void lane_refuse_late(struct lane *lane)
{
	struct mono_time now = clock_mono(lane->options.clock);
	struct seat_list late;
	struct seat *seat;

	lane_list_init(&late);
	lane->pending_n -= take_late(&lane->pending, &late, now); /* mutant: late-is-sent */
	if (lane->locked_since.ns)
		(void)take_late(&lane->limited, &late, now);
	(void)take_late(&lane->held, &late, now);
	while ((seat = lane_list_pop(&late)))
		lane_wait_refuse(lane, seat);
}

/* They have not begun: they start, and are refused what they ask for. */
static void refuse_late_callers(struct lane *lane, struct mono_time now)
{
	struct seat *seat = inbox_take_late(&lane->inbox, now), *next;

	for (; seat; seat = next) {
		struct unit spare;
		struct ask ask = {.unit = &spare}; /* cppcheck-suppress uninitvar */

		next = seat->next;
		lane_enter(lane, seat);
		lane_answer_seat(lane, seat, &(struct answer){.kind = ANSWER_START});
		seat->task->kind->ask(seat->task, &ask);
		if (ask.kind == ASK_COMMIT)
			lane_wait_refuse(lane, seat);
		else
			lane_carry_out(lane, seat, &ask, /* unit= */ NULL);
	}
	lane_act_flush(lane);
}

/* The end is not kept waiting for a store that is silent. */
static void hurry(struct lane *lane, struct mono_time now)
{
	struct db_patience *patience = &lane->db->patience;

	if (!lane->hurry_by.ns)
		lane->hurry_by = mono_add_ms(now, stopping_ms(lane));
	if (!patience->by.ns || patience->by.ns > lane->hurry_by.ns)
		patience->by = lane->hurry_by;
}

void lane_tick(void *context)
{
	struct lane *lane = context;
	struct mono_time now = clock_mono(lane->options.clock);

	if (now.ns < lane->tick_next.ns)
		return;
	lane->tick_next = mono_add_ms(now, TICK_MS);
	refuse_late_callers(lane, now);
	lane_refuse_late(lane);
	if (inbox_is_stopping(&lane->inbox))
		hurry(lane, now);
}

/* ---- SQLite's write lock, in the hands of another program ---- */

void lane_note_locked(struct lane *lane)
{
	struct mono_time now = clock_mono(lane->options.clock);

	if (!lane->locked_since.ns)
		lane->locked_since = now;
	if (lane->locked_told || now.ns < mono_add_ms(lane->locked_since, LOCKED_TELL_MS).ns)
		return;
	lane->locked_told = true;
	log_error(lane->options.log, "another program has the store's write lock: nothing can be written",
		  log_int("lane", lane->options.number));
}

void lane_note_unlocked(struct lane *lane)
{
	if (lane->locked_told)
		log_info(lane->options.log, "the store's write lock is free again",
			 log_int("lane", lane->options.number),
			 log_int("ms", (clock_mono(lane->options.clock).ns - lane->locked_since.ns) / 1000000));
	lane->locked_since = (struct mono_time){0};
	lane->locked_told = false;
}
