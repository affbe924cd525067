/*
 * What stands where in a workflow, for its page: how many of its newest runs or entities are in each place of its picture, since when,
 * how long its steps took; its versions; what `hapax check` finds in the one in force; and how many of each status a list has.
 *
 * No more than LOOKED_MAX of them are looked at, by the index of lists, so that a workflow with millions costs as much as a small one.
 */
#include "api/api_dashboard.h"
#include "api/api_definitions.h"
#include "api/api_list.h"
#include "base/json_string.h"
#include "flow/page.h"
#include "flow/status_count.h"

#define LOOKED_MAX 5000
#define TIMED_MAX                                                                                                      \
	1000 /* of which those of the version in force are timed: looked for, they could be a million runs away */
#define TOLD_VERSIONS_MAX 100
#define FINDINGS_BYTES_MAX (64u << 20)
#define CHECKED_STEPS_MAX 300 /* more is for the command line: an event loop has no time for it */

/* clang-format off */

#define NEWEST(columns, table, more) "(SELECT " columns " FROM " table " t WHERE t.workspace = ?1 AND t.workflow = ?2" more " ORDER BY t.subject DESC LIMIT ?3) x"

DB_STMT(stmt_runs, "standing_runs", "tti", "iittii",
	"SELECT x.definition_version, x.at_step, s.status, coalesce(x.step_status, ''), count(*), min(s.updated_at) FROM "
	NEWEST("t.subject, t.definition_version, t.at_step, t.step_status", "hx_run", " AND t.expired = 0")
	" JOIN hx_subject s ON s.id = x.subject GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4");
DB_STMT(stmt_took, "standing_took", "ttii", "iiiii",
	"SELECT d.position, count(*), CAST(sum(d.completed_at - d.started_at) AS bigint), max(d.completed_at - d.started_at),"
	" CAST(sum(CASE WHEN d.attempt > 1 THEN 1 ELSE 0 END) AS bigint) FROM "
	NEWEST("t.subject, t.definition_version", "hx_run", " AND t.expired = 0")
	" JOIN hx_run_step d ON d.run = x.subject WHERE d.status = 'COMPLETED' AND x.definition_version = ?4 GROUP BY 1 ORDER BY 1");
DB_STMT(stmt_entities, "standing_entities", "tti", "iittii",
	"SELECT CAST(0 AS bigint), CAST(0 AS bigint), s.status, CASE WHEN s.owner = 'held' THEN 'HELD' ELSE '' END, count(*), min(s.updated_at) FROM "
	NEWEST("t.subject", "hx_entity", "") " JOIN hx_subject s ON s.id = x.subject GROUP BY 3, 4 ORDER BY 3, 4");
DB_STMT(stmt_batches, "standing_batches", "tti", "iittii",
	"SELECT x.definition_version, CAST(0 AS bigint), s.status, '', count(*), min(s.updated_at) FROM "
	NEWEST("t.subject, t.definition_version", "hx_batch", " AND t.expired = 0") " JOIN hx_subject s ON s.id = x.subject GROUP BY 1, 3 ORDER BY 1, 3");
enum { VERSION, STEP, STATUS, OUTCOME, COUNT, SINCE };
enum { TOOK_STEP, TOOK_N, TOOK_SUM, TOOK_MOST, TOOK_AGAIN };

DB_STMT(stmt_versions, "standing_versions", "ti", "ii",
	"SELECT version, at FROM hx_definition WHERE name = ?1 ORDER BY version DESC LIMIT ?2");

/* clang-format on */

enum { ROWS, VERSIONS, TOOK };

static void standing_build(struct api_query *query, struct unit *unit)
{
	const struct definition *d = query->of;
	struct db_value workspace = db_text(api_workspace(query->call)), name = db_text(query->name);
	const struct db_stmt *stmt = d->entity ? &stmt_entities : d->batch ? &stmt_batches : &stmt_runs;

	UNIT_ADD(unit, UNIT_ANY, stmt, workspace, name, db_int(LOOKED_MAX));
	UNIT_ADD(unit, UNIT_ANY, &stmt_versions, name, db_int(TOLD_VERSIONS_MAX));
	if (d->run)
		UNIT_ADD(unit, UNIT_ANY, &stmt_took, workspace, name, db_int(TIMED_MAX), db_int(query->number));
}

