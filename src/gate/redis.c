/* See redis.h for the states. */
#include "gate/redis.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/excerpt.h"
#include "base/strbuf.h"
#include "base/tls.h"

#define READ_BYTES 16384
#define SHA_BYTES 41

struct redis {
	struct redis_url url;
	struct clock *clock;
	int64_t timeout_ms;
	int fd;                 /* -1: lost */
	struct tls_client *tls; /* NULL: in the clear */
	struct tls_link *link;  /* of this connection */
	size_t sentinel;        /* the one that answered last */
	redisReader *reader;
	struct strbuf out; /* commands that are not yet written */
	size_t written;    /* of out */
	size_t pending;    /* replies that are still to come */
	struct mono_time deadline;
	struct mono_time by; /* of whoever uses it; ns 0: none */
	struct mono_time connect_after;
	int64_t backoff_ms;
	size_t scripts_n;
	struct {
		const char *text;
		char sha[SHA_BYTES]; /* as the server calls it */
	} scripts[REDIS_SCRIPTS_MAX];
};

/* ---- the socket ---- */

static void lose(struct redis *r)
{
	tls_link_free(r->link);
	r->link = NULL;
	if (r->fd >= 0)
		close(r->fd);
	r->fd = -1;
	redisReaderFree(r->reader);
	r->reader = NULL;
	strbuf_reset(&r->out);
	r->written = r->pending = 0;
}

static enum hx_code redis_lost(struct redis *r, const char *why, struct hx_error *err)
{
	lose(r);
	return error_set(err, HX_STORE_UNAVAILABLE, "redis: %s", why);
}

static int ms_left(const struct redis *r)
{
	int64_t until = r->by.ns && r->by.ns < r->deadline.ns ? r->by.ns : r->deadline.ns;
	int64_t ns = until - clock_mono(r->clock).ns;

	return ns <= 0 ? 0 : (int)(ns / 1000000) + 1;
}

void redis_wait_until(struct redis *r, struct mono_time by)
{
	r->by = by;
}

/* Until the socket is ready for one of the events, or the deadline has passed: false. */
static bool await(struct redis *r, short events)
{
	struct pollfd fd = {.fd = r->fd, .events = events};
	int left;

	while ((left = ms_left(r)) > 0)
		if (poll(&fd, 1, left) > 0)
			return true;
	return false;
}

static bool would_block(void)
{
	return errno == EAGAIN || errno == EINTR;
}

/* Writes as much as the socket takes now. */
static bool write_some(struct redis *r)
{
	const char *p = r->out.p + r->written;
	size_t left = r->out.n - r->written;
	ssize_t n = r->link ? tls_link_send(r->link, slice_of(p, left)) : send(r->fd, p, left, MSG_NOSIGNAL);

	if (n > 0)
		r->written += (size_t)n;
	if (r->written == r->out.n) {
		strbuf_reset(&r->out);
		r->written = 0;
	}
	return n > 0 || would_block();
}

enum reading { READ_SOME, READ_WAIT, READ_LOST };

static ssize_t redis_receive_bytes(struct redis *r, char *buffer, size_t n)
{
	return r->link ? tls_link_receive(r->link, buffer, n) : recv(r->fd, buffer, n, 0);
}

static enum reading read_some(struct redis *r)
{
	char bytes[READ_BYTES];
	ssize_t n = redis_receive_bytes(r, bytes, sizeof bytes);

	if (n > 0)
		return redisReaderFeed(r->reader, bytes, (size_t)n) == REDIS_OK ? READ_SOME : READ_LOST;
	return n < 0 && would_block() ? READ_WAIT : READ_LOST;
}

/* Reads while it writes, or two full buffers would wait for each other. TLS may have to write before it can read. */
static enum hx_code next_reply(struct redis *r, redisReply **ret_reply, struct hx_error *err)
{
	void *reply = NULL;

	for (;;) {
		enum reading reading = READ_WAIT;

		if (r->out.n && !write_some(r))
			return redis_lost(r, "the connection was lost", err);
		if (redisReaderGetReply(r->reader, &reply) != REDIS_OK)
			return redis_lost(r, "the reply cannot be understood", err);
		if (reply)
			break;
		reading = read_some(r);
		if (reading == READ_LOST)
			return redis_lost(r, "the connection was lost", err);
		if (reading == READ_WAIT &&
		    !await(r, (short)(POLLIN | (r->out.n ? POLLOUT : 0) | (r->link ? tls_link_events(r->link) : 0))))
			return redis_lost(r, "no answer in time", err);
	}
	r->pending--;
	*ret_reply = reply;
	return HX_OK;
}

