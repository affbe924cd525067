/*
 * What the simulations of batches share: the batch and its account, the checks, the walks. The world outside is in batch_world.h,
 * the nodes are in batch_tenures.h.
 *
 * On every edge: B1 to B8 of flow/batch.h as far as rows, calls and artifacts show them, and that whoever was told something
 * was told the truth. And from every state in which nothing goes on but time: if from there on all went well, the batch would
 * come to its end, or to where only money or a person can move it.
 */
#ifndef HX_TESTS_SIM_BATCHES_H
#define HX_TESTS_SIM_BATCHES_H

#include "flow/batch_verb.h"
#include "sim/batch_store.h"
#include "sim/batch_tenures.h"
#include "sim/explore.h"
#include "sim/invariant.h"
#include "sim/walks.h"
#include "sim/well.h"
#include "sim/world.h"
#include "task/pulse.h"

#define STATES_MAX 20000000
#define SETTLE_ROUNDS_MAX 200

/* ---- for the simulator ---- */

static inline uint64_t hash_rows_of_batch(struct sim *sim)
{
	uint64_t hash = sim_hash_answer(sim, &stmt_hash_batch, 1);

	hash = sim_hash_answer(sim, &stmt_hash_items, hash);
	return sim_hash_answer(sim, &stmt_hash_ledger, hash);
}

static inline uint64_t hash_all(struct sim *sim, uint64_t hash)
{
	const struct notes *notes = notes_of(sim);

	for (unsigned n = 0; n < ITEMS_MAX; n++) {
		const struct outside_item *item = &notes->items[n];

		hash = hash_mix(hash, item->there * 8u + item->voided * 4u + item->late * 2u + item->loose);
		hash = hash_mix(hash, (uint64_t)item->cleaned << 8 | item->drawn);
	}
	return hash_mix(hash_mix(hash, notes->refusals), notes->rows);
}

/* The next moment of the rows, on the grid where it is one of backoffs. */
static inline int64_t next_moment(struct sim *sim)
{
	const struct notes *notes = notes_of(sim);
	int64_t now = sim->state.now.ms, due = (notes->due_at + GRID_MS - 1) / GRID_MS * GRID_MS;
	int64_t next = notes->due_at > now ? due : INT64_MAX;

	return notes->owned && notes->until > now && notes->until < next ? notes->until : next;
}

static inline bool is_due(struct sim *sim)
{
	const struct notes *notes = notes_of(sim);
	int64_t now = sim->state.now.ms;

	return (notes->due_at && notes->due_at <= now) || (notes->owned && notes->until <= now);
}

static bool
	rows_changed; /* since the last check, whose notes say what they were: as far as nothing has, it need not look */
static uint64_t rows_before;

static inline void before_unit(struct sim *sim, const struct unit *unit)
{
	(void)unit;
	rows_before = rows_changed ? hash_rows_of_batch(sim) : notes_of(sim)->rows;
}

static inline bool ends_batch(const struct unit *unit)
{
	for (unsigned i = 0; i < unit->lines_n; i++)
		if (strcmp(unit->lines[i].stmt->name, "batch_completed") == 0 ||
		    strcmp(unit->lines[i].stmt->name, "batch_cancelled") == 0)
			return true;
	return false;
}

static inline void after_unit(struct sim *sim, const struct unit *unit, enum unit_verdict verdict)
{
	rows_changed |= verdict == UNIT_WON;
	if (verdict == UNIT_WON && ends_batch(unit) &&
	    db_cell(&ask_store(sim, &stmt_told_totals).rows[0], 0, 0)->i != 1)
		sim_violate(sim, "the totals that are told are not those with which the batch ends");
	if (verdict != UNIT_WON && hash_rows_of_batch(sim) != rows_before)
		sim_violate(sim, "I4: a unit that was %s left something of a batch behind", unit_verdict_name(verdict));
}

