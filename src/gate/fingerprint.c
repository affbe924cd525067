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
#include "base/media_type.h"

_Static_assert(HX_GATE_KEY_BYTES == SHA256_BYTES, "a fingerprint is one digest");

static enum hx_code canonical_form(struct json value, struct arena *scratch, struct hx_error *err,
				   struct slice *ret_form)
{
	/* json_canonical.h: at most twice as long; and a lone number */
	struct strbuf form = arena_strbuf(scratch, 2 * value.raw.n + 24);
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
	else if ((rule->pointers_n == 0 && !media_type_is_json(content_type)) ||
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
