/*
 * The lane's thread: rounds of resuming, gathering, committing. See lane.h for the picture.
 *
 * A seat is in exactly one place: the inbox, the ready list, the pending list (COMMITTING), the acting table
 * (ACTING, with a timer when it has a lease) or the timers (SLEEPING). Seats with a topic are in the topic
 * table besides, from the start to the end.
 *
 * An action whose lease is lost, or not trusted any more, is aborted and answered claim_lost. One that is heard out stays
 * in the acting table instead, without timer and beats, until the port answers (which it does, by the action's timeout) or
 * the lane stops:
 *
 *   ACTING ─┬ answer ─────────────────────────▶ ready
 *           └ lease lost ─┬────────────────────▶ aborted, claim_lost ─▶ ready
 *                         ├ hear_out, not begun ▶ withdrawn, the same
 *                         └ hear_out ───────────▶ ACTING, overrun ─ answer, with overrun ─▶ ready
 */
#include "task/lane.h"

#include <sched.h>
#include <stdlib.h>

#include "base/id.h"
#include "db/migrate.h"
#include "task/inbox.h"
#include "task/pulse.h"
#include "task/trouble.h"

#define PENDING_LOOKED_AT (2 * BATCH_UNITS_MAX) /* how far batch_pick sees */
#define BUCKETS 1024
#define PEERS_MAX 64
#define BATCH_BYTES_MAX (256u << 20)
#define COMMIT_GRACE_NS 2000000000 /* after the drain: tasks that do nothing but commit soon come to their end */
#define IDLE_NS 200000000          /* quiet for so long: time for the store's housekeeping */

struct seat_list {
	struct seat *first, **last;
};

struct lane {
	struct lane_options options;
	struct db *db;
	struct id_source ids;
	_Atomic uint32_t node_number;
	struct inbox inbox;
	pthread_t thread;
	bool joined;

	struct seat_list ready;
	struct seat_list pending;
	struct timers timers;
	struct seat *topics[BUCKETS];
	struct seat *acting[BUCKETS];
	uint64_t last_number;
	size_t seats_in;  /* taken in and not yet done */
	size_t beats_out; /* sent to the pulse lane and not yet back */
	size_t pending_n;
	bool stopping;
	struct mono_time stop_by;
	struct mono_time sent; /* before the batch under way was begun */
	int64_t drain_ms;

	struct arena arena;
	struct unit *units; /* a pool of PENDING_LOOKED_AT, used afresh in each round */
	size_t units_n;
	struct unit *batch_units[BATCH_UNITS_MAX];
	struct seat *batch_seats[BATCH_UNITS_MAX];
	struct unit_result results[BATCH_UNITS_MAX];
	struct batch_sink sink;
	int64_t woken[BATCH_UNITS_MAX * UNIT_WAKES_MAX]; /* by this round, for the peers */
	size_t woken_n;
	struct lane *peers[PEERS_MAX];
	size_t peers_n;
	struct lane_stats stats;
	struct trouble trouble;
	struct delivery delivery;
};

/* A beat on its way through the pulse lane, back to the seat whose lease it renews. */
struct lane_beat {
	struct seat seat;
	struct beat beat;
	struct ticket owner;
	struct mail *mail; /* made beforehand, so that the answer cannot fail */
};

/* ---- lists and tables ---- */

static void list_init(struct seat_list *list)
{
	list->first = NULL;
	list->last = &list->first;
}

static void list_push(struct seat_list *list, struct seat *seat)
{
	seat->next = NULL;
	*list->last = seat;
	list->last = &seat->next;
}

static struct seat *list_pop(struct seat_list *list)
{
	struct seat *seat = list->first;

	if (seat) {
		list->first = seat->next;
		if (!list->first)
			list->last = &list->first;
	}
	return seat;
}

static size_t bucket(uint64_t key)
{
	return key * 0x9e3779b97f4a7c15u >> 54;
}

static void topic_enter(struct lane *lane, struct seat *seat)
{
	struct seat **slot = &lane->topics[bucket((uint64_t)seat->task->topic)];

	seat->topic_next = *slot;
	seat->topic_slot = slot;
	if (*slot)
		(*slot)->topic_slot = &seat->topic_next;
	*slot = seat;
}