static inline void tell(struct sim *sim, struct strbuf *words)
{
	struct unit_result result = ask_store(sim, &stmt_tell);
	const struct notes *notes = notes_of(sim);

	strbuf_add_slice(words, db_cell(&result.rows[0], 0, 0)->s);
	for (unsigned n = 0; n < fixture.plan.items_n; n++)
		if (notes->items[n].there || notes->items[n].voided || notes->items[n].loose)
			strbuf_addf(words, "; outside, %u is%s%s%s", n, notes->items[n].there ? " there" : "",
				    notes->items[n].voided ? " voided" : "",
				    notes->items[n].loose ? " on its way" : "");
}

static const struct sim_rows rows_of_batches = {next_moment, hash_all, before_unit, after_unit, tell, .locked = NULL};

/* ---- what must hold ---- */

static inline void check_books(struct sim *sim)
{
	static const char *const words[] = {
		"B1: an entry of the ledger does not follow from the one before",
		"B1: the balance is not the sum of the ledger, or below zero",
		"B1: what an item is charged is not what its entries say",
		"B1: what the batch is charged is not the sum of its items",
		"B1: what was refunded is not what the cancelled items were charged, or not what the ledger says",
		"B2: an item is charged, or not, other than its status says",
		"a count of the batch is not that of its items",
		"B5: items are cancelled or refunded in a batch that is not being torn down",
		"B5: CANCELLED with an item that is not decided, or without a request",
		"B5: COMPLETED with an item that has not ended, or with its cancel requested",
		"B7: nothing will ever move the batch",
		"the batch is due while somebody holds it, or although it has ended",
		"the cancel of a batch that nobody holds is requested, and it is not due at once",
		"B8: an item exists behind the total",
		"the totals were not told exactly once when the batch ended",
		"a late success has no cleanup of its own, or several",
		"the batch is torn down and its cancel was not requested",
	};
	struct unit unit;

	unit_init(&unit, 0);
	UNIT_ADD(&unit, UNIT_ANY, &stmt_check, db_int(!fixture.plan.no_cleanup));

	struct unit_result result = sim_run_unit(sim, &unit);

	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (db_cell(&result.rows[0], 0, i)->type != DB_INT || db_cell(&result.rows[0], 0, i)->i)
			sim_violate(sim, "%s", words[i]);
}

static inline char first_letter(const struct db_value *v)
{
	return v->type == DB_NULL ? '\0' : v->s.p[0];
}

static inline bool has_ended(char status)
{
	return status == 'S' || status == 'F' || status == 'U';
}

/* What may become of an item, from one change to the next. */
static inline void check_step(struct sim *sim, unsigned n, const struct seen_item *was, const struct seen_item *is)
{
	const struct notes *notes = notes_of(sim);
	bool begun = is->attempt != was->attempt;

	if (begun && (has_ended(was->status) || was->decision))
		sim_violate(sim, "B3: item %u is begun once more although it has ended, or is decided", n);
	if (begun && notes->flagged)
		sim_violate(sim, "B4: item %u is begun although the cancel is requested", n);
	if (begun && (is->fence != notes->fence || strcmp(notes->status, BATCH_RUNNING) != 0))
		sim_violate(sim, "B4: item %u is begun by one who does not hold the batch, or not in RUNNING", n);
	if (has_ended(was->status) && is->status != was->status && was->status != 'U')
		sim_violate(sim, "B3: item %u had ended, and has another status now", n);
	if (was->decision && (is->decision != was->decision || is->charged != was->charged))
		sim_violate(sim, "B2: item %u was decided, and its decision or its charge has changed", n);
	if (!was->decision && is->decision == 'a' && notes->flagged)
		sim_violate(sim, "item %u is accepted although the cancel is requested", n);
	if (was->late && !is->late)
		sim_violate(sim, "a late success of item %u is forgotten", n);
}

