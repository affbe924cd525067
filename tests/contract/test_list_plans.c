/*
 * No list walks over what it does not show. Every list of the API is asked for with every combination of what it filters by, in a
 * store with many rows of its workspace and of another one, and each store is asked how it would carry that out: SQLite for its plan,
 * PostgreSQL for what it then really read. A page of a status looks at a slice (flow/page.h), and at
 * no more. The table of routes says which lists there are: one that is not here fails this test.
 */
#include "api/api.h"
#include "contract/plans.h"
#include "flow/account.h"
#include "flow/batch_item.h"
#include "flow/bulk.h"
#include "flow/entity.h"
#include "flow/job_work.h"
#include "flow/page.h"
#include "flow/run.h"
#include "flow/schedule.h"
#include "flow/status_count.h"
#include "support/subjects.h"
#include "support/tally.h"

/* More than a slice in each list, so that whoever walks over all of it is seen. */
#define ROWS "30000"

static const char *const fixture[] = {
	"INSERT INTO hx_job (subject, workspace, queue, workflow, action, effect_key, payload, attempt, due_at, error, ended_at)"
	" SELECT x.n, CASE WHEN x.n % 2 = 0 THEN 'w' ELSE 'other' END, CASE WHEN x.n % 20 = 0 THEN 'q' ELSE 'r' END, '', '', 'k', '1', 1,"
	" CASE WHEN x.n % 4 = 0 THEN 1 END, CASE WHEN x.n % 1000 = 2 THEN 'no' END, CASE WHEN x.n % 4 <> 0 THEN 1 END FROM",
	"INSERT INTO hx_run (subject, workspace, workflow, definition_version, requester, input, created_at, parent, parent_step, parent_n)"
	" SELECT 1000000 + x.n, CASE WHEN x.n % 2 = 0 THEN 'w' ELSE 'other' END, CASE WHEN x.n % 20 = 0 THEN 'f' ELSE 'g' END, 1, 'ann', '{}', 1,"
	" CASE WHEN x.n % 2 = 0 THEN 5 END, CASE WHEN x.n % 2 = 0 THEN 1 END, CASE WHEN x.n % 2 = 0 THEN x.n END FROM",
	"INSERT INTO hx_batch (subject, workspace, workflow, definition_version, requester, account, created_at, total)"
	" SELECT 2000000 + x.n, CASE WHEN x.n % 2 = 0 THEN 'w' ELSE 'other' END, CASE WHEN x.n % 20 = 0 THEN 'f' ELSE 'g' END, 1, 'ann', 3000002,"
	" 1, 1 FROM",
	"INSERT INTO hx_entity (subject, workspace, workflow, name, data) SELECT 3000000 + x.n,"
	" CASE WHEN x.n % 2 = 0 THEN 'w' ELSE 'other' END, 'tally', 'e' || x.n, '{}' FROM",
	"INSERT INTO hx_account (subject, workspace, name, balance, seq, created_at) SELECT 3000000 + x.n,"
	" CASE WHEN x.n % 2 = 0 THEN 'w' ELSE 'other' END, 'a' || x.n, 1, 1, 1 FROM",
	"INSERT INTO hx_batch_item (batch, n, input, cost) SELECT 2000000, x.n, '{}', 1 FROM",
	"INSERT INTO hx_subject (id, kind, status, version, op, updated_at, seq, head) SELECT x.n, 1,"
	" CASE WHEN x.n % 1000 = 2 THEN 'PARKED' ELSE 'COMPLETED' END, 1, 1, 1, 1, h.head FROM",
	"INSERT INTO hx_subject (id, kind, status, version, op, updated_at, seq, head) SELECT 1000000 + x.n, 1, 'COMPLETED', 1, 1, 1, 1, h.head FROM",
	"INSERT INTO hx_subject (id, kind, status, version, op, updated_at, seq, head) SELECT 2000000 + x.n, 1, 'COMPLETED', 1, 1, 1, 1, h.head FROM",
	"INSERT INTO hx_subject (id, kind, status, version, op, updated_at, seq, head) SELECT 3000000 + x.n, 1, 'COMPLETED', 1, 1, 1, 1, h.head FROM",
};

