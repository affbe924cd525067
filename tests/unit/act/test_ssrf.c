/*
 * Where an http action can be made to connect to, tried for real: every spelling of a forbidden address goes through the
 * action port and its client, while a canary listens on loopback that must not get a connection. The control: allowed, the
 * same spellings reach it.
 *
 * Names are answered by this program, whose getaddrinfo() stands before the C library's: so an answer can change between any
 * two questions, and nothing is asked of a real server. Addresses, however they are spelled, are left to the C library.
 */
#include "act/http.h"

#include <dlfcn.h>
#include <locale.h>
#include <netdb.h>
#include <stdatomic.h>

#include "model/url.h"
#include "unit/act/upstream.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* ---- the resolver ---- */

#define ANSWERS_MAX 4

/* Addresses with a space between; the i-th question gets the i-th answer, and then all over again. */
static struct {
	pthread_mutex_t mutex;
	const char *name;
	const char *answers[ANSWERS_MAX];
	size_t answers_n, questions;
} zone = {.mutex = PTHREAD_MUTEX_INITIALIZER};

/* What would stand in /etc/hosts, or in somebody's own domain. */
static const struct {
	const char *name, *address;
} hosts[] = {
	{"localhost.", "127.0.0.1"},
	{"localhost.localdomain", "127.0.0.1"},
	{"ip6-localhost", "::1"},
	{"127.0.0.1.example.test", "127.0.0.1"},
	{"metadata.google.internal", "169.254.169.254"},
	{"inside.example.test", "10.0.0.1"},
};

typedef int (*getaddrinfo_fn)(const char *, const char *, const struct addrinfo *, struct addrinfo **);

static int ask_library(const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **ret)
{
	getaddrinfo_fn library = (getaddrinfo_fn)dlsym(RTLD_NEXT, "getaddrinfo");
	struct addrinfo numeric = hints ? *hints : (struct addrinfo){0};

	numeric.ai_flags |= AI_NUMERICHOST;
	return library(node, service, &numeric, ret);
}

static int answer_with(const char *addresses, const char *service, const struct addrinfo *hints, struct addrinfo **ret)
{
	struct addrinfo **end = ret;
	char copy[200], *rest = copy, *one;

	*ret = NULL;
	snprintf(copy, sizeof copy, "%s", addresses);
	while ((one = strsep(&rest, " ")))
		if (ask_library(one, service, hints, end) == 0)
			while (*end)
				end = &(*end)->ai_next;
	return *ret ? 0 : EAI_NONAME;
}

/* For as long as a test wants it to. */
static atomic_bool hangs;

int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **ret)
{
	const char *addresses = NULL;

	if (ask_library(node, service, hints, ret) == 0)
		return 0;
	while (node && strcmp(node, "hangs.test") == 0 && hangs)
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	for (size_t i = 0; node && i < COUNT(hosts); i++)
		if (strcasecmp(node, hosts[i].name) == 0)
			addresses = hosts[i].address;
	pthread_mutex_lock(&zone.mutex);
	if (zone.name && node && strcasecmp(node, zone.name) == 0)
		addresses = zone.answers[zone.questions++ % zone.answers_n];
	pthread_mutex_unlock(&zone.mutex);
	return addresses ? answer_with(addresses, service, hints, ret) : EAI_NONAME;
}

static void zone_set(const char *name, const char *first, const char *second)
{
	pthread_mutex_lock(&zone.mutex);
	zone.name = name;
	zone.answers[0] = first;
	zone.answers[1] = second;
	zone.answers_n = second ? 2 : 1;
	zone.questions = 0;
	pthread_mutex_unlock(&zone.mutex);
}

/* ---- the canary ---- */

enum { AT_LOOPBACK, AT_LOOPBACK_V6, AT_SECOND, PLACES };
static const char *const places[PLACES] = {"127.0.0.1", "::1", "127.0.0.2"};

/* Listens on one port of each place, counts who comes, and says 200. */
struct canary {
	int port, stop_fd;
	int fds[PLACES]; /* -1: it does not listen there */
	atomic_size_t came[PLACES];
	pthread_t thread;
};

