/*
 * Random units of batches, the same ones on SQLite and on PostgreSQL, give the same verdicts, rows and tables, chains of the
 * history included, and after each of them the books balance (support/tally.h). Two accounts at a time have a unit each in one
 * transaction, and one time in three a crowd: ends, starts and credits of each, in the order in which PostgreSQL carries them out.
 * Their batches live until the next generation.
 *
 * Who writes believes what SQLite says, and one time in six something older. The stores' clocks are not compared: leases and rests
 * lie days ahead or behind, no two of them alike.
 *
 * The seed is printed; HAPAX_TEST_SEED repeats a run.
 */
#include "contract/batch_twins.h"

/* ---- believing ---- */

/* One time in six a little older. */
static int64_t older(int64_t truth)
{
	return truth - (draw(6) == 0);
}

static void ask_sqlite(struct unit *unit, struct unit_result *result)
{
	struct hx_error err = {0};

	if (db_run_unit(world.side[0].db, unit, result, &world.arena, &err) != HX_OK)
		fail_msg("%s", err.detail);
}

static void believe(int64_t batch, struct belief *belief)
{
	struct unit *unit = arena_alloc(&world.arena, sizeof *unit);
	struct unit_result *result = arena_zalloc(&world.arena, sizeof *result);
	const struct db_rows *item = &result->rows[0];

	*belief = (struct belief){0};
	unit_init(unit, 0);
	batch_read(unit, slice_str(""), batch);
	ask_sqlite(unit, result);
	batch_row_take(&result->rows[0], 0, &tally_policy, &world.arena, &belief->row);
	belief->n = (int64_t)draw(draw(5) && belief->row.next_n ? (uint64_t)belief->row.next_n : ITEMS_MAX);
	unit_init(unit, 0);
	item_read(unit, batch, belief->n);
	ask_sqlite(unit, result);
	belief->row.version = older(belief->row.version);
	belief->row.fence = older(belief->row.fence);
	batch_hold_of(&belief->row, &tally_policy, &world.arena, &belief->hold);
	belief->hold.lease_ms = DAY_MS;
	belief->has_item = item->n == 1;
	if (belief->has_item) {
		belief->attempt = older(db_cell(item, 0, ITEM_ATTEMPT)->i);
		belief->doubt = db_cell(item, 0, ITEM_DOUBT)->i;
		belief->item_fence = older(db_cell(item, 0, ITEM_FENCE)->i);
	}
}

/* ---- moves ---- */

typedef void move_build(struct unit *unit, struct belief *b);

static int64_t rest_ms(void)
{
	int64_t apart = ++world.rests_n * 1000000; /* the order of rests is theirs, not that of the clocks */

	return draw(2) ? DAY_MS + apart : -DAY_MS - apart;
}

static struct slice rows(size_t n)
{
	int64_t costs[ITEMS_MAX];

	for (size_t i = 0; i < n; i++)
		costs[i] = (int64_t)draw(8);
	return tally_rows(costs, n, &world.arena);
}

static void load(struct unit *unit, struct belief *b)
{
	batch_load_slice(unit, &b->hold, b->row.total, rows(1 + draw(2)));
}

static const struct db_stmt stmt_items_n = {
	.name = "test_items_n", .sql = "SELECT count(*) FROM hx_batch_item WHERE batch = ?1", .in = "i", .out = "i"};

/* As many as are there. */
static void load_end(struct unit *unit, struct belief *b)
{
	struct unit *read = arena_alloc(&world.arena, sizeof *read);
	struct unit_result *result = arena_zalloc(&world.arena, sizeof *result);

	unit_init(read, 0);
	UNIT_ADD(read, UNIT_ANY, &stmt_items_n, db_int(b->row.subject));
	ask_sqlite(read, result);
	batch_load_end(unit, &world.stamp, &b->hold, db_cell(&result->rows[0], 0, 0)->i, draw(2));
}

static void load_more(struct unit *unit, struct belief *b)
{
	batch_load_more(unit, &world.stamp, &b->row, DAY_MS);
}

static void load_lost(struct unit *unit, struct belief *b)
{
	batch_load_lost(unit, &world.stamp, &b->row);
}

static void queue(struct unit *unit, struct belief *b)
{
	batch_start(unit, &world.stamp, &b->row);
}

static void seize(struct unit *unit, struct belief *b)
{
	batch_seize(unit, &world.stamp, &b->row, BATCH_RUNNING, DAY_MS);
}

static void seize_down(struct unit *unit, struct belief *b)
{
	batch_seize(unit, &world.stamp, &b->row, BATCH_CANCELLING, DAY_MS);
}

static void lapse(struct unit *unit, struct belief *b)
{
	subject_heartbeat(unit, b->row.subject, b->row.fence, -DAY_MS);
}

