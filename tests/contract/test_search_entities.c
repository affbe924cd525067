/*
 * Searches for entities, on both stores: made and changed by the units of the engine, many in one transaction; found by their
 * attributes, name, status and order, page by page, by an index each; and nobody else's.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "flow/attribute.h"
#include "flow/entity.h"
#include "flow/search_page.h"
#include "support/store.h"

#define ENTITIES 1200
#define GROUP 100
#define FIRST 1000
#define TEXT_BYTES 80

static const char definition[] =
	"{\"workflow\":\"order\",\"kind\":\"entity\",\"status_types\":[\"open\",\"paid\"],\"initial_status\":\"open\","
	"\"attributes\":{\"customer\":\".data.customer\",\"n\":\".data.n\"},"
	"\"steps\":[{\"step_id\":1,\"step_key\":\"pay\",\"status\":\"open\",\"successful_state\":\"paid\"}]}";
static const char *const names[] = {"customer", "n", NULL};
static const char *const statuses[] = {"open", "paid", NULL};

static struct {
	struct store *store;
	struct db *db;
	struct arena arena;
	bool postgres;
	const struct entity_machine *machine, *other; /* of another workflow */
} world;

static const struct entity_machine *machine_named(const char *from, const char *to)
{
	const struct workflow *workflow;
	struct findings findings;
	char *text = arena_alloc(&world.arena, sizeof definition);

	memcpy(text, definition, sizeof definition);
	if (to)
		memcpy(strstr(text, from), to, strlen(to));
	findings_init(&findings, &world.arena);
	workflow_parse("order.json", slice_str(text), &world.arena, &findings, &workflow);
	assert_non_null(workflow);
	return entity_machine_new(workflow, 1, /* table= */ NULL, &world.arena);
}

static void execute(struct unit **units, size_t n, struct unit_result *results)
{
	struct hx_error err = {0};

	assert_int_equal(world.db->driver->begin(world.db, &err), HX_OK);
	if (world.db->driver->execute(world.db, units, n, results, &world.arena, &err) != HX_OK)
		fail_msg("%s", err.detail);
	assert_int_equal(world.db->driver->commit(world.db, &err), HX_OK);
	for (size_t i = 0; i < n; i++)
		if (results[i].verdict != UNIT_WON)
			fail_msg("%s: %s", units[i]->lines[0].stmt->name, results[i].error.detail);
}

static struct slice printed(const char *format, ...)
{
	char *text = arena_alloc(&world.arena, TEXT_BYTES);
	va_list args;

	va_start(args, format);
	vsnprintf(text, TEXT_BYTES, format, args);
	va_end(args);
	return slice_str(text);
}

/* Every fifth is another workspace's, every seventh of another workflow, every third of its customer; one in 400 is rare. */
static bool is_ours(int i)
{
	return i % 5 != 0 && i % 7 != 0;
}

static int customer_of(int i)
{
	return i % 400 == 1 ? 9 : i % 3;
}

static void build(struct unit *unit, int i)
{
	const struct entity_machine *machine = i % 7 ? world.machine : world.other;
	struct entity_ref ref = {slice_str(i % 5 ? "w" : "v"), machine, printed("e%04d", i)};
	struct slice data = printed("{\"customer\":\"c-%d\",\"n\":%d}", customer_of(i), i % 10);
	struct stamp stamp = {.op = FIRST + i, .at = {i}, .node = "here"};

	unit_init(unit, stamp.op);
	entity_create(unit, &stamp, &ref, FIRST + i, data, entity_describe(machine, data, &world.arena));
}

static int set_up(enum store_kind kind)
{
	struct unit *all = calloc(GROUP, sizeof *all), *units[GROUP];
	struct unit_result *results = calloc(GROUP, sizeof *results);

	world.store = store_new(kind);
	world.db = store_open_migrated(world.store);
	world.postgres = kind == STORE_POSTGRES;
	arena_init(&world.arena, 512u << 20);
	world.machine = machine_named(NULL, NULL);
	world.other = machine_named("order", "ordes");
	for (int from = 0; from < ENTITIES; from += GROUP) {
		for (int i = 0; i < GROUP; i++) {
			build(&all[i], from + i);
			units[i] = &all[i];
		}
		execute(units, GROUP, results);
	}
	free(results);
	free(all);
	return 0;
}

static int set_up_sqlite(void **state)
{
	(void)state;
	return set_up(STORE_SQLITE_FILE);
}

static int set_up_postgres(void **state)
{
	(void)state;
	return set_up(STORE_POSTGRES);
}

static int tear_down(void **state)
{
	(void)state;
	db_close(world.db);
	store_free(world.store);
	arena_release(&world.arena);
	return 0;
}

