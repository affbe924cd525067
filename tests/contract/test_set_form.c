/*
 * Random groups run in set form on PostgreSQL and in row form on SQLite must give the same verdicts, the same rows
 * and the same tables, hashes included. The stores' clocks are not compared: leases lie a day ahead or behind, and
 * of a claim's end only none, live or past counts.
 *
 * The seed is printed; HAPAX_TEST_SEED repeats a run.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "support/item.h"
#include "support/ledger.h"
#include "support/unit_kinds.h"

#define BATCHES 500
#define UNITS_MAX 64
#define SUBJECTS 96
#define FIRST_ID 1000000
#define RUNS 48
#define FIRST_RUN 2000000
#define DAY_MS 86400000
#define LEDGER_EVERY 20
#define SEEN_MAX 200

static struct {
	uint64_t random;
	struct store *store[2];
	struct session *session[2]; /* SQLite, PostgreSQL */
	int64_t ids[SUBJECTS];
	struct {
		int64_t version, fence, effort, op, token;
	} known[SUBJECTS]; /* the truth, as SQLite tells it */
	int64_t runs[RUNS], next_run;
	int64_t next_op;
	size_t seen_n; /* statements with a set form, met in plain units */
	const struct db_stmt *seen[SEEN_MAX];
	long units, won, lost;
} world;

/* splitmix64 */
static uint64_t draw(uint64_t below)
{
	uint64_t z = world.random += 0x9e3779b97f4a7c15u;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return (z ^ (z >> 31)) % below;
}

static int set_up(void **state)
{
	const char *seed = getenv("HAPAX_TEST_SEED");

	(void)state;
	world.random = seed ? strtoull(seed, NULL, 10) : (uint64_t)clock_wall(clock_system()).ms;
	printf("# set form: seed %llu\n", (unsigned long long)world.random);
	for (int i = 0; i < 2; i++) {
		world.store[i] = store_new(i ? STORE_POSTGRES : STORE_SQLITE_MEMORY);
		world.session[i] = session_new(world.store[i], store_open_migrated(world.store[i]));
	}
	for (int64_t i = 0; i < SUBJECTS; i++)
		world.ids[i] = FIRST_ID + i;
	world.next_run = FIRST_RUN;
	for (size_t i = 0; i < RUNS; i++)
		world.runs[i] = world.next_run++;
	world.next_op = 1;
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++) {
		session_free(world.session[i]);
		store_free(world.store[i]);
	}
	return 0;
}

/* ---- making a group ---- */

static void shuffle(size_t order[], size_t n)
{
	for (size_t i = 0; i < n; i++) {
		size_t j = draw(i + 1);

		order[i] = order[j];
		order[j] = i;
	}
}

/* One time in five the caller is one behind, or one ahead. */
static int64_t believed(int64_t truth)
{
	return draw(5) ? truth : truth - 1 + 2 * (int64_t)draw(2);
}

/* Those of other tables come after a verdict, and two of one group may never both get there. */
static bool comes_in_numbers(const struct db_stmt *stmt)
{
	return strncmp(stmt->name, "gate_", 5) == 0 ||
	       (strncmp(stmt->name, "subject_", 8) == 0 && strncmp(stmt->name, "subject_insert", 14) != 0);
}

static void see(const struct unit *unit)
{
	for (unsigned line = 0; line < unit->lines_n && unit_is_plain(unit); line++) {
		const struct db_stmt *stmt = unit->lines[line].stmt;
		size_t i = 0;

		while (i < world.seen_n && world.seen[i] != stmt)
			i++;
		assert_true(i < SEEN_MAX);
		world.seen[i] = stmt;
		world.seen_n += i == world.seen_n && stmt_has_set_form(stmt) && comes_in_numbers(stmt);
	}
}

static const struct unit_kind *draw_kind(bool alone)
{
	const struct unit_kind *kind = &unit_kinds[draw(unit_kinds_n)];

	/* Of jobs test_job_claim tells, on both stores, of batches test_batch_random; accounts and bulks have no set form. */
	while ((kind->alone && !alone) || (kind->of > OF_GATE && kind->of != OF_RUN) || kind->own_clock ||
	       (kind->seldom && draw(6)))
		kind = &unit_kinds[draw(unit_kinds_n)];
	return kind;
}

