/* Accounts in a store: every unit, every verdict, the books after each; and the credit as a task, by hand and over the store. */
#include "unit/flow/world.h"

#include <stdio.h>

#include "flow/account.h"

#define SUBJECT 7
#define DEFAULT slice_str("default")
#define ALICE slice_str("alice")

static enum unit_verdict create(struct world *w, const char *workspace, const char *name, int64_t subject,
				int64_t balance)
{
	struct stamp stamp = world_begin(w);

	account_create(&w->unit, &stamp, slice_str(workspace), slice_str(name), subject, balance);
	return world_run(w);
}

static enum unit_verdict credit(struct world *w, int64_t subject, int64_t amount, const char *key)
{
	struct stamp stamp = world_begin(w);

	account_add_credit(&w->unit, &stamp, subject, amount, slice_str(key));
	return world_run(w);
}

/* The books: A1 and A2 hold, and these are the balance and the number of entries. */
static void assert_books(struct world *w, const char *name, int64_t balance, int64_t entries)
{
	int64_t sum = 0;

	(void)world_begin(w);
	account_read(&w->unit, DEFAULT, slice_str(name));
	assert_int_equal(world_run(w), UNIT_WON);
	assert_int_equal(w->result.rows[0].n, 1);
	assert_int_equal(world_int(w, 0, 1), balance);
	assert_int_equal(world_int(w, 0, 2), entries);
	(void)world_begin(w);
	account_read_ledger(&w->unit, DEFAULT, slice_str(name), /* after= */ 0, /* limit= */ 100);
	assert_int_equal(world_run(w), UNIT_WON);
	assert_int_equal(w->result.rows[0].n, entries);
	for (size_t i = 0; i < (size_t)entries; i++) {
		sum += world_int(w, i, 1);
		assert_int_equal(world_int(w, i, 0), (int64_t)i + 1);
		assert_int_equal(world_int(w, i, 4), sum);
	}
	assert_int_equal(sum, balance);
}

/* ---- units ---- */

static void a_new_one_has_its_opening_entry(void **state)
{
	struct world *w = *state;

	assert_int_equal(create(w, "default", "alice", SUBJECT, 500), UNIT_WON);
	assert_books(w, "alice", 500, 1);
	assert_true(slice_is(db_cell(&w->result.rows[0], 0, 2)->s, "/opening"));
	assert_true(slice_is(db_cell(&w->result.rows[0], 0, 3)->s, "opening"));
	assert_int_equal(world_int(w, 0, 5), START_MS);
	assert_int_equal(create(w, "default", "empty", SUBJECT + 1, 0), UNIT_WON);
	assert_books(w, "empty", 0, 1);
	/* It is a subject: units can hold it still. */
	(void)world_begin(w);
	subject_read(&w->unit, SUBJECT);
	assert_int_equal(world_run(w), UNIT_WON);
	assert_int_equal(world_int(w, 0, 1), 1);
}

static void a_name_is_taken_once_in_each_workspace(void **state)
{
	struct world *w = *state;

	assert_int_equal(create(w, "default", "alice", SUBJECT, 500), UNIT_WON);
	assert_int_equal(create(w, "default", "alice", SUBJECT + 1, 900), UNIT_LOST);
	assert_books(w, "alice", 500, 1);
	(void)world_begin(w);
	subject_read(&w->unit, SUBJECT + 1);
	assert_int_equal(world_run(w), UNIT_WON);
	assert_int_equal(w->result.rows[0].n, 0);
	assert_int_equal(create(w, "other", "alice", SUBJECT + 1, 900), UNIT_WON);
	assert_books(w, "alice", 500, 1);
}

static void credits_add_up(void **state)
{
	struct world *w = *state;

	create(w, "default", "alice", SUBJECT, 500);
	assert_int_equal(credit(w, SUBJECT, 20, "a"), UNIT_WON);
	assert_int_equal(db_cell(&w->result.rows[1], 0, 0)->i, 520);
	assert_int_equal(w->unit.subjects_n, 1); /* held still */
	assert_int_equal(w->unit.subjects[0], SUBJECT);
	assert_int_equal(w->unit.wakes_n, 1); /* for whoever waits for money */
	assert_int_equal(credit(w, SUBJECT, 3, "b"), UNIT_WON);
	assert_books(w, "alice", 523, 3);
	assert_true(slice_is(db_cell(&w->result.rows[0], 2, 2)->s, "b"));
	assert_true(slice_is(db_cell(&w->result.rows[0], 2, 3)->s, "credit"));
}

