/*
 * The gate in front of an https upstream: whom it trusts, what a failed greeting means, how answers end. And then all of
 * test_proxy_upstream.c once more over TLS, because nothing about HTTP may differ.
 *
 * The upstream is that of proxy_test.h with OpenSSL around its sockets and a certificate made for the occasion.
 */
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <stdbool.h>
#include <sys/socket.h>
#include <unistd.h>

#define FDS_MAX 4096

enum greeting { GREET, GREET_REFUSE, GREET_NEVER, GREET_PLAINLY };

struct identity {
	EVP_PKEY *key;
	X509 *certificate;
};

static struct {
	const char *url;
	char ca_file[400];
	SSL_CTX *context;
	SSL *of[FDS_MAX]; /* by descriptor; touched by the connection's own thread alone */
	_Atomic enum greeting greeting;
	_Atomic size_t greetings; /* begun */
	_Atomic bool rude;        /* the end of a connection is not announced */
	char asked_for[256];
	struct identity good, other;
} tls = {.url = "https://127.0.0.1:%d"};

/* ---- the upstream's side ---- */

static bool upstream_greet(int fd)
{
	enum greeting greeting = tls.greeting;
	char byte;
	const char *name;

	tls.greetings++;
	if (greeting == GREET_PLAINLY)
		return send(fd, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", 38, MSG_NOSIGNAL) < 0;
	while (greeting == GREET_NEVER && recv(fd, &byte, 1, 0) > 0)
		;
	if (greeting != GREET)
		return false;
	tls.of[fd] = SSL_new(tls.context);
	if (SSL_set_fd(tls.of[fd], fd) != 1 || SSL_accept(tls.of[fd]) != 1)
		return false;
	name = SSL_get_servername(tls.of[fd], TLSEXT_NAMETYPE_host_name);
	snprintf(tls.asked_for, sizeof tls.asked_for, "%s", name ? name : "");
	return true;
}

static ssize_t upstream_recv(int fd, void *p, size_t n)
{
	return SSL_read(tls.of[fd], p, (int)n);
}

static ssize_t upstream_send(int fd, const void *p, size_t n)
{
	return SSL_write(tls.of[fd], p, n > 1u << 20 ? 1 << 20 : (int)n);
}

/* Who resets a connection says no goodbye. */
static void upstream_part(int fd)
{
	struct linger linger = {0};
	socklen_t n = sizeof linger;

	if (tls.of[fd] && !tls.rude && getsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, &n) == 0 && !linger.l_onoff)
		SSL_shutdown(tls.of[fd]);
	SSL_free(tls.of[fd]);
	tls.of[fd] = NULL;
}

#define UPSTREAM_URL tls.url
#define main main_of_the_plain_tests
#include "http/test_proxy_upstream.c"
#undef main

/* ---- certificates ---- */

static struct identity make_identity(const char *common_name, const char *names)
{
	struct identity id = {EVP_EC_gen("P-256"), X509_new()};
	X509_NAME *name = X509_get_subject_name(id.certificate);
	X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, NULL, NID_subject_alt_name, names);

	ASSERT(id.key && extension && X509_set_version(id.certificate, 2));
	ASSERT(X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char *)common_name, -1, -1, 0));
	ASSERT(X509_set_issuer_name(id.certificate, name) && X509_set_pubkey(id.certificate, id.key));
	ASSERT(X509_gmtime_adj(X509_getm_notBefore(id.certificate), -3600));
	ASSERT(X509_gmtime_adj(X509_getm_notAfter(id.certificate), 3600));
	ASSERT(X509_add_ext(id.certificate, extension, -1) && X509_sign(id.certificate, id.key, EVP_sha256()));
	X509_EXTENSION_free(extension);
	return id;
}

static void identity_release(struct identity *id)
{
	EVP_PKEY_free(id->key);
	X509_free(id->certificate);
}

/* The upstream shows this one from now on. */
static void show(const struct identity *id)
{
	SSL_CTX_free(tls.context);
	tls.context = SSL_CTX_new(TLS_server_method());
	ASSERT(tls.context && SSL_CTX_use_certificate(tls.context, id->certificate) == 1 &&
	       SSL_CTX_use_PrivateKey(tls.context, id->key) == 1);
}

