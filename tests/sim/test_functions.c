/*
 * Functions, walked through at random: two workers of one name and the node that looks, with crashes, leases that lapse, commits whose
 * answers are lost. Each worker replays the journal and goes on as a client does; it sends every call twice, and an old one once more
 * after a newer one. The code is: a sleep, and a claimed step beside it; then it is suspended on the sleep; then it is completed.
 *
 * On every edge:
 *  F1  A seq names one change for ever: the same number never means two things.
 *  F2  An entry that has ended does not change; a step that is done never begins again.
 *  F3  A call of a turn that is over is not taken; a call is taken once; two workers never have the same turn.
 *  F4  The effect of the claimed step happens once at most: an unknown outcome is held.
 *  F5  From where nothing goes on but time it comes to its end, or waits for a person.
 *  F6  Nothing is open where it is COMPLETED, and no step is begun that nobody has the turn of.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/hash.h"
#include "flow/run_verb.h"
#include "sim/explore.h"
#include "sim/invariant.h"
#include "sim/walks.h"
#include "sim/well.h"
#include "sim/world.h"
#include "support/must_hold.h"

#define RUN 1
#define LEASE_MS 60000
#define SLEEP_MS 1000
#define SEQ_MAX 40
#define ENTRIES_MAX 4
#define ROUNDS_MAX 60

/* ---- the store, seen from here ---- */

/* clang-format off */

#define STMT(id, columns, text) static const struct db_stmt id = {.name = #id, .sql = text, .in = "", .out = columns}
STMT(stmt_setup_run, "", "INSERT INTO hx_run (subject, workspace, workflow, definition_version, requester, input, created_at)"
	" VALUES (1, 'default', 'f', 0, 'me', '{}', hx_now_ms())");
STMT(stmt_setup_function, "", "INSERT INTO hx_function (subject, workspace, name, turn_at) VALUES (1, 'default', 'f', hx_now_ms())");
STMT(stmt_setup_poll, "", "INSERT INTO hx_function_poll (workspace, name, version, at) VALUES ('default', 'f', '1', 9000000000000000)");
STMT(stmt_claimable, "i", "SELECT subject FROM hx_function WHERE turn_at <= hx_now_ms()");
STMT(stmt_looks, "i", "SELECT f.subject FROM hx_function f JOIN hx_subject s ON s.id = f.subject WHERE f.due_at <= hx_now_ms()"
	" OR (s.owner IS NOT NULL AND s.until <= hx_now_ms())");
STMT(stmt_moment, "i", "SELECT min(m) FROM (SELECT due_at AS m FROM hx_function UNION ALL SELECT turn_at FROM hx_function"
	" UNION ALL SELECT until FROM hx_subject) WHERE m > hx_now_ms()");
STMT(stmt_hash_function, "tiiiittitii", "SELECT version, seq, taken_seq, cold_seq, entries_n, body_hash, awaits, lapses, held, turn_at, due_at"
	" FROM hx_function");
STMT(stmt_entries, "iitti", "SELECT i, seq, state, name, ended FROM hx_entry ORDER BY i");
STMT(stmt_stands, "ttii", "SELECT s.status, r.awaits, s.owner IS NOT NULL, f.seq FROM hx_subject s JOIN hx_run r ON r.subject = s.id"
	" JOIN hx_function f ON f.subject = s.id WHERE s.id = 1");

/* clang-format on */

static bool rows_changed;

static struct unit_result ask_store(struct sim *sim, const struct db_stmt *stmt)
{
	LOCAL_UNIT(unit);

	unit_add(&unit, UNIT_ANY, stmt, 0, NULL);
	return sim_run_unit(sim, &unit);
}

static bool is_claimable(struct sim *sim)
{
	return ask_store(sim, &stmt_claimable).rows[0].n > 0;
}

static bool is_to_be_looked_at(struct sim *sim)
{
	return ask_store(sim, &stmt_looks).rows[0].n > 0;
}

