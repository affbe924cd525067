/*
 * Prometheus' text form, for `hapax serve` (api_metrics.c) and `hapax gate` (proxy.c): what a family looks like, and the numbers
 * of the process, which both have. Names and helps are those of docs/operations.md; tests/http/test_metrics.sh compares them.
 */
#pragma once

#include "base/clock.h"
#include "base/histogram.h"
#include "base/strbuf.h"

#define METRICS_CONTENT_TYPE "text/plain; version=0.0.4; charset=utf-8"

/* A family of one number. */
struct metric {
	const char *name, *type, *help;
	uint64_t value;
};

void metrics_add_head(struct strbuf *text, const char *name, const char *type, const char *help);
void metrics_add_all(struct strbuf *text, const struct metric metrics[], size_t n);
#define METRICS_ADD_ALL(text, metrics) metrics_add_all(text, metrics, sizeof(metrics) / sizeof *(metrics))
/* The samples of one, after the head of their family. `label` is "" or `name="value"`, as it is written. */
void metrics_add_histogram(struct strbuf *text, const char *name, const char *label, const struct histogram *histogram);
/* What is thought of the machine's clock (base/steady_clock.h). */
void metrics_add_clock(struct strbuf *text, const struct clock *clock);
/* hapax_build_info, and process_…, which every exporter has; what the system does not say is left out. */
void metrics_add_process(struct strbuf *text);

/* Of struct http_stats. */
#define METRIC_CROWDED_OUT(http)                                                                                       \
	{                                                                                                              \
		"hapax_bodies_crowded_out_total", "counter",                                                           \
			"Half-sent bodies given up because others needed the room.", (http)->crowded_out               \
	}
