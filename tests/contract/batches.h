/*
 * What the contract tests of batches share: a store, the unit under way, an account, batches and holds, each unit as one line of
 * a test, and what is there as text.
 *
 * After every unit the books must balance (support/tally.h), and a unit that was not won must have left no trace at all, not even
 * a time. A lease or a rest that is negative is over before it began: there is no waiting here.
 */
#ifndef HX_TESTS_CONTRACT_BATCHES_H
#define HX_TESTS_CONTRACT_BATCHES_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/id.h"
#include "base/json_string.h"
#include "contract/both_stores.h"
#include "support/tally.h"

#define LEASE_MS 3600000
#define PAST_MS (-3600000)

static struct {
	struct store *store;
	struct db *db;
	struct arena arena; /* of the test */
	struct unit unit;
	struct unit_result result;
	int64_t next_id, account;
	char workspace[32];
	struct strbuf before, after;
} world;

static inline int set_up(enum store_kind kind)
{
	world.store = store_new(kind);
	world.db = store_open_migrated(world.store);
	world.next_id = 1000;
	arena_init(&world.arena, 256u << 20);
	strbuf_init(&world.before, 64u << 20);
	strbuf_init(&world.after, 64u << 20);
	return 0;
}

static inline int tear_down(void **state)
{
	(void)state;
	db_close(world.db);
	store_free(world.store);
	arena_release(&world.arena);
	strbuf_release(&world.before);
	strbuf_release(&world.after);
	memset(&world, 0, sizeof world);
	return 0;
}

/* ---- running a unit ---- */

static inline int64_t now_ms(void)
{
	return clock_wall(clock_system()).ms;
}

static inline struct stamp begin(void)
{
	struct stamp stamp = {.op = world.next_id++, .at = {now_ms()}, .node = "here"};

	unit_init(&world.unit, stamp.op);
	return stamp;
}

static inline void write_tally(struct strbuf *out)
{
	strbuf_reset(out);
	if (!tally_write(world.db, world.account, TALLY_EXACT, &world.arena, out))
		fail_msg("%s", out->p);
}

/* A read: whatever it is about. */
static inline void ask(void)
{
	struct hx_error err = {0};

	if (db_run_unit(world.db, &world.unit, &world.result, &world.arena, &err) != HX_OK)
		fail_msg("%s: %s", world.unit.lines[0].stmt->name, err.detail);
}

static inline enum unit_verdict run(void)
{
	const char *wrong;

	write_tally(&world.before);
	ask();
	wrong = tally_wrong(world.db, world.account, &world.arena);
	if (wrong)
		fail_msg("%s, %s: %s", world.unit.lines[0].stmt->name, unit_verdict_name(world.result.verdict), wrong);
	if (world.result.verdict != UNIT_WON) {
		write_tally(&world.after);
		assert_string_equal(world.after.p, world.before.p);
	}
	return world.result.verdict;
}

static inline void must_win(void)
{
	if (run() != UNIT_WON)
		fail_msg("%s: %s at line %d", world.unit.lines[0].stmt->name, unit_verdict_name(world.result.verdict),
			 world.result.line);
}

/* Lost, by that line. */
#define assert_lost_at(line_)                                                                                          \
	do {                                                                                                           \
		assert_int_equal(run(), UNIT_LOST);                                                                    \
		assert_string_equal(world.unit.lines[world.result.line].stmt->name, line_);                            \
	} while (0)

static inline bool wakes(int64_t topic)
{
	for (unsigned i = 0; i < world.unit.wakes_n; i++)
		if (world.unit.wakes[i] == topic)
			return true;
	return false;
}

/* ---- accounts, batches, holds ---- */

static inline int64_t open_account(int64_t balance)
{
	struct stamp stamp = begin();
	char name[32];

	world.account = world.next_id++;
	snprintf(world.workspace, sizeof world.workspace, "w%lld", (long long)world.account);
	snprintf(name, sizeof name, "a%lld", (long long)world.account);
	account_create(&world.unit, &stamp, slice_str(world.workspace), slice_str(name), world.account, balance);
	must_win();
	return world.account;
}

