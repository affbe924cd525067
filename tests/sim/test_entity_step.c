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
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/id.h"
#include "flow/entity_step.h"
#include "flow/janitor.h"
#include "sim/entities.h"
#include "sim/explore.h"
#include "sim/invariant.h"
#include "sim/left.h"
#include "sim/walks.h"
#include "sim/world.h"

#define STATES_MAX 20000000

static const char definition[] =
	"{\"workflow\":\"billing\",\"kind\":\"entity\",\"status_types\":[\"approved\",\"closing\",\"closed\"],"
	"\"initial_status\":\"approved\",\"actions\":{"
	"\"Close\":{\"kind\":\"http\",\"url\":\"http://127.0.0.1:1/close\",\"effect\":\"%s\"%s},"
	"\"Ask\":{\"kind\":\"http\",\"url\":\"http://127.0.0.1:1/ask\",\"effect\":\"idempotent\"},"
	"\"Mail\":{\"kind\":\"http\",\"url\":\"http://127.0.0.1:1/mail\",\"effect\":\"keyed\"}},"
	"\"steps\":[{\"step_id\":20,\"step_key\":\"close\",\"status\":\"approved\",\"successful_state\":\"closed\","
	"\"action\":\"Close\",\"success_after_effect\":[\"Mail\"]%s}]}";

/* One world per test: definitions live as long as the program. */
static struct {
	struct arena arena;
	const struct entity_machine *machine, *second; /* the second version; NULL: there is none */
	const struct entity_machine
		*lacking; /* the second caller's and the janitor's program lacks a function; NULL: no */
	struct step_request rq;
	struct janitor_rule rule;
	struct janitor_rules rules;
	unsigned effects_max;
	bool differ;                              /* the callers' inputs */
	const char *other_requester, *other_step; /* the second caller's; NULL: as the first one's */
	bool changes;                             /* the second caller, and a third, change the data */
	bool fires_again;                         /* the third fires instead */
} fixture;

static const struct entity_machine *machine_of(const char *effect, const char *more, const char *step, int64_t version)
{
	struct findings findings;
	const struct workflow *workflow;
	char text[2000];

	findings_init(&findings, &fixture.arena);
	snprintf(text, sizeof text, definition, effect, more, step);
	workflow_parse("billing.json", arena_copy(&fixture.arena, slice_str(text)), &fixture.arena, &findings,
		       &workflow);
	for (const struct finding *f = findings.first; f; f = f->next)
		printf("%s: %s\n", f->rule, f->text);
	assert_non_null(workflow);
	return entity_machine_new(workflow, version, /* table= */ NULL, &fixture.arena);
}

static const struct workflow *workflow_of(const void *context, struct slice workflow, int64_t version)
{
	(void)context, (void)workflow;
	assert_true(version == 1 || (version == 2 && fixture.second));
	return version == 1 ? fixture.machine->workflow : fixture.second->workflow;
}

static void parse(const char *effect, const char *probe, const char *step)
{
	arena_release(&fixture.arena);
	memset(&fixture, 0, sizeof fixture);
	arena_init(&fixture.arena, 16u << 20);
	fixture.machine = machine_of(effect, probe, step, /* version= */ 1);
	fixture.rq = (struct step_request){
		.mode = STEP_FIRE,
		.ref = {slice_str("default"), fixture.machine, slice_str("e1")},
		.step_key = slice_str("close"),
		.requester = slice_str("default"),
		.input = json_trust(slice_str("null")),
		.lease_ms = 60000,
		.workflow_of = workflow_of,
	};
	fixture.rule = (struct janitor_rule){
		.kind = fixture.machine->kind,
		.claim_into = "closing",
		.revert_to = "approved",
		.machine = fixture.machine,
	};
	fixture.rules = (struct janitor_rules){1, &fixture.rule};
	fixture.effects_max = 1;
}

/* ---- the cast ---- */

static void init_step(union sim_task *task, const void *plan, struct arena *texts)
{
	(void)plan;
	entity_step_init((struct entity_step *)task, &fixture.rq, texts);
}

static void init_lacking(union sim_task *task, const void *plan, struct arena *texts)
{
	static struct step_request rq;

	(void)plan;
	rq = fixture.rq;
	rq.ref.machine = fixture.lacking;
	entity_step_init((struct entity_step *)task, &rq, texts);
}

static bool others_differ(void)
{
	return fixture.differ || fixture.second || fixture.other_requester || fixture.other_step;
}