static void topic_leave(struct seat *seat)
{
	*seat->topic_slot = seat->topic_next;
	if (seat->topic_next)
		seat->topic_next->topic_slot = seat->topic_slot;
}

static struct seat **acting_slot(struct lane *lane, uint64_t number)
{
	struct seat **slot = &lane->acting[bucket(number)];

	while (*slot && (*slot)->number != number)
		slot = &(*slot)->act_next;
	return slot;
}

/* ---- giving answers ---- */

static void give(struct lane *lane, struct seat *seat, struct answer *answer)
{
	answer->now = clock_wall(lane->options.clock);
	answer->mono = clock_mono(lane->options.clock);
	lane->ids.node = atomic_load_explicit(&lane->node_number, memory_order_relaxed);
	answer->id = id_next(&lane->ids, answer->now);
	for (int i = 0; i < ANSWER_IDS_MAX; i++)
		answer->more_ids[i] = id_next(&lane->ids, answer->now);
	answer->ids = &lane->ids;
	answer->node = lane->options.node;
	(void)task_take(seat->task, seat->task->turn, answer); /* always its own turn: tickets are used once */
	seat->state = SEAT_READY;
	list_push(&lane->ready, seat);
}

static void finish(struct lane *lane, struct seat *seat, enum hx_code code)
{
	timer_cancel(&lane->timers, &seat->timer);
	if (seat->task->topic)
		topic_leave(seat);
	lane->seats_in--;
	if (!seat->own)
		inbox_leave(&lane->inbox);
	seat->done(seat, code);
}

static void wake_seat(struct lane *lane, struct seat *seat)
{
	seat->task->woken = true;
	if (seat->state == SEAT_SLEEPING) {
		timer_cancel(&lane->timers, &seat->timer);
		seat->task->woken = false;
		give(lane, seat, &(struct answer){.kind = ANSWER_WOKE});
	}
}

static void wake_topic(struct lane *lane, int64_t topic)
{
	for (struct seat *seat = lane->topics[bucket((uint64_t)topic)], *next; seat; seat = next) {
		next = seat->topic_next;
		if (seat->task->topic == topic)
			wake_seat(lane, seat);
	}
}

static void wake_everybody(struct lane *lane)
{
	for (size_t i = 0; i < BUCKETS; i++)
		for (struct seat *seat = lane->topics[i]; seat; seat = seat->topic_next)
			wake_seat(lane, seat);
}

/* ---- actions and their leases ---- */

/*
 * In the warden's thread: this lane is held up, and the lease is over. The lane must hear of it, too: it may find that a
 * renewal came through after all, and nobody else answers for the action any more.
 */
static void abort_warded(struct warded *warded)
{
	struct seat *seat = (struct seat *)((char *)warded - offsetof(struct seat, warded));
	struct ticket ticket = {seat->lane, seat->number};
	struct act_port *act = seat->lane->options.act;

	if (act->abort)
		act->abort(act, ticket);
	lane_answer(ticket, ACT_CLAIM_LOST, slice_of(NULL, 0));
}

/* The same for a call that is heard out: only what has not begun is taken back. */
static void withdraw_warded(struct warded *warded)
{
	struct seat *seat = (struct seat *)((char *)warded - offsetof(struct seat, warded));
	struct ticket ticket = {seat->lane, seat->number};
	struct act_port *act = seat->lane->options.act;

	if (act->withdraw && act->withdraw(act, ticket))
		lane_answer(ticket, ACT_CLAIM_LOST, slice_of(NULL, 0));
}

static void forget_warded(struct lane *lane, struct seat *seat)
{
	if (lane->options.warden && seat->lease.fence)
		warden_forget(lane->options.warden, &seat->warded);
}

