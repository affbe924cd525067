/*
 * http actions over TLS: whom they trust, and that nothing about a call differs. The service has a certificate made for the occasion, which
 * the action port is told to trust, or not.
 */
#include "act/http.h"

#include <signal.h>

#include "unit/act/upstream.h"

#include "unit/act/identity.h"

/* ---- the service ---- */

enum manner { ANSWER, APPLY_AND_CLOSE, CLOSE_IN_ANSWER };

static struct {
	int listen_fd, port;
	SSL_CTX *context;
	pthread_t thread;
	pthread_mutex_t mutex;
	enum manner manner;
	size_t connections, applied;
	char ca_file[400];
} service = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static size_t read_count(const size_t *counter)
{
	size_t n;

	pthread_mutex_lock(&service.mutex);
	n = *counter;
	pthread_mutex_unlock(&service.mutex);
	return n;
}

static enum manner count_applied(void)
{
	enum manner manner;

	pthread_mutex_lock(&service.mutex);
	service.applied++;
	manner = service.manner;
	pthread_mutex_unlock(&service.mutex);
	return manner;
}

/* All of them have one body. */
static bool hear(SSL *ssl)
{
	char text[8192] = "";
	size_t n = 0;
	int got;

	while (!strstr(text, "\r\n\r\n{}")) {
		got = SSL_read(ssl, text + n, (int)(sizeof text - 1 - n));
		if (got <= 0)
			return false;
		n += (size_t)got;
		text[n] = '\0';
	}
	return true;
}

static void talk(SSL *ssl)
{
	static const char ok[] = "HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n{\"a\":1}";

	while (hear(ssl)) {
		enum manner manner = count_applied();

		if (manner == APPLY_AND_CLOSE)
			return;
		SSL_write(ssl, ok, manner == CLOSE_IN_ANSWER ? 40 : (int)sizeof ok - 1);
		if (manner == CLOSE_IN_ANSWER)
			return;
	}
}

