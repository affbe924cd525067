/*
 * One connection to Redis: what the entry locks and the gate's store share.
 *
 *                 redis_connect: (ask a Sentinel,) resolve, connect, (TLS,) AUTH, SELECT, SCRIPT LOAD
 *        LOST ──────────────────────────────────────────────────────────────▶ READY ◀──┐
 *         ▲ │                                                                  │ │     │ all replies read
 *         └─┘ refused: not tried again before redis_connect_after()            │ └─────┘
 *         ▲                                                                    │ redis_send…, redis_receive…
 *         └──────── broken, silent for timeout_ms, or not the primary ─────────┘
 *
 * Commands are pipelined: send several, then receive as many replies, in the same order. One pipeline has
 * timeout_ms in all, counted from its first command. What was sent when a connection is lost may have been
 * carried out: that is for the caller to reckon with.
 *
 * hiredis takes the replies apart; the socket is ours, because hiredis 0.14 writes without MSG_NOSIGNAL, leaks its
 * descriptor into programs that are started, and counts its timeout afresh with every byte that comes.
 *
 * A connection belongs to one thread at a time. redis_connect() takes at most twice timeout_ms, once to reach
 * the server and once for the opening words (with Sentinels once more, for all of them together), and the time of the resolver,
 * which nobody can bound: give it an address or a name that resolves quickly. No error ever repeats a password.
 *
 * With Sentinels the primary is asked for whenever a connection is made, and asked itself whether it is one: a connection that is lost,
 * or to a server that has become a replica (READONLY), leads to the new primary by itself.
 */
#pragma once

#ifdef HX_SLIM /* no hiredis: only the texts of URLs are of use */
typedef struct redisReply redisReply;
#else
#include <hiredis.h>
#endif
#include <stdbool.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/slice.h"

#define REDIS_TIMEOUT_MS 500
#define REDIS_BACKOFF_MS_MIN 50 /* doubled with each failure */
#define REDIS_BACKOFF_MS_MAX 2000
#define REDIS_SCRIPTS_MAX 16
#define REDIS_ARGS_MAX 16
#define REDIS_SEND_BYTES_MAX (64u << 20) /* one pipeline */
#define REDIS_SECRET_BYTES_MAX 512
#define REDIS_URL_BYTES_MAX 2048
#define REDIS_DB_MAX 1000000
#define REDIS_SENTINELS_MAX 8
#define REDIS_PATH_BYTES_MAX 256

struct redis_place {
	char host[256]; /* a name or an address, IPv6 without its brackets */
	char port[6];
};

enum redis_kind { REDIS_TCP, REDIS_UNIX, REDIS_SENTINEL };

/*
 *   redis://[[user]:password@]host[:port][/db]
 *   redis+unix://[[user]:password@]/path[?db=N]
 *   redis+sentinel://[[user]:password@]host[:port][,host[:port]…]/name[/db][?sentinel_password=…]
 *   rediss://…, rediss+sentinel://…   with TLS: ?ca=FILE, and for servers that want to know who asks &cert=FILE&key=FILE
 *
 * user, password and all values after the ? with %XX; port 6379 (of Sentinels 26379) and db 0 where they are absent.
 */
struct redis_url {
	enum redis_kind kind;
	bool tls;
	struct redis_place at; /* REDIS_TCP */
	struct redis_place sentinels[REDIS_SENTINELS_MAX];
	size_t sentinels_n;
	char name[REDIS_PATH_BYTES_MAX]; /* of the primary, as Sentinels call it */
	char path[108];                  /* REDIS_UNIX */
	char ca[REDIS_PATH_BYTES_MAX], cert[REDIS_PATH_BYTES_MAX], key[REDIS_PATH_BYTES_MAX];
	char user[REDIS_SECRET_BYTES_MAX + 1];
	char password[REDIS_SECRET_BYTES_MAX + 1]; /* empty: none */
	char sentinel_password[REDIS_SECRET_BYTES_MAX + 1];
	int db;
};

/* Does it begin like one of these? */
bool redis_url_is(const char *text);

/* HX_CONFIG_ERROR, the detail naming the part that is wrong but never its text, which may be a piece of a password. */
enum hx_code redis_url_parse(const char *text, struct redis_url *ret_url, struct hx_error *err) HX_MUST_CHECK;

struct redis;

struct redis_options {
	struct redis_url url;
	struct clock *clock;
	int64_t timeout_ms; /* of one pipeline, and of reaching the server; 0: REDIS_TIMEOUT_MS */
	/* Lua texts that outlive the connection. They are loaded whenever it is made, and called by their index. */
	const char *const *scripts;
	size_t scripts_n;
};

/* Does not connect yet. */
enum hx_code redis_new(const struct redis_options *options, struct redis **ret_redis,
		       struct hx_error *err) HX_MUST_CHECK;
/* Takes NULL. */
void redis_free(struct redis *redis);

/* From now on no wait goes past this moment; ns 0: timeout_ms alone counts. */
void redis_wait_until(struct redis *redis, struct mono_time by);
/*
 * Before each pipeline: looks whether the connection is still there, and makes it anew if not.
 * HX_STORE_UNAVAILABLE: it cannot be reached, or it is too early to try again. HX_CONFIG_ERROR: it answers and
 * refuses: the password, the database, the right to load scripts.
 */
enum hx_code redis_connect(struct redis *redis, struct hx_error *err) HX_MUST_CHECK;
bool redis_is_connected(const struct redis *redis);
/* Of a connection that is lost: when redis_connect() will try again. */
struct mono_time redis_connect_after(const struct redis *redis);

/* Only when connected. A failure to send shows when the reply is received. */
void redis_send(struct redis *redis, size_t args_n, const struct slice args[]);
/* EVALSHA; the first keys_n of the args are keys. */
void redis_send_script(struct redis *redis, size_t script, size_t keys_n, size_t args_n, const struct slice args[]);
#define REDIS_SEND(redis, ...)                                                                                         \
	redis_send(redis, sizeof((const struct slice[]){__VA_ARGS__}) / sizeof(struct slice),                          \
		   (const struct slice[]){__VA_ARGS__})
/*
 * The next reply, to be freed with freeReplyObject(); never one of type REDIS_REPLY_ERROR, which become codes:
 *   HX_NOT_FOUND          the script has gone from the server's cache: redis_run_script() brings it back
 *   HX_STORE_UNAVAILABLE  any other error, and a lost connection (see redis_is_connected())
 */
enum hx_code redis_receive(struct redis *redis, redisReply **ret_reply, struct hx_error *err) HX_MUST_CHECK;
/* A pipeline of one: EVALSHA, and EVAL if the server does not know the script. Not between other commands. */
enum hx_code redis_run_script(struct redis *redis, size_t script, size_t keys_n, size_t args_n,
			      const struct slice args[], redisReply **ret_reply, struct hx_error *err) HX_MUST_CHECK;
