/*
 * Gate records in Redis, shared by all gates that use the same database there. Redis 6 or later.
 *
 *   hapax:gate:HEX of the key ──▶ hash { token, print, caller, created, lease, hold, taken, text, endpoint, about, response }
 *   hapax:gate:held           ──▶ sorted set of those that are PROCESSING and hold, by the end of their lease
 *
 * The set follows the records; a record is the truth. Whoever meets one that is held puts it in again (version 0.1 had no such set),
 * and who counts takes out what is not held any more (somebody has deleted or evicted it, or an older gate has ended it), some of
 * them at each count.
 *
 * Each ask is a script on that one key (and the set, which says how many are held without a walk), so it is one atomic step, and the time in it is the server's. A record without a
 * response is PROCESSING. Its end is the key's expiry, which Redis itself keeps: there is nothing to sweep. A record
 * that holds has none until it is completed.
 *
 * A thread sends them (redis_worker.h). What is lost on the way is asked once more; refused, lost again, or not even
 * queued, because the queue is full or the server is down, it is GATE_UNAVAILABLE.
 *
 * Known limits. An ask that was given up on may be carried out later, when a server that was only paused reads what
 * lies in its socket: a record may then be PROCESSING for nobody, until its lease is over (or a person forgets it, with
 * hold). LOOK walks the whole database by SCAN; if Redis resizes its table between two replies, and more than
 * GATE_SIGHTS_MAX records of one key lay in one slice, some of these may be passed over.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/digits.h"
#include "base/hash.h"
#include "gate/redis.h"
#include "gate/store.h"

#define TRIP_MS 1000   /* of one pipeline */
#define QUEUE_MAX 4096 /* asks, and beyond it those that end something */
#define SCAN_COUNT_MAX 1000
#define SCAN_SKIP_BITS 13 /* of the cursor of LOOK; a slice is of SCAN_COUNT_MAX keys and what hangs on the last */
#define KEY_PREFIX "hapax:gate:"
#define KEY_HEX_BYTES (2 * HX_GATE_KEY_BYTES)
#define KEY_BYTES (sizeof KEY_PREFIX - 1 + KEY_HEX_BYTES)
#define HELD_KEY KEY_PREFIX "held"
#define HELD_CHECKED "100" /* of the set, at each count */
#define ARGS_MAX 11
#define SPAN_MS_MAX (INT64_C(1) << 50) /* longer is as good as for ever, and adds up to what a double has exactly */

_Static_assert(HX_GATE_KEY_BYTES == SHA256_BYTES, "a record's key is a digest");

/* ---- the scripts, by op ---- */

#define LUA_NOW                                                                                                        \
	"local time = redis.call('TIME')\n"                                                                            \
	"local now = time[1] * 1000 + math.floor(time[2] / 1000)\n"

/* A record as it is shown, and the key that the client sent; nil: there is none. */
#define LUA_SIGHT                                                                                                      \
	"local function see(key)\n"                                                                                    \
	"  local text, token, endpoint, created, lease, hold, about =\n"                                               \
	"    unpack(redis.call('HMGET', key, 'text', 'token', 'endpoint', 'created', 'lease', 'hold', 'about'))\n"     \
	"  if not token then return nil end\n"                                                                         \
	"  local bytes = -1\n"                                                                                         \
	"  if redis.call('HEXISTS', key, 'response') == 1 then bytes = redis.call('HSTRLEN', key, 'response') end\n"   \
	"  local left = (lease or 0) - now\n"                                                                          \
	"  return {key, token, endpoint or '', tonumber(created), math.max(0, left), tonumber(hold), bytes,\n"         \
	"    math.max(0, -left), about or '', text or ''}, text\n"                                                     \
	"end\n"

/*
 * All answer an array whose first word is the verdict. Numbers are milliseconds, below 2^53, where Lua's and
 * Redis's are exact. `taken` is 1 when a holder before this one may have executed.
 */
