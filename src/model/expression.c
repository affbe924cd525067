/*
 * The parser of expressions: recursive descent over the text, one function for each line of the grammar in
 * expression.h. A function begins at the next token (expression_scan.h), returns the node and stands after it, or returns
 * NULL after scan_refuse() has said why.
 *
 * Where jq reads something else than one would think, the text is refused instead of given another meaning:
 *
 *   [.a, .b | length]    is [(.a, .b) | length] in jq: with several elements a pipe needs parentheses
 *   {a: .x == 1}         is an error in jq 1.6, {a: (.x == 1)} is not
 *   1.a   .5   01        tokens of jq that are no JSON
 */
#include "model/expression.h"

#include "base/excerpt.h"
#include "base/json_number.h"
#include "base/json_string.h"
#include "base/utf8.h"
#include "model/expression_scan.h"
#include "model/nearest.h"

#define INDEX_MOST INT32_MAX /* an int is what jq has */

typedef struct expression_node *parse_fn(struct expression_scan *s);

static parse_fn parse_pipe, parse_alternative, parse_term;

/* ---- nodes ---- */

static struct expression_node *node_new(struct expression_scan *s, enum expression_op op, size_t start)
{
	struct expression_node *node = scan_alloc(s, sizeof *node);

	if (node) {
		node->op = op;
		node->start = start;
	}
	return node;
}

static void expression_append(struct expression_node *parent, struct expression_node *child)
{
	if (parent->last)
		parent->last->next = child;
	else
		parent->first = child;
	parent->last = child;
	parent->count++;
}

/* next { token next }, which is one node only where there is a token. */
static struct expression_node *parse_chain(struct expression_scan *s, enum expression_op op, const char *token,
					   parse_fn *next)
{
	struct expression_node *chain = NULL;

	(void)scan_space(s);

	size_t start = s->at;
	struct expression_node *child = next(s);

	while (child && scan_take(s, token)) {
		chain = chain ? chain : node_new(s, op, start);
		if (!chain)
			return NULL;
		expression_append(chain, child);
		child = next(s);
	}
	if (chain && child)
		expression_append(chain, child);
	return chain && child ? chain : child;
}

static struct expression_node *literal_new(struct expression_scan *s, size_t start, struct json value)
{
	struct expression_node *node = node_new(s, OP_LITERAL, start);

	if (node)
		node->literal = value;
	return node;
}

/* ---- literals ---- */

static struct expression_node *parse_string(struct expression_scan *s)
{
	size_t start = s->at;
	struct json value;
	struct expression_node *node;

	if (!scan_string(s, &value))
		return NULL;
	node = literal_new(s, start, value);
	if (!node)
		return NULL;
	node->name = json_string_decode(value, s->arena);
	if (s->arena->failed) {
		s->code = arena_error(s->arena, s->err);
		return NULL;
	}
	return node;
}

static struct expression_node *parse_number(struct expression_scan *s)
{
	size_t start = s->at;
	struct json value;

	return scan_number(s, &value) ? literal_new(s, start, value) : NULL;
}

/* ---- paths ---- */

/* After a dot: a name right at it, or a string. */
static bool take_step_name(struct expression_scan *s, struct slice *ret_name)
{
	if (scan_starts_name(scan_peek(s, 0))) {
		*ret_name = scan_name(s);
		return true;
	}
	if (scan_space(s) == '"') {
		const struct expression_node *string = parse_string(s);

		*ret_name = string ? string->name : slice_of(NULL, 0);
		return string;
	}
	if (scan_peek(s, 0) == '[')
		return scan_refuse(s, s->at, "write .a[0], without a dot in front of the bracket");
	return scan_refuse(s, s->at, "after this dot a name is expected");
}

static bool take_index(struct expression_scan *s, int64_t *ret_index)
{
	size_t start = s->at;
	struct json number;

	if (!scan_number(s, &number))
		return false;
	if (json_int64(number, NULL, ret_index) == HX_OK && *ret_index <= INDEX_MOST && *ret_index >= -INDEX_MOST)
		return true;
	return scan_refuse(s, start, "an index is an integer of at most 31 bits");
}

