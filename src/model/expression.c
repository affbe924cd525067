/*
 * The parser of expressions: recursive descent over the text, one function for each line of the grammar in
 * expression.h. A function begins at the next token (space is skipped in front of a token, never behind), returns
 * the node and stands behind it, or returns NULL after refuse() has said why; nobody says more after that.
 *
 * Where jq reads something else than one would think, the text is refused instead of given another meaning:
 *
 *   [.a, .b | length]    is [(.a, .b) | length] in jq: with several elements a pipe needs parentheses
 *   {a: .x == 1}         is an error in jq 1.6, {a: (.x == 1)} is not
 *   1.a   .5   01        tokens of jq that are no JSON
 */
#include "model/expression.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/excerpt.h"
#include "base/json_number.h"
#include "base/json_string.h"
#include "base/json_walk.h"
#include "base/utf8.h"
#include "model/expression_tree.h"
#include "model/nearest.h"

#define INDEX_MOST INT32_MAX /* an int is what jq has */

struct parser {
	struct slice text;
	size_t at;
	unsigned depth;
	struct arena *arena;
	struct hx_error *err;
	enum hx_code code;
};

typedef struct expression_node *parse_fn(struct parser *p);

static parse_fn parse_pipe, parse_alternative, parse_term;

/* ---- the text ---- */

size_t expression_column(struct slice text, size_t at)
{
	size_t column = 1;

	for (size_t i = 0; i < at; i++)
		column += !utf8_continues((unsigned char)text.p[i]);
	return column;
}

/* Always NULL, so that `return refuse(...)` reads as one step. */
static void *HX_PRINTF(3, 4) refuse(struct parser *p, size_t at, const char *format, ...)
{
	char what[sizeof p->err->detail];
	va_list args;

	ASSERT(p->code == HX_OK);
	va_start(args, format);
	vsnprintf(what, sizeof what, format, args);
	va_end(args);
	p->code = error_set(p->err, HX_VALIDATION_ERROR, "column %zu: %s", expression_column(p->text, at), what);
	return NULL;
}

static void *allocate(struct parser *p, size_t size)
{
	void *memory = arena_zalloc(p->arena, size);

	if (!memory)
		p->code = arena_error(p->arena, p->err);
	return memory;
}

/* NUL is behind the end, and is nothing that an expression could have outside of it. */
static char peek(const struct parser *p, size_t ahead)
{
	return p->text.n - p->at > ahead ? p->text.p[p->at + ahead] : '\0';
}

static char skip_space(struct parser *p)
{
	while (peek(p, 0) == ' ' || peek(p, 0) == '\t' || peek(p, 0) == '\n')
		p->at++;
	return peek(p, 0);
}

