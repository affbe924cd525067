/* The world: what can happen next, and making it happen. See sim.h. */
#include "sim/sim.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/hash.h"
#include "db/migrate.h"
#include "flow/subject.h"
#include "sim/invariant.h"
#include "sim/world.h"
#include "task/pulse.h"

#define EDGE_BYTES_MAX (4u << 20)
#define TEXTS_BYTES_MAX (64u << 20)
#define START_MS 1800000000000

/* Answers and wakes of one batch, to the actors behind it. */
struct sim_sink {
	struct batch_sink base;
	struct sim *sim;
	unsigned node;
	unsigned actors[SIM_ACTORS_MAX];
	struct unit *units[SIM_ACTORS_MAX];
	struct unit_result results[SIM_ACTORS_MAX];
	struct unit unit_memory[SIM_ACTORS_MAX];
	size_t n;
	struct mono_time sent;
};

const char *sim_node_name(unsigned node)
{
	static const char *const names[SIM_NODES_MAX] = {"node-a", "node-b", "node-c", "node-d"};

	return names[node];
}

/* ---- the store ---- */

void sim_violate(struct sim *sim, const char *format, ...)
{
	va_list args;

	if (sim->violation[0])
		return;
	va_start(args, format);
	vsnprintf(sim->violation, sizeof sim->violation, format, args);
	va_end(args);
}

static void written(struct sim *sim)
{
	sim->state.store = ++sim->stores_n;
}

void sim_script(struct sim *sim, const char *sql)
{
	struct hx_error err;

	written(sim);
	if (sim->db->driver->script(sim->db, sql, &err))
		sim_violate(sim, "I7: %s: %s", sql, err.detail);
}

static struct unit_result ask_store(struct sim *sim, struct unit *unit)
{
	struct unit_result result = {.verdict = UNIT_FAILED};
	struct hx_error err;

	if (sim->db->driver->execute(sim->db, &unit, 1, &result, &sim->arena, &err)) {
		sim_violate(sim, "I7: the store refused a unit: %s", err.detail);
		result = (struct unit_result){.verdict = UNIT_FAILED, .error = err};
	}
	return result;
}

struct unit_result sim_run_unit(struct sim *sim, struct unit *unit)
{
	struct unit_result result;
	uint64_t key;

	if (!reads_only(unit)) {
		written(sim);
		return ask_store(sim, unit);
	}
	key = reads_key(unit, sim->state.store, sim->clock.wall.ms);
	if (reads_find(&sim->reads, key, &result))
		return result;
	result = ask_store(sim, unit);
	if (result.verdict == UNIT_WON)
		reads_keep(&sim->reads, key, unit, &result);
	return result;
}

/* Rows that were read for the edge before are gone. */
static void begin(struct sim *sim)
{
	arena_reset(&sim->arena);
	reads_let_go(&sim->reads);
}

/* ---- actors ---- */

static bool alive(const struct sim_actor *actor)
{
	return actor->state == SIM_ASKING || actor->state == SIM_IN_BATCH;
}

static void ask_actor(const struct task *task, struct ask *ask, struct unit *memory)
{
	*ask = (struct ask){.unit = memory};
	task->kind->ask(task, ask);
}

static void settle_ask(struct sim *sim, unsigned i);

static void give(struct sim *sim, unsigned i, struct answer answer)
{
	struct sim_actor *actor = &sim->state.actors[i];
	uint32_t turn = actor->task.task.turn;
	union sim_task after;

	answer.now = sim->state.now;
	answer.mono.ns = sim->state.now.ms * 1000000;
	answer.id = ++sim->state.next_id;
	for (int n = 0; n < ANSWER_IDS_MAX; n++)
		answer.more_ids[n] = ++sim->state.next_id;
	answer.node = sim_node_name(sim->scenario->cast[i].node);
	actor->state = SIM_ASKING;
	(void)task_take(&actor->task.task, turn, &answer);
	/* The same answer once more must find nobody. */
	after = actor->task;
	if (task_take(&actor->task.task, turn, &answer) || memcmp(&after, &actor->task, sizeof after) != 0)
		sim_violate(sim, "a doubled answer was taken by %s", sim->scenario->cast[i].name);
	settle_ask(sim, i);
}

