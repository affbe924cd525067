/*
 * What callers do to a schedule: put, pause, resume, trigger, backfill, delete. Each is read, decide, write; the write is guarded by the
 * revision that was read, and one that is lost reads again.
 *
 *   START ─▶ READING ─┬ HX_NOT_FOUND (but put makes it), HX_TOO_LARGE
 *               ▲     ├ nothing to do (an unchanged put, paused already): HX_OK, `changed` is false
 *               │     └─▶ (READING_ACCOUNT) ─▶ WRITING ─┬ won ─▶ HX_OK
 *               ├──────────────────────── lost, unknown ┤
 *               │                                       └ lost, the key of a trigger ─▶ FINDING it ─▶ HX_OK, `changed` is false
 */
#pragma once

#include "flow/schedule.h"
#include "task/task.h"

enum schedule_verb_kind {
	SCHEDULE_PUT,
	SCHEDULE_PAUSE,
	SCHEDULE_RESUME,
	SCHEDULE_TRIGGER,
	SCHEDULE_BACKFILL,
	SCHEDULE_DELETE,
};

/* Immutable while the task lives; texts are the caller's. */
struct schedule_verb_request {
	enum schedule_verb_kind kind;
	struct slice workspace, requester, name;
	const struct schedule_spec *spec; /* of a put, with its zone */
	struct slice text;                /* of a put: schedule_spec_write() of it */
	bool of_function;       /* of a put: it is for a function, HX_NOT_FOUND unless somebody polls for that */
	struct slice id;        /* of a trigger; empty: a fresh one */
	int64_t from_ms, to_ms; /* of a backfill, both included */
	const struct schedule_policy *policy;
};

struct schedule_verb {
	struct task task;
	const struct schedule_verb_request *rq;
	struct arena *arena;
	/* What the caller may tell afterwards. */
	const char *detail; /* of a refusal; NULL: the code says it all */
	struct schedule_row row;
	bool changed, created;
	struct schedule_start start; /* of a trigger: what was started, or was there */
	int64_t slots_n;             /* of a backfill */
	/* private */
	struct schedule_row was;
	struct slice
		slots; /* JSON [ms, …]: of a backfill; those that have come before a pause, or before other times */
	unsigned tries;
	struct stamp stamp;
};

void schedule_verb_init(struct schedule_verb *v, const struct schedule_verb_request *rq, struct arena *arena);