static void a_key_counts_once_in_its_account(void **state)
{
	struct world *w = *state;

	create(w, "default", "alice", SUBJECT, 500);
	create(w, "default", "bob", SUBJECT + 1, 0);
	assert_int_equal(credit(w, SUBJECT, 20, "a"), UNIT_WON);
	assert_int_equal(credit(w, SUBJECT, 20, "a"), UNIT_LOST);
	assert_int_equal(credit(w, SUBJECT, 21, "a"), UNIT_LOST);
	assert_int_equal(credit(w, SUBJECT, 21, "/opening"), UNIT_LOST);
	assert_int_equal(credit(w, SUBJECT + 1, 7, "a"), UNIT_WON);
	assert_books(w, "alice", 520, 2);
	assert_books(w, "bob", 7, 2);
}

static void a_balance_does_not_pass_its_limit(void **state)
{
	struct world *w = *state;

	create(w, "default", "rich", SUBJECT, ACCOUNT_AMOUNT_MAX - 3);
	assert_int_equal(credit(w, SUBJECT, ACCOUNT_AMOUNT_MAX, "far too many"), UNIT_REFUSED);
	assert_int_equal(credit(w, SUBJECT, 2, "some"), UNIT_WON);
	assert_int_equal(credit(w, SUBJECT, 2, "one too many"), UNIT_REFUSED);
	assert_int_equal(w->result.line, 1);
	assert_int_equal(credit(w, SUBJECT, 1, "the last one"), UNIT_WON);
	assert_int_equal(db_cell(&w->result.rows[1], 0, 0)->i, ACCOUNT_BALANCE_MAX);
	assert_int_equal(credit(w, SUBJECT, 1, "one too many"), UNIT_REFUSED);
	/* Nothing is left of what was refused. */
	(void)world_begin(w);
	account_read_entry(&w->unit, DEFAULT, slice_str("rich"), slice_str("one too many"));
	assert_int_equal(world_run(w), UNIT_WON);
	assert_int_equal(world_int(w, 0, 1), ACCOUNT_BALANCE_MAX);
	assert_int_equal(db_cell(&w->result.rows[0], 0, 3)->type, DB_NULL);
}

static void a_ledger_is_read_in_pages(void **state)
{
	struct world *w = *state;

	create(w, "default", "alice", SUBJECT, 500);
	credit(w, SUBJECT, 1, "a");
	credit(w, SUBJECT, 2, "b");
	(void)world_begin(w);
	account_read_ledger(&w->unit, DEFAULT, ALICE, /* after= */ 1, /* limit= */ 1);
	assert_int_equal(world_run(w), UNIT_WON);
	assert_int_equal(w->result.rows[0].n, 1);
	assert_int_equal(world_int(w, 0, 0), 2);
	(void)world_begin(w);
	account_read_ledger(&w->unit, slice_str("other"), ALICE, /* after= */ 0, /* limit= */ 100);
	assert_int_equal(world_run(w), UNIT_WON);
	assert_int_equal(w->result.rows[0].n, 0);
}

static void accounts_are_listed_by_name(void **state)
{
	static const char *const names[] = {"carol", "alice", "bob"};
	struct world *w = *state;

	for (size_t i = 0; i < 3; i++)
		create(w, "default", names[i], SUBJECT + (int64_t)i, (int64_t)i);
	create(w, "other", "aaron", SUBJECT + 3, 7);
	(void)world_begin(w);
	account_list(&w->unit, DEFAULT, slice_str(""), 2);
	assert_int_equal(world_run(w), UNIT_WON);
	assert_int_equal(w->result.rows[0].n, 2);
	assert_true(slice_is(db_cell(&w->result.rows[0], 0, 0)->s, "alice"));
	assert_int_equal(db_cell(&w->result.rows[0], 0, 1)->i, 1);
	assert_true(slice_is(db_cell(&w->result.rows[0], 1, 0)->s, "bob"));
	(void)world_begin(w);
	account_list(&w->unit, DEFAULT, slice_str("bob"), 2);
	assert_int_equal(world_run(w), UNIT_WON);
	assert_int_equal(w->result.rows[0].n, 1);
	assert_true(slice_is(db_cell(&w->result.rows[0], 0, 0)->s, "carol"));
	assert_int_equal(db_cell(&w->result.rows[0], 0, 2)->i, START_MS);
}

/* ---- the task over the store ---- */

