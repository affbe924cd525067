/*
 * The world of the simulations of batches: the definition, the service that draws, deletes and voids, and the network.
 *
 * The service keeps an artifact for each item. It dedupes what is drawn by key as long as the artifact is there, what is deleted
 * by key for ever (a second pass under the same key would delete nothing), and refuses to draw under a key that was voided. A
 * call that was cut off, or whose answer was lost, may also still be under way: then the network delivers it at any later
 * time, or never.
 */
#ifndef HX_TESTS_SIM_BATCH_WORLD_H
#define HX_TESTS_SIM_BATCH_WORLD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/hash.h"
#include "base/id.h"
#include "flow/batch.h"
#include "sim/left.h"
#include "sim/sim.h"

#define BATCH 1
#define ACCOUNT 2
#define ITEMS_MAX 3

/* One world per test: definitions live as long as the program. */
struct world_plan {
	const char *draw; /* more fields of the action: its effect, void, probe */
	const char *more; /* more fields of the definition */
	bool no_cleanup;
	bool plain;          /* the service dedupes nothing: an item must not be drawn twice */
	const char *initial; /* PENDING, QUEUED, RUNNING (held by node-a) */
	unsigned items_n;
	int64_t costs[ITEMS_MAX], balance;
	unsigned refusals; /* how often a call may fail */
	bool loose;        /* what is cut off may still arrive */
};

static struct {
	struct arena arena;
	const struct batch_machine *machine;
	const struct batch_machine *lacking; /* the same in a program without the function of `draw` */
	struct world_plan plan;
	struct batch_hold hold;  /* RUNNING from the start */
	struct sim *sim;         /* the world that is being walked through */
	uint64_t books[1 << 18]; /* whose checks have held; one goes when another takes its slot */
} fixture;

static inline const struct batch_machine *machine_of(const void *context, struct slice workflow, int64_t version)
{
	(void)workflow, (void)version;
	return context ? fixture.lacking : fixture.machine;
}

static const struct batch_policy policy = {.lease_ms = 60000, .machine_of = machine_of};
static const struct batch_policy lacking_policy = {.lease_ms = 60000, .machine_of = machine_of, .context = &fixture};

#define ACTION(name, more) "\"" name "\":{\"kind\":\"http\",\"url\":\"http://127.0.0.1:1/\"%s" more "}"
#define KEYED ",\"effect\":\"keyed\""
#define PLAIN ",\"effect\":\"claimed\""
#define VOID ",\"void\":\"void\""
#define ONCE ",\"retry\":{\"max_attempts\":1}"
#define TWICE ",\"retry\":{\"max_attempts\":2,\"initial\":\"1s\",\"jitter\":false}"

static inline const struct batch_machine *machine_from(struct world_plan plan)
{
	static const char format[] =
		"{\"workflow\":\"render\",\"kind\":\"batch\",\"actions\":{" ACTION("draw", "") "," ACTION("delete", ",\"effect\":\"idempotent\"") "," ACTION(
			"void",
			",\"effect\":\"idempotent\"") "," ACTION("ask",
								 ",\"effect\":\"idempotent\"") "," ACTION("tell",
													  KEYED) "},\"item_action\":\"draw\",\"done_after_effect\":[\"tell\"],\"concurrency\":2,\"lease\":\"60s\"%s%s}";
	const struct batch_definition *definition;
	struct batch_machine *machine;
	struct findings findings;
	char text[4000];

	findings_init(&findings, &fixture.arena);
	snprintf(text, sizeof text, format, plan.draw, "", "", "", "",
		 plan.no_cleanup ? "" : ",\"cleanup_action\":\"delete\"", plan.more ? plan.more : "");
	batch_definition_parse("render.json", arena_copy(&fixture.arena, slice_str(text)), &fixture.arena, &findings,
			       &definition);
	for (const struct finding *f = findings.first; f && !definition; f = f->next)
		printf("%s: %s\n", f->rule, f->text);
	assert_non_null(definition);
	machine = arena_zalloc(&fixture.arena, sizeof *machine);
	*machine = (struct batch_machine){definition, 1};
	return machine;
}

static inline void build_world(struct world_plan plan)
{
	arena_release(&fixture.arena);
	memset(&fixture, 0, sizeof fixture);
	fixture.plan = plan;
	arena_init(&fixture.arena, 16u << 20);
	fixture.machine = machine_from(plan);
	fixture.lacking = machine_from(plan);
	lack(fixture.lacking->definition->actions, fixture.lacking->definition->actions_n, "draw");
}

