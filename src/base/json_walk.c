/*
 * Walking over text that is known to be well-formed: what the scanner proved need not be proved again, so a
 * string ends at the first quote without a backslash in front, and a bracket ends where the count is back at
 * zero. Every step compares with the end all the same; see json_walk.h for why.
 */
#include "base/json_walk.h"

#include "base/json_string.h"

/* Marks (at least) the lowest byte of w that is c; which others it marks means nothing. */
static inline uint64_t mark(uint64_t w, char c)
{
	const uint64_t ones = UINT64_C(0x0101010101010101);
	uint64_t x = w ^ ones * (unsigned char)c;

	return (x - ones) & ~x & ones * 0x80;
}

static inline uint64_t mark_quotes(uint64_t w)
{
	return mark(w, '"') | mark(w, '\\');
}

/* The next quote or backslash. */
static inline const char *quote_or_backslash(const char *p, const char *end)
{
	p = json_until(p, end, mark_quotes);
	while (p < end && *p != '"' && *p != '\\')
		p++;
	return p;
}

const char *json_string_end(const char *p, const char *end)
{
	for (p++; p < end; p += 2) {
		p = quote_or_backslash(p, end);
		if (p < end && *p == '"')
			return p + 1;
		if (end - p < 2)
			break;
	}
	return end;
}

static const char *brackets_end(const char *p, const char *end)
{
	size_t open = 0;

	while (p < end) {
		switch (*p) {
		case '"':
			p = json_string_end(p, end);
			continue;
		case '{':
		case '[':
			open++;
			break;
		case '}':
		case ']':
			if (--open == 0)
				return p + 1;
			break;
		default:
			break;
		}
		p++;
	}
	return end;
}

static const char *word_end(const char *p, const char *end)
{
	while (p < end && *p != ',' && *p != '}' && *p != ']' && *p != ' ' && *p != '\n' && *p != '\r' && *p != '\t')
		p++;
	return p;
}

const char *json_value_end(const char *p, const char *end)
{
	if (p == end)
		return end;
	switch (*p) {
	case '"':
		return json_string_end(p, end);
	case '{':
	case '[':
		return brackets_end(p, end);
	default:
		return word_end(p, end);
	}
}

struct json_iter json_iter_of(struct json container)
{
	const char *end = container.raw.p + container.raw.n;
	enum json_type type = json_type(container);

	if (type != JSON_ARRAY && type != JSON_OBJECT)
		return (struct json_iter){end, end};
	return (struct json_iter){container.raw.p + 1, end};
}

/* Steps to the next value or name, over the comma in front of it. False at the closing bracket. */
static bool at_next(struct json_iter *it)
{
	it->p = json_space_end(it->p, it->end);
	if (it->p < it->end && *it->p == ',')
		it->p = json_space_end(it->p + 1, it->end);
	return it->p < it->end && *it->p != '}' && *it->p != ']';
}

static struct json json_walk_take_value(struct json_iter *it)
{
	const char *start = it->p;

	it->p = json_value_end(start, it->end);
	return (struct json){slice_of(start, (size_t)(it->p - start))};
}

bool json_iter_element(struct json_iter *it, struct json *ret_value)
{
	if (!at_next(it))
		return false;
	*ret_value = json_walk_take_value(it);
	return ret_value->raw.n > 0;
}

bool json_iter_member(struct json_iter *it, struct json *ret_name, struct json *ret_value)
{
	if (!at_next(it) || *it->p != '"')
		return false;

	struct json name = json_walk_take_value(it);

	if (name.raw.n < 2 || name.raw.p[name.raw.n - 1] != '"')
		return false;
	it->p = json_space_end(it->p, it->end);
	if (it->p == it->end || *it->p != ':')
		return false;
	it->p = json_space_end(it->p + 1, it->end);

	struct json value = json_walk_take_value(it);

	if (value.raw.n == 0)
		return false;
	*ret_name = name;
	*ret_value = value;
	return true;
}

size_t json_count(struct json container)
{
	struct json_iter it = json_iter_of(container);
	struct json name, value;
	size_t n = 0;

	if (json_type(container) == JSON_OBJECT)
		while (json_iter_member(&it, &name, &value))
			n++;
	else if (json_type(container) == JSON_ARRAY)
		while (json_iter_element(&it, &value))
			n++;
	return n;
}

bool json_find(struct json object, struct slice name, struct json *ret_value)
{
	struct json_iter it;
	struct json at, value;

	if (json_type(object) != JSON_OBJECT)
		return false;
	it = json_iter_of(object);
	while (json_iter_member(&it, &at, &value)) {
		if (!json_string_is(at, name))
			continue;
		*ret_value = value;
		return true;
	}
	return false;
}

bool json_bool(struct json value)
{
	ASSERT(json_type(value) == JSON_BOOL);
	return value.raw.p[0] == 't';
}
