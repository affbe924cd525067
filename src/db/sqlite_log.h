/*
 * The log (WAL) of the server's own connection, written in large pieces.
 *
 * SQLite writes each page of a transaction by itself, and before it the 24 bytes of its frame: at a thousand pages these are two
 * thousand calls. They follow on each other, so they are gathered here and written as one, before anything else is done with the
 * file:
 *
 *   xWrite · xWrite · xWrite …  (gathered)  · xSync: write, sync
 *
 * Nothing is lost by it: a commit syncs the log before anybody is shown its frames (synchronous=FULL), and what is gathered of a
 * transaction that failed is nobody's. What cannot be written is dropped, and SQLite is told in the place of the sync.
 */
#pragma once

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

struct sqlite_log;

/* Of an open connection whose journal mode is WAL. NULL: no memory, or no log to be had; all is as it was. */
struct sqlite_log *sqlite_log_gather(sqlite3 *handle);
/* Takes NULL. After its connection was closed. */
void sqlite_log_free(struct sqlite_log *log);
/* What is gathered and not written; after a commit there is nothing. Takes NULL. */
size_t sqlite_log_held(const struct sqlite_log *log);
/* After a transaction has failed: what it has left is not written later, when another program may have written there. Takes NULL. */
void sqlite_log_drop(struct sqlite_log *log);