/* What follows from the ask without anybody's choice. */
static void settle_ask(struct sim *sim, unsigned i)
{
	struct sim_actor *actor = &sim->state.actors[i];
	struct unit memory;
	struct ask ask;

	ask_actor(&actor->task.task, &ask, &memory);
	actor->ask = ask.kind;
	actor->overrun = false;
	if (ask.kind == ASK_DONE) {
		actor->state = SIM_DONE;
		actor->code = ask.code;
	} else if (ask.kind == ASK_ACT && ask.act.lease.fence) {
		actor->lease_since = ask.act.lease.since;
		invariant_act_started(sim, i, &ask.act.lease);
	} else if (ask.kind == ASK_SLEEP && (actor->task.task.woken || ask.until.ms <= sim->state.now.ms)) {
		actor->task.task.woken = false;
		give(sim, i, (struct answer){.kind = ANSWER_WOKE});
	}
}

/* Does a recurring actor have anything to do in its next round? */
static bool may_start(struct sim *sim, unsigned i)
{
	const struct sim_cast *cast = &sim->scenario->cast[i];

	return !cast->may_start || cast->may_start(sim);
}

static void start_actor(struct sim *sim, unsigned i)
{
	const struct sim_cast *cast = &sim->scenario->cast[i];
	struct sim_actor *actor = &sim->state.actors[i];

	memset(actor, 0, sizeof *actor);
	cast->init(&actor->task, cast->plan, &sim->texts);
	ASSERT(actor->task.task.kind->size <= SIM_TASK_BYTES);
	give(sim, i, (struct answer){.kind = ANSWER_START});
}

/* A recurring actor that has nothing to do is between two rounds. */
static void start_or_rest(struct sim *sim, unsigned i)
{
	if (!sim->scenario->cast[i].recurring || may_start(sim, i)) {
		start_actor(sim, i);
		return;
	}
	memset(&sim->state.actors[i], 0, sizeof sim->state.actors[i]);
	sim->state.actors[i].state = SIM_DONE;
}

/* The call that an actor has under way. */
struct act_call sim_call_of(const struct sim_actor *actor)
{
	struct unit memory;
	struct ask ask;

	ask_actor(&actor->task.task, &ask, &memory);
	return ask.act;
}

static bool is_acting(const struct sim_actor *actor)
{
	return actor->state == SIM_ASKING && actor->ask == ASK_ACT;
}

/* Where effects are counted it matters whether a call that is cut off was done: both are tried then. */
static unsigned cuts(const struct sim *sim)
{
	return world_is_watched(sim) ? 2 : 1;
}

/* ---- locks ---- */

static bool batch_locks(const struct sim_batch *batch, const struct unit *unit)
{
	if (batch->phase == BATCH_BUILT)
		return false;
	for (unsigned i = 0; i < SIM_ACTORS_MAX; i++) {
		struct unit memory;
		struct ask ask;

		if (!(batch->actors & 1u << i))
			continue;
		ask_actor(&batch->asked[i].task, &ask, &memory);
		if (unit_touches_same(&memory, unit))
			return true;
	}
	return false;
}

static bool locked(const struct sim *sim, const struct unit *unit)
{
	for (unsigned node = 0; node < sim->scenario->nodes_n; node++)
		if (batch_locks(&sim->state.open[node], unit))
			return true;
	return batch_locks(&sim->state.doubt, unit);
}

/* ---- which edges there are ---- */

struct edge_list {
	struct sim_edge *edges;
	size_t n;
};

static void add_edge(struct edge_list *list, enum sim_edge_kind kind, unsigned who, unsigned how, unsigned mask)
{
	ASSERT(list->n < SIM_EDGES_MAX);
	list->edges[list->n++] = (struct sim_edge){(unsigned char)kind, (unsigned char)who, (unsigned char)how,
						   (unsigned char)mask};
}

