/* See backup.h. */
#include "db/backup.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/rename.h"
#include "base/strbuf.h"

#define SLICE_PAGES 1024   /* 4 MiB: a person who interrupts it does not wait */
#define CHECK_STEPS 100000 /* of SQLite's machine, between two looks */
#define BUSY_TIMEOUT_MS 5000
#define URI_BYTES_MAX (4 * PATH_MAX)

struct backup {
	const struct backup_options *options;
	char part[PATH_MAX];
	sqlite3 *from, *to;
};

static bool goes_on(const struct backup *b, int percent)
{
	return !b->options->told || b->options->told(b->options->context, percent);
}

static enum hx_code given_up(const struct backup *b, struct hx_error *err)
{
	return error_set(err, HX_STOPPING, "%s was not written: it was interrupted", b->options->file);
}

/* ---- errors ---- */

/* The system's words where it has some: "disk I/O error" helps nobody. */
static const char *words_of(sqlite3 *handle, int rc)
{
	int system = handle ? sqlite3_system_errno(handle) : 0;

	if ((rc & 0xff) == SQLITE_FULL)
		return strerror(ENOSPC);
	return system ? strerror(system) : handle ? sqlite3_errmsg(handle) : sqlite3_errstr(rc);
}

static enum hx_code unreadable(const struct backup *b, int rc, struct hx_error *err)
{
	return error_set(err, HX_STORE_UNAVAILABLE, "%s: %s", b->options->path, words_of(b->from, rc));
}

static enum hx_code unwritable(const struct backup *b, const char *words, struct hx_error *err)
{
	return error_set(err, HX_INTERNAL, "%s cannot be written: %s", b->options->file, words);
}

static enum hx_code exists(const struct backup *b, struct hx_error *err)
{
	struct stat there;
	bool folder = stat(b->options->file, &there) == 0 && S_ISDIR(there.st_mode);

	return error_set(err, HX_ALREADY_EXISTS, "%s %s: a backup takes a name of its own", b->options->file,
			 folder ? "is a folder" : "is there already");
}

/* ---- both ends ---- */

/* An empty file that only its owner may read. SQLite opens it itself; two descriptors would lose each other's locks. */
static enum hx_code make_part(struct backup *b, struct hx_error *err)
{
	struct stat there;
	int fd;

	if (lstat(b->options->file, &there) == 0)
		return exists(b, err);
	if (snprintf(b->part, sizeof b->part, "%s.part-XXXXXX", b->options->file) >= (int)sizeof b->part) {
		b->part[0] = '\0';
		return unwritable(b, strerror(ENAMETOOLONG), err);
	}
	fd = mkostemp(b->part, O_CLOEXEC);
	if (fd < 0) {
		b->part[0] = '\0';
		return unwritable(b, strerror(errno), err);
	}
	close(fd);
	return HX_OK;
}

/* K1: from here on it sees one moment. */
static enum hx_code backup_open_store(struct backup *b, struct hx_error *err)
{
	int rc = sqlite3_open_v2(b->options->path, &b->from, SQLITE_OPEN_READONLY | SQLITE_OPEN_EXRESCODE, NULL);

	if (!rc)
		rc = sqlite3_busy_timeout(b->from, BUSY_TIMEOUT_MS);
	if (!rc)
		rc = sqlite3_db_config(b->from, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
	if (!rc)
		rc = sqlite3_exec(b->from, "BEGIN; SELECT count(*) FROM sqlite_schema", NULL, NULL, NULL);
	return rc ? unreadable(b, rc, err) : HX_OK;
}

/* It is thrown away unless it is whole, so it needs no journal; and it is synced once, at the end. */
static enum hx_code open_part(struct backup *b, struct hx_error *err)
{
	int rc = sqlite3_open_v2(b->part, &b->to, SQLITE_OPEN_READWRITE | SQLITE_OPEN_EXRESCODE, NULL);

	if (!rc)
		rc = sqlite3_exec(b->to, "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF", NULL, NULL, NULL);
	return rc ? unwritable(b, words_of(b->to, rc), err) : HX_OK;
}

static void close_both(struct backup *b)
{
	sqlite3_close(b->to);
	sqlite3_close(b->from);
	b->to = b->from = NULL;
}

/* ---- the copy ---- */

static int percent_of(sqlite3_backup *backup)
{
	int pages = sqlite3_backup_pagecount(backup);

	return pages > 0 ? (int)(100LL * (pages - sqlite3_backup_remaining(backup)) / pages) : 0;
}

static enum hx_code copy_pages(struct backup *b, struct hx_error *err)
{
	sqlite3_backup *backup = sqlite3_backup_init(b->to, "main", b->from, "main");
	bool stopped = false;
	int rc;