/* ---- commands ---- */

static void add_argument(struct redis *r, struct slice arg)
{
	strbuf_addf(&r->out, "$%zu\r\n", arg.n);
	strbuf_add_slice(&r->out, arg);
	strbuf_add(&r->out, "\r\n", 2);
}

void redis_send(struct redis *r, size_t args_n, const struct slice args[])
{
	ASSERT(r->fd >= 0 && args_n > 0);
	if (r->pending++ == 0)
		r->deadline = mono_add_ms(clock_mono(r->clock), r->timeout_ms);
	strbuf_addf(&r->out, "*%zu\r\n", args_n);
	for (size_t i = 0; i < args_n; i++)
		add_argument(r, args[i]);
}

static void send_script(struct redis *r, const char *verb, const char *script, size_t keys_n, size_t args_n,
			const struct slice args[])
{
	struct slice all[3 + REDIS_ARGS_MAX];
	char count[24];

	ASSERT(args_n <= REDIS_ARGS_MAX && keys_n <= args_n);
	snprintf(count, sizeof count, "%zu", keys_n);
	all[0] = slice_str(verb);
	all[1] = slice_str(script);
	all[2] = slice_str(count);
	if (args_n)
		memcpy(all + 3, args, args_n * sizeof *args);
	redis_send(r, 3 + args_n, all);
}

void redis_send_script(struct redis *r, size_t script, size_t keys_n, size_t args_n, const struct slice args[])
{
	ASSERT(script < r->scripts_n);
	send_script(r, "EVALSHA", r->scripts[script].sha, keys_n, args_n, args);
}

static bool says(const redisReply *reply, const char *word)
{
	size_t n = strlen(word);

	return reply->len >= n && memcmp(reply->str, word, n) == 0 && (reply->len == n || reply->str[n] == ' ');
}

/* The server lives but this session is of no use: another server is the primary now, or our rights have gone. */
static bool ends_session(const redisReply *reply)
{
	return says(reply, "READONLY") || says(reply, "LOADING") || says(reply, "MASTERDOWN") ||
	       says(reply, "CLUSTERDOWN") || says(reply, "MOVED") || says(reply, "NOAUTH");
}

static enum hx_code refused(struct redis *r, const redisReply *reply, struct hx_error *err)
{
	if (says(reply, "NOSCRIPT"))
		return error_set(err, HX_NOT_FOUND, "redis: the script is not loaded");
	if (ends_session(reply))
		lose(r);
	return error_set(err, HX_STORE_UNAVAILABLE, "redis: %s", excerpt_of(slice_of(reply->str, reply->len)).text);
}

enum hx_code redis_receive(struct redis *r, redisReply **ret_reply, struct hx_error *err)
{
	redisReply *reply = NULL;
	enum hx_code code;

	if (r->fd < 0)
		return error_set(err, HX_STORE_UNAVAILABLE, "redis: the connection was lost");
	ASSERT(r->pending > 0);
	/* Half a command would make nonsense of all that follow. */
	if (r->out.failed)
		return redis_lost(r, "the commands are too large", err);
	code = next_reply(r, &reply, err);
	if (!code && reply->type == REDIS_REPLY_ERROR) {
		code = refused(r, reply, err);
		freeReplyObject(reply);
	} else if (!code) {
		*ret_reply = reply;
	}
	return code;
}

enum hx_code redis_run_script(struct redis *r, size_t script, size_t keys_n, size_t args_n, const struct slice args[],
			      redisReply **ret_reply, struct hx_error *err)
{
	enum hx_code code;

	ASSERT(r->pending == 0);
	redis_send_script(r, script, keys_n, args_n, args);
	code = redis_receive(r, ret_reply, err);
	if (code == HX_NOT_FOUND) {
		send_script(r, "EVAL", r->scripts[script].text, keys_n, args_n, args);
		code = redis_receive(r, ret_reply, err);
	}
	return code;
}

/* ---- connect ---- */

