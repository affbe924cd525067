/* See api_changes.h. */
#include "api/api_changes.h"

#include <stdio.h>
#include <stdlib.h>

#include "api/api.h"
#include "base/thread.h"
#include "serve/inner.h"
#include "task/lanes.h"

#define LOOK_MS 500
#define SIGN_OF_LIFE_MS 15000 /* so that proxies, and we, notice who has gone */
#define MARK_BYTES 64

struct stream_of_changes {
	struct http_exchange *exchange;
	struct mono_time ends;
	uint64_t tenant;
};

struct changes {
	struct api *api;
	struct thread thread;
	int64_t process; /* tells this one's marks from those of others */
	/* Under the mutex. */
	struct monitor monitor;
	bool stopping;
	size_t n;
	struct stream_of_changes streams[CHANGES_STREAMS_MAX];
};

/* ---- the mark ---- */

static void write_mark(const struct changes *changes, char ret_mark[MARK_BYTES])
{
	const struct engine_parts *parts = engine_parts(changes->api->engine);
	struct lane_stats stats;

	lanes_read_stats(parts->lanes, &stats);
	snprintf(ret_mark, MARK_BYTES, "%llx-%llx", (unsigned long long)changes->process,
		 (unsigned long long)(stats.group.changes + atomic_load(&parts->metrics->notifications_heard)));
}

/* ---- streams; all of these under the mutex ---- */

/* False: it is not read, or nobody is there. */
static bool changes_say(struct http_exchange *exchange, const char *words)
{
	struct slice text = slice_str(words);

	return !http_exchange_gone(exchange) && http_stream_write(exchange, text) == text.n;
}

static bool changes_tell(struct http_exchange *exchange, const char *mark)
{
	char event[2 * MARK_BYTES + 32];

	snprintf(event, sizeof event, "id: %s\ndata: %s\n\n", mark, mark);
	return changes_say(exchange, event);
}

static void drop_stream(struct changes *changes, size_t i)
{
	http_stream_end(changes->streams[i].exchange);
	changes->streams[i] = changes->streams[--changes->n];
}

/* words NULL: an event with this mark. */
static void tell_all(struct changes *changes, const char *mark, const char *words)
{
	struct mono_time now = clock_mono(clock_system());

	for (size_t i = 0; i < changes->n;) {
		struct stream_of_changes *stream = &changes->streams[i];
		bool told = words ? changes_say(stream->exchange, words) : changes_tell(stream->exchange, mark);

		if (told && now.ns < stream->ends.ns)
			i++;
		else
			drop_stream(changes, i);
	}
}

static void drop_all(struct changes *changes)
{
	while (changes->n)
		drop_stream(changes, 0);
}

/* ---- the thread ---- */

static void *changes_run(void *context)
{
	struct changes *changes = context;
	char told[MARK_BYTES] = "", mark[MARK_BYTES];
	int64_t silent_ms = 0;

	LOCKED(&changes->monitor.mutex);
	while (!changes->stopping) {
		if (!changes->n) {
			monitor_wait(&changes->monitor);
			continue;
		}
		if (!atomic_load(&changes->api->ready)) /* the server stops, and waits for them */
			drop_all(changes);
		write_mark(changes, mark);
		if (strcmp(mark, told) != 0) {
			memcpy(told, mark, sizeof told);
			tell_all(changes, mark, /* words= */ NULL);
			silent_ms = 0;
		} else if (silent_ms >= SIGN_OF_LIFE_MS) {
			tell_all(changes, /* mark= */ NULL, ":\n\n");
			silent_ms = 0;
		}
		for (struct mono_time until = time_in_ms(LOOK_MS); !changes->stopping;)
			if (!monitor_wait_until(&changes->monitor, until))
				break;
		silent_ms += LOOK_MS;
	}
	drop_all(changes);
	return NULL;
}

struct changes *changes_new(struct api *api)
{
	struct changes *changes = calloc(1, sizeof *changes);
	struct hx_error unused;

	if (!changes)
		return NULL;
	changes->api = api;
	changes->process = clock_wall(clock_system()).ms;
	monitor_init(&changes->monitor);
	if (!thread_start(&changes->thread, changes_run, changes, "the thread of changes", &unused))
		return changes;
	changes_free(changes);
	return NULL;
}

void changes_free(struct changes *changes)
{
	if (!changes)
		return;
	monitor_stop(&changes->monitor, &changes->stopping, &changes->thread);
	monitor_release(&changes->monitor);
	free(changes);
}

/* ---- a call ---- */

/* As everything that workspaces share: none takes another place unless more are free than it has. */
static bool changes_has_room(const struct changes *changes, uint64_t tenant)
{
	size_t own = 0;

	for (size_t i = 0; i < changes->n; i++)
		own += changes->streams[i].tenant == tenant;
	return own < CHANGES_STREAMS_MAX - changes->n;
}

static void start_stream(struct changes *changes, struct http_exchange *exchange, uint64_t tenant)
{
	const struct wire_field fields[] = {
		{slice_str("Content-Type"), slice_str("text/event-stream")},
		{slice_str("Cache-Control"), slice_str("no-store")},
		{slice_str("X-Content-Type-Options"), slice_str("nosniff")},
		{slice_str("X-Accel-Buffering"), slice_str("no")}, /* for proxies that would collect it */
	};
	struct stream_of_changes stream = {exchange, mono_add_ms(clock_mono(clock_system()), CHANGES_MS), tenant};
	char mark[MARK_BYTES];

	write_mark(changes, mark);
	http_stream_start(exchange,
			  &(struct http_answer){.status = 200, .fields = {fields, sizeof fields / sizeof *fields}},
			  /* length= */ -1, /* room= */ NULL, /* data= */ NULL);
	changes->streams[changes->n++] = stream;
	if (!changes_tell(exchange, mark))
		drop_stream(changes, changes->n - 1);
	monitor_wake_all(&changes->monitor);
}

void api_changes(struct http_call *call)
{
	struct changes *changes = api_of(call)->changes;
	uint64_t tenant = unit_tenant(api_workspace(call));

	if (!changes || http_exchange_inner(call->exchange) || slice_is(call->request->wire.method, "HEAD")) {
		api_refuse(call, HX_NOT_IMPLEMENTED, "changes are streamed by hapax serve, to GET");
		return;
	}
	http_exchange_do_not_time(call->exchange);
	LOCKED(&changes->monitor.mutex);
	if (changes->stopping || !atomic_load(&api_of(call)->ready))
		api_refuse(call, HX_STOPPING, /* detail= */ NULL);
	else if (!changes_has_room(changes, tenant))
		api_refuse(call, HX_BUSY, "too many pages are open");
	else
		start_stream(changes, call->exchange, tenant);
}
