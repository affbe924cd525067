/*
 * Entry locks in Redis: SET name token NX PX ttl, and a script that deletes the key only if it holds the token.
 *
 *   take, release ──▶ queue ──▶ worker: up to PIPELINE_MAX tickets in one trip ──▶ taken(), released()
 *      │ full or down: answered at once
 *
 * The busier, the longer the pipelines: one thread and one connection are enough. Nobody ever waits for Redis but
 * the worker. While the server is down nothing is queued, and the worker alone tries to reach it again.
 *
 * A ticket waits at most for the pipeline that is under way and for its own, together twice REDIS_TIMEOUT_MS; and
 * where the server went away while nothing was asked of it, for one redis_connect(). What is queued when the
 * connection breaks is answered before it is made anew.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "gate/entry_store.h"

#define PIPELINE_MAX 64
#define KEY_PREFIX "hapax:entry:"

static const char release_script[] = "if redis.call('GET', KEYS[1]) == ARGV[1] then"
				     " return redis.call('DEL', KEYS[1]) else return 0 end";

struct entry_redis {
	struct entry_locks locks;
	struct redis *redis; /* the worker's */
	size_t queue_max;
	pthread_t thread;

	pthread_mutex_t mutex; /* guards all below */
	pthread_cond_t changed;
	struct entry_ticket *first, **last;
	size_t n;
	bool up; /* as far as is known: what is queued has a chance */
	bool stopping;
	bool tried; /* the first attempt to connect is over; it ended like this: */
	enum hx_code first_code;
	struct hx_error first_err;
};

/* ---- the worker ---- */

/* Answers a ticket that Redis did not. */
static void unavailable(struct entry_ticket *ticket, bool maybe_ours)
{
	if (ticket->state == TICKET_TAKING)
		entry_ticket_taken(ticket, HX_STORE_UNAVAILABLE, maybe_ours);
	else
		entry_ticket_released(ticket);
}

static struct slice key_of(const struct entry_ticket *ticket, char key[sizeof KEY_PREFIX + ENTRY_NAME_BYTES])
{
	int n = snprintf(key, sizeof KEY_PREFIX + ENTRY_NAME_BYTES, KEY_PREFIX "%s", ticket->lock.name);

	return slice_of(key, (size_t)n);
}

static void send_ticket(struct redis *redis, const struct entry_ticket *ticket)
{
	char key_text[sizeof KEY_PREFIX + ENTRY_NAME_BYTES], ttl[24];
	struct slice key = key_of(ticket, key_text), token = slice_str(ticket->lock.token);

	if (ticket->state == TICKET_TAKING) {
		snprintf(ttl, sizeof ttl, "%lld", (long long)ticket->lock.ttl_ms);
		REDIS_SEND(redis, slice_str("SET"), key, token, slice_str("NX"), slice_str("PX"), slice_str(ttl));
	} else {
		redis_send_script(redis, 0, /* keys_n= */ 1, 2, (const struct slice[]){key, token});
	}
}

/* The server has lost our script. The first of these brings its text along, for all that follow. */
static void release_again(struct redis *redis, struct entry_ticket *ticket)
{
	char key_text[sizeof KEY_PREFIX + ENTRY_NAME_BYTES];
	struct slice key = key_of(ticket, key_text), token = slice_str(ticket->lock.token);
	redisReply *reply = NULL;

	if (redis_is_connected(redis) &&
	    redis_run_script(redis, 0, /* keys_n= */ 1, 2, (const struct slice[]){key, token}, &reply,
			     /* err= */ NULL) == HX_OK)
		freeReplyObject(reply);
	entry_ticket_released(ticket);
}

/* HX_NOT_FOUND: to be released once more, when the pipeline has been read to its end. Otherwise it is answered. */
static enum hx_code receive_ticket(struct redis *redis, struct entry_ticket *ticket)
{
	bool was_connected = redis_is_connected(redis);
	redisReply *reply = NULL;
	enum hx_code code = redis_receive(redis, &reply, /* err= */ NULL);

