/*
 * The lane's thread: rounds of resuming, gathering, committing (lane_group.c). See lane.h for the picture.
 *
 * A seat is in exactly one place: the inbox, the ready list, the pending list or a group (COMMITTING), the acting table
 * (ACTING, with a timer when it has a lease) or the timers (SLEEPING). Seats with a topic are in the topic
 * table besides, from the start to the end.
 */
#include <sched.h>
#include <stdlib.h>

#include "base/bell.h"
#include "db/migrate.h"
#include "task/lane_parts.h"

#define COMMIT_GRACE_NS 2000000000 /* after the drain: tasks that do nothing but commit soon come to their end */
#define LANE_LOCK_MS 100           /* how long a group waits for a row that somebody has locked, if there is an aside */
#define HELD_LOOK_NS 50000000      /* who waits for a unit that is aside may have no more time */
#define IDLE_NS 200000000          /* quiet for so long: time for the store's housekeeping */

/* ---- lists and tables ---- */

void lane_list_init(struct seat_list *list)
{
	list->first = NULL;
	list->last = &list->first;
}

void lane_list_push(struct seat_list *list, struct seat *seat)
{
	seat->next = NULL;
	*list->last = seat;
	list->last = &seat->next;
}

struct seat *lane_list_pop(struct seat_list *list)
{
	struct seat *seat = list->first;

	if (seat) {
		list->first = seat->next;
		if (!list->first)
			list->last = &list->first;
	}
	return seat;
}

/* ---- giving answers ---- */

void lane_answer_seat(struct lane *lane, struct seat *seat, struct answer *answer)
{
	answer->now = clock_wall(lane->options.clock);
	answer->mono = clock_mono(lane->options.clock);
	lane->ids.node = atomic_load_explicit(&lane->node_number, memory_order_relaxed);
	answer->id = id_next(&lane->ids, answer->now);
	for (int i = 0; i < ANSWER_IDS_MAX; i++)
		answer->more_ids[i] = id_next(&lane->ids, answer->now);
	answer->ids = &lane->ids;
	answer->node = lane->options.node;
	lane_wait_heard(lane, seat, answer);
	(void)task_take(seat->task, seat->task->turn, answer); /* always its own turn: tickets are used once */
	if (seat->committed && answer->kind == ANSWER_COMMIT)
		seat->committed(seat);
	seat->state = SEAT_READY;
}

void lane_give(struct lane *lane, struct seat *seat, struct answer *answer)
{
	lane_answer_seat(lane, seat, answer);
	lane_list_push(&lane->ready, seat);
}

void lane_finish(struct lane *lane, struct seat *seat, enum hx_code code)
{
	timer_cancel(&lane->timers, &seat->timer);
	lane_topic_leave(lane, seat);
	lane_places_leave(lane, seat);
	lane->seats_in--;
	if (!seat->own)
		inbox_leave(&lane->inbox);
	seat->done(seat, code);
}

void lane_end_sleep(struct lane *lane, struct seat *seat)
{
	timer_cancel(&lane->timers, &seat->timer);
	lane_places_wake(seat);
	seat->task->woken = false;
	lane_give(lane, seat, &(struct answer){.kind = ANSWER_WOKE});
}

/* ---- a round ---- */

static void start_sleep(struct lane *lane, struct seat *seat, const struct ask *ask)
{
	struct mono_time until = ask->until;

	if (lane->stopping) {
		lane_finish(lane, seat, HX_STOPPING);
		return;
	}
	seat->state = SEAT_SLEEPING;
	if (!lane_places_sleep(lane, seat, ask, &until) || seat->task->woken ||
	    until.ns <= clock_mono(lane->options.clock).ns) {
		lane_end_sleep(lane, seat);
		return;
	}
	if (timer_set(&lane->timers, &seat->timer, until))
		lane_finish(lane, seat, HX_NO_MEMORY);
}