/* The same with another input, or by another version, or for another requester; or another step. */
static void init_other(union sim_task *task, const void *plan, struct arena *texts)
{
	static struct step_request rq;

	(void)plan;
	rq = fixture.rq;
	if (fixture.second)
		rq.ref.machine = fixture.second;
	if (fixture.other_requester)
		rq.requester = slice_str(fixture.other_requester);
	if (fixture.other_step)
		rq.step_key = slice_str(fixture.other_step);
	if (fixture.differ)
		rq.input = json_trust(slice_str("{\"other\":1}"));
	entity_step_init((struct entity_step *)task, &rq, texts);
}

/* The plan is the member that it adds. */
static void init_change(union sim_task *task, const void *plan, struct arena *texts)
{
	static struct step_request x, y;
	bool first = strcmp(plan, "{\"x\":1}") == 0;
	struct step_request *rq = first ? &x : &y;

	*rq = fixture.rq;
	rq->mode = STEP_CHANGE;
	rq->version = 1;
	rq->input = json_trust(slice_str(plan));
	entity_step_init((struct entity_step *)task, rq, texts);
}

static void init_janitor(union sim_task *task, const void *plan, struct arena *texts)
{
	(void)plan, (void)texts;
	janitor_init((struct janitor *)task, &fixture.rules, /* budget= */ 8, (struct mono_time){0});
}

/* What a janitor starts for a claim whose step wants a probe. It finds nothing to do unless the time is over. */
static void init_recovery(union sim_task *task, const void *plan, struct arena *texts)
{
	static struct step_request rq;

	(void)plan;
	rq = (struct step_request){
		.mode = STEP_RECOVER,
		.ref = {.machine = fixture.lacking ? fixture.lacking : fixture.machine},
		.subject = 1,
		.lease_ms = 60000,
	};
	entity_step_init((struct entity_step *)task, &rq, texts);
}

static bool is_probe(const void *action)
{
	return strcmp(((const struct action *)action)->name, "Ask") == 0;
}

static const struct db_stmt stmt_count = {
	.name = "sim_after_effects",
	.sql = "SELECT (SELECT count(*) FROM hx_job), (SELECT count(*) FROM hx_history WHERE to_status = 'closed'),"
	       " (SELECT count(*) FROM hx_job WHERE (due_at IS NULL) <> ((SELECT status FROM hx_subject WHERE id = hx_job.subject)"
	       " NOT IN ('AVAILABLE', 'RETRYING'))), (SELECT max(fence) FROM hx_subject WHERE id = 1),"
	       " (SELECT count(*) FROM hx_subject s JOIN hx_entity e ON e.subject = s.id"
	       " WHERE s.owner IS NOT NULL AND (e.claim_step <> 'close' OR e.claim_effort <> s.effort))",
	.in = "",
	.out = "iiiii",
};

static void setup(struct sim *sim)
{
	make_entities(sim, "billing");
}

/*
 * E8: nothing was ever called, everybody who may have written a call down heard that the store was away, and yet somebody is told
 * that a call is in doubt. Of steps without a claim: a claim that nobody came to use ends by its time, as one whose node was lost.
 */
static bool is_refused_for_nothing(const struct sim *sim)
{
	unsigned refused = 0;

	for (unsigned i = 0; i < sim->scenario->cast_n; i++) {
		const struct sim_actor *actor = &sim->state.actors[i];
		bool read_only = actor->state == SIM_ASKING &&
				 (!step_of(sim, i) || step_of(sim, i)->task.at <= STEP_READING);

		refused += actor->state == SIM_DONE && actor->code == HX_IN_DOUBT;
		if (!read_only &&
		    !(actor->state == SIM_DONE && (actor->code == HX_IN_DOUBT || actor->code == HX_STORE_UNAVAILABLE)))
			return false;
	}
	return refused && !sim->state.requests_n;
}

/* Under all its keys together. */
static unsigned effects_of(const struct sim *sim, const char *step)
{
	char id[ID_TEXT_BYTES], key[ID_TEXT_BYTES + 40];
	unsigned n = 0, at;

	id_format("ent", /* subject= */ 1, id);
	for (int effort = 0; effort < SIM_EFFECTS_MAX; effort++) {
		snprintf(key, sizeof key, "%s-%d-%s", id, effort, step);
		n += world_did(sim, world_key(slice_str(key)), &at);
	}
	return n;
}

static const struct db_stmt stmt_data = {
	.name = "sim_data",
	.sql = "SELECT CASE WHEN s.status = 'closed' THEN 1 ELSE 0 END, instr(e.data, '\"saved\":'), instr(e.data, '\"x\":1'),"
	       " instr(e.data, '\"y\":1') FROM hx_entity e JOIN hx_subject s ON s.id = e.subject",
	.in = "",
	.out = "iiii",
};

