/*
 * The units of bulks, for the list in unit_kinds.h. The bulk of number n has that id, the workspace "w" and that number, and the
 * key "key". None of its units locks anything before it begins: what they read of a row that they do not write must not matter.
 *
 * A bulk is taken for five seconds, which may be over at any time here. So nobody takes one, and of when it is due only counts
 * whether it is.
 */
#ifndef HX_TESTS_SUPPORT_BULK_KINDS_H
#define HX_TESTS_SUPPORT_BULK_KINDS_H

#include "support/run_kinds.h"

/* For fixtures: two items, of which no more come. */
kind_build bulk_make, bulk_freeze_two;

kind_build bulk_create_key; /* another of the fixture's key */
/* The first slice; it is all of them, or not. */
kind_build bulk_freeze_some, bulk_freeze_last;
kind_build bulk_go_on, bulk_end_first, bulk_end_second, bulk_finish_it, bulk_cancel_it;

#endif
