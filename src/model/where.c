/*
 * The parser of conditions: recursive descent over the tokens of expression_scan.h, one function for each line of the grammar in
 * where.h. A function begins at the next token, returns the node and stands after it, or returns NULL after scan_refuse() has
 * said why. What a literal is compared with is known where it stands, so it is made ready there: where_holds() converts nothing.
 */
#include "model/where.h"

#include "base/clock.h"
#include "base/excerpt.h"
#include "base/id.h"
#include "base/json_string.h"
#include "base/utf8.h"
#include "model/expression_scan.h"
#include "model/nearest.h"
#include "model/where_tree.h"

struct where_field {
	const char *name;
	enum where_type type;
	size_t member;
	bool steady;
	const char *prefix; /* of an id */
};

/* clang-format off */
/* X(name, type, member, steady, prefix of an id) */
#define FIELDS_OF_RUNS(X) \
	X("status",      STRING, status,       true,  NULL) \
	X("workflow",    STRING, workflow,     true,  NULL) \
	X("key",         STRING, key,          true,  NULL) \
	X("requester",   STRING, requester,    true,  NULL) \
	X("createdAt",   TIME,   created_at,   true,  NULL) \
	X("startedAt",   TIME,   started_at,   false, NULL) \
	X("completedAt", TIME,   completed_at, false, NULL) \
	X("updatedAt",   TIME,   updated_at,   false, NULL) \
	X("id",          ID,     id,           true,  "run") \
	X("parent",      ID,     parent,       true,  "run")
#define FIELDS_OF_ENTITIES(X) \
	X("status",      STRING, status,       true,  NULL) \
	X("workflow",    STRING, workflow,     true,  NULL) \
	X("id",          STRING, name,         true,  NULL) \
	X("createdAt",   TIME,   created_at,   true,  NULL) \
	X("updatedAt",   TIME,   updated_at,   false, NULL) \
	X("held",        BOOL,   held,         false, NULL)
#define FIELDS_OF_BATCHES(X) \
	X("status",      STRING, status,       true,  NULL) \
	X("workflow",    STRING, workflow,     true,  NULL) \
	X("key",         STRING, key,          true,  NULL) \
	X("account",     STRING, account,      true,  NULL) \
	X("createdAt",   TIME,   created_at,   true,  NULL) \
	X("completedAt", TIME,   completed_at, false, NULL) \
	X("updatedAt",   TIME,   updated_at,   false, NULL) \
	X("id",          ID,     id,           true,  "batch") \
	X("total",       NUMBER, total,        false, NULL)
#define FIELDS_OF_JOBS(X) \
	X("status",      STRING, status,       true,  NULL) \
	X("queue",       STRING, queue,        true,  NULL) \
	X("workflow",    STRING, workflow,     true,  NULL) \
	X("key",         STRING, key,          true,  NULL) \
	X("updatedAt",   TIME,   updated_at,   false, NULL) \
	X("id",          ID,     id,           true,  "job")
#define FIELD(name, type, member, steady, prefix) {name, WHERE_##type, offsetof(struct where_subject, member), steady, prefix},
#define NAME(name, ...) name,
/* clang-format on */

#define KIND(FIELDS)                                                                                                   \
	{                                                                                                              \
		(const struct where_field[]){FIELDS(FIELD){0}}, (const char *const[])                                  \
		{                                                                                                      \
			FIELDS(NAME) NULL                                                                              \
		}                                                                                                      \
	}

static const struct {
	const struct where_field *fields;
	const char *const *names;
} kinds[] = {
	[WHERE_RUN] = KIND(FIELDS_OF_RUNS),
	[WHERE_ENTITY] = KIND(FIELDS_OF_ENTITIES),
	[WHERE_BATCH] = KIND(FIELDS_OF_BATCHES),
	[WHERE_JOB] = KIND(FIELDS_OF_JOBS),
};

static const char *const words[] = {"and", "or", "not", "in", "startswith", "true", "false", "null", NULL};

struct where_parser {
	struct expression_scan s;
	const struct where_names *names;
	struct where_test *tests; /* room for all */
	size_t tests_n;
	size_t listed; /* values in lists so far */
};

const char *const *where_field_names(enum where_kind kind)
{
	return kinds[kind].names;
}

bool where_is_reserved(enum where_kind kind, struct slice name)
{
	return slice_in(name, kinds[kind].names) || slice_in(name, words);
}

static const struct where_field *where_field_of(enum where_kind kind, struct slice name)
{
	const struct where_field *field = kinds[kind].fields;

	while (field->name && !slice_is(name, field->name))
		field++;
	return field->name ? field : NULL;
}

/* ---- values ---- */

