/*
 * The simulator: the engine's own tasks and groups over SQLite in memory, with everything that the real world
 * decides taken into our hands. It chooses who goes next and where groups end, kills nodes between any two
 * asks, loses the answers of commits and actions, lets a commit land late, lets leases lapse.
 *
 * The state of a world is the store plus `struct sim_state`, which is flat: the explorer takes it back with a
 * savepoint, where the store was written, and a copy. Every choice is an edge:
 *
 *   READ(actor)            a unit that only reads: runs and answers
 *   EXECUTE(node, actors)  their units run as one group, uncommitted: its subjects are locked for all others
 *   COMMIT(node, how)      durable · failed · answer lost (landed, vanished or still open) · durable, then crash
 *   RESOLVE(doubt, how)    a commit that was left open lands or vanishes
 *   ACT(actor, how)        the action under way ends: ok · failed · unknown, done or not (see world.h)
 *   BEAT(actor)            the lease of an action under way is renewed, or found to be lost: the action is cut off, or
 *                          goes on if it is heard out, to end at any later time
 *   AGAIN(actor)           a recurring actor (the janitor) starts its next round
 *   TIME                   the clock moves to the next moment at which something is due
 *   CRASH(node)            all tasks of the node are gone; the recurring ones start anew
 *
 * A scenario of a user's own definition (struct sim_user, made by trial/) has fewer: what the engine's own tests walk through is
 * taken for granted there, and what the definition decides is all tried.
 *
 *   WRITE(actor)           its unit alone is run and committed; what it reads, it reads at once
 *   LAND(which)            what a service was asked for, and gave no answer about, happens after all
 *   AGAIN(actor, which)    of the rounds that it could begin now, this one
 *   AGAIN(…, stalls)       and it stands still when it has read: what it then writes, it writes at any time
 *   TIME                   free of charge where nothing else goes on; otherwise somebody is paused past the end of a lease
 *   ACT(actor, stalls)     it is answered, and whoever asked stands still with that until its lease is over; what it then writes, it writes
 *                          at any time: its fence is all that stops it
 *
 * An executed group is kept as data: it is run, its verdicts are noted, and it is rolled back until its COMMIT
 * runs it again. Since its subjects are locked, it then meets the same rows; the simulator checks that.
 *
 * After every edge the invariants of invariant.h are checked. Same seed, same scenario: same trace, byte for byte.
 */
#pragma once

#include <stdalign.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/id.h"
#include "base/strbuf.h"
#include "sim/fingerprint.h"
#include "sim/reads.h"
#include "sim/store.h"
#include "task/group.h"
#include "task/task.h"

#define SIM_ACTORS_MAX 10
#define SIM_NODES_MAX 4
#define SIM_SUBJECTS_MAX 4
#define SIM_TASK_BYTES 2560
#define SIM_EDGES_MAX 256
#define SIM_ACTS_MAX 64
#define SIM_EFFECTS_MAX 16
#define SIM_REQUESTS_MAX 48
#define SIM_WROTE_MAX 24
#define SIM_WORDS_BYTES 200
#define SIM_NOTES_BYTES 1024

union sim_task {
	struct task task;
	alignas(max_align_t) char bytes[SIM_TASK_BYTES];
};

struct sim;

/* Who takes part: a task on a node. */
struct sim_cast {
	const char *name;
	unsigned node;
	bool recurring;
	void (*init)(union sim_task *task, const void *plan, struct arena *texts);
	const void *plan;
	bool (*may_start)(struct sim *sim); /* is there something for a next round to do? NULL: one may always start */
};

/* How often the world may do each thing to us. */
struct sim_bounds {
	unsigned lapses, crashes, lost_answers, failures;
	unsigned unsettled; /* calls that are answered with "an earlier try is under way", in a keyed world */
	unsigned mishaps;   /* of a user's scenario: so many of all these together */
};

/* What the outside is like, for scenarios that count effects. */
enum sim_world {
	WORLD_UNWATCHED, /* effects are not counted; holders may be paused and go on after their time */
	WORLD_PLAIN,     /* every call that arrives has an effect; a holder aborts its call before its lease ends */
	WORLD_KEYED,     /* the other side dedupes on our key; the same */
};

