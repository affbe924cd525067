/*
 * Credits of one account, explored: the same credit twice, another amount under its key, another key, a balance near its
 * limit; on several nodes or in one group, with crashes, failed commits, and answers that are lost while their commit
 * lands, vanishes or stays open.
 *
 * Besides the invariants of invariant.h, after every edge:
 *  A1  The balance is the sum of the ledger and within its limits.
 *  A2  A key has one entry. seq has no gaps, and each balance follows from the one before.
 *  A3  Whoever was told HX_OK finds an entry of its key and amount, whoever was told HX_ALREADY_EXISTS one of another amount,
 *      and whoever was told that nothing happened has no entry of its own.
 *  A4  Of those who ask for the same at most one is told that it was done now; if all of them were told HX_OK, exactly one was.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/hash.h"
#include "flow/account.h"
#include "sim/explore.h"

#define STATES_MAX 5000000
#define WORDS_MAX (4u << 20)

/* ---- the rows ---- */

static const struct db_stmt stmt_account = {
	.name = "sim_account",
	.sql = "SELECT balance, seq FROM hx_account",
	.in = "",
	.out = "ii",
};

static const struct db_stmt stmt_ledger = {
	.name = "sim_ledger",
	.sql = "SELECT seq, amount, key, balance, op FROM hx_ledger ORDER BY seq",
	.in = "",
	.out = "iitii",
};
enum { SEQ, AMOUNT, KEY, BALANCE, OP };

struct books {
	int64_t balance, seq;
	struct db_rows ledger; /* until the next edge */
};

static struct books read_books(struct sim *sim)
{
	struct unit unit;

	unit_init(&unit, 0);
	unit_add(&unit, UNIT_ANY, &stmt_account, 0, NULL);
	unit_add(&unit, UNIT_ANY, &stmt_ledger, 0, NULL);

	struct unit_result result = sim_run_unit(sim, &unit);

	ASSERT(result.rows[0].n == 1);
	return (struct books){db_cell(&result.rows[0], 0, 0)->i, db_cell(&result.rows[0], 0, 1)->i, result.rows[1]};
}

static const struct account_credit *credit_of(const struct sim *sim, unsigned i)
{
	return (const struct account_credit *)&sim->state.actors[i].task;
}

/* A commit of this credit has made the entry. */
static bool is_entry_of(const struct db_rows *ledger, size_t i, const struct account_credit *c)
{
	int64_t op = db_cell(ledger, i, OP)->i;

	return op == c->stamp.op || op == c->op_in_doubt;
}

static uint64_t hash_books(const struct books *books, uint64_t hash)
{
	hash = hash_mix(hash_mix(hash, (uint64_t)books->balance), (uint64_t)books->seq);
	for (size_t i = 0; i < books->ledger.n; i++) {
		struct slice key = db_cell(&books->ledger, i, KEY)->s;

		hash = hash_mix(hash, (uint64_t)db_cell(&books->ledger, i, AMOUNT)->i);
		hash = hash_mix(hash, (uint64_t)db_cell(&books->ledger, i, BALANCE)->i);
		hash = hash_bytes(hash, key.p, key.n);
	}
	return hash;
}

/* ---- the checks ---- */

static void check_books(struct sim *sim, const struct books *books)
{
	const struct db_rows *ledger = &books->ledger;
	int64_t sum = 0;

	for (size_t i = 0; i < ledger->n; i++) {
		sum += db_cell(ledger, i, AMOUNT)->i;
		if (db_cell(ledger, i, SEQ)->i != (int64_t)i + 1 || db_cell(ledger, i, BALANCE)->i != sum)
			sim_violate(sim, "A2: the entry %zu does not follow from the one before", i + 1);
		for (size_t k = 0; k < i; k++)
			if (slice_eq(db_cell(ledger, i, KEY)->s, db_cell(ledger, k, KEY)->s))
				sim_violate(sim, "A2: the entries %zu and %zu have one key", k + 1, i + 1);
	}
	if (books->balance != sum || books->seq != (int64_t)ledger->n)
		sim_violate(sim, "A1: the balance is %lld behind %lld entries, and the ledger's %zu sum to %lld",
			    (long long)books->balance, (long long)books->seq, ledger->n, (long long)sum);
	if (sum < 0 || sum > ACCOUNT_BALANCE_MAX)
		sim_violate(sim, "A1: the balance is %lld", (long long)sum);
}