/* ---- the search ---- */

static void show(struct search_page *page, const struct db_rows *rows)
{
	for (size_t i = 0; i < page->ids_n; i++)
		assert_true(search_page_row(page, rows, ENTITY_SUBJECT, i) < rows->n);
}

static enum hx_code drive(struct search_page *page)
{
	struct unit unit, *units[] = {&unit};
	struct ask ask = {.unit = &unit};
	struct answer answer = {.kind = ANSWER_START};
	struct unit_result result;

	search_page_init(page);
	page->task.kind->take(&page->task, &answer);
	for (page->task.kind->ask(&page->task, &ask); ask.kind == ASK_COMMIT; page->task.kind->ask(&page->task, &ask)) {
		execute(units, 1, &result);
		answer = (struct answer){.kind = ANSWER_COMMIT, .result = &result};
		page->task.kind->take(&page->task, &answer);
	}
	return ask.code;
}

static struct search_page page_of(const char *where, const char *order)
{
	struct search_page page = {.limit = 37, .arena = &world.arena, .read = entity_list_these, .show = show};
	struct where_names kinds = {WHERE_ENTITY, statuses};
	struct hx_error err = {0};

	page.search = (struct search){.of = WHERE_ENTITY,
				      .workspace = slice_str("w"),
				      .kind = world.machine->kind,
				      .workflow = slice_str("order"),
				      .known = names};
	page.search.up = order[0] != '-';
	if (strcmp(order + !page.search.up, "createdAt") != 0)
		page.search.order = slice_str(order + !page.search.up);
	if (where && where_parse(slice_str(where), &kinds, &world.arena, &err, NULL, &page.search.where))
		fail_msg("%s: %s", where, err.detail);
	return page;
}

struct sought {
	const char *where;
	bool (*is)(int i);
	enum search_by by;
};

static bool is_of_one(int i)
{
	return customer_of(i) == 1;
}

static bool is_rare(int i)
{
	return customer_of(i) == 9;
}

static bool is_any(int i)
{
	return i >= 0;
}

static bool is_named(int i)
{
	return i == 16;
}

static bool is_late(int i)
{
	return i >= 1100;
}

static bool is_none(int i)
{
	return i < 0;
}

static const struct sought all_sought[] = {
	{NULL, is_any, SEARCH_WORKFLOW},
	{"customer == \"c-1\"", is_of_one, SEARCH_ATTRIBUTE},
	{"customer == \"c-1\" and status == \"open\" and held == false", is_of_one, SEARCH_ATTRIBUTE},
	{"customer startswith \"c-9\"", is_rare, SEARCH_GATHER},
	{"id == \"e0016\"", is_named, SEARCH_KEY},
	{"id == \"e0015\"", is_none, SEARCH_KEY}, /* another workspace's */
	{"id == \"e0014\"", is_none, SEARCH_KEY}, /* of another workflow */
	{"createdAt >= \"1970-01-01T00:00:01.100Z\"", is_late, SEARCH_WORKFLOW},
	{"status == \"paid\"", is_none, SEARCH_WORKFLOW},
};

static int by_n(const void *a, const void *b)
{
	const int *x = a, *y = b;

	return *x % 10 != *y % 10 ? *x % 10 - *y % 10 : *x - *y;
}

static void assert_finds(const struct sought *sought, const char *order)
{
	struct search_page page = page_of(sought->where, order);
	int wanted[ENTITIES];
	size_t n = 0, at = 0;

	for (int i = 0; i < ENTITIES; i++)
		if (is_ours(i) && sought->is(i))
			wanted[n++] = i;
	if (page.search.order.n)
		qsort(wanted, n, sizeof *wanted, by_n);
	do {
		page.search.after = page.more ? page.next : (struct search_place){0};
		assert_int_equal(drive(&page), HX_OK);
		if (!page.search.order.n && page.search.by != sought->by)
			fail_msg("%s, %s: by %d and not %d", sought->where, order, page.search.by, sought->by);
		for (size_t i = 0; i < page.ids_n; i++, at++) {
			assert_true(at < n);
			assert_int_equal(page.ids[i], FIRST + wanted[page.search.up ? at : n - 1 - at]);
		}
	} while (page.more);
	assert_int_equal(at, n);
}

static void finds_what_is_so(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof all_sought / sizeof *all_sought; i++) {
		assert_finds(&all_sought[i], "createdAt");
		assert_finds(&all_sought[i], "-createdAt");
		if (all_sought[i].by != SEARCH_KEY) {
			assert_finds(&all_sought[i], "n");
			assert_finds(&all_sought[i], "-n");
		}
	}
}

