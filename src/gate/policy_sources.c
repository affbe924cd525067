/*
 * See policy_sources.h. `key` and `header` together are refused: both say where the key is. What is read out of a token
 * that nobody has verified is a warning at each start: whoever can make up a token chooses that value.
 */
#include "gate/policy_sources.h"

#include <stdio.h>

#include "base/json_pointer.h"
#include "model/header.h"

void policy_refuse(const struct reader *r, const struct json_node *node, const char *what, const char *wanted)
{
	reader_report(r, node->at.line, "value", "%s is %s; it must be %s", what, excerpt_of(node->value.raw).text,
		      wanted);
}

/* False: it is none, which has been reported. */
static bool read_source(const struct reader *r, const struct json_node *node, const char *what, const char *wanted,
			struct gate_source *ret_source)
{
	if (node->type != JSON_STRING || !gate_source_parse(node->string, r->arena, ret_source)) {
		policy_refuse(r, node, what, wanted);
		return false;
	}
	if (ret_source->kind == GATE_SOURCE_JWT)
		reader_warn(
			r, node->at.line, "token",
			"%s is %s: the gate reads the token and does not verify it. Whoever can make one up chooses "
			"this value, unless something in front of the gate refuses it",
			what, excerpt_of(node->string).text);
	return true;
}

void policy_read_header(const struct reader *r, const struct json_node *node, const struct field *field, void *ret)
{
	struct gate_policy *p = ret;
	char text[HEADER_BYTES_MAX + 8];
	int n;

	if (!reader_string(r, node, field->name))
		return;
	if (!header_name_is_token(node->string)) {
		policy_refuse(r, node, field->name, "the name of a header");
		return;
	}
	n = snprintf(text, sizeof text, "header:%.*s", SLICE_ARGS(node->string));
	if (gate_source_parse(slice_of(text, (size_t)n), r->arena, &p->key[0]))
		p->key_n = 1;
}

void policy_read_key(const struct reader *r, const struct json_node *node, const struct field *field, void *ret)
{
	static const char wanted[] = GATE_SOURCE_FORMS ", or an array of these";
	struct gate_policy *p = ret;
	size_t n = 0;

	if (node->type != JSON_ARRAY) {
		if (read_source(r, node, field->name, wanted, &p->key[0]))
			p->key_n = 1;
		return;
	}
	if (!reader_array(r, node, field->name, 1, GATE_KEY_PARTS_MAX))
		return;
	json_node_for_each(part, node) n += read_source(r, part, "a part of key", GATE_SOURCE_FORMS, &p->key[n]);
	p->key_n = n ? n : p->key_n;
}

/* null: none, for a route of a file that has one. */
void policy_read_tenant(const struct reader *r, const struct json_node *node, const struct field *field, void *ret)
{
	struct gate_policy *p = ret;

	if (node->type == JSON_NULL)
		p->tenant = (struct gate_source){0};
	else
		(void)read_source(r, node, field->name, GATE_SOURCE_FORMS, &p->tenant);
}

/* null: callers are not compared, knowingly. */
void policy_read_caller(const struct reader *r, const struct json_node *node, const struct field *field, void *ret)
{
	struct gate_policy *p = ret;

	if (node->type == JSON_NULL)
		p->any_caller = true;
	else if (read_source(r, node, field->name, "null, " GATE_SOURCE_FORMS, &p->caller))
		p->any_caller = false;
}

static bool same_source(const struct gate_source *a, const struct gate_source *b)
{
	return a->kind == b->kind && a->segment == b->segment && slice_eq(a->name, b->name);
}

static void add_scope(const struct reader *r, const struct json_node *part, struct gate_policy *p, const char *wanted)
{
	struct gate_source source;

	if (!read_source(r, part, "scope", wanted, &source))
		return;
	for (size_t i = 0; i < p->scope_n; i++)
		if (same_source(&p->scope[i], &source)) {
			reader_report(r, part->at.line, "value", "scope has %s twice", excerpt_of(part->string).text);
			return;
		}
	if (p->scope_n == GATE_SCOPE_PARTS_MAX)
		reader_report(r, part->at.line, "limit", "scope has too many parts; at most %d", GATE_SCOPE_PARTS_MAX);
	else
		p->scope[p->scope_n++] = source;
}

