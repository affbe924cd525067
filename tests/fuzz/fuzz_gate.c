/*
 * Any bytes, through everything that decides at the gate: as a key in a header, as a stored answer, and, cut at the first
 * line feed, as a JSON Pointer (or content type) and a body. Beside not crashing:
 *
 *   - a key that is accepted is accepted in its other spelling too, and is the same key;
 *   - every value of a document is selected by its own pointer, and nothing is ambiguous where no name is there twice;
 *   - a body has the fingerprint of its canonical form, JSON and bytes never meet, and the promised scratch is enough;
 *   - what is decoded as an answer is encoded to the same bytes, and no beginning of it is an answer;
 *   - with any smaller ceiling the result is the same or HX_TOO_LARGE.
 */
#include <stdint.h>

#include "base/hash.h"
#include "base/json_canonical.h"
#include "base/json_members.h"
#include "base/json_pointer.h"
#include "base/json_string.h"
#include "base/json_tree.h"
#include "base/utf8.h"
#include "gate/fingerprint.h"
#include "gate/key.h"
#include "gate/replay.h"

#define AMPLE_BYTES (64u << 20)
#define KEY_MAX 255
#define NODES_MAX 64 /* each is looked for from the root */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t some_room(struct slice bytes, size_t below)
{
	return hash_bytes(5, bytes.p, bytes.n) % below;
}

static void assert_refusal(enum hx_code code, const struct hx_error *err)
{
	struct slice detail = slice_str(err->detail);

	ASSERT(err->code == code && detail.n > 0 && utf8_valid_bytes(detail) == detail.n);
	for (size_t i = 0; i < detail.n; i++)
		ASSERT((unsigned char)detail.p[i] >= 0x20);
}

/* ---- keys ---- */

static enum hx_code read_key(struct slice value, struct arena *arena, struct slice *ret_key)
{
	struct hx_error err = {0};
	enum hx_code code = gate_key_from_header(&value, 1, KEY_MAX, arena, &err, ret_key);

	ASSERT(code == HX_OK || code == HX_KEY_INVALID || code == HX_TOO_LARGE);
	if (code != HX_OK)
		assert_refusal(code, &err);
	return code;
}

/* Only quotes and backslashes are escaped, as in JSON; there is nothing else in a key that JSON would escape. */
static void try_spellings(struct slice key, struct arena *arena)
{
	struct slice again;
	struct strbuf quoted;
	bool bare = true;

	strbuf_init(&quoted, 2 * KEY_MAX + 2);
	json_quote(key, &quoted);
	ASSERT(!quoted.failed && read_key(strbuf_slice(&quoted), arena, &again) == HX_OK && slice_eq(again, key));
	for (size_t i = 0; i < key.n; i++) {
		ASSERT(key.p[i] >= 0x20 && key.p[i] < 0x7f);
		bare = bare && key.p[i] != ' ' && key.p[i] != '"' && key.p[i] != ',';
	}
	ASSERT((read_key(key, arena, &again) == HX_OK && slice_eq(again, key)) == bare);
	strbuf_release(&quoted);
}

static void try_header(struct slice value)
{
	struct slice key = {NULL, 0}, other = {NULL, 0};
	struct arena arena;
	enum hx_code code;

	arena_init(&arena, AMPLE_BYTES);
	code = read_key(value, &arena, &key);
	ASSERT(code != HX_TOO_LARGE && (code == HX_OK) == (key.n > 0) && key.n <= KEY_MAX);
	if (code == HX_OK)
		try_spellings(key, &arena);
	ASSERT(gate_key_from_header((struct slice[]){value, value}, 2, KEY_MAX, &arena, NULL, &other) ==
	       HX_KEY_INVALID);

	struct arena small;

	arena_init(&small, some_room(value, KEY_MAX));

	enum hx_code shorter = read_key(value, &small, &other);

	ASSERT(shorter == HX_TOO_LARGE || (shorter == code && slice_eq(other, key)));
	arena_release(&small);
	arena_release(&arena);
}

static void try_body_key(struct slice body, struct slice pointer)
{
	struct slice key = {NULL, 0};
	struct hx_error err = {0};
	struct arena arena;
	enum hx_code code;

	arena_init(&arena, AMPLE_BYTES);
	code = gate_key_from_json(body, pointer, KEY_MAX, &arena, &err, &key);
	ASSERT(code == HX_OK || code == HX_KEY_REQUIRED || code == HX_KEY_INVALID);
	if (code != HX_OK)
		assert_refusal(code, &err);
	else
		ASSERT(key.n > 0 && key.n <= 4 * KEY_MAX + 1 && utf8_valid_bytes(key) == key.n);
	arena_release(&arena);
}

