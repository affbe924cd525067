/* Start, accept, resolve and ask over a store: in each status, one after the other, and with every answer lost once. */
#include "unit/flow/world.h"

#include <stdio.h>

#include "flow/batch_verb.h"
#include "support/must_hold.h"

#define ACCOUNT 7
#define BATCH 50
#define DEFAULT slice_str("default")
#define OPENING 500
#define COST 20

static const struct action asks = {.name = "asked"}, silent = {.name = "frame"},
			   known = {.name = "frame", .probe = &asks};
static struct batch_definition definition = {.name = "render", .item_action = &known};
static const struct batch_machine machine = {.definition = &definition, .version = 3};

static const struct batch_machine *machine_of(const void *context, struct slice workflow, int64_t version)
{
	(void)context;
	(void)workflow;
	(void)version;
	return &machine;
}

static const struct batch_policy policy = {.lease_ms = LEASE_MS, .machine_of = machine_of};

static void sql(struct world *w, const char *format, const char *word)
{
	struct hx_error err;
	char text[1000];

	snprintf(text, sizeof text, format, word);
	if (w->db->driver->script(w->db, text, &err))
		fail_msg("%s", err.detail);
}

/* A held batch with one item. */
static int set_up(void **state)
{
	struct batch_spec spec = {.subject = BATCH,
				  .account = ACCOUNT,
				  .workspace = DEFAULT,
				  .requester = slice_str("ann"),
				  .machine = &machine};
	struct world *w;
	struct stamp stamp;

	world_set_up(state);
	w = *state;
	stamp = world_begin(w);
	account_create(&w->unit, &stamp, DEFAULT, slice_str("alice"), ACCOUNT, OPENING);
	assert_int_equal(world_run(w), UNIT_WON);
	stamp = world_begin(w);
	batch_create_whole(&w->unit, &stamp, &spec, slice_str("[[20,\"{}\"]]"), 1, /* queued= */ false);
	assert_int_equal(world_run(w), UNIT_WON);
	return 0;
}

/* Its item is like this, paid for. */
static void make_item(struct world *w, const char *status)
{
	sql(w, "UPDATE hx_subject SET status = 'COMPLETED' WHERE id = 50", "");
	sql(w, "UPDATE hx_batch_item SET status = '%s', charged = cost, attempt = 1", status);
	sql(w, "UPDATE hx_batch SET next_n = 1, charged = 20, unknown = '%s' = 'UNKNOWN'", status);
	sql(w, "UPDATE hx_account SET balance = 480, seq = 2", "");
	sql(w, "INSERT INTO hx_ledger VALUES (7, 2, -20, '/x', 'charge', 480, 1, 1)", "");
}

/* ---- a caller ---- */

enum fault { NONE, ANSWER_LOST, COMMIT_LOST, FAILS };

struct caller {
	struct batch_verb verb;
	struct batch_verb_request rq;
	struct arena arena;
	struct answer answer;
	struct ask ask;
	struct unit unit;
	unsigned commits, fault_at;
	enum fault fault;
};

static void caller_init(struct caller *c, enum batch_verb_kind kind, bool done)
{
	*c = (struct caller){.rq = {.kind = kind,
				    .workspace = DEFAULT,
				    .subject = BATCH,
				    .done = done,
				    .output = slice_str("{\"art\":1}"),
				    .policy = &policy}};
	arena_init(&c->arena, 1u << 20);
	batch_verb_init(&c->verb, &c->rq, &c->arena);
}

static void give(struct world *w, struct caller *c, enum answer_kind kind)
{
	c->answer.kind = kind;
	c->answer.now = w->clock.wall;
	c->answer.mono = w->clock.mono;
	c->answer.id = ++w->last_op;
	c->answer.node = "here";
	c->answer.result = &w->result;
	assert_true(task_take(&c->verb.task, c->verb.task.turn, &c->answer));
	c->ask = (struct ask){.unit = &c->unit};
	c->verb.task.kind->ask(&c->verb.task, &c->ask);
}

/* One commit. False: it is done. */
static bool step(struct world *w, struct caller *c)
{
	enum fault fault;

	if (!c->verb.task.turn)
		give(w, c, ANSWER_START);
	if (c->ask.kind == ASK_DONE)
		return false;
	fault = c->commits++ == c->fault_at ? c->fault : NONE;
	if (fault == NONE || fault == ANSWER_LOST) {
		w->unit = c->unit;
		(void)world_run(w); /* whatever the verdict: the task hears it */
	}
	if (fault == ANSWER_LOST || fault == COMMIT_LOST)
		w->result.verdict = UNIT_UNKNOWN;
	if (fault == FAILS)
		w->result = (struct unit_result){.verdict = UNIT_FAILED, .error = {.code = HX_STORE_UNAVAILABLE}};
	give(w, c, ANSWER_COMMIT);
	return true;
}