static int64_t next_moment(struct sim *sim)
{
	struct unit_result result = ask_store(sim, &stmt_moment);
	const struct db_value *cell = db_cell(&result.rows[0], 0, 0);

	return cell->type == DB_NULL ? INT64_MAX : cell->i;
}

static uint64_t hash_all(struct sim *sim, uint64_t hash)
{
	return sim_hash_answer(sim, &stmt_entries, sim_hash_answer(sim, &stmt_hash_function, hash));
}

static struct {
	uint64_t tables;
	struct sim_row row;
} before;

static void before_unit(struct sim *sim, const struct unit *unit UNUSED)
{
	before.tables = hash_all(sim, 1);
	if (!sim_read_row(sim, RUN, &before.row))
		before.row = (struct sim_row){0};
}

static void after_unit(struct sim *sim, const struct unit *unit, enum unit_verdict verdict)
{
	const struct unit_line *first = &unit->lines[0], *moved = &unit->lines[FUNCTION_LINE_SUBJECT];
	const char *name = unit->lines_n ? first->stmt->name : "";

	rows_changed |= verdict == UNIT_WON;
	if (verdict != UNIT_WON && hash_all(sim, 1) != before.tables)
		sim_violate(sim, "I4: a unit that was %s left something of a function", unit_verdict_name(verdict));
	if (verdict != UNIT_WON)
		return;
	if (strcmp(name, "function_beat") == 0 && first->params[1].i != before.row.fence)
		sim_violate(sim, "F3: a stale heartbeat has kept the turn of another");
	if (unit->lines_n > FUNCTION_LINE_SUBJECT && strcmp(moved->stmt->name, "function_move") == 0 &&
	    moved->params[8].i && before.row.until > sim->clock.wall.ms)
		sim_violate(sim, "F3: a turn was ended whose lease was not over");
}

static void tell(struct sim *sim, struct strbuf *words)
{
	struct unit_result result = ask_store(sim, &stmt_entries);
	const struct db_rows *rows = &result.rows[0];

	for (size_t i = 0; i < rows->n; i++)
		strbuf_addf(words, ", %.*s seq %lld %.*s", SLICE_ARGS(db_cell(rows, i, 3)->s),
			    (long long)db_cell(rows, i, 1)->i, SLICE_ARGS(db_cell(rows, i, 2)->s));
}

static const struct sim_rows rows_of_functions = {next_moment, hash_all, before_unit, after_unit, tell, .locked = NULL};

/* ---- a worker ---- */

static const struct function_polled polled = {.name = {"f", 1}, .version = {"1", 1}};
static const struct function_claim_request claim_request = {.workspace = {"default", 7},
							    .worker = {"w", 1},
							    .polled_n = 1,
							    .polled = &polled,
							    .max = 1,
							    .lease_ms = LEASE_MS};

static const struct run_machine *no_machine(const void *context UNUSED, struct slice workflow UNUSED,
					    int64_t version UNUSED)
{
	return NULL;
}

#define STEP(to)                                                                                                       \
	{                                                                                                              \
		.kind = ENTRY_STEP, .state = to, .name = {"a", 1}, .retry_after_ms = -1, .detail = {"{}", 2},          \
		.policy = {"claimed hold", 12}, .output = {                                                            \
			to == ENTRY_DONE ? "1" : NULL,                                                                 \
			to == ENTRY_DONE                                                                               \
		}                                                                                                      \
	}
static const struct function_change asks_both[] = {
	{.kind = ENTRY_SLEEP, .name = {"s", 1}, .for_ms = SLEEP_MS, .retry_after_ms = -1, .detail = {"{}", 2}},
	STEP(ENTRY_BEGUN)};
static const struct function_change begins[] = {STEP(ENTRY_BEGUN)};
static const struct function_change outcomes[] = {STEP(ENTRY_DONE), STEP(ENTRY_FAILED), STEP(ENTRY_UNKNOWN)};
static const struct function_awaited awaited = {.kind = ENTRY_SLEEP, .name = {"s", 1}};

