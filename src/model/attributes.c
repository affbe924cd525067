/* See attributes.h. */
#include "model/attributes.h"

#include "base/json_string.h"
#include "base/json_walk.h"
#include "base/sortable.h"

#define VALUE_BYTES_MAX (1u << 20)
#define DESCRIBE_BYTES_MAX (64u << 20)
#define OBJECT_BYTES_MAX (ATTRIBUTES_MAX * (6 * SORTABLE_BYTES_MAX + ATTRIBUTE_NAME_MAX + 8))

/* ---- reading ---- */

/* A name of the grammar of conditions, since that is where it is written. */
static bool is_name(struct slice name)
{
	bool good = name.n >= 1 && name.n <= ATTRIBUTE_NAME_MAX && !(name.p[0] >= '0' && name.p[0] <= '9');

	for (size_t i = 0; i < name.n && good; i++) {
		char c = name.p[i];

		good = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
	}
	return good;
}

bool attribute_name_is_good(enum where_kind kind, struct slice name)
{
	return is_name(name) && !where_is_reserved(kind, name);
}

static bool check_name(const struct reader *r, const struct json_node *node, enum where_kind kind, struct slice name)
{
	if (!is_name(name))
		reader_report(r, node->at.line, "name",
			      "attributes: \"%s\" is no name: 1 to %d letters, digits and _, not a digit first",
			      excerpt_of(name).text, ATTRIBUTE_NAME_MAX);
	else if (where_is_reserved(kind, name))
		reader_report(r, node->at.line, "name", "attributes: \"%s\" is a field or a word of searches already",
			      excerpt_of(name).text);
	else
		return true;
	return false;
}

const char *const attribute_data_roots[] = {"data", NULL};
const char *const attribute_input_roots[] = {"input", NULL};

void attributes_read(const struct reader *r, const struct json_node *node, enum where_kind kind,
		     const char *const *roots, struct attributes *ret)
{
	struct attribute *list = reader_map(r, node, "attributes", ATTRIBUTES_MAX, sizeof *list);
	struct hx_error err;
	size_t n = 0;

	if (!list)
		return;
	json_node_for_each(member, node)
	{
		const struct expression *expression = NULL;

		if (!check_name(r, member, kind, member->name))
			continue;
		reader_expression(r, member, "attributes", roots, &expression);
		if (!expression)
			continue;
		list[n++] = (struct attribute){reader_keep(r, member->name), expression};
		ret->follow |= expression_check_roots(expression, attribute_input_roots, &err) != HX_OK;
	}
	ret->list = list;
	ret->n = n;
}

void attributes_read_field(const struct reader *r, const struct json_node *node, const struct field *field, void *ret)
{
	attributes_read(r, node, (enum where_kind)field->min, field->names, ret);
}

/* ---- values ---- */

static void add_value(const struct attribute *attribute, const struct expression_env *env, struct arena *arena,
		      struct strbuf *out)
{
	struct json checked;
	struct hx_error err;
	LOCAL_STRBUF(value, VALUE_BYTES_MAX);
	LOCAL_STRBUF(kept, SORTABLE_BYTES_MAX);

	if (expression_eval(attribute->expression, env, arena, &err, &value) ||
	    json_check(strbuf_slice(&value), &err, &checked) || !sortable_of(checked, &kept))
		return;
	strbuf_add_str(out, out->n > 1 ? "," : "");
	json_quote(slice_str(attribute->name), out);
	strbuf_add_char(out, ':');
	json_quote(strbuf_slice(&kept), out);
}

struct slice attributes_of(const struct attributes *attributes, const struct expression_env *env, struct arena *arena)
{
	struct slice none = {NULL, 0};

	if (attributes->n == 0)
		return none;
	LOCAL_STRBUF(object, OBJECT_BYTES_MAX);
	strbuf_add_char(&object, '{');
	for (size_t i = 0; i < attributes->n; i++)
		add_value(&attributes->list[i], env, arena, &object);
	strbuf_add_char(&object, '}');
	return object.n > 2 ? arena_copy(arena, strbuf_slice(&object)) : none;
}

struct slice attributes_of_data(const struct attributes *attributes, struct slice data, struct arena *arena)
{
	struct slice none = {NULL, 0}, kept = none;

	if (attributes->n == 0)
		return none;
	LOCAL_STRBUF(whole, data.n + 16);
	LOCAL_ARENA(scratch, DESCRIBE_BYTES_MAX);
	strbuf_add_str(&whole, "{\"data\":");
	strbuf_add_slice(&whole, data);
	strbuf_add_char(&whole, '}');
	if (!whole.failed)
		kept = attributes_of(attributes, &(struct expression_env){.whole = json_trust(strbuf_slice(&whole))},
				     &scratch);
	return kept.p ? arena_copy(arena, kept) : none;
}

void attributes_json(struct slice kept, struct strbuf *out)
{
	struct json name, value;
	char room[6 * SORTABLE_BYTES_MAX];

	strbuf_add_char(out, '{');
	if (kept.p) {
		struct json_iter it = json_iter_of(json_trust(kept));
		bool more = false;

		while (json_iter_member(&it, &name, &value)) {
			strbuf_add_str(out, more ? "," : "");
			more = true;
			strbuf_add_slice(out, name.raw);
			strbuf_add_char(out, ':');
			if (!sortable_json(json_string_view_in(value, room, sizeof room), out))
				strbuf_add_str(out, "null"); /* no text of ours */
		}
	}
	strbuf_add_char(out, '}');
}
