/* Loading batches over a store: what comes to be and when, keys, additions, lost loaders, and every answer lost once. */
#include "unit/flow/world.h"

#include <stdio.h>

#include "flow/batch_load.h"
#include "flow/page.h"

#define ACCOUNT 7
#define LOAD_LEASE_MS 1000
#define DEFAULT slice_str("default")
#define NEW_ID 1000

static const struct batch_definition definition = {.name = "render"};
static const struct batch_machine machine = {.definition = &definition, .version = 3};

static const struct batch_machine *machine_of(const void *context, struct slice workflow, int64_t version)
{
	(void)context;
	(void)workflow;
	(void)version;
	return &machine;
}

static const struct batch_policy policy = {.lease_ms = LOAD_LEASE_MS, .machine_of = machine_of};

/* ---- a loader ---- */

/* What becomes of the n-th commit. */
enum fault { NONE, ANSWER_LOST, COMMIT_LOST, FAILS };

struct loader {
	struct batch_load load;
	struct batch_load_request rq;
	struct strbuf items;
	struct arena arena;
	struct answer answer;
	struct ask ask;
	struct unit unit;
	unsigned commits;
	enum fault fault;
	unsigned fault_at;
};

static int64_t last_id = NEW_ID;

/* Items that cost 1, 2, 3, … from `first` on, and have their number as input. */
static void loader_init(struct loader *l, int64_t items_n, int64_t first)
{
	struct hx_error err;

	*l = (struct loader){.rq = {.workspace = DEFAULT, .items_n = items_n, .policy = &policy}};
	strbuf_init(&l->items, 64u << 20);
	arena_init(&l->arena, 64u << 20);
	strbuf_add_char(&l->items, '[');
	for (int64_t i = 0; i < items_n; i++)
		strbuf_addf(&l->items, "%s{\"cost\": %lld, \"input\": {\"n\": \"%lld\\n\"}}", i ? "," : "",
			    (long long)(first + i + 1), (long long)(first + i));
	strbuf_add_char(&l->items, ']');
	assert_int_equal(json_check(strbuf_slice(&l->items), &err, &l->rq.items), HX_OK);
}

static void loader_new(struct loader *l, int64_t items_n, const char *key, bool held)
{
	loader_init(l, items_n, 0);
	l->rq.machine = &machine;
	l->rq.account = slice_str("alice");
	l->rq.requester = slice_str("ann");
	l->rq.held = held;
	if (key)
		l->rq.key = slice_str(key);
	batch_load_init(&l->load, &l->rq, &l->arena);
}

static void loader_more(struct loader *l, int64_t subject, int64_t items_n, int64_t first)
{
	loader_init(l, items_n, first);
	l->rq.subject = subject;
	batch_load_init(&l->load, &l->rq, &l->arena);
}

static void loader_release(struct loader *l)
{
	strbuf_release(&l->items);
	arena_release(&l->arena);
}

static void give(struct world *w, struct loader *l, enum answer_kind kind)
{
	l->answer.kind = kind;
	l->answer.now = w->clock.wall;
	l->answer.mono = w->clock.mono;
	l->answer.id = ++w->last_op;
	l->answer.more_ids[0] = ++last_id;
	l->answer.node = "here";
	l->answer.result = &w->result;
	assert_true(task_take(&l->load.task, l->load.task.turn, &l->answer));
	l->ask = (struct ask){.unit = &l->unit};
	l->load.task.kind->ask(&l->load.task, &l->ask);
}

/* One commit. False: it is done. */
static bool step(struct world *w, struct loader *l)
{
	enum fault fault;

	if (!l->load.task.turn)
		give(w, l, ANSWER_START);
	if (l->ask.kind == ASK_DONE)
		return false;
	fault = l->commits++ == l->fault_at ? l->fault : NONE;
	if (fault == NONE || fault == ANSWER_LOST) {
		w->unit = l->unit;
		(void)world_run(w); /* whatever the verdict: the task hears it */
	}
	if (fault == ANSWER_LOST || fault == COMMIT_LOST)
		w->result.verdict = UNIT_UNKNOWN;
	if (fault == FAILS)
		w->result = (struct unit_result){.verdict = UNIT_FAILED, .error = {.code = HX_STORE_UNAVAILABLE}};
	give(w, l, ANSWER_COMMIT);
	return true;
}

