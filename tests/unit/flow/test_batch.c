/*
 * A batch over a real store, one node alone: its tenures turn by turn, what is called with which key, what the rows and the
 * books say behind each of them. Races and crashes are explored in tests/sim/test_batch.c, the units one by one in
 * tests/contract/test_batch_units.c.
 */
#include "unit/flow/world.h"

#include <stdio.h>

#include "flow/backoff.h"
#include "flow/batch_cancel.h"
#include "flow/batch_tenure.h"

#define BATCH 77
#define ACCOUNT 5
#define LOG_BYTES 4000
#define BALANCE 1000

static struct {
	struct arena arena;
	struct batch_machine machine;
	char calls[LOG_BYTES]; /* "action /N #attempt; " */
	char body[LOG_BYTES];  /* of the last call */
	/* What the actions answer, one after the other, "render:ok render:failed delete:unknown"; then ok. */
	const char *script;
	void (*meanwhile)(struct world *w); /* what others do while the next call is under way, once */
	int64_t not_before_ms;              /* what they ask for when they do not answer ok */
	bool overrun;                       /* and that call's lease is lost */
	unsigned fail_commits;              /* this many further units have their answer lost, and landed */
	bool crashed;                       /* the script said so: the tenure is gone, and its lease lasts */
} fixture;

static const struct batch_machine *machine_of(const void *context, struct slice workflow, int64_t version)
{
	(void)context, (void)workflow, (void)version;
	return &fixture.machine;
}

static const struct batch_policy policy = {.lease_ms = 1000, .machine_of = machine_of};

#define ACTIONS                                                                                                        \
	"'actions':{'render':{'kind':'http','url':'http://127.0.0.1:1/r','effect':'keyed'},"                           \
	"'once':{'kind':'http','url':'http://127.0.0.1:1/r','effect':'claimed'},"                                      \
	"'voidable':{'kind':'http','url':'http://127.0.0.1:1/r','effect':'keyed','void':'annul'},"                     \
	"'asked':{'kind':'http','url':'http://127.0.0.1:1/r','effect':'claimed','probe':'ask'},"                       \
	"'ask':{'kind':'http','url':'http://127.0.0.1:1/a','effect':'idempotent'},"                                    \
	"'annul':{'kind':'http','url':'http://127.0.0.1:1/v','effect':'idempotent'},"                                  \
	"'delete':{'kind':'http','url':'http://127.0.0.1:1/d','effect':'idempotent'},"                                 \
	"'tell':{'kind':'http','url':'http://127.0.0.1:1/t','effect':'keyed'}}"

static void define(const char *rest)
{
	struct findings findings;
	char text[4000];

	snprintf(text, sizeof text, "{'workflow':'render','kind':'batch'," ACTIONS ",%s}", rest);
	for (char *p = text; *p; p++)
		*p = *p == '\'' ? '"' : *p;
	arena_release(&fixture.arena);
	memset(&fixture, 0, sizeof fixture);
	arena_init(&fixture.arena, 16u << 20);
	findings_init(&findings, &fixture.arena);
	batch_definition_parse("render.json", slice_str(text), &fixture.arena, &findings, &fixture.machine.definition);
	assert_non_null(fixture.machine.definition);
	fixture.machine.version = 3;
}

/* ---- the store ---- */

static void sql(struct world *w, const char *text)
{
	struct hx_error err = {0};

	if (w->db->driver->script(w->db, text, &err))
		fail_msg("%s: %s", text, err.detail);
}

static const struct db_stmt stmt_items = {
	.name = "test_items",
	.sql = "SELECT coalesce(group_concat(t, ' '), '') FROM (SELECT n || ':' || status || ':' || charged ||"
	       " CASE WHEN decision IS NULL THEN '' ELSE ':' || decision END || CASE WHEN doubt = 1 THEN '?' ELSE '' END ||"
	       " CASE WHEN late IS NULL THEN '' ELSE ' late' END AS t FROM hx_batch_item ORDER BY n)",
	.in = "",
	.out = "t",
};

