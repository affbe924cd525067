/*
 * For tests of the gate's proxy over real sockets: an upstream that does as it is told, the proxy in front of it with a
 * store in memory, and the client of http_test.h.
 *
 * The upstream reads whole requests (written down as they came) and answers each with the script that was set last, byte
 * for byte. A connection has a thread. It stays open if the script says so.
 */
#ifndef HX_TESTS_HTTP_PROXY_TEST_H
#define HX_TESTS_HTTP_PROXY_TEST_H

#include "http/http_test.h"
#include "proxy/proxy.h"

/* How the upstream talks: plainly, unless who includes this has defined another way (test_proxy_tls.c). */
#ifndef UPSTREAM_URL
#define UPSTREAM_URL "http://127.0.0.1:%d"
#define upstream_greet(fd) true
#define upstream_recv(fd, p, n) recv(fd, p, n, 0)
#define upstream_send(fd, p, n) send(fd, p, n, MSG_NOSIGNAL)
#define upstream_part(fd) (void)0
#endif

#define SEEN_MAX 512
#define UPSTREAM_CLIENTS_MAX 512

enum script_end {
	SCRIPT_KEEP,  /* the connection stays open */
	SCRIPT_CLOSE, /* it is closed */
	SCRIPT_RESET, /* it is reset */
	SCRIPT_STALL, /* nothing more comes, until the other side closes */
};

struct script {
	const char *bytes;
	size_t n;
	enum script_end end;
	bool hold;            /* answers after upstream_release() */
	bool early;           /* answers when it has read the head alone */
	unsigned pieces;      /* above 1: in so many pieces … */
	int64_t pause_ms;     /* … with a pause in front of each but the first */
	_Atomic size_t *sent; /* if not NULL: how much the other side has taken */
};

#define SCRIPT(text, ...) ((struct script){.bytes = (text), .n = sizeof(text) - 1, __VA_ARGS__})

#define ANSWER_OK "HTTP/1.1 201 Created\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n\r\nhello"

static struct {
	pthread_mutex_t mutex;
	pthread_cond_t changed;
	pthread_t thread;
	int listen_fd, port;
	struct script script;
	bool stopping;
	unsigned releases;
	int clients[UPSTREAM_CLIENTS_MAX];
	size_t clients_n, accepted, held;
	struct strbuf seen[SEEN_MAX];
	size_t seen_n;
} world = {.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

/* ---- the upstream ---- */

static inline struct script script_now(void)
{
	pthread_mutex_lock(&world.mutex);
	struct script script = world.script;
	pthread_mutex_unlock(&world.mutex);
	return script;
}

/* One request as it came. False: the other side has closed. */
static inline bool upstream_read(int fd, struct strbuf *ret_request)
{
	size_t want = SIZE_MAX;
	char byte[4096];

	strbuf_init(ret_request, 8u << 20);
	while (ret_request->n < want) {
		/* Byte by byte as long as the length is not known, so that nothing after the request is taken. */
		size_t most = want == SIZE_MAX                      ? 1
			      : want - ret_request->n < sizeof byte ? want - ret_request->n
								    : sizeof byte;
		ssize_t got = upstream_recv(fd, byte, most);
		char *end, *length;

		if (got <= 0)
			break;
		strbuf_add(ret_request, byte, (size_t)got);
		if (want != SIZE_MAX || !(end = strstr(ret_request->p, "\r\n\r\n")))
			continue;
		length = strcasestr(ret_request->p, "\r\nContent-Length:");
		want = (size_t)(end + 4 - ret_request->p);
		if (length && !script_now().early)
			want += strtoul(length + 17, NULL, 10);
	}
	if (ret_request->n >= want)
		return true;
	strbuf_release(ret_request);
	return false;
}

static inline struct script upstream_note(const struct strbuf *request)
{
	struct script script;
	unsigned releases;

	pthread_mutex_lock(&world.mutex);
	ASSERT(world.seen_n < SEEN_MAX);
	world.seen[world.seen_n++] = *request;
	script = world.script;
	releases = world.releases;
	world.held += script.hold;
	pthread_cond_broadcast(&world.changed);
	while (script.hold && world.releases == releases && !world.stopping)
		pthread_cond_wait(&world.changed, &world.mutex);
	pthread_mutex_unlock(&world.mutex);
	return script;
}

static inline bool upstream_say(int fd, const struct script *script)
{
	size_t step = script->pieces > 1 ? script->n / script->pieces : script->n;

	for (size_t sent = 0; sent < script->n;) {
		size_t piece = script->n - sent < step ? script->n - sent : step;
		ssize_t n = upstream_send(fd, script->bytes + sent, piece);

		if (n <= 0)
			return false;
		sent += (size_t)n;
		if (script->sent)
			*script->sent += (size_t)n;
		if (script->pause_ms && sent < script->n)
			nanosleep(&(struct timespec){.tv_nsec = script->pause_ms * 1000000}, NULL);
	}
	return true;
}

/* False: the connection is over. */
static inline bool upstream_serve(int fd)
{
	struct linger at_once = {.l_onoff = 1};
	struct strbuf request;
	struct script script;
	char byte;

	if (!upstream_read(fd, &request))
		return false;
	script = upstream_note(&request);
	if (!upstream_say(fd, &script))
		return false;
	if (script.end == SCRIPT_RESET)
		setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
	while (script.end == SCRIPT_STALL && upstream_recv(fd, &byte, 1) > 0)
		;
	return script.end == SCRIPT_KEEP;
}

static inline void *upstream_talk(void *data)
{
	int fd = (int)(intptr_t)data;

	if (upstream_greet(fd))
		while (upstream_serve(fd))
			;
	upstream_part(fd);
	pthread_mutex_lock(&world.mutex);
	for (size_t i = 0; i < UPSTREAM_CLIENTS_MAX; i++)
		if (world.clients[i] == fd)
			world.clients[i] = -1;
	world.clients_n--;
	close(fd);
	pthread_cond_broadcast(&world.changed);
	pthread_mutex_unlock(&world.mutex);
	return NULL;
}

static inline void upstream_take(int fd)
{
	pthread_t thread;
	size_t i = 0;

	setsockopt(fd, IPPROTO_TCP, 1 /* TCP_NODELAY */, &(int){1}, sizeof(int));
	pthread_mutex_lock(&world.mutex);
	while (world.clients[i] >= 0)
		i++;
	ASSERT(i < UPSTREAM_CLIENTS_MAX);
	world.clients[i] = fd;
	world.clients_n++;
	world.accepted++;
	pthread_mutex_unlock(&world.mutex);
	ASSERT(pthread_create(&thread, NULL, upstream_talk, (void *)(intptr_t)fd) == 0);
	pthread_detach(thread);
}

static inline void *upstream_accept(void *data)
{
	int fd;

	while ((fd = accept((int)(intptr_t)data, NULL, NULL)) >= 0)
		upstream_take(fd);
	return NULL;
}

/* On the same port again after upstream_shut(). */
static inline void upstream_open(void)
{
	struct sockaddr_in at = {.sin_family = AF_INET,
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
				 .sin_port = htons((uint16_t)world.port)};
	socklen_t n = sizeof at;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int));
	ASSERT(bind(fd, (struct sockaddr *)&at, n) == 0 && listen(fd, 512) == 0);
	ASSERT(getsockname(fd, (struct sockaddr *)&at, &n) == 0);
	world.port = ntohs(at.sin_port);
	world.listen_fd = fd;
	ASSERT(pthread_create(&world.thread, NULL, upstream_accept, (void *)(intptr_t)fd) == 0);
}

