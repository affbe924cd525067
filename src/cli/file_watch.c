/* See file_watch.h. */
#include "cli/file_watch.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "base/slice.h"

#define CHANGES (IN_CLOSE_WRITE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE)

static enum hx_code file_watch_add(struct file_watch *watch, const char *folder, int *ret_watch, struct hx_error *err)
{
	*ret_watch = inotify_add_watch(watch->fd, folder, CHANGES | IN_ONLYDIR);
	if (*ret_watch < 0)
		return error_set(err, HX_CONFIG_ERROR, "%s cannot be watched: %s", folder, strerror(errno));
	return HX_OK;
}

static enum hx_code add_folder_of(struct file_watch *watch, const char *file, struct hx_error *err)
{
	const char *slash = strrchr(file, '/');
	char folder[4096];

	watch->file_name = slash ? slash + 1 : file;
	if (snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - file + 1) : 1, slash ? file : ".") >=
	    (int)sizeof folder)
		return error_set(err, HX_CONFIG_ERROR, "%s: the path is too long", file);
	return file_watch_add(watch, folder, &watch->file_folder, err);
}

enum hx_code file_watch_init(struct file_watch *watch, const char *folder, const char *file, struct hx_error *err)
{
	enum hx_code code = HX_OK;

	*watch = (struct file_watch){.fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK), .folder = -1, .file_folder = -1};
	if (watch->fd < 0)
		return error_set(err, HX_INTERNAL, "no changes can be watched for: %s", strerror(errno));
	if (folder)
		code = file_watch_add(watch, folder, &watch->folder, err);
	if (!code && file)
		code = add_folder_of(watch, file, err);
	if (code)
		file_watch_release(watch);
	return code;
}

void file_watch_release(struct file_watch *watch)
{
	if (watch->fd >= 0)
		close(watch->fd);
	watch->fd = -1;
}

/* One folder may be watched as both: the kernel then gives both the same number. */
static bool concerns(const struct file_watch *watch, const struct inotify_event *event)
{
	const char *name = event->len ? event->name : "";
	size_t n = strlen(name);
	bool definition = event->wd == watch->folder && name[0] != '.' && n > 5 && strcmp(name + n - 5, ".json") == 0;

	if (event->mask & IN_Q_OVERFLOW)
		return true;
	return definition || (event->wd == watch->file_folder && strcmp(name, watch->file_name) == 0);
}

bool file_watch_take(struct file_watch *watch)
{
	_Alignas(struct inotify_event) char events[8192];
	bool changed = false;
	ssize_t n;

	while ((n = read(watch->fd, events, sizeof events)) > 0)
		for (char *p = events; p < events + n;) {
			const struct inotify_event *event = (const struct inotify_event *)p;

			changed |= concerns(watch, event);
			p += sizeof *event + event->len;
		}
	return changed;
}
