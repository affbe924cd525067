/* See saved_test.h. */
#include "cli/saved_test.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json_string.h"
#include "trial/example.h"

#define FILE_BYTES_MAX (1u << 20)

/* A path as seen from a folder, both without links and dots: up to where they part, and down from there. */
static void add_relative(const char *folder, const char *path, struct strbuf *out)
{
	size_t common = 0;

	for (size_t i = 0; folder[i] == path[i] || (!folder[i] && path[i] == '/'); i++) {
		if (path[i] == '/' || !path[i])
			common = i;
		if (!folder[i] || !path[i])
			break;
	}
	for (size_t i = common; folder[i]; i++)
		if (folder[i] == '/' && folder[i + 1])
			strbuf_add_str(out, "../");
	strbuf_add_str(out, path + common + (path[common] == '/'));
}

static enum hx_code add_path(const char *test, const char *path, struct strbuf *out, struct hx_error *err)
{
	char copy[PATH_MAX], folder[PATH_MAX], whole[PATH_MAX], *slash;
	LOCAL_STRBUF(text, 2 * PATH_MAX);

	snprintf(copy, sizeof copy, "%s", test);
	slash = strrchr(copy, '/');
	if (slash)
		slash[slash == copy] = '\0';
	if (!realpath(slash ? copy : ".", folder) || !realpath(path, whole))
		return error_set(err, HX_INTERNAL, "%s: %s", slash ? copy : path, strerror(errno));
	add_relative(folder, whole, &text);
	json_quote(strbuf_slice(&text), out);
	return HX_OK;
}

static enum hx_code write_text(const struct saved_test *saved, const struct trial_story *story, struct strbuf *out,
			       struct hx_error *err)
{
	enum hx_code code = HX_OK;

	strbuf_add_str(out, "{ \"definitions\": [");
	for (size_t i = 0; i < saved->definitions_n && !code; i++) {
		strbuf_add_str(out, i ? ", " : "");
		code = add_path(saved->path, saved->definitions[i], out, err);
	}
	strbuf_add_str(out, "],\n");
	if (saved->world && !code) {
		strbuf_add_str(out, "  \"world\": ");
		code = add_path(saved->path, saved->world, out, err);
		strbuf_add_str(out, ",\n");
	}
	strbuf_addf(out, "  \"tests\": [\n%s ] }\n", story->test);
	return code;
}

/* Does the test end as the story does? */
static bool breaks_it(const char *path, struct slice text, const struct definition_set *set,
		      const struct trial_world *world, const struct trial_story *story, struct arena *arena)
{
	struct example_report *report = arena_zalloc(arena, sizeof *report);
	struct example_file file;
	struct findings findings;

	findings_init(&findings, arena);
	example_file_parse(path, text, arena, &findings, &file);
	if (!findings.errors)
		example_file_check(&file, set, &findings);
	if (findings.errors || !report)
		return false;
	examples_run(&file, set, world, arena, report);
	return report->n == 1 && report->results[0].differences_n == 1 &&
	       strcmp(report->results[0].differences[0].path, trial_rule_name(story->rule)) == 0 &&
	       strcmp(report->results[0].differences[0].was, story->broken) == 0;
}

static enum hx_code write_new(const char *path, struct slice text, struct hx_error *err)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	bool written = fd >= 0 && write(fd, text.p, text.n) == (ssize_t)text.n;

	if (fd >= 0 && close(fd) != 0)
		written = false;
	return written ? HX_OK : error_set(err, HX_INTERNAL, "%s cannot be written: %s", path, strerror(errno));
}

enum hx_code saved_test_write(const struct saved_test *saved, const struct definition_set *set,
			      const struct trial_world *world, const struct trial_story *story, struct arena *arena,
			      struct hx_error *err)
{
	LOCAL_STRBUF(text, FILE_BYTES_MAX);
	enum hx_code code = story->test ? write_text(saved, story, &text, err) : HX_OK;

	if (code)
		return code;
	if (!story->test || text.failed || !breaks_it(saved->path, strbuf_slice(&text), set, world, story, arena))
		return error_set(err, HX_VALIDATION_ERROR,
				 "%s is not written: the story turns on a moment that a test cannot name: %s",
				 saved->path, story->broken);
	return write_new(saved->path, strbuf_slice(&text), err);
}