static inline size_t upstream_clients(void)
{
	pthread_mutex_lock(&world.mutex);
	size_t n = world.clients_n;
	pthread_mutex_unlock(&world.mutex);
	return n;
}

/* Ends the connections that there are; the door stays open. */
static inline void upstream_hang_up(void)
{
	pthread_mutex_lock(&world.mutex);
	for (size_t i = 0; i < UPSTREAM_CLIENTS_MAX; i++)
		if (world.clients[i] >= 0)
			shutdown(world.clients[i], SHUT_RDWR);
	pthread_mutex_unlock(&world.mutex);
	AWAIT(upstream_clients() == 0);
}

/* Nobody can connect any more. */
static inline void upstream_shut(void)
{
	if (world.listen_fd < 0)
		return;
	shutdown(world.listen_fd, SHUT_RDWR);
	pthread_join(world.thread, NULL);
	close(world.listen_fd);
	world.listen_fd = -1;
	upstream_hang_up();
}

static inline void upstream_play(struct script script)
{
	pthread_mutex_lock(&world.mutex);
	world.script = script;
	pthread_mutex_unlock(&world.mutex);
}

static inline void upstream_release(void)
{
	pthread_mutex_lock(&world.mutex);
	world.releases++;
	pthread_cond_broadcast(&world.changed);
	pthread_mutex_unlock(&world.mutex);
}

static inline size_t seen_count(void)
{
	pthread_mutex_lock(&world.mutex);
	size_t n = world.seen_n;
	pthread_mutex_unlock(&world.mutex);
	return n;
}

/* The i-th request that the upstream has read, as text. */
static inline const char *seen(size_t i)
{
	AWAIT(seen_count() > i);
	return world.seen[i].p;
}

static inline void upstream_start(void)
{
	for (size_t i = 0; i < UPSTREAM_CLIENTS_MAX; i++)
		world.clients[i] = -1;
	world.stopping = false;
	world.accepted = world.clients_n = world.seen_n = 0;
	world.port = 0;
	world.script = SCRIPT(ANSWER_OK);
	upstream_open();
}

static inline void upstream_stop(void)
{
	pthread_mutex_lock(&world.mutex);
	world.stopping = true;
	pthread_cond_broadcast(&world.changed);
	pthread_mutex_unlock(&world.mutex);
	if (world.listen_fd >= 0)
		upstream_shut();
	else
		upstream_hang_up();
	for (size_t i = 0; i < world.seen_n; i++)
		strbuf_release(&world.seen[i]);
	world.seen_n = 0;
}

