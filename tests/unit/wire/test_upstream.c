/*
 * How a call gets to its service: what the name means, which address lets us, and that nothing is called unknown that was not sent. The
 * clock is the test's, and so are getaddrinfo() and sendmsg(), which stand before the C library's.
 */
#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/await.h"
#include "support/must_hold.h"
#include "wire/resolver.h"
#include "wire/upstream.h"

#define PATIENCE_MS 20000
#define FIRST "127.0.0.1"
#define SECOND "127.0.0.2"
#define NAME "service.test"

/* ---- the world ---- */

static struct {
	const char *addresses; /* what NAME means: one, or two with a space between; NULL: nothing */
	atomic_bool hangs;     /* who asks waits */
	atomic_size_t questions;
	bool send_waits; /* sockets take nothing */
} world;

typedef int (*getaddrinfo_fn)(const char *, const char *, const struct addrinfo *, struct addrinfo **);

int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **ret)
{
	getaddrinfo_fn library = (getaddrinfo_fn)dlsym(RTLD_NEXT, "getaddrinfo");
	char copy[100], *rest = copy, *one;
	struct addrinfo **end = ret;

	if (strcmp(node, NAME) != 0)
		return library(node, service, hints, ret);
	world.questions++;
	while (world.hangs)
		await_pause();
	if (!world.addresses)
		return EAI_NONAME;
	snprintf(copy, sizeof copy, "%s", world.addresses);
	while ((one = strsep(&rest, " "))) {
		assert_int_equal(library(one, service, hints, end), 0);
		while (*end)
			end = &(*end)->ai_next;
	}
	return 0;
}

ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
	if (!world.send_waits)
		return syscall(SYS_sendmsg, fd, message, flags);
	errno = EAGAIN;
	return -1;
}

/* ---- the scene ---- */

static struct fake_clock fake;
static struct loop loop;
static struct resolver *resolver;
static struct upstream *upstream;
static struct upstream_hub *hub;
static struct upstream_pool *pool;
static struct arena arena;
static struct upstream_call call;
static int over, port, doors[2], fillers[4], fillers_n;
static const char *forbidden;

static void head(struct upstream_call *c)
{
	(void)c;
}

static size_t data(struct upstream_call *c, struct slice bytes)
{
	(void)c;
	return bytes.n;
}

static void ended(struct upstream_call *c, enum upstream_end end)
{
	(void)c;
	over = (int)end;
}

static const char *refusal(const void *context, const struct sockaddr *to)
{
	char text[INET_ADDRSTRLEN];

	(void)context;
	inet_ntop(AF_INET, &((const struct sockaddr_in *)(const void *)to)->sin_addr, text, sizeof text);
	return forbidden && strcmp(text, forbidden) == 0 ? "forbidden" : NULL;
}

/* -1: somebody has it. */
static int bind_to(const char *address, int at_port)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)at_port)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	inet_pton(AF_INET, address, &at.sin_addr);
	if (bind(fd, (struct sockaddr *)&at, sizeof at) == 0)
		return fd;
	close(fd);
	return -1;
}

static int port_of(int fd)
{
	struct sockaddr_in at;
	socklen_t n = sizeof at;

	assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &n), 0);
	return ntohs(at.sin_port);
}

/* At both addresses one port, at which nobody listens yet. */
static void take_port(void)
{
	do {
		doors[0] = bind_to(FIRST, 0);
		port = port_of(doors[0]);
		doors[1] = bind_to(SECOND, port);
		if (doors[1] < 0)
			close(doors[0]);
	} while (doors[1] < 0);
}

/* A door that lets nobody in and sends nobody away: its backlog is full, and further packets are dropped. */
static void block_up(int door)
{
	struct sockaddr_in at;
	socklen_t n = sizeof at;

	assert_int_equal(listen(door, 0), 0);
	assert_int_equal(getsockname(door, (struct sockaddr *)&at, &n), 0);
	for (fillers_n = 0; fillers_n < 4; fillers_n++) {
		fillers[fillers_n] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
		(void)connect(fillers[fillers_n], (struct sockaddr *)&at, n);
	}
}