/* How an action under way may end. */
enum sim_act {
	SIM_ACT_OK,
	SIM_ACT_FAILED,
	SIM_ACT_UNKNOWN_DONE,
	SIM_ACT_UNKNOWN_NOT,
	SIM_ACT_UNSETTLED,
	/* In a scenario of a user alone: */
	SIM_ACT_INVALID, /* rejected */
	SIM_ACT_LATE,    /* no answer, and it is still to happen */
	SIM_ACT_LIED,    /* "failed", and it was done */
	SIM_ACTS_N
};

/*
 * An outside of the scenario's own, in place of the three above; leases are kept to as with WORLD_PLAIN. What it
 * remembers stands in sim->state.notes. The simulator keeps the bound on lost answers.
 */
struct sim_outside {
	/* Can this call end this way, as things stand? */
	bool (*allows)(const struct sim *sim, const struct act_call *call, enum sim_act how);
	/* Lets it end: what it changes outside, and the answer (kind, outcome, output) for the task. */
	struct answer (*end)(struct sim *sim, const struct act_call *call, enum sim_act how);
	/* It is cut off in the middle by a crash or the end of its lease: done, or not. */
	void (*cut)(struct sim *sim, const struct act_call *call, bool done);
};

/* How a call that is under way is cut off: not done, done, or still to happen. */
enum sim_cut { CUT_NOT_DONE, CUT_DONE, CUT_LATE, CUTS_N };

/* What a scenario of a user's definition has besides. */
struct sim_user {
	const char *schema; /* tables of its own, beside the engine's */
	unsigned nodes_n;   /* that may crash; the others are not the engine's */
	/* So many different rounds a recurring actor could begin now; which it is to be, its init finds in sim->chosen. */
	unsigned (*rounds)(struct sim *sim, unsigned actor);
	bool (*is_bystander)(const struct sim *sim, unsigned actor); /* nothing waits for what it could begin */
	int64_t (*lease_end)(struct sim *sim);                       /* the next one, or INT64_MAX */
	/* The unit that it asks for is committed before anybody else does something. (Reads are never waited for.) */
	bool (*is_eager)(const struct sim *sim, unsigned actor);
	/* A round that it begins may be paused between what it reads and what it writes. */
	bool (*stands_still)(const struct sim *sim, unsigned actor);
	bool (*allows)(const struct sim *sim, const struct act_call *call, enum sim_act how);
	void (*cut)(struct sim *sim, const struct act_call *call, enum sim_cut how);
	/* Where nobody is busy, all that could still read a version or a fence reads it anew: how many changes it took to come here
	 * matters to nobody, unless the rules count them. */
	bool (*forgets_versions)(const struct sim *sim);
	unsigned (*late_n)(const struct sim *sim); /* what is still to happen */
	void (*land)(struct sim *sim, unsigned which);
};

struct sim_subject {
	int64_t kind;
	const char *initial;
};

struct sim_scenario {
	const char *name;
	unsigned subjects_n; /* ids 1 to n, made before the start in `initial` */
	int64_t kind;
	const char *initial;
	const struct sim_subject
		*others;          /* the second and those after it, where they are not like the first; NULL: they are */
	const char *claim_status; /* NULL when nothing is claimed, or `driven` */
	const char *revert_status;
	bool driven; /* subjects go through several statuses under one claim: see subject_seize() */
	unsigned nodes_n;
	unsigned cast_n;
	struct sim_cast cast[SIM_ACTORS_MAX];
	struct sim_bounds bounds;
	enum sim_world world;
	const struct sim_outside *outside; /* NULL: the world is one of those */
	const struct sim_user *user;       /* NULL: the scenario is one of the engine's own tests */
	bool never_fails;                  /* calls: each is done, or its answer lost, or the other side still at it */
	bool fails_late;                   /* calls: the same, until the other side was still at one: it may be done */
	bool shared;                       /* several tasks of a node act under one claim */
	bool user_moves;                   /* the status is in a row of the user's, which somebody else moves, too */
	/* More than subjects before the start; more to check after every change, and where nothing goes on but time. All
	 * may be NULL. */
	void (*setup)(struct sim *sim);
	void (*check)(struct sim *sim);
	void (*quiet)(struct sim *sim);
	bool (*is_probe)(const void *action); /* NULL: none is */
	/* For rows that are no subjects. NULL: there are none. */
	const struct sim_rows *rows;
};

