/* Is it alive, does it take work, and the numbers. */
#include <stdio.h>

#include "http/api.h"

static void respond_text(struct http_call *call, int status, struct slice text)
{
	struct wire_field fields[] = {
		{slice_str("Content-Type"), slice_str("text/plain; version=0.0.4; charset=utf-8")}};
	struct http_answer answer = {.status = status, .fields = {fields, 1}, .body = text};

	http_respond(call->exchange, &answer);
}

void api_healthz(struct http_call *call)
{
	respond_text(call, 200, slice_str("ok\n"));
}

void api_readyz(struct http_call *call)
{
	bool ready = atomic_load(&api_of(call)->ready);

	respond_text(call, ready ? 200 : 503, slice_str(ready ? "ready\n" : "not ready\n"));
}

static void add_gate_outcomes(struct engine_metrics *m, struct strbuf *text)
{
	const char *name = "hapax_gate_outcomes_total";

	strbuf_addf(text, "# HELP %s Requests with an Idempotency-Key.\n# TYPE %s counter\n", name, name);
	for (int i = 0; i < HX_GATE_OUTCOMES; i++)
		strbuf_addf(text, "%s{outcome=\"%s\"} %llu\n", name, hx_gate_outcome_name(i),
			    (unsigned long long)atomic_load(&m->gate_outcomes[i]));
}

static void add_gauge(struct strbuf *text, const char *name, const char *help, uint64_t value)
{
	strbuf_addf(text, "# HELP %s %s\n# TYPE %s gauge\n%s %llu\n", name, help, name, name,
		    (unsigned long long)value);
}

/* One table: the name, what it counts, where it stands. */
void api_metrics(struct http_call *call)
{
	struct engine_metrics *m = engine_metrics(api_of(call)->engine);
	struct lane_stats lanes;
	struct strbuf text;

	engine_lane_stats(api_of(call)->engine, &lanes);
	const struct {
		const char *name, *help;
		uint64_t value;
	} metrics[] = {
		{"hapax_transitions_total", "Guarded writes that won.", lanes.batch.transitions},
		{"hapax_verdicts_lost_total", "Guarded writes that lost.", lanes.batch.lost},
		{"hapax_fenced_writes_total", "Writes of stale holders that changed nothing.", lanes.batch.fenced},
		{"hapax_claim_overruns_total", "Actions whose lease could not be kept: aborted, or heard out.",
		 lanes.claims_lost},
		{"hapax_janitor_reverts_total", "Stuck claims that a janitor has ended.",
		 atomic_load(&m->janitor_reverts)},
		{"hapax_janitor_holds_total", "Stuck claims parked for a person.", atomic_load(&m->janitor_holds)},
		{"hapax_unknown_outcomes_total", "Steps whose outcome is unknown.",
		 atomic_load(&m->unknown_outcomes) + atomic_load(&m->runs_unknown)},
		{"hapax_steps_fired_total", "Steps that were asked for.", atomic_load(&m->steps_fired)},
		{"hapax_steps_ok_total", "Steps that were done.", atomic_load(&m->steps_ok)},
		{"hapax_jobs_stale_total", "Calls of workers whose claim was another's by then; they changed nothing.",
		 atomic_load(&m->jobs_stale)},
		{"hapax_jobs_delivered_total", "Jobs that were delivered.", atomic_load(&m->jobs_delivered)},
		{"hapax_jobs_failed_total", "Deliveries that did not succeed.", atomic_load(&m->jobs_failed)},
		{"hapax_jobs_expired_total", "Jobs that retention has deleted.", atomic_load(&m->jobs_expired)},
		{"hapax_runs_created_total", "Runs that were created here.", atomic_load(&m->runs_created)},
		{"hapax_runs_driven_total", "Runs driven to a wait, or to their end.", atomic_load(&m->runs_driven)},
		{"hapax_runs_taken_over_total", "Runs seized past another holder's time.",
		 atomic_load(&m->runs_taken_over)},
		{"hapax_runs_fenced_total", "Runs that were another's by the time this node came to write.",
		 atomic_load(&m->runs_fenced)},
		{"hapax_runs_held_total", "Steps of runs held for a person.", atomic_load(&m->runs_unknown)},
		{"hapax_runs_expired_total", "Runs that retention has reduced to their key.",
		 atomic_load(&m->runs_expired)},
		{"hapax_batches_driven_total", "Batches worked on, and let go or brought to their end.",
		 atomic_load(&m->batches_driven)},
		{"hapax_batches_taken_over_total", "Batches seized past another holder's time.",
		 atomic_load(&m->batches_taken_over)},
		{"hapax_batches_fenced_total", "Batches that were another's by the time this node came to write.",
		 atomic_load(&m->batches_fenced)},
		{"hapax_batches_expired_total", "Batches that retention has reduced to their key.",
		 atomic_load(&m->batches_expired)},
		{"hapax_batch_items_succeeded_total", "Items that were done.", atomic_load(&m->batch_items_succeeded)},
		{"hapax_batch_items_failed_total", "Items that were given up.", atomic_load(&m->batch_items_failed)},
		{"hapax_batch_items_unknown_total", "Items left for a person.", atomic_load(&m->batch_items_unknown)},
		{"hapax_batch_items_late_total", "Items done after they were cancelled or given up.",
		 atomic_load(&m->batch_items_late)},
		{"hapax_notifications_sent_total", "Wakes told to other nodes.", atomic_load(&m->notifications_sent)},
		{"hapax_notifications_heard_total", "Wakes that other nodes have told.",
		 atomic_load(&m->notifications_heard)},
		{"hapax_keys_refused_total", "Requests without an API key that fits and may do what was asked.",
		 atomic_load(&m->keys_refused)},
		{"hapax_entry_locked_total", "Calls refused by the entry lock.", atomic_load(&m->entry_locked)},
		{"hapax_entry_lock_unavailable_total", "Calls let through because the lock's store was down.",
		 atomic_load(&m->entry_lock_unavailable)},
		{"hapax_batches_total", "Transactions of the lanes.", lanes.batch.batches},
		{"hapax_batch_units_total", "Units of work in them.", lanes.batch.units},
		{"hapax_batches_retried_total", "Batches run again after a deadlock or a lost connection.",
		 lanes.batch.retried},
		{"hapax_commits_in_doubt_total", "Commits whose answer was lost.", lanes.batch.in_doubt},
	};

	strbuf_init(&text, 1u << 16);
	for (size_t i = 0; i < sizeof metrics / sizeof *metrics; i++)
		strbuf_addf(&text, "# HELP %s %s\n# TYPE %s counter\n%s %llu\n", metrics[i].name, metrics[i].help,
			    metrics[i].name, metrics[i].name, (unsigned long long)metrics[i].value);
	add_gauge(&text, "hapax_nodes_live", "Nodes on this store.", atomic_load(&m->nodes_live));
	add_gauge(&text, "hapax_batch_turns", "Items and cleanups of batches under way here.",
		  atomic_load(&m->batch_turns));
	add_gauge(&text, "hapax_run_waiters", "Clients that wait for the end of a run.",
		  (uint64_t)atomic_load(&api_of(call)->waiting));
	add_gauge(&text, "hapax_job_waiters", "Workers that wait for a job.",
		  (uint64_t)atomic_load(&api_of(call)->claiming));
	add_gate_outcomes(m, &text);
	respond_text(call, 200, strbuf_slice(&text));
	strbuf_release(&text);
}
