/* SQLite's memory: each block is whole and its own, whoever frees it; and it does not grow without end. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <sqlite3.h>

#include "db/sqlite_memory.h"

#define BLOCKS 2000
#define ROUNDS 40
#define THREADS 4

/* Small ones, pages, larger ones than there are slabs for; and those at the edges of the kinds. */
static int size_of(unsigned i)
{
	static const int edges[] = {1, 8, 9, 24, 1016, 1017, 1024, 1144, 1145, 4096, 4256, 8184, 8185, 8192, 100000};

	return i % 3 == 0 ? edges[i / 3 % (sizeof edges / sizeof *edges)] : (int)(i * 37 % 700) + 1;
}

struct held {
	unsigned char *p;
	int n;
	unsigned char mark;
};

static int broken_n(const struct held *held)
{
	int n = (uintptr_t)held->p % 8 != 0 || (int)sqlite3_msize(held->p) < held->n;

	for (int i = 0; i < held->n; i++)
		n += held->p[i] != held->mark;
	return n;
}

static struct held hold(unsigned i)
{
	struct held held = {.n = size_of(i), .mark = (unsigned char)(i * 7 + 1)};

	held.p = sqlite3_malloc(held.n);
	assert_non_null(held.p);
	memset(held.p, held.mark, (size_t)held.n);
	return held;
}

static void grow_or_shrink(struct held *held, unsigned i)
{
	int n = size_of(i), kept = n < held->n ? n : held->n;
	unsigned char *p = sqlite3_realloc(held->p, n);

	assert_non_null(p);
	for (int b = 0; b < kept; b++)
		assert_int_equal(p[b], held->mark);
	held->p = p;
	held->n = n;
	memset(p, held->mark, (size_t)n);
}

static void blocks_are_whole_and_do_not_meet(void **state)
{
	static struct held held[BLOCKS];

	(void)state;
	for (unsigned i = 0; i < BLOCKS; i++)
		held[i] = hold(i);
	for (unsigned round = 0; round < ROUNDS; round++) {
		for (unsigned i = round % 3; i < BLOCKS; i += 3)
			grow_or_shrink(&held[i], i + round);
		for (unsigned i = round % 2; i < BLOCKS; i += 2) {
			assert_int_equal(broken_n(&held[i]), 0);
			sqlite3_free(held[i].p);
			held[i] = hold(i * 13 + round);
		}
	}
	for (unsigned i = 0; i < BLOCKS; i++) {
		assert_int_equal(broken_n(&held[i]), 0);
		sqlite3_free(held[i].p);
	}
}

/* ---- threads ---- */

static struct held passed[THREADS][BLOCKS];
static _Atomic int broken;

/* Frees what the one before it has made, and makes as many for the next. */
static void *pass_on(void *context)
{
	size_t me = (size_t)context;

	for (unsigned i = 0; i < BLOCKS; i++) {
		struct held *held = &passed[me][i];

		broken += broken_n(held);
		sqlite3_free(held->p);
		held->n = size_of(i);
		held->p = sqlite3_malloc(held->n);
		memset(held->p, held->mark, (size_t)held->n);
	}
	return NULL;
}

/* In each round other threads, which end: what they had on their shelves is used by those that follow. */
static void what_others_free_goes_round(void **state)
{
	size_t before = 0;

	(void)state;
	for (size_t t = 0; t < THREADS; t++)
		for (unsigned i = 0; i < BLOCKS; i++)
			passed[t][i] = hold(i);
	for (int round = 0; round < ROUNDS; round++) {
		pthread_t threads[THREADS];

		for (size_t t = 0; t < THREADS; t++)
			assert_int_equal(pthread_create(&threads[t], NULL, pass_on, (void *)t), 0);
		for (size_t t = 0; t < THREADS; t++)
			pthread_join(threads[t], NULL);
		if (round == ROUNDS / 2)
			before = sqlite_memory_bytes();
	}
	assert_int_equal(broken, 0);
	assert_true(sqlite_memory_bytes() <= before + before / 4); /* each thread cuts a slab, or part of one */
	for (size_t t = 0; t < THREADS; t++)
		for (unsigned i = 0; i < BLOCKS; i++)
			sqlite3_free(passed[t][i].p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(blocks_are_whole_and_do_not_meet),
		cmocka_unit_test(what_others_free_goes_round),
	};

	sqlite_memory_own();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