	if (code == HX_NOT_FOUND && ticket->state == TICKET_RELEASING)
		return code;
	if (code) {
		/* Refused is refused; but what was sent when the connection broke may have arrived. */
		unavailable(ticket, /* maybe_ours= */ !was_connected || !redis_is_connected(redis));
	} else if (ticket->state == TICKET_TAKING) {
		/* +OK when it was set, nil when somebody has it. */
		entry_ticket_taken(ticket, reply->type == REDIS_REPLY_STATUS ? HX_OK : HX_ENTRY_LOCKED,
				   /* maybe_ours= */ false);
	} else {
		entry_ticket_released(ticket);
	}
	if (!code)
		freeReplyObject(reply);
	return HX_OK;
}

static void run_pipeline(struct redis *redis, struct entry_ticket *list)
{
	struct entry_ticket *again[PIPELINE_MAX], *next;
	size_t again_n = 0;

	for (struct entry_ticket *ticket = list; ticket; ticket = ticket->next)
		send_ticket(redis, ticket);
	for (struct entry_ticket *ticket = list; ticket; ticket = next) {
		next = ticket->next; /* an answered ticket is not ours any more */
		if (receive_ticket(redis, ticket) == HX_NOT_FOUND)
			again[again_n++] = ticket;
	}
	for (size_t i = 0; i < again_n; i++)
		release_again(redis, again[i]);
}

static void fail_list(struct entry_ticket *list)
{
	for (struct entry_ticket *ticket = list, *next; ticket; ticket = next) {
		next = ticket->next;
		unavailable(ticket, /* maybe_ours= */ false);
	}
}

/* Answers the takes of the list; what is left are its releases. */
static struct entry_ticket *refuse_takes(struct entry_ticket *list)
{
	struct entry_ticket *releases = NULL, **end = &releases;

	for (struct entry_ticket *ticket = list, *next; ticket; ticket = next) {
		next = ticket->next;
		if (ticket->state == TICKET_TAKING) {
			unavailable(ticket, /* maybe_ours= */ false);
		} else {
			ticket->next = NULL;
			*end = ticket;
			end = &ticket->next;
		}
	}
	return releases;
}

/* Takes the next pipeline out of the queue; everything when there is nobody to send it to. */
static struct entry_ticket *pop_some(struct entry_redis *r)
{
	struct entry_ticket *list = r->first, **end = &r->first;

	for (size_t i = 0; (i < PIPELINE_MAX || !r->up) && *end; i++, r->n--)
		end = &(*end)->next;
	if (end == &r->first)
		return NULL;
	r->first = *end;
	*end = NULL;
	if (!r->first)
		r->last = &r->first;
	return list;
}

/* Waits for work, for the end, or for the time to try to connect again. */
static void wait_for_work(struct entry_redis *r)
{
	while (!r->stopping && !r->first) {
		if (r->up) {
			pthread_cond_wait(&r->changed, &r->mutex);
		} else {
			int64_t ns = redis_connect_after(r->redis).ns - clock_mono(r->locks.clock).ns;
			int64_t until = clock_mono(clock_system()).ns + (ns > 0 ? ns : 0);
			struct timespec ts = {until / 1000000000, until % 1000000000};

			if (pthread_cond_timedwait(&r->changed, &r->mutex, &ts) == ETIMEDOUT)
				return;
		}
	}
}

/* What the worker has found out about the server. */
static void note_server(struct entry_redis *r, enum hx_code code, const struct hx_error *err)
{
	pthread_mutex_lock(&r->mutex);
	r->up = code == HX_OK;
	if (!r->tried) {
		r->tried = true;
		r->first_code = code;
		r->first_err = *err;
		pthread_cond_broadcast(&r->changed);
	}
	pthread_mutex_unlock(&r->mutex);
}

static void serve(struct entry_redis *r, struct entry_ticket *list)
{
	struct hx_error err = {0};
	enum hx_code code = redis_connect(r->redis, &err);

	note_server(r, code, &err);
	if (code) {
		fail_list(list);
		return;
	}
	run_pipeline(r->redis, list);
	if (!redis_is_connected(r->redis))
		note_server(r, HX_STORE_UNAVAILABLE, &err);
}

