/* The believed clock, over one that is moved by hand: what it follows, what it doubts, and for how long. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/log.h"
#include "base/steady_clock.h"
#include "support/must_hold.h"

#define START_MS INT64_C(1800000000000)
#define DAY_MS INT64_C(86400000)

static struct fake_clock machine;
static struct steady_clock steady;
static struct log log_;
static int pipe_[2];

static int begin(void **state)
{
	(void)state;
	assert_int_equal(pipe(pipe_), 0);
	fake_clock_init(&machine, (struct wall_time){START_MS});
	log_init(&log_, pipe_[1], LOG_LEVEL_INFO, &machine.clock);
	steady_clock_init(&steady, &machine.clock, &log_);
	return 0;
}

static int end(void **state)
{
	(void)state;
	steady_clock_release(&steady);
	close(pipe_[0]);
	close(pipe_[1]);
	return 0;
}

static int64_t believed_ms(void)
{
	return clock_wall(&steady.clock).ms;
}

static void set_by(int64_t ms)
{
	machine.wall.ms += ms;
}

/* What was logged so far, as one text; empty if nothing was. */
static const char *logged(void)
{
	static char text[8192];
	ssize_t n;

	assert_int_equal(write(pipe_[1], ".", 1), 1);
	n = read(pipe_[0], text, sizeof text - 1);
	assert_true(n >= 1);
	text[n - 1] = '\0';
	return text;
}

static void it_follows_the_machine(void **state)
{
	(void)state;
	assert_int_equal(believed_ms(), START_MS);
	fake_clock_advance_ms(&machine, DAY_MS); /* time that really passed */
	assert_int_equal(believed_ms(), START_MS + DAY_MS);
	assert_int_equal(clock_mono(&steady.clock).ns, machine.mono.ns);
	assert_int_equal(clock_doubted_ms(&steady.clock), 0);
	assert_string_equal(logged(), "");
}

static void a_small_step_is_followed_at_once(void **state)
{
	(void)state;
	set_by(STEADY_STEP_MS);
	assert_int_equal(believed_ms(), START_MS + STEADY_STEP_MS);
	set_by(-STEADY_STEP_MS); /* counted from where it is now */
	assert_int_equal(believed_ms(), START_MS);
	assert_int_equal(clock_jumps(&steady.clock), 0);
}

/* 25 hours, for a moment: nobody who asked for the time has seen them. */
static void a_jump_that_passes_was_never_believed(void **state)
{
	const int64_t jumps_ms[] = {STEADY_STEP_MS + 1, 25 * DAY_MS / 24, -25 * DAY_MS / 24};

	(void)state;
	for (size_t i = 0; i < sizeof jumps_ms / sizeof *jumps_ms; i++) {
		int64_t before_ms = believed_ms();

		set_by(jumps_ms[i]);
		MUST_HOLD(believed_ms() == before_ms, "a jump is believed at once");
		assert_int_equal(clock_doubted_ms(&steady.clock), jumps_ms[i]);
		fake_clock_advance_ms(&machine, STEADY_CONFIRM_MS - 1);
		MUST_HOLD(believed_ms() == before_ms + STEADY_CONFIRM_MS - 1,
			  "a jump is believed before it has lasted");
		assert_non_null(strstr(logged(), "has jumped"));
		set_by(-jumps_ms[i]);
		assert_int_equal(believed_ms(), before_ms + STEADY_CONFIRM_MS - 1);
		assert_int_equal(clock_doubted_ms(&steady.clock), 0);
		assert_int_equal(clock_jumps(&steady.clock), i + 1);
		assert_non_null(strstr(logged(), "is back where it was"));
	}
}

static void a_jump_that_lasts_is_believed(void **state)
{
	(void)state;
	for (int direction = -1; direction <= 1; direction += 2) {
		int64_t before_ms = believed_ms();

		set_by(direction * DAY_MS);
		assert_int_equal(believed_ms(), before_ms);
		fake_clock_advance_ms(&machine, STEADY_CONFIRM_MS);
		assert_int_equal(believed_ms(), before_ms + STEADY_CONFIRM_MS + direction * DAY_MS);
		assert_int_equal(clock_doubted_ms(&steady.clock), 0);
		assert_non_null(strstr(logged(), "is believed from now on"));
		fake_clock_advance_ms(&machine, 10);
		assert_int_equal(believed_ms(), machine.wall.ms);
	}
}

static void another_jump_has_to_last_by_itself(void **state)
{
	(void)state;
	set_by(DAY_MS);
	assert_int_equal(believed_ms(), START_MS);
	fake_clock_advance_ms(&machine, STEADY_CONFIRM_MS - 1);
	set_by(DAY_MS);
	assert_int_equal(believed_ms(), START_MS + STEADY_CONFIRM_MS - 1);
	fake_clock_advance_ms(&machine, STEADY_CONFIRM_MS - 1);
	MUST_HOLD(believed_ms() == START_MS + 2 * (STEADY_CONFIRM_MS - 1),
		  "the second jump is believed by the first one's time");
	fake_clock_advance_ms(&machine, 1);
	assert_int_equal(believed_ms(), machine.wall.ms);
	assert_int_equal(clock_jumps(&steady.clock), 2);
}

/* A thread that is held up between its looks at the two clocks sees hours pass between them. */
struct held_up {
	struct clock clock;
	int looks;
};

static struct wall_time held_up_wall(struct clock *c)
{
	fake_clock_advance_ms(&machine, ((struct held_up *)c)->looks++ < 3 ? 3600000 : 0);
	return machine.wall;
}

static struct mono_time held_up_mono(struct clock *c)
{
	(void)c;
	return machine.mono;
}