static enum hx_code finish(struct world *w, struct caller *c)
{
	enum hx_code code;

	while (step(w, c)) {}
	code = c->ask.code;
	arena_release(&c->arena);
	return code;
}

/* Told, and whether it was done now. */
static enum hx_code call(struct world *w, enum batch_verb_kind kind, bool done, bool *ret_changed)
{
	struct caller c;
	enum hx_code code;

	caller_init(&c, kind, done);
	code = finish(w, &c);
	*ret_changed = c.verb.changed;
	return code;
}

/* ---- what there is ---- */

enum { STATUS, VERSION, DUE, ITEM, DECISION, CHARGED, SUCCEEDED, FAILED, UNKNOWN, ACCEPTED, BALANCE, SUM, BATCH_PAID };

static void look(struct world *w)
{
	static const struct db_stmt stmt = {
		.name = "test_look",
		.sql = "SELECT s.status, s.version, b.due_at IS NOT NULL, i.status, i.decision, i.charged, b.succeeded, b.failed,"
		       " b.unknown, b.accepted, a.balance, (SELECT sum(amount) FROM hx_ledger WHERE account = 7), b.charged"
		       " FROM hx_batch b JOIN hx_subject s ON s.id = b.subject JOIN hx_batch_item i ON i.batch = b.subject"
		       " JOIN hx_account a ON a.subject = b.account",
		.in = "",
		.out = "tiittiiiiiiii",
	};

	(void)world_begin(w);
	unit_add(&w->unit, UNIT_ANY, &stmt, 0, NULL);
	assert_int_equal(world_run(w), UNIT_WON);
	assert_int_equal(w->result.rows[0].n, 1);
	assert_int_equal(world_int(w, 0, BALANCE), world_int(w, 0, SUM));
}

static void assert_text(const struct world *w, size_t column, const char *text)
{
	const struct db_value *cell = db_cell(&w->result.rows[0], 0, column);

	assert_string_equal(cell->type == DB_NULL ? "NULL" : cell->s.p, text);
}

/* ---- start ---- */

static void a_held_one_is_started_once(void **state)
{
	struct world *w = *state;
	bool changed;

	assert_int_equal(call(w, BATCH_START, false, &changed), HX_OK);
	assert_true(changed);
	look(w);
	assert_text(w, STATUS, BATCH_QUEUED);
	assert_int_equal(world_int(w, 0, VERSION), 2);
	assert_int_equal(world_int(w, 0, DUE), 1);
	assert_int_equal(call(w, BATCH_START, false, &changed), HX_OK);
	assert_false(changed);
	look(w);
	assert_int_equal(world_int(w, 0, VERSION), 2);
}

static void start_in_each_status(void **state)
{
	static const struct {
		const char *status;
		enum hx_code code;
	} cases[] = {
		{BATCH_LOADING, HX_WRONG_STATUS},    {BATCH_RUNNING, HX_OK},   {BATCH_OUT_OF_CREDIT, HX_OK},
		{BATCH_CANCELLING, HX_WRONG_STATUS}, {BATCH_COMPLETED, HX_OK}, {BATCH_CANCELLED, HX_WRONG_STATUS},
		{BATCH_FAILED, HX_WRONG_STATUS},
	};
	struct world *w = *state;
	bool changed;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		sql(w, "UPDATE hx_subject SET status = '%s' WHERE id = 50", cases[i].status);
		assert_int_equal(call(w, BATCH_START, false, &changed), cases[i].code);
		assert_false(changed);
		look(w);
		assert_text(w, STATUS, cases[i].status);
		assert_int_equal(world_int(w, 0, VERSION), 1);
	}
	sql(w, "UPDATE hx_batch SET expired = 2", "");
	assert_int_equal(call(w, BATCH_START, false, &changed), HX_RUN_EXPIRED);
}

/* ---- accept ---- */