static enum hx_code run(struct world *w, struct loader *l)
{
	while (step(w, l)) {}
	return l->ask.code;
}

/* ---- what there is ---- */

static struct batch_row read_row(struct world *w, int64_t subject)
{
	static struct arena arena;
	struct batch_row row;

	arena_release(&arena);
	arena_init(&arena, 1u << 20);
	(void)world_begin(w);
	batch_read(&w->unit, DEFAULT, subject);
	assert_int_equal(world_run(w), UNIT_WON);
	assert_int_equal(w->result.rows[0].n, 1);
	batch_row_take(&w->result.rows[0], 0, &policy, &arena, &row);
	return row;
}

/* As the loader says that it is. */
static void assert_foreseen(struct world *w, const struct loader *l)
{
	struct batch_row row = read_row(w, l->load.row.subject);
	const struct batch_row *told = &l->load.row;

	assert_string_equal(row.status, told->status);
	assert_int_equal(row.version, told->version);
	assert_int_equal(row.total, told->total);
	assert_int_equal(row.account, told->account);
	assert_int_equal(row.created_at, told->created_at);
	assert_int_equal(row.due_at, told->due_at);
	assert_int_equal(row.needs, told->needs);
	assert_int_equal(row.definition_version, told->definition_version);
	assert_true(row.loaded && told->loaded && !row.owned);
	assert_true(slice_eq(row.workflow, told->workflow));
	assert_true(slice_eq(row.account_name, told->account_name));
	assert_true(slice_eq(row.key, told->key));
	assert_int_equal(row.key.p == NULL, told->key.p == NULL);
}

static void assert_item(const struct db_rows *rows, size_t i, int64_t n)
{
	char input[64];

	snprintf(input, sizeof input, "{\"n\": \"%lld\\n\"}", (long long)n);
	assert_int_equal(db_cell(rows, i, ITEM_N)->i, n);
	assert_int_equal(db_cell(rows, i, ITEM_COST)->i, n + 1);
	assert_true(slice_is(db_cell(rows, i, ITEM_INPUT)->s, input));
	assert_true(slice_is(db_cell(rows, i, ITEM_STATUS)->s, ITEM_PENDING));
}

/* All items, in order, and no other: page by page, none of which is more than a slice (flow/page.h), and one more. */
static void assert_items(struct world *w, int64_t subject, int64_t items_n)
{
	for (int64_t from = 0; from <= items_n; from += LIST_SLICE) {
		int64_t page = items_n - from < LIST_SLICE ? items_n - from : LIST_SLICE;

		(void)world_begin(w);
		item_list(&w->unit, subject, slice_of("", 0), slice_of("", 0), from - 1, items_n + 1);
		assert_int_equal(world_run(w), UNIT_WON);
		assert_int_equal(w->result.rows[0].n, page);
		for (int64_t i = 0; i < page; i++)
			assert_item(&w->result.rows[0], (size_t)i, from + i);
	}
}

static int64_t count(struct world *w, const struct db_stmt *stmt)
{
	(void)world_begin(w);
	unit_add(&w->unit, UNIT_ANY, stmt, 0, NULL);
	assert_int_equal(world_run(w), UNIT_WON);
	return world_int(w, 0, 0);
}

#define ASSERT_COUNT(w, expected, text)                                                                                \
	do {                                                                                                           \
		static const struct db_stmt stmt_ = {.name = "test_count", .sql = text, .in = "", .out = "i"};         \
		assert_int_equal(count(w, &stmt_), expected);                                                          \
	} while (0)

