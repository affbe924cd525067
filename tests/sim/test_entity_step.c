/*
 * The entity step, explored: two callers of one claimed step and a janitor, with each on_unknown, in worlds where
 * effects are counted.
 *
 *   on_unknown   world              what must hold besides the invariants of the rows
 *   revert       keyed service      one effect: after an unknown outcome the key is still the same
 *   retry        keyed service      one effect
 *   probe        plain service      one effect: what was done is found out, not done again
 *   hold         plain service      one effect: what is not known stays parked
 *   (no claim)   keyed service      one effect, although nobody serialises the callers
 *
 * Callers with different inputs, or by different versions of the definition (claim or not): one request to a key (I8), by one
 * version, and one effect. So too if one of them claims and the other does not: two requesters, two versions, two steps from one
 * status; and while it is claimed, what is written down is the call of the step that holds the claim.
 *
 * Callers who change the data meanwhile: what was acknowledged is there, what a step saves is there exactly when its transition is, and
 * a call in doubt is made again with the data that it was made with (I8).
 *
 * And in all of them: after-effects exist exactly when their transition does.
 */
#include "sim/closing.h"

static void explore(const char *name, enum sim_world world, bool recovery, struct sim_bounds bounds)
{
	explore_with(name, world, recovery, /* third= */ false, bounds);
}

static const struct sim_bounds usual = {.lapses = 2, .crashes = 1, .lost_answers = 1, .failures = 1};

static void exhaustive_revert_keyed(void **state)
{
	(void)state;
	parse("keyed", "", CLAIM ",\"on_unknown\":\"revert\"");
	explore("on_unknown revert, keyed service", WORLD_KEYED, false, usual);
}

static void exhaustive_retry_keyed(void **state)
{
	(void)state;
	parse("keyed", "", CLAIM ",\"on_unknown\":\"retry\"");
	explore("on_unknown retry, keyed service", WORLD_KEYED, false, usual);
}

static void exhaustive_probe_plain(void **state)
{
	(void)state;
	parse("claimed", ",\"probe\":\"Ask\"", CLAIM ",\"on_unknown\":\"probe\"");
	/* Without failed commits, which are covered above: this one is by far the largest. */
	explore("on_unknown probe, plain service", WORLD_PLAIN, true,
		(struct sim_bounds){.lapses = 2, .crashes = 1, .lost_answers = 1});
}

static void exhaustive_hold_plain(void **state)
{
	(void)state;
	parse("claimed", "", CLAIM ",\"on_unknown\":\"hold\"");
	explore("on_unknown hold, plain service", WORLD_PLAIN, false, usual);
}

/* An effect in doubt, a second try that is refused, a third that goes through: still under the first key. */
static void exhaustive_three_keyed(void **state)
{
	(void)state;
	parse("keyed", "", CLAIM);
	explore_with("on_unknown revert, keyed service, three callers", WORLD_KEYED, false, /* third= */ true,
		     (struct sim_bounds){.lapses = 1, .lost_answers = 1});
}

static void exhaustive_no_claim_keyed(void **state)
{
	(void)state;
	parse("keyed", "", "");
	explore("no claim, keyed service", WORLD_KEYED, false, usual);
}

/* The service may still be at the try before: that is no answer, with a claim or without, and the key stays. */
static void exhaustive_unsettled_keyed(void **state)
{
	(void)state;
	parse("keyed", "", CLAIM);
	explore_with("a service that is still at it", WORLD_KEYED, false, /* third= */ true,
		     (struct sim_bounds){.lapses = 1, .lost_answers = 1, .unsettled = 1});
}

static void exhaustive_unsettled_no_claim(void **state)
{
	(void)state;
	parse("keyed", "", ",\"on_unknown\":\"hold\"");
	explore_with("no claim, a service that is still at it", WORLD_KEYED, false, /* third= */ true,
		     (struct sim_bounds){.lost_answers = 1, .unsettled = 1});
}

/* A crash is for two callers: with the third as well, only in `make soak`. */
static void explore_crash_apart(const char *of_two, const char *of_three)
{
	explore(of_two, WORLD_KEYED, false, (struct sim_bounds){.crashes = 1, .lost_answers = 1});
	explore_with(of_three, WORLD_KEYED, false, /* third= */ true,
		     (struct sim_bounds){.crashes = ONE_IN_SOAK, .lost_answers = 1});
}

