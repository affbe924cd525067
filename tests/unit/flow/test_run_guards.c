/* Every guard of run_units.c and run_verb_units.c that the simulator is not asked about: see guards.h. */
#include "unit/flow/guards.h"

#include "flow/debounce.h"
#include "flow/run_parts.h"
#include "flow/run_verb_parts.h"

#define VERSION 4
#define FENCE 7
#define JOB 9

/* Run 1, held by us. */
#define HELD(status)                                                                                                   \
	"INSERT INTO hx_subject (id, kind, status, version, op, fence, owner, until, updated_at, seq, head)"           \
	" VALUES (1, 3, '" status "', 4, 0, 7, 'here', 1000500, 1000000, 3, x'00');"                                   \
	"INSERT INTO hx_run (subject, workspace, workflow, definition_version, requester, input, created_at)"          \
	" VALUES (1, 'default', 'order', 3, 'me', '{}', 1000000)"
/* And its job, which no worker has. */
#define AT_JOB(status)                                                                                                 \
	HELD(status)                                                                                                   \
	"; INSERT INTO hx_job (subject, workspace, queue, workflow, action, effect_key, payload, due_at)"              \
	" VALUES (9, 'default', 'q', 'order', 'work', 'key', '{}', 1);"                                                \
	"INSERT INTO hx_subject (id, kind, status, version, op, fence, updated_at, seq, head)"                         \
	" VALUES (9, 1, 'AVAILABLE', 1, 0, 0, 0, 1, x'00')"
#define FREE(status) HELD(status) "; UPDATE hx_subject SET owner = NULL, until = NULL"
#define EVENT(id, name) "INSERT INTO hx_run_event (run, id, name, data, at) VALUES (1, '" id "', '" name "', '{}', 1)"
#define DONE                                                                                                           \
	"; INSERT INTO hx_run_step (run, position, status, attempt, output, started_at, completed_at, undone_at) VALUES (1, 0, 'COMPLETED', 1, '{}', 1, 2, NULL)"
#define BUT_STEP(assignment) "UPDATE hx_run_step SET " assignment
#define BUT_RUN(assignment) "UPDATE hx_run SET " assignment
#define BUT_JOB(assignment) "UPDATE hx_job SET " assignment
#define SAME "SELECT 1"

static const struct run_step waits = {.name = "paid", .type = RUN_EXTERNAL_EVENT, .position = 1, .event = "payment"};
static const struct run_step approval = {.name = "paid", .type = RUN_APPROVAL, .position = 1};
static const struct run_definition definition = {.name = "order", .steps_n = 1, .steps = &approval};
static const struct run_machine machine = {.definition = &definition, .version = 3};

/* ---- moves of whoever holds it ---- */

static void build_move(struct unit *unit, const struct stamp *stamp, const char *status, const struct run_move *move)
{
	struct run_drive d = {
		.row = {.subject = 1,
			.status = status,
			.fence = FENCE,
			.machine = &machine,
			.definition = machine.definition},
		.holding = true,
		.move = *move,
		.stamp = *stamp,
	};

	run_build_move(&d, unit);
}

#define MOVE .transitions = 1, .undone = -1, .undo = -1

static void rest_paused(struct unit *unit, const struct stamp *stamp)
{
	build_move(unit, stamp, RUN_PAUSED,
		   &(struct run_move){MOVE, .to = RUN_PAUSED, .write = RUN_WRITES_REST,
				      .awaits = slice_str("event payment")});
}

static void rest_waiting(struct unit *unit, const struct stamp *stamp)
{
	build_move(unit, stamp, RUN_RUNNING,
		   &(struct run_move){MOVE, .to = RUN_WAITING, .write = RUN_WRITES_REST,
				      .awaits = slice_str("event payment")});
}

static void rest_at_job(struct unit *unit, const struct stamp *stamp, const char *status, struct run_move move)
{
	move.to = status;
	move.write = RUN_WRITES_REST;
	move.awaits = slice_str(RUN_AWAITS_JOB);
	move.job = JOB;
	build_move(unit, stamp, status, &move);
}

