/* Batches in a whole engine on both stores: they end as they should, whoever stops, cancels, dies or joins in between. */
#include "batch_engine.h"

static void all_items_are_done_once_and_some_at_a_time(void **state)
{
	int64_t batch;
	struct batch_row row;

	(void)state;
	make_account(OPENING);
	open_gate(0);
	batch = load(50, /* held= */ false);
	AWAIT(DEADLINE_MS, calls() == CONCURRENCY); /* the gate is closed: all that may be begun have been */
	open_gate(SIZE_MAX);
	AWAIT(DEADLINE_MS, is_in(batch, BATCH_COMPLETED));
	row = look(batch);
	assert_int_equal(row.succeeded, 50);
	assert_int_equal(row.charged, cost_of(50));
	assert_books(batch, OPENING);
	assert_int_equal(service.calls, 50);
	assert_int_equal(service.in_flight_max, CONCURRENCY);
	assert_int_equal(artifacts(), 50);
	assert_false(service.garbled);
	for (size_t i = 0; i < 50; i++)
		assert_int_equal(service.called[i], 1);
	AWAIT(DEADLINE_MS, atomic_load(&engine_parts(engine)->metrics->batches_driven) == 1);
	assert_int_equal(atomic_load(&engine_parts(engine)->metrics->batch_items_succeeded), 50);
	assert_int_equal(atomic_load(&engine_parts(engine)->metrics->batch_turns), 0);
	assert_int_equal(told("batch"), 0);
}

static void failed_items_are_tried_again_and_returned(void **state)
{
	int64_t batch;
	struct batch_row row;

	(void)state;
	make_account(OPENING);
	service.fail_every = 2; /* and two attempts each: some fail for good */
	batch = load(30, /* held= */ false);
	AWAIT(DEADLINE_MS, is_in(batch, BATCH_COMPLETED));
	row = look(batch);
	assert_int_equal(row.succeeded + row.failed, 30);
	assert_int_equal((size_t)row.succeeded, artifacts());
	assert_books(batch, OPENING);
	assert_int_equal((int64_t)atomic_load(&engine_parts(engine)->metrics->batch_items_failed), row.failed);
}

static void a_cancel_in_the_middle_gives_all_back(void **state)
{
	int64_t batch;
	struct batch_row row;

	(void)state;
	make_account(OPENING);
	open_gate(10);
	batch = load(50, /* held= */ false);
	AWAIT(DEADLINE_MS, calls() == 10 + CONCURRENCY);
	assert_true(cancel(batch).accepted);
	open_gate(SIZE_MAX);
	AWAIT(DEADLINE_MS, is_in(batch, BATCH_CANCELLED));
	row = look(batch);
	assert_int_equal(service.calls, 10 + CONCURRENCY); /* nothing was begun after the flag */
	assert_int_equal(row.cancelled, 50);
	assert_int_equal(row.refunded, cost_of(10 + CONCURRENCY));
	assert_int_equal(row.charged, row.refunded);
	assert_int_equal(balance(), OPENING);
	assert_int_equal(artifacts(), 0);
	assert_int_equal(service.cleanups, 10 + CONCURRENCY);
	assert_true(cancel(batch).was_over);
}

/* What a stopped engine has left is past its time a lease later: the next one takes it over, with what is in doubt. */
static void what_a_stop_has_left_is_taken_over(void **state)
{
	int64_t batch;
	struct batch_row row;

	(void)state;
	shorten_lease(SOON_OVER_MS);
	make_account(OPENING);
	open_gate(10);
	batch = load(50, /* held= */ false);
	AWAIT(DEADLINE_MS, calls() == 10 + CONCURRENCY);
	engine_end();
	open_gate(SIZE_MAX);
	engine_begin();
	AWAIT(DEADLINE_MS, is_in(batch, BATCH_COMPLETED));
	row = look(batch);
	assert_int_equal(row.succeeded, 50);
	assert_int_equal(row.charged, cost_of(50));
	assert_books(batch, OPENING);
	assert_int_equal(artifacts(), 50);
	/* Those that were at the gate were called again, under the same key, and nothing else was. */
	assert_int_equal(service.calls, 50 + CONCURRENCY);
	assert_int_equal(atomic_load(&engine_parts(engine)->metrics->batches_taken_over), 1);
	assert_int_equal(told("was taken over"), 1);
}