static struct slice sortable_kept(struct where_parser *p, size_t start, struct json literal)
{
	LOCAL_STRBUF(text, SORTABLE_BYTES_MAX);
	struct slice kept = {NULL, 0};

	if (sortable_of(literal, &text)) {
		kept = arena_copy(p->s.arena, strbuf_slice(&text));
		if (!kept.p)
			p->s.code = arena_error(p->s.arena, p->s.err);
	} else if (text.failed) {
		p->s.code = strbuf_error(&text, p->s.err);
	} else if (json_type(literal) == JSON_STRING) {
		(void)scan_refuse(&p->s, start, "a string has at most %d characters, and none of them is U+0000",
				  SORTABLE_CHARS_MAX);
	} else {
		(void)scan_refuse(&p->s, start, "a number has at most %d digits", SORTABLE_DIGITS_MAX);
	}
	return kept;
}

static bool take_time(struct where_parser *p, size_t start, const struct where_test *test, struct slice text,
		      struct where_value *value)
{
	struct wall_time time = {0};

	if (test->op == WHERE_STARTS)
		return scan_refuse(&p->s, start, "%s is a time, and begins with nothing", excerpt_of(test->name).text);
	if (!text.p || wall_time_parse("time", text, NULL, &time) != HX_OK)
		return scan_refuse(&p->s, start, "%s is a time: \"2026-11-15T05:39:00Z\", or null",
				   excerpt_of(test->name).text);
	value->number = time.ms ? time.ms : 1; /* 0 is null, and nothing here is of that millisecond */
	return true;
}

static bool take_id(struct where_parser *p, size_t start, const struct where_test *test, struct slice text,
		    const char *prefix, struct where_value *value)
{
	if (test->op == WHERE_STARTS)
		return scan_refuse(&p->s, start, "an id is compared as a whole");
	if (!text.p || !id_parse(prefix, text, &value->number))
		return scan_refuse(&p->s, start, "%s is an id: \"%s_…\", or null", excerpt_of(test->name).text, prefix);
	return true;
}

/* A status that is compared as a whole must be one that there is: a condition that is never true was not meant. */
static bool check_status(struct where_parser *p, size_t start, const struct where_test *test, struct slice text)
{
	const char *const *statuses = p->names->statuses;

	if (!statuses || (text.p && slice_in(text, statuses)) || test->type != WHERE_STRING ||
	    !slice_is(test->name, "status") || (test->op != WHERE_EQ && test->op != WHERE_NE && test->op != WHERE_IN))
		return true;
	return scan_refuse(&p->s, start, "there is no such status%s", nearest_words(text, statuses, "\"", "\"").text);
}

/* Can it be said of this test at all? */
static bool check_literal_type(struct where_parser *p, size_t start, enum where_op op, enum json_type type)
{
	if (op == WHERE_STARTS && type != JSON_STRING)
		return scan_refuse(&p->s, start, "after startswith a string is expected");
	if (op >= WHERE_LT && op <= WHERE_GE && type != JSON_STRING && type != JSON_NUMBER)
		return scan_refuse(&p->s, start, "nothing is less or greater than %s", json_type_name(type));
	return true;
}

static bool take_literal(struct where_parser *p, size_t start, const struct where_test *test, struct json literal,
			 struct where_value *value)
{
	const struct where_field *field = where_field_of(p->names->kind, test->name);
	enum json_type type = json_type(literal);
	struct slice text = {NULL, 0};

	if (!check_literal_type(p, start, test->op, type))
		return false;
	if (type == JSON_STRING) {
		text = json_string_decode(literal, p->s.arena);
		if (!text.p) {
			p->s.code = arena_error(p->s.arena, p->s.err);
			return false;
		}
	}
	if (!check_status(p, start, test, text))
		return false;
	if (type == JSON_NULL)
		return true;
	if (test->type == WHERE_TIME)
		return take_time(p, start, test, text, value);
	if (test->type == WHERE_ID)
		return take_id(p, start, test, text, field->prefix, value);
	value->sortable = sortable_kept(p, start, literal);
	return p->s.code == HX_OK;
}

/* A string, a number or one of three words; *ret_start is where it begins. */
static bool where_take_value(struct where_parser *p, size_t *ret_start, struct json *ret_literal)
{
	static const char *const constants[] = {"true", "false", "null", NULL};
	char c = scan_space(&p->s);

	*ret_start = p->s.at;
	if (c == '"')
		return scan_string(&p->s, ret_literal);
	if (c == '-' || scan_is_digit(c))
		return scan_number(&p->s, ret_literal);
	if (scan_starts_name(c)) {
		struct slice word = scan_name(&p->s);

		if (slice_in(word, constants)) {
			*ret_literal = json_trust(word);
			return true;
		}
		return scan_refuse(&p->s, *ret_start, "a value is expected here; strings stand in double quotes");
	}
	if (c == '\'')
		return scan_refuse(&p->s, *ret_start, "strings stand in double quotes");
	return scan_refuse(&p->s, *ret_start, "a value is expected here: a string, a number, true, false or null");
}