/* Edges of one actor. Returns true when its unit may join a batch of its node. */
static bool add_actor_edges(struct sim *sim, unsigned i, struct edge_list *list)
{
	const struct sim_actor *actor = &sim->state.actors[i];
	struct unit memory;
	struct ask ask;

	if (actor->state == SIM_DONE && sim->scenario->cast[i].recurring && may_start(sim, i))
		add_edge(list, EDGE_AGAIN, i, 0, 0);
	if (actor->state != SIM_ASKING)
		return false;
	ask_actor(&actor->task.task, &ask, &memory);
	if (ask.kind == ASK_COMMIT && !locked(sim, &memory)) {
		if (!reads_only(&memory))
			return true;
		add_edge(list, EDGE_READ, i, 0, 0);
	} else if (ask.kind == ASK_ACT) {
		bool beats = ask.act.lease.fence && !actor->overrun;
		struct unit beat;

		for (unsigned how = SIM_ACT_OK; how <= SIM_ACT_UNKNOWN_NOT; how++)
			if (world_allows(sim, &ask.act, how))
				add_edge(list, EDGE_ACT, i, how, 0);
		unit_init(&beat, 0);
		unit_touch(&beat, ask.act.lease.subject);
		for (unsigned how = 0; how < cuts(sim) && beats && !locked(sim, &beat); how++)
			add_edge(list, EDGE_BEAT, i, how, 0);
	}
	return false;
}

static void add_node_edges(struct sim *sim, unsigned node, unsigned candidates, struct edge_list *list)
{
	const struct sim_bounds *left = &sim->state.left;

	if (sim->state.open[node].phase == BATCH_BUILT) {
		for (unsigned mask = candidates; mask; mask = (mask - 1) & candidates)
			add_edge(list, EDGE_EXECUTE, node, 0, mask);
		return;
	}
	add_edge(list, EDGE_COMMIT, node, COMMIT_DURABLE, 0);
	if (left->failures)
		add_edge(list, EDGE_COMMIT, node, COMMIT_FAILED, 0);
	if (left->lost_answers) {
		add_edge(list, EDGE_COMMIT, node, COMMIT_LANDED, 0);
		add_edge(list, EDGE_COMMIT, node, COMMIT_VANISHED, 0);
		if (sim->state.doubt.phase == BATCH_BUILT)
			add_edge(list, EDGE_COMMIT, node, COMMIT_OPEN, 0);
	}
	if (left->crashes)
		add_edge(list, EDGE_COMMIT, node, COMMIT_THEN_CRASH, 0);
}

/* The next moment at which a claim or a sleep ends, or -1. */
int64_t sim_next_moment(struct sim *sim)
{
	int64_t next = INT64_MAX, now = sim->state.now.ms;

	for (unsigned i = 1; i <= sim->scenario->subjects_n; i++) {
		struct sim_row row;

		if (sim_read_row(sim, i, &row) && row.claimed && row.until > now && row.until < next)
			next = row.until;
	}
	for (unsigned i = 0; i < sim->scenario->cast_n; i++) {
		const struct sim_actor *actor = &sim->state.actors[i];
		struct unit memory;
		struct ask ask;

		if (actor->state != SIM_ASKING || actor->ask != ASK_SLEEP)
			continue;
		ask_actor(&actor->task.task, &ask, &memory);
		if (ask.until.ms > now && ask.until.ms < next)
			next = ask.until.ms;
	}
	if (sim->scenario->rows) {
		int64_t moment = sim->scenario->rows->next_moment(sim);

		next = moment < next ? moment : next;
	}
	return next == INT64_MAX ? -1 : next;
}

