/*
 * A claim of one version of the definition, ended by the next: for every kind of action of the first (or none) and every kind of the
 * second (or none), a person says that it was done, or that it was not; a janitor recovers it; and, when it was reverted in doubt,
 * somebody fires it again.
 *
 *   the first version called outside  ─▶  that call is what is asked about or made again, and statements of the second are not run
 *   it had statements, or nothing     ─▶  none of it was done, whoever died: the second version says what there is to do
 */
#include "unit/flow/world.h"

#include <stdio.h>

#include "flow/entity_step.h"
#include "support/must_hold.h"

enum kind { SQL, HTTP, NOOP, NATIVE, NONE, KINDS };
enum way { DONE, NOT_DONE, RECOVERED, AGAIN, WAYS };

static const char *const kind_names[] = {"Sql", "Http", "Noop", "Native", NULL};
static const char *const way_names[] = {"done", "not done", "recovered", "again"};

static const char definition[] =
	"{\"workflow\":\"billing\",\"kind\":\"entity\",\"status_types\":[\"approved\",\"closing\",\"closed\"],"
	"\"initial_status\":\"approved\",\"actions\":{"
	"\"Sql\":{\"kind\":\"sql\",\"statements\":[{\"name\":\"book\",\"sql\":\"INSERT INTO booked VALUES (%d, :id, :key)\"}]},"
	"\"Http\":{\"kind\":\"http\",\"url\":\"http://127.0.0.1:%d/close\",\"effect\":\"keyed\",\"probe\":\"Ask\"},"
	"\"Noop\":{\"kind\":\"noop\"},"
	"\"Native\":{\"kind\":\"native\",\"function\":\"close\",\"effect\":\"keyed\",\"probe\":\"Ask\"},"
	"\"Ask\":{\"kind\":\"http\",\"url\":\"http://127.0.0.1:%d/ask\",\"effect\":\"idempotent\"}},"
	"\"steps\":[{\"step_id\":20,\"step_key\":\"close\",\"status\":\"approved\",\"successful_state\":\"closed\","
	"\"claim_state\":[\"closing\",\"approved\"]%s%s%s}]}";

struct called {
	const struct action *action; /* the last one; NULL: none was */
	unsigned n;
};

static struct arena arena;
static const struct entity_machine *machines[2][KINDS]; /* by version - 1 */

static bool is_outside(enum kind kind)
{
	return kind == HTTP || kind == NATIVE;
}

static const struct entity_machine *machine_of(int version, enum kind kind)
{
	const char *name = kind_names[kind];
	const struct workflow *workflow;
	struct findings findings;
	char text[2000];

	findings_init(&findings, &arena);
	snprintf(text, sizeof text, definition, version, version, version, name ? ",\"action\":\"" : "",
		 name ? name : "", name ? "\"" : "");
	workflow_parse("billing.json", arena_copy(&arena, slice_str(text)), &arena, &findings, &workflow);
	for (const struct finding *f = findings.first; f; f = f->next)
		printf("%s: %s\n", f->rule, f->text);
	assert_non_null(workflow);
	return entity_machine_new(workflow, version, /* table= */ NULL, &arena);
}

static int make_machines(void **state)
{
	(void)state;
	arena_init(&arena, 64u << 20);
	for (int version = 1; version <= 2; version++)
		for (enum kind kind = 0; kind < KINDS; kind++)
			machines[version - 1][kind] = machine_of(version, kind);
	return 0;
}

static int drop_machines(void **state)
{
	(void)state;
	arena_release(&arena);
	return 0;
}

static const struct workflow *first_version(const void *context, struct slice workflow, int64_t version)
{
	(void)workflow;
	assert_int_equal(version, 1);
	return ((const struct entity_machine *)context)->workflow;
}

static struct step_request request(int version, enum kind first, enum kind second, enum step_mode mode)
{
	return (struct step_request){
		.mode = mode,
		.ref = {slice_str("default"), machines[version - 1][version == 1 ? first : second], slice_str("e7")},
		.step_key = slice_str("close"),
		.requester = slice_str("admin"),
		.input = json_trust(slice_str("{}")),
		.subject = 7,
		.lease_ms = LEASE_MS,
		.workflow_of = first_version,
		.context = machines[0][first],
	};
}

/* Until it is done; or, where nothing may be finished, until it has its claim. Calls are answered with yes. */
static enum hx_code drive(struct world *w, const struct step_request *rq, bool to_its_claim, struct called *ret_called)
{
	struct entity_step s;
	struct ask ask = {.unit = &w->unit};
	struct answer answer = {.kind = ANSWER_START, .node = "here"};

	entity_step_init(&s, rq, &arena);
	for (;;) {
		answer.now = w->clock.wall;
		answer.mono = answer.lease_since = w->clock.mono;
		answer.id = ++w->last_op;
		assert_true(task_take(&s.task, s.task.turn, &answer));
		s.task.kind->ask(&s.task, &ask);
		if (ask.kind == ASK_DONE)
			return ask.code;
		if (to_its_claim && s.claimed)
			return HX_OK;
		if (ask.kind == ASK_ACT) {
			ret_called->n++;
			ret_called->action = ask.act.action;
			answer.kind = ANSWER_ACT;
			answer.outcome = ACT_OK;
			answer.output = slice_str("{\"outcome\":\"done\"}");
			continue;
		}
		assert_int_equal(ask.kind, ASK_COMMIT);
		(void)world_run(w);
		answer.kind = ANSWER_COMMIT;
		answer.result = &w->result;
	}
}