static int listen_at(const char *address, int port)
{
	char service[8];
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *at;
	int fd;

	snprintf(service, sizeof service, "%d", port);
	assert_int_equal(ask_library(address, service, &hints, &at), 0);
	fd = socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd >= 0 && (bind(fd, at->ai_addr, at->ai_addrlen) != 0 || listen(fd, 64) != 0)) {
		close(fd);
		fd = -1;
	}
	freeaddrinfo(at);
	return fd;
}

static void reply_to(int fd)
{
	static const char ok[] = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}";
	char text[4096] = "";
	size_t n = 0;
	ssize_t got;

	while (!strstr(text, "\r\n\r\n{}") && n + 1 < sizeof text &&
	       (got = read(fd, text + n, sizeof text - 1 - n)) > 0) {
		n += (size_t)got;
		text[n] = '\0';
	}
	upstream_send_bytes(fd, ok, sizeof ok - 1);
	close(fd);
}

static void *watch(void *context)
{
	struct canary *c = context;
	struct pollfd fds[PLACES + 1];

	for (;;) {
		for (int i = 0; i < PLACES; i++)
			fds[i] = (struct pollfd){.fd = c->fds[i], .events = POLLIN};
		fds[PLACES] = (struct pollfd){.fd = c->stop_fd, .events = POLLIN};
		if (poll(fds, PLACES + 1, -1) < 0)
			continue;
		for (int i = 0; i < PLACES; i++)
			if (fds[i].revents) {
				c->came[i]++;
				reply_to(accept4(c->fds[i], NULL, NULL, SOCK_CLOEXEC));
			}
		if (fds[PLACES].revents)
			return NULL;
	}
}

/* A port that is free in all places that there are, at which the canary sits in some. A machine may be without IPv6. */
static void canary_open(struct canary *c, bool loopback, bool second)
{
	*c = (struct canary){.stop_fd = eventfd(0, EFD_CLOEXEC)};
	do {
		if (c->port) {
			close(c->fds[AT_LOOPBACK]);
			close(c->fds[AT_SECOND]);
		}
		c->fds[AT_LOOPBACK] = upstream_listen(64, &c->port);
		c->fds[AT_SECOND] = listen_at(places[AT_SECOND], c->port);
	} while (c->fds[AT_SECOND] < 0);
	c->fds[AT_LOOPBACK_V6] = loopback ? listen_at(places[AT_LOOPBACK_V6], c->port) : -1;
	for (int i = 0; i < PLACES; i++)
		if (!(i == AT_SECOND ? second : loopback) && c->fds[i] >= 0) {
			close(c->fds[i]);
			c->fds[i] = -1;
		}
	assert_int_equal(pthread_create(&c->thread, NULL, watch, c), 0);
}

/* Nobody can be in the backlog any more: every call was answered. */
static void canary_close(struct canary *c)
{
	assert_int_equal(eventfd_write(c->stop_fd, 1), 0);
	pthread_join(c->thread, NULL);
	for (int i = 0; i < PLACES; i++)
		if (c->fds[i] >= 0)
			close(c->fds[i]);
	close(c->stop_fd);
}

static size_t came_to_loopback(struct canary *c)
{
	return c->came[AT_LOOPBACK] + c->came[AT_LOOPBACK_V6];
}

/* ---- the spellings ---- */

/* clang-format off */
enum what {
	HERE,      /* this machine: allowed, it reaches the canary */
	HERE6,     /* the same, if the machine has IPv6 */
	CARRIED,   /* this machine at the other end of a tunnel or a translator */
	ELSEWHERE, /* another address that is not public */
	NONE,      /* no address, and no name that anybody has heard of: nothing is connected to */
};

