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
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "support/store.h"
#include "support/tally.h"

#define GENERATIONS 80
#define GENERATIONS_BRIEF 20 /* with HAPAX_BRIEF: enough to run the code, under a sanitizer */
#define STEPS 60
#define ACCOUNTS 2
#define BATCHES 2 /* of an account */
#define ITEMS_MAX 5
#define DAY_MS 86400000
#define FIRST_ID 1000000
#define TEXT_MAX (16u << 20)
#define CROWD_MAX 8 /* units of an account in one transaction */
#define UNITS_MAX (ACCOUNTS * CROWD_MAX)

/* One store. */
struct side {
	struct store *store;
	struct db *db;
	struct arena arena;
	struct unit_result result[UNITS_MAX];
	struct strbuf text;
};

/* What is believed of a batch and one of its items. */
struct belief {
	struct batch_row row;
	struct batch_hold hold;
	int64_t n, attempt, doubt, item_fence;
	bool has_item;
};

static struct {
	uint64_t random;
	struct side side[2]; /* SQLite, PostgreSQL */
	struct arena arena;  /* of the step */
	struct unit unit[UNITS_MAX];
	int64_t next_id, rests_n;
	int64_t account[ACCOUNTS], batch[ACCOUNTS][BATCHES];
	char workspace[ACCOUNTS][32];
	struct stamp stamp;
} world;

/* splitmix64 */
static uint64_t draw(uint64_t below)
{
	uint64_t z = world.random += 0x9e3779b97f4a7c15u;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return (z ^ (z >> 31)) % below;
}

/* These tests are about what is written, not about whether it lasts. */
static struct db *open_hasty(const struct store *store)
{
	char base[512], url[600];
	struct db_options options = {.url = url, .clock = clock_system(), .stay_unchecked = true};
	struct hx_error err = {0};
	struct db *db = NULL;

	db_close(store_open_migrated(store));
	store_url(store, /* port= */ 0, "hasty", base, sizeof base);
	snprintf(url, sizeof url, "%s%%20-csynchronous_commit%%3Doff", base);
	if (db_open(&options, &db, &err) != HX_OK)
		fail_msg("open: %s", err.detail);
	return db;
}

static int set_up(void **state)
{
	const char *seed = getenv("HAPAX_TEST_SEED");

	(void)state;
	world.random = seed ? strtoull(seed, NULL, 10) : (uint64_t)clock_wall(clock_system()).ms;
	printf("# batch random: seed %llu\n", (unsigned long long)world.random);
	arena_init(&world.arena, 64u << 20);
	for (int i = 0; i < 2; i++) {
		struct side *side = &world.side[i];

		side->store = store_new(i ? STORE_POSTGRES : STORE_SQLITE_MEMORY);
		side->db = i ? open_hasty(side->store) : store_open_migrated(side->store);
		arena_init(&side->arena, 64u << 20);
		strbuf_init(&side->text, TEXT_MAX);
	}
	world.next_id = FIRST_ID;
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++) {
		db_close(world.side[i].db);
		store_free(world.side[i].store);
		arena_release(&world.side[i].arena);
		strbuf_release(&world.side[i].text);
	}
	arena_release(&world.arena);
	return 0;
}

/* ---- running and comparing ---- */

static const char *stamped(void)
{
	world.stamp = (struct stamp){.op = world.next_id++, .node = draw(2) ? "here" : "there"};
	world.stamp.at.ms = world.stamp.op % 100000 + 1;
	return world.stamp.node;
}

/* Items that are read have a time among their columns: only their numbers count. */
static void write_results(const struct side *side, size_t units_n, struct strbuf *out)
{
	for (size_t u = 0; u < units_n; u++) {
		const struct unit *unit = &world.unit[u];

		strbuf_addf(out, "%s: %s, line %d\n", unit->lines[0].stmt->name,
			    unit_verdict_name(side->result[u].verdict), side->result[u].line);
		for (unsigned line = 0; line < unit->lines_n; line++) {
			const struct db_rows *rows = &side->result[u].rows[line];
			size_t columns = strncmp(unit->lines[line].stmt->name, "item_read", 9) == 0 ? 1 : rows->columns;

			for (size_t i = 0; i < rows->n; i++) {
				strbuf_addf(out, "  line %u:", line);
				for (size_t c = 0; c < columns; c++) {
					const struct db_value *v = db_cell(rows, i, c);

					if (v->type == DB_INT)
						strbuf_addf(out, " %lld", (long long)v->i);
					else
						strbuf_addf(out, " %.*s", v->type ? (int)v->s.n : 1,
							    v->type ? v->s.p : "-");
				}
				strbuf_add_char(out, '\n');
			}
		}
	}
}

static void execute(struct side *side, size_t units_n)
{
	struct unit *units[UNITS_MAX];
	const struct db_driver *driver = side->db->driver;
	struct hx_error err = {0};

	for (size_t i = 0; i < units_n; i++)
		units[i] = &world.unit[i];
	arena_reset(&side->arena);
	if (driver->begin(side->db, &err) ||
	    driver->execute(side->db, units, units_n, side->result, &side->arena, &err) ||
	    driver->commit(side->db, &err))
		fail_msg("%s, %s: %s", driver->name, world.unit[0].lines[0].stmt->name, err.detail);
	strbuf_reset(&side->text);
	write_results(side, units_n, &side->text);
	for (int a = 0; a < ACCOUNTS; a++)
		if (!tally_write(side->db, world.account[a], TALLY_STORES, &side->arena, &side->text))
			fail_msg("%s", side->text.p);
}

static void assert_same(void)
{
	const char *a = world.side[0].text.p, *b = world.side[1].text.p;
	size_t line = 0;

	if (strcmp(a, b) == 0)
		return;
	for (size_t i = 0; a[i] == b[i]; i++)
		if (a[i] == '\n')
			line = i + 1;
	fail_msg("the stores differ.\nsqlite:   %.*s\npostgres: %.*s\n%s", (int)strcspn(a + line, "\n"), a + line,
		 (int)strcspn(b + line, "\n"), b + line, a);
}

static void run(size_t units_n)
{
	const char *wrong;

	for (int i = 0; i < 2; i++)
		execute(&world.side[i], units_n);
	assert_same();
	for (int a = 0; a < ACCOUNTS; a++) {
		wrong = tally_wrong(world.side[0].db, world.account[a], &world.arena);
		if (wrong)
			fail_msg("%s%s", wrong, world.side[0].text.p);
	}
}

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