static void rest_cancelled(struct unit *unit, const struct stamp *stamp)
{
	rest_at_job(unit, stamp, RUN_CANCELLING, (struct run_move){MOVE});
}

static void rest_not_cancelled(struct unit *unit, const struct stamp *stamp)
{
	rest_at_job(unit, stamp, RUN_RUNNING, (struct run_move){MOVE});
}

static void rest_in_doubt(struct unit *unit, const struct stamp *stamp)
{
	rest_at_job(unit, stamp, RUN_CANCELLING, (struct run_move){MOVE, .doubt = true});
}

static void rest_undoing(struct unit *unit, const struct stamp *stamp)
{
	rest_at_job(unit, stamp, RUN_CANCELLING, (struct run_move){.transitions = 1, .undone = -1, .undo = 0});
}

static void undo(struct unit *unit, const struct stamp *stamp)
{
	build_move(unit, stamp, RUN_CANCELLING, &(struct run_move){.transitions = 1, .undo = -1, .to = RUN_CANCELLING});
}

static void take_event(struct unit *unit, const struct stamp *stamp)
{
	build_move(unit, stamp, RUN_RUNNING,
		   &(struct run_move){MOVE, .to = RUN_RUNNING, .event_step = &waits, .event_id = slice_str("a")});
}

/* ---- verbs ---- */

static struct run_verb verb(const struct stamp *stamp, const struct run_verb_request *rq)
{
	return (struct run_verb){
		.rq = rq,
		.kind = rq->kind,
		.subject = rq->subject,
		.stamp = *stamp,
		.row = {.subject = 1,
			.version = VERSION,
			.machine = &machine,
			.definition = machine.definition,
			.undo = -1},
	};
}

static void build_verb(struct unit *unit, const struct stamp *stamp, const struct run_verb_request *rq,
		       const char *from, const char *to)
{
	struct run_verb v = verb(stamp, rq);

	v.row.status = from;
	v.to = to;
	verb_build_write(&v, unit);
}

static void cancel(struct unit *unit, const struct stamp *stamp)
{
	static const struct run_verb_request rq = {.kind = RUN_CANCEL, .subject = 1};

	build_verb(unit, stamp, &rq, RUN_FAILED, RUN_CANCELLED);
}

static void retry(struct unit *unit, const struct stamp *stamp)
{
	static const struct run_verb_request rq = {.kind = RUN_RETRY, .subject = 1};

	build_verb(unit, stamp, &rq, RUN_FAILED, RUN_PENDING);
}

static void resolve_undone(struct unit *unit, const struct stamp *stamp)
{
	static const struct run_verb_request rq = {.kind = RUN_RESOLVE, .subject = 1, .done = true};
	struct run_verb v = verb(stamp, &rq);

	v.row.status = v.to = RUN_CANCELLING;
	v.row.undo = 0;
	verb_build_write(&v, unit);
}

static void build_reading(struct unit *unit, const struct stamp *stamp, const struct run_verb_request *rq,
			  const char *event_id)
{
	struct run_verb v = verb(stamp, rq);

	v.event_id = slice_str(event_id);
	verb_build_read(&v, unit);
}

static void see_event(struct unit *unit, const struct stamp *stamp)
{
	static const struct run_verb_request rq = {
		.kind = RUN_EVENT, .workspace = {"default", 7}, .subject = 1, .name = {"payment", 7}};

	build_reading(unit, stamp, &rq, "a");
}

static void see_decision(struct unit *unit, const struct stamp *stamp)
{
	static const struct run_verb_request rq = {.kind = RUN_APPROVE, .workspace = {"default", 7}, .subject = 1};

	build_reading(unit, stamp, &rq, "paid/");
}

#define IS_DUE "SELECT 1 FROM hx_run WHERE due_at IS NOT NULL"
#define IS_TAKEN "SELECT 1 FROM hx_run_event WHERE taken_by IS NOT NULL"