static int set_up(void **state)
{
	struct world *w;
	struct stamp stamp;

	world_set_up(state);
	w = *state;
	stamp = world_begin(w);
	account_create(&w->unit, &stamp, DEFAULT, slice_str("alice"), ACCOUNT, 500);
	assert_int_equal(world_run(w), UNIT_WON);
	w->last_op = 100;
	last_id = NEW_ID;
	return 0;
}

/* ---- new ones ---- */

static void a_small_one_is_one_unit(void **state)
{
	struct world *w = *state;
	struct loader l;

	loader_new(&l, BATCH_SLICE, "k", /* held= */ false);
	assert_int_equal(run(w, &l), HX_OK);
	assert_int_equal(l.commits, 2); /* a read, and all of it */
	assert_true(l.load.changed);
	assert_string_equal(l.load.row.status, BATCH_QUEUED);
	assert_foreseen(w, &l);
	assert_items(w, l.load.row.subject, BATCH_SLICE);
	loader_release(&l);
}

/* Until the last unit it has no items, and is nobody's to start. */
static void a_large_one_exists_when_all_of_it_is_there(void **state)
{
	const int64_t items_n = 2 * BATCH_SLICE + 1;
	struct world *w = *state;
	struct loader l;

	loader_new(&l, items_n, "k", /* held= */ false);
	for (int i = 0; i < 3; i++)
		assert_true(step(w, &l));
	ASSERT_COUNT(w, 2 * BATCH_SLICE, "SELECT count(*) FROM hx_batch_item");
	assert_string_equal(read_row(w, l.load.hold.subject).status, BATCH_LOADING);
	assert_items(w, l.load.hold.subject, 0);
	ASSERT_COUNT(w, 0, "SELECT count(*) FROM hx_batch WHERE due_at IS NOT NULL");
	assert_int_equal(run(w, &l), HX_OK);
	assert_int_equal(l.commits, 4);
	assert_foreseen(w, &l);
	assert_items(w, l.load.row.subject, items_n);
	loader_release(&l);
}

static void a_slice_is_bounded_in_bytes(void **state)
{
	enum { ITEMS = 12, INPUT = 1 << 20 };
	struct world *w = *state;
	struct loader l;
	struct hx_error err;

	loader_new(&l, 0, NULL, /* held= */ false);
	strbuf_reset(&l.items);
	strbuf_add_char(&l.items, '[');
	for (int i = 0; i < ITEMS; i++)
		strbuf_addf(&l.items, "%s{\"cost\":0,\"input\":\"%0*d\"}", i ? "," : "", INPUT - 2, 0);
	strbuf_add_char(&l.items, ']');
	assert_int_equal(json_check(strbuf_slice(&l.items), &err, &l.rq.items), HX_OK);
	l.rq.items_n = ITEMS;
	assert_int_equal(run(w, &l), HX_OK);
	assert_int_equal(l.commits, 1 + ITEMS / 4);
	ASSERT_COUNT(w, ITEMS * INPUT, "SELECT sum(length(input)) FROM hx_batch_item");
	loader_release(&l);
}

static void a_held_one_may_be_empty(void **state)
{
	struct world *w = *state;
	struct loader l;

	loader_new(&l, 0, NULL, /* held= */ true);
	assert_int_equal(run(w, &l), HX_OK);
	assert_string_equal(l.load.row.status, BATCH_PENDING);
	assert_foreseen(w, &l);
	assert_items(w, l.load.row.subject, 0);
	loader_release(&l);
}

static void without_its_account_there_is_none(void **state)
{
	struct world *w = *state;
	struct loader l;

	loader_new(&l, 1, NULL, /* held= */ false);
	l.rq.account = slice_str("nobody");
	assert_int_equal(run(w, &l), HX_NOT_FOUND);
	ASSERT_COUNT(w, 0, "SELECT count(*) FROM hx_batch");
	loader_release(&l);
}

/* ---- keys ---- */