size_t sim_edges(struct sim *sim, struct sim_edge edges[SIM_EDGES_MAX])
{
	struct edge_list list = {edges, 0};
	unsigned candidates[SIM_NODES_MAX] = {0};

	begin(sim);
	for (unsigned i = 0; i < sim->scenario->cast_n; i++)
		if (add_actor_edges(sim, i, &list))
			candidates[sim->scenario->cast[i].node] |= 1u << i;
	for (unsigned node = 0; node < sim->scenario->nodes_n; node++)
		add_node_edges(sim, node, candidates[node], &list);
	if (sim->state.doubt.phase != BATCH_BUILT) {
		add_edge(&list, EDGE_RESOLVE, 0, /* lands= */ 1, 0);
		add_edge(&list, EDGE_RESOLVE, 0, /* lands= */ 0, 0);
	}
	for (unsigned how = 0; how < cuts(sim); how++) {
		if (sim->state.left.lapses && sim_next_moment(sim) >= 0)
			add_edge(&list, EDGE_TIME, 0, how, 0);
		for (unsigned node = 0; sim->state.left.crashes && node < sim->scenario->nodes_n; node++)
			add_edge(&list, EDGE_CRASH, node, how, 0);
	}
	return list.n;
}

bool sim_edge_is_progress(struct sim_edge edge)
{
	return edge.kind != EDGE_BEAT && edge.kind != EDGE_AGAIN && edge.kind != EDGE_TIME && edge.kind != EDGE_CRASH;
}

bool sim_edge_writes(struct sim_edge edge)
{
	bool lands = edge.how == COMMIT_DURABLE || edge.how == COMMIT_THEN_CRASH || edge.how == COMMIT_LANDED;

	return edge.kind == EDGE_BEAT || (edge.kind == EDGE_COMMIT && lands) || (edge.kind == EDGE_RESOLVE && edge.how);
}

/* ---- batches ---- */

static void sink_answer(struct batch_sink *base, size_t i, const struct unit_result *result)
{
	struct sim_sink *sink = (struct sim_sink *)base;
	struct sim_actor *actor = &sink->sim->state.actors[sink->actors[i]];

	if (!alive(actor))
		return;
	if (result->verdict == UNIT_WON)
		invariant_acknowledged(sink->sim, sink->units[i], result);
	give(sink->sim, sink->actors[i], (struct answer){.kind = ANSWER_COMMIT, .result = result, .sent = sink->sent});
}

/* Wakes stay on their node: across nodes there are only hints. */
static void sink_wake(struct batch_sink *base, int64_t topic)
{
	struct sim_sink *sink = (struct sim_sink *)base;
	struct sim *sim = sink->sim;

	for (unsigned i = 0; i < sim->scenario->cast_n; i++) {
		struct sim_actor *actor = &sim->state.actors[i];

		if (sim->scenario->cast[i].node != sink->node || !alive(actor) || actor->task.task.topic != topic)
			continue;
		actor->task.task.woken = true;
		if (actor->state == SIM_ASKING && actor->ask == ASK_SLEEP)
			settle_ask(sim, i);
	}
}

static void sink_init(struct sim_sink *sink, struct sim *sim, unsigned node, const struct sim_batch *batch)
{
	sink->base = (struct batch_sink){sink_answer, sink_wake};
	sink->sim = sim;
	sink->node = node;
	sink->n = 0;
	sink->sent.ns = batch->executed.ms * 1000000;
	for (unsigned i = 0; i < SIM_ACTORS_MAX; i++) {
		struct ask ask;

		if (!(batch->actors & 1u << i))
			continue;
		ask_actor(&batch->asked[i].task, &ask, &sink->unit_memory[sink->n]);
		sink->actors[sink->n] = i;
		sink->units[sink->n] = &sink->unit_memory[sink->n];
		sink->results[sink->n] = (struct unit_result){.verdict = UNIT_FAILED};
		sink->n++;
	}
}

/* Runs the units in the store, each between its two checks. */
static void run_units(struct sim_sink *sink)
{
	for (size_t i = 0; i < sink->n; i++) {
		struct sim_before before;

		invariant_before_unit(sink->sim, sink->units[i], &before);
		sink->results[i] = sim_run_unit(sink->sim, sink->units[i]);
		invariant_after_unit(sink->sim, sink->units[i], &before, sink->results[i].verdict);
	}
}

