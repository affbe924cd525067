/*
 * Steps of entities whose action has limits, explored: two entities, a caller for each of them, one call at a time; and whoever ends the
 * claims of those who were lost: a janitor who reverts or parks them, or one who asks first.
 *
 * On every edge: L1 of flow/slot.h; E10 of flow/entity_step.h: an entity has a slot exactly while it is claimed and not parked for a
 * person; and no more calls are begun in a time than may be (L5).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "flow/janitor.h"
#include "sim/entities.h"
#include "sim/explore.h"
#include "sim/walks.h"

#define STATES_MAX 20000000

#define CONCURRENCY "\"concurrency\":{\"max\":1}"
#define RATE "\"rate\":{\"max\":1,\"per\":\"10s\"}"

static const char definition[] =
	"{\"workflow\":\"billing\",\"kind\":\"entity\",\"status_types\":[\"approved\",\"closing\",\"closed\"],"
	"\"initial_status\":\"approved\",\"actions\":{"
	"\"Close\":{\"kind\":\"http\",\"url\":\"http://127.0.0.1:1/close\",\"effect\":\"keyed\",\"probe\":\"Ask\",\"limits\":{%s}},"
	"\"Ask\":{\"kind\":\"http\",\"url\":\"http://127.0.0.1:1/ask\",\"effect\":\"idempotent\"}},"
	"\"steps\":[{\"step_id\":20,\"step_key\":\"close\",\"status\":\"approved\",\"successful_state\":\"closed\","
	"\"claim_state\":[\"closing\",\"approved\"],\"action\":\"Close\",\"on_unknown\":\"%s\"}]}";

static struct {
	struct arena arena;
	const struct entity_machine *machine;
	struct step_request callers[2], recoveries[2];
	struct janitor_rule rule;
	struct janitor_rules rules;
	bool slots;
	int64_t per_ms;
	bool line; /* somebody stands in it, and was woken */
} fixture;

static const struct workflow *workflow_of(const void *context, struct slice workflow, int64_t version)
{
	(void)context, (void)workflow, (void)version;
	return fixture.machine->workflow;
}

static void parse(const char *limits, const char *on_unknown)
{
	static const char *const names[] = {"e1", "e2"};
	const struct workflow *workflow;
	struct findings findings;
	char text[2000];

	arena_release(&fixture.arena);
	memset(&fixture, 0, sizeof fixture);
	arena_init(&fixture.arena, 16u << 20);
	findings_init(&findings, &fixture.arena);
	snprintf(text, sizeof text, definition, limits, on_unknown);
	workflow_parse("billing.json", arena_copy(&fixture.arena, slice_str(text)), &fixture.arena, &findings,
		       &workflow);
	for (const struct finding *f = findings.first; f; f = f->next)
		printf("%s: %s\n", f->rule, f->text);
	assert_non_null(workflow);
	fixture.machine = entity_machine_new(workflow, 1, /* table= */ NULL, &fixture.arena);
	fixture.slots = workflow->actions[1].limits.concurrency.max > 0; /* by name: Ask is the first */
	fixture.per_ms = workflow->actions[1].limits.rate.per_ms;
	for (int i = 0; i < 2; i++) {
		fixture.callers[i] = (struct step_request){
			.mode = STEP_FIRE,
			.ref = {slice_str("default"), fixture.machine, slice_str(names[i])},
			.step_key = slice_str("close"),
			.requester = slice_str("default"),
			.input = json_trust(slice_str("null")),
			.lease_ms = 60000,
			.workflow_of = workflow_of,
		};
		fixture.recoveries[i] = (struct step_request){
			.mode = STEP_RECOVER,
			.ref = {.machine = fixture.machine},
			.subject = i + 1,
			.lease_ms = 60000,
			.workflow_of = workflow_of,
		};
	}
	fixture.rule = (struct janitor_rule){
		.kind = fixture.machine->kind,
		.claim_into = "closing",
		.revert_to = "approved",
		.machine = fixture.machine,
	};
	fixture.rules = (struct janitor_rules){1, &fixture.rule};
}

/* ---- the store, seen from here ---- */

/* clang-format off */

DB_STMT(stmt_hash_slots, "sim_entity_slots", "", "ii", "SELECT holder, held FROM hx_slot ORDER BY name, holder");
DB_STMT(stmt_hash_ticks, "sim_entity_ticks", "", "ii", "SELECT holder, at FROM hx_tick ORDER BY name, holder, at");

/* One row: what is wrong, as numbers of findings. ?1: whether there are slots   ?2: in how long one may begin */
DB_STMT(stmt_check, "sim_entity_limits", "ii", "iiiiii",
	"SELECT"
	" coalesce((SELECT max(n) FROM (SELECT count(*) AS n FROM hx_slot WHERE held = 1 GROUP BY name)), 0) > 1,"
	" (SELECT count(*) FROM hx_subject s WHERE ?1 = 1 AND s.owner IS NOT NULL AND s.owner <> 'held'"
	"   AND NOT EXISTS (SELECT 1 FROM hx_slot l WHERE l.holder = s.id AND l.held = 1)),"
	" (SELECT count(*) FROM hx_slot l JOIN hx_subject s ON s.id = l.holder WHERE s.owner IS NULL OR s.owner = 'held'),"
	" (SELECT count(*) FROM hx_slot WHERE held <> 1 AND holder <> 9),"
	" (SELECT count(*) FROM hx_slot l JOIN hx_job j ON j.subject = 9 WHERE l.held = 1 AND l.at - j.due_at < 30000),"
	" (SELECT count(*) FROM hx_tick a, hx_tick b WHERE (a.holder, a.nth) < (b.holder, b.nth) AND abs(a.at - b.at) < ?2)");

