/*
 * The units that load a batch (flow/batch.h), the same on every store: each test runs on a SQLite file and on PostgreSQL. At once
 * or in slices, lost in the middle, held and started.
 */
#include "contract/batches.h"

static void a_batch_is_made_whole(void **state_)
{
	struct batch_spec spec, again;
	struct stamp stamp;
	struct batch_row row;

	(void)state_;
	(void)open_account(100);
	spec = spec_of("key");
	again = spec_of("key");
	stamp = begin();
	batch_create_whole(&world.unit, &stamp, &spec, tally_rows(COSTS(3, 0, 5), &world.arena), 3, true);
	must_win();
	assert_true(wakes(BATCH_TOPIC));
	assert_string_equal(state(spec.subject), "QUEUED v1 f0, due");
	assert_string_equal(counts(spec.subject), "0 of 3 begun, +0 -0 ?0 a0 c0, charged 0 refunded 0 late 0");
	assert_string_equal(see(spec.subject, 2), "PENDING, charged 0 of 5, attempt 0/0, fence 0");
	row = look(spec.subject);
	assert_true(slice_is(row.key, "key") && slice_is(row.requester, "ann") && slice_is(row.trace, "00-trace"));
	assert_true(slice_is(row.workflow, "render") && row.machine == tally_machine() && row.loaded);
	assert_int_equal(row.account, world.account);
	assert_int_equal(row.balance, 100);
	assert_int_equal(row.needs, -1);
	assert_int_equal(batch_pending(&row), 3);
	stamp = begin();
	batch_create_whole(&world.unit, &stamp, &again, tally_rows(COSTS(1), &world.arena), 1, true);
	assert_lost_at("batch_create");
	(void)begin();
	batch_read_key(&world.unit, slice_str(world.workspace), slice_str("key"));
	ask();
	assert_int_equal(db_cell(&world.result.rows[0], 0, BATCH_SUBJECT)->i, spec.subject);
	/* A held one, without items. */
	stamp = begin();
	again = spec_of(NULL);
	batch_create_whole(&world.unit, &stamp, &again, slice_str("[]"), 0, false);
	must_win();
	assert_false(wakes(BATCH_TOPIC));
	assert_string_equal(state(again.subject), "PENDING v1 f0");
	/* Two without a key are two. */
	(void)make_of(COSTS(1), false);
	(void)make_of(COSTS(1), false);
}

static struct batch_hold loading(const char *key)
{
	struct batch_spec spec = spec_of(key);
	struct stamp stamp = begin();
	struct batch_row row;
	struct batch_hold hold;

	batch_create(&world.unit, &stamp, &spec, LEASE_MS);
	must_win();
	row = look(spec.subject);
	assert_int_equal(row.fence, 1);
	batch_hold_of(&row, &tally_policy, &world.arena, &hold);
	return hold;
}

static enum unit_verdict load(const struct batch_hold *hold, int64_t from, const int64_t costs[], size_t n)
{
	(void)begin();
	batch_load_slice(&world.unit, hold, from, tally_rows(costs, n, &world.arena));
	return run();
}

static enum unit_verdict load_end(const struct batch_hold *hold, int64_t total, bool queued)
{
	struct stamp stamp = begin();

	batch_load_end(&world.unit, &stamp, hold, total, queued);
	return run();
}

static void a_batch_is_loaded_in_slices(void **state_)
{
	struct batch_hold hold, stale;

	(void)state_;
	(void)open_account(100);
	hold = loading("key");
	lapse(&hold);
	assert_string_equal(state(hold.subject), "LOADING v2 f1, owned past");
	assert_int_equal(load(&hold, 0, COSTS(1, 2)), UNIT_WON);
	assert_string_equal(state(hold.subject), "LOADING v2 f1, owned"); /* it is renewed */
	assert_int_equal(load(&hold, 2, COSTS(3)), UNIT_WON);
	assert_string_equal(see(hold.subject, 0), "none"); /* nobody sees them yet */
	stale = hold;
	stale.fence--;
	(void)begin();
	batch_load_slice(&world.unit, &stale, 3, tally_rows(COSTS(9), &world.arena));
	assert_lost_at("batch_keep");
	assert_int_equal(load_end(&stale, 3, true), UNIT_LOST);
	assert_int_equal(load_end(&hold, 3, true), UNIT_WON);
	assert_true(wakes(BATCH_TOPIC));
	assert_string_equal(state(hold.subject), "QUEUED v3 f1, due");
	assert_string_equal(see(hold.subject, 2), "PENDING, charged 0 of 3, attempt 0/0, fence 0");
	/* From here on it is not the loader's. */
	(void)begin();
	batch_load_slice(&world.unit, &hold, 3, tally_rows(COSTS(9), &world.arena));
	assert_lost_at("batch_keep");
	assert_int_equal(load_end(&hold, 4, true), UNIT_LOST);
}