static inline enum unit_verdict credit(int64_t amount, const char *key)
{
	struct stamp stamp = begin();

	account_add_credit(&world.unit, &stamp, world.account, amount, slice_str(key));
	return run();
}

static inline struct batch_spec spec_of(const char *key)
{
	return (struct batch_spec){.subject = world.next_id++,
				   .account = world.account,
				   .workspace = slice_str(world.workspace),
				   .requester = slice_str("ann"),
				   .trace = slice_str("00-trace"),
				   .key = key ? slice_str(key) : slice_of(NULL, 0),
				   .machine = tally_machine()};
}

static inline int64_t make_of(const int64_t costs[], size_t n, bool queued)
{
	struct batch_spec spec = spec_of(/* key= */ NULL);
	struct stamp stamp = begin();

	batch_create_whole(&world.unit, &stamp, &spec, tally_rows(costs, n, &world.arena), (int64_t)n, queued);
	must_win();
	return spec.subject;
}

#define COSTS(...) (const int64_t[]){__VA_ARGS__}, sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t)

static inline struct batch_row look(int64_t batch)
{
	struct batch_row row;

	(void)begin();
	batch_read(&world.unit, slice_str(""), batch);
	ask();
	assert_int_equal(world.result.rows[0].n, 1);
	batch_row_take(&world.result.rows[0], 0, &tally_policy, &world.arena, &row);
	return row;
}

static inline enum unit_verdict seize(int64_t batch, const char *to, int64_t lease_ms, struct batch_hold *hold)
{
	struct batch_row row = look(batch);
	struct stamp stamp = begin();
	enum unit_verdict verdict;

	batch_seize(&world.unit, &stamp, &row, to, lease_ms);
	verdict = run();
	if (verdict == UNIT_WON) {
		batch_hold_of(&row, &tally_policy, &world.arena, hold);
		hold->fence = db_cell(&world.result.rows[0], 0, 1)->i;
	}
	return verdict;
}

static inline struct batch_hold hold_of(int64_t batch, const char *to, int64_t lease_ms)
{
	struct batch_hold hold = {0};

	assert_int_equal(seize(batch, to, lease_ms, &hold), UNIT_WON);
	return hold;
}

static inline struct batch_hold running(const int64_t costs[], size_t n)
{
	return hold_of(make_of(costs, n, /* queued= */ true), BATCH_RUNNING, LEASE_MS);
}

/* Its time is over. */
static inline void lapse(const struct batch_hold *hold)
{
	(void)begin();
	subject_heartbeat(&world.unit, hold->subject, hold->fence, PAST_MS);
	must_win();
}

/* The next holder, after this one was lost. */
static inline struct batch_hold taken_over(const struct batch_hold *hold)
{
	lapse(hold);
	return hold_of(hold->subject, BATCH_RUNNING, LEASE_MS);
}

static inline void flag(int64_t batch)
{
	struct batch_row row = look(batch);
	struct stamp stamp = begin();

	batch_request_cancel(&world.unit, &stamp, &row);
	must_win();
}

static inline void begin_teardown(const struct batch_hold *hold)
{
	struct stamp stamp = begin();

	batch_begin_teardown(&world.unit, &stamp, hold);
	must_win();
}

/* ---- items ---- */

static inline enum unit_verdict start(const struct batch_hold *hold)
{
	struct stamp stamp = begin();

	item_start(&world.unit, &stamp, hold);
	return run();
}

/* Which one was begun; the attempt. */
static inline int64_t started(const struct batch_hold *hold, int64_t attempt)
{
	const struct db_rows *rows = &world.result.rows[1];

	if (start(hold) != UNIT_WON)
		fail_msg("nothing was begun: %s at line %d", unit_verdict_name(world.result.verdict),
			 world.result.line);
	assert_int_equal(rows->n, 1);
	assert_int_equal(db_cell(rows, 0, START_ATTEMPT)->i, attempt);
	return db_cell(rows, 0, START_N)->i;
}

