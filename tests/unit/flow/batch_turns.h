/*
 * For tests of a batch over a real store, one node alone: the batch, its rows and books, and its tenures turn by turn.
 */
#ifndef HX_TESTS_UNIT_FLOW_BATCH_TURNS_H
#define HX_TESTS_UNIT_FLOW_BATCH_TURNS_H

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
	unsigned late_n;                    /* hands that said that their success came too late */
} fixture;

static inline const struct batch_machine *machine_of(const void *context, struct slice workflow, int64_t version)
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

static inline void define(const char *rest)
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

static inline void sql(struct world *w, const char *text)
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

static inline const char *tell(struct world *w, const struct db_stmt *stmt)
{
	static char text[LOG_BYTES];

	unit_init(&w->unit, 0);
	unit_add(&w->unit, UNIT_ANY, stmt, 0, NULL);
	assert_int_equal(world_run(w), UNIT_WON);
	snprintf(text, sizeof text, "%.*s", SLICE_ARGS(db_cell(&w->result.rows[0], 0, 0)->s));
	return text;
}

static inline void check_books(struct world *w)
{
	unit_init(&w->unit, 0);
	unit_add(&w->unit, UNIT_ANY, &stmt_books, 0, NULL);
	assert_int_equal(world_run(w), UNIT_WON);
	for (size_t i = 0; w->result.rows[0].n && i < w->result.rows[0].columns; i += 2)
		if (world_int(w, 0, i) != world_int(w, 0, i + 1))
			fail_msg("the books do not agree in pair %zu: %lld and %lld", i / 2,
				 (long long)world_int(w, 0, i), (long long)world_int(w, 0, i + 1));
}

static inline struct batch_row read_batch(struct world *w)
{
	struct batch_row row;

	unit_init(&w->unit, 0);
	batch_read(&w->unit, slice_str(""), BATCH);
	assert_int_equal(world_run(w), UNIT_WON);
	assert_int_equal(w->result.rows[0].n, 1);
	batch_row_take(&w->result.rows[0], 0, &policy, &w->arena, &row);
	return row;
}

static inline void assert_batch(struct world *w, const char *status, int64_t balance)
{
	struct batch_row row = read_batch(w);

	assert_string_equal(row.status, status);
	assert_int_equal(row.balance, balance);
	if (!batch_is_terminal(status) && strcmp(status, BATCH_PENDING) != 0)
		assert_true(row.owned || row.due_at || row.needs > row.balance); /* B7 */
}

/* Items of these costs: [[cost, "input"], …] */
static inline void create(struct world *w, const char *rows, int64_t total)
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

static inline void create_three(struct world *w)
{
	create(w, "[[10,\"\\\"a\\\"\"],[200,\"{\\\"x\\\":1}\"],[3,\"null\"]]", 3);
}

/* ---- turns ---- */

static inline void note_call(const struct act_call *call)
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

static inline void answer_call(struct world *w, struct answer *answer)
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
	void (*meanwhile)(struct world * w) = fixture.meanwhile;
	size_t n, i = 0;

	if (meanwhile) {
		fixture.meanwhile = NULL;
		meanwhile(w);
		answer->overrun = fixture.overrun;
	}
	/* Only now: what happens meanwhile has calls of its own, which come first in the script. */
	n = fixture.script ? strcspn(fixture.script, " ") : 0;
	fixture.crashed = n == 5 && strncmp(fixture.script, "crash", n) == 0;
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

static inline void run_turn(struct world *w, struct task *task)
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
static inline enum hx_code hold_of(struct world *w, const struct batch_hold *hold)
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
			code = turn.lead.task.code;
			batch_tenure_led(&tenure, &turn.lead);
			break;
		case TURN_HAND:
			batch_hand_init(&turn.hand, &tenure.hold, &arena);
			run_turn(w, &turn.hand.task);
			if (fixture.crashed) {
				arena_release(&arena);
				return HX_STOPPING;
			}
			fixture.late_n += turn.hand.late;
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

static inline enum hx_code hold(struct world *w)
{
	return hold_of(w, NULL);
}

static inline void cancel(struct world *w, enum hx_code code, bool seized, bool accepted)
{
	struct batch_cancel c;
	struct arena arena;

	arena_init(&arena, 1u << 20);
	batch_cancel_init(&c, slice_str("default"), BATCH, &policy, &arena);
	run_turn(w, &c.task);
	assert_string_equal(hx_code_name(c.task.code), hx_code_name(code));
	assert_int_equal(c.seized, seized);
	assert_int_equal(c.accepted, accepted);
	if (c.seized)
		(void)hold_of(w, &c.hold);
	check_books(w);
	arena_release(&arena);
}

static inline void flag(struct world *w)
{
	cancel(w, HX_OK, /* seized= */ false, /* accepted= */ true);
}

#endif