static void answer_act(struct lane *lane, struct seat *seat, enum act_outcome outcome, struct slice output)
{
	*acting_slot(lane, seat->number) = seat->act_next;
	forget_warded(lane, seat);
	timer_cancel(&lane->timers, &seat->timer);
	give(lane, seat,
	     &(struct answer){.kind = ANSWER_ACT,
			      .outcome = outcome,
			      .output = output,
			      .lease_since = seat->lease.since,
			      .overrun = seat->overrun});
}

static void abort_act(struct lane *lane, struct seat *seat)
{
	if (lane->options.act->abort)
		lane->options.act->abort(lane->options.act, (struct ticket){lane, seat->number});
}

/* From now on only its answer counts. A call may be found to be over its time more than once. */
static void note_overrun(struct lane *lane, struct seat *seat)
{
	lane->stats.claims_lost += !seat->overrun;
	seat->overrun = true;
	timer_cancel(&lane->timers, &seat->timer);
}

static void give_up(struct lane *lane, struct seat *seat)
{
	lane->stats.claims_lost += !seat->overrun;
	seat->overrun = false; /* there is no outcome that it could be said of */
	abort_act(lane, seat);
	answer_act(lane, seat, ACT_CLAIM_LOST, slice_of(NULL, 0));
}

static bool withdraw_act(struct lane *lane, struct seat *seat)
{
	struct act_port *act = lane->options.act;

	return act->withdraw && act->withdraw(act, (struct ticket){lane, seat->number});
}

static void lose_claim(struct lane *lane, struct seat *seat)
{
	if (seat->hear_out && !withdraw_act(lane, seat))
		note_overrun(lane, seat);
	else
		give_up(lane, seat);
}

static void set_lease_timer(struct lane *lane, struct seat *seat, struct mono_time at)
{
	struct mono_time last = lease_trusted_until(&seat->lease);

	/* Without memory for a timer the lease cannot be watched, so it is not trusted. */
	if (timer_set(&lane->timers, &seat->timer, at.ns < last.ns ? at : last))
		lose_claim(lane, seat);
}

static void beat_done(struct seat *seat, enum hx_code code)
{
	struct lane_beat *beat = (struct lane_beat *)seat;

	*beat->mail = (struct mail){
		.number = beat->owner.number, .is_beat = true, .code = code, .sent = beat->beat.sent};
	inbox_put_mail(&beat->owner.lane->inbox, beat->mail);
	free(beat);
}

static bool send_beat(struct lane *lane, struct seat *seat)
{
	struct lane *pulse = lane->options.pulse ? lane->options.pulse : lane;
	struct lane_beat *beat = calloc(1, sizeof *beat);

	if (beat)
		beat->mail = malloc(sizeof *beat->mail);
	if (!beat || !beat->mail) {
		free(beat);
		return false;
	}
	beat_init(&beat->beat, &seat->lease, lane->options.renew);
	beat->owner = (struct ticket){lane, seat->number};
	beat->seat = (struct seat){.task = &beat->beat.task, .done = beat_done};
	inbox_put_beat(&pulse->inbox, &beat->seat);
	lane->beats_out++;
	return true;
}

static void lease_timer_fired(struct lane *lane, struct seat *seat)
{
	struct mono_time now = clock_mono(lane->options.clock);

	if (now.ns >= lease_trusted_until(&seat->lease).ns) {
		lose_claim(lane, seat);
		return;
	}
	if (!seat->beating)
		seat->beating = send_beat(lane, seat);
	set_lease_timer(lane, seat,
			seat->beating ? lease_trusted_until(&seat->lease) : lease_beat_again(&seat->lease, now));
}

static void beat_answered(struct lane *lane, struct seat *seat, const struct mail *mail)
{
	seat->beating = false;
	if (seat->overrun)
		return; /* a renewal that came through late: what may have happened meanwhile is not undone by it */
	if (mail->code == HX_OK) {
		seat->lease.since = mail->sent;
		if (lane->options.warden)
			warden_move(lane->options.warden, &seat->warded, lease_trusted_until(&seat->lease));
		set_lease_timer(lane, seat, lease_next_beat(&seat->lease));
	} else if (mail->code == HX_STALE_FENCE) {
		lose_claim(lane, seat);
	} else {
		set_lease_timer(lane, seat, lease_beat_again(&seat->lease, clock_mono(lane->options.clock)));
	}
}

