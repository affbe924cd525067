/*
 * What every program of the benchmark does, so that the engine and the bare stores are compared at the same thing.
 *
 * SUBJECTS rows are hot. They are visited in one fixed random order, round and round, and each visit moves a row
 * from one of two statuses to the other: a guarded UPDATE and a history row. A measurement ends after `moves` of
 * them (so that both sides end with the same store) or after SECONDS_MAX on a slow disk.
 *
 * This is no header of the engine, and includes none.
 */
#ifndef BENCH_WORKLOAD_H
#define BENCH_WORKLOAD_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define SUBJECTS 4000
#define FIRST_SUBJECT INT64_C(0x0600000000000000) /* as long as the engine's ids: 63 bits, ordered by time */
#define CONNECTIONS 4
#define SECONDS_MAX 30
#define HASH_BYTES 32

static const char *const workload_status[2] = {"waiting_for_payment", "waiting_for_shipping"};
static const char workload_node[] = "bench-node-1";

/* A fixed shuffle of 0 … SUBJECTS-1. */
static inline void workload_order(uint32_t order[SUBJECTS])
{
	uint64_t x = 88172645463325252u;

	for (uint32_t i = 0; i < SUBJECTS; i++) {
		uint32_t j;

		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		j = (uint32_t)(x % (i + 1));
		order[i] = order[j];
		order[j] = i;
	}
}

/* Which of n connections a subject belongs to. */
static inline unsigned workload_share(int64_t subject, unsigned n)
{
	return (unsigned)(((uint64_t)subject * 0x9e3779b97f4a7c15u >> 32) % n);
}

static inline double workload_seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static inline int64_t workload_wall_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* The one line that run.sh reads: moves per second, and moves per transaction. */
static inline void workload_print(uint64_t moves, uint64_t transactions, double seconds)
{
	printf("%.0f %.1f\n", (double)moves / seconds, (double)moves / (double)(transactions ? transactions : 1));
}

static inline int workload_compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static inline void workload_sort(double *values, size_t n)
{
	qsort(values, n, sizeof *values, workload_compare);
}

/* Of sorted values the one that this share of them does not exceed. */
static inline double workload_share_below(const double *values, size_t n, double share)
{
	size_t i = (size_t)(share * (double)n);

	return values[i < n ? i : n - 1];
}

static inline unsigned long workload_number(const char *text, unsigned long min, unsigned long max)
{
	char *end;
	unsigned long n = strtoul(text, &end, 10);

	if (*end || n < min || n > max) {
		fprintf(stderr, "%s: a number from %lu to %lu is needed\n", text, min, max);
		exit(2);
	}
	return n;
}

#endif