/* The opening bracket is read. */
static bool take_bracket_step(struct expression_scan *s, struct expression_step *step)
{
	char c = scan_space(s);

	if (c == '"') {
		const struct expression_node *string = parse_string(s);

		if (!string)
			return false;
		step->name = string->name;
	} else if (c == '-' || scan_is_digit(c)) {
		if (!take_index(s, &step->index))
			return false;
	} else {
		return scan_refuse(s, s->at, "between these brackets a string or an integer is expected");
	}
	if (scan_take(s, "]"))
		return true;
	(void)scan_refuse(s, s->at,
			  "] is expected here; there is one string or integer between the brackets of a path");
	return false;
}

static struct expression_step *parse_step(struct expression_scan *s)
{
	struct expression_step *step = scan_alloc(s, sizeof *step);

	if (!step)
		return NULL;
	step->start = s->at;
	if (s->text.p[s->at++] == '.' ? !take_step_name(s, &step->name) : !take_bracket_step(s, step))
		return NULL;
	step->end = s->at;
	return step;
}

/* All steps that follow; base is NULL for `.`. Without any, the base itself. */
static struct expression_node *parse_steps(struct expression_scan *s, struct expression_node *base, size_t start)
{
	const struct expression_step **tail;
	struct expression_node *path;
	char c = scan_space(s);

	if (c != '.' && c != '[')
		return base ? base : node_new(s, OP_DOT, start);
	path = node_new(s, OP_PATH, start);
	if (!path)
		return NULL;
	path->first = base;
	for (tail = &path->steps; c == '.' || c == '['; c = scan_space(s)) {
		struct expression_step *step = parse_step(s);

		if (!step)
			return NULL;
		*tail = step;
		tail = &step->next;
	}
	return path;
}

/* At the dot. It is the whole of `.`, or belongs to the first step: .a ."a" */
static struct expression_node *parse_dot(struct expression_scan *s)
{
	size_t start = s->at++;

	if (scan_is_digit(scan_peek(s, 0)))
		return scan_refuse(s, start, "a number begins with a digit");
	if (scan_peek(s, 0) == '.') /* one token in jq, although `. .a` is a path */
		return scan_refuse(s, start, "there is no ..");
	if (scan_starts_name(scan_peek(s, 0)) || scan_space(s) == '"')
		s->at = start;
	return parse_steps(s, /* base= */ NULL, start);
}

/* ---- brackets ---- */

static struct expression_node *parse_parentheses(struct expression_scan *s)
{
	struct expression_node *inside;

	if (!scan_expect(s, "(") || !scan_enter(s))
		return NULL;
	inside = parse_pipe(s);
	s->depth--;
	return inside && scan_expect(s, ")") ? inside : NULL;
}

static struct expression_node *parse_array(struct expression_scan *s)
{
	struct expression_node *array = node_new(s, OP_ARRAY, s->at++);
	const struct expression_node *pipe = NULL;

	if (!array || !scan_enter(s))
		return NULL;
	if (scan_space(s) != ']') {
		do {
			(void)scan_space(s);

			size_t start = s->at;
			struct expression_node *element = parse_pipe(s);

			if (!element)
				return NULL;
			/* One in parentheses begins after them. */
			if (element->op == OP_PIPE && element->start == start)
				pipe = element;
			expression_append(array, element);
		} while (scan_take(s, ","));
	}
	s->depth--;
	if (pipe && array->count > 1)
		return scan_refuse(s, pipe->start, "beside other elements, put what has a | into parentheses");
	return scan_expect(s, "]") ? array : NULL;
}

static bool is_keyword(struct slice name)
{
	static const char *const keywords[] = {"and",    "or",     "def",     "if",      "then",   "elif",
					       "else",   "end",    "as",      "try",     "catch",  "label",
					       "reduce", "import", "foreach", "include", "module", "__loc__"};

	for (size_t i = 0; i < sizeof keywords / sizeof keywords[0]; i++)
		if (slice_is(name, keywords[i]))
			return true;
	return false;
}

static struct expression_node *parse_name_key(struct expression_scan *s)
{
	size_t start = s->at;
	struct slice name = scan_name(s);
	char *quoted = scan_alloc(s, name.n + 2);
	struct expression_node *key;

	if (!quoted)
		return NULL;
	quoted[0] = quoted[name.n + 1] = '"';
	memcpy(quoted + 1, name.p, name.n);
	key = literal_new(s, start, json_trust(slice_of(quoted, name.n + 2)));
	if (key)
		key->name = name;
	return key;
}