/* Hands the batch to the engine's own batch_settle in the given phase. */
static void settle(struct sim_sink *sink, struct sim_batch *sb, enum batch_phase phase)
{
	struct batch batch;
	struct hx_error lost = {.code = HX_STORE_UNAVAILABLE};

	batch_init(&batch, sink->units, sink->results, sink->n);
	batch.phase = phase;
	batch.answered = sb->answered;
	batch.waked = sb->waked;
	if (phase == BATCH_UNDONE || phase == BATCH_IN_DOUBT)
		batch_overrule(&batch, phase, &lost);
	batch_settle(&batch, &sink->base);
	sb->answered = batch.answered;
	sb->waked = batch.waked;
}

static void execute(struct sim *sim, unsigned node, unsigned mask)
{
	struct sim_batch *batch = &sim->state.open[node];
	uint64_t store = sim->state.store;
	struct sim_sink sink;

	memset(batch, 0, sizeof *batch);
	batch->phase = BATCH_EXECUTED;
	batch->actors = mask;
	batch->executed = sim->state.now;
	for (unsigned i = 0; i < SIM_ACTORS_MAX; i++)
		if (mask & 1u << i) {
			batch->asked[i] = sim->state.actors[i].task;
			sim->state.actors[i].state = SIM_IN_BATCH;
		}
	sink_init(&sink, sim, node, batch);
	sim_script(sim, "SAVEPOINT executed");
	run_units(&sink);
	sim_script(sim, "ROLLBACK TO executed; RELEASE executed");
	sim->state.store = store;
	for (size_t i = 0; i < sink.n; i++)
		batch->verdicts[sink.actors[i]] = sink.results[i].verdict;
	settle(&sink, batch, BATCH_EXECUTED);
}

/* Runs an executed batch for good, at the time at which it was executed. It must meet what it met then. */
static void land(struct sim_sink *sink, const struct sim_batch *batch)
{
	sink->sim->clock.wall = batch->executed;
	run_units(sink);
	sim_set_now(sink->sim, sink->sim->state.now);
	for (size_t i = 0; i < sink->n; i++)
		if (sink->results[i].verdict != batch->verdicts[sink->actors[i]])
			sim_violate(sink->sim, "a batch met other rows at its commit than when it was executed");
}

static void crash(struct sim *sim, unsigned node, bool done)
{
	sim->state.left.crashes--;
	sim->crash_points++;
	memset(&sim->state.open[node], 0, sizeof sim->state.open[node]);
	for (unsigned i = 0; i < sim->scenario->cast_n; i++) {
		struct sim_actor *actor = &sim->state.actors[i];

		if (sim->scenario->cast[i].node != node)
			continue;
		if (is_acting(actor)) {
			struct act_call call = sim_call_of(actor);

			world_cut(sim, &call, done);
		}
		if (sim->scenario->cast[i].recurring) {
			start_or_rest(sim, i);
		} else if (actor->state != SIM_DONE) {
			memset(actor, 0, sizeof *actor);
			actor->state = SIM_DEAD;
		}
	}
}

static void commit(struct sim *sim, unsigned node, enum sim_commit how)
{
	struct sim_batch batch = sim->state.open[node];
	struct sim_sink sink;

	sink_init(&sink, sim, node, &batch);
	memset(&sim->state.open[node], 0, sizeof sim->state.open[node]);
	switch (how) {
	case COMMIT_DURABLE:
		land(&sink, &batch);
		settle(&sink, &batch, BATCH_DURABLE);
		break;
	case COMMIT_THEN_CRASH:
		land(&sink, &batch);
		crash(sim, node, /* done= */ false);
		break;
	case COMMIT_FAILED:
		sim->state.left.failures--;
		settle(&sink, &batch, BATCH_UNDONE);
		break;
	case COMMIT_LANDED:
		land(&sink, &batch);
		/* fall through */
	case COMMIT_VANISHED:
		sim->state.left.lost_answers--;
		settle(&sink, &batch, BATCH_IN_DOUBT);
		break;
	case COMMIT_OPEN:
		sim->state.left.lost_answers--;
		sim->state.doubt = batch;
		settle(&sink, &sim->state.doubt, BATCH_IN_DOUBT);
		break;
	}
}