/* Many at once: what they were found by before finds none of them any more. */
static void a_change_is_found(void **state)
{
	struct unit all[10], *units[10];
	struct unit_result results[10];
	struct search_page page = page_of("customer == \"new\"", "createdAt");

	(void)state;
	for (int i = 0; i < 10; i++) {
		struct stamp stamp = {.op = 9000 + i, .at = {5000}, .node = "here"};
		int64_t subject = FIRST + 16 + i;

		units[i] = &all[i];
		unit_init(&all[i], stamp.op);
		entity_change(&all[i], &stamp, subject, "open", 1, slice_str("{}"));
		attributes_of_entity_set(&all[i], subject, world.machine->kind,
					 i ? slice_str("{\"customer\":\"snew\"}") : slice_of(NULL, 0));
	}
	execute(units, 10, results);
	assert_int_equal(drive(&page), HX_OK);
	assert_int_equal(page.ids_n, 6); /* of 17 to 25: 20 and 25 are another workspace's, 21 is of another workflow */
	page = page_of("customer startswith \"c-\" and createdAt >= \"1970-01-01T00:00:00.016Z\""
		       " and createdAt <= \"1970-01-01T00:00:00.025Z\"",
		       "createdAt");
	assert_int_equal(drive(&page), HX_OK);
	assert_int_equal(page.ids_n, 0);
}

/* ---- plans ---- */

static const struct db_stmt *explained(const struct db_stmt *stmt)
{
	static int counter;
	struct db_stmt *wrapped = arena_zalloc(&world.arena, sizeof *wrapped);
	struct strbuf text;

	strbuf_init(&text, 65536);
	strbuf_addf(&text, "%s %s", world.postgres ? "EXPLAIN (COSTS OFF)" : "EXPLAIN QUERY PLAN", stmt->sql);
	strbuf_add_char(&text, '\0');
	*wrapped = (struct db_stmt){.name = printed("explained_%d", ++counter).p,
				    .sql = arena_keep(&world.arena, &text).p,
				    .in = stmt->in,
				    .out = world.postgres ? "t" : "iiit"};
	return wrapped;
}

static void assert_by_index(const char *where, const char *order, const char *index)
{
	struct search_page page = page_of(where, order);
	struct unit unit, asked, *units[] = {&asked};
	struct unit_result result;
	bool named = false;

	assert_int_equal(drive(&page), HX_OK);
	unit_init(&unit, 0);
	unit_init(&asked, 0);
	page.search.after = (struct search_place){0};
	search_build(&page.search, &unit);
	unit_add(&asked, UNIT_ANY, explained(unit.lines[0].stmt), unit.lines[0].params_n, unit.lines[0].params);
	execute(units, 1, &result);
	for (size_t i = 0; i < result.rows[0].n; i++) {
		char line[1000];

		snprintf(line, sizeof line, "%.*s", SLICE_ARGS(db_cell(&result.rows[0], i, world.postgres ? 0 : 3)->s));
		named |= strstr(line, index) != NULL;
		if (strstr(line, "Seq Scan") || (strstr(line, "SCAN") && !strstr(line, "SCAN f")) ||
		    strstr(line, "AUTOMATIC"))
			fail_msg("%s walks: %s", where, line);
	}
	if (!named)
		fail_msg("%s: the plan does not name %s", where, index);
}

static void plans_name_their_index(void **state)
{
	struct hx_error err;

	(void)state;
	assert_int_equal(world.db->driver->script(world.db, "ANALYZE", &err), HX_OK);
	if (world.postgres) /* of so few rows it would rather read all; of a million it would not */
		assert_int_equal(world.db->driver->script(
					 world.db, "SET enable_seqscan = off; SET enable_bitmapscan = off", &err),
				 HX_OK);
	assert_by_index("customer == \"c-1\"", "-createdAt", "hx_attribute_found");
	assert_by_index("customer startswith \"c-9\"", "createdAt", "hx_attribute_found");
	assert_by_index(NULL, "-n", "hx_attribute_found");
	assert_by_index("status == \"paid\"", "-createdAt", "hx_entity_listed");
	assert_by_index("id == \"e0016\"", "-createdAt", "hx_entity_name");
}

#define ON(name)                                                                                                       \
	cmocka_unit_test_setup_teardown(name, set_up_sqlite, tear_down),                                               \
		cmocka_unit_test_setup_teardown(name, set_up_postgres, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON(finds_what_is_so),
		ON(a_change_is_found),
		ON(plans_name_their_index),
	};

	return cmocka_run_group_tests_name("search_entities", tests, NULL, NULL);
}