static void script(struct world *w, const char *sql)
{
	struct hx_error err;

	if (w->db->driver->script(w->db, sql, &err) != HX_OK)
		fail_msg("%s: %s", sql, err.detail);
}

/* e7 is claimed by the first version, whose process died before it had ended anything. */
static void claim(struct world *w, enum kind first, enum way way)
{
	struct step_request rq = request(1, first, NONE, STEP_FIRE);
	struct stamp stamp = world_begin(w);
	struct called called = {0};

	entity_create(&w->unit, &stamp, &rq.ref, /* subject= */ 7, slice_str("{}"), slice_of(NULL, 0));
	assert_int_equal(world_run(w), UNIT_WON);
	script(w, "CREATE TABLE booked (version INTEGER, id TEXT, key TEXT)");
	assert_int_equal(drive(w, &rq, /* to_its_claim= */ true, &called), HX_OK);
	assert_int_equal(called.n, 0);
	fake_clock_advance_ms(&w->clock, LEASE_MS + 1);
	stamp = world_begin(w);
	if (way == AGAIN)
		subject_revert(&w->unit, &stamp, &(struct move){7, "closing", "approved"}, /* fence= */ 1);
	else
		subject_hold(&w->unit, 7, /* fence= */ 1, /* if_past= */ true);
	if (way != RECOVERED)
		assert_int_equal(world_run(w), UNIT_WON);
}

static const struct db_stmt stmt_left = {
	.name = "test_left",
	.sql = "SELECT s.status, coalesce(s.owner, ''), (SELECT count(*) FROM booked),"
	       " (SELECT coalesce(max(version), 0) FROM booked) FROM hx_subject s WHERE s.id = 7",
	.in = "",
	.out = "ttii",
};

static void assert_left(struct world *w, const char *status, const char *owner, bool booked)
{
	world_begin(w);
	unit_add(&w->unit, UNIT_ANY, &stmt_left, 0, NULL);
	assert_int_equal(world_run(w), UNIT_WON);
	assert_true(slice_is(db_cell(&w->result.rows[0], 0, 0)->s, status));
	assert_true(slice_is(db_cell(&w->result.rows[0], 0, 1)->s, owner));
	MUST_HOLD(world_int(w, 0, 2) == booked,
		  "statements are run of a version that did not make the call, or are not");
	assert_int_equal(world_int(w, 0, 3), booked ? 2 : 0);
}

/* Of the version that called, or of the second; NULL: nobody. */
static const struct action *action_to_call(enum kind first, enum kind second)
{
	return is_outside(first)    ? machines[0][first]->workflow->steps[0].views[0].action
	       : is_outside(second) ? machines[1][second]->workflow->steps[0].views[0].action
				    : NULL;
}

static void end_it(struct world *w, enum kind first, enum kind second, enum way way)
{
	static const enum step_mode modes[] = {STEP_RESOLVE_DONE, STEP_RESOLVE_NOT_DONE, STEP_RECOVER, STEP_FIRE};
	struct step_request rq = request(2, first, second, modes[way]);
	const struct action *to_call = action_to_call(first, second), *wanted = NULL;
	struct called called = {0};
	bool booked = second == SQL && !is_outside(first), held = way == RECOVERED && !to_call;
	enum hx_code code = drive(w, &rq, /* to_its_claim= */ false, &called);

	if (to_call && way == RECOVERED)
		wanted = to_call->probe;
	else if (to_call && way == AGAIN)
		wanted = to_call;
	MUST_HOLD(called.action == wanted, "a version is called that did not make the call");
	assert_int_equal(called.n, wanted != NULL);
	assert_int_equal(code, held ? HX_OUTCOME_UNKNOWN : HX_OK);
	if (way == NOT_DONE)
		assert_left(w, "approved", "", /* booked= */ false);
	else if (held)
		assert_left(w, "closing", "held", /* booked= */ false);
	else
		assert_left(w, "closed", "", booked);
}

static void every_kind_after_every_kind(void **state)
{
	(void)state;
	for (enum way way = 0; way < WAYS; way++)
		for (enum kind first = 0; first < KINDS; first++)
			for (enum kind second = 0; second < KINDS; second++) {
				struct world *w;
				void *world;

				printf("%s, then %s: %s\n", kind_names[first] ? kind_names[first] : "nothing",
				       kind_names[second] ? kind_names[second] : "nothing", way_names[way]);
				assert_int_equal(world_set_up(&world), 0);
				w = world;
				claim(w, first, way);
				end_it(w, first, second, way);
				world_tear_down(&world);
			}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_kind_after_every_kind),
	};

	ONLY_THE_NAMED(argc, argv);
	return cmocka_run_group_tests(tests, make_machines, drop_machines);
}