/* It was paused and resumed since it was read. */
static void debounced(struct unit *unit, const struct stamp *stamp)
{
	static const struct run_row row = {.subject = 1, .machine = &machine};
	static const struct run_spec spec = {.machine = &machine, .input = {"{}", 2}, .debounce = {-1, 5000, 0}};

	subject_shift(unit, stamp, &(struct move){1, RUN_PENDING, RUN_PENDING}, SHIFT_UNHELD, /* settles= */ false);
	debounce_join(unit, stamp, &(struct debounce_join){&row, &spec, 0, {0}});
}

/* clang-format off */
static const struct guard guards[] = {
	{"rest-paused", HELD("PAUSED"), EVENT("a", "event payment"), rest_paused, IS_DUE},
	{"rest-taken", HELD("RUNNING"), EVENT("a", "event payment") "; UPDATE hx_run_event SET taken_by = 0", rest_waiting, IS_DUE},
	{"rest-other-event", HELD("RUNNING"), EVENT("a", "event other"), rest_waiting, IS_DUE},
	{"rest-not-cancelled", AT_JOB("RUNNING"), SAME, rest_not_cancelled, IS_DUE},
	{"rest-in-doubt", AT_JOB("CANCELLING"), SAME, rest_in_doubt, IS_DUE},
	{"rest-undoing", AT_JOB("CANCELLING"), SAME, rest_undoing, IS_DUE},
	{"rest-job-in-doubt", AT_JOB("CANCELLING"), "UPDATE hx_subject SET doubt = 1 WHERE id = 9", rest_cancelled, IS_DUE},
	{"rest-at-worker", AT_JOB("CANCELLING"), BUT_JOB("due_at = NULL"), rest_cancelled, IS_DUE},
	{"free-job-not-due", AT_JOB("CANCELLING"), SAME, rest_cancelled, "SELECT 1 FROM hx_run WHERE due_at IS NULL"},
	{"undone-twice", HELD("CANCELLING") DONE, BUT_STEP("undone_at = 5"), undo, "SELECT 1 FROM hx_run_step WHERE undone_at <> 5"},
	{"taken-by-id", HELD("RUNNING") "; " EVENT("a", "event payment"), "UPDATE hx_run_event SET name = 'event other'", take_event, IS_TAKEN},
	{"cancel-expired", FREE("FAILED"), BUT_RUN("expired = 1"), cancel, NULL},
	{"debounce-begun", FREE("PENDING"), BUT_RUN("started_at = 5"), debounced, NULL},
	{"anew-expired", FREE("FAILED"), BUT_RUN("expired = 1"), retry, NULL},
	{"resolved-undone-twice", FREE("CANCELLING") DONE, BUT_STEP("undone_at = 5"), resolve_undone, "SELECT 1 FROM hx_run_step WHERE undone_at <> 5"},
};
/* clang-format on */

/* What a verb reads after the run itself. */
static void sees(void (*build)(struct unit *, const struct stamp *), const char *event, bool found)
{
	struct stamp stamp;
	struct world *w;
	void *world;

	assert_int_equal(world_set_up(&world), 0);
	w = world;
	guards_script(w, HELD("WAITING"));
	guards_script(w, event);
	stamp = world_begin(w);
	build(&w->unit, &stamp);
	assert_int_equal(world_run(w), UNIT_WON);
	if ((w->result.rows[VERB_LINE_SEEN].n > 0) != found)
		fail_msg("counterexample in one unit, after %s\n  broken: it was %sseen", event, found ? "not " : "");
	world_tear_down(&world);
}

static void seen_events(void **state)
{
	(void)state;
	sees(see_event, EVENT("a", "event payment"), true);
	sees(see_event, EVENT("a", "event other"), false);
	sees(see_event, EVENT("b", "event payment"), false);
	sees(see_decision, EVENT("paid/0", "approval paid"), true);
	sees(see_decision, EVENT("paid/1", "approval paid"), false);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(seen_events)};
	int failed;

	failed = guards_main(guards, sizeof guards / sizeof *guards, argc, argv);
	return failed + cmocka_run_group_tests(tests, NULL, NULL);
}