/*
 * CLAIMS ─▶ BEATS ─▶ SENDS, AGAIN ─┬▶ WORKS ─▶ SENDS, AGAIN ─▶ LATE: an old one once more ─▶ SENDS, AGAIN: the end ─▶ ENDED
 *    └ none: ENDED                 └▶ the end
 */
struct worker {
	struct task task;
	enum { CLAIMS, BEATS, SENDS, AGAIN, WORKS, LATE, ENDED } at;
	int64_t fence, seq;                   /* fence 0: it has no turn */
	bool s_there, s_done, a_done, a_lost; /* what it knows of the journal */
	const char *wrong;
	struct arena *texts;
	struct function_request *rq, *old; /* the call under way, and one before it */
	union {
		struct task inner;
		struct function_claim claim;
		struct function_call call;
	};
};

static void begin_call(struct worker *w, struct function_request *rq, int at, const struct answer *answer)
{
	w->at = at;
	w->rq = rq;
	function_call_init(&w->call, rq, w->texts);
	w->inner.kind->take(&w->inner, &(struct answer){.kind = ANSWER_START, .now = answer->now, .ids = answer->ids});
}

static void send(struct worker *w, struct function_request what, int at, const struct answer *answer)
{
	struct function_request *rq = arena_zalloc(w->texts, sizeof *rq);
	char text[80];

	snprintf(text, sizeof text, "%lld %lld %d %zu", (long long)w->fence, (long long)w->seq, what.end.state,
		 what.changes_n);
	*rq = what;
	rq->workspace = slice_str("default");
	rq->subject = RUN;
	rq->worker = slice_str("w");
	rq->fence = w->fence;
	rq->seq = w->seq;
	rq->hash = arena_copy(w->texts, slice_str(text));
	rq->machine_of = no_machine;
	begin_call(w, rq, at, answer);
}

/* The code, as far as it has come. */
static void go_on(struct worker *w, const struct answer *answer)
{
	if (w->a_lost)
		send(w, (struct function_request){.end = {.state = END_FAILED}}, SENDS, answer);
	else if (!w->a_done)
		send(w,
		     (struct function_request){.changes_n = w->s_there ? 1 : 2,
					       .changes = w->s_there ? begins : asks_both},
		     SENDS, answer);
	else if (!w->s_done)
		send(w, (struct function_request){.end = {.state = END_SUSPENDED, .awaits_n = 1, .awaits = &awaited}},
		     SENDS, answer);
	else
		send(w, (struct function_request){.end = {.state = END_COMPLETED, .output = {"1", 1}}}, SENDS, answer);
}

static void know(struct worker *w, const struct function_entry *e)
{
	if (e->kind == ENTRY_SLEEP) {
		w->s_there = true;
		w->s_done = e->state == ENTRY_DONE;
	} else if (e->kind == ENTRY_STEP) {
		w->a_done = e->state == ENTRY_DONE;
		w->a_lost = e->state == ENTRY_FAILED;
		if (e->state == ENTRY_BEGUN || e->state == ENTRY_UNKNOWN)
			w->wrong = "F4: a turn was handed out while the outcome of a claimed step is unknown";
	}
}

static void claimed(struct worker *w, const struct answer *answer)
{
	const struct function_turn *turn = w->claim.n ? &w->claim.turns[0] : NULL;

	w->at = ENDED;
	if (!turn)
		return;
	w->fence = turn->row.fence;
	w->seq = turn->row.seq;
	for (size_t i = 0; i < turn->journal_n; i++)
		know(w, &turn->journal[i]);
	send(w, (struct function_request){0}, BEATS, answer);
}

/* What it was told, of a call that it has sent. */
static void told(struct worker *w)
{
	const struct function_work *work = &w->call.work;

	w->seq = work->seq;
	for (size_t i = 0; i < work->ended_n; i++)
		know(w, &work->ended[i]);
	for (size_t i = 0; i < work->n && work->taken; i++)
		if (work->entries[i]->ends_now)
			know(w, work->entries[i]);
	w->s_there |= w->rq->changes_n == 2;
}