/* Most runs come to an end, and then nothing moves them any more: now and then there is a new one. */
static int64_t draw_run(size_t place)
{
	if (draw(60) == 0)
		world.runs[place] = world.next_run++;
	return world.runs[place];
}

/* The same units into both sessions. Each takes one or two subjects, or a run, that no other unit of the group has. */
static void make_batch(void)
{
	size_t order[SUBJECTS], run_order[RUNS], taken = 0, runs_taken = 0, n = 1 + draw(UNITS_MAX);

	shuffle(order, SUBJECTS);
	shuffle(run_order, RUNS);
	for (int i = 0; i < 2; i++)
		session_reset(world.session[i]);
	for (size_t u = 0; u < n && taken + 2 <= SUBJECTS && runs_taken < RUNS;) {
		const struct unit_kind *kind = draw_kind(/* alone= */ u == 0);
		size_t a = kind->of == OF_RUN ? 0 : order[taken++], b = kind->touches_two ? order[taken++] : a;
		struct kind_args args = {
			.subject = kind->of == OF_RUN ? draw_run(run_order[runs_taken++]) : world.ids[a],
			.other = world.ids[b],
			.stamp = {.op = world.next_op, .at = {world.next_op * 7}, .node = draw(2) ? "here" : "there"},
			.version = believed(world.known[a].version),
			.fence = believed(world.known[a].fence),
			.effort = believed(world.known[a].effort),
			.token = believed(world.known[a].token),
			.other_version = believed(world.known[b].version),
			.lease_ms = draw(2) ? DAY_MS : -DAY_MS,
			.rival_op = believed(world.known[a].op),
			.db = world.session[0]->db,
			.stale = draw(5) == 0,
		};
		struct unit unit;

		unit_init(&unit, args.stamp.op);
		kind->build(&unit, &args);
		if (unit.lines_n == 0)
			continue;
		world.next_op++;
		u++;
		for (int i = 0; i < 2; i++)
			*session_unit(world.session[i]) = unit;
		see(&unit);
		if (kind->alone)
			break;
	}
}

/* ---- comparing ---- */

static void write_results(const struct session *s, struct strbuf *out)
{
	for (size_t u = 0; u < s->n; u++) {
		strbuf_addf(out, "unit %zu, %s: %s, line %d\n", u, s->unit[u].lines[0].stmt->name,
			    unit_verdict_name(s->result[u].verdict), s->result[u].line);
		ledger_write_rows(&s->unit[u], &s->result[u], out);
	}
}

static void assert_same(const char *what, int batch, const struct strbuf text[2])
{
	const char *a = text[0].p, *b = text[1].p;
	size_t line = 0;

	assert_false(text[0].failed || text[1].failed);
	if (strcmp(a, b) == 0)
		return;
	for (size_t i = 0; a[i] == b[i]; i++)
		if (a[i] == '\n')
			line = i + 1;
	fail_msg("batch %d: %s differ.\nsqlite:   %.*s\npostgres: %.*s", batch, what, (int)strcspn(a + line, "\n"),
		 a + line, (int)strcspn(b + line, "\n"), b + line);
}

static void compare_ledgers(int batch)
{
	struct strbuf text[2];

	for (int i = 0; i < 2; i++) {
		strbuf_init(&text[i], 64u << 20);
		if (!ledger_write(world.session[i]->db, LEDGER_MIXED, world.ids, SUBJECTS, /* with_hashes= */ true,
				  &text[i]))
			fail_msg("batch %d: %s", batch, text[i].p);
		if (!ledger_write(world.session[i]->db, LEDGER_RUNS, world.runs, RUNS, /* with_hashes= */ true,
				  &text[i]))
			fail_msg("batch %d: %s", batch, text[i].p);
	}
	assert_same("tables", batch, text);
	strbuf_release(&text[0]);
	strbuf_release(&text[1]);
}