/* The same with a cancel before: whoever takes it over tears it down. */
static void what_was_flagged_is_taken_over_into_teardown(void **state)
{
	int64_t batch;

	(void)state;
	shorten_lease(SOON_OVER_MS);
	make_account(OPENING);
	open_gate(10);
	batch = load(50, /* held= */ false);
	AWAIT(DEADLINE_MS, calls() == 10 + CONCURRENCY);
	assert_true(cancel(batch).accepted);
	engine_end();
	open_gate(SIZE_MAX);
	engine_begin();
	AWAIT(DEADLINE_MS, is_in(batch, BATCH_CANCELLED));
	assert_int_equal(balance(), OPENING);
	assert_int_equal(artifacts(), 0);
	assert_int_equal(service.calls, 10 + CONCURRENCY);
}

static void money_that_comes_makes_it_go_on(void **state)
{
	int64_t batch;
	struct batch_row row;

	(void)state;
	make_account(10); /* 1 + 2 + 3 + 1 + 2, and 1 is left for one of 3 */
	batch = load(12, /* held= */ false);
	AWAIT(DEADLINE_MS, is_in(batch, BATCH_OUT_OF_CREDIT));
	row = look(batch);
	assert_int_equal(row.succeeded, 5);
	assert_int_equal(row.needs, 3);
	assert_int_equal(balance(), 1);
	assert_false(row.owned);
	credit(1, "too little");
	assert_true(is_in(batch, BATCH_OUT_OF_CREDIT));
	credit(100, "enough");
	AWAIT(DEADLINE_MS, is_in(batch, BATCH_COMPLETED));
	assert_int_equal(look(batch).succeeded, 12);
	assert_int_equal(balance(), 111 - cost_of(12));
}

/* What could not be deleted keeps the batch from its end; the money is back already. */
static void a_cleanup_that_fails_is_tried_again(void **state)
{
	int64_t batch;
	struct batch_row row;

	(void)state;
	make_account(OPENING);
	open_gate(0);
	batch = load(20, /* held= */ false);
	AWAIT(DEADLINE_MS, calls() == CONCURRENCY);
	pthread_mutex_lock(&service.mutex);
	service.cleanups_to_fail = CONCURRENCY + 1; /* the whole first pass, and one of the second */
	pthread_mutex_unlock(&service.mutex);
	assert_true(cancel(batch).accepted);
	open_gate(SIZE_MAX);
	AWAIT(DEADLINE_MS, look(batch).cleanups == 1);
	row = look(batch);
	assert_string_equal(row.status, BATCH_CANCELLING);
	assert_int_equal(balance(), OPENING);
	assert_int_equal(artifacts(), CONCURRENCY);
	assert_true(slice_is(row.error, "the store of artifacts is down"));
	AWAIT(DEADLINE_MS, is_in(batch, BATCH_CANCELLED));
	row = look(batch);
	assert_int_equal(row.cleanups, 2);
	assert_null(row.error.p);
	assert_int_equal(artifacts(), 0);
	assert_int_equal(balance(), OPENING);
	assert_int_equal(told("was not deleted"), 2);
	assert_int_equal(told("ACTION_FAILED"), 2);
}

static void count_done(void *context)
{
	atomic_fetch_add((_Atomic int *)context, 1);
}

/* Whoever cancels one that was never begun tears it down at once, and hears when that is over. */
static void a_caller_tears_down_what_it_has_seized(void **state)
{
	int64_t batch;
	struct batch_cancel c;
	_Atomic int done = 0;

	(void)state;
	make_account(OPENING);
	batch = load(700, /* held= */ true); /* more than a slice */
	c = cancel(batch);
	assert_true(c.seized);
	assert_true(is_in(batch, BATCH_CANCELLING));
	assert_true(batches_tear_down(engine_parts(engine)->batches, &c.hold, count_done, &done));
	AWAIT(DEADLINE_MS, atomic_load(&done) == 1);
	assert_true(is_in(batch, BATCH_CANCELLED));
	assert_int_equal(look(batch).cancelled, 700);
	assert_int_equal(balance(), OPENING);
	assert_int_equal(service.calls, 0);
}