static void resolve(struct sim *sim, bool lands)
{
	struct sim_batch batch = sim->state.doubt;
	struct sim_sink sink;

	memset(&sim->state.doubt, 0, sizeof sim->state.doubt);
	sink_init(&sink, sim, /* node= */ 0, &batch);
	if (lands)
		land(&sink, &batch);
}

/* ---- the other edges ---- */

/* A unit that only reads is a batch of its own whose commit cannot fail. */
static void read_now(struct sim *sim, unsigned i)
{
	struct sim_batch batch = {.actors = 1u << i};
	struct sim_sink sink;

	batch.asked[i] = sim->state.actors[i].task;
	sink_init(&sink, sim, sim->scenario->cast[i].node, &batch);
	sink.results[0] = sim_run_unit(sim, sink.units[0]);
	settle(&sink, &batch, BATCH_DURABLE);
}

static void end_act(struct sim *sim, unsigned i, enum sim_act how)
{
	struct sim_actor *actor = &sim->state.actors[i];
	struct act_call call = sim_call_of(actor);
	struct answer answer = world_end(sim, &call, how);

	call.lease.since = answer.lease_since = actor->lease_since;
	if (call.hear_out && call.lease.fence)
		answer.overrun = actor->overrun || !lease_is_trusted(&call.lease, clock_mono(&sim->clock.clock));
	give(sim, i, answer);
}

/*
 * A call that is heard out goes on. Where effects are counted, `done` or not stands for begun or not: what was still
 * waiting for its turn is withdrawn (task/lane.h).
 */
static void lose_claim(struct sim *sim, unsigned i, bool done)
{
	struct act_call call = sim_call_of(&sim->state.actors[i]);

	if (call.hear_out && (done || !world_is_watched(sim))) {
		sim->state.actors[i].overrun = true;
		return;
	}
	world_cut(sim, &call, done);
	give(sim, i, (struct answer){.kind = ANSWER_ACT, .outcome = ACT_CLAIM_LOST});
}

static void beat(struct sim *sim, unsigned i, bool done)
{
	struct lease lease = sim_call_of(&sim->state.actors[i]).lease;
	struct answer answer = {.kind = ANSWER_START};
	struct sim_before before;
	struct unit memory;
	struct beat beat;
	struct ask ask;

	beat_init(&beat, &lease, subject_heartbeat);
	beat.task.kind->take(&beat.task, &answer);
	ask_actor(&beat.task, &ask, &memory);
	invariant_before_unit(sim, &memory, &before);

	struct unit_result result = sim_run_unit(sim, &memory);

	invariant_after_unit(sim, &memory, &before, result.verdict);
	answer = (struct answer){.kind = ANSWER_COMMIT, .result = &result};
	beat.task.kind->take(&beat.task, &answer);
	ask_actor(&beat.task, &ask, &memory);
	if (ask.code == HX_STALE_FENCE)
		lose_claim(sim, i, done);
	else
		sim->state.actors[i].lease_since.ns = sim->state.now.ms * 1000000;
}

/* Where effects are counted, holders keep to their leases: what was not renewed is aborted before it ends, or heard out. */
static void abort_lapsed(struct sim *sim, bool done)
{
	for (unsigned i = 0; i < sim->scenario->cast_n && world_is_watched(sim); i++) {
		struct lease lease;
		struct sim_row row;

		if (!is_acting(&sim->state.actors[i]) || sim->state.actors[i].overrun)
			continue;
		lease = sim_call_of(&sim->state.actors[i]).lease;
		if (lease.fence && sim_read_row(sim, lease.subject, &row) && row.until <= sim->state.now.ms)
			lose_claim(sim, i, done);
	}
}

static void pass_time(struct sim *sim, bool done)
{
	sim->state.left.lapses--;
	sim_set_now(sim, (struct wall_time){sim_next_moment(sim)});
	abort_lapsed(sim, done);
	for (unsigned i = 0; i < sim->scenario->cast_n; i++)
		if (sim->state.actors[i].state == SIM_ASKING && sim->state.actors[i].ask == ASK_SLEEP)
			settle_ask(sim, i);
}

