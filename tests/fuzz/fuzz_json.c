/*
 * Any bytes, through everything that reads JSON. Beside not crashing, the readers must agree with each other:
 *
 *   - the tree accepts exactly what the scanner accepts and json_check_unique() does not refuse;
 *   - the canonical form is JSON, is its own canonical form, and has duplicates exactly if the original has;
 *   - every number equals its normal form, and is the same int64 in both spellings;
 *   - every string survives being decoded and written again;
 *   - with any smaller ceiling the answer is the same or HX_TOO_LARGE;
 *   - a refusal has a place and a printable detail, and changes no output.
 */
#include <stdint.h>
#include <stdlib.h>

#include "base/excerpt.h"
#include "base/hash.h"
#include "base/json_canonical.h"
#include "base/json_members.h"
#include "base/json_number.h"
#include "base/json_string.h"
#include "base/json_tree.h"
#include "base/json_walk.h"
#include "base/utf8.h"

#define AMPLE_BYTES (256u << 20)
#define WALK_STEPS_MAX 100000

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void assert_detail(const struct hx_error *err)
{
	struct slice detail = slice_str(err->detail);

	ASSERT(err->code != HX_OK && detail.n > 0);
	ASSERT(utf8_valid_bytes(detail) == detail.n);
	for (size_t i = 0; i < detail.n; i++)
		ASSERT((unsigned char)detail.p[i] >= 0x20);
	if (err->code == HX_VALIDATION_ERROR)
		ASSERT(detail.p[0] >= '1' && detail.p[0] <= '9');
}

static void try_number(struct json value)
{
	struct json_number number = json_number_of(value);
	struct json normal = {{NULL, 0}};
	int64_t one = 0, two = 0;
	struct strbuf sb;

	strbuf_init(&sb, value.raw.n + 24);
	json_number_append(&number, &sb);
	ASSERT(!sb.failed);
	ASSERT(json_check(strbuf_slice(&sb), NULL, &normal) == HX_OK && json_type(normal) == JSON_NUMBER);

	struct json_number again = json_number_of(normal);

	ASSERT(json_number_compare(&number, &again) == 0 && json_number_compare(&again, &number) == 0);
	ASSERT(json_int64(value, NULL, &one) == json_int64(normal, NULL, &two) && one == two);
	strbuf_release(&sb);
}

static void try_string(struct json value, struct arena *a)
{
	struct slice text = json_string_decode(value, a);
	struct json quoted = {{NULL, 0}};
	struct strbuf sb;

	ASSERT(text.p && utf8_valid_bytes(text) == text.n);
	ASSERT(json_string_is(value, text) && slice_eq(json_string_view(value, a), text));
	strbuf_init(&sb, 6 * text.n + 2);
	json_quote(text, &sb);
	ASSERT(!sb.failed && json_check(strbuf_slice(&sb), NULL, &quoted) == HX_OK && json_string_is(quoted, text));
	strbuf_release(&sb);
}

/* The tree and the walk see the same children, and every member is found by its name. */
static void try_node(const struct json_node *node, struct arena *a)
{
	struct json_iter it = json_iter_of(node->value);
	struct json name, value;
	size_t count = 0;

	if (node->type == JSON_NUMBER)
		try_number(node->value);
	if (node->type == JSON_STRING)
		try_string(node->value, a);
	json_node_for_each(child, node)
	{
		if (node->type == JSON_OBJECT) {
			ASSERT(json_iter_member(&it, &name, &value) && json_string_is(name, child->name));
			ASSERT(json_node_member_slice(node, child->name) == child);
		} else {
			ASSERT(json_iter_element(&it, &value));
		}
		ASSERT(slice_eq(value.raw, child->value.raw) && json_type(value) == child->type);
		try_node(child, a);
		count++;
	}
	ASSERT(count == node->count && !json_iter_element(&it, &value));
}

static bool try_unique(struct json document)
{
	struct hx_error err = {0};
	struct arena a;

	arena_init(&a, AMPLE_BYTES);

	enum hx_code code = json_check_unique(document, &a, &err);

	if (code != HX_OK)
		assert_detail(&err);
	ASSERT(code == HX_OK || code == HX_VALIDATION_ERROR);
	arena_release(&a);
	return code == HX_OK;
}