/* "*": refused at load, as the address of an action, and by the client as well; all others are addresses as good as any until they are judged. */
static const struct spelling {
	const char *load, *host;
	enum what what;
} spellings[] = {
	/* decimal, octal, hexadecimal, short, mixed */
	{"", "127.0.0.1", HERE}, {"", "127.1", HERE}, {"", "127.0.1", HERE}, {"", "2130706433", HERE},
	{"", "0x7f000001", HERE}, {"", "0X7F000001", HERE}, {"", "0x7f.0x0.0x0.0x1", HERE}, {"", "0x7f.1", HERE},
	{"", "017700000001", HERE}, {"", "0177.0.0.1", HERE}, {"", "0177.0.0.01", HERE}, {"", "0000177.0.0.1", HERE},
	{"", "0177.0x0.0.1", HERE}, {"", "127.0x000001", HERE}, {"", "0x7f.0.0.01", HERE},
	{"", "00000000000000000000000177.0.0.1", HERE},
	/* as characters of another kind, which IDNA maps, or in disguise */
	{"*", "①②⑦.⓪.⓪.①", HERE}, {"*", "１２７.０.０.１", HERE}, {"*", "127。0。0。1", HERE},
	{"*", "127．0．0．1", HERE}, {"*", "127｡0｡0｡1", HERE}, {"*", "ｌｏｃａｌｈｏｓｔ", HERE},
	{"*", "ⓛⓞⓒⓐⓛⓗⓞⓢⓣ", HERE}, {"*", "0ｘ7f000001", HERE},
	{"*", "%31%32%37.0.0.1", HERE}, {"*", "127%2e0%2e0%2e1", HERE}, {"*", "%6cocalhost", HERE},
	/* after somebody else's name */
	{"*", "example.com@127.0.0.1", HERE}, {"*", "example.com:80@127.0.0.1", HERE},
	{"*", "8.8.8.8%40@127.0.0.1", HERE}, {"*", "user:pass@localhost", HERE},
	/* names */
	{"", "localhost", HERE}, {"", "LOCALHOST", HERE}, {"", "LocalHost", HERE}, {"", "localhost.", HERE},
	{"", "inner.localhost", HERE}, {"", "localhost.localdomain", HERE}, {"", "ip6-localhost", HERE6},
	{"", "127.0.0.1.example.test", HERE}, {"", "metadata.google.internal", ELSEWHERE}, {"", "inside.example.test", ELSEWHERE},
	/* in brackets */
	{"", "[::1]", HERE6}, {"", "[0:0:0:0:0:0:0:1]", HERE6}, {"", "[0000:0000:0000:0000:0000:0000:0000:0001]", HERE6},
	{"", "[::0.0.0.1]", HERE6}, {"", "[0::1]", HERE6}, {"*", "[::1%25lo]", HERE6}, {"*", "[::1%lo]", HERE6},
	{"", "[::ffff:127.0.0.1]", HERE6}, {"", "[::ffff:7f00:1]", HERE6}, {"", "[::FFFF:7F00:0001]", HERE6},
	{"", "[0:0:0:0:0:ffff:127.0.0.1]", HERE6}, {"", "[0:0:0:0:0:FFFF:7f00:0001]", HERE6},
	/* nowhere, which Linux takes for this machine */
	{"", "0.0.0.0", HERE}, {"", "0", HERE}, {"", "0x0", HERE}, {"", "00", HERE}, {"", "0.0", HERE},
	{"", "[::]", HERE6}, {"", "[0:0:0:0:0:0:0:0]", HERE6}, {"", "[::ffff:0.0.0.0]", HERE6},
	/* IPv4 carried by IPv6 */
	{"", "[::127.0.0.1]", CARRIED}, {"", "[::7f00:1]", CARRIED}, {"", "[64:ff9b::127.0.0.1]", CARRIED},
	{"", "[64:ff9b::7f00:1]", CARRIED}, {"", "[0064:FF9B:0:0:0:0:7F00:0001]", CARRIED},
	{"", "[2002:7f00:1::]", CARRIED}, {"", "[2002:7f00:1::8]", CARRIED}, {"", "[::ffff:0:127.0.0.1]", CARRIED},
	{"", "[::ffff:0:7f00:1]", CARRIED},
	{"", "[64:ff9b:1::7f00:1]", ELSEWHERE}, {"", "[64:ff9b:1:7f00:0:100::]", ELSEWHERE},
	{"", "[2001::7f00:1]", ELSEWHERE}, {"", "[2001:0:7f00:1::]", ELSEWHERE},
	{"", "[2001:0:5ef5:79fd:0:0:80ff:fffe]", ELSEWHERE},
	/* the metadata services of clouds */
	{"", "169.254.169.254", ELSEWHERE}, {"", "2852039166", ELSEWHERE}, {"", "0xa9fea9fe", ELSEWHERE},
	{"", "0xA9.0xFE.0xA9.0xFE", ELSEWHERE}, {"", "0251.0376.0251.0376", ELSEWHERE}, {"", "025177524776", ELSEWHERE},
	{"", "169.254.43518", ELSEWHERE}, {"", "169.16689662", ELSEWHERE}, {"", "0xa9.254.0251.0376", ELSEWHERE},
	{"*", "１６９.254.169.254", ELSEWHERE}, {"*", "①⑥⑨.254.169.254", ELSEWHERE},
	{"*", "169。254。169。254", ELSEWHERE}, {"*", "%31%36%39.254.169.254", ELSEWHERE},
	{"", "[::ffff:169.254.169.254]", ELSEWHERE}, {"", "[::ffff:a9fe:a9fe]", ELSEWHERE},
	{"", "[64:ff9b::169.254.169.254]", ELSEWHERE}, {"", "[2002:a9fe:a9fe::]", ELSEWHERE},
	{"", "[fd00:ec2::254]", ELSEWHERE}, {"*", "[fe80::a9fe:a9fe%25lo]", ELSEWHERE},
	{"", "100.100.100.200", ELSEWHERE}, {"", "192.0.0.192", ELSEWHERE},
	/* private, link-local, shared, and the rest of the registries */
	{"", "10.0.0.1", ELSEWHERE}, {"", "012.0.0.1", ELSEWHERE}, {"", "167772161", ELSEWHERE}, {"", "10.1", ELSEWHERE},
	{"", "172.16.0.1", ELSEWHERE}, {"", "172.31.255.255", ELSEWHERE}, {"", "192.168.0.1", ELSEWHERE},
	{"", "0xc0a80001", ELSEWHERE}, {"", "192.168.1", ELSEWHERE}, {"", "[::ffff:10.0.0.1]", ELSEWHERE},
	{"", "[64:ff9b::a00:1]", ELSEWHERE}, {"", "[2002:c0a8:1::1]", ELSEWHERE}, {"", "[fc00::1]", ELSEWHERE},
	{"", "[fdff:ffff::1]", ELSEWHERE}, {"", "[fec0::1]", ELSEWHERE}, {"", "[fe80::1]", ELSEWHERE},
	{"", "[200::1]", ELSEWHERE}, {"", "[4000::1]", ELSEWHERE}, {"", "100.64.0.1", ELSEWHERE},
	{"", "224.0.0.1", ELSEWHERE}, {"", "239.255.255.255", ELSEWHERE}, {"", "[ff02::1]", ELSEWHERE},
	{"", "255.255.255.255", ELSEWHERE}, {"", "4294967295", ELSEWHERE}, {"", "240.0.0.1", ELSEWHERE},
	{"", "198.18.0.1", ELSEWHERE}, {"", "203.0.113.9", ELSEWHERE}, {"", "[2001:db8::1]", ELSEWHERE},
	{"", "[100::1]", ELSEWHERE},
	/* none at all */
	{"", "127.0.0.1.", NONE}, {"", "127.0.0.1.1", NONE}, {"", "127.0.0.256", NONE}, {"", "08.0.0.1", NONE},
	{"", "4294967296", NONE}, {"", "0x", NONE}, {"*", "127.0.0.1\\@example.com", NONE}, {"*", "127.0.0.1 ", NONE},
	{"*", "127.0.0.1%00.example.com", NONE}, {"*", "127.0.0.1%0d%0a", NONE}, {"*", "[127.0.0.1]", NONE},
	{"*", "[::1", NONE}, {"*", "::1", NONE}, {"*", "", NONE},
};
/* clang-format on */

