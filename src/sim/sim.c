/* The world, and making happen what can (edges.c). See sim.h. */
#include "sim/sim.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/hash.h"
#include "db/migrate.h"
#include "flow/subject.h"
#include "sim/home.h"
#include "sim/invariant.h"
#include "sim/sim_parts.h"
#include "sim/world.h"
#include "task/pulse.h"

#define EDGE_BYTES_MAX (4u << 20)
#define TEXTS_BYTES_MAX (64u << 20)
#define READS_SLOTS 16384

/* Answers and wakes of one group, to the actors that it is for. */
struct sim_sink {
	struct group_sink base;
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

void sim_violate(struct sim *sim, const char *format, ...)
{
	va_list args;

	if (sim->violation[0])
		return;
	va_start(args, format);
	vsnprintf(sim->violation, sizeof sim->violation, format, args);
	va_end(args);
}

/* ---- actors ---- */

static bool alive(const struct sim_actor *actor)
{
	return actor->state == SIM_ASKING || actor->state == SIM_IN_GROUP;
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
	if (sim->scenario->user)
		answer.ids = &sim->state.ids;
	answer.node = sim_node_name(sim->scenario->cast[i].node);
	actor->state = SIM_ASKING;
	actor->print.hash = 0;
	(void)task_take(&actor->task.task, turn, &answer);
	/* The same answer once more must find nobody. */
	after = actor->task;
	answer.ids = NULL;
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

	sim_ask(&actor->task.task, &ask, &memory);
	actor->ask = ask.kind;
	actor->overrun = false;
	if (ask.kind == ASK_DONE) {
		actor->state = SIM_DONE;
		actor->code = ask.code;
	} else if (ask.kind == ASK_ACT) {
		invariant_request(sim, &ask.act);
		if (!ask.act.lease.fence)
			return;
		actor->lease_since = ask.act.lease.since;
		invariant_act_started(sim, i, &ask.act.lease);
	} else if (ask.kind == ASK_SLEEP && (actor->task.task.woken || ask.until.ns <= sim->state.now.ms * 1000000)) {
		actor->task.task.woken = false;
		give(sim, i, (struct answer){.kind = ANSWER_WOKE});
	}
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
	bool starts = !sim->scenario->cast[i].recurring || (!sim->scenario->user && sim_may_start(sim, i));

	if (starts) {
		start_actor(sim, i);
		return;
	}
	memset(&sim->state.actors[i], 0, sizeof sim->state.actors[i]);
	sim->state.actors[i].state = SIM_DONE;
}

struct act_call sim_call_of(const struct sim_actor *actor)
{
	struct unit memory;
	struct ask ask;