/* Its canceller was lost after the seize: the claim lapses, and the janitor finds it. */
static void what_a_lost_canceller_has_seized_is_torn_down(void **state)
{
	int64_t batch;

	(void)state;
	shorten_lease(OVER_AT_ONCE_MS);
	make_account(OPENING);
	batch = load(5, /* held= */ true);
	assert_true(cancel(batch).seized);
	AWAIT(DEADLINE_MS, is_in(batch, BATCH_CANCELLED));
	assert_true(atomic_load(&engine_parts(engine)->metrics->batches_taken_over) >= 1);
}

/* Of two tenures of one batch in one process the later fence has it, and the other one ends. */
static void an_overtaken_tenure_ends(void **state)
{
	int64_t batch;
	struct batch_cancel c;
	struct batch_hold stale;
	_Atomic int done = 0;

	(void)state;
	make_account(OPENING);
	batch = load(5, /* held= */ true);
	c = cancel(batch);
	stale = c.hold;
	stale.fence--;
	assert_true(batches_tear_down(engine_parts(engine)->batches, &stale, count_done, &done));
	AWAIT(DEADLINE_MS, atomic_load(&done) == 1);
	assert_true(is_in(batch, BATCH_CANCELLING));
	assert_true(batches_tear_down(engine_parts(engine)->batches, &c.hold, count_done, &done));
	AWAIT(DEADLINE_MS, atomic_load(&done) == 2);
	assert_true(is_in(batch, BATCH_CANCELLED));
}

/* A held one is started and cancelled in the same moment. */
static struct batch_cancel cancel_while_it_starts(int64_t batch)
{
	const struct batch_policy *policy = engine_parts(engine)->batch_policy;
	struct batch_verb_request rq = {
		.kind = BATCH_START, .workspace = WORKSPACE, .subject = batch, .policy = policy};
	struct batch_verb verb;
	struct batch_cancel c;
	struct asking start = {.seat = {.task = &verb.task, .done = errand_done}};
	struct arena verbs;

	arena_init(&verbs, 1u << 20);
	batch_verb_init(&verb, &rq, &verbs);
	batch_cancel_init(&c, WORKSPACE, batch, policy, &arena);
	assert_int_equal(engine_submit(engine, (uint64_t)batch, &start.seat), HX_OK);
	assert_int_equal(run(&c.task, batch), HX_OK);
	AWAIT(DEADLINE_MS, atomic_load(&start.done)); /* it may come too late */
	arena_release(&verbs);
	return c;
}

/* Cancel against claim: whoever seizes it first, it is torn down; and a canceller that did knows that by the end of its own. */
static void a_cancel_meets_the_first_claim(void **state)
{
	size_t seized = 0, accepted = 0;

	(void)state;
	make_account(OPENING);
	for (size_t i = 0; i < 100; i++) {
		int64_t batch;
		struct batch_cancel c;
		_Atomic int done = 0;

		open_gate(0); /* it does not come to its end */
		batch = load(3, /* held= */ i % 2 == 0);
		c = i % 2 ? cancel(batch) : cancel_while_it_starts(batch);
		open_gate(SIZE_MAX);
		if (c.seized) {
			assert_true(batches_tear_down(engine_parts(engine)->batches, &c.hold, count_done, &done));
			AWAIT(DEADLINE_MS, atomic_load(&done) == 1);
			assert_true(is_in(batch, BATCH_CANCELLED));
		} else {
			AWAIT(DEADLINE_MS, is_in(batch, BATCH_CANCELLED));
		}
		seized += c.seized;
		accepted += c.accepted;
	}
	assert_true(seized > 0 && accepted > 0);
	assert_int_equal(balance(), OPENING);
	assert_int_equal(artifacts(), 0);
}

static void tearing_down_is_refused_by_a_stopped_engine(void **state)
{
	int64_t batch;
	struct batch_cancel c;
	_Atomic int done = 0;

	(void)state;
	make_account(OPENING);
	batch = load(5, /* held= */ true);
	c = cancel(batch);
	engine_stop(engine, /* drain_ms= */ 0);
	assert_false(batches_tear_down(engine_parts(engine)->batches, &c.hold, count_done, &done));
	assert_int_equal(atomic_load(&done), 0);
}