static inline enum unit_verdict end(const struct batch_hold *hold, struct item_end as)
{
	struct stamp stamp = begin();

	item_end(&world.unit, &stamp, hold, &as);
	return run();
}

static inline enum unit_verdict succeed(const struct batch_hold *hold, int64_t n, int64_t attempt)
{
	return end(hold, (struct item_end){
				 .n = n, .attempt = attempt, .status = ITEM_SUCCEEDED, .output = slice_str("\"art\"")});
}

/* Returned, and again after rest_ms. */
static inline enum unit_verdict rest(const struct batch_hold *hold, int64_t n, int64_t attempt, int64_t rest_ms)
{
	return end(hold, (struct item_end){.n = n,
					   .attempt = attempt,
					   .status = ITEM_PENDING,
					   .failure = true,
					   .returns = true,
					   .rest_ms = rest_ms,
					   .error = slice_str("no luck")});
}

/* In doubt: nothing is returned. */
static inline enum unit_verdict doubt(const struct batch_hold *hold, int64_t n, int64_t attempt, int64_t rest_ms)
{
	return end(hold, (struct item_end){.n = n,
					   .attempt = attempt,
					   .status = ITEM_PENDING,
					   .failure = true,
					   .doubt = true,
					   .rest_ms = rest_ms,
					   .error = slice_str("no answer")});
}

static inline enum unit_verdict leave_unknown(const struct batch_hold *hold, int64_t n, int64_t attempt)
{
	return end(hold, (struct item_end){
				 .n = n, .attempt = attempt, .status = ITEM_UNKNOWN, .doubt = true, .failure = true});
}

static inline enum unit_verdict fail_item(const struct batch_hold *hold, int64_t n, int64_t attempt)
{
	return end(hold, (struct item_end){.n = n,
					   .attempt = attempt,
					   .status = ITEM_FAILED,
					   .failure = true,
					   .returns = true,
					   .error = slice_str("refused")});
}

static inline enum unit_verdict accept(const struct batch_hold *hold, int64_t n)
{
	struct stamp stamp = begin();

	item_accept(&world.unit, &stamp, hold, n);
	return run();
}

static inline enum unit_verdict resolve(const struct batch_hold *hold, int64_t n, bool done)
{
	struct stamp stamp = begin();

	item_resolve(&world.unit, &stamp, hold, n, done, done ? slice_str("\"seen\"") : slice_of(NULL, 0));
	return run();
}

static inline enum unit_verdict settle(const struct batch_hold *hold, int64_t n, int64_t attempt)
{
	struct stamp stamp = begin();

	item_settle(&world.unit, &stamp, hold, n, attempt, slice_str("\"settled\""));
	return run();
}

static inline enum unit_verdict late(const struct batch_hold *hold, int64_t n, int64_t attempt)
{
	struct item_end as = {.n = n, .attempt = attempt, .output = slice_str("\"late\"")};
	struct stamp stamp = begin();

	item_late(&world.unit, &stamp, hold, &as, world.next_id++,
		  batch_item_key(hold->subject, n, "cleanup/late", attempt, &world.arena), slice_str("{\"late\":1}"));
	return run();
}

static inline enum unit_verdict flip(const struct batch_hold *hold, int64_t from, int64_t to)
{
	struct stamp stamp = begin();

	item_flip(&world.unit, &stamp, hold, from, to);
	return run();
}

static inline enum unit_verdict stop_short(const struct batch_hold *hold)
{
	struct stamp stamp = begin();

	batch_stop_short(&world.unit, &stamp, hold);
	return run();
}