static void being_held_up_is_no_jump(void **state)
{
	struct held_up held = {.clock = {.wall = held_up_wall, .mono = held_up_mono}, .looks = 3};
	struct steady_clock mine;

	(void)state;
	steady_clock_init(&mine, &held.clock, /* log= */ NULL);
	held.looks = 0;
	MUST_HOLD(clock_wall(&mine.clock).ms == START_MS + 3 * 3600000, "a thread that was held up sees another time");
	MUST_HOLD(clock_jumps(&mine.clock) == 0, "a thread that was held up is taken for a clock that jumped");
	steady_clock_release(&mine);
}

/* Many threads, while the machine's clock goes to and fro: none ever sees the jump. */
struct reader {
	pthread_t thread;
	bool saw;
};

static _Atomic bool over;
static _Atomic int64_t ahead_ms;

static struct wall_time jumping_wall(struct clock *c)
{
	(void)c;
	return wall_add_ms(clock_wall(clock_system()), atomic_load(&ahead_ms));
}

static struct mono_time real_mono(struct clock *c)
{
	(void)c;
	return clock_mono(clock_system());
}

static struct clock jumping = {.wall = jumping_wall, .mono = real_mono};
static struct steady_clock shared;

static void *read_on(void *context)
{
	struct reader *reader = context;

	while (!atomic_load(&over)) {
		int64_t off_ms = clock_wall(&shared.clock).ms - clock_wall(clock_system()).ms;

		reader->saw |= off_ms > DAY_MS / 2 || off_ms < -DAY_MS / 2;
	}
	return NULL;
}

static void all_threads_believe_the_same(void **state)
{
	struct reader readers[4] = {0};

	(void)state;
	steady_clock_init(&shared, &jumping, /* log= */ NULL);
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&readers[i].thread, NULL, read_on, &readers[i]), 0);
	for (uint64_t jumps = 0; jumps < 50; jumps++) {
		atomic_store(&ahead_ms, jumps % 2 ? DAY_MS : -DAY_MS);
		while (clock_jumps(&shared.clock) <= jumps)
			(void)clock_wall(&shared.clock);
		atomic_store(&ahead_ms, 0);
		while (clock_doubted_ms(&shared.clock))
			(void)clock_wall(&shared.clock);
	}
	atomic_store(&over, true);
	for (size_t i = 0; i < 4; i++) {
		pthread_join(readers[i].thread, NULL);
		assert_false(readers[i].saw);
	}
	steady_clock_release(&shared);
}

/* ---- the store's clock, of which is heard ---- */

static void hear(struct steady_clock *judged, int64_t ahead_ms, int64_t took_ms)
{
	struct mono_time asked = machine.mono;

	fake_clock_advance_ms(&machine, took_ms);
	steady_clock_hear(judged, machine.wall.ms + ahead_ms - took_ms, asked, machine.mono);
}

static void a_jump_of_the_stores_clock_is_told(void **state)
{
	struct steady_clock judged;

	(void)state;
	steady_clock_init(&judged, /* source= */ NULL, &log_);
	hear(&judged, -5000, 0); /* its difference to ours is its own business */
	for (int i = 0; i < 100; i++) {
		fake_clock_advance_ms(&machine, 2500);
		hear(&judged, -5000 + i, i % 2 ? 0 : STEADY_HEARD_MS_MAX); /* answers that are slow are no jump */
	}
	assert_int_equal(clock_jumps(&judged.clock), 0);
	assert_string_equal(logged(), "");
	hear(&judged, 25 * DAY_MS / 24, 0);
	MUST_HOLD(clock_doubted_ms(&judged.clock) != 0, "a jump of the store's clock is not noticed");
	assert_non_null(strstr(logged(), "the store's machine has jumped"));
	fake_clock_advance_ms(&machine, 2500);
	hear(&judged, -4900, 0);
	assert_int_equal(clock_doubted_ms(&judged.clock), 0);
	assert_non_null(strstr(logged(), "the store's machine is back where it was"));
	steady_clock_release(&judged);
}

/* It may be the store's silence: what took so long says nothing. */
static void what_took_long_says_nothing_of_the_stores_clock(void **state)
{
	struct steady_clock judged;

	(void)state;
	steady_clock_init(&judged, /* source= */ NULL, &log_);
	hear(&judged, 0, 0);
	hear(&judged, 0, 20000);
	MUST_HOLD(clock_jumps(&judged.clock) == 0, "a store that was silent is taken for one whose clock jumped");
	hear(&judged, DAY_MS, 0);
	fake_clock_advance_ms(&machine, STEADY_CONFIRM_MS);
	hear(&judged, DAY_MS, 0);
	assert_int_equal(clock_doubted_ms(&judged.clock), 0);
	assert_non_null(strstr(logged(), "is believed from now on"));
	steady_clock_release(&judged);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(it_follows_the_machine, begin, end),
		cmocka_unit_test_setup_teardown(a_small_step_is_followed_at_once, begin, end),
		cmocka_unit_test_setup_teardown(a_jump_that_passes_was_never_believed, begin, end),
		cmocka_unit_test_setup_teardown(a_jump_that_lasts_is_believed, begin, end),
		cmocka_unit_test_setup_teardown(another_jump_has_to_last_by_itself, begin, end),
		cmocka_unit_test_setup_teardown(being_held_up_is_no_jump, begin, end),
		cmocka_unit_test_setup_teardown(all_threads_believe_the_same, begin, end),
		cmocka_unit_test_setup_teardown(a_jump_of_the_stores_clock_is_told, begin, end),
		cmocka_unit_test_setup_teardown(what_took_long_says_nothing_of_the_stores_clock, begin, end),
	};

	ONLY_THE_NAMED(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
