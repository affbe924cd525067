/*
 * The fences of a store that is restored from a backup, twice, explored: see engine/fences.h. The floor is raised by the engine's own
 * unit; what restores is of this test.
 *
 *   a server     reads the floor ─▶ finds the entity, or makes it ─▶ claims it, gives out floor + fence ─▶ releases it
 *   the operator at least a second later, when no server is at work: puts all rows back ─▶ raises the floor
 *
 * One entity is in the backup, the other one is not: it is made anew, under its old name and as a new subject. A restored row counts
 * its holders as if the lost ones had never been, so I1 holds within each life of the store alone, and across them:
 *
 *  F3  Each fence that is given out for a name is higher than all before, those of lost stores included.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/hash.h"
#include "engine/fences.h"
#include "flow/answer.h"
#include "flow/entity.h"
#include "flow/shapes.h"
#include "sim/explore.h"
#include "sim/invariant.h"

#define STATES_MAX 1000000
#define WORDS_MAX (1u << 20)
#define LEASE_MS 60000
#define RESTORE_MS 1000
#define RESTORES_MAX 2
#define HOLDERS_MAX 2 /* of each entity in each life of the store */

enum { KEPT, MADE, OPERATOR, CAST };
static const char *const names[] = {[KEPT] = "kept", [MADE] = "made"};

static struct {
	struct arena arena;
	const struct entity_machine *machine;
	bool raises;
} fixture;

static struct entity_ref ref_of(int who)
{
	return (struct entity_ref){slice_str("default"), fixture.machine, slice_str(names[who])};
}

/* ---- a server: one holder of one entity ---- */

struct server {
	struct task task;
	int who;
	enum {
		SERVER_NEW,
		SERVER_STARTING,
		SERVER_READING,
		SERVER_MAKING,
		SERVER_CLAIMING,
		SERVER_HOLDING,
		SERVER_DONE
	} at;
	struct stamp stamp;
	int64_t floor, subject, version, fence;
};

static void take_read(struct server *s, const struct db_rows *rows, const struct answer *answer)
{
	bool open = rows->n && slice_is(db_cell(rows, 0, ENTITY_STATUS)->s, "open");

	s->subject = rows->n ? db_cell(rows, 0, ENTITY_SUBJECT)->i : answer->more_ids[0];
	s->version = rows->n ? db_cell(rows, 0, ENTITY_VERSION)->i : 1;
	s->at = !rows->n ? SERVER_MAKING : open ? SERVER_CLAIMING : SERVER_DONE;
}

static void take_answer(struct server *s, const struct answer *answer)
{
	const struct db_rows *rows = &answer->result->rows[0];

	switch (s->at) {
	case SERVER_STARTING:
		s->floor = db_cell(rows, 0, 0)->i;
		s->at = SERVER_READING;
		break;
	case SERVER_READING:
		take_read(s, rows, answer);
		break;
	case SERVER_MAKING:
		s->at = SERVER_CLAIMING;
		break;
	case SERVER_CLAIMING:
		s->version = db_cell(rows, 0, 0)->i;
		s->fence = db_cell(rows, 0, 1)->i;
		s->at = SERVER_HOLDING;
		break;
	default:
		s->at = SERVER_DONE;
	}
}

static void server_take(struct task *task, const struct answer *answer)
{
	struct server *s = (struct server *)task;

	s->stamp = flow_stamp(answer);
	if (s->at == SERVER_NEW)
		s->at = SERVER_STARTING;
	else if (answer->result->verdict == UNIT_WON)
		take_answer(s, answer);
	else
		s->at = SERVER_DONE;
}

static void server_ask(const struct task *task, struct ask *ask)
{
	const struct server *s = (const struct server *)task;
	struct entity_ref ref = ref_of(s->who);
	struct move claim = {s->subject, "open", "held"}, release = {s->subject, "held", "open"};

	ask->kind = s->at == SERVER_DONE ? ASK_DONE : ASK_COMMIT;
	ask->code = HX_OK;
	if (s->at == SERVER_DONE)
		return;
	unit_init(ask->unit, s->stamp.op);
	if (s->at == SERVER_STARTING)
		fences_ask_floor(ask->unit);
	else if (s->at == SERVER_READING)
		entity_read(ask->unit, &ref, slice_str(""));
	else if (s->at == SERVER_MAKING)
		entity_create(ask->unit, &s->stamp, &ref, s->subject, slice_str("{}"), slice_of(NULL, 0));
	else if (s->at == SERVER_CLAIMING)
		subject_claim(ask->unit, &s->stamp, &claim, s->version, LEASE_MS);
	else
		subject_release(ask->unit, &s->stamp, &release, s->fence, /* answered= */ true);
}