static void flag(struct unit *unit, struct belief *b)
{
	batch_request_cancel(unit, &world.stamp, &b->row);
}

static void turn(struct unit *unit, struct belief *b)
{
	batch_begin_teardown(unit, &world.stamp, &b->hold);
}

static void let_go(struct unit *unit, struct belief *b)
{
	int64_t rest = b->row.retry_at && draw(2) ? 0 : DAY_MS;

	batch_let_go(unit, &world.stamp, &b->hold, b->row.status, rest, draw(2), slice_of(NULL, 0));
}

static void stop_short(struct unit *unit, struct belief *b)
{
	batch_stop_short(unit, &world.stamp, &b->hold);
}

static void end_batch(struct unit *unit, struct belief *b, const char *to)
{
	int64_t *ids = arena_alloc(&world.arena, sizeof *ids);
	struct slice *keys = arena_alloc(&world.arena, sizeof *keys);

	*ids = world.next_id++;
	*keys = batch_done_key(b->row.subject, "tell", &world.arena);
	b->row.late = older(b->row.late);
	batch_end(unit, &world.stamp, &b->hold, to, &b->row, ids, keys,
		  batch_totals(&b->hold, &b->row, to, b->row.version + 1, &world.arena));
}

static void complete(struct unit *unit, struct belief *b)
{
	end_batch(unit, b, BATCH_COMPLETED);
}

static void cancel_last(struct unit *unit, struct belief *b)
{
	end_batch(unit, b, BATCH_CANCELLED);
}

static void start(struct unit *unit, struct belief *b)
{
	item_start(unit, &world.stamp, &b->hold);
}

static void look_up(struct unit *unit, struct belief *b)
{
	item_look_up_start(unit, &b->hold, world.stamp.op - 1 - (int64_t)draw(12));
}

/* As a hand would: what is in doubt is neither returned nor FAILED, until a probe has said that it was not done. */
static void end_item(struct unit *unit, struct belief *b, const char *status, enum item_doubt doubt)
{
	bool done = strcmp(status, ITEM_SUCCEEDED) == 0;
	struct item_end as = {
		.n = b->n,
		.attempt = b->attempt,
		.status = status,
		.failure = !done,
		.doubt = doubt == DOUBT_NONE ? (enum item_doubt)b->doubt : doubt,
		.rest_ms = rest_ms(),
		.output = done ? slice_str("{\"art\":\"\xc3\xa4\"}") : slice_of(NULL, 0),
		.error = done ? slice_of(NULL, 0) : slice_str("no luck"),
	};

	as.returns = !done && as.doubt != DOUBT_NOW;
	if (as.doubt == DOUBT_NOW && strcmp(status, ITEM_FAILED) == 0)
		as.status = ITEM_UNKNOWN;
	b->hold.fence = b->item_fence;
	item_end(unit, &world.stamp, &b->hold, &as);
}

static void succeed(struct unit *unit, struct belief *b)
{
	end_item(unit, b, ITEM_SUCCEEDED, DOUBT_NONE);
}

static void rest(struct unit *unit, struct belief *b)
{
	end_item(unit, b, ITEM_PENDING, DOUBT_NONE);
}

static void doubt(struct unit *unit, struct belief *b)
{
	end_item(unit, b, ITEM_PENDING, DOUBT_NOW);
}

static void not_done(struct unit *unit, struct belief *b)
{
	end_item(unit, b, ITEM_PENDING, DOUBT_ONCE);
}

static void fail_item(struct unit *unit, struct belief *b)
{
	end_item(unit, b, ITEM_FAILED, DOUBT_NONE);
}

static void leave_unknown(struct unit *unit, struct belief *b)
{
	end_item(unit, b, ITEM_UNKNOWN, DOUBT_NOW);
}

static void settle(struct unit *unit, struct belief *b)
{
	item_settle(unit, &world.stamp, &b->hold, b->n, b->attempt, slice_str("\"settled\""));
}

static void late(struct unit *unit, struct belief *b)
{
	struct item_end as = {.n = b->n, .attempt = b->attempt, .output = slice_str("\"late\"")};

	item_late(unit, &world.stamp, &b->hold, &as, world.next_id++,
		  batch_item_key(b->row.subject, b->n, "cleanup/late", b->attempt, &world.arena), slice_str("{}"));
}

static void accept(struct unit *unit, struct belief *b)
{
	item_accept(unit, &world.stamp, &b->hold, b->n);
}

static void resolve(struct unit *unit, struct belief *b)
{
	bool done = draw(2);

	item_resolve(unit, &world.stamp, &b->hold, b->n, done, done ? slice_str("1") : slice_of(NULL, 0));
}

static void doubtful(struct unit *unit, struct belief *b)
{
	item_read_doubtful(unit, b->row.subject, b->row.flipped_to, b->row.total, 1 + (int64_t)draw(4));
}

