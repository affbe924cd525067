/* See histogram.h. */
#include "base/histogram.h"

const int64_t histogram_bounds_us[HISTOGRAM_RANGES - 1] = {
	100,   250,    500,    1000,   2500,    5000,    10000,   25000,
	50000, 100000, 250000, 500000, 1000000, 2500000, 5000000, 10000000,
};

size_t histogram_range(int64_t us)
{
	size_t i = 0;

	while (i < HISTOGRAM_RANGES - 1 && us > histogram_bounds_us[i])
		i++;
	return i;
}

void histogram_count(struct histogram *histogram, int64_t us)
{
	histogram->counts[histogram_range(us)]++;
	histogram->took_us += us > 0 ? (uint64_t)us : 0;
}

void histogram_add(struct histogram *sum, const struct histogram *more)
{
	for (size_t i = 0; i < HISTOGRAM_RANGES; i++)
		sum->counts[i] += more->counts[i];
	sum->took_us += more->took_us;
}
