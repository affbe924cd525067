/* See notify.h. */
#include "engine/notify.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/id_set.h"
#include "base/thread.h"
#include "db/listen.h"
#include "engine/engine.h"

#define CHANNEL "hapax"
#define EVERYBODY "all"
#define TELL_EVERY_MS 5
#define IDLE_MS 10000
#define AGAIN_MS_MIN 100
#define AGAIN_MS_MAX 2000
#define TOPIC_BYTES 17 /* a blank and 16 digits */
#define OFFER_N_MAX 9999
#define OFFER_BYTES (TOPIC_BYTES + 5)

_Static_assert((NOTIFY_TOPICS_MAX + 1) * TOPIC_BYTES + NOTIFY_OFFERS_MAX * OFFER_BYTES < LISTEN_PAYLOAD_BYTES_MAX,
	       "the topics and offers fit into the payload");

struct notify {
	struct notify_options options;
	const struct lanes *lanes;
	struct listen *listen;
	struct thread thread;
	int bell; /* an eventfd: something was noted, or it is to stop */
	/* The thread's own. */
	bool lost;
	int64_t again_ms;
	struct mono_time told_at;
	int64_t told[NOTIFY_TOPICS_MAX];
	/* Under the mutex. */
	pthread_mutex_t mutex;
	bool stopping;
	bool everybody;
	struct id_set noted;
	size_t offers_n;
	struct offer offers[NOTIFY_OFFERS_MAX];
};

static void ring(const struct notify *n)
{
	uint64_t one = 1;

	(void)!write(n->bell, &one, sizeof one); /* fails only when it has been rung 2^64 times */
}

static bool is_empty(const struct notify *n)
{
	return !n->everybody && n->noted.n == 0 && n->offers_n == 0;
}

void notify_woke(void *context, const int64_t topics[], size_t count)
{
	struct notify *n = context;
	bool was_empty;

	pthread_mutex_lock(&n->mutex);
	was_empty = is_empty(n);
	for (size_t i = 0; i < count && !n->everybody; i++)
		if (!id_set_add(&n->noted, topics[i]) && n->noted.n == NOTIFY_TOPICS_MAX)
			n->everybody = !id_set_has(&n->noted, topics[i]);
	pthread_mutex_unlock(&n->mutex);
	if (was_empty)
		ring(n);
}

static void note_offer(struct notify *n, struct offer offer)
{
	size_t i = 0;

	while (i < n->offers_n && n->offers[i].stand != offer.stand)
		i++;
	if (i == NOTIFY_OFFERS_MAX) {
		n->everybody = true;
		return;
	}
	if (i == n->offers_n)
		n->offers[n->offers_n++] = (struct offer){offer.stand, 0};
	n->offers[i].n += offer.n;
	if (n->offers[i].n > OFFER_N_MAX)
		n->offers[i].n = OFFER_N_MAX;
}

void notify_offered(void *context, struct offer offer)
{
	struct notify *n = context;
	bool was_empty;

	pthread_mutex_lock(&n->mutex);
	was_empty = is_empty(n);
	note_offer(n, offer);
	pthread_mutex_unlock(&n->mutex);
	if (was_empty)
		ring(n);
}

/* ---- telling ---- */

static bool take_noted(struct notify *n, char payload[LISTEN_PAYLOAD_BYTES_MAX + 1])
{
	int at = snprintf(payload, TOPIC_BYTES, "%016" PRIx64, (uint64_t)n->options.token);
	size_t count, offers = 0;
	bool everybody;

	pthread_mutex_lock(&n->mutex);
	everybody = n->everybody;
	n->everybody = false;
	count = id_set_take(&n->noted, n->told);
	for (; offers < n->offers_n && !everybody; offers++)
		at += snprintf(payload + at, OFFER_BYTES + 1, " %" PRIx64 ":%" PRIu32,
			       (uint64_t)n->offers[offers].stand, n->offers[offers].n);
	n->offers_n = 0;
	pthread_mutex_unlock(&n->mutex);
	if (everybody)
		snprintf(payload + at, TOPIC_BYTES, " " EVERYBODY);
	for (size_t i = 0; i < count && !everybody; i++)
		at += snprintf(payload + at, TOPIC_BYTES + 1, " %" PRIx64, (uint64_t)n->told[i]);
	return everybody || count || offers;
}

static void note_everybody(struct notify *n)
{
	LOCKED(&n->mutex);
	n->everybody = true;
}

/* What could not be told is not kept: whoever missed it is woken with everybody, once the session is back. */
static enum hx_code notify_tell(struct notify *n, struct hx_error *err)
{
	char payload[LISTEN_PAYLOAD_BYTES_MAX + 1];
	enum hx_code code;

	if (!take_noted(n, payload))
		return HX_OK;
	n->told_at = clock_mono(n->options.clock);
	code = listen_tell(n->listen, payload, err);
	if (code)
		note_everybody(n);
	else
		atomic_fetch_add(&n->options.metrics->notifications_sent, 1);
	return code;
}

/* ---- hearing ---- */