/* All of it has to be the same, two by two. */
static const struct db_stmt stmt_books = {
	.name = "test_books",
	.sql = "SELECT a.balance, (SELECT sum(amount) FROM hx_ledger), a.seq, (SELECT count(*) FROM hx_ledger), b.charged,"
	       " (SELECT sum(charged) FROM hx_batch_item), b.refunded,"
	       " (SELECT coalesce(sum(charged), 0) FROM hx_batch_item WHERE decision = 'cancelled'), b.refunded,"
	       " (SELECT coalesce(sum(amount), 0) FROM hx_ledger WHERE reason = 'refund'), b.charged,"
	       " (SELECT coalesce(-sum(amount), 0) FROM hx_ledger WHERE reason IN ('charge', 'return')), b.succeeded,"
	       " (SELECT count(*) FROM hx_batch_item WHERE status = 'SUCCEEDED'), b.failed,"
	       " (SELECT count(*) FROM hx_batch_item WHERE status = 'FAILED'), b.unknown,"
	       " (SELECT count(*) FROM hx_batch_item WHERE status = 'UNKNOWN'), b.cancelled,"
	       " (SELECT count(*) FROM hx_batch_item WHERE decision = 'cancelled'), b.late,"
	       " (SELECT count(*) FROM hx_batch_item WHERE late IS NOT NULL)"
	       " FROM hx_account a, hx_batch b",
	.in = "",
	.out = "iiiiiiiiiiiiiiiiiiiiii",
};

static const struct db_stmt stmt_jobs = {
	.name = "test_jobs",
	.sql = "SELECT coalesce(group_concat(action || ' ' || substr(effect_key, 20) || ' ' || payload, '; '), '') FROM hx_job",
	.in = "",
	.out = "t",
};

static const char *tell(struct world *w, const struct db_stmt *stmt)
{
	static char text[LOG_BYTES];

	unit_init(&w->unit, 0);
	unit_add(&w->unit, UNIT_ANY, stmt, 0, NULL);
	assert_int_equal(world_run(w), UNIT_WON);
	snprintf(text, sizeof text, "%.*s", SLICE_ARGS(db_cell(&w->result.rows[0], 0, 0)->s));
	return text;
}

static void check_books(struct world *w)
{
	unit_init(&w->unit, 0);
	unit_add(&w->unit, UNIT_ANY, &stmt_books, 0, NULL);
	assert_int_equal(world_run(w), UNIT_WON);
	for (size_t i = 0; w->result.rows[0].n && i < w->result.rows[0].columns; i += 2)
		if (world_int(w, 0, i) != world_int(w, 0, i + 1))
			fail_msg("the books do not agree in pair %zu: %lld and %lld", i / 2,
				 (long long)world_int(w, 0, i), (long long)world_int(w, 0, i + 1));
}

static struct batch_row read_batch(struct world *w)
{
	struct batch_row row;

	unit_init(&w->unit, 0);
	batch_read(&w->unit, slice_str(""), BATCH);
	assert_int_equal(world_run(w), UNIT_WON);
	assert_int_equal(w->result.rows[0].n, 1);
	batch_row_take(&w->result.rows[0], 0, &policy, &w->arena, &row);
	return row;
}

static void assert_batch(struct world *w, const char *status, int64_t balance)
{
	struct batch_row row = read_batch(w);

	assert_string_equal(row.status, status);
	assert_int_equal(row.balance, balance);
	if (!batch_is_terminal(status) && strcmp(status, BATCH_PENDING) != 0)
		assert_true(row.owned || row.due_at || row.needs > row.balance); /* B7 */
}

/* Items of these costs: [[cost, "input"], …] */
static void create(struct world *w, const char *rows, int64_t total)
{
	struct stamp stamp = world_begin(w);
	struct batch_spec spec = {
		.subject = BATCH,
		.account = ACCOUNT,
		.workspace = slice_str("default"),
		.requester = slice_str("me"),
		.machine = &fixture.machine,
	};

	account_create(&w->unit, &stamp, slice_str("default"), slice_str("alice"), ACCOUNT, BALANCE);
	assert_int_equal(world_run(w), UNIT_WON);
	stamp = world_begin(w);
	batch_create_whole(&w->unit, &stamp, &spec, slice_str(rows), total, /* queued= */ true);
	assert_int_equal(world_run(w), UNIT_WON);
	check_books(w);
}

static void create_three(struct world *w)
{
	create(w, "[[10,\"\\\"a\\\"\"],[200,\"{\\\"x\\\":1}\"],[3,\"null\"]]", 3);
}

/* ---- turns ---- */

static void note_call(const struct act_call *call)
{
	const struct action *action = call->action;
	struct slice rest = call->key;

	while (rest.n && rest.p[0] != '/') /* the id of the batch is always the same */
		rest.p++, rest.n--;
	while (rest.n && memmem(rest.p, rest.n, "/ask_", 5)) /* a fresh id */
		rest.n--;
	snprintf(fixture.calls + strlen(fixture.calls), LOG_BYTES - strlen(fixture.calls), "%s %.*s #%lld; ",
		 action->name, SLICE_ARGS(rest), (long long)call->attempt);
	snprintf(fixture.body, LOG_BYTES, "%.*s", SLICE_ARGS(call->input));
}

static char long_output[BATCH_OUTPUT_BYTES_MAX + 3]; /* a string, one byte longer than is kept */