static void a_key_has_one_batch(void **state)
{
	struct world *w = *state;
	struct loader first, second, other;

	loader_new(&first, 3, "k", /* held= */ false);
	loader_new(&second, 5, "k", /* held= */ false);
	loader_new(&other, 1, "k", /* held= */ false);
	other.rq.workspace = slice_str("other");
	assert_true(step(w, &second)); /* has seen that the key is free */
	assert_int_equal(run(w, &first), HX_OK);
	assert_int_equal(run(w, &second), HX_OK);
	assert_true(first.load.changed && !second.load.changed);
	assert_int_equal(second.load.row.subject, first.load.row.subject);
	assert_int_equal(second.load.row.total, 3);
	assert_items(w, first.load.row.subject, 3);
	assert_int_equal(run(w, &other), HX_NOT_FOUND); /* no account of this name there */
	loader_release(&first);
	loader_release(&second);
	loader_release(&other);
}

static void a_key_whose_batch_is_being_loaded_is_in_flight(void **state)
{
	struct world *w = *state;
	struct loader first, second;

	loader_new(&first, BATCH_SLICE + 1, "k", /* held= */ false);
	loader_new(&second, 2, "k", /* held= */ false);
	assert_true(step(w, &first) && step(w, &first));
	assert_int_equal(run(w, &second), HX_IN_FLIGHT);
	assert_int_equal(run(w, &first), HX_OK);
	loader_release(&first);
	loader_release(&second);
}

/* Its loader is lost: it has never been, and the key is free. */
static void a_key_whose_loader_is_lost_is_free(void **state)
{
	struct world *w = *state;
	struct loader first, second;

	loader_new(&first, BATCH_SLICE + 1, "k", /* held= */ false);
	loader_new(&second, 2, "k", /* held= */ false);
	assert_true(step(w, &first) && step(w, &first));
	fake_clock_advance_ms(&w->clock, LOAD_LEASE_MS + 1);
	assert_int_equal(run(w, &second), HX_OK);
	assert_true(second.load.changed);
	assert_int_not_equal(second.load.row.subject, first.load.hold.subject);
	assert_foreseen(w, &second);
	assert_items(w, second.load.row.subject, 2);
	/* The first comes back. */
	assert_int_equal(run(w, &first), HX_STALE_FENCE);
	assert_string_equal(read_row(w, first.load.hold.subject).status, BATCH_FAILED);
	assert_null(read_row(w, first.load.hold.subject).key.p);
	assert_items(w, first.load.hold.subject, 0);
	loader_release(&first);
	loader_release(&second);
}

/* ---- more items ---- */

static int64_t make_held(struct world *w, int64_t items_n)
{
	struct loader l;
	int64_t subject;

	loader_new(&l, items_n, "held", /* held= */ true);
	assert_int_equal(run(w, &l), HX_OK);
	subject = l.load.row.subject;
	loader_release(&l);
	return subject;
}

static void items_are_added_to_a_held_one(void **state)
{
	struct world *w = *state;
	int64_t subject = make_held(w, 2), at = 2;
	static const int64_t sizes[] = {3, BATCH_SLICE + 4, 1};
	struct loader l;

	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		loader_more(&l, subject, sizes[i], at);
		at += sizes[i];
		assert_int_equal(run(w, &l), HX_OK);
		assert_int_equal(l.commits, 2 + sizes[i] / BATCH_SLICE);
		assert_true(l.load.changed);
		assert_string_equal(l.load.row.status, BATCH_PENDING);
		assert_foreseen(w, &l);
		assert_items(w, subject, at);
		loader_release(&l);
	}
}

