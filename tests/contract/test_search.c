/*
 * Searches, on both stores: what a walk over an index finds, page by page, is what the condition says of all rows, in the order that
 * was asked for; a statement reads no more than a slice, by the index that the plan names; and the rows of the index are those of
 * the runs, through a start, a step that changes the state, a restart, children and retention.
 */
#include "base/json_walk.h"
#include "contract/plans.h"
#include "flow/run.h"
#include "flow/search_page.h"

#define ROWS 3000
#define ROWS_SQL "3000"
#define FIRST 1000000

static const char *const names[] = {"customer", "total", "vip", NULL};

/* Every seventh has no total, every second another workspace's twin, one in 1,500 is rare; the third of ten has expired. */
#define NUMBERED                                                                                                       \
	" FROM (WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < " ROWS_SQL                    \
	") SELECT n FROM c) x"
#define TOTAL                                                                                                          \
	"'n2500000000' || CASE WHEN x.n % 50 = 0 THEN '00' WHEN x.n % 50 < 10 THEN '0' || (x.n % 50) ELSE '' || (x.n % 50) END || '7'"

static const char *const fixture[] = {
	"INSERT INTO hx_run (subject, workspace, workflow, definition_version, run_key, requester, input, created_at, expired)"
	" SELECT 1000000 + x.n, CASE WHEN x.n % 5 = 0 THEN 'other' ELSE 'w' END, CASE WHEN x.n % 3 = 0 THEN 'f' ELSE 'g' END, 1, 'k' || x.n,"
	" 'ann', '{}', x.n, CASE WHEN x.n % 10 = 3 THEN 1 ELSE 0 END" NUMBERED,
	"INSERT INTO hx_attribute (subject, name, workspace, kind, value) SELECT r.subject, 'customer', r.workspace, 77,"
	" CASE WHEN r.created_at % 1500 = 1 THEN 'srare' ELSE 'sc-' || (r.created_at % 4) END FROM hx_run r WHERE r.expired = 0",
	"INSERT INTO hx_attribute (subject, name, workspace, kind, value) SELECT r.subject, 'total', r.workspace, 77, v.value FROM hx_run r,"
	" (SELECT x.n AS n, " TOTAL " AS value" NUMBERED
	") v WHERE v.n = r.created_at AND r.expired = 0 AND r.created_at % 7 <> 0",
	"INSERT INTO hx_attribute (subject, name, workspace, kind, value) SELECT r.subject, 'vip', r.workspace, 77,"
	" CASE WHEN r.created_at % 2 = 0 THEN 'b0' ELSE 'b1' END FROM hx_run r WHERE r.expired = 0",
};

static inline int set_up(enum store_kind kind)
{
	world_open(kind);
	for (size_t i = 0; i < sizeof fixture / sizeof *fixture; i++)
		script(fixture[i]);
	script(world.postgres
		       ? "UPDATE hx_run SET attributes = (SELECT json_object_agg(a.name, a.value)::text FROM hx_attribute a WHERE a.subject = hx_run.subject)"
		       : "UPDATE hx_run SET attributes = (SELECT json_group_object(a.name, a.value) FROM hx_attribute a WHERE a.subject = hx_run.subject)"
			 " WHERE expired = 0");
	script(world.postgres
		       ? "INSERT INTO hx_subject (id, kind, status, version, op, updated_at, seq, head) SELECT subject, 77,"
			 " CASE WHEN created_at % 6 = 0 THEN 'FAILED' ELSE 'COMPLETED' END, 1, 1, 1, 1, ''::bytea FROM hx_run"
		       : "INSERT INTO hx_subject (id, kind, status, version, op, updated_at, seq, head) SELECT subject, 77,"
			 " CASE WHEN created_at % 6 = 0 THEN 'FAILED' ELSE 'COMPLETED' END, 1, 1, 1, 1, x'' FROM hx_run");
	return 0;
}

static struct unit_result execute(struct unit *unit)
{
	struct unit *units[] = {unit};
	struct unit_result result;
	struct hx_error err = {0};

	assert_int_equal(world.db->driver->begin(world.db, &err), HX_OK);
	if (world.db->driver->execute(world.db, units, 1, &result, &world.arena, &err) != HX_OK)
		fail_msg("%s", err.detail);
	assert_int_equal(world.db->driver->commit(world.db, &err), HX_OK);
	if (result.verdict != UNIT_WON)
		fail_msg("%s: %s", unit->lines[0].stmt->name, result.error.detail);
	return result;
}

/* ---- the oracle: the condition asked of every row ---- */

struct oracle {
	int64_t id;
	struct slice value;
};

static int by_place(const void *a, const void *b)
{
	const struct oracle *x = a, *y = b;
	int order = slice_compare(x->value, y->value);

	return order ? order : (x->id > y->id) - (x->id < y->id);
}