static void judge(struct worker *w, enum hx_code code)
{
	const struct function_work *work = &w->call.work;

	if (code == HX_STALE_FENCE || code == HX_STORE_UNAVAILABLE || code == HX_BUSY)
		return;
	if (work->taken && work->row.fence != w->fence)
		w->wrong = "F3: a call of a turn that is over was taken";
	if (w->at == AGAIN && (code || work->taken))
		w->wrong = "F3: a call that was taken is not told again";
	if (w->at == LATE && code != HX_SEQ_CONFLICT)
		w->wrong = "F3: an old call after a newer one is not refused";
	if (w->at == SENDS && code)
		w->wrong = "a call that fits was refused";
}

static void answered(struct worker *w, enum hx_code code, const struct answer *answer)
{
	bool begins_a = w->rq->changes_n && w->rq->changes[w->rq->changes_n - 1].state == ENTRY_BEGUN;

	judge(w, code);
	if (code && w->at != LATE) {
		w->at = ENDED; /* somebody else has the turn, or nobody knows: its lease ends by itself */
	} else if (w->at == BEATS || w->at == LATE) {
		if (!code)
			told(w);
		go_on(w, answer);
	} else if (w->at == SENDS) {
		begin_call(w, w->rq, AGAIN, answer);
	} else if (w->rq->end.state) {
		w->at = ENDED;
	} else if (begins_a) {
		told(w);
		w->old = w->rq;
		w->at = WORKS;
	} else {
		told(w);
		begin_call(w, w->old, LATE, answer);
	}
	if (w->at == ENDED)
		w->fence = 0;
}

static void worked(struct worker *w, enum act_outcome outcome, const struct answer *answer)
{
	const struct function_change *change = &outcomes[outcome == ACT_OK ? 0 : outcome == ACT_FAILED ? 1 : 2];

	send(w, (struct function_request){.changes_n = 1, .changes = change}, SENDS, answer);
	w->a_done = outcome == ACT_OK;
	w->a_lost = outcome != ACT_OK;
}

static void worker_take(struct task *task, const struct answer *answer)
{
	struct worker *w = (struct worker *)task;
	struct unit memory;
	struct ask ask = {.unit = &memory};

	if (w->at == WORKS) {
		worked(w, answer->outcome, answer);
		return;
	}
	w->inner.kind->take(&w->inner, answer);
	w->inner.kind->ask(&w->inner, &ask);
	if (ask.kind != ASK_DONE)
		return;
	if (w->at == CLAIMS)
		claimed(w, answer);
	else
		answered(w, ask.code, answer);
}

static void worker_ask(const struct task *task, struct ask *ask)
{
	static const struct action work = {.name = "work"};
	const struct worker *w = (const struct worker *)task;

	if (w->at == ENDED) {
		ask->kind = ASK_DONE;
		ask->code = HX_OK;
	} else if (w->at == WORKS) {
		ask->kind = ASK_ACT;
		ask->act = (struct act_call){.action = &work, .key = slice_str("run_1/a/0"), .attempt = 1};
	} else {
		w->inner.kind->ask(&w->inner, ask);
		if (w->at == CLAIMS)
			unit_touch(ask->unit, RUN);
	}
}

static const char *worker_where(const struct task *task)
{
	static const char *const names[] = {"claiming", "sending a heartbeat", "sending", "sending again",
					    "working",  "sending an old one",  "done"};

	return names[((const struct worker *)task)->at];
}

static const struct task_kind worker_kind = {
	.name = "worker", .size = sizeof(struct worker), .take = worker_take, .ask = worker_ask, .where = worker_where};

static void init_worker(union sim_task *task, const void *plan UNUSED, struct arena *texts)
{
	struct worker *w = (struct worker *)task;

	_Static_assert(sizeof *w <= SIM_TASK_BYTES, "a worker fits");
	memset(w, 0, sizeof *w);
	w->texts = texts;
	function_claim_init(&w->claim, &claim_request, texts);
	task_init(&w->task, &worker_kind, /* topic= */ 0);
}

