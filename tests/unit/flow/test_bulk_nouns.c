/* Bulks of batches and of entities over a real store: what was so when it was looked at is done once, with its result. */
#include "unit/flow/world.h"

#include <stdio.h>

#include "flow/batch_retention.h"
#include "flow/bulk_hand.h"
#include "support/must_hold.h"

#define BULK 900000
#define ACCOUNT 7
#define ENTITY 60
#define DEFAULT slice_str("default")

static struct arena arena;
static const struct batch_machine *films;
static const struct entity_machine *bills;

/* What others write before the unit whose first statement is called so, once. */
static const char *meanwhile, *meanwhile_at;

static const struct batch_machine *film_of(const void *context UNUSED, struct slice workflow UNUSED,
					   int64_t version UNUSED)
{
	return films;
}

static const struct entity_machine *bill_of(const void *context UNUSED, struct slice workflow)
{
	return slice_is(workflow, "bill") ? bills : NULL;
}

static const struct workflow *bill_version(const void *context UNUSED, struct slice workflow UNUSED,
					   int64_t version UNUSED)
{
	return bills->workflow;
}

static const struct batch_policy batches = {.lease_ms = LEASE_MS, .machine_of = film_of};
static const struct bulk_policy policy = {.batches = &batches, .entity_of = bill_of, .workflow_of = bill_version};

static void sql(struct world *w, const char *text)
{
	struct hx_error err;

	if (w->db->driver->script(w->db, text, &err))
		fail_msg("%s", err.detail);
}

static const struct batch_definition *film_definition(void)
{
	static const char text[] =
		"{\"workflow\":\"film\",\"kind\":\"batch\",\"attributes\":{\"title\":\".data.title\"},"
		"\"actions\":{\"render\":{\"kind\":\"noop\"}},\"item_action\":\"render\"}";
	const struct batch_definition *definition;
	struct findings findings;

	findings_init(&findings, &arena);
	batch_definition_parse("film.json", slice_of(text, sizeof text - 1), &arena, &findings, &definition);
	assert_non_null(definition);
	return definition;
}

static const struct workflow *bill_workflow(void)
{
	static const char text[] =
		"{\"workflow\":\"bill\",\"kind\":\"entity\",\"status_types\":[\"open\",\"closing\",\"closed\"],\"initial_status\":\"open\","
		"\"actions\":{\"Close\":{\"kind\":\"http\",\"url\":\"http://127.0.0.1:1/\"}},\"steps\":[{\"step_id\":1,\"step_key\":\"close\","
		"\"status\":\"open\",\"claim_state\":[\"closing\",\"open\"],\"successful_state\":\"closed\",\"action\":\"Close\","
		"\"on_unknown\":\"hold\"}]}";
	const struct workflow *workflow;
	struct findings findings;

	findings_init(&findings, &arena);
	workflow_parse("bill.json", slice_of(text, sizeof text - 1), &arena, &findings, &workflow);
	assert_non_null(workflow);
	return workflow;
}

static void make_batch(struct world *w, int64_t subject, const char *data)
{
	struct stamp stamp = world_begin(w);
	struct batch_spec spec = {.subject = subject,
				  .account = ACCOUNT,
				  .workspace = DEFAULT,
				  .requester = slice_str("ann"),
				  .data = slice_str(data),
				  .machine = films};

	spec.attributes = batch_describe(films, spec.data, &arena);
	batch_create_whole(&w->unit, &stamp, &spec, slice_str("[[20,\"{}\"]]"), 1, /* queued= */ false);
	assert_int_equal(world_run(w), UNIT_WON);
}

/* An entity whose claim is held for a person. */
static void make_entity(struct world *w, int64_t subject, const char *name)
{
	struct entity_ref ref = {DEFAULT, bills, slice_str(name)};
	struct stamp stamp = world_begin(w);
	char text[400];

	entity_create(&w->unit, &stamp, &ref, subject, slice_str("{}"), slice_of(NULL, 0));
	assert_int_equal(world_run(w), UNIT_WON);
	snprintf(
		text, sizeof text,
		"UPDATE hx_subject SET status = 'closing', owner = 'held', until = 1, fence = 1, version = 2 WHERE id = %lld;"
		" UPDATE hx_entity SET claim_step = 'close', claim_from = 'open', claim_requester = 'ann', claim_input = 'null'"
		" WHERE subject = %lld",
		(long long)subject, (long long)subject);
	sql(w, text);
}

static int set_up(void **state)
{
	static struct batch_machine machine;
	struct world *w;
	struct stamp stamp;

	arena_init(&arena, 64u << 20);
	machine = (struct batch_machine){film_definition(), 3};
	films = &machine;
	bills = entity_machine_new(bill_workflow(), 1, /* table= */ NULL, &arena);
	meanwhile = NULL;
	world_set_up(state);
	w = *state;
	stamp = world_begin(w);
	account_create(&w->unit, &stamp, DEFAULT, slice_str("alice"), ACCOUNT, 500);
	assert_int_equal(world_run(w), UNIT_WON);
	return 0;
}

static int tear_down(void **state)
{
	arena_release(&arena);
	return world_tear_down(state);
}