static void act_answered(struct lane *lane, struct seat *seat, const struct mail *mail)
{
	/* The answer may overtake the timer, when the lane was held up or the process was paused. */
	if (seat->hear_out && !lease_is_trusted(&seat->lease, clock_mono(lane->options.clock)))
		note_overrun(lane, seat);
	answer_act(lane, seat, mail->outcome, slice_of(mail->output, mail->output_bytes));
}

static void start_act(struct lane *lane, struct seat *seat, const struct act_call *call)
{
	struct mono_time now = clock_mono(lane->options.clock);
	struct seat **slot;

	ASSERT(lane->options.act);
	/* A commit may have taken longer than the lease, or the time to drain: then nothing is begun any more. */
	if (lane->stopping && now.ns >= lane->stop_by.ns) {
		finish(lane, seat, HX_STOPPING);
		return;
	}
	if (call->lease.fence && now.ns >= lease_trusted_until(&call->lease).ns) {
		lane->stats.claims_lost++;
		give(lane, seat, &(struct answer){.kind = ANSWER_ACT, .outcome = ACT_CLAIM_LOST});
		return;
	}
	seat->state = SEAT_ACTING;
	seat->number = ++lane->last_number;
	seat->lease = call->lease;
	seat->beating = false;
	seat->hear_out = call->hear_out && call->lease.fence;
	seat->overrun = false;
	slot = &lane->acting[bucket(seat->number)];
	seat->act_next = *slot;
	*slot = seat;
	seat->lane = lane;
	if (lane->options.warden && seat->lease.fence)
		warden_watch(lane->options.warden, &seat->warded, lease_trusted_until(&seat->lease),
			     seat->hear_out ? withdraw_warded : abort_warded);
	lane->options.act->start(lane->options.act, call, (struct ticket){lane, seat->number});
	if (call->lease.fence) {
		ASSERT(lane->options.renew);
		set_lease_timer(lane, seat, lease_next_beat(&seat->lease));
	}
}

/* ---- a round ---- */

static void start_sleep(struct lane *lane, struct seat *seat, struct wall_time until)
{
	int64_t ms = until.ms - clock_wall(lane->options.clock).ms;

	if (lane->stopping) {
		finish(lane, seat, HX_STOPPING);
		return;
	}
	seat->state = SEAT_SLEEPING;
	seat->until = until;
	if (seat->task->woken || ms <= 0) {
		seat->task->woken = false;
		give(lane, seat, &(struct answer){.kind = ANSWER_WOKE});
		return;
	}
	if (timer_set(&lane->timers, &seat->timer, mono_add_ms(clock_mono(lane->options.clock), ms)))
		finish(lane, seat, HX_NO_MEMORY);
}

/* Asks a seat what it wants. A unit from the pool is kept by the seat when it wants to commit. */
static void resume(struct lane *lane, struct seat *seat)
{
	struct unit spare;
	bool pooled = lane->units_n < PENDING_LOOKED_AT;
	struct ask ask = {.unit = pooled ? &lane->units[lane->units_n] : &spare}; /* cppcheck-suppress uninitvar */

	seat->task->kind->ask(seat->task, &ask);
	switch (ask.kind) {
	case ASK_COMMIT:
		if (lane->stopping && clock_mono(lane->options.clock).ns >= lane->stop_by.ns + COMMIT_GRACE_NS) {
			finish(lane, seat, HX_STOPPING); /* it would go on for ever; what it has committed stays */
			break;
		}
		seat->state = SEAT_COMMITTING;
		seat->unit = pooled ? ask.unit : NULL;
		lane->units_n += pooled;
		list_push(&lane->pending, seat);
		lane->pending_n++;
		break;
	case ASK_ACT:
		start_act(lane, seat, &ask.act);
		break;
	case ASK_SLEEP:
		start_sleep(lane, seat, ask.until);
		break;
	case ASK_DONE:
		finish(lane, seat, ask.code);
		break;
	}
}