/* The file of trusted certificates has this one from now on. */
static void trust(const struct identity *id)
{
	FILE *f = fopen(tls.ca_file, "w");

	ASSERT(f && PEM_write_X509(f, id->certificate) == 1 && fclose(f) == 0);
}

static int group_up(void **state)
{
	const char *folder = getenv("TMPDIR");

	(void)state;
	signal(SIGPIPE, SIG_IGN); /* OpenSSL's own writes, on the upstream's side */
	snprintf(tls.ca_file, sizeof tls.ca_file, "%s/trusted-%d.pem", folder ? folder : "/tmp", (int)getpid());
	tls.good = make_identity("good", "IP:127.0.0.1,DNS:localhost");
	tls.other = make_identity("other", "IP:127.0.0.2,DNS:other.example");
	setenv("HAPAX_GATE_CA_FILE", tls.ca_file, 1);
	trust(&tls.good);
	show(&tls.good);
	return 0;
}

static int group_down(void **state)
{
	(void)state;
	unlink(tls.ca_file);
	SSL_CTX_free(tls.context);
	identity_release(&tls.good);
	identity_release(&tls.other);
	return 0;
}

static int tls_up(void **state)
{
	trust(&tls.good);
	show(&tls.good);
	tls.greeting = GREET;
	tls.rude = false;
	tls.url = "https://127.0.0.1:%d";
	return up(state);
}

/* ---- whom it trusts ---- */

static void a_request_is_created_and_replayed(void **state)
{
	(void)state;
	expect_post("/x", "k", "x", 201, "created");
	expect_post("/x", "k", "x", 201, "replayed");
	expect_post("/x", "k", "y", 422, "mismatch");
	assert_int_equal(seen_count(), 1);
	assert_string_equal(tls.asked_for, ""); /* an address is no name */
}

/* The first address of localhost may be one where nobody listens. */
static void the_upstream_is_asked_for_by_its_name(void **state)
{
	(void)state;
	gate_down();
	tls.url = "https://localhost:%d";
	gate_up("{}");
	expect_post("/x", "k", "x", 201, "created");
	assert_string_equal(tls.asked_for, "localhost");
}

/* What was not sent is released: the same key works as soon as the cause is gone. */
static void expect_released_and_created(const char *key, size_t released)
{
	assert_int_equal(seen_count(), 0);
	assert_int_equal(gate_stats().outcomes[HX_GATE_RELEASED], released);
	assert_int_equal(gate_stats().unknown, 0);
	tls.greeting = GREET;
	show(&tls.good);
	trust(&tls.good);
	expect_post("/x", key, "x", 201, "created");
	assert_int_equal(seen_count(), 1);
}

static void expect_problem(const char *path, const char *key, int status, const char *word)
{
	struct reply reply = post(path, key, "x");

	if (reply.status != status || !strstr(reply.body.p, word))
		fail_msg("expected %d %s, got %s%s", status, word, reply.text, reply.body.p);
	reply_release(&reply);
}

static void an_unknown_certificate_sends_nothing(void **state)
{
	(void)state;
	trust(&tls.other);
	expect_problem("/x", "k", 502, "certificate");
	expect_problem("/x", "k", 502, "certificate");
	expect_released_and_created("k", 2);
}

static void a_certificate_for_another_name_sends_nothing(void **state)
{
	(void)state;
	trust(&tls.other);
	show(&tls.other);
	expect_problem("/x", "k", 502, "certificate");
	expect_released_and_created("k", 1);
}

static void a_refused_greeting_sends_nothing(void **state)
{
	(void)state;
	tls.greeting = GREET_REFUSE;
	expect_problem("/x", "k", 502, "TLS");
	expect_released_and_created("k", 1);
}

static void an_upstream_without_tls_is_sent_nothing(void **state)
{
	(void)state;
	tls.greeting = GREET_PLAINLY;
	expect_problem("/x", "k", 502, "TLS");
	expect_released_and_created("k", 1);
}