/* Rows that only the scenario knows: what the simulator has to know of them. */
struct sim_rows {
	/* The next moment after now at which something of them ends, or INT64_MAX. */
	int64_t (*next_moment)(struct sim *sim);
	/* All that decides the future, the scenario's notes included; times as seen from now. */
	uint64_t (*hash)(struct sim *sim, uint64_t hash);
	/* Around each unit that runs: what may it have changed? Called one after the other, always in pairs. */
	void (*before_unit)(struct sim *sim, const struct unit *unit);
	void (*after_unit)(struct sim *sim, const struct unit *unit, enum unit_verdict verdict);
	/* In words, for a counterexample. */
	void (*tell)(struct sim *sim, struct strbuf *words);
	/* Which of them a unit writes, as a mask: they are locked until its commit, as its subjects are. NULL: none. */
	unsigned (*locked)(const struct unit *unit);
};

/* The fingerprint of a task, kept with it until it takes an answer, or something else that has decided it changes. */
struct sim_print {
	uint64_t hash; /* 0: not known */
	unsigned of;   /* what else has: of fingerprint.h */
	unsigned ops_n;
	uint64_t made;
};

enum sim_actor_state { SIM_ASKING, SIM_IN_GROUP, SIM_DONE, SIM_DEAD };

struct sim_actor {
	enum sim_actor_state state;
	enum ask_kind ask;
	enum hx_code code;
	struct mono_time lease_since; /* of the call under way: its claim, or the last renewal */
	bool overrun;                 /* the call under way goes on without its lease, and is not renewed any more */
	bool wrote;                   /* something that it began stands in the store */
	bool answered;                /* and its call was answered since */
	bool stalls;                  /* that was before its lease was over, and it has not written since */
	struct sim_print print;
	union sim_task task;
};

/* Units that were executed and not yet committed, as copies of the tasks that asked for them. */
struct sim_group {
	enum group_phase phase; /* BUILT: there is none */
	unsigned actors;        /* mask */
	bool answered, waked;
	struct wall_time executed; /* its statements saw this clock, whenever it commits */
	enum unit_verdict verdicts[SIM_ACTORS_MAX];
	struct sim_print prints[SIM_ACTORS_MAX];
	int lines[SIM_ACTORS_MAX]; /* that decided against them */
	union sim_task asked[SIM_ACTORS_MAX];
};

/* What is seldom in use stands last: see sim_save(). */
struct sim_state {
	struct wall_time now;
	uint64_t store; /* the number of its content: see reads.h */
	struct {
		uint64_t store, hash;
	} made;                  /* the ids of all subjects, in that content */
	struct arena_mark texts; /* of sim->texts, as of the last edge */
	int64_t next_id;
	struct id_source ids; /* of a user's scenario, for tasks that make many rows at once */
	struct sim_bounds left;
	struct fingerprint_ops ops;
	unsigned acts_n;
	struct {
		int64_t subject, fence;
		unsigned actor;
	} acts[SIM_ACTS_MAX];              /* claims under which an action was started */
	unsigned wrote_n;                  /* of sim->wrote[] */
	unsigned effects_n;                /* calls that had an effect in the outside world */
	uint64_t effects[SIM_EFFECTS_MAX]; /* the keys they carried, hashed */
	unsigned requests_n;
	struct {
		uint64_t key, text, action;
		unsigned open;        /* tries that have no answer, or one that says nothing for certain */
	} requests[SIM_REQUESTS_MAX]; /* what was sent under which key, hashed, and by what */
	alignas(max_align_t) char notes[SIM_NOTES_BYTES]; /* what a scenario's check remembers; zero at first */
	struct sim_actor actors[SIM_ACTORS_MAX];
	struct sim_group open[SIM_NODES_MAX];
	struct sim_group doubt; /* a commit that may still land; one at a time */
};

