/*
 * The port's book-keeping: who waits, who runs, who is next. See port.h for the rules and kind.h for a job's life.
 *
 * One mutex guards all of it; nothing under it blocks. A job is in the table from start to its end. Whose turn it is: port_turns.c.
 */
#include "act/port.h"

#include <pthread.h>
#include <stdlib.h>

#include "act/exec.h"
#include "act/http.h"
#include "act/port_parts.h"
#include "base/thread.h"
#include "base/trace.h"

/* ---- tables ---- */

static struct job **job_slot(struct port *port, struct ticket ticket)
{
	size_t bucket = (ticket.number ^ (uintptr_t)ticket.lane >> 6) % PORT_BUCKETS;
	struct job **slot = &port->jobs[bucket];

	while (*slot && ((*slot)->ticket.number != ticket.number || (*slot)->ticket.lane != ticket.lane))
		slot = &(*slot)->table_next;
	return slot;
}

/* ---- jobs ---- */

static struct slice copy_text(char **at, struct slice text)
{
	struct slice copy = slice_of(*at, text.n);

	if (text.n)
		memcpy(*at, text.p, text.n);
	(*at)[text.n] = '\0';
	*at += text.n + 1;
	return copy;
}

static int64_t fence_floor(const struct port *port)
{
	return port->options.fence_floor ? atomic_load(port->options.fence_floor) : 0;
}

/* The caller's texts live only until the answer or the abort, and a cancelled call may need a moment to end. */
static struct job *job_new(struct port *port, const struct act_call *call, struct ticket ticket)
{
	char made[TRACE_PARENT_BYTES];
	struct slice of = call->traceparent.n ? call->traceparent : trace_of_key(call->key, made);
	size_t texts = call->input.n + call->key.n + of.n + 3;
	struct job *job = malloc(sizeof *job + texts);
	char *at, *trace;

	if (!job)
		return NULL;
	at = (char *)(job + 1);
	*job = (struct job){.action = call->action, .call = *call, .ticket = ticket, .port = port, .wake_fd = -1};
	job->fence = call->lease.fence;
	job->call.input = copy_text(&at, call->input);
	job->call.key = copy_text(&at, call->key);
	trace = at;
	job->call.traceparent = copy_text(&at, of);
	trace_continue(trace, of.n, call->key, act_fence(call), call->attempt);
	job->call.fence = act_fence(call) + fence_floor(port);
	if (call->lease.fence)
		job->call.lease.fence += fence_floor(port);
	return job;
}

static void pass_on(const struct port *port, struct ticket ticket, struct verdict verdict)
{
	port->options.answer(ticket, verdict.outcome, verdict.output, verdict.not_before_ms);
}

static void port_answer(struct port *port, struct ticket ticket, struct verdict verdict)
{
	pthread_mutex_lock(&port->mutex);
	port->stats.answers[verdict.outcome]++;
	pthread_mutex_unlock(&port->mutex);
	pass_on(port, ticket, verdict);
}

/* As slots are, so is the room to wait. */
static bool may_wait(const struct port *port, const struct port_share *share)
{
	size_t max = port->options.waiting_max, all = port->stats.waiting;

	return all <= max && (!share->tenant || share->waiting <= max - all + 1);
}

/* Takes the job in, or says why not. */
static const char *port_admit(struct port *port, struct kind *kind, struct job *job)
{
	struct port_queue *queue = port->stopping ? NULL : port_queue_of(port, job, kind);

	if (!queue)
		return port->stopping ? "the engine is stopping" : "out of memory";
	port_wait_in_queue(port, queue, job);
	*job_slot(port, job->ticket) = job;
	port_make_ready(queue);
	port_pump(port, kind);
	if (job->running || may_wait(port, queue->share))
		return NULL;
	port_leave_queue(port, job);
	*job_slot(port, job->ticket) = job->table_next;
	port_drop_if_idle(port, queue);
	port->stats.refused++;
	return "too many calls are waiting already";
}

/* ---- the kinds ---- */

static size_t slots(size_t wanted, size_t otherwise)
{
	return wanted ? wanted : otherwise;
}

static enum hx_code make_http(const struct port_options *options, struct kind **ret_kind, struct hx_error *err)
{
	struct http_options http = {
		.outbound = options->outbound,
		.secret_rules = options->secret_rules,
		.ca_file = options->ca_file,
		.loops = slots(options->http_loops, PORT_HTTP_LOOPS),
	};

	return http_kind_new(&http, slots(options->http_slots, PORT_HTTP_SLOTS), ret_kind, err);
}

static enum hx_code make_exec(const struct port_options *options, struct kind **ret_kind, struct hx_error *err)
{
	if (!options->exec_enabled)
		return HX_OK;
	return exec_kind_new(slots(options->exec_slots, PORT_EXEC_SLOTS), ret_kind, err);
}

static enum hx_code make_native(const struct port_options *options, struct kind **ret_kind, struct hx_error *err)
{
	if (!options->natives || !options->natives->n)
		return HX_OK;
	enum hx_code code = native_kind_new(options->natives, slots(options->native_slots, PORT_NATIVE_SLOTS), ret_kind,
					    err);

