/*
 * The evaluator of expressions: a walk over the tree of expression_tree.h.
 *
 * Every value is a piece of JSON text: a slice of the environment, a literal of the expression, or text that was put
 * together in the scratch arena. Nothing is converted, so numbers and strings stay as they were written.
 *
 *   1. Every value is one that json_check() accepts, and so at most JSON_DEPTH_MAX deep: what is constructed is
 *      checked (join), and every recursion over values is bounded by that (also that of expression_order.c).
 *   2. The environment as a whole is no text until somebody needs it: `.input.sku` copies nothing.
 *   3. Every loop over bytes of a value spends as much of `work` as it reads or writes. The charge comes
 *      after the loop where only then its length is known; one value is what the limit can be passed by.
 *
 * A function returns false after it has set e->code, and then nobody goes on.
 */
#include "model/expression.h"

#include "base/excerpt.h"
#include "base/json_number.h"
#include "base/json_string.h"
#include "base/json_walk.h"
#include "base/utf8.h"
#include "model/expression_eval.h"

struct value {
	bool is_env; /* `.` at the beginning; json is empty then */
	struct json json;
};

static const char *const roots[] = EXPRESSION_ROOTS;

/* ---- limits, errors ---- */

bool evaluation_spend(struct evaluation *e, size_t work)
{
	if (work <= e->work) {
		e->work -= work;
		return true;
	}
	e->code = error_set(e->err, HX_TOO_LARGE, "the expression has too much to do: more than %u bytes to go through",
			    EXPRESSION_WORK_MAX);
	return false;
}

void *evaluation_alloc(struct evaluation *e, size_t size)
{
	void *memory = arena_alloc(e->scratch, size);

	if (!memory)
		e->code = arena_error(e->scratch, e->err);
	return memory;
}

bool evaluation_string(struct evaluation *e, struct json string, struct slice *ret)
{
	*ret = json_string_view(string, e->scratch);
	if (e->scratch->failed)
		e->code = arena_error(e->scratch, e->err);
	return e->code == HX_OK;
}

static size_t column_of(const struct evaluation *e, const struct expression_node *node)
{
	return expression_column(e->expression->text, node->start);
}

/* "column 1: .input.items is of type array, but .sku needs an object" */
static bool refuse_step(struct evaluation *e, const struct expression_node *path, const struct expression_step *step,
			enum json_type type)
{
	const char *text = e->expression->text.p;
	struct slice before = slice_of(text + path->start, step->start - path->start);
	struct slice here = slice_of(text + step->start, step->end - step->start);

	while (before.n > 0 && before.p[before.n - 1] == ' ')
		before.n--;
	e->code = error_set(e->err, HX_VALIDATION_ERROR, "column %zu: %s is of type %s, but %s needs an %s",
			    expression_column(e->expression->text, step->start),
			    before.n ? excerpt_of(before).text : ".", json_type_name(type), excerpt_of(here).text,
			    step->name.p ? "object" : "array");
	return false;
}

/* ---- values ---- */

static struct json word(const char *text)
{
	return json_trust(slice_str(text));
}

static struct value expression_eval_value_of(struct json json)
{
	return (struct value){.json = json};
}

static struct value bool_value(bool b)
{
	return expression_eval_value_of(word(b ? "true" : "false"));
}

static enum json_type type_of(struct value v)
{
	return v.is_env ? JSON_OBJECT : json_type(v.json);
}

static bool is_true(struct value v)
{
	enum json_type type = type_of(v);

	return type != JSON_NULL && (type != JSON_BOOL || json_bool(v.json));
}

static bool count_value(struct evaluation *e, size_t count, struct value *ret)
{
	const size_t room = 20; /* the digits of 2^64 */
	char *digits = evaluation_alloc(e, room);
	size_t at = room;

	if (!digits)
		return false;
	do {
		digits[--at] = (char)('0' + count % 10);
		count /= 10;
	} while (count > 0);
	*ret = expression_eval_value_of(json_trust(slice_of(digits + at, room - at)));
	return true;
}

/* ---- construction ---- */

struct part {
	struct json key; /* empty in an array */
	struct slice name;
	struct json value;
};

static char *expression_eval_put(char *p, struct slice text)
{
	memcpy(p, text.p, text.n);
	return p + text.n;
}

