/*
 * What the system says of this process, for metrics. All of it comes from /proc/self and the process's own limits: nothing
 * else of /proc need be visible (the service's unit hides it).
 */
#pragma once

#include <stdint.h>

/* Each is negative where the system does not say. */
struct process_stats {
	int64_t cpu_us; /* of all threads, in the program and in the kernel for it; children are not in it */
	int64_t resident_bytes;
	int64_t open_fds, max_fds; /* without a limit there is no max_fds */
	int64_t start_ms;          /* since 1970; the same in every answer, however the clock is set meanwhile */
};

/* From any thread. It takes as long as it takes to list the open descriptors: milliseconds where there are 10000. */
void process_stats_read(struct process_stats *ret_stats);