/* ---- the gate ---- */

static struct {
	struct arena arena;
	struct gate_config config;
	struct gate_store *store;
	struct proxy *proxy;
} gate;

/* The configuration file, or "{}". `fit` may change the server's options, and may be NULL. */
static inline void gate_up_with(const char *file, void (*fit)(struct server_options *options))
{
	struct server_options options = server_options_default();
	struct proxy_options proxy = {.config = &gate.config, .clock = clock_system()};
	struct findings findings;
	struct hx_error err = {0};
	char url[64];

	upstream_start();
	arena_init(&gate.arena, 16u << 20);
	findings_init(&findings, &gate.arena);
	gate_config_parse("gate.json", slice_str(file), &gate.arena, &findings, &gate.config);
	if (findings.errors)
		findings_print(&findings, stderr);
	assert_int_equal(findings.errors, 0);
	if (!gate.store)
		assert_int_equal(gate_memory_new(10000, 64u << 20, clock_system(), &gate.store, &err), HX_OK);
	snprintf(url, sizeof url, UPSTREAM_URL, world.port);
	proxy.upstream = url;
	proxy.store = gate.store;
	if (proxy_new(&proxy, &gate.proxy, &err) != HX_OK)
		fail_msg("%s", err.detail);
	options.listen = "127.0.0.1:0";
	options.linger_ms = 500;
	proxy_fit_server(gate.proxy, &options);
	if (fit)
		fit(&options);
	if (http_server_new(&options, &server, &err) != HX_OK)
		fail_msg("%s", err.detail);
}

static inline void gate_up(const char *file)
{
	gate_up_with(file, NULL);
}

static inline void gate_down(void)
{
	http_server_stop(server, 5000);
	gate_store_free(gate.store);
	proxy_free(gate.proxy);
	http_server_free(server);
	upstream_stop();
	arena_release(&gate.arena);
	gate.store = NULL;
	gate.proxy = NULL;
	server = NULL;
}

static inline struct proxy_stats gate_stats(void)
{
	struct proxy_stats stats;

	proxy_read_stats(gate.proxy, &stats);
	return stats;
}

static inline bool gate_is_open(void)
{
	struct sockaddr_storage to;
	socklen_t n = address_to_sockaddr(http_server_address(server), &to);
	int fd = socket(to.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bool open = connect(fd, (struct sockaddr *)&to, n) == 0;

	close(fd);
	return open;
}

/* ---- requests ---- */

/* POST path with this key (NULL: none) and body. */
static inline void say_post(int fd, const char *path, const char *key, const char *body)
{
	char text[4096], header[600] = "";

	if (key)
		snprintf(header, sizeof header, "Idempotency-Key: %s\r\n", key);
	snprintf(
		text, sizeof text,
		"POST %s HTTP/1.1\r\nHost: shop.example\r\nContent-Type: application/json\r\n%sContent-Length: %zu\r\n\r\n%s",
		path, header, strlen(body), body);
	client_say(fd, text);
}

/* On a connection of its own. The reply is the caller's to release. */
static inline struct reply post(const char *path, const char *key, const char *body)
{
	int fd = client_open();
	struct reply reply;

	say_post(fd, path, key, body);
	reply = read_reply(fd, /* to_head= */ false);
	close(fd);
	return reply;
}

/* The value of the first field of this name in the reply; NULL: it has none. */
static inline const char *reply_field(const struct reply *reply, const char *name)
{
	static _Thread_local char values[4][1000];
	static _Thread_local unsigned turn;
	char *value = values[turn++ % 4], wanted[100];
	const char *at;

	snprintf(wanted, sizeof wanted, "\r\n%s: ", name);
	at = strcasestr(reply->text, wanted);
	if (!at)
		return NULL;
	at += strlen(wanted);
	snprintf(value, sizeof values[0], "%.*s", (int)strcspn(at, "\r"), at);
	return value;
}

#define assert_field(reply, name, expected)                                                                            \
	do {                                                                                                           \
		const char *field_ = reply_field(reply, name);                                                         \
		if (!field_)                                                                                           \
			fail_msg("there is no %s in: %s", name, (reply)->text);                                        \
		assert_string_equal(field_, expected);                                                                 \
	} while (0)

#define assert_no_field(reply, name) assert_null(reply_field(reply, name))

/* POSTs and checks status and Idempotency-Status (NULL: there must be none). */
static inline void expect_post(const char *path, const char *key, const char *body, int status, const char *marker)
{
	struct reply reply = post(path, key, body);
	const char *found = reply_field(&reply, "Idempotency-Status");

	if (reply.status != status || !reply.complete || !slice_eq(slice_str(found), slice_str(marker)))
		fail_msg("%s %s %s: expected %d %s, got %s%s", path, key ? key : "", body, status,
			 marker ? marker : "unmarked", reply.text, reply.body.p);
	reply_release(&reply);
}

#endif
