/* The rows by which runs are found are those of the column, after every unit that writes it. */
#include "unit/flow/driven_run.h"

#include "flow/attribute.h"
#include "support/must_hold.h"

#define STEPS                                                                                                          \
	"'attributes':{'customer':'.input.customer','quote':'.state.quote.n','last':'.steps.b.status'},"               \
	"'steps':[{'name':'a','type':'task','action':'do','save_as':'quote'},{'name':'b','type':'wait','for':'1s'}]"

static const struct db_stmt stmt_index = {
	.name = "test_index",
	.sql = "SELECT coalesce(group_concat(name || '=' || value, ' '), '') FROM (SELECT name, value FROM hx_attribute"
	       " WHERE kind = (SELECT kind FROM hx_subject WHERE id = subject) AND workspace = 'default' ORDER BY subject, name)",
	.in = "",
	.out = "t",
};

/* What the column says that it should be. */
static const struct db_stmt stmt_column = {
	.name = "test_column",
	.sql = "SELECT coalesce(group_concat(key || '=' || value, ' '), '') FROM (SELECT a.key, a.value FROM hx_run r, json_each(r.attributes) a"
	       " ORDER BY r.subject, a.key)",
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

static bool agree(struct world *w)
{
	char index[500], column[500];

	text_of(w, &stmt_index, index, sizeof index);
	text_of(w, &stmt_column, column, sizeof column);
	return strcmp(index, column) == 0;
}

static void create_described(struct world *w, const char *input)
{
	struct stamp stamp = world_begin(w);
	struct run_spec spec = {
		.subject = RUN,
		.workspace = slice_str("default"),
		.requester = slice_str("me"),
		.machine = fixture.machine,
		.input = slice_str(input),
	};

	run_describe(&spec, &fixture.arena);
	run_create(&w->unit, &stamp, &spec);
	assert_int_equal(world_run(w), UNIT_WON);
}

static void a_start_is_found(void **state)
{
	struct world *w = *state;

	define(STEPS);
	create_described(w, "{\"customer\":\"c-1\"}");
	MUST_HOLD(agree(w), "a run is not found by what it was started with");
	assert_is(w, &stmt_index, "customer=sc-1");
}

static void a_step_changes_what_it_is_found_by(void **state)
{
	static const struct script seven[] = {{ACT_OK, "{\"n\":7}"}, {0}};
	struct world *w = *state;
	char text[500];

	define(STEPS);
	create_described(w, "{\"customer\":\"c-1\"}");
	assert_int_equal(drive(w, seven), HX_OK);
	MUST_HOLD(agree(w), "a run is found by what it was before");
	text_of(w, &stmt_index, text, sizeof text);
	MUST_HOLD(strcmp(text, "customer=sc-1 quote=n250000000017") == 0, "what a step has changed is not seen");
	w->clock.wall.ms += 2000;
	assert_int_equal(drive(w, seven), HX_OK);
	assert_is(w, &stmt_index, "customer=sc-1 last=sCOMPLETED quote=n250000000017");
	MUST_HOLD(agree(w), "a run is found by what it was before");
}

/* None of them sees the state: nothing is written on the way. */
static void what_sees_the_input_alone_stays(void **state)
{
	struct world *w = *state;

	define("'attributes':{'customer':'.input.customer'},'steps':[{'name':'a','type':'task','action':'do','save_as':'quote'}]");
	create_described(w, "{\"customer\":\"c-1\"}");
	sql(w, "UPDATE hx_attribute SET value = 'sseen'");
	assert_int_equal(drive(w, ok), HX_OK);
	assert_is(w, &stmt_index, "customer=sseen");
}

static void what_expires_is_found_no_more(void **state)
{
	struct world *w = *state;

	define(STEPS);
	create_described(w, "{\"customer\":\"c-1\"}");
	assert_int_equal(drive(w, ok), HX_OK);
	w->clock.wall.ms += 2000;
	assert_int_equal(drive(w, ok), HX_OK);
	w->clock.wall.ms += 100000;
	(void)world_begin(w);
	run_expire(&w->unit, RUN, 1000);
	assert_int_equal(world_run(w), UNIT_WON);
	MUST_HOLD(agree(w), "a run that has expired is found");
	assert_is(w, &stmt_index, "");
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(a_start_is_found),
		TEST(a_step_changes_what_it_is_found_by),
		TEST(what_sees_the_input_alone_stays),
		TEST(what_expires_is_found_no_more),
	};

	ONLY_THE_NAMED(argc, argv);
	return cmocka_run_group_tests_name("attribute", tests, NULL, forget);
}
