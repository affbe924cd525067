/*
 * Names that are resolved aside. The answers are this program's, whose getaddrinfo() stands before the C library's: a name can hang for as
 * long as a test wants it to.
 */
#include "wire/resolver.h"

#include <dlfcn.h>
#include <netdb.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/thread.h"
#include "support/await.h"
#include "wire/loop.h"

/* ---- who is asked ---- */

static struct {
	struct monitor monitor;
	bool open; /* those that hang may go on */
	size_t hanging, questions;
} zone;

typedef int (*getaddrinfo_fn)(const char *, const char *, const struct addrinfo *, struct addrinfo **);

int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **ret)
{
	getaddrinfo_fn library = (getaddrinfo_fn)dlsym(RTLD_NEXT, "getaddrinfo");
	bool known = strstr(node, "fine.test"), hangs = strncmp(node, "hangs", 5) == 0;

	if (hints->ai_flags & AI_NUMERICHOST)
		return library(node, service, hints, ret);
	monitor_lock(&zone.monitor);
	zone.questions++;
	zone.hanging += hangs;
	monitor_wake_all(&zone.monitor);
	while (hangs && !zone.open)
		monitor_wait(&zone.monitor);
	zone.hanging -= hangs;
	monitor_wake_all(&zone.monitor);
	monitor_unlock(&zone.monitor);
	return known ? library("127.0.0.7", service, hints, ret) : EAI_NONAME;
}

static void await_hanging(size_t n)
{
	monitor_lock(&zone.monitor);
	while (zone.hanging != n)
		monitor_wait(&zone.monitor);
	monitor_unlock(&zone.monitor);
}

/* ---- who asks ---- */

struct asker {
	struct lookup *lookup;
	unsigned answers;
	int error;
	struct addresses addresses;
};

static struct loop loop;
/* One for each test: a thread that nobody joins may still look at that of the one before. */
static struct fake_clock clocks[16], *fake = clocks;
static struct resolver *resolver;

static void answered(struct lookup *lookup)
{
	struct asker *asker = lookup->context;

	assert_ptr_equal(asker->lookup, lookup);
	asker->answers++;
	asker->error = lookup->error;
	asker->addresses = lookup->addresses;
	asker->lookup = NULL;
	lookup_drop(lookup);
}

static void ask_port(struct asker *asker, const char *host, const char *port)
{
	*asker = (struct asker){0};
	asker->lookup = resolver_ask(resolver, host, port, loop.mailbox, answered, asker);
	assert_non_null(asker->lookup);
}

static void ask(struct asker *asker, const char *host)
{
	ask_port(asker, host, "80");
}

/* One of so many that hang, each with a question of its own. */
static void ask_one(struct asker *asker, size_t i)
{
	char host[40];

	snprintf(host, sizeof host, "hangs%zu.test", i);
	ask(asker, host);
}

static void await_answer(struct asker *asker)
{
	struct mono_time until = time_in_ms(20000);

	while (asker->answers == 0 && clock_mono(clock_system()).ns < until.ns)
		loop_round(&loop, until);
	assert_int_equal(asker->answers, 1);
}

static int set_up(void **state)
{
	struct hx_error err;

	(void)state;
	assert_true(++fake < clocks + sizeof clocks / sizeof *clocks);
	fake_clock_init(fake, (struct wall_time){1000000});
	zone.open = false;
	zone.questions = 0;
	resolver = resolver_new(&fake->clock);
	return resolver && loop_init(&loop, clock_system(), &err) == HX_OK ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	resolver_free(resolver);
	loop_release(&loop);
	monitor_raise(&zone.monitor, &zone.open);
	await_hanging(0);
	return 0;
}

/* ---- tests ---- */

static void test_an_answer_comes_by_letter(void **state)
{
	struct asker fine, none;
	char text[ADDRESS_TEXT_BYTES];

	(void)state;
	ask(&fine, "fine.test");
	ask(&none, "none.test");
	assert_int_equal(fine.answers + none.answers, 0); /* not before the loop looks */
	await_answer(&fine);
	await_answer(&none);
	assert_int_equal(fine.addresses.n, 1);
	address_format(&fine.addresses.at[0], text);
	assert_string_equal(text, "127.0.0.7:80");
	assert_int_equal(none.error, EAI_NONAME);
	assert_int_equal(none.addresses.n, 0);
}

