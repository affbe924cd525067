/* Functions in a store: what their definition says for their runs, what they are searched by, words of a parent, another version. */
#include "unit/flow/function_world.h"

/* ---- its definition ---- */

static void test_what_it_says_is_kept_with_the_run(void **state)
{
	struct world *w = *state;

	define(",'timeout':'1h','on_failure':'compensate','retry':{'max_attempts':7,'factor':1.5},"
	       "'attributes':{'customer':'.input.customer'}");
	assert_int_equal(create(w, fixture.machine), UNIT_WON);
	assert_is(
		w,
		"SELECT json_extract(retry, '$.maxAttempts') || ' ' || json_extract(retry, '$.factor') || ' ' || on_failure || ' '"
		" || (due_at - hx_now_ms()) || ' ' || timeout_ms FROM hx_function",
		"7 1.5 compensate 3600000 3600000");
	assert_is(w, "SELECT name || ' ' || value FROM hx_attribute", "customer sc-1");
	assert_is(w,
		  "SELECT definition_version || ' ' || (times_out_at - created_at) || coalesce(due_at, '') FROM hx_run",
		  "0 3600000");
}

static void test_without_one_somebody_has_to_poll(void **state)
{
	struct world *w = *state;

	define("");
	assert_int_equal(create(w, run_function_new(slice_str("g"), &fixture.arena)), UNIT_REFUSED);
	assert_int_equal(create(w, fixture.machine), UNIT_WON);
	assert_is(w, "SELECT coalesce(on_failure, 'hold') || coalesce(due_at, '') FROM hx_function", "hold");
}

static void test_a_lease_of_its_own(void **state)
{
	struct world *w = *state;

	define("");
	assert_int_equal(create(w, fixture.machine), UNIT_WON);
	assert_int_equal(claim(w, "1", 7000), 1);
	assert_is(
		w,
		"SELECT (s.until - hx_now_ms()) || ' ' || f.lease_ms FROM hx_function f JOIN hx_subject s ON s.id = f.subject",
		"7000 7000");
}

static void test_a_failure_compensates(void **state)
{
	struct world *w = *state;

	define(",'on_failure':'compensate'");
	assert_int_equal(create(w, fixture.machine), UNIT_WON);
	assert_int_equal(claim(w, "1", 0), 1);
	assert_int_equal(
		call(w,
		     "{'entries':[{'kind':'step','name':'a','n':0,'state':'done'},{'kind':'compensate','name':'a','n':0}],"
		     "'end':{'state':'failed','error':{'code':'BROKE','message':'it broke'}}}"),
		HX_OK);
	assert_is(w, ERROR, "CANCELLING BROKE");
	assert_int_equal(claim(w, "1", 0), 1);
	assert_int_equal(
		call(w, "{'entries':[{'kind':'undo','name':'a','n':0,'state':'done'}],'end':{'state':'undone'}}"),
		HX_OK);
	assert_is(w, ERROR, "CANCELLED BROKE");
}

static void test_with_nothing_to_undo_it_is_over(void **state)
{
	struct world *w = *state;

	define(",'on_failure':'compensate'");
	assert_int_equal(create(w, fixture.machine), UNIT_WON);
	assert_int_equal(claim(w, "1", 0), 1);
	assert_int_equal(call(w, "{'end':{'state':'failed','error':{'code':'BROKE','message':'it broke'}}}"), HX_OK);
	assert_is(w, ERROR, "CANCELLED BROKE");
}

static void test_its_time_is_over(void **state)
{
	struct world *w = *state;

	define(",'timeout':'1h'");
	assert_int_equal(create(w, fixture.machine), UNIT_WON);
	assert_int_equal(claim(w, "1", 0), 1);
	assert_int_equal(call(w, "{'entries':[{'kind':'sleep','name':'s','n':0,'forMs':86400000}],"
				 "'end':{'state':'suspended','awaits':[{'kind':'sleep','name':'s','n':0}]}}"),
			 HX_OK);
	fake_clock_advance_ms(&w->clock, HOUR_MS - 1);
	look(w);
	assert_is(w, STATUS, "WAITING");
	fake_clock_advance_ms(&w->clock, 1);
	look(w);
	assert_is(w, ERROR, "CANCELLED TIMEOUT");
	assert_is(w, "SELECT state FROM hx_entry", "dropped");
}

