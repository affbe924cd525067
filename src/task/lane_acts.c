/*
 * Actions that are under way, and the leases that they work under. See lane.h; lane_parts.h says who calls what.
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
#include <stdlib.h>

#include "task/lane_parts.h"
#include "task/pulse.h"

/* A beat on its way through the pulse lane, back to the seat whose lease it renews. */
struct lane_beat {
	struct seat seat;
	struct beat beat;
	struct ticket owner;
	struct mail *mail; /* made beforehand, so that the answer cannot fail */
};

static struct seat **acting_slot(struct lane *lane, uint64_t number)
{
	struct seat **slot = &lane->acting[lane_bucket(number)];

	while (*slot && (*slot)->number != number)
		slot = &(*slot)->act_next;
	return slot;
}

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

static void answer_act(struct lane *lane, struct seat *seat, enum act_outcome outcome, struct slice output,
		       int64_t not_before_ms)
{
	*acting_slot(lane, seat->number) = seat->act_next;
	forget_warded(lane, seat);
	timer_cancel(&lane->timers, &seat->timer);
	lane_give(lane, seat,
		  &(struct answer){.kind = ANSWER_ACT,
				   .outcome = outcome,
				   .output = output,
				   .not_before_ms = not_before_ms,
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
	answer_act(lane, seat, ACT_CLAIM_LOST, slice_of(NULL, 0), /* not_before_ms= */ 0);
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

void lane_act_timer_fired(struct lane *lane, struct seat *seat)
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
	answer_act(lane, seat, mail->outcome, slice_of(mail->output, mail->output_bytes), mail->not_before_ms);
}

void lane_act_start(struct lane *lane, struct seat *seat, const struct act_call *call)
{
	struct mono_time now = clock_mono(lane->options.clock);
	struct seat **slot;

	ASSERT(lane->options.act);
	/* A commit may have taken longer than the lease, or the time to drain: then nothing is begun any more. */
	if (lane->stopping && now.ns >= lane->stop_by.ns) {
		lane_finish(lane, seat, HX_STOPPING);
		return;
	}
	if (call->lease.fence && now.ns >= lease_trusted_until(&call->lease).ns) {
		lane->stats.claims_lost++;
		lane_give(lane, seat, &(struct answer){.kind = ANSWER_ACT, .outcome = ACT_CLAIM_LOST});
		return;
	}
	seat->state = SEAT_ACTING;
	seat->number = ++lane->last_number;
	seat->lease = call->lease;
	seat->beating = false;
	seat->hear_out = call->hear_out && call->lease.fence;
	seat->overrun = false;
	slot = &lane->acting[lane_bucket(seat->number)];
	seat->act_next = *slot;
	*slot = seat;
	seat->lane = lane;
	if (lane->options.warden && seat->lease.fence)
		warden_watch(lane->options.warden, &seat->warded, lease_trusted_until(&seat->lease),
			     seat->hear_out ? withdraw_warded : abort_warded);
	lane->options.act->start(lane->options.act, call, (struct ticket){lane, seat->number});
	lane->acts_owed = true;
	if (call->lease.fence) {
		ASSERT(lane->options.renew);
		set_lease_timer(lane, seat, lease_next_beat(&seat->lease));
	}
}

void lane_act_flush(struct lane *lane)
{
	if (lane->acts_owed && lane->options.act->flush)
		lane->options.act->flush(lane->options.act);
	lane->acts_owed = false;
}

void lane_act_drop_all(struct lane *lane)
{
	for (size_t i = 0; i < LANE_BUCKETS; i++)
		while (lane->acting[i]) {
			struct seat *seat = lane->acting[i];

			lane->acting[i] = seat->act_next;
			forget_warded(lane, seat);
			abort_act(lane, seat);
			lane_finish(lane, seat, HX_STOPPING);
		}
}

void lane_act_open_mail(struct lane *lane, struct mail *mail)
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