static void sink_answer(struct batch_sink *sink, size_t i, const struct unit_result *result)
{
	struct lane *lane = (struct lane *)((char *)sink - offsetof(struct lane, sink));

	give(lane, lane->batch_seats[i], &(struct answer){.kind = ANSWER_COMMIT, .result = result, .sent = lane->sent});
}

static void sink_wake(struct batch_sink *sink, int64_t topic)
{
	struct lane *lane = (struct lane *)((char *)sink - offsetof(struct lane, sink));

	wake_topic(lane, topic);
	if (lane->peers_n || lane->options.woke)
		lane->woken[lane->woken_n++] = topic;
}

/* Seats left over from an earlier round have lost their unit with that round's pool: they are asked again. */
static void ask_pending_again(struct lane *lane)
{
	struct seat *seat = lane->pending.first;

	for (; seat && lane->units_n < PENDING_LOOKED_AT; seat = seat->next) {
		struct ask ask = {.unit = &lane->units[lane->units_n++]};

		seat->task->kind->ask(seat->task, &ask);
		ASSERT(ask.kind == ASK_COMMIT);
		seat->unit = ask.unit;
	}
}

/* Moves the next batch out of the pending list. */
static size_t gather(struct lane *lane)
{
	static _Thread_local struct unit *looked_at[PENDING_LOOKED_AT];
	static _Thread_local size_t picked[BATCH_UNITS_MAX];
	struct seat **at = &lane->pending.first;
	size_t n = 0, i = 0, picked_n;

	for (struct seat *seat = *at; seat && seat->unit && n < PENDING_LOOKED_AT; seat = seat->next)
		looked_at[n++] = seat->unit;
	picked_n = batch_pick(looked_at, n, lane->db->driver->one_unit_per_subject, BATCH_UNITS_MAX, picked);
	for (size_t p = 0; p < picked_n; i++) {
		struct seat *seat = *at;

		if (i == picked[p]) {
			lane->batch_seats[p] = seat;
			lane->batch_units[p++] = seat->unit;
			*at = seat->next;
		} else {
			at = &seat->next;
		}
	}
	while (*at)
		at = &(*at)->next;
	lane->pending.last = at;
	lane->pending_n -= picked_n;
	return picked_n;
}

static void commit_round(struct lane *lane)
{
	struct batch batch;
	size_t n = gather(lane);
	uint64_t failed_before = lane->stats.batch.failed;

	lane->sent = clock_mono(lane->options.clock);
	batch_init(&batch, lane->batch_units, lane->results, n);
	batch_run(&batch, lane->db, &lane->arena, lane->options.resolve_ms, &lane->sink, &lane->stats.batch);
	if (lane->stats.batch.failed != failed_before || trouble_is_on(&lane->trouble))
		trouble_note(&lane->trouble, lane->batch_units, lane->results, n, clock_mono(lane->options.clock));
	for (size_t i = 0; i < lane->peers_n && lane->woken_n; i++)
		lane_wake(lane->peers[i], lane->woken, lane->woken_n);
	if (lane->options.woke && lane->woken_n)
		lane->options.woke(lane->options.woke_context, lane->woken, lane->woken_n);
	lane->woken_n = 0;
	arena_reset(&lane->arena);
	for (struct seat *seat = lane->pending.first; seat; seat = seat->next)
		seat->unit = NULL;
	lane->units_n = 0;
	lane->stats.waiting = lane->pending_n;
	lane->stats.rounds++;
	lane->db->driver->tend(lane->db, /* idle= */ false);
}

static void fire_timers(struct lane *lane)
{
	struct mono_time now = clock_mono(lane->options.clock);
	struct timer *timer;

	while ((timer = timers_take_due(&lane->timers, now))) {
		struct seat *seat = (struct seat *)((char *)timer - offsetof(struct seat, timer));

		if (seat->state == SEAT_ACTING)
			lease_timer_fired(lane, seat);
		else if (seat->state == SEAT_SLEEPING)
			start_sleep(lane, seat, seat->until); /* wakes it, or sleeps on if the wall clock jumped */
	}
}

