/* What the verbs of batches have in common; private to src/cli/batch*.c. */
#ifndef HX_CLI_BATCH_PARTS_H
#define HX_CLI_BATCH_PARTS_H

#include "cli/batch_items.h"
#include "cli/client.h"
#include "cli/wait.h"

#define BATCH_PATH "/api/v1/batches"

/* ---- batch_show.c ---- */

/* A count or an amount of a batch; 0 where there is none. */
int64_t batch_number(struct json batch, const char *name);
/* "render batch_0ahqhgtdhmw01: COMPLETED, 100 items: 98 succeeded, 2 failed; paid 490", and `more` behind it */
enum hx_code batch_print_line(struct client *client, struct json batch, const char *more,
			      struct hx_error *err) HX_MUST_CHECK;
/* What it is, how far it is, its counts and its money; what it waits for is asked of the server. */
enum hx_code batch_print_picture(struct client *client, struct json batch, struct hx_error *err) HX_MUST_CHECK;
enum hx_code batch_print_list(struct client *client, struct json answer, struct hx_error *err) HX_MUST_CHECK;
enum hx_code batch_print_items(struct client *client, struct json answer, struct hx_error *err) HX_MUST_CHECK;

/* Waiting for it, with a bar where somebody watches. */
struct batch_wait {
	struct wait wait;
	/* private */
	unsigned looks_n;
	struct batch_look {
		int64_t done, waited_ms;
	} old, older; /* for the rate */
};
void batch_wait_init(struct batch_wait *wait);

/* ---- batch_load.c ---- */

struct batch_order {
	const char *workflow, *account;
	const char *key; /* NULL: none */
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

#endif
