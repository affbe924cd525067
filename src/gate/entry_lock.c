/* See entry_lock.h: the life of a ticket. The stores are in entry_memory.c, entry_sql.c and entry_redis.c. */
#include "gate/entry_lock.h"

#include <sys/random.h>

#include "base/digits.h"
#include "base/duration.h"
#include "gate/entry_store.h"

enum hx_code entry_locks_new(const char *url, const struct lanes *lanes, struct clock *clock,
			     struct entry_locks **ret_locks, struct hx_error *err)
{
	struct redis_url redis;
	enum hx_code code;

	if (strcmp(url, "memory:") == 0)
		return entry_memory_new(ENTRY_MEMORY_LOCKS_MAX, clock, ret_locks, err);
	if (strcmp(url, "sql:") == 0)
		return entry_sql_new(lanes, clock, ret_locks, err);
	/* What was given is not repeated: it may hold a password. */
	if (!redis_url_is(url))
		return error_set(err, HX_CONFIG_ERROR,
				 "the entry lock's store is \"memory:\", \"sql:\" (the engine's own store)"
				 " or \"redis://[:password@]host:port/db\"");
	code = redis_url_parse(url, &redis, err);
	if (!code)
		code = entry_redis_new(&redis, ENTRY_REDIS_QUEUE_MAX, clock, ret_locks, err);
	explicit_bzero(&redis, sizeof redis);
	return code;
}

void entry_locks_free(struct entry_locks *locks)
{
	if (locks)
		locks->store->free(locks);
}

/* Digests have one length, so their sequence tells the parts apart whatever these hold. */
static void entry_lock_name_of(const struct entry_key *key, char ret_name[ENTRY_NAME_BYTES])
{
	const struct slice parts[] = {key->workspace, key->workflow, key->entity, key->step};
	uint8_t digests[sizeof parts / sizeof *parts][SHA256_BYTES], digest[SHA256_BYTES];

	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
		sha256(parts[i].p, parts[i].n, digests[i]);
	sha256(digests, sizeof digests, digest);
	sha256_hex(digest, ret_name);
}

static bool make_token(char ret_token[ENTRY_TOKEN_BYTES])
{
	uint8_t bytes[ENTRY_TOKEN_BYTES / 2];

	if (getrandom(bytes, sizeof bytes, 0) != sizeof bytes)
		return false;
	hex_write(bytes, sizeof bytes, ret_token);
	return true;
}

void entry_lock_take(struct entry_locks *locks, struct entry_ticket *ticket, const struct entry_key *key,
		     int64_t ttl_ms)
{
	ASSERT(ticket->state == TICKET_IDLE && ticket->taken && ticket->released);
	ASSERT(ttl_ms >= 1 && ttl_ms <= DURATION_MS_MAX);
	ticket->locks = locks;
	ticket->state = TICKET_TAKING;
	ticket->lock.ttl_ms = ttl_ms;
	entry_lock_name_of(key, ticket->lock.name);
	if (make_token(ticket->lock.token))
		locks->store->take(locks, ticket);
	else
		entry_ticket_taken(ticket, HX_STORE_UNAVAILABLE, /* maybe_ours= */ false);
}

void entry_ticket_taken(struct entry_ticket *ticket, enum hx_code code, bool maybe_ours)
{
	ASSERT(ticket->state == TICKET_TAKING);
	ASSERT(code == HX_OK || code == HX_ENTRY_LOCKED || code == HX_STORE_UNAVAILABLE);
	ticket->state = code == HX_OK || maybe_ours ? TICKET_MAYBE_OURS : TICKET_NOT_OURS;
	ticket->taken(ticket, code);
}

void entry_lock_release(struct entry_ticket *ticket)
{
	bool ours = ticket->state == TICKET_MAYBE_OURS;

	ASSERT(ours || ticket->state == TICKET_NOT_OURS || ticket->state == TICKET_IDLE);
	ticket->state = TICKET_RELEASING;
	if (ours)
		ticket->locks->store->release(ticket->locks, ticket);
	else
		entry_ticket_released(ticket);
}

void entry_ticket_released(struct entry_ticket *ticket)
{
	ASSERT(ticket->state == TICKET_RELEASING);
	ticket->state = TICKET_IDLE;
	ticket->released(ticket);
}