static void answer_call(struct world *w, struct answer *answer)
{
	const struct {
		const char *word;
		enum act_outcome outcome;
		const char *output;
	} words[] = {
		{"ok", ACT_OK, "{\"url\":\"x\"}"},
		{"failed", ACT_FAILED, "HTTP 503"},
		{"good", ACT_FAILED_FOR_GOOD, "HTTP 400"},
		{"unknown", ACT_UNKNOWN, "timeout"},
		{"409", ACT_UNSETTLED, "HTTP 409"},
		{"429", ACT_FAILED, "HTTP 429"},
		{"lost", ACT_CLAIM_LOST, ""},
		{"long", ACT_OK, long_output},
		{"done", ACT_OK, "{\"outcome\":\"done\",\"output\":7}"},
		{"not", ACT_OK, "{\"outcome\":\"not_done\"}"},
	};
	size_t n = fixture.script ? strcspn(fixture.script, " ") : 0, i = 0;

	fixture.crashed = n == 5 && strncmp(fixture.script, "crash", n) == 0;

	void (*meanwhile)(struct world * w) = fixture.meanwhile;

	if (meanwhile) {
		fixture.meanwhile = NULL;
		meanwhile(w);
		answer->overrun = fixture.overrun;
	}
	for (size_t k = 0; n && k < sizeof words / sizeof *words; k++)
		if (strlen(words[k].word) == n && strncmp(fixture.script, words[k].word, n) == 0)
			i = k;
	if (n)
		fixture.script += n + (fixture.script[n] == ' ');
	answer->kind = ANSWER_ACT;
	answer->outcome = words[i].outcome;
	answer->not_before_ms = words[i].outcome != ACT_OK ? fixture.not_before_ms : 0;
	answer->output = slice_str(words[i].output);
}

static void run_turn(struct world *w, struct task *task)
{
	struct ask ask = {.unit = &w->unit};
	struct answer answer = {.kind = ANSWER_START, .node = "here"};

	for (;;) {
		answer.now = w->clock.wall;
		answer.mono = answer.lease_since = answer.sent = w->clock.mono;
		answer.id = w->last_op += 10;
		for (int i = 0; i < ANSWER_IDS_MAX; i++)
			answer.more_ids[i] = 100000 + w->last_op + i;
		assert_true(task_take(task, task->turn, &answer));
		answer.overrun = false;
		task->kind->ask(task, &ask);
		if (ask.kind == ASK_DONE)
			return;
		if (ask.kind == ASK_ACT) {
			note_call(&ask.act);
			answer_call(w, &answer);
			if (fixture.crashed)
				return;
			continue;
		}
		answer.kind = ask.kind == ASK_SLEEP ? ANSWER_WOKE : ANSWER_COMMIT;
		if (ask.kind == ASK_SLEEP)
			continue;
		(void)world_run(w);
		answer.result = &w->result;
		if (fixture.fail_commits && ask.unit->op) {
			fixture.fail_commits--;
			w->result.verdict = UNIT_UNKNOWN;
		}
	}
}

/* One tenure; returns the code of its last lead. */
static enum hx_code hold_of(struct world *w, const struct batch_hold *hold)
{
	struct batch_tenure tenure;
	struct arena arena;
	enum hx_code code = HX_OK;
	union {
		struct batch_lead lead;
		struct batch_hand hand;
		struct batch_clean clean;
	} turn;

	arena_init(&arena, 96u << 20);
	batch_tenure_init(&tenure, BATCH, hold);
	while (!batch_tenure_is_over(&tenure)) {
		switch (batch_tenure_next(&tenure)) {
		case TURN_LEAD:
			batch_lead_init(&turn.lead, BATCH, &policy, tenure.holding ? &tenure.hold : NULL, &tenure.seen,
					&arena);
			run_turn(w, &turn.lead.task);
			code = turn.lead.code;
			batch_tenure_led(&tenure, &turn.lead);
			break;
		case TURN_HAND:
			batch_hand_init(&turn.hand, &tenure.hold, &arena);
			run_turn(w, &turn.hand.task);
			if (fixture.crashed) {
				arena_release(&arena);
				return HX_STOPPING;
			}
			batch_tenure_worked(&tenure, &turn.hand);
			break;
		case TURN_CLEAN:
			batch_clean_init(&turn.clean, &tenure.hold, batch_tenure_slice(&tenure), &arena);
			run_turn(w, &turn.clean.task);
			batch_tenure_cleaned(&tenure, &turn.clean);
			break;
		case TURN_NONE:
			fail_msg("the tenure stands still");
		}
		check_books(w);
	}
	arena_release(&arena);
	return code;
}

static enum hx_code hold(struct world *w)
{
	return hold_of(w, NULL);
}