/* ---- the outside ---- */

/* What the service has, and what the check has seen. */
struct notes {
	struct outside_item {
		bool there;  /* its artifact */
		bool voided; /* its key */
		bool late;   /* drawn after it was cancelled, by a call that was overtaken, and nobody knows yet */
		bool loose;  /* a call to draw it is on its way, and nobody waits for its answer */
		unsigned char drawn; /* plain: how often */
		uint32_t cleaned;    /* keys that have deleted it, one bit for each */
	} items[ITEMS_MAX];
	unsigned char refusals; /* so far */
	/* The rows, when a unit last changed some. */
	struct seen_item {
		int64_t attempt, fence, charged;
		char status, decision; /* their first letter, or 0 */
		bool late;
	} seen[ITEMS_MAX];
	int64_t fence, until, due_at; /* 0: none */
	char status[16];
	bool flagged, owned;
	uint64_t rows;
	uint32_t begun[SIM_ACTORS_MAX]; /* the turn + 1 in which the call that is under way was begun */
};

static inline struct notes *notes_of(const struct sim *sim)
{
	_Static_assert(sizeof(struct notes) <= SIM_NOTES_BYTES, "the notes fit");
	return (struct notes *)(uintptr_t)sim->state.notes;
}

static inline bool calls(const struct act_call *call, const char *action)
{
	return strcmp(((const struct action *)call->action)->name, action) == 0;
}

/* The item that a call is about. Its key: batch_ID/N, and more. */
static inline unsigned item_of(const struct act_call *call)
{
	const char *slash = memchr(call->key.p, '/', call->key.n);

	ASSERT(slash && slash[1] >= '0' && slash[1] < '0' + ITEMS_MAX);
	return (unsigned)(slash[1] - '0');
}

/* The number at the end of a key: other in every pass of the cleanup. */
static inline unsigned pass_of(const struct act_call *call)
{
	unsigned pass = 0;

	for (size_t i = call->key.n; i > 0 && call->key.p[i - 1] != '/'; i--)
		pass = pass * 31 + (unsigned char)call->key.p[i - 1];
	return pass % 32;
}

static inline void draw(struct sim *sim, unsigned n, bool overtaken)
{
	struct outside_item *item = &notes_of(sim)->items[n];

	if (item->voided || (item->there && !fixture.plan.plain))
		return; /* refused, or done already under this key */
	item->there = true;
	if (fixture.plan.plain && item->drawn++)
		sim_violate(sim, "item %u was drawn twice", n);
	item->late = notes_of(sim)->seen[n].decision == 'c';
	if (item->late && !overtaken)
		sim_violate(sim, "item %u was cancelled, and is drawn by the batch's holder", n);
}

/* Was the batch taken from whoever made this call? */
static inline bool is_overtaken(struct sim *sim, const struct act_call *call)
{
	return call->lease.fence == 0 || call->lease.fence != notes_of(sim)->fence || !notes_of(sim)->owned;
}

static inline void effect(struct sim *sim, const struct act_call *call)
{
	struct outside_item *item = &notes_of(sim)->items[item_of(call)];

	if (calls(call, "draw")) {
		draw(sim, item_of(call), is_overtaken(sim, call));
	} else if (calls(call, "delete")) {
		if (!(item->cleaned >> pass_of(call) & 1))
			item->there = item->late = false;
		item->cleaned |= 1u << pass_of(call);
	} else if (calls(call, "void")) {
		item->voided = true;
	}
}

static inline bool allows(const struct sim *sim, const struct act_call *call, enum sim_act how)
{
	if (how == SIM_ACT_OK)
		return true;
	if (call->lease.fence == 0)
		return false; /* the network */
	if (how == SIM_ACT_FAILED)
		return notes_of(sim)->refusals < fixture.plan.refusals;
	return how == SIM_ACT_UNKNOWN_NOT || !calls(call, "ask");
}