/* Of a user's scenario: a task as it was when it wrote, for who stands still there and writes later (invariant.h, I10). */
struct sim_wrote {
	union sim_task asked;
	int64_t version, fence; /* of what it wrote to, as it had read that */
	bool claimed;           /* somebody held it: by himself, unless the fence has risen since */
};

enum sim_edge_kind {
	EDGE_READ,
	EDGE_EXECUTE,
	EDGE_COMMIT,
	EDGE_RESOLVE,
	EDGE_ACT,
	EDGE_BEAT,
	EDGE_AGAIN,
	EDGE_TIME,
	EDGE_CRASH,
	EDGE_WRITE,
	EDGE_LAND
};
enum sim_commit { COMMIT_DURABLE, COMMIT_FAILED, COMMIT_LANDED, COMMIT_VANISHED, COMMIT_OPEN, COMMIT_THEN_CRASH };

struct sim_edge {
	unsigned char kind;
	unsigned char who; /* actor or node */
	unsigned char
		how; /* enum sim_commit, enum sim_act, or 1: lands (or: what is under way outside is done), 0: not */
	unsigned char
		mask; /* actors of a group; of a user's TIME: somebody is paused; of a user's ACT and AGAIN: it stalls */
};

struct sim {
	const struct sim_scenario *scenario;
	struct db *db;
	struct fake_clock clock;
	struct arena arena; /* of one edge */
	struct arena texts; /* what tasks keep; taken back with the state */
	struct reads reads;
	struct sim_home *home; /* of a user's scenario: whose db and reads these are (home.h) */
	struct sim_store store;
	struct sim_state state;
	char violation[512]; /* empty: none */
	unsigned chosen;     /* of the rounds that an actor could begin */
	bool full;           /* something could not be remembered, and is not checked */
	struct sim_wrote wrote[SIM_WROTE_MAX];
	uint64_t crash_points;
	uint64_t prints_n; /* found to be known */
};

/* Opens a fresh world at the scenario's start. */
enum hx_code sim_open(struct sim *sim, const struct sim_scenario *scenario, struct hx_error *err) HX_MUST_CHECK;
void sim_close(struct sim *sim);
/* The edges that can be taken now, in a fixed order. */
size_t sim_edges(struct sim *sim, struct sim_edge edges[SIM_EDGES_MAX]);
/* Takes one. False: an invariant was broken, sim->violation says which. */
bool sim_take(struct sim *sim, struct sim_edge edge);
/* Everything that decides the future, without history and ops. */
uint64_t sim_hash(struct sim *sim);
/* Do versions and fences tell two states apart? Of a user's scenario they need not, where nobody believes in one: see struct sim_user. */
bool sim_counts_versions(const struct sim *sim);
/* An edge in words, to be asked before it is taken. */
void sim_describe(struct sim *sim, struct sim_edge edge, char words[SIM_WORDS_BYTES]);
/* Does this edge go on with the work, as opposed to time, crashes and renewals? */
bool sim_edge_is_progress(struct sim_edge edge);
/* May the store be another one after it? */
bool sim_edge_writes(const struct sim *sim, struct sim_edge edge);

/* Copies the state, which need not be zeroed: of what is not in use, nothing. */
void sim_save(const struct sim *sim, struct sim_state *ret_state);
/* Goes back to a state that was saved (the store is taken back by the caller). */
void sim_restore(struct sim *sim, const struct sim_state *state);
/* Sets the clock of the world. */
void sim_set_now(struct sim *sim, struct wall_time now);

/* For words.c. */
const char *sim_node_name(unsigned node);
/* What the actor, which is acting, has asked for. */
struct act_call sim_call_of(const struct sim_actor *actor);
/* When something is due next, -1: never. */
int64_t sim_next_moment(struct sim *sim);

/* For invariant.c: the first violation is kept. */
void sim_violate(struct sim *sim, const char *format, ...) HX_PRINTF(2, 3);