static void cancel(struct world *w, enum hx_code code, bool seized, bool accepted)
{
	struct batch_cancel c;
	struct arena arena;

	arena_init(&arena, 1u << 20);
	batch_cancel_init(&c, slice_str("default"), BATCH, &policy, &arena);
	run_turn(w, &c.task);
	assert_string_equal(hx_code_name(c.code), hx_code_name(code));
	assert_int_equal(c.seized, seized);
	assert_int_equal(c.accepted, accepted);
	if (c.seized)
		(void)hold_of(w, &c.hold);
	check_books(w);
	arena_release(&arena);
}

static void flag(struct world *w)
{
	cancel(w, HX_OK, /* seized= */ false, /* accepted= */ true);
}

/* ---- tests ---- */

static void test_completes(void **state)
{
	struct world *w = *state;

	define("'item_action':'render','cleanup_action':'delete','done_after_effect':['tell'],'concurrency':2");
	create_three(w);
	assert_int_equal(hold(w), HX_OK);
	assert_string_equal(fixture.calls, "render /0 #1; render /1 #1; render /2 #1; ");
	assert_string_equal(tell(w, &stmt_items), "0:SUCCEEDED:10 1:SUCCEEDED:200 2:SUCCEEDED:3");
	assert_batch(w, BATCH_COMPLETED, BALANCE - 213);
	assert_non_null(strstr(tell(w, &stmt_jobs),
			       "\"from\":\"RUNNING\",\"to\":\"COMPLETED\",\"version\":3,\"output\":"
			       "{\"total\":3,\"succeeded\":3,\"failed\":0,\"unknown\":0,"
			       "\"accepted\":0,\"cancelled\":0,\"charged\":213,\"refunded\":0}"));
	assert_non_null(strstr(fixture.body, "\"step\":\"item\",\"requester\":\"me\",\"input\":null,"
					     "\"data\":{},\"item\":{\"n\":2,\"input\":null,\"output\":null}"));
	cancel(w, HX_ALREADY_COMPLETED, false, false);
}

static void test_failures_are_returned_and_retried(void **state)
{
	struct world *w = *state;

	define("'item_action':'render','concurrency':1,'retry':{'max_attempts':2,'initial':'1s','jitter':false}");
	fixture.script = "failed good ok";
	create_three(w);
	assert_int_equal(hold(w), HX_OK);
	assert_string_equal(tell(w, &stmt_items), "0:PENDING:0 1:FAILED:0 2:SUCCEEDED:3");
	assert_batch(w, BATCH_RUNNING, BALANCE - 3);
	assert_int_equal(read_batch(w).due_at, START_MS + 1000);
	assert_int_equal(hold(w), HX_OK); /* not due */
	assert_string_equal(fixture.calls, "render /0 #1; render /1 #1; render /2 #1; ");
	fake_clock_advance_ms(&w->clock, 1000);
	fixture.script = "failed";
	assert_int_equal(hold(w), HX_OK);
	assert_string_equal(tell(w, &stmt_items), "0:FAILED:0 1:FAILED:0 2:SUCCEEDED:3");
	assert_batch(w, BATCH_COMPLETED, BALANCE - 3);
}

static void test_unknown_outcomes(void **state)
{
	struct world *w = *state;

	define("'item_action':'render','concurrency':1,'retry':{'max_attempts':2,'initial':'1s','jitter':false}");
	fixture.script = "unknown ok ok";
	create_three(w);
	assert_int_equal(hold(w), HX_OK);
	assert_string_equal(tell(w, &stmt_items), "0:PENDING:10? 1:SUCCEEDED:200 2:SUCCEEDED:3");
	fake_clock_advance_ms(&w->clock, 1000);
	fixture.script = "failed"; /* of the second try: it says nothing about the first */
	assert_int_equal(hold(w), HX_OK);
	assert_string_equal(tell(w, &stmt_items), "0:UNKNOWN:10? 1:SUCCEEDED:200 2:SUCCEEDED:3");
	assert_batch(w, BATCH_COMPLETED, BALANCE - 213);
}

/* An item that the other side is still at: no attempt is used, it stays charged, and after ten minutes it is for a person. */
static void test_unsettled(void **state)
{
	struct world *w = *state;

	define("'item_action':'render','concurrency':1,'retry':{'max_attempts':1,'initial':'1s','jitter':false}");
	fixture.script = "409 ok 409";
	create_three(w);
	assert_int_equal(hold(w), HX_OK);
	assert_string_equal(tell(w, &stmt_items), "0:PENDING:10? 1:SUCCEEDED:200 2:PENDING:3?");
	fake_clock_advance_ms(&w->clock, 1000);
	fixture.script = "409 ok";
	assert_int_equal(hold(w), HX_OK);
	assert_string_equal(tell(w, &stmt_items), "0:PENDING:10? 1:SUCCEEDED:200 2:SUCCEEDED:3?");
	fake_clock_advance_ms(&w->clock, UNSETTLED_MS_MAX);
	fixture.script = "409";
	assert_int_equal(hold(w), HX_OK);
	assert_string_equal(tell(w, &stmt_items), "0:UNKNOWN:10? 1:SUCCEEDED:200 2:SUCCEEDED:3?");
	assert_batch(w, BATCH_COMPLETED, BALANCE - 213);
}

