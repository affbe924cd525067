/*
 * hapax db backup FILE: a copy of an SQLite store while a server writes to it. See db/backup.h.
 *
 * PostgreSQL has tools of its own for that, which know its standbys, passwords and formats: they are named, and nothing is done.
 *
 * A signal that ends it, ends it clean: what was copied so far is deleted first.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/json_write.h"
#include "cli/local.h"
#include "cli/terminal.h"
#include "db/backup.h"
#include "db/migrate.h"

/* ---- who ends it ---- */

static const int endings[] = {SIGINT, SIGTERM, SIGHUP};
enum { ENDINGS_N = sizeof endings / sizeof *endings };

static volatile sig_atomic_t ended_by;

static void on_ending(int number)
{
	ended_by = number;
}

/* One that is ignored (nohup) stays so. A file that may not grow any more is an error like any other. */
static void expect_endings(void)
{
	struct sigaction action = {.sa_handler = on_ending}, before;

	for (size_t i = 0; i < ENDINGS_N; i++) {
		sigaction(endings[i], NULL, &before);
		if (before.sa_handler != SIG_IGN)
			sigaction(endings[i], &action, NULL);
	}
	signal(SIGXFSZ, SIG_IGN);
}

/* ---- how far it has come ---- */

struct watcher {
	bool watched;
	struct mono_time told;
};

static bool backup_tell(void *context, int percent)
{
	struct watcher *watcher = context;
	char line[64];

	if (watcher->watched && terminal_is_due(&watcher->told)) {
		snprintf(line, sizeof line, "backup: %d %%", percent);
		terminal_tell(percent < 0 ? "backup: checking the copy" : line);
	}
	return !ended_by;
}

static enum hx_code take_backup(const char *path, const char *file, int64_t *ret_bytes, struct hx_error *err)
{
	struct watcher watcher = {.watched = terminal_is_watched()};
	struct backup_options options = {.path = path, .file = file, .told = backup_tell, .context = &watcher};
	enum hx_code code;

	expect_endings();
	code = backup_take(&options, ret_bytes, err);
	if (watcher.watched)
		terminal_tell("");
	if (code == HX_STOPPING) {
		signal((int)ended_by, SIG_DFL);
		(void)raise((int)ended_by); /* so that the shell sees what ended it */
	}
	return code;
}

/* ---- the command ---- */

/* Is there a store in the file? Of which schema it is does not matter: it is backed up before an upgrade, too. */
static enum hx_code look_for_store(const char *url, struct hx_error *err)
{
	struct db_options options = {.url = url, .clock = clock_system(), .read_only = true};
	struct migrate_status status;
	struct db *db = NULL;
	enum hx_code code = command_want_store(url, STORE_HINT, err);

	if (!code)
		code = db_open(&options, &db, err);
	if (!code)
		code = migrate_read_status(db, &status, err);
	if (!code && status.at == 0)
		code = error_set(err, HX_SCHEMA_MISMATCH, "%s: there is no store in it", url + 7);
	db_close(db);
	return code;
}

static enum hx_code check_url(const char *url, struct hx_error *err)
{
	if (strncmp(url, "postgres", 8) == 0)
		return error_set(
			err, HX_CONFIG_ERROR,
			"PostgreSQL is backed up with its own tools: pg_dump (of a schema of its own: --schema=NAME), or "
			"pg_basebackup with an archive of its log; see \"Backup and restore\" in operations.md");
	if (strcmp(url, "sqlite::memory:") == 0)
		return error_set(err, HX_CONFIG_ERROR, "a store in memory cannot be backed up from outside");
	return look_for_store(url, err);
}

enum hx_code backup_make(const struct command_args *args, struct strbuf *out, struct hx_error *err)
{
	const char *url = command_value(args, "db"), *file = args->operands[0];
	int64_t bytes = 0;
	enum hx_code code = check_url(url, err);

	if (!code)
		code = take_backup(url + strlen("sqlite:"), file, &bytes, err);
	if (code)
		return code;
	strbuf_add_char(out, '{');
	json_more_word(out, "file", file);
	json_more_int(out, "bytes", bytes);
	strbuf_add_char(out, '}');
	return HX_OK;
}
