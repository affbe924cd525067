/*
 * The number of a node: part of every id that it makes, so no two nodes may have the same one at a time. A number is leased,
 * in one guarded write, and renewed while the node lives; the rows of the table are the heartbeats of the nodes.
 *
 *   node_take   a number that nobody has, or whose time is over: token, until
 *   node_renew  until, while the token is ours. A lease that has lapsed is still ours while nobody else has taken it
 *
 *   the task    START ─▶ SLEEPING until start_at ─┬ we have one ─▶ RENEWING ─┬ won ─▶ HX_OK
 *                                                 │                          └ lost ─▶ HX_STALE_FENCE: it is another's
 *                                                 └ none ─▶ READING ─▶ TAKING ─┬ won ─▶ HX_OK, with the number
 *                                                             ▲                └ lost ─┐ somebody was first
 *                                                             └────────────────────────┘
 *               failed or unknown: HX_STORE_UNAVAILABLE. A number that was taken without our knowing lapses.
 *
 * Free numbers come first, and among those (as among the lapsed) one is drawn: nodes that start together seldom reach for
 * the same one, and one that has lapsed a moment ago is hardly ever given away.
 */
#pragma once

#include "task/task.h"

#define NODES_MAX 128
#define NODE_LEASE_MS 10000

struct node_lease {
	struct task task;
	const char *name;
	int64_t token;
	struct mono_time start_at;
	int64_t number;    /* -1: none */
	int64_t live;      /* nodes that are alive, this one too; afterwards */
	int64_t floor;     /* of fences; afterwards */
	int64_t namesakes; /* other nodes that are alive and have this one's name; afterwards */
	int64_t store_ms;  /* the store's clock, at some time between these two; 0: it was not read; afterwards */
	struct mono_time asked, answered;
	/* private */
	int64_t now_ms;
	uint64_t draw;
};

/* start_at {0}: at once. It ends as HX_BUSY when all numbers are taken. */
void node_lease_init(struct node_lease *lease, const char *name, int64_t token, int64_t number,
		     struct mono_time start_at);

/* Row: number, 1 while its lease lasts, else 0. */
void node_scan(struct unit *unit);
/* VERDICT: lost when somebody has it. */
void node_take(struct unit *unit, int64_t number, const char *name, int64_t token, int64_t now_ms);
/* VERDICT, and three more lines: how many nodes are alive, the floor of fences, and how many others have this name. */
void node_renew(struct unit *unit, int64_t number, int64_t token, const char *name);
/* It ends, and others need not wait for its time. */
void node_leave(struct unit *unit, int64_t number, int64_t token);
/* Row: how far the store's clock lags the last heartbeat of any node. */
void node_last_seen(struct unit *unit);
/* Whoever was there is gone. For a node that knows that it is alone, before it begins. */
void node_end_all(struct unit *unit);
/* A number to reach for, out of the rows of node_scan(); -1: all are taken. */
int64_t node_choose(const struct db_rows *rows, uint64_t draw);
