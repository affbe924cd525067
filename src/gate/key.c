/*
 * See key.h. The header's form is RFC 8941's string, or the same text bare. The first byte tells them apart:
 *
 *   "a\"b \\c"   a"b \c     anything after the closing quote, also ;name=value, makes it invalid
 *   abc;1        abc;1      no space, quote or comma: a comma is how a proxy joins two lines. All else is opaque
 *
 * A body's key is spelled so that a number is never a string: "42" is 42, 42 is #42, and "#42" is ##42.
 */
#include "gate/key.h"

#include <inttypes.h>

#include "base/excerpt.h"
#include "base/json_number.h"
#include "base/json_pointer.h"
#include "base/json_string.h"
#include "base/utf8.h"

#define NUMBER_MARK '#'

/* How many bytes of JSON one character can take: an escaped pair of surrogates. */
#define CHARACTER_BYTES_MAX 12

static enum hx_code invalid(struct hx_error *err, const char *what)
{
	return error_set(err, HX_KEY_INVALID, "the idempotency key %s", what);
}

static enum hx_code check_length(size_t characters, size_t max, struct hx_error *err)
{
	if (characters == 0)
		return invalid(err, "is empty");
	if (characters > max)
		return error_set(err, HX_KEY_INVALID, "the idempotency key has more than %zu characters", max);
	return HX_OK;
}

static enum hx_code check_bare(struct slice value, struct hx_error *err)
{
	for (size_t i = 0; i < value.n; i++) {
		unsigned char c = (unsigned char)value.p[i];

		if (c <= 0x20 || c >= 0x7f)
			return invalid(err, "has a character that is not visible ASCII; spaces need quotes around it");
		if (c == '"' || c == ',')
			return invalid(err, "has a quote or a comma, which needs quotes around it");
	}
	return HX_OK;
}

/* *ret_inside is what stands between the quotes, its escapes as they are; there are *ret_escapes of them. */
static enum hx_code check_quoted(struct slice value, struct hx_error *err, struct slice *ret_inside,
				 size_t *ret_escapes)
{
	size_t escapes = 0, i = 1;

	for (; i < value.n && value.p[i] != '"'; i++) {
		unsigned char c = (unsigned char)value.p[i];

		if (c < 0x20 || c >= 0x7f)
			return invalid(err, "has a character that is not ASCII, or a control character");
		if (c != '\\')
			continue;
		if (++i == value.n || (value.p[i] != '"' && value.p[i] != '\\'))
			return invalid(err, "has a backslash that escapes neither a quote nor a backslash");
		escapes++;
	}
	if (i >= value.n)
		return invalid(err, "does not end with a quote as it begins");
	if (i + 1 < value.n)
		return invalid(err, "has something after its closing quote");
	*ret_inside = slice_of(value.p + 1, i - 1);
	*ret_escapes = escapes;
	return HX_OK;
}

static enum hx_code unescape(struct slice inside, size_t escapes, struct arena *arena, struct hx_error *err,
			     struct slice *ret_key)
{
	char *key = arena_alloc(arena, inside.n - escapes);
	size_t n = 0;

	if (!key)
		return arena_error(arena, err);
	for (size_t i = 0; i < inside.n; i++) {
		i += inside.p[i] == '\\';
		key[n++] = inside.p[i];
	}
	*ret_key = slice_of(key, n);
	return HX_OK;
}

enum hx_code gate_key_from_header(const struct slice values[], size_t n, size_t max, struct arena *arena,
				  struct hx_error *err, struct slice *ret_key)
{
	struct slice key;
	size_t escapes = 0;
	enum hx_code code;

	if (n == 0)
		return error_set(err, HX_KEY_REQUIRED, "the request has no idempotency key");
	if (n > 1)
		return invalid(err, "is there more than once");
	key = values[0];
	code = key.n > 0 && key.p[0] == '"' ? check_quoted(key, err, &key, &escapes) : check_bare(key, err);
	if (code == HX_OK)
		code = check_length(key.n - escapes, max, err);
	if (code == HX_OK && escapes > 0)
		code = unescape(key, escapes, arena, err, &key);
	if (code == HX_OK)
		*ret_key = key;
	return code;
}

/* Without control characters, which the forms of a header do not have either. NUL is among them, which not every store takes. */
static enum hx_code check_text(struct slice text, size_t max, struct hx_error *err)
{
	size_t characters = 0;
	bool controls = false;
	enum hx_code code;

	for (size_t i = 0; i < text.n; i++) {
		characters += !utf8_continues((unsigned char)text.p[i]);
		controls |= (unsigned char)text.p[i] < 0x20 || text.p[i] == 0x7f;
	}
	code = check_length(characters, max, err);
	return code == HX_OK && controls ? invalid(err, "has a control character") : code;
}

