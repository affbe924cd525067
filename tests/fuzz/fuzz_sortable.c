/*
 * Any two lines as two values of JSON, and any line as a text that was stored. Beside not crashing:
 *
 *   - a value's text is read back as the same value, in JSON that the scanner accepts, and that has the same text;
 *   - two numbers, and two strings, have the order of their texts;
 *   - a text that can be read back at all is the text of what it says.
 */
#include <stdint.h>

#include "base/arena.h"
#include "base/json_number.h"
#include "base/json_string.h"
#include "base/sortable.h"

#define AMPLE_BYTES (16u << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* sortable → JSON → sortable */
static void try_back(struct slice sortable)
{
	LOCAL_STRBUF(json, AMPLE_BYTES);
	LOCAL_STRBUF(again, AMPLE_BYTES);
	struct json value;

	if (!sortable_json(sortable, &json)) {
		ASSERT(json.n == 0);
		return;
	}
	ASSERT(json_check(strbuf_slice(&json), NULL, &value) == HX_OK);
	ASSERT(sortable_of(value, &again) && slice_eq(strbuf_slice(&again), sortable));
	ASSERT(sortable.n <= SORTABLE_BYTES_MAX);
}

static int order_of(struct json a, struct json b, struct arena *arena)
{
	if (json_type(a) != JSON_NUMBER)
		return slice_compare(json_string_decode(a, arena), json_string_decode(b, arena));

	struct json_number left = json_number_of(a), right = json_number_of(b);

	return json_number_compare(&left, &right);
}

static void try_pair(struct json a, struct json b)
{
	LOCAL_ARENA(arena, AMPLE_BYTES);
	LOCAL_STRBUF(one, AMPLE_BYTES);
	LOCAL_STRBUF(other, AMPLE_BYTES);

	if (!sortable_of(a, &one) || !sortable_of(b, &other))
		return;
	try_back(strbuf_slice(&one));
	if (json_type(a) != json_type(b) || json_type(a) == JSON_BOOL)
		return;

	int order = slice_compare(strbuf_slice(&one), strbuf_slice(&other)), wanted = order_of(a, b, &arena);

	ASSERT((order > 0) == (wanted > 0) && (order < 0) == (wanted < 0));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice rest = slice_of(data, size);
	struct slice line = slice_cut(&rest, '\n');
	struct json a, b;

	try_back(line);
	if (json_check(line, NULL, &a) == HX_OK && json_check(rest, NULL, &b) == HX_OK)
		try_pair(a, b);
	return 0;
}
