/*
 * The states of a task, as a table. Each kind has one, in the order of its enum:
 *
 *	static const TASK_STATES(struct errand) errand_states[] = {
 *		[ERRAND_NEW] = {"new", .then = ERRAND_READING},
 *		[ERRAND_READING] = {"reading", take_read, read_errand},
 *		[ERRAND_ACTING] = {"acting", take_acted, .act = call_of},
 *		[ERRAND_RESTING] = {"resting", take_rested, .until = offsetof(struct errand, rests_until)},
 *		[ERRAND_WRITING] = {"writing", take_written, write_errand, .unknown = ERRAND_READING},
 *		[ERRAND_DONE] = {"done"},
 *	};
 *	TASK_KIND_STAMPED(errand_kind, "errand", struct errand, errand_states);
 *
 * The first state is that of a task which waits for its START, the last its end: both want nothing, and the last takes no
 * answer. In between a state wants one thing:
 *
 *   commit   a unit, by the function that adds its lines. It has the kind's op by then. If nobody knows whether it was
 *            committed, the task goes to `unknown`, where its op is looked up or its rows are read again; a state without
 *            one takes that answer as any other
 *   act      a call
 *   until    a sleep, to a moment that stands in the task; and to another one, `latest`, if somebody else looks meanwhile
 *
 * A function has the task as its own type; the three that TASK_KIND() makes of a table turn a struct task into it.
 */
#pragma once

#include <stddef.h>

#include "task/task.h"

#define TASK_STATES(type)                                                                                              \
	struct {                                                                                                       \
		const char *where; /* for whoever reads a trace */                                                     \
		void (*take)(type *, const struct answer *);                                                           \
		void (*commit)(const type *, struct unit *);                                                           \
		struct act_call (*act)(const type *);                                                                  \
		size_t until;                                                                                          \
		size_t latest;                                                                                         \
		int then;                           /* instead of `take`: whatever the answer, it goes there */        \
		int unknown;                        /* instead of `take`: an unknown verdict leads there */            \
		const char *(*words)(const type *); /* instead of `where`: where that is not all */                    \
	}

/* A `commit` that is one call: TASK_UNIT(read_errand, struct errand, e, errand_read(unit, e->subject)); */
#define TASK_UNIT(name, type, task_, call)                                                                             \
	static void name(const type *task_, struct unit *unit)                                                         \
	{                                                                                                              \
		call;                                                                                                  \
	}                                                                                                              \
	static void name(const type *task_, struct unit *unit)

/*
 * A `take` that is a row for each verdict: TASK_VERDICTS(take_written, struct errand, [UNIT_WON] = written, [UNIT_LOST] = …);
 * One that cannot be has none.
 */
#define TASK_VERDICTS(name, type, ...)                                                                                 \
	static void name(type *task_, const struct answer *answer)                                                     \
	{                                                                                                              \
		static void (*const by[UNIT_UNKNOWN + 1])(type *, const struct answer *) = {__VA_ARGS__};              \
                                                                                                                       \
		ASSERT(answer->kind == ANSWER_COMMIT && by[answer->result->verdict]);                                  \
		by[answer->result->verdict](task_, answer);                                                            \
	}                                                                                                              \
	static void name(type *task_, const struct answer *answer)

/*
 * A `take` of a look for a unit whose answer was lost: the store did not tell, it has landed (its row is rows[0]), or it did not and
 * cannot any more.
 */
#define TASK_LOOKED_UP(name, type, untold, landed, absent)                                                             \
	static void name(type *task_, const struct answer *answer)                                                     \
	{                                                                                                              \
		if (answer->result->verdict != UNIT_WON)                                                               \
			untold(task_, answer);                                                                         \
		else if (answer->result->rows[0].n)                                                                    \
			landed(task_, answer);                                                                         \
		else                                                                                                   \
			absent(task_, answer);                                                                         \
	}                                                                                                              \
	static void name(type *task_, const struct answer *answer)

/* The rest are members of struct task_kind. `struct task` is the first member of the type. */
#define TASK_KIND(kind_, name_, type, states, ...)                                                                     \
	static void kind_##_take(struct task *task, const struct answer *answer)                                       \
	{                                                                                                              \
		if (task_asks_anew(task, states[task->at].unknown, answer))                                            \
			return;                                                                                        \
		if (states[task->at].take)                                                                             \
			states[task->at].take((type *)task, answer);                                                   \
		else                                                                                                   \
			task_pass(task, states[task->at].then);                                                        \
	}                                                                                                              \
	static void kind_##_ask(const struct task *task, struct ask *ask)                                              \
	{                                                                                                              \
		if (states[task->at].commit) {                                                                         \
			task_ask_unit(task, ask);                                                                      \
			states[task->at].commit((const type *)task, ask->unit);                                        \
		} else if (states[task->at].act) {                                                                     \
			ask->kind = ASK_ACT;                                                                           \
			ask->act = states[task->at].act((const type *)task);                                           \
		} else {                                                                                               \
			task_ask_rest(task, states[task->at].until, states[task->at].latest, ask);                     \
		}                                                                                                      \
	}                                                                                                              \
	static const char *kind_##_where(const struct task *task)                                                      \
	{                                                                                                              \
		return states[task->at].words ? states[task->at].words((const type *)task) : states[task->at].where;   \
	}                                                                                                              \
	static const struct task_kind kind_ = {.name = name_,                                                          \
					       .size = sizeof(type),                                                   \
					       .done = sizeof states / sizeof *states - 1,                             \
					       .take = kind_##_take,                                                   \
					       .ask = kind_##_ask,                                                     \
					       .where = kind_##_where,                                                 \
					       __VA_ARGS__}

/* Of a task whose units carry its `stamp`. */
#define TASK_KIND_STAMPED(kind_, name_, type, states, ...)                                                             \
	TASK_KIND(kind_, name_, type, states, .op = offsetof(type, stamp.op), __VA_ARGS__)

/* ---- of these three ---- */

/* True: nobody knows what became of its unit, and it has gone where that is found out. */
bool task_asks_anew(struct task *task, int unknown, const struct answer *answer);
void task_pass(struct task *task, int then);
/* The unit is the kind's to fill. */
void task_ask_unit(const struct task *task, struct ask *ask);
/* A sleep, or the end. */
void task_ask_rest(const struct task *task, size_t until, size_t latest, struct ask *ask);
