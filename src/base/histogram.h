/*
 * How long things took, for metrics: how many fell into each of a few ranges, and all of it together. One set of ranges serves
 * all, from a tenth of a millisecond to ten seconds, so that they can be compared. Whoever counts has it alone, or under a
 * lock; the counters of serve/server_loop.h are this in atomics.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define HISTOGRAM_RANGES 17 /* up to each of histogram_bounds_us, and longer */
extern const int64_t histogram_bounds_us[HISTOGRAM_RANGES - 1];

struct histogram {
	uint64_t counts[HISTOGRAM_RANGES]; /* each without those of the ranges before it */
	uint64_t took_us;
};

size_t histogram_range(int64_t us);
void histogram_count(struct histogram *histogram, int64_t us);
void histogram_add(struct histogram *sum, const struct histogram *more);