/* ---- a bulk ---- */

static void make_bulk(struct world *w, const char *verb, const char *kind, const char *where, const char *arguments,
		      const char *ids, int64_t n)
{
	struct bulk_spec spec = {.subject = BULK,
				 .workspace = DEFAULT,
				 .requester = slice_str("me"),
				 .verb = slice_str(verb),
				 .kind = slice_str(kind),
				 .condition = slice_str(where),
				 .arguments = slice_str(arguments)};
	struct stamp stamp = world_begin(w);

	bulk_create(&w->unit, &stamp, &spec);
	assert_int_equal(world_run(w), UNIT_WON);
	(void)world_begin(w);
	bulk_freeze(&w->unit, &(struct bulk_slice){BULK, 0, 99, 0, n, slice_str(ids), /* last= */ true});
	assert_int_equal(world_run(w), UNIT_WON);
}

static void meet(struct world *w)
{
	struct unit built = w->unit;

	if (!meanwhile || strcmp(w->unit.lines[0].stmt->name, meanwhile_at) != 0)
		return;
	sql(w, meanwhile);
	meanwhile = NULL;
	w->unit = built;
}

static enum hx_code work(struct world *w)
{
	struct ask ask = {.unit = &w->unit};
	struct answer answer = {.kind = ANSWER_START, .node = "here"};
	struct arena room;
	struct bulk_hand hand;

	arena_init(&room, 64u << 20);
	bulk_hand_init(&hand, BULK, 0, 1, -1, &policy, &room);
	for (;;) {
		answer.now = w->clock.wall;
		answer.mono = w->clock.mono;
		answer.id = w->last_op += 10;
		assert_true(task_take(&hand.task, hand.task.turn, &answer));
		hand.task.kind->ask(&hand.task, &ask);
		if (ask.kind == ASK_DONE)
			break;
		assert_int_equal(ask.kind, ASK_COMMIT);
		meet(w);
		(void)world_run(w);
		answer.kind = ANSWER_COMMIT;
		answer.result = &w->result;
	}
	arena_release(&room);
	return ask.code;
}

static bool is(struct world *w, const struct db_stmt *stmt, const char *wanted)
{
	bool same;

	unit_init(&w->unit, 0);
	unit_add(&w->unit, UNIT_ANY, stmt, 0, NULL);
	assert_int_equal(world_run(w), UNIT_WON);
	same = slice_is(db_cell(&w->result.rows[0], 0, 0)->s, wanted);
	if (!same)
		printf("%.*s\n", SLICE_ARGS(db_cell(&w->result.rows[0], 0, 0)->s));
	return same;
}