static const char *server_where(const struct task *task)
{
	static const char *const words[] = {"new",      "reading the floor", "looking", "making it",
					    "claiming", "holding",           "done"};

	return words[((const struct server *)task)->at];
}

static const struct task_shape server_shape = SHAPE(
	struct server, NULL, PART_WITH(INNER, struct server, stamp, &stamp_shape), PART(FRESH, struct server, subject));

static const struct task_kind server_kind = {
	.name = "server",
	.size = sizeof(struct server),
	.take = server_take,
	.ask = server_ask,
	.where = server_where,
	.shape = &server_shape,
};

static void init_server(union sim_task *task, const void *plan, struct arena *texts)
{
	struct server *s = (struct server *)task;

	(void)texts;
	*s = (struct server){.who = *(const int *)plan};
	task_init(&s->task, &server_kind, /* topic= */ 0);
}

/* ---- the operator ---- */

#define TEST_STMT(what, text)                                                                                          \
	static const struct db_stmt stmt_##what = {.name = "sim_" #what, .sql = text, .in = "", .out = ""}

/* clang-format off */
TEST_STMT(drop_subjects, "DELETE FROM hx_subject");
TEST_STMT(put_subjects, "INSERT INTO hx_subject SELECT * FROM sim_subject");
TEST_STMT(drop_history, "DELETE FROM hx_history");
TEST_STMT(put_history, "INSERT INTO hx_history SELECT * FROM sim_history");
TEST_STMT(drop_entities, "DELETE FROM hx_entity");
TEST_STMT(put_entities, "INSERT INTO hx_entity SELECT * FROM sim_entity");
TEST_STMT(drop_kept_calls, "DELETE FROM hx_kept_call"); /* there were none */
TEST_STMT(put_floor, "UPDATE hx_fences SET floor = (SELECT floor FROM sim_fences)");
TEST_STMT(restored, "UPDATE sim_life SET restores = restores + 1, raised = 0");
TEST_STMT(raised, "UPDATE sim_life SET raised = 1");
/* clang-format on */

struct operator
{
	struct task task;
	enum { OPERATOR_NEW, OPERATOR_SLEEPING, OPERATOR_RESTORING, OPERATOR_RAISING, OPERATOR_DONE } at;
	struct mono_time until;
};

/* Nothing fails here but the whole node. */
static void operator_take(struct task *task, const struct answer *answer)
{
	struct operator* o =(struct operator*) task;

	if (o->at == OPERATOR_NEW)
		o->until = mono_add_ms(answer->mono, RESTORE_MS);
	ASSERT(answer->kind != ANSWER_COMMIT || answer->result->verdict == UNIT_WON);
	o->at++;
}

static void operator_ask(const struct task *task, struct ask *ask)
{
	static const struct db_stmt *const restore[] = {&stmt_drop_subjects,   &stmt_put_subjects,  &stmt_drop_history,
							&stmt_put_history,     &stmt_drop_entities, &stmt_put_entities,
							&stmt_drop_kept_calls, &stmt_put_floor,     &stmt_restored};
	const struct operator* o =(const struct operator*) task;

	ask->kind = o->at == OPERATOR_DONE ? ASK_DONE : o->at == OPERATOR_SLEEPING ? ASK_SLEEP : ASK_COMMIT;
	ask->code = HX_OK;
	ask->until = o->until;
	if (ask->kind != ASK_COMMIT)
		return;
	unit_init(ask->unit, /* op= */ 0);
	for (size_t i = 0; i < sizeof restore / sizeof *restore && o->at == OPERATOR_RESTORING; i++)
		unit_add(ask->unit, UNIT_ANY, restore[i], 0, NULL);
	if (o->at == OPERATOR_RESTORING)
		return;
	if (fixture.raises)
		fences_ask_raise(ask->unit);
	unit_add(ask->unit, UNIT_ANY, &stmt_raised, 0, NULL);
}

static const char *operator_where(const struct task *task)
{
	static const char *const words[] = {"new", "taking the backup out", "restoring", "raising the fences", "done"};

	return words[((const struct operator*)task)->at];
}

static const struct task_kind operator_kind = {
	.name = "operator",
	.size = sizeof(struct operator),
	.take = operator_take,
	.ask = operator_ask,
	.where = operator_where,
};

static void init_operator(union sim_task *task, const void *plan, struct arena *texts)
{
	struct operator* o =(struct operator*) task;

	(void)plan, (void)texts;
	*o = (struct operator){.at = OPERATOR_NEW};
	task_init(&o->task, &operator_kind, /* topic= */ 0);
}