static void take_in(struct lane *lane, struct seat *seat)
{
	seat->timer = (struct timer){0};
	lane->seats_in++;
	if (seat->task->topic)
		topic_enter(lane, seat);
	give(lane, seat, &(struct answer){.kind = ANSWER_START});
}

static void open_mail(struct lane *lane, struct mail *mail)
{
	struct seat *seat = *acting_slot(lane, mail->number);

	lane->beats_out -= mail->is_beat;
	if (!seat)
		lane->stats.answers_dropped += !mail->is_beat;
	else if (mail->is_beat)
		beat_answered(lane, seat, mail);
	else if (mail->outcome == ACT_CLAIM_LOST)
		give_up(lane, seat); /* the warden has ended it already */
	else
		act_answered(lane, seat, mail);
	free(mail);
}

static void begin_stop(struct lane *lane)
{
	lane->stopping = true;
	lane->stop_by = mono_add_ms(clock_mono(lane->options.clock), lane->drain_ms);
	for (size_t i = lane->timers.n; i >= 1; i--) {
		struct seat *seat = (struct seat *)((char *)lane->timers.heap[i] - offsetof(struct seat, timer));

		if (seat->state == SEAT_SLEEPING) {
			seat->state = SEAT_READY; /* asks to sleep once more, and start_sleep then ends it */
			list_push(&lane->ready, seat);
		}
	}
}

static void open_delivery(struct lane *lane, struct delivery *d)
{
	for (struct seat *seat = d->seats, *next; seat; seat = next) {
		next = seat->next;
		take_in(lane, seat);
	}
	for (struct mail *mail = d->mail, *next; mail; mail = next) {
		next = mail->next;
		open_mail(lane, mail);
	}
	if (d->wake_everybody)
		wake_everybody(lane);
	else
		for (size_t i = 0; i < d->wakes_n; i++)
			wake_topic(lane, d->wakes[i]);
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
	if (lane->ready.first || lane->pending.first)
		return 0;
	if (first && first->due.ns - now.ns < ns)
		ns = first->due.ns - now.ns;
	if (lane->stopping && lane->seats_in && lane->stop_by.ns - now.ns < ns)
		ns = lane->stop_by.ns - now.ns;
	return ns > 0 ? ns : 0;
}

/* The drain time is over: whoever is still acting is left as a crash would leave it. */
static void drop_acting(struct lane *lane)
{
	for (size_t i = 0; i < BUCKETS; i++)
		while (lane->acting[i]) {
			struct seat *seat = lane->acting[i];

			lane->acting[i] = seat->act_next;
			forget_warded(lane, seat);
			abort_act(lane, seat);
			finish(lane, seat, HX_STOPPING);
		}
}

static bool stopped(struct lane *lane)
{
	if (!lane->stopping)
		return false;
	if (lane->seats_in && clock_mono(lane->options.clock).ns >= lane->stop_by.ns)
		drop_acting(lane);
	return lane->seats_in == 0 && lane->beats_out == 0;
}

static void resume_ready(struct lane *lane)
{
	struct seat *seat;

	while ((seat = list_pop(&lane->ready)))
		resume(lane, seat);
}

/*
 * Whoever has just been answered often comes back at once. Giving way before a batch begins lets such callers in, so
 * that all travel together; otherwise they form two batches of half the size that take turns for ever. There is no
 * timer in this: whoever is not there when the lane runs again is not waited for.
 */
static void give_way(struct lane *lane)
{
	sched_yield();
	(void)inbox_take(&lane->inbox, /* wait_ns= */ 0, &lane->stats, &lane->delivery); /* an empty one is fine */
	open_delivery(lane, &lane->delivery);
	resume_ready(lane);
}

