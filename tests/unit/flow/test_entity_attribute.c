/* The rows by which entities are found are those of the column, after every unit that writes it. */
#include "unit/flow/world.h"

#include <stdio.h>

#include "flow/entity_step.h"
#include "support/must_hold.h"

#define SUBJECT 7
#define DEFINITION(attributes)                                                                                          \
	"{\"workflow\":\"order\",\"kind\":\"entity\",\"status_types\":[\"open\",\"paid\"],\"initial_status\":\"open\"," \
	"\"attributes\":" attributes ",\"steps\":[{\"step_id\":1,\"step_key\":\"pay\",\"status\":\"open\","             \
	"\"successful_state\":\"paid\"}]}"

static struct arena arena;
static const struct entity_machine *first, *second;

static const struct entity_machine *machine_of(const char *text, int64_t version)
{
	const struct workflow *workflow;
	struct findings findings;

	findings_init(&findings, &arena);
	workflow_parse("order.json", slice_str(text), &arena, &findings, &workflow);
	for (const struct finding *f = findings.first; f; f = f->next)
		printf("%s: %s\n", f->rule, f->text);
	assert_non_null(workflow);
	return entity_machine_new(workflow, version, /* table= */ NULL, &arena);
}

static int set_up(void **state)
{
	arena_init(&arena, 64u << 20);
	first = machine_of(DEFINITION("{\"customer\":\".data.customer\",\"total\":\".data.sum.total\"}"), 1);
	second = machine_of(DEFINITION("{\"who\":\".data.customer\"}"), 2);
	return world_set_up(state);
}

static int tear_down(void **state)
{
	arena_release(&arena);
	return world_tear_down(state);
}

static const struct db_stmt stmt_index = {
	.name = "test_index",
	.sql = "SELECT coalesce(group_concat(name || '=' || value, ' '), '') FROM (SELECT name, value FROM hx_attribute"
	       " WHERE kind = (SELECT kind FROM hx_subject WHERE id = subject) AND workspace = 'default' ORDER BY name)",
	.in = "",
	.out = "t",
};

/* What the column says that it should be. */
static const struct db_stmt stmt_column = {
	.name = "test_column",
	.sql = "SELECT coalesce(group_concat(key || '=' || value, ' '), '') FROM (SELECT a.key, a.value FROM hx_entity e,"
	       " json_each(e.attributes) a ORDER BY a.key)",
	.in = "",
	.out = "t",
};

static void text_of(struct world *w, const struct db_stmt *stmt, char *text, size_t bytes)
{
	unit_init(&w->unit, 0);
	unit_add(&w->unit, UNIT_ANY, stmt, 0, NULL);
	assert_int_equal(world_run(w), UNIT_WON);
	snprintf(text, bytes, "%.*s", SLICE_ARGS(db_cell(&w->result.rows[0], 0, 0)->s));
}

static bool is_found_by(struct world *w, const char *wanted)
{
	char index[500], column[500];

	text_of(w, &stmt_index, index, sizeof index);
	text_of(w, &stmt_column, column, sizeof column);
	return strcmp(index, column) == 0 && strcmp(index, wanted) == 0;
}

static struct entity_ref ref_of(const struct entity_machine *machine)
{
	return (struct entity_ref){slice_str("default"), machine, slice_str("e")};
}

static void create(struct world *w, const char *data)
{
	struct entity_ref ref = ref_of(first);
	struct stamp stamp = world_begin(w);

	entity_create(&w->unit, &stamp, &ref, SUBJECT, slice_str(data),
		      entity_describe(first, slice_str(data), &arena));
	assert_int_equal(world_run(w), UNIT_WON);
}

static enum hx_code drive(struct world *w, struct step_request rq, struct entity_step *step)
{
	rq.requester = slice_str("default");
	rq.lease_ms = LEASE_MS;
	entity_step_init(step, &rq, &arena);
	return world_drive(w, &step->task);
}

static enum hx_code change(struct world *w, const char *patch, int64_t version)
{
	struct entity_step step;

	return drive(w,
		     (struct step_request){.mode = STEP_CHANGE,
					   .ref = ref_of(first),
					   .step_key = slice_str("data"),
					   .version = version,
					   .input = json_trust(slice_str(patch))},
		     &step);
}

static enum hx_code pay(struct world *w, const struct entity_machine *machine)
{
	struct entity_step step;

	return drive(w,
		     (struct step_request){.mode = STEP_FIRE,
					   .ref = ref_of(machine),
					   .step_key = slice_str("pay"),
					   .input = json_trust(slice_str("null"))},
		     &step);
}

static void a_new_one_is_found(void **state)
{
	struct world *w = *state;

	create(w, "{\"customer\":\"c-1\",\"sum\":{\"total\":12}}");
	MUST_HOLD(is_found_by(w, "customer=sc-1 total=n2500000000212"),
		  "an entity is not found by what it was made with");
}

static void a_change_is_followed(void **state)
{
	struct world *w = *state;

	create(w, "{\"customer\":\"c-1\"}");
	assert_int_equal(change(w, "{\"customer\":null}", 1), HX_OK);
	MUST_HOLD(is_found_by(w, ""), "an entity is found by what it has no more");
	assert_int_equal(change(w, "{\"customer\":\"c-2\",\"sum\":{\"total\":7}}", 2), HX_OK);
	MUST_HOLD(is_found_by(w, "customer=sc-2 total=n250000000017"), "an entity is found by what it was before");
	assert_int_equal(change(w, "{\"customer\":null,\"sum\":null}", 3), HX_OK);
	MUST_HOLD(is_found_by(w, ""), "an entity is found by what it has no more");
}

/* A step by a definition that names others: in its unit, whatever it does besides. */
static void another_definition_is_followed(void **state)
{
	struct world *w = *state;

	create(w, "{\"customer\":\"c-1\"}");
	assert_int_equal(pay(w, second), HX_OK);
	MUST_HOLD(is_found_by(w, "who=sc-1"), "an entity is found by what its workflow had before");
}

static const struct db_stmt stmt_touch = {
	.name = "test_touch", .sql = "UPDATE hx_attribute SET value = 'sseen'", .in = "", .out = ""};

/* Nothing is written where nothing is other than it was. */
static void what_stays_is_left_alone(void **state)
{
	struct world *w = *state;
	char text[100];

	create(w, "{\"customer\":\"c-1\"}");
	(void)world_begin(w);
	unit_add(&w->unit, UNIT_ANY, &stmt_touch, 0, NULL);
	assert_int_equal(world_run(w), UNIT_WON);
	assert_int_equal(pay(w, first), HX_OK);
	assert_int_equal(change(w, "{\"note\":1}", 2), HX_OK);
	text_of(w, &stmt_index, text, sizeof text);
	assert_string_equal(text, "customer=sseen");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(a_new_one_is_found),
		TEST(a_change_is_followed),
		TEST(another_definition_is_followed),
		TEST(what_stays_is_left_alone),
	};

	ONLY_THE_NAMED(argc, argv);
	return cmocka_run_group_tests_name("entity_attribute", tests, NULL, NULL);
}
