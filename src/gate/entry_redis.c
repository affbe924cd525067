/*
 * Entry locks in Redis: SET name token NX PX ttl, and a script that deletes the key only if it holds the token. A
 * thread sends them (redis_worker.h), so nobody else ever waits for Redis.
 *
 * A take that was lost is not repeated: found taken the second time, it could not tell itself from another. It may be
 * ours, so its release is sent. And nothing is taken at the end, where nobody could send the release any more.
 */
#include <stdio.h>
#include <stdlib.h>

#include "gate/entry_store.h"

#define KEY_PREFIX "hapax:entry:"

static const char release_script[] = "if redis.call('GET', KEYS[1]) == ARGV[1] then"
				     " return redis.call('DEL', KEYS[1]) else return 0 end";

struct entry_redis {
	struct entry_locks locks;
	struct redis_worker worker;
	size_t queue_max;
};

static struct entry_ticket *ticket_of(const struct redis_errand *errand)
{
	return (struct entry_ticket *)((char *)errand - offsetof(struct entry_ticket, errand));
}

static struct slice key_of(const struct entry_ticket *ticket, char key[sizeof KEY_PREFIX + ENTRY_NAME_BYTES])
{
	int n = snprintf(key, sizeof KEY_PREFIX + ENTRY_NAME_BYTES, KEY_PREFIX "%s", ticket->lock.name);

	return slice_of(key, (size_t)n);
}

static void send_ticket(struct redis *redis, const struct redis_errand *errand)
{
	const struct entry_ticket *ticket = ticket_of(errand);
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
static enum hx_code release_again(struct redis *redis, const struct redis_errand *errand, redisReply **ret_reply)
{
	const struct entry_ticket *ticket = ticket_of(errand);
	char key_text[sizeof KEY_PREFIX + ENTRY_NAME_BYTES];
	struct slice key = key_of(ticket, key_text), token = slice_str(ticket->lock.token);

	if (ticket->state == TICKET_TAKING) /* which is no script: such a server makes no sense */
		return HX_STORE_UNAVAILABLE;
	return redis_run_script(redis, 0, /* keys_n= */ 1, 2, (const struct slice[]){key, token}, ret_reply,
				/* err= */ NULL);
}

/* What could not be released expires. */
static void entry_redis_answer(struct redis_errand *errand, const redisReply *reply, bool maybe_done)
{
	struct entry_ticket *ticket = ticket_of(errand);

	if (ticket->state == TICKET_RELEASING)
		entry_ticket_released(ticket);
	else if (!reply)
		entry_ticket_taken(ticket, HX_STORE_UNAVAILABLE, /* maybe_ours= */ maybe_done);
	else /* +OK when it was set, nil when somebody has it */
		entry_ticket_taken(ticket, reply->type == REDIS_REPLY_STATUS ? HX_OK : HX_ENTRY_LOCKED,
				   /* maybe_ours= */ false);
}

static const struct redis_worker_kind entry_kind = {
	.send = send_ticket, .run = release_again, .answer = entry_redis_answer};

static void redis_queue(struct entry_locks *locks, struct entry_ticket *ticket)
{
	struct entry_redis *r = (struct entry_redis *)locks;

	ticket->errand = (struct redis_errand){.not_at_end = ticket->state == TICKET_TAKING};
	if (!redis_worker_push(&r->worker, &ticket->errand, r->queue_max))
		entry_redis_answer(&ticket->errand, /* reply= */ NULL, /* maybe_done= */ false);
}

static void redis_stop_and_free(struct entry_locks *locks)
{
	struct entry_redis *r = (struct entry_redis *)locks;

	redis_worker_release(&r->worker);
	free(r);
}

static const struct entry_store redis_store = {
	.name = "redis",
	.take = redis_queue,
	.release = redis_queue,
	.free = redis_stop_and_free,
};

enum hx_code entry_redis_new(const struct redis_url *url, size_t queue_max, struct clock *clock,
			     struct entry_locks **ret_locks, struct hx_error *err)
{
	static const char *const scripts[] = {release_script};
	struct redis_options options = {.url = *url, .clock = clock, .scripts = scripts, .scripts_n = 1};
	struct entry_redis *r = calloc(1, sizeof *r);
	enum hx_code code;

	if (r) {
		r->locks = (struct entry_locks){&redis_store, clock};
		r->queue_max = queue_max;
		code = redis_worker_init(&r->worker, &entry_kind, &options, /* needed= */ false, err);
	} else {
		code = error_set(err, HX_NO_MEMORY, "entry locks: no memory");
	}
	explicit_bzero(&options, sizeof options);
	if (!code)
		code = redis_worker_start(&r->worker, err);
	if (!code)
		*ret_locks = &r->locks;
	else
		free(r);
	return code;
}