/* Puts an object or array together; `brackets` are its two. */
static bool join(struct evaluation *e, const char *brackets, const struct part *parts, size_t n, struct json *ret)
{
	size_t bytes = 2;
	char *text, *p;

	for (size_t i = 0; i < n; i++)
		bytes += parts[i].key.raw.n + parts[i].value.raw.n + 2;
	if (!evaluation_spend(e, bytes))
		return false;
	p = text = evaluation_alloc(e, bytes);
	if (!text)
		return false;
	*p++ = brackets[0];
	for (size_t i = 0; i < n; i++) {
		if (i > 0)
			*p++ = ',';
		if (parts[i].key.raw.n > 0) {
			p = expression_eval_put(p, parts[i].key.raw);
			*p++ = ':';
		}
		p = expression_eval_put(p, parts[i].value.raw);
	}
	*p++ = brackets[1];
	/* All of it is JSON already, so there is only one thing that can be wrong. */
	if (json_check(slice_of(text, (size_t)(p - text)), NULL, ret) == HX_OK)
		return true;
	e->code = error_set(e->err, HX_TOO_LARGE, "the value is more than %d brackets deep", JSON_DEPTH_MAX);
	return false;
}

static bool expression_eval_text_of(struct evaluation *e, struct value v, struct json *ret)
{
	const struct part parts[] = {{.key = word("\"input\""), .value = e->env->input},
				     {.key = word("\"state\""), .value = e->env->state},
				     {.key = word("\"steps\""), .value = e->env->steps}};

	if (v.is_env && !e->env_text.raw.p && !join(e, "{}", parts, 3, &e->env_text))
		return false;
	*ret = v.is_env ? e->env_text : v.json;
	return true;
}

static bool eval(struct evaluation *e, const struct expression_node *node, struct value in, struct value *ret);

static bool eval_text(struct evaluation *e, const struct expression_node *node, struct value in, struct json *ret)
{
	struct value v;

	return eval(e, node, in, &v) && expression_eval_text_of(e, v, ret);
}

static bool eval_key(struct evaluation *e, const struct expression_node *key, struct value in, struct part *part)
{
	if (key->op == OP_LITERAL) {
		part->key = key->literal;
		part->name = key->name;
		return true;
	}
	if (!eval_text(e, key, in, &part->key))
		return false;
	if (json_type(part->key) != JSON_STRING) {
		e->code = error_set(e->err, HX_VALIDATION_ERROR,
				    "column %zu: the name of a member is a string, this is of type %s",
				    column_of(e, key), json_type_name(json_type(part->key)));
		return false;
	}
	return evaluation_string(e, part->key, &part->name) && evaluation_spend(e, part->key.raw.n);
}

/* Of two computed names that are the same the first has the place and the last the value, as in jq. */
static bool merge_part(struct evaluation *e, struct part *parts, size_t *n)
{
	const struct part *added = &parts[*n];

	for (size_t i = 0; i < *n; i++) {
		if (parts[i].name.n != added->name.n)
			continue;
		if (!evaluation_spend(e, added->name.n))
			return false;
		if (slice_eq(parts[i].name, added->name)) {
			parts[i].value = added->value;
			return true;
		}
	}
	(*n)++;
	return true;
}

static bool eval_container(struct evaluation *e, const struct expression_node *node, struct value in, struct value *ret)
{
	struct part *parts = evaluation_alloc(e, node->count * sizeof *parts);
	struct json json;
	size_t n = 0;

	if (!parts)
		return false;
	for (const struct expression_node *child = node->first; child; child = child->next) {
		parts[n] = (struct part){0};
		if (child->key && !eval_key(e, child->key, in, &parts[n]))
			return false;
		if (!eval_text(e, child, in, &parts[n].value))
			return false;
		if (!node->keys_computed)
			n++;
		else if (!merge_part(e, parts, &n))
			return false;
	}
	if (!join(e, node->op == OP_ARRAY ? "[]" : "{}", parts, n, &json))
		return false;
	*ret = expression_eval_value_of(json);
	return true;
}

/* ---- paths ---- */

static bool env_member(const struct evaluation *e, struct slice name, struct json *ret)
{
	const struct json values[] = {e->env->input, e->env->state, e->env->steps, e->env->item, e->env->index};

	for (size_t i = 0; roots[i]; i++) {
		if (slice_is(name, roots[i]) && values[i].raw.p) {
			*ret = values[i];
			return true;
		}
	}
	return false;
}

/* *ret_found tells whether it is there; *ret is untouched if not. */
static bool find_member(struct evaluation *e, struct value object, struct slice name, struct json *ret, bool *ret_found)
{
	struct json json = object.json;

	if (object.is_env) {
		*ret_found = env_member(e, name, ret);
		return true;
	}
	*ret_found = json_find(json, name, ret);
	return evaluation_spend(e, *ret_found ? (size_t)(ret->raw.p + ret->raw.n - json.raw.p) : json.raw.n);
}

