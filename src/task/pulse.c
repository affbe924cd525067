/* Renewing a lease; the rules are in pulse.h. */
#include "task/pulse.h"

#include "task/states.h"

#define BEATS_PER_LEASE 3
#define AGAIN_PER_LEASE 12
#define MARGIN_PER_LEASE 10

void lease_assert_valid(const struct lease *lease UNUSED)
{
	DEBUG_ASSERT(lease->subject != 0);
	DEBUG_ASSERT(lease->fence > 0);
	DEBUG_ASSERT(lease->lease_ms > 0);
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

enum { BEAT_NEW, BEAT_SENT, BEAT_DONE };

static void pulse_take_start(struct beat *beat, const struct answer *answer)
{
	beat->sent = answer->mono;
	task_go(&beat->task, BEAT_SENT);
}

static void take_renewed(struct beat *beat, const struct answer *answer)
{
	ASSERT(answer->kind == ANSWER_COMMIT);
	/* Where nobody knows, it may be sent twice. */
	task_end(&beat->task, unit_code(answer->result->verdict, HX_STALE_FENCE, /* unknown= */ HX_STORE_UNAVAILABLE));
}

TASK_UNIT(build_renew, struct beat, beat,
	  beat->renew(unit, beat->lease.subject, beat->lease.fence, beat->lease.lease_ms));

static const TASK_STATES(struct beat) beat_states[] = {
	[BEAT_NEW] = {"new", pulse_take_start},
	[BEAT_SENT] = {"renewing", take_renewed, build_renew},
	[BEAT_DONE] = {"done"},
};

TASK_KIND(beat_kind, "beat", struct beat, beat_states);

void beat_init(struct beat *beat, const struct lease *lease,
	       void (*renew)(struct unit *, int64_t subject, int64_t fence, int64_t lease_ms))
{
	lease_assert_valid(lease);
	*beat = (struct beat){.lease = *lease, .renew = renew};
	task_init(&beat->task, &beat_kind, /* topic= */ 0);
}
