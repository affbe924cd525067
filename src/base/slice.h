/* A view of bytes that somebody else owns. Not terminated; may hold NUL. `{NULL, 0}` is empty and valid. */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

struct slice {
	const char *p;
	size_t n;
};

static inline struct slice slice_of(const void *p, size_t n)
{
	return (struct slice){p, n};
}

static inline struct slice slice_str(const char *s)
{
	return (struct slice){s, s ? strlen(s) : 0};
}

static inline bool slice_eq(struct slice a, struct slice b)
{
	return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

static inline bool slice_is(struct slice a, const char *s)
{
	return slice_eq(a, slice_str(s));
}

/* As memcmp; a prefix comes before what it begins. For UTF-8 this is the order of the code points. */
static inline int slice_compare(struct slice a, struct slice b)
{
	size_t n = a.n < b.n ? a.n : b.n;
	int order = n ? memcmp(a.p, b.p, n) : 0;

	return order ? order : (a.n > b.n) - (a.n < b.n);
}

/* Without its first n bytes, of which it has so many. */
static inline struct slice slice_from(struct slice s, size_t n)
{
	return (struct slice){s.p + n, s.n - n};
}

static inline bool slice_starts(struct slice s, const char *prefix)
{
	size_t n = strlen(prefix);

	return s.n >= n && memcmp(s.p, prefix, n) == 0;
}

/* Takes off what stands before the first of this character, and the character; without one all of it. `rest` is then what
 * follows, its p NULL where there was none. */
struct slice slice_cut(struct slice *rest, char at);
/* Is it one of these, which end with NULL? */
bool slice_in(struct slice s, const char *const list[]);

/*
 * ASCII letters without regard to case, everything else exactly. Not by strcasecmp(): in the locale of an embedding program I
 * need not be the capital of i, and SET-COOKIE passes.
 */
static inline char char_lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
}

bool slice_eq_nocase(struct slice a, struct slice b);
bool slice_in_nocase(struct slice s, const char *const list[]);

static inline bool slice_is_nocase(struct slice a, const char *s)
{
	return slice_eq_nocase(a, slice_str(s));
}

static inline bool slice_starts_nocase(struct slice s, const char *prefix)
{
	size_t n = strlen(prefix);

	return s.n >= n && slice_eq_nocase(slice_of(s.p, n), slice_of(prefix, n));
}

/* Takes the next item off a comma-separated list that holds no quoted strings, without white space; empty items are skipped.
 * False at the end. */
bool slice_list_next(struct slice *rest, struct slice *ret_item);

/* Without blanks and tabs around it. */
static inline struct slice slice_trim(struct slice s)
{
	while (s.n > 0 && (s.p[0] == ' ' || s.p[0] == '\t'))
		s = slice_of(s.p + 1, s.n - 1);
	while (s.n > 0 && (s.p[s.n - 1] == ' ' || s.p[s.n - 1] == '\t'))
		s.n--;
	return s;
}

/* For printf's "%.*s". A negative precision would mean "up to the NUL", hence the bound. */
#define SLICE_ARGS(s) (int)((s).n < INT_MAX ? (s).n : INT_MAX), (s).p ? (s).p : ""