	sim_ask(&actor->task.task, &ask, &memory);
	return ask.act;
}

/* ---- groups ---- */

static void sim_sink_answer(struct group_sink *base, size_t i, const struct unit_result *result)
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
static void sim_sink_wake(struct group_sink *base, int64_t topic)
{
	struct sim_sink *sink = (struct sim_sink *)base;
	struct sim *sim = sink->sim;

	for (unsigned i = 0; i < sim->scenario->cast_n; i++) {
		struct sim_actor *actor = &sim->state.actors[i];

		if (sim->scenario->cast[i].node != sink->node || !alive(actor) || actor->task.task.topic != topic)
			continue;
		actor->task.task.woken = true;
		actor->print.hash = 0;
		if (actor->state == SIM_ASKING && actor->ask == ASK_SLEEP)
			settle_ask(sim, i);
	}
}

static void sink_init(struct sim_sink *sink, struct sim *sim, unsigned node, const struct sim_group *group)
{
	sink->base = (struct group_sink){.answer = sim_sink_answer, .wake = sim_sink_wake};
	sink->sim = sim;
	sink->node = node;
	sink->n = 0;
	sink->sent.ns = group->executed.ms * 1000000;
	for (unsigned i = 0; i < SIM_ACTORS_MAX; i++) {
		struct ask ask;

		if (!(group->actors & 1u << i))
			continue;
		sim_ask(&group->asked[i].task, &ask, &sink->unit_memory[sink->n]);
		sink->actors[sink->n] = i;
		sink->units[sink->n] = &sink->unit_memory[sink->n];
		sink->results[sink->n] = (struct unit_result){.verdict = UNIT_FAILED};
		sink->n++;
	}
}

/* Runs a unit in the store, between its two checks. */
static void run_unit(struct sim_sink *sink, size_t i)
{
	struct sim_before before;

	invariant_before_unit(sink->sim, sink->units[i], &before);
	sink->results[i] = sim_run_unit(sink->sim, sink->units[i]);
	invariant_after_unit(sink->sim, sink->units[i], &before, sink->results[i].verdict);
}

static void run_units(struct sim_sink *sink)
{
	for (size_t i = 0; i < sink->n; i++)
		run_unit(sink, i);
}

/* Hands the group to the engine's own group_settle in the given phase. */
static void settle(struct sim_sink *sink, struct sim_group *sb, enum group_phase phase)
{
	struct group group;
	struct hx_error lost = {.code = HX_STORE_UNAVAILABLE};

	group_init(&group, sink->units, sink->results, sink->n);
	group.phase = phase;
	group.answered = sb->answered;
	group.waked = sb->waked;
	if (phase == GROUP_FAILED || phase == GROUP_IN_DOUBT)
		group_overrule(&group, phase, &lost);
	group_settle(&group, &sink->base);
	sb->answered = group.answered;
	sb->waked = group.waked;
}

/* What group this is, in the store as it stands. */
static uint64_t group_key(const struct sim_sink *sink)
{
	uint64_t key = 2;

	for (size_t i = 0; i < sink->n; i++)
		key = hash_mix(key, reads_key(sink->units[i], sink->sim->state.store, sink->sim->clock.wall.ms));
	return key;
}

static bool remembers_group(struct sim_sink *sink, uint64_t key)
{
	for (size_t i = 0; i < sink->n; i++)
		if (!reads_find(&sink->sim->reads, hash_mix(key, i), &sink->results[i]))
			return false;
	return true;
}

/*
 * Runs the units and rolls them back. The walk comes to the same group in the same store again and again, with others further
 * on than before: what it met is remembered, as reads are (reads.h), and its checks have held.
 */
static void try_units(struct sim_sink *sink)
{
	struct sim *sim = sink->sim;
	uint64_t key = group_key(sink), store = sim->state.store;
	bool known = remembers_group(sink, key);
	enum unit_verdict was[SIM_ACTORS_MAX];

	if (known && !reads_is_due(&sim->reads))
		return;
	for (size_t i = 0; i < sink->n; i++)
		was[i] = sink->results[i].verdict;
	sim_savepoint(sim);
	run_units(sink);
	sim_roll_back(sim);
	sim->state.store = store;
	for (size_t i = 0; i < sink->n; i++) {
		if (known && was[i] != sink->results[i].verdict)
			sim_violate(sim, "the simulator remembers of a group what is not so");
		if (sink->results[i].verdict != UNIT_FAILED)
			reads_keep(&sim->reads, hash_mix(key, i), sink->units[i], &sink->results[i]);
	}
}

static void sim_execute(struct sim *sim, unsigned node, unsigned mask)
{
	struct sim_group *group = &sim->state.open[node];
	struct sim_sink sink;

	memset(group, 0, sizeof *group);
	group->phase = GROUP_EXECUTED;
	group->actors = mask;
	group->executed = sim->state.now;
	for (unsigned i = 0; i < SIM_ACTORS_MAX; i++)
		if (mask & 1u << i) {
			group->asked[i] = sim->state.actors[i].task;
			group->prints[i] = sim->state.actors[i].print;
			sim->state.actors[i].state = SIM_IN_GROUP;
		}
	sink_init(&sink, sim, node, group);
	try_units(&sink);
	for (size_t i = 0; i < sink.n; i++) {
		group->verdicts[sink.actors[i]] = sink.results[i].verdict;
		group->lines[sink.actors[i]] = sink.results[i].line;
	}
	settle(&sink, group, GROUP_EXECUTED);
}

/*
 * One that has lost has lost, whatever it would meet by now: rows that it only looked at were not locked. Run once more, for its answer,
 * it is taken back.
 */
static bool lost_before(struct sim_sink *sink, size_t i, const struct sim_group *group)
{
	struct sim *sim = sink->sim;
	uint64_t store = sim->state.store;
	bool wins;

	if (group->verdicts[sink->actors[i]] != UNIT_LOST)
		return false;
	sim_savepoint(sim);
	sink->results[i] = sim_run_unit(sim, sink->units[i]);
	sim_roll_back(sim);
	sim->state.store = store;
	wins = sink->results[i].verdict == UNIT_WON;
	if (wins)
		sink->results[i] = (struct unit_result){.verdict = UNIT_LOST, .line = group->lines[sink->actors[i]]};
	return wins;
}

/* Runs an executed group for good, at the time at which it was executed. It must meet what it met then. */
static void land(struct sim_sink *sink, const struct sim_group *group)
{
	sink->sim->clock.wall = group->executed;
	for (size_t i = 0; i < sink->n; i++)
		if (!lost_before(sink, i, group))
			run_unit(sink, i);
	sim_set_now(sink->sim, sink->sim->state.now);
	for (size_t i = 0; i < sink->n; i++) {
		if (sink->results[i].verdict != group->verdicts[sink->actors[i]])
			sim_violate(sink->sim, "a group met other rows at its commit than when it was executed");
		if (sink->results[i].verdict == UNIT_WON)
			fingerprint_landed(&sink->sim->state.ops, sink->units[i]->op);
	}
}

static void use_mishap(struct sim *sim)
{
	if (sim->scenario->user)
		sim->state.left.mishaps--;
}

static void crash(struct sim *sim, unsigned node, enum sim_cut done)
{
	sim->state.left.crashes--;
	use_mishap(sim);
	sim->crash_points++;
	memset(&sim->state.open[node], 0, sizeof sim->state.open[node]);
	for (unsigned i = 0; i < sim->scenario->cast_n; i++) {
		struct sim_actor *actor = &sim->state.actors[i];

		if (sim->scenario->cast[i].node != node)
			continue;
		if (sim_is_acting(actor)) {
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
	struct sim_group group = sim->state.open[node];
	struct sim_sink sink;

	sink_init(&sink, sim, node, &group);
	memset(&sim->state.open[node], 0, sizeof sim->state.open[node]);
	switch (how) {
	case COMMIT_DURABLE:
		land(&sink, &group);
		settle(&sink, &group, GROUP_DURABLE);
		break;
	case COMMIT_THEN_CRASH:
		land(&sink, &group);
		crash(sim, node, CUT_NOT_DONE);
		break;
	case COMMIT_FAILED:
		sim->state.left.failures--;
		settle(&sink, &group, GROUP_FAILED);
		break;
	case COMMIT_LANDED:
		land(&sink, &group);
		/* fall through */
	case COMMIT_VANISHED:
		sim->state.left.lost_answers--;
		settle(&sink, &group, GROUP_IN_DOUBT);
		break;
	case COMMIT_OPEN:
		sim->state.left.lost_answers--;
		sim->state.doubt = group;
		settle(&sink, &sim->state.doubt, GROUP_IN_DOUBT);
		break;
	}
}

/* Of a user's scenario: the unit of one task, run and durable at once. */
static void write_now(struct sim *sim, unsigned i)
{
	struct sim_group group = {.actors = 1u << i, .executed = sim->state.now};
	bool may_be_late = invariant_writes(sim, &sim->state.actors[i].task);
	struct sim_sink sink;

	group.asked[i] = sim->state.actors[i].task;
	sim->state.actors[i].stalls = false;
	sink_init(&sink, sim, sim->scenario->cast[i].node, &group);
	run_units(&sink);
	if (sink.results[0].verdict == UNIT_WON) {
		fingerprint_landed(&sim->state.ops, sink.units[0]->op);
		sim->state.actors[i].wrote = true;
		sim->state.actors[i].answered = false;
		sim->state.wrote_n += may_be_late;
	}
	settle(&sink, &group, GROUP_DURABLE);
}

static void sim_resolve(struct sim *sim, bool lands)
{
	struct sim_group group = sim->state.doubt;
	struct sim_sink sink;

	memset(&sim->state.doubt, 0, sizeof sim->state.doubt);
	sink_init(&sink, sim, /* node= */ 0, &group);
	if (lands)
		land(&sink, &group);
}

/* ---- the other edges ---- */

/* A unit that only reads is a group of its own whose commit cannot fail. */
static void read_now(struct sim *sim, unsigned i)
{
	struct sim_group group = {.actors = 1u << i};
	struct sim_sink sink;

	group.asked[i] = sim->state.actors[i].task;
	sink_init(&sink, sim, sim->scenario->cast[i].node, &group);
	sink.results[0] = sim_run_unit(sim, sink.units[0]);
	settle(&sink, &group, GROUP_DURABLE);
}

static void end_act(struct sim *sim, unsigned i, enum sim_act how)
{
	struct sim_actor *actor = &sim->state.actors[i];
	struct act_call call = sim_call_of(actor);
	struct answer answer = world_end(sim, &call, how);

	if (answer.outcome == ACT_FAILED || answer.outcome == ACT_FAILED_FOR_GOOD || answer.outcome == ACT_INVALID)
		invariant_failed(sim, &call);
	call.lease.since = answer.lease_since = actor->lease_since;
	if (call.hear_out && call.lease.fence)
		answer.overrun = actor->overrun || !lease_is_trusted(&call.lease, clock_mono(&sim->clock.clock));
	actor->answered = true;
	give(sim, i, answer);
}

/*
 * A call that is heard out goes on. Where effects are counted, `done` or not stands for begun or not: what was still
 * waiting for its turn is withdrawn (task/lane.h).
 */
static void lose_claim(struct sim *sim, unsigned i, enum sim_cut done)
{
	struct act_call call = sim_call_of(&sim->state.actors[i]);

	if (call.hear_out && (done == CUT_DONE || !world_is_watched(sim))) {
		sim->state.actors[i].overrun = true;
		return;
	}
	world_cut(sim, &call, call.hear_out ? CUT_NOT_DONE : done);
	give(sim, i, (struct answer){.kind = ANSWER_ACT, .outcome = ACT_CLAIM_LOST});
}

static void beat(struct sim *sim, unsigned i, enum sim_cut done)
{
	struct lease lease = sim_call_of(&sim->state.actors[i]).lease;
	struct answer answer = {.kind = ANSWER_START};
	struct sim_before before;
	struct unit memory;
	struct beat beat;
	struct ask ask;

	beat_init(&beat, &lease, subject_heartbeat);
	beat.task.kind->take(&beat.task, &answer);
	sim_ask(&beat.task, &ask, &memory);
	invariant_before_unit(sim, &memory, &before);

	struct unit_result result = sim_run_unit(sim, &memory);

	invariant_after_unit(sim, &memory, &before, result.verdict);
	answer = (struct answer){.kind = ANSWER_COMMIT, .result = &result};
	beat.task.kind->take(&beat.task, &answer);
	sim_ask(&beat.task, &ask, &memory);
	if (ask.code == HX_STALE_FENCE)
		lose_claim(sim, i, done);
	else
		sim->state.actors[i].lease_since.ns = sim->state.now.ms * 1000000;
}

/* Where effects are counted, holders keep to their leases: what was not renewed is aborted before it ends, or heard out. */
static void abort_lapsed(struct sim *sim, enum sim_cut done)
{
	for (unsigned i = 0; i < sim->scenario->cast_n && world_is_watched(sim); i++) {
		struct lease lease;
		struct sim_row row;

		if (!sim_is_acting(&sim->state.actors[i]) || sim->state.actors[i].overrun)
			continue;
		lease = sim_call_of(&sim->state.actors[i]).lease;
		if (lease.fence && sim_read_row(sim, lease.subject, &row) && row.until <= sim->state.now.ms)
			lose_claim(sim, i, done);
	}
}

static void move_clock(struct sim *sim, bool paused)
{
	if (!sim->scenario->user || paused)
		sim->state.left.lapses--;
	if (paused)
		use_mishap(sim);
	sim_set_now(sim, (struct wall_time){paused ? sim->scenario->user->lease_end(sim) : sim_next_moment(sim)});
}

static void pass_time(struct sim *sim, enum sim_cut done, bool paused)
{
	move_clock(sim, paused);
	abort_lapsed(sim, done);
	for (unsigned i = 0; i < sim->scenario->cast_n; i++)
		if (sim->state.actors[i].state == SIM_ASKING && sim->state.actors[i].ask == ASK_SLEEP)
			settle_ask(sim, i);
}

/* Whoever stalls is paused with its answer until its lease is over, and then anybody may be quicker. */
static void hear(struct sim *sim, struct sim_edge edge)
{
	struct sim_actor *actor = &sim->state.actors[edge.who];

	end_act(sim, edge.who, edge.how);
	if (!edge.mask)
		return;
	actor->stalls = actor->state == SIM_ASKING;
	pass_time(sim, CUT_NOT_DONE, /* paused= */ true);
}

static void begin_round(struct sim *sim, struct sim_edge edge)
{
	sim->chosen = edge.how;
	start_actor(sim, edge.who);
	if (!edge.mask)
		return;
	sim->state.left.lapses--;
	use_mishap(sim);
	sim->state.actors[edge.who].stalls = true;
}

/* Of a user's scenario: what nobody has to wait for. */
static void go_on(struct sim *sim)
{
	for (unsigned i = 0; i < sim->scenario->cast_n && !sim->violation[0]; i++) {
		const struct sim_actor *actor = &sim->state.actors[i];
		struct unit memory;
		struct ask ask;

		while (actor->state == SIM_ASKING && actor->ask == ASK_COMMIT && !sim->violation[0]) {
			sim_ask(&actor->task.task, &ask, &memory);
			if (reads_only(&memory))
				read_now(sim, i);
			else if (!actor->stalls && sim->scenario->user->is_eager(sim, i))
				write_now(sim, i);
			else
				break;
		}
	}
}

bool sim_take(struct sim *sim, struct sim_edge edge)
{
	uint64_t store = sim->state.store;

	sim_begin(sim);
	switch ((enum sim_edge_kind)edge.kind) {
	case EDGE_READ:
		read_now(sim, edge.who);
		break;
	case EDGE_EXECUTE:
		sim_execute(sim, edge.who, edge.mask);
		break;
	case EDGE_COMMIT:
		commit(sim, edge.who, edge.how);
		break;
	case EDGE_RESOLVE:
		sim_resolve(sim, edge.how);
		break;
	case EDGE_ACT:
		hear(sim, edge);
		break;
	case EDGE_BEAT:
		beat(sim, edge.who, edge.how);
		break;
	case EDGE_AGAIN:
		begin_round(sim, edge);
		break;
	case EDGE_TIME:
		pass_time(sim, edge.how, edge.mask);
		break;
	case EDGE_CRASH:
		crash(sim, edge.who, edge.how);
		break;
	case EDGE_WRITE:
		write_now(sim, edge.who);
		break;
	case EDGE_LAND:
		sim->scenario->user->land(sim, edge.how);
		break;
	}
	if (sim->scenario->user)
		go_on(sim);
	if (edge.kind == EDGE_COMMIT || edge.kind == EDGE_RESOLVE || edge.kind == EDGE_BEAT || edge.kind == EDGE_WRITE)
		invariant_rows(sim);
	if (sim->scenario->check)
		sim->scenario->check(sim);
	ASSERT(sim_edge_writes(sim, edge) || sim->state.store == store);
	sim->state.texts = arena_mark(&sim->texts);
	return sim->violation[0] == '\0';
}

/* ---- opening and closing ---- */

static void make_subjects(struct sim *sim)
{
	struct stamp stamp = {.at = sim->state.now, .node = "setup"};

	for (unsigned i = 1; i <= sim->scenario->subjects_n; i++) {
		const struct sim_subject first = {sim->scenario->kind, sim->scenario->initial};
		const struct sim_subject *is = i == 1 || !sim->scenario->others ? &first
										: &sim->scenario->others[i - 2];
		struct unit unit;

		stamp.op = ++sim->state.next_id;
		unit_init(&unit, stamp.op);
		subject_insert(&unit, &stamp, i, is->kind, is->initial);
		if (sim_run_unit(sim, &unit).verdict != UNIT_WON)
			sim_violate(sim, "subject %u could not be made", i);
	}
}

static enum hx_code open_store(struct sim *sim, struct hx_error *err)
{
	struct db_options options = {.url = "sqlite::memory:", .clock = &sim->clock.clock};
	struct migrate_status before;
	enum hx_code code;

	if (sim->scenario->user)
		return sim_home_take(sim, err);
	reads_init(&sim->reads, READS_SLOTS);
	code = db_open(&options, &sim->db, err);
	return code ? code : migrate_run(sim->db, &before, err);
}

enum hx_code sim_open(struct sim *sim, const struct sim_scenario *scenario, struct hx_error *err)
{
	enum hx_code code;

	memset(sim, 0, sizeof *sim);
	sim->scenario = scenario;
	fake_clock_init(&sim->clock, (struct wall_time){SIM_START_MS});
	arena_init(&sim->arena, EDGE_BYTES_MAX);
	arena_init(&sim->texts, TEXTS_BYTES_MAX);
	sim_store_init(&sim->store);
	code = open_store(sim, err);
	if (code) {
		sim_close(sim);
		return code;
	}
	sim->state.left = scenario->bounds;
	id_source_init(&sim->state.ids, /* node= */ 1);
	sim_set_now(sim, (struct wall_time){SIM_START_MS});
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
	if (sim->home)
		sim_home_give(sim);
	db_close(sim->db);
	arena_release(&sim->arena);
	arena_release(&sim->texts);
	reads_release(&sim->reads);
	sim_store_release(&sim->store);
	sim->db = NULL;
}
