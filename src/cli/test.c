/*
 * hapax test: files of examples, given, when, then, carried out by the engine's own code without a server and without a store; see
 * trial/example.h.
 *
 * Exit codes: 0 all as expected, 1 one is not, 2 what was given cannot be tried.
 */
#include <dirent.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "cli/check_report.h"
#include "cli/file_watch.h"
#include "cli/local.h"
#include "cli/replay.h"
#include "model/text.h"
#include "trial/example.h"

#define ARENA_BYTES_MAX (1u << 30)
#define REPORT_BYTES_MAX (64u << 20)
#define SETTLE_MS 50

/* All files, and what has come of them. */
struct tests {
	const struct command_args *args;
	struct arena *arena;
	struct findings findings;
	size_t n, failed, files_n;
	struct strbuf *out;
	enum hx_code code; /* of what a real server could not even be asked about */
	struct hx_error *err;
};

/* A path as the file writes it: from its own folder. */
static const char *beside(struct arena *arena, const char *file, const char *path)
{
	const char *slash = strrchr(file, '/');

	if (path[0] == '/' || !slash)
		return path;
	return text_printf(arena, "%.*s/%s", (int)(slash - file), file, path);
}

static void load_definitions(struct tests *t, const struct example_file *file, struct definition_set *set)
{
	size_t n = strlen(file->file);
	static const char end[] = ".test.json";

	for (size_t i = 0; i < file->definitions_n; i++)
		definition_set_load(beside(t->arena, file->file, file->definitions[i]), t->arena, &t->findings, set);
	if (!file->definitions_n && n >= sizeof end && strcmp(file->file + n - (sizeof end - 1), end) == 0)
		definition_set_load(text_printf(t->arena, "%.*s.json", (int)(n - (sizeof end - 1)), file->file),
				    t->arena, &t->findings, set);
	else if (!file->definitions_n)
		findings_add(&t->findings,
			     (struct finding){.severity = FINDING_ERROR, .file = file->file, .rule = "definitions"},
			     "it names no definitions, and is not called NAME.test.json");
	definition_set_check(set->items, set->n, /* config= */ NULL, &t->findings);
}

static void load_world(struct tests *t, const struct example_file *file, const struct definition_set *set,
		       struct trial_world *world)
{
	LOCAL_STRBUF(text, CONFIG_BYTES_MAX + 1);
	size_t errors = t->findings.errors;
	const char *path = file->world ? beside(t->arena, file->file, file->world) : NULL;

	*world = (struct trial_world){0};
	if (path && file_load(path, &text, &t->findings))
		trial_world_parse(path, strbuf_slice(&text), t->arena, &t->findings, world);
	if (t->findings.errors > errors)
		return;
	trial_world_check(world, set, &t->findings);
	example_file_check(file, set, &t->findings);
}

static void report(struct tests *t, const struct example_report *r)
{
	strbuf_add_str(t->out, command_value(t->args, "json") && t->files_n ? "," : "");
	if (command_value(t->args, "json"))
		example_report_json(r, t->out);
	else if (command_value(t->args, "junit"))
		example_report_junit(r, t->out);
	else
		example_report_words(r, t->out);
	t->files_n++;
	t->n += r->n;
	t->failed += r->failed;
}

static void try_file(struct tests *t, const char *path)
{
	struct definition_set *set = arena_zalloc(t->arena, sizeof *set);
	struct example_report *r = arena_zalloc(t->arena, sizeof *r);
	struct trial_world world = {0};
	struct example_file file;
	size_t errors = t->findings.errors;
	LOCAL_STRBUF(text, CONFIG_BYTES_MAX + 1);

	ASSERT(set && r);
	if (!file_load(path, &text, &t->findings))
		return;
	example_file_parse(path, strbuf_slice(&text), t->arena, &t->findings, &file);
	if (t->findings.errors > errors)
		return;
	load_definitions(t, &file, set);
	if (t->findings.errors == errors)
		load_world(t, &file, set, &world);
	if (t->findings.errors > errors)
		return;
	examples_run(&file, set, &world, t->arena, r);
	if (command_value(t->args, "server") && !t->code)
		t->code = replay_run(set, &world, command_value(t->args, "db"), t->arena, r, t->err);
	report(t, r);
}

