/*
 * A new version of an entity's definition beside callers who are at work by the first one, explored.
 *
 *   the change    LOOKING who is in what is lost ─┬ somebody ─▶ refused
 *                                                 └ nobody ─▶ WRITING, guarded ─▶ written, or refused: somebody came meanwhile
 *   the entity    approved ─claim─▶ closing ─┬ finish ─▶ closed
 *                                            ├ release ─▶ approved
 *                                            └ its holder is gone ─▶ held, by whichever janitor comes: so its step says
 *
 * The lists, the counts and the unit that writes are the engine's own (flow/entity_orphans.h); what is of this test is that the one
 * is asked for after the other, which the engine does without a task. A store on SQLite has one writer, so the write is given the
 * entity's lock here. On PostgreSQL a claim may be under way uncommitted while the guard looks: it counts as one that comes later.
 *
 * Both callers keep the first version to their end, as one who was under way, or whose node has not heard of the second. So there
 * are claims that come after the write, which no guard can see; and a janitor that knows only the second version meets them, beside
 * one that still has the first.
 *
 *  O1  When the version is written, nobody is under a claim whose step it does not have.
 *  O2  Whoever was in it before the write is in a status that the version has: then, and also when the claim of then has ended.
 *  O3  A claim that is to be held is not reverted, neither by a janitor that does not know its step; so the action took effect once
 *      at most.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/hash.h"
#include "flow/entity_orphans.h"
#include "flow/entity_step.h"
#include "flow/janitor.h"
#include "sim/explore.h"
#include "sim/invariant.h"
#include "sim/walks.h"
#include "sim/world.h"

#define STATES_MAX 5000000
#define RULES_MAX 4

#define BILLING(statuses, steps)                                                                                       \
	"{\"workflow\":\"billing\",\"kind\":\"entity\",\"status_types\":[\"approved\"," statuses                       \
	"],\"initial_status\":\"approved\",\"actions\":{"                                                              \
	"\"Close\":{\"kind\":\"http\",\"url\":\"http://127.0.0.1:1/close\",\"effect\":\"claimed\"}},\"steps\":[" steps \
	"]}"
#define STEP(id, key, into, to, on_unknown)                                                                            \
	"{\"step_id\":" id ",\"step_key\":\"" key "\",\"status\":\"approved\",\"successful_state\":\"" to              \
	"\",\"action\":\"Close\",\"claim_state\":[\"" into "\",\"approved\"],\"on_unknown\":\"" on_unknown "\"}"

static const char first[] = BILLING("\"closing\",\"closed\"", STEP("1", "close", "closing", "closed", "hold"));

/* The claim's status is gone. */
static const char no_closing[] = BILLING("\"ending\",\"closed\"", STEP("1", "close", "ending", "closed", "revert"));
/* It is kept, and the step that may be in it leads to one that is gone. */
static const char no_closed[] = BILLING("\"closing\",\"done\"", STEP("1", "close", "closing", "done", "hold"));
/* It is kept, by another step. */
static const char renamed[] = BILLING("\"closing\",\"closed\"", STEP("1", "shut", "closing", "closed", "revert"));
/* The same, and the first step claims elsewhere. */
static const char elsewhere[] = BILLING(
	"\"closing\",\"ending\",\"closed\"",
	STEP("1", "close", "ending", "closed", "revert") "," STEP("2", "shut", "closing", "closed", "revert"));

/* One world per test: definitions live as long as the program. */
static struct {
	struct arena arena;
	const struct entity_machine *before, *after;
	struct strbuf lost, lost_claims;
	struct new_version version;
	struct step_request rq;
	struct janitor_rule memory[2][RULES_MAX];
	struct janitor_rules old_rules, new_rules;
} fixture;

static const struct entity_machine *parse(const char *text)
{
	struct findings findings;
	const struct workflow *workflow;

	findings_init(&findings, &fixture.arena);
	workflow_parse("billing.json", slice_str(text), &fixture.arena, &findings, &workflow);
	for (const struct finding *f = findings.first; f; f = f->next)
		printf("%s: %s\n", f->rule, f->text);
	assert_non_null(workflow);
	return entity_machine_new(workflow, /* version= */ 1, /* table= */ NULL, &fixture.arena);
}

/* As the engine's janitors make them. */
static struct janitor_rules rules_of(const struct entity_machine *machine, struct janitor_rule memory[RULES_MAX])
{
	const struct workflow *w = machine->workflow;
	struct janitor_rules rules = {0, memory};