static void test_what_is_said_at_that_moment_is_taken(void **state)
{
	struct world *w = *state;

	define(",'timeout':'1h'");
	assert_int_equal(create(w, fixture.machine), UNIT_WON);
	fake_clock_advance_ms(&w->clock, HOUR_MS - 1000);
	assert_int_equal(claim(w, "1", 0), 1);
	fake_clock_advance_ms(&w->clock, 2000);
	assert_int_equal(call(w, "{'entries':[{'kind':'step','name':'a','n':0,'state':'begun'}]}"), HX_OK);
	assert_is(w, "SELECT CASE WHEN due_at <= hx_now_ms() THEN 'due' ELSE 'not due' END FROM hx_function", "due");
	look(w);
	assert_is(w, ERROR, "CANCELLING TIMEOUT");
	assert_int_equal(call(w, "{'entries':[{'kind':'step','name':'b','n':0,'state':'begun'}]}"), HX_CANCELLED);
	assert_int_equal(
		call(w, "{'entries':[{'kind':'step','name':'a','n':0,'state':'done'}],'end':{'state':'undone'}}"),
		HX_OK);
	assert_is(w, ERROR, "CANCELLED TIMEOUT");
}

static void test_a_retry_has_all_the_time_anew(void **state)
{
	struct world *w = *state;

	define(",'timeout':'1h'");
	assert_int_equal(create(w, fixture.machine), UNIT_WON);
	assert_int_equal(claim(w, "1", 0), 1);
	assert_int_equal(call(w, "{'end':{'state':'failed','error':'broke'}}"), HX_OK);
	fake_clock_advance_ms(&w->clock, 2 * HOUR_MS);
	look(w);
	assert_is(w, STATUS, "FAILED");
	assert_int_equal(verb(w, (struct run_verb_request){.kind = RUN_RETRY}), HX_OK);
	look(w);
	assert_is(
		w,
		"SELECT s.status || ' ' || (r.times_out_at - hx_now_ms()) || ' ' || (f.due_at - hx_now_ms()) FROM hx_run r"
		" JOIN hx_subject s ON s.id = r.subject JOIN hx_function f ON f.subject = r.subject",
		"PENDING 3600000 3600000");
}

/* ---- what it is searched by ---- */

#define FOUND_BY                                                                                                       \
	"SELECT coalesce(group_concat(name || '=' || value), 'nothing') FROM (SELECT * FROM hx_attribute ORDER BY name)"

static void test_what_it_tells_is_found(void **state)
{
	struct world *w = *state;

	define(",'attributes':{'customer':'.input.customer'}");
	assert_int_equal(create(w, fixture.machine), UNIT_WON);
	assert_int_equal(claim(w, "1", 0), 1);
	assert_int_equal(
		call(w,
		     "{'entries':[{'kind':'attribute','name':'stage','n':0,'value':'packed'},"
		     "{'kind':'attribute','name':'open','n':0,'value':true},{'kind':'attribute','name':'not a name','n':0,'value':1},"
		     "{'kind':'attribute','name':'status','n':0,'value':'mine'},{'kind':'attribute','name':'many','n':0,'value':[1]}]}"),
		HX_OK);
	assert_is(w, "SELECT CAST(count(*) AS text) FROM hx_entry WHERE kind = 'attribute'", "5");
	assert_is(w, FOUND_BY, "customer=sc-1,open=b1,stage=spacked");
	assert_int_equal(
		call(w,
		     "{'entries':[{'kind':'attribute','name':'stage','n':1,'value':'sent'},"
		     "{'kind':'attribute','name':'open','n':1,'value':null},{'kind':'attribute','name':'customer','n':0,'value':'c-2'}]}"),
		HX_OK);
	assert_is(w, FOUND_BY, "customer=sc-2,stage=ssent");
	assert_is(w, "SELECT attributes FROM hx_run", "{\"stage\":\"ssent\",\"customer\":\"sc-2\"}");
}

