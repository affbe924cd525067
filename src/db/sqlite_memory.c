/* See sqlite_memory.h. */
#include "db/sqlite_memory.h"

#include <pthread.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "db/sqlite_pages.h"

#define HEAD_BYTES 8 /* in front of each block: its kind; and blocks are aligned to as many */
#define FINE_MAX 1024
#define FINE_STEP 16
#define BLOCK_MAX 8192
#define STEP 128
#define KINDS (FINE_MAX / FINE_STEP + (BLOCK_MAX - FINE_MAX) / STEP + 1)
#define LARGE UINT64_C(0x8000000000000000) /* with its size */
#define SLAB_BYTES (256 << 10)
#define SHELF_BYTES_MAX (512 << 10) /* of a kind */

struct block {
	uint64_t kind;
	struct block *next; /* while it is free */
};

struct pile {
	struct block *first;
	size_t n;
};

struct shelf {
	struct pile piles[KINDS];
	char *slab;
	size_t left;
	bool known; /* to the key, which gives it up at the thread's end */
};

static _Thread_local struct shelf shelf;
static pthread_key_t at_end;
static pthread_mutex_t depot_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct pile depot[KINDS];
static _Atomic size_t depot_n, slab_bytes;

/* With its head. */
static size_t kind_of(size_t bytes)
{
	return bytes <= FINE_MAX ? (bytes + FINE_STEP - 1) / FINE_STEP
				 : FINE_MAX / FINE_STEP + (bytes - FINE_MAX + STEP - 1) / STEP;
}

static size_t bytes_of(size_t kind)
{
	return kind <= FINE_MAX / FINE_STEP ? kind * FINE_STEP : FINE_MAX + (kind - FINE_MAX / FINE_STEP) * STEP;
}

static struct block *pile_pop(struct pile *pile)
{
	struct block *block = pile->first;

	if (block) {
		pile->first = block->next;
		pile->n--;
	}
	return block;
}

static void pile_push(struct pile *pile, struct block *block)
{
	block->next = pile->first;
	pile->first = block;
	pile->n++;
}

static void pile_move(struct pile *from, struct pile *to, size_t n)
{
	while (n-- > 0 && from->first)
		pile_push(to, pile_pop(from));
}

static void to_depot(size_t kind, size_t n)
{
	pthread_mutex_lock(&depot_mutex);
	depot_n += n;
	pile_move(&shelf.piles[kind], &depot[kind], n);
	pthread_mutex_unlock(&depot_mutex);
}

static void from_depot(size_t kind)
{
	size_t n;

	pthread_mutex_lock(&depot_mutex);
	n = depot[kind].n < 64 ? depot[kind].n : 64;
	depot_n -= n;
	pile_move(&depot[kind], &shelf.piles[kind], n);
	pthread_mutex_unlock(&depot_mutex);
}

static void give_up_shelf(void *context UNUSED)
{
	for (size_t kind = 0; kind < KINDS; kind++)
		to_depot(kind, shelf.piles[kind].n);
	shelf.known = false;
}

/* What is left of the last one is less than is wanted. */
static bool new_slab(void)
{
	char *slab = malloc(SLAB_BYTES);

	if (!slab)
		return false;
	atomic_fetch_add(&slab_bytes, SLAB_BYTES);
	shelf.slab = slab;
	shelf.left = SLAB_BYTES;
	return true;
}

static inline void know_shelf(void)
{
	if (!shelf.known)
		shelf.known = pthread_setspecific(at_end, &shelf) == 0;
}

static struct block *find(size_t kind)
{
	size_t bytes = bytes_of(kind);
	struct block *block;

	if (atomic_load_explicit(&depot_n, memory_order_relaxed) > 0)
		from_depot(kind);
	block = pile_pop(&shelf.piles[kind]);
	if (block)
		return block;
	if (shelf.left < bytes && !new_slab())
		return NULL;
	block = (struct block *)(void *)shelf.slab;
	shelf.slab += bytes;
	shelf.left -= bytes;
	return block;
}

static void *memory_alloc(int n)
{
	size_t bytes = (size_t)n + HEAD_BYTES;
	struct block *block;
	uint64_t kind;

	know_shelf();
	if (bytes > BLOCK_MAX) {
		block = malloc(bytes);
		kind = LARGE | (uint64_t)n;
	} else {
		kind = kind_of(bytes);
		block = pile_pop(&shelf.piles[kind]);
		if (!block)
			block = find(kind);
	}
	if (!block)
		return NULL;
	block->kind = kind;
	return (char *)block + HEAD_BYTES;
}

static struct block *block_of(void *p)
{
	return (struct block *)(void *)((char *)p - HEAD_BYTES);
}

static void memory_free(void *p)
{
	struct block *block = block_of(p);
	struct pile *pile;

	know_shelf();
	if (block->kind & LARGE) {
		free(block);
		return;
	}
	pile = &shelf.piles[block->kind];
	pile_push(pile, block);
	if (pile->n * bytes_of(block->kind) > SHELF_BYTES_MAX)
		to_depot(block->kind, pile->n / 2);
}

static int memory_size(void *p)
{
	uint64_t kind = p ? block_of(p)->kind : 0;

	if (!p)
		return 0;
	return kind & LARGE ? (int)(kind & INT32_MAX) : (int)(bytes_of(kind) - HEAD_BYTES);
}

static void *memory_realloc(void *p, int n)
{
	int room = memory_size(p);
	void *to;

	if (n <= room && n >= room / 2)
		return p;
	if (block_of(p)->kind & LARGE && (size_t)n + HEAD_BYTES > BLOCK_MAX) {
		struct block *block = realloc(block_of(p), (size_t)n + HEAD_BYTES);

		if (block)
			block->kind = LARGE | (uint64_t)n;
		return block ? (char *)block + HEAD_BYTES : NULL; /* cppcheck-suppress memleak */
	}
	to = memory_alloc(n);
	if (!to)
		return NULL;
	memcpy(to, p, (size_t)(n < room ? n : room));
	memory_free(p);
	return to;
}

static int memory_roundup(int n)
{
	return (n + 7) & ~7;
}

static int memory_init(void *context UNUSED)
{
	return pthread_key_create(&at_end, give_up_shelf) ? SQLITE_NOMEM : SQLITE_OK;
}

static void memory_end(void *context UNUSED)
{
}

void sqlite_memory_own(void)
{
	static const sqlite3_mem_methods methods = {memory_alloc,   memory_free, memory_realloc, memory_size,
						    memory_roundup, memory_init, memory_end,     NULL};

	(void)sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
	sqlite_pages_own();
#ifndef HX_DEBUG
	(void)sqlite3_config(SQLITE_CONFIG_MALLOC, &methods);
#else
	(void)methods;
#endif
}

size_t sqlite_memory_bytes(void)
{
	return atomic_load(&slab_bytes);
}
