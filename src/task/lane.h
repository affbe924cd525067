/*
 * The lane: one thread, one write connection, its tasks. What drives tasks in production.
 *
 *     submit ─┐                    ┌──────────────── round ────────────────┐
 *   answers ──┼─▶ inbox ──▶ resume ready tasks ──▶ gather their units ──▶ one transaction ──▶ answers ─┐
 *     wakes ──┘   ▲              ▲      ├─▶ ACT: handed to the action port                             │
 *                 │              │      ├─▶ SLEEP: timer, topic                                        │
 *                 │              │      └─▶ DONE: seat->done()                                         │
 *                 │              └─────────────────────────────────────────────────────────────────────┘
 *
 * Group commit without a timer: what arrives while a transaction is being synced is the next group, so the
 * busier the lane, the bigger its groups. Where many wait on SQLite, the lane computes the next one meanwhile, and each answer is still
 * given after its sync (lane_group.c). No locks but the inbox's.
 *
 * A store that is silent, or whose lock another program has, holds up the lane and nobody else: who waits for an answer is told
 * within store_timeout_ms that there is none (lane_wait.c), and what only reads does not wait for SQLite's write lock.
 *
 * Limits: at most `seats_max` tasks of callers are in the lane at once, inbox included. One more is refused with
 * HX_BUSY, and the caller passes that on. The node's own (beats, janitors, deliveries) are not counted: whoever
 * submits those bounds them. Tasks that are dropped at a stop are as dead as after a crash: rows survive.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/log.h"
#include "db/driver.h"
#include "task/aside.h"
#include "task/group.h"
#include "task/task.h"
#include "task/timer.h"
#include "task/warden.h"

struct lane;

/*
 * Where a seat waits for work of which each piece is for one: a place at a stand. Work that is offered there wakes one of those who
 * wait, the one that came first, and not all. What somebody was woken for and does not take (its caller is gone, the store does not
 * answer) goes on to the next one, here, in the other lanes of the node, or, if nobody waits in these, on other nodes. One of them
 * looks by time for all the others (lane_stands.c).
 */
struct lane_place {
	int64_t stand; /* set by the owner; each once for a seat */
	/* The lane's own. */
	struct seat *seat;
	struct stand *at; /* NULL: there was no memory for it, and its seat looks by time alone */
	struct lane_place *next, *before;
	uint32_t given; /* offers that it is looking after */
	uint32_t kept;  /* and that have come since it began to look */
};

/* A task's place in a lane. The caller owns both, and leaves both alone from submit until done is called. */
struct seat {
	struct task *task;
	/* In the lane's thread, after the task has taken the answer to a unit: for whoever tells at once. May be NULL. */
	void (*committed)(struct seat *seat);
	/* In the lane's thread, as the last thing the lane does with the seat. May free it; may submit again. */
	void (*done)(struct seat *seat, enum hx_code code);
	/* Where it waits besides its topic; the caller's, and there as long as the seat. NULL: nowhere. */
	struct lane_place *places;
	size_t places_n;
	/* At its end: how much of what is offered at this place it has taken. NULL: nothing. */
	size_t (*took)(const struct seat *seat, size_t place);
	uint64_t tenant; /* whose it is, where readers are shared out (db/unit.h); 0: nobody's in particular */
	/* When its first ask of the store is given up; ns 0: a caller's after store_timeout_ms, the node's own have none. */
	struct mono_time deadline;

	/* The lane's own. */
	struct seat *next;
	struct seat *topic_next, **topic_slot;
	struct seat *act_next;
	struct timer timer;
	struct mono_time latest; /* of its sleep, if it need not look by time */
	struct unit *unit;
	struct lease lease;
	struct warded warded;
	struct lane *lane; /* while it is watched */
	uint64_t number;
	bool beating;
	bool hear_out;       /* under a lease, and to be heard out */
	bool overrun;        /* that lease is lost, or not trusted any more: no beats, only the answer */
	bool asleep;         /* its places are among those who sleep */
	bool own;            /* not counted against seats_max */
	enum errand_go go;   /* of a unit with a limit that is run here */
	bool bounded;        /* somebody waits for it: its asks have a budget (lane_wait.c) */
	struct mono_time by; /* when what it asks of the store is given up */
	enum { SEAT_READY, SEAT_COMMITTING, SEAT_ACTING, SEAT_SLEEPING } state;
};

/* Who an answer of an action belongs to. A ticket stays harmless after its seat is gone. */
struct ticket {
	struct lane *lane;
	uint64_t number;
};

/* Carries out actions, on threads of its own. */
struct act_port {
	/* In the lane's thread: takes the call over (texts live until the answer) and returns at once. */
	void (*start)(struct act_port *port, const struct act_call *call, struct ticket ticket);
	/* After a round of them, in the lane's thread: what was started begins by now. May be NULL: it has begun. */
	void (*flush)(struct act_port *port);
	/* The lane has given up waiting (claim lost, stop): an answer is not needed any more. May be NULL. */
	void (*abort)(struct act_port *port, struct ticket ticket);
	/* Takes a call back that has not begun: true, and it is never begun nor answered. May be NULL: all begin at once. */
	bool (*withdraw)(struct act_port *port, struct ticket ticket);
};