/* ---- pointers ---- */

/* From the root to a node, as text; the names of its parents, from the last one up. */
struct step {
	const struct step *parent;
	const struct json_node *node;
	size_t index;
};

static void write_pointer(const struct step *step, struct strbuf *out)
{
	if (!step->parent)
		return;
	write_pointer(step->parent, out);
	strbuf_add_char(out, '/');
	if (!step->node->name.p) {
		strbuf_addf(out, "%zu", step->index);
		return;
	}
	for (size_t i = 0; i < step->node->name.n; i++) {
		char c = step->node->name.p[i];

		strbuf_add_str(out, c == '~' ? "~0" : c == '/' ? "~1" : (char[]){c, '\0'});
		if (c == '\0')
			strbuf_add_char(out, c);
	}
}

static const struct json_node *root_of(const struct step *step)
{
	while (step->parent)
		step = step->parent;
	return step->node;
}

static void try_nodes(struct json document, const struct step *step, size_t *left)
{
	ptrdiff_t offset = step->node->value.raw.p - root_of(step)->value.raw.p;
	struct json value = {{NULL, 0}};
	struct strbuf pointer;
	size_t index = 0;

	if (*left == 0)
		return;
	--*left;
	strbuf_init(&pointer, JSON_POINTER_BYTES_MAX);
	write_pointer(step, &pointer);
	if (!pointer.failed) {
		ASSERT(json_pointer_check(strbuf_slice(&pointer), NULL) == HX_OK);
		ASSERT(json_pointer_select(document, strbuf_slice(&pointer), &value) == JSON_SELECTED);
		ASSERT(value.raw.p - document.raw.p == offset && value.raw.n == step->node->value.raw.n);
	}
	strbuf_release(&pointer);
	json_node_for_each(child, step->node)
	{
		try_nodes(document, &(struct step){step, child, index}, left);
		index++;
	}
}

static bool is_unique(struct json document)
{
	struct arena arena;
	bool unique;

	arena_init(&arena, AMPLE_BYTES);
	unique = json_check_unique(document, &arena, NULL) == HX_OK;
	arena_release(&arena);
	return unique;
}

static void try_pointer(struct json document, struct slice pointer)
{
	struct json value = {{NULL, 0}};
	enum json_selection selection = json_pointer_select(document, pointer, &value);
	bool unique = is_unique(document);

	ASSERT((selection == JSON_SELECTED) == (value.raw.p != NULL));
	ASSERT(selection != JSON_AMBIGUOUS || !unique);
	if (value.raw.p)
		ASSERT(value.raw.p >= document.raw.p && value.raw.p + value.raw.n <= document.raw.p + document.raw.n &&
		       json_check(value.raw, NULL, &value) == HX_OK);
	if (unique) {
		const struct json_node *root;
		size_t left = NODES_MAX;
		struct arena arena;

		arena_init(&arena, AMPLE_BYTES);
		ASSERT(json_tree_parse(document.raw, document.raw.n, &arena, NULL, &root) == HX_OK);
		try_nodes(document, &(struct step){NULL, root, 0}, &left);
		arena_release(&arena);
	}
}

/* ---- fingerprints ---- */

struct print {
	unsigned char bytes[HX_GATE_KEY_BYTES];
};

static enum hx_code print_in(size_t room, const struct gate_fingerprint_rule *rule, struct slice type,
			     struct slice body, struct print *ret_print)
{
	struct arena scratch;
	enum hx_code code;

	arena_init(&scratch, room);
	code = gate_fingerprint(rule, type, body, &scratch, NULL, ret_print->bytes);
	ASSERT(code == HX_OK ? scratch.used_bytes == 0 : code == HX_TOO_LARGE);
	arena_release(&scratch);
	return code;
}

static struct print print_of(const struct gate_fingerprint_rule *rule, struct slice type, struct slice body)
{
	struct print print = {{0}}, again = {{0}};
	size_t enough = GATE_FINGERPRINT_SCRATCH_BYTES(body.n);

	ASSERT(print_in(enough, rule, type, body, &print) == HX_OK);
	if (print_in(some_room(body, enough), rule, type, body, &again) == HX_OK)
		ASSERT(memcmp(&print, &again, sizeof print) == 0);
	return print;
}

static bool same(struct print a, struct print b)
{
	return memcmp(a.bytes, b.bytes, sizeof a.bytes) == 0;
}