/* Whoever waits for a teardown is told, also by a stop in the middle of it. */
static void a_stop_tells_whoever_waits(void **state)
{
	int64_t batch;
	struct batch_cancel c;
	_Atomic int done = 0;

	(void)state;
	shorten_lease(OVER_AT_ONCE_MS);
	make_account(OPENING);
	batch = load(3000, /* held= */ true);
	c = cancel(batch);
	assert_true(batches_tear_down(engine_parts(engine)->batches, &c.hold, count_done, &done));
	engine_end();
	assert_int_equal(atomic_load(&done), 1);
	engine_begin();
	AWAIT(DEADLINE_MS, is_in(batch, BATCH_CANCELLED));
	assert_int_equal(look(batch).cancelled, 3000);
}

/* Memory is bounded by what is under way: never more turns than hands, however many items. */
static void many_items_take_no_more_memory(void **state)
{
	int64_t batch;

	(void)state;
	count_turns();
	make_account(OPENING);
	batch = load(2000, /* held= */ false);
	AWAIT(3 * DEADLINE_MS, is_in(batch, BATCH_COMPLETED));
	assert_books(batch, OPENING);
	assert_int_equal(service.calls, 2000);
	assert_true(service.turns_max > 0 && service.turns_max <= CONCURRENCY);
	AWAIT(DEADLINE_MS, atomic_load(&engine_parts(engine)->metrics->batch_turns) == 0);
}

/* More batches than a workspace has places: the rest waits for room, and none is forgotten; money that is to be given back has room. */
static void more_batches_than_there_is_room_for(void **state)
{
	const struct engine_metrics *metrics = engine_parts(engine)->metrics;
	int64_t batches[BATCHES_MAX / 2 + 10], cancelled;
	const size_t n = sizeof batches / sizeof *batches;
	struct batch_cancel c;
	_Atomic int done = 0;

	(void)state;
	count_turns();
	make_account(OPENING);
	open_gate(0);
	for (size_t i = 0; i < n; i++)
		batches[i] = load(3, /* held= */ false);
	AWAIT(DEADLINE_MS, atomic_load(&metrics->batch_turns) == (uint64_t)BATCHES_MAX / 2 * CONCURRENCY);
	cancelled = load(3, /* held= */ true);
	c = cancel(cancelled);
	assert_true(batches_tear_down(engine_parts(engine)->batches, &c.hold, count_done, &done));
	AWAIT(DEADLINE_MS, atomic_load(&done) == 1);
	assert_true(is_in(cancelled, BATCH_CANCELLED));
	open_gate(SIZE_MAX);
	for (size_t i = 0; i < n; i++)
		AWAIT(DEADLINE_MS, is_in(batches[i], BATCH_COMPLETED));
	assert_int_equal(balance(), OPENING - (int64_t)n * cost_of(3));
	assert_int_equal(calls(), 3 * n);
	assert_true(service.turns_max <= (size_t)(BATCHES_MAX / 2 + 1) * CONCURRENCY);
}

/* A loader that was lost before its batch was whole: the janitor ends that. */
struct made {
	struct batch_spec spec;
	int64_t subject;
};

static void build_loading(const struct single *single, struct unit *unit)
{
	struct made *made = single->context;

	made->spec.subject = made->subject = single->fresh_id;
	batch_create(unit, &single->stamp, &made->spec, OVER_AT_ONCE_MS);
}

static void what_a_lost_loader_has_left_fails(void **state)
{
	struct single single;
	struct made made = {
		.spec = {
			.workspace = WORKSPACE,
			.requester = slice_str("ann"),
			.machine = definitions_batch(engine_parts(engine)->definitions, slice_str("render")),
		}};

	(void)state;
	make_account(OPENING);
	made.spec.account = look(load(0, /* held= */ true)).account;
	single_init(&single, &made, build_loading, won);
	assert_int_equal(run(&single.task, 1), HX_OK);
	AWAIT(DEADLINE_MS, is_in(made.subject, BATCH_FAILED));
}

static void run_sql(const char *text)
{
	struct db *db = store_open(store);
	struct hx_error err;

	if (db->driver->script(db, text, &err))
		fail_msg("%s", err.detail);
	db_close(db);
}