static enum hx_code drive(struct world *w, const char *workspace, const char *name, int64_t amount, const char *key,
			  struct account_credit *ret_credit)
{
	struct account_credit_request wanted = {slice_str(workspace), slice_str(name), slice_str(key), amount};

	account_credit_init(ret_credit, &wanted);
	return world_drive(w, &ret_credit->task);
}

static void the_task_credits_once(void **state)
{
	struct world *w = *state;
	struct account_credit c;

	create(w, "default", "alice", SUBJECT, 500);
	assert_int_equal(drive(w, "default", "alice", 20, "a", &c), HX_OK);
	assert_int_equal(c.balance, 520);
	assert_int_equal(c.created_at, START_MS);
	assert_false(c.was_there);
	assert_int_equal(drive(w, "default", "alice", 5, "b", &c), HX_OK);
	assert_int_equal(c.balance, 525);
	assert_int_equal(drive(w, "default", "alice", 20, "a", &c), HX_OK);
	assert_int_equal(c.balance, 525); /* the account as it is */
	assert_true(c.was_there);
	assert_int_equal(c.created_at, START_MS);
	assert_int_equal(drive(w, "default", "alice", 21, "a", &c), HX_ALREADY_EXISTS);
	assert_int_equal(c.amount_there, 20);
	assert_int_equal(drive(w, "default", "bob", 20, "a", &c), HX_NOT_FOUND);
	assert_int_equal(drive(w, "other", "alice", 20, "c", &c), HX_NOT_FOUND);
	assert_books(w, "alice", 525, 3);
}

/* ---- the task by hand ---- */

static const struct account_credit_request rq = {{"default", 7}, {"alice", 5}, {"a", 1}, 20};

static void begin(struct hand *h, struct account_credit *c)
{
	account_credit_init(c, &rq);
	hand_init(h, &c->task);
	assert_string_equal(hand_where(h), "new");
	assert_int_equal(hand_start(h), ASK_COMMIT);
	assert_string_equal(hand_where(h), "reading");
	assert_string_equal(hand_stmt(h), "account_read_entry");
	assert_int_equal(h->unit.subjects_n, 0);
}

#define ELSEWHERE 999 /* the op of somebody else's unit */

static enum ask_kind give_entry_of(struct hand *h, struct db_value amount, struct db_value op)
{
	return hand_rows(h, 1, 5,
			 (const struct db_value[]){db_int(SUBJECT), db_int(500), db_int(START_MS), amount, op});
}

static enum ask_kind give_entry(struct hand *h, struct db_value amount)
{
	return give_entry_of(h, amount, amount.type == DB_NULL ? db_null() : db_int(ELSEWHERE));
}

static void begin_crediting(struct hand *h, struct account_credit *c)
{
	begin(h, c);
	assert_int_equal(give_entry(h, db_null()), ASK_COMMIT);
	assert_string_equal(hand_where(h), "crediting");
	assert_string_equal(hand_stmt(h), "account_entry");
	assert_int_equal(h->unit.op, h->answer.id);
	assert_int_equal(h->unit.subjects[0], SUBJECT);
}

/* The unit was won, and the balance is this. */
static void give_balance(struct hand *h, int64_t balance)
{
	h->cells[0] = db_int(balance);
	h->result = (struct unit_result){.verdict = UNIT_WON, .line = -1};
	h->result.rows[1] = (struct db_rows){1, 1, h->cells};
	h->answer.result = &h->result;
	hand_give(h, ANSWER_COMMIT);
}

static void reads_that_cannot_go_on(void **state)
{
	struct account_credit c;
	struct hand h;

	(void)state;
	begin(&h, &c);
	hand_no_rows(&h, 5);
	hand_assert_done(&h, HX_NOT_FOUND);
	begin(&h, &c);
	hand_failed(&h, HX_STORE_UNAVAILABLE);
	hand_assert_done(&h, HX_STORE_UNAVAILABLE);
	begin(&h, &c);
	hand_verdict(&h, UNIT_UNKNOWN); /* of a read: nothing can have happened */
	hand_assert_done(&h, HX_STORE_UNAVAILABLE);
}