static void what_succeeded_is_accepted_once(void **state)
{
	struct world *w = *state;
	bool changed;

	make_item(w, ITEM_SUCCEEDED);
	assert_int_equal(call(w, BATCH_ACCEPT, false, &changed), HX_OK);
	assert_true(changed);
	assert_int_equal(call(w, BATCH_ACCEPT, false, &changed), HX_OK);
	assert_false(changed);
	look(w);
	assert_text(w, DECISION, ITEM_ACCEPTED);
	assert_int_equal(world_int(w, 0, ACCEPTED), 1);
	assert_int_equal(world_int(w, 0, CHARGED), COST);
}

static void nothing_else_is_accepted(void **state)
{
	static const char *const others[] = {ITEM_PENDING, ITEM_RUNNING, ITEM_FAILED, ITEM_UNKNOWN};
	struct world *w = *state;
	struct caller c;
	bool changed;

	for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
		sql(w, "UPDATE hx_batch_item SET status = '%s'", others[i]);
		assert_int_equal(call(w, BATCH_ACCEPT, false, &changed), HX_WRONG_STATUS);
	}
	sql(w, "UPDATE hx_batch_item SET status = 'SUCCEEDED'", "");
	sql(w, "UPDATE hx_batch SET cancel_requested = 1", "");
	assert_int_equal(call(w, BATCH_ACCEPT, false, &changed), HX_WRONG_STATUS);
	sql(w, "UPDATE hx_batch_item SET decision = 'cancelled'", "");
	assert_int_equal(call(w, BATCH_ACCEPT, false, &changed), HX_WRONG_STATUS);
	caller_init(&c, BATCH_ACCEPT, false);
	c.rq.n = 1;
	assert_int_equal(finish(w, &c), HX_NOT_FOUND);
	/* What a loader is writing does not exist yet. */
	sql(w, "INSERT INTO hx_batch_item (batch, n, input, cost, status) VALUES (50, 1, '{}', 1, 'SUCCEEDED')", "");
	caller_init(&c, BATCH_ACCEPT, false);
	c.rq.n = 1;
	assert_int_equal(finish(w, &c), HX_NOT_FOUND);
	caller_init(&c, BATCH_ACCEPT, false);
	c.rq.workspace = slice_str("other");
	assert_int_equal(finish(w, &c), HX_NOT_FOUND);
}

/* The flag comes between the look and the write: the write is lost, and the next look says why. */
static void a_cancel_comes_first(void **state)
{
	struct world *w = *state;
	struct caller c;

	make_item(w, ITEM_SUCCEEDED);
	caller_init(&c, BATCH_ACCEPT, false);
	assert_true(step(w, &c));
	sql(w, "UPDATE hx_batch SET cancel_requested = 1", "");
	assert_int_equal(finish(w, &c), HX_WRONG_STATUS);
	look(w);
	assert_text(w, DECISION, "NULL");
}

/* ---- ask ---- */

static void a_question_changes_nothing(void **state)
{
	struct world *w = *state;
	struct caller c;

	make_item(w, ITEM_UNKNOWN);
	sql(w,
	    "UPDATE hx_subject SET status = 'RUNNING', owner = 'another', fence = 4, until = 9000000000000 WHERE id = 50",
	    "");
	caller_init(&c, BATCH_ASK, false);
	assert_true(step(w, &c));
	assert_int_equal(c.ask.kind, ASK_ACT);
	assert_ptr_equal(c.ask.act.action, &asks);
	MUST_HOLD(c.ask.act.lease.fence == 0, "who only asks keeps the lease of another alive");
	c.answer.outcome = ACT_OK;
	c.answer.output = slice_str("{\"outcome\":\"done\",\"output\":{\"art\":1}}");
	give(w, &c, ANSWER_ACT);
	assert_int_equal(c.ask.kind, ASK_DONE);
	assert_int_equal(c.ask.code, HX_OK);
	assert_int_equal(c.verb.says, PROBE_DONE);
	assert_true(slice_is(c.verb.item.output, "{\"art\":1}"));
	assert_false(c.verb.changed);
	arena_release(&c.arena);
	look(w);
	assert_text(w, ITEM, ITEM_UNKNOWN);
	assert_int_equal(world_int(w, 0, VERSION), 1);
	assert_int_equal(world_int(w, 0, UNKNOWN), 1);
	assert_int_equal(world_int(w, 0, CHARGED), COST);
}

static void there_must_be_something_to_ask(void **state)
{
	static const char *const others[] = {ITEM_PENDING, ITEM_RUNNING, ITEM_FAILED, ITEM_SUCCEEDED};
	struct world *w = *state;
	bool changed;

	for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
		sql(w, "UPDATE hx_batch_item SET status = '%s'", others[i]);
		assert_int_equal(call(w, BATCH_ASK, false, &changed), HX_WRONG_STATUS);
	}
	sql(w, "UPDATE hx_batch_item SET status = 'UNKNOWN'", "");
	definition.item_action = &silent;
	assert_int_equal(call(w, BATCH_ASK, false, &changed), HX_WRONG_STATUS);
	definition.item_action = &known;
}