struct lane_options {
	struct db_options db;
	struct db *opened; /* NULL, or a connection that the lane takes over when it starts */
	bool migrate;      /* bring the schema up to date first, under the store's lock; the only way in memory */
	struct clock *clock;
	struct log *log; /* for what the store fails of; may be NULL */
	int64_t number;  /* in that log; the pulse is 0 */
	const char *node;
	uint32_t node_number; /* for ids; every lane of a node has one of its own */
	size_t seats_max;
	int64_t resolve_ms;       /* how long to wait for the truth about a commit whose answer was lost */
	int64_t store_timeout_ms; /* how long a caller's task waits for a word of the store; 0: for as long as it takes */
	struct act_port *act;     /* may be NULL when no task acts */
	/* Builds the unit that renews a lease; may be NULL when no task has one. */
	void (*renew)(struct unit *unit, int64_t subject, int64_t fence, int64_t lease_ms);
	/* Where renewals go: a lane of its own on PostgreSQL. NULL: this one. */
	struct lane *pulse;
	/* Where units with a limit go, and those that meet a lock. NULL: the first are run here, in turn with all others. */
	struct aside *aside;
	/* Who ends actions in time while this lane waits for its store; NULL: nobody else may have them by then. */
	struct warden *warden;
	/* In the lane's thread, after a commit: the topics that it has woken, for other nodes. Must not wait. May be NULL. */
	void (*woke)(void *context, const int64_t topics[], size_t n);
	/* The same for what was offered, and nobody is there to take it. */
	void (*offered)(void *context, struct offer offer);
	void *woke_context; /* of both */
};

struct lane_stats {
	struct group_stats group;
	uint64_t rounds;
	uint64_t claims_lost; /* actions whose lease could not be kept: aborted, or heard out */
	uint64_t answers_dropped;
	uint64_t woken;   /* tasks that a wake or an offer has ended the sleep of */
	uint64_t refused; /* asks that the store was not to be had for in time: nothing of them was done */
	/* Not counts: as it is now, as far as can be told from outside. */
	uint64_t waiting; /* what came and has not been looked at, and units left over for the next transaction */
	uint64_t seats;   /* callers' tasks, of which there are at most seats_max */
};

/* Opens the store and starts the thread. Without `migrate` the schema must be in place. Options' texts must outlive the lane. */
enum hx_code lane_new(const struct lane_options *options, struct lane **ret_lane, struct hx_error *err) HX_MUST_CHECK;
/*
 * Graceful: nothing new is accepted, sleeping tasks end with HX_STOPPING at once, the others may finish within
 * drain_ms and end with HX_STOPPING after it. Leases are renewed meanwhile, so a pulse lane is stopped last.
 * Returns when the thread has ended; late answers of actions are still taken, and ignored. Takes NULL.
 */
void lane_stop(struct lane *lane, int64_t drain_ms);
/* Begins that, and does not wait for it: so that several stop at the same time. Once. */
void lane_ask_to_stop(struct lane *lane, int64_t drain_ms);
/* Stops it if need be. Nobody may answer a ticket of this lane any more: free the action port before. */
void lane_free(struct lane *lane);

/* HX_BUSY when the lane is full, HX_STOPPING when it is ending; the seat then still belongs to the caller. */
enum hx_code lane_submit(struct lane *lane, struct seat *seat) HX_MUST_CHECK;
/*
 * For the few seats of the node itself, which must go on while callers fill the lane: takes no caller's seat and is
 * refused only with HX_STOPPING. Who uses it bounds how many there are.
 */
enum hx_code lane_submit_own(struct lane *lane, struct seat *seat) HX_MUST_CHECK;
/* From any thread, once per ticket (more are dropped). The output is copied. not_before_ms: as in struct answer. */
void lane_answer_not_before(struct ticket ticket, enum act_outcome outcome, struct slice output, int64_t not_before_ms);
static inline void lane_answer(struct ticket ticket, enum act_outcome outcome, struct slice output)
{
	lane_answer_not_before(ticket, outcome, output, /* not_before_ms= */ 0);
}
/* From any thread: wakes whoever has one of these topics; everybody who has any. */
void lane_wake(struct lane *lane, const int64_t topics[], size_t n);
void lane_wake_everybody(struct lane *lane);
/* From any thread: another node has offered it. Goes on to the other lanes, but not to other nodes: they were told, too. */
void lane_offer(struct lane *lane, struct offer offer);
/* From any thread: its ids have this number from now on. */
void lane_set_node_number(struct lane *lane, uint32_t number);
/* Other lanes of the node: what is woken here is woken there too. Set before the first submit. */
void lane_set_peers(struct lane *lane, struct lane *const peers[], size_t n);
/* Makes it look at its clock again (a test has moved a fake one). */
void lane_nudge(struct lane *lane);
/*
 * From any thread: waits until all that another connection could read by now of what this lane has written is durable. False: that
 * moment has come (ns 0: never).
 */
bool lane_settle(struct lane *lane, struct mono_time by) HX_MUST_CHECK;
void lane_read_stats(struct lane *lane, struct lane_stats *ret_stats);
