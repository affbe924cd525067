/*
 * The studio: a scene whose service is a store of artifacts (support/artifacts.h), with the workflow `render` that makes them
 * in batches, nodes that die and come back (support/fleet.h), and an observer of the books (support/books.h) who looks all the
 * while, from the start of the first node to studio_end().
 *
 *	static void some_test(void **state)
 *	{
 *		struct studio *studio = *state;
 *
 *		studio_define(studio, &(struct studio_shape){.voids = true});
 *		studio_start(studio, 2);
 *		studio_open_account(studio, "alice", 1000);
 *		studio_create(studio, 0, &(struct studio_order){.account = "alice", .items = 10, .cost = 7}, id);
 *		…
 *		studio_end(studio, &sum);
 *	}
 *
 * All of it fails the test, and is for its own thread, except where it takes a caller.
 */
#ifndef HX_TESTS_SUPPORT_STUDIO_H
#define HX_TESTS_SUPPORT_STUDIO_H

#include "support/books.h"
#include "support/fleet.h"

#define BATCHES "/api/v1/batches"
#define STUDIO_LEASE_MS 1000
#define STUDIO_ATTEMPTS 4

struct studio {
	struct scene *scene;
	struct fleet fleet;
	struct artifacts *artifacts;
	struct books *books;
	bool noop; /* nothing is ever called */
};

struct studio_shape {
	int64_t concurrency; /* 0: 4 */
	int64_t lease_ms;    /* 0: STUDIO_LEASE_MS */
	bool voids;          /* the item's action has a void */
	bool noop;           /* items and their cleanup are noops: nothing is called */
};

struct studio_order {
	const char *account;
	size_t items;
	int64_t cost;
	bool hold;
	const char *key; /* NULL: none */
};

/* cmocka fixtures: *state is a studio in which nothing is started. */
int studio_set_up_sqlite(void **state);
int studio_set_up_postgres(void **state);
int studio_tear_down(void **state);
bool studio_is_postgres(const struct studio *studio);

void studio_define(struct studio *studio, const struct studio_shape *shape);
/* Nodes 0 to n − 1, and the observer. SQLite: one is all that there can be. */
void studio_start(struct studio *studio, int n);
void studio_open_account(struct studio *studio, const char *id, int64_t balance);
int64_t studio_balance(struct studio *studio, int node, const char *account);
/* The body of a creation; the caller frees it. */
char *studio_order_text(const struct studio_order *order);
void studio_create(struct studio *studio, int node, const struct studio_order *order, char ret_id[ID_TEXT_BYTES]);
/* GET of the batch. */
struct reply *studio_show(struct studio *studio, int node, const char *id);
/* POST of a verb; returns the status, the reply is scene->last. */
int studio_post(struct studio *studio, int node, const char *id, const char *verb);
/* Waits until the batch has this status; words of the observer end it at once. */
void studio_await(struct studio *studio, int node, const char *id, const char *status, int64_t deadline_ms);
/* Waits until all batches have ended. Shows those that have not. */
void studio_await_all(struct studio *studio, int64_t deadline_ms);
/* The row of one batch, read from the store now. */
void studio_row(struct studio *studio, const char *id, struct books_row *ret_row);
/* One number from the store. */
int64_t studio_number(struct studio *studio, const char *sql);
/* How often a node has gone on with a batch that another, or it itself in an earlier life, had in its hands. */
size_t studio_takeovers(struct studio *studio);
/*
 * The end: waits until all jobs are done, stops the nodes, and then everything of books_stop() and books_check(). Returns
 * the number of looks of the observer.
 */
size_t studio_end(struct studio *studio, struct books_sum *ret_sum);

#endif
