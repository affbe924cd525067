/*
 * A real gate under clients that do nothing, little, or too slowly: its memory is bounded, and a normal client goes on.
 * And SIGTERM: what is in flight is finished and stored.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/await.h"
#include "support/gate_process.h"

#define IDLE 5000
#define SLOW 300
#define SLOW_KINDS 4
#define UPLOAD_BYTES 30000
#define STREAM_BYTES (32u << 20)
#define STORED_BYTES 1000000u
#define SETTLED_LOOKS 100
#define WAIT_MS 60000
#define MIB 1048576.0

/* ---- the gate, seen from outside ---- */

static size_t rss_of(const struct serve *gate)
{
	unsigned long total, resident = 0;
	char path[64];
	FILE *file;

	snprintf(path, sizeof path, "/proc/%d/statm", (int)gate->pid);
	file = fopen(path, "r");
	assert_non_null(file);
	assert_int_equal(fscanf(file, "%lu %lu", &total, &resident), 2);
	fclose(file);
	return resident * (size_t)sysconf(_SC_PAGESIZE);
}

/* Waits until it neither grows nor shrinks any more. */
static size_t settled_rss_of(const struct serve *gate)
{
	int64_t until_ms = await_now_ms() + WAIT_MS;
	size_t rss = rss_of(gate);

	for (int same = 0; same < SETTLED_LOOKS; same++) {
		size_t now = rss_of(gate);

		if (now != rss)
			same = 0;
		rss = now;
		if (await_now_ms() > until_ms)
			fail_msg("its memory does not settle: %zu bytes", rss);
		await_pause();
	}
	return rss;
}

/* ---- clients ---- */

static void allow_descriptors(size_t n)
{
	struct rlimit limit;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	if (limit.rlim_cur >= n)
		return;
	limit.rlim_cur = n < limit.rlim_max ? n : limit.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	if (limit.rlim_cur < n)
		fail_msg("%zu descriptors are needed, and no more than %zu allowed", n, (size_t)limit.rlim_max);
}

/* A connection that reads little: its window is small. */
static int open_connection(int port)
{
	struct sockaddr_in address = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons((uint16_t)port)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &(int){4096}, sizeof(int));
	assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
	return fd;
}

static void say(int fd, const char *text)
{
	size_t n = strlen(text);

	while (n > 0) {
		ssize_t sent = send(fd, text, n, MSG_NOSIGNAL);

		if (sent <= 0)
			fail_msg("the gate took %zu bytes too few", n);
		text += sent;
		n -= (size_t)sent;
	}
}

static void await_first_byte(int fd)
{
	struct pollfd poll_fd = {.fd = fd, .events = POLLIN};

	assert_int_equal(poll(&poll_fd, 1, WAIT_MS), 1);
}

static void must_post(struct client *client, const char *path, const char *key, const char *body, int status,
		      const char *marker)
{
	struct reply reply;

	gate_post(client, path, key, body, &reply);
	if (!reply_is(&reply, status, marker))
		fail_msg("%s: %d %s was expected: %s", key, status, marker ? marker : "unmarked", reply.head);
	reply_release(&reply);
}

/* How long a normal client takes for fifty keys, each created and replayed. */
static int64_t hundred_requests_ms(const struct gates *gates)
{
	static int calls;
	struct client *client = client_new(gates->gate[0]->port, NULL);
	int64_t start_ms = await_now_ms();
	char key[GATE_KEY_BYTES];

	for (int i = 0; i < 50; i++) {
		gates_key(gates, key, "normal-%d", calls++);
		must_post(client, "/normal", key, "{}", 201, "created");
		must_post(client, "/normal", key, "{}", 201, "replayed");
	}
	client_free(client);
	return await_now_ms() - start_ms;
}

static struct gates *set_the_scene(void **state)
{
	struct gates *gates;

	allow_descriptors(IDLE + 1000); /* of this process and, which inherits it, of the gate */
	gates = *state = gates_new(GATES_SQLITE, 1, "{}");
	service_play(gates->service, "/normal", &(struct play){.status = 201});
	hundred_requests_ms(gates);
	return gates;
}

