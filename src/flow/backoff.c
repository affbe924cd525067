/* See backoff.h. */
#include "flow/backoff.h"

#include "base/hash.h"

/* Times the factor, at most max_ms. */
static int64_t grow(int64_t ms, int64_t thousandths, int64_t max_ms)
{
	return ms > max_ms / thousandths * 1000 ? max_ms : ms / 1000 * thousandths + ms % 1000 * thousandths / 1000;
}

int64_t backoff_ms(const struct run_retry *retry, int64_t attempt, int64_t drawn)
{
	int64_t ms = retry->initial_ms;

	for (int64_t i = 1; i < attempt && ms < retry->max_ms; i++)
		ms = grow(ms, retry->factor_thousandths, retry->max_ms);
	ms = ms < retry->max_ms ? ms : retry->max_ms;
	if (!retry->jitter || ms < 2)
		return ms;
	return ms / 2 + (int64_t)(hash_mix(1, (uint64_t)drawn) % (uint64_t)(ms - ms / 2 + 1));
}

int64_t backoff_not_before(int64_t backoff_ms, int64_t not_before_ms)
{
	int64_t ms = not_before_ms;

	ms = backoff_ms > ms ? backoff_ms : ms; /* mutant: retry-after-shortens */
	return ms;
}

int64_t backoff_unsettled(int64_t since_ms, int64_t now_ms, int64_t backoff_ms, int64_t not_before_ms)
{
	int64_t end = since_ms + UNSETTLED_MS_MAX, so_far = now_ms - since_ms, at;

	at = now_ms + (so_far / 2 > backoff_ms ? so_far / 2 : backoff_ms);
	at = at < end ? at : end;
	at = at > now_ms + not_before_ms ? at : now_ms + not_before_ms;
	if (now_ms >= end || at > end) /* mutant: unsettled-for-ever -> if (false) */
		return 0;
	return at;
}