static void a_greeting_without_an_answer_sends_nothing(void **state)
{
	(void)state;
	tls.greeting = GREET_NEVER;
	expect_problem("/brief-guarded", "k", 502, "in time");
	expect_released_and_created("k", 1);
}

static void one_loop(struct server_options *options)
{
	options->loops = 1;
}

static void a_slow_greeting_holds_up_nobody_else(void **state)
{
	int fd;

	(void)state;
	gate_down();
	tls.greetings = 0;
	tls.greeting = GREET_NEVER;
	gate_up_with("{}", one_loop);
	fd = client_open();
	say_post(fd, "/x", "slow", "x");
	AWAIT(tls.greetings == 1);
	tls.greeting = GREET;
	expect_post("/x", "k", "x", 201, "created");
	expect_post("/x", "slow", "x", 409, "conflict");
	upstream_hang_up();
	expect_reply(fd, 502, NULL);
	assert_int_equal(gate_stats().outcomes[HX_GATE_RELEASED], 1);
	close(fd);
}

static void a_closed_port_sends_nothing(void **state)
{
	(void)state;
	upstream_shut();
	expect_problem("/x", "k", 502, "connection");
	upstream_open();
	expect_released_and_created("k", 1);
}

static void older_tls_will_do_but_not_any(void **state)
{
	(void)state;
	SSL_CTX_set_max_proto_version(tls.context, TLS1_2_VERSION);
	expect_post("/x", "k", "x", 201, "created");
	upstream_hang_up();
	SSL_CTX_set_max_proto_version(tls.context, TLS1_1_VERSION);
	expect_problem("/x", "l", 502, "TLS");
	assert_int_equal(gate_stats().outcomes[HX_GATE_RELEASED], 1);
}

static void a_missing_file_of_certificates_is_noticed_at_the_start(void **state)
{
	struct proxy_options options = {.config = &gate.config, .store = gate.store, .clock = clock_system()};
	struct hx_error err = {0};
	struct proxy *proxy;

	(void)state;
	setenv("HAPAX_GATE_CA_FILE", "/no/such/file.pem", 1);
	options.upstream = "https://127.0.0.1:1";
	assert_int_equal(proxy_new(&options, &proxy, &err), HX_CONFIG_ERROR);
	assert_non_null(strstr(err.detail, "HAPAX_GATE_CA_FILE"));
	setenv("HAPAX_GATE_CA_FILE", tls.ca_file, 1);
}

/* ---- what is unknown stays so ---- */

static void expect_unknown(const char *path, const char *key, int status)
{
	size_t before = seen_count();

	expect_post(path, key, "x", status, NULL);
	upstream_play(SCRIPT(ANSWER_OK));
	expect_post(path, key, "x", 409, "conflict");
	assert_int_equal(seen_count(), before + 1);
	assert_int_equal(gate_stats().outcomes[HX_GATE_RELEASED], 0);
}

static void resets_and_timeouts_leave_the_lease(void **state)
{
	(void)state;
	upstream_play(SCRIPT("", .end = SCRIPT_RESET));
	expect_unknown("/x", "reset", 502);
	upstream_play(SCRIPT("", .end = SCRIPT_CLOSE));
	expect_unknown("/x", "close", 502);
	upstream_play(SCRIPT("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf", .end = SCRIPT_CLOSE));
	expect_unknown("/x", "half", 502);
	upstream_play(SCRIPT("HTTP/1.1 200 OK\r\nX: a\r\n folded\r\nContent-Length: 0\r\n\r\n"));
	expect_unknown("/x", "folded", 502);
	upstream_play(SCRIPT("", .end = SCRIPT_STALL));
	expect_unknown("/brief-guarded", "timeout", 504);
	assert_int_equal(gate_stats().unknown, 5);
}

/* Anybody on the way can close a connection, but cannot announce it: the answer may have been longer. */
static void an_end_that_was_not_announced_is_no_end(void **state)
{
	(void)state;
	upstream_play(SCRIPT("HTTP/1.0 200 OK\r\n\r\nto the end", .end = SCRIPT_CLOSE));
	expect_post("/x", "announced", "x", 200, "created");
	tls.rude = true;
	expect_unknown("/x", "not", 502);
}