static struct slice since(const struct parser *p, size_t start)
{
	return slice_of(p->text.p + start, p->at - start);
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool starts_name(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool continues_name(char c)
{
	return starts_name(c) || is_digit(c);
}

static struct slice take_name(struct parser *p)
{
	size_t start = p->at;

	while (continues_name(peek(p, 0)))
		p->at++;
	return since(p, start);
}

/* Steps over the operator if it is next. A word ends where the name does. */
static bool take(struct parser *p, const char *operator)
{
	size_t n = strlen(operator);

	(void)skip_space(p);
	if (p->text.n - p->at < n || memcmp(p->text.p + p->at, operator, n) != 0)
		return false;
	if (starts_name(operator[0]) && continues_name(peek(p, n)))
		return false;
	p->at += n;
	return true;
}

/* What stands here cannot stand here; often it is jq that we do not have. */
static void *unexpected(struct parser *p)
{
	static const struct {
		const char *begin, *hint;
	} hints[] = {{"+-*/%", "there is no arithmetic"},
		     {"=", "to compare, write =="},
		     {"!", "write: … | not"},
		     {"&", "write: and"},
		     {",", "an expression is one value; several of them stand in [ ]"},
		     {"?", "there is no ?; a path into null is null"},
		     {"$", "there are no variables"},
		     {"@", "there are no formats"},
		     {"#", "there are no comments"},
		     {"'", "strings stand in double quotes"}};
	struct slice rest = slice_of(p->text.p + p->at, p->text.n - p->at);

	if (rest.n == 0)
		return refuse(p, p->at, "it ends too early");
	for (size_t i = 0; i < sizeof hints / sizeof hints[0]; i++)
		if (rest.p[0] && strchr(hints[i].begin, rest.p[0]))
			return refuse(p, p->at, "%s", hints[i].hint);
	return refuse(p, p->at, "this is not expected here: %s", excerpt_of(rest).text);
}

static bool expect(struct parser *p, const char *operator)
{
	if (!take(p, operator))
		(void)unexpected(p);
	return p->code == HX_OK;
}

static bool enter(struct parser *p)
{
	if (++p->depth > EXPRESSION_DEPTH_MAX)
		(void)refuse(p, p->at, "more than %d brackets are open", EXPRESSION_DEPTH_MAX);
	return p->code == HX_OK;
}

/* ---- nodes ---- */

static struct expression_node *node_new(struct parser *p, enum expression_op op, size_t start)
{
	struct expression_node *node = allocate(p, sizeof *node);

	if (node) {
		node->op = op;
		node->start = start;
	}
	return node;
}

static void append(struct expression_node *parent, struct expression_node *child)
{
	if (parent->last)
		parent->last->next = child;
	else
		parent->first = child;
	parent->last = child;
	parent->count++;
}

/* next { token next }, which is one node only where there is a token. */
static struct expression_node *parse_chain(struct parser *p, enum expression_op op, const char *token, parse_fn *next)
{
	struct expression_node *chain = NULL;

	(void)skip_space(p);

	size_t start = p->at;
	struct expression_node *child = next(p);

	while (child && take(p, token)) {
		chain = chain ? chain : node_new(p, op, start);
		if (!chain)
			return NULL;
		append(chain, child);
		child = next(p);
	}
	if (chain && child)
		append(chain, child);
	return chain && child ? chain : child;
}

static struct expression_node *literal_new(struct parser *p, size_t start, struct json value)
{
	struct expression_node *node = node_new(p, OP_LITERAL, start);

	if (node)
		node->literal = value;
	return node;
}

/* ---- literals ---- */

/* What json_check() says, without its "LINE:COLUMN: ". */
static bool check_literal(struct parser *p, size_t start, const char *what, struct json *ret_value)
{
	struct hx_error err = {0};

	if (json_check(since(p, start), &err, ret_value) == HX_OK)
		return true;

	const char *reason = strchr(err.detail, ' ');

	(void)refuse(p, start, "this is not a %s of JSON:%s", what, reason ? reason : "");
	return false;
}

static struct expression_node *parse_string(struct parser *p)
{
	size_t start = p->at;
	struct json value;
	struct expression_node *node;

	p->at = (size_t)(json_string_end(p->text.p + start, p->text.p + p->text.n) - p->text.p);
	if (!check_literal(p, start, "string", &value))
		return NULL;
	node = literal_new(p, start, value);
	if (!node)
		return NULL;
	node->name = json_string_decode(value, p->arena);
	if (p->arena->failed) {
		p->code = arena_error(p->arena, p->err);
		return NULL;
	}
	return node;
}

static bool take_number(struct parser *p, struct json *ret_value)
{
	size_t start = p->at;

	p->at += peek(p, 0) == '-';
	if (!is_digit(peek(p, 0))) {
		p->at = start;
		(void)unexpected(p);
		return false;
	}
	while (continues_name(peek(p, 0)) || peek(p, 0) == '.' ||
	       ((peek(p, 0) == '+' || peek(p, 0) == '-') && (p->text.p[p->at - 1] | 0x20) == 'e'))
		p->at++;
	return check_literal(p, start, "number", ret_value);
}

static struct expression_node *parse_number(struct parser *p)
{
	size_t start = p->at;
	struct json value;

	return take_number(p, &value) ? literal_new(p, start, value) : NULL;
}

/* ---- paths ---- */

/* Behind a dot: a name right at it, or a string. */
static bool take_step_name(struct parser *p, struct slice *ret_name)
{
	if (starts_name(peek(p, 0))) {
		*ret_name = take_name(p);
		return true;
	}
	if (skip_space(p) == '"') {
		const struct expression_node *string = parse_string(p);

		*ret_name = string ? string->name : slice_of(NULL, 0);
		return string;
	}
	if (peek(p, 0) == '[')
		(void)refuse(p, p->at, "write .a[0], without a dot in front of the bracket");
	else
		(void)refuse(p, p->at, "behind this dot a name is expected");
	return false;
}

static bool take_index(struct parser *p, int64_t *ret_index)
{
	size_t start = p->at;
	struct json number;

	if (!take_number(p, &number))
		return false;
	if (json_int64(number, NULL, ret_index) == HX_OK && *ret_index <= INDEX_MOST && *ret_index >= -INDEX_MOST)
		return true;
	(void)refuse(p, start, "an index is an integer of at most 31 bits");
	return false;
}

/* The opening bracket is behind us. */
static bool take_bracket_step(struct parser *p, struct expression_step *step)
{
	char c = skip_space(p);

	if (c == '"') {
		const struct expression_node *string = parse_string(p);

		if (!string)
			return false;
		step->name = string->name;
	} else if (c == '-' || is_digit(c)) {
		if (!take_index(p, &step->index))
			return false;
	} else {
		(void)refuse(p, p->at, "between these brackets a string or an integer is expected");
		return false;
	}
	if (take(p, "]"))
		return true;
	(void)refuse(p, p->at, "] is expected here; there is one string or integer between the brackets of a path");
	return false;
}

static struct expression_step *parse_step(struct parser *p)
{
	struct expression_step *step = allocate(p, sizeof *step);

	if (!step)
		return NULL;
	step->start = p->at;
	if (p->text.p[p->at++] == '.' ? !take_step_name(p, &step->name) : !take_bracket_step(p, step))
		return NULL;
	step->end = p->at;
	return step;
}

/* All steps that follow; base is NULL for `.`. Without any, the base itself. */
static struct expression_node *parse_steps(struct parser *p, struct expression_node *base, size_t start)
{
	const struct expression_step **tail;
	struct expression_node *path;
	char c = skip_space(p);

	if (c != '.' && c != '[')
		return base ? base : node_new(p, OP_DOT, start);
	path = node_new(p, OP_PATH, start);
	if (!path)
		return NULL;
	path->first = base;
	for (tail = &path->steps; c == '.' || c == '['; c = skip_space(p)) {
		struct expression_step *step = parse_step(p);

		if (!step)
			return NULL;
		*tail = step;
		tail = &step->next;
	}
	return path;
}

/* At the dot. It is the whole of `.`, or belongs to the first step: .a ."a" */
static struct expression_node *parse_dot(struct parser *p)
{
	size_t start = p->at++;

	if (is_digit(peek(p, 0)))
		return refuse(p, start, "a number begins with a digit");
	if (peek(p, 0) == '.') /* one token in jq, although `. .a` is a path */
		return refuse(p, start, "there is no ..");
	if (starts_name(peek(p, 0)) || skip_space(p) == '"')
		p->at = start;
	return parse_steps(p, /* base= */ NULL, start);
}

/* ---- brackets ---- */

static struct expression_node *parse_parentheses(struct parser *p)
{
	struct expression_node *inside;

	if (!expect(p, "(") || !enter(p))
		return NULL;
	inside = parse_pipe(p);
	p->depth--;
	return inside && expect(p, ")") ? inside : NULL;
}

static struct expression_node *parse_array(struct parser *p)
{
	struct expression_node *array = node_new(p, OP_ARRAY, p->at++);
	const struct expression_node *pipe = NULL;

	if (!array || !enter(p))
		return NULL;
	if (skip_space(p) != ']') {
		do {
			(void)skip_space(p);

			size_t start = p->at;
			struct expression_node *element = parse_pipe(p);

			if (!element)
				return NULL;
			/* One in parentheses begins behind them. */
			if (element->op == OP_PIPE && element->start == start)
				pipe = element;
			append(array, element);
		} while (take(p, ","));
	}
	p->depth--;
	if (pipe && array->count > 1)
		return refuse(p, pipe->start, "beside other elements, put what has a | into parentheses");
	return expect(p, "]") ? array : NULL;
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

static struct expression_node *parse_name_key(struct parser *p)
{
	size_t start = p->at;
	struct slice name = take_name(p);
	char *quoted = allocate(p, name.n + 2);
	struct expression_node *key;

	if (!quoted)
		return NULL;
	quoted[0] = quoted[name.n + 1] = '"';
	memcpy(quoted + 1, name.p, name.n);
	key = literal_new(p, start, json_trust(slice_of(quoted, name.n + 2)));
	if (key)
		key->name = name;
	return key;
}

static struct expression_node *parse_key(struct parser *p)
{
	char c = skip_space(p);
	size_t start = p->at;
	struct expression_node *key;

	if (starts_name(c))
		return parse_name_key(p);
	if (c == '"')
		return parse_string(p);
	if (c != '(')
		return refuse(p, start, "here the name of a member is expected");
	key = parse_parentheses(p);
	if (key && key->op == OP_LITERAL && json_type(key->literal) != JSON_STRING)
		return refuse(p, start, "the name of a member is a string");
	return key;
}

static bool is_written(const struct expression_node *key)
{
	return key->op == OP_LITERAL;
}

/* {sku} is {sku: .sku} */
static struct expression_node *shorthand(struct parser *p, const struct expression_node *key)
{
	struct expression_node *path;
	struct expression_step *step;
	bool quoted = p->text.p[key->start] == '"';

	if (!quoted && is_keyword(key->name))
		return refuse(p, key->start, "this is a word of jq; write {\"%s\": …}", excerpt_of(key->name).text);
	path = node_new(p, OP_PATH, key->start);
	step = allocate(p, sizeof *step);
	if (!path || !step)
		return NULL;
	step->name = key->name;
	step->start = key->start;
	step->end = key->start + (quoted ? key->literal.raw.n : key->name.n);
	path->steps = step;
	return path;
}

static struct expression_node *parse_member_value(struct parser *p)
{
	struct expression_node *value = parse_chain(p, OP_PIPE, "|", parse_term);
	char c = skip_space(p);

	if (!value || c == ',' || c == '}')
		return value;
	if (c == '/' || c == '=' || c == '!' || c == '<' || c == '>' || c == 'a' || c == 'o')
		return refuse(p, p->at, "in an object a value with an operator stands in parentheses: {a: (.b == 1)}");
	return unexpected(p);
}

static bool take_member(struct parser *p, struct expression_node *object)
{
	bool in_parentheses = skip_space(p) == '(';
	struct expression_node *key = parse_key(p);
	struct expression_node *value;

	if (!key)
		return false;
	for (const struct expression_node *other = object->first; other && is_written(key); other = other->next) {
		if (!is_written(other->key) || !slice_eq(other->key->name, key->name))
			continue;
		(void)refuse(p, key->start, "the name \"%s\" is there already", excerpt_of(key->name).text);
		return false;
	}
	if (take(p, ":"))
		value = parse_member_value(p);
	else
		value = in_parentheses ? unexpected(p) : shorthand(p, key);
	if (!value)
		return false;
	value->key = key;
	object->keys_computed |= !is_written(key);
	append(object, value);
	return true;
}

static struct expression_node *parse_object(struct parser *p)
{
	struct expression_node *object = node_new(p, OP_OBJECT, p->at++);

	if (!object || !enter(p))
		return NULL;
	if (skip_space(p) != '}') {
		do {
			if (!take_member(p, object))
				return NULL;
		} while (take(p, ","));
	}
	p->depth--;
	return expect(p, "}") ? object : NULL;
}

/* ---- the rest of the grammar ---- */

static struct expression_node *parse_has(struct parser *p, size_t start)
{
	struct expression_node *has = node_new(p, OP_HAS, start);
	struct expression_node *name = has ? parse_parentheses(p) : NULL;

	if (!name)
		return NULL;
	append(has, name);
	return has;
}

static struct expression_node *parse_word(struct parser *p)
{
	static const char *const words[] = {"true", "false", "null", "not", "length", "has", "and", "or", NULL};
	size_t start = p->at;
	struct slice word = take_name(p);
	const char *nearest;

	if (slice_is(word, "true") || slice_is(word, "false") || slice_is(word, "null"))
		return literal_new(p, start, json_trust(word));
	if (slice_is(word, "not"))
		return node_new(p, OP_NOT, start);
	if (slice_is(word, "length"))
		return node_new(p, OP_LENGTH, start);
	if (slice_is(word, "has"))
		return parse_has(p, start);
	if (slice_is(word, "and") || slice_is(word, "or"))
		return refuse(p, start, "there is no value in front of this %s", excerpt_of(word).text);
	nearest = nearest_name(word, words);
	return refuse(p, start, "there is no \"%s\" here; did you mean %s%s.%s?", excerpt_of(word).text,
		      nearest ? nearest : "", nearest ? ", or " : "", excerpt_of(word).text);
}

static struct expression_node *parse_base(struct parser *p)
{
	char c = peek(p, 0);

	switch (c) {
	case '"':
		return parse_string(p);
	case '(':
		return parse_parentheses(p);
	case '[':
		return parse_array(p);
	case '{':
		return parse_object(p);
	default:
		if (is_digit(c) || c == '-')
			return parse_number(p);
		return starts_name(c) ? parse_word(p) : unexpected(p);
	}
}

static struct expression_node *parse_term(struct parser *p)
{
	char c = skip_space(p);
	size_t start = p->at;
	struct expression_node *base;

	if (c == '.')
		return parse_dot(p);
	base = parse_base(p);
	return base ? parse_steps(p, base, start) : NULL;
}

/* OP_DOT where there is none. */
static enum expression_op take_comparison(struct parser *p)
{
	static const struct {
		const char *token;
		enum expression_op op;
	} comparisons[] = {{"==", OP_EQ}, {"!=", OP_NE}, {"<=", OP_LE}, {">=", OP_GE}, {"<", OP_LT}, {">", OP_GT}};

	for (size_t i = 0; i < sizeof comparisons / sizeof comparisons[0]; i++)
		if (take(p, comparisons[i].token))
			return comparisons[i].op;
	return OP_DOT;
}

static struct expression_node *parse_comparison(struct parser *p)
{
	struct expression_node *left = parse_term(p);
	enum expression_op op = left ? take_comparison(p) : OP_DOT;

	if (op == OP_DOT)
		return left;

	struct expression_node *comparison = node_new(p, op, left->start);
	struct expression_node *right = comparison ? parse_term(p) : NULL;

	if (!right)
		return NULL;
	append(comparison, left);
	append(comparison, right);

	size_t behind = p->at;

	if (take_comparison(p) != OP_DOT)
		return refuse(p, behind, "a comparison of a comparison needs parentheses");
	return comparison;
}

static struct expression_node *parse_and(struct parser *p)
{
	return parse_chain(p, OP_AND, "and", parse_comparison);
}

static struct expression_node *parse_or(struct parser *p)
{
	return parse_chain(p, OP_OR, "or", parse_and);
}

static struct expression_node *parse_alternative(struct parser *p)
{
	return parse_chain(p, OP_ALTERNATIVE, "//", parse_or);
}

static struct expression_node *parse_pipe(struct parser *p)
{
	return parse_chain(p, OP_PIPE, "|", parse_alternative);
}

static const struct expression_node *parse_all(struct parser *p)
{
	const struct expression_node *root = parse_pipe(p);

	if (root && skip_space(p) != '\0')
		return unexpected(p);
	if (root && p->at < p->text.n)
		return refuse(p, p->at, "there is a NUL in it");
	return root;
}

enum hx_code expression_parse(struct slice text, struct arena *a, struct hx_error *err, const struct expression **ret)
{
	size_t valid = utf8_valid_bytes(text);
	struct expression *expression;
	struct parser p = {.arena = a, .err = err, .code = HX_OK};

	if (text.n > EXPRESSION_BYTES_MAX)
		return error_set(err, HX_TOO_LARGE, "it has %zu bytes; an expression has at most %d", text.n,
				 EXPRESSION_BYTES_MAX);
	p.text = arena_copy(a, text);
	expression = p.text.p ? arena_zalloc(a, sizeof *expression) : NULL;
	if (!expression)
		return arena_error(a, err);
	if (valid < text.n)
		(void)refuse(&p, valid, "this is not UTF-8");
	else
		expression->root = parse_all(&p);
	expression->text = p.text;
	ASSERT((expression->root != NULL) == (p.code == HX_OK));
	if (p.code == HX_OK)
		*ret = expression;
	return p.code;
}

/* ---- the roots ---- */

/* Asked for each path that begins at the environment; the first that is not HX_OK ends the walk. */
struct visitor {
	const struct expression *expression;
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
		/* What comes behind a pipe sees the value in front of it. */
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
	static const char *const roots[] = EXPRESSION_ROOTS;
	size_t column = expression_column(v->expression->text, first->start);

	if (!first->name.p)
		return error_set(v->err, HX_VALIDATION_ERROR, "column %zu: a path begins with .input, .state or .steps",
				 column);
	for (size_t i = 0; roots[i]; i++)
		if (slice_is(first->name, roots[i]))
			return HX_OK;
	return error_set(v->err, HX_VALIDATION_ERROR, "column %zu: there is no .%s%s", column,
			 excerpt_of(first->name).text, nearest_words(first->name, roots, ".", "").text);
}

enum hx_code expression_check_roots(const struct expression *expression, struct hx_error *err)
{
	struct visitor v = {.expression = expression, .path = check_root, .err = err};

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
