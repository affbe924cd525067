/* See sqlite_file.h. */
#include "db/sqlite_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/thread.h"

#define PATH_BYTES_MAX 4096
#define LOCK_BYTE (INT64_C(1) << 50) /* SQLite's are at 2^30, and its files end at 2^48 */

/* A file that this process has had a lock on. The list only loses files that have no name any more. */
struct sqlite_held {
	struct sqlite_held *next;
	dev_t device;
	ino_t inode;
	int fd;
	bool taken;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct sqlite_held *all;

/* As SQLite finds it: links are followed. */
static bool full_path(const char *path, char file[PATH_BYTES_MAX])
{
	sqlite3_vfs *vfs = sqlite3_vfs_find(NULL);

	ASSERT(vfs && vfs->mxPathname < PATH_BYTES_MAX);
	return (vfs->xFullPathname(vfs, path, PATH_BYTES_MAX, file) & 0xff) == SQLITE_OK; /* or OK_SYMLINK */
}

void sqlite_make_private(const char *path)
{
	char file[PATH_BYTES_MAX];
	int fd = full_path(path, file) ? open(file, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600) : -1;

	if (fd >= 0)
		close(fd); /* it was not there: nobody can have a lock on it */
}

/* ---- PATH.lock ---- */

static enum hx_code lock_beside(const char *path, const char *file, struct sqlite_lock *lock, struct hx_error *err)
{
	char name[PATH_BYTES_MAX + sizeof ".lock"];

	snprintf(name, sizeof name, "%s.lock", file);
	lock->beside = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (lock->beside < 0)
		return error_set(err, HX_STORE_UNAVAILABLE, "%s: %s", name, strerror(errno));
	if (flock(lock->beside, LOCK_EX | LOCK_NB) < 0)
		return error_set(err, HX_BUSY, "%s: another server has this store open", path);
	return HX_OK;
}

/* ---- the file itself ---- */

/* A file without a name is no store: nobody minds its locks. */
static void forget_deleted(void)
{
	for (struct sqlite_held **at = &all; *at;) {
		struct sqlite_held *held = *at;
		struct stat there;

		if (held->taken || fstat(held->fd, &there) < 0 || there.st_nlink > 0) {
			at = &held->next;
			continue;
		}
		*at = held->next;
		close(held->fd);
		free(held);
	}
}

static struct sqlite_held *sqlite_file_find(const char *file)
{
	struct stat there;

	if (stat(file, &there) < 0)
		return NULL;
	for (struct sqlite_held *held = all; held; held = held->next)
		if (held->device == there.st_dev && held->inode == there.st_ino)
			return held;
	return NULL;
}

/* Opens a file that this process has not had open here before. errno says why it could not. */
static struct sqlite_held *sqlite_file_add(const char *file)
{
	struct sqlite_held *held = calloc(1, sizeof *held);
	struct stat there;

	if (!held)
		return NULL;
	held->fd = open(file, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (held->fd < 0 || fstat(held->fd, &there) < 0) {
		free(held);
		return NULL;
	}
	held->device = there.st_dev;
	held->inode = there.st_ino;
	held->next = all;
	all = held;
	return held;
}

static int set_lock(const struct sqlite_held *held, short type)
{
	struct flock byte = {.l_type = type, .l_whence = SEEK_SET, .l_start = LOCK_BYTE, .l_len = 1};

	return fcntl(held->fd, F_OFD_SETLK, &byte);
}

static enum hx_code lock_inside(const char *path, const char *file, struct sqlite_lock *lock, struct hx_error *err)
{
	struct sqlite_held *held;
	bool busy;

	forget_deleted();
	held = sqlite_file_find(file);
	if (!held)
		held = sqlite_file_add(file);
	if (!held)
		return error_set(err, HX_STORE_UNAVAILABLE, "%s: %s", path, strerror(errno));
	busy = held->taken; /* mutant: lock-inside -> busy = false; */
	if (!busy && set_lock(held, F_WRLCK) < 0) {
		if (errno != EAGAIN && errno != EACCES)
			return error_set(err, HX_STORE_UNAVAILABLE, "%s cannot be locked: %s", path, strerror(errno));
		busy = true;
	}
	if (busy)
		return error_set(err, HX_BUSY, "%s: another server has this store open", path);
	held->taken = true;
	lock->inside = held;
	return HX_OK;
}

/* ---- both ---- */

enum hx_code sqlite_lock(const char *path, struct sqlite_lock *lock, struct hx_error *err)
{
	char file[PATH_BYTES_MAX];
	enum hx_code code;

	if (!full_path(path, file))
		return error_set(err, HX_CONFIG_ERROR, "the store's path is too long, or its links lead in a circle");
	code = lock_beside(path, file, lock, err);
	if (code)
		return code;
	LOCKED(&mutex);
	return lock_inside(path, file, lock, err);
}

void sqlite_unlock(struct sqlite_lock *lock)
{
	if (lock->inside) {
		pthread_mutex_lock(&mutex);
		(void)set_lock(lock->inside, F_UNLCK); /* it is ours: there is nothing to fail of */
		lock->inside->taken = false;
		forget_deleted();
		pthread_mutex_unlock(&mutex);
	}
	if (lock->beside >= 0)
		close(lock->beside);
	*lock = SQLITE_NOT_LOCKED;
}
