/* See expression_scan.h. */
#include "model/expression_scan.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/excerpt.h"
#include "base/json_walk.h"
#include "base/utf8.h"

size_t expression_column(struct slice text, size_t at)
{
	size_t column = 1;

	for (size_t i = 0; i < at; i++)
		column += !utf8_continues((unsigned char)text.p[i]);
	return column;
}

void *scan_refuse(struct expression_scan *s, size_t at, const char *format, ...)
{
	char what[sizeof s->err->detail];
	va_list args;

	ASSERT(s->code == HX_OK);
	s->refused_at = at;
	va_start(args, format);
	vsnprintf(what, sizeof what, format, args);
	va_end(args);
	s->code = error_set(s->err, HX_VALIDATION_ERROR, "column %zu: %s", expression_column(s->text, at), what);
	return NULL;
}

void *scan_alloc(struct expression_scan *s, size_t size)
{
	void *memory = arena_zalloc(s->arena, size);

	if (!memory)
		s->code = arena_error(s->arena, s->err);
	return memory;
}

char scan_space(struct expression_scan *s)
{
	while (scan_peek(s, 0) == ' ' || scan_peek(s, 0) == '\t' || scan_peek(s, 0) == '\n')
		s->at++;
	return scan_peek(s, 0);
}

struct slice scan_name(struct expression_scan *s)
{
	size_t start = s->at;

	while (scan_continues_name(scan_peek(s, 0)))
		s->at++;
	return scan_since(s, start);
}

bool scan_take(struct expression_scan *s, const char *operator)
{
	size_t n = strlen(operator);

	(void)scan_space(s);
	if (s->text.n - s->at < n || memcmp(s->text.p + s->at, operator, n) != 0)
		return false;
	if (scan_starts_name(operator[0]) && scan_continues_name(scan_peek(s, n)))
		return false;
	s->at += n;
	return true;
}

void *scan_unexpected(struct expression_scan *s)
{
	static const struct {
		const char *begin, *hint;
	} hints[] = {{"+-*/%", "there is no arithmetic"},
		     {"=", "to compare, write =="},
		     {"!", "write: … | not"},
		     {"&", "write: and"},
		     {",", "an expression is one value; several of them stand in [ ]"},
		     {"?", "there is no ?; a path into null is null"},
		     {"$", "there are no variables"},
		     {"@", "there are no formats"},
		     {"#", "there are no comments"},
		     {"'", "strings stand in double quotes"}};
	struct slice rest = slice_of(s->text.p + s->at, s->text.n - s->at);

	if (rest.n == 0)
		return scan_refuse(s, s->at, "it ends too early");
	for (size_t i = 0; i < sizeof hints / sizeof hints[0]; i++)
		if (rest.p[0] && strchr(hints[i].begin, rest.p[0]))
			return scan_refuse(s, s->at, "%s", hints[i].hint);
	return scan_refuse(s, s->at, "this is not expected here: %s", excerpt_of(rest).text);
}

bool scan_expect(struct expression_scan *s, const char *operator)
{
	if (!scan_take(s, operator))
		(void)scan_unexpected(s);
	return s->code == HX_OK;
}

bool scan_enter(struct expression_scan *s)
{
	if (++s->depth > EXPRESSION_DEPTH_MAX)
		(void)scan_refuse(s, s->at, "more than %d brackets are open", EXPRESSION_DEPTH_MAX);
	return s->code == HX_OK;
}

/* What json_check() says, without its "LINE:COLUMN: ". */
static bool check_literal(struct expression_scan *s, size_t start, const char *what, struct json *ret_value)
{
	struct hx_error err = {0};

	if (json_check(scan_since(s, start), &err, ret_value) == HX_OK)
		return true;

	const char *reason = strchr(err.detail, ' ');

	return scan_refuse(s, start, "this is not a %s of JSON:%s", what, reason ? reason : "");
}

bool scan_string(struct expression_scan *s, struct json *ret_value)
{
	size_t start = s->at;

	s->at = (size_t)(json_string_end(s->text.p + start, s->text.p + s->text.n) - s->text.p);
	return check_literal(s, start, "string", ret_value);
}

bool scan_number(struct expression_scan *s, struct json *ret_value)
{
	size_t start = s->at;

	s->at += scan_peek(s, 0) == '-';
	if (!scan_is_digit(scan_peek(s, 0))) {
		s->at = start;
		return scan_unexpected(s);
	}
	while (scan_continues_name(scan_peek(s, 0)) || scan_peek(s, 0) == '.' ||
	       ((scan_peek(s, 0) == '+' || scan_peek(s, 0) == '-') && (s->text.p[s->at - 1] | 0x20) == 'e'))
		s->at++;
	return check_literal(s, start, "number", ret_value);
}
