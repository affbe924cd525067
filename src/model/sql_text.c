/*
 * See sql_text.h. A scanner over the tokens that both stores share, which is all that is needed to tell a parameter
 * from text that looks like one:
 *
 *   'it''s'  "a ""b"""   copied as they are         -- …  and  / * … * /   become one space
 *   E'it\'s'             becomes E'it''s'           $$it's$$, $tag$…$tag$  become 'it''s'
 *   a::int               a cast, not a parameter    :input.amount          ?N, one N per path
 *
 * What comes out has one way of quoting: from ' to ' and from " to ", a doubled one inside. Whoever reads it further
 * (src/db/stmt.c looks for ?N and for its own markers) needs to know no other. Comments nest as on PostgreSQL; they
 * are dropped, so it does not matter that on SQLite they do not.
 */
#include "model/sql_text.h"

#include <strings.h>

#include "base/excerpt.h"
#include "base/strbuf.h"
#include "model/nearest.h"
#include "model/sql_reach.h"

static const char *const verbs[] = {"SELECT", "INSERT", "UPDATE", "DELETE", "REPLACE", "MERGE", "WITH", NULL};
static const char *const roots[] = {"id", "workflow", "requester", "version", "key", "now", "input", NULL};

struct scanner {
	const char *p;
	const char *end;
	struct arena *arena;
	struct strbuf out;
	struct action_statement *statement;
	unsigned numbers; /* those that were met, a bit each; only where parameters are numbered */
	bool numbered;
	struct hx_error *err;
	enum hx_code code;
};

static const char *spelling(const struct scanner *s)
{
	return s->numbered ? "parameters are written ?1 to ?12" : "parameters are written :path";
}

static void sql_text_refuse(struct scanner *s, const char *at, const char *why)
{
	struct slice rest = slice_of(at, (size_t)(s->end - at));

	if (s->code == HX_OK)
		s->code = error_set(s->err, HX_VALIDATION_ERROR, "%s, at: %s", why, excerpt_of(rest).text);
}