void lane_carry_out(struct lane *lane, struct seat *seat, const struct ask *ask, struct unit *unit)
{
	switch (ask->kind) {
	case ASK_COMMIT:
		if (lane->stopping && clock_mono(lane->options.clock).ns >= lane->stop_by.ns + COMMIT_GRACE_NS) {
			lane_finish(lane, seat, HX_STOPPING); /* it would go on for ever; what it has committed stays */
			break;
		}
		seat->state = SEAT_COMMITTING;
		lane_wait_asks(lane, seat);
		if (lane_limited_take(lane, seat, ask->unit))
			break;
		seat->unit = unit;
		lane_list_push(&lane->pending, seat);
		lane->pending_n++;
		return;
	case ASK_ACT:
		lane_act_start(lane, seat, &ask->act);
		break;
	case ASK_SLEEP:
		start_sleep(lane, seat, ask);
		break;
	case ASK_DONE:
		lane_finish(lane, seat, ask->code);
		break;
	}
	lane_unit_give_back(lane, unit);
}

/* Asks a seat what it wants. A unit from the pool is kept by the seat when it wants to commit. */
static void resume(struct lane *lane, struct seat *seat)
{
	struct unit spare, *unit = lane_unit_take(lane);
	struct ask ask = {.unit = unit ? unit : &spare}; /* cppcheck-suppress uninitvar */

	seat->task->kind->ask(seat->task, &ask);
	lane_carry_out(lane, seat, &ask, unit);
}

static void fire_timers(struct lane *lane)
{
	struct mono_time now = clock_mono(lane->options.clock);
	struct timer *timer;

	while ((timer = timers_take_due(&lane->timers, now))) {
		struct seat *seat = (struct seat *)((char *)timer - offsetof(struct seat, timer));

		if (seat->state == SEAT_ACTING)
			lane_act_timer_fired(lane, seat);
		else if (seat->state == SEAT_SLEEPING)
			lane_end_sleep(lane, seat);
	}
}

void lane_enter(struct lane *lane, struct seat *seat)
{
	seat->timer = (struct timer){0};
	seat->unit = NULL;
	lane->seats_in++;
	lane_topic_enter(lane, seat);
	lane_places_enter(lane, seat);
}

static void begin_stop(struct lane *lane)
{
	lane->stopping = true;
	lane->stop_by = mono_add_ms(clock_mono(lane->options.clock), lane->drain_ms);
	lane_wait_stopping(lane);
	for (size_t i = lane->timers.n; i >= 1; i--) {
		struct seat *seat = (struct seat *)((char *)lane->timers.heap[i] - offsetof(struct seat, timer));

		if (seat->state == SEAT_SLEEPING) {
			seat->state = SEAT_READY; /* asks to sleep once more, and start_sleep then ends it */
			lane_list_push(&lane->ready, seat);
		}
	}
}

static void open_mailbag(struct lane *lane, struct mailbag *d)
{
	for (struct seat *seat = d->seats, *next; seat; seat = next) {
		next = seat->next;
		lane_enter(lane, seat);
		lane_give(lane, seat, &(struct answer){.kind = ANSWER_START});
	}
	for (struct mail *mail = d->mail, *next; mail; mail = next) {
		next = mail->next;
		if (mail->errand)
			lane_errand_back(lane, mail);
		else
			lane_act_open_mail(lane, mail);
	}
	if (d->wake_everybody)
		lane_wake_all_here(lane);
	else
		for (size_t i = 0; i < d->wakes_n; i++)
			lane_wake_topic(lane, d->wakes[i]);
	for (size_t i = 0; i < d->offers_n; i++)
		lane_pass_offer(lane, d->offers[i]);
	if (d->stopping && !lane->stopping)
		begin_stop(lane);
}

/* How long there is nothing to do but wait. */
static int64_t wait_ns(struct lane *lane, bool tended)
{
	struct timer *first = timers_first(&lane->timers);
	struct mono_time now = clock_mono(lane->options.clock);
	int64_t ns = tended ? INT64_MAX : IDLE_NS;

	/* A stop with nothing left in the lane still waits for its beats, which come through the inbox. */
	if (lane->ready.first || lane->pending.first || lane->limited.first)
		return 0;
	if (first && first->due.ns - now.ns < ns)
		ns = first->due.ns - now.ns;
	if (lane->held.first && HELD_LOOK_NS < ns)
		ns = HELD_LOOK_NS;
	if (lane->stopping && lane->seats_in && lane->stop_by.ns - now.ns < ns)
		ns = lane->stop_by.ns - now.ns;
	return ns > 0 ? ns : 0;
}