/* ---- idle ---- */

static void idle_connections_cost_little(void **state)
{
	struct gates *gates = set_the_scene(state);
	int64_t alone_ms = hundred_requests_ms(gates), beside_ms;
	size_t before = rss_of(gates->gate[0]), after;
	struct client **clients = calloc(IDLE, sizeof *clients);
	int *fds = calloc(IDLE, sizeof *fds);
	struct reply reply;

	for (int i = 0; i < IDLE; i++) {
		if (i % 2) { /* half of them have been busy once */
			clients[i] = client_new(gates->gate[0]->port, NULL);
			assert_true(client_call(clients[i], "GET", "/", "", 0, &reply));
			reply_release(&reply);
		} else {
			fds[i] = open_connection(gates->gate[0]->port);
		}
	}
	beside_ms = hundred_requests_ms(gates);
	after = settled_rss_of(gates->gate[0]);
	printf("# gate, %d idle connections: RSS %.1f MiB before, %.1f MiB with them (%zd bytes each); 50 keys created "
	       "and replayed by a normal client: %lld ms alone, %lld ms beside them\n",
	       IDLE, before / MIB, after / MIB, (ssize_t)(after - before) / IDLE, (long long)alone_ms,
	       (long long)beside_ms);
	assert_true(after < before + IDLE * 1024);
	/* They are all still there. */
	for (int i = 1; i < IDLE; i += 98) {
		assert_true(client_call(clients[i], "GET", "/", "", 0, &reply));
		assert_int_equal(reply.status, 200);
		reply_release(&reply);
	}
	for (int i = 0; i < IDLE; i++) {
		if (!clients[i])
			close(fds[i]);
		client_free(clients[i]);
	}
	free(clients);
	free(fds);
}

/* ---- slow ---- */

static char *filled(size_t n)
{
	char *text = malloc(n + 1);

	assert_non_null(text);
	memset(text, 'x', n);
	text[n] = '\0';
	return text;
}

/* An upload that stops in its middle; and readers, that do not read, of an answer that passes, of one that is guarded
 * and too large to be stored, and of a replay. */
static int open_slow(const struct gates *gates, int i, const char *upload)
{
	int fd = open_connection(gates->gate[0]->port);
	char key[GATE_KEY_BYTES], head[400];
	const char *path = i % SLOW_KINDS == 0 ? "/normal" : i % SLOW_KINDS == 3 ? "/stored" : "/large";

	gates_key(gates, key, "slow-%d", i % SLOW_KINDS == 3 ? 3 : i);
	snprintf(head, sizeof head, "%s %s HTTP/1.1\r\nHost: a\r\nIdempotency-Key: %s\r\nContent-Length: %u\r\n\r\n",
		 i % SLOW_KINDS == 1 ? "GET" : "POST", path, key, i % SLOW_KINDS == 0 ? 1000000 : 0);
	say(fd, head);
	if (i % SLOW_KINDS == 0)
		say(fd, upload);
	return fd;
}

/* What one of each kind may take, at most: half a body in a buffer that grows by doubling; two streams, each with two
 * full buffers and one for what is being read; a whole answer on its way out. */
static size_t slow_bytes_max(void)
{
	return SLOW / SLOW_KINDS * (2 * UPLOAD_BYTES + 2 * (512u << 10) + STORED_BYTES + (64u << 10));
}