static const struct desk_answer *call(struct desk *desk, const char *host, int port)
{
	char url[200];
	struct action action = {.name = "x", .kind = ACTION_HTTP, .timeout_ms = 10000, .url = url};

	snprintf(url, sizeof url, "http://%s:%d/x", host, port);
	return desk_call(desk, &action, "{}");
}

static void test_no_spelling_gets_through(void **state)
{
	struct outbound outbound;
	struct canary canary;
	struct desk desk;

	(void)state;
	assert_true(COUNT(spellings) >= 60);
	outbound_init(&outbound, /* loopback= */ false);
	canary_open(&canary, /* loopback= */ true, /* second= */ true);
	desk_open(&desk, &(struct port_options){.outbound = &outbound});
	for (size_t i = 0; i < COUNT(spellings); i++) {
		const struct desk_answer *answer = call(&desk, spellings[i].host, canary.port);
		bool no_url = spellings[i].load[0] == '*', no_address = no_url || spellings[i].what == NONE;

		if ((answer->outcome != ACT_FAILED_FOR_GOOD && (no_url || !no_address)) ||
		    !strstr(answer->output, no_address ? "nothing was sent" : "address not allowed"))
			fail_msg("%s: %s: %s", spellings[i].host, act_outcome_name(answer->outcome), answer->output);
		if (came_to_loopback(&canary))
			fail_msg("%s: the canary got a connection", spellings[i].host);
	}
	desk_close(&desk);
	canary_close(&canary);
	printf("# %zu spellings\n", COUNT(spellings));
}

