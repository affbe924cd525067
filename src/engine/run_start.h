/*
 * The start of a run, for whoever asks for it over HTTP or from an embedding program.
 *
 *   wanted ─▶ unit that creates ─┬ won ──▶ the engine drives it at once (runs_created(), runs_drive())
 *                                └ lost ─▶ unit that reads by its key ─▶ the run that is there
 *                                          (of a singleton: that locates it, and then one that reads it)
 *
 * Of a workflow with a debounce that is more than one unit: run_start_is_debounced() starts go by a verb (flow/run_verb.h).
 *
 * Insert and see, never look and insert: two that start with one key at the same moment get one run. The caller carries the
 * units out, because what goes between them is its own: a record of an Idempotency-Key, or nothing.
 */
#pragma once

#include "base/json.h"
#include "engine/engine.h"
#include "engine/runs.h"
#include "flow/run_verb.h"
#include "flow/single.h"

/* What the engine calls runs that it starts itself; no caller may. */
#define RUN_KEYS_RESERVED "run_…/…, schedule:…, hook:… and bulk:… are keys of the engine's own"
bool run_key_is_reserved(struct slice key);

/* What is wanted, as it was given. Texts live as long as the start. */
struct run_wanted {
	struct slice workspace, requester, traceparent;
	struct slice workflow;
	struct slice key;         /* .p NULL: none */
	const struct json *input; /* NULL: {} */
	struct arena *arena;      /* for what is made of it */
};

struct run_start {
	struct engine *engine;
	struct run_spec spec;
	int64_t there;      /* which one is there; 0: its key says so */
	struct run_row row; /* of the run that was created, or found */
	bool differs;       /* one that was found has another input than the one that is wanted */
	const char *detail; /* of a refusal; NULL: the code says it all */
};

/* HX_NOT_FOUND, without words in err: there is no such workflow of kind run. HX_VALIDATION_ERROR, HX_TOO_LARGE. */
enum hx_code run_start_init(struct run_start *start, struct engine *engine, const struct run_wanted *wanted,
			    struct hx_error *err) HX_MUST_CHECK;
/* Of both units. */
uint64_t run_start_lane(const struct run_start *start);

void run_start_build(struct run_start *start, const struct single *single, struct unit *unit);
/* HX_ALREADY_EXISTS: its key has a run, or its singleton. HX_NOT_FOUND: there is no such workflow, and nobody polls for such a function. */
enum hx_code run_start_answered(const struct unit_result *result);
/* The row, from what is known before that unit runs. */
void run_start_take_created(struct run_start *start, const struct single *single);

static inline bool run_start_is_debounced(const struct run_start *start)
{
	return start->spec.debounce.name != 0;
}
/* Of such a one; the caller adds what goes along. */
struct run_verb_request run_start_debounced(const struct run_start *start);
/* That verb has ended, and has made no run: the row of the one whose input it has replaced, while the verb's texts live. */
void run_start_take_joined(struct run_start *start, const struct run_verb *verb);
/* The same, and it has made one. */
void run_start_take_made(struct run_start *start, const struct run_verb *verb);

/* May another one be there? Without a key or a singleton it may not. */
static inline bool run_start_may_find(const struct run_start *start)
{
	return start->spec.key.p || start->spec.singleton;
}

/*
 * A singleton is located first: two lines that each ask which run it is might find two. The codes are those of
 * run_found().
 */
static inline bool run_start_must_locate(const struct run_start *start)
{
	return start->spec.singleton && !start->there;
}
void run_start_build_locate(const struct run_start *start, struct unit *unit);
enum hx_code run_start_located(struct run_start *start, const struct unit_result *result) HX_MUST_CHECK;

void run_start_build_find(const struct run_start *start, struct unit *unit);
/* The codes are those of runs_take(), and HX_KEY_REUSED: it is a run of another workflow. Its texts are in the arena. */
enum hx_code run_start_found(struct run_start *start, const struct unit_result *result,
			     struct arena *arena) HX_MUST_CHECK;
