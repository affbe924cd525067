/*
 * Units with a limit (db/unit.h), and units that wait for somebody's lock: apart from the lane's groups, so that nobody has to
 * wait for them.
 *
 * With an aside (PostgreSQL) they are copied, sent there, and come back as mail. The seat waits meanwhile, in no list. While a
 * unit is aside it may hold its subjects for as long as its limit; others that touch one of them are `held` until
 * it is back, or they would wait in the middle of a group. Units of other lanes and nodes may meet it there
 * all the same: they have little patience (LANE_LOCK_MS), and then go aside, too.
 *
 * Without (SQLite has one connection that writes) they are run here, a transaction of theirs after each of the others', in the
 * same three goes as aside: together, each alone, each with its own limit. That limit is then how long the lane may stand
 * still.
 */
#include <stdlib.h>

#include "task/lane_parts.h"

/* The place of one of its subjects in lane->aside. */
struct errand_key {
	struct errand_key *next, **slot;
	int64_t subject;
};

struct lane_errand {
	struct errand errand;
	struct lane *lane;
	struct seat *seat;
	struct mail *mail; /* made beforehand, so that the answer cannot fail */
	struct errand_key keys[UNIT_SUBJECTS_MAX];
};

/* ---- aside ---- */

static bool is_aside(const struct lane *lane, int64_t subject)
{
	const struct errand_key *key = lane->aside[lane_bucket((uint64_t)subject)];

	while (key && key->subject != subject)
		key = key->next;
	return key != NULL;
}

static bool touches_aside(const struct lane *lane, const struct unit *unit)
{
	for (unsigned i = 0; i < unit->subjects_n && lane->aside_n; i++)
		if (is_aside(lane, unit->subjects[i]))
			return true;
	return false;
}

static void enter_keys(struct lane *lane, struct lane_errand *e)
{
	for (unsigned i = 0; i < e->errand.unit.subjects_n; i++) {
		struct errand_key *key = &e->keys[i];

		key->subject = e->errand.unit.subjects[i];
		key->slot = &lane->aside[lane_bucket((uint64_t)key->subject)];
		key->next = *key->slot;
		if (key->next)
			key->next->slot = &key->next;
		*key->slot = key;
	}
	lane->aside_n++;
}

static void leave_keys(struct lane *lane, struct lane_errand *e)
{
	for (unsigned i = 0; i < e->errand.unit.subjects_n; i++) {
		*e->keys[i].slot = e->keys[i].next;
		if (e->keys[i].next)
			e->keys[i].next->slot = e->keys[i].slot;
	}
	lane->aside_n--;
}

/* In a worker's thread. */
static void errand_done(struct errand *errand)
{
	struct lane_errand *e = (struct lane_errand *)errand;

	*e->mail = (struct mail){.errand = errand};
	inbox_put_mail(&e->lane->inbox, e->mail);
}

static bool go_aside(struct lane *lane, struct seat *seat, const struct unit *unit, enum errand_go go)
{
	struct lane_errand *e = lane->options.aside ? calloc(1, sizeof *e) : NULL;

	if (e)
		e->mail = malloc(sizeof *e->mail);
	if (!e || !e->mail) {
		free(e);
		return false;
	}
	e->errand.unit = *unit;
	e->errand.go = go;
	e->errand.done = errand_done;
	e->lane = lane;
	e->seat = seat;
	enter_keys(lane, e);
	aside_send(lane->options.aside, &e->errand);
	return true;
}

/* Of all that wait for one row, one waits at the store: more would only fill the workers, and be apart afterwards. */
bool lane_leave_group(struct lane *lane, struct seat *seat, const struct unit *unit)
{
	if (touches_aside(lane, unit)) {
		lane_list_push(&lane->held, seat);
		return true;
	}
	if (!go_aside(lane, seat, unit, ERRAND_ALONE))
		return false;
	lane->stats.group.aside++;
	return true;
}

