/* A process that was stopped while a call was connecting: what is over by then is not sent any more. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "wire/upstream.h"

static int over = -1;

static void head(struct upstream_call *call)
{
	(void)call;
}

static size_t data(struct upstream_call *call, struct slice bytes)
{
	(void)call;
	return bytes.n;
}

static void ended(struct upstream_call *call, enum upstream_end end)
{
	(void)call;
	over = (int)end;
}

static int listen_at(char url[64])
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t n = sizeof at;
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	assert_int_equal(bind(fd, (struct sockaddr *)&at, n), 0);
	assert_int_equal(listen(fd, 5), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &n), 0);
	snprintf(url, 64, "http://127.0.0.1:%d", ntohs(at.sin_port));
	return fd;
}

static void test_stopped_while_connecting(void **state)
{
	struct upstream_ways ways = {.clock = clock_system()};
	struct upstream_call call;
	struct upstream *upstream;
	struct upstream_hub *hub;
	struct upstream_pool *pool;
	struct arena arena;
	struct loop loop;
	struct hx_error err;
	char url[64], bytes[1000];
	int door = listen_at(url), fd;

	(void)state;
	arena_init(&arena, 100000);
	assert_int_equal(loop_init(&loop, clock_system(), &err), HX_OK);
	assert_int_equal(upstream_new_by(url, &ways, &upstream, &err), HX_OK);
	hub = upstream_hub_new(&loop, /* idle_ms= */ 3000, /* idle_max= */ 10);
	pool = upstream_join_hub(upstream, hub);
	call = (struct upstream_call){.method = slice_str("POST"),
				      .target = slice_str("/"),
				      .arena = &arena,
				      .timeout_ms = 50,
				      .head = head,
				      .data = data,
				      .ended = ended};
	upstream_call_begin(pool, &call);
	nanosleep(&(struct timespec){.tv_nsec = 300000000}, NULL); /* six times its time */
	while (over < 0)
		loop_round(&loop, (struct mono_time){INT64_MAX});
	assert_int_equal(over, UPSTREAM_NOT_SENT);
	fd = accept(door, NULL, NULL);
	assert_true(recv(fd, bytes, sizeof bytes, MSG_DONTWAIT) <= 0);
	close(fd);
	close(door);
	loop_round(&loop, mono_add_ms(clock_mono(clock_system()), 1)); /* what was closed is freed by its letter */
	upstream_free(upstream);
	upstream_hub_free(hub);
	loop_release(&loop);
	arena_release(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_stopped_while_connecting)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
