/*
 * The nodes of a scene while some of them die, fall silent and come back; and callers that go from one node to the next
 * until one answers, as they would with a load balancer.
 *
 * A fleet is driven by the test's own thread, and its functions fail the test. A caller is used by one thread at a time,
 * and fails nothing.
 */
#ifndef HX_TESTS_SUPPORT_FLEET_H
#define HX_TESTS_SUPPORT_FLEET_H

#include <stdatomic.h>

#include "support/pg_proxy.h"
#include "support/scene.h"

struct fleet {
	struct scene *scene;
	int n;
	_Atomic int ports[SCENE_NODES_MAX];        /* 0: it is down or silent, callers leave it alone */
	struct pg_proxy *proxies[SCENE_NODES_MAX]; /* between each node and the store; NULL: there is none */
	size_t kills, pauses, cut_offs;
	/* Summed over all lives of all nodes. A life's numbers are read just before it ends, so there were at least so many. */
	int64_t fenced_writes, overruns;
};

/* Before the start: nodes reach the store through proxies, and can be cut off from it. */
void fleet_add_proxies(struct fleet *fleet, struct scene *scene, int n);
/* Starts n nodes of a scene that is defined and configured. */
void fleet_start(struct fleet *fleet, struct scene *scene, int n);
/* kill -9. */
void fleet_kill(struct fleet *fleet, int node);
void fleet_revive(struct fleet *fleet, int node);
void fleet_pause(struct fleet *fleet, int node);
void fleet_continue(struct fleet *fleet, int node);
/* The network between the node and the store falls silent; then it breaks, and is there again. */
void fleet_cut_off(struct fleet *fleet, int node);
void fleet_reconnect(struct fleet *fleet, int node);
/* SIGTERM, with its numbers added: it must drain and exit 0. For all that there are: fleet_stop(). */
void fleet_stop_one(struct fleet *fleet, int node);
void fleet_stop(struct fleet *fleet);
/*
 * Waits until all runs are COMPLETED or CANCELLED, on PostgreSQL. Words on something that has gone wrong meanwhile end it at
 * once; `wrong` may be NULL.
 */
void fleet_await_runs(struct fleet *fleet, int64_t deadline_ms, const char *(*wrong)(void *context), void *context);
/* After the scene was torn down. */
void fleet_release(struct fleet *fleet);

struct caller;

struct caller *caller_new(struct fleet *fleet, uint64_t seed);
/* Takes NULL. */
void caller_free(struct caller *caller);
/* A number below this one. */
uint64_t caller_draw(struct caller *caller, uint64_t below);
/* One try, at a node by chance. False: no answer. The reply is reply_release()d in any case. */
bool caller_try(struct caller *caller, const char *method, const char *path, const char *body, struct reply *ret_reply);
/*
 * Node after node, until one gives an answer that says what became of it: any but 503 and 504. Returns the number of
 * tries; 0: there was none in a minute.
 */
unsigned caller_call(struct caller *caller, const char *method, const char *path, const char *body,
		     struct reply *ret_reply);

#endif
