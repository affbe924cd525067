/* Finding entries of a journal: each by its name and its place, what is late in the order of its time; and very many of them in no time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <time.h>

#include <cmocka.h>

#include "flow/function_parts.h"

#define READ 60000
#define ADDED 1000
#define SECONDS_MAX 5 /* of this process: many times what it takes, and less than to look through all for each */
#define NOW 1000000

static struct arena arena;

static struct slice name_of(int64_t i)
{
	char text[24];

	snprintf(text, sizeof text, "s%lld", (long long)i / 2);
	return arena_copy(&arena, slice_str(text));
}

/* Sleeps, two of a name, of which the last is late for longest; and what compensates a few. */
static struct function_work *work_new(size_t n)
{
	struct function_work *w = arena_zalloc(&arena, sizeof *w);

	assert_non_null(w);
	*w = (struct function_work){.arena = &arena, .to = RUN_RUNNING, .room = n + ADDED};
	w->row = (struct function_row){.status = RUN_RUNNING, .now = NOW, .entries_n = (int64_t)n, .owned = true};
	w->entries_n = w->row.entries_n;
	w->entries = arena_zalloc(&arena, (w->room + 1) * sizeof *w->entries);
	for (size_t k = 0; k < n; k++) {
		int64_t i = (int64_t)(k * 7919 % n); /* in no order */
		struct function_entry *e = arena_zalloc(&arena, sizeof *e);

		assert_non_null(e);
		*e = (struct function_entry){.i = i,
					     .n = i % 2,
					     .kind = ENTRY_SLEEP,
					     .state = ENTRY_OPEN,
					     .name = name_of(i),
					     .detail = slice_str("{}"),
					     .wake_at = NOW - i / 4};
		w->entries[w->n++] = e;
	}
	work_index(w);
	assert_false(arena.failed);
	return w;
}

static void each_is_found(void **state UNUSED)
{
	struct function_work *w = work_new(READ);
	const struct function_entry *about;
	clock_t since = clock();

	for (int64_t i = 0; i < ADDED; i++)
		assert_non_null(
			work_add(w, i % 2 ? ENTRY_VALUE : ENTRY_COMPENSATE, name_of(2 * (i % 2 ? READ + i : i)), 0));
	for (int64_t i = 0; i < READ + ADDED; i++)
		assert_int_equal(work_at(w, i)->i, i);
	for (int64_t i = 0; i < READ; i++)
		assert_int_equal(work_find(w, ENTRY_STEP, name_of(i), i % 2)->i, i);
	about = work_find(w, ENTRY_COMPENSATE, name_of(4), 0);
	assert_true(about && about->kind == ENTRY_COMPENSATE && about->i == READ + 2);
	assert_null(work_find(w, ENTRY_UNDO, name_of(4), 0));
	assert_null(work_find(w, ENTRY_STEP, name_of(4), 2));
	assert_null(work_at(w, READ + ADDED));
	assert_true((clock() - since) / CLOCKS_PER_SEC < SECONDS_MAX);
	arena_reset(&arena);
}

static void what_is_late_ends_in_the_order_of_its_time(void **state UNUSED)
{
	struct function_work *w = work_new(READ);
	int64_t last = 0, last_i = 0;
	clock_t since = clock();

	function_settle(w);
	assert_true(function_prepare(w));
	assert_int_equal(w->ended_now_n, READ);
	for (size_t k = 0; k < READ; k++) {
		const struct function_entry *e = w->ended_now[k];

		assert_true(e->state == ENTRY_DONE && e->seq == (int64_t)k + 1);
		assert_true(e->wake_at > last || (e->wake_at == last && e->i > last_i));
		last = e->wake_at;
		last_i = e->i;
	}
	assert_true((clock() - since) / CLOCKS_PER_SEC < SECONDS_MAX);
	arena_reset(&arena);
}

static void what_is_awaited_is_looked_for(void **state UNUSED)
{
	struct function_work *w = work_new(FUNCTION_ENTRIES_MAX);
	clock_t since = clock();
	struct strbuf awaits;

	strbuf_init(&awaits, 8u * FUNCTION_ENTRIES_MAX);
	for (int64_t i = 0; i < FUNCTION_ENTRIES_MAX; i++)
		strbuf_addf(&awaits, "%c%lld", i ? ',' : '[', (long long)i);
	strbuf_add_char(&awaits, ']');
	w->awaits = w->row.awaits = arena_keep(&arena, &awaits);
	w->row.owned = false;
	w->to = w->row.status = RUN_WAITING;
	function_rest(w);
	assert_string_equal(w->to, RUN_WAITING);
	function_settle(w);
	function_rest(w);
	assert_string_equal(w->to, RUN_PENDING);
	assert_true((clock() - since) / CLOCKS_PER_SEC < SECONDS_MAX);
	arena_reset(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_is_found),
		cmocka_unit_test(what_is_late_ends_in_the_order_of_its_time),
		cmocka_unit_test(what_is_awaited_is_looked_for),
	};
	int failed;

	arena_init(&arena, 1u << 30);
	failed = cmocka_run_group_tests_name("entries", tests, NULL, NULL);
	arena_release(&arena);
	return failed;
}