/* clang-format off */
static const char *const scripts[] = {
	/* KEYS: record, held. ARGV: token, fingerprint, lease, ttl, hold, key text, endpoint, caller or nothing, about */
	[GATE_ACQUIRE] = LUA_NOW
	"local token, print, created, lease, hold, taken, caller =\n"
	"  unpack(redis.call('HMGET', KEYS[1], 'token', 'print', 'created', 'lease', 'hold', 'taken', 'caller'))\n"
	"local mine = ARGV[8]\n"
	"if token then\n"
	"  created = tonumber(created)\n"
	"  if caller and caller ~= '' then\n"
	"    if mine ~= '' and mine ~= caller then return {'other_caller', created} end\n"
	"    mine = caller\n"
	"  end\n"
	"  if print ~= ARGV[2] then return {'mismatched', created} end\n"
	"  local response = redis.call('HGET', KEYS[1], 'response')\n"
	"  if response then return {'completed', created, response} end\n"
	"  if token ~= ARGV[1] then\n"
	"    if tonumber(lease) > now then return {'in_flight', created, lease - now} end\n"
	"    if hold == '1' then\n"
	"      redis.pcall('ZADD', KEYS[2], lease, KEYS[1])\n" /* without room for it, it is held all the same */
	"      return {'held', created}\n"
	"    end\n"
	"    taken = 1\n"
	"  end\n"
	"else\n"
	"  created, taken = now, 0\n"
	"end\n"
	"redis.call('HSET', KEYS[1], 'token', ARGV[1], 'print', ARGV[2], 'created', created, 'lease', now + ARGV[3],\n"
	"  'hold', ARGV[5], 'taken', taken, 'text', ARGV[6], 'endpoint', ARGV[7], 'caller', mine, 'about', ARGV[9])\n"
	"if ARGV[5] == '1' then\n"
	"  redis.call('PERSIST', KEYS[1])\n"
	"  redis.call('ZADD', KEYS[2], now + ARGV[3], KEYS[1])\n"
	"else\n"
	"  redis.call('PEXPIREAT', KEYS[1], now + ARGV[3] + ARGV[4])\n"
	"  if hold == '1' then redis.call('ZREM', KEYS[2], KEYS[1]) end\n"
	"end\n"
	"return {'acquired', created}\n",

	/* KEYS: record, held. ARGV: token, ttl, response */
	[GATE_COMPLETE] = LUA_NOW
	"local token, hold = unpack(redis.call('HMGET', KEYS[1], 'token', 'hold'))\n"
	"if token ~= ARGV[1] then return {'stale'} end\n"
	"if redis.call('HSETNX', KEYS[1], 'response', ARGV[3]) == 1 then\n"
	"  redis.call('PEXPIREAT', KEYS[1], now + ARGV[2])\n"
	"  if hold == '1' then redis.call('ZREM', KEYS[2], KEYS[1]) end\n"
	"end\n"
	"return {'done'}\n",

	/* KEYS: record, held. ARGV: token */
	[GATE_REMOVE] = LUA_NOW
	"local token, taken, hold = unpack(redis.call('HMGET', KEYS[1], 'token', 'taken', 'hold'))\n"
	"if not token then return {'done'} end\n"
	"if token ~= ARGV[1] or redis.call('HEXISTS', KEYS[1], 'response') == 1 then return {'stale'} end\n"
	"if taken == '1' then\n"
	"  redis.call('HSET', KEYS[1], 'lease', now)\n"
	"  if hold == '1' then redis.call('ZADD', KEYS[2], now, KEYS[1]) end\n"
	"else\n"
	"  redis.call('DEL', KEYS[1])\n"
	"  if hold == '1' then redis.call('ZREM', KEYS[2], KEYS[1]) end\n"
	"end\n"
	"return {'done'}\n",

	/* KEYS: held. ARGV: pattern of the keys, cursor, matches to skip, keys to look at, sights to return at most, key text or
	 * nothing: then those are looked for that nobody is at work on, or (1) that are held, or (2) all of them */
	[GATE_LOOK] = LUA_NOW LUA_SIGHT
	"local page = redis.call('SCAN', ARGV[2], 'MATCH', ARGV[1], 'COUNT', ARGV[4], 'TYPE', 'hash')\n"
	"local met, sights = 0, {}\n"
	"for _, key in ipairs(page[2]) do\n"
	"  local sight, text = see(key)\n"
	"  local open = sight and sight[5] == 0 and sight[7] < 0\n"
	"  if open and sight[6] == 1 then redis.pcall('ZADD', KEYS[1], now - sight[8], key) end\n"
	"  if sight and (ARGV[6] ~= '' and text == ARGV[6] or ARGV[6] == '' and\n"
	"     (ARGV[7] == '2' or open and (ARGV[7] == '0' or sight[6] == 1))) then\n"
	"    met = met + 1\n"
	"    if met > tonumber(ARGV[3]) then\n"
	"      if #sights == tonumber(ARGV[5]) then return {'done', ARGV[2], met - 1, sights} end\n"
	"      sights[#sights + 1] = sight\n"
	"    end\n"
	"  end\n"
	"end\n"
	"return {'done', page[1], 0, sights}\n",

	/* KEYS: record, held. ARGV: token */
	[GATE_FORGET] = LUA_NOW
	"local token, created, lease = unpack(redis.call('HMGET', KEYS[1], 'token', 'created', 'lease'))\n"
	"if not token then return {'absent'} end\n"
	"if token ~= ARGV[1] then return {'stale'} end\n"
	"if tonumber(lease) > now and redis.call('HEXISTS', KEYS[1], 'response') == 0 then\n"
	"  return {'in_flight', tonumber(created), lease - now}\n"
	"end\n"
	"redis.call('DEL', KEYS[1])\n"
	"redis.call('ZREM', KEYS[2], KEYS[1])\n"
	"return {'done'}\n",

	/* KEYS: record, held. ARGV: token, ttl, response or nothing, the token to be completed under */
	[GATE_RESOLVE] = LUA_NOW
	"local token, created, lease = unpack(redis.call('HMGET', KEYS[1], 'token', 'created', 'lease'))\n"
	"local completed = redis.call('HEXISTS', KEYS[1], 'response') == 1\n"
	"if not token then return {'absent'} end\n"
	"if completed and token == ARGV[4] and ARGV[3] ~= '' then return {'done'} end\n"
	"if token ~= ARGV[1] then return {'stale'} end\n"
	"if completed then return {'completed', tonumber(created)} end\n"
	"if tonumber(lease) > now then return {'in_flight', tonumber(created), lease - now} end\n"
	"redis.call('ZREM', KEYS[2], KEYS[1])\n"
	"if ARGV[3] == '' then\n"
	"  redis.call('DEL', KEYS[1])\n"
	"else\n"
	"  redis.call('HSET', KEYS[1], 'token', ARGV[4], 'response', ARGV[3])\n"
	"  redis.call('PEXPIREAT', KEYS[1], now + ARGV[2])\n"
	"end\n"
	"return {'done'}\n",

	/*
	 * KEYS: held. ARGV: sights to return at most. One page of them is checked, which one hangs on the millisecond: who
	 * asks every ten seconds would meet the same ones again and again by anything that is counted in seconds.
	 */
	[GATE_TALLY] = LUA_NOW LUA_SIGHT
	"local function is_held(key)\n"
	"  local token, hold = unpack(redis.call('HMGET', key, 'token', 'hold'))\n"
	"  if token and hold == '1' and redis.call('HEXISTS', key, 'response') == 0 then return true end\n"
	"  redis.call('ZREM', KEYS[1], key)\n"
	"  return false\n"
	"end\n"
	"local n, at = redis.call('ZCARD', KEYS[1]), 0\n"
	"if n > " HELD_CHECKED " then at = now % math.ceil(n / " HELD_CHECKED ") * " HELD_CHECKED " end\n"
	"for _, key in ipairs(redis.call('ZRANGE', KEYS[1], at, at + " HELD_CHECKED " - 1)) do is_held(key) end\n"
	"local sights = {}\n"
	"for _, key in ipairs(redis.call('ZREVRANGEBYSCORE', KEYS[1], now, '-inf', 'LIMIT', 0, ARGV[1])) do\n"
	"  if is_held(key) then sights[#sights + 1] = see(key) end\n"
	"end\n"
	"return {'done', redis.call('ZCOUNT', KEYS[1], '-inf', now), 0, sights}\n",
};
/* clang-format on */

