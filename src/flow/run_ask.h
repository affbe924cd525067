/*
 * For a person who has to say what became of a step that is UNKNOWN: what was sent, under which key, and what its probe says now.
 *
 *   START ─▶ READING ─▶ PROBING ─▶ DONE
 *
 * It asks and tells, and that is all: nothing is claimed and nothing is written, so whoever else decides meanwhile is not in its way, and
 * what it hears decides nothing. The probe is asked as the engine asks it (call_key.h), under a key of its own.
 */
#pragma once

#include "flow/probe.h"
#include "flow/run_drive.h"

/* The call in doubt, as it is made again; a worker's is the job that was given to it. Texts live in the arena. */
struct run_sent {
	const struct run_step *step; /* NULL: nothing is in doubt, or it is a function's, whose code has sent it */
	const struct action *action;
	struct slice key, body;
};
/* Of a row that run_row_take() has taken. HX_OK, also with nothing in doubt. */
enum hx_code run_sent_of(const struct run_row *row, struct arena *arena, struct run_sent *ret_sent) HX_MUST_CHECK;

struct run_ask {
	struct task task;
	/* Immutable while the task lives. */
	int64_t subject;
	struct slice workspace, step;
	const struct run_policy *policy;
	struct arena *arena;
	/* What it tells. */
	const char *detail; /* of a refusal */
	enum probe_says says;
	struct slice output; /* JSON, of PROBE_DONE; else words, of a probe that has failed; .p NULL: none */
	/* private */
	struct run_row row;
	struct run_sent sent;
	struct slice key, body; /* of the question */
};
/* HX_OK; HX_NOT_FOUND, HX_RUN_EXPIRED; HX_WRONG_STATUS: nothing of this name is in doubt, or there is nobody to ask. */
void run_ask_init(struct run_ask *a, int64_t subject, struct slice workspace, struct slice step,
		  const struct run_policy *policy, struct arena *arena);
