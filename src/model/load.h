/*
 * Definitions and configuration from files. What cannot be read becomes a finding like everything else, so that a
 * check names all that is wrong in one go.
 */
#pragma once

#include "model/definition.h"
#include "model/schedule_file.h"

#define DEFINITION_FILES_MAX 1000

struct definition_set {
	size_t n;
	const struct definition *items[DEFINITION_FILES_MAX]; /* those without errors, in the order of the reading */
	size_t schedules_n;
	const struct schedule_file *schedules[DEFINITION_FILES_MAX]; /* likewise */
	size_t files_n;                                              /* files that were looked at */
};

/*
 * Adds a file, or the *.json of a folder in the order of their names (not of folders inside of it, and not those
 * whose name begins with a dot, nor the *.test.json and *.world.json of `hapax test`). A folder without any is an error.
 */
void definition_set_load(const char *path, struct arena *arena, struct findings *findings, struct definition_set *set);
/* A file that cannot be read is an error; *ret then has the defaults. */
void config_load(const char *path, struct arena *arena, struct findings *findings, struct config *ret);
/* For scandir(): one of these. */
struct dirent;
int definition_file_fits(const struct dirent *entry);
/* A whole file, up to the ceiling of the buffer. False: errno, or the buffer, says why. */
bool file_read(const char *path, struct strbuf *out);
/* The same, where that is a finding. */
bool file_load(const char *path, struct strbuf *out, struct findings *findings);