static void init_look(union sim_task *task, const void *plan UNUSED, struct arena *texts)
{
	_Static_assert(sizeof(struct function_look) <= SIM_TASK_BYTES, "a look fits");
	function_look_init((struct function_look *)task, RUN, texts);
}

/* ---- what must hold ---- */

struct notes {
	uint64_t at[SEQ_MAX];        /* what each seq has meant */
	uint64_t ended[ENTRIES_MAX]; /* entries that have ended, as they were */
};

static void check_entry(struct sim *sim, struct notes *notes, const struct db_rows *rows, size_t row, uint64_t *seen)
{
	int64_t i = db_cell(rows, row, 0)->i, seq = db_cell(rows, row, 1)->i;
	struct slice state = db_cell(rows, row, 2)->s;
	uint64_t hash = hash_mix(hash_bytes(1, state.p, state.n), (uint64_t)i + 1);

	assert_true(i < ENTRIES_MAX && seq >= 0 && seq < SEQ_MAX);
	if (!seq)
		sim_violate(sim, "F1: entry %lld has changed without a seq", (long long)i);
	if (notes->at[seq] && notes->at[seq] != hash)
		sim_violate(sim, "F1: seq %lld means two things", (long long)seq);
	if (*seen & UINT64_C(1) << seq)
		sim_violate(sim, "F1: two entries have the seq %lld", (long long)seq);
	*seen |= UINT64_C(1) << seq;
	notes->at[seq] = hash;
	hash = hash_mix(hash, (uint64_t)seq);
	if (notes->ended[i] && notes->ended[i] != hash)
		sim_violate(sim, "F2: entry %lld had ended, and has changed", (long long)i);
	notes->ended[i] = db_cell(rows, row, 4)->i ? hash : 0;
}

static void check_journal(struct sim *sim)
{
	struct notes *notes = (struct notes *)sim->state.notes;
	struct unit_result entries = ask_store(sim, &stmt_entries);
	const struct db_rows *rows = &entries.rows[0];
	uint64_t seen = 0;
	bool begun = false, open = false;

	_Static_assert(sizeof *notes <= SIM_NOTES_BYTES, "the notes fit");
	for (size_t i = 0; i < rows->n; i++) {
		check_entry(sim, notes, rows, i, &seen);
		begun |= slice_is(db_cell(rows, i, 2)->s, "begun");
		open |= !db_cell(rows, i, 4)->i;
	}

	struct unit_result stands = ask_store(sim, &stmt_stands);
	const struct db_rows *stand = &stands.rows[0];

	if (begun && !db_cell(stand, 0, 2)->i)
		sim_violate(sim, "F6: a step is begun, and nobody has the turn");
	if (open && slice_is(db_cell(stand, 0, 0)->s, RUN_COMPLETED))
		sim_violate(sim, "F6: it is COMPLETED, and something is open");
}

static void check(struct sim *sim)
{
	int64_t fences[2] = {0};

	for (unsigned i = 0; i < 2; i++) {
		const struct sim_actor *actor = &sim->state.actors[i];
		const struct worker *w = (const struct worker *)&actor->task;

		if (actor->state == SIM_DEAD || actor->task.task.kind != &worker_kind)
			continue;
		if (w->wrong)
			sim_violate(sim, "%s", w->wrong);
		fences[i] = w->fence;
	}
	if (fences[0] && fences[0] == fences[1])
		sim_violate(sim, "F3: two workers have the turn with fence %lld", (long long)fences[0]);
	if (world_repeated(sim))
		sim_violate(sim, "F4: the effect of a claimed step happened twice");
	if (rows_changed) {
		rows_changed = false;
		check_journal(sim);
	}
}

