/*
 * Memory that is dropped all at once: one arena per request, per task or per batch.
 *
 * arena_alloc() returns NULL when the ceiling would be passed or the system has no memory; `failed` then stays
 * set until the reset, so that a caller may build a whole structure and look once at the end, and arena_error()
 * says which of the two it was. Blocks are kept over a reset (up to ARENA_KEEP_BYTES), so a lane in its stride
 * does not touch malloc. Not thread-safe.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/strbuf.h"

#define ARENA_KEEP_BYTES (1u << 20)

struct arena_block;

struct arena {
	struct arena_block *first;
	struct arena_block *current;
	size_t used_bytes;
	size_t max_bytes;
	bool failed;
	bool no_memory; /* failed because malloc did, not because of the ceiling */
};

/* Takes no memory yet. max_bytes is the ceiling of what is handed out, each piece rounded up to the alignment. */
void arena_init(struct arena *a, size_t max_bytes);
/* Zeroed? No. Aligned for any type. size 0 is allowed. */
void *arena_alloc(struct arena *a, size_t size);
void *arena_zalloc(struct arena *a, size_t size);
/* Copies with a terminating NUL after the slice (not counted in n). On failure p is NULL. */
struct slice arena_copy(struct arena *a, struct slice s);
/* The same of a text that was built, which is released. If it has failed, so has the arena. */
struct slice arena_keep(struct arena *a, struct strbuf *text);
/* A buffer of at most so many bytes that lies in the arena: it never grows, and is never released. p NULL: no memory. */
struct strbuf arena_strbuf(struct arena *a, size_t max_bytes);
/* Forgets everything that was allocated. */
void arena_reset(struct arena *a);
/* Where it stands; going back there forgets all that was allocated since. Marks made since are void then. */
struct arena_mark {
	struct arena_block *block;
	size_t block_used;
	size_t used_bytes;
};
struct arena_mark arena_mark(const struct arena *a);
void arena_rewind(struct arena *a, struct arena_mark mark);
/* Gives all memory back; the arena is as after arena_init(). Safe on a zeroed struct and twice. */
void arena_release(struct arena *a);
/* One that lives as long as its block, whichever way that is left. */
#define LOCAL_ARENA(name, max_bytes)                                                                                   \
	__attribute__((cleanup(arena_release))) struct arena name;                                                     \
	arena_init(&name, max_bytes)
/* Why the arena has failed: HX_TOO_LARGE at the ceiling, HX_NO_MEMORY when the system had none. */
enum hx_code arena_error(const struct arena *a, struct hx_error *err);
