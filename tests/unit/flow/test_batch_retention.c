/* What retention takes of a batch, in how many units, and what it leaves alone: by age, by status, and by who came first. */
#include "unit/flow/world.h"

#include <stdio.h>

#include "flow/batch_retention.h"
#include "support/subjects.h"

#define AGE_MS 1000
#define BATCH 50
#define ACCOUNT 7

static void sql(struct world *w, const char *text)
{
	struct hx_error err;

	if (w->db->driver->script(w->db, text, &err))
		fail_msg("%s", err.detail);
}

/* A batch in this status that ended at START_MS, with so many items and a history of two rows. */
static void make_batch(struct world *w, int64_t id, const char *status, int64_t items_n)
{
	struct stamp stamp = world_begin(w);
	char text[2000];

	subject_create(&w->unit, &stamp, id, batch_kind(), BATCH_QUEUED);
	assert_int_equal(world_run(w), UNIT_WON);
	stamp = world_begin(w);
	subject_transition(&w->unit, &stamp, &(struct move){id, BATCH_QUEUED, status}, 1);
	assert_int_equal(world_run(w), UNIT_WON);
	snprintf(
		text, sizeof text,
		"INSERT INTO hx_batch (subject, workspace, workflow, definition_version, batch_key, requester, trace,"
		" account, total, succeeded, charged, error, created_at, loaded_at, completed_at) VALUES (%lld, 'w', 'render',"
		" 3, 'key-%lld', 'ann', 'trace', %d, %lld, 2, 9, 'why', 1, 1, %s);"
		"WITH RECURSIVE x(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM x WHERE n + 1 < %lld)"
		" INSERT INTO hx_batch_item (batch, n, input, cost, status) SELECT %lld, n, '{}', 1, 'SUCCEEDED' FROM x",
		(long long)id, (long long)id, ACCOUNT, (long long)items_n,
		batch_is_terminal(status) ? "1000000" : "NULL", (long long)items_n, (long long)id);
	sql(w, text);
}

/* What there is of a batch. */
struct left {
	int64_t history, items, expired, version;
	bool has_texts, has_key, has_head;
};

static struct left look(struct world *w, int64_t id)
{
	static const struct db_stmt stmt = {
		.name = "test_left",
		.sql = "SELECT (SELECT count(*) FROM hx_history WHERE subject = ?1),"
		       " (SELECT count(*) FROM hx_batch_item WHERE batch = ?1), b.expired, s.version,"
		       " b.error = 'why' AND b.trace = 'trace' AND b.requester = 'ann',"
		       " b.error IS NULL AND b.trace IS NULL AND b.requester = '',"
		       " b.batch_key = 'key-' || ?1 AND b.workflow = 'render' AND b.succeeded = 2 AND b.charged = 9,"
		       " length(s.head) = 32 FROM hx_batch b JOIN hx_subject s ON s.id = b.subject WHERE b.subject = ?1",
		.in = "i",
		.out = "iiiiiiii",
	};
	struct left left;

	(void)world_begin(w);
	UNIT_ADD(&w->unit, UNIT_ANY, &stmt, db_int(id));
	assert_int_equal(world_run(w), UNIT_WON);
	left = (struct left){world_int(w, 0, 0),     world_int(w, 0, 1),      world_int(w, 0, 2),
			     world_int(w, 0, 3),     world_int(w, 0, 4) == 1, world_int(w, 0, 6) == 1,
			     world_int(w, 0, 7) == 1};
	if (left.has_texts == (world_int(w, 0, 5) == 1))
		fail_msg("all texts are there, or none");
	return left;
}

static void assert_whole(struct world *w, int64_t id, int64_t items_n)
{
	struct left left = look(w, id);

	assert_int_equal(left.expired, 0);
	assert_int_equal(left.history, 2);
	assert_int_equal(left.items, items_n);
	assert_int_equal(left.version, 2);
	assert_true(left.has_texts && left.has_key && left.has_head);
}

static void assert_gone(struct world *w, int64_t id)
{
	struct left left = look(w, id);

	assert_int_equal(left.expired, 2);
	assert_int_equal(left.history, 0);
	assert_int_equal(left.items, 0);
	assert_false(left.has_texts);
	assert_true(left.has_key && left.has_head);
}

/* One unit. */
static enum unit_verdict expire(struct world *w, int64_t id)
{
	(void)world_begin(w);
	batch_expire(&w->unit, id, ACCOUNT, AGE_MS);
	assert_int_equal(w->unit.subjects_n, 2); /* both are held still */
	return world_run(w);
}

/* The whole task. */
static bool expire_whole(struct world *w, int64_t id)
{
	struct batch_expiry expiry;

	batch_expiry_init(&expiry, id, AGE_MS);
	assert_int_equal(world_drive(w, &expiry.task), HX_OK);
	return expiry.gone;
}

static size_t scan(struct world *w, int64_t limit)
{
	(void)world_begin(w);
	batch_scan_expired(&w->unit, AGE_MS, limit);
	assert_int_equal(world_run(w), UNIT_WON);
	return w->result.rows[0].n;
}

static void what_is_left_is_key_sums_and_head(void **state)
{
	static const char *const ends[] = {BATCH_COMPLETED, BATCH_FAILED, BATCH_CANCELLED};
	struct world *w = *state;

	for (int64_t i = 0; i < 3; i++)
		make_batch(w, BATCH + i, ends[i], 5);
	make_batch(w, BATCH + 9, BATCH_COMPLETED, 5);
	fake_clock_advance_ms(&w->clock, AGE_MS);
	for (int64_t i = 0; i < 3; i++) {
		assert_true(expire_whole(w, BATCH + i));
		assert_gone(w, BATCH + i);
	}
	assert_whole(w, BATCH + 9, 5);
}