static int is_test_file(const struct dirent *entry)
{
	static const char end[] = ".test.json";
	size_t n = strlen(entry->d_name);

	return entry->d_name[0] != '.' && n >= sizeof end && strcmp(entry->d_name + n - (sizeof end - 1), end) == 0;
}

static void try_path(struct tests *t, const char *path)
{
	struct dirent **names;
	struct stat status;
	int n;

	if (stat(path, &status) != 0 || !S_ISDIR(status.st_mode)) {
		try_file(t, path);
		return;
	}
	n = scandir(path, &names, is_test_file, alphasort);
	if (n <= 0)
		findings_add(&t->findings, (struct finding){.severity = FINDING_ERROR, .file = path, .rule = "file"},
			     "there is no *.test.json in this folder");
	for (int i = 0; i < n; i++) {
		try_file(t, text_printf(t->arena, "%s/%s", path, names[i]->d_name));
		free(names[i]);
	}
	if (n >= 0)
		free(names);
}

static void print(const struct tests *t)
{
	bool json = command_value(t->args, "json"), junit = command_value(t->args, "junit");

	for (const struct finding *f = t->findings.first; f; f = f->next) {
		LOCAL_STRBUF(line, CHECK_REPORT_BYTES_MAX);

		finding_print(f, &line);
		if (f->severity == FINDING_ERROR)
			fprintf(stderr, "%s\n", line.p);
	}
	if (json)
		printf("{\"tests\":%zu,\"failed\":%zu,\"files\":[%s]}\n", t->n, t->failed, t->out->p);
	else if (junit)
		printf("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n%s</testsuites>\n", t->out->p);
	else
		fputs(t->out->p, stdout);
	(void)fflush(stdout);
}

static enum hx_code try_all(const struct command_args *args, struct hx_error *err)
{
	LOCAL_ARENA(arena, ARENA_BYTES_MAX);

	LOCAL_STRBUF(out, REPORT_BYTES_MAX);
	struct tests t = {.args = args, .arena = &arena, .out = &out, .err = err};

	findings_init(&t.findings, &arena);
	strbuf_add_str(&out, "");
	for (size_t i = 0; i < args->operands_n; i++)
		try_path(&t, args->operands[i]);
	print(&t);
	if (t.code)
		return t.code;
	if (out.failed)
		return strbuf_error(&out, err);
	if (t.findings.errors)
		return error_set(err, HX_VALIDATION_ERROR, "%zu error%s: what has one is not tried", t.findings.errors,
				 t.findings.errors == 1 ? "" : "s");
	if (t.failed)
		return error_set(err, HX_PROMISE_BROKEN, "%zu of %zu tests failed", t.failed, t.n);
	return HX_OK;
}

/* Until it is interrupted: again after each change in the folder of the first path. */
static enum hx_code watch(const struct command_args *args, struct hx_error *err)
{
	char folder[PATH_MAX];
	struct file_watch watched;
	struct stat status;
	enum hx_code code;

	snprintf(folder, sizeof folder, "%s", args->operands[0]);
	if (stat(folder, &status) != 0 || !S_ISDIR(status.st_mode)) {
		char *slash = strrchr(folder, '/');

		memcpy(slash ? slash + 1 : folder, slash ? "" : ".", slash ? 1 : 2);
	}
	code = file_watch_init(&watched, folder, /* file= */ NULL, err);
	while (!code) {
		struct pollfd fd = {.fd = watched.fd, .events = POLLIN};

		if (try_all(args, err))
			fprintf(stderr, "hapax: %s\n", err->detail);
		do
			(void)poll(&fd, 1, -1);
		while (!file_watch_take(&watched));
		while (poll(&fd, 1, SETTLE_MS) > 0)
			(void)file_watch_take(&watched);
	}
	return code;
}

enum hx_code test_run(const struct command_args *args, struct hx_error *err)
{
	const char *db = command_value(args, "db");

	if (command_value(args, "json") && command_value(args, "junit"))
		return error_set(err, HX_VALIDATION_ERROR, "--json and --junit are two forms of one report: take one");
	if (db && !command_value(args, "server"))
		return error_set(err, HX_VALIDATION_ERROR, "--db is the store of --server, which is not there");
	if (db && strncmp(db, "postgres://", 11) != 0 && strncmp(db, "postgresql://", 13) != 0)
		return error_set(err, HX_VALIDATION_ERROR, "--db is a database of PostgreSQL, postgres://…");
	return command_value(args, "watch") ? watch(args, err) : try_all(args, err);
}