static bool settle_one(struct sim *sim, int64_t *id)
{
	union sim_task task;

	task.task.kind = NULL;
	if (is_to_be_looked_at(sim))
		init_look(&task, NULL, &sim->texts);
	else if (is_claimable(sim))
		init_worker(&task, NULL, &sim->texts);
	if (task.task.kind) {
		go_well(sim, &task.task, id, ROUNDS_MAX, /* committed= */ NULL);
		return true;
	}
	return false;
}

static void settled(struct sim *sim)
{
	struct unit_result stands;
	const struct db_value *awaits;
	char words[40];

	stands = ask_store(sim, &stmt_stands);
	awaits = db_cell(&stands.rows[0], 0, 1);
	snprintf(words, sizeof words, "%.*s", SLICE_ARGS(db_cell(&stands.rows[0], 0, 0)->s));
	if (!run_is_terminal(words) && (awaits->type == DB_NULL || !slice_is(awaits->s, RUN_AWAITS_PERSON)))
		sim_violate(sim, "F5: when all goes well, it stays %s for ever", words);
}

static void quiet(struct sim *sim)
{
	static const struct well well = {settle_one, settled, ROUNDS_MAX,
					 "F5: it does not come to rest although all goes well"};

	try_well(sim, &well);
	rows_changed = true;
}

static void setup(struct sim *sim)
{
	(void)ask_store(sim, &stmt_setup_run);
	(void)ask_store(sim, &stmt_setup_function);
	(void)ask_store(sim, &stmt_setup_poll);
}

static void walk(struct sim_scenario scenario)
{
	scenario.subjects_n = 1;
	scenario.kind = function_kind();
	scenario.initial = RUN_PENDING;
	scenario.driven = true;
	scenario.nodes_n = 3;
	scenario.cast_n = 3;
	scenario.cast[0] = (struct sim_cast){"worker-1", 0, true, init_worker, NULL, is_claimable};
	scenario.cast[1] = (struct sim_cast){"worker-2", 1, true, init_worker, NULL, is_claimable};
	scenario.cast[2] = (struct sim_cast){"node", 2, true, init_look, NULL, is_to_be_looked_at};
	scenario.world = WORLD_PLAIN;
	scenario.setup = setup;
	scenario.check = check;
	scenario.quiet = quiet;
	scenario.rows = &rows_of_functions;
	(void)walk_at_random(&scenario, getenv("HAPAX_SOAK") ? 100000 : 600, 250);
}

static void walks_with_crashes(void **state UNUSED)
{
	walk((struct sim_scenario){.name = "a function, two workers and a node that die, lapse and hear no answer",
				   .bounds = {.lapses = 3, .crashes = 2, .lost_answers = 2, .failures = 1}});
}

static void walks_with_lapses(void **state UNUSED)
{
	walk((struct sim_scenario){.name = "a function, two workers that are slow", .bounds = {.lapses = 4}});
}

/* ---- one schedule each, that walks seldom find ---- */

static void begin_task(struct sim *sim, struct task *task)
{
	(void)task_take(task, task->turn, &(struct answer){.kind = ANSWER_START, .now = sim->state.now, .node = "n"});
}

/* One exchange with the store; false: it has ended. */
static bool exchange(struct sim *sim, struct task *task, enum hx_code *ret_code)
{
	static int64_t id = INT64_C(1) << 41;
	LOCAL_UNIT(unit);
	struct ask ask = {.unit = &unit};
	struct unit_result result;

	task->kind->ask(task, &ask);
	*ret_code = ask.code;
	if (ask.kind == ASK_DONE)
		return false;
	arena_reset(&sim->arena);
	result = sim_run_unit(sim, &unit);
	(void)task_take(
		task, task->turn,
		&(struct answer){
			.kind = ANSWER_COMMIT, .result = &result, .now = sim->state.now, .id = ++id, .node = "n"});
	return true;
}

static enum hx_code whole(struct sim *sim, struct task *task)
{
	enum hx_code code;

	while (exchange(sim, task, &code))
		;
	return code;
}

