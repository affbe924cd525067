/* The state of a world: told apart by a hash, saved and gone back to. See sim.h. */
#include "base/hash.h"
#include "sim/invariant.h"
#include "sim/sim_parts.h"

#define PRINT_AGAIN 1000 /* one in so many */

DB_STMT(stmt_place_of_made, "sim_place_of_made", "i", "i", "SELECT count(*) FROM hx_subject WHERE id < ?1");

static int64_t place_of_made(struct sim *sim, int64_t job)
{
	LOCAL_UNIT(unit);

	UNIT_ADD(&unit, UNIT_ANY, &stmt_place_of_made, db_int(job));

	struct unit_result result = sim_run_unit(sim, &unit);

	return result.verdict == UNIT_WON ? db_cell(&result.rows[0], 0, 0)->i : -1;
}

DB_STMT(stmt_made, "sim_made", "", "i", "SELECT id FROM hx_subject ORDER BY id");

/* All that the place of an id among the subjects follows from. */
static uint64_t hash_made(struct sim *sim)
{
	struct sim_state *state = &sim->state;

	if (state->made.store != state->store || !state->made.hash) {
		state->made.hash = sim_hash_answer(sim, &stmt_made, 1);
		state->made.store = state->store;
	}
	return state->made.hash;
}

/* Is it still what it was when it was taken? Of the same task: whoever takes an answer has none any more. */
static bool print_holds(struct sim *sim, const struct sim_print *print)
{
	return print->hash && (!(print->of & FINGERPRINT_OF_OPS) || print->ops_n == sim->state.ops.n) &&
	       (!(print->of & FINGERPRINT_OF_MADE) || print->made == hash_made(sim));
}

/* Most of what a state is told apart by is tasks, and an edge moves one or two of them. Now and then it is taken again, and compared. */
static uint64_t print_of(struct sim *sim, const struct task *task, struct sim_print *print)
{
	struct sim_print now = {.ops_n = sim->state.ops.n};
	struct fingerprint_world world = {&sim->state.ops, place_of_made, sim, &now.of};
	bool known = print_holds(sim, print);

	if (known && ++sim->prints_n % PRINT_AGAIN)
		return print->hash;
	now.hash = fingerprint_task(task, &world, 1);
	if (now.of & FINGERPRINT_OF_MADE)
		now.made = hash_made(sim);
	if (known && now.hash != print->hash)
		sim_violate(sim, "the simulator remembers of a task what is not so");
	*print = now;
	return now.hash;
}

static uint64_t hash_group(struct sim *sim, struct sim_group *group, uint64_t hash)
{
	hash = hash_mix(hash, group->phase);
	if (group->phase == GROUP_BUILT)
		return hash;
	hash = hash_mix(hash, group->actors);
	hash = hash_mix(hash, group->answered * 2u + group->waked);
	hash = hash_mix(hash, (uint64_t)(sim->state.now.ms - group->executed.ms));
	for (unsigned i = 0; i < SIM_ACTORS_MAX; i++)
		if (group->actors & 1u << i) {
			hash = hash_mix(hash, group->verdicts[i]);
			hash = hash_mix(hash, print_of(sim, &group->asked[i].task, &group->prints[i]));
		}
	return hash;
}

bool sim_counts_versions(const struct sim *sim)
{
	bool busy = false;

	for (unsigned i = 0; i < sim->scenario->cast_n; i++)
		busy |= sim->state.actors[i].state == SIM_ASKING;
	return busy || !sim->scenario->user || !sim->scenario->user->forgets_versions(sim);
}

static uint64_t hash_rows(struct sim *sim, uint64_t hash)
{
	for (unsigned i = 1; i <= sim->scenario->subjects_n; i++) {
		struct sim_row row;

		if (!sim_read_row(sim, i, &row))
			continue;
		hash = hash_bytes(hash, row.status, strlen(row.status));
		if (sim_counts_versions(sim)) {
			hash = hash_mix(hash, (uint64_t)row.version);
			hash = hash_mix(hash, (uint64_t)row.fence);
		}
		hash = hash_mix(hash, row.claimed);
		hash = hash_mix(hash, (uint64_t)(row.effort * 2 + row.doubt));
		hash = hash_mix(hash, row.until > sim->state.now.ms ? (uint64_t)(row.until - sim->state.now.ms) : 0);
	}
	return hash;
}

uint64_t sim_hash(struct sim *sim)
{
	struct sim_state *state = &sim->state;
	/* A user's rows are seen from now; what else knows a time, counts by its bytes. */
	int64_t since = sim->scenario->user ? 0 : state->now.ms - SIM_START_MS;
	uint64_t hash = hash_mix(7, (uint64_t)since), started = 0;

	sim_begin(sim);
	for (unsigned i = 0; i < sim->scenario->cast_n; i++) {
		struct sim_actor *actor = &state->actors[i];

		hash = hash_mix(hash,
				actor->state * 8u + actor->ask + (sim->scenario->user ? actor->wrote * 64u : 0) +
					(sim->scenario->user ? actor->answered * 128u + actor->stalls * 256u : 0));
		if (actor->state == SIM_DEAD || (actor->state == SIM_DONE && sim->scenario->cast[i].recurring))
			continue;
		if (sim_is_acting(actor))
			hash = hash_mix(hash, (uint64_t)(state->now.ms - actor->lease_since.ns / 1000000) * 2 +
						      actor->overrun);
		hash = hash_mix(hash, print_of(sim, &actor->task.task, &actor->print));
	}
	for (unsigned node = 0; node < sim->scenario->nodes_n; node++)
		hash = hash_group(sim, &state->open[node], hash);
	hash = hash_group(sim, &state->doubt, hash);
	hash = hash_mix(hash, state->left.lapses);
	hash = hash_mix(hash, state->left.crashes);
	hash = hash_mix(hash, state->left.lost_answers);
	hash = hash_mix(hash, state->left.failures);
	hash = hash_mix(hash, state->left.unsettled);
	hash = hash_mix(hash, state->left.mishaps);
	for (unsigned i = 0; i < state->acts_n && sim_counts_versions(sim); i++)
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

/* Of a group only who is in it, of none nothing. */
static void copy_group(struct sim_group *to, const struct sim_group *from)
{
	memcpy(to, from, offsetof(struct sim_group, asked));
	for (unsigned i = 0; i < SIM_ACTORS_MAX && from->phase != GROUP_BUILT; i++)
		if (from->actors & 1u << i)
			to->asked[i] = from->asked[i];
}

static void copy_state(const struct sim_scenario *scenario, struct sim_state *to, const struct sim_state *from)
{
	memcpy(to, from, offsetof(struct sim_state, actors));
	memcpy(to->actors, from->actors, scenario->cast_n * sizeof *from->actors);
	for (unsigned node = 0; node < scenario->nodes_n; node++)
		copy_group(&to->open[node], &from->open[node]);
	copy_group(&to->doubt, &from->doubt);
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
