/* Bells: rung at once, or when they are let go; and the one that is freed while it is held. */
#include "base/bell.h"

#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cmocka.h>

#define BELLS 40 /* more than a thread holds */

static bool rings(const struct bell *bell)
{
	struct pollfd fd = {.fd = bell_fd(bell), .events = POLLIN};

	return poll(&fd, 1, 0) == 1;
}

static void rung_until_it_is_still(void **state)
{
	struct bell *bell = bell_new();

	(void)state;
	assert_false(rings(bell));
	bell_ring(bell);
	bell_ring(bell);
	assert_true(rings(bell));
	bell_still(bell);
	assert_false(rings(bell));
	bell_still(bell); /* there is nothing to be heard */
	bell_free(bell);
	bell_free(NULL);
}

static void who_holds_rings_once_and_at_the_end(void **state)
{
	struct bell *bell = bell_new();
	eventfd_t count;

	(void)state;
	bells_hold();
	bell_ring(bell);
	bell_ring(bell);
	assert_false(rings(bell));
	bells_let_go();
	assert_int_equal(eventfd_read(bell_fd(bell), &count), 0);
	assert_int_equal(count, 1);
	bell_ring(bell);
	assert_true(rings(bell));
	bell_free(bell);
}

/* One too many is heard too early, which is better than not at all. */
static void all_of_many_are_rung(void **state)
{
	struct bell *bells[BELLS];

	(void)state;
	bells_hold();
	for (size_t i = 0; i < BELLS; i++) {
		bells[i] = bell_new();
		bell_ring(bells[i]);
	}
	assert_false(rings(bells[0]));
	bells_let_go();
	for (size_t i = 0; i < BELLS; i++) {
		assert_true(rings(bells[i]));
		bell_free(bells[i]);
	}
}

/* Its descriptor is nobody else's before it has been rung. */
static void one_that_is_freed_while_it_is_held_is_rung_first(void **state)
{
	struct bell *bell = bell_new();
	int heard = dup(bell_fd(bell)), other;
	eventfd_t count = 0;

	(void)state;
	bells_hold();
	bell_ring(bell);
	bell_free(bell);
	other = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	bells_let_go();
	assert_int_equal(eventfd_read(heard, &count), 0);
	assert_int_equal(count, 1);
	assert_int_not_equal(eventfd_read(other, &count), 0);
	close(heard);
	close(other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rung_until_it_is_still),
		cmocka_unit_test(who_holds_rings_once_and_at_the_end),
		cmocka_unit_test(all_of_many_are_rung),
		cmocka_unit_test(one_that_is_freed_while_it_is_held_is_rung_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
