/* See strbuf.h. The empty string is shared and read-only, so an unused buffer owns no memory. */
#include "base/strbuf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static char empty[1];

void strbuf_init(struct strbuf *sb, size_t max_bytes)
{
	*sb = (struct strbuf){.p = empty, .max_bytes = max_bytes};
}

void strbuf_release(struct strbuf *sb)
{
	if (sb->capacity)
		free(sb->p);
	strbuf_init(sb, sb->max_bytes);
}

void strbuf_reset(struct strbuf *sb)
{
	sb->n = 0;
	sb->failed = sb->no_memory = false;
	if (sb->capacity)
		sb->p[0] = '\0';
}

/* Room for need bytes in all, doubling so that appending stays linear, but never past the ceiling and its NUL. */
static bool grow(struct strbuf *sb, size_t need)
{
	size_t capacity = sb->capacity ? sb->capacity : 256;

	while (capacity < need)
		capacity *= 2;
	if (capacity - 1 > sb->max_bytes)
		capacity = sb->max_bytes + 1;

	char *p = realloc(sb->capacity ? sb->p : NULL, capacity);

	if (!p) {
		sb->failed = sb->no_memory = true;
		return false;
	}
	if (!sb->capacity)
		p[0] = '\0';
	sb->p = p;
	sb->capacity = capacity;
	return true;
}

char *strbuf_reserve(struct strbuf *sb, size_t n)
{
	/* Half of the address space can never be had; refusing it here keeps the sums in grow() from wrapping. */
	if (sb->failed || n > sb->max_bytes - sb->n || n >= SIZE_MAX / 2 - sb->n) {
		sb->failed = true;
		return NULL;
	}
	if (sb->n + n + 1 > sb->capacity && !grow(sb, sb->n + n + 1))
		return NULL;
	return sb->p + sb->n;
}

/* Most of what is appended is short, and there is room: that is not a call of another function. */
static inline char *room_for(struct strbuf *sb, size_t n)
{
	if (n < sb->capacity - sb->n && !sb->failed) /* what has room is below the ceiling */
		return sb->p + sb->n;
	return strbuf_reserve(sb, n);
}

static inline void append(struct strbuf *sb, const void *bytes, size_t n)
{
	char *to = room_for(sb, n);

	if (!to)
		return;
	if (n)
		memcpy(to, bytes, n);
	to[n] = '\0';
	sb->n += n;
}

void strbuf_add(struct strbuf *sb, const void *bytes, size_t n)
{
	append(sb, bytes, n);
}

void strbuf_add_slice(struct strbuf *sb, struct slice s)
{
	append(sb, s.p, s.n);
}

void strbuf_add_str(struct strbuf *sb, const char *s)
{
	append(sb, s, strlen(s));
}

void strbuf_add_char(struct strbuf *sb, char c)
{
	char *to = room_for(sb, 1);

	if (!to)
		return;
	to[0] = c;
	to[1] = '\0';
	sb->n++;
}

void strbuf_add_int(struct strbuf *sb, int64_t number)
{
	char digits[20]; /* of INT64_MIN, with its sign */
	char *at = digits + sizeof digits;
	uint64_t rest = number < 0 ? 0 - (uint64_t)number : (uint64_t)number;

	do
		*--at = (char)('0' + rest % 10);
	while (rest /= 10);
	if (number < 0)
		*--at = '-';
	strbuf_add(sb, at, (size_t)(digits + sizeof digits - at));
}

/* Written where there is room, if there is enough; else once more, when it is known how much. */
void strbuf_addf(struct strbuf *sb, const char *format, ...)
{
	size_t room = sb->capacity && !sb->failed ? sb->capacity - sb->n : 0;
	va_list args;

	va_start(args, format);
	int n = vsnprintf(room ? sb->p + sb->n : NULL, room, format, args);
	va_end(args);

	if (n < 0 || (size_t)n >= room) {
		if (room)
			sb->p[sb->n] = '\0';

		char *to = n < 0 ? NULL : strbuf_reserve(sb, (size_t)n);

		if (!to) {
			sb->failed = true;
			return;
		}
		va_start(args, format);
		vsnprintf(to, (size_t)n + 1, format, args);
		va_end(args);
	}
	sb->n += (size_t)n;
}

enum hx_code strbuf_error(const struct strbuf *sb, struct hx_error *err)
{
	ASSERT(sb->failed);
	if (sb->no_memory)
		return error_set(err, HX_NO_MEMORY, "out of memory");
	return error_set(err, HX_TOO_LARGE, "the text would be longer than the %zu bytes that it may have",
			 sb->max_bytes);
}
