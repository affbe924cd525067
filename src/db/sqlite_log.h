/*
 * The log (WAL) of the server's own connection, written in large pieces.
 *
 * SQLite writes each page of a transaction by itself, and before it the 24 bytes of its frame: at a thousand pages these are two
 * thousand calls. They follow on each other, so they are gathered here and written as one, before anything else is done with them:
 *
 *   xWrite · xWrite · xWrite …  (gathered)  · xSync: write, sync
 *
 * A file that grows costs a sync twice as much as one that only changes: its new size and place are written, too. So the file is
 * some way ahead of the log, with zeros, which are no frames. This counts once around: a log that has been copied back begins at the
 * front again, and the file stays.
 *
 * Nobody misses what is gathered. With synchronous=FULL the last that a commit does with the log is to sync it, or to have it written
 * here, and only then are its frames in the index that others read by (sqlite3WalFrames). A page that was written before the commit, because the cache was full,
 * is looked for by its own connection alone.
 *
 * What cannot be written is lost together with its transaction: from then on every write and every sync fails, and so does the
 * commit, until SQLite has rolled back. What a rollback leaves is dropped and never written, for the place may be another's by then.
 */
#pragma once

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>

struct sqlite_log;

/*
 * Of an open connection whose journal mode is WAL; takes its rollback hook. NULL: no memory, no log to be had, or one on a disk
 * where SQLite writes on after the sync; all is as it was.
 */
struct sqlite_log *sqlite_log_gather(sqlite3 *handle);
/* Takes NULL. After its connection was closed. */
void sqlite_log_free(struct sqlite_log *log);
/*
 * While it is set a commit's frames are written and not synced: the caller sees to that, and tells nobody before (sqlite_sync.h).
 * A checkpoint is not to be begun meanwhile.
 */
void sqlite_log_sync_later(struct sqlite_log *log, bool later);
/* What is gathered and not written; after a commit there is nothing. Takes NULL. */
size_t sqlite_log_held(const struct sqlite_log *log);
