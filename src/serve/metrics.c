/* See metrics.h. */
#include "serve/metrics.h"

#include "base/process_stats.h"

void metrics_add_head(struct strbuf *text, const char *name, const char *type, const char *help)
{
	strbuf_addf(text, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

void metrics_add_all(struct strbuf *text, const struct metric metrics[], size_t n)
{
	for (size_t i = 0; i < n; i++) {
		metrics_add_head(text, metrics[i].name, metrics[i].type, metrics[i].help);
		strbuf_addf(text, "%s %llu\n", metrics[i].name, (unsigned long long)metrics[i].value);
	}
}

static void add_seconds(struct strbuf *text, uint64_t us)
{
	strbuf_addf(text, " %llu.%06llu\n", (unsigned long long)us / 1000000, (unsigned long long)us % 1000000);
}

static void add_sample_name(struct strbuf *text, const char *name, const char *suffix, const char *label)
{
	strbuf_addf(text, *label ? "%s%s{%s}" : "%s%s%s", name, suffix, label);
}

void metrics_add_histogram(struct strbuf *text, const char *name, const char *label, const struct histogram *histogram)
{
	const char *comma = *label ? "," : "";
	uint64_t sum = 0;

	for (size_t i = 0; i < HISTOGRAM_RANGES - 1; i++) {
		sum += histogram->counts[i];
		strbuf_addf(text, "%s_bucket{%s%sle=\"%g\"} %llu\n", name, label, comma,
			    (double)histogram_bounds_us[i] / 1e6, (unsigned long long)sum);
	}
	sum += histogram->counts[HISTOGRAM_RANGES - 1];
	strbuf_addf(text, "%s_bucket{%s%sle=\"+Inf\"} %llu\n", name, label, comma, (unsigned long long)sum);
	add_sample_name(text, name, "_sum", label);
	add_seconds(text, histogram->took_us);
	add_sample_name(text, name, "_count", label);
	strbuf_addf(text, " %llu\n", (unsigned long long)sum);
}

static void metrics_add_number(struct strbuf *text, const char *name, const char *help, int64_t value)
{
	if (value >= 0)
		metrics_add_all(text, &(struct metric){name, "gauge", help, (uint64_t)value}, 1);
}

static void add_time(struct strbuf *text, const char *name, const char *type, const char *help, int64_t us)
{
	if (us < 0)
		return;
	metrics_add_head(text, name, type, help);
	strbuf_add_str(text, name);
	add_seconds(text, (uint64_t)us);
}

void metrics_add_clock(struct strbuf *text, const struct clock *clock)
{
	const struct metric metrics[] = {
		{"hapax_clock_jumps_total", "counter", "Jumps of this machine's clock.", clock_jumps(clock)},
		{"hapax_clock_doubted", "gauge",
		 "1: this machine's clock has jumped and is not believed yet, and nothing expires by it.",
		 clock_doubted_ms(clock) != 0},
	};

	METRICS_ADD_ALL(text, metrics);
}

void metrics_add_process(struct strbuf *text)
{
	struct process_stats stats;

	process_stats_read(&stats);
	metrics_add_head(text, "hapax_build_info", "gauge", "Always 1; the version is its label.");
	strbuf_addf(text, "hapax_build_info{version=\"%s\"} 1\n", hx_version());
	add_time(text, "process_cpu_seconds_total", "counter", "Time that processors spent on this process.",
		 stats.cpu_us);
	metrics_add_number(text, "process_resident_memory_bytes", "Memory of this process, as far as it is in RAM.",
			   stats.resident_bytes);
	metrics_add_number(text, "process_open_fds", "Descriptors that are open in this process.", stats.open_fds);
	metrics_add_number(text, "process_max_fds", "Descriptors that may be open in this process.", stats.max_fds);
	add_time(text, "process_start_time_seconds", "gauge", "When this process was started, since 1970.",
		 stats.start_ms < 0 ? -1 : stats.start_ms * 1000);
}
