/* What the verbs of batches do besides what their rows in the table say; private to src/cli/batch*.c and the table. */
#pragma once

#include "cli/batch_items.h"
#include "cli/view.h"
#include "cli/wait.h"

#define BATCH_PATH "/api/v1/batches"

/* ---- batch.c ---- */

VERB_ASKS(batch_ask_start);
VERB_ASKS(batch_ask_add);
/* With --items they are a member of the answer. */
VERB_ASKS(batch_ask_show);
VERB_ASKS(batch_ask_cancel);

/* ---- batch_show.c ---- */

/* A count or an amount of a batch; 0 where there is none. */
int64_t batch_number(struct json batch, const char *name);
/* What it is, how far it is, its counts and its money, its items if they are there; what it waits for is asked of the server. */
enum hx_code batch_print_picture(struct client *client, struct json batch, struct hx_error *err) HX_MUST_CHECK;
extern const struct view batch_items_view;

/* Waiting for it, with a bar where somebody watches. */
extern const struct wait batch_wait;

/* ---- batch_load.c ---- */

struct batch_order {
	const char *workflow, *account;
	const char *key, *data; /* NULL: none. data: as question_json() takes it */
	bool hold;
};

/*
 * Creates a batch with these items, or finds the one of its key, and unless it is to be held starts it: *ret_batch is what
 * it is then. What does not fit into one request is sent in several, to a batch that is held until all of it is there; the
 * same key goes on with one that was left half loaded.
 */
enum hx_code batch_send(struct client *client, const struct batch_order *order, const struct batch_items *items,
			struct json *ret_batch, bool *ret_created, struct hx_error *err) HX_MUST_CHECK;
/* Adds to a held batch. The key makes it harmless to do so again; NULL: none that is known to anybody else. */
enum hx_code batch_add(struct client *client, const char *id, const char *key, const struct batch_items *items,
		       struct json *ret_batch, struct hx_error *err) HX_MUST_CHECK;
