/*
 * The numbers of `hapax serve`: tables of those that are one number each, and a function for each of the few that are several.
 * metrics.h has their form.
 *
 * Nothing here waits: counters are atomic, lanes leave theirs in their inboxes, and what the store would have to be asked for is
 * the last count (engine/backlog.h). Only the system is asked, for the numbers of the process (base/process_stats.h).
 */
#include <stdio.h>
#include <stdlib.h>

#include "api/api.h"
#include "engine/backlog.h"
#include "serve/metrics.h"

/* More than there can be: some 400 lines with a name of somebody's, every byte of which may have to be escaped, and a few
 * hundred without. */
#define TEXT_BYTES_MAX (1u << 20)

static void add_gate_outcomes(struct engine_metrics *m, struct strbuf *text)
{
	const char *name = "hapax_gate_outcomes_total";

	metrics_add_head(text, name, "counter", "Requests with an Idempotency-Key.");
	for (int i = 0; i < HX_GATE_OUTCOMES; i++)
		strbuf_addf(text, "%s{outcome=\"%s\"} %llu\n", name, hx_gate_outcome_name(i),
			    (unsigned long long)atomic_load(&m->gate_outcomes[i]));
}

/* Names are the users' own: what Prometheus' form wants escaped is escaped. */
static void add_label(struct strbuf *text, const char *label, const char *value)
{
	strbuf_addf(text, "%s=\"", label);
	for (; *value; value++) {
		if (*value == '\\' || *value == '"' || *value == '\n')
			strbuf_add_char(text, '\\');
		strbuf_add_char(text, *value == '\n' ? 'n' : *value);
	}
	strbuf_add_char(text, '"');
}

static void add_counts(struct strbuf *text, const char *name, const char *label, const struct backlog_count *counts,
		       size_t n, bool ages)
{
	for (size_t i = 0; i < n; i++) {
		strbuf_addf(text, "%s{kind=\"%s\",", name, counts[i].kind);
		add_label(text, label, counts[i].name);
		if (ages)
			strbuf_addf(text, "} %lld.%03d\n", (long long)(counts[i].age_ms / 1000),
				    (int)(counts[i].age_ms % 1000));
		else
			strbuf_addf(text, "} %lld\n", (long long)counts[i].n);
	}
}

static void add_runs_ended(struct engine_metrics *m, struct strbuf *text)
{
	const char *name = "hapax_runs_total";
	struct tally_line line;

	metrics_add_head(
		text, name, "counter",
		"Runs that have ended here; the first 200 workflows have their names, all others are (others), and functions (functions).");
	for (size_t i = 0; tally_read(&m->runs_ended, i, &line); i++)
		for (int s = 0; s < TALLY_STATUSES; s++) {
			strbuf_addf(text, "%s{", name);
			add_label(text, "workflow", line.workflow);
			strbuf_addf(text, ",status=\"%s\"} %llu\n", tally_statuses[s],
				    (unsigned long long)line.counts[s]);
		}
}

/*
 * What has not been counted yet is left out: 0 would be a statement. Workflows are common to all workspaces, and every key may
 * list them; queues have names of a workspace's own, and are for those alone who see everything.
 */
static void add_backlog(struct engine *engine, bool with_queues, struct strbuf *text)
{
	static const char by_queue[] = "queue", by_workflow[] = "workflow";
	struct backlog_counts *c = malloc(sizeof *c);

	if (!c)
		return;
	backlog_read(engine_parts(engine)->backlog, c);
	if (!with_queues)
		backlog_hide_queues(c);
	metrics_add_head(
		text, "hapax_due", "gauge",
		"What is due on this store and not yet taken, up to 10000 of each kind, by queue; after the 50 with the most "
		"all are (others), and without scope admin jobs are (all). Counted after the scrape before.");
	add_counts(text, "hapax_due", by_queue, c->due, c->due_n, /* ages= */ false);
	metrics_add_head(text, "hapax_due_age_seconds", "gauge", "For how long the oldest of them has been due.");
	add_counts(text, "hapax_due_age_seconds", by_queue, c->due, c->due_n, /* ages= */ true);
	metrics_add_head(
		text, "hapax_attention", "gauge",
		"What waits for a person, as `hapax attention` lists it, by workflow; after the 50 pairs of kind and workflow with "
		"the most all of a kind are (others).");
	add_counts(text, "hapax_attention", by_workflow, c->attention, c->attention_n, /* ages= */ false);
	metrics_add_head(text, "hapax_attention_age_seconds", "gauge", "For how long the oldest of them has waited.");
	add_counts(text, "hapax_attention_age_seconds", by_workflow, c->attention, c->attention_n, /* ages= */ true);
	free(c);
}