DB_STMT(stmt_rows, "test_rows", "", "itttt",
	"SELECT r.subject, s.status, r.workflow, r.run_key, r.attributes FROM hx_run r JOIN hx_subject s ON s.id = r.subject"
	" WHERE r.workspace = 'w' AND r.expired = 0 ORDER BY r.subject");

static size_t ask_all(const struct search *search, struct oracle *found)
{
	struct unit_result result;
	const struct db_rows *rows;
	size_t n = 0;

	LOCAL_UNIT(unit);
	unit_add(&unit, UNIT_ANY, &stmt_rows, 0, NULL);
	result = execute(&unit);
	rows = &result.rows[0];
	for (size_t i = 0; i < rows->n; i++) {
		struct where_subject subject = {.id = db_cell(rows, i, 0)->i,
						.status = db_cell(rows, i, 1)->s,
						.workflow = db_cell(rows, i, 2)->s,
						.key = db_cell(rows, i, 3)->s,
						.created_at = db_cell(rows, i, 0)->i - FIRST,
						.attributes = json_trust(db_cell(rows, i, 4)->s)};
		struct slice value = {NULL, 0};
		struct json member;

		if (search->where && !where_holds(search->where, &subject))
			continue;
		if (search->order.n && !json_find(subject.attributes, search->order, &member))
			continue;
		if (search->order.n)
			value = slice_of(member.raw.p + 1, member.raw.n - 2);
		found[n++] = (struct oracle){subject.id, value};
	}
	qsort(found, n, sizeof *found, by_place);
	for (size_t i = 0; !search->up && i < n / 2; i++) {
		struct oracle other = found[i];

		found[i] = found[n - 1 - i];
		found[n - 1 - i] = other;
	}
	return n;
}

/* ---- the search ---- */

static void read_ids(struct unit *unit, struct slice workspace, struct slice ids)
{
	run_list_these(unit, workspace, ids);
}

static void show(struct search_page *page, const struct db_rows *rows)
{
	for (size_t i = 0; i < page->ids_n; i++)
		assert_true(search_page_row(page, rows, RUN_SUBJECT, i) < rows->n);
}

static enum hx_code drive(struct search_page *page)
{
	struct unit unit;
	struct ask ask = {.unit = &unit};
	struct answer answer = {.kind = ANSWER_START};
	struct unit_result result;

	search_page_init(page);
	page->task.kind->take(&page->task, &answer);
	for (page->task.kind->ask(&page->task, &ask); ask.kind == ASK_COMMIT; page->task.kind->ask(&page->task, &ask)) {
		result = execute(&unit);
		answer = (struct answer){.kind = ANSWER_COMMIT, .result = &result};
		page->task.kind->take(&page->task, &answer);
	}
	return ask.code;
}

static struct search_page page_of(const char *where, const char *order)
{
	struct search_page page = {.limit = 37, .arena = &world.arena, .read = read_ids, .show = show};
	struct where_names kinds = {WHERE_RUN, run_statuses};
	struct hx_error err = {0};

	page.search = (struct search){.of = WHERE_RUN, .workspace = slice_str("w"), .kind = 77, .known = names};
	page.search.up = order && order[0] != '-';
	if (order && strcmp(order + !page.search.up, "createdAt") != 0)
		page.search.order = slice_str(order + !page.search.up);
	if (where && where_parse(slice_str(where), &kinds, &world.arena, &err, NULL, &page.search.where))
		fail_msg("%s: %s", where, err.detail);
	return page;
}

static void assert_finds(const char *where, const char *order, enum search_by by)
{
	struct oracle *oracle = arena_alloc(&world.arena, ROWS * sizeof *oracle);
	struct search_page page = page_of(where, order);
	size_t n = ask_all(&page.search, oracle), at = 0;

	do {
		page.search.after = page.more ? page.next : (struct search_place){0};
		assert_int_equal(drive(&page), HX_OK);
		if (page.search.by != by)
			fail_msg("%s, %s: by %d and not %d", where, order, page.search.by, by);
		for (size_t i = 0; i < page.ids_n; i++, at++)
			if (at >= n || page.ids[i] != oracle[at].id)
				fail_msg("%s, %s: %zu. is %lld and not %lld", where, order, at, (long long)page.ids[i],
					 at < n ? (long long)oracle[at].id : 0);
	} while (page.more);
	if (at != n)
		fail_msg("%s, %s: %zu found of %zu", where, order, at, n);
}