static struct expression_node *parse_key(struct expression_scan *s)
{
	char c = scan_space(s);
	size_t start = s->at;
	struct expression_node *key;

	if (scan_starts_name(c))
		return parse_name_key(s);
	if (c == '"')
		return parse_string(s);
	if (c != '(')
		return scan_refuse(s, start, "here the name of a member is expected");
	key = parse_parentheses(s);
	if (key && key->op == OP_LITERAL && json_type(key->literal) != JSON_STRING)
		return scan_refuse(s, start, "the name of a member is a string");
	return key;
}

static bool is_written(const struct expression_node *key)
{
	return key->op == OP_LITERAL;
}

/* {sku} is {sku: .sku} */
static struct expression_node *shorthand(struct expression_scan *s, const struct expression_node *key)
{
	struct expression_node *path;
	struct expression_step *step;
	bool quoted = s->text.p[key->start] == '"';

	if (!quoted && is_keyword(key->name))
		return scan_refuse(s, key->start, "this is a word of jq; write {\"%s\": …}",
				   excerpt_of(key->name).text);
	path = node_new(s, OP_PATH, key->start);
	step = scan_alloc(s, sizeof *step);
	if (!path || !step)
		return NULL;
	step->name = key->name;
	step->start = key->start;
	step->end = key->start + (quoted ? key->literal.raw.n : key->name.n);
	path->steps = step;
	return path;
}

static struct expression_node *parse_member_value(struct expression_scan *s)
{
	struct expression_node *value = parse_chain(s, OP_PIPE, "|", parse_term);
	char c = scan_space(s);

	if (!value || c == ',' || c == '}')
		return value;
	if (c == '/' || c == '=' || c == '!' || c == '<' || c == '>' || c == 'a' || c == 'o')
		return scan_refuse(s, s->at,
				   "in an object a value with an operator stands in parentheses: {a: (.b == 1)}");
	return scan_unexpected(s);
}

static bool take_member(struct expression_scan *s, struct expression_node *object)
{
	bool in_parentheses = scan_space(s) == '(';
	struct expression_node *key = parse_key(s);
	struct expression_node *value;

	if (!key)
		return false;
	for (const struct expression_node *other = object->first; other && is_written(key); other = other->next) {
		if (!is_written(other->key) || !slice_eq(other->key->name, key->name))
			continue;
		return scan_refuse(s, key->start, "the name \"%s\" is there already", excerpt_of(key->name).text);
	}
	if (scan_take(s, ":"))
		value = parse_member_value(s);
	else
		value = in_parentheses ? scan_unexpected(s) : shorthand(s, key);
	if (!value)
		return false;
	value->key = key;
	object->keys_computed |= !is_written(key);
	expression_append(object, value);
	return true;
}

static struct expression_node *parse_object(struct expression_scan *s)
{
	struct expression_node *object = node_new(s, OP_OBJECT, s->at++);

	if (!object || !scan_enter(s))
		return NULL;
	if (scan_space(s) != '}') {
		do {
			if (!take_member(s, object))
				return NULL;
		} while (scan_take(s, ","));
	}
	s->depth--;
	return scan_expect(s, "}") ? object : NULL;
}

/* ---- the rest of the grammar ---- */

static struct expression_node *parse_has(struct expression_scan *s, size_t start)
{
	struct expression_node *has = node_new(s, OP_HAS, start);
	struct expression_node *name = has ? parse_parentheses(s) : NULL;

	if (!name)
		return NULL;
	expression_append(has, name);
	return has;
}

static struct expression_node *parse_word(struct expression_scan *s)
{
	static const char *const words[] = {"true", "false", "null", "not", "length", "has", "and", "or", NULL};
	size_t start = s->at;
	struct slice word = scan_name(s);
	const char *nearest;

	if (slice_is(word, "true") || slice_is(word, "false") || slice_is(word, "null"))
		return literal_new(s, start, json_trust(word));
	if (slice_is(word, "not"))
		return node_new(s, OP_NOT, start);
	if (slice_is(word, "length"))
		return node_new(s, OP_LENGTH, start);
	if (slice_is(word, "has"))
		return parse_has(s, start);
	if (slice_is(word, "and") || slice_is(word, "or"))
		return scan_refuse(s, start, "there is no value in front of this %s", excerpt_of(word).text);
	nearest = nearest_name(word, words);
	return scan_refuse(s, start, "there is no \"%s\" here; did you mean %s%s.%s?", excerpt_of(word).text,
			   nearest ? nearest : "", nearest ? ", or " : "", excerpt_of(word).text);
}