static void run_batch(int batch)
{
	struct strbuf text[2];

	for (int i = 0; i < 2; i++) {
		struct session *s = world.session[i];

		if (session_run(s) != HX_OK)
			fail_msg("batch %d, %s: %s", batch, s->db->driver->name, s->err.detail);
		strbuf_init(&text[i], 16u << 20);
		write_results(s, &text[i]);
	}
	for (size_t u = 0; u < world.session[0]->n; u++) {
		world.won += world.session[0]->result[u].verdict == UNIT_WON;
		world.lost += world.session[0]->result[u].verdict != UNIT_WON;
	}
	world.units += (long)world.session[0]->n;
	assert_same("results", batch, text);
	strbuf_release(&text[0]);
	strbuf_release(&text[1]);
}

static const struct db_stmt stmt_known = {
	.name = "test_known",
	.sql = "SELECT version, fence, effort, op FROM hx_subject WHERE id = ?1",
	.in = "i",
	.out = "iiii",
};

static const struct db_stmt stmt_token = {
	.name = "test_token",
	.sql = "SELECT token FROM hx_gate_record WHERE key = ?1",
	.in = "b",
	.out = "b",
};

static void learn(void)
{
	static unsigned char keys[SUBJECTS][HX_GATE_KEY_BYTES];
	struct session *s = world.session[0];

	session_reset(s);
	for (size_t i = 0; i < SUBJECTS; i++) {
		struct unit *unit = session_unit(s);

		kind_gate_key(world.ids[i], keys[i]);
		UNIT_ADD(unit, UNIT_ANY, &stmt_known, db_int(world.ids[i]));
		UNIT_ADD(unit, UNIT_ANY, &stmt_token, db_blob(slice_of(keys[i], sizeof keys[i])));
	}
	assert_int_equal(session_run(s), HX_OK);
	for (size_t i = 0; i < SUBJECTS; i++) {
		const struct db_rows *rows = &s->result[i].rows[0], *token = &s->result[i].rows[1];

		world.known[i].token = token->n ? kind_gate_token(db_cell(token, 0, 0)->s) : 0;
		if (rows->n == 0)
			continue;
		world.known[i].version = db_cell(rows, 0, 0)->i;
		world.known[i].fence = db_cell(rows, 0, 1)->i;
		world.known[i].effort = db_cell(rows, 0, 2)->i;
		world.known[i].op = db_cell(rows, 0, 3)->i;
	}
}

static void random_batches_are_equal_on_both_stores(void **state)
{
	(void)state;
	for (int batch = 1; batch <= BATCHES; batch++) {
		make_batch();
		run_batch(batch);
		if (batch % LEDGER_EVERY == 0)
			compare_ledgers(batch);
		learn();
	}
	assert_true(world.won > world.units / 10 && world.lost > world.units / 10); /* or nothing was tried */
	printf("# set form: %d batches, %ld units equal (%ld won, %ld lost)\n", BATCHES, world.units, world.won,
	       world.lost);
}

static const struct db_stmt stmt_sets = {
	.name = "test_sets",
	.sql = "SELECT count(*) FROM pg_prepared_statements WHERE name NOT LIKE 'subject\\_insert%'"
	       " AND (name LIKE 'subject\\_%\\_set%' OR name LIKE 'gate\\_%\\_set%')",
	.in = "",
	.out = "i",
};

static void the_set_form_was_used(void **state)
{
	struct session *s = world.session[1];

	(void)state;
	session_reset(s);
	unit_add(session_unit(s), UNIT_ANY, &stmt_sets, 0, NULL);
	assert_int_equal(session_run(s), HX_OK);
	assert_true(world.seen_n >= 10);
	assert_int_equal(db_cell(&s->result[0].rows[0], 0, 0)->i, world.seen_n);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_batches_are_equal_on_both_stores),
		cmocka_unit_test(the_set_form_was_used),
	};

	return cmocka_run_group_tests_name("set form", tests, set_up, tear_down);
}