static void add_responses(const struct http_stats *http, struct strbuf *text)
{
	const char *name = "hapax_responses_total";

	metrics_add_head(text, name, "counter", "Answers, also to requests that were refused.");
	for (int i = 0; i < HTTP_STATUS_CLASSES; i++)
		strbuf_addf(text, "%s{status=\"%dxx\"} %llu\n", name, i + 2, (unsigned long long)http->responses[i]);
}

static void add_seconds(const char *name, const char *help, const struct histogram *histogram, struct strbuf *text)
{
	metrics_add_head(text, name, "histogram", help);
	metrics_add_histogram(text, name, /* label= */ "", histogram);
}

/* The kinds that are called from here. */
static void add_action_seconds(const struct port_stats *act, struct strbuf *text)
{
	const char *name = "hapax_action_seconds";
	char label[32];

	metrics_add_head(
		text, name, "histogram",
		"How long calls of actions took, from the start to the answer; waiting for a turn is not in it.");
	for (enum action_kind kind = 0; kind < ACTION_KINDS_N; kind++) {
		if (action_kind_by(kind) != BY_PORT)
			continue;
		snprintf(label, sizeof label, "kind=\"%s\"", action_kind_name(kind));
		metrics_add_histogram(text, name, label, &act->answered[kind]);
	}
}

static void add_batch_units(const struct group_stats *stats, struct strbuf *text)
{
	uint64_t sum = 0;

	metrics_add_head(text, "hapax_batch_units", "histogram",
			 "Units of work in one transaction of the lanes, also of one that failed.");
	for (size_t i = 0; i < GROUP_SIZES; i++) {
		sum += stats->sizes[i];
		strbuf_addf(text, "hapax_batch_units_bucket{le=\"%d\"} %llu\n", 1 << i, (unsigned long long)sum);
	}
	strbuf_addf(text, "hapax_batch_units_bucket{le=\"+Inf\"} %llu\n", (unsigned long long)sum);
	strbuf_addf(text, "hapax_batch_units_sum %llu\nhapax_batch_units_count %llu\n",
		    (unsigned long long)stats->units, (unsigned long long)sum);
}

static const char counter[] = "counter", gauge[] = "gauge";

static void add_store_clock(const struct clock *store_clock, struct strbuf *text)
{
	const struct metric metrics[] = {
		{"hapax_store_clock_jumps_total", counter, "Jumps of the clock of PostgreSQL's machine.",
		 clock_jumps(store_clock)},
		{"hapax_store_clock_doubted", gauge,
		 "1: the clock of PostgreSQL's machine has jumped and is not believed yet, and retention waits.",
		 clock_doubted_ms(store_clock) != 0},
	};

	METRICS_ADD_ALL(text, metrics);
}

static void add_counters(struct engine_metrics *m, struct strbuf *text)
{
	const struct metric metrics[] = {
#define X(name, help) {"hapax_" #name "_total", counter, help, atomic_load(&m->name)},
		ENGINE_COUNTERS(X)
#undef X
	};

	METRICS_ADD_ALL(text, metrics);
}

/* What was promised, the store and the nodes on it. */
static void add_node(struct engine *engine, const struct lane_stats *lanes, struct strbuf *text)
{
	struct engine_metrics *m = engine_parts(engine)->metrics;
	const struct metric metrics[] = {
		{"hapax_transitions_total", counter, "Guarded writes that won.", lanes->group.transitions},
		{"hapax_verdicts_lost_total", counter, "Guarded writes that lost.", lanes->group.lost},
		{"hapax_fenced_writes_total", counter, "Writes of stale holders that changed nothing.",
		 lanes->group.fenced},
		{"hapax_claim_overruns_total", counter, "Actions whose lease could not be kept: aborted, or heard out.",
		 lanes->claims_lost},
		{"hapax_wakes_total", counter, "Tasks that waited and were woken, by a change that they wait for.",
		 lanes->woken},
		{"hapax_unknown_outcomes_total", counter, "Steps whose outcome is unknown.",
		 atomic_load(&m->unknown_outcomes) + atomic_load(&m->runs_unknown)},
		{"hapax_batch_turns", gauge, "Items and cleanups of batches under way here.",
		 atomic_load(&m->batch_turns)},
		{"hapax_schedule_lateness_seconds", gauge,
		 "Whole seconds from when the slot that this node has started last was due to its start.",
		 atomic_load(&m->schedule_lateness_ms) / 1000},
		{"hapax_nodes_live", gauge, "Nodes on this store.", atomic_load(&m->nodes_live)},
		{"hapax_store_up", gauge, "1: the store answers; 0: it is lost, and /readyz says so.",
		 sentinel_sees_store(engine_parts(engine)->sentinel)},
		{"hapax_transactions_retried_total", counter,
		 "Transactions run again after a deadlock or a lost connection.", lanes->group.retried},
		{"hapax_units_aside_total", counter,
		 "Units that left their transaction because a row was locked, and went on by themselves.",
		 lanes->group.aside},
		{"hapax_units_timed_out_total", counter,
		 "Units with SQL of a definition, or on a table of yours, that were ended by their timeout.",
		 lanes->group.timed_out},
		{"hapax_units_given_up_total", counter,
		 "Units that the store was not to be had for in time; they were not sent.", lanes->refused},
		{"hapax_commits_in_doubt_total", counter, "Commits whose answer was lost.", lanes->group.in_doubt},
	};

	METRICS_ADD_ALL(text, metrics);
}