static void test_a_search_finds_it(void **state)
{
	static const struct db_stmt found = {.name = "test_found",
					     .sql = "SELECT count(*) FROM hx_attribute WHERE value = 'spacked'",
					     .in = "",
					     .out = "i"};
	struct world *w = *state;

	define("");
	assert_int_equal(create(w, fixture.machine), UNIT_WON);
	assert_int_equal(claim(w, "1", 0), 1);
	assert_int_equal(call(w, "{'entries':[{'kind':'attribute','name':'stage','n':0,'value':'packed'}]}"), HX_OK);
	unit_init(&w->unit, 0);
	unit_add(&w->unit, UNIT_ANY, &found, 0, NULL);
	assert_int_equal(world_run(w), UNIT_WON);
	MUST_HOLD(world_int(w, 0, 0) == 1, "a search does not find what the journal says");
}

/* ---- its parent's word ---- */

static void ask_to_fail(struct world *w)
{
	static const struct run_step step = {.name = "all"};
	struct stamp stamp = world_begin(w);

	(void)stamp;
	run_children_ask(&w->unit, 5, &(struct run_asking){&step, CHILD_ASKED_FAIL, /* only= */ -1, /* but= */ -1});
	assert_int_equal(world_run(w), UNIT_WON);
}

static void be_child(struct world *w)
{
	struct hx_error err;

	define("");
	assert_int_equal(create(w, fixture.machine), UNIT_WON);
	assert_int_equal(
		w->db->driver->script(
			w->db, "UPDATE hx_run SET parent = 5, parent_step = 'all', parent_n = 1, child = 'open'", &err),
		HX_OK);
	assert_int_equal(claim(w, "1", 0), 1);
}

static void test_one_that_rests_is_looked_at(void **state)
{
	static const struct db_stmt due = {.name = "test_due",
					   .sql = "SELECT count(*) FROM hx_function WHERE due_at <= hx_now_ms()",
					   .in = "",
					   .out = "i"};
	struct world *w = *state;

	be_child(w);
	assert_int_equal(call(w, "{'entries':[{'kind':'event','name':'e','n':0,'event':'go'}],"
				 "'end':{'state':'suspended','awaits':[{'kind':'event','name':'e','n':0}]}}"),
			 HX_OK);
	ask_to_fail(w);
	unit_init(&w->unit, 0);
	unit_add(&w->unit, UNIT_ANY, &due, 0, NULL);
	assert_int_equal(world_run(w), UNIT_WON);
	MUST_HOLD(world_int(w, 0, 0) == 1, "a function that is to fail waits for ever");
	look(w);
	assert_is(w, ERROR, "FAILED SIBLING_FAILED");
	assert_is(w, "SELECT child || coalesce(asked, '') FROM hx_run", "failed");
}

static void test_one_at_work_ends_its_turn_first(void **state)
{
	struct world *w = *state;

	be_child(w);
	assert_int_equal(call(w, "{'entries':[{'kind':'step','name':'a','n':0,'state':'begun'}]}"), HX_OK);
	ask_to_fail(w);
	look(w);
	assert_is(w, STATUS, "RUNNING");
	assert_int_equal(call(w, "{'entries':[{'kind':'step','name':'b','n':0,'state':'begun'}]}"), HX_WRONG_STATUS);
	assert_int_equal(
		call(w, "{'entries':[{'kind':'step','name':'a','n':0,'state':'done'}],'end':{'state':'released'}}"),
		HX_OK);
	assert_is(w, ERROR, "FAILED SIBLING_FAILED");
}

/* ---- another version ---- */

static struct run_verb_request migrate(const char *version)
{
	return (struct run_verb_request){.kind = RUN_MIGRATE, .function_version = slice_str(version)};
}

static void test_it_goes_on_with_another_version(void **state)
{
	struct world *w = *state;

	define("");
	assert_int_equal(create(w, fixture.machine), UNIT_WON);
	assert_int_equal(claim(w, "1", 0), 1);
	assert_int_equal(call(w, "{'entries':[{'kind':'step','name':'a','n':0,'state':'done'}]}"), HX_OK);
	assert_int_equal(verb(w, migrate("2")), HX_WRONG_STATUS);
	assert_int_equal(call(w, "{'end':{'state':'released'}}"), HX_OK);
	assert_int_equal(claim(w, "2", 0), 0);
	assert_int_equal(verb(w, (struct run_verb_request){.kind = RUN_MIGRATE, .definition_version = 2}),
			 HX_CANNOT_MIGRATE);
	assert_int_equal(verb(w, migrate("2")), HX_OK);
	assert_is(
		w,
		"SELECT s.status || ' ' || f.version || ' ' || (f.cold_seq > f.seq) || ' ' || (SELECT reason FROM hx_note)"
		" FROM hx_function f JOIN hx_subject s ON s.id = f.subject",
		"PENDING 2 1 migrated from version 1 to version 2");
	assert_int_equal(claim(w, "1", 0), 0);
	assert_int_equal(claim(w, "2", 0), 1);
	assert_int_equal(call(w, "{'end':{'state':'completed'}}"), HX_OK);
	assert_int_equal(verb(w, migrate("3")), HX_WRONG_STATUS);
}