static void a_batch_goes_at_its_age_and_not_before(void **state)
{
	struct world *w = *state;

	make_batch(w, BATCH, BATCH_COMPLETED, 3);
	fake_clock_advance_ms(&w->clock, AGE_MS - 1);
	assert_int_equal(scan(w, 10), 0);
	assert_false(expire_whole(w, BATCH));
	assert_whole(w, BATCH, 3);
	fake_clock_advance_ms(&w->clock, 1);
	assert_int_equal(scan(w, 10), 1);
	assert_int_equal(world_int(w, 0, 0), BATCH);
	assert_true(expire_whole(w, BATCH));
	assert_int_equal(scan(w, 10), 0);
	assert_false(expire_whole(w, BATCH)); /* another node was first */
	assert_gone(w, BATCH);
}

/* A large one goes in slices, counts as expired from the first on, and whoever finds it in the middle goes on. */
static void a_large_one_goes_in_slices(void **state)
{
	struct world *w = *state;
	struct left left;

	make_batch(w, BATCH, BATCH_CANCELLED, 2 * BATCH_SLICE + 1);
	fake_clock_advance_ms(&w->clock, AGE_MS);
	assert_int_equal(expire(w, BATCH), UNIT_WON);
	left = look(w, BATCH);
	assert_int_equal(left.expired, 1);
	assert_int_equal(left.items, BATCH_SLICE + 1);
	assert_int_equal(scan(w, 10), 1); /* its node may have died here */
	assert_true(expire_whole(w, BATCH));
	assert_gone(w, BATCH);
	assert_int_equal(scan(w, 10), 0);
}

/* Exactly a slice: one unit, and it is gone. */
static void a_whole_slice_is_one_unit(void **state)
{
	struct world *w = *state;

	make_batch(w, BATCH, BATCH_COMPLETED, BATCH_SLICE);
	make_batch(w, BATCH + 1, BATCH_COMPLETED, BATCH_SLICE + 1);
	fake_clock_advance_ms(&w->clock, AGE_MS);
	assert_int_equal(expire(w, BATCH), UNIT_WON);
	assert_gone(w, BATCH);
	assert_int_equal(expire(w, BATCH + 1), UNIT_WON);
	assert_int_equal(look(w, BATCH + 1).items, 1);
}

static void a_batch_that_has_not_ended_stays(void **state)
{
	static const char *const others[] = {BATCH_PENDING, BATCH_RUNNING, BATCH_OUT_OF_CREDIT, BATCH_CANCELLING};
	struct world *w = *state;

	for (int64_t i = 0; i < 4; i++)
		make_batch(w, BATCH + i, others[i], 2);
	fake_clock_advance_ms(&w->clock, 100 * AGE_MS);
	assert_int_equal(scan(w, 10), 0);
	for (int64_t i = 0; i < 4; i++) {
		assert_int_equal(expire(w, BATCH + i), UNIT_LOST);
		assert_whole(w, BATCH + i, 2);
	}
}

/* The row says that it has ended, the subject does not: the status decides. */
static void the_status_decides(void **state)
{
	struct world *w = *state;

	make_batch(w, BATCH, BATCH_CANCELLING, 2);
	sql(w, "UPDATE hx_batch SET completed_at = 1");
	fake_clock_advance_ms(&w->clock, 100 * AGE_MS);
	assert_int_equal(scan(w, 10), 1);
	assert_int_equal(expire(w, BATCH), UNIT_LOST);
	assert_whole(w, BATCH, 2);
}

static void the_oldest_come_first(void **state)
{
	struct world *w = *state;

	for (int64_t i = 0; i < 5; i++)
		make_batch(w, BATCH + i, BATCH_COMPLETED, 1);
	sql(w, "UPDATE hx_batch SET completed_at = completed_at - subject");
	fake_clock_advance_ms(&w->clock, 100 * AGE_MS);
	assert_int_equal(scan(w, 3), 3);
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(world_int(w, i, 0), BATCH + 4 - (int64_t)i);
}

static void a_batch_that_is_not_there(void **state)
{
	struct world *w = *state;
	struct batch_expiry expiry;

	batch_expiry_init(&expiry, BATCH, AGE_MS);
	assert_int_equal(world_drive(w, &expiry.task), HX_NOT_FOUND);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_is_left_is_key_sums_and_head, world_set_up, world_tear_down),
		cmocka_unit_test_setup_teardown(a_batch_goes_at_its_age_and_not_before, world_set_up, world_tear_down),
		cmocka_unit_test_setup_teardown(a_large_one_goes_in_slices, world_set_up, world_tear_down),
		cmocka_unit_test_setup_teardown(a_whole_slice_is_one_unit, world_set_up, world_tear_down),
		cmocka_unit_test_setup_teardown(a_batch_that_has_not_ended_stays, world_set_up, world_tear_down),
		cmocka_unit_test_setup_teardown(the_status_decides, world_set_up, world_tear_down),
		cmocka_unit_test_setup_teardown(the_oldest_come_first, world_set_up, world_tear_down),
		cmocka_unit_test_setup_teardown(a_batch_that_is_not_there, world_set_up, world_tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