/* Whatever was sent under a key, the other input is never sent under it: refused, or sent when the key is another. */
static void exhaustive_inputs_claim(void **state)
{
	(void)state;
	parse("keyed", "", CLAIM);
	fixture.differ = true;
	explore_with("other inputs, a claim", WORLD_KEYED, false, /* third= */ true,
		     (struct sim_bounds){.lapses = 1, .lost_answers = 1});
}

static void exhaustive_inputs_no_claim(void **state)
{
	(void)state;
	parse("keyed", "", ",\"on_unknown\":\"hold\"");
	fixture.differ = true;
	explore_crash_apart("other inputs, no claim", "other inputs, no claim, three callers");
}

/* The second caller's program has no function for the step, and no more has the janitor's, which finds a claim to recover. */
static void exhaustive_left_probe(void **state)
{
	(void)state;
	parse("claimed", ",\"probe\":\"Ask\"", CLAIM ",\"on_unknown\":\"probe\"");
	fixture.lacking = machine_of("claimed", ",\"probe\":\"Ask\"", CLAIM ",\"on_unknown\":\"probe\"",
				     /* version= */ 1);
	lack(fixture.lacking->workflow->actions, fixture.lacking->workflow->actions_n, "Close");
	lack(fixture.lacking->workflow->actions, fixture.lacking->workflow->actions_n, "Ask");
	explore("a caller and a janitor without the function", WORLD_PLAIN, true,
		(struct sim_bounds){.lapses = 2, .crashes = 1, .lost_answers = 1});
}

/* The commit of what a caller writes down is not answered, or fails, or both: he says what he knows. */
static void exhaustive_note_unanswered(void **state)
{
	(void)state;
	parse("keyed", "", ",\"on_unknown\":\"hold\"");
	fixture.differ = true;
	explore_with("other inputs, no claim, a store that is lost twice", WORLD_KEYED, false,
		     /* third= */ false, (struct sim_bounds){.lost_answers = 1, .failures = 1});
}

/* The second version has other headers: they are for nobody whom the first one has called. */
#define SECOND ",\"headers\":{\"X-Secret\":\"${env:NEW}\"}"

static void exhaustive_versions_claim(void **state)
{
	(void)state;
	parse("keyed", "", CLAIM);
	fixture.second = machine_of("keyed", SECOND, CLAIM, /* version= */ 2);
	explore("two versions, a claim", WORLD_KEYED, false,
		(struct sim_bounds){.lapses = 1, .crashes = 1, .lost_answers = 1});
}

static void exhaustive_versions_no_claim(void **state)
{
	(void)state;
	parse("keyed", "", "");
	fixture.second = machine_of("keyed", SECOND, "", /* version= */ 2);
	explore("two versions, no claim", WORLD_KEYED, false, (struct sim_bounds){.crashes = 1, .lost_answers = 1});
}

/* Of two callers, with a crash and an answer that is lost; of three without. The janitor is of the second version, if there is one. */
static void explore_one_claims(const char *name, bool third)
{
	if (fixture.second)
		fixture.rule.machine = fixture.second;
	explore_with(name, WORLD_KEYED, false, third,
		     (struct sim_bounds){.lapses = 1, .crashes = !third, .lost_answers = !third});
}

/* The second version claims and the first does not: a claim and a call without one, under one key. */
static void explore_versions(const char *name, bool third)
{
	parse("keyed", "", "");
	fixture.second = machine_of("keyed", SECOND, CLAIM, /* version= */ 2);
	explore_one_claims(name, third);
}

static void exhaustive_one_claims_versions(void **state)
{
	(void)state;
	explore_versions("two versions, one claims", /* third= */ false);
}

static void exhaustive_one_claims_versions_three(void **state)
{
	(void)state;
	explore_versions("two versions, one claims, three callers", /* third= */ true);
}

/* The same in one version: for cron there is a claim, and for others none. */

static void exhaustive_one_claims_requesters(void **state)
{
	(void)state;
	parse("keyed", "", CRON_CLAIMS);
	fixture.other_requester = "cron";
	explore_one_claims("two requesters, one claims", /* third= */ false);
}

static void exhaustive_requesters_no_claim(void **state)
{
	(void)state;
	parse("keyed", "", "");
	fixture.other_requester = "cron";
	explore("two requesters, no claim", WORLD_KEYED, false, (struct sim_bounds){.crashes = 1, .lost_answers = 1});
}