/* Of a run: the step, if it is of the version whose steps are known here. Of all others: the status. */
static struct slice place_of(const struct api_query *query, int64_t version, int64_t step, struct slice status)
{
	const struct definition *d = query->of;

	if (!d->run)
		return d->function ? slice_of(NULL, 0) : status;
	if (version != query->number || step < 0 || (size_t)step >= d->run->steps_n)
		return slice_of(NULL, 0);
	return slice_str(d->run->steps[step].name);
}

static void add_item(struct api_query *query, const struct db_rows *rows, size_t i)
{
	static const struct row_member members[] = {
		{"version", ROW_INT, .at = VERSION},  {"status", ROW_TEXT, .at = STATUS},
		{"outcome", ROW_NAME, .at = OUTCOME}, {"n", ROW_INT, .at = COUNT},
		{"since", ROW_TIME, .at = SINCE},     {.name = NULL},
	};
	struct slice place = place_of(query, db_cell(rows, i, VERSION)->i, db_cell(rows, i, STEP)->i,
				      db_cell(rows, i, STATUS)->s);

	strbuf_add_str(&query->text, i ? ",{" : "{");
	if (place.p)
		json_more_text(&query->text, "place", place);
	else
		json_more_json(&query->text, "place", slice_str("null"));
	row_json_cells(&query->text, members, rows, i);
	strbuf_add_char(&query->text, '}');
}

static void add_version(struct api_query *query, const struct db_rows *rows, size_t i)
{
	strbuf_add_str(&query->text, i ? ",{" : "{");
	json_more_int(&query->text, "version", db_cell(rows, i, 0)->i);
	json_more_time(&query->text, "createdAt", db_cell(rows, i, 1)->i);
	strbuf_add_char(&query->text, '}');
}

static void add_took(struct api_query *query, const struct db_rows *rows, size_t i)
{
	int64_t n = db_cell(rows, i, TOOK_N)->i;
	struct slice place = place_of(query, query->number, db_cell(rows, i, TOOK_STEP)->i, slice_of(NULL, 0));

	strbuf_add_str(&query->text, i ? ",{" : "{");
	json_more_text(&query->text, "place", place);
	json_more_int(&query->text, "n", n);
	json_more_int(&query->text, "averageMs", db_cell(rows, i, TOOK_SUM)->i / (n ? n : 1));
	json_more_int(&query->text, "mostMs", db_cell(rows, i, TOOK_MOST)->i);
	json_more_int(&query->text, "again", db_cell(rows, i, TOOK_AGAIN)->i);
	strbuf_add_char(&query->text, '}');
}

static void add_all(struct api_query *query, const char *member, const struct db_rows *rows,
		    void (*add)(struct api_query *query, const struct db_rows *rows, size_t i))
{
	json_more(&query->text, member);
	strbuf_add_char(&query->text, '[');
	for (size_t i = 0; rows && i < rows->n; i++)
		add(query, rows, i);
	strbuf_add_char(&query->text, ']');
}

static enum hx_code standing_answered(struct api_query *query, const struct unit_result *result)
{
	const struct definition *d = query->of;
	int64_t looked = 0;

	for (size_t i = 0; i < result->rows[ROWS].n; i++)
		looked += db_cell(&result->rows[ROWS], i, COUNT)->i;
	strbuf_add_char(&query->text, '{');
	json_more_text(&query->text, "name", query->name);
	json_more_int(&query->text, "version", query->number);
	json_more_int(&query->text, "looked", looked);
	json_more_bool(&query->text, "more", looked == LOOKED_MAX);
	add_all(query, "items", &result->rows[ROWS], add_item);
	add_all(query, "versions", &result->rows[VERSIONS], add_version);
	add_all(query, "took", d->run ? &result->rows[TOOK] : NULL, add_took);
	strbuf_add_char(&query->text, '}');
	return HX_OK;
}

void api_standing(struct http_call *call)
{
	struct sought_definition sought;
	struct api_query *query;

	if (!api_definition_sought(call, &sought))
		return;
	query = api_query_new(&(struct api_query){.call = call,
						  .build = standing_build,
						  .answered = standing_answered,
						  .name = call_param(call, "name"),
						  .of = sought.definition,
						  .number = sought.version});
	if (query)
		api_query_read(query);
}