/* Nobody else asks for the same: what is there is its own. */
static bool is_only(const struct sim *sim, const struct account_credit *c)
{
	unsigned n = 0;

	for (unsigned i = 0; i < sim->scenario->cast_n; i++)
		n += sim->scenario->cast[i].plan == c->rq;
	return n == 1;
}

static void check_told(struct sim *sim, const struct books *books, const char *name, const struct account_credit *c)
{
	bool same = false, other = false, mine = false;

	for (size_t i = 0; i < books->ledger.n; i++) {
		bool key = slice_eq(db_cell(&books->ledger, i, KEY)->s, c->rq->key);

		same |= key && db_cell(&books->ledger, i, AMOUNT)->i == c->rq->amount;
		other |= key && db_cell(&books->ledger, i, AMOUNT)->i != c->rq->amount;
		mine |= db_cell(&books->ledger, i, OP)->i == c->stamp.op;
	}
	mine |= same && is_only(sim, c);
	if (c->task.code == HX_OK && !same)
		sim_violate(sim, "A3: %s was told that it is there, and it is not", name);
	if (c->task.code == HX_ALREADY_EXISTS && !other)
		sim_violate(sim, "A3: %s was told of another amount, and there is none", name);
	if (c->task.code != HX_OK && c->task.code != HX_OUTCOME_UNKNOWN && mine)
		sim_violate(sim, "A3: %s was told %s, and its entry is there", name, hx_code_name(c->task.code));
}

static void check_makers(struct sim *sim, const struct account_credit_request *rq)
{
	unsigned asked = 0, told = 0, done_now = 0;

	for (unsigned i = 0; i < sim->scenario->cast_n; i++) {
		const struct account_credit *c = credit_of(sim, i);
		bool ok = sim->state.actors[i].state == SIM_DONE && c->task.code == HX_OK;

		if (sim->scenario->cast[i].plan != rq)
			continue;
		asked++;
		told += ok;
		done_now += ok && !c->was_there;
	}
	if (done_now > 1 || (told == asked && done_now == 0))
		sim_violate(sim, "A4: of %u who asked for the same, %u were told that it was done now", asked,
			    done_now);
}

static void check(struct sim *sim)
{
	struct books books = read_books(sim);

	check_books(sim, &books);
	for (unsigned i = 0; i < sim->scenario->cast_n; i++)
		if (sim->state.actors[i].state == SIM_DONE) {
			check_told(sim, &books, sim->scenario->cast[i].name, credit_of(sim, i));
			check_makers(sim, sim->scenario->cast[i].plan);
		}
}

/* ---- for the simulator ---- */

static uint64_t books_before;

static int64_t next_moment(struct sim *sim)
{
	(void)sim;
	return INT64_MAX;
}

/* Whose an entry is decides what its maker is told: states that differ in it are two. */
static uint64_t hash_makers(struct sim *sim, const struct books *books, uint64_t hash)
{
	for (size_t i = 0; i < books->ledger.n; i++)
		for (unsigned k = 0; k < sim->scenario->cast_n; k++)
			hash = hash_mix(hash, is_entry_of(&books->ledger, i, credit_of(sim, k)));
	return hash;
}

static uint64_t hash_all(struct sim *sim, uint64_t hash)
{
	struct books books = read_books(sim);

	return hash_makers(sim, &books, hash_books(&books, hash));
}

static void before_unit(struct sim *sim, const struct unit *unit)
{
	struct books books = read_books(sim);

	(void)unit;
	books_before = hash_books(&books, 1);
}

static void after_unit(struct sim *sim, const struct unit *unit, enum unit_verdict verdict)
{
	struct books books = read_books(sim);

	(void)unit;
	if (verdict != UNIT_WON && hash_books(&books, 1) != books_before)
		sim_violate(sim, "I4: a unit that was %s changed the books", unit_verdict_name(verdict));
}

static void tell(struct sim *sim, struct strbuf *words)
{
	struct books books = read_books(sim);

	strbuf_addf(words, "; the balance is %lld behind %lld entries", (long long)books.balance, (long long)books.seq);
}

static const struct sim_rows account_rows = {
	.next_moment = next_moment,
	.hash = hash_all,
	.before_unit = before_unit,
	.after_unit = after_unit,
	.tell = tell,
};

/* ---- scenarios ---- */

static const struct account_credit_request twenty = {{"default", 7}, {"alice", 5}, {"a", 1}, 20};
static const struct account_credit_request thirty = {{"default", 7}, {"alice", 5}, {"a", 1}, 30};
static const struct account_credit_request another = {{"default", 7}, {"alice", 5}, {"b", 1}, 20};