/* Two steps from one status, of which one claims. */
#define PING_STEP                                                                                                      \
	"},{\"step_id\":30,\"step_key\":\"ping\",\"status\":\"approved\",\"successful_state\":\"closed\","             \
	"\"action\":\"Ping\",\"success_after_effect\":[\"Mail\"]"

static void explore_steps(const char *name, bool third)
{
	parse("keyed", PING, CLAIM PING_STEP);
	fixture.other_step = "ping";
	fixture.effects_max = 2;
	explore_one_claims(name, third);
}

static void exhaustive_one_claims_steps(void **state)
{
	(void)state;
	explore_steps("two steps, one claims", /* third= */ false);
}

static void exhaustive_one_claims_steps_three(void **state)
{
	(void)state;
	explore_steps("two steps, one claims, three callers", /* third= */ true);
}

static void exhaustive_one_claims_steps_hold(void **state)
{
	(void)state;
	parse("claimed", PING, CLAIM ",\"on_unknown\":\"hold\"" PING_STEP);
	fixture.other_step = "ping";
	fixture.effects_max = 2;
	explore_one_claims("two steps, one claims, for a person", /* third= */ false);
}

/* Paused holders that go on after their time: effects cannot be counted there, the rows must still be right. */
static void exhaustive_revert_paused(void **state)
{
	(void)state;
	parse("claimed", "", CLAIM);
	fixture.effects_max = 0;
	explore("on_unknown revert, holders that are paused past their lease", WORLD_UNWATCHED, false, usual);
}

static void exhaustive_data_claim(void **state)
{
	(void)state;
	parse("keyed", "", CLAIM SAVES);
	fixture.changes = true;
	explore_with("data, a claim", WORLD_KEYED, false, /* third= */ true,
		     (struct sim_bounds){.lapses = 2, .crashes = 1, .lost_answers = 1});
}

/* Who has read the data before it was changed must not send it after that: the next one sends the other under the same key. */
static void exhaustive_data_fired_again(void **state)
{
	(void)state;
	parse("keyed", "", SAVES);
	fixture.changes = fixture.fires_again = true;
	explore_with("data, no claim, two who fire", WORLD_KEYED, false, /* third= */ true,
		     (struct sim_bounds){.crashes = ONE_IN_SOAK, .lost_answers = 1});
}

static void exhaustive_data_no_claim(void **state)
{
	(void)state;
	parse("keyed", "", SAVES);
	fixture.changes = true;
	explore_with("data, no claim", WORLD_KEYED, false, /* third= */ true,
		     (struct sim_bounds){.crashes = 1, .lost_answers = 1, .failures = 1});
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(exhaustive_no_claim_keyed),
		cmocka_unit_test(exhaustive_revert_keyed),
		cmocka_unit_test(exhaustive_retry_keyed),
		cmocka_unit_test(exhaustive_probe_plain),
		cmocka_unit_test(exhaustive_hold_plain),
		cmocka_unit_test(exhaustive_revert_paused),
		cmocka_unit_test(exhaustive_three_keyed),
		cmocka_unit_test(exhaustive_unsettled_keyed),
		cmocka_unit_test(exhaustive_unsettled_no_claim),
		cmocka_unit_test(exhaustive_inputs_claim),
		cmocka_unit_test(exhaustive_inputs_no_claim),
		cmocka_unit_test(exhaustive_left_probe),
		cmocka_unit_test(exhaustive_note_unanswered),
		cmocka_unit_test(exhaustive_versions_claim),
		cmocka_unit_test(exhaustive_versions_no_claim),
		cmocka_unit_test(exhaustive_one_claims_versions),
		cmocka_unit_test(exhaustive_one_claims_versions_three),
		cmocka_unit_test(exhaustive_one_claims_requesters),
		cmocka_unit_test(exhaustive_requesters_no_claim),
		cmocka_unit_test(exhaustive_one_claims_steps),
		cmocka_unit_test(exhaustive_one_claims_steps_three),
		cmocka_unit_test(exhaustive_one_claims_steps_hold),
		cmocka_unit_test(exhaustive_data_claim),
		cmocka_unit_test(exhaustive_data_no_claim),
		cmocka_unit_test(exhaustive_data_fired_again),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
