/*
 * The loops that http calls are made on. See http.h for what is promised, transfer.c for one call, origins.c for whom they reach.
 *
 *   start ──▶ inbox ─┐                       ┌─▶ ended: judged, answered
 *   cancel ─▶ flag ──┴─▶ look ─▶ at work ────┴─▶ cancelled: its connection is closed; the same
 *        (both post the loop's letter)
 *
 * A call goes to the loop that has the fewest, so one after the other they share their connections. From then on only that loop's
 * thread touches it, and its job.
 */
#include "act/http.h"

#include <pthread.h>
#include <stdlib.h>

#include "act/origins.h"
#include "act/transfer.h"
#include "base/thread.h"
#include "base/tls.h"
#include "wire/resolver.h"

struct http;

struct http_loop {
	struct http *http;
	struct loop loop;
	struct thread thread;
	struct letter look;
	pthread_mutex_t mutex;
	struct job *first, **last; /* under the mutex: started by the port, not yet begun */
	bool ending;               /* likewise */
	atomic_size_t under_way;
	atomic_bool cancels; /* some job has its flag set */
	struct origins origins;
	struct transfer *transfers;
	struct strbuf words;
};

struct http {
	struct kind kind;
	struct http_options options;
	struct resolver *resolver;
	pthread_mutex_t mutex;
	struct tls_client *tls; /* under the mutex; made with the first call that needs it */
	size_t loops_n;
	struct http_loop loops[];
};

/* ---- the list of transfers ---- */

static void http_enter(struct http_loop *hl, struct transfer *t)
{
	t->next = hl->transfers;
	t->slot = &hl->transfers;
	if (t->next)
		t->next->slot = &t->next;
	hl->transfers = t;
}

static void http_leave(struct transfer *t)
{
	*t->slot = t->next;
	if (t->next)
		t->next->slot = t->slot;
}

/* ---- the life of a call ---- */

static void http_ended(struct upstream_call *call, enum upstream_end end)
{
	struct transfer *t = (struct transfer *)call;
	struct http_loop *hl = t->home;
	struct job *job = t->job;
	struct verdict verdict = transfer_judge(t, end, &hl->words);

	http_leave(t);
	atomic_fetch_sub(&hl->under_way, 1);
	transfer_wipe(t);
	port_job_done(job, verdict); /* copies the output, which may lie in the transfer */
	transfer_free(t);
	strbuf_reset(&hl->words);
}

/* NULL: *err says why. */
static struct tls_client *tls_of(struct http *http, struct hx_error *err)
{
	struct tls_options options = {.name = "actions", .ca_file = http->options.ca_file, .is_http = true};

	LOCKED(&http->mutex);
	if (!http->tls && tls_client_new(&options, &http->tls, err))
		http->tls = NULL;
	return http->tls;
}

static enum hx_code find_pool(struct http_loop *hl, const struct transfer *t, struct upstream_pool **ret_pool,
			      struct hx_error *err)
{
	struct tls_client *tls = t->secure ? tls_of(hl->http, err) : NULL;

	if (t->secure && !tls) /* a file that is away may be there the next time */
		return err->code == HX_CONFIG_ERROR ? HX_UPSTREAM_UNREACHABLE : err->code;
	return origins_find(&hl->origins, t->origin, tls, ret_pool, err);
}

static void http_begin(struct http_loop *hl, struct job *job)
{
	struct upstream_pool *pool = NULL;
	struct transfer *t = NULL;
	struct hx_error err;
	enum hx_code code = atomic_load(&job->cancelled) ? error_set(&err, HX_INTERNAL, "the call was cancelled")
							 : transfer_new(job, &hl->http->options, &t, &err);

	if (!code)
		code = find_pool(hl, t, &pool, &err);
	if (code) {
		enum act_outcome outcome = code == HX_CONFIG_ERROR ? verdict_never_sent(&job->call) : ACT_FAILED;

		if (t)
			transfer_wipe(t);
		transfer_free(t);
		atomic_fetch_sub(&hl->under_way, 1);
		port_job_done(job, verdict_say(outcome, &hl->words, "nothing was sent: %s", err.detail));
		return;
	}
	t->home = hl;
	t->call.ended = http_ended;
	t->call.cancelled = &job->cancelled; /* it may be given up while it waits for its connection */
	http_enter(hl, t);
	upstream_call_begin(pool, &t->call);
}

static void end_cancelled(struct http_loop *hl)
{
	for (struct transfer *t = hl->transfers, *next; t; t = next) {
		next = t->next;
		if (atomic_load(&t->job->cancelled))
			upstream_call_cancel(&t->call);
	}
}

/* ---- the thread ---- */