/* What is under way, and what waits. */
static void add_load(const struct api *api, const struct lane_stats *lanes, const struct port_stats *act,
		     const struct http_stats *http, struct strbuf *text)
{
	const struct metric metrics[] = {
		{"hapax_lane_queue_depth", gauge, "What waits in the lanes for the next transaction.", lanes->waiting},
		{"hapax_lane_tasks", gauge, "Tasks of requests in the lanes, those that act or sleep included.",
		 lanes->seats},
		{"hapax_actions_in_flight", gauge, "Calls of actions under way.", act->running},
		{"hapax_actions_waiting", gauge, "Calls of actions that wait for their turn.", act->waiting},
		{"hapax_actions_refused_total", counter, "Calls of actions refused because too many were waiting.",
		 act->refused},
		{"hapax_connections_open", gauge, "Connections of clients.", http->connections_open},
		{"hapax_connections_evicted_total", counter, "Idle connections closed to make room for others.",
		 http->connections_evicted},
		{"hapax_requests_total", counter, "Requests that were read whole, or answered by their head alone.",
		 http->requests},
		{"hapax_requests_refused_total", counter, "Requests that were malformed, too large or too slow.",
		 http->refused},
		METRIC_CROWDED_OUT(http),
		{"hapax_run_waiters", gauge, "Clients that wait for the end of a run.",
		 (uint64_t)atomic_load(&api->waiting)},
		{"hapax_job_waiters", gauge, "Workers that wait for a job.", (uint64_t)atomic_load(&api->claiming)},
	};

	METRICS_ADD_ALL(text, metrics);
}

void api_metrics(struct http_call *call)
{
	struct api *api = api_of(call);
	struct lane_stats lanes;
	struct port_stats act;
	struct http_stats http;

	LOCAL_STRBUF(text, TEXT_BYTES_MAX);
	lanes_read_stats(engine_parts(api->engine)->lanes, &lanes);
	port_read_stats(engine_parts(api->engine)->port, &act);
	http_exchange_read_stats(call->exchange, &http);
	add_counters(engine_parts(api->engine)->metrics, &text);
	add_node(api->engine, &lanes, &text);
	add_load(api, &lanes, &act, &http, &text);
	add_responses(&http, &text);
	add_seconds(
		"hapax_request_seconds",
		"How long requests took, from the last byte read to the answer; those that asked to wait are left out.",
		&http.answered, &text);
	add_action_seconds(&act, &text);
	add_seconds("hapax_commit_seconds",
		    "How long a transaction of the lanes took, from its beginning to the answer of its commit.",
		    &lanes.group.durable, &text);
	add_batch_units(&lanes.group, &text);
	add_runs_ended(engine_parts(api->engine)->metrics, &text);
	add_backlog(api->engine, call->scope == ROUTE_ADMIN, &text);
	add_gate_outcomes(engine_parts(api->engine)->metrics, &text);
	metrics_add_clock(&text, engine_parts(api->engine)->clock);
	add_store_clock(engine_parts(api->engine)->store_clock, &text);
	metrics_add_process(&text);
	if (text.failed)
		http_respond_code(call->exchange, HX_NO_MEMORY, "there is no memory for the numbers");
	else
		http_respond_text(call->exchange, 200, METRICS_CONTENT_TYPE, strbuf_slice(&text));
}
