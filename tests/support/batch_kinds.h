/*
 * The units of batches, for the list in unit_kinds.h: each is what a task writes once it has read the batch (args->db), or
 * nothing, a unit without lines, where it would write none.
 *
 * The batch of number n has that id and the key "key", its account the id kind_made(n, 0), and both the workspace "w" and that
 * number. Other batches of that account, and jobs, have ids that kind_made() gives. Its items cost 10, 20, 30 and 40:
 *
 *   0   ends, is settled, is late        2   is UNKNOWN, and a person resolves it
 *   1   has succeeded, and is accepted   3   is still to be begun
 *
 * Beside it there may be another, of one item that costs 30, which waits for money (BESIDE).
 */
#ifndef HX_TESTS_SUPPORT_BATCH_KINDS_H
#define HX_TESTS_SUPPORT_BATCH_KINDS_H

#include "support/run_kinds.h"

/* For fixtures. poor: after items 0 to 2 there is too little for the last. */
kind_build batch_open, batch_open_poor, batch_make_held, batch_make_queued, batch_make_loading, batch_lapse,
	batch_succeed_1, batch_succeed_2, batch_unknown_2, batch_fail_3, batch_make_beside, batch_stop_beside;

kind_build batch_create_key; /* another of the fixture's key */
kind_build batch_load, batch_loaded, batch_add, batch_lose_loader, batch_queue;
kind_build batch_take, batch_take_down; /* a node seizes it, to work on it or to tear it down */
kind_build batch_turn, batch_rest, batch_stop, batch_complete, batch_cancel_last, batch_flag, batch_beat,
	batch_expire_old;
kind_build batch_item_start, batch_item_look, batch_item_done, batch_item_returned, batch_item_settle, batch_item_late,
	batch_item_accept, batch_item_resolve_done, batch_item_resolve_not_done, batch_item_flip, batch_item_left;
kind_build batch_credit;                         /* of its account */
kind_build batch_take_beside, batch_flag_beside; /* of the one that waits */

#endif