static bool stopped(struct lane *lane)
{
	if (!lane->stopping)
		return false;
	if (lane->seats_in && clock_mono(lane->options.clock).ns >= lane->stop_by.ns)
		lane_act_drop_all(lane);
	return lane->seats_in == 0 && lane->beats_out == 0;
}

void lane_resume_ready(struct lane *lane)
{
	struct seat *seat;

	bells_hold(); /* a loop that is woken by the first of its letters would run, and sleep, once for each of them */
	while ((seat = lane_list_pop(&lane->ready)))
		resume(lane, seat);
	lane_act_flush(lane);
	bells_let_go();
}

/*
 * Whoever has just been answered often comes back at once. Giving way before a group begins lets such callers in, so
 * that all travel together; otherwise they form two groups of half the size that take turns for ever. There is no
 * timer in this: whoever is not there when the lane runs again is not waited for. While a group is up, half of the callers
 * wait for that one anyway, and the processor is better used.
 */
static void give_way(struct lane *lane)
{
	if (!lane->up)
		sched_yield();
	(void)inbox_take(&lane->inbox, /* wait_ns= */ 0, &lane->stats, &lane->bag); /* an empty one is fine */
	open_mailbag(lane, &lane->bag);
	lane_resume_ready(lane);
}

static void *lane_run(void *context)
{
	struct lane *lane = context;
	bool tended = true;

	while (!stopped(lane)) {
		int64_t ns = wait_ns(lane, tended);

		lane_assert_valid(lane);
		if (!inbox_take(&lane->inbox, ns, &lane->stats, &lane->bag) && ns == IDLE_NS && !lane->up) {
			lane->db->driver->tend(lane->db, /* idle= */ true);
			tended = true;
		}
		lane_land(lane, /* wait= */ false);
		open_mailbag(lane, &lane->bag);
		fire_timers(lane);
		lane_refuse_late(lane);
		lane_ask_pending(lane);
		lane_resume_ready(lane);
		if (lane->pending.first) {
			give_way(lane);
			lane_refuse_late(lane); /* who asks again after its time has passed is not sent */
			lane_commit_round(lane);
			tended = false;
		}
		if (lane->limited.first) {
			lane_land(lane, /* wait= */ true);
			lane_resume_ready(lane); /* who is answered does not wait for somebody else's statement */
			lane_units_let_go(lane);
			lane_limited_round(lane);
			tended = false;
		}
	}
	ASSERT(!lane->up); /* its seats are in the lane */
	LOCKED(&lane->inbox.mutex);
	lane->inbox.stats = lane->stats; /* of the last round too */
	return NULL;
}

/* ---- from outside ---- */

enum hx_code lane_submit(struct lane *lane, struct seat *seat)
{
	return inbox_put_seat(&lane->inbox, seat);
}

enum hx_code lane_submit_own(struct lane *lane, struct seat *seat)
{
	return inbox_put_own(&lane->inbox, seat);
}

void lane_answer_not_before(struct ticket ticket, enum act_outcome outcome, struct slice output, int64_t not_before_ms)
{
	struct mail *mail = malloc(sizeof *mail + output.n);

	if (!mail) { /* the output cannot be carried, the outcome must be: what is not known is unknown */
		mail = malloc(sizeof *mail);
		ASSERT(mail);
		outcome = ACT_UNKNOWN;
		output.n = 0;
	}
	*mail = (struct mail){
		.number = ticket.number, .outcome = outcome, .not_before_ms = not_before_ms, .output_bytes = output.n};
	if (output.n)
		memcpy(mail->output, output.p, output.n);
	inbox_put_mail(&ticket.lane->inbox, mail);
}

