/*
 * hapax init DIR: a small project to start from. What is in it stands in src/cli/text/.
 *
 * Nothing that is there is ever overwritten, and no half of a project is left: it is written into a folder beside its place,
 * .hapax-init.XXXXXX, and moved from there when it is whole.
 *
 *   DIR is not there yet   one rename
 *   DIR is there           a rename for each entry of it, none of which may be there; the README comes last. An error takes
 *                          back those that were made. Who is killed between two of them has the first ones
 *
 * Who is killed before leaves that folder behind, and nothing else.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/excerpt.h"
#include "base/json_string.h"
#include "base/rename.h"
#include "cli/local.h"
#include "cli/table.h"
#include "cli/text.h"

#define TEMPORARY ".hapax-init.XXXXXX"
#define TEXT_BYTES_MAX (64u << 10)

#define INIT_FILES_MAX 12
#define INIT_ENTRIES_MAX 8

/* A kind of project. */
static const struct init_kind {
	const char *option;                    /* NULL: without any */
	const char *folder;                    /* the one that it has */
	const struct packed *texts;            /* of the files, one after another, a NUL after each */
	const char *files[INIT_FILES_MAX];     /* their paths, in the order in which the Makefile packs them */
	const char *entries[INIT_ENTRIES_MAX]; /* what there is in the project itself. The last is there when all is */
	const char *commands;                  /* what the README begins with, as it is printed */
} init_kinds[] = {
	{
		.folder = "workflows",
		.texts = &project_plain,
		.files = {"README.md", "hapax.json", "workflows/order.json", "workflows/welcome.json"},
		.entries = {"workflows", "hapax.json", "README.md"},
		.commands =
			"  hapax check --strict workflows --config hapax.json\n"
			"  hapax serve --config hapax.json\n"
			"  hapax entity create order o-1 && hapax entity fire order o-1 pay && hapax entity fire order o-1 ship",
	},
	{
		.option = "js",
		.folder = "hapax",
		.texts = &project_js,
		.files = {"README.md", "package.json", "order.mjs", "worker.mjs", "test.mjs", "hapax/index.js",
			  "hapax/index.d.ts", "hapax/client.js", "hapax/run.js", "hapax/test.js"},
		.entries = {"hapax", "package.json", "order.mjs", "worker.mjs", "test.mjs", "README.md"},
		.commands = "  node test.mjs\n"
			    "  hapax serve\n"
			    "  node worker.mjs\n"
			    "  hapax run start order --input '{\"item\": \"lamp\", \"total\": 99}'",
	},
	{
		.option = "python",
		.folder = "hapax",
		.texts = &project_python,
		.files = {"README.md", "order.py", "worker.py", "test_order.py", "hapax/__init__.py", "hapax/client.py",
			  "hapax/run.py", "hapax/testing.py"},
		.entries = {"hapax", "order.py", "worker.py", "test_order.py", "README.md"},
		.commands = "  python3 test_order.py\n"
			    "  hapax serve\n"
			    "  python3 worker.py\n"
			    "  hapax run start order --input '{\"item\": \"lamp\", \"total\": 99}'",
	},
};

struct project {
	const struct init_kind *kind;
	char dir[PATH_MAX];                          /* without slashes at its end */
	char temporary[PATH_MAX + sizeof TEMPORARY]; /* empty: not made, or moved away */
	int dir_fd;                                  /* -1: there is no such folder yet */
	int temporary_fd;
	size_t moved_n; /* of the entries */
};

static enum hx_code init_failed(const char *path, const char *what, struct hx_error *err)
{
	return error_set(err, HX_INTERNAL, "%s cannot be %s: %s", excerpt_of(slice_str(path)).text, what,
			 strerror(errno));
}

static enum hx_code in_the_way(const struct project *p, const char *entry, struct hx_error *err)
{
	return error_set(err, HX_ALREADY_EXISTS, "%s%s%s is there already: nothing was written",
			 excerpt_of(slice_str(p->dir)).text, entry ? "/" : "", entry ? entry : "");
}

/* ---- where it goes ---- */

static enum hx_code read_dir(struct project *p, const char *dir, struct hx_error *err)
{
	size_t n = strlen(dir);

	while (n > 1 && dir[n - 1] == '/')
		n--;
	if (n >= sizeof p->dir)
		return error_set(err, HX_VALIDATION_ERROR, "the path of a folder is never so long");
	snprintf(p->dir, sizeof p->dir, "%.*s", (int)n, dir);
	p->dir_fd = open(p->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (p->dir_fd < 0 && errno == ENOTDIR)
		return in_the_way(p, /* entry= */ NULL, err);
	if (p->dir_fd < 0 && errno != ENOENT)
		return init_failed(p->dir, "opened", err);
	return HX_OK;
}

/* Said before anything is written; the moves look again. */
static enum hx_code check_free(const struct project *p, struct hx_error *err)
{
	struct stat at;

	for (const char *const *entry = p->kind->entries; *entry; entry++)
		if (p->dir_fd >= 0 && fstatat(p->dir_fd, *entry, &at, AT_SYMLINK_NOFOLLOW) == 0)
			return in_the_way(p, *entry, err);
	return HX_OK;
}

/* On the same file system: in the folder, or where it will be. */
static enum hx_code make_temporary(struct project *p, struct hx_error *err)
{
	const char *slash = strrchr(p->dir, '/');
	mode_t mask = umask(0);

