/*
 * What callers do to a batch that is there, beside the cancel: start a held one, accept an item, say what became of one that is
 * UNKNOWN, or ask before that what its probe says now.
 *
 *   START ─▶ READING ─┬ no such batch, no such item: HX_NOT_FOUND; long ago: HX_RUN_EXPIRED
 *      ▲              ├ it is so already ─▶ HX_OK, and nothing happens
 *      │              ├ it cannot be ─────▶ HX_WRONG_STATUS
 *      │              ├ asked ─▶ PROBING ─▶ HX_OK: nothing is claimed and nothing is written, so it is in nobody's way
 *      │              └ else ─▶ WRITING ─┬ won ─▶ HX_OK
 *      └─── lost, or its answer was ─────┘
 *
 * A write whose answer was lost is not looked up: the read that follows holds the batch still, so the write has ended, and what it
 * finds tells whether it is so by now, by whomever.
 */
#pragma once

#include "flow/batch_item.h"
#include "flow/probe.h"
#include "task/task.h"

enum batch_verb_kind { BATCH_START, BATCH_ACCEPT, BATCH_RESOLVE, BATCH_ASK };

/* Immutable while the task lives; texts are the caller's. */
struct batch_verb_request {
	enum batch_verb_kind kind;
	struct slice workspace;
	int64_t subject;
	int64_t version;     /* what it must be (HX_CONCURRENCY_ERROR); 0: any */
	int64_t n;           /* of the item */
	bool done;           /* resolve */
	struct slice output; /* resolve, done. JSON */
	const struct batch_policy *policy;
	struct batch_along *along; /* NULL: nothing */
};

/* An item as it is shown. Texts live in the arena; .p NULL: none. */
struct batch_item_row {
	int64_t n, cost, charged, attempt, due_at; /* due_at 0: none */
	const char *status;
	struct slice decision, input, output, late, error;
};
void batch_item_row_take(const struct db_rows *rows, size_t i, struct arena *arena, struct batch_item_row *ret_item);

struct batch_verb {
	struct task task;
	const struct batch_verb_request *rq;
	struct arena *arena;
	/* With HX_OK: as they are after it. */
	struct batch_row row;
	struct batch_item_row
		item; /* but start. Of ask: its output is what the probe has told, JSON with PROBE_DONE, else words */
	enum probe_says says; /* ask */
	bool changed;         /* something was written now */
	const char *detail;   /* of a refusal; NULL: the code says it all */
	/* private */
	struct batch_row was;
	struct batch_hold hold; /* of one who does not hold it */
	struct slice key, body; /* of the question */
	unsigned losses;
	bool in_doubt; /* a write of it may have landed */
	struct stamp stamp;
};

void batch_verb_init(struct batch_verb *verb, const struct batch_verb_request *rq, struct arena *arena);
