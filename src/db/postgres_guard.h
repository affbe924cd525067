/*
 * What a statement of the user's may do on PostgreSQL. The plan of a statement does not show what functions and triggers do, so it
 * is looked at from outside, in the trip that runs it:
 *
 *   look ─▶ [SET LOCAL ROLE, where one is configured] ─▶ the statement ─▶ [is it still that role? and back] ─▶ look again
 *
 *  P1  Nothing of ours was touched: the server counts the blocks of each relation that this transaction has fetched; the sum over
 *      all that is named hx_… in our schema has not grown. That is true of reads and writes, by whatever name (views, rules,
 *      triggers, functions, text that is run as SQL, sequences).
 *  P2  No setting of the session was changed that our promises stand on.
 *  P3  What did either fails its unit (HX_DATA_ERROR), and is undone with it, settings too.
 *  P4  A transaction that had such a statement may have run more of the user's at its end (a deferred trigger): the next one first
 *      compares all settings with those that the session began with, and gives up a session in which they differ.
 *
 * What it cannot undo: what is not part of a transaction. Functions that do such things (advisory locks, dblink, messages to other
 * sessions) are refused by name in a definition's text (model/sql_reach.h); in the body of a function of the user's they are the
 * business of who made it, and of the rights of the role.
 */
#pragma once

#include "db/postgres.h"

/* Around the sending of foreign statements, in one trip. */
void pg_guard_begin(struct pg_trip *trip, struct pg *pg);
void pg_guard_end(struct pg_trip *trip, struct pg *pg);
/* In the first trip of a transaction: P4. HX_STORE_UNAVAILABLE, and the session is given up. */
void pg_guard_head(struct pg_trip *trip, struct pg *pg);
/* The settings, to be pinned when the session has been set up: a query of one column. */
extern const char pg_guard_settings[];