static void test_not_under_its_worker(void **state)
{
	struct world *w = *state;

	define("");
	assert_int_equal(create(w, fixture.machine), UNIT_WON);
	assert_int_equal(claim(w, "1", 0), 1);
	MUST_HOLD(verb(w, migrate("2")) == HX_WRONG_STATUS, "the code of one version writes the journal of another");
}

static void test_a_dry_run_changes_nothing(void **state)
{
	struct run_verb_request rq = migrate("2");
	struct world *w = *state;

	define("");
	assert_int_equal(create(w, fixture.machine), UNIT_WON);
	rq.dry_run = true;
	assert_int_equal(verb(w, rq), HX_OK);
	assert_is(w, "SELECT coalesce(version, 'none') FROM hx_function", "none");
}

static void test_one_that_has_failed_stays_so(void **state)
{
	struct world *w = *state;

	define("");
	assert_int_equal(create(w, fixture.machine), UNIT_WON);
	assert_int_equal(claim(w, "1", 0), 1);
	assert_int_equal(call(w, "{'end':{'state':'failed','error':{'code':'BROKE'}}}"), HX_OK);
	fake_clock_advance_ms(&w->clock, 1000);
	assert_int_equal(verb(w, migrate("2")), HX_OK);
	assert_is(w, ERROR, "FAILED BROKE");
	assert_is(w, "SELECT CAST(hx_now_ms() - completed_at AS text) FROM hx_run", "1000");
	assert_int_equal(verb(w, (struct run_verb_request){.kind = RUN_RETRY}), HX_OK);
	assert_int_equal(claim(w, "2", 0), 1);
}

/* ---- going back, with children ---- */

/* The child of this name has come to its end. */
static void child_ends(struct world *w, const char *name, const char *to)
{
	static const struct db_stmt find = {.name = "test_child",
					    .sql = "SELECT subject FROM hx_run WHERE parent = 77 AND parent_step = ?1",
					    .in = "t",
					    .out = "i"};
	struct run_row row = {.parent = RUN};

	(void)world_begin(w);
	UNIT_ADD(&w->unit, UNIT_ANY, &find, db_str(name));
	assert_int_equal(world_run(w), UNIT_WON);
	row.subject = world_int(w, 0, 0);
	(void)world_begin(w);
	run_child_ended(&w->unit, &row, to);
	assert_int_equal(world_run(w), UNIT_WON);
	look(w);
}

#define ASKED                                                                                                            \
	"SELECT (SELECT status FROM hx_subject WHERE id = 77) || coalesce(' ' || (SELECT group_concat(parent_step, ' ')" \
	" FROM (SELECT parent_step FROM hx_run WHERE asked = 'cancel' ORDER BY subject)), '')"
#define CHILD(name) "{'kind':'child','name':'" name "','n':0,'workflow':'g'}"
#define STEP(name)                                                                                                     \
	"{'kind':'step','name':'" name "','n':0,'state':'done'},{'kind':'compensate','name':'" name "','n':0}"
#define UNDO(name) "{'kind':'undo','name':'" name "','n':0,'state':'done'}"

/* A step, a child, another step, another child: all done, and the function waits for an event. */
static void come_far(struct world *w)
{
	define("");
	assert_int_equal(create(w, fixture.machine), UNIT_WON);
	sql(w,
	    "INSERT INTO hx_function_poll (workspace, name, version, at) VALUES ('default', 'g', '1', 9000000000000000)");
	assert_int_equal(claim(w, "1", 0), 1);
	assert_int_equal(call(w, "{'entries':[" STEP("a") "," CHILD("k1") "]}"), HX_OK);
	child_ends(w, "k1", RUN_COMPLETED);
	fixture.seq++; /* its end */
	assert_int_equal(call(w, "{'entries':[" STEP("b") "," CHILD("k2") "]}"), HX_OK);
	child_ends(w, "k2", RUN_COMPLETED);
	fixture.seq++;
	assert_int_equal(call(w, "{'entries':[{'kind':'event','name':'e','n':0,'event':'go'}],"
				 "'end':{'state':'suspended','awaits':[{'kind':'event','name':'e','n':0}]}}"),
			 HX_OK);
}

