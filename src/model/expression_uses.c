/*
 * What an expression looks at, for the load: the paths that begin at the environment, each with the first names in it.
 */
#include "base/excerpt.h"
#include "model/expression_tree.h"
#include "model/nearest.h"

/* Asked for each path that begins at the environment; the first that is not HX_OK ends the walk. */
const char *const expression_run_roots[] = {"input", "state", "steps", NULL};
const char *const expression_item_roots[] = {"input", "state", "steps", "item", "index", NULL};

struct visitor {
	const struct expression *expression;
	const char *const *roots;
	enum hx_code (*path)(const struct visitor *v, const struct expression_step *first);
	struct hx_error *err;
	expression_use_fn *use;
	void *context;
};

static enum hx_code visit_node(const struct visitor *v, const struct expression_node *node, bool at_root);

static enum hx_code visit_children(const struct visitor *v, const struct expression_node *parent, bool at_root)
{
	enum hx_code code = HX_OK;

	for (const struct expression_node *child = parent->first; child && code == HX_OK; child = child->next) {
		if (child->key)
			code = visit_node(v, child->key, at_root);
		if (code == HX_OK)
			code = visit_node(v, child, at_root);
		/* What comes after a pipe sees the value in front of it. */
		at_root = at_root && (parent->op != OP_PIPE || child->op == OP_DOT);
	}
	return code;
}

static enum hx_code visit_node(const struct visitor *v, const struct expression_node *node, bool at_root)
{
	if (node->op == OP_PATH && at_root && (!node->first || node->first->op == OP_DOT))
		return v->path(v, node->steps);
	return visit_children(v, node, at_root);
}

static enum hx_code check_root(const struct visitor *v, const struct expression_step *first)
{
	size_t column = expression_column(v->expression->text, first->start);

	if (!first->name.p)
		return error_set(v->err, HX_VALIDATION_ERROR, "column %zu: a path begins with .input, .state or .steps",
				 column);
	for (size_t i = 0; v->roots[i]; i++)
		if (slice_is(first->name, v->roots[i]))
			return HX_OK;
	return error_set(v->err, HX_VALIDATION_ERROR, "column %zu: there is no .%s%s", column,
			 excerpt_of(first->name).text, nearest_words(first->name, v->roots, ".", "").text);
}

enum hx_code expression_check_roots(const struct expression *expression, const char *const *roots, struct hx_error *err)
{
	struct visitor v = {.expression = expression, .roots = roots, .path = check_root, .err = err};

	return visit_node(&v, expression->root, /* at_root= */ true);
}

static enum hx_code tell_use(const struct visitor *v, const struct expression_step *first)
{
	if (first->name.p && first->next && first->next->name.p)
		v->use(v->context, first->name, first->next->name,
		       expression_column(v->expression->text, first->start));
	return HX_OK;
}

void expression_each_use(const struct expression *expression, expression_use_fn *use, void *context)
{
	struct visitor v = {.expression = expression, .path = tell_use, .use = use, .context = context};

	(void)visit_node(&v, expression->root, /* at_root= */ true); /* tell_use() ends no walk */
}

struct slice expression_text(const struct expression *expression)
{
	return expression->text;
}
