/* See source.h. */
#include "gate/source.h"

#include "base/digits.h"
#include "base/json_pointer.h"
#include "model/header.h"

struct slice gate_keep_lower(struct arena *arena, struct slice text)
{
	struct slice copy = arena_copy(arena, text);
	char *p = (char *)copy.p;

	for (size_t i = 0; p && i < copy.n; i++)
		p[i] = char_lower(p[i]);
	return copy;
}

static bool parse_segment(struct slice text, unsigned *ret_segment)
{
	uint64_t number = 0;
	bool good = digits_number(text, GATE_SOURCE_SEGMENT_MAX, &number);

	*ret_segment = (unsigned)number;
	return good && number >= 1;
}

/* Visible, and nothing that could end the name where it is looked for. */
static bool is_parameter_name(struct slice name)
{
	for (size_t i = 0; i < name.n; i++)
		if ((unsigned char)name.p[i] < 0x20 || name.p[i] == 0x7f)
			return false;
	return name.n > 0;
}

/* The name of a claim as a pointer: "sub" is /sub. */
static struct slice pointer_of(struct arena *arena, struct slice claim)
{
	char *p, *pointer;

	if (claim.n == 0 || claim.p[0] == '/')
		return arena_copy(arena, claim);
	p = pointer = arena_alloc(arena, 2 * claim.n + 1);
	if (!pointer)
		return (struct slice){0};
	*p++ = '/';
	for (size_t i = 0; i < claim.n; i++) {
		bool escaped = claim.p[i] == '~' || claim.p[i] == '/';

		*p++ = escaped ? '~' : claim.p[i];
		if (escaped)
			*p++ = claim.p[i] == '~' ? '0' : '1';
	}
	return slice_of(pointer, (size_t)(p - pointer));
}

static bool parse_name(enum gate_source_kind kind, struct slice name, struct arena *arena, struct gate_source *source)
{
	switch (kind) {
	case GATE_SOURCE_HEADER:
		source->name = gate_keep_lower(arena, name);
		return header_name_is_token(name);
	case GATE_SOURCE_COOKIE:
		source->name = arena_copy(arena, name);
		return header_name_is_token(name); /* a cookie's name is a token, too (RFC 6265) */
	case GATE_SOURCE_QUERY:
		source->name = arena_copy(arena, name);
		return is_parameter_name(name);
	case GATE_SOURCE_PATH:
		return parse_segment(name, &source->segment);
	case GATE_SOURCE_JSON:
		source->name = arena_copy(arena, name);
		return name.n > 0 && json_pointer_check(name, /* err= */ NULL) == HX_OK;
	case GATE_SOURCE_JWT:
		source->name = pointer_of(arena, name);
		return name.n > 0 && source->name.p && json_pointer_check(source->name, /* err= */ NULL) == HX_OK;
	case GATE_SOURCE_NONE:
		break;
	}
	return false;
}

bool gate_source_parse(struct slice text, struct arena *arena, struct gate_source *ret_source)
{
	static const char *const prefixes[] = {
		[GATE_SOURCE_NONE] = "",        [GATE_SOURCE_HEADER] = "header:", [GATE_SOURCE_COOKIE] = "cookie:",
		[GATE_SOURCE_QUERY] = "query:", [GATE_SOURCE_PATH] = "path:",     [GATE_SOURCE_JSON] = "json:",
		[GATE_SOURCE_JWT] = "jwt:",
	};

	for (int kind = GATE_SOURCE_HEADER; kind <= GATE_SOURCE_JWT; kind++) {
		size_t n = strlen(prefixes[kind]);
		struct gate_source source = {.kind = kind};

		if (text.n < n || memcmp(text.p, prefixes[kind], n) != 0)
			continue;
		source.text = arena_copy(arena, text).p;
		source.label = kind == GATE_SOURCE_HEADER && source.text ? source.text + n : source.text;
		if (!parse_name(kind, slice_of(text.p + n, text.n - n), arena, &source) || arena->failed)
			return false;
		*ret_source = source;
		return true;
	}
	return false;
}