/* ---- how many of each status ---- */

enum { COUNTED_STATUS, COUNTED_N, COUNTED_LOOKED };

static void counts_build(struct api_query *query, struct unit *unit)
{
	struct slice name = query->name.p ? query->name : slice_str("");

	status_count(unit, (enum counted)query->number, api_workspace(query->call), name);
}

static enum hx_code counts_answered(struct api_query *query, const struct unit_result *result)
{
	const struct db_rows *rows = &result->rows[0];

	strbuf_add_str(&query->text, "{\"items\":[");
	for (size_t i = 0; i < rows->n; i++) {
		strbuf_add_str(&query->text, i ? ",{" : "{");
		json_more_text(&query->text, "status", db_cell(rows, i, COUNTED_STATUS)->s);
		json_more_int(&query->text, "n", db_cell(rows, i, COUNTED_N)->i);
		json_more_bool(&query->text, "more", db_cell(rows, i, COUNTED_LOOKED)->i >= LIST_COUNTED);
		strbuf_add_char(&query->text, '}');
	}
	strbuf_add_str(&query->text, "]}");
	return HX_OK;
}

void api_status_counts(struct http_call *call)
{
	static const char *const nouns[] = {
		[COUNTED_JOBS] = "jobs", [COUNTED_BATCHES] = "batches", [COUNTED_ENTITIES] = "entities", NULL};
	static const struct api_list list = {.filters = {FILTER_TEXT("name", name)}};
	struct api_query *query = api_query_new(
		&(struct api_query){.call = call, .build = counts_build, .answered = counts_answered});
	struct slice noun = call_param(call, "noun");

	if (!query || !api_list_read(call, &list, query))
		return;
	while (nouns[query->number] && !slice_is(noun, nouns[query->number]))
		query->number++;
	if (nouns[query->number])
		api_query_read(query);
	else
		api_refuse(call, HX_NOT_FOUND, "jobs, batches and entities are counted");
}

/* ---- what check finds ---- */

struct checked {
	const struct definition **at;
	size_t n, max, steps;
};

static void note_checked(void *context, const struct machine *machine)
{
	struct checked *checked = context;

	checked->steps += machine->definition->steps_n;
	if (checked->n < checked->max)
		checked->at[checked->n++] = machine->definition;
}

static void count_checked(void *context, const struct machine *machine UNUSED)
{
	((struct checked *)context)->max++;
}

/* All that are in force are checked, as some rules are about several; what is said is what is about this one. */
static void find(struct http_call *call, const struct definition *d, struct arena *arena, struct findings *findings)
{
	const struct engine_parts *parts = api_parts(call);
	const struct definition *parsed;
	struct checked checked = {.n = 0};

	definition_parse(d->file, d->text, arena, findings, &parsed);
	definitions_each(parts->definitions, count_checked, &checked);
	checked.at = arena_alloc(arena, (checked.max + 1) * sizeof *checked.at);
	if (!checked.at)
		return;
	definitions_each(parts->definitions, note_checked, &checked);
	if (checked.steps <= CHECKED_STEPS_MAX)
		definition_set_check(checked.at, checked.n, engine_config(api_of(call)->engine), findings);
}

void api_findings(struct http_call *call)
{
	struct sought_definition sought;
	struct findings findings;
	struct arena arena;

	if (!api_definition_sought(call, &sought))
		return;
	if (sought.definition->steps_n > CHECKED_STEPS_MAX) {
		api_refuse(call, HX_TOO_LARGE, "it has too many steps to be checked here: hapax check FILE does it");
		return;
	}
	arena_init(&arena, FINDINGS_BYTES_MAX);
	findings_init(&findings, &arena);
	find(call, sought.definition, &arena, &findings);
	LOCAL_STRBUF(text, API_TEXT_BYTES_MAX);
	strbuf_add_str(&text, "{\"items\":[");
	for (const struct finding *f = findings.first; f; f = f->next) {
		if (f->workflow && strcmp(f->workflow, sought.definition->name) != 0)
			continue;
		strbuf_add_str(&text, text.n && text.p[text.n - 1] == '[' ? "" : ",");
		finding_print_json(f, &text);
	}
	strbuf_add_str(&text, "]}");
	arena_release(&arena);
	api_respond_json(call, 200, &text, 0);
}