static void flip(struct unit *unit, struct belief *b)
{
	int64_t from = older(b->row.flipped_to);

	item_flip(unit, &world.stamp, &b->hold, from, from + 1 + (int64_t)draw(3));
}

static void left(struct unit *unit, struct belief *b)
{
	item_read_left(unit, &b->hold, 0, b->row.total);
}

static void credit(struct unit *unit, struct belief *b)
{
	static char keys[8][24];
	char *key = keys[world.stamp.op % 8];

	snprintf(key, sizeof keys[0], "c%lld", (long long)(world.stamp.op - (int64_t)draw(20)));
	account_add_credit(unit, &world.stamp, b->row.account, 1 + (int64_t)draw(12), slice_str(key));
}

#define L 1u     /* LOADING */
#define P 2u     /* PENDING */
#define Q 4u     /* QUEUED, OUT_OF_CREDIT */
#define R 8u     /* RUNNING */
#define C 16u    /* CANCELLING */
#define E 32u    /* ended */
#define ITEM 64u /* about an item that is there */

static struct {
	const char *name;
	move_build *build;
	unsigned at, weight; /* where it is tried often; how often */
	long tried, won;
} moves[] = {
	{"load", load, L, 6, 0, 0},
	{"load_end", load_end, L, 4, 0, 0},
	{"load_more", load_more, P, 2, 0, 0},
	{"load_lost", load_lost, L, 10, 0, 0},
	{"queue", queue, P, 4, 0, 0},
	{"seize", seize, Q | R, 8, 0, 0},
	{"seize_down", seize_down, C, 10, 0, 0},
	{"lapse", lapse, L | R | C, 3, 0, 0},
	{"flag", flag, Q | R, 1, 0, 0},
	{"turn", turn, R, 16, 0, 0},
	{"let_go", let_go, R | C, 2, 0, 0},
	{"stop_short", stop_short, R, 5, 0, 0},
	{"complete", complete, R, 2, 0, 0},
	{"cancel_last", cancel_last, C, 8, 0, 0},
	{"start", start, R, 12, 0, 0},
	{"look_up", look_up, R, 2, 0, 0},
	{"succeed", succeed, R | ITEM, 6, 0, 0},
	{"rest", rest, R | ITEM, 8, 0, 0},
	{"doubt", doubt, R | ITEM, 4, 0, 0},
	{"not_done", not_done, R | ITEM, 4, 0, 0},
	{"fail", fail_item, R | ITEM, 2, 0, 0},
	{"leave_unknown", leave_unknown, R | ITEM, 6, 0, 0},
	{"settle", settle, R | ITEM, 1, 0, 0},
	{"late", late, C | E | ITEM, 12, 0, 0},
	{"accept", accept, R | E | ITEM, 4, 0, 0},
	{"resolve", resolve, R | E | ITEM, 12, 0, 0},
	{"doubtful", doubtful, C, 2, 0, 0},
	{"flip", flip, C, 16, 0, 0},
	{"left", left, C, 4, 0, 0},
	{"credit", credit, Q | R, 1, 0, 0},
};
#define MOVES_N (sizeof moves / sizeof *moves)

static unsigned place_of(const char *status)
{
	static const struct {
		const char *status;
		unsigned place;
	} all[] = {{BATCH_LOADING, L},       {BATCH_PENDING, P}, {BATCH_QUEUED, Q},
		   {BATCH_OUT_OF_CREDIT, Q}, {BATCH_RUNNING, R}, {BATCH_CANCELLING, C}};

	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		if (strcmp(all[i].status, status) == 0)
			return all[i].place;
	return E;
}

/* Callers see to these, by what they have read, which does not change back. */
static bool may(const struct belief *b, move_build *build)
{
	unsigned place = place_of(b->row.status);

	if (build == turn)
		return b->row.cancel_requested;
	if (build == let_go)
		return place == R || place == C;
	if (build == settle || build == late)
		return b->attempt > 0;
	if (build == seize || build == seize_down)
		return place != L && place != E;
	return true;
}

/* Mostly what makes sense there; now and then what does not. */
static size_t draw_move(const struct belief *b)
{
	for (;;) {
		size_t m = draw(MOVES_N);
		bool fits = moves[m].at & place_of(b->row.status);

		if ((moves[m].at & ITEM) && (!b->has_item || b->attempt == 0))
			fits = false;
		if (may(b, moves[m].build) && draw(16) < moves[m].weight && (fits || draw(25) == 0))
			return m;
	}
}

static long crowds_won;

/* ---- generations ---- */