#define SEEN(stmt_, text)                                                                                              \
	static const struct db_stmt stmt_ = {.name = "test_" #stmt_, .sql = text, .in = "", .out = "t"}

SEEN(items,
     "SELECT group_concat(subject || ' ' || coalesce(code, result, '-'), ', ') FROM (SELECT * FROM hx_bulk_item ORDER BY n)");
SEEN(states, "SELECT group_concat(s.id || ' ' || s.status || CASE WHEN b.cancel_requested THEN ' flagged' ELSE '' END"
	     " || CASE WHEN s.owner IS NULL AND b.due_at IS NOT NULL THEN ' due' ELSE '' END, ', ')"
	     " FROM hx_batch b JOIN hx_subject s ON s.id = b.subject");
SEEN(claims,
     "SELECT group_concat(s.id || ' ' || s.status || coalesce(' ' || s.owner, ''), ', ') FROM hx_entity e JOIN hx_subject s"
     " ON s.id = e.subject");
SEEN(found,
     "SELECT coalesce(group_concat(a.subject || ' ' || name || '=' || value, ', '), '') FROM hx_attribute a JOIN hx_subject s"
     " ON s.id = a.subject AND s.kind = a.kind AND a.workspace = 'default'");
SEEN(kept, "SELECT coalesce(data, '') || coalesce(attributes, '') FROM hx_batch WHERE subject = 50");

static void make_batches(struct world *w)
{
	for (int64_t n = 50; n < 56; n++)
		make_batch(w, n, n == 53 ? "{\"title\":\"other\"}" : "{\"title\":\"it\"}");
	sql(w,
	    "UPDATE hx_subject SET status = 'RUNNING', owner = 'n', until = 9999999999999, fence = 1 WHERE id = 51;"
	    "UPDATE hx_subject SET status = 'OUT_OF_CREDIT' WHERE id = 52; UPDATE hx_subject SET status = 'COMPLETED' WHERE id = 54;"
	    "UPDATE hx_subject SET status = 'CANCELLED' WHERE id = 55");
}

static void batches_are_cancelled_once(void **state)
{
	struct world *w = *state;

	make_batches(w);
	make_bulk(w, "cancel", "batch", "title == \"it\"", "{}", "[50,51,52,53,54,55,56]", 7);
	assert_int_equal(work(w), HX_OK);
	MUST_HOLD(
		is(w, &items,
		   "50 done, 51 done, 52 done, 53 NO_LONGER_MATCHES, 54 ALREADY_COMPLETED, 55 unchanged, 56 NOT_FOUND"),
		"what was done has no result, or what does not match is done");
	assert_true(is(
		w, &states,
		"50 CANCELLING flagged due, 51 RUNNING flagged, 52 OUT_OF_CREDIT flagged due, 53 PENDING, 54 COMPLETED,"
		" 55 CANCELLED"));
}

/* The store takes neither the cancel nor the result of an item that has one by then. */
static void an_item_is_told_once(void **state)
{
	struct world *w = *state;

	make_batches(w);
	make_entity(w, ENTITY, "e");
	make_bulk(w, "cancel", "batch", "title == \"it\"", "{}", "[50,51]", 2);
	meanwhile = "UPDATE hx_bulk_item SET result = 'cancelled'";
	meanwhile_at = "subject_read"; /* the first look */
	assert_int_equal(work(w), HX_OK);
	MUST_HOLD(is(w, &states, "50 PENDING, 51 RUNNING, 52 OUT_OF_CREDIT, 53 PENDING, 54 COMPLETED, 55 CANCELLED"),
		  "an item is done that was cancelled");
	assert_true(is(w, &items, "50 cancelled, 51 cancelled"));
}

static void a_batch_that_has_changed_is_asked_again(void **state)
{
	struct world *w = *state;

	make_batches(w);
	make_bulk(w, "cancel", "batch", "status == \"OUT_OF_CREDIT\"", "{}", "[52]", 1);
	meanwhile = "UPDATE hx_subject SET status = 'RUNNING', version = version + 1 WHERE id = 52";
	meanwhile_at = "subject_is_at"; /* the flag, which no version guards by itself */
	assert_int_equal(work(w), HX_OK);
	MUST_HOLD(is(w, &items, "52 NO_LONGER_MATCHES"), "a batch is cancelled that is another since it was looked at");
	assert_true(is(w, &states, "50 PENDING, 51 RUNNING, 52 RUNNING, 53 PENDING, 54 COMPLETED, 55 CANCELLED"));
}

static void batches_are_started_once(void **state)
{
	struct world *w = *state;

	make_batches(w);
	make_bulk(w, "start", "batch", "workflow == \"film\"", "{}", "[50,51,53,55]", 4);
	meanwhile = "UPDATE hx_subject SET version = version + 1 WHERE id = 50"; /* seen at first, and read later */
	meanwhile_at = "batch_read";
	assert_int_equal(work(w), HX_OK);
	assert_true(is(w, &items, "50 done, 51 unchanged, 53 done, 55 WRONG_STATUS"));
	assert_true(is(w, &states,
		       "50 QUEUED due, 51 RUNNING, 52 OUT_OF_CREDIT, 53 QUEUED due, 54 COMPLETED, 55 CANCELLED"));
}

static void held_claims_are_resolved_once(void **state)
{
	struct world *w = *state;

	for (int64_t n = ENTITY; n < ENTITY + 4; n++)
		make_entity(w, n, n == 60 ? "a" : n == 61 ? "b" : n == 62 ? "c" : "d");
	sql(w, "UPDATE hx_subject SET owner = NULL, until = NULL, status = 'open' WHERE id = 62");
	make_bulk(w, "resolve", "entity", "workflow == \"bill\" and id in [\"a\", \"b\", \"c\"]",
		  "{\"step\":\"close\",\"outcome\":\"done\"}", "[60,61,62,63]", 4);
	meanwhile = "UPDATE hx_bulk_item SET result = 'cancelled' WHERE subject = 61";
	meanwhile_at = "subject_read";
	assert_int_equal(work(w), HX_OK);
	MUST_HOLD(is(w, &claims, "60 closed, 61 closing held, 62 open, 63 closing held"),
		  "a claim is resolved whose item has its result");
	MUST_HOLD(is(w, &items, "60 done, 61 cancelled, 62 WRONG_STATUS, 63 NO_LONGER_MATCHES"),
		  "what was done has no result");
}

/* ---- what batches are found by ---- */

static void a_batch_is_found_until_it_expires(void **state)
{
	struct world *w = *state;

	make_batch(w, 50, "{\"title\":\"it\"}");
	make_batch(w, 51, "{\"titel\":\"it\"}");
	MUST_HOLD(is(w, &found, "50 title=sit"), "a batch is not found by what it was started with");
	sql(w, "UPDATE hx_subject SET status = 'COMPLETED'; UPDATE hx_batch SET completed_at = 1");
	(void)world_begin(w);
	batch_expire(&w->unit, 50, ACCOUNT, 1000);
	assert_int_equal(world_run(w), UNIT_WON);
	MUST_HOLD(is(w, &found, ""), "a search finds batches that retention has taken");
	assert_true(is(w, &kept, ""));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(batches_are_cancelled_once),
		TEST(an_item_is_told_once),
		TEST(a_batch_that_has_changed_is_asked_again),
		TEST(batches_are_started_once),
		TEST(held_claims_are_resolved_once),
		TEST(a_batch_is_found_until_it_expires),
	};

	ONLY_THE_NAMED(argc, argv);
	return cmocka_run_group_tests_name("bulk nouns", tests, NULL, NULL);
}