/* The control: what is called HERE above is here. */
static void test_allowed_they_reach_the_canary(void **state)
{
	struct outbound outbound;
	struct hx_error err;
	struct canary canary;
	struct desk desk;
	size_t reached = 0;

	(void)state;
	outbound_init(&outbound, /* loopback= */ true);
	assert_int_equal(outbound_allow(&outbound, slice_str("0.0.0.0/8"), &err), HX_OK);
	assert_int_equal(outbound_allow(&outbound, slice_str("::"), &err), HX_OK);
	canary_open(&canary, /* loopback= */ true, /* second= */ false);
	desk_open(&desk, &(struct port_options){.outbound = &outbound});
	for (size_t i = 0; i < COUNT(spellings); i++) {
		const struct desk_answer *answer;
		bool reaches = spellings[i].what <= HERE6 && spellings[i].load[0] != '*';

		if (spellings[i].what == CARRIED || (spellings[i].what == HERE6 && canary.fds[AT_LOOPBACK_V6] < 0))
			continue; /* a packet that would leave the machine; an address that it has not */
		answer = call(&desk, spellings[i].host, canary.port);
		reached += reaches;
		if ((answer->outcome == ACT_OK) != reaches || came_to_loopback(&canary) != reached)
			fail_msg("%s: %s: %s", spellings[i].host, act_outcome_name(answer->outcome), answer->output);
	}
	desk_close(&desk);
	canary_close(&canary);
	printf("# %zu of them reach this machine\n", reached);
}

/* What an action is given to call was looked at before, at its load: this says which of them get so far. */
static void test_what_is_refused_at_load(void **state)
{
	struct hx_error err;

	(void)state;
	for (size_t i = 0; i < COUNT(spellings); i++) {
		char url[200];
		bool refused;

		snprintf(url, sizeof url, "http://%s:80/x", spellings[i].host);
		refused = url_check(slice_str(url), &err) != HX_OK;
		if (refused != (spellings[i].load[0] == '*'))
			fail_msg("%s was %s", url, refused ? err.detail : "taken");
	}
}

/* ---- names that change their mind ---- */

static void allow_second_only(struct outbound *outbound)
{
	struct hx_error err;

	outbound_init(outbound, /* loopback= */ false);
	assert_int_equal(outbound_allow(outbound, slice_str(places[AT_SECOND]), &err), HX_OK);
}

/*
 * Every second answer is forbidden. The name is asked once for a call, and what is judged is what is connected to: a
 * judgement on one answer and a connection by the next is what this would show. Answers are kept by name and port, so
 * each call has a port of its own.
 */