/* ---- the rows ---- */

#define HOLDERS(name)                                                                                                    \
	"(SELECT coalesce(max(s.fence), 0) FROM hx_entity e JOIN hx_subject s ON s.id = e.subject WHERE e.name = '" name \
	"')"
#define IS_HELD(name)                                                                                                  \
	"(SELECT count(*) FROM hx_entity e JOIN hx_subject s ON s.id = e.subject WHERE e.name = '" name                \
	"' AND s.status = 'held')"
static const struct db_stmt stmt_life = {
	.name = "sim_life",
	.sql = "SELECT restores, raised, (SELECT floor FROM hx_fences), " HOLDERS("kept") ", " HOLDERS(
		"made") ", " IS_HELD("kept") ", " IS_HELD("made") ", (SELECT count(*) FROM hx_entity) FROM sim_life",
	.in = "",
	.out = "iiiiiiii",
};
enum { RESTORES, RAISED, FLOOR, HOLDERS_OF, HELD_OF = HOLDERS_OF + 2, ENTITIES = HELD_OF + 2, LIFE_COLUMNS };

static struct db_rows read_life(struct sim *sim)
{
	struct unit unit;

	unit_init(&unit, 0);
	unit_add(&unit, UNIT_ANY, &stmt_life, 0, NULL);
	return sim_run_unit(sim, &unit).rows[0];
}

/* Not yet, or not any more. */
static bool is_at_rest(const struct sim *sim, unsigned i)
{
	const struct sim_actor *actor = &sim->state.actors[i];

	return !actor->task.task.kind || actor->state == SIM_DONE;
}

static bool may_serve(struct sim *sim, int who)
{
	struct db_rows life = read_life(sim);

	return is_at_rest(sim, OPERATOR) && db_cell(&life, 0, RAISED)->i &&
	       db_cell(&life, 0, HOLDERS_OF + (size_t)who)->i < HOLDERS_MAX;
}

static bool may_serve_kept(struct sim *sim)
{
	return may_serve(sim, KEPT);
}

static bool may_serve_made(struct sim *sim)
{
	return may_serve(sim, MADE);
}

/* A restore that was begun is brought to its end. */
static bool may_operate(struct sim *sim)
{
	struct db_rows life = read_life(sim);

	return is_at_rest(sim, KEPT) && is_at_rest(sim, MADE) &&
	       (db_cell(&life, 0, RESTORES)->i < RESTORES_MAX || !db_cell(&life, 0, RAISED)->i);
}

static void setup(struct sim *sim)
{
	sim_script(sim, "INSERT INTO hx_entity (subject, workspace, workflow, name, data)"
			" SELECT id, 'default', 'paper', 'kept', '{}' FROM hx_subject;"
			"CREATE TABLE sim_subject AS SELECT * FROM hx_subject;"
			"CREATE TABLE sim_history AS SELECT * FROM hx_history;"
			"CREATE TABLE sim_entity AS SELECT * FROM hx_entity;"
			"CREATE TABLE sim_fences AS SELECT * FROM hx_fences;"
			"CREATE TABLE sim_life AS SELECT 0 AS restores, 1 AS raised");
}

/* ---- the check ---- */

struct notes {
	int64_t highest[2]; /* of each name */
	int64_t op[2];      /* of the claim that it came with */
};

static struct notes *notes_of(struct sim *sim)
{
	return (struct notes *)sim->state.notes;
}

static unsigned long given_out, restores_max;

static void check_server(struct sim *sim, const struct server *s)
{
	struct notes *notes = notes_of(sim);
	int64_t fence = s->floor + s->fence;

	if (s->at != SERVER_HOLDING || s->stamp.op == notes->op[s->who])
		return;
	if (fence <= notes->highest[s->who])
		sim_violate(sim, "F3: \"%s\" is held with fence %lld behind %lld", names[s->who], (long long)fence,
			    (long long)notes->highest[s->who]);
	notes->highest[s->who] = fence;
	notes->op[s->who] = s->stamp.op;
	given_out++;
}

static void check(struct sim *sim)
{
	struct db_rows life = read_life(sim);
	unsigned long restores = (unsigned long)db_cell(&life, 0, RESTORES)->i;

	restores_max = restores > restores_max ? restores : restores_max;
	for (unsigned i = KEPT; i <= MADE; i++)
		if (sim->state.actors[i].state == SIM_ASKING)
			check_server(sim, (const struct server *)&sim->state.actors[i].task);
}

/* ---- for the simulator ---- */

static int64_t next_moment(struct sim *sim)
{
	(void)sim;
	return INT64_MAX;
}