	if (!code) /* so many at once as the program has asked for, and no more: its functions may not bear more */
		(*ret_kind)->unshared = options->native_slots > 0;
	return code;
}

/* Who carries out the calls of a kind, and what is said of one that nobody carries out. */
static const struct {
	enum hx_code (*make)(const struct port_options *options, struct kind **ret_kind, struct hx_error *err);
	const char *without;
} kinds[ACTION_KINDS_N] = {
	[ACTION_HTTP] = {make_http, NULL},
	[ACTION_EXEC] = {make_exec, "exec actions are off: the configuration has to say \"exec\": {\"enabled\": true}"},
	[ACTION_SQL] = {NULL, "a sql action runs in the unit of its transition, not by a call"},
	[ACTION_NATIVE] = {make_native, "no native actions are registered"},
	[ACTION_WORKER] = {NULL, "a worker action is pulled over the jobs API, not called"},
};

static enum hx_code make_kinds(struct port *port, struct hx_error *err)
{
	for (size_t i = 0; i < ACTION_KINDS_N; i++) {
		enum hx_code code = kinds[i].make ? kinds[i].make(&port->options, &port->kinds[i], err) : HX_OK;

		if (code)
			return code;
		if (port->kinds[i])
			port->kinds[i]->turn_last = &port->kinds[i]->turn_first;
	}
	return HX_OK;
}

static void answer_without_kind(struct port *port, const struct act_call *call, struct ticket ticket)
{
	const struct action *action = call->action;
	const char *words = kinds[action->kind].without;

	if (action_kind_by(action->kind) == BY_NOBODY)
		port_answer(port, ticket, (struct verdict){ACT_OK, slice_str("null"), 0});
	else
		port_answer(port, ticket,
			    (struct verdict){verdict_never_sent(call),
					     slice_str(words ? words : "actions of this kind are not called from here"),
					     0});
}

/* ---- calls ---- */

static void port_start_call(struct act_port *act, const struct act_call *call, struct ticket ticket)
{
	struct port *port = (struct port *)act;
	const struct action *action = call->action;
	struct kind *kind = port->kinds[action->kind];
	const char *refusal = "out of memory";
	struct job *job;

	if (!kind) {
		answer_without_kind(port, call, ticket);
		return;
	}
	job = job_new(port, call, ticket);
	if (job) {
		pthread_mutex_lock(&port->mutex);
		refusal = port_admit(port, kind, job);
		pthread_mutex_unlock(&port->mutex);
	}
	if (refusal) { /* otherwise the job is not ours any more */
		free(job);
		port_answer(port, ticket, (struct verdict){ACT_FAILED, slice_str(refusal), 0});
	}
}

static void port_flush(struct act_port *act)
{
	struct port *port = (struct port *)act;
	bool running;

	pthread_mutex_lock(&port->mutex);
	running = port->stats.running > 0; /* else the kinds may be gone */
	port->flushing += running;
	pthread_mutex_unlock(&port->mutex);
	if (!running)
		return;
	/* Without the mutex: who is woken runs at once, perhaps in our place, and needs it. */
	for (size_t i = 0; i < ACTION_KINDS_N; i++)
		if (port->kinds[i] && port->kinds[i]->flush)
			port->kinds[i]->flush(port->kinds[i]);
	LOCKED(&port->mutex);
	port->flushing--;
	if (!port_is_busy(port))
		pthread_cond_broadcast(&port->quiet);
}

static void port_cancel(struct job *job)
{
	atomic_store(&job->cancelled, true);
	job->queue->action->kind->cancel(job->queue->action->kind, job);
}

static void drop_waiting(struct port *port, struct job *job)
{
	struct port_queue *queue = job->queue;

	port_leave_queue(port, job);
	*job_slot(port, job->ticket) = job->table_next;
	port_drop_if_idle(port, queue);
}

static void abort_job(struct act_port *act, struct ticket ticket)
{
	struct port *port = (struct port *)act;
	struct job *job;

	LOCKED(&port->mutex);
	job = *job_slot(port, ticket);
	if (!job || job->aborted)
		return;
	port->stats.aborted++;
	job->aborted = true;
	if (job->running) {
		port_cancel(job);
	} else {
		drop_waiting(port, job);
		free(job);
	}
}

static bool withdraw(struct act_port *act, struct ticket ticket)
{
	struct port *port = (struct port *)act;
	struct job *job;

	LOCKED(&port->mutex);
	job = *job_slot(port, ticket);
	if (!job || job->running)
		return false;
	port->stats.aborted++;
	drop_waiting(port, job);
	free(job);
	return true;
}

static void release_slot(struct port *port, struct job *job)
{
	struct port_queue *queue = job->queue;
	struct kind *kind = queue->action->kind;

	*job_slot(port, job->ticket) = job->table_next;
	queue->running--;
	queue->action->running--;
	queue->share->running--;
	kind->used--;
	port->stats.running--;
	/* An action that was full has room for another now, of whichever workspace: first of the one that was served longest ago. */
	for (struct port_queue *q = queue->action->queues; q; q = q->action_next)
		port_make_ready(q);
	port_drop_if_idle(port, queue);
	port_pump(port, kind);
	if (!port_is_busy(port))
		pthread_cond_broadcast(&port->quiet);
}