/* ---- resolve ---- */

static void a_person_says_that_it_was_done(void **state)
{
	struct world *w = *state;
	bool changed;

	make_item(w, ITEM_UNKNOWN);
	assert_int_equal(call(w, BATCH_RESOLVE, true, &changed), HX_OK);
	assert_true(changed);
	look(w);
	assert_text(w, ITEM, ITEM_SUCCEEDED);
	assert_int_equal(world_int(w, 0, CHARGED), COST);
	assert_int_equal(world_int(w, 0, UNKNOWN), 0);
	assert_int_equal(world_int(w, 0, SUCCEEDED), 1);
	assert_int_equal(world_int(w, 0, BALANCE), OPENING - COST);
	assert_int_equal(call(w, BATCH_RESOLVE, false, &changed), HX_WRONG_STATUS);
	look(w);
	assert_int_equal(world_int(w, 0, BALANCE), OPENING - COST);
}

static void a_person_says_that_it_was_not(void **state)
{
	struct world *w = *state;
	bool changed;

	make_item(w, ITEM_UNKNOWN);
	assert_int_equal(call(w, BATCH_RESOLVE, false, &changed), HX_OK);
	look(w);
	assert_text(w, ITEM, ITEM_FAILED);
	assert_int_equal(world_int(w, 0, CHARGED), 0);
	assert_int_equal(world_int(w, 0, BATCH_PAID), 0);
	assert_int_equal(world_int(w, 0, FAILED), 1);
	assert_int_equal(world_int(w, 0, BALANCE), OPENING);
	assert_int_equal(call(w, BATCH_RESOLVE, false, &changed), HX_OK); /* the answer was lost: said again */
	assert_false(changed);
	assert_int_equal(call(w, BATCH_RESOLVE, true, &changed), HX_WRONG_STATUS);
	look(w);
	assert_int_equal(world_int(w, 0, BALANCE), OPENING);
}

/* ---- answers that are lost ---- */

/* Whatever is told, it was done at most once; and what is told as done is. */
static void every_answer_is_lost_once(void **state)
{
	static const struct {
		enum batch_verb_kind kind;
		bool done;
		const char *item;
	} verbs[] = {
		{BATCH_START, false, NULL},
		{BATCH_ACCEPT, false, ITEM_SUCCEEDED},
		{BATCH_RESOLVE, true, ITEM_UNKNOWN},
		{BATCH_RESOLVE, false, ITEM_UNKNOWN},
	};
	struct caller c;

	(void)state;
	for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++)
		for (enum fault fault = ANSWER_LOST; fault <= FAILS; fault++)
			for (unsigned at = 0; at < 2; at++) {
				void *fresh;
				struct world *w;
				bool done;

				set_up(&fresh);
				w = fresh;
				if (verbs[i].item)
					make_item(w, verbs[i].item);
				caller_init(&c, verbs[i].kind, verbs[i].done);
				c.fault = fault;
				c.fault_at = at;
				assert_int_equal(finish(w, &c),
						 at == 0 || fault == FAILS ? HX_STORE_UNAVAILABLE : HX_OK);
				look(w);
				done = verbs[i].kind == BATCH_START    ? world_int(w, 0, DUE) == 1
				       : verbs[i].kind == BATCH_ACCEPT ? world_int(w, 0, ACCEPTED) == 1
								       : world_int(w, 0, UNKNOWN) == 0;
				assert_int_equal(done, c.ask.code == HX_OK);
				assert_int_equal(world_int(w, 0, BALANCE),
						 !verbs[i].item ? OPENING
						 : done && verbs[i].kind == BATCH_RESOLVE && !verbs[i].done
							 ? OPENING
							 : OPENING - COST);
				world_tear_down(&fresh);
			}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, world_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_held_one_is_started_once),
		TEST(start_in_each_status),
		TEST(what_succeeded_is_accepted_once),
		TEST(nothing_else_is_accepted),
		TEST(a_cancel_comes_first),
		TEST(a_question_changes_nothing),
		TEST(there_must_be_something_to_ask),
		TEST(a_person_says_that_it_was_done),
		TEST(a_person_says_that_it_was_not),
		TEST(every_answer_is_lost_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
