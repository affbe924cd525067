/* See process_stats.h. */
#include "base/process_stats.h"

#include <dirent.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

static int64_t read_cpu_us(void)
{
	struct rusage usage;

	if (getrusage(RUSAGE_SELF, &usage) != 0)
		return -1;
	return (int64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000 + usage.ru_utime.tv_usec +
	       usage.ru_stime.tv_usec;
}

static int64_t read_max_fds(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
		return -1;
	return (int64_t)limit.rlim_cur;
}

static int64_t count_open_fds(int64_t max_fds)
{
	DIR *dir = opendir("/proc/self/fd");
	int64_t n = 0;

	if (!dir)
		return errno == EMFILE ? max_fds : -1; /* that none is left is what most wants to be told */
	for (const struct dirent *entry; (entry = readdir(dir));)
		n += entry->d_name[0] != '.';
	closedir(dir);
	return n - 1; /* without the one that it was read with */
}

static int64_t clock_ms(clockid_t id)
{
	struct timespec now;

	clock_gettime(id, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/*
 * The kernel has the start in ticks since the boot, and the moment of the boot follows the wall clock when that is set. A start
 * that moves would look like a restart, so the first answer stays.
 */
static int64_t start_ms(long long ticks)
{
	static _Atomic int64_t first;
	int64_t known = 0, boot_ms = clock_ms(CLOCK_REALTIME) - clock_ms(CLOCK_BOOTTIME);
	int64_t ms = boot_ms + ticks * 1000 / sysconf(_SC_CLK_TCK);

	return atomic_compare_exchange_strong(&first, &known, ms) ? ms : known;
}

/* The name of the program stands in it, in brackets, and may have spaces and brackets itself: fields are counted after it. */
static bool read_stat(long long *ret_start_ticks, long long *ret_resident_pages)
{
	FILE *file = fopen("/proc/self/stat", "re");
	char text[1024];
	const char *behind;
	size_t n;

	if (!file)
		return false;
	n = fread(text, 1, sizeof text - 1, file);
	fclose(file);
	text[n] = '\0';
	behind = strrchr(text, ')');
	return behind && sscanf(behind,
				") %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s "
				"%lld %*s %lld",
				ret_start_ticks, ret_resident_pages) == 2;
}

void process_stats_read(struct process_stats *ret_stats)
{
	long long start_ticks, resident_pages;
	bool known = read_stat(&start_ticks, &resident_pages);

	ret_stats->cpu_us = read_cpu_us();
	ret_stats->resident_bytes = known ? resident_pages * sysconf(_SC_PAGESIZE) : -1;
	ret_stats->max_fds = read_max_fds();
	ret_stats->open_fds = count_open_fds(ret_stats->max_fds);
	ret_stats->start_ms = known ? start_ms(start_ticks) : -1;
}