/* So long, at least. */
static void test_not_before(void **state)
{
	struct world *w = *state;

	define("'item_action':'render','concurrency':1,'retry':{'max_attempts':2,'initial':'1s','jitter':false}");
	fixture.script = "429 ok ok";
	fixture.not_before_ms = 7000;
	create_three(w);
	assert_int_equal(hold(w), HX_OK);
	fake_clock_advance_ms(&w->clock, 6999);
	assert_int_equal(hold(w), HX_OK);
	assert_string_equal(tell(w, &stmt_items), "0:PENDING:0 1:SUCCEEDED:200 2:SUCCEEDED:3");
	fake_clock_advance_ms(&w->clock, 1);
	assert_int_equal(hold(w), HX_OK);
	assert_string_equal(tell(w, &stmt_items), "0:SUCCEEDED:10 1:SUCCEEDED:200 2:SUCCEEDED:3");
	fixture.not_before_ms = 0;
}

static void test_hold_and_probe(void **state)
{
	struct world *w = *state;

	define("'item_action':'asked','on_unknown':'probe','concurrency':1");
	fixture.script = "unknown done unknown not ok";
	create_three(w);
	assert_int_equal(hold(w), HX_OK);
	assert_string_equal(fixture.calls,
			    "asked /0 #1; ask /0/probe/ask #1; asked /1 #1; ask /1/probe/ask #1; asked /2 #1; ");
	assert_string_equal(tell(w, &stmt_items), "0:SUCCEEDED:10? 1:PENDING:0 2:SUCCEEDED:3");
}

static void test_hold(void **state)
{
	struct world *w = *state;

	define("'item_action':'once','concurrency':1");
	fixture.script = "unknown ok ok";
	create_three(w);
	assert_int_equal(hold(w), HX_OK);
	assert_string_equal(tell(w, &stmt_items), "0:UNKNOWN:10? 1:SUCCEEDED:200 2:SUCCEEDED:3");
	assert_batch(w, BATCH_COMPLETED, BALANCE - 213);
}

static void test_cancel_of_a_queued_one(void **state)
{
	struct world *w = *state;

	define("'item_action':'render','cleanup_action':'delete'");
	create_three(w);
	cancel(w, HX_OK, /* seized= */ true, /* accepted= */ false);
	assert_string_equal(fixture.calls, ""); /* nothing was begun, so nothing is there to be cleaned up */
	assert_batch(w, BATCH_CANCELLED, BALANCE);
	assert_string_equal(tell(w, &stmt_items), "0:PENDING:0:cancelled 1:PENDING:0:cancelled 2:PENDING:0:cancelled");
	cancel(w, HX_OK, false, false);
	assert_int_equal(hold(w), HX_OK);
	assert_batch(w, BATCH_CANCELLED, BALANCE);
}

static void test_cancel_of_a_running_one(void **state)
{
	struct world *w = *state;

	define("'item_action':'render','cleanup_action':'delete','concurrency':1,'done_after_effect':['tell']");
	create_three(w);
	fixture.meanwhile = flag;
	assert_int_equal(hold(w), HX_OK);
	assert_string_equal(fixture.calls, "render /0 #1; delete /0/cleanup/1 #1; ");
	assert_string_equal(tell(w, &stmt_items),
			    "0:SUCCEEDED:10:cancelled 1:PENDING:0:cancelled 2:PENDING:0:cancelled");
	assert_batch(w, BATCH_CANCELLED, BALANCE);
	assert_int_equal(read_batch(w).refunded, 10);
	assert_non_null(strstr(tell(w, &stmt_jobs), "\"to\":\"CANCELLED\""));
	assert_non_null(strstr(fixture.body, "\"item\":{\"n\":0,\"input\":\"a\",\"output\":{\"url\":\"x\"}}"));
}