static void http_look(struct letter *letter)
{
	struct http_loop *hl = CONTAINER_OF(letter, struct http_loop, look);
	struct job *job, *next;

	pthread_mutex_lock(&hl->mutex);
	job = hl->first;
	hl->first = NULL;
	hl->last = &hl->first;
	pthread_mutex_unlock(&hl->mutex);
	for (; job; job = next) {
		next = job->next;
		http_begin(hl, job);
	}
	if (atomic_exchange(&hl->cancels, false))
		end_cancelled(hl);
}

static bool is_ending(struct http_loop *hl)
{
	LOCKED(&hl->mutex);
	return hl->ending;
}

/* The mailbox is closed when it is empty: what was closed in the last round is freed by its letter. */
static void *http_run(void *context)
{
	struct http_loop *hl = context;

	do
		loop_round(&hl->loop, (struct mono_time){INT64_MAX});
	while (!is_ending(hl) || !mailbox_close(hl->loop.mailbox));
	return NULL;
}

/* ---- from the port ---- */

static struct http_loop *least_busy(struct http *http)
{
	struct http_loop *best = &http->loops[0];

	for (size_t i = 1; i < http->loops_n; i++)
		if (atomic_load(&http->loops[i].under_way) < atomic_load(&best->under_way))
			best = &http->loops[i];
	return best;
}

static void http_start(struct kind *kind, struct job *job)
{
	struct http_loop *hl = least_busy((struct http *)kind);

	job->next = NULL;
	atomic_fetch_add(&hl->under_way, 1);
	pthread_mutex_lock(&hl->mutex);
	*hl->last = job;
	hl->last = &job->next;
	pthread_mutex_unlock(&hl->mutex);
	(void)mailbox_post(hl->loop.mailbox, &hl->look); /* open as long as there are jobs */
}

static void http_cancel(struct kind *kind, struct job *job)
{
	struct http *http = (struct http *)kind;

	(void)job; /* found by its flag */
	for (size_t i = 0; i < http->loops_n; i++) {
		atomic_store(&http->loops[i].cancels, true);
		(void)mailbox_post(http->loops[i].loop.mailbox, &http->loops[i].look); /* likewise */
	}
}

/* ---- life ---- */

static void release_loop(struct http_loop *hl)
{
	if (hl->thread.started) {
		pthread_mutex_lock(&hl->mutex);
		hl->ending = true;
		pthread_mutex_unlock(&hl->mutex);
		(void)mailbox_post(hl->loop.mailbox, &hl->look); /* the loop ends after this */
		thread_join(&hl->thread);
	}
	ASSERT(!hl->transfers);
	origins_release(&hl->origins);
	loop_release(&hl->loop);
	strbuf_release(&hl->words);
	pthread_mutex_destroy(&hl->mutex);
}

static void free_kind(struct kind *kind)
{
	struct http *http = (struct http *)kind;

	for (size_t i = 0; i < http->loops_n; i++)
		release_loop(&http->loops[i]);
	resolver_free(http->resolver);
	tls_client_free(http->tls);
	pthread_mutex_destroy(&http->mutex);
	free(http);
}

static const char *refusal(const void *context, const struct sockaddr *to)
{
	static const struct outbound public_only;

	return outbound_refusal(context ? context : &public_only, to);
}

static enum hx_code start_loop(struct http *http, struct http_loop *hl, struct hx_error *err)
{
	struct upstream_ways ways = {.clock = clock_system(),
				     .resolver = http->resolver,
				     .refusal = refusal,
				     .refusal_context = http->options.outbound};
	enum hx_code code = loop_init(&hl->loop, clock_system(), err);

	hl->http = http;
	hl->look.deliver = http_look;
	hl->last = &hl->first;
	pthread_mutex_init(&hl->mutex, NULL);
	strbuf_init(&hl->words, VERDICT_WORDS_MAX);
	if (code)
		return code;
	if (!origins_init(&hl->origins, &hl->loop, &ways))
		return error_set(err, HX_NO_MEMORY, "http actions");
	return thread_start(&hl->thread, http_run, hl, "a thread for http actions", err);
}

enum hx_code http_kind_new(const struct http_options *options, size_t slots, struct kind **ret_kind,
			   struct hx_error *err)
{
	struct http *http = calloc(1, sizeof *http + options->loops * sizeof http->loops[0]);
	enum hx_code code = HX_OK;

	if (!http)
		return error_set(err, HX_NO_MEMORY, "http actions");
	http->kind = (struct kind){.start = http_start, .cancel = http_cancel, .free = free_kind, .slots = slots};
	http->options = *options;
	pthread_mutex_init(&http->mutex, NULL);
	http->resolver = resolver_new(clock_system());
	if (!http->resolver)
		code = error_set(err, HX_NO_MEMORY, "http actions");
	for (; !code && http->loops_n < options->loops; http->loops_n++)
		code = start_loop(http, &http->loops[http->loops_n], err);
	return HAND_OVER(code, &http->kind, free_kind, ret_kind);
}