bool sim_take(struct sim *sim, struct sim_edge edge)
{
	uint64_t store = sim->state.store;

	begin(sim);
	switch ((enum sim_edge_kind)edge.kind) {
	case EDGE_READ:
		read_now(sim, edge.who);
		break;
	case EDGE_EXECUTE:
		execute(sim, edge.who, edge.mask);
		break;
	case EDGE_COMMIT:
		commit(sim, edge.who, edge.how);
		break;
	case EDGE_RESOLVE:
		resolve(sim, edge.how);
		break;
	case EDGE_ACT:
		end_act(sim, edge.who, edge.how);
		break;
	case EDGE_BEAT:
		beat(sim, edge.who, edge.how);
		break;
	case EDGE_AGAIN:
		start_actor(sim, edge.who);
		break;
	case EDGE_TIME:
		pass_time(sim, edge.how);
		break;
	case EDGE_CRASH:
		crash(sim, edge.who, edge.how);
		break;
	}
	if (edge.kind == EDGE_COMMIT || edge.kind == EDGE_RESOLVE || edge.kind == EDGE_BEAT)
		invariant_rows(sim);
	if (sim->scenario->check)
		sim->scenario->check(sim);
	ASSERT(sim_edge_writes(edge) || sim->state.store == store);
	sim->state.texts = arena_mark(&sim->texts);
	return sim->violation[0] == '\0';
}

/* ---- state ---- */

static uint64_t hash_batch(const struct sim_batch *batch, struct wall_time now, uint64_t hash)
{
	hash = hash_mix(hash, batch->phase);
	if (batch->phase == BATCH_BUILT)
		return hash;
	hash = hash_mix(hash, batch->actors);
	hash = hash_mix(hash, batch->answered * 2u + batch->waked);
	hash = hash_mix(hash, (uint64_t)(now.ms - batch->executed.ms));
	for (unsigned i = 0; i < SIM_ACTORS_MAX; i++)
		if (batch->actors & 1u << i) {
			hash = hash_mix(hash, batch->verdicts[i]);
			hash = batch->asked[i].task.kind->fingerprint(&batch->asked[i].task, hash);
		}
	return hash;
}

static uint64_t hash_rows(struct sim *sim, uint64_t hash)
{
	for (unsigned i = 1; i <= sim->scenario->subjects_n; i++) {
		struct sim_row row;

		if (!sim_read_row(sim, i, &row))
			continue;
		hash = hash_bytes(hash, row.status, strlen(row.status));
		hash = hash_mix(hash, (uint64_t)row.version);
		hash = hash_mix(hash, (uint64_t)row.fence);
		hash = hash_mix(hash, row.claimed);
		hash = hash_mix(hash, (uint64_t)(row.effort * 2 + row.doubt));
		hash = hash_mix(hash, row.until > sim->state.now.ms ? (uint64_t)(row.until - sim->state.now.ms) : 0);
	}
	return hash;
}

uint64_t sim_hash(struct sim *sim)
{
	const struct sim_state *state = &sim->state;
	uint64_t hash = hash_mix(7, (uint64_t)(state->now.ms - START_MS)), started = 0;

	begin(sim);
	for (unsigned i = 0; i < sim->scenario->cast_n; i++) {
		const struct sim_actor *actor = &state->actors[i];

		hash = hash_mix(hash, actor->state * 8u + actor->ask);
		if (actor->state == SIM_DEAD || (actor->state == SIM_DONE && sim->scenario->cast[i].recurring))
			continue;
		hash = hash_mix(hash, actor->task.task.woken);
		if (is_acting(actor))
			hash = hash_mix(hash, (uint64_t)(state->now.ms - actor->lease_since.ns / 1000000) * 2 +
						      actor->overrun);
		hash = actor->task.task.kind->fingerprint(&actor->task.task, hash);
	}
	for (unsigned node = 0; node < sim->scenario->nodes_n; node++)
		hash = hash_batch(&state->open[node], state->now, hash);
	hash = hash_batch(&state->doubt, state->now, hash);
	hash = hash_mix(hash, state->left.lapses);
	hash = hash_mix(hash, state->left.crashes);
	hash = hash_mix(hash, state->left.lost_answers);
	hash = hash_mix(hash, state->left.failures);
	for (unsigned i = 0; i < state->acts_n; i++)
		started ^= hash_mix((uint64_t)state->acts[i].subject, (uint64_t)state->acts[i].fence);
	for (unsigned i = 0; i < state->effects_n; i++)
		hash = hash_mix(hash, state->effects[i]);
	hash = hash_rows(sim, hash_mix(hash, started));
	if (sim->scenario->outside && !sim->scenario->rows)
		return hash_bytes(hash, state->notes, sizeof state->notes);
	return sim->scenario->rows ? sim->scenario->rows->hash(sim, hash) : hash;
}