static void test_cleanup_that_fails(void **state)
{
	struct world *w = *state;

	define("'item_action':'render','cleanup_action':'delete','concurrency':1");
	create_three(w);
	fixture.script = "ok good";
	fixture.meanwhile = flag;
	assert_int_equal(hold(w), HX_OK);
	assert_batch(w, BATCH_CANCELLING, BALANCE); /* the money is back, and it is not over */
	assert_true(slice_is(read_batch(w).error, "HTTP 400"));
	fake_clock_advance_ms(&w->clock, 400);
	(void)hold(w); /* not due: the backoff is at least half a second */
	assert_batch(w, BATCH_CANCELLING, BALANCE);
	fake_clock_advance_ms(&w->clock, 600);
	assert_int_equal(hold(w), HX_OK);
	assert_string_equal(fixture.calls, "render /0 #1; delete /0/cleanup/1 #1; delete /0/cleanup/2 #1; ");
	assert_batch(w, BATCH_CANCELLED, BALANCE);
}

static void test_takeover_voids_what_is_in_doubt(void **state)
{
	struct world *w = *state;

	define("'item_action':'voidable','cleanup_action':'delete','concurrency':1");
	create_three(w);
	fixture.script = "crash";
	assert_int_equal(hold(w), HX_STOPPING);
	assert_string_equal(tell(w, &stmt_items), "0:RUNNING:10 1:PENDING:0 2:PENDING:0");
	flag(w);
	fake_clock_advance_ms(&w->clock, 1000);
	fixture.script = "failed";
	assert_int_equal(hold(w), HX_OK);
	assert_string_equal(fixture.calls, "voidable /0 #1; annul /0/void/2 #1; ");
	assert_non_null(strstr(fixture.body, "\"key\":\"batch_000000000002d/0\""));
	assert_batch(w, BATCH_CANCELLING, BALANCE - 10); /* no money before the key is void */
	fake_clock_advance_ms(&w->clock, 1000);
	assert_int_equal(hold(w), HX_OK);
	assert_string_equal(fixture.calls, "voidable /0 #1; annul /0/void/2 #1; annul /0/void/3 #1; "
					   "delete /0/cleanup/3 #1; ");
	assert_string_equal(tell(w, &stmt_items), "0:UNKNOWN:10:cancelled 1:PENDING:0:cancelled 2:PENDING:0:cancelled");
	assert_batch(w, BATCH_CANCELLED, BALANCE);
}

static size_t count_of(const char *text, const char *word)
{
	size_t n = 0;

	for (const char *p = text; (p = strstr(p, word)); p++)
		n++;
	return n;
}

/* More in doubt than one lead keeps in memory: page by page, each voided once, before its money goes back. */
static void test_many_are_in_doubt(void **state)
{
	struct world *w = *state;
	char rows[400] = "[";

	define("'item_action':'voidable','on_unknown':'hold','concurrency':1");
	for (int i = 0; i < 20; i++)
		snprintf(rows + strlen(rows), sizeof rows - strlen(rows), "%s[1,\"%d\"]", i ? "," : "", i);
	snprintf(rows + strlen(rows), sizeof rows - strlen(rows), "]");
	create(w, rows, 20);
	fixture.script =
		"unknown unknown unknown unknown unknown unknown unknown unknown unknown unknown unknown unknown"
		" unknown unknown unknown unknown unknown unknown unknown crash";
	assert_int_equal(hold(w), HX_STOPPING);
	flag(w);
	fake_clock_advance_ms(&w->clock, 1000);
	fixture.calls[0] = '\0';
	assert_int_equal(hold(w), HX_OK);
	for (int i = 0; i < 20; i++) {
		char call[40];

		snprintf(call, sizeof call, "annul /%d/void/2 #1; ", i);
		assert_int_equal(count_of(fixture.calls, call), 1);
	}
	assert_int_equal(count_of(fixture.calls, "annul"), 20);
	assert_batch(w, BATCH_CANCELLED, BALANCE);
}

static void test_takeover_does_not_pay_twice(void **state)
{
	struct world *w = *state;

	define("'item_action':'render','concurrency':1");
	create_three(w);
	fixture.script = "crash";
	assert_int_equal(hold(w), HX_STOPPING);
	fake_clock_advance_ms(&w->clock, 1000);
	assert_int_equal(hold(w), HX_OK);
	assert_string_equal(fixture.calls, "render /0 #1; render /0 #2; render /1 #1; render /2 #1; ");
	assert_string_equal(tell(w, &stmt_items), "0:SUCCEEDED:10? 1:SUCCEEDED:200 2:SUCCEEDED:3");
	assert_batch(w, BATCH_COMPLETED, BALANCE - 213);
}

static void spend(struct world *w)
{
	sql(w,
	    "UPDATE hx_account SET balance = balance - 980, seq = seq + 1; INSERT INTO hx_ledger (account, seq, amount,"
	    " key, reason, balance, op, at) SELECT subject, seq, -980, 'x', 'credit', balance, 0, 0 FROM hx_account");
}

