/* Units that lose after they have changed something, on SQLite: with a savepoint of their own and without. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/item.h"
#include "support/must_hold.h"

#define ABSENT (-77)
#define MANY 300
#define ROUNDS 20 /* of MANY: more than are careful after one has lost late */

/* Puts an item, and then wins or loses. */
static void add_one(struct session *s, int64_t id, enum unit_rule rule, bool wins)
{
	struct unit *unit = session_unit(s);

	UNIT_ADD(unit, UNIT_VERDICT, &item_put, db_int(id), db_int(1), db_null(), db_null());
	UNIT_ADD(unit, rule, &item_bump, db_int(wins ? id : ABSENT));
}

/* The transaction is theirs alone, and they come again. */
static void who_loses_late_leaves_nothing(void **state)
{
	struct session *s = *state;

	for (int64_t id = 10; id < 50; id += 10) {
		session_reset(s);
		s->db->whole = true;
		add_one(s, id, UNIT_VERDICT, true);
		add_one(s, id + 1, UNIT_MUST, false);
		add_one(s, id + 2, UNIT_VERDICT, true);
		add_one(s, id + 3, UNIT_VERDICT, false);
		session_must(s, session_run(s));
		s->db->whole = false;
		assert_int_equal(s->result[0].verdict, UNIT_WON);
		assert_int_equal(s->result[1].verdict, UNIT_REFUSED);
		assert_int_equal(s->result[1].line, 1);
		assert_int_equal(s->result[2].verdict, UNIT_WON);
		assert_int_equal(s->result[3].verdict, UNIT_LOST);
		for (int64_t i = 0; i < 4; i++)
			MUST_HOLD((item_n(s, id + i, ABSENT) == ABSENT) == (i % 2 == 1),
				  "a unit that lost late leaves a row, or takes another's along");
	}
}

/* Whose transaction has more than they know of does not begin it anew. */
static void what_was_done_before_in_the_same_transaction_stays(void **state)
{
	struct session *s = *state;

	session_reset(s);
	add_one(s, 1, UNIT_VERDICT, true);
	session_must(s, session_execute(s));
	session_reset(s);
	add_one(s, 2, UNIT_VERDICT, false);
	session_must(s, s->db->driver->execute(s->db, s->units, s->n, s->result, &s->arena, &s->err));
	session_must(s, s->db->driver->commit(s->db, &s->err));
	assert_int_equal(s->result[0].verdict, UNIT_LOST);
	assert_int_equal(item_n(s, 1, ABSENT), 2);
	assert_int_equal(item_n(s, 2, ABSENT), ABSENT);
}

/* One in a while, so that some of them lose where all are careful, and some where nobody is any more. */
static void one_of_many_now_and_then(void **state)
{
	struct session *s = *state;
	size_t won = 0;

	for (int64_t round = 0; round < ROUNDS; round++) {
		bool lucky = round % 19 > 2;

		session_reset(s);
		s->db->whole = true;
		for (int64_t i = 0; i < MANY; i++)
			add_one(s, 1000 * (round + 1) + i, UNIT_VERDICT, lucky || i != round * 7);
		session_must(s, session_run(s));
		s->db->whole = false;
		for (int64_t i = 0; i < MANY; i++)
			won += s->result[i].verdict == UNIT_WON;
		MUST_HOLD(item_count(s) == won, "a unit that lost late leaves a row");
	}
	assert_int_equal(won, ROUNDS * MANY - 4);
}

DB_STMT(stmt_tally, "tally", "iii", "", "INSERT INTO item (id, n) VALUES (?1 + ?2, ?3)", .tallied = true);
DB_STMT(stmt_tally_more, "tally_more", "ii", "",
	"INSERT INTO item (id, n) VALUES (?1, ?2) ON CONFLICT (id) DO UPDATE SET n = item.n + excluded.n",
	.tallied = true);

/* A second row with the same id would be an error. */
static void what_is_tallied_is_written_once_for_all_who_won(void **state)
{
	struct session *s = *state;

	session_reset(s);
	s->db->whole = true;
	for (int64_t i = 0; i < 6; i++) {
		add_one(s, 10 + i, UNIT_VERDICT, i != 2);
		UNIT_ADD(s->units[i], UNIT_ANY, &stmt_tally, db_int(100), db_int(i % 2), db_int(5));
	}
	session_must(s, session_run(s));
	s->db->whole = false;
	MUST_HOLD(item_n(s, 100, ABSENT) == 10 && item_n(s, 101, ABSENT) == 15, "a unit that lost is counted");
}

/* More different ones than are kept until the end. */
static void however_many_are_tallied(void **state)
{
	struct session *s = *state;

	session_reset(s);
	for (int64_t i = 0; i < MANY; i++) {
		struct unit *unit = session_unit(s);

		UNIT_ADD(unit, UNIT_ANY, &stmt_tally_more, db_int(2000 + i % (MANY / 2)), db_int(100 + i));
	}
	session_must(s, session_run(s));
	for (int64_t i = 0; i < MANY / 2; i++)
		assert_int_equal(item_n(s, 2000 + i, ABSENT), 200 + 2 * i + MANY / 2);
	assert_int_equal(item_count(s), MANY / 2);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(who_loses_late_leaves_nothing, session_set_up_memory,
						session_tear_down),
		cmocka_unit_test_setup_teardown(what_was_done_before_in_the_same_transaction_stays,
						session_set_up_memory, session_tear_down),
		cmocka_unit_test_setup_teardown(one_of_many_now_and_then, session_set_up_file, session_tear_down),
		cmocka_unit_test_setup_teardown(what_is_tallied_is_written_once_for_all_who_won, session_set_up_memory,
						session_tear_down),
		cmocka_unit_test_setup_teardown(however_many_are_tallied, session_set_up_memory, session_tear_down),
	};

	ONLY_THE_NAMED(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
