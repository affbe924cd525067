/* The chain of the history: it vouches for every row that the builders of subject.c have written. */
#include "unit/flow/world.h"

#include <stdio.h>

#include "base/hash.h"
#include "support/subjects.h"

static const struct move to_busy = {1, "open", "busy"};
static const struct move to_open = {1, "busy", "open"};

/* Follows the history of subject 1 from its beginning; true if every hash and the head come out. */
static bool chain_holds(struct world *w)
{
	uint8_t head[SHA256_BYTES];
	size_t head_bytes = 0;
	int64_t seq = 0;
	bool holds = true;

	for (;;) {
		world_begin(w);
		subject_read_history(&w->unit, 1, seq, /* limit= */ 7);
		assert_int_equal(world_run(w), UNIT_WON);

		const struct db_rows *rows = &w->result.rows[0];

		for (size_t i = 0; i < rows->n; i++) {
			struct history_row row = {
				.subject = 1,
				.seq = world_int(w, i, 0),
				.from = db_cell(rows, i, 1)->s,
				.to = db_cell(rows, i, 2)->s,
				.version = world_int(w, i, 3),
				.fence = world_int(w, i, 4),
				.op = world_int(w, i, 5),
				.node = db_cell(rows, i, 6)->s,
				.at = world_int(w, i, 7),
			};

			history_link(&row, slice_of(head, head_bytes), head);
			head_bytes = sizeof head;
			holds &= row.seq == ++seq;
			holds &= slice_eq(db_cell(rows, i, 8)->s, slice_of(head, sizeof head));
		}
		if (rows->n < 7)
			break;
	}
	world_begin(w);
	subject_read_head(&w->unit, 1);
	assert_int_equal(world_run(w), UNIT_WON);
	return holds && world_int(w, 0, 0) == seq &&
	       slice_eq(db_cell(&w->result.rows[0], 0, 1)->s, slice_of(head, sizeof head));
}

/* Claims, finishes, releases, reverts and moves at random for `changes` changes that were won. */
static void live(struct world *w, unsigned changes)
{
	int64_t version = 1, fence = 0;
	bool claimed = false;
	unsigned seed = 7;

	while (changes > 0) {
		struct stamp stamp = world_begin(w);
		unsigned die = (seed = seed * 1103515245 + 12345) >> 16 & 3;

		if (!claimed && die < 2)
			subject_claim(&w->unit, &stamp, &to_busy, version, LEASE_MS);
		else if (!claimed)
			subject_transition(&w->unit, &stamp, &(struct move){1, "open", "open"}, version);
		else if (die == 0)
			subject_revert(&w->unit, &stamp, &to_open, fence);
		else if (die == 1)
			subject_heartbeat(&w->unit, 1, fence, LEASE_MS);
		else
			subject_release(&w->unit, &stamp, &to_open, fence - (die == 3),
					/* answered= */ true); /* of 3, a stale one */
		fake_clock_advance_ms(&w->clock, 200);
		if (world_run(w) != UNIT_WON || w->unit.lines_n == 1)
			continue;
		assert_int_equal(world_int(w, 0, 0), ++version);
		claimed = strcmp(w->unit.lines[0].stmt->name, "subject_claim") == 0;
		assert_int_equal(world_int(w, 0, 1), fence + claimed); /* S2: never falls, rises with each claim */
		fence += claimed;
		changes--;
	}
}

static void script(struct world *w, const char *sql)
{
	struct hx_error err;

	if (w->db->driver->script(w->db, sql, &err) != HX_OK)
		fail_msg("%s: %s", sql, err.detail);
}

static void the_chain_vouches_for_every_row(void **state)
{
	struct world *w = *state;
	static const char *const tampered[] = {
		"from_status = 'x'", "to_status = 'x'", "version = version + 1", "fence = fence + 1",
		"op = op + 1",       "node = 'x'",      "at = at + 1",           "hash = x'00'",
	};
	char sql[128];

	world_create(w, 1, "open");
	assert_true(chain_holds(w));
	live(w, 60);
	assert_true(chain_holds(w));
	script(w, "CREATE TEMP TABLE kept AS SELECT * FROM hx_history");
	for (size_t i = 0; i < sizeof tampered / sizeof *tampered; i++) {
		snprintf(sql, sizeof sql, "UPDATE hx_history SET %s WHERE seq = 31", tampered[i]);
		script(w, sql);
		assert_false(chain_holds(w));
		script(w, "DELETE FROM hx_history; INSERT INTO hx_history SELECT * FROM kept");
		assert_true(chain_holds(w));
	}
	script(w, "DELETE FROM hx_history WHERE seq = 61");
	assert_false(chain_holds(w)); /* the head knows of one more */
}

static void the_link_has_one_text(void **state)
{
	struct history_row row = {
		.subject = INT64_MAX,
		.seq = 2,
		.from = slice_str("open"),
		.to = slice_str("busy"),
		.version = 3,
		.fence = 4,
		.op = 5,
		.at = -6,
		.node = slice_str("n1"),
	};
	static const char text[] = "9223372036854775807|2|open|busy|3|4|5|-6|n1";
	uint8_t linked[SHA256_BYTES], expected[SHA256_BYTES];

	(void)state;
	history_link(&row, slice_of(NULL, 0), linked);
	sha256(text, strlen(text), expected);
	assert_memory_equal(linked, expected, sizeof expected);
	history_link(&row, slice_of(linked, sizeof linked), linked); /* over what was before */
	sha256_pair(slice_of(expected, sizeof expected), slice_str(text), expected);
	assert_memory_equal(linked, expected, sizeof expected);
	row.op = INT64_MIN;
	history_link(&row, slice_of(NULL, 0), linked);
	sha256("9223372036854775807|2|open|busy|3|4|-9223372036854775808|-6|n1", 62, expected);
	assert_memory_equal(linked, expected, sizeof expected);
}

static void large_numbers_and_foreign_letters_keep_the_chain(void **state)
{
	struct world *w = *state;
	struct stamp stamp = {INT64_MAX, {253402300799999}, "ἅπαξ"};

	world_create(w, 1, "προς");
	unit_init(&w->unit, stamp.op);
	subject_transition(&w->unit, &stamp, &(struct move){1, "προς", "μετά"}, 1);
	assert_int_equal(world_run(w), UNIT_WON);
	assert_true(chain_holds(w));
}

#define WORLD_TEST(name) cmocka_unit_test_setup_teardown(name, world_set_up, world_tear_down)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		WORLD_TEST(the_chain_vouches_for_every_row),
		cmocka_unit_test(the_link_has_one_text),
		WORLD_TEST(large_numbers_and_foreign_letters_keep_the_chain),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
