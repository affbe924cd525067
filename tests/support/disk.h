/*
 * The disk of a test: it stands in the place of fdatasync(), knows what a machine that stops now would find, and can be held up.
 *
 * Included once in a program, for the symbol is then the program's and SQLite's as well. Syncs that are made aside are told by their
 * descriptor, which cannot write.
 */
#ifndef HX_TESTS_SUPPORT_DISK_H
#define HX_TESTS_SUPPORT_DISK_H

#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static struct disk {
	pthread_mutex_t mutex;
	pthread_cond_t changed;
	bool held;                /* syncs aside wait */
	unsigned here_n, aside_n; /* syncs that have begun: of who writes, and aside */
	/* Its file and its log as the disk has them are STORE.disk and STORE.disk-wal; "": none are kept. */
	char store[400];
	unsigned of_file, of_log; /* the number of the sync that these are of */
} disk = {.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static inline void disk_copy(int from, const char *to)
{
	int out = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	char bytes[1 << 16];
	ssize_t n;

	for (off_t at = 0; out >= 0 && (n = pread(from, bytes, sizeof bytes, at)) > 0; at += n)
		if (write(out, bytes, (size_t)n) != n)
			break;
	close(out);
}

/* Is it of the store? Then what it is called there: "" or "-wal". */
static inline bool disk_knows(int fd, char *ret_which, size_t which_bytes)
{
	char link[64], path[500] = "";
	size_t n = strlen(disk.store);

	snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	if (!n || readlink(link, path, sizeof path - 1) < 0 || strncmp(path, disk.store, n) != 0)
		return false;
	snprintf(ret_which, which_bytes, "%s", path + n);
	return true;
}

/* With the mutex held. What the file holds when a sync begins is on the disk when that has ended, if nothing younger is. */
static inline void disk_sync(int fd, bool aside)
{
	char which[16], taken[500], kept[500];
	unsigned number = disk.here_n + disk.aside_n, *of;
	bool known = disk_knows(fd, which, sizeof which);

	if (known) {
		snprintf(taken, sizeof taken, "%s.taken%u", disk.store, number);
		snprintf(kept, sizeof kept, "%s.disk%s", disk.store, which);
		disk_copy(fd, taken);
	}
	while (aside && disk.held)
		pthread_cond_wait(&disk.changed, &disk.mutex);
	of = known && *which ? &disk.of_log : &disk.of_file;
	if (known && number > *of) {
		*of = number;
		(void)rename(taken, kept);
	}
}

int fdatasync(int fd)
{
	bool aside = (fcntl(fd, F_GETFL) & O_ACCMODE) == O_RDONLY;

	pthread_mutex_lock(&disk.mutex);
	disk.here_n += !aside;
	disk.aside_n += aside;
	pthread_cond_broadcast(&disk.changed);
	disk_sync(fd, aside);
	pthread_mutex_unlock(&disk.mutex);
	return (int)syscall(SYS_fdatasync, fd);
}

static inline void disk_hold(bool held)
{
	pthread_mutex_lock(&disk.mutex);
	disk.held = held;
	pthread_cond_broadcast(&disk.changed);
	pthread_mutex_unlock(&disk.mutex);
}

static inline unsigned disk_syncs(bool aside)
{
	unsigned n;

	pthread_mutex_lock(&disk.mutex);
	n = aside ? disk.aside_n : disk.here_n;
	pthread_mutex_unlock(&disk.mutex);
	return n;
}

#endif