static bool starts_identifier(char c)
{
	return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_' || (unsigned char)c >= 0x80;
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool continues_identifier(char c)
{
	return starts_identifier(c) || is_digit(c) || c == '$';
}

/* The character that is `ahead` of the current one; a blank after the end, which nothing here looks for. */
static char peek(const struct scanner *s, size_t ahead)
{
	return (size_t)(s->end - s->p) > ahead ? s->p[ahead] : ' ';
}

static void copy_to(struct scanner *s, const char *end)
{
	strbuf_add(&s->out, s->p, (size_t)(end - s->p));
	s->p = end;
}

/* From quote to quote; a doubled one inside is copied, and with `backslash` an escaped one becomes a doubled one. */
static void copy_quoted(struct scanner *s, bool backslash)
{
	const char *start = s->p;
	char quote = *s->p;

	copy_to(s, s->p + 1);
	while (s->p < s->end) {
		bool doubled = *s->p == quote && peek(s, 1) == quote;
		bool escaped = backslash && *s->p == '\\' && s->p + 1 < s->end;

		if (escaped && s->p[1] == quote) {
			strbuf_add_str(&s->out, "''");
			s->p += 2;
		} else if (doubled || escaped) {
			copy_to(s, s->p + 2);
		} else if (*s->p == quote) {
			copy_to(s, s->p + 1);
			return;
		} else {
			copy_to(s, s->p + 1);
		}
	}
	sql_text_refuse(s, start, "a quote is not closed");
}

static void skip_line_comment(struct scanner *s)
{
	while (s->p < s->end && *s->p != '\n')
		s->p++;
	strbuf_add_char(&s->out, ' ');
}

static void skip_block_comment(struct scanner *s)
{
	const char *start = s->p;
	unsigned depth = 0;

	do {
		bool opens = s->p[0] == '/' && peek(s, 1) == '*';
		bool closes = s->p[0] == '*' && peek(s, 1) == '/';

		depth += opens;
		depth -= closes;
		s->p += opens || closes ? 2 : 1;
	} while (depth > 0 && s->p < s->end);
	if (depth > 0)
		sql_text_refuse(s, start, "a comment is not closed");
	strbuf_add_char(&s->out, ' ');
}

/* With blanks around it: beside another literal it would become part of that. */
static void add_as_literal(struct scanner *s, struct slice text)
{
	strbuf_add_str(&s->out, " '");
	for (size_t i = 0; i < text.n; i++) {
		if (text.p[i] == '\'')
			strbuf_add_char(&s->out, '\'');
		strbuf_add_char(&s->out, text.p[i]);
	}
	strbuf_add_str(&s->out, "' ");
}

/* $$ … $$ or $tag$ … $tag$; anything else with a dollar in front would be a parameter of another spelling. */
static void take_dollar_quoted(struct scanner *s)
{
	const char *tag_end = s->p + 1;

	if (tag_end < s->end && starts_identifier(*tag_end))
		while (tag_end < s->end && continues_identifier(*tag_end) && *tag_end != '$')
			tag_end++;
	if (tag_end == s->end || *tag_end != '$') {
		sql_text_refuse(s, s->p, spelling(s));
		return;
	}

	const char *body = tag_end + 1;
	size_t tag_n = (size_t)(body - s->p);
	const char *close = memmem(body, (size_t)(s->end - body), s->p, tag_n);

	if (!close) {
		sql_text_refuse(s, s->p, "a quote is not closed");
		return;
	}
	add_as_literal(s, slice_of(body, (size_t)(close - body)));
	s->p = close + tag_n;
}

static void copy_identifier(struct scanner *s)
{
	const char *p = s->p;

	while (p < s->end && continues_identifier(*p))
		p++;

	bool escapes = p == s->p + 1 && (*s->p == 'e' || *s->p == 'E') && p < s->end && *p == '\'';

	copy_to(s, p);
	if (escapes)
		copy_quoted(s, /* backslash= */ true);
}

static bool is_path_char(char c)
{
	return (starts_identifier(c) && (unsigned char)c < 0x80) || is_digit(c);
}

/* "input.a.b": names with dots between them. */
static struct slice path_at(const struct scanner *s, const char *p)
{
	const char *start = p;

	while (p < s->end && is_path_char(*p)) {
		p++;
		if (p + 1 < s->end && *p == '.' && is_path_char(p[1]))
			p++;
	}
	return slice_of(start, (size_t)(p - start));
}

static bool check_path(struct scanner *s, struct slice path)
{
	const char *dot = memchr(path.p, '.', path.n);
	struct slice root = slice_of(path.p, dot ? (size_t)(dot - path.p) : path.n);

	if (path.n > SQL_PATH_BYTES_MAX) {
		sql_text_refuse(s, path.p, "the path of a parameter is too long");
		return false;
	}
	for (size_t i = 0; roots[i]; i++) {
		if (!slice_is(root, roots[i]))
			continue;
		if (dot && strcmp(roots[i], "input") != 0) {
			sql_text_refuse(s, path.p, "only :input has parts");
			return false;
		}
		return true;
	}
	if (s->code == HX_OK)
		s->code = error_set(s->err, HX_VALIDATION_ERROR, "there is no parameter :%s%s", excerpt_of(path).text,
				    nearest_words(root, roots, ":", "").text);
	return false;
}

/* The number of the path, which is a new one if it has not been used; 0 when there are too many. */
static size_t param_number(struct scanner *s, struct slice path)
{
	struct action_statement *statement = s->statement;

	for (size_t i = 0; i < statement->params_n; i++)
		if (slice_is(path, statement->params[i]))
			return i + 1;
	if (statement->params_n == ACTION_PARAMS_MAX) {
		sql_text_refuse(s, path.p, "a statement has at most 12 parameters");
		return 0;
	}
	statement->params[statement->params_n] = arena_copy(s->arena, path).p;
	if (!statement->params[statement->params_n]) {
		s->code = arena_error(s->arena, s->err);
		return 0;
	}
	return ++statement->params_n;
}

_Static_assert(ACTION_PARAMS_MAX == 12, "a message says so");

static void copy_param(struct scanner *s)
{
	struct slice path = path_at(s, s->p + 1);

	s->p += 1 + path.n;
	if (check_path(s, path))
		strbuf_addf(&s->out, "?%zu", param_number(s, path));
}

/* ?1 to ?12, as they are. */
static void copy_number(struct scanner *s)
{
	const char *p = s->p + 1;
	size_t number = 0;

	while (p < s->end && is_digit(*p) && number <= ACTION_PARAMS_MAX)
		number = 10 * number + (size_t)(*p++ - '0');
	if (number < 1 || number > ACTION_PARAMS_MAX || s->p[1] == '0') {
		sql_text_refuse(s, s->p, spelling(s));
		return;
	}
	s->numbers |= 1u << number;
	if (number > s->statement->params_n)
		s->statement->params_n = number;
	copy_to(s, p);
}

static void copy_colon(struct scanner *s)
{
	char next = peek(s, 1);

	if (next == ':') {
		copy_to(s, s->p + 2);
	} else if (starts_identifier(next) && (unsigned char)next < 0x80 && !s->numbered) {
		copy_param(s);
	} else if (continues_identifier(next) && s->numbered) {
		sql_text_refuse(s, s->p, spelling(s));
	} else {
		if (continues_identifier(next))
			sql_text_refuse(s, s->p, "the path of a parameter begins with a letter");
		copy_to(s, s->p + 1);
	}
}

static bool is_space(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

/* After the semicolon only blanks and comments may stand; it is dropped. */
static void end_statement(struct scanner *s)
{
	const char *at = s->p++;

	while (s->p < s->end && s->code == HX_OK) {
		if (is_space(*s->p) || *s->p == ';')
			s->p++;
		else if (*s->p == '-' && peek(s, 1) == '-')
			skip_line_comment(s);
		else if (*s->p == '/' && peek(s, 1) == '*')
			skip_block_comment(s);
		else
			sql_text_refuse(s, at, "one statement has one SQL statement");
	}
}

static void take_token(struct scanner *s)
{
	char c = *s->p;

	if (c == '\'' || c == '"')
		copy_quoted(s, /* backslash= */ false);
	else if (c == '-' && peek(s, 1) == '-')
		skip_line_comment(s);
	else if (c == '/' && peek(s, 1) == '*')
		skip_block_comment(s);
	else if (c == '$')
		take_dollar_quoted(s);
	else if (c == ':')
		copy_colon(s);
	else if (c == ';')
		end_statement(s);
	else if (starts_identifier(c))
		copy_identifier(s);
	else if (c == '?' && s->numbered)
		copy_number(s);
	else if (c == '?' || (c == '@' && continues_identifier(peek(s, 1))))
		sql_text_refuse(s, s->p, spelling(s));
	else if (c == '`' || c == '{' || c == '}')
		sql_text_refuse(s, s->p, "this character is not SQL outside of quotes");
	else
		copy_to(s, s->p + 1);
}

/* BEGIN, COMMIT, PRAGMA … would reach out of the unit that this runs in. */
static void check_verb(struct scanner *s)
{
	const char *p = s->out.p;
	size_t n = 0;

	while (is_space(*p))
		p++;
	while (starts_identifier(p[n]))
		n++;
	for (size_t i = 0; verbs[i]; i++)
		if (n == strlen(verbs[i]) && strncasecmp(p, verbs[i], n) == 0)
			return;
	if (s->code == HX_OK)
		s->code = error_set(s->err, HX_VALIDATION_ERROR,
				    "\"%s\": it must begin with SELECT, INSERT, UPDATE, DELETE, REPLACE, MERGE or WITH",
				    excerpt_of(slice_of(p, strlen(p))).text);
}

static struct slice trimmed(struct slice text)
{
	while (text.n > 0 && is_space(text.p[0]))
		text = slice_of(text.p + 1, text.n - 1);
	while (text.n > 0 && is_space(text.p[text.n - 1]))
		text.n--;
	return text;
}

static enum hx_code scan(struct slice text, bool numbered, struct arena *a, struct hx_error *err,
			 struct action_statement *ret)
{
	struct action_statement statement = *ret;
	struct scanner s = {.p = text.p, .end = text.p + text.n, .arena = a, .statement = &statement, .err = err};

	if (text.n > SQL_TEXT_BYTES_MAX)
		return error_set(err, HX_VALIDATION_ERROR, "it has %zu bytes; at most %d", text.n, SQL_TEXT_BYTES_MAX);
	if (text.n && memchr(text.p, '\0', text.n))
		return error_set(err, HX_VALIDATION_ERROR, "there is a NUL in it");
	s.code = HX_OK;
	s.numbered = numbered;
	statement.params_n = 0;
	/* No token becomes more than twice as long. */
	strbuf_init(&s.out, 2 * text.n);
	while (s.p < s.end && s.code == HX_OK)
		take_token(&s);
	if (s.code == HX_OK)
		check_verb(&s);
	/* PostgreSQL cannot tell the type of a parameter that stands nowhere. */
	if (s.code == HX_OK && numbered && s.numbers + 2 != 2u << statement.params_n)
		s.code = error_set(err, HX_VALIDATION_ERROR, "of the parameters up to ?%zu one is not used",
				   statement.params_n);
	if (s.code == HX_OK && s.out.failed)
		s.code = strbuf_error(&s.out, err);
	if (s.code == HX_OK) {
		statement.sql = arena_copy(a, trimmed(strbuf_slice(&s.out))).p;
		s.code = statement.sql ? sql_reach_check(statement.sql, err) : arena_error(a, err);
	}
	strbuf_release(&s.out);
	if (s.code == HX_OK)
		*ret = statement;
	return s.code;
}

enum hx_code sql_text_parse(struct slice text, struct arena *a, struct hx_error *err, struct action_statement *ret)
{
	return scan(text, /* numbered= */ false, a, err, ret);
}

enum hx_code sql_text_parse_numbered(struct slice text, struct arena *a, struct hx_error *err,
				     struct action_statement *ret)
{
	return scan(text, /* numbered= */ true, a, err, ret);
}
