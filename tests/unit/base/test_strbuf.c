/* Strbuf: always terminated, never past its ceiling, failures that stay. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/strbuf.h"

/* A request that no system grants must come back as NULL, also under the sanitizers. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "allocator_may_return_null=1";
}

const char *__tsan_default_options(void);
const char *__tsan_default_options(void)
{
	return "allocator_may_return_null=1";
}

static void appending_keeps_it_terminated(void **state)
{
	struct strbuf sb;

	(void)state;
	strbuf_init(&sb, 1000);
	assert_string_equal(sb.p, "");
	strbuf_add_str(&sb, "one ");
	strbuf_add_char(&sb, '2');
	strbuf_addf(&sb, " %s %d", "three", 4);
	strbuf_add_slice(&sb, slice_of(" \0five", 6));
	strbuf_add(&sb, NULL, 0);
	assert_int_equal(sb.n, 19);
	assert_memory_equal(sb.p, "one 2 three 4 \0five", 20);
	assert_true(slice_eq(strbuf_slice(&sb), slice_of("one 2 three 4 \0five", 19)));
	strbuf_reset(&sb);
	assert_string_equal(sb.p, "");
	strbuf_release(&sb);
	assert_string_equal(sb.p, "");
	strbuf_release(&sb);
}

static void the_ceiling_holds_at_the_limit_and_one_past(void **state)
{
	struct hx_error err;
	struct strbuf sb;

	(void)state;
	strbuf_init(&sb, 5);
	strbuf_add_str(&sb, "12345");
	assert_false(sb.failed);
	strbuf_add_str(&sb, "");
	assert_false(sb.failed);
	strbuf_add_char(&sb, '6');
	assert_true(sb.failed);
	assert_string_equal(sb.p, "12345");
	assert_int_equal(strbuf_error(&sb, &err), HX_TOO_LARGE);
	strbuf_reset(&sb);
	strbuf_addf(&sb, "%05d", 7);
	assert_string_equal(sb.p, "00007");
	strbuf_reset(&sb);
	strbuf_addf(&sb, "%06d", 7);
	assert_true(sb.failed);
	strbuf_add_str(&sb, "1"); /* a failed buffer takes nothing, not even what would fit */
	assert_string_equal(sb.p, "");
	strbuf_release(&sb);
	strbuf_init(&sb, 0);
	strbuf_add_str(&sb, "");
	assert_false(sb.failed);
	strbuf_add_str(&sb, "x");
	assert_true(sb.failed);
	strbuf_release(&sb);
}

static void memory_never_exceeds_the_ceiling_and_its_nul(void **state)
{
	struct strbuf sb;

	(void)state;
	strbuf_init(&sb, 1000);
	for (int i = 0; i < 1000; i++) {
		strbuf_add_char(&sb, 'x');
		assert_true(sb.capacity <= 1001);
	}
	assert_false(sb.failed);
	assert_int_equal(strlen(sb.p), 1000);
	strbuf_release(&sb);
}

static void sizes_near_the_end_of_the_address_space_are_refused(void **state)
{
	struct hx_error err;
	struct strbuf sb;

	(void)state;
	for (size_t less = 0; less < 100; less++) {
		strbuf_init(&sb, SIZE_MAX);
		strbuf_add_char(&sb, 'x');
		assert_null(strbuf_reserve(&sb, SIZE_MAX - less));
		assert_true(sb.failed);
		assert_string_equal(sb.p, "x");
		strbuf_release(&sb);
	}
	strbuf_init(&sb, SIZE_MAX);
	assert_null(strbuf_reserve(&sb, SIZE_MAX / 4));
	assert_int_equal(strbuf_error(&sb, &err), HX_NO_MEMORY);
	strbuf_release(&sb);
}

static void reserved_room_is_written_by_the_caller(void **state)
{
	struct strbuf sb;
	char *to;

	(void)state;
	strbuf_init(&sb, 100);
	strbuf_add_str(&sb, "ab");
	to = strbuf_reserve(&sb, 98);
	assert_non_null(to);
	memset(to, 'c', 98);
	to[98] = '\0';
	sb.n += 98;
	assert_int_equal(strlen(sb.p), 100);
	assert_null(strbuf_reserve(&sb, 1));
	strbuf_release(&sb);
}

static void release_takes_a_zeroed_struct(void **state)
{
	struct strbuf sb = {0};

	(void)state;
	strbuf_release(&sb);
	assert_string_equal(sb.p, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(appending_keeps_it_terminated),
		cmocka_unit_test(the_ceiling_holds_at_the_limit_and_one_past),
		cmocka_unit_test(memory_never_exceeds_the_ceiling_and_its_nul),
		cmocka_unit_test(sizes_near_the_end_of_the_address_space_are_refused),
		cmocka_unit_test(reserved_room_is_written_by_the_caller),
		cmocka_unit_test(release_takes_a_zeroed_struct),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