static void test_children_are_undone_in_reverse(void **state)
{
	struct world *w = *state;

	come_far(w);
	assert_int_equal(verb(w, (struct run_verb_request){.kind = RUN_CANCEL}), HX_OK);
	look(w);
	MUST_BE(w, ASKED, "CANCELLING k2", "a function is undone, and its children are not");
	assert_int_equal(claim(w, "1", 0), 0);
	child_ends(w, "k2", RUN_CANCELLED);
	MUST_HOLD(claim(w, "1", 0) == 1, "a child is undone before what came after it");
	assert_int_equal(call(w, "{'entries':[" UNDO("b") "],'end':{'state':'released'}}"), HX_OK);
	assert_int_equal(claim(w, "1", 0), 0);
	look(w);
	assert_is(w, ASKED, "CANCELLING k1");
	child_ends(w, "k1", RUN_CANCELLED);
	assert_int_equal(claim(w, "1", 0), 1);
	assert_int_equal(call(w, "{'entries':[" UNDO("a") "],'end':{'state':'undone'}}"), HX_OK);
	assert_is(w, ASKED, "CANCELLED");
}

/* A worker that undoes all in one turn: the child that lies between comes after that, and the run ends after it. */
static void test_a_child_that_was_passed_is_undone_at_the_end(void **state)
{
	struct world *w = *state;

	come_far(w);
	assert_int_equal(verb(w, (struct run_verb_request){.kind = RUN_CANCEL}), HX_OK);
	look(w);
	child_ends(w, "k2", RUN_CANCELLED);
	assert_int_equal(claim(w, "1", 0), 1);
	assert_int_equal(call(w, "{'entries':[" UNDO("b") "," UNDO("a") "],'end':{'state':'undone'}}"), HX_OK);
	look(w);
	MUST_HOLD(claim(w, "1", 0) == 0, "a run is over before its children are undone");
	assert_is(w, ASKED, "CANCELLING k1");
	child_ends(w, "k1", RUN_CANCELLED);
	assert_is(w, ASKED, "CANCELLED");
}

/* What is open is dropped, and its run is waited for, too. */
static void test_an_open_child_is_waited_for(void **state)
{
	struct world *w = *state;

	define("");
	assert_int_equal(create(w, fixture.machine), UNIT_WON);
	sql(w,
	    "INSERT INTO hx_function_poll (workspace, name, version, at) VALUES ('default', 'g', '1', 9000000000000000)");
	assert_int_equal(claim(w, "1", 0), 1);
	assert_int_equal(
		call(w, "{'entries':[" CHILD(
				"k1") "],'end':{'state':'suspended','awaits':[{'kind':'child','name':'k1','n':0}]}}"),
		HX_OK);
	assert_int_equal(verb(w, (struct run_verb_request){.kind = RUN_CANCEL}), HX_OK);
	look(w);
	assert_is(w, ASKED, "CANCELLING k1");
	child_ends(w, "k1", RUN_CANCELLED);
	assert_is(w, ASKED, "CANCELLED");
}

/* ---- ended in doubt ---- */

static void test_it_is_not_completed_while_a_step_is_held(void **state)
{
	struct world *w = *state;

	define("");
	assert_int_equal(create(w, fixture.machine), UNIT_WON);
	assert_int_equal(claim(w, "1", 0), 1);
	assert_int_equal(call(w, "{'entries':[{'kind':'step','name':'a','n':0,'state':'begun'}]}"), HX_OK);
	assert_int_equal(
		call(w, "{'entries':[{'kind':'step','name':'a','n':0,'state':'unknown'}],'end':{'state':'completed'}}"),
		HX_OK);
	MUST_BE(w, "SELECT s.status || ' ' || r.awaits FROM hx_run r JOIN hx_subject s ON s.id = r.subject",
		"WAITING person", "it is completed, and a step of it is in doubt");
	assert_int_equal(claim(w, "1", 0), 0);
	assert_int_equal(verb(w, (struct run_verb_request){.kind = RUN_RESOLVE, .name = slice_str("a"), .done = true}),
			 HX_OK);
	assert_int_equal(claim(w, "1", 0), 1);
	assert_int_equal(call(w, "{'end':{'state':'completed','output':1}}"), HX_OK);
	assert_is(w, STATUS, "COMPLETED");
}

