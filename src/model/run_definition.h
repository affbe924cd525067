/*
 * A definition of kind `run`, parsed and checked: a sequence of steps that the engine drives. Immutable from then on
 * and never freed while the program runs; a changed definition is a new object, and a run keeps the one that it
 * started with.
 *
 *   type             must have         may have                                              output of the step
 *   task             action            input compensate retry lease on_unknown on_5xx        of the action
 *                                      timeout on_timeout save_as
 *   wait             for or until      with until: timeout on_timeout                        null
 *   external_event   event             timeout on_timeout save_as                            data of the event
 *   approval                           timeout on_timeout save_as entry_lock                 decision, by, comment
 *   condition        when              then else                                             true or false
 *   child            workflow          input save_as                                         of the child
 *   map              over, and         input concurrency on_failure save_as; with action:    with save_as: array of
 *                    workflow          what a task may have                                  those of the children
 *                    or action
 *   parallel         branches          join save_as                                          {branch: what it saved}
 *   repeat           steps, until      every max                                             what its bodies saved
 *
 * The last four start runs of their own, the children: of another workflow, or of a part of this one. A part is a list of steps
 * inside a step: a branch, the body of a repeat, the one task of a map with an action. It is a definition of its own, which has
 * all but its steps from the one around it, and is called by its scope: STEP or STEP/BRANCH, one after the other where parts
 * nest. A branch and a body see the input and the state of the run around them. Names of steps are unique over all parts.
 *
 * The way through the steps. Every step goes on to the next one, only a condition chooses, and only forwards: a jump
 * back would carry out a step that is done. So a run passes each step at most once, and ends. `"then": "end"` ends it
 * at once; a `then` or `else` that is not written is the next step. What is jumped over is SKIPPED.
 *
 * `input` that is not written is the whole input of the run.
 *
 * `until` is a time of RFC 3339 as it stands, or an expression that gives one as a string.
 *
 * `timeout` of a task is for one attempt; where it is not written, the action's own holds. When it is over, the outcome
 * of that attempt is unknown, and on_unknown says what comes then. For the others it is the longest that the run
 * waits there; not written: for ever.
 *
 * `on_timeout`, when there is nothing left but to say that the step has timed out: `fail` (the default), or `continue`:
 * the step is SKIPPED, its output null, and the run goes on. A task whose outcome is not known is held for a person
 * with `fail`, and with `continue` where it has a `compensate`, since what is SKIPPED is never undone.
 */
#pragma once

#include "model/attempt.h"
#include "model/attributes.h"
#include "model/expression.h"
#include "model/limits.h"
#include "model/workflow.h"

#define RUN_END_NAME "end" /* of `then` and `else`; no step is called so */

/* A row for each type: its name, and how it looks in a picture. What else it has, the compiler asks for (switch). */
#define RUN_STEP_TYPES(X)                                                                                              \
	X(TASK, "task", LOOK_TASK)                                                                                     \
	X(WAIT, "wait", LOOK_WAIT)                                                                                     \
	X(EXTERNAL_EVENT, "external_event", LOOK_EVENT)                                                                \
	X(APPROVAL, "approval", LOOK_APPROVAL)                                                                         \
	X(CONDITION, "condition", LOOK_CONDITION)                                                                      \
	X(CHILD, "child", LOOK_CHILD)                                                                                  \
	X(MAP, "map", LOOK_CHILD)                                                                                      \
	X(PARALLEL, "parallel", LOOK_CHILD)                                                                            \
	X(REPEAT, "repeat", LOOK_CHILD)

#define RUN_STEP_ENUM(type, ...) RUN_##type,
enum run_step_type { RUN_STEP_TYPES(RUN_STEP_ENUM) };
#undef RUN_STEP_ENUM

#define RUN_BRANCHES_MAX 100
#define RUN_CONCURRENCY_MAX 1000
#define RUN_ITERATIONS_MAX 100000
#define RUN_SCOPE_BYTES_MAX 1000

struct run_definition;

struct run_part {
	const char *branch; /* of a parallel; else NULL */
	const struct run_definition *definition;
};