static void check_data(struct sim *sim)
{
	const struct sim_actor *actors = sim->state.actors;
	struct unit unit;

	unit_init(&unit, 0);
	unit_add(&unit, UNIT_ANY, &stmt_data, 0, NULL);

	struct unit_result result = sim_run_unit(sim, &unit);
	const struct db_rows *rows = &result.rows[0];

	if (result.verdict != UNIT_WON)
		return;
	if ((db_cell(rows, 0, 0)->i != 0) != (db_cell(rows, 0, 1)->i != 0))
		sim_violate(sim, "E9: what the step saves is there without its transition, or the reverse");
	for (int i = 1; i <= (fixture.fires_again ? 1 : 3); i += 2)
		if (actors[i].state == SIM_DONE && actors[i].code == HX_OK && !db_cell(rows, 0, i == 1 ? 2 : 3)->i)
			sim_violate(sim, "E9: a change of the data was acknowledged, and is not there");
}

static void check_effects(struct sim *sim)
{
	if (fixture.effects_max && world_effects(sim) > fixture.effects_max)
		sim_violate(sim, "E2: the action took effect %u times", world_effects(sim));
	if (fixture.other_step && (effects_of(sim, "close") > 1 || effects_of(sim, fixture.other_step) > 1))
		sim_violate(sim, "E2: the actions took effect %u and %u times", effects_of(sim, "close"),
			    effects_of(sim, fixture.other_step));
}

static void check(struct sim *sim)
{
	struct unit unit;

	unit_init(&unit, 0);
	unit_add(&unit, UNIT_ANY, &stmt_count, 0, NULL);

	struct unit_result result = sim_run_unit(sim, &unit);

	if (result.verdict == UNIT_WON && db_cell(&result.rows[0], 0, 0)->i != db_cell(&result.rows[0], 0, 1)->i)
		sim_violate(sim, "E1: there are %lld after-effects of %lld transitions",
			    (long long)db_cell(&result.rows[0], 0, 0)->i, (long long)db_cell(&result.rows[0], 0, 1)->i);
	if (result.verdict == UNIT_WON && db_cell(&result.rows[0], 0, 2)->i)
		sim_violate(sim, "J1: a job is due that cannot be claimed, or the reverse");
	check_left(sim);
	if (result.verdict == UNIT_WON && db_cell(&result.rows[0], 0, 3)->i == 0 && is_refused_for_nothing(sim))
		sim_violate(sim, "E8: a call is taken for one in doubt that was never made, and whose maker knew it");
	if (result.verdict == UNIT_WON && db_cell(&result.rows[0], 0, 4)->i)
		sim_violate(sim, "E5: the call that is written down is not that of the claim");
	check_effects(sim);
	if (fixture.changes)
		check_data(sim);
}

static void explore_with(const char *name, enum sim_world world, bool recovery, bool third, struct sim_bounds bounds)
{
	struct sim_scenario scenario = {
		.name = name,
		.subjects_n = 1,
		.kind = fixture.machine->kind,
		.initial = "approved",
		.claim_status = "closing",
		.revert_status = "approved",
		.nodes_n = third ? 4 : 3,
		.cast_n = third ? 4 : 3,
		.cast = {{"caller-1", 0, false, init_step, NULL},
			 {"caller-2", 1, false,
			  fixture.changes   ? init_change
			  : fixture.lacking ? init_lacking
			  : others_differ() ? init_other
					    : init_step,
			  "{\"x\":1}"},
			 {recovery ? "recovery" : "janitor", 2, true, recovery ? init_recovery : init_janitor, NULL},
			 {"caller-3", 3, false, fixture.changes && !fixture.fires_again ? init_change : init_step,
			  "{\"y\":1}"}},
		.bounds = bounds,
		.world = world,
		.setup = setup,
		.check = check,
		.is_probe = is_probe,
		.rows = &rows_of_entities,
	};

	walk_all(&scenario, STATES_MAX);
}

static void explore(const char *name, enum sim_world world, bool recovery, struct sim_bounds bounds)
{
	explore_with(name, world, recovery, /* third= */ false, bounds);
}

static const struct sim_bounds usual = {.lapses = 2, .crashes = 1, .lost_answers = 1, .failures = 1};
#define CLAIM ",\"claim_state\":[\"closing\",\"approved\"]"

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
#define CRON_CLAIMS ",\"claim_state\":{\"cron\":[\"closing\",\"approved\"],\"default\":null}"

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
#define PING "},\"Ping\":{\"kind\":\"http\",\"url\":\"http://127.0.0.1:1/ping\",\"effect\":\"keyed\""
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

#define SAVES ",\"save_as\":\"saved\""

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