static struct sim *open_world(void)
{
	static struct sim_scenario scenario = {.name = "one schedule",
					       .subjects_n = 1,
					       .initial = RUN_PENDING,
					       .driven = true,
					       .nodes_n = 1,
					       .setup = setup,
					       .rows = &rows_of_functions};
	struct sim *sim = calloc(1, sizeof *sim);
	struct hx_error err;

	assert_non_null(sim);
	scenario.kind = function_kind();
	assert_int_equal(sim_open(sim, &scenario, &err), HX_OK);
	return sim;
}

/* The lease of whoever has the turn is over, and the next one has it. */
static struct function_claim claimed_by_the_next(struct sim *sim)
{
	struct function_look look;
	struct function_claim claim;

	sim_set_now(sim, (struct wall_time){sim->state.now.ms + LEASE_MS});
	function_look_init(&look, RUN, &sim->texts);
	begin_task(sim, &look.task);
	assert_int_equal(whole(sim, &look.task), HX_OK);
	function_claim_init(&claim, &claim_request, &sim->texts);
	begin_task(sim, &claim.task);
	assert_int_equal(whole(sim, &claim.task), HX_OK);
	assert_int_equal(claim.n, 1);
	return claim;
}

/* It has claimed, and does not know what. */
static void claim_half(struct sim *sim, struct function_claim *claim)
{
	enum hx_code code;

	function_claim_init(claim, &claim_request, &sim->texts);
	begin_task(sim, &claim->task);
	assert_true(exchange(sim, &claim->task, &code));
}

static void a_claim_hears_of_its_turn_whatever_came_meanwhile(void **state UNUSED)
{
	struct run_verb_request event = {.kind = RUN_EVENT,
					 .workspace = {"default", 7},
					 .subject = RUN,
					 .name = {"x", 1},
					 .policy = &(struct run_policy){.machine_of = no_machine}};
	struct sim *sim = open_world();
	struct function_claim claim;
	struct run_verb verb;

	claim_half(sim, &claim);
	run_verb_init(&verb, &event, &sim->texts);
	begin_task(sim, &verb.task);
	assert_int_equal(whole(sim, &verb.task), HX_OK);
	assert_int_equal(whole(sim, &claim.task), HX_OK);
	assert_int_equal(claim.n, 1);
	sim_close(sim);
	free(sim);
}

static void a_claim_that_comes_back_late_has_nothing(void **state UNUSED)
{
	struct sim *sim = open_world();
	struct function_claim late;

	claim_half(sim, &late);
	(void)claimed_by_the_next(sim);
	assert_int_equal(whole(sim, &late.task), HX_OK);
	MUST_HOLD(late.n == 0, "a claim that came back late has the turn of the next");
	sim_close(sim);
	free(sim);
}

static void a_stale_heartbeat_keeps_nothing(void **state UNUSED)
{
	struct sim *sim = open_world();
	struct function_claim claim;
	struct function_call beat;
	struct function_request rq = {
		.workspace = {"default", 7}, .subject = RUN, .worker = {"w", 1}, .hash = {"x", 1}};
	enum hx_code code;

	function_claim_init(&claim, &claim_request, &sim->texts);
	begin_task(sim, &claim.task);
	assert_int_equal(whole(sim, &claim.task), HX_OK);
	rq.fence = claim.turns[0].row.fence;
	function_call_init(&beat, &rq, &sim->texts);
	begin_task(sim, &beat.task);
	assert_true(exchange(sim, &beat.task, &code)); /* it has read that the turn is its */
	(void)claimed_by_the_next(sim);
	code = whole(sim, &beat.task);
	MUST_HOLD(code == HX_STALE_FENCE, "a stale heartbeat has kept the turn of another");
	sim_close(sim);
	free(sim);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(walks_with_crashes),
		cmocka_unit_test(walks_with_lapses),
		cmocka_unit_test(a_claim_hears_of_its_turn_whatever_came_meanwhile),
		cmocka_unit_test(a_claim_that_comes_back_late_has_nothing),
		cmocka_unit_test(a_stale_heartbeat_keeps_nothing),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
