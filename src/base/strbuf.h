/*
 * A growing string with a ceiling. The text is always terminated (the NUL is not counted in `n`) and `p` is
 * never NULL after init. An append that would pass the ceiling or finds no memory changes nothing and sets
 * `failed`, which stays set: append freely, look once at the end. What is appended must not lie in the buffer
 * itself. Not thread-safe.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/slice.h"

struct strbuf {
	char *p;
	size_t n;
	size_t capacity;
	size_t max_bytes;
	bool failed;
	bool no_memory; /* failed because malloc did, not because of the ceiling */
};

void strbuf_init(struct strbuf *sb, size_t max_bytes);
/* Gives the memory back; empty and usable again. Safe on a zeroed struct and twice. */
void strbuf_release(struct strbuf *sb);
/* One that lives as long as its block, whichever way that is left. */
#define LOCAL_STRBUF(name, max_bytes)                                                                                  \
	__attribute__((cleanup(strbuf_release))) struct strbuf name;                                                   \
	strbuf_init(&name, max_bytes)
/* Empties it, keeps the memory, clears `failed`. */
void strbuf_reset(struct strbuf *sb);
void strbuf_add(struct strbuf *sb, const void *bytes, size_t n);
void strbuf_add_slice(struct strbuf *sb, struct slice s);
void strbuf_add_str(struct strbuf *sb, const char *s);
void strbuf_add_char(struct strbuf *sb, char c);
void strbuf_add_int(struct strbuf *sb, int64_t number);
void strbuf_addf(struct strbuf *sb, const char *format, ...) HX_PRINTF(2, 3);
/* Makes room for n more bytes (and a NUL) and returns where they go, or NULL; the caller then writes at most
 * n bytes and the NUL after them, and adds to sb->n. */
char *strbuf_reserve(struct strbuf *sb, size_t n);
/* Why the buffer has failed: HX_TOO_LARGE at the ceiling, HX_NO_MEMORY when the system had none. */
enum hx_code strbuf_error(const struct strbuf *sb, struct hx_error *err);

static inline struct slice strbuf_slice(const struct strbuf *sb)
{
	return slice_of(sb->p, sb->n);
}
