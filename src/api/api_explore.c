/* See api_explore.h. */
#include "api/api_explore.h"

#include <stdio.h>

#include "api/api.h"
#include "api/api_definitions.h"
#include "base/duration.h"
#include "base/json_tree.h"
#include "base/json_write.h"

#define NODES_MAX 200000
#define EXPLORE_MS_DEFAULT 10000

bool api_explore_wanted(struct http_call *call, const char *parameter, int64_t *ret_ms)
{
	struct hx_error err;
	struct slice value;

	*ret_ms = 0;
	if (query_get(&call->query, parameter, &err, &value))
		return api_refuse(call, HX_VALIDATION_ERROR, err.detail);
	if (!value.p)
		return true;
	if (duration_parse(parameter, value, &err, ret_ms))
		return api_refuse(call, HX_VALIDATION_ERROR, err.detail);
	if (*ret_ms < EXPLORE_MS_MIN || *ret_ms > EXPLORE_MS_MAX)
		return api_invalid(call, "%s: it is at least 1s, and at most 60s", parameter);
	if (!api_of(call)->explorer)
		return api_invalid(call, "explore: this program has no simulator; `hapax serve` has");
	return true;
}

bool api_explore_begin(struct http_call *call, const struct explore_wish *wish,
		       void (*done)(void *context, const struct explored *explored), void *context)
{
	struct explorer *explorer = api_of(call)->explorer;
	enum hx_code code = explorer->begin(explorer, wish, done, context);

	return !code ||
	       api_refuse(call, code, code == HX_BUSY ? "another definition is being explored: try again" : NULL);
}

/* ---- one that is in force ---- */

/* In the explorer's thread. */
static void show_explored(void *context, const struct explored *explored)
{
	struct http_call *call = context;
	LOCAL_STRBUF(text, API_TEXT_BYTES_MAX);

	strbuf_add_slice(&text, explored->report);
	if (explored->report.n && explored->verdict != EXPLORED_FAILED)
		api_respond_json(call, 200, &text, 0);
	else if (explored->verdict == EXPLORED_NOT)
		(void)api_refuse(call, HX_VALIDATION_ERROR, "there is nothing in it that can be explored");
	else
		(void)api_refuse(call, HX_BUSY, "it could not be explored: there was no time, or no memory, for it");
}

void api_definition_explore(struct http_call *call)
{
	struct sought_definition sought;
	int64_t ms;

	if (!api_explore_wanted(call, "for", &ms) || !api_definition_sought(call, &sought))
		return;
	(void)api_explore_begin(call,
				&(const struct explore_wish){.text = sought.definition->text,
							     .ms = ms ? ms : EXPLORE_MS_DEFAULT,
							     .suggests = true},
				show_explored, call); /* false: it is answered */
}

/* ---- a story, of what is refused ---- */

static void add_text(struct strbuf *out, const char *member, const struct json_node *of, const char *name)
{
	const struct json_node *node = json_node_member(of, name);

	json_more_text(out, member, node && node->type == JSON_STRING ? node->string : slice_str(""));
}

static int64_t line_of(const struct json_node *of)
{
	const struct json_node *node = json_node_member(of, "line");
	struct hx_error err;
	int64_t line = 0;

	return node && json_node_int64(node, &err, &line) == HX_OK ? line : 0;
}

static const char *words_of(const struct json_node *found, struct arena *arena)
{
	static const char *const parts[] = {"rule", "broken", "why"};
	LOCAL_STRBUF(text, 2000);

	for (size_t i = 0; i < 3; i++) {
		const struct json_node *node = json_node_member(found, parts[i]);

		if (node && node->type == JSON_STRING && node->string.n)
			strbuf_addf(&text, "%s%.*s", i ? ": " : "", SLICE_ARGS(node->string));
	}
	return text.n ? arena_copy(arena, strbuf_slice(&text)).p : "";
}

void api_explore_members(struct slice report, struct arena *arena, struct strbuf *members, const char **ret_words)
{
	const struct json_node *root, *found, *story;
	struct hx_error err;

	*ret_words = "a rule is broken";
	if (json_tree_parse(report, NODES_MAX, arena, &err, &root) || !(found = json_node_member(root, "found")))
		return;
	*ret_words = words_of(found, arena);
	strbuf_add_str(members, "\"findings\":[{\"severity\":\"error\"");
	json_more_int(members, "line", line_of(found));
	json_more_word(members, "rule", "explore");
	json_more_text(members, "text", slice_str(*ret_words));
	strbuf_add_str(members, "}],\"story\":[");
	story = json_node_member(found, "story");
	for (const struct json_node *event = story ? story->first : NULL; event; event = event->next) {
		strbuf_add_str(members, event == story->first ? "{" : ",{");
		add_text(members, "who", event, "who");
		add_text(members, "what", event, "what");
		json_more_int(members, "line", line_of(event));
		strbuf_add_char(members, '}');
	}
	strbuf_add_char(members, ']');
}
