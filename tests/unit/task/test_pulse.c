/* The pulse: the arithmetic of a lease, and what each verdict of a beat means. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "task/pulse.h"

#define MS INT64_C(1000000) /* ns */

static void a_lease_is_renewed_at_a_third_and_trusted_to_nine_tenths(void **state)
{
	struct lease lease = {.subject = 7, .fence = 3, .lease_ms = 30000, .since = {5 * MS}};

	(void)state;
	assert_int_equal(lease_next_beat(&lease).ns, (5 + 10000) * MS);
	assert_int_equal(lease_trusted_until(&lease).ns, (5 + 27000) * MS);
	assert_int_equal(lease_beat_again(&lease, (struct mono_time){100 * MS}).ns, (100 + 2501) * MS);
}

/* However short or long: a beat has a chance before trust ends, trust ends before the lease, and no loop spins. */
static void the_order_of_the_moments_holds_for_every_lease(void **state)
{
	(void)state;
	for (int64_t ms = 1; ms < (INT64_C(1) << 53); ms += 1 + ms / 3) {
		struct lease lease = {.lease_ms = ms, .since = {17}};
		int64_t end = mono_add_ms(lease.since, ms).ns;
		struct mono_time now = lease_next_beat(&lease);

		assert_true(lease_next_beat(&lease).ns < lease_trusted_until(&lease).ns || end == INT64_MAX);
		assert_true(lease_trusted_until(&lease).ns <= end);
		assert_true(ms < 10 || lease_trusted_until(&lease).ns < end || end == INT64_MAX);
		assert_true(lease_beat_again(&lease, now).ns > now.ns || now.ns == INT64_MAX);
	}
}

static struct lease renewed;

static void note_renewal(struct unit *unit, int64_t subject, int64_t fence, int64_t lease_ms)
{
	static const struct db_stmt stmt = {.name = "test_renew", .sql = "", .in = "iii", .out = ""};

	renewed = (struct lease){.subject = subject, .fence = fence, .lease_ms = lease_ms};
	UNIT_ADD(unit, UNIT_VERDICT, &stmt, db_int(subject), db_int(fence), db_int(lease_ms));
}

/* A beat up to its question; the renewal is asked for with the lease's own numbers. */
static void send(struct beat *beat)
{
	const struct lease lease = {.subject = 7, .fence = 3, .lease_ms = 900, .since = {1}};
	struct answer start = {.kind = ANSWER_START, .mono = {555}};
	struct unit unit;
	struct ask ask = {.unit = &unit};

	beat_init(beat, &lease, note_renewal);
	assert_true(task_take(&beat->task, 0, &start));
	beat->task.kind->ask(&beat->task, &ask);
	assert_int_equal(ask.kind, ASK_COMMIT);
	assert_int_equal(unit.lines_n, 1);
	assert_int_equal(renewed.subject, 7);
	assert_int_equal(renewed.fence, 3);
	assert_int_equal(renewed.lease_ms, 900);
	assert_int_equal(beat->sent.ns, 555);
}

static void what_each_verdict_means(void **state)
{
	static const enum hx_code codes[] = {
		[UNIT_WON] = HX_OK,
		[UNIT_LOST] = HX_STALE_FENCE,
		[UNIT_REFUSED] = HX_STALE_FENCE,
		[UNIT_FAILED] = HX_STORE_UNAVAILABLE,
		[UNIT_UNKNOWN] = HX_STORE_UNAVAILABLE,
	};

	(void)state;
	for (enum unit_verdict verdict = UNIT_WON; verdict <= UNIT_UNKNOWN; verdict++) {
		struct unit_result result = {.verdict = verdict};
		struct answer answer = {.kind = ANSWER_COMMIT, .mono = {999}, .result = &result};
		struct ask ask = {0};
		struct beat beat;

		send(&beat);
		assert_true(task_take(&beat.task, 1, &answer));
		beat.task.kind->ask(&beat.task, &ask);
		assert_int_equal(ask.kind, ASK_DONE);
		assert_string_equal(hx_code_name(ask.code), hx_code_name(codes[verdict]));
		assert_int_equal(beat.sent.ns, 555); /* from before it was sent, whenever it came back */
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_lease_is_renewed_at_a_third_and_trusted_to_nine_tenths),
		cmocka_unit_test(the_order_of_the_moments_holds_for_every_lease),
		cmocka_unit_test(what_each_verdict_means),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
