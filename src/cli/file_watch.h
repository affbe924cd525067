/*
 * Watching a folder and a file for changes (inotify), for `hapax dev`. The file is watched through its folder: editors put a new file
 * in the place of the old one.
 */
#pragma once

#include <stdbool.h>

#include "base/error.h"

struct file_watch {
	int fd;
	int folder, file_folder; /* -1: not watched */
	const char *file_name;
};

/* Either may be NULL. Texts are borrowed. */
enum hx_code file_watch_init(struct file_watch *watch, const char *folder, const char *file,
			     struct hx_error *err) HX_MUST_CHECK;
void file_watch_release(struct file_watch *watch);
/* Takes what has happened, without waiting. True: something of it was a definition, or the file. */
bool file_watch_take(struct file_watch *watch);
