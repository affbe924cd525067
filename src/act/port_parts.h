/*
 * What port.c and port_turns.c share: the port itself, and who waits in it and in which order. All of it is under the port's
 * mutex. Nobody else includes this.
 */
#pragma once

#include <pthread.h>

#include "act/kind.h"
#include "act/port.h"

#define PORT_BUCKETS 1024

/* The calls of one action, whatever version of its definition they come from. */
struct port_action {
	const char *workflow, *name;
	struct kind *kind;
	size_t max; /* as the latest call has it; 0: no bound */
	size_t running;
	struct port_queue *queues;
	struct port_action *table_next;
};

/* What a workspace has of a kind. */
struct port_share {
	uint64_t tenant;
	struct kind *kind;
	size_t running, waiting;
	struct port_queue *ready_first, **ready_last;
	bool in_turn;
	struct port_share *turn_next;
	struct port_share *table_next;
};

/* The calls of an action for one workspace. */
struct port_queue {
	struct port_action *action;
	struct port_share *share;
	size_t running;
	struct job *first, *last; /* waiting */
	bool ready;
	struct port_queue *ready_next;
	struct port_queue *action_next;
};

struct port {
	struct act_port act;
	struct port_options options;
	/* Constant; NULL: nobody carries out this kind. After a stop admit() is the guard. */
	struct kind *kinds[ACTION_KINDS_N];
	pthread_mutex_t mutex;
	pthread_cond_t quiet; /* nothing runs any more */
	bool stopping, stopped;
	struct job *jobs[PORT_BUCKETS];
	struct port_action *actions[PORT_BUCKETS];
	struct port_share *shares[PORT_BUCKETS];
	struct port_stats stats;
	size_t flushing; /* lanes that are at it */
};

/* The kinds are needed. */
static inline bool port_is_busy(const struct port *port)
{
	return port->stats.running || port->flushing;
}

static inline bool port_is_full(const struct port_action *action)
{
	return action->max && action->running >= action->max;
}

/* The queue of a job; NULL: no memory. */
struct port_queue *port_queue_of(struct port *port, const struct job *job, struct kind *kind);
/* If nothing waits in it, or runs. */
void port_drop_if_idle(struct port *port, struct port_queue *queue);
void port_wait_in_queue(struct port *port, struct port_queue *queue, struct job *job);
void port_leave_queue(struct port *port, struct job *job);
/* It has a job that could run but for slots: then its workspace is in turn. */
void port_make_ready(struct port_queue *queue);
/* Starts what can start. */
void port_pump(struct port *port, struct kind *kind);
