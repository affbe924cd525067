/* What a schedule does next: a pure function of its row, and of the store's clock when it was read. See schedule.h. */
#include <stdio.h>

#include "flow/backoff.h"
#include "flow/schedule.h"

int64_t schedule_slot_after(const struct schedule_row *row, int64_t after_ms)
{
	int64_t slot = timing_next(&row->spec.timing, floor_div(after_ms, 1000));

	return slot == ZONE_NO_TIME ? 0 : slot * 1000;
}

int64_t schedule_due(const struct schedule_row *row, int64_t slot_at)
{
	return slot_at ? slot_at + schedule_jitter_ms(&row->spec, row->name, slot_at / 1000) : 0;
}

static bool is_due(const struct schedule_row *row, int64_t slot_at)
{
	return slot_at && schedule_due(row, slot_at) <= row->now;
}

/* Under way as it should be: late by less than half of the time to the next one, and by a few seconds at most. */
static bool is_on_time(const struct schedule_row *row, int64_t slot_at, int64_t next_at)
{
	int64_t half = next_at ? (next_at - slot_at) / 2 : SCHEDULE_LATE_MS;

	return row->now - schedule_due(row, slot_at) < (half < SCHEDULE_LATE_MS ? half : SCHEDULE_LATE_MS);
}

/* Nobody was there, and it is not to be made up for. */
static bool is_missed(const struct schedule_row *row, int64_t slot_at, int64_t next_at)
{
	switch (row->spec.catch_up) {
	case CATCH_UP_NONE:
		return !is_on_time(row, slot_at, next_at);
	case CATCH_UP_LAST:
		return !is_on_time(row, slot_at, next_at) && is_due(row, next_at);
	case CATCH_UP_ALL:
		break;
	}
	return row->spec.catch_up_ms && schedule_due(row, slot_at) < row->now - row->spec.catch_up_ms;
}

/* All that are missed from slot_at on, as one move. False: it is not missed. */
static bool pass(const struct schedule_row *row, struct schedule_move *move)
{
	int64_t slot = row->slot_at, next = schedule_slot_after(row, slot);

	while (is_due(row, slot) && is_missed(row, slot, next) && move->passed < SCHEDULE_PASS_MAX) {
		move->passed++;
		slot = next;
		next = slot ? schedule_slot_after(row, slot) : 0;
	}
	if (!move->passed)
		return false;
	move->what = SCHEDULE_PASSES;
	move->slot_at = slot;
	return true;
}

/* The slot at slot_at, which is due. */
static void meet(const struct schedule_row *row, struct schedule_move *move)
{
	bool busy = row->open > 0; /* mutant: overlap-unseen -> bool busy = false; */

	move->slot_s = row->slot_at / 1000;
	move->slot_at = schedule_slot_after(row, row->slot_at);
	move->what = SCHEDULE_STARTS;
	if (row->spec.overlap == OVERLAP_SKIP && busy)
		move->what = SCHEDULE_SKIPS;
	else if (row->spec.overlap == OVERLAP_QUEUE && (busy || row->queued))
		move->what = row->queued < SCHEDULE_QUEUE_MAX ? SCHEDULE_WAITS_FOR : SCHEDULE_SKIPS;
	else if (row->spec.overlap == OVERLAP_CANCEL && busy)
		move->what = SCHEDULE_WAITS_FOR;
	move->replaces = row->spec.overlap == OVERLAP_CANCEL && row->queued && move->what == SCHEDULE_WAITS_FOR;
}

static int64_t earlier(int64_t a, int64_t b)
{
	return !a || (b && b < a) ? b : a;
}

struct schedule_move schedule_plan(const struct schedule_row *row)
{
	struct schedule_move move = {.slot_at = row->slot_at};
	bool free = row->spec.overlap == OVERLAP_ALLOW || !row->open;
	int64_t waiting = row->waiting;

	if (row->first && free) {
		move.what = SCHEDULE_STARTS;
		move.slot_s = row->first / 1000;
		move.from_waiting = true;
		waiting--;
	} else if (is_due(row, row->slot_at) && !pass(row, &move)) {
		meet(row, &move);
	}
	waiting += move.what == SCHEDULE_WAITS_FOR;
	move.due_at = schedule_due(row, move.slot_at);
	if (waiting)
		move.due_at = earlier(move.due_at,
				      row->now + (row->spec.overlap == OVERLAP_ALLOW ? 0 : SCHEDULE_OPEN_LOOK_MS));
	move.cancels = row->spec.overlap == OVERLAP_CANCEL && row->open &&
		       (row->queued || move.what == SCHEDULE_WAITS_FOR);
	return move;
}

/* How many of them may wait: as many as if each had been met by a look. */
static int64_t room_of(const struct schedule_row *row)
{
	bool many = row->spec.overlap == OVERLAP_QUEUE || row->spec.overlap == OVERLAP_ALLOW;
	int64_t most = many ? SCHEDULE_QUEUE_MAX : 1;

	return most > row->queued ? most - row->queued : 0;
}

void schedule_leave(const struct schedule_row *row, struct schedule_late *ret_late)
{
	int64_t room = room_of(row), next;

	*ret_late = (struct schedule_late){0};
	for (int64_t slot = row->slot_at; slot && slot <= row->now; slot = next) {
		next = schedule_slot_after(row, slot);
		if (ret_late->slots_n < room && !is_missed(row, slot, next))
			ret_late->slots[ret_late->slots_n++] = slot;
		else if (ret_late->passed++ == SCHEDULE_PASS_MAX)
			break;
	}
}

int64_t schedule_due_since(const struct schedule_row *row)
{
	int64_t slot_due = is_due(row, row->slot_at) ? schedule_due(row, row->slot_at) : 0;

	return earlier(slot_due, row->open ? 0 : row->first);
}

/* The row does not count the tries: so many rests as fit into the time since it could be started, or was changed last. */
int64_t schedule_rest_ms(const struct schedule_row *row)
{
	static const struct run_retry rests = {
		.initial_ms = SCHEDULE_REST_MS, .max_ms = SCHEDULE_REST_MS_MAX, .factor_thousandths = 2000};
	int64_t since = schedule_due_since(row), ms = SCHEDULE_REST_MS;

	since = since > row->updated_at ? since : row->updated_at;
	for (int64_t attempt = 1, at = since + ms; at <= row->now && ms < SCHEDULE_REST_MS_MAX; at += ms)
		ms = backoff_ms(&rests, ++attempt, /* drawn= */ 0);
	return ms;
}

static struct slice make_key(struct slice name, const char *between, struct slice id, struct arena *arena)
{
	struct strbuf text;

	strbuf_init(&text, 1024);
	strbuf_addf(&text, "schedule:%.*s:%s%.*s", SLICE_ARGS(name), between, SLICE_ARGS(id));
	return arena_keep(arena, &text);
}

struct slice schedule_slot_key(struct slice name, int64_t slot_s, struct arena *arena)
{
	char slot[SCHEDULE_SLOT_BYTES];

	schedule_slot_format(slot_s, slot);
	return make_key(name, "", slice_str(slot), arena);
}

struct slice schedule_trigger_key(struct slice name, struct slice id, struct arena *arena)
{
	return make_key(name, "trigger:", id, arena);
}