static void whoever_loses_looks_at_what_is_there(void **state)
{
	static const struct {
		int64_t amount;
		enum hx_code code;
	} cases[] = {{20, HX_OK}, {21, HX_ALREADY_EXISTS}, {0, HX_CONCURRENCY_ERROR}};
	struct account_credit c;
	struct hand h;

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		begin_crediting(&h, &c);
		assert_int_equal(hand_verdict(&h, UNIT_LOST), ASK_COMMIT);
		assert_string_equal(hand_where(&h), "looking at the entry");
		assert_string_equal(hand_stmt(&h), "account_read_entry");
		give_entry(&h, cases[i].amount ? db_int(cases[i].amount) : db_null());
		hand_assert_done(&h, cases[i].code);
		assert_true(c.task.code != HX_OK || c.was_there);
	}
	begin_crediting(&h, &c);
	hand_verdict(&h, UNIT_LOST);
	hand_failed(&h, HX_STORE_UNAVAILABLE);
	hand_assert_done(&h, HX_STORE_UNAVAILABLE); /* not ours, and whoever asks again finds out */
}

static void a_credit_that_is_refused_or_fails(void **state)
{
	struct account_credit c;
	struct hand h;

	(void)state;
	begin_crediting(&h, &c);
	hand_verdict(&h, UNIT_REFUSED);
	hand_assert_done(&h, HX_VALIDATION_ERROR);
	begin_crediting(&h, &c);
	hand_failed(&h, HX_STORE_UNAVAILABLE);
	hand_assert_done(&h, HX_STORE_UNAVAILABLE);
	begin_crediting(&h, &c);
	hand_failed(&h, HX_DATA_ERROR);
	hand_assert_done(&h, HX_DATA_ERROR);
}

/* Returns the op of the commit that nobody knows of. */
static int64_t begin_in_doubt(struct hand *h, struct account_credit *c)
{
	int64_t op;

	begin_crediting(h, c);
	op = h->unit.op;
	assert_int_equal(hand_verdict(h, UNIT_UNKNOWN), ASK_COMMIT);
	assert_string_equal(hand_where(h), "crediting");
	assert_string_equal(hand_stmt(h), "account_entry");
	assert_int_not_equal(h->unit.op, op);
	assert_int_equal(h->unit.subjects[0], SUBJECT); /* held: the first one has ended by then */
	return op;
}

static void an_unknown_commit_is_asked_for_again(void **state)
{
	struct account_credit c;
	struct hand h;
	int64_t op;

	(void)state;
	begin_in_doubt(&h, &c); /* it had not landed */
	give_balance(&h, 520);
	hand_assert_done(&h, HX_OK);
	assert_int_equal(c.balance, 520);
	assert_false(c.was_there);
	op = begin_in_doubt(&h, &c); /* it had */
	hand_verdict(&h, UNIT_LOST);
	give_entry_of(&h, db_int(20), db_int(op));
	hand_assert_done(&h, HX_OK);
	assert_false(c.was_there);
	begin_in_doubt(&h, &c); /* it had not, and somebody else was faster */
	hand_verdict(&h, UNIT_LOST);
	give_entry(&h, db_int(20));
	hand_assert_done(&h, HX_OK);
	assert_true(c.was_there);
	begin_in_doubt(&h, &c); /* it had not: the key was free */
	hand_verdict(&h, UNIT_REFUSED);
	hand_assert_done(&h, HX_VALIDATION_ERROR);
	for (int i = 0; i < 2; i++) { /* nobody to ask: it says so */
		begin_in_doubt(&h, &c);
		hand_verdict(&h, i ? UNIT_UNKNOWN : UNIT_FAILED);
		hand_assert_done(&h, HX_OUTCOME_UNKNOWN);
		begin_in_doubt(&h, &c);
		hand_verdict(&h, UNIT_LOST);
		hand_verdict(&h, i ? UNIT_UNKNOWN : UNIT_FAILED);
		hand_assert_done(&h, HX_OUTCOME_UNKNOWN);
	}
}

#define WORLD_TEST(test) cmocka_unit_test_setup_teardown(test, world_set_up, world_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WORLD_TEST(a_new_one_has_its_opening_entry),
		WORLD_TEST(a_name_is_taken_once_in_each_workspace),
		WORLD_TEST(credits_add_up),
		WORLD_TEST(a_key_counts_once_in_its_account),
		WORLD_TEST(a_balance_does_not_pass_its_limit),
		WORLD_TEST(a_ledger_is_read_in_pages),
		WORLD_TEST(accounts_are_listed_by_name),
		WORLD_TEST(the_task_credits_once),
		cmocka_unit_test(reads_that_cannot_go_on),
		cmocka_unit_test(whoever_loses_looks_at_what_is_there),
		cmocka_unit_test(a_credit_that_is_refused_or_fails),
		cmocka_unit_test(an_unknown_commit_is_asked_for_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
