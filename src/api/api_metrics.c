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
		"Runs that have ended here; the first 200 workflows have their names, all others are (others).");
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
	backlog_read(engine_backlog(engine), c);
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

static void add_commit_seconds(const struct group_stats *stats, struct strbuf *text)
{
	const char *name = "hapax_commit_seconds";

	metrics_add_head(text, name, "histogram",
			 "How long a transaction of the lanes took, from its beginning to the answer of its commit.");
	metrics_add_histogram(text, name, /* label= */ "", &stats->durable);
}

static void add_responses(const struct http_stats *http, struct strbuf *text)
{
	const char *name = "hapax_responses_total";

	metrics_add_head(text, name, "counter", "Answers, also to requests that were refused.");
	for (int i = 0; i < HTTP_STATUS_CLASSES; i++)
		strbuf_addf(text, "%s{status=\"%dxx\"} %llu\n", name, i + 2, (unsigned long long)http->responses[i]);
}

static void add_request_seconds(const struct http_stats *http, struct strbuf *text)
{
	const char *name = "hapax_request_seconds";

	metrics_add_head(
		text, name, "histogram",
		"How long requests took, from the last byte read to the answer; those that asked to wait are left out.");
	metrics_add_histogram(text, name, /* label= */ "", &http->answered);
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

/* What was promised: transitions, claims, steps, jobs. */
static void add_steps(struct engine_metrics *m, const struct lane_stats *lanes, struct strbuf *text)
{
	const struct metric metrics[] = {
		{"hapax_transitions_total", counter, "Guarded writes that won.", lanes->group.transitions},
		{"hapax_verdicts_lost_total", counter, "Guarded writes that lost.", lanes->group.lost},
		{"hapax_fenced_writes_total", counter, "Writes of stale holders that changed nothing.",
		 lanes->group.fenced},
		{"hapax_gate_damaged_total", counter, "Stored answers that are damaged, and were not given again.",
		 atomic_load(&m->gate_damaged)},
		{"hapax_claim_overruns_total", counter, "Actions whose lease could not be kept: aborted, or heard out.",
		 lanes->claims_lost},
		{"hapax_janitor_reverts_total", counter, "Stuck claims that a janitor has ended.",
		 atomic_load(&m->janitor_reverts)},
		{"hapax_janitor_holds_total", counter, "Stuck claims parked for a person.",
		 atomic_load(&m->janitor_holds)},
		{"hapax_unknown_outcomes_total", counter, "Steps whose outcome is unknown.",
		 atomic_load(&m->unknown_outcomes) + atomic_load(&m->runs_unknown)},
		{"hapax_steps_fired_total", counter, "Steps that were asked for.", atomic_load(&m->steps_fired)},
		{"hapax_steps_ok_total", counter, "Steps that were done.", atomic_load(&m->steps_ok)},
		{"hapax_jobs_stale_total", counter,
		 "Calls of workers whose claim was another's by then; they changed nothing.",
		 atomic_load(&m->jobs_stale)},
		{"hapax_jobs_delivered_total", counter, "Jobs that were delivered.", atomic_load(&m->jobs_delivered)},
		{"hapax_jobs_failed_total", counter, "Deliveries that did not succeed.", atomic_load(&m->jobs_failed)},
		{"hapax_jobs_expired_total", counter, "Jobs that retention has deleted.",
		 atomic_load(&m->jobs_expired)},
	};

	METRICS_ADD_ALL(text, metrics);
}

static void add_runs_and_batches(struct engine_metrics *m, struct strbuf *text)
{
	const struct metric metrics[] = {
		{"hapax_runs_created_total", counter, "Runs that were created here.", atomic_load(&m->runs_created)},
		{"hapax_runs_driven_total", counter, "Runs driven to a wait, or to their end.",
		 atomic_load(&m->runs_driven)},
		{"hapax_runs_taken_over_total", counter, "Runs seized past another holder's time.",
		 atomic_load(&m->runs_taken_over)},
		{"hapax_runs_fenced_total", counter, "Runs that were another's by the time this node came to write.",
		 atomic_load(&m->runs_fenced)},
		{"hapax_runs_held_total", counter, "Steps of runs held for a person.", atomic_load(&m->runs_held)},
		{"hapax_runs_expired_total", counter, "Runs that retention has reduced to their key.",
		 atomic_load(&m->runs_expired)},
		{"hapax_batches_driven_total", counter, "Batches worked on, and let go or brought to their end.",
		 atomic_load(&m->batches_driven)},
		{"hapax_batches_taken_over_total", counter, "Batches seized past another holder's time.",
		 atomic_load(&m->batches_taken_over)},
		{"hapax_batches_fenced_total", counter,
		 "Batches that were another's by the time this node came to write.", atomic_load(&m->batches_fenced)},
		{"hapax_batches_expired_total", counter, "Batches that retention has reduced to their key.",
		 atomic_load(&m->batches_expired)},
		{"hapax_batch_items_succeeded_total", counter, "Items that were done.",
		 atomic_load(&m->batch_items_succeeded)},
		{"hapax_batch_items_failed_total", counter, "Items that were given up.",
		 atomic_load(&m->batch_items_failed)},
		{"hapax_batch_items_unknown_total", counter, "Items left for a person.",
		 atomic_load(&m->batch_items_unknown)},
		{"hapax_batch_items_late_total", counter, "Items done after they were cancelled or given up.",
		 atomic_load(&m->batch_items_late)},
		{"hapax_batch_turns", gauge, "Items and cleanups of batches under way here.",
		 atomic_load(&m->batch_turns)},
	};

	METRICS_ADD_ALL(text, metrics);
}

/* The store and the doors. */
static void add_node(struct engine *engine, const struct lane_stats *lanes, struct strbuf *text)
{
	struct engine_metrics *m = engine_metrics(engine);
	const struct metric metrics[] = {
		{"hapax_notifications_sent_total", counter, "Wakes told to other nodes.",
		 atomic_load(&m->notifications_sent)},
		{"hapax_notifications_heard_total", counter, "Wakes that other nodes have told.",
		 atomic_load(&m->notifications_heard)},
		{"hapax_nodes_live", gauge, "Nodes on this store.", atomic_load(&m->nodes_live)},
		{"hapax_store_up", gauge, "1: the store answers; 0: it is lost, and /readyz says so.",
		 engine_has_store(engine)},
		{"hapax_keys_refused_total", counter,
		 "Requests without an API key that fits and may do what was asked.", atomic_load(&m->keys_refused)},
		{"hapax_entry_locked_total", counter, "Calls refused by the entry lock.",
		 atomic_load(&m->entry_locked)},
		{"hapax_entry_lock_unavailable_total", counter, "Calls let through because the lock's store was down.",
		 atomic_load(&m->entry_lock_unavailable)},
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
	struct strbuf text;

	strbuf_init(&text, TEXT_BYTES_MAX);
	engine_lane_stats(api->engine, &lanes);
	engine_act_stats(api->engine, &act);
	http_exchange_read_stats(call->exchange, &http);
	add_steps(engine_metrics(api->engine), &lanes, &text);
	add_runs_and_batches(engine_metrics(api->engine), &text);
	add_node(api->engine, &lanes, &text);
	add_load(api, &lanes, &act, &http, &text);
	add_responses(&http, &text);
	add_request_seconds(&http, &text);
	add_action_seconds(&act, &text);
	add_commit_seconds(&lanes.group, &text);
	add_batch_units(&lanes.group, &text);
	add_runs_ended(engine_metrics(api->engine), &text);
	add_backlog(api->engine, call->scope == ROUTE_ADMIN, &text);
	add_gate_outcomes(engine_metrics(api->engine), &text);
	metrics_add_clock(&text, engine_clock(api->engine));
	add_store_clock(engine_store_clock(api->engine), &text);
	metrics_add_process(&text);
	if (text.failed)
		http_respond_code(call->exchange, HX_NO_MEMORY, "there is no memory for the numbers");
	else
		api_respond_text(call, 200, METRICS_CONTENT_TYPE, strbuf_slice(&text));
	strbuf_release(&text);
}
