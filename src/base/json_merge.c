/* See json_merge.h. */
#include "base/json_merge.h"

#include "base/json_string.h"
#include "base/json_tree.h"

static bool is_object(const struct json_node *node)
{
	return node && node->type == JSON_OBJECT;
}

static void json_merge_add_name(struct strbuf *out, const struct json_node *member)
{
	strbuf_add_str(out, out->n && out->p[out->n - 1] == '{' ? "" : ",");
	json_quote(member->name, out);
	strbuf_add_char(out, ':');
}

/* No deeper than the documents are (JSON_DEPTH_MAX). */
static void merge(const struct json_node *target, const struct json_node *patch, struct strbuf *out)
{
	if (!is_object(patch)) {
		strbuf_add_slice(out, patch->value.raw);
		return;
	}
	strbuf_add_char(out, '{');
	for (const struct json_node *m = is_object(target) ? target->first : NULL; m; m = m->next) {
		const struct json_node *other = json_node_member_slice(patch, m->name);

		if (other && other->type == JSON_NULL)
			continue;
		json_merge_add_name(out, m);
		if (other)
			merge(m, other, out);
		else
			strbuf_add_slice(out, m->value.raw);
	}
	json_node_for_each(m, patch)
	{
		if (m->type == JSON_NULL || json_node_member_slice(target, m->name))
			continue;
		json_merge_add_name(out, m);
		merge(NULL, m, out);
	}
	strbuf_add_char(out, '}');
}

enum hx_code json_merge_patch(struct slice target, struct slice patch, struct arena *scratch, struct hx_error *err,
			      struct strbuf *out)
{
	const struct json_node *before, *over;
	enum hx_code code = json_tree_parse(target, SIZE_MAX, scratch, err, &before);

	if (!code)
		code = json_tree_parse(patch, SIZE_MAX, scratch, err, &over);
	if (!code)
		merge(before, over, out);
	return code;
}