static inline enum unit_verdict let_go(const struct batch_hold *hold, const char *status, int64_t rest_ms,
				       const char *error)
{
	struct stamp stamp = begin();

	batch_let_go(&world.unit, &stamp, hold, status, rest_ms, /* failed_cleanup= */ error != NULL,
		     error ? slice_str(error) : slice_of(NULL, 0));
	return run();
}

/* Believing what `row` says. */
static inline enum unit_verdict end_believing(const struct batch_hold *hold, const char *to,
					      const struct batch_row *row)
{
	const int64_t job_ids[] = {world.next_id++};
	const struct slice job_keys[] = {batch_done_key(hold->subject, "tell", &world.arena)};
	struct stamp stamp = begin();

	batch_end(&world.unit, &stamp, hold, to, row, job_ids, job_keys,
		  batch_totals(hold, row, to, row->version + 1, &world.arena));
	return run();
}

static inline enum unit_verdict end_batch(const struct batch_hold *hold, const char *to)
{
	struct batch_row row = look(hold->subject);

	return end_believing(hold, to, &row);
}

/* ---- what is there ---- */

static inline const char *when(int64_t at_ms)
{
	return at_ms == 0 ? "" : at_ms <= now_ms() ? ", due" : ", rests";
}

static inline const char *see(int64_t batch, int64_t n)
{
	static char text[2000];
	const struct db_rows *rows = &world.result.rows[0];
	const struct db_value *c;
	int len;

	(void)begin();
	item_read(&world.unit, batch, n);
	ask();
	if (rows->n == 0)
		return "none";
	c = rows->cells;
	len = snprintf(text, sizeof text, "%.*s%s%.*s, charged %lld of %lld, attempt %lld/%lld, fence %lld%s%s",
		       SLICE_ARGS(c[ITEM_STATUS].s), c[ITEM_DECISION].type ? " " : "",
		       c[ITEM_DECISION].type ? (int)c[ITEM_DECISION].s.n : 0,
		       c[ITEM_DECISION].type ? c[ITEM_DECISION].s.p : "", (long long)c[ITEM_CHARGED].i,
		       (long long)c[ITEM_COST].i, (long long)c[ITEM_ATTEMPT].i, (long long)c[ITEM_FAILURES].i,
		       (long long)c[ITEM_FENCE].i, c[ITEM_DOUBT].i ? ", doubt" : "",
		       when(c[ITEM_DUE_AT].type ? c[ITEM_DUE_AT].i : 0));
	for (int i = ITEM_OUTPUT; i <= ITEM_ERROR; i++)
		if (c[i].type)
			len += snprintf(text + len, sizeof text - (size_t)len, "%s%.*s",
					i == ITEM_OUTPUT ? " = "
					: i == ITEM_LATE ? " late "
							 : ": ",
					SLICE_ARGS(c[i].s));
	return text;
}

/* Status and holder; due or not. */
static inline const char *state(int64_t batch)
{
	static char text[500];
	struct batch_row row = look(batch);

	snprintf(text, sizeof text, "%s v%lld f%lld%s%s%s%s", row.status, (long long)row.version, (long long)row.fence,
		 row.owned ? ", owned" : "", row.past ? " past" : "", row.cancel_requested ? ", flagged" : "",
		 when(row.due_at));
	return text;
}

static inline const char *counts(int64_t batch)
{
	static char text[500];
	struct batch_row row = look(batch);

	snprintf(text, sizeof text,
		 "%lld of %lld begun, +%lld -%lld ?%lld a%lld c%lld, charged %lld refunded %lld late %lld",
		 (long long)row.next_n, (long long)row.total, (long long)row.succeeded, (long long)row.failed,
		 (long long)row.unknown, (long long)row.accepted, (long long)row.cancelled, (long long)row.charged,
		 (long long)row.refunded, (long long)row.late);
	return text;
}

