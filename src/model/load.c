/* See load.h. A file is read up to its limit and one byte more, whatever its size was said to be. */
#include "model/load.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "model/reader.h"
#include "model/text.h"

#define CHUNK_BYTES 65536

static void report(struct findings *findings, const char *file, const char *rule, const char *text)
{
	findings_add(findings, (struct finding){.severity = FINDING_ERROR, .file = file, .rule = rule}, "%s", text);
}

/* One byte over the limit is kept, so that whoever checks the size sees that it is too large. */
static bool load_read_all(int fd, struct strbuf *out)
{
	for (;;) {
		size_t room = out->max_bytes - out->n;
		char *to = room ? strbuf_reserve(out, room < CHUNK_BYTES ? room : CHUNK_BYTES) : NULL;

		if (!to)
			return !out->failed;

		ssize_t n = read(fd, to, room < CHUNK_BYTES ? room : CHUNK_BYTES);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n == 0;
		out->n += (size_t)n;
		out->p[out->n] = '\0';
	}
}

bool file_read(const char *path, struct strbuf *out)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	bool ok = fd >= 0 && load_read_all(fd, out);
	int why = errno;

	if (fd >= 0)
		close(fd);
	errno = why;
	return ok;
}

bool file_load(const char *path, struct strbuf *out, struct findings *findings)
{
	bool ok = file_read(path, out);

	if (!ok)
		report(findings, path, "file", out->failed ? "out of memory" : strerror(errno));
	return ok;
}

static void load_file(const char *path, struct arena *arena, struct findings *findings, struct definition_set *set)
{
	const struct definition *definition = NULL;

	if (set->files_n++ >= DEFINITION_FILES_MAX) {
		if (set->files_n == DEFINITION_FILES_MAX + 1)
			report(findings, path, "limit", "one definition too many; at most 1000 are read");
		return;
	}
	LOCAL_STRBUF(text, (size_t)WORKFLOW_TEXT_BYTES_MAX + 1);
	if (!file_load(path, &text, findings))
		return;
	if (schedule_file_is(strbuf_slice(&text))) {
		const struct schedule_file *schedule = schedule_file_parse(path, strbuf_slice(&text), arena, findings);

		if (schedule)
			set->schedules[set->schedules_n++] = schedule;
	} else if (config_file_is(strbuf_slice(&text))) {
		report(findings, path, "file",
		       "this is a configuration, and no definition: it goes with --config; definitions are in a folder of their own");
	} else {
		definition_parse(path, strbuf_slice(&text), arena, findings, &definition);
		if (definition)
			set->items[set->n++] = definition;
	}
}

_Static_assert(DEFINITION_FILES_MAX == 1000, "a message says so");

static bool ends_with(const char *name, const char *end)
{
	size_t n = strlen(name), m = strlen(end);

	return n > m && strcmp(name + n - m, end) == 0;
}

int definition_file_fits(const struct dirent *entry)
{
	const char *name = entry->d_name;

	return name[0] != '.' && ends_with(name, ".json") && !ends_with(name, ".test.json") &&
	       !ends_with(name, ".world.json");
}

/* By bytes: the same order whatever the locale. */
static int load_by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static void load_folder(const char *path, struct arena *arena, struct findings *findings, struct definition_set *set)
{
	size_t n = strlen(path);
	bool slash = n > 0 && path[n - 1] == '/';
	struct dirent **names;
	int count = scandir(path, &names, definition_file_fits, load_by_name);

	if (count <= 0)
		report(findings, path, "file", count < 0 ? strerror(errno) : "there is no *.json in this folder");
	for (int i = 0; i < count; i++) {
		const char *file = text_printf(arena, "%s%s%s", path, slash ? "" : "/", names[i]->d_name);

		if (file)
			load_file(file, arena, findings, set);
		else
			report(findings, path, "limit", "out of memory");
		free(names[i]);
	}
	if (count >= 0)
		free(names);
}

void definition_set_load(const char *path, struct arena *arena, struct findings *findings, struct definition_set *set)
{
	struct stat status;

	if (stat(path, &status) != 0)
		report(findings, path, "file", strerror(errno));
	else if (S_ISDIR(status.st_mode))
		load_folder(path, arena, findings, set);
	else
		load_file(path, arena, findings, set);
}

void config_load(const char *path, struct arena *arena, struct findings *findings, struct config *ret)
{
	config_init(ret);
	LOCAL_STRBUF(text, CONFIG_BYTES_MAX + 1);
	if (file_load(path, &text, findings))
		config_parse(path, strbuf_slice(&text), arena, findings, ret);
}
