/* See proxy_source.h. */
#include "proxy/proxy_source.h"

#include "base/json_pointer.h"
#include "gate/key.h"
#include "wire/charset.h"
#include "wire/query.h"

#define VALUE_CHARACTERS_MAX 4096

static enum hx_code uncertain(const struct gate_source *source, struct hx_error *err, const char *why)
{
	return error_set(err, HX_KEY_INVALID, "%s is not certain: %s", source->text, why);
}

/* ---- header fields ---- */

struct slice *proxy_field_values(struct wire_fields fields, struct slice name, struct arena *arena, size_t *ret_n)
{
	struct slice *values = arena_alloc(arena, (fields.n + 1) * sizeof *values);
	size_t n = 0;

	if (!values)
		return NULL;
	for (size_t i = 0; i < fields.n; i++)
		if (slice_eq_nocase(fields.at[i].name, name))
			values[n++] = fields.at[i].value;
	*ret_n = n;
	return values;
}

struct slice proxy_field_joined(struct wire_fields fields, struct slice name, struct arena *arena)
{
	size_t n = 0, bytes = 0;
	struct slice *values = proxy_field_values(fields, name, arena, &n);
	char *text, *p;

	if (!values || n == 0)
		return (struct slice){0};
	if (n == 1) /* a field without a value is there */
		return slice_of(values[0].p ? values[0].p : "", values[0].n);
	for (size_t i = 0; i < n; i++)
		bytes += values[i].n + 2;
	p = text = arena_alloc(arena, bytes);
	if (!text)
		return (struct slice){0};
	for (size_t i = 0; i < n; i++) {
		if (values[i].n)
			memcpy(p, values[i].p, values[i].n);
		p += values[i].n;
		if (i + 1 < n) {
			memcpy(p, ", ", 2);
			p += 2;
		}
	}
	return slice_of(text, bytes - 2);
}

/* ---- cookies ---- */

/* How many cookies of this name one field has; the last of them is told. */
static size_t find_cookie(struct slice field, struct slice name, struct slice *ret_value)
{
	size_t found = 0;

	while (field.n > 0) {
		struct slice value = slice_trim(slice_cut(&field, ';')), its_name = slice_cut(&value, '=');

		if (value.p && slice_eq(its_name, name)) {
			*ret_value = value;
			found++;
		}
	}
	return found;
}

static enum hx_code cookie_value(const struct gate_source *source, struct wire_fields fields, struct hx_error *err,
				 struct slice *ret_value)
{
	struct slice value = {0};
	size_t found = 0;

	for (size_t i = 0; i < fields.n; i++)
		if (slice_eq_nocase(fields.at[i].name, slice_str("cookie")))
			found += find_cookie(fields.at[i].value, source->name, &value);
	if (found > 1)
		return uncertain(source, err, "there are several cookies of this name");
	*ret_value = found ? value : (struct slice){0};
	return HX_OK;
}

/* ---- the target ---- */

static enum hx_code query_value(const struct gate_source *source, const struct wire_request *request,
				struct arena *arena, struct hx_error *err, struct slice *ret_value)
{
	struct query query;
	struct hx_error why;
	size_t found = 0;
	enum hx_code code;

	*ret_value = (struct slice){0};
	if (!request->has_query)
		return HX_OK;
	code = query_parse(request->query, arena, &why, &query);
	if (code == HX_VALIDATION_ERROR)
		return uncertain(source, err, "the query is not well-formed");
	if (code)
		return error_set(err, code, "%s", why.detail);
	for (size_t i = 0; i < query.n; i++)
		if (slice_eq(query.params[i].name, source->name)) {
			*ret_value = slice_of(query.params[i].value.n ? query.params[i].value.p : "",
					      query.params[i].value.n);
			found++;
		}
	return found > 1 ? uncertain(source, err, "the query has it several times") : HX_OK;
}

/* As it was sent: other spellings of it are other paths. */
static struct slice segment_value(unsigned wanted, struct slice path)
{
	for (unsigned at = 1; path.n > 0 && path.p[0] == '/'; at++) {
		const char *end = memchr(path.p + 1, '/', path.n - 1);
		size_t n = end ? (size_t)(end - path.p - 1) : path.n - 1;

		if (at == wanted)
			return n ? slice_of(path.p + 1, n) : (struct slice){0};
		path = slice_of(path.p + 1 + n, path.n - 1 - n);
	}
	return (struct slice){0};
}

/* ---- JSON ---- */

/* What is neither string nor number counts as absent, and so does a text that is no JSON. */
static enum hx_code json_value(const struct gate_source *source, struct slice text, struct arena *arena,
			       struct hx_error *err, struct slice *ret_value)
{
	struct json document, value;
	enum json_selection selection;
	struct hx_error why;
	enum hx_code code;

