/*
 * The text of an expression on its way to the parser: its tokens, and what is said when one of them cannot stand where it is.
 * Space is skipped in front of a token, never after it. Nobody says more once `code` is set.
 */
#pragma once

#include "model/expression_tree.h"

struct expression_scan {
	struct slice text;
	size_t at;
	unsigned depth; /* of brackets that are open */
	struct arena *arena;
	struct hx_error *err;
	enum hx_code code;
	size_t refused_at; /* what cannot stand where it is */
};

/* Always NULL, so that `return scan_refuse(...)` reads as one step. */
void *scan_refuse(struct expression_scan *s, size_t at, const char *format, ...) HX_PRINTF(3, 4);
/* What stands here cannot stand here; often it is jq that we do not have. Always NULL, too. */
void *scan_unexpected(struct expression_scan *s);
/* Of zeros. NULL: the arena has failed, which is said. */
void *scan_alloc(struct expression_scan *s, size_t size);

/* What comes after the space. */
char scan_space(struct expression_scan *s);
struct slice scan_name(struct expression_scan *s);
/* Steps over the operator if it is next. A word ends where the name does. */
bool scan_take(struct expression_scan *s, const char *operator);
/* The same, and refuses what is there instead. */
bool scan_expect(struct expression_scan *s, const char *operator);
/* One bracket deeper. False: that is too deep, and refused. */
bool scan_enter(struct expression_scan *s);

/* At the quote, or at the digit or minus: one literal of JSON, which borrows the text. */
bool scan_string(struct expression_scan *s, struct json *ret_value);
bool scan_number(struct expression_scan *s, struct json *ret_value);

/* NUL is after the end, and is nothing that an expression could have outside of it. */
static inline char scan_peek(const struct expression_scan *s, size_t ahead)
{
	return s->text.n - s->at > ahead ? s->text.p[s->at + ahead] : '\0';
}

static inline struct slice scan_since(const struct expression_scan *s, size_t start)
{
	return slice_of(s->text.p + start, s->at - start);
}

static inline bool scan_is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static inline bool scan_starts_name(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static inline bool scan_continues_name(char c)
{
	return scan_starts_name(c) || scan_is_digit(c);
}