static void make_account(int a)
{
	char name[32];

	world.account[a] = world.next_id++;
	(void)stamped();
	snprintf(world.workspace[a], sizeof world.workspace[a], "w%lld", (long long)world.account[a]);
	snprintf(name, sizeof name, "a%lld", (long long)world.account[a]);
	unit_init(&world.unit[0], world.stamp.op);
	account_create(&world.unit[0], &world.stamp, slice_str(world.workspace[a]), slice_str(name), world.account[a],
		       (int64_t)draw(25));
	run(1);
}

static void make_batch(int a, int b)
{
	struct batch_spec spec = {.subject = world.batch[a][b] = world.next_id++,
				  .account = world.account[a],
				  .workspace = slice_str(world.workspace[a]),
				  .requester = slice_str("ann"),
				  .key = draw(2) ? slice_str(b ? "two" : "one") : slice_of(NULL, 0),
				  .machine = tally_machine()};
	size_t n = draw(ITEMS_MAX + 1);

	(void)stamped();
	unit_init(&world.unit[0], world.stamp.op);
	if (draw(4) == 0)
		batch_create(&world.unit[0], &world.stamp, &spec, DAY_MS);
	else
		batch_create_whole(&world.unit[0], &world.stamp, &spec, rows(n), (int64_t)n, draw(4));
	run(1);
	assert_int_equal(world.side[0].result[0].verdict, UNIT_WON);
}

static void run_step(void)
{
	size_t chosen[ACCOUNTS];

	arena_reset(&world.arena);
	for (int a = 0; a < ACCOUNTS; a++) {
		struct belief belief;

		believe(world.batch[a][draw(BATCHES)], &belief);
		if (batch_is_terminal(belief.row.status))
			believe(world.batch[a][draw(BATCHES)], &belief);
		chosen[a] = draw_move(&belief);
		(void)stamped();
		unit_init(&world.unit[a], world.stamp.op);
		moves[chosen[a]].build(&world.unit[a], &belief);
	}
	run(ACCOUNTS);
	for (int a = 0; a < ACCOUNTS; a++) {
		moves[chosen[a]].tried++;
		moves[chosen[a]].won += world.side[0].result[a].verdict == UNIT_WON;
	}
}

/* Ends that give nothing back and starts come first: these PostgreSQL does together. The rest come one after the other. */
static size_t draw_crowd(int a, size_t at)
{
	static move_build *const kinds[][2] = {{succeed, leave_unknown}, {start, start}, {credit, rest}};
	size_t n = at;

	for (int k = 0; k < 3; k++)
		for (size_t left = draw(k == 1 ? 5 : 3); left-- > 0 && n - at < CROWD_MAX;) {
			move_build *build = kinds[k][draw(2)];
			struct belief belief;

			believe(world.batch[a][draw(BATCHES)], &belief);
			if (k != 1 && build != credit && (!belief.has_item || belief.attempt == 0))
				continue;
			(void)stamped();
			unit_init(&world.unit[n], world.stamp.op);
			build(&world.unit[n], &belief);
			n += (k < 2) == (world.unit[n].together != NULL);
		}
	return n;
}

static void run_crowd(void)
{
	size_t n = 0;

	arena_reset(&world.arena);
	for (int a = 0; a < ACCOUNTS; a++)
		n = draw_crowd(a, n);
	if (n)
		run(n);
	for (size_t i = 0; i < n; i++)
		crowds_won += world.side[0].result[i].verdict == UNIT_WON;
}

static void random_units_are_equal_on_both_stores(void **state)
{
	bool brief = getenv("HAPAX_BRIEF") != NULL;
	long tried = 0, won = 0;

	(void)state;
	for (int g = 0; g < (brief ? GENERATIONS_BRIEF : GENERATIONS); g++) {
		arena_reset(&world.arena);
		for (int a = 0; a < ACCOUNTS; a++)
			make_account(a);
		for (int i = 0; i < ACCOUNTS * BATCHES; i++)
			make_batch(i % ACCOUNTS, i / ACCOUNTS);
		for (int s = 0; s < STEPS; s++) {
			run_step();
			if (draw(3) == 0)
				run_crowd();
		}
	}
	for (size_t m = 0; m < MOVES_N; m++) {
		tried += moves[m].tried;
		won += moves[m].won;
		if (getenv("HAPAX_TEST_MOVES"))
			printf("%s: %ld of %ld won\n", moves[m].name, moves[m].won, moves[m].tried);
		if (!moves[m].won && !brief)
			fail_msg("%s: tried %ld times and never won", moves[m].name, moves[m].tried);
	}
	assert_true(crowds_won > 0);
	printf("# batch random: %ld units equal on both stores (%ld won, and %ld in crowds), the books balance after each\n",
	       tried, won, crowds_won);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_units_are_equal_on_both_stores),
	};

	return cmocka_run_group_tests_name("batch random", tests, set_up, tear_down);
}