static int set_up(void **state)
{
	struct upstream_ways ways = {.clock = &fake.clock, .refusal = refusal};
	struct hx_error err;
	char url[64];

	(void)state;
	fake_clock_init(&fake, (struct wall_time){1000000});
	arena_init(&arena, 1000000);
	world.addresses = FIRST " " SECOND;
	world.hangs = world.send_waits = false;
	world.questions = 0;
	forbidden = NULL;
	fillers_n = 0;
	take_port();
	snprintf(url, sizeof url, "http://" NAME ":%d", port);
	assert_int_equal(loop_init(&loop, &fake.clock, &err), HX_OK);
	resolver = ways.resolver = resolver_new(&fake.clock);
	assert_int_equal(upstream_new_by(url, &ways, &upstream, &err), HX_OK);
	hub = upstream_hub_new(&loop, /* idle_ms= */ 3600000, /* idle_max= */ 10);
	pool = upstream_join_hub(upstream, hub);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	world.hangs = false;
	/* What was closed in the last round is freed by its letter. */
	for (int i = 0; i < 3; i++)
		loop_round(&loop, mono_add_ms(clock_mono(&fake.clock), 1));
	upstream_free(upstream);
	upstream_hub_free(hub);
	resolver_free(resolver);
	loop_release(&loop);
	arena_release(&arena);
	for (int i = 0; i < fillers_n; i++)
		close(fillers[i]);
	close(doors[0]);
	close(doors[1]);
	return 0;
}

/* ---- steps ---- */

static void round_once(void)
{
	loop_round(&loop, mono_add_ms(clock_mono(&fake.clock), 2));
}

#define ROUNDS_UNTIL(condition)                                                                                        \
	for (int64_t until_ = await_now_ms() + PATIENCE_MS; !(condition); round_once())                                \
	assert_true(await_now_ms() < until_)

static void begin(int64_t timeout_ms)
{
	round_once(); /* calls begin in the middle of one: the loop knows what time it is */
	over = -1;
	call = (struct upstream_call){.method = slice_str("POST"),
				      .target = slice_str("/"),
				      .arena = &arena,
				      .timeout_ms = timeout_ms,
				      .fresh = true,
				      .head = head,
				      .data = data,
				      .ended = ended};
	upstream_call_begin(pool, &call);
}

static bool is_readable(int fd)
{
	return poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, 0) == 1;
}

/* Somebody comes to this door. */
static int let_in(int door)
{
	ROUNDS_UNTIL(is_readable(door));
	return accept4(door, NULL, NULL, SOCK_CLOEXEC);
}

/* And is answered: the connection stays. */
static int serve(int door)
{
	static const char ok[] = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}";
	char request[1000];
	int fd = let_in(door);

	ROUNDS_UNTIL(is_readable(fd));
	assert_true(read(fd, request, sizeof request) > 0);
	assert_int_equal(write(fd, ok, sizeof ok - 1), sizeof ok - 1);
	ROUNDS_UNTIL(over >= 0);
	assert_int_equal(over, UPSTREAM_ANSWERED);
	return fd;
}

/* ---- several addresses ---- */

/* The first one has half of the time, and the second is still reached; from then on it is the first. */
static void the_time_is_shared_and_who_let_us_in_comes_first(void **state)
{
	(void)state;
	block_up(doors[0]);
	assert_int_equal(listen(doors[1], 5), 0);
	begin(500);
	ROUNDS_UNTIL(call.tried == 1);
	fake_clock_advance_ms(&fake, 249);
	for (int i = 0; i < 5; i++)
		round_once();
	assert_int_equal(call.tried, 1);
	fake_clock_advance_ms(&fake, 1);
	close(serve(doors[1]));
	begin(500);
	close(serve(doors[1])); /* no time has passed */
	assert_int_equal(call.tried, 1);
}

/* However much time there is, one address does not have all of it. */
static void a_share_has_a_limit(void **state)
{
	(void)state;
	block_up(doors[0]);
	assert_int_equal(listen(doors[1], 5), 0);
	begin(600000);
	ROUNDS_UNTIL(call.tried == 1);
	fake_clock_advance_ms(&fake, UPSTREAM_TRY_MS);
	close(serve(doors[1]));
}

static void the_last_address_is_told(void **state)
{
	(void)state;
	block_up(doors[1]); /* nobody listens at the first one */
	begin(500);
	ROUNDS_UNTIL(call.tried == 2);
	fake_clock_advance_ms(&fake, 500);
	ROUNDS_UNTIL(over >= 0);
	assert_int_equal(over, UPSTREAM_NOT_SENT);
	assert_int_equal(call.obstacle, UPSTREAM_OTHER);
	assert_string_equal(call.reason, "no connection to the upstream could be made in time");
}