static void *work(void *context)
{
	struct entry_redis *r = context;
	bool stopping, more, up;

	serve(r, /* list= */ NULL);
	do {
		struct entry_ticket *list;

		pthread_mutex_lock(&r->mutex);
		wait_for_work(r);
		list = pop_some(r);
		more = r->first;
		stopping = r->stopping;
		up = r->up;
		pthread_mutex_unlock(&r->mutex);
		if (stopping)
			list = refuse_takes(list);
		if (!up) {
			fail_list(list);
			list = NULL;
		}
		if (list || !stopping)
			serve(r, list);
	} while (!stopping || more);
	return NULL;
}

/* ---- the callers ---- */

static bool push(struct entry_redis *r, struct entry_ticket *ticket)
{
	bool room;

	pthread_mutex_lock(&r->mutex);
	room = r->up && !r->stopping && r->n < r->queue_max;
	if (room) {
		ticket->next = NULL;
		*r->last = ticket;
		r->last = &ticket->next;
		r->n++;
		pthread_cond_broadcast(&r->changed);
	}
	pthread_mutex_unlock(&r->mutex);
	return room;
}

static void redis_queue(struct entry_locks *locks, struct entry_ticket *ticket)
{
	if (!push((struct entry_redis *)locks, ticket))
		unavailable(ticket, /* maybe_ours= */ false);
}

static void stop(struct entry_redis *r)
{
	pthread_mutex_lock(&r->mutex);
	r->stopping = true;
	pthread_cond_broadcast(&r->changed);
	pthread_mutex_unlock(&r->mutex);
	pthread_join(r->thread, NULL);
}

static void destroy(struct entry_redis *r)
{
	redis_free(r->redis);
	pthread_cond_destroy(&r->changed);
	pthread_mutex_destroy(&r->mutex);
	free(r);
}

static void redis_stop_and_free(struct entry_locks *locks)
{
	struct entry_redis *r = (struct entry_redis *)locks;

	stop(r);
	destroy(r);
}

static const struct entry_store redis_store = {
	.name = "redis",
	.take = redis_queue,
	.release = redis_queue,
	.free = redis_stop_and_free,
};

/* The thread takes no signals: they are for the program's own threads. */
static bool start(struct entry_redis *r)
{
	sigset_t all, before;
	int rc;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = pthread_create(&r->thread, NULL, work, r);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return rc == 0;
}

static enum hx_code await_first_try(struct entry_redis *r, struct hx_error *err)
{
	enum hx_code code;

	pthread_mutex_lock(&r->mutex);
	while (!r->tried)
		pthread_cond_wait(&r->changed, &r->mutex);
	code = r->first_code;
	if (code == HX_CONFIG_ERROR && err)
		*err = r->first_err;
	pthread_mutex_unlock(&r->mutex);
	return code == HX_CONFIG_ERROR ? code : HX_OK;
}

enum hx_code entry_redis_new(const struct redis_url *url, size_t queue_max, struct clock *clock,
			     struct entry_locks **ret_locks, struct hx_error *err)
{
	static const char *const scripts[] = {release_script};
	struct redis_options options = {.url = *url, .clock = clock, .scripts = scripts, .scripts_n = 1};
	struct entry_redis *r = calloc(1, sizeof *r);
	pthread_condattr_t monotonic;
	enum hx_code code;

	if (!r)
		return error_set(err, HX_NO_MEMORY, "entry locks: no memory");
	r->locks = (struct entry_locks){&redis_store, clock};
	r->queue_max = queue_max;
	r->last = &r->first;
	pthread_mutex_init(&r->mutex, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&r->changed, &monotonic);
	pthread_condattr_destroy(&monotonic);

	code = redis_new(&options, &r->redis, err);
	explicit_bzero(&options, sizeof options);
	if (!code && !start(r))
		code = error_set(err, HX_NO_MEMORY, "entry locks: no thread can be started");
	if (code) {
		destroy(r);
		return code;
	}
	code = await_first_try(r, err);
	if (code)
		redis_stop_and_free(&r->locks);
	else
		*ret_locks = &r->locks;
	return code;
}
