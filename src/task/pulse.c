/* Renewing a lease; the rules are in pulse.h. */
#include "task/pulse.h"

#define BEATS_PER_LEASE 3
#define AGAIN_PER_LEASE 12
#define MARGIN_PER_LEASE 10

void lease_assert_valid(const struct lease *lease)
{
	DEBUG_ASSERT(lease->subject != 0);
	DEBUG_ASSERT(lease->fence > 0);
	DEBUG_ASSERT(lease->lease_ms > 0);
	(void)lease;
}

struct mono_time lease_trusted_until(const struct lease *lease)
{
	return mono_add_ms(lease->since, lease->lease_ms - lease->lease_ms / MARGIN_PER_LEASE);
}

bool lease_is_trusted(const struct lease *lease, struct mono_time now)
{
	lease_assert_valid(lease);
	return now.ns < lease_trusted_until(lease).ns;
}

struct mono_time lease_next_beat(const struct lease *lease)
{
	return mono_add_ms(lease->since, lease->lease_ms / BEATS_PER_LEASE);
}

struct mono_time lease_beat_again(const struct lease *lease, struct mono_time now)
{
	return mono_add_ms(now, lease->lease_ms / AGAIN_PER_LEASE + 1);
}

static void beat_take(struct task *task, const struct answer *answer)
{
	struct beat *beat = (struct beat *)task;

	if (beat->at == BEAT_NEW) {
		beat->sent = answer->mono;
		beat->at = BEAT_SENT;
		return;
	}
	ASSERT(beat->at == BEAT_SENT && answer->kind == ANSWER_COMMIT);
	switch (answer->result->verdict) {
	case UNIT_WON:
		beat->at = BEAT_RENEWED;
		break;
	case UNIT_LOST:
	case UNIT_REFUSED:
		beat->at = BEAT_LOST;
		break;
	case UNIT_FAILED:
	case UNIT_UNKNOWN: /* a renewal may be sent twice */
		beat->at = BEAT_FAILED;
		break;
	}
}

static void beat_ask(const struct task *task, struct ask *ask)
{
	const struct beat *beat = (const struct beat *)task;

	if (beat->at == BEAT_SENT) {
		ask->kind = ASK_COMMIT;
		unit_init(ask->unit, /* op= */ 0);
		beat->renew(ask->unit, beat->lease.subject, beat->lease.fence, beat->lease.lease_ms);
		return;
	}
	ask->kind = ASK_DONE;
	ask->code = beat->at == BEAT_RENEWED ? HX_OK : beat->at == BEAT_LOST ? HX_STALE_FENCE : HX_STORE_UNAVAILABLE;
}

static const char *beat_where(const struct task *task)
{
	static const char *const names[] = {"new", "renewing", "renewed", "lost", "failed"};

	return names[((const struct beat *)task)->at];
}

static const struct task_kind beat_kind = {
	.name = "beat",
	.size = sizeof(struct beat),
	.take = beat_take,
	.ask = beat_ask,
	.where = beat_where,
};

void beat_init(struct beat *beat, const struct lease *lease,
	       void (*renew)(struct unit *, int64_t subject, int64_t fence, int64_t lease_ms))
{
	lease_assert_valid(lease);
	*beat = (struct beat){.lease = *lease, .renew = renew};
	task_init(&beat->task, &beat_kind, /* topic= */ 0);
}