static void init_credit(union sim_task *task, const void *plan, struct arena *texts)
{
	(void)texts;
	account_credit_init((struct account_credit *)task, plan);
}

static void setup_with(struct sim *sim, int64_t balance)
{
	char sql[300];

	snprintf(sql, sizeof sql,
		 "INSERT INTO hx_account VALUES (1, 'default', 'alice', %lld, 1, 0);"
		 "INSERT INTO hx_ledger VALUES (1, 1, %lld, '/opening', 'opening', %lld, -1, 0)",
		 (long long)balance, (long long)balance, (long long)balance);
	sim_script(sim, sql);
}

static void setup(struct sim *sim)
{
	setup_with(sim, 100);
}

/* Room for one of twenty. */
static void setup_near_limit(struct sim *sim)
{
	setup_with(sim, ACCOUNT_BALANCE_MAX - 25);
}

#define ACCOUNT_SCENARIO .subjects_n = 1, .initial = "OPEN", .check = check, .rows = &account_rows

static const struct sim_scenario pair = {
	.name = "a credit and its retry on two nodes",
	.nodes_n = 2,
	.cast_n = 2,
	.cast = {{"first", 0, false, init_credit, &twenty}, {"retry", 1, false, init_credit, &twenty}},
	.bounds = {.crashes = 1, .lost_answers = 3, .failures = 1},
	.setup = setup,
	ACCOUNT_SCENARIO,
};

static const struct sim_scenario mixed = {
	.name = "a credit, another amount under its key and another key on three nodes",
	.nodes_n = 3,
	.cast_n = 3,
	.cast = {{"first", 0, false, init_credit, &twenty},
		 {"other amount", 1, false, init_credit, &thirty},
		 {"other key", 2, false, init_credit, &another}},
	.bounds = {.crashes = 1, .lost_answers = 2, .failures = 1},
	.setup = setup,
	ACCOUNT_SCENARIO,
};

/* On one node their units share batches, and a crash takes them all. */
static const struct sim_scenario together = {
	.name = "a credit, its retry, another amount and another key on one node",
	.nodes_n = 1,
	.cast_n = 4,
	.cast = {{"first", 0, false, init_credit, &twenty},
		 {"retry", 0, false, init_credit, &twenty},
		 {"other amount", 0, false, init_credit, &thirty},
		 {"other key", 0, false, init_credit, &another}},
	.bounds = {.crashes = 1, .lost_answers = 1, .failures = 1},
	.setup = setup,
	ACCOUNT_SCENARIO,
};

static const struct sim_scenario limit = {
	.name = "two credits and room for one on two nodes",
	.nodes_n = 2,
	.cast_n = 2,
	.cast = {{"first", 0, false, init_credit, &twenty}, {"other key", 1, false, init_credit, &another}},
	.bounds = {.crashes = 1, .lost_answers = 3, .failures = 1},
	.setup = setup_near_limit,
	ACCOUNT_SCENARIO,
};

static void explore(const struct sim_scenario *scenario)
{
	struct explore_report r;
	struct strbuf words;

	strbuf_init(&words, WORDS_MAX);
	if (!explore_all(scenario, STATES_MAX, &r, &words)) {
		fprintf(stderr, "%s", words.p); /* cmocka would cut it */
		strbuf_release(&words);
		fail();
	}
	printf("# %s; %u crash anywhere, %u lost answers, %u failed commit: %llu states, %llu edges, %llu crash points, at least "
	       "%.3g schedules of up to %u steps, all invariants hold\n",
	       scenario->name, scenario->bounds.crashes, scenario->bounds.lost_answers, scenario->bounds.failures,
	       (unsigned long long)r.states, (unsigned long long)r.edges, (unsigned long long)r.crash_points,
	       r.schedules, r.longest);
	assert_true(r.states > 100 && r.quiet > 0 && r.crash_points > 100);
	strbuf_release(&words);
}

#define EXHAUSTIVE(scenario)                                                                                           \
	static void exhaustive_##scenario(void **state)                                                                \
	{                                                                                                              \
		(void)state;                                                                                           \
		explore(&scenario);                                                                                    \
	}

EXHAUSTIVE(pair)
EXHAUSTIVE(mixed)
EXHAUSTIVE(together)
EXHAUSTIVE(limit)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(exhaustive_pair),
		cmocka_unit_test(exhaustive_mixed),
		cmocka_unit_test(exhaustive_together),
		cmocka_unit_test(exhaustive_limit),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
