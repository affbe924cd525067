/*
 * A step in doubt, explored, and another one that is done in between: `close` is called again under the key that it had, with what it had
 * sent. `edit` leaves the entity where it was, without a claim, with one, or as a step that calls nobody; or the two are in doubt at the same
 * time.
 */
#include "sim/closing.h"

#define EDIT_STEP "},{\"step_id\":30,\"step_key\":\"edit\",\"status\":\"approved\",\"successful_state\":\"approved\""

static void explore_edit(const char *name, const char *close, const char *edit, struct sim_bounds bounds)
{
	char steps[600];

	snprintf(steps, sizeof steps, "%s" EDIT_STEP "%s", close, edit);
	parse("keyed", PING, steps);
	fixture.other_step = "edit";
	fixture.effects_max = 2;
	explore_with(name, WORLD_KEYED, false, /* third= */ true, bounds);
}

static const struct sim_bounds in_between = {.lapses = 1, .lost_answers = 1};

/* What the other step saves is no part of the call that is in doubt (I8). */
static void exhaustive_between_no_claim(void **state)
{
	(void)state;
	explore_edit("another step in between, no claim", CLAIM, SAVES ",\"action\":\"Ping\"", in_between);
}

static void exhaustive_between_claim(void **state)
{
	(void)state;
	explore_edit("another step in between, a claim", CLAIM, CLAIM ",\"action\":\"Ping\"", in_between);
}

/* A crash of each of the nodes. */
static void exhaustive_between_nobody(void **state)
{
	(void)state;
	explore_edit("a step that calls nobody in between", CLAIM, "", in_between);
	explore_edit("a step that calls nobody in between, a crash", CLAIM, "",
		     (struct sim_bounds){.lapses = 1, .crashes = 1});
}

/* The call is begun without a claim, and made again under one, or the reverse. */
static void exhaustive_between_requesters(void **state)
{
	char steps[600];

	(void)state;
	snprintf(steps, sizeof steps, "%s" EDIT_STEP "%s", CRON_CLAIMS, "");
	parse("keyed", PING, steps);
	fixture.other_step = "edit";
	fixture.effects_max = 2;
	fixture.third_requester = "cron";
	explore_with("a step that calls nobody in between, for cron a claim", WORLD_KEYED, false, /* third= */ true,
		     (struct sim_bounds){.lapses = 2, .lost_answers = 1});
}

static void exhaustive_between_both_open(void **state)
{
	(void)state;
	explore_edit("two steps without a claim", "", ",\"action\":\"Ping\"", (struct sim_bounds){.lost_answers = 1});
}

/* Fired twice, and both are meant. */
static void explore_reopened(const char *name, const char *close, const char *edit, struct sim_bounds bounds)
{
	char steps[600];

	snprintf(steps, sizeof steps,
		 "%s},{\"step_id\":30,\"step_key\":\"edit\",\"status\":\"closed\",\"successful_state\":\"approved\"%s",
		 close, edit);
	parse("keyed", PING, steps);
	fixture.other_step = "edit";
	fixture.reopens = true;
	fixture.effects_max = 3;
	explore_with(name, WORLD_KEYED, false, /* third= */ true, bounds);
}

static void exhaustive_between_done_twice(void **state)
{
	(void)state;
	explore_reopened("done, led back, done again", "", "", in_between);
	explore_reopened("done, led back, done again, a claim", CLAIM, "", in_between);
	explore_reopened("done, led back, done again, a crash", "", "",
			 (struct sim_bounds){.crashes = 1, .failures = 1});
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(exhaustive_between_no_claim),  cmocka_unit_test(exhaustive_between_claim),
		cmocka_unit_test(exhaustive_between_nobody),    cmocka_unit_test(exhaustive_between_requesters),
		cmocka_unit_test(exhaustive_between_both_open), cmocka_unit_test(exhaustive_between_done_twice),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