	for (size_t i = 0; i < w->statuses_n; i++) {
		const char *revert_to = workflow_revert_of(w, slice_str(w->statuses[i]));

		assert_true(rules.n < RULES_MAX);
		if (revert_to)
			memory[rules.n++] = (struct janitor_rule){machine->kind, w->statuses[i], revert_to, machine,
								  false};
	}
	return rules;
}

static void prepare(const char *second)
{
	arena_release(&fixture.arena);
	strbuf_release(&fixture.lost);
	strbuf_release(&fixture.lost_claims);
	memset(&fixture, 0, sizeof fixture);
	arena_init(&fixture.arena, 16u << 20);
	strbuf_init(&fixture.lost, 4096);
	strbuf_init(&fixture.lost_claims, 4096);
	fixture.before = parse(first);
	fixture.after = parse(second);
	fixture.version = (struct new_version){.workflow = "billing", .version = 2, .text = slice_str(second)};
	if (orphan_list(fixture.before->workflow, fixture.after->workflow, &fixture.lost))
		fixture.version.lost = strbuf_slice(&fixture.lost);
	if (orphan_list_claims(fixture.before->workflow, fixture.after->workflow, &fixture.lost_claims))
		fixture.version.lost_claims = strbuf_slice(&fixture.lost_claims);
	fixture.rq = (struct step_request){
		.mode = STEP_FIRE,
		.ref = {slice_str("default"), fixture.before, slice_str("e1")},
		.step_key = slice_str("close"),
		.requester = slice_str("default"),
		.input = json_trust(slice_str("null")),
		.lease_ms = 60000,
	};
	fixture.old_rules = rules_of(fixture.before, fixture.memory[0]);
	fixture.new_rules = rules_of(fixture.after, fixture.memory[1]);
}

/* ---- the change, as the engine goes about it ---- */

struct change {
	struct task task;
	enum { CHANGE_NEW, CHANGE_LOOKING, CHANGE_WRITING, CHANGE_DONE } at;
	enum hx_code code; /* HX_CONFIG_ERROR: the look has found somebody; HX_CONCURRENCY_ERROR: the guard has */
};

static void end(struct change *c, enum hx_code code)
{
	c->at = CHANGE_DONE;
	c->code = code;
}

static void change_take(struct task *task, const struct answer *answer)
{
	struct change *c = (struct change *)task;

	if (c->at == CHANGE_NEW)
		c->at = CHANGE_LOOKING;
	else if (answer->result->verdict == UNIT_FAILED || answer->result->verdict == UNIT_UNKNOWN)
		end(c, HX_STORE_UNAVAILABLE);
	else if (c->at == CHANGE_WRITING)
		end(c, answer->result->verdict == UNIT_WON ? HX_OK : HX_CONCURRENCY_ERROR);
	else if (answer->result->rows[0].n)
		end(c, HX_CONFIG_ERROR);
	else
		c->at = CHANGE_WRITING;
}

static void change_ask(const struct task *task, struct ask *ask)
{
	const struct change *c = (const struct change *)task;

	ask->kind = c->at == CHANGE_DONE ? ASK_DONE : ASK_COMMIT;
	ask->code = c->code;
	if (c->at == CHANGE_DONE)
		return;
	unit_init(ask->unit, /* op= */ 0);
	if (c->at == CHANGE_WRITING) {
		orphans_add_version(ask->unit, &fixture.version);
		unit_touch(ask->unit, /* subject= */ 1); /* the one writer's lock */
	} else if (fixture.version.lost.n) {             /* each of these changes loses either statuses or claims */
		orphans_count(ask->unit, "billing", fixture.version.lost);
	} else {
		orphans_count_claims(ask->unit, "billing", fixture.version.lost_claims);
	}
}

static const char *change_where(const struct task *task)
{
	static const char *const names[] = {"new", "looking for orphans", "writing the version", "done"};

	return names[((const struct change *)task)->at];
}

static const struct task_kind change_kind = {
	.name = "change",
	.size = sizeof(struct change),
	.take = change_take,
	.ask = change_ask,
	.where = change_where,
};

/* ---- the cast ---- */

enum { CALLER_1, CALLER_2, CHANGE, NEW_JANITOR, OLD_JANITOR, CAST };

static void init_step(union sim_task *task, const void *plan, struct arena *texts)
{
	(void)plan;
	entity_step_init((struct entity_step *)task, &fixture.rq, texts);
}