static void test_out_of_credit(void **state)
{
	struct world *w = *state;
	struct stamp stamp;

	define("'item_action':'render','concurrency':1");
	create_three(w);
	spend(w);
	assert_int_equal(hold(w), HX_OK);
	assert_string_equal(fixture.calls, "render /0 #1; ");
	assert_batch(w, BATCH_OUT_OF_CREDIT, 10);
	assert_int_equal(read_batch(w).needs, 200);
	assert_int_equal(read_batch(w).due_at, 0);
	stamp = world_begin(w);
	account_add_credit(&w->unit, &stamp, ACCOUNT, 189, slice_str("little"));
	assert_int_equal(world_run(w), UNIT_WON);
	assert_int_equal(read_batch(w).due_at, 0);
	stamp = world_begin(w);
	account_add_credit(&w->unit, &stamp, ACCOUNT, 4, slice_str("enough"));
	assert_int_equal(world_run(w), UNIT_WON);
	assert_int_equal(read_batch(w).due_at, START_MS);
	assert_int_equal(hold(w), HX_OK);
	assert_batch(w, BATCH_COMPLETED, 0);
}

static void others_tear_down(struct world *w)
{
	fake_clock_advance_ms(&w->clock, 1000);
	flag(w);
	assert_int_equal(hold(w), HX_OK);
	assert_batch(w, BATCH_CANCELLED, BALANCE);
}

static void test_late_success(void **state)
{
	struct world *w = *state;

	define("'item_action':'render','cleanup_action':'delete','concurrency':1");
	create_three(w);
	fixture.meanwhile = others_tear_down;
	fixture.overrun = true;
	(void)hold(w);
	assert_string_equal(tell(w, &stmt_items),
			    "0:UNKNOWN:10:cancelled late 1:PENDING:0:cancelled 2:PENDING:0:cancelled");
	assert_non_null(strstr(tell(w, &stmt_jobs), "delete /0/cleanup/late/1 {"));
	assert_batch(w, BATCH_CANCELLED, BALANCE);
}

static void others_hold(struct world *w)
{
	fake_clock_advance_ms(&w->clock, 1000);
	assert_int_equal(hold(w), HX_OK);
}

static void test_a_success_that_was_given_up(void **state)
{
	struct world *w = *state;

	define("'item_action':'once','concurrency':1");
	create_three(w);
	fixture.meanwhile = others_hold; /* who find it in doubt, leave it to a person, and do the others */
	fixture.overrun = true;
	(void)hold(w);
	assert_string_equal(tell(w, &stmt_items), "0:SUCCEEDED:10? 1:SUCCEEDED:200 2:SUCCEEDED:3");
	assert_batch(w, BATCH_COMPLETED, BALANCE - 213);
}

/* The lease was over before the call was sent: nobody has to wonder about it, and it is not paid for. */
static void test_a_call_that_was_never_begun(void **state)
{
	struct world *w = *state;

	define("'item_action':'once','concurrency':1");
	create_three(w);
	fixture.script = "lost";
	assert_int_equal(hold(w), HX_OK);
	assert_string_equal(tell(w, &stmt_items), "0:PENDING:0 1:PENDING:0 2:PENDING:0");
	assert_batch(w, BATCH_RUNNING, BALANCE);
	fake_clock_advance_ms(&w->clock, 1000);
	assert_int_equal(hold(w), HX_OK);
	assert_string_equal(tell(w, &stmt_items), "0:SUCCEEDED:10 1:SUCCEEDED:200 2:SUCCEEDED:3");
}

/* Others have asked, were told that it was not done, and gave it back; then it was. Who tries it next asks first. */
static void test_a_success_behind_a_probe(void **state)
{
	struct world *w = *state;

	define("'item_action':'asked','on_unknown':'probe','concurrency':1,'retry':{'initial':'10s','jitter':false}");
	create_three(w);
	fixture.script = "not ok ok ok";
	fixture.meanwhile = others_hold;
	fixture.overrun = true;
	(void)hold(w);
	assert_string_equal(tell(w, &stmt_items), "0:PENDING:0? 1:SUCCEEDED:200 2:SUCCEEDED:3");
	assert_string_equal(fixture.calls, "asked /0 #1; ask /0/probe/ask #2; asked /1 #1; asked /2 #1; ");
	fake_clock_advance_ms(&w->clock, 10000);
	fixture.script = "done";
	assert_int_equal(hold(w), HX_OK);
	assert_string_equal(fixture.calls,
			    "asked /0 #1; ask /0/probe/ask #2; asked /1 #1; asked /2 #1; ask /0/probe/ask #3; ");
	assert_string_equal(tell(w, &stmt_items), "0:SUCCEEDED:10? 1:SUCCEEDED:200 2:SUCCEEDED:3");
	assert_batch(w, BATCH_COMPLETED, BALANCE - 213);
}

