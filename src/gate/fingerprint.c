/*
 * See fingerprint.h. What is hashed begins with the name of its kind, and none of these begins another one:
 *
 *   json       sha256("json:" canonical form)
 *   bytes      sha256("bytes:" body)
 *   pointers   a chain: d = sha256("pointers:"), then d = sha256(d form) for each; what is not there has an empty form,
 *              which no JSON value has
 *   elsewhere  a chain: d = one of these, or sha256("nothing:"); then d = sha256("and:" d, length of the name, name, 1,
 *              value) for each, with 0 in place of 1 for what is not there
 *
 * A pointer that leads through a name which an object has twice selects nothing certain: the upstream may take either
 * member. Such a body is hashed whole, so that it equals only one that says the same twice. Records keep
 * fingerprints: what is hashed must not change from one version of the program to the next.
 */
#include "gate/fingerprint.h"

#include "base/hash.h"
#include "base/json_canonical.h"
#include "base/json_pointer.h"

_Static_assert(HX_GATE_KEY_BYTES == SHA256_BYTES, "a fingerprint is one digest");

static char lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
}

/* Ends with, in any case. Not by strcasecmp(), which asks the locale of the embedding program what a letter is. */
static bool ends_with(struct slice text, struct slice end)
{
	if (text.n < end.n)
		return false;
	for (size_t i = 0; i < end.n; i++)
		if (lower(text.p[text.n - end.n + i]) != end.p[i])
			return false;
	return true;
}

static bool is(struct slice text, const char *name)
{
	return text.n == strlen(name) && ends_with(text, slice_str(name));
}

/* application/json, text/json, or any type with the suffix +json (RFC 6839); parameters count for nothing. */
static bool is_json_type(struct slice content_type)
{
	const char *semicolon = content_type.n ? memchr(content_type.p, ';', content_type.n) : NULL;
	struct slice type = slice_of(content_type.p, semicolon ? (size_t)(semicolon - content_type.p) : content_type.n);

	while (type.n > 0 && (type.p[type.n - 1] == ' ' || type.p[type.n - 1] == '\t'))
		type.n--;
	return is(type, "application/json") || is(type, "text/json") ||
	       (ends_with(type, slice_str("+json")) && memchr(type.p, '/', type.n));
}

static enum hx_code canonical_form(struct json value, struct arena *scratch, struct hx_error *err,
				   struct slice *ret_form)
{
	const size_t room = 2 * value.raw.n + 24; /* json_canonical.h: at most twice as long; and a lone number */
	/* It lies in the arena: it never grows, and is never released. */
	struct strbuf form = {.p = arena_alloc(scratch, room + 1), .capacity = room + 1, .max_bytes = room};
	enum hx_code code;

	if (!form.p)
		return arena_error(scratch, err);
	code = json_canonical(value, scratch, err, &form);
	if (code == HX_OK)
		*ret_form = strbuf_slice(&form);
	return code;
}

static enum hx_code hash_json(struct json document, struct arena *scratch, struct hx_error *err,
			      unsigned char ret_fingerprint[HX_GATE_KEY_BYTES])
{
	struct slice form;
	enum hx_code code = canonical_form(document, scratch, err, &form);

	if (code == HX_OK)
		sha256_pair(slice_str("json:"), form, ret_fingerprint);
	return code;
}

static enum hx_code hash_pointers(const struct gate_fingerprint_rule *rule, struct json document, struct arena *scratch,
				  struct hx_error *err, unsigned char ret_fingerprint[HX_GATE_KEY_BYTES])
{
	unsigned char chain[SHA256_BYTES];

	sha256("pointers:", strlen("pointers:"), chain);
	for (size_t i = 0; i < rule->pointers_n; i++) {
		struct arena_mark mark = arena_mark(scratch);
		struct slice form = slice_of(NULL, 0);
		struct json value;
		enum json_selection selection = json_pointer_select(document, rule->pointers[i], &value);
		enum hx_code code = HX_OK;

		if (selection == JSON_AMBIGUOUS)
			return hash_json(document, scratch, err, ret_fingerprint);
		if (selection == JSON_SELECTED)
			code = canonical_form(value, scratch, err, &form);
		if (code != HX_OK)
			return code;
		sha256_pair(slice_of(chain, sizeof chain), form, chain);
		arena_rewind(scratch, mark);
	}
	memcpy(ret_fingerprint, chain, sizeof chain);
	return HX_OK;
}

enum hx_code gate_fingerprint(const struct gate_fingerprint_rule *rule, struct slice content_type, struct slice body,
			      struct arena *scratch, struct hx_error *err,
			      unsigned char ret_fingerprint[HX_GATE_KEY_BYTES])
{
	struct arena_mark mark = arena_mark(scratch);
	struct json document;
	enum hx_code code = HX_OK;

	if (rule->off)
		memset(ret_fingerprint, 0, HX_GATE_KEY_BYTES);
	else if (rule->no_body)
		sha256("nothing:", strlen("nothing:"), ret_fingerprint);
	else if ((rule->pointers_n == 0 && !is_json_type(content_type)) ||
		 json_check(body, /* err= */ NULL, &document) != HX_OK)
		sha256_pair(slice_str("bytes:"), body, ret_fingerprint);
	else if (rule->pointers_n > 0)
		code = hash_pointers(rule, document, scratch, err, ret_fingerprint);
	else
		code = hash_json(document, scratch, err, ret_fingerprint);
	if (code == HX_OK)
		arena_rewind(scratch, mark);
	return code;
}

void gate_fingerprint_add(struct slice name, struct slice value, unsigned char fingerprint[HX_GATE_KEY_BYTES])
{
	const unsigned char head[] = {(unsigned char)(name.n >> 8), (unsigned char)name.n};
	const struct slice parts[] = {
		slice_str("and:"),
		slice_of(fingerprint, HX_GATE_KEY_BYTES),
		slice_of(head, sizeof head),
		name,
		slice_str(value.p ? "1" : "0"),
		value,
	};

	sha256_parts(parts, sizeof parts / sizeof *parts, fingerprint);
}