static void test_who_is_to_find_out_does_not_end_it(void **state)
{
	struct world *w = *state;

	define("");
	assert_int_equal(create(w, fixture.machine), UNIT_WON);
	assert_int_equal(claim(w, "1", 1000), 1);
	assert_int_equal(call(w, "{'entries':[{'kind':'step','name':'a','n':0,'state':'begun','effect':'keyed'}]}"),
			 HX_OK);
	fake_clock_advance_ms(&w->clock, 60001);
	look(w);
	assert_int_equal(claim(w, "1", 0), 1);
	MUST_HOLD(call(w, "{'end':{'state':'completed'}}") == HX_STEP_OPEN, "it is completed in doubt");
	assert_int_equal(
		call(w, "{'entries':[{'kind':'step','name':'a','n':0,'state':'done'}],'end':{'state':'completed'}}"),
		HX_OK);
	assert_is(w, STATUS, "COMPLETED");
}

/* From its end on; a retry takes the time back. */
/* ---- what a worker that means harm, or people at the same moment, could do ---- */

static void begin_in_doubt(struct world *w)
{
	define("");
	assert_int_equal(create(w, fixture.machine), UNIT_WON);
	assert_int_equal(claim(w, "1", 0), 1);
	assert_int_equal(call(w, "{'entries':[{'kind':'step','name':'a','n':0,'state':'unknown'}]}"), HX_OK);
}

/* Its worker does not know yet that a person has said that it was done. */
static void test_a_step_that_is_done_is_not_dropped(void **state)
{
	struct world *w = *state;

	begin_in_doubt(w);
	assert_int_equal(verb(w, (struct run_verb_request){.kind = RUN_RESOLVE, .name = slice_str("a"), .done = true}),
			 HX_OK);
	MUST_HOLD(call(w, "{'entries':[{'kind':'drop','name':'a','n':0}]}") == HX_BAD_ENTRY,
		  "a step that is done is dropped");
	assert_is(w, "SELECT state FROM hx_entry", "done");
}

static void test_a_retry_does_not_resume(void **state)
{
	struct world *w = *state;

	define("");
	assert_int_equal(create(w, fixture.machine), UNIT_WON);
	assert_int_equal(claim(w, "1", 0), 1);
	assert_int_equal(call(w, "{'end':{'state':'diverged','expected':1,'found':2}}"), HX_OK);
	assert_int_equal(verb(w, (struct run_verb_request){.kind = RUN_PAUSE}), HX_OK);
	MUST_HOLD(verb(w, (struct run_verb_request){.kind = RUN_RETRY}) == HX_WRONG_STATUS, "what is paused goes on");
	assert_int_equal(verb(w, (struct run_verb_request){.kind = RUN_RESUME}), HX_OK);
	assert_int_equal(verb(w, (struct run_verb_request){.kind = RUN_RETRY}), HX_OK);
	assert_int_equal(claim(w, "1", 0), 1);
}

/* Nobody has looked since its time was over: whoever decides is told so, and not that it was taken. */
static void test_a_decision_after_its_time_is_refused(void **state)
{
	struct run_verb_request approve = {.kind = RUN_APPROVE, .name = slice_str("ok?"), .data = slice_str("{}")};
	struct world *w = *state;

	define("");
	assert_int_equal(create(w, fixture.machine), UNIT_WON);
	assert_int_equal(claim(w, "1", 0), 1);
	assert_int_equal(call(w, "{'entries':[{'kind':'approval','name':'ok?','n':0,'timeoutMs':1000}],"
				 "'end':{'state':'suspended','awaits':[{'kind':'approval','name':'ok?','n':0}]}}"),
			 HX_OK);
	fake_clock_advance_ms(&w->clock, 1001);
	assert_int_equal(verb(w, approve), HX_WRONG_STATUS);
	look(w);
	assert_is(w, "SELECT json_extract(error, '$.code') FROM hx_entry", "TIMEOUT");
}

