/* Migrating a run, over a real store: what it writes, what it leaves, and when it does not. What fits is test_run_fit.c. */
#include "unit/flow/driven_run.h"

#include "flow/run_verb.h"
#include "support/must_hold.h"

#define TASK(name)                                                                                                     \
	"{'name':'" name "','type':'task','action':'do','compensate':'undo','retry':{'max_attempts':2,'initial':'1m'}}"
#define EVENT(name) "{'name':'" name "','type':'external_event','event':'" name "'}"
#define JUMP(to) "{'name':'c','type':'condition','when':'true','then':'" to "'}"

static struct {
	const char *meanwhile; /* what others write between the reading and the writing, once */
	const char *detail;
	struct run_verb verb;
} said;

static enum hx_code say(struct world *w, const struct run_verb_request *wanted)
{
	struct answer answer = {.kind = ANSWER_START, .node = "here"};
	struct ask ask = {.unit = &w->unit};
	struct run_verb_request rq = *wanted;

	rq.workspace = slice_str("default");
	rq.policy = &policy;
	rq.requester = slice_str("you");
	rq.subject = rq.subject ? rq.subject : RUN;
	run_verb_init(&said.verb, &rq, &fixture.arena);
	for (;;) {
		answer.now = w->clock.wall;
		answer.id = w->last_op += 10;
		answer.more_ids[0] = 5000 + w->last_op;
		assert_true(task_take(&said.verb.task, said.verb.task.turn, &answer));
		said.verb.task.kind->ask(&said.verb.task, &ask);
		if (ask.kind == ASK_DONE)
			break;
		if (said.meanwhile && said.verb.task.at == VERB_WRITING) {
			sql(w, said.meanwhile);
			said.meanwhile = NULL;
		}
		(void)world_run(w);
		answer.kind = ANSWER_COMMIT;
		answer.result = &w->result;
	}
	said.detail = said.verb.detail;
	return ask.code;
}

/* renames with ' for ". */
static enum hx_code migrate(struct world *w, const char *renames, bool dry_run)
{
	struct run_verb_request rq = {.kind = RUN_MIGRATE, .definition_version = 4, .dry_run = dry_run};
	char text[200];

	snprintf(text, sizeof text, "%s", renames);
	for (char *p = text; *p; p++)
		*p = *p == '\'' ? '"' : *p;
	rq.data = arena_copy(&fixture.arena, slice_str(text));
	return say(w, &rq);
}

/* A version that the store has, too. */
static void define_other(struct world *w, const char *steps)
{
	char rest[3000];

	snprintf(rest, sizeof rest, "'steps':[%s]", steps);
	fixture.other = machine_from(rest, 4);
	sql(w, "INSERT OR IGNORE INTO hx_definition (name, version, text, at) VALUES ('order', 4, '{}', 0)");
}

static void begin(struct world *w, const char *steps)
{
	char rest[3000];

	snprintf(rest, sizeof rest, "'steps':[%s]", steps);
	define(rest);
	create(w, "{}");
	assert_int_equal(drive(w, ok), HX_OK);
	memset(&said, 0, sizeof said);
}

static const struct db_stmt stmt_note = {
	.name = "test_note",
	.sql = "SELECT coalesce(group_concat(n.requester || ': ' || n.reason || ' at ' || h.from_status || ' ' || h.to_status || ' v' || h.version), '')"
	       " FROM hx_note n JOIN hx_history h ON h.subject = n.subject AND h.seq = n.seq",
	.in = "",
	.out = "t",
};

static const struct db_stmt stmt_versions = {
	.name = "test_versions",
	.sql = "SELECT group_concat(coalesce(scope, 'itself') || ' ' || definition_version || coalesce(' of ' || parent_step, '') ||"
	       " coalesce(' ' || renamed, ''), ', ') FROM (SELECT * FROM hx_run ORDER BY subject)",
	.in = "",
	.out = "t",
};

static void test_positions_and_names(void **state)
{
	struct world *w = *state;

	begin(w, TASK("a") "," JUMP("x") "," TASK("y") "," TASK("x") "," EVENT("go"));
	define_other(
		w, TASK("z") "," JUMP("x") "," TASK("y") "," TASK("y2") "," TASK("y3") "," TASK("x") "," EVENT("come"));
	assert_run(w, "WAITING v7, step 4 attempt 1 awaits event go",
		   "0 COMPLETED {\"n\":9007199254740993}, 1 COMPLETED true, 3 COMPLETED {\"n\":9007199254740993}");
	assert_int_equal(migrate(w, "{'a':'z','go':'come'}", /* dry_run= */ true), HX_OK);
	assert_is(w, &stmt_versions, "itself 3");
	assert_int_equal(migrate(w, "{'a':'z','go':'come'}", /* dry_run= */ false), HX_OK);
	assert_run(w, "WAITING v8, step 6 attempt 1 awaits event come due",
		   "0 COMPLETED {\"n\":9007199254740993}, 1 COMPLETED true, 5 COMPLETED {\"n\":9007199254740993}");
	assert_is(w, &stmt_versions, "itself 4 {\"z\":\"a\",\"come\":\"go\"}");
	assert_is(w, &stmt_note, "you: migrated from version 3 to version 4 at WAITING WAITING v8");
	assert_int_equal(migrate(w, "{}", /* dry_run= */ false), HX_OK); /* once more */
	assert_false(said.verb.changed);
	assert_int_equal(drive(w, ok), HX_OK);
	assert_is(w, &stmt_run, "WAITING v9, step 6 attempt 1 awaits event come");
}