static uint64_t hash_all(struct sim *sim, uint64_t hash)
{
	struct db_rows life = read_life(sim);

	for (size_t i = 0; i < LIFE_COLUMNS; i++)
		hash = hash_mix(hash, (uint64_t)db_cell(&life, 0, i)->i);
	return hash_mix(hash_mix(hash, (uint64_t)notes_of(sim)->highest[KEPT]), (uint64_t)notes_of(sim)->highest[MADE]);
}

static void before_unit(struct sim *sim, const struct unit *unit)
{
	(void)sim, (void)unit;
}

static void after_unit(struct sim *sim, const struct unit *unit, enum unit_verdict verdict)
{
	(void)sim, (void)unit, (void)verdict;
}

static void tell(struct sim *sim, struct strbuf *words)
{
	struct db_rows life = read_life(sim);

	strbuf_addf(words, "; restored %lld times, the floor is %lld", (long long)db_cell(&life, 0, RESTORES)->i,
		    (long long)db_cell(&life, 0, FLOOR)->i);
}

static const struct sim_rows life_rows = {
	.next_moment = next_moment,
	.hash = hash_all,
	.before_unit = before_unit,
	.after_unit = after_unit,
	.tell = tell,
};

static void prepare(bool raises)
{
	static const char text[] = "{\"workflow\":\"paper\",\"kind\":\"entity\",\"status_types\":[\"open\"],"
				   "\"initial_status\":\"open\",\"steps\":[]}";
	const struct workflow *workflow;
	struct findings findings;

	arena_release(&fixture.arena);
	arena_init(&fixture.arena, 1u << 20);
	findings_init(&findings, &fixture.arena);
	workflow_parse("paper.json", slice_str(text), &fixture.arena, &findings, &workflow);
	assert_non_null(workflow);
	fixture.machine = entity_machine_new(workflow, /* version= */ 1, /* table= */ NULL, &fixture.arena);
	fixture.raises = raises;
	given_out = restores_max = 0;
}

/* All invariants hold, or the given one breaks. */
static void explore(struct sim_bounds bounds, const char *violation)
{
	static const int who[] = {KEPT, MADE};
	struct sim_scenario scenario = {
		.name = "two servers' entities and a store that is restored twice",
		.subjects_n = 1,
		.kind = fixture.machine->kind,
		.initial = "open",
		.claim_status = "held",
		.revert_status = "open",
		.nodes_n = 2,
		.cast_n = CAST,
		.cast = {[KEPT] = {"holder of kept", 0, true, init_server, &who[KEPT], may_serve_kept},
			 [MADE] = {"holder of made", 0, true, init_server, &who[MADE], may_serve_made},
			 [OPERATOR] = {"operator", 1, true, init_operator, NULL, may_operate}},
		.bounds = bounds,
		.setup = setup,
		.check = check,
		.rows = &life_rows,
	};
	struct explore_report r;
	struct strbuf words;
	bool held, as_expected;

	strbuf_init(&words, WORDS_MAX);
	held = explore_all(&scenario, STATES_MAX, &r, &words);
	as_expected = violation ? !held && strstr(words.p, violation) : held;
	if (!as_expected)
		fprintf(stderr, "%s", held ? "nothing was found\n" : words.p);
	strbuf_release(&words);
	assert_true(as_expected);
	if (held)
		printf("# %s; at most %u lapses, %u crash anywhere: %llu states, %llu edges, %llu crash points, at least %.3g "
		       "schedules of up to %u steps, all invariants hold\n",
		       scenario.name, scenario.bounds.lapses, scenario.bounds.crashes, (unsigned long long)r.states,
		       (unsigned long long)r.edges, (unsigned long long)r.crash_points, r.schedules, r.longest);
}

static void exhaustive_raised(void **state)
{
	(void)state;
	prepare(/* raises= */ true);
	explore((struct sim_bounds){.lapses = 2, .crashes = 1}, /* violation= */ NULL);
	assert_true(given_out > 100 && restores_max >= RESTORES_MAX);
}

/* The same without a crash: the bounds of the mutants. */
static void exhaustive_calm(void **state)
{
	(void)state;
	prepare(/* raises= */ true);
	explore((struct sim_bounds){.lapses = 2}, /* violation= */ NULL);
}

/* Does this see anything? */
static void exhaustive_not_raised(void **state)
{
	(void)state;
	prepare(/* raises= */ false);
	explore((struct sim_bounds){.lapses = 1}, "F3: ");
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(exhaustive_raised),
		cmocka_unit_test(exhaustive_calm),
		cmocka_unit_test(exhaustive_not_raised),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