static const char *input_of(int64_t batch, int64_t n)
{
	static char text[4096];

	(void)begin();
	item_read(&world.unit, batch, n);
	ask();
	snprintf(text, sizeof text, "%.*s", SLICE_ARGS(db_cell(&world.result.rows[0], 0, ITEM_INPUT)->s));
	return text;
}

static void inputs_keep_their_bytes(void **state_)
{
	static const char *const inputs[] = {
		"null",
		"{\"a\": 1.10, \"b\" : [1e400,-0.0,9007199254740993,123456789012345678901234567890]}",
		"\"\\u0000\\ud83d\\ude00 \\\\u0000 \xf0\x9f\x98\x80 \\/ \\\" ' '' \x7f \xe2\x80\xa8\"",
		"\"\\ud800\"",
		"{\"z\":1,\"a\":2,\"z\":3}",
		"\"$1 ?1 {from} %s \\n\"",
		"  [ 1 ,\t2 ]  ",
	};
	struct batch_hold hold;
	struct strbuf rows;

	(void)state_;
	(void)open_account(100);
	hold = loading(NULL);
	strbuf_init(&rows, 65536);
	strbuf_add_char(&rows, '[');
	for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++) {
		strbuf_addf(&rows, "%s[%lld,", i ? "," : "", (long long)BATCH_COST_MAX);
		json_quote(slice_str(inputs[i]), &rows);
		strbuf_add_char(&rows, ']');
	}
	strbuf_add_char(&rows, ']');
	(void)begin();
	batch_load_slice(&world.unit, &hold, 0, strbuf_slice(&rows));
	must_win();
	assert_int_equal(load_end(&hold, sizeof inputs / sizeof *inputs, false), UNIT_WON);
	for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++)
		assert_string_equal(input_of(hold.subject, (int64_t)i), inputs[i]);
	assert_string_equal(see(hold.subject, 6) + 0, "PENDING, charged 0 of 1000000000, attempt 0/0, fence 0");
	strbuf_release(&rows);
}

static enum unit_verdict load_lost(int64_t batch)
{
	struct batch_row row = look(batch);
	struct stamp stamp = begin();

	batch_load_lost(&world.unit, &stamp, &row);
	return run();
}

static void a_lost_creation_fails_and_frees_its_key(void **state_)
{
	struct batch_hold hold, next;

	(void)state_;
	(void)open_account(100);
	hold = loading("key");
	assert_int_equal(load(&hold, 0, COSTS(1, 2)), UNIT_WON);
	assert_int_equal(load_lost(hold.subject), UNIT_LOST); /* it is at it */
	lapse(&hold);
	assert_int_equal(load_lost(hold.subject), UNIT_WON);
	assert_true(wakes(subject_end_topic(hold.subject)));
	assert_string_equal(state(hold.subject), "FAILED v3 f2");
	assert_true(look(hold.subject).error.n > 0);
	assert_int_equal(load(&hold, 2, COSTS(3)), UNIT_LOST);
	assert_int_equal(load_end(&hold, 3, true), UNIT_LOST);
	assert_int_equal(load_lost(hold.subject), UNIT_LOST);
	next = loading("key");
	assert_int_equal(load_end(&next, 0, true), UNIT_WON);
}

static struct batch_hold loading_more(int64_t batch)
{
	struct batch_row row = look(batch);
	struct stamp stamp = begin();
	struct batch_hold hold;

	batch_load_more(&world.unit, &stamp, &row, LEASE_MS);
	must_win();
	batch_hold_of(&row, &tally_policy, &world.arena, &hold);
	hold.fence = db_cell(&world.result.rows[0], 0, 1)->i;
	return hold;
}