static void items_are_added_to_no_other(void **state)
{
	struct world *w = *state;
	struct loader l;
	int64_t subject;

	loader_new(&l, 1, NULL, /* held= */ false);
	assert_int_equal(run(w, &l), HX_OK);
	subject = l.load.row.subject;
	loader_release(&l);
	loader_more(&l, subject, 1, 1);
	assert_int_equal(run(w, &l), HX_WRONG_STATUS);
	loader_release(&l);
	loader_more(&l, subject + 1, 1, 1);
	assert_int_equal(run(w, &l), HX_NOT_FOUND);
	loader_release(&l);
	loader_more(&l, subject, 1, 1);
	l.rq.workspace = slice_str("other");
	assert_int_equal(run(w, &l), HX_NOT_FOUND);
	loader_release(&l);
	assert_items(w, subject, 1);
}

/* What a lost one has left is replaced, whoever comes next and however few they add. */
static void additions_come_one_after_the_other(void **state)
{
	struct world *w = *state;
	int64_t subject = make_held(w, 2);
	struct loader lost, next;

	loader_more(&lost, subject, BATCH_SLICE + 1, 900);
	loader_more(&next, subject, 3, 2);
	assert_true(step(w, &lost) && step(w, &lost));
	assert_int_equal(run(w, &next), HX_CLAIM_FAILED);
	assert_items(w, subject, 0 + 2);
	loader_release(&next);
	fake_clock_advance_ms(&w->clock, LOAD_LEASE_MS + 1);
	loader_more(&next, subject, 3, 2);
	assert_int_equal(run(w, &next), HX_OK);
	assert_items(w, subject, 5);
	assert_foreseen(w, &next);
	assert_int_equal(run(w, &lost), HX_STALE_FENCE);
	assert_items(w, subject, 5);
	loader_release(&next);
	loader_more(&next, subject, 2 * BATCH_SLICE, 5);
	assert_int_equal(run(w, &next), HX_OK);
	assert_items(w, subject, 5 + 2 * BATCH_SLICE);
	loader_release(&next);
	loader_release(&lost);
}

static void there_are_at_most_a_million(void **state)
{
	struct world *w = *state;
	int64_t subject = make_held(w, 2);
	struct hx_error err;
	struct loader l;

	assert_int_equal(w->db->driver->script(w->db, "UPDATE hx_batch SET total = 999998", &err), HX_OK);
	loader_more(&l, subject, 3, 2);
	assert_int_equal(run(w, &l), HX_TOO_LARGE);
	loader_release(&l);
	loader_more(&l, subject, 2, 2);
	assert_int_equal(run(w, &l), HX_OK);
	assert_int_equal(l.load.row.total, BATCH_ITEMS_MAX);
	loader_release(&l);
}

/* ---- answers that are lost ---- */

/* One fault at each commit: whatever is told is true, and asking again makes it so. */
static void try_fault(struct world *w, struct loader *l, int64_t total)
{
	int64_t subject;
	enum hx_code code = run(w, l);

	if (l->fault != FAILS)
		assert_int_equal(code, l->fault_at == 0 ? HX_STORE_UNAVAILABLE : HX_OK);
	else
		assert_true(code == HX_STORE_UNAVAILABLE || code == HX_OK);
	subject = l->load.row.subject;
	if (code == HX_OK) {
		assert_true(l->load.changed);
		assert_foreseen(w, l);
		assert_items(w, subject, total);
	}
}

static void an_answer_is_lost_while_one_is_created(void **state)
{
	static const int64_t sizes[] = {3, BATCH_SLICE + 1, 2 * BATCH_SLICE + 1};
	struct world *w = *state;
	char key[32];
	struct loader l;

	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
		for (enum fault fault = ANSWER_LOST; fault <= FAILS; fault++)
			for (unsigned at = 0; at < 5; at++) {
				snprintf(key, sizeof key, "%zu/%d/%u", i, fault, at);
				loader_new(&l, sizes[i], key, /* held= */ false);
				l.fault = fault;
				l.fault_at = at;
				try_fault(w, &l, sizes[i]);
				loader_release(&l);
				/* Whoever was told nothing good tries again, a lease later. */
				fake_clock_advance_ms(&w->clock, LOAD_LEASE_MS + 1);
				loader_new(&l, sizes[i], key, /* held= */ false);
				assert_int_equal(run(w, &l), HX_OK);
				assert_items(w, l.load.row.subject, sizes[i]);
				loader_release(&l);
			}
	/* One for each key. */
	ASSERT_COUNT(w, 3 * 3 * 5, "SELECT count(*) FROM hx_batch WHERE batch_key IS NOT NULL");
	ASSERT_COUNT(w, 0,
		     "SELECT count(*) FROM hx_batch b JOIN hx_subject s ON s.id = b.subject"
		     " WHERE batch_key IS NULL AND status <> 'FAILED'");
}

