/* What the system says of this process, against what the test makes it do. */
#include "base/process_stats.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"

#define MEMORY_BYTES (64 << 20)

static struct wall_time began; /* of main() */

static struct process_stats stats_now(void)
{
	struct process_stats stats;

	process_stats_read(&stats);
	return stats;
}

static int64_t count_fds(void)
{
	int64_t n = 0;

	for (int fd = 0; fd < 1024; fd++)
		n += fcntl(fd, F_GETFD) != -1;
	return n;
}

static void descriptors_are_counted(void **state)
{
	struct process_stats before = stats_now();
	int fds[3];

	(void)state;
	assert_int_equal(before.open_fds, count_fds());
	for (size_t i = 0; i < 3; i++)
		assert_true((fds[i] = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0);
	assert_int_equal(stats_now().open_fds, before.open_fds + 3);
	for (size_t i = 0; i < 3; i++)
		close(fds[i]);
	assert_int_equal(stats_now().open_fds, before.open_fds);
}

/* With none left there is nothing to count with, and that is told. */
static void the_last_descriptor_is_told(void **state)
{
	struct rlimit limit, low;
	struct process_stats stats;
	int next = open("/dev/null", O_RDONLY | O_CLOEXEC);

	(void)state;
	close(next);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	low = (struct rlimit){.rlim_cur = (rlim_t)next, .rlim_max = limit.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
	stats = stats_now();
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	assert_int_equal(stats.max_fds, next);
	assert_int_equal(stats.open_fds, next);
	assert_int_equal(stats.resident_bytes, -1);
	assert_int_equal(stats.start_ms, -1);
	assert_int_equal(stats_now().max_fds, limit.rlim_cur);
}

/* By another of the kernel's files. */
static int64_t resident_bytes(void)
{
	FILE *file = fopen("/proc/self/statm", "re");
	long long pages;

	assert_non_null(file);
	assert_int_equal(fscanf(file, "%*s %lld", &pages), 1);
	fclose(file);
	return pages * sysconf(_SC_PAGESIZE);
}

static void memory_and_time_grow(void **state)
{
	struct process_stats before = stats_now(), after;
	char *memory = malloc(MEMORY_BYTES);

	(void)state;
	assert_non_null(memory);
	do {
		memset(memory, (int)before.cpu_us, MEMORY_BYTES);
		after = stats_now();
	} while (after.cpu_us == before.cpu_us);
	assert_true(memory[MEMORY_BYTES - 1] == (char)before.cpu_us);
	assert_true(after.cpu_us > before.cpu_us);
	assert_true(after.resident_bytes > before.resident_bytes + MEMORY_BYTES / 2);
	assert_true(after.resident_bytes < 2 * resident_bytes());
	assert_true(after.resident_bytes > resident_bytes() / 2);
	free(memory);
}

static void the_start_is_found_and_stays(void **state)
{
	struct process_stats first = stats_now();

	(void)state;
	assert_true(first.start_ms <= began.ms + 1000); /* a tick has 10 ms, and the kernel rounds the boot */
	assert_true(first.start_ms > began.ms - 600000);
	assert_int_equal(stats_now().start_ms, first.start_ms);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(descriptors_are_counted),
		cmocka_unit_test(the_last_descriptor_is_told),
		cmocka_unit_test(memory_and_time_grow),
		cmocka_unit_test(the_start_is_found_and_stays),
	};

	/* The name of a program may look like the end of its name. */
	began = clock_wall(clock_system());
	if (prctl(PR_SET_NAME, "a) 1 2 (3) S") != 0)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
