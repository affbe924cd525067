/* See query.h. */
#include "wire/query.h"

#include "base/excerpt.h"
#include "base/utf8.h"
#include "wire/charset.h"

static bool needs_decoding(struct slice raw, bool plus_is_space)
{
	for (size_t i = 0; i < raw.n; i++)
		if (raw.p[i] == '%' || (plus_is_space && raw.p[i] == '+'))
			return true;
	return false;
}

/* Writes at most raw.n bytes to `to`. False if an escape is not complete. */
static bool query_decode(struct slice raw, bool plus_is_space, char *to, size_t *ret_n)
{
	size_t n = 0;

	for (size_t i = 0; i < raw.n; i++) {
		char c = raw.p[i];

		if (c == '%') {
			if (raw.n - i < 3 || !char_is(raw.p[i + 1], CHAR_HEX) || !char_is(raw.p[i + 2], CHAR_HEX))
				return false;
			c = (char)(hex_value(raw.p[i + 1]) << 4 | hex_value(raw.p[i + 2]));
			i += 2;
		} else if (c == '+' && plus_is_space) {
			c = ' ';
		}
		to[n++] = c;
	}
	*ret_n = n;
	return true;
}

enum hx_code percent_decode(struct slice raw, bool plus_is_space, struct arena *arena, struct hx_error *err,
			    struct slice *ret_text)
{
	struct slice text = raw;

	if (needs_decoding(raw, plus_is_space)) {
		char *to = arena_alloc(arena, raw.n);

		if (!to)
			return arena_error(arena, err);
		text.p = to;
		if (!query_decode(raw, plus_is_space, to, &text.n))
			return error_set(err, HX_VALIDATION_ERROR, "there is an incomplete percent escape in \"%s\"",
					 excerpt_of(raw).text);
	}
	if (text.n > 0 && memchr(text.p, '\0', text.n))
		return error_set(err, HX_VALIDATION_ERROR, "there is a NUL in \"%s\"", excerpt_of(raw).text);
	if (utf8_valid_bytes(text) != text.n)
		return error_set(err, HX_VALIDATION_ERROR, "\"%s\" is not UTF-8", excerpt_of(raw).text);
	*ret_text = text;
	return HX_OK;
}

/* Takes the piece up to the next & off the front. False at the end. */
static bool next_piece(struct slice *rest, struct slice *ret_piece)
{
	do
		*ret_piece = slice_cut(rest, '&');
	while (ret_piece->n == 0 && rest->n > 0);
	return ret_piece->n > 0;
}

static enum hx_code parse_param(struct slice piece, struct arena *arena, struct hx_error *err,
				struct query_param *ret_param)
{
	struct slice value = piece, name = slice_cut(&value, '=');
	enum hx_code code = percent_decode(name, /* plus_is_space= */ true, arena, err, &ret_param->name);

	if (code != HX_OK)
		return code;
	/* It is there, also where it has no value. */
	return percent_decode(value.p ? value : slice_from(name, name.n), /* plus_is_space= */ true, arena, err,
			      &ret_param->value);
}

enum hx_code query_parse(struct slice raw, struct arena *arena, struct hx_error *err, struct query *ret_query)
{
	struct slice rest = raw, piece;
	struct query_param *params;
	size_t count = 0, n = 0;

	while (next_piece(&rest, &piece))
		count++;
	if (count > QUERY_PARAMS_MAX)
		return error_set(err, HX_VALIDATION_ERROR, "there are more than %d query parameters", QUERY_PARAMS_MAX);
	params = arena_alloc(arena, count * sizeof *params);
	if (!params)
		return arena_error(arena, err);
	for (rest = raw; next_piece(&rest, &piece); n++) {
		enum hx_code code = parse_param(piece, arena, err, &params[n]);

		if (code != HX_OK)
			return code;
	}
	*ret_query = (struct query){params, n};
	return HX_OK;
}

size_t query_find(const struct query *query, const char *name, struct slice *ret_value)
{
	size_t count = 0;

	for (size_t i = 0; i < query->n; i++) {
		if (!slice_is(query->params[i].name, name))
			continue;
		if (count++ == 0 && ret_value)
			*ret_value = query->params[i].value;
	}
	return count;
}

enum hx_code query_get(const struct query *query, const char *name, struct hx_error *err, struct slice *ret_value)
{
	struct slice value = {NULL, 0};

	if (query_find(query, name, &value) > 1)
		return error_set(err, HX_VALIDATION_ERROR, "the query parameter %s is there more than once", name);
	*ret_value = value;
	return HX_OK;
}