static inline void check_items(struct sim *sim)
{
	struct notes *notes = notes_of(sim);
	struct unit_result result = ask_store(sim, &stmt_items);
	const struct db_rows *rows = &result.rows[0];
	bool was_flagged = notes->flagged;
	int64_t was_fence = notes->fence;
	char was[sizeof notes->status];

	ASSERT(rows->n == fixture.plan.items_n);
	memcpy(was, notes->status, sizeof was);
	snprintf(notes->status, sizeof notes->status, "%.*s", SLICE_ARGS(db_cell(rows, 0, 8)->s));
	notes->fence = db_cell(rows, 0, 9)->i;
	notes->owned = db_cell(rows, 0, 10)->i;
	notes->until = db_cell(rows, 0, 11)->i;
	notes->due_at = db_cell(rows, 0, 12)->i;
	for (unsigned n = 0; n < rows->n; n++) {
		struct seen_item is = {
			.status = first_letter(db_cell(rows, n, 1)),
			.decision = first_letter(db_cell(rows, n, 2)),
			.attempt = db_cell(rows, n, 3)->i,
			.fence = db_cell(rows, n, 4)->i,
			.charged = db_cell(rows, n, 5)->i,
			.late = db_cell(rows, n, 6)->i,
		};

		if (was[0])
			check_step(sim, n, &notes->seen[n], &is);
		if (is.late && !notes->seen[n].late && strcmp(notes->status, BATCH_CANCELLED) != 0)
			notes->items[n].late = false; /* now it is known, and has to be gone at the end */
		notes->seen[n] = is;
	}
	notes->flagged = db_cell(rows, 0, 7)->i;
	if (was_flagged && !notes->flagged)
		sim_violate(sim, "the request to cancel is forgotten");
	if (was_flagged && (strcmp(notes->status, BATCH_COMPLETED) == 0 ||
			    (strcmp(notes->status, BATCH_OUT_OF_CREDIT) == 0 && strcmp(was, BATCH_OUT_OF_CREDIT) != 0)))
		sim_violate(sim, "a batch whose cancel was requested came to %s", notes->status);
	if (was_flagged && notes->fence != was_fence && strcmp(notes->status, BATCH_RUNNING) == 0)
		sim_violate(sim, "a batch whose cancel was requested is claimed once more, to run");
}

/* A call that has just been begun: by its holder, about the right items, at the right time. */
static inline void check_begun(struct sim *sim, const char *name, const struct act_call *call)
{
	const struct notes *notes = notes_of(sim);
	const struct seen_item *item = &notes->seen[item_of(call)];
	struct mono_time now = {sim->state.now.ms * 1000000};

	if (call->lease.fence == 0)
		return; /* the network */
	if (!lease_is_trusted(&call->lease, now))
		sim_violate(sim, "%s begins a call under a lease that is over", name);
	if (call->lease.fence != notes->fence || !notes->owned)
		sim_violate(sim, "B4: %s begins a call and does not hold the batch", name);
	if ((calls(call, "draw") || calls(call, "ask")) && (item->status != 'R' || item->decision))
		sim_violate(sim, "%s draws an item that is not begun, or decided", name);
	if (calls(call, "delete") && (item->decision != 'c' || strcmp(notes->status, BATCH_CANCELLING) != 0))
		sim_violate(sim, "%s deletes what an item that is not cancelled has left", name);
	if (calls(call, "void") && (item->decision || strcmp(notes->status, BATCH_CANCELLING) != 0))
		sim_violate(sim, "%s voids the key of an item that may still be accepted, or is decided", name);
}

static inline void check_calls(struct sim *sim)
{
	struct notes *notes = notes_of(sim);

	for (unsigned i = 0; i < sim->scenario->cast_n; i++) {
		const struct sim_actor *actor = &sim->state.actors[i];
		struct act_call call;

		if (actor->state != SIM_ASKING || actor->ask != ASK_ACT) {
			notes->begun[i] = 0;
			continue;
		}
		if (notes->begun[i] == actor->task.task.turn + 1)
			continue;
		notes->begun[i] = actor->task.task.turn + 1;
		call = sim_call_of(actor);
		check_begun(sim, sim->scenario->cast[i].name, &call);
	}
}

/* B5, outside: what a cancelled item has left is gone, but for what came too late to be known. */
static inline void check_artifacts(struct sim *sim)
{
	const struct notes *notes = notes_of(sim);
	bool voids = fixture.machine->definition->item_action->void_action;

	if (strcmp(notes->status, BATCH_CANCELLED) != 0 || fixture.plan.no_cleanup)
		return;
	for (unsigned n = 0; n < fixture.plan.items_n; n++)
		if (notes->seen[n].decision == 'c' && notes->items[n].there && (voids || !notes->items[n].late))
			sim_violate(sim, "B5: CANCELLED, and the artifact of item %u is there", n);
}

