/*
 * The lanes of a node. SQLite has one, which also renews its own leases; PostgreSQL has several, and one more
 * with a connection of its own for the pulse, so that a renewal never waits behind a long group; and what is the user's is
 * done aside (aside.h).
 *
 * A subject always hashes to the same lane of a node, and what touches another in the end goes to that one's (struct due), so two
 * tasks of one node hardly ever fight over a row in the store. Across nodes they may; that is what the guards are for.
 */
#pragma once

#include "task/lane.h"

#define LANES_MAX 32

struct lanes {
	struct clock *clock;
	struct lane *lanes[LANES_MAX];
	size_t n;
	struct lane *pulse;    /* NULL on SQLite */
	struct warden *warden; /* the same: there is no other node */
	struct aside *aside;   /* the same: there is no other connection */
	bool stopping;
};

/* How many there should be on PostgreSQL: more lanes than processors only make the groups smaller. */
size_t lanes_wanted(void);
/*
 * n is how many lanes PostgreSQL gets. options->opened, if any, is taken over in any case: by the first lane, or it
 * is closed. The node numbers used are options->node_number and those after it, one for each lane and for the pulse.
 */
enum hx_code lanes_open(struct lanes *lanes, const struct lane_options *options, size_t n,
			struct hx_error *err) HX_MUST_CHECK;
struct lane *lanes_of(const struct lanes *lanes, int64_t subject);
/* From any thread: the numbers for ids are these from now on, laid out in the same way. */
void lanes_set_node_number(const struct lanes *lanes, uint32_t number);
/* From any thread: wakes whoever has one of these topics; n = 0: everybody who has any. */
void lanes_wake(const struct lanes *lanes, const int64_t topics[], size_t n);
/* From any thread: another node has offered it. */
void lanes_offer(const struct lanes *lanes, struct offer offer);
void lanes_stop(struct lanes *lanes, int64_t drain_ms);
/* Stops them if need be. The action port is freed between stop and close. Safe on a half-opened struct. */
void lanes_close(struct lanes *lanes);
/* The sums over all lanes, the pulse included. */
void lanes_read_stats(const struct lanes *lanes, struct lane_stats *ret_stats);