static void test_a_name_that_changes_its_answer(void **state)
{
	struct outbound outbound;
	struct desk desk;

	(void)state;
	allow_second_only(&outbound);
	desk_open(&desk, &(struct port_options){.outbound = &outbound});
	zone_set("rebind.test", places[AT_SECOND], places[AT_LOOPBACK]);
	for (size_t i = 0; i < 8; i++) {
		struct canary canary;

		canary_open(&canary, /* loopback= */ true, /* second= */ true);
		if (i % 2 == 0)
			desk_expect(call(&desk, "rebind.test", canary.port), ACT_OK, "{}");
		else
			desk_expect(call(&desk, "rebind.test", canary.port), ACT_FAILED_FOR_GOOD,
				    "address not allowed: 127.0.0.1 (loopback)");
		assert_int_equal(zone.questions, i + 1);
		assert_int_equal(came_to_loopback(&canary), 0);
		assert_int_equal(canary.came[AT_SECOND], i % 2 == 0);
		/* At once again, while the connection or the answer is remembered: whichever, it is not the canary. */
		call(&desk, "rebind.test", canary.port);
		assert_int_equal(zone.questions, i + 1);
		assert_int_equal(came_to_loopback(&canary), 0);
		canary_close(&canary);
	}
	desk_close(&desk);
}

/* Of several addresses in one answer only the allowed one is tried, in whichever place, also when nobody listens there. */
static void test_a_name_with_two_addresses(void **state)
{
	static const char *const answers[] = {"127.0.0.2 127.0.0.1", "127.0.0.1 127.0.0.2", "::1 127.0.0.2",
					      "127.0.0.2 ::1", "::ffff:127.0.0.1 127.0.0.2"};
	struct outbound outbound, both;
	struct desk desk, open;

	(void)state;
	allow_second_only(&outbound);
	outbound_init(&both, /* loopback= */ true);
	desk_open(&desk, &(struct port_options){.outbound = &outbound});
	desk_open(&open, &(struct port_options){.outbound = &both});
	for (size_t i = 0; i < COUNT(answers); i++)
		for (int listens = 0; listens <= 1; listens++) {
			struct canary canary;
			const struct desk_answer *answer;

			zone_set("both.test", answers[i], NULL);
			canary_open(&canary, /* loopback= */ true, /* second= */ listens);
			answer = call(&desk, "both.test", canary.port);
			desk_expect(answer, listens ? ACT_OK : ACT_FAILED, listens ? "{}" : "nothing was sent");
			assert_int_equal(came_to_loopback(&canary), 0);
			assert_int_equal(canary.came[AT_SECOND], listens);
			/* The control: the other address was there to be tried. */
			if (!listens && !strstr(answers[i], "::")) {
				desk_expect(call(&open, "both.test", canary.port), ACT_OK, "{}");
				assert_int_equal(came_to_loopback(&canary), 1);
			}
			canary_close(&canary);
		}
	desk_close(&desk);
	desk_close(&open);
}

/* A service that has moved: its name is asked for again when nobody lets us in any more where it was, and not before. */
static void test_a_name_that_moves(void **state)
{
	struct outbound outbound;
	struct canary canary;
	struct desk desk;

	(void)state;
	outbound_init(&outbound, /* loopback= */ true);
	desk_open(&desk, &(struct port_options){.outbound = &outbound});
	zone_set("moves.test", "127.0.0.3", places[AT_SECOND]); /* where nobody listens, and where it is now */
	canary_open(&canary, /* loopback= */ false, /* second= */ true);
	desk_expect(call(&desk, "moves.test", canary.port), ACT_FAILED,
		    "nothing was sent: Failed to connect to moves.test");
	desk_expect(call(&desk, "moves.test", canary.port), ACT_OK, "{}");
	desk_expect(call(&desk, "moves.test", canary.port), ACT_OK, "{}");
	assert_int_equal(zone.questions, 2);
	assert_int_equal(canary.came[AT_SECOND], 2);
	canary_close(&canary);
	desk_close(&desk);
}