static void try_fingerprint(struct slice line, struct slice body, const struct json *document)
{
	const struct gate_fingerprint_rule whole = {.off = false};
	struct print json = print_of(&whole, slice_str("application/json"), body);
	struct print bytes = print_of(&whole, slice_str("text/plain"), body);
	struct print typed = print_of(&whole, line, body);

	ASSERT(same(json, bytes) == !document);
	ASSERT(same(typed, json) || same(typed, bytes));
	if (json_pointer_check(line, NULL) == HX_OK) {
		const struct slice pointers[] = {line, slice_str(""), line};
		const struct gate_fingerprint_rule chosen = {.pointers_n = 3, .pointers = pointers};
		struct json value;
		struct print picked = print_of(&chosen, line, body);
		bool ambiguous = document && json_pointer_select(*document, line, &value) == JSON_AMBIGUOUS;

		ASSERT(same(picked, json) == (ambiguous || !document));
	}
	if (document) {
		struct strbuf form;
		struct arena arena;

		arena_init(&arena, AMPLE_BYTES);
		strbuf_init(&form, 2 * document->raw.n + 24);
		ASSERT(json_canonical(*document, &arena, NULL, &form) == HX_OK);
		ASSERT(same(print_of(&whole, slice_str("a/b+json"), strbuf_slice(&form)), json));
		strbuf_release(&form);
		arena_release(&arena);
	}
}

/* ---- answers ---- */

static void try_decode(struct slice bytes)
{
	struct gate_response response = {.status = -1};
	struct hx_error err = {0};
	struct strbuf again;
	struct arena arena;
	enum hx_code code;

	arena_init(&arena, AMPLE_BYTES);
	code = gate_response_decode(bytes, &arena, &err, &response);
	ASSERT(code == HX_OK || (code == HX_RECORD_DAMAGED && response.status == -1));
	if (code == HX_OK) {
		/* What an older version wrote is the same bytes but for the sum, which is the fuzzer's luck to hit. */
		size_t proof = bytes.p[1] == '1' ? 2 : 10;

		strbuf_init(&again, bytes.n + 8);
		gate_response_encode(&response, &again);
		ASSERT(!again.failed &&
		       slice_eq(slice_of(again.p + 10, again.n - 10), slice_of(bytes.p + proof, bytes.n - proof)));
		ASSERT(gate_response_decode(strbuf_slice(&again), &arena, NULL, &response) == HX_OK);
		strbuf_release(&again);
		for (size_t n = bytes.n < 300 ? 0 : bytes.n - 1; n < bytes.n; n++)
			ASSERT(gate_response_decode(slice_of(bytes.p, n), &arena, NULL, &response) ==
			       HX_RECORD_DAMAGED);
	} else {
		assert_refusal(code, &err);
	}
	arena_release(&arena);
}

/* An answer made of the input: every field that a rule lets through, and the body. */
static void try_replay(struct slice line, struct slice body)
{
	const struct gate_replay_rule rules[] = {
		{.kind = REPLAY_SAFE}, {.kind = REPLAY_LIST, .names_n = 1, .names = &line}, {.kind = REPLAY_NONE}};
	struct gate_field fields[3];
	struct gate_response response = {.status = 200, .fields = fields, .body = body};
	struct strbuf stored;

	for (size_t i = 0; i < 3; i++) {
		if (gate_replays_field(&rules[i], line, NULL, 0) && line.n <= UINT16_MAX) {
			ASSERT(!gate_is_marker(line));
			fields[response.fields_n++] = (struct gate_field){line, body};
		}
		/* Nominated by itself; a name with a comma or blanks around it is none that a list can have. */
		if (line.n > 0 && !memchr(line.p, ',', line.n) && line.p[0] > ' ' && line.p[line.n - 1] > ' ')
			ASSERT(!gate_replays_field(&rules[i], line, &line, 1));
	}
	strbuf_init(&stored, AMPLE_BYTES);
	gate_response_encode(&response, &stored);
	try_decode(strbuf_slice(&stored));
	strbuf_release(&stored);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice bytes = slice_of(data, size);
	const char *feed = size ? memchr(data, '\n', size) : NULL;
	struct slice line = slice_of(data, feed ? (size_t)(feed - bytes.p) : 0);
	struct slice body = feed ? slice_of(feed + 1, size - line.n - 1) : bytes;
	struct json document = {{NULL, 0}};
	bool is_json = json_check(body, NULL, &document) == HX_OK;

	try_header(bytes);
	try_header(line);
	try_decode(bytes);
	try_replay(line, body);
	try_fingerprint(line, body, is_json ? &document : NULL);
	if (json_pointer_check(line, NULL) == HX_OK) {
		try_body_key(body, line);
		if (is_json)
			try_pointer(document, line);
	}
	return 0;
}
