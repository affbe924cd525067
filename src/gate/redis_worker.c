/* See redis_worker.h for the way of an errand, the states and the invariants. */
#include "gate/redis_worker.h"

#include <errno.h>
#include <time.h>

#include "gate/redis.h"

#define PIPELINE_MAX 64
#define PIPELINE_BYTES_MAX (4u << 20) /* a larger one consists of a single errand */

/* ---- a round ---- */

static bool is_late(const struct redis_worker *w, const struct redis_errand *errand)
{
	return errand->by.ns && clock_mono(w->clock).ns >= errand->by.ns;
}

/* The latest moment that somebody of the list can wait for; ns 0: somebody has no limit. */
static struct mono_time latest_by(const struct redis_errand *list)
{
	struct mono_time latest = {0};

	for (; list; list = list->next) {
		if (!list->by.ns)
			return (struct mono_time){0};
		if (list->by.ns > latest.ns)
			latest = list->by;
	}
	return latest;
}

/* After the loss of the connection, or of the script on the server's side. */
static void run_again(struct redis_worker *w, struct redis_errand *errand)
{
	redisReply *reply = NULL;

	if (!is_late(w, errand) && redis_connect(w->redis, /* err= */ NULL) == HX_OK)
		(void)w->kind->run(w->redis, errand, &reply); /* what goes wrong leaves no reply */
	w->kind->answer(errand, reply, /* maybe_done= */ !reply);
	freeReplyObject(reply);
}

static void run_pipeline(struct redis_worker *w, struct redis_errand *list)
{
	struct redis_errand *again[PIPELINE_MAX], *next;
	size_t again_n = 0;

	for (struct redis_errand *errand = list; errand; errand = errand->next)
		w->kind->send(w->redis, errand);
	for (struct redis_errand *errand = list; errand; errand = next) {
		redisReply *reply = NULL;
		enum hx_code code = redis_receive(w->redis, &reply, /* err= */ NULL);

		next = errand->next; /* an answered errand is not ours any more */
		if (code == HX_NOT_FOUND || !redis_is_connected(w->redis))
			again[again_n++] = errand;
		else
			w->kind->answer(errand, reply, /* maybe_done= */ false);
		freeReplyObject(reply);
	}
	for (size_t i = 0; i < again_n; i++)
		if (redis_is_connected(w->redis) || (i == 0 && w->kind->repeats_lost))
			run_again(w, again[i]);
		else
			w->kind->answer(again[i], /* reply= */ NULL, /* maybe_done= */ true);
}

/* Answers those of the list that are not to be sent: all, or those that are late or, at the end, not_at_end. Returns the rest. */
static struct redis_errand *redis_worker_refuse(struct redis_worker *w, struct redis_errand *list, bool all,
						bool stopping)
{
	struct redis_errand *kept = NULL, **end = &kept;

	for (struct redis_errand *errand = list, *next; errand; errand = next) {
		next = errand->next;
		if (all || is_late(w, errand) || (stopping && errand->not_at_end)) {
			w->kind->answer(errand, /* reply= */ NULL, /* maybe_done= */ false);
		} else {
			errand->next = NULL;
			*end = errand;
			end = &errand->next;
		}
	}
	return kept;
}

/* What the worker has found out about the server. */
static void note_server(struct redis_worker *w, bool up)
{
	LOCKED(&w->monitor.mutex);
	w->up = up;
}

static void serve(struct redis_worker *w, struct redis_errand *list)
{
	bool up;

	redis_wait_until(w->redis, latest_by(list));
	up = redis_connect(w->redis, /* err= */ NULL) == HX_OK;
	note_server(w, up); /* before the answers: whoever errands again then is not queued */
	if (!up) {
		(void)redis_worker_refuse(w, list, /* all= */ true, /* stopping= */ false);
		return;
	}
	run_pipeline(w, list);
	if (!redis_is_connected(w->redis))
		note_server(w, false);
}

/* ---- the thread ---- */

/* Does this one go along with n others? Everything does when there is nobody to send it to. */
static bool joins(const struct redis_worker *w, const struct redis_errand *errand, size_t n, size_t bytes)
{
	return !w->up || n == 0 || (n < PIPELINE_MAX && bytes + errand->bytes <= PIPELINE_BYTES_MAX);
}

/* Takes the next pipeline out of the queue. */
static struct redis_errand *pop_some(struct redis_worker *w)
{
	struct redis_errand *list = w->first, **end = &w->first;
	size_t bytes = 0;

	for (size_t n = 0; *end && joins(w, *end, n, bytes); n++, w->n--) {
		bytes += (*end)->bytes;
		end = &(*end)->next;
	}
	if (end == &w->first)
		return NULL;
	w->first = *end;
	*end = NULL;
	if (!w->first)
		w->last = &w->first;
	return list;
}

/* Waits for work, for the end, or for the time to try to connect again. */
static void wait_for_work(struct redis_worker *w)
{
	while (!w->stopping && !w->first) {
		if (w->up) {
			monitor_wait(&w->monitor);
		} else {
			int64_t ns = redis_connect_after(w->redis).ns - clock_mono(w->clock).ns;
			int64_t until = clock_mono(clock_system()).ns + (ns > 0 ? ns : 0);

			if (!monitor_wait_until(&w->monitor, (struct mono_time){until}))
				return;
		}
	}
}

static void *work(void *context)
{
	struct redis_worker *w = context;
	bool stopping, more, up;

	do {
		struct redis_errand *list;

		monitor_lock(&w->monitor);
		wait_for_work(w);
		list = pop_some(w);
		more = w->first;
		stopping = w->stopping;
		up = w->up;
		monitor_unlock(&w->monitor);
		list = redis_worker_refuse(w, list, /* all= */ !up, stopping);
		if (list || !stopping)
			serve(w, list);
	} while (!stopping || more);
	return NULL;
}

/* ---- the callers ---- */

bool redis_worker_push(struct redis_worker *w, struct redis_errand *errand, size_t queue_max)
{
	LOCKED(&w->monitor.mutex);
	if (!w->up || w->stopping || w->n >= queue_max)
		return false;
	errand->next = NULL;
	*w->last = errand;
	w->last = &errand->next;
	w->n++;
	monitor_wake_one(&w->monitor);
	return true;
}

static void redis_worker_destroy(struct redis_worker *w)
{
	redis_free(w->redis);
	monitor_release(&w->monitor);
}

enum hx_code redis_worker_init(struct redis_worker *w, const struct redis_worker_kind *kind,
			       const struct redis_options *options, bool needed, struct hx_error *err)
{
	struct hx_error why = {0};
	enum hx_code code;

	*w = (struct redis_worker){.kind = kind, .clock = options->clock, .last = &w->first};
	monitor_init(&w->monitor);

	code = redis_new(options, &w->redis, err);
	if (!code && redis_connect(w->redis, &why) && (needed || why.code == HX_CONFIG_ERROR))
		code = error_set(err, why.code, "%s", why.detail);
	if (code)
		redis_worker_destroy(w);
	return code;
}

enum hx_code redis_worker_start(struct redis_worker *w, struct hx_error *err)
{
	enum hx_code code;

	w->up = redis_is_connected(w->redis);
	code = thread_start(&w->thread, work, w, "redis: a thread", err);
	if (code)
		redis_worker_destroy(w);
	return code;
}

void redis_worker_release(struct redis_worker *w)
{
	monitor_stop(&w->monitor, &w->stopping, &w->thread);
	redis_worker_destroy(w);
}