static void slow_connections_are_bounded(void **state)
{
	struct gates *gates = set_the_scene(state);
	char *upload = filled(UPLOAD_BYTES), *large = filled(STREAM_BYTES), *stored = filled(STORED_BYTES);
	size_t before, after;
	int fds[SLOW];
	char key[GATE_KEY_BYTES];

	service_play(gates->service, "/large", &(struct play){.status = 200, .body = large});
	service_play(gates->service, "/stored", &(struct play){.status = 201, .body = stored});
	before = rss_of(gates->gate[0]);
	for (int i = 0; i < SLOW; i++) {
		fds[i] = open_slow(gates, i, upload);
		if (i % SLOW_KINDS == 3)
			await_first_byte(fds[i]); /* the first one is stored: the others are its replays */
	}
	for (int i = 0; i < SLOW; i++)
		if (i % SLOW_KINDS != 0)
			await_first_byte(fds[i]);
	after = settled_rss_of(gates->gate[0]);
	printf("# gate, %d slow connections (uploads of %d KB that stop, readers of %u MiB passing and guarded, of a "
	       "replay of %u KB): RSS %.1f MiB before, %.1f MiB with them (%zd bytes each); 50 keys created and "
	       "replayed by a normal client: %lld ms\n",
	       SLOW, UPLOAD_BYTES / 1000, STREAM_BYTES >> 20, STORED_BYTES / 1000, before / MIB, after / MIB,
	       (ssize_t)(after - before) / SLOW, (long long)hundred_requests_ms(gates));
	assert_true(after < before + slow_bytes_max());
	assert_int_equal(service_count(gates->service, "/large", NULL), SLOW / SLOW_KINDS * 2);
	assert_int_equal(service_count(gates->service, "/stored", NULL), 1);
	for (int i = 0; i < SLOW; i++)
		close(fds[i]);
	/* An upload that was never complete has locked nothing. */
	gates_key(gates, key, "slow-%d", 0);
	struct client *client = client_new(gates->gate[0]->port, NULL);
	must_post(client, "/normal", key, "{}", 201, "created");
	client_free(client);
	free(upload);
	gates_free(gates); /* its service sends from these */
	*state = NULL;
	free(large);
	free(stored);
}

/* ---- SIGTERM ---- */

struct posting {
	struct client *client;
	char key[GATE_KEY_BYTES];
	struct reply reply;
};

static void *post(void *context)
{
	struct posting *p = context;

	gate_post(p->client, "/slow", p->key, "{}", &p->reply);
	return NULL;
}

/* The answer comes half a second after the signal. */
static void sigterm_finishes_what_is_in_flight(void **state)
{
	struct gates *gates = *state = gates_new(GATES_SQLITE, 1, "{}");
	struct posting p = {.client = client_new(gates->gate[0]->port, NULL)};
	int idle = open_connection(gates->gate[0]->port);
	struct client *client;
	struct reply again;
	pthread_t thread;

	gates_key(gates, p.key, "term");
	service_play(gates->service, "/slow", &(struct play){.status = 201, .receipt = true, .delay_ms = 500});
	assert_int_equal(pthread_create(&thread, NULL, post, &p), 0);
	service_await(gates->service, "/slow", 1, WAIT_MS);
	serve_stop(gates->gate[0]); /* fails if it does not exit with 0 */
	pthread_join(thread, NULL);
	if (!reply_is(&p.reply, 201, "created"))
		fail_msg("the request in flight: %s", p.reply.status ? p.reply.head : "no answer");
	gates_start(gates, 0);
	client = client_new(gates->gate[0]->port, NULL);
	gate_post(client, "/slow", p.key, "{}", &again);
	assert_true(reply_is(&again, 201, "replayed") && reply_same(&again, &p.reply));
	assert_int_equal(service_count(gates->service, "/slow", NULL), 1);
	printf("# gate, SIGTERM: a request whose answer came 500 ms later was answered after %lld ms, exit 0, replayed "
	       "after the restart\n",
	       (long long)p.reply.took_ms);
	assert_true(p.reply.took_ms >= 500);
	close(idle);
	reply_release(&p.reply);
	reply_release(&again);
	client_free(p.client);
	client_free(client);
}

static int down(void **state)
{
	gates_free(*state);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(idle_connections_cost_little, down),
		cmocka_unit_test_teardown(slow_connections_are_bounded, down),
		cmocka_unit_test_teardown(sigterm_finishes_what_is_in_flight, down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
