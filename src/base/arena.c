/* Bump allocation in a list of blocks; see arena.h for the contract. */
#include "base/arena.h"

#include <stdalign.h>
#include <stdint.h>
#include <stdlib.h>

#define BLOCK_BYTES_MIN 4096u

struct arena_block {
	struct arena_block *next;
	size_t size;
	size_t used;
	alignas(max_align_t) char bytes[];
};

void arena_init(struct arena *a, size_t max_bytes)
{
	*a = (struct arena){.max_bytes = max_bytes};
}

static struct arena_block *block_new(size_t size)
{
	struct arena_block *b = malloc(sizeof *b + size);

	if (b)
		*b = (struct arena_block){.size = size};
	return b;
}

/* The next block with room for size: one kept from before the reset, or a new one after the current. */
static struct arena_block *block_with_room(struct arena *a, size_t size)
{
	struct arena_block **at = a->current ? &a->current->next : &a->first;
	size_t want = BLOCK_BYTES_MIN;

	if (*at && (*at)->size >= size)
		return *at;
	if (a->current && a->current->size > want)
		want = a->current->size;
	if (want < 64 * BLOCK_BYTES_MIN)
		want *= 2;
	if (want < size)
		want = size;

	struct arena_block *b = block_new(want);

	if (b) {
		b->next = *at;
		*at = b;
	}
	return b;
}

void *arena_alloc(struct arena *a, size_t size)
{
	const size_t align = alignof(max_align_t);

	/* Half of the address space can never be had; refusing it here keeps the sums below from wrapping. */
	if (size > a->max_bytes || size > SIZE_MAX / 2 || a->failed) {
		a->failed = true;
		return NULL;
	}
	size = (size + align - 1) & ~(align - 1);
	if (size > a->max_bytes - a->used_bytes) {
		a->failed = true;
		return NULL;
	}

	struct arena_block *b = a->current;

	if (!b || b->size - b->used < size) {
		b = block_with_room(a, size);
		if (!b) {
			a->failed = a->no_memory = true;
			return NULL;
		}
		a->current = b;
	}

	void *p = b->bytes + b->used;

	b->used += size;
	a->used_bytes += size;
	return p;
}

void *arena_zalloc(struct arena *a, size_t size)
{
	void *p = arena_alloc(a, size);

	if (p)
		memset(p, 0, size);
	return p;
}

struct slice arena_copy(struct arena *a, struct slice s)
{
	char *p = arena_alloc(a, s.n < SIZE_MAX ? s.n + 1 : SIZE_MAX);

	if (!p)
		return (struct slice){NULL, 0};
	if (s.n)
		memcpy(p, s.p, s.n);
	p[s.n] = '\0';
	return slice_of(p, s.n);
}

struct slice arena_keep(struct arena *a, struct strbuf *text)
{
	struct slice kept = arena_copy(a, strbuf_slice(text));

	a->failed |= text->failed;
	strbuf_release(text);
	return kept;
}

struct strbuf arena_strbuf(struct arena *a, size_t max_bytes)
{
	return (struct strbuf){.p = arena_alloc(a, max_bytes + 1), .capacity = max_bytes + 1, .max_bytes = max_bytes};
}

void arena_reset(struct arena *a)
{
	size_t kept = 0;
	struct arena_block **at = &a->first;

	while (*at) {
		struct arena_block *b = *at;

		if (kept + b->size > ARENA_KEEP_BYTES) {
			*at = b->next;
			free(b);
			continue;
		}
		kept += b->size;
		b->used = 0;
		at = &b->next;
	}
	a->current = a->first;
	a->used_bytes = 0;
	a->failed = a->no_memory = false;
}

struct arena_mark arena_mark(const struct arena *a)
{
	return (struct arena_mark){a->current, a->current ? a->current->used : 0, a->used_bytes};
}

void arena_rewind(struct arena *a, struct arena_mark mark)
{
	struct arena_block *b = mark.block ? mark.block->next : a->first;

	if (mark.block)
		mark.block->used = mark.block_used;
	for (; b; b = b->next)
		b->used = 0;
	a->current = mark.block;
	a->used_bytes = mark.used_bytes;
	a->failed = a->no_memory = false;
}

void arena_release(struct arena *a)
{
	while (a->first) {
		struct arena_block *b = a->first;

		a->first = b->next;
		free(b);
	}
	arena_init(a, a->max_bytes);
}

enum hx_code arena_error(const struct arena *a, struct hx_error *err)
{
	ASSERT(a->failed);
	if (a->no_memory)
		return error_set(err, HX_NO_MEMORY, "out of memory");
	return error_set(err, HX_TOO_LARGE, "this needs more than the %zu bytes of memory that it may use",
			 a->max_bytes);
}