/* The entries of the account after its opening: amount, and the key without the batch's id. */
static inline const char *entries(int64_t batch)
{
	static char text[4000];
	const struct db_rows *rows = &world.result.rows[0];
	char name[32], id[ID_TEXT_BYTES];
	int len = 0;

	(void)begin();
	snprintf(name, sizeof name, "a%lld", (long long)world.account);
	id_format("batch", batch, id);
	account_read_ledger(&world.unit, slice_str(world.workspace), slice_str(name), /* after= */ 1, 1000);
	ask();
	text[0] = '\0';
	for (size_t i = 0; i < rows->n; i++) {
		struct slice key = db_cell(rows, i, 2)->s;

		if (key.n > strlen(id) + 2 && memcmp(key.p + 1, id, strlen(id)) == 0)
			key = slice_of(key.p + strlen(id) + 2, key.n - strlen(id) - 2);
		len += snprintf(text + len, sizeof text - (size_t)len, "%s%+lld %.*s", i ? ", " : "",
				(long long)db_cell(rows, i, 1)->i, SLICE_ARGS(key));
	}
	return text;
}

static inline int64_t balance(void)
{
	char name[32];

	(void)begin();
	snprintf(name, sizeof name, "a%lld", (long long)world.account);
	account_read(&world.unit, slice_str(world.workspace), slice_str(name));
	ask();
	return db_cell(&world.result.rows[0], 0, 1)->i;
}

static inline int64_t jobs_n(void)
{
	static const struct db_stmt stmt = {.name = "test_jobs_n",
					    .sql = "SELECT count(*) FROM hx_job WHERE workspace = ?1",
					    .in = "t",
					    .out = "i"};

	(void)begin();
	UNIT_ADD(&world.unit, UNIT_ANY, &stmt, db_text(slice_str(world.workspace)));
	ask();
	return db_cell(&world.result.rows[0], 0, 0)->i;
}

/* n of the rows of that line. */
static inline const char *numbers(int line)
{
	static char text[200];
	int len = 0;

	text[0] = '\0';
	for (size_t i = 0; i < world.result.rows[line].n; i++)
		len += snprintf(text + len, sizeof text - (size_t)len, "%s%lld", i ? " " : "",
				(long long)db_cell(&world.result.rows[line], i, ITEM_N)->i);
	return text;
}

static inline const char *listed(int64_t batch, const char *status, const char *decision, int64_t after, int64_t limit)
{
	(void)begin();
	item_list(&world.unit, batch, slice_str(status), slice_str(decision), after, limit);
	ask();
	return numbers(0);
}

/*
 * 0 accepted · 1 SUCCEEDED · 2 SUCCEEDED in doubt · 3 UNKNOWN · 4 FAILED · 5 rests, returned · 6 rests, in doubt · 7 RUNNING ·
 * 8 RUNNING under an older fence · 9, 10 never begun. Flagged, CANCELLING.
 */
static inline struct batch_hold torn(void)
{
	struct batch_hold old = running(COSTS(1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)), hold;

	for (int64_t n = 0; n < 9; n++)
		assert_int_equal(started(&old, 1), n);
	assert_int_equal(succeed(&old, 0, 1), UNIT_WON);
	assert_int_equal(accept(&old, 0), UNIT_WON);
	assert_int_equal(succeed(&old, 1, 1), UNIT_WON);
	assert_int_equal(leave_unknown(&old, 3, 1), UNIT_WON);
	assert_int_equal(fail_item(&old, 4, 1), UNIT_WON);
	assert_int_equal(rest(&old, 5, 1, LEASE_MS), UNIT_WON);
	assert_int_equal(doubt(&old, 6, 1, LEASE_MS), UNIT_WON);
	hold = taken_over(&old);
	assert_int_equal(started(&hold, 2), 2);
	assert_int_equal(end(&hold, (struct item_end){.n = 2, .attempt = 2, .status = ITEM_SUCCEEDED, .doubt = true}),
			 UNIT_WON);
	assert_int_equal(started(&hold, 2), 7);
	flag(hold.subject);
	begin_teardown(&hold);
	return hold;
}

#endif
