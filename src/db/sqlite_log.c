/*
 * See sqlite_log.h. SQLite calls a file by its table of methods; the log's is replaced by a copy with some of our own, which stands
 * at the head of what they need to know. Its thread is the lane's, as with all of its connection.
 */
#include "db/sqlite_log.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* SQLite's own xWrite takes the last 17 bits of a length, and writes as much as they say. */
#define GATHERED_BYTES_MAX (124u << 10)
/*
 * Zeros at a time. Commits of 24 KB into a new file, microseconds at the median and on average: without them 148 to 171, 152 to 172;
 * with 256 KB 80, 97; with 1 MB 82, 117, and one in a hundred 2,600.
 */
#define AHEAD_BYTES (256 << 10)
#define ZEROS_BYTES (64 << 10)
#define HEAD_BYTES 32 /* of the log itself, before its first frame */

struct sqlite_log {
	sqlite3_io_methods methods; /* first: what the file points to */
	const sqlite3_io_methods *below;
	bool later;          /* somebody else will sync what a commit writes */
	int failed;          /* why what is held could not be written */
	sqlite3_int64 there; /* up to here the file was written before */
	sqlite3_int64 end;   /* the furthest that this transaction has written to; 0: nothing since the last sync */
	sqlite3_int64 at;    /* where in the file what is held belongs */
	size_t n;
	unsigned char bytes[GATHERED_BYTES_MAX];
};

static struct sqlite_log *log_of(sqlite3_file *file)
{
	return (struct sqlite_log *)file->pMethods;
}

/*
 * After all of a commit was written, under the write lock: behind it there is nobody's frame. A commit that is large would outgrow the
 * zeros at once, and does without. Where there is no room for them what comes next says so itself.
 */
static void write_ahead(sqlite3_file *file)
{
	static unsigned char zeros[ZEROS_BYTES]; /* never written; were it const, the program would carry them */
	struct sqlite_log *log = log_of(file);
	sqlite3_int64 end = log->end, grown = end - log->there;

	log->end = 0;
	if (grown <= 0)
		return;
	log->there = end;
	while (grown <= ZEROS_BYTES && log->there < end + AHEAD_BYTES &&
	       !log->below->xWrite(file, zeros, ZEROS_BYTES, log->there))
		log->there += ZEROS_BYTES;
}

/* What was spilled and changed again is written again, and the checksums of all that follows: the last write is not the furthest. */
static void note_end(struct sqlite_log *log, sqlite3_int64 end)
{
	bool further = true;

	further &= end > log->end; /* mutant: log-zeros-over-own */
	if (further)
		log->end = end;
}

/* Once it has failed, nothing is tried again: SQLite was told that these pages are there, and goes by that. */
static int write_out(sqlite3_file *file)
{
	struct sqlite_log *log = log_of(file);
	int rc = log->failed;

	if (log->n && !rc) {
		rc = log->below->xWrite(file, log->bytes, (int)log->n, log->at);
		note_end(log, log->at + (sqlite3_int64)log->n);
	}
	if (!rc)
		log->n = 0;
	log->failed = rc; /* mutant: log-lost-and-on -> log->n = 0; */
	return rc;
}

static int log_write(sqlite3_file *file, const void *bytes, int n, sqlite3_int64 at)
{
	struct sqlite_log *log = log_of(file);
	bool follows = log->n && at == log->at + (sqlite3_int64)log->n && (size_t)n <= GATHERED_BYTES_MAX - log->n;
	int rc = follows ? log->failed : write_out(file);

	if (rc)
		return rc;
	if ((size_t)n > GATHERED_BYTES_MAX) {
		note_end(log, at + n);
		return log->below->xWrite(file, bytes, n, at);
	}
	if (!log->n)
		log->at = at;
	memcpy(log->bytes + log->n, bytes, (size_t)n);
	log->n += (size_t)n;
	return SQLITE_OK;
}

/* What is elsewhere in the file is read as it is: a rollback reads, and writes nothing. */
static int log_read(sqlite3_file *file, void *bytes, int n, sqlite3_int64 at)
{
	struct sqlite_log *log = log_of(file);
	bool apart = at + n <= log->at || at >= log->at + (sqlite3_int64)log->n;
	int rc = apart ? SQLITE_OK : write_out(file);

	return rc ? rc : log->below->xRead(file, bytes, n, at);
}

static int log_truncate(sqlite3_file *file, sqlite3_int64 size)
{
	int rc = write_out(file);

	if (!rc)
		rc = log_of(file)->below->xTruncate(file, size);
	if (!rc)
		log_of(file)->there = size;
	return rc;
}

static int log_sync(sqlite3_file *file, int flags)
{
	struct sqlite_log *log = log_of(file);
	int rc = write_out(file); /* mutant: log-synced-unwritten -> int rc = SQLITE_OK; */
	bool later = log->later;

	if (rc)
		return rc;
	/* A log that begins anew: frames without its head would be those of the old one, whose pages were copied back. */
	later &= log->end > HEAD_BYTES; /* mutant: log-head-later */
	write_ahead(file);
	return later ? SQLITE_OK : log->below->xSync(file, flags);
}

static int log_size(sqlite3_file *file, sqlite3_int64 *ret_size)
{
	int rc = write_out(file);

	return rc ? rc : log_of(file)->below->xFileSize(file, ret_size);
}

static int log_close(sqlite3_file *file)
{
	file->pMethods = log_of(file)->below;
	return file->pMethods->xClose(file);
}

static void drop(void *context)
{
	struct sqlite_log *log = context;

	log->n = 0;   /* mutant: log-dropped */
	log->end = 0; /* mutant: log-zeros-over-others */
	log->failed = SQLITE_OK;
}

/* Where a write can harm what stands beside it, SQLite syncs in the middle of a last page, and writes its rest behind that. */
static bool ends_with_sync(sqlite3 *handle)
{
	sqlite3_file *file = NULL;

	return sqlite3_file_control(handle, "main", SQLITE_FCNTL_FILE_POINTER, &file) == SQLITE_OK && file &&
	       file->pMethods && file->pMethods->xDeviceCharacteristics(file) & SQLITE_IOCAP_POWERSAFE_OVERWRITE;
}

struct sqlite_log *sqlite_log_gather(sqlite3 *handle)
{
	sqlite3_file *file = NULL;
	struct sqlite_log *log;

	/* The log is opened by the first transaction. */
	if (sqlite3_exec(handle, "SELECT 1 FROM sqlite_schema LIMIT 1", NULL, NULL, NULL) ||
	    sqlite3_file_control(handle, "main", SQLITE_FCNTL_JOURNAL_POINTER, &file) || !file || !file->pMethods ||
	    !ends_with_sync(handle))
		return NULL;
	log = malloc(sizeof *log);
	if (!log)
		return NULL;
	log->below = file->pMethods;
	if (log->below->xFileSize(file, &log->there))
		log->there = 0;
	drop(log);
	log->at = 0;
	log->later = false;
	log->methods = *log->below;
	log->methods.xWrite = log_write;
	log->methods.xRead = log_read;
	log->methods.xTruncate = log_truncate;
	log->methods.xSync = log_sync;
	log->methods.xFileSize = log_size;
	log->methods.xClose = log_close;
	file->pMethods = &log->methods;
	sqlite3_rollback_hook(handle, drop, log);
	return log;
}

void sqlite_log_sync_later(struct sqlite_log *log, bool later)
{
	log->later = later;
}

void sqlite_log_free(struct sqlite_log *log)
{
	free(log);
}

size_t sqlite_log_held(const struct sqlite_log *log)
{
	return log ? log->n : 0;
}