/* Does nobody else cancel? Then what is there is its own. */
static inline bool cancels_alone(const struct sim *sim)
{
	unsigned n = 0;

	for (unsigned i = 0; i < sim->scenario->cast_n; i++)
		n += sim->scenario->cast[i].init == init_cancel;
	return n == 1;
}

/* Whoever was told something was told the truth. */
static inline void check_told(struct sim *sim, const char *name, const struct tenure_task *t)
{
	const struct notes *notes = notes_of(sim);
	bool cancelled = strcmp(notes->status, BATCH_CANCELLED) == 0;
	bool completed = strcmp(notes->status, BATCH_COMPLETED) == 0;

	if (t->told_ok && !cancelled)
		sim_violate(sim, "%s was told that the batch is cancelled, and it is %s", name, notes->status);
	if (t->told_accepted && !notes->flagged)
		sim_violate(sim, "%s was told that its cancel is accepted, and it is not requested", name);
	if (t->code == HX_ALREADY_COMPLETED && !completed)
		sim_violate(sim, "%s was told that it is too late, and the batch is %s", name, notes->status);
	if (t->code == HX_NOT_FOUND || t->code == HX_WRONG_STATUS || t->code == HX_CONFIG_ERROR)
		sim_violate(sim, "%s was told %s", name, hx_code_name(t->code));
	if (t->is_cancel && t->code && t->code != HX_OUTCOME_UNKNOWN && notes->flagged && cancels_alone(sim))
		sim_violate(sim, "%s was told %s, and its cancel is requested", name, hx_code_name(t->code));
}

/* A hand that heard of a success has written it down: as one, or as late. */
static inline void check_recorded(struct sim *sim, const char *name, unsigned recorded)
{
	const struct notes *notes = notes_of(sim);

	for (unsigned n = 0; n < fixture.plan.items_n; n++)
		if (recorded >> n & 1 && notes->seen[n].status != 'S' && !notes->seen[n].late)
			sim_violate(sim, "%s has recorded the success of item %u, and nothing tells of it", name, n);
}

static inline void check_verb(struct sim *sim, const char *name, const struct batch_verb *v)
{
	const struct seen_item *item = &notes_of(sim)->seen[v->rq->n];

	if (v->task.code == HX_OK && v->rq->kind == BATCH_ACCEPT && item->decision != 'a')
		sim_violate(sim, "%s was told that item %lld is accepted, and it is not", name, (long long)v->rq->n);
	if (v->task.code && v->task.code != HX_OUTCOME_UNKNOWN && v->rq->kind == BATCH_ACCEPT && item->decision == 'a')
		sim_violate(sim, "%s was told %s, and item %lld is accepted", name, hx_code_name(v->task.code),
			    (long long)v->rq->n);
	if (v->task.code == HX_OK && v->rq->kind == BATCH_RESOLVE && item->status != (v->rq->done ? 'S' : 'F'))
		sim_violate(sim, "%s was told that item %lld is resolved, and it is not", name, (long long)v->rq->n);
	if (v->task.code == HX_OK && v->rq->kind == BATCH_START && strcmp(notes_of(sim)->status, BATCH_PENDING) == 0)
		sim_violate(sim, "%s was told that the batch is started, and it is not", name);
}

static inline void check_actors(struct sim *sim)
{
	for (unsigned i = 0; i < sim->scenario->cast_n; i++) {
		const struct sim_actor *actor = &sim->state.actors[i];
		const char *name = sim->scenario->cast[i].name;

		if (actor->state == SIM_DEAD || !actor->task.task.kind)
			continue;
		if (actor->task.task.kind == &tenure_kind)
			check_recorded(sim, name, ((const struct tenure_task *)&actor->task)->recorded);
		if (actor->task.task.kind == &hands_kind)
			check_recorded(sim, name, ((const struct hands_task *)&actor->task)->recorded);
		if (actor->state != SIM_DONE)
			continue;
		if (actor->task.task.kind == &tenure_kind)
			check_told(sim, name, (const struct tenure_task *)&actor->task);
		else if (strcmp(actor->task.task.kind->name, "batch_verb") == 0)
			check_verb(sim, name, (const struct batch_verb *)&actor->task);
	}
}