static bool where_add_value(struct where_parser *p, const struct where_test *test, struct where_value *value)
{
	struct json literal;
	size_t start;

	return where_take_value(p, &start, &literal) && take_literal(p, start, test, literal, value);
}

static bool take_one(struct where_parser *p, struct where_test *test)
{
	struct where_value *value = scan_alloc(&p->s, sizeof *value);

	if (!value)
		return false;
	test->values = value;
	test->values_n = 1;
	return where_add_value(p, test, value);
}

static bool take_list(struct where_parser *p, struct where_test *test)
{
	size_t room = WHERE_VALUES_MAX - p->listed;
	struct where_value *values;

	if (!scan_take(&p->s, "["))
		return scan_refuse(&p->s, p->s.at, "after in a list is expected: [\"a\", \"b\"]");
	values = scan_alloc(&p->s, (room ? room : 1) * sizeof *values);
	if (!values)
		return false;
	test->values = values;
	do {
		if (p->listed++ == WHERE_VALUES_MAX)
			return scan_refuse(&p->s, p->s.at, "there are at most %d values in all lists",
					   WHERE_VALUES_MAX);
		if (!where_add_value(p, test, &values[test->values_n++]))
			return false;
	} while (scan_take(&p->s, ","));
	if (!scan_take(&p->s, "]"))
		return scan_refuse(&p->s, p->s.at, "a comma or ] is expected here");
	return true;
}

/* ---- tests ---- */

static bool take_op(struct where_parser *p, enum where_op *ret_op)
{
	static const struct {
		const char *token;
		enum where_op op;
	} ops[] = {{"==", WHERE_EQ},
		   {"!=", WHERE_NE},
		   {"<=", WHERE_LE},
		   {">=", WHERE_GE},
		   {"<", WHERE_LT},
		   {">", WHERE_GT},
		   {"startswith", WHERE_STARTS},
		   {"in", WHERE_IN}};

	for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++) {
		if (!scan_take(&p->s, ops[i].token))
			continue;
		*ret_op = ops[i].op;
		return true;
	}
	if (scan_peek(&p->s, 0) == '=')
		return scan_refuse(&p->s, p->s.at, "== is meant");
	if (scan_take(&p->s, "not"))
		return scan_refuse(&p->s, p->s.at - 3, "not stands in front: not x in […]");
	return scan_refuse(&p->s, p->s.at, "after a name one of == != < <= > >= startswith in is expected");
}

static bool where_take_name(struct where_parser *p, struct where_test *test)
{
	char c = scan_space(&p->s);
	const struct where_field *field;

	test->at = p->s.at;
	test->name = scan_name(&p->s);
	if (c == '"' || c == '-' || scan_is_digit(c) || slice_in(test->name, words + 5))
		return scan_refuse(&p->s, test->at, "the name stands at the left, the value at the right");
	if (!test->name.n || slice_in(test->name, words)) {
		p->s.at = test->at;
		if (c == '\0' && p->s.at == p->s.text.n)
			return scan_refuse(&p->s, test->at, "it ends too early");
		return scan_refuse(&p->s, test->at, "the name of a field or an attribute is expected here");
	}
	field = where_field_of(p->names->kind, test->name);
	if (field) {
		test->type = field->type;
		test->steady = field->steady;
		test->member = field->member;
	}
	return true;
}

static struct where_node *node_new(struct where_parser *p, enum where_node_op op)
{
	struct where_node *node = scan_alloc(&p->s, sizeof *node);

	if (node)
		node->op = op;
	return node;
}

static struct where_node *parse_test(struct where_parser *p)
{
	struct where_node *node = node_new(p, WHERE_TEST);

	if (!node)
		return NULL;
	if (p->tests_n == WHERE_TESTS_MAX)
		return scan_refuse(&p->s, p->s.at, "there are at most %d tests", WHERE_TESTS_MAX);

	struct where_test *test = &p->tests[p->tests_n++];

	node->test = test;
	if (!where_take_name(p, test) || !take_op(p, &test->op))
		return NULL;
	return (test->op == WHERE_IN ? take_list(p, test) : take_one(p, test)) ? node : NULL;
}

/* ---- the tree ---- */

typedef struct where_node *parse_fn(struct where_parser *p);

static parse_fn parse_or;

static bool where_enter(struct where_parser *p)
{
	if (++p->s.depth > WHERE_DEPTH_MAX)
		(void)scan_refuse(&p->s, p->s.at, "more than %d brackets and nots are open", WHERE_DEPTH_MAX);
	return p->s.code == HX_OK;
}