/* M3 */
static void test_what_was_done_is_undone_under_its_key(void **state)
{
	struct world *w = *state;

	begin(w, TASK("a") "," EVENT("go"));
	define_other(w, TASK("z") "," EVENT("go"));
	assert_int_equal(migrate(w, "{'a':'z'}", /* dry_run= */ false), HX_OK);
	assert_int_equal(say(w, &(struct run_verb_request){.kind = RUN_CANCEL}), HX_OK);
	fixture.keys[0] = '\0';
	assert_int_equal(drive(w, ok), HX_OK);
	MUST_HOLD(strcmp(fixture.keys, "run_000000000002d/a/undo; ") == 0,
		  "a renamed step is undone under another key");
	assert_is(w, &stmt_run, "CANCELLED v9, step 1 attempt 1");
}

static void test_a_step_that_waits_to_be_tried_again(void **state)
{
	static const struct script fails[] = {{ACT_FAILED, "not now"}, {0}};
	struct world *w = *state;

	define("'steps':[" TASK("a") "]");
	create(w, "{}");
	assert_int_equal(drive(w, fails), HX_OK);
	define_other(w, TASK("z"));
	assert_int_equal(migrate(w, "{}", /* dry_run= */ false), HX_CANNOT_MIGRATE);
	assert_string_equal(said.verb.migration.misfit, "a");
	assert_int_equal(migrate(w, "{'a':'z'}", /* dry_run= */ false), HX_OK);
	fixture.keys[0] = '\0';
	w->clock.wall.ms += 120000;
	assert_int_equal(drive(w, ok), HX_OK);
	MUST_HOLD(strcmp(fixture.keys, "run_000000000002d/a/1; ") == 0,
		  "another request has the key of one that failed");
}

static void test_what_is_under_way_is_left(void **state)
{
	struct world *w = *state;

	begin(w, TASK("a") "," EVENT("go"));
	define_other(w, TASK("a"));
	assert_int_equal(migrate(w, "{}", /* dry_run= */ false), HX_CANNOT_MIGRATE);
	define_other(w, TASK("a") "," EVENT("go") "," TASK("b"));
	sql(w, "UPDATE hx_subject SET owner = 'n', until = 9223372036854775807, fence = fence + 1");
	MUST_HOLD(migrate(w, "{}", /* dry_run= */ false) == HX_WRONG_STATUS, "a run is migrated under its holder");
	sql(w, "UPDATE hx_subject SET owner = NULL, until = NULL, doubt = 1");
	MUST_HOLD(migrate(w, "{}", /* dry_run= */ false) == HX_WRONG_STATUS,
		  "a run is migrated while a step is in doubt");
	sql(w, "UPDATE hx_subject SET doubt = 0");
	sql(w, "UPDATE hx_run SET job = 5");
	MUST_HOLD(migrate(w, "{}", /* dry_run= */ false) == HX_WRONG_STATUS,
		  "a run is migrated while a worker is at it");
	sql(w, "UPDATE hx_run SET job = NULL, awaits = 'person', step_status = 'UNKNOWN'");
	assert_int_equal(migrate(w, "{}", /* dry_run= */ false), HX_WRONG_STATUS);
	assert_string_equal(said.detail, "step \"go\": it is UNKNOWN");
	sql(w, "UPDATE hx_run SET awaits = 'event go', step_status = NULL");
	/* A node takes it in between: what was decided is decided anew. */
	said.meanwhile =
		"UPDATE hx_subject SET owner = 'n', until = 9223372036854775807, fence = fence + 1, version = version + 1";
	MUST_HOLD(migrate(w, "{}", /* dry_run= */ false) == HX_WRONG_STATUS, "a run is migrated under its holder");
	sql(w, "UPDATE hx_subject SET owner = NULL, until = NULL, status = 'COMPLETED'");
	assert_int_equal(migrate(w, "{}", /* dry_run= */ false), HX_WRONG_STATUS);
	sql(w, "UPDATE hx_subject SET status = 'WAITING'");
	sql(w, "DELETE FROM hx_definition");
	assert_int_equal(migrate(w, "{}", /* dry_run= */ false), HX_NOT_FOUND);
	assert_is(w, &stmt_versions, "itself 3");
}

