/*
 * The action port: what carries out the calls that tasks ask for (struct act_port, task/lane.h).
 *
 * A call is dispatched by the kind of its action:
 *
 *   http     POST, on a few loops with a thread each                                               act/http.c
 *   exec     a process of its own; off unless enabled                                              act/exec.c
 *   native   a C function, on a few threads                                                        act/native.c
 *   noop     done at once, output null
 *   sql      never gets here: it runs in the unit of the finish                      FAILED_FOR_GOOD, with words
 *   worker   is pulled over the jobs API, not pushed from here                       FAILED_FOR_GOOD, with words
 *
 * Limits. An action runs at most max_in_flight calls at once (in all versions of its definition together), a kind
 * at most its slots, so the port at most the sum of the slots. What exceeds that waits: first come, first served
 * within an action of a workspace. The actions of a workspace take turns, and so do workspaces; and none of these takes another
 * slot unless more of them are free than it has. So one alone has half of them, and whoever else comes finds one, however
 * slow the services of the others are. At most waiting_max calls wait, shared out in the same way; one more is answered
 * FAILED at once, since nothing was done. No call is ever lost: each is answered exactly once, unless the lane aborts or
 * withdraws it.
 *
 * Abort really cancels: a waiting call is dropped, a transfer ends with its connection, a process group is killed.
 * A native function cannot be interrupted, only told. Withdraw is for calls that are heard out (task/task.h): it drops a
 * waiting one and leaves a running one alone.
 *
 * start, abort and withdraw may be called from any thread. The order at the end: lanes are stopped, then this port is
 * freed, then the lanes are freed.
 */
#pragma once

#include "act/native.h"
#include "act/outbound.h"
#include "base/histogram.h"
#include "model/action.h"
#include "task/lane.h"

/* What one workspace has of each; all of them together have twice as many. */
#define PORT_HTTP_SHARE 256
#define PORT_EXEC_SHARE 16
#define PORT_NATIVE_SHARE 4
#define PORT_HTTP_SLOTS (2 * PORT_HTTP_SHARE)
#define PORT_HTTP_LOOPS 2 /* as many as the server has (serve/server.c) */
#define PORT_EXEC_SLOTS (2 * PORT_EXEC_SHARE)
#define PORT_NATIVE_SLOTS (2 * PORT_NATIVE_SHARE)
#define PORT_WAITING_MAX 20000

/* 0 and NULL mean the defaults. */
struct port_options {
	size_t http_slots;
	size_t http_loops;
	size_t exec_slots;
	size_t native_slots;
	size_t waiting_max;
	bool exec_enabled;
	const struct outbound *outbound;         /* NULL: public addresses only. Must outlive the port */
	const struct secret_rules *secret_rules; /* NULL: any may be named. Likewise */
	const struct natives *natives;           /* NULL: none. Must outlive the port, and is not changed any more */
	const _Atomic int64_t *fence_floor; /* what is added to the fences of calls (engine/fences.h); NULL: nothing */
	const char *ca_file;                /* certificates that TLS trusts besides the system's; NULL: none */
	/* NULL: lane_answer_not_before() */
	void (*answer)(struct ticket ticket, enum act_outcome outcome, struct slice output, int64_t not_before_ms);
};

struct port_stats {
	size_t running, waiting;
	uint64_t refused; /* too many were waiting */
	uint64_t aborted;
	uint64_t answers[ACT_CLAIM_LOST];          /* by outcome */
	struct histogram answered[ACTION_KINDS_N]; /* from a call's turn to its answer; aborted ones had none */
};

struct port;

/* Starts the threads. */
enum hx_code port_new(const struct port_options *options, struct port **ret_port, struct hx_error *err) HX_MUST_CHECK;
/* What lanes are given. Lives as long as the port. */
struct act_port *port_act(struct port *port);
/*
 * Nothing new is begun: what waits and what comes is answered FAILED. What runs may go on for grace_ms; then it is
 * cancelled and answered UNKNOWN, or FAILED where nothing was sent. Returns when all is answered and all threads
 * have ended, for which a native function must have returned. Takes NULL; a second call does nothing.
 */
void port_stop(struct port *port, int64_t grace_ms);
/* Stops it if need be. Takes NULL. */
void port_free(struct port *port);
void port_read_stats(struct port *port, struct port_stats *ret_stats);
/*
 * From any thread: the calls under the lease of this fence, as the store has it. It goes through all calls that there are, with
 * the mutex held: for a person who asks, not for a program that polls.
 */
void port_look(struct port *port, int64_t subject, int64_t fence, struct port_sight *ret_sight);