/* An after-effect that was woken a moment ago. ?1 the name of its line */
DB_STMT(stmt_woken, "sim_entity_woken", "i", "",
	"INSERT INTO hx_slot (name, holder, held, at, key, action) VALUES (?1, 9, 0, 0, 'null', 'Close')");
DB_STMT(stmt_woken_job, "sim_entity_woken_job", "", "",
	"INSERT INTO hx_job (subject, workspace, queue, workflow, action, effect_key, payload, due_at, repeatable)"
	" VALUES (9, 'default', 'after-effects', 'billing', 'Close', 'k', '{}', hx_now_ms(), 1)");

/* clang-format on */

static struct unit_result ask_store(struct sim *sim, const struct db_stmt *stmt, unsigned n,
				    const struct db_value *params)
{
	struct unit unit;

	unit_init(&unit, 0);
	unit_add(&unit, UNIT_ANY, stmt, n, params);
	return sim_run_unit(sim, &unit);
}

static uint64_t hash_all(struct sim *sim, uint64_t hash)
{
	hash = sim_hash_answer(sim, &stmt_hash_slots, hash_calls(sim, hash));
	return sim_hash_answer(sim, &stmt_hash_ticks, hash);
}

static uint64_t rows_before;

static void keep_rows(struct sim *sim, const struct unit *unit)
{
	(void)unit;
	rows_before = hash_all(sim, 1);
}

static void compare_rows(struct sim *sim, const struct unit *unit, enum unit_verdict verdict)
{
	(void)unit;
	if (verdict != UNIT_WON && hash_all(sim, 1) != rows_before)
		sim_violate(sim, "I4: a unit that was %s left something", unit_verdict_name(verdict));
}

static const struct sim_rows rows = {never, hash_all, keep_rows, compare_rows, tell_nothing, .locked = NULL};

static void check(struct sim *sim)
{
	static const char *const words[] = {
		"L1: more hold a slot than there are",
		"E10: an entity is claimed, and has no slot",
		"E10: a slot is held by who has no claim, or waits for a person",
		"somebody stands in line",
		"a caller has passed one that was woken",
		"L5: more were begun than may be",
	};
	struct db_value params[] = {db_int(fixture.slots), db_int(fixture.per_ms)};
	struct unit_result result = ask_store(sim, &stmt_check, 2, params);

	for (size_t i = 0; result.verdict == UNIT_WON && i < sizeof words / sizeof *words; i++)
		if (db_cell(&result.rows[0], 0, i)->i)
			sim_violate(sim, "%s", words[i]);
}

/* ---- the cast ---- */

static void init_step(union sim_task *task, const void *plan, struct arena *texts)
{
	entity_step_init((struct entity_step *)task, plan, texts);
}

static void init_janitor(union sim_task *task, const void *plan, struct arena *texts)
{
	(void)plan, (void)texts;
	janitor_init((struct janitor *)task, &fixture.rules, /* budget= */ 8, (struct mono_time){0});
}

static bool is_probe(const void *action)
{
	return strcmp(((const struct action *)action)->name, "Ask") == 0;
}

static void setup(struct sim *sim)
{
	int64_t line = slot_name("action", slice_str("default"), slice_str("billing/Close"), slice_str("null"));
	struct db_value name = db_int(line);

	make_entities(sim, "billing");
	if (!fixture.line)
		return;
	(void)ask_store(sim, &stmt_woken, 1, &name);
	(void)ask_store(sim, &stmt_woken_job, 0, NULL);
}

static void explore(const char *name, bool recovery, struct sim_bounds bounds)
{
	struct sim_scenario scenario = {
		.name = name,
		.subjects_n = 2,
		.kind = fixture.machine->kind,
		.initial = "approved",
		.claim_status = "closing",
		.revert_status = "approved",
		.nodes_n = 3,
		.cast_n = 3,
		.cast = {{"caller-1", 0, false, init_step, &fixture.callers[0]},
			 {"caller-2", 1, false, init_step, &fixture.callers[1]},
			 {recovery ? "recovery" : "janitor", 2, true, recovery ? init_step : init_janitor,
			  &fixture.recoveries[0]}},
		.bounds = bounds,
		.world = WORLD_KEYED,
		.setup = setup,
		.check = check,
		.is_probe = is_probe,
		.rows = &rows,
	};

	walk_all(&scenario, STATES_MAX);
}

static const struct sim_bounds usual = {.lapses = 1, .crashes = 1, .lost_answers = 1};

static void exhaustive_revert(void **state)
{
	(void)state;
	parse(CONCURRENCY, "revert");
	explore("two entities, one call at a time, reverted by a janitor", /* recovery= */ false, usual);
}

static void exhaustive_hold(void **state)
{
	(void)state;
	parse(CONCURRENCY, "hold");
	explore("two entities, one call at a time, what is unknown is parked", /* recovery= */ false, usual);
}

static void exhaustive_probe(void **state)
{
	(void)state;
	parse(CONCURRENCY, "probe");
	explore("two entities, one call at a time, what is unknown is asked for", /* recovery= */ true, usual);
}

static void exhaustive_rate(void **state)
{
	(void)state;
	parse(CONCURRENCY "," RATE, "revert");
	explore("two entities, one call at a time, one begun at a time", /* recovery= */ false, usual);
}

/* Entities may be old, and callers come again at once: nobody would ever get a slot that stands in line for it. */
static void exhaustive_line(void **state)
{
	(void)state;
	parse(CONCURRENCY, "revert");
	fixture.line = true;
	explore("two entities, one call at a time, somebody in line was woken", /* recovery= */ false, usual);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(exhaustive_revert), cmocka_unit_test(exhaustive_hold),
		cmocka_unit_test(exhaustive_probe),  cmocka_unit_test(exhaustive_rate),
		cmocka_unit_test(exhaustive_line),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