/* The same rows are come to on many ways, and what a check of them looks at is in their hash. */
static inline void check_books_once(struct sim *sim, uint64_t rows)
{
	uint64_t books = sim_hash_answer(sim, &stmt_hash_books, rows);
	uint64_t *held = &fixture.books[books % (sizeof fixture.books / sizeof *fixture.books)];

	if (*held == books)
		return;
	check_books(sim);
	*held = books;
}

static inline void check_rows(struct sim *sim)
{
	uint64_t rows = hash_rows_of_batch(sim);

	rows_changed = false;
	if (rows == notes_of(sim)->rows)
		return; /* it was run and rolled back */
	notes_of(sim)->rows = rows;
	check_books_once(sim, rows);
	if (db_cell(&ask_store(sim, &stmt_check_history).rows[0], 0, 0)->i)
		sim_violate(sim, "B6: a batch that had ended went on, or left its teardown");
	check_items(sim);
}

static inline void check(struct sim *sim)
{
	if (rows_changed)
		check_rows(sim);
	check_calls(sim);
	check_left(sim);
	check_artifacts(sim);
	check_actors(sim);
}

/* ---- nothing gets stuck ---- */

static inline bool settle_one(struct sim *sim, int64_t *id)
{
	union sim_task task;

	if (is_due(sim)) {
		init_tenure(&task, NULL, &sim->texts);
		go_well(sim, &task.task, id, SETTLE_ROUNDS_MAX, check_rows);
		return true;
	}
	return false;
}

static inline void check_settled(struct sim *sim)
{
	struct unit_result result = ask_store(sim, &stmt_rest);
	struct slice status = db_cell(&result.rows[0], 0, 0)->s;
	bool flagged = db_cell(&result.rows[0], 0, 1)->i;
	bool poor = db_cell(&result.rows[0], 0, 2)->i > db_cell(&result.rows[0], 0, 3)->i;
	const struct notes *notes = notes_of(sim);
	bool rests = slice_is(status, BATCH_COMPLETED) || slice_is(status, BATCH_PENDING) ||
		     (slice_is(status, BATCH_OUT_OF_CREDIT) && poor);

	if (!slice_is(status, BATCH_CANCELLED) && (flagged || !rests))
		sim_violate(sim, "B7: when all goes well, the batch stays %.*s for ever", SLICE_ARGS(status));
	for (unsigned n = 0; n < fixture.plan.items_n && !fixture.plan.plain; n++) /* plain: a person may be wrong */
		if (notes->seen[n].status == 'S' && notes->seen[n].decision != 'c' && !notes->items[n].there)
			sim_violate(sim, "item %u is done and paid for, and its artifact is not there", n);
}

static inline void settled(struct sim *sim)
{
	check(sim);
	check_settled(sim);
}

static inline void quiet(struct sim *sim)
{
	static const struct well well = {settle_one, settled, SETTLE_ROUNDS_MAX,
					 "B7: the batch does not come to rest although all goes well"};

	try_well(sim, &well);
}

/* ---- the start ---- */

static inline void make_account(struct sim *sim)
{
	struct stamp stamp = {++sim->state.next_id, sim->state.now, "setup"};
	struct unit unit;

	unit_init(&unit, stamp.op);
	account_create(&unit, &stamp, slice_str("default"), slice_str("alice"), ACCOUNT, fixture.plan.balance);
	if (sim_run_unit(sim, &unit).verdict != UNIT_WON)
		sim_violate(sim, "the account could not be made");
}