static void count_answer(struct port *port, const struct job *job, enum act_outcome outcome)
{
	struct mono_time now = clock_mono(clock_system());

	port->stats.answers[outcome]++;
	histogram_count(&port->stats.answered[job->action->kind], (now.ns - job->started.ns) / 1000);
}

void port_job_done(struct job *job, struct verdict verdict)
{
	struct port *port = job->port;
	bool wanted;

	pthread_mutex_lock(&port->mutex);
	ASSERT(job->running && *job_slot(port, job->ticket) == job);
	wanted = !job->aborted;
	if (wanted)
		count_answer(port, job, verdict.outcome);
	release_slot(port, job);
	pthread_mutex_unlock(&port->mutex);
	if (wanted)
		pass_on(port, job->ticket, verdict);
	free(job);
}

/* ---- the life of a port ---- */

struct act_port *port_act(struct port *port)
{
	return &port->act;
}

void port_read_stats(struct port *port, struct port_stats *ret_stats)
{
	LOCKED(&port->mutex);
	*ret_stats = port->stats;
}

static void see(const struct job *job, struct port_sight *sight)
{
	const struct port_queue *queue = job->queue;

	if (job->running) {
		sight->running++;
		return;
	}
	sight->waiting++;
	sight->action = job->action;
	sight->of_kind = !port_is_full(queue->action);
	sight->of_share = sight->of_kind && queue->action->kind->used < queue->action->kind->slots;
	sight->limit = sight->of_share  ? queue->share->running
		       : sight->of_kind ? queue->action->kind->slots
					: queue->action->max;
}

void port_look(struct port *port, int64_t subject, int64_t fence, struct port_sight *ret_sight)
{
	*ret_sight = (struct port_sight){0};
	LOCKED(&port->mutex);
	for (size_t i = 0; i < PORT_BUCKETS; i++)
		for (const struct job *job = port->jobs[i]; job; job = job->table_next)
			if (job->call.lease.subject == subject && job->fence == fence)
				see(job, ret_sight);
}

static void init(struct port *port, const struct port_options *options)
{
	port->act = (struct act_port){
		.start = port_start_call, .flush = port_flush, .abort = abort_job, .withdraw = withdraw};
	port->options = *options;
	if (!options->answer)
		port->options.answer = lane_answer_not_before;
	if (!options->waiting_max)
		port->options.waiting_max = PORT_WAITING_MAX;
	pthread_mutex_init(&port->mutex, NULL);
	condition_init(&port->quiet);
}

enum hx_code port_new(const struct port_options *options, struct port **ret_port, struct hx_error *err)
{
	struct port *port = calloc(1, sizeof *port);
	enum hx_code code;

	if (!port)
		return error_set(err, HX_NO_MEMORY, "the action port");
	init(port, options);
	code = make_kinds(port, err);
	return HAND_OVER(code, port, port_free, ret_port);
}

/* Takes a waiting job out. NULL: none waits. */
static struct job *take_waiting(struct port *port)
{
	for (size_t i = 0; i < PORT_BUCKETS; i++)
		for (struct job *job = port->jobs[i]; job; job = job->table_next)
			if (!job->running) {
				drop_waiting(port, job);
				return job;
			}
	return NULL;
}

/* With the mutex held, which it lets go for each answer. */
static void refuse_waiting(struct port *port)
{
	struct job *job;

	while ((job = take_waiting(port))) {
		pthread_mutex_unlock(&port->mutex);
		port_answer(port, job->ticket, (struct verdict){ACT_FAILED, slice_str("the engine is stopping"), 0});
		free(job);
		pthread_mutex_lock(&port->mutex);
	}
}

static void wait_until_quiet(struct port *port, int64_t grace_ms)
{
	struct mono_time until = time_in_ms(grace_ms);

	while (port_is_busy(port) && condition_wait_until(&port->quiet, &port->mutex, until))
		;
	for (size_t i = 0; port->stats.running && i < PORT_BUCKETS; i++)
		for (struct job *job = port->jobs[i]; job; job = job->table_next)
			port_cancel(job);
	while (port_is_busy(port))
		pthread_cond_wait(&port->quiet, &port->mutex);
}

void port_stop(struct port *port, int64_t grace_ms)
{
	if (!port || port->stopped)
		return;
	pthread_mutex_lock(&port->mutex);
	port->stopping = true;
	refuse_waiting(port);
	wait_until_quiet(port, grace_ms);
	pthread_mutex_unlock(&port->mutex);
	for (size_t i = 0; i < ACTION_KINDS_N; i++)
		if (port->kinds[i])
			port->kinds[i]->free(port->kinds[i]);
	port->stopped = true;
}

void port_free(struct port *port)
{
	if (!port)
		return;
	port_stop(port, /* grace_ms= */ 0);
	pthread_cond_destroy(&port->quiet);
	pthread_mutex_destroy(&port->mutex);
	free(port);
}