static void init_change(union sim_task *task, const void *plan, struct arena *texts)
{
	struct change *c = (struct change *)task;

	(void)plan, (void)texts;
	*c = (struct change){.at = CHANGE_NEW};
	task_init(&c->task, &change_kind, /* topic= */ 0);
}

static void init_janitor(union sim_task *task, const void *plan, struct arena *texts)
{
	(void)texts;
	janitor_init((struct janitor *)task, plan, /* budget= */ 8, (struct mono_time){0});
}

/* ---- the rows ---- */

static const struct db_stmt stmt_entity = {
	.name = "sim_entity",
	.sql = "INSERT INTO hx_entity (subject, workspace, workflow, name, data)"
	       " SELECT id, 'default', 'billing', 'e' || id, '{}' FROM hx_subject",
	.in = "",
	.out = "",
};

static const struct db_stmt stmt_written = {
	.name = "sim_written",
	.sql = "SELECT count(*), coalesce(max(version), 0) FROM hx_definition",
	.in = "",
	.out = "ii",
};

static const struct db_stmt stmt_claim = {
	.name = "sim_claim",
	.sql = "SELECT claim_step, claim_from FROM hx_entity WHERE subject = 1",
	.in = "",
	.out = "tt",
};

static struct db_rows ask_store(struct sim *sim, const struct db_stmt *stmt)
{
	struct unit unit;

	unit_init(&unit, 0);
	unit_add(&unit, UNIT_ANY, stmt, 0, NULL);
	return sim_run_unit(sim, &unit).rows[0];
}

static bool is_written(struct sim *sim)
{
	struct db_rows rows = ask_store(sim, &stmt_written);

	return db_cell(&rows, 0, 0)->i == 1;
}

static bool is_not_written(struct sim *sim)
{
	return !is_written(sim);
}

/* A janitor that would find nothing need not look. */
static bool is_stuck(struct sim *sim)
{
	struct sim_row row;

	return sim_read_row(sim, /* subject= */ 1, &row) && row.claimed && row.until <= sim->state.now.ms;
}

static bool is_written_and_stuck(struct sim *sim)
{
	return is_stuck(sim) && is_written(sim);
}

static void setup(struct sim *sim)
{
	struct unit unit;

	unit_init(&unit, 0);
	unit_add(&unit, UNIT_ANY, &stmt_entity, 0, NULL);
	(void)sim_run_unit(sim, &unit);
}

/* ---- the checks ---- */

/* What the check remembers: who was in it when the version was written. */
struct notes {
	bool written;
	int64_t fence; /* of the claim of then, or of the last one before */
};

static struct notes *notes_of(struct sim *sim)
{
	return (struct notes *)sim->state.notes;
}

/* Not by the engine's lists: by what the definition says. */
static bool knows_claim(struct sim *sim, const char *status)
{
	struct db_rows rows = ask_store(sim, &stmt_claim);
	const struct workflow *w = fixture.after->workflow;
	const struct step *step = workflow_step(w, db_cell(&rows, 0, 0)->s, db_cell(&rows, 0, 1)->s,
						slice_str("default"));
	const char *into = step ? workflow_view(w, step, slice_str("default"))->claim_into : NULL;

	return into && strcmp(into, status) == 0;
}

static struct {
	unsigned long written, by_look, by_guard, held;
} reached;

static void note_reached(const struct sim *sim)
{
	const struct sim_actor *change = &sim->state.actors[CHANGE], *janitor = &sim->state.actors[NEW_JANITOR];
	enum hx_code code = ((const struct change *)&change->task)->code;

	if (change->state == SIM_DONE) {
		reached.written += code == HX_OK;
		reached.by_look += code == HX_CONFIG_ERROR;
		reached.by_guard += code == HX_CONCURRENCY_ERROR;
	}
	if (janitor->state == SIM_DONE)
		reached.held += ((const struct janitor *)&janitor->task)->held > 0;
}

static void check(struct sim *sim)
{
	struct notes *notes = notes_of(sim);
	struct sim_row row;

	note_reached(sim);
	if (world_effects(sim) > 1)
		sim_violate(sim, "O3: the action took effect %u times", world_effects(sim));
	if (!is_written(sim) || !sim_read_row(sim, /* subject= */ 1, &row))
		return;
	if (!notes->written) {
		*notes = (struct notes){true, row.fence};
		if (row.claimed && !knows_claim(sim, row.status))
			sim_violate(sim, "O1: the version is written over a claim whose step it does not have");
	}
	if (row.fence == notes->fence && !workflow_has_status(fixture.after->workflow, slice_str(row.status)))
		sim_violate(sim, "O2: the entity of before the version is in \"%s\", which the version does not have",
			    row.status);
}