	umask(mask);
	if (p->dir_fd >= 0)
		snprintf(p->temporary, sizeof p->temporary, "%s/" TEMPORARY, p->dir);
	else
		snprintf(p->temporary, sizeof p->temporary, "%.*s" TEMPORARY, slash ? (int)(slash - p->dir) + 1 : 0,
			 p->dir);
	if (!mkdtemp(p->temporary)) {
		p->temporary[0] = '\0';
		return init_failed(p->dir, "made", err);
	}
	p->temporary_fd = open(p->temporary, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (p->temporary_fd < 0 || fchmod(p->temporary_fd, 0777 & ~mask) ||
	    mkdirat(p->temporary_fd, p->kind->folder, 0777))
		return init_failed(p->temporary, "made", err);
	return HX_OK;
}

/* ---- writing ---- */

static enum hx_code write_file(const struct project *p, const char *path, const char *text, struct hx_error *err)
{
	int fd = openat(p->temporary_fd, path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	FILE *out = fd >= 0 ? fdopen(fd, "w") : NULL;
	bool written = out && fputs(text, out) >= 0;

	if (fd >= 0 && !out)
		close(fd);
	if (out && fclose(out) != 0)
		written = false;
	return written ? HX_OK : init_failed(path, "written", err);
}

static enum hx_code write_files(const struct project *p, struct hx_error *err)
{
	char *texts = packed_text(p->kind->texts), *text = texts;
	enum hx_code code = HX_OK;

	for (const char *const *path = p->kind->files; *path && !code; path++) {
		ASSERT(text < texts + p->kind->texts->whole); /* else the Makefile packs fewer files */
		code = write_file(p, *path, text, err);
		text += strlen(text) + 1;
	}
	free(texts);
	return code;
}

static enum hx_code put_in_place(struct project *p, struct hx_error *err)
{
	if (p->dir_fd < 0) {
		if (!rename_new(AT_FDCWD, p->temporary, AT_FDCWD, p->dir))
			return errno == EEXIST ? in_the_way(p, /* entry= */ NULL, err)
					       : init_failed(p->dir, "made", err);
		p->temporary[0] = '\0';
		return HX_OK;
	}
	for (; p->kind->entries[p->moved_n]; p->moved_n++) {
		const char *entry = p->kind->entries[p->moved_n];

		if (!rename_new(p->temporary_fd, entry, p->dir_fd, entry))
			return errno == EEXIST ? in_the_way(p, entry, err) : init_failed(entry, "moved", err);
	}
	return HX_OK;
}

/* What cannot be removed here is told nobody: it is in a folder of its own, and the error before it is what matters. */
static void clean_up(struct project *p, bool take_back)
{
	while (take_back && p->moved_n > 0) {
		const char *entry = p->kind->entries[--p->moved_n];

		(void)renameat(p->dir_fd, entry, p->temporary_fd, entry);
	}
	if (p->temporary[0] && p->temporary_fd >= 0) {
		for (const char *const *path = p->kind->files; *path; path++)
			(void)unlinkat(p->temporary_fd, *path, 0);
		(void)unlinkat(p->temporary_fd, p->kind->folder, AT_REMOVEDIR);
	}
	if (p->temporary[0])
		(void)rmdir(p->temporary);
	if (p->temporary_fd >= 0)
		close(p->temporary_fd);
	if (p->dir_fd >= 0)
		close(p->dir_fd);
}

/* ---- the result ---- */

static enum hx_code print_json(const struct project *p, struct hx_error *err)
{
	const char *const *files = p->kind->files;
	LOCAL_STRBUF(text, TEXT_BYTES_MAX);

	strbuf_add_str(&text, "{\"folder\":");
	json_quote(slice_str(p->dir), &text);
	strbuf_add_str(&text, ",\"files\":[");
	for (size_t i = 0; files[i]; i++)
		strbuf_addf(&text, "%s\"%s\"", i ? "," : "", files[i]);
	strbuf_add_str(&text, "]}");
	return text_print_line(&text, err);
}

static enum hx_code print_words(const struct project *p, struct hx_error *err)
{
	struct slice dir = slice_str(p->dir);
	LOCAL_STRBUF(text, TEXT_BYTES_MAX);

	for (const char *const *path = p->kind->files; *path; path++) {
		text_add_shown(&text, dir);
		strbuf_addf(&text, "/%s\n", *path);
	}
	strbuf_add_str(&text, "\nThe README goes on from here. In short:\n\n  cd ");
	text_add_shown(&text, dir);
	strbuf_addf(&text, "\n%s", p->kind->commands);
	return text_print_line(&text, err);
}

static enum hx_code choose_kind(const struct command_args *args, const struct init_kind **ret_kind,
				struct hx_error *err)
{
	*ret_kind = &init_kinds[0];
	for (size_t i = 1; i < sizeof init_kinds / sizeof *init_kinds; i++) {
		if (!command_value(args, init_kinds[i].option))
			continue;
		if ((*ret_kind)->option)
			return error_set(err, HX_VALIDATION_ERROR, "--js and --python are two projects");
		*ret_kind = &init_kinds[i];
	}
	return HX_OK;
}

enum hx_code init_run(const struct command_args *args, struct hx_error *err)
{
	struct project project = {.dir_fd = -1, .temporary_fd = -1};
	enum hx_code code = choose_kind(args, &project.kind, err);

	if (!code)
		code = read_dir(&project, args->operands[0], err);
	if (!code)
		code = check_free(&project, err);
	if (!code)
		code = make_temporary(&project, err);
	if (!code)
		code = write_files(&project, err);
	if (!code)
		code = put_in_place(&project, err);
	clean_up(&project, /* take_back= */ code != HX_OK);
	if (code)
		return code;
	return command_value(args, "json") ? print_json(&project, err) : print_words(&project, err);
}