/* The word that a step has failed is always taken; what it says of it is not always kept. */
static void test_errors_do_not_grow_without_bound(void **state)
{
	struct world *w = *state;

	define("");
	assert_int_equal(create(w, fixture.machine), UNIT_WON);
	assert_int_equal(claim(w, "1", 0), 1);
	assert_int_equal(call(w, "{'entries':[{'kind':'step','name':'a','n':0,'state':'begun'}]}"), HX_OK);
	sql(w, "UPDATE hx_function SET bytes = 25165800");
	assert_int_equal(
		call(w,
		     "{'entries':[{'kind':'step','name':'a','n':0,'state':'failed','retryAfterMs':0,'error':{'code':'OTHER','message':'"
		     "a long text, a long text, a long text, a long text, a long text, a long text, a long text'}}]}"),
		HX_OK);
	MUST_BE(w, "SELECT json_extract(error, '$.code') FROM hx_entry", "JOURNAL_FULL",
		"a journal of errors has no end");
}

/* Its first worker was lost with it, the next one could not do it yet, and then it is cancelled: what the first has done is found out. */
static void test_what_may_have_been_done_is_undone(void **state)
{
	struct world *w = *state;

	define("");
	assert_int_equal(create(w, fixture.machine), UNIT_WON);
	assert_int_equal(claim(w, "1", 0), 1);
	assert_int_equal(call(w, "{'entries':[{'kind':'step','name':'a','n':0,'state':'begun','effect':'keyed'},"
				 "{'kind':'compensate','name':'a','n':0}]}"),
			 HX_OK);
	fake_clock_advance_ms(&w->clock, 60001);
	look(w);
	assert_int_equal(claim(w, "1", 0), 1);
	assert_int_equal(call(w, "{'entries':[{'kind':'step','name':'a','n':0,'state':'begun'}]}"), HX_OK);
	assert_int_equal(call(w, "{'entries':[{'kind':'step','name':'a','n':0,'state':'failed','retryAfterMs':5000}],"
				 "'end':{'state':'suspended','awaits':[{'kind':'step','name':'a','n':0}]}}"),
			 HX_OK);
	assert_int_equal(verb(w, (struct run_verb_request){.kind = RUN_CANCEL}), HX_OK);
	MUST_BE(w, STATUS, "CANCELLING", "it is CANCELLED, and nobody knows what a step of it has done");
	assert_is(w, "SELECT state || ' ' || policy FROM hx_entry WHERE i = 0", "unknown keyed retry doubt");
	assert_int_equal(claim(w, "1", 0), 1);
	assert_int_equal(call(w, "{'entries':[{'kind':'step','name':'a','n':0,'state':'done'},"
				 "{'kind':'undo','name':'a','n':0,'state':'done'}],'end':{'state':'undone'}}"),
			 HX_OK);
	assert_is(w, STATUS, "CANCELLED");
}

/* Ten in a row are held; a call that was taken begins the row anew, whatever it says. */
static void test_lapses_are_counted_in_a_row(void **state)
{
	struct world *w = *state;

	define("");
	assert_int_equal(create(w, fixture.machine), UNIT_WON);
	for (int i = 0; i < 10; i++) {
		assert_int_equal(claim(w, "1", 0), 1);
		if (i == 8)
			assert_int_equal(call(w, "{'entries':[{'kind':'value','name':'v','n':0}]}"), HX_OK);
		fake_clock_advance_ms(&w->clock, 60001);
		look(w);
	}
	MUST_BE(w, "SELECT lapses || ' ' || coalesce(held, 'goes on') FROM hx_function", "2 goes on",
		"lapses are counted over a call that was taken");
}

static void test_a_turn_is_its_workers(void **state)
{
	struct world *w = *state;

	define("");
	assert_int_equal(create(w, fixture.machine), UNIT_WON);
	assert_int_equal(claim(w, "1", 0), 1);
	assert_int_equal(call(w, "{'entries':[{'kind':'value','name':'v','n':0}]}"), HX_OK);
	sql(w, "UPDATE hx_function SET worker = 'other'");
	MUST_HOLD(call(w, "{'end':{'state':'released'}}") == HX_STALE_FENCE, "a worker ends the turn of another");
	sql(w, "UPDATE hx_function SET worker = 'w'");
	assert_int_equal(call(w, "{'end':{'state':'released'}}"), HX_OK);
	MUST_HOLD(claim(w, "2", 0) == 0, "the code of one version gets the journal of another");
	assert_int_equal(claim(w, "1", 0), 1);
}