void lane_set_node_number(struct lane *lane, uint32_t number)
{
	ASSERT(number <= ID_NODE_MAX);
	atomic_store(&lane->node_number, number);
}

void lane_set_peers(struct lane *lane, struct lane *const peers[], size_t n)
{
	lane->peers_n = 0;
	for (size_t i = 0; i < n; i++)
		if (peers[i] != lane) {
			ASSERT(lane->peers_n < LANE_PEERS_MAX);
			lane->peers[lane->peers_n++] = peers[i];
		}
}

void lane_nudge(struct lane *lane)
{
	inbox_nudge(&lane->inbox);
}

void lane_read_stats(struct lane *lane, struct lane_stats *ret_stats)
{
	LOCKED(&lane->inbox.mutex);
	*ret_stats = lane->inbox.stats;
	ret_stats->waiting += lane->inbox.arrived_n;
	ret_stats->seats = lane->inbox.seats_n;
}

static void lane_destroy(struct lane *lane)
{
	db_close(lane->db);
	timers_release(&lane->timers);
	lane_groups_release(lane);
	inbox_release(&lane->inbox);
	free(lane->units);
	free(lane);
}

/* In a thread of the store's: what is up may be landed. */
static void lane_told(void *context)
{
	lane_nudge(context);
}

bool lane_settle(struct lane *lane, struct mono_time by)
{
	return !lane->db->may_be_later || lane->db->driver->settle(lane->db, by);
}

enum hx_code lane_new(const struct lane_options *options, struct lane **ret_lane, struct hx_error *err)
{
	struct lane *lane = calloc(1, sizeof *lane);
	struct migrate_status before;
	enum hx_code code = HX_OK;

	if (!lane)
		return error_set(err, HX_NO_MEMORY, "a lane");
	lane->options = *options;
	lane->trouble = (struct trouble){.log = options->log, .who = "lane", .number = options->number};
	lane_list_init(&lane->ready);
	lane_list_init(&lane->pending);
	lane_list_init(&lane->limited);
	lane_list_init(&lane->held);
	inbox_init(&lane->inbox, options->seats_max, options->clock, options->store_timeout_ms);
	id_source_init(&lane->ids, options->node_number);
	lane->node_number = options->node_number;
	lane->units = malloc(LANE_UNITS_MAX * sizeof *lane->units);
	if (lane->units)
		lane_groups_init(lane);
	else
		code = error_set(err, HX_NO_MEMORY, "a lane");
	lane->db = options->opened;
	if (!code && !options->opened)
		code = db_open(&options->db, &lane->db, err);
	if (!code && options->migrate)
		code = migrate_run(lane->db, &before, err);
	if (!code && options->aside)
		lane->db->lock_wait_ms = LANE_LOCK_MS;
	if (!code)
		lane_wait_init(lane);
	if (!code) {
		lane->db->told_context = lane;
		lane->db->told = lane_told;
		lane->db->between = lane_between;
	}
	if (!code)
		code = thread_start(&lane->thread, lane_run, lane, "a lane's thread", err);
	if (code && options->opened)
		lane->db = NULL; /* still the caller's */
	return HAND_OVER(code, lane, lane_destroy, ret_lane);
}

void lane_ask_to_stop(struct lane *lane, int64_t drain_ms)
{
	lane->drain_ms = drain_ms;
	/* Of its own accord a statement of the user's would not end. */
	atomic_store(&lane->db->stop_ns, mono_add_ms(clock_mono(lane->options.clock), drain_ms).ns);
	inbox_stop(&lane->inbox);
}

void lane_stop(struct lane *lane, int64_t drain_ms)
{
	if (!lane || !lane->thread.started)
		return;
	if (!inbox_is_stopping(&lane->inbox))
		lane_ask_to_stop(lane, drain_ms);
	thread_join(&lane->thread);
}

void lane_free(struct lane *lane)
{
	if (!lane)
		return;
	lane_stop(lane, /* drain_ms= */ 0);
	lane_destroy(lane);
}
