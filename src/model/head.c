/* See head.h. */
#include "model/head.h"

#include <stdio.h>

#include "base/excerpt.h"

static const char *const kind_names[] = {"entity", "run", "batch", NULL};

#define KINDS (sizeof kind_names / sizeof kind_names[0] - 1)
#define ENTITY 1u
#define RUN 2u
#define BATCH 4u

/* Not all fields: a name that could have been meant as one of every kind is better answered by the nearest. */
/* clang-format off */
static const struct {
	const char *name;
	unsigned kinds; /* a bit for each of kind_names[] */
} fields[] = {
	{"status_types",           ENTITY},
	{"initial_status",         ENTITY},
	{"table",                  ENTITY},
	{"columns",                ENTITY},
	{"step_id",                ENTITY},
	{"step_key",               ENTITY},
	{"status",                 ENTITY},
	{"claim_state",            ENTITY},
	{"successful_claim_state", ENTITY},
	{"successful_state",       ENTITY},
	{"validation",             ENTITY},
	{"success_after_effect",   ENTITY},
	{"steps",                  ENTITY | RUN},
	{"entry_lock",             ENTITY | RUN},
	{"output",                 RUN},
	{"input",                  RUN},
	{"save_as",                RUN},
	{"compensate",             RUN},
	{"on_timeout",             RUN},
	{"for",                    RUN},
	{"until",                  RUN},
	{"event",                  RUN},
	{"when",                   RUN},
	{"then",                   RUN},
	{"else",                   RUN},
	{"item_action",            BATCH},
	{"cleanup_action",         BATCH},
	{"done_after_effect",      BATCH},
	{"concurrency",            BATCH},
	{"cancel_check_every",     BATCH},
	{"void",                   BATCH},
};
/* clang-format on */

static unsigned kinds_with_field(struct slice name)
{
	for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
		if (slice_is(name, fields[i].name))
			return fields[i].kinds;
	return 0;
}

static unsigned kind_bit(const char *kind)
{
	for (size_t i = 0; i < KINDS; i++)
		if (strcmp(kind_names[i], kind) == 0)
			return 1u << i;
	ASSERT(!"the reader of a definition knows its kind");
	return 0;
}

void head_refuse_field(const struct reader *r, const struct json_node *member, const char *const *known)
{
	unsigned owners = kinds_with_field(member->name);
	char words[64] = "";
	size_t n = 0;

	if (!owners || (owners & kind_bit(r->kind))) {
		reader_report(r, member->name_at.line, "unknown field", "\"%s\"%s", excerpt_of(member->name).text,
			      reader_suggest(r, member->name, known).text);
		return;
	}
	for (size_t i = 0; i < KINDS; i++)
		if (owners & (1u << i))
			n += (size_t)snprintf(words + n, sizeof words - n, "%s%s", n ? " or " : "", kind_names[i]);
	reader_report(r, member->name_at.line, "unknown field",
		      "\"%s\" belongs to definitions of kind %s, and this is one of kind %s",
		      excerpt_of(member->name).text, words, r->kind);
}

void head_known(const struct reader *r, const struct json_node *object, const char *const *known)
{
	json_node_for_each(member, object)
	{
		size_t i = 0;

		while (known[i] && !slice_is(member->name, known[i]))
			i++;
		if (!known[i])
			head_refuse_field(r, member, known);
	}
}

static bool check_kind(const struct reader *r, const struct json_node *root)
{
	const struct json_node *node = reader_required(r, root, "kind");
	int kind = 0;

	if (!node)
		return true;
	if (!reader_choice(r, node, "kind", kind_names, &kind))
		return false;
	if (strcmp(kind_names[kind], r->kind) == 0)
		return true;
	reader_report(r, node->at.line, "kind", "this is a definition of kind %s, not %s", kind_names[kind], r->kind);
	return false;
}

static void read_meta(const struct reader *outer, const struct json_node *meta, const char **ret_module)
{
	static const char *const known[] = {"module", NULL};
	struct reader r = *outer;

	r.where = "meta";
	if (!reader_object(outer, meta, "meta"))
		return;
	head_known(&r, meta, known);
	(void)reader_name(&r, json_node_member(meta, "module"), "module", ret_module); /* reported there */
}

bool head_read(struct reader *r, const struct json_node *root, struct slice text, struct head *ret)
{
	*ret = (struct head){.file = reader_keep(r, slice_str(r->place.file)), .text = arena_copy(r->arena, text)};
	if (reader_name(r, reader_required(r, root, "workflow"), "workflow", &ret->name))
		r->place.workflow = ret->name;
	if (!check_kind(r, root))
		return false;
	ret->module = ret->name;
	read_meta(r, json_node_member(root, "meta"), &ret->module);
	return true;
}