/* Of an array its elements, of an object its members. */
static bool count_children(struct evaluation *e, struct json container, size_t *ret_count)
{
	struct json_iter it = json_iter_of(container);
	bool is_object = json_type(container) == JSON_OBJECT;
	struct json name, value;

	*ret_count = 0;
	while (is_object ? json_iter_member(&it, &name, &value) : json_iter_element(&it, &value))
		++*ret_count;
	return evaluation_spend(e, container.raw.n);
}

static bool find_element(struct evaluation *e, struct json array, int64_t index, struct json *ret, bool *ret_found)
{
	struct json_iter it = json_iter_of(array);
	struct json element;
	size_t count;

	*ret_found = false;
	if (index < 0) {
		if (!count_children(e, array, &count))
			return false;
		index += (int64_t)count;
	}
	for (; index >= 0 && !*ret_found && json_iter_element(&it, &element); index--)
		*ret_found = index == 0;
	if (*ret_found)
		*ret = element;
	return evaluation_spend(e, (size_t)(it.p - array.raw.p));
}

static bool take_step(struct evaluation *e, const struct expression_node *path, const struct expression_step *step,
		      struct value *v)
{
	enum json_type type = type_of(*v);
	struct json found = word("null");
	bool is_there;

	if (type == JSON_NULL)
		return true;
	if (type != (step->name.p ? JSON_OBJECT : JSON_ARRAY))
		return refuse_step(e, path, step, type);
	if (step->name.p ? !find_member(e, *v, step->name, &found, &is_there)
			 : !find_element(e, v->json, step->index, &found, &is_there))
		return false;
	*v = expression_eval_value_of(found);
	return true;
}

static bool eval_path(struct evaluation *e, const struct expression_node *path, struct value in, struct value *ret)
{
	struct value v = in;

	if (path->first && !eval(e, path->first, in, &v))
		return false;
	for (const struct expression_step *step = path->steps; step; step = step->next)
		if (!evaluation_spend(e, EVALUATION_NODE_WORK) || !take_step(e, path, step, &v))
			return false;
	*ret = v;
	return true;
}

/* ---- comparisons ---- */

static bool holds(enum expression_op op, int order)
{
	switch (op) {
	case OP_EQ:
		return order == 0;
	case OP_NE:
		return order != 0;
	case OP_LT:
		return order < 0;
	case OP_LE:
		return order <= 0;
	case OP_GT:
		return order > 0;
	default:
		ASSERT(op == OP_GE);
		return order >= 0;
	}
}

static bool eval_comparison(struct evaluation *e, const struct expression_node *node, struct value in,
			    struct value *ret)
{
	struct json left, right;
	struct arena_mark mark;
	int order;

	if (!eval_text(e, node->first, in, &left) || !eval_text(e, node->last, in, &right))
		return false;
	/* Nothing but the order comes out of it. */
	mark = arena_mark(e->scratch);
	if (!evaluation_compare(e, left, right, &order))
		return false;
	arena_rewind(e->scratch, mark);
	*ret = bool_value(holds(node->op, order));
	return true;
}

/* ---- length, has ---- */

static bool count_characters(struct evaluation *e, struct json string, size_t *ret_count)
{
	struct slice text;

	if (!evaluation_string(e, string, &text))
		return false;
	*ret_count = 0;
	for (size_t i = 0; i < text.n; i++)
		*ret_count += !utf8_continues((unsigned char)text.p[i]);
	return evaluation_spend(e, string.raw.n);
}

static bool eval_length(struct evaluation *e, const struct expression_node *node, struct value in, struct value *ret)
{
	bool negative = !in.is_env && in.json.raw.p[0] == '-';
	struct slice raw = in.json.raw;
	size_t count = 0;

	switch (type_of(in)) {
	case JSON_NUMBER:
		*ret = expression_eval_value_of(json_trust(slice_of(raw.p + negative, raw.n - negative)));
		return true;
	case JSON_STRING:
		return count_characters(e, in.json, &count) && count_value(e, count, ret);
	case JSON_ARRAY:
	case JSON_OBJECT:
		if (in.is_env)
			return count_value(e, 3, ret);
		return count_children(e, in.json, &count) && count_value(e, count, ret);
	case JSON_NULL:
		return count_value(e, 0, ret);
	default:
		e->code = error_set(e->err, HX_VALIDATION_ERROR, "column %zu: a boolean has no length",
				    column_of(e, node));
		return false;
	}
}

static bool has_element(struct evaluation *e, const struct expression_node *node, struct json array, struct json key,
			bool *ret_has)
{
	struct json ignored;
	int64_t index;

	if (json_int64(key, NULL, &index) != HX_OK) {
		e->code = error_set(e->err, HX_VALIDATION_ERROR, "column %zu: %s is not an index", column_of(e, node),
				    excerpt_of(key.raw).text);
		return false;
	}
	/* jq: has() does not count from the end, although a path does. */
	*ret_has = false;
	return index < 0 || find_element(e, array, index, &ignored, ret_has);
}

