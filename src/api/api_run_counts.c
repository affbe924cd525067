/* Counts of runs: how many of each workflow are in which status. See flow/run_count.h. */
#include "api/api_list.h"
#include "base/json_string.h"
#include "flow/run.h"
#include "flow/run_count.h"

static void build_counts(struct api_query *query, struct unit *unit)
{
	run_count_list(unit, api_workspace(query->call), query->name, query->after, query->limit + 1);
}

static void add_counts(struct api_query *query, const struct db_rows *rows, size_t i)
{
	struct strbuf *text = &query->text;

	strbuf_add_char(text, '{');
	json_more_text(text, "definitionId", db_cell(rows, i, 0)->s);
	json_more(text, "counts");
	strbuf_add_char(text, '{');
	for (size_t k = 0; k < RUN_COUNT_STATUSES; k++)
		json_more_int(text, run_statuses[k], db_cell(rows, i, 1 + k)->i);
	strbuf_add_str(text, "}}");
}

const struct api_list api_run_counts = {
	.build = build_counts,
	.filters = {FILTER_TEXT("definitionId", name)},
	.cursor = CURSOR_TEXT,
	.column = 0,
	.add = add_counts,
};