static void test_outputs_that_are_too_long(void **state)
{
	struct world *w = *state;

	memset(long_output, 'x', sizeof long_output - 1);
	long_output[0] = long_output[sizeof long_output - 2] = '"';
	define("'item_action':'render','cleanup_action':'delete','concurrency':1");
	create_three(w);
	fixture.script = "long ok ok";
	assert_int_equal(hold(w), HX_OK);
	assert_string_equal(tell(w, &stmt_items), "0:SUCCEEDED:10 1:SUCCEEDED:200 2:SUCCEEDED:3");
	assert_batch(w, BATCH_COMPLETED, BALANCE - 213);
}

static void late_comer(struct world *w)
{
	sql(w, "UPDATE hx_batch_item SET late = '\"late one\"', output = NULL, status = 'UNKNOWN' WHERE n = 0;"
	       " UPDATE hx_batch SET late = late + 1, succeeded = succeeded - 1, unknown = unknown + 1");
}

static void flag_once(struct world *w)
{
	flag(w);
	fixture.meanwhile = late_comer; /* while the first pass is at it */
}

/* A late success during the cleanup: there is another pass, and it is told what came late. */
static void test_late_during_the_cleanup(void **state)
{
	struct world *w = *state;

	define("'item_action':'render','cleanup_action':'delete','concurrency':1");
	create_three(w);
	fixture.meanwhile = flag_once;
	assert_int_equal(hold(w), HX_OK);
	assert_batch(w, BATCH_CANCELLING, BALANCE);
	fake_clock_advance_ms(&w->clock, 1);
	assert_int_equal(hold(w), HX_OK);
	assert_batch(w, BATCH_CANCELLED, BALANCE);
	assert_string_equal(fixture.calls, "render /0 #1; delete /0/cleanup/1 #1; delete /0/cleanup/2 #1; ");
	assert_non_null(strstr(fixture.body, "\"output\":\"late one\""));
}

/* A loader is lost, and somebody cancels before anybody has noticed. */
static void test_cancel_of_a_lost_load(void **state)
{
	struct world *w = *state;
	struct batch_row row;
	struct stamp stamp;

	define("'item_action':'render'");
	create(w, "[[10,\"1\"]]", 1);
	sql(w, "UPDATE hx_subject SET status = 'PENDING' WHERE id = 77; UPDATE hx_batch SET due_at = NULL");
	row = read_batch(w);
	stamp = world_begin(w);
	batch_load_more(&w->unit, &stamp, &row, LEASE_MS);
	assert_int_equal(world_run(w), UNIT_WON);
	cancel(w, HX_WRONG_STATUS, false, false);
	fake_clock_advance_ms(&w->clock, LEASE_MS);
	cancel(w, HX_OK, /* seized= */ true, false);
	assert_batch(w, BATCH_CANCELLED, BALANCE);
}

/* Every unit in turn has its answer lost, after it has landed: nothing is done twice. */
static void test_lost_answers(void **state)
{
	struct world *w = *state;

	define("'item_action':'render','cleanup_action':'delete','concurrency':1,'done_after_effect':['tell']");
	create_three(w);
	fixture.fail_commits = 3;
	fixture.script = "ok failed ok";
	for (int i = 0; i < 30 && !batch_is_terminal(read_batch(w).status); i++) {
		fixture.fail_commits += i < 10 ? 2 : 0;
		(void)hold(w);
		if (i == 1)
			flag(w);
		fake_clock_advance_ms(&w->clock, 2000);
	}
	assert_batch(w, BATCH_CANCELLED, BALANCE);
	assert_null(strstr(fixture.calls, "/0 #2"));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, world_set_up, world_tear_down)
	const struct CMUnitTest tests[] = {
		TEST(completes),
		TEST(failures_are_returned_and_retried),
		TEST(unknown_outcomes),
		TEST(unsettled),
		TEST(not_before),
		TEST(hold_and_probe),
		TEST(hold),
		TEST(cancel_of_a_queued_one),
		TEST(cancel_of_a_running_one),
		TEST(cleanup_that_fails),
		TEST(takeover_voids_what_is_in_doubt),
		TEST(many_are_in_doubt),
		TEST(takeover_does_not_pay_twice),
		TEST(out_of_credit),
		TEST(late_success),
		TEST(a_success_that_was_given_up),
		TEST(a_call_that_was_never_begun),
		TEST(a_success_behind_a_probe),
		TEST(outputs_that_are_too_long),
		TEST(late_during_the_cleanup),
		TEST(cancel_of_a_lost_load),
		TEST(lost_answers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