/* An ask in the words of its script. */
struct call {
	char key[KEY_BYTES + 1];
	char numbers[4][24];
	size_t numbers_n;
	size_t keys_n, args_n;
	struct slice args[ARGS_MAX];
};

static void add_arg(struct call *call, struct slice arg)
{
	ASSERT(call->args_n < ARGS_MAX);
	call->args[call->args_n++] = arg;
}

static void store_redis_add_number(struct call *call, int64_t number)
{
	char *text = call->numbers[call->numbers_n++];

	add_arg(call, slice_of(text, (size_t)snprintf(text, sizeof call->numbers[0], "%lld", (long long)number)));
}

static void add_span(struct call *call, int64_t ms)
{
	store_redis_add_number(call, ms < SPAN_MS_MAX ? ms : SPAN_MS_MAX);
}

static void store_redis_add_key(struct call *call, const unsigned char *key)
{
	memcpy(call->key, KEY_PREFIX, sizeof KEY_PREFIX - 1);
	sha256_hex(key, call->key + sizeof KEY_PREFIX - 1);
	add_arg(call, slice_of(call->key, KEY_BYTES));
	add_arg(call, slice_str(HELD_KEY));
	call->keys_n = 2;
}

static void spell_acquire(const struct gate_ask *ask, struct call *call)
{
	add_arg(call, slice_of(ask->claim.fingerprint, HX_GATE_KEY_BYTES));
	add_span(call, ask->claim.lease_ms);
	add_span(call, ask->claim.ttl_ms);
	add_arg(call, slice_str(ask->claim.hold ? "1" : "0"));
	add_arg(call, ask->key_text);
	add_arg(call, ask->endpoint);
	add_arg(call, gate_claim_caller(&ask->claim));
	add_arg(call, ask->about);
}