static inline int set_up(enum store_kind kind)
{
	char sql[2000];

	world_open(kind);
	for (size_t i = 0; i < sizeof fixture / sizeof *fixture; i++) {
		snprintf(sql, sizeof sql,
			 "%s (WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < " ROWS
			 ") SELECT n FROM c) x%s",
			 fixture[i],
			 !strstr(fixture[i], "h.head") ? ""
			 : kind == STORE_POSTGRES      ? ", (SELECT ''::bytea AS head) h"
						       : ", (SELECT x'' AS head) h");
		script(sql);
	}
	return 0;
}

/* ---- the lists ---- */

/* Which of its filters are on: bit i is the i-th that the route names. */
static struct slice word(unsigned on, unsigned bit, const char *text)
{
	return slice_str(on & bit ? text : "");
}

static void list_jobs(struct unit *unit, unsigned on, const char *status)
{
	job_list(unit, slice_str("w"), word(on, 1, status), word(on, 2, "q"), 100, 51);
}

static void list_runs(struct unit *unit, unsigned on, const char *status)
{
	run_list(unit, &(struct run_filter){.workspace = slice_str("w"),
					    .status = word(on, 1, status),
					    .workflow = word(on, 2, "f"),
					    .unknown = on & 4,
					    .parent = on & 8 ? 5 : 0,
					    .before = INT64_MAX,
					    .limit = 51});
}

static void list_batches(struct unit *unit, unsigned on, const char *status)
{
	batch_list(unit, &(struct batch_filter){slice_str("w"), word(on, 1, status), word(on, 2, "f"), INT64_MAX, 51});
}

static void list_items(struct unit *unit, unsigned on, const char *status)
{
	item_list(unit, 2000000, word(on, 1, status), word(on, 2, "ACCEPTED"), 5, 51);
}

static void list_entities(struct unit *unit, unsigned on, const char *status)
{
	static const struct workflow workflow = {.name = "tally"};
	static const struct entity_machine machine = {.workflow = &workflow};
	struct entity_ref ref = {.workspace = slice_str("w"), .machine = &machine};

	entity_list(unit, &ref, word(on, 1, status), on & 2, slice_str(""), 51);
}

static void list_accounts(struct unit *unit, unsigned on, const char *status)
{
	(void)on, (void)status;
	account_list(unit, slice_str("w"), slice_str("a2"), 51);
}

static void list_entries(struct unit *unit, unsigned on, const char *status)
{
	(void)on, (void)status;
	account_read_ledger(unit, slice_str("w"), slice_str("a2"), 0, 51);
}

static void list_schedules(struct unit *unit, unsigned on, const char *status)
{
	(void)on, (void)status;
	schedule_list(unit, slice_str("w"), slice_str("s2"), 51);
}

static void list_bulk_items(struct unit *unit, unsigned on, const char *status)
{
	(void)on, (void)status;
	bulk_list_items(unit, slice_str("w"), 5, 100, 51);
}

static void count_jobs(struct unit *unit, unsigned on, const char *status)
{
	(void)status;
	status_count(unit, COUNTED_JOBS, slice_str("w"), word(on, 1, "q"));
}

static void count_batches(struct unit *unit, unsigned on, const char *status)
{
	(void)status;
	status_count(unit, COUNTED_BATCHES, slice_str("w"), word(on, 1, "f"));
}

static void count_entities(struct unit *unit, unsigned on, const char *status)
{
	(void)on, (void)status;
	status_count(unit, COUNTED_ENTITIES, slice_str("w"), slice_str("tally"));
}

static const char *const anything[] = {"x", NULL};

