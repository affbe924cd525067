/* A run that is made by the task that drives it: its units, and what is known of it at its end without reading it. */
#include "api/run_json.h"
#include "support/must_hold.h"
#include "unit/flow/driven_run.h"

#define TICK_MS 7

static int in_front; /* how often the maker was asked for its lines */

static void add_in_front(const struct single *single, struct unit *unit)
{
	(void)single, (void)unit;
	in_front++;
}

static enum hx_code answer_maker(struct single *single, const struct unit_result *result)
{
	(void)single;
	return result->verdict == UNIT_WON ? HX_OK : HX_ALREADY_EXISTS;
}

/* A commit that is not told as it was: the n-th, from 1 on. */
struct trouble {
	int commit;
	enum unit_verdict verdict;
};

struct made {
	struct arena arena;
	struct run_spec spec;
	struct single single;
	struct run_drive drive;
	int commits; /* that were won */
};

static void go_on(struct world *w, struct made *m, struct trouble trouble)
{
	static const struct unit_result lost = {.verdict = UNIT_LOST}, failed = {.verdict = UNIT_FAILED, .line = -1};
	struct task *task = &m->drive.task;
	struct ask ask = {.unit = &w->unit};
	struct answer answer = {.kind = ANSWER_START, .node = "here"};

	for (int commit = 0;;) {
		w->clock.wall.ms += TICK_MS;
		w->clock.mono.ns += TICK_MS * 1000000;
		answer.now = w->clock.wall;
		answer.mono = answer.lease_since = w->clock.mono;
		answer.id = w->last_op += 10;
		for (int i = 0; i < ANSWER_IDS_MAX; i++)
			answer.more_ids[i] = 1000 + w->last_op + i;
		assert_true(task_take(task, task->turn, &answer));
		task->kind->ask(task, &ask);
		if (ask.kind == ASK_DONE)
			return;
		answer.kind = ask.kind == ASK_ACT ? ANSWER_ACT : ask.kind == ASK_SLEEP ? ANSWER_WOKE : ANSWER_COMMIT;
		answer.output = slice_str("{\"n\":9007199254740993}");
		if (ask.kind != ASK_COMMIT)
			continue;
		answer.result = &w->result;
		if (++commit == trouble.commit) {
			answer.result = trouble.verdict == UNIT_LOST ? &lost : &failed;
			continue;
		}
		run_or_fail(w);
		m->commits += w->result.verdict == UNIT_WON && w->unit.op;
	}
}

static void make(struct world *w, struct made *m, struct trouble trouble)
{
	arena_init(&m->arena, 96u << 20);
	m->single = (struct single){.build = add_in_front, .answered = answer_maker};
	m->spec = (struct run_spec){
		.workspace = slice_str("default"),
		.requester = slice_str("me"),
		.key = slice_str("k"),
		.machine = fixture.machine,
		.input = slice_str("{\"sku\":1e400,\"go\":true}"),
		.due_in_ms = 2000,
	};
	run_describe(&m->spec, &m->arena);
	run_drive_init_making(&m->drive, &m->single, &m->spec, &policy, &m->arena);
	go_on(w, m, trouble);
}

static void define_all(void)
{
	define("'attributes':{'sku':'.input.sku','n':'.state.a.n'},'timeout':'1h',"
	       "'steps':[{'name':'start','type':'condition','when':'.input.go','then':'a','else':'c'},"
	       "{'name':'a','type':'task','action':'do','save_as':'a'},{'name':'b','type':'task','action':'nothing'},"
	       "{'name':'which','type':'condition','when':'.state.a.n == 1','then':'x','else':'c'},"
	       "{'name':'x','type':'task','action':'do'},{'name':'c','type':'task','action':'once'}],"
	       "'output':'{a: .state.a, sku: .input.sku}'");
}

/* What is told of it is what a read says of it. */
static void assert_known_as_read(struct world *w, struct made *m)
{
	struct run_row row, read;
	LOCAL_STRBUF(told, 1u << 20);
	LOCAL_STRBUF(shown, 1u << 20);

	unit_init(&w->unit, 0);
	run_read_shown(&w->unit, slice_str("default"), m->drive.subject);
	assert_int_equal(world_run(w), UNIT_WON);
	assert_int_equal(run_row_take(&w->result, machine_of, NULL, &m->arena, &read), HX_OK);
	assert_string_equal(read.status, "COMPLETED");
	assert_true(run_drive_completed(&m->drive, &row));
	run_json_add(&row, &told);
	run_json_add(&read, &shown);
	strbuf_add_char(&told, '\0');
	strbuf_add_char(&shown, '\0');
	assert_string_equal(told.p, shown.p);
}

static void test_what_it_made_and_completed_is_known(void **state)
{
	struct world *w = *state;
	struct made m = {0};

	define_all();
	make(w, &m, (struct trouble){0});
	assert_int_equal(m.commits, 3); /* made and begun; then a to c; then the end */
	assert_int_equal(in_front, 1);
	assert_known_as_read(w, &m);
	arena_release(&m.arena);
}

/* The step that was done is written a while later, by the time of then. */
static void test_what_is_written_later_is_read(void **state)
{
	struct world *w = *state;
	struct made m = {0};
	struct run_row row;

	define_all();
	make(w, &m, (struct trouble){2, UNIT_FAILED});
	MUST_HOLD(!run_drive_completed(&m.drive, &row), "a run is told with the times of a move that was not written");
	arena_release(&m.arena);
}

static void test_what_others_may_have_written_is_read(void **state)
{
	struct world *w = *state;
	struct made m = {0};
	struct run_row row;

	define_all();
	make(w, &m, (struct trouble){3, UNIT_LOST});
	MUST_HOLD(!run_drive_completed(&m.drive, &row), "a run is told without what others have written");
	arena_release(&m.arena);
}

/* Its key has a run: nothing of its first move is there. */
static void test_the_second_begins_nothing(void **state)
{
	struct world *w = *state;
	struct made first = {0}, second = {0};

	define("'steps':[{'name':'a','type':'task','action':'do'}]");
	make(w, &first, (struct trouble){0});
	make(w, &second, (struct trouble){0});
	assert_int_equal(first.drive.task.code, HX_OK);
	assert_int_equal(second.drive.task.code, HX_ALREADY_EXISTS);
	assert_false(second.drive.made);
	assert_int_equal(second.commits, 0);
	assert_run(w, "COMPLETED v3, step 1 attempt 0 -> null", "0 COMPLETED {\"n\":9007199254740993}");
	arena_release(&first.arena);
	arena_release(&second.arena);
}

/* Not one that rests at once: its creation is a unit by itself. */
static void test_what_waits_is_not_begun(void **state)
{
	struct world *w = *state;
	struct made m = {0};

	define("'steps':[{'name':'w','type':'wait','for':'1h'}]");
	make(w, &m, (struct trouble){0});
	assert_true(m.drive.made);
	assert_int_equal(m.commits, 2);
	arena_release(&m.arena);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(test_what_it_made_and_completed_is_known),
		TEST(test_what_is_written_later_is_read),
		TEST(test_what_others_may_have_written_is_read),
		TEST(test_the_second_begins_nothing),
		TEST(test_what_waits_is_not_begun),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, forget);
}
