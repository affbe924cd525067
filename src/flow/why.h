/*
 * Why does it not go on? The sentence that says which lease, timer, event, worker, limit, money or person something is
 * waiting for; one for every reason that there is. Also what waits for nothing gets one.
 *
 * Pure: from rows (why_read.c asks for them), and what this node's own action port says of a claim, to words. They are
 * without a full stop, and go on from "X is STATUS: ".
 */
#pragma once

#include "base/arena.h"
#include "base/strbuf.h"
#include "flow/batch.h"
#include "flow/entity.h"
#include "flow/run_children.h"
#include "flow/slot.h"
#include "model/workflow.h"
#include "task/task.h"

/* clang-format off */

/*
 * All reasons, by what it is about; tests/http/test_why.c brings a real server to each of them. The name is a part of the
 * API. A run whose step is carried out by a worker has the reason of its job.
 *
 *        name                    it waits for
 */
#define WHY_REASONS(X)                                                                                                 \
	X(ENTITY_STEP)          /* somebody who fires a step */                                                        \
	X(ENTITY_END)           /* nothing: no step leads out */                                                       \
	X(ENTITY_EFFECTS)       /* nothing itself: its after-effects are still to be delivered */                      \
	X(ENTITY_PARKED)        /* nothing itself: a person is to redrive an after-effect */                           \
	X(ENTITY_ORPHAN)        /* a definition that has its status */                                                 \
	X(ENTITY_CLAIMED)       /* the lease of a step under way */                                                    \
	X(ENTITY_LIMIT)         /* a place among the calls that run at once */                                         \
	X(ENTITY_LAPSED)        /* the janitor: that lease is over */                                                  \
	X(ENTITY_HELD)          /* a person, to say what has happened */                                               \
	X(JOB_COMPLETED)        /* nothing */                                                                          \
	X(JOB_PARKED)           /* a person, to redrive it */                                                          \
	X(JOB_PARKED_OF_RUN)    /* nothing: its run has taken note */                                                  \
	X(JOB_CLAIMED)          /* the lease of who is at it */                                                        \
	X(JOB_LAPSED)           /* the janitor: that lease is over */                                                  \
	X(JOB_TIMER)            /* the time at which it is to run */                                                   \
	X(JOB_RETRY)            /* the time of its next try */                                                         \
	X(JOB_NODE)             /* a node to deliver it */                                                             \
	X(JOB_LIMIT)            /* a place among those that run at once */                                             \
	X(JOB_WORKER)           /* a worker to claim it */                                                             \
	X(JOB_FUNCTION)         /* a program that has a function which this one lacks */                               \
	X(RUN_COMPLETED)        /* nothing */                                                                          \
	X(RUN_CANCELLED)        /* nothing */                                                                          \
	X(RUN_FAILED)           /* a person, to retry or cancel it */                                                  \
	X(RUN_RESTARTED)        /* nothing: another run goes on in its place */                                        \
	X(RUN_CLAIMED)          /* the lease of the node that carries a step out */                                    \
	X(RUN_LIMIT)            /* a place among the calls that run at once */                                         \
	X(RUN_LAPSED)           /* another node: that lease is over */                                                 \
	X(RUN_UNKNOWN)          /* a person, to say what has happened */                                               \
	X(RUN_NOT_UNDONE)       /* a person, to retry a compensation */                                                \
	X(RUN_PAUSED)           /* a person, to resume it */                                                           \
	X(RUN_EVENT)            /* an event */                                                                         \
	X(RUN_APPROVAL)         /* a person, to decide */                                                              \
	X(RUN_CHILDREN)         /* runs that it has started */                                                         \
	X(RUN_RETRY)            /* the time of the next try */                                                         \
	X(RUN_TIMER)            /* the time that a step waits for */                                                   \
	X(RUN_SLOT)             /* a slot of the limit of its workflow */                                              \
	X(RUN_RATE)             /* the time at which the rate of its workflow lets it begin */                          \
	X(RUN_DEBOUNCE)         /* the time after which no other start replaces its input */                            \
	X(RUN_NODE)             /* a node to take it */                                                                \
	X(RUN_VERSION)          /* a node that knows its definition */                                                 \
	X(RUN_FUNCTION)         /* a program that has a function which this one lacks */                               \
	X(FUNCTION_WORKER)      /* a worker that polls for it */                                                       \
	X(FUNCTION_UNPOLLED)    /* the same, and nobody polls for its version */                                       \
	X(FUNCTION_HELD)        /* a person: lost too often, or a journal that does not fit the code */                \
	X(BATCH_COMPLETED)      /* nothing */                                                                          \
	X(BATCH_CANCELLED)      /* nothing */                                                                          \
	X(BATCH_FAILED)         /* nothing */                                                                          \
	X(BATCH_UNKNOWN)        /* a person, to say what has happened */                                               \
	X(BATCH_LOADING)        /* the lease of who loads it */                                                        \
	X(BATCH_CLAIMED)        /* the lease of the node that works on it */                                           \
	X(BATCH_LIMIT)          /* places among the calls that run at once */                                          \
	X(BATCH_TORN_DOWN)      /* the lease of the node that tears it down */                                         \
	X(BATCH_LAPSED)         /* another node: that lease is over */                                                 \
	X(BATCH_HELD)           /* somebody who starts it */                                                           \
	X(BATCH_CREDIT)         /* money */                                                                            \
	X(BATCH_CLEANUP)        /* the time of the next try to tear it down */                                         \
	X(BATCH_RETRY)          /* the time of the next try of an item */                                              \
	X(BATCH_TIMER)          /* the next look: at the last one nobody could work on it */                            \
	X(BATCH_NODE)           /* a node to take it */                                                                \
	X(BATCH_VERSION)        /* a node that knows its definition */                                                 \
	X(BATCH_FUNCTION)       /* a program that has a function which this one lacks */                               \
	X(SCHEDULE_PAUSED)      /* a person, to resume it */                                                           \
	X(SCHEDULE_SLOT)        /* the time of its next slot */                                                        \
	X(SCHEDULE_OPEN)        /* what it has started before */                                                       \
	X(SCHEDULE_DUE)         /* a node to start its slot, or what it is to start */                                 \
	X(SCHEDULE_END)         /* nothing: no slot is left */