static void an_answer_is_lost_while_items_are_added(void **state)
{
	static const int64_t sizes[] = {3, BATCH_SLICE + 1, 2 * BATCH_SLICE + 1};
	struct world *w = *state;
	int64_t subject = make_held(w, 2), total = 2;
	struct loader l;

	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
		for (enum fault fault = ANSWER_LOST; fault <= FAILS; fault++)
			for (unsigned at = 0; at < 5; at++) {
				loader_more(&l, subject, sizes[i], total);
				l.fault = fault;
				l.fault_at = at;
				try_fault(w, &l, total + sizes[i]);
				total += l.ask.code == HX_OK ? sizes[i] : 0;
				loader_release(&l);
				assert_int_equal(read_row(w, subject).total, total);
				fake_clock_advance_ms(&w->clock, LOAD_LEASE_MS + 1);
			}
}

/* ---- what goes along ---- */

struct companion {
	struct batch_along along;
	unsigned added, won;
};

static void add_nothing(struct batch_along *along, struct unit *unit)
{
	assert_true(unit->lines_n > 0);
	((struct companion *)along)->added++;
}

static void note_won(struct batch_along *along, const struct unit_result *result)
{
	assert_int_equal(result->verdict, UNIT_WON);
	((struct companion *)along)->won++;
}

static void the_last_unit_takes_something_along(void **state)
{
	struct companion companion = {.along = {add_nothing, note_won}};
	struct world *w = *state;
	struct loader l;

	loader_new(&l, BATCH_SLICE + 1, NULL, /* held= */ false);
	l.rq.along = &companion.along;
	assert_true(step(w, &l));
	assert_int_equal(companion.added, 0);
	assert_true(step(w, &l));
	assert_int_equal(companion.added, 1);
	assert_int_equal(companion.won, 0);
	assert_int_equal(run(w, &l), HX_OK);
	assert_int_equal(companion.won, 1);
	loader_release(&l);
}

static void no_slice_is_begun_too_late(void **state)
{
	struct world *w = *state;
	struct loader l;

	loader_new(&l, BATCH_SLICE + 1, "k", /* held= */ false);
	l.rq.until = mono_add_ms(w->clock.mono, 10);
	assert_true(step(w, &l));
	fake_clock_advance_ms(&w->clock, 11);
	assert_true(step(w, &l));
	assert_int_equal(run(w, &l), HX_STORE_UNAVAILABLE);
	assert_items(w, l.load.hold.subject, 0);
	loader_release(&l);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, world_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_small_one_is_one_unit),
		TEST(a_large_one_exists_when_all_of_it_is_there),
		TEST(a_slice_is_bounded_in_bytes),
		TEST(a_held_one_may_be_empty),
		TEST(without_its_account_there_is_none),
		TEST(a_key_has_one_batch),
		TEST(a_key_whose_batch_is_being_loaded_is_in_flight),
		TEST(a_key_whose_loader_is_lost_is_free),
		TEST(items_are_added_to_a_held_one),
		TEST(items_are_added_to_no_other),
		TEST(additions_come_one_after_the_other),
		TEST(there_are_at_most_a_million),
		TEST(an_answer_is_lost_while_one_is_created),
		TEST(an_answer_is_lost_while_items_are_added),
		TEST(the_last_unit_takes_something_along),
		TEST(no_slice_is_begun_too_late),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