static bool has_member(struct evaluation *e, struct value object, struct json key, bool *ret_has)
{
	struct json ignored;
	struct slice name;

	return evaluation_string(e, key, &name) && find_member(e, object, name, &ignored, ret_has);
}

static bool eval_has(struct evaluation *e, const struct expression_node *node, struct value in, struct value *ret)
{
	enum json_type type = type_of(in), key_type;
	struct json key;
	bool has = false, done;

	if (!eval_text(e, node->first, in, &key))
		return false;
	key_type = json_type(key);
	if (type == JSON_OBJECT && key_type == JSON_STRING) {
		done = has_member(e, in, key, &has);
	} else if (type == JSON_ARRAY && key_type == JSON_NUMBER) {
		done = has_element(e, node, in.json, key, &has);
	} else if (type == JSON_NULL) {
		done = true;
	} else {
		e->code = error_set(e->err, HX_VALIDATION_ERROR,
				    "column %zu: has(%s) cannot be asked of a value of type %s", column_of(e, node),
				    json_type_name(key_type), json_type_name(type));
		return false;
	}
	*ret = bool_value(has);
	return done;
}

/* ---- the walk ---- */

/* The first child that decides, or the last. */
static bool eval_alternative(struct evaluation *e, const struct expression_node *node, struct value in,
			     struct value *ret)
{
	for (const struct expression_node *child = node->first; child; child = child->next) {
		if (!eval(e, child, in, ret))
			return false;
		if (is_true(*ret))
			break;
	}
	return true;
}

static bool eval_and_or(struct evaluation *e, const struct expression_node *node, struct value in, struct value *ret)
{
	bool decides = node->op == OP_OR;
	struct value v;

	for (const struct expression_node *child = node->first; child; child = child->next) {
		if (!eval(e, child, in, &v))
			return false;
		*ret = bool_value(is_true(v));
		if (is_true(v) == decides)
			break;
	}
	return true;
}

static bool eval_pipe(struct evaluation *e, const struct expression_node *node, struct value in, struct value *ret)
{
	*ret = in;
	for (const struct expression_node *child = node->first; child; child = child->next)
		if (!eval(e, child, *ret, ret))
			return false;
	return true;
}

static bool eval(struct evaluation *e, const struct expression_node *node, struct value in, struct value *ret)
{
	if (!evaluation_spend(e, EVALUATION_NODE_WORK))
		return false;
	switch (node->op) {
	case OP_DOT:
		*ret = in;
		return true;
	case OP_LITERAL:
		*ret = expression_eval_value_of(node->literal);
		return true;
	case OP_PATH:
		return eval_path(e, node, in, ret);
	case OP_PIPE:
		return eval_pipe(e, node, in, ret);
	case OP_ALTERNATIVE:
		return eval_alternative(e, node, in, ret);
	case OP_OR:
	case OP_AND:
		return eval_and_or(e, node, in, ret);
	case OP_NOT:
		*ret = bool_value(!is_true(in));
		return true;
	case OP_LENGTH:
		return eval_length(e, node, in, ret);
	case OP_HAS:
		return eval_has(e, node, in, ret);
	case OP_ARRAY:
	case OP_OBJECT:
		return eval_container(e, node, in, ret);
	default:
		return eval_comparison(e, node, in, ret);
	}
}

static struct evaluation evaluation_of(const struct expression *expression, const struct expression_env *env,
				       struct arena *scratch, struct hx_error *err)
{
	ASSERT(env->whole.raw.n > 0 || (env->input.raw.n > 0 && env->state.raw.n > 0 && env->steps.raw.n > 0));
	return (struct evaluation){.expression = expression,
				   .env = env,
				   .work = EXPRESSION_WORK_MAX,
				   .scratch = scratch,
				   .err = err,
				   .code = HX_OK};
}

enum hx_code expression_eval(const struct expression *expression, const struct expression_env *env,
			     struct arena *scratch, struct hx_error *err, struct strbuf *ret_text)
{
	struct evaluation e = evaluation_of(expression, env, scratch, err);
	struct value dot = {.json = env->whole, .is_env = env->whole.raw.n == 0};
	struct arena_mark mark = arena_mark(scratch);
	struct json text;

	if (eval_text(&e, expression->root, dot, &text)) {
		strbuf_add_slice(ret_text, text.raw);
		if (ret_text->failed)
			e.code = strbuf_error(ret_text, err);
	}
	arena_rewind(scratch, mark);
	return e.code;
}
