/* The same units on SQLite and on PostgreSQL, and what both say to them: for test_batch_random.c. */
#ifndef HX_TESTS_CONTRACT_BATCH_TWINS_H
#define HX_TESTS_CONTRACT_BATCH_TWINS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "support/soak.h"
#include "support/store.h"
#include "support/tally.h"

#define GENERATIONS soak_or(800, 40)
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
static inline uint64_t draw(uint64_t below)
{
	uint64_t z = world.random += 0x9e3779b97f4a7c15u;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return (z ^ (z >> 31)) % below;
}

/* These tests are about what is written, not about whether it lasts. */
static inline struct db *open_hasty(const struct store *store)
{
	db_close(store_open_migrated(store));
	return store_open_hasty(store, "hasty");
}

static inline int set_up(void **state)
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

static inline int tear_down(void **state)
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

static inline const char *stamped(void)
{
	world.stamp = (struct stamp){.op = world.next_id++, .node = draw(2) ? "here" : "there"};
	world.stamp.at.ms = world.stamp.op % 100000 + 1;
	return world.stamp.node;
}

/* Items that are read have a time among their columns: only their numbers count. */
static inline void write_results(const struct side *side, size_t units_n, struct strbuf *out)
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

static inline void execute(struct side *side, size_t units_n)
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

static inline void assert_same(void)
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

static inline void run(size_t units_n)
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

#endif