/* ---- what a name means ---- */

static void nobody_waits_for_what_is_known(void **state)
{
	(void)state;
	assert_int_equal(listen(doors[0], 5), 0);
	begin(500);
	close(serve(doors[0]));
	assert_int_equal(world.questions, 1);
	world.hangs = true;
	fake_clock_advance_ms(&fake, UPSTREAM_NAME_MS);
	begin(500);
	close(serve(doors[0])); /* while it is asked for */
	ROUNDS_UNTIL(world.questions == 2);
	fake_clock_advance_ms(&fake, UPSTREAM_STALE_MS);
	begin(500);
	ROUNDS_UNTIL(is_readable(doors[0]) || (fake_clock_advance_ms(&fake, 100), over >= 0));
	assert_int_equal(over, UPSTREAM_NOT_SENT); /* that is too long ago */
	assert_int_equal(call.tried, 0);
}

static void what_fails_leaves_what_is_known(void **state)
{
	(void)state;
	assert_int_equal(listen(doors[0], 5), 0);
	begin(500);
	close(serve(doors[0]));
	world.addresses = NULL;
	for (size_t i = 0; i < 2; i++) {
		fake_clock_advance_ms(&fake, UPSTREAM_NAME_MS);
		begin(500);
		close(serve(doors[0]));
		ROUNDS_UNTIL(world.questions == 2 + i);
		for (int rounds = 0; rounds < 5; rounds++)
			round_once(); /* the answer comes, and says nothing */
	}
}

static void after_a_timeout_it_is_asked_for_anew(void **state)
{
	(void)state;
	world.addresses = FIRST;
	block_up(doors[0]);
	begin(500);
	ROUNDS_UNTIL(call.tried == 1);
	fake_clock_advance_ms(&fake, 500);
	ROUNDS_UNTIL(over >= 0);
	assert_int_equal(world.questions, 1);
	world.addresses = SECOND; /* it has moved */
	assert_int_equal(listen(doors[1], 5), 0);
	begin(500);
	close(serve(doors[1]));
	assert_int_equal(world.questions, 2);
}

/* ---- not a byte has left ---- */

/* The first send has to wait, and meanwhile the service closes, or says something. */
static void unsent(const char *words)
{
	int fd;

	assert_int_equal(listen(doors[0], 5), 0);
	world.send_waits = true;
	begin(500);
	fd = let_in(doors[0]);
	assert_int_equal(write(fd, words, strlen(words)), strlen(words));
	shutdown(fd, SHUT_WR);
	ROUNDS_UNTIL(over >= 0);
	close(fd);
	MUST_HOLD(over == UPSTREAM_NOT_SENT,
		  "a call that nobody has got is taken for one that may have been done, or was");
	assert_false(call.sent);
}

static void who_closes_before_the_request_has_not_got_it(void **state)
{
	(void)state;
	unsent("");
}

static void what_is_said_before_the_request_is_no_answer(void **state)
{
	(void)state;
	unsent("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}");
}

/* ---- the last descriptor ---- */

static void an_idle_connection_makes_room(void **state)
{
	struct rlimit before, tight;
	int served, lowest;

	(void)state;
	assert_int_equal(listen(doors[0], 5), 0);
	begin(500);
	served = serve(doors[0]);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	lowest = dup(0); /* the next one that would be given out */
	close(lowest);
	tight = (struct rlimit){.rlim_cur = (rlim_t)lowest, .rlim_max = before.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &tight), 0);
	begin(500);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	close(serve(doors[0]));
	assert_true(is_readable(served)); /* its end */
	close(served);
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(the_time_is_shared_and_who_let_us_in_comes_first),
		TEST(a_share_has_a_limit),
		TEST(the_last_address_is_told),
		TEST(nobody_waits_for_what_is_known),
		TEST(what_fails_leaves_what_is_known),
		TEST(after_a_timeout_it_is_asked_for_anew),
		TEST(who_closes_before_the_request_has_not_got_it),
		TEST(what_is_said_before_the_request_is_no_answer),
		TEST(an_idle_connection_makes_room),
	};

	ONLY_THE_NAMED(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