/* What others tell is checked, not trusted: a topic that is none of ours wakes nobody. */
static void hear(struct notify *n, const char *payload)
{
	char *at;
	uint64_t from = strtoull(payload, &at, 16);
	size_t count = 0;

	if (at == payload || from == (uint64_t)n->options.token)
		return;
	atomic_fetch_add(&n->options.metrics->notifications_heard, 1);
	while (*at == ' ' && strcmp(at + 1, EVERYBODY) != 0 && count < NOTIFY_TOPICS_MAX) {
		char *end;
		int64_t name = (int64_t)strtoull(at + 1, &end, 16);

		if (end == at + 1)
			return;
		if (*end == ':')
			lanes_offer(n->lanes, (struct offer){name, (uint32_t)strtoul(end + 1, &end, 10)});
		else
			n->told[count++] = name;
		at = end;
	}
	if (*at || count)
		lanes_wake(n->lanes, n->told, *at == '\0' ? count : 0);
}

static enum hx_code hear_all(struct notify *n, struct hx_error *err)
{
	const char *payload = NULL;
	enum hx_code code;

	do {
		code = listen_take(n->listen, &payload, err);
		if (!code && payload)
			hear(n, payload);
	} while (!code && payload);
	return code;
}

/* ---- the thread ---- */

static bool is_stopping(struct notify *n)
{
	LOCKED(&n->mutex);
	return n->stopping;
}

static bool has_noted(struct notify *n)
{
	LOCKED(&n->mutex);
	return !is_empty(n);
}

/* Until the bell rings, something comes in (only while connected), or the time is over. */
static void wait_ms(struct notify *n, int64_t ms)
{
	struct pollfd fds[] = {{.fd = n->bell, .events = POLLIN}, {.fd = listen_fd(n->listen), .events = POLLIN}};
	uint64_t rings;

	(void)poll(fds, 2,
		   (int)ms); /* interrupted or not, the caller looks again; a negative descriptor is passed over */
	if (fds[0].revents)
		(void)!read(n->bell, &rings, sizeof rings);
}

/* How long until what is noted may be told; 0: now. */
static int64_t hold_back_ms(const struct notify *n)
{
	int64_t since_ms = (clock_mono(n->options.clock).ns - n->told_at.ns) / 1000000;

	return since_ms >= TELL_EVERY_MS ? 0 : TELL_EVERY_MS - since_ms;
}

static enum hx_code work(struct notify *n, struct hx_error *err)
{
	enum hx_code code = listen_connect(n->listen, err);

	if (!code && n->lost) {
		n->lost = false;
		n->again_ms = AGAIN_MS_MIN;
		log_info(n->options.log, "notifications of other nodes are heard again");
		lanes_wake(n->lanes, NULL, 0);
	}
	if (!code && has_noted(n) && hold_back_ms(n) == 0)
		code = notify_tell(n, err);
	/* Last: what came in while we told has left the socket, and would not wake us any more. */
	return code ? code : hear_all(n, err);
}

static void rest_lost(struct notify *n, const struct hx_error *err)
{
	struct mono_time until = mono_add_ms(clock_mono(n->options.clock), n->again_ms);

	if (!n->lost)
		log_warn(n->options.log, "notifications of other nodes are not heard: their work is found by polling",
			 log_text("detail", err->detail));
	n->lost = true;
	note_everybody(n);
	while (!is_stopping(n) && clock_mono(n->options.clock).ns < until.ns)
		wait_ms(n, n->again_ms);
	n->again_ms = 2 * n->again_ms < AGAIN_MS_MAX ? 2 * n->again_ms : AGAIN_MS_MAX;
}

static void *notify_run(void *context)
{
	struct notify *n = context;
	struct hx_error err;

	while (!is_stopping(n)) {
		if (work(n, &err))
			rest_lost(n, &err);
		else
			wait_ms(n, has_noted(n) ? hold_back_ms(n) : IDLE_MS);
	}
	if (!n->lost)
		(void)notify_tell(n, &err); /* the last hints: others look by time as well */
	return NULL;
}

/* ---- from outside ---- */

enum hx_code notify_new(const struct notify_options *options, struct notify **ret_notify, struct hx_error *err)
{
	struct db_options db = {.url = options->url, .clock = options->clock};
	struct notify *n = calloc(1, sizeof *n);
	enum hx_code code;

	if (!n)
		return error_set(err, HX_NO_MEMORY, "notifications");
	n->options = *options;
	n->again_ms = AGAIN_MS_MIN;
	pthread_mutex_init(&n->mutex, NULL);
	n->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	code = id_set_init(&n->noted, NOTIFY_TOPICS_MAX);
	if (code || n->bell < 0)
		code = error_set(err, code ? code : HX_INTERNAL, "notifications cannot be set up");
	else
		code = listen_open(&db, CHANNEL, &n->listen, err);
	return HAND_OVER(code, n, notify_free, ret_notify);
}

enum hx_code notify_start(struct notify *notify, const struct lanes *lanes, struct hx_error *err)
{
	notify->lanes = lanes;
	return thread_start(&notify->thread, notify_run, notify, "the thread of notifications", err);
}

void notify_stop(struct notify *notify)
{
	if (!notify || !notify->thread.started)
		return;
	pthread_mutex_lock(&notify->mutex);
	notify->stopping = true;
	pthread_mutex_unlock(&notify->mutex);
	ring(notify);
	thread_join(&notify->thread);
}

void notify_free(struct notify *notify)
{
	if (!notify)
		return;
	notify_stop(notify);
	listen_close(notify->listen);
	if (notify->bell >= 0)
		close(notify->bell);
	id_set_release(&notify->noted);
	pthread_mutex_destroy(&notify->mutex);
	free(notify);
}