void policy_read_scope(const struct reader *r, const struct json_node *node, const struct field *field, void *ret)
{
	static const char wanted[] = "\"endpoint\", \"global\", or an array of these and " GATE_SOURCE_FORMS;
	struct gate_policy *p = ret;
	bool endpoint = false, global = false;

	if (node->type != JSON_STRING && node->type != JSON_ARRAY) {
		policy_refuse(r, node, field->name, wanted);
		return;
	}
	if (node->type == JSON_ARRAY && !reader_array(r, node, field->name, 1, GATE_LIST_MAX))
		return;
	p->scope_n = 0;
	for (const struct json_node *part = node->type == JSON_ARRAY ? node->first : node; part;
	     part = node->type == JSON_ARRAY ? part->next : NULL) {
		bool is_text = part->type == JSON_STRING;

		if (is_text && slice_is(part->string, "endpoint"))
			endpoint = true;
		else if (is_text && slice_is(part->string, "global"))
			global = true;
		else if (part != node)
			add_scope(r, part, p, wanted);
		else
			policy_refuse(r, part, field->name, wanted);
	}
	if (endpoint && global)
		reader_report(r, node->at.line, "value", "scope is both \"endpoint\" and \"global\"");
	p->scope_endpoint = endpoint;
}

/* One entry of a list. */
static void add_fingerprint(const struct reader *r, const struct json_node *entry, struct gate_fingerprint_rule *rule,
			    bool *body)
{
	static const char wanted[] = "a JSON pointer like \"/data/id\", \"body\", \"query\", " GATE_SOURCE_FORMS;
	bool is_text = entry->type == JSON_STRING;

	if (is_text && slice_is(entry->string, "body"))
		*body = true;
	else if (is_text && slice_is(entry->string, "query"))
		rule->query = true;
	else if (is_text && json_pointer_check(entry->string, /* err= */ NULL) == HX_OK)
		((struct slice *)rule->pointers)[rule->pointers_n++] = arena_copy(r->arena, entry->string);
	else if (read_source(r, entry, "an entry of fingerprint", wanted,
			     &((struct gate_source *)rule->sources)[rule->sources_n]))
		rule->sources_n++;
}

static void read_fingerprint_list(const struct reader *r, const struct json_node *node, struct gate_policy *p)
{
	struct gate_fingerprint_rule rule = {0};
	bool body = false;

	if (!reader_array(r, node, "fingerprint", 1, GATE_LIST_MAX))
		return;
	rule.pointers = arena_zalloc(r->arena, node->count * sizeof *rule.pointers);
	rule.sources = arena_zalloc(r->arena, node->count * sizeof *rule.sources);
	if (!rule.pointers || !rule.sources)
		return;
	json_node_for_each(entry, node) add_fingerprint(r, entry, &rule, &body);
	if (body && rule.pointers_n)
		reader_report(r, node->at.line, "value", "fingerprint has the whole body and pointers into it");
	rule.no_body = !body && rule.pointers_n == 0;
	p->fingerprint = rule;
}

void policy_read_fingerprint(const struct reader *r, const struct json_node *node, const struct field *field, void *ret)
{
	struct gate_policy *p = ret;
	bool whole = true;

	if (node->type == JSON_ARRAY)
		read_fingerprint_list(r, node, p);
	else if (node->type != JSON_BOOL)
		policy_refuse(r, node, field->name, "true, false or an array of what counts");
	else if (reader_bool(r, node, field->name, &whole))
		p->fingerprint = (struct gate_fingerprint_rule){.off = !whole};
}

void policy_check_sources(const struct reader *r, const struct json_node *object)
{
	const struct json_node *key = json_node_member(object, "key");

	if (key && json_node_member(object, "header"))
		reader_report(r, key->at.line, "value", "key and header both say where the key is; keep one of them");
}