static void spell_look(const struct gate_ask *ask, struct call *call)
{
	static const char *const sought[] = {[GATE_SEEK_OPEN] = "0", [GATE_SEEK_HELD] = "1", [GATE_SEEK_ALL] = "2"};

	add_arg(call, slice_str(KEY_PREFIX "*"));
	store_redis_add_number(call, ask->after >> SCAN_SKIP_BITS);
	store_redis_add_number(call, ask->after & ((1 << SCAN_SKIP_BITS) - 1));
	store_redis_add_number(call, ask->budget < SCAN_COUNT_MAX ? ask->budget : SCAN_COUNT_MAX);
	store_redis_add_number(call, GATE_SIGHTS_MAX);
	add_arg(call, ask->key_text);
	add_arg(call, slice_str(sought[ask->sought]));
}

/* *ret_call points into itself and into the ask. */
static void spell(const struct gate_ask *ask, struct call *ret_call)
{
	*ret_call = (struct call){0};
	if (ask->op == GATE_LOOK || ask->op == GATE_TALLY) {
		add_arg(ret_call, slice_str(HELD_KEY));
		ret_call->keys_n = 1;
		if (ask->op == GATE_LOOK)
			spell_look(ask, ret_call);
		else
			store_redis_add_number(ret_call, GATE_SIGHTS_MAX);
		return;
	}
	store_redis_add_key(ret_call, ask->claim.key);
	add_arg(ret_call, slice_of(ask->claim.token, HX_GATE_TOKEN_BYTES));
	if (ask->op == GATE_ACQUIRE)
		spell_acquire(ask, ret_call);
	if (ask->op == GATE_COMPLETE || ask->op == GATE_RESOLVE) {
		add_span(ret_call, ask->claim.ttl_ms);
		add_arg(ret_call, ask->response);
	}
	if (ask->op == GATE_RESOLVE)
		add_arg(ret_call, slice_of(ask->resolver, sizeof ask->resolver));
}

/* ---- replies ---- */

static bool is_array(const redisReply *reply, size_t n)
{
	return reply->type == REDIS_REPLY_ARRAY && reply->elements >= n;
}

/* Of an element that may not be there or be of another type: 0. */
static int64_t number_at(const redisReply *array, size_t i)
{
	return i < array->elements && array->element[i]->type == REDIS_REPLY_INTEGER ? array->element[i]->integer : 0;
}

static struct slice text_at(const redisReply *array, size_t i)
{
	return i < array->elements && array->element[i]->type == REDIS_REPLY_STRING
		       ? slice_of(array->element[i]->str, array->element[i]->len)
		       : slice_of(NULL, 0);
}

static enum gate_verdict verdict_of(struct slice word)
{
	static const char *const words[] = {
		[GATE_ACQUIRED] = "acquired",     [GATE_COMPLETED] = "completed",
		[GATE_IN_FLIGHT] = "in_flight",   [GATE_HELD] = "held",
		[GATE_MISMATCHED] = "mismatched", [GATE_OTHER_CALLER] = "other_caller",
		[GATE_STALE] = "stale",           [GATE_DONE] = "done",
		[GATE_ABSENT] = "absent",
	};

	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (slice_is(word, words[i]))
			return (enum gate_verdict)i;
	return GATE_UNAVAILABLE; /* not our script's */
}