/* ---- for the simulator ---- */

static bool written_before;

static int64_t next_moment(struct sim *sim)
{
	(void)sim;
	return INT64_MAX;
}

static uint64_t hash_all(struct sim *sim, uint64_t hash)
{
	hash = hash_mix(hash, is_written(sim));
	return hash_mix(hash, (uint64_t)notes_of(sim)->fence * 2 + notes_of(sim)->written);
}

static void before_unit(struct sim *sim, const struct unit *unit)
{
	(void)unit;
	written_before = is_written(sim);
}

static void after_unit(struct sim *sim, const struct unit *unit, enum unit_verdict verdict)
{
	if (verdict == UNIT_WON && strcmp(unit->lines[0].stmt->name, "subject_revert") == 0)
		sim_violate(sim, "O3: a janitor has reverted a claim that its step wants to be held");
	if (verdict != UNIT_WON && is_written(sim) != written_before)
		sim_violate(sim, "I4: a unit that was %s left a version behind", unit_verdict_name(verdict));
}

static void tell(struct sim *sim, struct strbuf *words)
{
	strbuf_add_str(words, is_written(sim) ? "; the version is written" : "");
}

static const struct sim_rows version_rows = {
	.next_moment = next_moment,
	.hash = hash_all,
	.before_unit = before_unit,
	.after_unit = after_unit,
	.tell = tell,
};

static void explore(const char *name, bool old_janitor, struct sim_bounds bounds)
{
	struct sim_scenario scenario = {
		.name = name,
		.subjects_n = 1,
		.kind = fixture.before->kind,
		.initial = "approved",
		.claim_status = "closing",
		.revert_status = "approved",
		.nodes_n = 4,
		.cast_n = old_janitor ? CAST : OLD_JANITOR,
		.cast = {[CALLER_1] = {"caller-1", 0, false, init_step, NULL, NULL},
			 [CALLER_2] = {"caller-2", 1, false, init_step, NULL, NULL},
			 [CHANGE] = {"change", 2, true, init_change, NULL, is_not_written},
			 [NEW_JANITOR] = {"new janitor", 3, true, init_janitor, &fixture.new_rules,
					  is_written_and_stuck},
			 [OLD_JANITOR] = {"old janitor", 2, true, init_janitor, &fixture.old_rules, is_stuck}},
		.bounds = bounds,
		.world = WORLD_PLAIN,
		.setup = setup,
		.check = check,
		.rows = &version_rows,
	};

	memset(&reached, 0, sizeof reached);
	walk_all(&scenario, STATES_MAX);
	assert_true(reached.written && reached.by_look && reached.by_guard);
}

/* Answers are lost in one of them: the commit that they are of is that of the same units in all. */
static const struct sim_bounds usual = {.lapses = 2, .crashes = 1};
static const struct sim_bounds with_lost = {.lapses = 1, .crashes = 1, .lost_answers = 1};

static void exhaustive_status_gone(void **state)
{
	(void)state;
	prepare(no_closing);
	assert_string_equal(fixture.lost.p, "[\"closing\"]");
	explore("a version without the claim's status", /* old_janitor= */ false, with_lost);
	assert_int_equal(reached.held, 0); /* the new janitor has no rule for it, and leaves it alone */
}

static void exhaustive_led_away(void **state)
{
	(void)state;
	prepare(no_closed);
	assert_int_equal(fixture.version.lost_claims.n, 0);
	explore("a version without the status that the step leads to", /* old_janitor= */ false, usual);
	assert_true(reached.held);
}

static void exhaustive_step_gone(void **state)
{
	(void)state;
	prepare(renamed);
	assert_int_equal(fixture.version.lost.n, 0);
	explore("a version without the step, and janitors of both", /* old_janitor= */ true, usual);
	assert_true(reached.held);
}

static void exhaustive_claims_elsewhere(void **state)
{
	(void)state;
	prepare(elsewhere);
	assert_int_equal(fixture.version.lost.n, 0);
	explore("a version whose step claims another status", /* old_janitor= */ false, usual);
	assert_true(reached.held);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(exhaustive_status_gone),
		cmocka_unit_test(exhaustive_led_away),
		cmocka_unit_test(exhaustive_step_gone),
		cmocka_unit_test(exhaustive_claims_elsewhere),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