/* Whose turn it is comes first, then the seq, and only then whether the entries are any. */
static void test_who_asks_comes_before_what_is_written(void **state)
{
	static const char *const unread = "{'entries':[{'kind':'values','name':'v','n':0}]}";
	struct world *w = *state;
	int64_t seq;

	define("");
	assert_int_equal(create(w, fixture.machine), UNIT_WON);
	assert_int_equal(claim(w, "1", 0), 1);
	assert_int_equal(call(w, unread), HX_BAD_ENTRY);
	seq = fixture.seq++;
	MUST_HOLD(call(w, unread) == HX_SEQ_CONFLICT, "what cannot be read is told before the seq");
	fixture.seq = seq;
	sql(w, "UPDATE hx_function SET worker = 'other'");
	MUST_HOLD(call(w, unread) == HX_STALE_FENCE, "what cannot be read is told before whose turn it is");
	assert_is(w, "SELECT CAST(count(*) AS text) FROM hx_entry", "0");
}

static void test_a_full_journal_says_so_however_far_it_is_counted(void **state)
{
	struct world *w = *state;

	define("");
	assert_int_equal(create(w, fixture.machine), UNIT_WON);
	assert_int_equal(claim(w, "1", 0), 1);
	sql(w, "UPDATE hx_function SET entries_n = 20000");
	assert_int_equal(
		call(w, "{'entries':[{'kind':'value','name':'v','n':0},{'kind':'value','name':'w','n':20500}]}"),
		HX_JOURNAL_FULL);
}

static void test_it_is_kept_as_its_definition_says(void **state)
{
	struct world *w = *state;

	define(",'retention':'2h'");
	assert_int_equal(create(w, fixture.machine), UNIT_WON);
	assert_int_equal(claim(w, "1", 0), 1);
	assert_is(w, "SELECT coalesce(CAST(keep_until AS text), 'not yet') FROM hx_run", "not yet");
	assert_int_equal(call(w, "{'end':{'state':'failed','error':{'code':'BROKE'}}}"), HX_OK);
	assert_is(w, "SELECT CAST(keep_until - completed_at AS text) FROM hx_run", "7200000");
	assert_int_equal(verb(w, (struct run_verb_request){.kind = RUN_RETRY}), HX_OK);
	assert_is(w, "SELECT coalesce(CAST(keep_until AS text), 'no more') FROM hx_run", "no more");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, world_set_up, forget)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(test_what_it_says_is_kept_with_the_run),
		TEST(test_without_one_somebody_has_to_poll),
		TEST(test_a_lease_of_its_own),
		TEST(test_a_failure_compensates),
		TEST(test_with_nothing_to_undo_it_is_over),
		TEST(test_its_time_is_over),
		TEST(test_what_is_said_at_that_moment_is_taken),
		TEST(test_a_retry_has_all_the_time_anew),
		TEST(test_what_it_tells_is_found),
		TEST(test_a_search_finds_it),
		TEST(test_one_that_rests_is_looked_at),
		TEST(test_one_at_work_ends_its_turn_first),
		TEST(test_it_goes_on_with_another_version),
		TEST(test_not_under_its_worker),
		TEST(test_a_dry_run_changes_nothing),
		TEST(test_one_that_has_failed_stays_so),
		TEST(test_who_asks_comes_before_what_is_written),
		TEST(test_a_full_journal_says_so_however_far_it_is_counted),
		TEST(test_it_is_kept_as_its_definition_says),
		TEST(test_children_are_undone_in_reverse),
		TEST(test_a_child_that_was_passed_is_undone_at_the_end),
		TEST(test_an_open_child_is_waited_for),
		TEST(test_it_is_not_completed_while_a_step_is_held),
		TEST(test_who_is_to_find_out_does_not_end_it),
		TEST(test_a_step_that_is_done_is_not_dropped),
		TEST(test_a_retry_does_not_resume),
		TEST(test_a_decision_after_its_time_is_refused),
		TEST(test_errors_do_not_grow_without_bound),
		TEST(test_what_may_have_been_done_is_undone),
		TEST(test_lapses_are_counted_in_a_row),
		TEST(test_a_turn_is_its_workers),
	};

	ONLY_THE_NAMED(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