/* Where `list` is NULL it is said why not. */
static const struct {
	const char *id;
	const char *filters;
	void (*list)(struct unit *unit, unsigned on, const char *status);
	const char *const *statuses;
} lists[] = {
	{"listJobs", "status queue", list_jobs, job_statuses},
	{"listRuns", "status definitionId unknown parent", list_runs, run_statuses},
	{"listBatches", "status workflow", list_batches, batch_statuses},
	{"listItems", "status decision", list_items, item_statuses},
	{"listEntities", "status held", list_entities, anything},
	{"listAccounts", "", list_accounts, anything},
	{"getLedger", "", list_entries, anything},
	{"listSchedules", "", list_schedules, anything},
	{"listBulkItems", "", list_bulk_items, anything},
	{"jobs, by status", "queue", count_jobs, anything}, /* of the dashboard, which is not of the written API */
	{"batches, by status", "workflow", count_batches, anything},
	{"entities, by status", "", count_entities, anything},
	{"countRuns", "definitionId", NULL,
	 NULL},                         /* of counts: a row for each workflow and status, and what is not folded yet */
	{"getHistory", "", NULL, NULL}, /* by (subject, seq), which is its key */
	{"getRunHistory", "", NULL, NULL}, /* the same */
	{"listAttention", "kind", NULL,
	 NULL}, /* of what waits for a person, which has indexes of its own: test_attention */
};

/* ---- asking for a plan ---- */

static bool says_more_than(const char *text, const char *words, long most)
{
	const char *at = strstr(text, words);

	return at && atol(at + strlen(words)) > most;
}

/* Children of one run are: there are no more of them than that run has. What is counted is grouped. */
static enum sorted { SORTS_NOTHING, SORTS_A_SLICE, SORTS_CHILDREN } is_sorted(const char *name)
{
	return strstr(name, "children") ? SORTS_CHILDREN : strstr(name, "count_") ? SORTS_A_SLICE : SORTS_NOTHING;
}

/* A page sorts nothing, and reads a slice at the most. What SQLite calls a scan of these is of what it has found by then. */
static bool walks(struct slice line, enum sorted sorted)
{
	char text[1000];

	snprintf(text, sizeof text, "%.*s", SLICE_ARGS(line));
	if (!world.postgres)
		return (strstr(text, "SCAN") && !strstr(text, "SCAN slice") && !strstr(text, "SCAN c") &&
			!strstr(text, "SCAN (subquery") && !strstr(text, "CONSTANT ROW")) ||
		       (strstr(text, "TEMP B-TREE") && !sorted) || strstr(text, "AUTOMATIC");
	if (sorted == SORTS_CHILDREN)
		return strstr(text, "Seq Scan");
	if (misses_its_end(text))
		return true;
	return strstr(text, "Seq Scan") || (strstr(text, "Sort Key") && !sorted) ||
	       says_more_than(text, "Rows Removed by Filter: ", LIST_SLICE) ||
	       says_more_than(text, "Rows Removed by Join Filter: ", LIST_SLICE) ||
	       says_more_than(text, "(actual rows=", LIST_SLICE);
}

static int look_at_line(const struct unit_line *line, const char *what)
{
	struct unit wrapped, *units[] = {&wrapped};
	struct unit_result result;
	struct hx_error err = {0};
	int bad = 0;

	unit_init(&wrapped, 1);
	unit_add(&wrapped, UNIT_ANY, explained(line->stmt), line->params_n, line->params);
	if (world.db->driver->execute(world.db, units, 1, &result, &world.arena, &err) != HX_OK)
		fail_msg("%s, %s: %s", what, line->stmt->name, err.detail);
	for (size_t row = 0; row < result.rows[0].n; row++) {
		struct slice text = plan_line(&result.rows[0], row);

		if (getenv("HAPAX_TEST_PLANS"))
			printf("%s, %s: %.*s\n", what, line->stmt->name, SLICE_ARGS(text));
		if (walks(text, is_sorted(line->stmt->name))) {
			printf("%s, %s walks: %.*s\n", what, line->stmt->name, SLICE_ARGS(text));
			bad++;
		}
	}
	return bad;
}