static void test_one_that_hangs_holds_up_nobody(void **state)
{
	struct asker slow, fine;

	(void)state;
	ask(&slow, "hangs.test");
	await_hanging(1);
	ask(&fine, "fine.test");
	await_answer(&fine);
	assert_int_equal(slow.answers, 0);
	monitor_raise(&zone.monitor, &zone.open);
	await_answer(&slow);
}

/* In the middle of its question, and while it waits for a thread: the end waits for neither. */
static void test_what_is_dropped_is_not_answered(void **state)
{
	struct asker slow[RESOLVER_THREADS_MAX], waiting[2];

	(void)state;
	for (size_t i = 0; i < RESOLVER_THREADS_MAX; i++)
		ask_one(&slow[i], i);
	await_hanging(RESOLVER_THREADS_MAX);
	ask(&waiting[0], "fine.test");
	ask(&waiting[1], "none.test");
	lookup_drop(waiting[1].lookup);
	lookup_drop(slow[0].lookup);
	monitor_raise(&zone.monitor, &zone.open);
	await_answer(&waiting[0]);
	for (size_t i = 1; i < RESOLVER_THREADS_MAX; i++)
		await_answer(&slow[i]);
	assert_int_equal(slow[0].answers + waiting[1].answers, 0);
	assert_int_equal(zone.questions, RESOLVER_THREADS_MAX + 1);
	zone.open = false;
	ask(&slow[0], "hangs.test");
	await_hanging(1);
	lookup_drop(slow[0].lookup); /* the resolver is freed while it hangs */
}

static size_t questions(void)
{
	size_t n;

	monitor_lock(&zone.monitor);
	n = zone.questions;
	monitor_unlock(&zone.monitor);
	return n;
}

/* Each has its own port; whoever drops it takes it from nobody else. */
static void test_a_name_is_asked_for_once(void **state)
{
	struct asker slow[4], late;

	(void)state;
	for (size_t i = 0; i < 4; i++)
		ask_port(&slow[i], "hangs-and-is-fine.test", i % 2 ? "81" : "80");
	await_hanging(1);
	lookup_drop(slow[0].lookup);
	lookup_drop(slow[3].lookup);
	ask_port(&late, "hangs-and-is-fine.test", "82");
	assert_int_equal(questions(), 1);
	monitor_raise(&zone.monitor, &zone.open);
	await_answer(&slow[1]);
	await_answer(&slow[2]);
	await_answer(&late);
	assert_int_equal(slow[1].addresses.at[0].port, 81);
	assert_int_equal(slow[2].addresses.at[0].port, 80);
	assert_int_equal(late.addresses.at[0].port, 82);
	assert_int_equal(slow[0].answers + slow[3].answers, 0);
	assert_int_equal(questions(), 1);
}

static void test_a_failure_is_the_answer_for_a_while(void **state)
{
	struct asker asker;

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		ask(&asker, "none.test");
		assert_int_equal(asker.answers, 0); /* by letter, too */
		await_answer(&asker);
		assert_int_equal(asker.error, EAI_NONAME);
		fake_clock_advance_ms(fake, i == 0 ? RESOLVER_FAILURE_MS - 1 : 1);
	}
	assert_int_equal(questions(), 2);
	ask(&asker, "fine.test");
	await_answer(&asker);
	ask(&asker, "fine.test");
	await_answer(&asker);
	assert_int_equal(questions(), 4);
}

static void test_what_is_no_name_is_asked_of_nobody(void **state)
{
	static const char *const here[] = {"localhost", "LOCALHOST",  "a.localhost", "127.0.0.1",
					   "0x7f.1",    "2130706433", "::1"};
	static const char *const names[] = {"fine.test",  "localhost.test", "notlocalhost",
					    ".localhost", "1.test",         "127.0.0.1."};
	struct addresses addresses;

	(void)state;
	for (size_t i = 0; i < sizeof here / sizeof *here; i++) {
		assert_true(resolve_without_asking(here[i], "80", &addresses));
		for (size_t j = 0; j < addresses.n; j++)
			assert_true(address_is_loopback(&addresses.at[j]) && addresses.at[j].port == 80);
	}
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		assert_false(resolve_without_asking(names[i], "80", &addresses));
	assert_int_equal(zone.questions, 0);
	assert_int_equal(resolve_now("fine.test", "80", &addresses), 0);
	assert_int_equal(zone.questions, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_an_answer_comes_by_letter, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_one_that_hangs_holds_up_nobody, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_what_is_dropped_is_not_answered, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_a_name_is_asked_for_once, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_a_failure_is_the_answer_for_a_while, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_what_is_no_name_is_asked_of_nobody, set_up, tear_down),
	};

	monitor_init(&zone.monitor);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