/* What it has left behind the total is replaced by whoever comes next, all of it. */
static void a_lost_addition_leaves_the_batch_as_it_was(void **state_)
{
	int64_t batch;
	struct batch_hold lost, next;
	struct batch_row row;
	struct stamp stamp;

	(void)state_;
	(void)open_account(100);
	batch = make_of(COSTS(1, 2), /* queued= */ false);
	row = look(batch);
	lost = loading_more(batch);
	assert_string_equal(state(batch), "LOADING v2 f1, owned");
	assert_int_equal(load(&lost, 2, COSTS(30, 40, 50)), UNIT_WON);
	lapse(&lost);
	assert_int_equal(load_lost(batch), UNIT_WON);
	assert_string_equal(state(batch), "PENDING v3 f2");
	assert_string_equal(counts(batch), "0 of 2 begun, +0 -0 ?0 a0 c0, charged 0 refunded 0 late 0");
	assert_string_equal(see(batch, 2), "none");
	assert_string_equal(listed(batch, "", "", -1, 100), "0 1");
	stamp = begin();
	batch_load_more(&world.unit, &stamp, &row, LEASE_MS); /* who has read it before */
	assert_lost_at("subject_seize");
	next = loading_more(batch);
	assert_int_equal(load(&lost, 2, COSTS(30)), UNIT_LOST);
	assert_int_equal(load(&next, 2, COSTS(3)), UNIT_WON);
	assert_int_equal(load_end(&next, 3, false), UNIT_WON);
	assert_string_equal(state(batch), "PENDING v5 f3");
	assert_string_equal(see(batch, 2), "PENDING, charged 0 of 3, attempt 0/0, fence 0");
	assert_string_equal(input_of(batch, 2), "{\"n\":0}");
	assert_string_equal(see(batch, 3), "none");
	next = loading_more(batch);
	assert_int_equal(load(&next, 3, COSTS(4, 5, 6)), UNIT_WON);
	assert_int_equal(load_end(&next, 6, false), UNIT_WON);
	assert_string_equal(see(batch, 3), "PENDING, charged 0 of 4, attempt 0/0, fence 0");
	assert_string_equal(see(batch, 4), "PENDING, charged 0 of 5, attempt 0/0, fence 0");
}

/* 201 with no items, held: it is acknowledged, though its total is 0. */
static void an_empty_batch_that_was_acknowledged_does_not_fail(void **state_)
{
	struct batch_hold lost;
	struct batch_row row;
	struct stamp stamp;
	int64_t batch;

	(void)state_;
	(void)open_account(100);
	batch = make_of(NULL, 0, /* queued= */ false);
	lost = loading_more(batch);
	assert_int_equal(load_lost(batch), UNIT_LOST);
	lapse(&lost);
	row = look(batch);
	row.loaded = false; /* even if somebody thinks otherwise */
	stamp = begin();
	batch_load_lost(&world.unit, &stamp, &row);
	assert_lost_at("batch_load_failed");
	assert_int_equal(load_lost(batch), UNIT_WON);
	assert_string_equal(state(batch), "PENDING v3 f2");
}

static void a_held_batch_is_started(void **state_)
{
	int64_t batch;
	struct batch_row row;
	struct stamp stamp;

	(void)state_;
	(void)open_account(100);
	batch = make_of(COSTS(1), /* queued= */ false);
	row = look(batch);
	stamp = begin();
	batch_start(&world.unit, &stamp, &row);
	must_win();
	assert_true(wakes(BATCH_TOPIC));
	assert_string_equal(state(batch), "QUEUED v2 f0, due");
	stamp = begin();
	batch_start(&world.unit, &stamp, &row);
	assert_lost_at("subject_transition");
	row = look(batch);
	stamp = begin();
	batch_start(&world.unit, &stamp, &row);
	assert_lost_at("subject_transition");
	stamp = begin();
	batch_load_more(&world.unit, &stamp, &row, LEASE_MS);
	assert_lost_at("subject_seize");
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_batch_is_made_whole),
		cmocka_unit_test(a_batch_is_loaded_in_slices),
		cmocka_unit_test(inputs_keep_their_bytes),
		cmocka_unit_test(a_lost_creation_fails_and_frees_its_key),
		cmocka_unit_test(a_lost_addition_leaves_the_batch_as_it_was),
		cmocka_unit_test(an_empty_batch_that_was_acknowledged_does_not_fail),
		cmocka_unit_test(a_held_batch_is_started),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests_name("batch loading, sqlite", tests, set_up_sqlite, tear_down) +
	       cmocka_run_group_tests_name("batch loading, postgres", tests, set_up_postgres, tear_down);
}
