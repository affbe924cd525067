/*
 * The log is synced aside: a commit is written, and while the disk makes it durable the lane computes the next one.
 *
 *   lane:   … COMMIT 1 ─ ask ─ units of 2 … COMMIT 2 ─ ask ─ units of 3 …          numbers rise by one with each ask
 *   here:                └──── fdatasync ────┘ done 1   └──── fdatasync ────┘ done 2
 *
 * Invariants:
 *  Y1  All up to `done` is durable: a sync that began after it was written has come to its end. What the log held before it is so as
 *      well, for it is one file.
 *  Y2  A number is promised before its commit can be seen by another connection. Who reads beside the lane waits, after that, for what
 *      has been promised by then: nobody is told what a machine that stops now would not know any more.
 *  Y3  What is promised is asked for, whether the commit has come to anything or not: nobody waits for ever.
 *
 * A failed sync ends the process, as that of a commit does (sqlite.c). The thread has a descriptor of its own: SQLite has no lock on
 * the log, so that closing it drops none.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/error.h"

struct sqlite_sync;

/* `told` is called after each sync, in the thread of that, with how long it has taken. */
enum hx_code sqlite_sync_new(const char *log_path, void (*told)(void *context, int64_t ns), void *context,
			     struct sqlite_sync **ret, struct hx_error *err) HX_MUST_CHECK;
/* What was asked for is done first. Takes NULL. */
void sqlite_sync_free(struct sqlite_sync *sync);
/* By the lane: it is about to commit, which gets the next number; and it has. */
void sqlite_sync_promise(struct sqlite_sync *sync);
void sqlite_sync_ask(struct sqlite_sync *sync);
/* From any thread: the last that was promised; is it durable; waits for it. False: that moment has come. */
uint64_t sqlite_sync_promised(const struct sqlite_sync *sync);
bool sqlite_sync_is_done(const struct sqlite_sync *sync, uint64_t number);
bool sqlite_sync_wait(struct sqlite_sync *sync, uint64_t number, struct mono_time until) HX_MUST_CHECK;