/* One address. errno says why not. */
static bool connect_to(struct redis *r, const struct addrinfo *to)
{
	int yes = 1, problem = 0;
	socklen_t n = sizeof problem;

	r->fd = socket(to->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (r->fd < 0)
		return false;
	/* Without it a pipeline could wait for the acknowledgement of the one before; that costs only time. */
	(void)setsockopt(r->fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
	if (connect(r->fd, to->ai_addr, to->ai_addrlen) == 0)
		return true;
	if (errno == EINPROGRESS) {
		if (!await(r, POLLOUT))
			problem = ETIMEDOUT;
		else
			(void)getsockopt(r->fd, SOL_SOCKET, SO_ERROR, &problem, &n);
		if (problem == 0)
			return true;
		errno = problem;
	}
	problem = errno;
	close(r->fd);
	r->fd = -1;
	errno = problem;
	return false;
}

static enum hx_code connect_tcp(struct redis *r, const struct redis_place *place, int64_t timeout_ms,
				struct hx_error *err)
{
	const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
	struct addrinfo *found = NULL;
	int rc = getaddrinfo(place->host, place->port, &hints, &found);

	if (rc)
		return error_set(err, HX_STORE_UNAVAILABLE, "redis: %s: %s", place->host, gai_strerror(rc));
	r->deadline = mono_add_ms(clock_mono(r->clock), timeout_ms);
	errno = EHOSTUNREACH;
	for (const struct addrinfo *to = found; to && r->fd < 0; to = to->ai_next)
		(void)connect_to(r, to); /* the last one's reason is as good as any */
	freeaddrinfo(found);
	if (r->fd < 0)
		return error_set(err, HX_STORE_UNAVAILABLE, "redis: %s:%s: %s", place->host, place->port,
				 strerror(errno));
	return HX_OK;
}

static enum hx_code connect_unix(struct redis *r, struct hx_error *err)
{
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	const struct addrinfo at = {.ai_family = AF_UNIX, .ai_addr = (struct sockaddr *)&to, .ai_addrlen = sizeof to};

	snprintf(to.sun_path, sizeof to.sun_path, "%s", r->url.path);
	r->deadline = mono_add_ms(clock_mono(r->clock), r->timeout_ms);
	if (connect_to(r, &at))
		return HX_OK;
	return error_set(err, HX_STORE_UNAVAILABLE, "redis: %s: %s", r->url.path, strerror(errno));
}

/* Within the deadline of the socket. */
static enum hx_code greet(struct redis *r, const char *host, struct hx_error *err)
{
	enum tls_verdict verdict;
	const char *distrust;

	r->link = tls_link_new(r->tls, host, r->fd);
	if (!r->link)
		return redis_lost(r, "no memory for TLS, or no certificates to trust", err);
	while ((verdict = tls_link_greet(r->link)) == TLS_MORE)
		if (!await(r, tls_link_events(r->link)))
			return redis_lost(r, "the server did not answer TLS in time", err);
	if (verdict == TLS_DONE)
		return HX_OK;
	distrust = tls_link_distrust(r->link);
	lose(r);
	if (distrust)
		return error_set(err, HX_CONFIG_ERROR, "redis: the server's certificate is not trusted: %s", distrust);
	return error_set(err, HX_STORE_UNAVAILABLE, "redis: TLS could not be agreed on with the server");
}

/* A connection on which nothing was said yet, but the greeting of TLS. */
static enum hx_code reach(struct redis *r, const struct redis_place *place, int64_t timeout_ms, struct hx_error *err)
{
	enum hx_code code = place ? connect_tcp(r, place, timeout_ms, err) : connect_unix(r, err);

	if (!code && r->tls)
		code = greet(r, place->host, err);
	if (code)
		return code;
	r->reader = redisReaderCreate();
	return r->reader ? HX_OK : redis_lost(r, "no memory", err);
}

/* What a refusal of our opening means. The server's words are not repeated: some quote the password. */
static enum hx_code opening_refused(const redisReply *reply, const char *words, struct hx_error *err)
{
	if (says(reply, "NOAUTH"))
		words = "the server wants a password";
	else if (says(reply, "DENIED"))
		words = "the server is in protected mode and takes nobody from another machine";
	else if (says(reply, "ERR max number of clients") ||
		 (!says(reply, "ERR") && !says(reply, "WRONGPASS") && !says(reply, "NOPERM")))
		return error_set(err, HX_STORE_UNAVAILABLE, "redis: the server is not ready");
	return error_set(err, HX_CONFIG_ERROR, "redis: %s", words);
}

static enum hx_code take_opening(struct redis *r, const char *words, redisReply **ret_reply, struct hx_error *err)
{
	redisReply *reply = NULL;
	enum hx_code code = next_reply(r, &reply, err);

	if (!code && reply->type == REDIS_REPLY_ERROR)
		code = opening_refused(reply, words, err);
	if (!code && ret_reply)
		*ret_reply = reply;
	else
		freeReplyObject(reply);
	return code;
}

static enum hx_code take_sha(struct redis *r, size_t i, struct hx_error *err)
{
	redisReply *reply = NULL;
	enum hx_code code = take_opening(r, "the server does not let us load scripts", &reply, err);

	if (!code && (reply->type != REDIS_REPLY_STRING || reply->len != SHA_BYTES - 1))
		code = error_set(err, HX_STORE_UNAVAILABLE, "redis: the reply cannot be understood");
	else if (!code)
		memcpy(r->scripts[i].sha, reply->str, SHA_BYTES); /* with its NUL */
	freeReplyObject(reply);
	return code;
}

/* ---- Sentinels ---- */

static bool take_place(const redisReply *reply, struct redis_place *ret_place)
{
	if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 2 || reply->element[0]->type != REDIS_REPLY_STRING ||
	    reply->element[1]->type != REDIS_REPLY_STRING || reply->element[0]->len >= sizeof ret_place->host ||
	    reply->element[1]->len >= sizeof ret_place->port)
		return false;
	memcpy(ret_place->host, reply->element[0]->str, reply->element[0]->len + 1);
	memcpy(ret_place->port, reply->element[1]->str, reply->element[1]->len + 1);
	return true;
}

/* Where is the primary? On a connection of its own, which ends with the answer. */
static enum hx_code ask_sentinel(struct redis *r, const struct redis_place *sentinel, int64_t timeout_ms,
				 struct redis_place *ret_primary, struct hx_error *err)
{
	bool secret = r->url.sentinel_password[0] != '\0';
	redisReply *reply = NULL;
	enum hx_code code = reach(r, sentinel, timeout_ms, err);

	if (code)
		return code;
	if (secret)
		REDIS_SEND(r, slice_str("AUTH"), slice_str(r->url.sentinel_password));
	REDIS_SEND(r, slice_str("SENTINEL"), slice_str("get-master-addr-by-name"), slice_str(r->url.name));
	r->deadline = mono_add_ms(clock_mono(r->clock), timeout_ms);
	if (secret)
		code = take_opening(r, "the Sentinel refuses sentinel_password", /* ret_reply= */ NULL, err);
	if (!code)
		code = take_opening(r, "the Sentinel does not say where the primary is", &reply, err);
	if (!code && !take_place(reply, ret_primary))
		code = error_set(err, HX_STORE_UNAVAILABLE,
				 "redis: the Sentinel at %s:%s knows no primary of this name", sentinel->host,
				 sentinel->port);
	freeReplyObject(reply);
	lose(r);
	return code;
}

/* The first that knows, beginning with the one that knew before. They share the time of one server. */
static enum hx_code find_primary(struct redis *r, struct redis_place *ret_primary, struct hx_error *err)
{
	size_t n = r->url.sentinels_n;
	int64_t share_ms = r->timeout_ms / (int64_t)n;
	enum hx_code code = HX_STORE_UNAVAILABLE;

	for (size_t i = 0; i < n && code; i++) {
		size_t which = (r->sentinel + i) % n;

		code = ask_sentinel(r, &r->url.sentinels[which], share_ms, ret_primary, err);
		if (!code)
			r->sentinel = which;
	}
	return code;
}

static enum hx_code reach_server(struct redis *r, struct hx_error *err)
{
	struct redis_place primary;
	enum hx_code code;

	if (r->url.kind == REDIS_UNIX)
		return reach(r, NULL, r->timeout_ms, err);
	if (r->url.kind == REDIS_TCP)
		return reach(r, &r->url.at, r->timeout_ms, err);
	code = find_primary(r, &primary, err);
	return code ? code : reach(r, &primary, r->timeout_ms, err);
}

/* A Sentinel may lag: what it calls the primary may have become a replica. */
static enum hx_code take_role(struct redis *r, struct hx_error *err)
{
	redisReply *reply = NULL;
	enum hx_code code = take_opening(r, "the server does not let us ask for its role", &reply, err);

	if (!code && (reply->type != REDIS_REPLY_ARRAY || reply->elements == 0 ||
		      reply->element[0]->type != REDIS_REPLY_STRING || strcmp(reply->element[0]->str, "master") != 0))
		code = error_set(err, HX_STORE_UNAVAILABLE, "redis: the server is not the primary any more");
	freeReplyObject(reply);
	return code;
}

/* All in one trip. The first refusal is the one that is told. */
static enum hx_code open_session(struct redis *r, struct hx_error *err)
{
	const struct slice auth[3] = {slice_str("AUTH"), slice_str(r->url.user), slice_str(r->url.password)};
	const struct slice auth_default[2] = {auth[0], auth[2]};
	char db[16];
	enum hx_code code = HX_OK;

	snprintf(db, sizeof db, "%d", r->url.db);
	if (r->url.password[0])
		redis_send(r, r->url.user[0] ? 3 : 2, r->url.user[0] ? auth : auth_default);
	REDIS_SEND(r, slice_str("SELECT"), slice_str(db));
	if (r->url.kind == REDIS_SENTINEL)
		REDIS_SEND(r, slice_str("ROLE"));
	for (size_t i = 0; i < r->scripts_n; i++)
		REDIS_SEND(r, slice_str("SCRIPT"), slice_str("LOAD"), slice_str(r->scripts[i].text));
	if (r->out.failed)
		return redis_lost(r, "the commands are too large", err);

	if (r->url.password[0])
		code = take_opening(r, "the server refuses the password", /* ret_reply= */ NULL, err);
	if (!code)
		code = take_opening(r, "the server has no such database", /* ret_reply= */ NULL, err);
	if (!code && r->url.kind == REDIS_SENTINEL)
		code = take_role(r, err);
	for (size_t i = 0; i < r->scripts_n && !code; i++)
		code = take_sha(r, i, err);
	return code;
}

/* An idle server says nothing. A word now would be the late answer to a question we gave up on, or its farewell. */
static bool still_there(const struct redis *r)
{
	char byte;
	ssize_t n;

	if (r->reader->pos != r->reader->len)
		return false;
	n = r->link ? tls_link_receive(r->link, &byte, 1) : recv(r->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
	return n < 0 && would_block();
}

enum hx_code redis_connect(struct redis *r, struct hx_error *err)
{
	enum hx_code code;

	ASSERT(r->pending == 0);
	if (r->fd >= 0 && still_there(r))
		return HX_OK;
	lose(r);
	if (clock_mono(r->clock).ns < r->connect_after.ns)
		return error_set(err, HX_STORE_UNAVAILABLE, "redis: not reachable, tried again in a moment");
	code = reach_server(r, err);
	if (!code)
		code = open_session(r, err);
	if (!code) {
		r->backoff_ms = REDIS_BACKOFF_MS_MIN;
		return HX_OK;
	}
	lose(r);
	r->connect_after = mono_add_ms(clock_mono(r->clock), r->backoff_ms);
	r->backoff_ms = r->backoff_ms * 2 < REDIS_BACKOFF_MS_MAX ? r->backoff_ms * 2 : REDIS_BACKOFF_MS_MAX;
	return code;
}

bool redis_is_connected(const struct redis *r)
{
	return r->fd >= 0;
}

struct mono_time redis_connect_after(const struct redis *r)
{
	return r->connect_after;
}

/* ---- life ---- */

static enum hx_code make_tls(struct redis *r, struct hx_error *err)
{
	struct tls_options options = {.name = "redis",
				      .ca_file = r->url.ca,
				      .ca_only = true,
				      .cert_file = r->url.cert,
				      .key_file = r->url.key};

	return tls_client_new(&options, &r->tls, err);
}

enum hx_code redis_new(const struct redis_options *options, struct redis **ret_redis, struct hx_error *err)
{
	struct redis *r = calloc(1, sizeof *r);
	enum hx_code code = HX_OK;

	ASSERT(options->scripts_n <= REDIS_SCRIPTS_MAX && options->timeout_ms >= 0);
	if (!r)
		return error_set(err, HX_NO_MEMORY, "redis: no memory");
	r->url = options->url;
	r->clock = options->clock;
	r->timeout_ms = options->timeout_ms ? options->timeout_ms : REDIS_TIMEOUT_MS;
	r->fd = -1;
	r->backoff_ms = REDIS_BACKOFF_MS_MIN;
	r->connect_after = clock_mono(options->clock);
	r->scripts_n = options->scripts_n;
	for (size_t i = 0; i < options->scripts_n; i++)
		r->scripts[i].text = options->scripts[i];
	strbuf_init(&r->out, REDIS_SEND_BYTES_MAX);
	if (r->url.tls)
		code = make_tls(r, err);
	return HAND_OVER(code, r, redis_free, ret_redis);
}

void redis_free(struct redis *r)
{
	if (!r)
		return;
	lose(r);
	tls_client_free(r->tls);
	strbuf_release(&r->out);
	explicit_bzero(&r->url, sizeof r->url);
	free(r);
}