static enum hx_code key_of_string(struct json value, size_t max, struct arena *arena, struct hx_error *err,
				  struct slice *ret_key)
{
	struct slice text;
	enum hx_code code;
	char *marked;

	/* Refused here, a string of any size costs no memory. */
	if ((value.raw.n - 2) / CHARACTER_BYTES_MAX > max)
		return check_length(max + 1, max, err);
	text = json_string_view(value, arena);
	if (!text.p)
		return arena_error(arena, err);
	code = check_text(text, max, err);
	if (code == HX_OK)
		*ret_key = text;
	if (code != HX_OK || text.p[0] != NUMBER_MARK)
		return code;
	marked = arena_alloc(arena, text.n + 1);
	if (!marked)
		return arena_error(arena, err);
	marked[0] = NUMBER_MARK;
	memcpy(marked + 1, text.p, text.n);
	*ret_key = slice_of(marked, text.n + 1);
	return HX_OK;
}

/* Integers as people write them, so that they find them again; all else in the one spelling of its exact value. */
static enum hx_code key_of_number(struct json value, size_t max, struct arena *arena, struct hx_error *err,
				  struct slice *ret_key)
{
	struct json_number number = json_number_of(value);
	/* json_number.h: at most 24 more than it had; and the mark */
	struct strbuf key = arena_strbuf(arena, value.raw.n + 25);
	int64_t integer;
	enum hx_code code;

	if (!key.p)
		return arena_error(arena, err);
	strbuf_add_char(&key, NUMBER_MARK);
	if (json_int64(value, /* err= */ NULL, &integer) == HX_OK)
		strbuf_addf(&key, "%" PRId64, integer);
	else
		json_number_append(&number, &key);
	ASSERT(!key.failed);
	code = check_length(key.n - 1, max, err);
	if (code == HX_OK)
		*ret_key = strbuf_slice(&key);
	return code;
}

enum hx_code gate_key_from_value(struct json value, size_t max, struct arena *arena, struct hx_error *err,
				 struct slice *ret_key)
{
	enum json_type type = json_type(value);

	if (type == JSON_STRING)
		return key_of_string(value, max, arena, err, ret_key);
	if (type == JSON_NUMBER)
		return key_of_number(value, max, arena, err, ret_key);
	return error_set(err, HX_KEY_INVALID, "the idempotency key is a string or a number, and there is: %s",
			 json_type_name(type));
}

enum hx_code gate_key_from_json(struct slice body, struct slice pointer, size_t max, struct arena *arena,
				struct hx_error *err, struct slice *ret_key)
{
	struct hx_error why;
	struct json document, value;
	enum json_selection selection;

	if (body.n == 0)
		return error_set(err, HX_KEY_REQUIRED, "the idempotency key is in the body, which is empty");
	/* Others may read more into it than we do, and find a key. */
	if (json_check(body, &why, &document) != HX_OK)
		return error_set(err, HX_KEY_INVALID, "the idempotency key is in the body, which is not JSON: %s",
				 why.detail);
	selection = json_pointer_select(document, pointer, &value);
	if (selection == JSON_AMBIGUOUS)
		return invalid(err, "is not certain: an object of the body has a name twice that leads to it");
	if (selection != JSON_SELECTED || json_type(value) == JSON_NULL)
		return error_set(err, HX_KEY_REQUIRED, "the body has no idempotency key at %s",
				 pointer.n > 0 ? excerpt_of(pointer).text : "its root");
	return gate_key_from_value(value, max, arena, err, ret_key);
}

enum hx_code gate_key_from_text(struct slice text, size_t max, struct hx_error *err, struct slice *ret_key)
{
	enum hx_code code = utf8_valid_bytes(text) == text.n ? check_text(text, max, err)
							     : invalid(err, "is not UTF-8");

	if (code == HX_OK)
		*ret_key = text;
	return code;
}

enum hx_code gate_key_compose(const struct slice parts[], size_t n, size_t max, struct arena *arena,
			      struct hx_error *err, struct slice *ret_key)
{
	size_t bytes = 0;
	char *key, *p;

	for (size_t i = 0; i < n; i++)
		bytes += 3 * parts[i].n + 1;
	p = key = arena_alloc(arena, bytes);
	if (!key)
		return arena_error(arena, err);
	for (size_t i = 0; i < n; i++) {
		if (i > 0)
			*p++ = '/';
		for (size_t b = 0; b < parts[i].n; b++) {
			const char *escape = parts[i].p[b] == '%' ? "%25" : parts[i].p[b] == '/' ? "%2F" : NULL;

			memcpy(p, escape ? escape : &parts[i].p[b], escape ? 3 : 1);
			p += escape ? 3 : 1;
		}
	}
	return gate_key_from_text(slice_of(key, (size_t)(p - key)), max, err, ret_key);
}