/* The upstream reads a request on a connection that was idle, and ends it. */
static void expect_sent_once(int fd, const char *name, const char *body, struct script last)
{
	char first[20], second[20];
	size_t before = seen_count();

	snprintf(first, sizeof first, "%s1", name);
	snprintf(second, sizeof second, "%s2", name);
	upstream_play(SCRIPT(ANSWER_OK));
	say_post(fd, "/x", first, body);
	expect_reply(fd, 201, "hello");
	upstream_play(last);
	say_post(fd, "/x", second, body);
	if (last.hold) {
		AWAIT(seen_count() == before + 2);
		shutdown(world.listen_fd, SHUT_RDWR); /* a second time would end in "nothing was sent" */
		upstream_release();
	}
	expect_reply(fd, 502, NULL);
	say_post(fd, "/x", second, body);
	expect_reply(fd, 409, NULL);
	assert_int_equal(seen_count(), before + 2);
}

static void a_connection_that_dies_is_no_reason_to_send_again(void **state)
{
	int fd = client_open();

	(void)state;
	expect_sent_once(fd, "close", "x", SCRIPT("", .end = SCRIPT_CLOSE));
	expect_sent_once(fd, "reset", "", SCRIPT("", .end = SCRIPT_RESET));
	expect_sent_once(fd, "gone", "", SCRIPT("", .end = SCRIPT_CLOSE, .hold = true));
	assert_int_equal(world.accepted, 3);
	assert_int_equal(gate_stats().unknown, 3);
	assert_int_equal(gate_stats().outcomes[HX_GATE_RELEASED], 0);
	close(fd);
}

/* ---- bytes ---- */

#define BINARY_BYTES 70000u /* more than one record of TLS */

static void fill(char *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		p[i] = (char)(i * 2654435761u >> 13);
}

static void expect_bytes(const char *key, const char *status, const char *bytes, size_t n)
{
	struct reply reply = post("/x", key, "x");

	assert_int_equal(reply.status, 200);
	assert_true(reply.complete);
	assert_field(&reply, "Idempotency-Status", status);
	assert_int_equal(reply.body.n, n);
	assert_memory_equal(reply.body.p, bytes, n);
	reply_release(&reply);
}