/* Whoever answers for that name does not: the call has its time, others go on, and the end waits for nobody. */
static void test_a_name_that_hangs(void **state)
{
	char url[] = "http://hangs.test/x";
	struct action action = {.name = "h", .kind = ACTION_HTTP, .timeout_ms = 300, .url = url};
	struct canary canary;
	struct desk desk;
	uint64_t first, second;

	(void)state;
	hangs = true;
	canary_open(&canary, /* loopback= */ true, /* second= */ false);
	desk_open(&desk, &(struct port_options){0});
	first = desk_start(&desk, &action, (struct act_call){.input = slice_str("{}")});
	desk_expect(call(&desk, "127.0.0.1", canary.port), ACT_OK, "{}");
	desk_expect(desk_wait(&desk, first), ACT_FAILED, "nothing was sent");
	action.timeout_ms = 3600000;
	second = desk_start(&desk, &action, (struct act_call){.input = slice_str("{}")});
	desk_close(&desk); /* it is ended as cancelled */
	assert_int_equal(desk.answers[second].outcome, ACT_FAILED);
	canary_close(&canary);
	hangs = false;
}

/* ---- what the environment could send elsewhere ---- */

static void test_no_proxy_and_no_netrc(void **state)
{
	static const char *const variables[] = {"http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY",
						"all_proxy",  "ALL_PROXY",  "socks_proxy", "SOCKS_PROXY"};
	static const struct page pages[] = {
		{"/x", PAGE_REPLY, "HTTP/1.1 200 OK\r\nSet-Cookie: a=b\r\nContent-Length: 2\r\n\r\n{}"}, {0}};
	char proxy[100], home[200], netrc[300], url[128];
	struct canary canary;
	struct upstream u;
	struct desk desk;
	FILE *file;

	(void)state;
	snprintf(home, sizeof home, "%s/hx-home.XXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
	assert_non_null(mkdtemp(home));
	snprintf(netrc, sizeof netrc, "%s/.netrc", home);
	file = fopen(netrc, "w");
	assert_non_null(file);
	fputs("default login canary password canary\n", file);
	fclose(file);
	setenv("HOME", home, 1);
	canary_open(&canary, /* loopback= */ true, /* second= */ false);
	snprintf(proxy, sizeof proxy, "http://127.0.0.1:%d", canary.port);
	for (size_t i = 0; i < COUNT(variables); i++)
		setenv(variables[i], proxy, 1);
	upstream_open(&u, pages);
	desk_open(&desk, &(struct port_options){0});
	struct action action = upstream_action(&u, "/x", url);

	for (int i = 0; i < 2; i++) {
		desk_expect(desk_call(&desk, &action, "{}"), ACT_OK, "{}");
		assert_memory_equal(u.last, "POST /x HTTP/1.1\r\n", 18);
		assert_null(strcasestr(u.last, "\r\nAuthorization:"));
		assert_null(strcasestr(u.last, "\r\nCookie:"));
		assert_null(strcasestr(u.last, "\r\nProxy-"));
	}
	snprintf(url, sizeof url, "https://127.0.0.1:%d/", u.port); /* a CONNECT would be heard */
	action.timeout_ms = 200;
	action.url = url;
	desk_call(&desk, &action, "{}");
	assert_int_equal(came_to_loopback(&canary), 0);
	desk_close(&desk);
	upstream_close(&u);
	canary_close(&canary);
	for (size_t i = 0; i < COUNT(variables); i++)
		unsetenv(variables[i]);
	unlink(netrc);
	rmdir(home);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_spelling_gets_through),  cmocka_unit_test(test_allowed_they_reach_the_canary),
		cmocka_unit_test(test_what_is_refused_at_load),   cmocka_unit_test(test_a_name_that_changes_its_answer),
		cmocka_unit_test(test_a_name_with_two_addresses), cmocka_unit_test(test_no_proxy_and_no_netrc),
		cmocka_unit_test(test_a_name_that_moves),         cmocka_unit_test(test_a_name_that_hangs),
	};

	(void)setlocale(LC_ALL, "C.UTF-8"); /* as an embedding program may: nothing may then map names by IDNA */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