static void try_tree(struct slice text, struct json document, bool accepted)
{
	const struct json_node *root = NULL;
	struct hx_error err = {0};
	struct arena a;

	arena_init(&a, AMPLE_BYTES);

	enum hx_code code = json_tree_parse(text, text.n, &a, &err, &root);

	ASSERT((code == HX_OK) == accepted && (root != NULL) == accepted);
	if (!accepted) {
		assert_detail(&err);
	} else {
		struct json_position at = json_locate(text, (size_t)(document.raw.p - text.p));

		ASSERT(root->at.line == at.line && root->at.column == at.column);
		ASSERT(slice_eq(root->value.raw, document.raw));
		try_node(root, &a);
	}
	arena_release(&a);
}

static void canonical(struct json value, struct strbuf *ret_text)
{
	struct arena a;

	arena_init(&a, AMPLE_BYTES);
	strbuf_init(ret_text, 2 * value.raw.n + 24);
	ASSERT(json_canonical(value, &a, NULL, ret_text) == HX_OK);
	arena_release(&a);
}

static void try_canonical(struct json document, bool unique)
{
	struct json once = {{NULL, 0}};
	struct strbuf form, again;

	canonical(document, &form);
	ASSERT(json_check(strbuf_slice(&form), NULL, &once) == HX_OK);
	ASSERT(json_type(once) == json_type(document) && once.raw.n == form.n);
	ASSERT(try_unique(once) == unique);
	canonical(once, &again);
	ASSERT(slice_eq(strbuf_slice(&form), strbuf_slice(&again)));
	strbuf_release(&again);
	strbuf_release(&form);
}

/* Ceilings that change with the input: too little memory is an answer of its own and nothing else. */
static void try_short_of_memory(struct slice text, struct json document, bool unique)
{
	size_t room = hash_bytes(7, text.p, text.n) % (64 * text.n + 1);
	const struct json_node *root = NULL;
	struct hx_error err = {0};
	struct strbuf form;
	struct arena a;

	arena_init(&a, room);
	strbuf_init(&form, room / 64);

	enum hx_code code = json_canonical(document, &a, &err, &form);

	ASSERT(code == HX_OK || (code == HX_TOO_LARGE && err.code == code));
	arena_reset(&a);
	code = json_tree_parse(text, room % (text.n + 1), &a, &err, &root);
	ASSERT((code == HX_OK && unique && root) || (code == HX_VALIDATION_ERROR && !unique) || code == HX_TOO_LARGE);
	strbuf_release(&form);
	arena_release(&a);
}

/* What json_walk.h promises for text that nobody has checked. */
static void walk_unchecked(struct json value, unsigned depth, unsigned *steps)
{
	struct json_iter elements = json_iter_of(value), members = elements;
	struct json name, inner;

	while (depth < 8 && (*steps)++ < WALK_STEPS_MAX && json_iter_element(&elements, &inner))
		walk_unchecked(inner, depth + 1, steps);
	while (depth < 8 && (*steps)++ < WALK_STEPS_MAX && json_iter_member(&members, &name, &inner))
		walk_unchecked(inner, depth + 1, steps);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice text = slice_of(data, size);
	struct json document = {{NULL, 0}};
	struct hx_error err = {0};
	unsigned steps = 0;
	bool accepted = json_check(text, &err, &document) == HX_OK;

	ASSERT(accepted == (document.raw.p != NULL));
	if (!accepted)
		assert_detail(&err);

	bool unique = accepted && try_unique(document);

	try_tree(text, document, unique);
	if (accepted) {
		try_canonical(document, unique);
		try_short_of_memory(text, document, unique);
	}
	if (size > 0)
		walk_unchecked(json_trust(text), 0, &steps);
	ASSERT(utf8_valid_bytes(slice_str(excerpt_of(text).text)) == strlen(excerpt_of(text).text));
	return 0;
}
