/*
 * What kill_writer shows of itself while it runs, in a page of memory that outlives it: how far the group is that
 * it is writing, and how many transitions it has acknowledged.
 *
 *   QUIET ── the first row of a group is written ──▶ WROTE ── COMMIT ──▶ COMMITTING ── COMMIT has returned ──▶ QUIET
 *
 * Whoever dies in WROTE or COMMITTING dies between a unit's first write and its acknowledgement. (So does whoever
 * dies after the COMMIT and before the last acknowledgement of the group; that is not told apart from QUIET.)
 */
#ifndef HX_TESTS_CHAOS_KILL_PAGE_H
#define HX_TESTS_CHAOS_KILL_PAGE_H

#include <stdatomic.h>
#include <stdint.h>

enum kill_phase { KILL_QUIET, KILL_WROTE, KILL_COMMITTING };

struct kill_page {
	_Atomic int phase;
	_Atomic uint64_t acks;
};

#define KILL_SUBJECTS 50
#define KILL_FIRST_SUBJECT 1000
#define KILL_KIND 1

/* open ⇄ shut, and open ── claim ──▶ working ── finish ──▶ shut, or back to open. */
#define KILL_OPEN "open"
#define KILL_SHUT "shut"
#define KILL_WORKING "working"

#endif