static void *run(void *context)
{
	struct lane *lane = context;
	bool tended = true;

	while (!stopped(lane)) {
		int64_t ns = wait_ns(lane, tended);

		if (!inbox_take(&lane->inbox, ns, &lane->stats, &lane->delivery) && ns == IDLE_NS) {
			lane->db->driver->tend(lane->db, /* idle= */ true);
			tended = true;
		}
		open_delivery(lane, &lane->delivery);
		fire_timers(lane);
		ask_pending_again(lane);
		resume_ready(lane);
		if (lane->pending.first) {
			give_way(lane);
			commit_round(lane);
			tended = false;
		}
	}
	pthread_mutex_lock(&lane->inbox.mutex);
	lane->inbox.stats = lane->stats; /* of the last round too */
	pthread_mutex_unlock(&lane->inbox.mutex);
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

void lane_answer(struct ticket ticket, enum act_outcome outcome, struct slice output)
{
	struct mail *mail = malloc(sizeof *mail + output.n);

	if (!mail) { /* the output cannot be carried, the outcome must be: what is not known is unknown */
		mail = malloc(sizeof *mail);
		ASSERT(mail);
		outcome = ACT_UNKNOWN;
		output.n = 0;
	}
	*mail = (struct mail){.number = ticket.number, .outcome = outcome, .output_bytes = output.n};
	if (output.n)
		memcpy(mail->output, output.p, output.n);
	inbox_put_mail(&ticket.lane->inbox, mail);
}

void lane_wake(struct lane *lane, const int64_t topics[], size_t n)
{
	inbox_put_wakes(&lane->inbox, topics, n);
}

void lane_wake_everybody(struct lane *lane)
{
	inbox_put_wake_everybody(&lane->inbox);
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
			ASSERT(lane->peers_n < PEERS_MAX);
			lane->peers[lane->peers_n++] = peers[i];
		}
}

void lane_nudge(struct lane *lane)
{
	inbox_nudge(&lane->inbox);
}

void lane_read_stats(struct lane *lane, struct lane_stats *ret_stats)
{
	pthread_mutex_lock(&lane->inbox.mutex);
	*ret_stats = lane->inbox.stats;
	ret_stats->waiting += lane->inbox.arrived_n;
	ret_stats->seats = lane->inbox.seats_n;
	pthread_mutex_unlock(&lane->inbox.mutex);
}

static void destroy(struct lane *lane)
{
	db_close(lane->db);
	timers_release(&lane->timers);
	arena_release(&lane->arena);
	inbox_release(&lane->inbox);
	free(lane->units);
	free(lane);
}

enum hx_code lane_new(const struct lane_options *options, struct lane **ret_lane, struct hx_error *err)
{
	struct lane *lane = calloc(1, sizeof *lane);
	struct migrate_status before;
	enum hx_code code = HX_OK;

	if (!lane)
		return error_set(err, HX_NO_MEMORY, "a lane");
	lane->options = *options;
	lane->sink = (struct batch_sink){sink_answer, sink_wake};
	lane->trouble = (struct trouble){.log = options->log, .who = "lane", .number = options->number};
	list_init(&lane->ready);
	list_init(&lane->pending);
	arena_init(&lane->arena, BATCH_BYTES_MAX);
	inbox_init(&lane->inbox, options->seats_max);
	id_source_init(&lane->ids, options->node_number);
	lane->node_number = options->node_number;
	lane->units = malloc(PENDING_LOOKED_AT * sizeof *lane->units);
	if (!lane->units)
		code = error_set(err, HX_NO_MEMORY, "a lane");
	lane->db = options->opened;
	if (!code && !options->opened)
		code = db_open(&options->db, &lane->db, err);
	if (!code && options->migrate)
		code = migrate_run(lane->db, &before, err);
	if (!code && pthread_create(&lane->thread, NULL, run, lane))
		code = error_set(err, HX_INTERNAL, "a lane's thread cannot be started");
	if (code && options->opened)
		lane->db = NULL; /* still the caller's */
	if (code)
		destroy(lane);
	else
		*ret_lane = lane;
	return code;
}

void lane_stop(struct lane *lane, int64_t drain_ms)
{
	if (!lane || lane->joined)
		return;
	lane->drain_ms = drain_ms;
	inbox_stop(&lane->inbox);
	pthread_join(lane->thread, NULL);
	lane->joined = true;
}

void lane_free(struct lane *lane)
{
	if (!lane)
		return;
	lane_stop(lane, /* drain_ms= */ 0);
	destroy(lane);
}