static struct expression_node *parse_base(struct expression_scan *s)
{
	char c = scan_peek(s, 0);

	switch (c) {
	case '"':
		return parse_string(s);
	case '(':
		return parse_parentheses(s);
	case '[':
		return parse_array(s);
	case '{':
		return parse_object(s);
	default:
		if (scan_is_digit(c) || c == '-')
			return parse_number(s);
		return scan_starts_name(c) ? parse_word(s) : scan_unexpected(s);
	}
}

static struct expression_node *parse_term(struct expression_scan *s)
{
	char c = scan_space(s);
	size_t start = s->at;
	struct expression_node *base;

	if (c == '.')
		return parse_dot(s);
	base = parse_base(s);
	return base ? parse_steps(s, base, start) : NULL;
}

/* OP_DOT where there is none. */
static enum expression_op take_comparison(struct expression_scan *s)
{
	static const struct {
		const char *token;
		enum expression_op op;
	} comparisons[] = {{"==", OP_EQ}, {"!=", OP_NE}, {"<=", OP_LE}, {">=", OP_GE}, {"<", OP_LT}, {">", OP_GT}};

	for (size_t i = 0; i < sizeof comparisons / sizeof comparisons[0]; i++)
		if (scan_take(s, comparisons[i].token))
			return comparisons[i].op;
	return OP_DOT;
}

static struct expression_node *parse_comparison(struct expression_scan *s)
{
	struct expression_node *left = parse_term(s);
	enum expression_op op = left ? take_comparison(s) : OP_DOT;

	if (op == OP_DOT)
		return left;

	struct expression_node *comparison = node_new(s, op, left->start);
	struct expression_node *right = comparison ? parse_term(s) : NULL;

	if (!right)
		return NULL;
	expression_append(comparison, left);
	expression_append(comparison, right);

	size_t after = s->at;

	if (take_comparison(s) != OP_DOT)
		return scan_refuse(s, after, "a comparison of a comparison needs parentheses");
	return comparison;
}

static struct expression_node *parse_and(struct expression_scan *s)
{
	return parse_chain(s, OP_AND, "and", parse_comparison);
}

static struct expression_node *parse_or(struct expression_scan *s)
{
	return parse_chain(s, OP_OR, "or", parse_and);
}

static struct expression_node *parse_alternative(struct expression_scan *s)
{
	return parse_chain(s, OP_ALTERNATIVE, "//", parse_or);
}

static struct expression_node *parse_pipe(struct expression_scan *s)
{
	return parse_chain(s, OP_PIPE, "|", parse_alternative);
}

static const struct expression_node *parse_all(struct expression_scan *s)
{
	const struct expression_node *root = parse_pipe(s);

	if (root && scan_space(s) != '\0')
		return scan_unexpected(s);
	if (root && s->at < s->text.n)
		return scan_refuse(s, s->at, "there is a NUL in it");
	return root;
}

enum hx_code expression_parse(struct slice text, struct arena *a, struct hx_error *err, const struct expression **ret)
{
	size_t valid = utf8_valid_bytes(text);
	struct expression *expression;
	struct expression_scan s = {.arena = a, .err = err, .code = HX_OK};

	if (text.n > EXPRESSION_BYTES_MAX)
		return error_set(err, HX_TOO_LARGE, "it has %zu bytes; an expression has at most %d", text.n,
				 EXPRESSION_BYTES_MAX);
	s.text = arena_copy(a, text);
	expression = s.text.p ? arena_zalloc(a, sizeof *expression) : NULL;
	if (!expression)
		return arena_error(a, err);
	if (valid < text.n)
		(void)scan_refuse(&s, valid, "this is not UTF-8");
	else
		expression->root = parse_all(&s);
	expression->text = s.text;
	ASSERT((expression->root != NULL) == (s.code == HX_OK));
	if (s.code == HX_OK)
		*ret = expression;
	return s.code;
}