struct run_step {
	const char *name;
	enum run_step_type type;
	size_t position; /* of steps[], from 0 */
	size_t line;
	const char *save_as;    /* NULL: the output goes into `steps` only */
	int64_t timeout_ms;     /* 0: none; of a task: that of its action */
	bool goes_on_timed_out; /* on_timeout is continue */
	/* task */
	const struct action *action;
	const struct action *compensate; /* NULL: nothing to undo */
	const struct expression *input;  /* NULL: the run's whole input */
	struct run_retry retry;
	int64_t lease_ms;           /* 0: that of the definition */
	enum on_unknown on_unknown; /* never UNKNOWN_REVERT */
	bool unknown_on_5xx;
	/* wait: one of the two */
	int64_t for_ms;                 /* 0: until */
	const struct expression *until; /* gives a string for wall_time_parse(); of a repeat: true ends it */
	/* external_event */
	const char *event;
	/* approval */
	int64_t entry_lock_ms; /* 0: off */
	/* condition */
	const struct expression *when;
	size_t then_position, else_position; /* greater than position; steps_n: the end */
	/* child, and map without a part */
	const char *workflow;
	/* map, parallel, repeat */
	size_t parts_n; /* 1, but for a parallel */
	const struct run_part *parts;
	/* map */
	const struct expression *over; /* gives an array */
	int64_t concurrency;
	bool collects; /* on_failure is collect: a child that fails does not end the step */
	/* parallel */
	bool joins_any; /* the first branch that is done decides */
	/* repeat */
	int64_t every_ms;
	int64_t iterations_max;
};

struct run_definition {
	HEAD_MEMBERS;
	size_t steps_n; /* 1 to WORKFLOW_STEPS_MAX */
	const struct run_step *steps;
	const struct run_step *const *steps_by_name;
	const struct expression *output; /* NULL: none is written, the output is null */
	int64_t lease_ms;                /* 0: that of the configuration */
	struct limits limits;            /* of its parts, too: they do the work of the run around them */
	/* Of the whole alone, and not of its parts, whose failure is their step's: */
	bool compensates; /* on_failure is compensate: a failure cancels it */
	size_t failure_effects_n;
	const struct action *failure_effects[STEP_AFTER_EFFECTS_MAX]; /* failure_after_effect */
	int64_t timeout_ms;                                           /* 0: none */
	struct attributes attributes;
	const char *scope; /* of a part; NULL: the whole */
	/* Code of a worker's (flow/function.h): it has no steps here, and may have no definition either. */
	bool is_function;
	bool is_defined;        /* it has one: it can be started though nobody has polled for it */
	struct run_retry retry; /* of its steps that have none of their own */
	const char *retry_json; /* the same, as its turns tell it; NULL: the default */
	int64_t keep_ms;        /* retention; 0: that of the configuration */
	bool sees_around;       /* a branch or a body: its runs have the input and the state of the run around them */
};

/* A run of this definition waits for runs that it has started. */
static inline bool run_step_has_children(const struct run_step *step)
{
	return step->type >= RUN_CHILD;
}

/* The part of that scope, from the whole; NULL: there is none. .p NULL: the whole itself. */
const struct run_definition *run_definition_part(const struct run_definition *definition, struct slice scope);

const char *run_step_type_name(enum run_step_type type);
/* NULL: there is no such step. */
const struct run_step *run_definition_step(const struct run_definition *definition, struct slice name);

/* A step of a definition, or of one of its parts. */
struct run_place {
	const struct run_step *step; /* NULL: there is none */
	const char *scope;           /* of the part that has it; NULL: the definition itself */
	size_t position;             /* of the step of the definition that it is, or stands in */
};
/* The last one that fits. */
struct run_place run_definition_search(const struct run_definition *definition,
				       bool (*fits)(const struct run_step *step, struct slice name), struct slice name);

extern const char *const run_on_failure[]; /* hold, compensate */

/*
 * Parses one definition. All findings are added, not the first alone; *ret is NULL when there is an error among
 * them. The definition lives in *arena.
 */
void run_definition_parse(const char *file, struct slice text, struct arena *arena, struct findings *findings,
			  const struct run_definition **ret);
/* The same for one of kind function. */
void function_definition_parse(const char *file, struct slice text, struct arena *arena, struct findings *findings,
			       const struct run_definition **ret);
