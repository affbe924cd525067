/* See limits.h. */
#include "model/limits.h"

#include <string.h>

#include "base/json_canonical.h"

#define KEY_BYTES_MAX (2u << 20)

static const char *const roots[] = {"input", NULL}, *const roots_of_job[] = {"payload", NULL};

static void read_by_of_job(const struct reader *r, const struct json_node *node, const struct field *field, void *ret)
{
	reader_expression(r, node, field->name, roots_of_job, ret);
}

static void read_by(const struct reader *r, const struct json_node *node, const struct field *field, void *ret)
{
	reader_expression(r, node, field->name, roots, ret);
}

#define FIELD_BY_OF(S, read) FIELD_OWN_AT(S, by, const struct expression *, read)
#define FIELD_BY(S) FIELD_BY_OF(S, read_by)

/* clang-format off */
#define CONCURRENCY(read)                                                                                              \
	{"by",  FIELD_BY_OF(struct limit_concurrency, read)},                                                          \
	{"max", FIELD_INT(struct limit_concurrency, max, 1, LIMIT_MAX), .required = true},                             \
	{0}

#define RATE(read)                                                                                                     \
	{"by",  FIELD_BY_OF(struct limit_rate, read)},                                                                 \
	{"max", FIELD_INT(struct limit_rate, max, 1, LIMIT_MAX), .required = true},                                    \
	{"per", FIELD_DURATION(struct limit_rate, per_ms), .required = true},                                          \
	{0}

static const struct field concurrency_fields[] = {CONCURRENCY(read_by)}, queue_concurrency_fields[] = {CONCURRENCY(read_by_of_job)};
static const struct field rate_fields[] = {RATE(read_by)}, queue_rate_fields[] = {RATE(read_by_of_job)};

static const struct field singleton_fields[] = {
	{"by",  FIELD_BY(struct limit_singleton)},
	{0}};
/* clang-format on */

/* An object without members is one. */
static void read_singleton(const struct reader *r, const struct json_node *node, const struct field *field, void *ret)
{
	struct limit_singleton *singleton = ret;

	singleton->set = fields_object(r, node, field->name, singleton_fields, singleton);
}

/* clang-format off */
static const struct field debounce_fields[] = {
	{"by",      FIELD_BY(struct limit_debounce)},
	{"for",     FIELD_DURATION(struct limit_debounce, for_ms), .required = true},
	{"at_most", FIELD_DURATION(struct limit_debounce, at_most_ms)},
	{0}};
/* clang-format on */

static void read_debounce(const struct reader *r, const struct json_node *node, const struct field *field, void *ret)
{
	struct limit_debounce *debounce = ret;

	if (fields_object(r, node, field->name, debounce_fields, debounce) && debounce->at_most_ms &&
	    debounce->at_most_ms < debounce->for_ms)
		reader_report(r, node->at.line, "value", "debounce: \"at_most\" is shorter than \"for\"");
}

/* Of what it is a limit. */
#define OF_WORKFLOW 1u
#define OF_CALLS 2u /* of an action, or of a queue */

/* clang-format off */
static const struct field limits_fields[] = {
	{"concurrency", FIELD_OBJECT(struct limits, concurrency, concurrency_fields)},
	{"rate",        FIELD_OBJECT(struct limits, rate, rate_fields)},
	{"singleton",   .of = OF_WORKFLOW, FIELD_OWN_AT(struct limits, singleton, struct limit_singleton, read_singleton)},
	{"debounce",    .of = OF_WORKFLOW, FIELD_OWN_AT(struct limits, debounce, struct limit_debounce, read_debounce)},
	{0}};

static const struct field queue_limits_fields[] = {
	{"concurrency", FIELD_OBJECT(struct limits, concurrency, queue_concurrency_fields)},
	{"rate",        FIELD_OBJECT(struct limits, rate, queue_rate_fields)},
	{"singleton",   .of = OF_WORKFLOW, FIELD_OWN_AT(struct limits, singleton, struct limit_singleton, read_singleton)},
	{"debounce",    .of = OF_WORKFLOW, FIELD_OWN_AT(struct limits, debounce, struct limit_debounce, read_debounce)},
	{0}};
/* clang-format on */

static bool is_same(const struct expression *a, const struct expression *b)
{
	return a && b ? slice_eq(expression_text(a), expression_text(b)) : a == b;
}

void limits_read(const struct reader *r, const struct json_node *node, const struct field *field, void *ret)
{
	const struct limits *limits = ret;

	(void)fields_object(r, node, field->name, limits_fields, ret); /* what is wrong with it is reported */
	/* A start that replaces the input of a run must not make it one of another singleton. */
	if (limits->singleton.set && limits->debounce.for_ms && !is_same(limits->singleton.by, limits->debounce.by))
		reader_report(r, node->at.line, "value",
			      "limits: \"singleton\" and \"debounce\" of one workflow have the same \"by\"");
}

static void refuse_of_calls(const struct reader *r, const struct json_node *member, const struct field *misplaced,
			    unsigned of, const char *const *fitting)
{
	if (misplaced)
		reader_report(
			r, member->name_at.line, "value",
			"limits: \"%s\" is about starts of runs; actions and queues have \"concurrency\" and \"rate\"",
			misplaced->name);
	else
		field_refuse(r, member, misplaced, of, fitting);
}

static void read_of_calls(const struct reader *r, const struct json_node *node, const struct field *field,
			  const struct field fields[], void *ret)
{
	if (!reader_object(r, node, field->name))
		return;
	fields_check(r, node, fields, OF_CALLS, refuse_of_calls);
	fields_take(r, node, fields, OF_CALLS, ret);
}

void limits_read_of_action(const struct reader *r, const struct json_node *node, const struct field *field, void *ret)
{
	if (strcmp(r->kind, "batch") == 0) {
		reader_report(
			r, node->at.line, "value",
			"limits: actions of a batch have none; how many of its items are under way says its \"concurrency\"");
		return;
	}
	read_of_calls(r, node, field, limits_fields, ret);
}

void limits_read_of_queue(const struct reader *r, const struct json_node *node, const struct field *field, void *ret)
{
	read_of_calls(r, node, field, queue_limits_fields, ret);
}

static bool make_key(const struct expression *by, const struct expression_env *env, struct arena *arena,
		     struct strbuf *ret_key)
{
	LOCAL_STRBUF(value, KEY_BYTES_MAX / 2);

	return !expression_eval(by, env, arena, /* err= */ &(struct hx_error){0}, &value) &&
	       !json_canonical(json_trust(strbuf_slice(&value)), arena, /* err= */ NULL, ret_key);
}

static struct slice key_of(const struct expression *by, const struct expression_env *env, struct arena *arena)
{
	LOCAL_STRBUF(key, KEY_BYTES_MAX);

	if (!by || !make_key(by, env, arena, &key))
		return arena_copy(arena, slice_str("null"));
	return arena_copy(arena, strbuf_slice(&key));
}

struct slice limit_key(const struct expression *by, struct json input, struct arena *arena)
{
	struct json none = json_trust(slice_str("{}"));

	return key_of(by, &(struct expression_env){.input = input, .state = none, .steps = none}, arena);
}

struct slice limit_key_of_job(const struct expression *by, struct json payload, struct arena *arena)
{
	LOCAL_STRBUF(whole, KEY_BYTES_MAX);

	strbuf_add_str(&whole, "{\"payload\":");
	strbuf_add_slice(&whole, payload.raw);
	strbuf_add_char(&whole, '}');
	return key_of(whole.failed ? NULL : by, &(struct expression_env){.whole = json_trust(strbuf_slice(&whole))},
		      arena);
}