static struct where_node *parse_not(struct where_parser *p)
{
	bool is_not = scan_take(&p->s, "not");
	struct where_node *inside, *node;

	if (!is_not && !scan_take(&p->s, "("))
		return parse_test(p);
	if (!where_enter(p))
		return NULL;
	inside = is_not ? parse_not(p) : parse_or(p);
	p->s.depth--;
	if (!inside)
		return NULL;
	if (!is_not)
		return scan_take(&p->s, ")") ? inside : scan_refuse(&p->s, p->s.at, "and, or or ) is expected here");
	node = node_new(p, WHERE_NOT);
	if (node)
		node->first = inside;
	return node;
}

/* next { token next }, which is one node only where there is a token. */
static struct where_node *parse_chain(struct where_parser *p, enum where_node_op op, const char *token, parse_fn *next)
{
	struct where_node *first = next(p), *last = first, *chain = NULL;

	while (last && scan_take(&p->s, token)) {
		chain = chain ? chain : node_new(p, op);
		if (!chain)
			return NULL;
		chain->first = first;
		last = last->next = next(p);
	}
	return chain && last ? chain : last;
}

static struct where_node *parse_and(struct where_parser *p)
{
	return parse_chain(p, WHERE_AND, "and", parse_not);
}

static struct where_node *parse_or(struct where_parser *p)
{
	return parse_chain(p, WHERE_OR, "or", parse_and);
}

static struct where_node *parse_all(struct where_parser *p)
{
	struct where_node *root;

	if (p->s.text.n > WHERE_BYTES_MAX)
		return scan_refuse(&p->s, 0, "it has more than %d bytes", WHERE_BYTES_MAX);
	if (utf8_valid_bytes(p->s.text) != p->s.text.n)
		return scan_refuse(&p->s, utf8_valid_bytes(p->s.text), "this is not UTF-8");
	root = parse_or(p);
	if (!root)
		return NULL;
	if (scan_space(&p->s) && (scan_peek(&p->s, 0) == '&' || scan_peek(&p->s, 0) == '|'))
		return scan_refuse(&p->s, p->s.at, "write: and, or");
	if (p->s.at != p->s.text.n)
		return scan_refuse(&p->s, p->s.at, "and or or is expected here");
	return root;
}

enum hx_code where_parse(struct slice text, const struct where_names *names, struct arena *arena, struct hx_error *err,
			 size_t *ret_column, const struct where **ret)
{
	struct where_parser p = {.s = {.text = text, .arena = arena, .err = err}, .names = names};
	struct where *where = scan_alloc(&p.s, sizeof *where);
	struct where_node *root = NULL;

	p.tests = where ? scan_alloc(&p.s, WHERE_TESTS_MAX * sizeof *p.tests) : NULL;
	if (p.tests)
		root = parse_all(&p);
	if (p.s.code == HX_VALIDATION_ERROR) {
		p.s.code = HX_BAD_QUERY;
		if (err)
			err->code = HX_BAD_QUERY;
		if (ret_column)
			*ret_column = expression_column(text, p.s.refused_at);
	}
	if (p.s.code != HX_OK)
		return p.s.code;
	*where = (struct where){
		.kind = names->kind, .text = text, .tests = p.tests, .tests_n = p.tests_n, .root = root};
	*ret = where;
	return HX_OK;
}

/* ---- what it names ---- */

const struct where_test *where_unknown(const struct where *where, const char *const *known, size_t *at)
{
	while (*at < where->tests_n) {
		const struct where_test *test = &where->tests[(*at)++];

		if (test->type == WHERE_ATTRIBUTE && !slice_in(test->name, known))
			return test;
	}
	return NULL;
}

enum hx_code where_refuse_name(const struct where *where, const struct where_test *test, const char *const *known,
			       struct hx_error *err, size_t *ret_column)
{
	const char *const *fields = kinds[where->kind].names;
	size_t fields_n = 0, known_n = 0, column = expression_column(where->text, test->at);

	while (fields[fields_n])
		fields_n++;
	while (known[known_n])
		known_n++;

	LOCAL_ARENA(scratch, (fields_n + known_n + 2) * sizeof *known);
	const char **all = arena_zalloc(&scratch, (fields_n + known_n + 1) * sizeof *all);

	if (!all)
		return arena_error(&scratch, err);
	memcpy(all, fields, fields_n * sizeof *all);
	memcpy(all + fields_n, known, known_n * sizeof *all);
	if (ret_column)
		*ret_column = column;
	return error_set(err, HX_BAD_QUERY, "column %zu: there is no field or attribute \"%s\"%s", column,
			 excerpt_of(test->name).text, nearest_words(test->name, all, "\"", "\"").text);
}