void lane_errand_back(struct lane *lane, struct mail *mail)
{
	struct lane_errand *e = (struct lane_errand *)mail->errand;
	const struct unit_result *result = &e->errand.result;
	struct seat *seat;

	leave_keys(lane, e);
	lane_give(lane, e->seat, &(struct answer){.kind = ANSWER_COMMIT, .result = result, .sent = e->errand.sent});
	if (result->verdict == UNIT_WON || result->verdict == UNIT_UNKNOWN)
		group_wake(&e->errand.unit, &lane->sink);
	lane_tell_peers(lane);
	while ((seat = lane_list_pop(&lane->held))) {
		seat->state = SEAT_READY; /* asks once more */
		lane_list_push(&lane->ready, seat);
	}
	arena_release(&e->errand.arena);
	free(e->mail);
	free(e);
}

/* ---- here ---- */

static struct unit *ask_again(struct lane *lane, struct seat *seat)
{
	struct ask ask = {.unit = lane_unit_take(lane)}; /* who waits has let go of theirs */

	seat->task->kind->ask(seat->task, &ask);
	ASSERT(ask.kind == ASK_COMMIT);
	return ask.unit;
}

/* The first, and with it, if it may go with others, the next that may. Those that do not fit go to the end. */
static size_t gather(struct lane *lane)
{
	static _Thread_local size_t picked[GROUP_UNITS_MAX];
	bool together = lane->limited.first->go == ERRAND_TOGETHER;
	size_t n = 0, picked_n, p = 0;

	while (lane->limited.first && n < (together ? GROUP_UNITS_MAX : 1) &&
	       (lane->limited.first->go == ERRAND_TOGETHER) == together) {
		lane->hand->seats[n] = lane_list_pop(&lane->limited);
		lane->hand->units[n] = ask_again(lane, lane->hand->seats[n]);
		n++;
	}
	picked_n = group_pick(lane_table(lane), lane->hand->units, n, n, picked);
	for (size_t i = 0; i < n; i++) {
		if (p < picked_n && picked[p] == i) {
			lane->hand->seats[p] = lane->hand->seats[i];
			lane->hand->units[p++] = lane->hand->units[i];
		} else {
			lane_unit_give_back(lane, lane->hand->units[i]);
			lane_list_push(&lane->limited, lane->hand->seats[i]);
		}
	}
	return picked_n;
}

static bool run_go(struct lane *lane, size_t n)
{
	struct group *group = lane_hand_begin(lane, n);
	struct flight *hand = lane->hand;

	lane->db->patience.reads = false;
	if (hand->seats[0]->go != ERRAND_LONG)
		return group_try(group, ASIDE_TRY_MS, lane->db, &hand->arena, lane->options.resolve_ms, &lane->sink,
				 &lane->stats.group);
	if (group_run(group, lane->db, &hand->arena, lane->options.resolve_ms, &lane->sink, &lane->stats.group)) {
		lane_note_unlocked(lane);
		return true;
	}
	lane_note_locked(lane);
	return false;
}

void lane_limited_round(struct lane *lane)
{
	size_t n = gather(lane);
	enum errand_go next = n > 1 ? ERRAND_ALONE : ERRAND_LONG;
	bool told = run_go(lane, n);

	for (size_t i = 0; i < n && !told; i++) {
		lane->hand->seats[i]->go = next;
		lane_list_push(&lane->limited, lane->hand->seats[i]);
	}
	lane_hand_over(lane, told);
	lane->db->driver->tend(lane->db, /* idle= */ false);
}

/* ---- a seat that wants to commit ---- */

static void refuse_without_memory(struct lane *lane, struct seat *seat)
{
	static const struct unit_result result = {
		.verdict = UNIT_FAILED, .line = -1, .error = {.code = HX_NO_MEMORY, .detail = "no memory for a unit"}};

	lane_give(lane, seat, &(struct answer){.kind = ANSWER_COMMIT, .result = &result});
}

bool lane_limited_take(struct lane *lane, struct seat *seat, const struct unit *unit)
{
	if (touches_aside(lane, unit)) {
		lane_list_push(&lane->held, seat);
		return true;
	}
	if (!unit->limit_ms)
		return false;
	if (!lane->options.aside) {
		seat->go = ERRAND_TOGETHER;
		lane_list_push(&lane->limited, seat);
	} else if (!go_aside(lane, seat, unit, ERRAND_TOGETHER)) {
		refuse_without_memory(lane, seat);
	}
	return true;
}