#define BOTH(prefix, more)                                                                                             \
	"{'name':'" prefix "p','type':'parallel','branches':{'x':[" TASK(prefix "i") more                              \
		"," EVENT("go") "],'y':[" EVENT("go2") "]}}"

/* The run rests, its first branch has done a step and rests, its second is yet to be driven. */
static void begin_tree(struct world *w)
{
	static const struct db_stmt stmt_child = {.name = "test_first_child",
						  .sql = "SELECT min(subject) FROM hx_run WHERE parent = 77",
						  .in = "",
						  .out = "i"};

	begin(w, BOTH("", ""));
	unit_init(&w->unit, 0);
	unit_add(&w->unit, UNIT_ANY, &stmt_child, 0, NULL);
	assert_int_equal(world_run(w), UNIT_WON);
	fixture.subject = world_int(w, 0, 0);
	assert_int_equal(drive(w, ok), HX_OK);
	define_other(w, BOTH("n", ""));
}

static void test_parts_go_along(void **state)
{
	struct world *w = *state;

	begin_tree(w);
	assert_is(w, &stmt_versions, "itself 3, p/x 3 of p, p/y 3 of p");
	assert_int_equal(migrate(w, "{'p':'np'}", /* dry_run= */ false), HX_CANNOT_MIGRATE);
	assert_string_equal(said.verb.migration.misfit, "i");
	/* One that has moved since: all of it is decided anew, and here nothing fits any more. */
	said.meanwhile =
		"UPDATE hx_subject SET version = version + 1, doubt = 1 WHERE id IN (SELECT max(subject) FROM hx_run)";
	MUST_HOLD(migrate(w, "{'p':'np','i':'ni'}", /* dry_run= */ false) == HX_WRONG_STATUS,
		  "a part is migrated that has gone on");
	assert_is(w, &stmt_versions, "itself 3, p/x 3 of p, p/y 3 of p");
	sql(w, "UPDATE hx_subject SET doubt = 0");
	assert_int_equal(migrate(w, "{'p':'np','i':'ni'}", /* dry_run= */ false), HX_OK);
	assert_is(
		w, &stmt_versions,
		"itself 4 {\"np\":\"p\",\"ni\":\"i\"}, np/x 4 of np {\"np\":\"p\",\"ni\":\"i\"}, np/y 4 of np {\"np\":\"p\",\"ni\":\"i\"}");
	assert_is(
		w, &stmt_note,
		"you: migrated from version 3 to version 4 at WAITING WAITING v3,you: migrated from version 3 to version 4 at WAITING"
		" WAITING v5,you: migrated from version 3 to version 4 at PENDING PENDING v3");
}

/* Read by two statements that see two moments. */
static void test_rows_of_two_versions_are_read_again(void **state)
{
	struct world *w = *state;
	struct db_value cells[RUN_ABOVE + 1];
	struct unit_result torn;
	struct run_row row;
	struct arena arena;

	begin(w, TASK("a") "," EVENT("go"));
	define_other(w, TASK("a") "," EVENT("go"));
	unit_init(&w->unit, 0);
	run_read(&w->unit, slice_str("default"), RUN);
	assert_int_equal(world_run(w), UNIT_WON);
	arena_init(&arena, 1u << 20);
	for (int i = 0; i <= RUN_ABOVE; i++) {
		cells[i] = w->result.rows[0].cells[i];
		if (cells[i].type == DB_TEXT)
			cells[i].s = arena_copy(&arena, cells[i].s);
	}
	assert_int_equal(migrate(w, "{}", /* dry_run= */ false), HX_OK);
	unit_init(&w->unit, 0);
	run_read(&w->unit, slice_str("default"), RUN);
	assert_int_equal(world_run(w), UNIT_WON);
	torn = w->result;
	torn.rows[0].cells = cells;
	MUST_HOLD(run_row_take(&torn, machine_of, NULL, &arena, &row) == HX_BUSY,
		  "steps of one version are taken for those of another");
	assert_int_equal(run_row_take(&w->result, machine_of, NULL, &arena, &row), HX_OK);
	arena_release(&arena);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(test_positions_and_names),
		TEST(test_what_was_done_is_undone_under_its_key),
		TEST(test_a_step_that_waits_to_be_tried_again),
		TEST(test_what_is_under_way_is_left),
		TEST(test_parts_go_along),
		TEST(test_rows_of_two_versions_are_read_again),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, forget);
}