/* clang-format on */

enum why_reason {
#define WHY_ENUM(name) WHY_##name,
	WHY_REASONS(WHY_ENUM)
#undef WHY_ENUM
		WHY_REASONS_N
};
/* "RUN_EVENT" */
const char *why_reason_name(enum why_reason reason);

struct why {
	enum why_reason reason;
	struct strbuf words;
	const char *node;
	const struct action *
		lacks; /* whoever asks sets it: what its subject needs and this program has no function for; NULL: nothing */
};

/* node: the name of this one, whose port gives the sight below. It is not copied. */
void why_init(struct why *why, const char *node);
void why_release(struct why *why);

/* Columns of a row about a job. */
enum {
	WHY_CELL_SUBJECT,
	WHY_CELL_STATUS,
	WHY_CELL_OWNER,
	WHY_CELL_UNTIL,
	WHY_CELL_QUEUE,
	WHY_CELL_ATTEMPT,
	WHY_CELL_DUE_AT,
	WHY_CELL_ERROR,
	WHY_CELL_LIMIT,     /* 0: none */
	WHY_CELL_IN_FLIGHT, /* of its queue, counted against the limit */
	WHY_CELL_RUN,       /* NULL: it is no step's */
	WHY_CELL_FENCE,
	WHY_CELL_NOW,
	WHY_CELL_WORKFLOW,
	WHY_CELL_ACTION,
	WHY_CELL_LINE, /* as hx_slot.held: it waits for a slot of its queue, or for its time; NULL: it stands in no line */
	WHY_CELL_LINE_KEY,
	WHY_CELL_LINE_HELD,    /* so many hold one */
	WHY_CELL_LINE_BEFORE,  /* so many are before it */
	WHY_CELL_SENT_VERSION, /* J4, see job.h; NULL: the next try is made by the definition in force */
	WHY_CELL_COLUMNS
};

/* In a unit of their own: the job; the run with the job that its step is; the entity with its after-effects. */
void why_read_job(struct unit *unit, struct slice workspace, int64_t subject);
void why_read_run(struct unit *unit, struct slice workspace, int64_t subject);
void why_read_entity(struct unit *unit, const struct entity_ref *ref);
void why_read_function(struct unit *unit, struct slice workspace, int64_t subject);
/* Of a run that is a function (flow/function.h), with the row of why_read_function(). */
void why_function(struct why *why, const struct run_row *row, const struct unit_result *lines);
/* Parts of sentences: a moment, and somebody else's words. */
void why_add_moment(struct why *why, const char *before, int64_t ms);
void why_add_words(struct why *why, struct slice words);
/* A job that stands in line for a slot of its queue, or for its time. */
void why_job_line(struct why *why, const struct db_rows *rows);
/* A run that stands in line: the row of slot_read_wait(). */
void why_slot(struct why *why, const struct run_row *row, const struct db_rows *line);
/* Where the rows are that the last two add to those of run_read() and entity_read(). */
#define WHY_LINE_JOB_OF_RUN 3
#define WHY_LINE_SLOT 4 /* the line that a run stands in, of slot_read_wait() */
#define WHY_LINE_FUNCTION 5
#define WHY_LINE_CHILD 6 /* what its tree comes down to; only what is in the store is told of it */
#define WHY_LINE_EFFECTS 1

/* sight, in all of these: the calls of the claim that the row shows, as this node's port sees them. */
void why_job(struct why *why, const struct db_rows *rows, const struct port_sight *sight);
/* lines: the job that its step is, if any, and the line that it stands in. The arena is for texts in between. */
void why_run(struct why *why, const struct run_row *row, const struct unit_result *lines,
	     const struct port_sight *sight, struct arena *arena);
/* This node does not know the definition of the run. */
void why_run_version(struct why *why, int64_t version);
/* Taken with a policy: a machine that is NULL is one that this node does not know. */
/* known: what it starts is there, on this node; function: no definition has that name, so it is a function, if anybody polls for it. */
struct schedule_row;
void why_schedule(struct why *why, const struct schedule_row *row, bool known, bool function);
void why_batch(struct why *why, const struct batch_row *row, const struct port_sight *sight);

/* Columns of a row about an after-effect that is not delivered. */
enum { WHY_EFFECT_JOB, WHY_EFFECT_STATUS, WHY_EFFECT_ACTION, WHY_EFFECT_COLUMNS };
#define WHY_EFFECTS_MAX 10 /* are named; one row more says that there are more */
/* A row of entity_read(). */
void why_entity(struct why *why, const struct workflow *workflow, const struct db_rows *rows,
		const struct db_rows *effects, const struct port_sight *sight, int64_t now_ms);