static bool store_redis_read_key(struct slice text, unsigned char ret_key[HX_GATE_KEY_BYTES])
{
	return text.n == KEY_BYTES && hex_read(slice_from(text, sizeof KEY_PREFIX - 1), HX_GATE_KEY_BYTES, ret_key);
}

/* {key, token, endpoint, created, what is left of the lease, hold, bytes of the response or -1, for how long the lease has
 * been over, about, key text}; false: not ours. */
static bool read_sight(const redisReply *sight, struct gate_sight *ret_sight)
{
	struct slice token;
	int64_t bytes;

	if (!is_array(sight, 10))
		return false;
	token = text_at(sight, 1);
	bytes = number_at(sight, 6);
	*ret_sight = (struct gate_sight){.state = GATE_COMPLETED, .created_ms = number_at(sight, 3)};
	if (!store_redis_read_key(text_at(sight, 0), ret_sight->key) || token.n != HX_GATE_TOKEN_BYTES)
		return false;
	memcpy(ret_sight->token, token.p, token.n);
	gate_sight_describe(ret_sight, text_at(sight, 2), text_at(sight, 8), text_at(sight, 9));
	if (bytes >= 0) {
		ret_sight->response_bytes = bytes;
		return true;
	}
	ret_sight->lease_left_ms = number_at(sight, 4);
	ret_sight->over_ms = number_at(sight, 7);
	ret_sight->state = ret_sight->lease_left_ms == 0 && number_at(sight, 5) ? GATE_HELD : GATE_IN_FLIGHT;
	return true;
}

static void read_array_of_sights(const redisReply *array, struct gate_reply *reply)
{
	for (size_t i = 0; i < array->elements && reply->sights_n < GATE_SIGHTS_MAX; i++)
		reply->sights_n += read_sight(array->element[i], &reply->sights[reply->sights_n]);
}

static bool has_sights(const redisReply *array)
{
	return is_array(array, 4) && array->element[3]->type == REDIS_REPLY_ARRAY;
}

/* {"done", how many are held, 0, sights} */
static void read_tally(const redisReply *array, struct gate_reply *reply)
{
	if (!has_sights(array)) {
		reply->verdict = GATE_UNAVAILABLE;
		return;
	}
	reply->held = number_at(array, 1);
	read_array_of_sights(array->element[3], reply);
}

/* {"done", cursor, matches to skip there, sights}. The cursor is a number in decimal, in 64 bits at most. */
static void read_sights(const redisReply *array, struct gate_reply *reply)
{
	char digits[24] = "";
	struct slice cursor = text_at(array, 1);
	unsigned long long at;

	if (cursor.n < sizeof digits)
		memcpy(digits, cursor.p ? cursor.p : "", cursor.n);
	at = strtoull(digits, NULL, 10);
	if (!has_sights(array) || cursor.n == 0 || at > (unsigned long long)INT64_MAX >> SCAN_SKIP_BITS) {
		reply->verdict = GATE_UNAVAILABLE;
		return;
	}
	reply->next = (int64_t)(at << SCAN_SKIP_BITS) | (number_at(array, 2) & ((1 << SCAN_SKIP_BITS) - 1));
	read_array_of_sights(array->element[3], reply);
}

/* The response points into `from`. */
static void read_reply(enum gate_op op, const redisReply *from, struct gate_reply *reply)
{
	if (!is_array(from, 1))
		return;
	reply->verdict = verdict_of(text_at(from, 0));
	if (op == GATE_LOOK) {
		read_sights(from, reply);
		return;
	}
	if (op == GATE_TALLY) {
		read_tally(from, reply);
		return;
	}
	reply->created_ms = number_at(from, 1);
	if (reply->verdict == GATE_IN_FLIGHT)
		reply->lease_left_ms = number_at(from, 2);
	if (reply->verdict == GATE_COMPLETED)
		reply->response = text_at(from, 2);
}

/* ---- the worker's ---- */

static struct gate_ticket *ticket_of(const struct redis_errand *errand)
{
	return (struct gate_ticket *)((char *)errand - offsetof(struct gate_ticket, errand));
}

static void send_ticket(struct redis *redis, const struct redis_errand *errand)
{
	const struct gate_ask *ask = &ticket_of(errand)->ask;
	struct call call;

	spell(ask, &call);
	redis_send_script(redis, ask->op, call.keys_n, call.args_n, call.args);
}