static void finds_what_is_so(void **state)
{
	(void)state;
	for (int down = 0; down < 2; down++) {
		const char *created = down ? "-createdAt" : "createdAt", *total = down ? "-total" : "total";

		assert_finds(NULL, created, SEARCH_ALL);
		assert_finds("customer == \"c-1\"", created, SEARCH_ATTRIBUTE);
		assert_finds("customer == \"c-1\" and total >= 0.3", created, SEARCH_ATTRIBUTE);
		assert_finds("vip == true and customer == \"rare\"", created, SEARCH_ATTRIBUTE);
		assert_finds("customer startswith \"ra\"", created, SEARCH_GATHER);
		assert_finds("customer startswith \"c-\"", created, SEARCH_ALL);
		assert_finds("total > 0.41 and total <= 0.45", created, SEARCH_GATHER);
		assert_finds("total < 0.05", created, SEARCH_GATHER);
		assert_finds("not (total < 0.4)", created, SEARCH_ALL);
		assert_finds("total == null and status == \"FAILED\"", created, SEARCH_ALL);
		assert_finds("workflow == \"f\" and status != \"FAILED\"", created, SEARCH_WORKFLOW);
		assert_finds("workflow == \"f\" and vip == true", created, SEARCH_ATTRIBUTE);
		assert_finds("customer == \"rare\" or total >= 0.49", created, SEARCH_ALL);
		assert_finds("key == \"k16\"", created, SEARCH_KEY);
		assert_finds("key == \"k5\"", created, SEARCH_KEY);
		assert_finds(NULL, total, SEARCH_ATTRIBUTE);
		assert_finds("total >= 0.3 and total < 0.4 and vip == true", total, SEARCH_ATTRIBUTE);
		assert_finds("customer == \"c-2\"", total, SEARCH_GATHER);
		assert_finds("customer startswith \"c-\"", total, SEARCH_ATTRIBUTE);
		assert_finds("customer == \"rare\"", total, SEARCH_GATHER);
		assert_finds("customer startswith \"ra\" and total >= 0.1 and vip != true", total, SEARCH_GATHER);
		assert_finds("total == 5", total, SEARCH_ATTRIBUTE);
		assert_finds("total == 5 and total == 6", created, SEARCH_ATTRIBUTE);
	}
}

static void a_name_that_is_nowhere_is_refused(void **state)
{
	struct search_page page = page_of("customer == \"rare\" and custmer != \"c-1\"", NULL);

	(void)state;
	assert_int_equal(drive(&page), HX_BAD_QUERY);
	assert_true(slice_is(page.unknown->name, "custmer"));
	/* One that no definition has any more, and runs still do. */
	page = page_of("vip == true", NULL);
	page.search.known = (const char *const[]){"customer", NULL};
	assert_int_equal(drive(&page), HX_OK);
	assert_true(page.ids_n > 0);
}

/* ---- plans ---- */

/* The plan of each line of the slice names this index, and walks over no table. */
static void assert_by_index(const char *where, const char *order, const char *index)
{
	struct search_page page = page_of(where, order);
	struct unit_result result;
	bool named = false;

	assert_int_equal(drive(&page), HX_OK);
	LOCAL_UNIT(unit);
	LOCAL_UNIT(asked);
	page.search.after = (struct search_place){0};
	search_build(&page.search, &unit);
	unit_add(&asked, UNIT_ANY, explained(unit.lines[0].stmt), unit.lines[0].params_n, unit.lines[0].params);
	result = execute(&asked);
	for (size_t i = 0; i < result.rows[0].n; i++) {
		struct slice text = plan_line(&result.rows[0], i);
		char line[1000];

		snprintf(line, sizeof line, "%.*s", SLICE_ARGS(text));
		named |= strstr(line, index) != NULL;
		if (getenv("HAPAX_TEST_PLANS"))
			printf("%s: %s\n", where, line);
		if (misses_its_end(line) || strstr(line, "Seq Scan") ||
		    (strstr(line, "SCAN") && !strstr(line, "SCAN f")) || strstr(line, "AUTOMATIC"))
			fail_msg("%s walks: %s", where, line);
	}
	if (!named)
		fail_msg("%s: the plan does not name %s", where, index);
}

static void plans_name_their_index(void **state)
{
	(void)state;
	script("ANALYZE");
	if (world.postgres) /* of so few rows it would rather read all; of a million it would not */
		script("SET enable_seqscan = off; SET enable_bitmapscan = off");
	assert_by_index("customer == \"c-1\" and total >= 0.3", "-createdAt", "hx_attribute_found");
	assert_by_index("total > 0.41 and total <= 0.45", "createdAt", "hx_attribute_found");
	assert_by_index("vip == true", "-total", "hx_attribute_found");
	assert_by_index("customer == \"c-1\"", "total", "hx_attribute_found");
	assert_by_index("workflow == \"f\"", "-createdAt", "hx_run_listed_workflow");
	assert_by_index("status == \"FAILED\"", "-createdAt", "hx_run_listed");
	assert_by_index("key == \"k16\"", "-createdAt", "hx_run_key");
}

#define ON(name)                                                                                                       \
	cmocka_unit_test_setup_teardown(name, set_up_sqlite, tear_down),                                               \
		cmocka_unit_test_setup_teardown(name, set_up_postgres, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON(finds_what_is_so),
		ON(a_name_that_is_nowhere_is_refused),
		ON(plans_name_their_index),
	};

	return cmocka_run_group_tests_name("search", tests, NULL, NULL);
}