/* One connection at a time will do. */
static void *run(void *context)
{
	int fd;

	(void)context;
	while ((fd = accept4(service.listen_fd, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
		SSL *ssl = SSL_new(service.context);

		pthread_mutex_lock(&service.mutex);
		service.connections++;
		pthread_mutex_unlock(&service.mutex);
		SSL_set_fd(ssl, fd);
		if (SSL_accept(ssl) == 1) {
			talk(ssl);
			SSL_shutdown(ssl);
		}
		SSL_free(ssl);
		close(fd);
	}
	return NULL;
}

struct scene {
	struct desk desk;
	char url[128];
	struct action action;
};

static void open_scene(struct scene *s, const char *names, bool trusted)
{
	const char *folder = getenv("TMPDIR");

	snprintf(service.ca_file, sizeof service.ca_file, "%s/https-%d.pem", folder ? folder : "/tmp", (int)getpid());
	service.context = identity_make(names, service.ca_file);
	service.manner = ANSWER;
	service.connections = service.applied = 0;
	service.listen_fd = upstream_listen(16, &service.port);
	assert_int_equal(pthread_create(&service.thread, NULL, run, NULL), 0);
	desk_open(&s->desk, &(struct port_options){.ca_file = trusted ? service.ca_file : NULL});
	snprintf(s->url, sizeof s->url, "https://127.0.0.1:%d/x", service.port);
	s->action = (struct action){
		.name = "x", .kind = ACTION_HTTP, .effect = EFFECT_CLAIMED, .timeout_ms = 30000, .url = s->url};
}

static void close_scene(struct scene *s)
{
	desk_close(&s->desk);
	shutdown(service.listen_fd, SHUT_RDWR);
	pthread_join(service.thread, NULL);
	close(service.listen_fd);
	SSL_CTX_free(service.context);
	unlink(service.ca_file);
}

static void behave(enum manner manner)
{
	pthread_mutex_lock(&service.mutex);
	service.manner = manner;
	pthread_mutex_unlock(&service.mutex);
}

/* ---- tests ---- */

static void test_a_connection_is_reused(void **state)
{
	struct scene s;

	(void)state;
	open_scene(&s, "IP:127.0.0.1", /* trusted= */ true);
	for (int i = 0; i < 5; i++)
		desk_expect(desk_call(&s.desk, &s.action, "{}"), ACT_OK, "{\"a\":1}");
	assert_int_equal(read_count(&service.connections), 1);
	assert_int_equal(read_count(&service.applied), 5);
	close_scene(&s);
}

static void test_nothing_is_sent_to_whom_nobody_trusts(void **state)
{
	struct scene s;

	(void)state;
	open_scene(&s, "IP:127.0.0.1", /* trusted= */ false);
	desk_expect(desk_call(&s.desk, &s.action, "{}"), ACT_FAILED,
		    "nothing was sent: its certificate is not trusted");
	close_scene(&s);
	open_scene(&s, "DNS:other.example,IP:127.0.0.2", /* trusted= */ true);
	desk_expect(desk_call(&s.desk, &s.action, "{}"), ACT_FAILED,
		    "nothing was sent: its certificate is not trusted");
	assert_int_equal(read_count(&service.applied), 0);
	close_scene(&s);
}

static void dies_on_reused(enum manner manner, enum action_effect effect, size_t applied)
{
	struct scene s;

	open_scene(&s, "IP:127.0.0.1", /* trusted= */ true);
	desk_expect(desk_call(&s.desk, &s.action, "{}"), ACT_OK, "");
	behave(manner);
	s.action.effect = effect;
	desk_expect(desk_call(&s.desk, &s.action, "{}"), ACT_UNKNOWN, "it was sent");
	assert_int_equal(read_count(&service.applied), 1 + applied);
	behave(ANSWER);
	desk_expect(desk_call(&s.desk, &s.action, "{}"), ACT_OK, "");
	close_scene(&s);
}

static void test_sent_once(void **state)
{
	(void)state;
	dies_on_reused(APPLY_AND_CLOSE, EFFECT_CLAIMED, 1);
	dies_on_reused(APPLY_AND_CLOSE, EFFECT_KEYED, 1);
	dies_on_reused(APPLY_AND_CLOSE, EFFECT_IDEMPOTENT, 2);
	dies_on_reused(CLOSE_IN_ANSWER, EFFECT_CLAIMED, 1);
	dies_on_reused(CLOSE_IN_ANSWER, EFFECT_IDEMPOTENT, 1);
}

/* Whoever renews the file may take it away first, or write it in pieces: who was trusted is, until it is whole again. */
static void test_a_file_that_is_away_for_a_moment(void **state)
{
	char away[sizeof service.ca_file + 5];
	struct scene s;
	FILE *f;

	(void)state;
	open_scene(&s, "IP:127.0.0.1", /* trusted= */ true);
	snprintf(away, sizeof away, "%s.away", service.ca_file);
	assert_int_equal(rename(service.ca_file, away), 0);
	desk_expect(desk_call(&s.desk, &s.action, "{}"), ACT_FAILED, "nothing was sent"); /* not for good */
	assert_int_equal(rename(away, service.ca_file), 0);
	behave(APPLY_AND_CLOSE);
	desk_expect(desk_call(&s.desk, &s.action, "{}"), ACT_UNKNOWN, "");
	assert_int_equal(rename(service.ca_file, away), 0);
	desk_expect(desk_call(&s.desk, &s.action, "{}"), ACT_UNKNOWN, ""); /* on a connection of its own */
	f = fopen(service.ca_file, "w");
	assert_true(f && fputs("-----BEGIN CERT", f) >= 0 && fclose(f) == 0);
	behave(ANSWER);
	desk_expect(desk_call(&s.desk, &s.action, "{}"), ACT_OK, "");
	assert_int_equal(read_count(&service.connections), 3);
	assert_int_equal(unlink(away), 0);
	close_scene(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_connection_is_reused),
		cmocka_unit_test(test_nothing_is_sent_to_whom_nobody_trusts),
		cmocka_unit_test(test_sent_once),
		cmocka_unit_test(test_a_file_that_is_away_for_a_moment),
	};

	signal(SIGPIPE, SIG_IGN); /* OpenSSL's own writes, on the service's side */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
