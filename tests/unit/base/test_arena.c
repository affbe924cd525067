/* Arena: alignment, the ceiling at its edge, blocks over a reset, and the two ways to fail. */
#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena.h"

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

static void memory_is_aligned_and_distinct(void **state)
{
	struct arena a;
	char *last = NULL;

	(void)state;
	arena_init(&a, 1 << 20);
	for (size_t size = 0; size < 300; size++) {
		char *p = arena_alloc(&a, size);

		assert_non_null(p);
		assert_int_equal((uintptr_t)p % _Alignof(max_align_t), 0);
		memset(p, (int)size, size);
		if (last && size > 1)
			assert_int_equal((unsigned char)*last, (unsigned char)(size - 1));
		last = p;
	}
	assert_false(a.failed);
	arena_release(&a);
}

static void the_ceiling_holds_at_the_limit_and_one_past(void **state)
{
	struct hx_error err;
	struct arena a;

	(void)state;
	arena_init(&a, 4096);
	assert_non_null(arena_alloc(&a, 4096));
	assert_int_equal(a.used_bytes, 4096);
	assert_non_null(arena_alloc(&a, 0));
	assert_null(arena_alloc(&a, 1));
	assert_true(a.failed);
	assert_null(arena_alloc(&a, 0)); /* it stays failed */
	assert_int_equal(arena_error(&a, &err), HX_TOO_LARGE);
	arena_reset(&a);
	assert_false(a.failed);
	assert_null(arena_alloc(&a, 4097));
	arena_reset(&a);
	/* Each piece counts rounded up to the alignment. */
	assert_non_null(arena_alloc(&a, 4096 - _Alignof(max_align_t) + 1));
	assert_int_equal(a.used_bytes, 4096);
	arena_release(&a);
}

static void sizes_near_the_end_of_the_address_space_are_refused(void **state)
{
	struct hx_error err;
	struct arena a;

	(void)state;
	for (size_t less = 0; less < 100; less++) {
		arena_init(&a, SIZE_MAX);
		assert_null(arena_alloc(&a, SIZE_MAX - less));
		assert_true(a.failed);
		arena_release(&a);
	}
	arena_init(&a, SIZE_MAX);
	assert_null(arena_copy(&a, slice_of("x", SIZE_MAX)).p);
	assert_true(a.failed);
	arena_reset(&a);
	assert_null(arena_alloc(&a, SIZE_MAX / 4));
	assert_int_equal(arena_error(&a, &err), HX_NO_MEMORY);
	assert_int_equal(err.code, HX_NO_MEMORY);
	arena_reset(&a);
	assert_non_null(arena_alloc(&a, 10));
	arena_release(&a);
}

static void a_reset_keeps_blocks_and_gives_them_out_again(void **state)
{
	struct arena a;
	void *first;

	(void)state;
	arena_init(&a, 64 << 20);
	first = arena_alloc(&a, 100);
	for (int i = 0; i < 100; i++)
		assert_non_null(arena_alloc(&a, 5000));
	arena_reset(&a);
	assert_int_equal(a.used_bytes, 0);
	assert_ptr_equal(arena_alloc(&a, 100), first);
	/* A request that a kept block is too small for goes into a new one, and the kept ones still serve later. */
	assert_non_null(memset(arena_alloc(&a, 3 << 20), 1, 3 << 20));
	for (int i = 0; i < 100; i++)
		assert_non_null(memset(arena_alloc(&a, 5000), 2, 5000));
	/* More than ARENA_KEEP_BYTES is given back. */
	arena_reset(&a);
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < 1000; i++)
			assert_non_null(memset(arena_alloc(&a, 3000), 3, 3000));
		arena_reset(&a);
	}
	arena_release(&a);
}

/* A request that was once large must not be paid for ever. (Under a sanitizer malloc keeps no such books.) */
static void a_reset_gives_back_what_is_above_the_limit(void **state)
{
	size_t before = mallinfo2().uordblks + mallinfo2().hblkhd;
	struct arena a;

	(void)state;
	arena_init(&a, 64 << 20);
	for (int i = 0; i < 160; i++)
		assert_non_null(arena_alloc(&a, 100000));
	arena_reset(&a);
	assert_true(mallinfo2().uordblks + mallinfo2().hblkhd <= before + ARENA_KEEP_BYTES + 65536);
	arena_release(&a);
}

static void zalloc_and_copy(void **state)
{
	struct arena a;
	char *p;

	(void)state;
	arena_init(&a, 1 << 16);
	p = arena_alloc(&a, 64);
	memset(p, 0xff, 64);
	arena_reset(&a);
	p = arena_zalloc(&a, 64);
	for (int i = 0; i < 64; i++)
		assert_int_equal(p[i], 0);

	struct slice copy = arena_copy(&a, slice_of("a\0b", 3));

	assert_int_equal(copy.n, 3);
	assert_memory_equal(copy.p, "a\0b", 4);
	copy = arena_copy(&a, slice_of(NULL, 0));
	assert_int_equal(copy.n, 0);
	assert_string_equal(copy.p, "");
	arena_release(&a);
	arena_init(&a, 8);
	assert_null(arena_copy(&a, slice_str("12345678")).p);
	assert_null(arena_zalloc(&a, 9));
	arena_release(&a);
}

static void release_takes_zeroed_and_released_arenas(void **state)
{
	struct arena a = {0};

	(void)state;
	arena_release(&a);
	arena_init(&a, 16);
	assert_null(arena_alloc(&a, 17));
	arena_release(&a);
	arena_release(&a);
	assert_false(a.failed);
	assert_non_null(arena_alloc(&a, 16)); /* usable again, with the same ceiling */
	assert_null(arena_alloc(&a, 1));
	arena_release(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(memory_is_aligned_and_distinct),
		cmocka_unit_test(the_ceiling_holds_at_the_limit_and_one_past),
		cmocka_unit_test(sizes_near_the_end_of_the_address_space_are_refused),
		cmocka_unit_test(a_reset_keeps_blocks_and_gives_them_out_again),
		cmocka_unit_test(a_reset_gives_back_what_is_above_the_limit),
		cmocka_unit_test(zalloc_and_copy),
		cmocka_unit_test(release_takes_zeroed_and_released_arenas),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