static void binary_answers_are_kept_byte_for_byte(void **state)
{
	char *text = malloc(BINARY_BYTES + 1000), *bytes = malloc(BINARY_BYTES);
	int head = snprintf(text, 1000, "HTTP/1.1 200 OK\r\nContent-Length: %u\r\n\r\n", BINARY_BYTES), n;

	(void)state;
	fill(bytes, BINARY_BYTES);
	memcpy(text + head, bytes, BINARY_BYTES);
	upstream_play((struct script){.bytes = text, .n = (size_t)head + BINARY_BYTES});
	expect_bytes("length", "created", bytes, BINARY_BYTES);
	expect_bytes("length", "replayed", bytes, BINARY_BYTES);

	n = snprintf(text, 1000, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\n");
	memcpy(text + n, bytes, 3);
	n += 3;
	n += snprintf(text + n, 100, "\r\n%x\r\n", BINARY_BYTES - 3);
	memcpy(text + n, bytes + 3, BINARY_BYTES - 3);
	n += (int)BINARY_BYTES - 3;
	n += snprintf(text + n, 100, "\r\n0\r\n\r\n");
	upstream_play((struct script){.bytes = text, .n = (size_t)n, .pieces = 7, .pause_ms = 1});
	expect_bytes("chunks", "created", bytes, BINARY_BYTES);
	expect_bytes("chunks", "replayed", bytes, BINARY_BYTES);
	assert_int_equal(seen_count(), 2);
	upstream_hang_up();
	free(text);
	free(bytes);
}

/* More than the sockets hold, both ways, so that sending has to wait in the middle of a record. */
#define LARGE_BYTES (7u << 20)

static void large_bodies_go_both_ways(void **state)
{
	char *bytes = malloc(LARGE_BYTES), *text = malloc(LARGE_BYTES + 1000), head[200];
	int n = snprintf(text, 1000, "HTTP/1.1 200 OK\r\nContent-Length: %u\r\n\r\n", LARGE_BYTES), fd;
	struct reply reply;
	const char *got;

	(void)state;
	gate_down();
	gate_up("{\"max_request_bytes\":8000000,\"max_stored_bytes\":100000}");
	fill(bytes, LARGE_BYTES);
	memcpy(text + n, bytes, LARGE_BYTES);
	upstream_play((struct script){.bytes = text, .n = (size_t)n + LARGE_BYTES});
	snprintf(head, sizeof head, "POST /x HTTP/1.1\r\nHost: a\r\nIdempotency-Key: k\r\nContent-Length: %u\r\n\r\n",
		 LARGE_BYTES);
	fd = client_open();
	client_say(fd, head);
	assert_true(client_send(fd, slice_of(bytes, LARGE_BYTES)));
	reply = read_reply(fd, /* to_head= */ false);
	assert_int_equal(reply.status, 200);
	assert_int_equal(reply.body.n, LARGE_BYTES);
	assert_memory_equal(reply.body.p, bytes, LARGE_BYTES);
	reply_release(&reply);
	got = seen(0);
	assert_int_equal(world.seen[0].n, strstr(got, "\r\n\r\n") + 4 - got + LARGE_BYTES);
	assert_memory_equal(strstr(got, "\r\n\r\n") + 4, bytes, LARGE_BYTES);
	client_say(fd, head);
	assert_true(client_send(fd, slice_of(bytes, LARGE_BYTES)));
	reply = read_reply(fd, /* to_head= */ false);
	assert_int_equal(reply.status, 409); /* it was too large to be kept, and is not executed again */
	assert_non_null(strstr(reply.body.p, "RESPONSE_NOT_STORED"));
	reply_release(&reply);
	assert_int_equal(seen_count(), 1);
	close(fd);
	upstream_hang_up();
	free(bytes);
	free(text);
}

/* The tickets that TLS 1.3 sends after its greeting are no reason to give a connection up. */
static void a_connection_is_used_again(void **state)
{
	int fd = client_open();

	(void)state;
	for (int i = 0; i < 20; i++) {
		char key[20];

		snprintf(key, sizeof key, "k%d", i);
		say_post(fd, "/x", key, "x");
		expect_reply(fd, 201, "hello");
	}
	assert_int_equal(seen_count(), 20);
	assert_int_equal(world.accepted, 1);
	close(fd);
}

#define TLS_TEST(name) cmocka_unit_test_setup_teardown(name, tls_up, down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TLS_TEST(a_request_is_created_and_replayed),
		TLS_TEST(the_upstream_is_asked_for_by_its_name),
		TLS_TEST(an_unknown_certificate_sends_nothing),
		TLS_TEST(a_certificate_for_another_name_sends_nothing),
		TLS_TEST(a_refused_greeting_sends_nothing),
		TLS_TEST(an_upstream_without_tls_is_sent_nothing),
		TLS_TEST(a_greeting_without_an_answer_sends_nothing),
		TLS_TEST(a_slow_greeting_holds_up_nobody_else),
		TLS_TEST(a_closed_port_sends_nothing),
		TLS_TEST(older_tls_will_do_but_not_any),
		TLS_TEST(a_missing_file_of_certificates_is_noticed_at_the_start),
		TLS_TEST(resets_and_timeouts_leave_the_lease),
		TLS_TEST(an_end_that_was_not_announced_is_no_end),
		TLS_TEST(a_connection_that_dies_is_no_reason_to_send_again),
		TLS_TEST(binary_answers_are_kept_byte_for_byte),
		TLS_TEST(large_bodies_go_both_ways),
		TLS_TEST(a_connection_is_used_again),
	};
	int failed = cmocka_run_group_tests_name("tls", tests, group_up, NULL);

	trust(&tls.good);
	show(&tls.good);
	tls.greeting = GREET;
	tls.rude = false;
	tls.url = "https://127.0.0.1:%d";
	failed += main_of_the_plain_tests();
	return failed + group_down(NULL);
}