	if (!backup)
		return unwritable(b, sqlite3_errmsg(b->to), err);
	do {
		rc = sqlite3_backup_step(backup, SLICE_PAGES);
		stopped = rc == SQLITE_OK && !goes_on(b, percent_of(backup));
	} while (rc == SQLITE_OK && !stopped);
	(void)sqlite3_backup_finish(backup); /* says again what the last step said */
	if (stopped)
		return given_up(b, err);
	/* Which end it was is not told: a store that cannot be read any more says so itself. */
	if (rc != SQLITE_DONE && sqlite3_exec(b->from, "SELECT count(*) FROM sqlite_schema", NULL, NULL, NULL))
		return unreadable(b, sqlite3_errcode(b->from), err);
	return rc == SQLITE_DONE ? HX_OK : unwritable(b, words_of(b->to, rc), err);
}

static enum hx_code copy(struct backup *b, struct hx_error *err)
{
	enum hx_code code = backup_open_store(b, err);

	if (!code)
		code = open_part(b, err);
	if (!code)
		code = copy_pages(b, err);
	close_both(b);
	return code;
}

/* ---- the check ---- */

/* Immutable, so that SQLite looks for no log beside it, and makes none: that can be said in an URI alone. */
static void add_uri(const char *path, struct strbuf *uri)
{
	strbuf_add_str(uri, *path == '/' ? "file://" : "file:");
	for (; *path; path++)
		if ((*path >= 'a' && *path <= 'z') || (*path >= 'A' && *path <= 'Z') ||
		    (*path >= '0' && *path <= '9') || strchr("/._-", *path))
			strbuf_add_char(uri, *path);
		else
			strbuf_addf(uri, "%%%02X", (unsigned)(unsigned char)*path);
	strbuf_add_str(uri, "?immutable=1");
}

static int look_up(void *context)
{
	return !goes_on(context, -1);
}

/* "ok", or what is wrong with it. */
static enum hx_code ask_check(struct backup *b, struct hx_error *err)
{
	sqlite3_stmt *stmt = NULL;
	int rc = sqlite3_prepare_v2(b->to, "PRAGMA quick_check(1)", -1, &stmt, NULL);
	enum hx_code code = HX_OK;

	if (!rc)
		rc = sqlite3_step(stmt);
	if ((rc & 0xff) == SQLITE_INTERRUPT)
		code = given_up(b, err);
	else if (rc != SQLITE_ROW)
		code = error_set(err, HX_INTERNAL, "the copy cannot be read: %s", words_of(b->to, rc));
	else if (strcmp((const char *)sqlite3_column_text(stmt, 0), "ok") != 0)
		code = error_set(err, HX_INTERNAL, "the copy is not whole, and neither may the store be: %s",
				 (const char *)sqlite3_column_text(stmt, 0));
	sqlite3_finalize(stmt);
	return code;
}

static enum hx_code backup_check(struct backup *b, struct hx_error *err)
{
	enum hx_code code;
	int rc;
	LOCAL_STRBUF(uri, URI_BYTES_MAX);

	add_uri(b->part, &uri);
	rc = uri.failed ? SQLITE_NOMEM
			: sqlite3_open_v2(uri.p, &b->to, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_EXRESCODE,
					  NULL);
	if (rc)
		code = error_set(err, HX_INTERNAL, "the copy cannot be read: %s", words_of(b->to, rc));
	else {
		sqlite3_progress_handler(b->to, CHECK_STEPS, look_up, b);
		code = ask_check(b, err);
	}
	close_both(b);
	return code;
}

/* ---- its name ---- */

static enum hx_code sync_path(const struct backup *b, const char *path, struct hx_error *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), failed = fd < 0 || fsync(fd) ? errno : 0;

	if (fd >= 0)
		close(fd);
	return failed ? unwritable(b, strerror(failed), err) : HX_OK;
}

static enum hx_code give_name(struct backup *b, struct hx_error *err)
{
	const char *file = b->options->file;

	if (!rename_new(AT_FDCWD, b->part, AT_FDCWD, file))
		return errno == EEXIST ? exists(b, err) : unwritable(b, strerror(errno), err);
	snprintf(b->part, sizeof b->part, "%s", file); /* what is deleted if the folder cannot be synced */
	return HX_OK;
}

static enum hx_code sync_folder(struct backup *b, struct hx_error *err)
{
	char path[PATH_MAX];

	snprintf(path, sizeof path, "%s", b->options->file);
	return sync_path(b, dirname(path), err);
}

enum hx_code backup_take(const struct backup_options *options, int64_t *ret_bytes, struct hx_error *err)
{
	struct backup b = {.options = options};
	struct stat made = {0};
	enum hx_code code = make_part(&b, err);

	if (!code)
		code = copy(&b, err);
	if (!code)
		code = backup_check(&b, err);
	if (!code)
		code = sync_path(&b, b.part, err);
	if (!code)
		code = give_name(&b, err);
	if (!code)
		code = sync_folder(&b, err);
	if (code && b.part[0])
		(void)unlink(b.part); /* what went wrong before is what is told */
	if (!code && stat(options->file, &made) == 0)
		*ret_bytes = made.st_size;
	return code;
}
