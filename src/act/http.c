/*
 * The thread that drives libcurl's multi handle. See http.h for what it must not do, transfer.c for one call.
 *
 *   start ──▶ inbox ─┐                        ┌─▶ done: judged, answered
 *   cancel ─▶ flag ──┴─▶ perform … poll … ────┴─▶ cancelled: taken out, its connection closed
 *        (both wake the poll)
 *
 * Only this thread touches the multi handle (curl_multi_wakeup() aside), the transfers and their jobs.
 */
#include "act/http.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "act/pool.h"
#include "act/transfer.h"

#define IDLE_CONNECTIONS_MAX 256
#define POLL_MS 60000 /* libcurl shortens it to its own next timeout; everybody else wakes it */
#define STUMBLE_NS 10000000

struct http {
	struct kind kind;
	struct http_options options;
	CURLM *multi;
	struct thread thread;
	pthread_mutex_t mutex;
	struct job *first, **last; /* under the mutex: started by the port, not yet begun */
	bool ending;               /* under the mutex */
	atomic_bool cancels;       /* some job has its flag set */
	struct transfer *transfers;
	struct sockets sockets;
	struct strbuf words;
};

static pthread_once_t global_once = PTHREAD_ONCE_INIT;
static CURLcode global_code;

/* Once per process, and never undone: other users of libcurl in an embedding program may live longer than we do. */
static void init_libcurl(void)
{
	global_code = curl_global_init(CURL_GLOBAL_DEFAULT);
}

/* ---- the list of transfers ---- */

static void enter(struct http *http, struct transfer *t)
{
	t->next = http->transfers;
	t->slot = &http->transfers;
	if (t->next)
		t->next->slot = &t->next;
	http->transfers = t;
}

static void leave(struct transfer *t)
{
	*t->slot = t->next;
	if (t->next)
		t->next->slot = t->slot;
}

/* ---- the life of a call ---- */

static void begin(struct http *http, struct job *job)
{
	struct transfer *t = NULL;
	struct hx_error err;
	enum hx_code code = transfer_new(job, &http->options, &http->sockets, &t, &err);

	if (!code && curl_multi_add_handle(http->multi, t->easy) != CURLM_OK) {
		transfer_free(t);
		code = error_set(&err, HX_NO_MEMORY, "libcurl does not take the call");
	}
	if (code) {
		enum act_outcome outcome = code == HX_CONFIG_ERROR ? ACT_FAILED_FOR_GOOD : ACT_FAILED;

		port_job_done(job, verdict_say(outcome, &http->words, "nothing was sent: %s", err.detail));
	} else {
		enter(http, t);
	}
}

static void end(struct http *http, struct transfer *t, struct verdict verdict)
{
	struct job *job = t->job;

	leave(t);
	port_job_done(job, verdict); /* copies the output, which may lie in the transfer */
	transfer_free(t);
	strbuf_reset(&http->words);
}

static void finish(struct http *http, CURL *easy, CURLcode code)
{
	struct transfer *t = NULL;

	(void)curl_easy_getinfo(easy, CURLINFO_PRIVATE, &t); /* set by transfer_new() */
	ASSERT(t);
	(void)curl_multi_remove_handle(http->multi, easy); /* it is in there */
	if (transfer_try_fresh(t) && curl_multi_add_handle(http->multi, easy) == CURLM_OK)
		return;
	end(http, t, transfer_judge(t, code, &http->words));
}

static void end_cancelled(struct http *http)
{
	for (struct transfer *t = http->transfers, *next; t; t = next) {
		next = t->next;
		if (!atomic_load(&t->job->cancelled))
			continue;
		(void)curl_multi_remove_handle(http->multi, t->easy); /* closes its connection, which is in use */
		end(http, t, transfer_judge_cancelled(t, &http->words));
	}
}

/* ---- the thread ---- */

static bool take_new(struct http *http)
{
	struct job *job, *next;
	bool ending;

	pthread_mutex_lock(&http->mutex);
	job = http->first;
	http->first = NULL;
	http->last = &http->first;
	ending = http->ending;
	pthread_mutex_unlock(&http->mutex);
	for (; job; job = next) {
		next = job->next;
		begin(http, job);
	}
	return !ending;
}

static void take_finished(struct http *http)
{
	struct CURLMsg *message;
	int left;

	while ((message = curl_multi_info_read(http->multi, &left)))
		if (message->msg == CURLMSG_DONE)
			finish(http, message->easy_handle, message->data.result);
}

static void *run(void *context)
{
	struct http *http = context;
	int running;

	while (take_new(http)) {
		CURLMcode code;

		if (atomic_exchange(&http->cancels, false))
			end_cancelled(http);
		code = curl_multi_perform(http->multi, &running);
		take_finished(http);
		if (code == CURLM_OK)
			code = curl_multi_poll(http->multi, NULL, 0, POLL_MS, NULL);
		if (code != CURLM_OK) /* no memory: not in a busy loop */
			nanosleep(&(struct timespec){.tv_nsec = STUMBLE_NS}, NULL);
	}
	return NULL;
}

/* ---- from the port ---- */

static void start(struct kind *kind, struct job *job)
{
	struct http *http = (struct http *)kind;

	job->next = NULL;
	pthread_mutex_lock(&http->mutex);
	*http->last = job;
	http->last = &job->next;
	pthread_mutex_unlock(&http->mutex);
	(void)curl_multi_wakeup(http->multi); /* fails only when the pipe is full of wake-ups */
}

static void cancel(struct kind *kind, struct job *job)
{
	struct http *http = (struct http *)kind;

	(void)job; /* found by its flag */
	atomic_store(&http->cancels, true);
	(void)curl_multi_wakeup(http->multi);
}

static void free_kind(struct kind *kind)
{
	struct http *http = (struct http *)kind;

	if (http->thread.started) {
		pthread_mutex_lock(&http->mutex);
		http->ending = true;
		pthread_mutex_unlock(&http->mutex);
		(void)curl_multi_wakeup(http->multi);
		thread_join(&http->thread);
	}
	ASSERT(!http->transfers);
	(void)curl_multi_cleanup(http->multi); /* takes NULL */
	strbuf_release(&http->words);
	pthread_mutex_destroy(&http->mutex);
	free(http);
}

static bool set_up(struct http *http)
{
	pthread_once(&global_once, init_libcurl);
	if (global_code != CURLE_OK)
		return false;
	http->multi = curl_multi_init();
	return http->multi && curl_multi_setopt(http->multi, CURLMOPT_PIPELINING, (long)CURLPIPE_NOTHING) == CURLM_OK &&
	       curl_multi_setopt(http->multi, CURLMOPT_MAXCONNECTS, (long)IDLE_CONNECTIONS_MAX) == CURLM_OK;
}

enum hx_code http_kind_new(const struct http_options *options, size_t slots, struct kind **ret_kind,
			   struct hx_error *err)
{
	struct http *http = calloc(1, sizeof *http);

	if (!http)
		return error_set(err, HX_NO_MEMORY, "http actions");
	http->kind = (struct kind){.start = start, .cancel = cancel, .free = free_kind, .slots = slots};
	http->options = *options;
	http->last = &http->first;
	pthread_mutex_init(&http->mutex, NULL);
	strbuf_init(&http->words, VERDICT_WORDS_MAX);
	if (!set_up(http) || thread_start(&http->thread, run, http, "the thread of http actions", err)) {
		free_kind(&http->kind);
		return error_set(err, HX_INTERNAL, "libcurl or its thread cannot be started");
	}
	*ret_kind = &http->kind;
	return HX_OK;
}