static int look_at(size_t list, unsigned on, const char *status)
{
	struct hx_error err = {0};
	struct unit unit;
	char what[80];
	int bad = 0;

	snprintf(what, sizeof what, "%s, filters %u, %s", lists[list].id, on, status);
	unit_init(&unit, 1);
	lists[list].list(&unit, on, status);
	assert_int_equal(world.db->driver->begin(world.db, &err), HX_OK);
	for (unsigned i = 0; i < unit.lines_n; i++)
		bad += look_at_line(&unit.lines[i], what);
	world.db->driver->rollback(world.db);
	return bad;
}

static unsigned filters_n(const char *filters)
{
	unsigned n = *filters ? 1 : 0;

	for (; *filters; filters++)
		n += *filters == ' ';
	return n;
}

/* Every combination, and with a status each of them. */
static int look_at_all(const char *when)
{
	int bad = 0, asked = 0;

	for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
		for (unsigned on = 0; lists[i].list && on < 1u << filters_n(lists[i].filters); on++)
			for (size_t s = 0; lists[i].statuses[s] && (s == 0 || on & 1); s++, asked++)
				bad += look_at(i, on, lists[i].statuses[s]);
	printf("# %s: %d pages asked for\n", when, asked);
	return bad;
}

/* Of so few rows, a third of which are a slice, PostgreSQL would rather sort all; of ten million it would not. */
static void make_it_feel_large(void)
{
	if (world.postgres)
		script("SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_sort = off;"
		       " SET enable_incremental_sort = off");
}

static void no_list_walks(void **state)
{
	(void)state;
	script("ANALYZE");
	make_it_feel_large();
	assert_int_equal(look_at_all("with statistics"), 0);
}

/* SQLite never has any, unless somebody makes them; PostgreSQL makes them by itself. */
static void nor_without_statistics(void **state)
{
	(void)state;
	assert_int_equal(look_at_all("without statistics"), 0);
}

/* ---- all of them are here ---- */

static bool is_page(const struct route *route)
{
	for (size_t i = 0; route->query && route->query[i].name; i++)
		if (strcmp(route->query[i].name, "cursor") == 0)
			return true;
	return false;
}

static void assert_here(const struct route *route)
{
	/* of a page, and of a search, which is asked for its plans in test_search.c */
	static const char *const apart[] = {"cursor", "limit", "where", "order", NULL};
	char filters[200] = "";

	for (size_t i = 0; route->query && route->query[i].name; i++)
		if (!slice_in(slice_str(route->query[i].name), apart))
			snprintf(filters + strlen(filters), sizeof filters - strlen(filters), "%s%s",
				 *filters ? " " : "", route->query[i].name);
	for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
		if (strcmp(lists[i].id, route->id) == 0) {
			assert_string_equal(filters, lists[i].filters);
			return;
		}
	fail_msg("%s is a list, and nobody asks here how it is read", route->id);
}

static void every_list_of_the_api_is_here(void **state)
{
	size_t n;
	const struct route *routes = api_routes_written(&n);

	(void)state;
	for (size_t i = 0; i < n; i++)
		if (is_page(&routes[i]))
			assert_here(&routes[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_list_of_the_api_is_here),
		cmocka_unit_test_setup_teardown(no_list_walks, set_up_sqlite, tear_down),
		cmocka_unit_test_setup_teardown(nor_without_statistics, set_up_sqlite, tear_down),
		cmocka_unit_test_setup_teardown(no_list_walks, set_up_postgres, tear_down),
	};

	return cmocka_run_group_tests_name("list plans", tests, NULL, NULL);
}
