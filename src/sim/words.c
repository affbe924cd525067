/* What happens in a schedule, in words that a person can follow. */
#include <stdio.h>

#include "sim/sim.h"

static void describe_group(struct sim *sim, const struct sim_group *group, unsigned mask, char *words, size_t size)
{
	size_t n = 0;

	for (unsigned i = 0; i < SIM_ACTORS_MAX && n < size; i++) {
		const struct task *task = group ? &group->asked[i].task : &sim->state.actors[i].task.task;

		if (mask & 1u << i)
			n += (size_t)snprintf(words + n, size - n, "%s%s: %s", n ? ", " : "",
					      sim->scenario->cast[i].name, task->kind->where(task));
	}
}

static const char *commit_words(enum sim_commit how)
{
	static const char *const words[] = {
		"commits",
		"fails to commit, nothing happened:",
		"commits, but the answer is lost:",
		"sends a commit that never arrives, and hears nothing:",
		"sends a commit that is still under way, and hears nothing:",
		"commits, and is killed before anybody hears of it:",
	};

	return words[how];
}

static const char *act_words(enum sim_act how)
{
	static const char *const words[SIM_ACTS_N] = {
		"ok",
		"failed",
		"done, but the answer is lost",
		"not done, and no answer",
		"an earlier try is under way",
		"rejected",
		"still to be done, and no answer",
		"done, and it says that it failed",
	};

	return words[how];
}

void sim_describe(struct sim *sim, struct sim_edge edge, char words[SIM_WORDS_BYTES])
{
	const char *name = edge.who < sim->scenario->cast_n ? sim->scenario->cast[edge.who].name : "";
	const struct sim_actor *actor = &sim->state.actors[edge.who < SIM_ACTORS_MAX ? edge.who : 0];
	char group[SIM_WORDS_BYTES / 2] = "";

	switch ((enum sim_edge_kind)edge.kind) {
	case EDGE_READ:
		snprintf(words, SIM_WORDS_BYTES, "%s is %s", name, actor->task.task.kind->where(&actor->task.task));
		break;
	case EDGE_EXECUTE:
		describe_group(sim, NULL, edge.mask, group, sizeof group);
		snprintf(words, SIM_WORDS_BYTES, "%s executes {%s}, not committed yet", sim_node_name(edge.who), group);
		break;
	case EDGE_COMMIT:
		describe_group(sim, &sim->state.open[edge.who], sim->state.open[edge.who].actors, group, sizeof group);
		snprintf(words, SIM_WORDS_BYTES, "%s %s {%s}", sim_node_name(edge.who), commit_words(edge.how), group);
		break;
	case EDGE_RESOLVE:
		describe_group(sim, &sim->state.doubt, sim->state.doubt.actors, group, sizeof group);
		snprintf(words, SIM_WORDS_BYTES, "the commit that was under way %s {%s}",
			 edge.how ? "lands after all:" : "is rolled back:", group);
		break;
	case EDGE_ACT:
		snprintf(words, SIM_WORDS_BYTES, "the action of %s (fence %lld%s) ends: %s", name,
			 (long long)sim_call_of(actor).lease.fence, actor->overrun ? ", overrun" : "",
			 act_words(edge.how));
		break;
	case EDGE_BEAT:
		snprintf(words, SIM_WORDS_BYTES, "a heartbeat is sent for %s (fence %lld)%s", name,
			 (long long)sim_call_of(actor).lease.fence,
			 edge.how ? "; what is cut off was done, what is heard out goes on" : "");
		break;
	case EDGE_AGAIN:
		snprintf(words, SIM_WORDS_BYTES, "%s starts its next round", name);
		break;
	case EDGE_TIME:
		snprintf(words, SIM_WORDS_BYTES, "time passes, %lld ms%s",
			 (long long)(sim_next_moment(sim) - sim->state.now.ms),
			 edge.how ? "; what is cut off was done, what is heard out goes on" : "");
		break;
	case EDGE_CRASH:
		snprintf(words, SIM_WORDS_BYTES, "%s is killed%s", sim_node_name(edge.who),
			 edge.how ? "; what it had under way outside was done" : "");
		break;
	case EDGE_WRITE:
		snprintf(words, SIM_WORDS_BYTES, "%s: %s", name, actor->task.task.kind->where(&actor->task.task));
		break;
	case EDGE_LAND:
		snprintf(words, SIM_WORDS_BYTES, "what was still to happen outside happens");
	}
}