static enum hx_code run_ticket(struct redis *redis, const struct redis_errand *errand, redisReply **ret_reply)
{
	const struct gate_ask *ask = &ticket_of(errand)->ask;
	struct call call;

	spell(ask, &call);
	return redis_run_script(redis, ask->op, call.keys_n, call.args_n, call.args, ret_reply, /* err= */ NULL);
}

/* Without a reply the verdict stays what it was at first, GATE_UNAVAILABLE. */
static void store_redis_answer(struct redis_errand *errand, const redisReply *reply, bool maybe_done)
{
	struct gate_ticket *ticket = ticket_of(errand);

	ticket->reply.certain = !maybe_done;
	if (reply)
		read_reply(ticket->ask.op, reply, &ticket->reply);
	gate_ticket_done(ticket); /* it is not ours any more */
}

static const struct redis_worker_kind ask_kind = {
	.send = send_ticket,
	.run = run_ticket,
	.answer = store_redis_answer,
	.repeats_lost = true,
};

/* ---- the store ---- */

struct gate_redis {
	struct gate_store store;
	struct redis_worker worker;
};

/* CONFIG may be forbidden to us, or unknown to what looks like Redis: then it is not known to be durable. */
static bool config_is(struct redis *redis, const char *name, const char *wanted)
{
	redisReply *reply = NULL;
	bool is;

	if (!redis_is_connected(redis))
		return false;
	REDIS_SEND(redis, slice_str("CONFIG"), slice_str("GET"), slice_str(name));
	if (redis_receive(redis, &reply, /* err= */ NULL) != HX_OK)
		return false;
	is = is_array(reply, 2) && slice_is(text_at(reply, 1), wanted);
	freeReplyObject(reply);
	return is;
}

/* Whatever was acknowledged is on disk, and nothing is thrown out to make room. */
static bool is_durable(struct redis *redis)
{
	return config_is(redis, "appendonly", "yes") && config_is(redis, "appendfsync", "always") &&
	       config_is(redis, "maxmemory-policy", "noeviction");
}

/* What ends something that has begun is not kept out by others who want to begin: there is one for each of those. */
static void redis_ask(struct gate_store *store, struct gate_ticket *ticket)
{
	struct gate_redis *r = (struct gate_redis *)store;
	bool ends = ticket->ask.op == GATE_COMPLETE || ticket->ask.op == GATE_REMOVE;
	/* Redis removes what has expired by itself. */
	bool nothing_to_do = ticket->ask.op == GATE_SWEEP;

	ticket->reply = (struct gate_reply){.verdict = nothing_to_do ? GATE_DONE : GATE_UNAVAILABLE};
	ticket->errand = (struct redis_errand){.bytes = ticket->ask.response.n + ticket->ask.key_text.n,
					       .by = ticket->by};
	if (nothing_to_do || !redis_worker_push(&r->worker, &ticket->errand, ends ? SIZE_MAX : QUEUE_MAX)) {
		ticket->reply.certain = true;
		gate_ticket_done(ticket);
	}
}

static void redis_stop_and_free(struct gate_store *store)
{
	struct gate_redis *r = (struct gate_redis *)store;

	redis_worker_release(&r->worker);
	free(r);
}

static const struct gate_store_kind redis_kind = {.name = "redis", .ask = redis_ask, .free = redis_stop_and_free};

enum hx_code gate_redis_new(const char *url, struct clock *clock, struct gate_store **ret_store, bool *ret_durable,
			    struct hx_error *err)
{
	struct redis_options options = {.clock = clock,
					.timeout_ms = TRIP_MS,
					.scripts = scripts,
					.scripts_n = sizeof scripts / sizeof *scripts};
	struct gate_redis *r = calloc(1, sizeof *r);
	enum hx_code code = r ? HX_OK : error_set(err, HX_NO_MEMORY, "gate: no memory");
	bool durable = false;

	if (!code)
		code = redis_url_parse(url, &options.url, err);
	if (!code)
		code = redis_worker_init(&r->worker, &ask_kind, &options, /* needed= */ true, err);
	explicit_bzero(&options, sizeof options);
	if (!code) {
		r->store = (struct gate_store){.kind = &redis_kind, .clock = clock};
		durable = is_durable(r->worker.redis);
		code = redis_worker_start(&r->worker, err);
	}
	if (code) {
		free(r);
		return code;
	}
	*ret_store = &r->store;
	*ret_durable = durable;
	return HX_OK;
}
