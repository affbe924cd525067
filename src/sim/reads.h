/*
 * What units met in the store, remembered: an answer belongs to the unit, to the content of the store, which has a number, and to
 * the clock (store.h says how that is used). A number too many costs a question, never a wrong answer; and now and then what is
 * remembered is asked for again, and compared. The table is of fixed size: an answer goes when another takes its slot.
 */
#pragma once

#include "db/unit.h"

struct read_answer;

struct reads {
	size_t slots_n; /* a power of two */
	struct read_answer **slots;
	struct read_answer *replaced; /* out of the table, and perhaps still being read */
	uint64_t found_n;
};

void reads_init(struct reads *reads, size_t slots_n);
void reads_release(struct reads *reads);
/* Does it only read? */
bool reads_only(const struct unit *unit);
/* Which question this is, in a store of this content at this time; and the number of the content that it leaves, if it writes. */
uint64_t reads_key(const struct unit *unit, uint64_t store, int64_t now_ms);
/* True: it was asked before, and *ret_result is the answer, which lives until reads_let_go(). */
bool reads_find(struct reads *reads, uint64_t key, struct unit_result *ret_result);
/* Is it the turn of the answer that was just found to be asked for again? */
bool reads_is_due(const struct reads *reads);
bool reads_same(const struct unit *unit, const struct unit_result *a, const struct unit_result *b);
void reads_keep(struct reads *reads, uint64_t key, const struct unit *unit, const struct unit_result *result);
/* Nobody reads what was replaced any more. */
void reads_let_go(struct reads *reads);