/* Truthful: of what it is just at, the service cannot say what will become of it. */
static inline struct slice probed(const struct sim *sim, unsigned n)
{
	for (unsigned i = 0; i < sim->scenario->cast_n; i++) {
		const struct sim_actor *actor = &sim->state.actors[i];
		struct act_call call;

		if (actor->state != SIM_ASKING || actor->ask != ASK_ACT)
			continue;
		call = sim_call_of(actor);
		if (calls(&call, "draw") && item_of(&call) == n)
			return slice_str("{\"outcome\":\"unknown\"}");
	}
	return slice_str(notes_of(sim)->items[n].there ? "{\"outcome\":\"done\"}" : "{\"outcome\":\"not_done\"}");
}

static inline struct answer end_call(struct sim *sim, const struct act_call *call, enum sim_act how)
{
	struct answer answer = {.kind = ANSWER_ACT, .outcome = ACT_OK, .output = slice_str("1")};
	struct outside_item *item = &notes_of(sim)->items[item_of(call)];

	if (how == SIM_ACT_FAILED) {
		notes_of(sim)->refusals++;
		answer.outcome = ACT_FAILED;
		return answer;
	}
	if (how != SIM_ACT_UNKNOWN_NOT)
		effect(sim, call);
	if (how == SIM_ACT_UNKNOWN_NOT && calls(call, "draw"))
		item->loose |= fixture.plan.loose;
	if (call->lease.fence == 0)
		item->loose = false;
	if (how != SIM_ACT_OK)
		answer.outcome = ACT_UNKNOWN;
	else if (calls(call, "draw") && item->voided)
		answer.outcome = ACT_INVALID;
	else if (calls(call, "ask"))
		answer.output = probed(sim, item_of(call));
	return answer;
}

/* Has the lease been lost before it was begun? One that goes on without its lease, or is killed under it, was. */
static inline bool is_withdrawn(const struct sim *sim, const struct act_call *call)
{
	const struct notes *notes = notes_of(sim);

	for (unsigned i = 0; i < sim->scenario->cast_n; i++)
		if (sim->state.actors[i].overrun && slice_eq(sim_call_of(&sim->state.actors[i]).key, call->key) &&
		    sim_call_of(&sim->state.actors[i]).lease.fence == call->lease.fence)
			return false;
	return call->lease.fence != notes->fence || !notes->owned || notes->until <= sim->state.now.ms;
}

static inline void cut(struct sim *sim, const struct act_call *call, bool done)
{
	if (call->lease.fence == 0)
		return;
	if (done)
		effect(sim, call);
	else if (calls(call, "draw") && !is_withdrawn(sim, call))
		notes_of(sim)->items[item_of(call)].loose |= fixture.plan.loose;
}

static const struct sim_outside service = {allows, end_call, cut};

/* The network: delivers what nobody waits for any more. */
struct network {
	struct task task;
	enum { NETWORK_NEW, NETWORK_DELIVERS, NETWORK_DONE } at;
	char key[ID_TEXT_BYTES + 12];
};

static inline void network_take(struct task *task, const struct answer *answer)
{
	((struct network *)task)->at = answer->kind == ANSWER_START ? NETWORK_DELIVERS : NETWORK_DONE;
}

static inline void network_ask(const struct task *task, struct ask *ask)
{
	const struct network *network = (const struct network *)task;

	ask->kind = network->at == NETWORK_DONE ? ASK_DONE : ASK_ACT;
	ask->act = (struct act_call){.action = fixture.machine->definition->item_action,
				     .key = slice_str(network->key)};
}

static const char *network_where(const struct task *task)
{
	return ((const struct network *)task)->at == NETWORK_DONE ? "done" : "delivering a call";
}

static const struct task_kind network_kind = {
	.name = "network",
	.size = sizeof(struct network),
	.take = network_take,
	.ask = network_ask,
	.where = network_where,
};

static inline int loose_item(const struct sim *sim)
{
	for (int n = 0; n < ITEMS_MAX; n++)
		if (notes_of(sim)->items[n].loose)
			return n;
	return -1;
}

static inline bool is_loose(struct sim *sim)
{
	return loose_item(sim) >= 0;
}

static inline void init_network(union sim_task *task, const void *plan, struct arena *texts)
{
	struct network *network = (struct network *)task;
	char id[ID_TEXT_BYTES];

	(void)plan, (void)texts;
	*network = (struct network){0};
	id_format("batch", BATCH, id);
	snprintf(network->key, sizeof network->key, "%s/%d", id, loose_item(fixture.sim));
	task_init(&network->task, &network_kind, /* topic= */ 0);
}

#endif