void sim_set_now(struct sim *sim, struct wall_time now)
{
	sim->state.now = now;
	sim->clock.wall = now;
	sim->clock.mono.ns = now.ms * 1000000;
}

/* Of a batch only who is in it, of none nothing. */
static void copy_batch(struct sim_batch *to, const struct sim_batch *from)
{
	memcpy(to, from, offsetof(struct sim_batch, asked));
	for (unsigned i = 0; i < SIM_ACTORS_MAX && from->phase != BATCH_BUILT; i++)
		if (from->actors & 1u << i)
			to->asked[i] = from->asked[i];
}

static void copy_state(const struct sim_scenario *scenario, struct sim_state *to, const struct sim_state *from)
{
	memcpy(to, from, offsetof(struct sim_state, actors));
	memcpy(to->actors, from->actors, scenario->cast_n * sizeof *from->actors);
	for (unsigned node = 0; node < scenario->nodes_n; node++)
		copy_batch(&to->open[node], &from->open[node]);
	copy_batch(&to->doubt, &from->doubt);
}

void sim_save(const struct sim *sim, struct sim_state *ret_state)
{
	copy_state(sim->scenario, ret_state, &sim->state);
}

void sim_restore(struct sim *sim, const struct sim_state *state)
{
	copy_state(sim->scenario, &sim->state, state);
	arena_rewind(&sim->texts, state->texts);
	sim_set_now(sim, state->now);
}

/* ---- opening and closing ---- */

static void make_subjects(struct sim *sim)
{
	struct stamp stamp = {.at = sim->state.now, .node = "setup"};

	for (unsigned i = 1; i <= sim->scenario->subjects_n; i++) {
		struct unit unit;

		stamp.op = ++sim->state.next_id;
		unit_init(&unit, stamp.op);
		subject_create(&unit, &stamp, i, sim->scenario->kind, sim->scenario->initial);
		if (sim_run_unit(sim, &unit).verdict != UNIT_WON)
			sim_violate(sim, "subject %u could not be made", i);
	}
}

enum hx_code sim_open(struct sim *sim, const struct sim_scenario *scenario, struct hx_error *err)
{
	struct db_options options = {.url = "sqlite::memory:", .clock = &sim->clock.clock};
	struct migrate_status before;
	enum hx_code code;

	memset(sim, 0, sizeof *sim);
	sim->scenario = scenario;
	fake_clock_init(&sim->clock, (struct wall_time){START_MS});
	arena_init(&sim->arena, EDGE_BYTES_MAX);
	arena_init(&sim->texts, TEXTS_BYTES_MAX);
	reads_init(&sim->reads);
	code = db_open(&options, &sim->db, err);
	if (!code)
		code = migrate_run(sim->db, &before, err);
	if (code) {
		sim_close(sim);
		return code;
	}
	sim->state.left = scenario->bounds;
	sim_set_now(sim, (struct wall_time){START_MS});
	make_subjects(sim);
	if (scenario->setup)
		scenario->setup(sim);
	for (unsigned i = 0; i < scenario->cast_n; i++)
		start_or_rest(sim, i);
	sim->state.texts = arena_mark(&sim->texts);
	return HX_OK;
}

void sim_close(struct sim *sim)
{
	db_close(sim->db);
	arena_release(&sim->arena);
	arena_release(&sim->texts);
	reads_release(&sim->reads);
	sim->db = NULL;
}