/* A version that nobody here knows: told once, looked for again and again, and never in a hurry. */
static void an_unknown_definition_is_waited_for(void **state)
{
	int64_t batch, driven;

	(void)state;
	make_account(OPENING);
	batch = load(3, /* held= */ true);
	engine_end();
	run_sql("UPDATE hx_batch SET definition_version = 99, due_at = 1; UPDATE hx_subject SET status = 'QUEUED' WHERE"
		" status = 'PENDING'");
	engine_begin();
	AWAIT(DEADLINE_MS, told("is not known here") == 1);
	assert_true(is_in(batch, BATCH_QUEUED));
	driven = (int64_t)atomic_load(&engine_parts(engine)->metrics->batches_driven);
	assert_int_equal(driven, 0);
	assert_int_equal(told("is not known here"), 1);
}

/* A second node beside the first: between them they do everything once, and what one has left the other takes over. */
static void two_nodes_share_the_work(void **state)
{
	struct engine *first, *second;
	int64_t batches[20], last;
	const size_t n = sizeof batches / sizeof *batches;
	bool first_has;

	(void)state;
	shorten_lease(SOON_OVER_MS);
	first = engine;
	make_account(OPENING);
	node = "there";
	engine_begin();
	second = engine;
	for (size_t i = 0; i < n; i++) {
		engine = i % 2 ? first : second;
		batches[i] = load(6, /* held= */ false);
	}
	for (size_t i = 0; i < n; i++)
		AWAIT(DEADLINE_MS, is_in(batches[i], BATCH_COMPLETED));
	assert_int_equal(calls(), 6 * n);
	assert_int_equal(balance(), OPENING - (int64_t)n * cost_of(6));
	open_gate(6 * n + 4);
	last = load(30, /* held= */ false);
	AWAIT(DEADLINE_MS, calls() == 6 * n + 4 + CONCURRENCY);
	first_has = slice_is(look(last).owner, "here");
	engine = first_has ? first : second;
	engine_end();
	engine = first_has ? second : first;
	open_gate(SIZE_MAX);
	AWAIT(DEADLINE_MS, is_in(last, BATCH_COMPLETED));
	assert_int_equal(calls(), 6 * n + 30 + CONCURRENCY);
	assert_int_equal(balance(), OPENING - (int64_t)n * cost_of(6) - cost_of(30));
	assert_true(atomic_load(&engine_parts(engine)->metrics->batches_taken_over) >=
		    1); /* more where a lease was short */
}

static void what_ended_long_ago_expires(void **state)
{
	int64_t batch;
	struct batch_row row;
	struct batch_cancel c;

	(void)state;
	engine_end();
	config.retain_batches_ms = 400;
	engine_begin();
	make_account(OPENING);
	batch = load(700, /* held= */ true);
	c = cancel(batch);
	assert_true(batches_tear_down(engine_parts(engine)->batches, &c.hold, /* done= */ NULL, NULL));
	AWAIT(DEADLINE_MS, atomic_load(&engine_parts(engine)->metrics->batches_expired) == 1);
	row = look(batch);
	assert_true(row.expired);
	assert_string_equal(row.status, BATCH_CANCELLED);
	assert_int_equal(row.total, 700);
	assert_int_equal(balance(), OPENING);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(all_items_are_done_once_and_some_at_a_time),
		TEST(failed_items_are_tried_again_and_returned),
		TEST(a_cancel_in_the_middle_gives_all_back),
		TEST(what_a_stop_has_left_is_taken_over),
		TEST(what_was_flagged_is_taken_over_into_teardown),
		TEST(money_that_comes_makes_it_go_on),
		TEST(a_cleanup_that_fails_is_tried_again),
		TEST(a_caller_tears_down_what_it_has_seized),
		TEST(what_a_lost_canceller_has_seized_is_torn_down),
		TEST(an_overtaken_tenure_ends),
		TEST(a_cancel_meets_the_first_claim),
		TEST(tearing_down_is_refused_by_a_stopped_engine),
		TEST(a_stop_tells_whoever_waits),
		ON(many_items_take_no_more_memory, sqlite),
		TEST(more_batches_than_there_is_room_for),
		TEST(what_a_lost_loader_has_left_fails),
		TEST(an_unknown_definition_is_waited_for),
		TEST(what_ended_long_ago_expires),
		ON(two_nodes_share_the_work, postgres),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
