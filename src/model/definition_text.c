/* See definition_text.h. */
#include "model/definition_text.h"

#include "base/json_walk.h"
#include "model/workflow.h"

/* True: the text is JSON, and small enough in all that counts. */
static bool check_size(const struct reader *r, struct slice text)
{
	static const struct {
		const char *name;
		size_t max;
	} limits[] = {{"status_types", WORKFLOW_STATUSES_MAX},
		      {"steps", WORKFLOW_STEPS_MAX},
		      {"actions", WORKFLOW_ACTIONS_MAX}};
	struct json document, part;
	struct hx_error err;
	bool fits = true;

	if (text.n > WORKFLOW_TEXT_BYTES_MAX) {
		reader_report(r, 0, "limit", "the definition has %zu bytes; at most %u", text.n,
			      WORKFLOW_TEXT_BYTES_MAX);
		return false;
	}
	if (json_check(text, &err, &document) != HX_OK) {
		reader_report_json(r, &err);
		return false;
	}
	for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
		size_t n = json_find(document, slice_str(limits[i].name), &part) ? json_count(part) : 0;

		if (n <= limits[i].max)
			continue;
		reader_report(r, json_locate(text, (size_t)(part.raw.p - text.p)).line, "limit",
			      "%s has %zu entries; at most %zu", limits[i].name, n, limits[i].max);
		fits = false;
	}
	return fits;
}

const struct json_node *definition_text_read(const struct reader *r, struct slice text, struct arena *scratch)
{
	const struct json_node *root = NULL;
	struct hx_error err;

	if (!check_size(r, text))
		return NULL;
	if (json_tree_parse(text, WORKFLOW_JSON_VALUES_MAX, scratch, &err, &root) != HX_OK) {
		reader_report_json(r, &err);
		return NULL;
	}
	return reader_object(r, root, "a definition") ? root : NULL;
}

void definition_text_done(const struct reader *r, struct arena *scratch, struct finding **from)
{
	struct hx_error err;

	if (scratch->failed || r->arena->failed) {
		(void)arena_error(r->arena->failed ? r->arena : scratch, &err); /* for its words */
		reader_report(r, 0, "limit", "%s", err.detail);
	}
	findings_sort(r->findings, from);
	arena_release(scratch);
}