	*ret_value = (struct slice){0};
	if (text.n == 0 || json_check(text, /* err= */ NULL, &document) != HX_OK)
		return HX_OK;
	selection = json_pointer_select(document, source->name, &value);
	if (selection == JSON_AMBIGUOUS)
		return uncertain(source, err, "an object has a name twice that leads to it");
	if (selection == JSON_ABSENT || (json_type(value) != JSON_STRING && json_type(value) != JSON_NUMBER))
		return HX_OK;
	if (slice_is(value.raw, "\"\"")) {
		*ret_value = slice_of("", 0);
		return HX_OK;
	}
	code = gate_key_from_value(value, VALUE_CHARACTERS_MAX, arena, &why, ret_value);
	return code == HX_KEY_INVALID ? uncertain(source, err, "it is too long, or has a control character") : code;
}

/* ---- tokens ---- */

/* Base64 for URLs without padding (RFC 7515). p NULL: it is not that, or (the arena knows) no memory. */
static struct slice base64url_decode(struct slice text, struct arena *arena)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
	char *bytes = text.n % 4 == 1 ? NULL : arena_alloc(arena, text.n / 4 * 3 + 3);
	uint32_t bits = 0;
	size_t n = 0;

	for (size_t i = 0; bytes && i < text.n; i++) {
		const char *digit = memchr(digits, text.p[i], 64);

		if (!digit)
			return (struct slice){0};
		bits = bits << 6 | (uint32_t)(digit - digits);
		if (i % 4 != 0)
			bytes[n++] = (char)(bits >> (6 - 2 * (i % 4)) & 0xff);
	}
	return bytes ? slice_of(bytes, n) : (struct slice){0};
}

/* The claims of a bearer token that is a JWT. p NULL: there is none. It is not verified. */
static struct slice claims_of(struct slice authorization, struct arena *arena)
{
	struct slice token, claims;

	if (!slice_starts_nocase(authorization, "bearer "))
		return (struct slice){0};
	token = slice_trim(slice_from(authorization, strlen("bearer ")));
	(void)slice_cut(&token, '.'); /* the head, which says how it is signed */
	claims = slice_cut(&token, '.');
	return token.p ? base64url_decode(claims, arena) : (struct slice){0};
}

static enum hx_code claim_value(const struct gate_source *source, struct wire_fields fields, struct arena *arena,
				struct hx_error *err, struct slice *ret_value)
{
	size_t n = 0;
	const struct wire_field *field = wire_find(fields, "authorization", &n);

	*ret_value = (struct slice){0};
	if (n > 1)
		return uncertain(source, err, "there are several fields Authorization");
	return field ? json_value(source, claims_of(field->value, arena), arena, err, ret_value) : HX_OK;
}

/* ---- all of them ---- */

enum hx_code proxy_source_value(const struct gate_source *source, const struct http_request *request,
				struct arena *arena, struct hx_error *err, struct slice *ret_value)
{
	struct wire_fields fields = request->wire.head.fields;
	enum hx_code code = HX_OK;

	*ret_value = (struct slice){0};
	switch (source->kind) {
	case GATE_SOURCE_HEADER:
		*ret_value = proxy_field_joined(fields, source->name, arena);
		break;
	case GATE_SOURCE_COOKIE:
		code = cookie_value(source, fields, err, ret_value);
		break;
	case GATE_SOURCE_QUERY:
		code = query_value(source, &request->wire, arena, err, ret_value);
		break;
	case GATE_SOURCE_PATH:
		*ret_value = segment_value(source->segment, request->wire.path);
		break;
	case GATE_SOURCE_JSON:
		code = json_value(source, request->body, arena, err, ret_value);
		break;
	case GATE_SOURCE_JWT:
		code = claim_value(source, fields, arena, err, ret_value);
		break;
	case GATE_SOURCE_NONE:
		break;
	}
	/* Without memory a value that is there would count as absent. */
	return code == HX_OK && arena->failed ? arena_error(arena, err) : code;
}

enum hx_code proxy_source_whole(const struct gate_source *source, const struct http_request *request,
				struct arena *arena, struct hx_error *err, struct slice *ret_value)
{
	enum hx_code code = proxy_source_value(source, request, arena, err, ret_value);

	if (code != HX_KEY_INVALID)
		return code;
	if (source->kind == GATE_SOURCE_QUERY)
		*ret_value = request->wire.query;
	else if (source->kind == GATE_SOURCE_JSON)
		*ret_value = request->body;
	else
		*ret_value = proxy_field_joined(request->wire.head.fields,
						slice_str(source->kind == GATE_SOURCE_JWT ? "authorization" : "cookie"),
						arena);
	return arena->failed ? arena_error(arena, err) : HX_OK;
}
