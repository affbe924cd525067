/*
 * See json_canonical.h. The text is indexed once (json_members.h) and written once. While writing, a cursor
 * walks the index beside the text: at an object, it stands on the record of its first member; after the object
 * it jumps to `object_after`. The members themselves are visited in sorted order, each with a cursor of its own
 * that begins right after its record. So no level is read twice, however deep the nesting.
 */
#include "base/json_canonical.h"

#include "base/json_members.h"
#include "base/json_number.h"
#include "base/json_string.h"
#include "base/json_walk.h"

struct writer {
	const char *end;
	struct arena *scratch;
	struct strbuf *out;
};

static const char *write_value(const struct writer *w, const char *p, struct json_member **cursor);

static const char *write_object(const struct writer *w, const char *p, struct json_member **cursor)
{
	struct json_member *first = *cursor;

	p = json_space_end(p + 1, w->end);
	if (*p == '}') {
		strbuf_add_str(w->out, "{}");
		return p + 1;
	}
	*cursor = first->object_after;
	p = first->object_end;
	strbuf_add_char(w->out, '{');
	for (struct json_member *m = json_members_sort(first); m; m = json_member_next(m)) {
		struct json_member *inside = m + 1;

		json_quote(m->link.name, w->out);
		strbuf_add_char(w->out, ':');
		(void)write_value(w, json_member_value(m, w->end), &inside); /* the next one is not after it */
		strbuf_add_char(w->out, json_member_next(m) ? ',' : '}');
	}
	return p;
}

static const char *write_array(const struct writer *w, const char *p, struct json_member **cursor)
{
	strbuf_add_char(w->out, '[');
	p = json_space_end(p + 1, w->end);
	while (*p != ']') {
		p = json_space_end(write_value(w, p, cursor), w->end);
		if (*p == ',') {
			strbuf_add_char(w->out, ',');
			p = json_space_end(p + 1, w->end);
		}
	}
	strbuf_add_char(w->out, ']');
	return p + 1;
}

static void write_scalar(const struct writer *w, struct json value)
{
	enum json_type type = json_type(value);

	if (type == JSON_NUMBER) {
		struct json_number number = json_number_of(value);

		json_number_append(&number, w->out);
	} else if (type == JSON_STRING && memchr(value.raw.p, '\\', value.raw.n)) {
		json_quote(json_string_view(value, w->scratch), w->out);
	} else {
		strbuf_add_slice(w->out, value.raw); /* without escapes there is no other spelling */
	}
}

static const char *write_value(const struct writer *w, const char *p, struct json_member **cursor)
{
	if (*p == '{')
		return write_object(w, p, cursor);
	if (*p == '[')
		return write_array(w, p, cursor);

	const char *end = json_value_end(p, w->end);

	write_scalar(w, (struct json){slice_of(p, (size_t)(end - p))});
	return end;
}

enum hx_code json_canonical(struct json value, struct arena *scratch, struct hx_error *err, struct strbuf *ret_text)
{
	struct json_members members;
	enum hx_code code = json_members_index(value, scratch, err, &members);

	if (code != HX_OK)
		return code;

	struct writer w = {.end = value.raw.p + value.raw.n, .scratch = scratch, .out = ret_text};
	struct json_member *cursor = members.all;

	(void)write_value(&w, value.raw.p, &cursor); /* it ends at w.end */
	if (ret_text->failed)
		return strbuf_error(ret_text, err);
	return scratch->failed ? arena_error(scratch, err) : HX_OK;
}
