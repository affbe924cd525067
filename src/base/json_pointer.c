/*
 * See json_pointer.h. A pointer is taken apart name by name while the document is walked: the escapes of a name are
 * undone in a buffer that holds any name of a checked pointer, and the strings of the document are compared in place.
 */
#include "base/json_pointer.h"

#include "base/digits.h"
#include "base/json_string.h"
#include "base/json_walk.h"
#include "base/utf8.h"

enum hx_code json_pointer_check(struct slice pointer, struct hx_error *err)
{
	if (pointer.n > JSON_POINTER_BYTES_MAX)
		return error_set(err, HX_VALIDATION_ERROR, "a JSON Pointer may have at most %d bytes, this one has %zu",
				 JSON_POINTER_BYTES_MAX, pointer.n);
	if (pointer.n > 0 && pointer.p[0] != '/')
		return error_set(err, HX_VALIDATION_ERROR, "a JSON Pointer begins with / or is empty");
	if (utf8_valid_bytes(pointer) != pointer.n)
		return error_set(err, HX_VALIDATION_ERROR, "a JSON Pointer is UTF-8, this one is not");
	for (size_t i = 0; i < pointer.n; i++) {
		char next = i + 1 < pointer.n ? pointer.p[i + 1] : '\0';

		if (pointer.p[i] == '~' && next != '0' && next != '1')
			return error_set(err, HX_VALIDATION_ERROR,
					 "in a JSON Pointer ~ is written ~0 and / in a name ~1; ~ alone means nothing");
	}
	return HX_OK;
}

/* Takes the first name off, with the / in front of it. It is in the buffer, decoded. */
static struct slice json_pointer_take_name(struct slice *pointer, char buffer[JSON_POINTER_BYTES_MAX])
{
	const char *p = pointer->p + 1, *end = pointer->p + pointer->n;
	size_t n = 0;

	while (p < end && *p != '/') {
		char c = *p++;

		if (c == '~')
			c = *p++ == '0' ? '~' : '/';
		buffer[n++] = c;
	}
	*pointer = slice_of(p, (size_t)(end - p));
	return slice_of(buffer, n);
}

static enum json_selection select_member(struct json object, struct slice name, struct json *ret_value)
{
	struct json_iter it = json_iter_of(object);
	struct json at, value, found = {{NULL, 0}};

	while (json_iter_member(&it, &at, &value)) {
		if (!json_string_is(at, name))
			continue;
		if (found.raw.p)
			return JSON_AMBIGUOUS;
		found = value;
	}
	if (!found.raw.p)
		return JSON_ABSENT;
	*ret_value = found;
	return JSON_SELECTED;
}

static enum json_selection select_element(struct json array, struct slice name, struct json *ret_value)
{
	struct json_iter it = json_iter_of(array);
	struct json value;
	uint64_t left;

	/* It has fewer elements than bytes; and an index has no zeros in front. */
	if ((name.n > 1 && name.p[0] == '0') || !digits_number(name, array.raw.n, &left))
		return JSON_ABSENT;
	while (json_iter_element(&it, &value)) {
		if (left-- > 0)
			continue;
		*ret_value = value;
		return JSON_SELECTED;
	}
	return JSON_ABSENT;
}

static enum json_selection select_child(struct json parent, struct slice name, struct json *ret_value)
{
	switch (json_type(parent)) {
	case JSON_OBJECT:
		return select_member(parent, name, ret_value);
	case JSON_ARRAY:
		return select_element(parent, name, ret_value);
	default:
		return JSON_ABSENT;
	}
}

enum json_selection json_pointer_select(struct json document, struct slice pointer, struct json *ret_value)
{
	char buffer[JSON_POINTER_BYTES_MAX];
	enum json_selection selection = JSON_SELECTED;
	struct json at = document;

	ASSERT(json_pointer_check(pointer, /* err= */ NULL) == HX_OK);
	while (pointer.n > 0 && selection == JSON_SELECTED)
		selection = select_child(at, json_pointer_take_name(&pointer, buffer), &at);
	if (selection == JSON_SELECTED)
		*ret_value = at;
	return selection;
}