/* One more item than it has, as a lost loader leaves it. */
static inline void make_batch(struct sim *sim)
{
	const struct world_plan *plan = &fixture.plan;
	char sql[600];

	snprintf(
		sql, sizeof sql,
		"INSERT INTO hx_batch (subject, workspace, workflow, definition_version, requester, account, total, due_at,"
		" created_at, loaded_at) VALUES (1, 'default', 'render', 1, 'me', 2, %u, %s, hx_now_ms(), hx_now_ms())",
		plan->items_n, strcmp(plan->initial, BATCH_PENDING) == 0 ? "NULL" : "hx_now_ms()");
	sim_script(sim, sql);
	for (unsigned n = 0; n <= plan->items_n; n++) {
		snprintf(sql, sizeof sql,
			 "INSERT INTO hx_batch_item (batch, n, input, cost) VALUES (1, %u, '{}', %lld)", n,
			 n < plan->items_n ? (long long)plan->costs[n] : 64LL);
		sim_script(sim, sql);
	}
}

/* By node-a, as if it had just done so. */
static inline void seize(struct sim *sim)
{
	struct stamp stamp = {++sim->state.next_id, sim->state.now, sim_node_name(0)};
	struct batch_row row;
	struct unit unit;

	unit_init(&unit, /* op= */ 0);
	batch_read(&unit, slice_str("default"), BATCH);
	batch_row_take(&sim_run_unit(sim, &unit).rows[0], 0, &policy, &fixture.arena, &row);
	unit_init(&unit, stamp.op);
	batch_seize(&unit, &stamp, &row, BATCH_RUNNING, policy.lease_ms);
	if (sim_run_unit(sim, &unit).verdict != UNIT_WON)
		sim_violate(sim, "the batch could not be seized");
	batch_hold_of(&row, &policy, &fixture.arena, &fixture.hold);
	fixture.hold.fence = row.fence + 1;
	fixture.hold.since.ns = sim->state.now.ms * 1000000;
}

static inline void setup(struct sim *sim)
{
	fixture.sim = sim;
	make_account(sim);
	make_batch(sim);
	if (strcmp(fixture.plan.initial, BATCH_RUNNING) == 0)
		seize(sim);
	check_rows(sim);
}

/* What all scenarios have in common. */
static inline void complete(struct sim_scenario *scenario)
{
	scenario->subjects_n = 1;
	scenario->kind = batch_kind();
	scenario->initial = strcmp(fixture.plan.initial, BATCH_PENDING) == 0 ? BATCH_PENDING : BATCH_QUEUED;
	scenario->driven = true;
	scenario->outside = &service;
	scenario->setup = setup;
	scenario->check = check;
	scenario->quiet = quiet;
	scenario->rows = &rows_of_batches;
}

/* ---- the rest of the cast ---- */

static inline void init_credit(union sim_task *task, const void *plan, struct arena *texts)
{
	(void)texts;
	account_credit_init((struct account_credit *)task, plan);
}

static inline void init_verb(union sim_task *task, const void *plan, struct arena *texts)
{
	batch_verb_init((struct batch_verb *)task, plan, texts);
}

#define VERB(what, ...)                                                                                                \
	(const struct batch_verb_request)                                                                              \
	{                                                                                                              \
		.kind = what, .workspace = {"default", 7}, .subject = BATCH, .policy = &policy, __VA_ARGS__            \
	}

#define WORKER(name, node)                                                                                             \
	{                                                                                                              \
		name, node, true, init_tenure, NULL, is_due                                                            \
	}
#define CANCELLER(name, node)                                                                                          \
	{                                                                                                              \
		name, node, false, init_cancel, NULL, NULL                                                             \
	}
#define NETWORK(node)                                                                                                  \
	{                                                                                                              \
		"network", node, true, init_network, NULL, is_loose                                                    \
	}

static inline void explore(struct sim_scenario scenario)
{
	complete(&scenario);
	scenario.bounds.lapses += ONE_IN_SOAK;
	walk_all(&scenario, STATES_MAX);
}

static inline void explore_at_random(struct sim_scenario scenario, unsigned walks)
{
	walks *= getenv("HAPAX_SOAK") ? 100 : 1;
	complete(&scenario);
	assert_true(walk_at_random(&scenario, walks, 390) > walks / 2);
}

#endif
