/* A store that a real server has filled (support/town.h), what is done to it, and what the audit then finds: see test_audit.c. */
#ifndef HX_TESTS_CONTRACT_AUDIT_SCENE_H
#define HX_TESTS_CONTRACT_AUDIT_SCENE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/id.h"
#include "engine/audit.h"
#include "support/town.h"

#define SQL_BYTES 2000

static struct {
	struct scene *scene;
	struct town town;
	struct db *db;
	struct arena arena;
} world;

/* ---- fixtures ---- */

static inline int set_up_world(int (*scene_set_up)(void **state))
{
	void *scene = NULL;

	scene_set_up(&scene);
	world.scene = scene;
	town_define(world.scene);
	town_live(world.scene, &world.town);
	world.db = store_open(world.scene->store);
	arena_init(&world.arena, AUDIT_ARENA_BYTES_MAX);
	return 0;
}

static inline int set_up_sqlite(void **state)
{
	(void)state;
	return set_up_world(scene_set_up_sqlite);
}

static inline int set_up_postgres(void **state)
{
	(void)state;
	return set_up_world(scene_set_up_postgres);
}

static inline int tear_down_world(void **state)
{
	void *scene = world.scene;

	(void)state;
	db_close(world.db);
	world.db = NULL;
	arena_release(&world.arena);
	return scene_tear_down(&scene);
}

static inline void script(const char *sql)
{
	struct hx_error err = {0};

	if (world.db->driver->script(world.db, sql, &err) != HX_OK)
		fail_msg("%s: %s", sql, err.detail);
}

static inline int begin(void **state)
{
	(void)state;
	script("BEGIN");
	return 0;
}

static inline int undo(void **state)
{
	(void)state;
	script("ROLLBACK");
	return 0;
}

/* ---- tampering ---- */

static void tamper(const char *format, ...) __attribute__((format(printf, 1, 2)));

static inline void tamper(const char *format, ...)
{
	char sql[SQL_BYTES];
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(sql, sizeof sql, format, args);
	va_end(args);
	assert_true(n > 0 && n < (int)sizeof sql);
	script(sql);
}

static int64_t number(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* One cell, read in the transaction of the test. */
static inline int64_t number(const char *format, ...)
{
	static int counter;
	struct db_stmt *stmt = arena_zalloc(&world.arena, sizeof *stmt);
	char sql[SQL_BYTES], *name = arena_alloc(&world.arena, 40);
	struct unit_result result;
	struct hx_error err = {0};
	struct unit unit, *units[] = {&unit};
	va_list args;

	va_start(args, format);
	vsnprintf(sql, sizeof sql, format, args);
	va_end(args);
	snprintf(name, 40, "test_number_%d", ++counter);
	*stmt = (struct db_stmt){.name = name, .sql = arena_copy(&world.arena, slice_str(sql)).p, .in = "", .out = "i"};
	unit_init(&unit, 0);
	unit_add(&unit, UNIT_ANY, stmt, 0, NULL);
	if (world.db->driver->execute(world.db, units, 1, &result, &world.arena, &err) != HX_OK)
		fail_msg("%s: %s", sql, err.detail);
	assert_true(result.rows[0].n == 1);
	return db_cell(&result.rows[0], 0, 0)->i;
}

static inline int64_t last_seq(int64_t subject)
{
	return number("SELECT max(seq) FROM hx_history WHERE subject = %lld", (long long)subject);
}

/* Makes the chain fit again, from this row on. */
static inline void recompute(int64_t subject, int64_t from)
{
	for (int64_t seq = from, last = last_seq(subject); seq <= last; seq++)
		tamper("UPDATE hx_history SET hash = hx_link((SELECT hash FROM hx_history p WHERE p.subject = %lld AND p.seq = %lld),"
		       " subject, seq, from_status, to_status, version, fence, op, at, node) WHERE subject = %lld AND seq = %lld",
		       (long long)subject, (long long)seq - 1, (long long)subject, (long long)seq);
}

/* Makes the subject what its last row says. */
static inline void follow(int64_t subject)
{
	static const char *const pairs[][2] = {
		{"status", "to_status"}, {"version", "version"}, {"fence", "fence"}, {"op", "op"},
		{"updated_at", "at"},    {"seq", "seq"},         {"head", "hash"}};

	for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
		tamper("UPDATE hx_subject SET %s = (SELECT h.%s FROM hx_history h WHERE h.subject = id ORDER BY h.seq DESC LIMIT 1)"
		       " WHERE id = %lld",
		       pairs[i][0], pairs[i][1], (long long)subject);
}

/* One more row, into this status, and all of the chain fits. */
static inline void add_row(int64_t subject, const char *to)
{
	int64_t seq = last_seq(subject);

	tamper("INSERT INTO hx_history (subject, seq, from_status, to_status, version, fence, op, node, at, hash)"
	       " SELECT subject, seq + 1, to_status, '%s', version + 1, fence, op + 1, node, at + 1, hash FROM hx_history"
	       " WHERE subject = %lld AND seq = %lld",
	       to, (long long)subject, (long long)seq);
	recompute(subject, seq + 1);
}

/* One more entry, and seq and balance fit. */
static inline void add_entry(int64_t account, int64_t amount, const char *key, const char *reason)
{
	tamper("INSERT INTO hx_ledger (account, seq, amount, key, reason, balance, op, at) SELECT subject, seq + 1, %lld, '%s',"
	       " '%s', balance + %lld, 1, 1 FROM hx_account WHERE subject = %lld",
	       (long long)amount, key, reason, (long long)amount, (long long)account);
	tamper("UPDATE hx_account SET seq = seq + 1, balance = balance + %lld WHERE subject = %lld", (long long)amount,
	       (long long)account);
}

static inline const char *key_of(int64_t batch, int n, const char *reason, int attempt)
{
	static char key[80];
	char id[ID_TEXT_BYTES];

	id_format("batch", batch, id);
	snprintf(key, sizeof key, "/%s/%d/%s/%d", id, n, reason, attempt);
	return key;
}

/* ---- auditing ---- */

static inline void audit(struct auditor *auditor)
{
	struct unit unit, *units[] = {&unit};
	struct unit_result result;
	struct hx_error err = {0};

	auditor_init(auditor);
	while (auditor_ask(auditor, &unit)) {
		struct arena_mark mark = arena_mark(&world.arena);

		if (world.db->driver->execute(world.db, units, 1, &result, &world.arena, &err) != HX_OK)
			fail_msg("%s", err.detail);
		auditor_take(auditor, &result);
		arena_rewind(&world.arena, mark);
	}
	auditor_release(auditor);
}

static inline void assert_whole(void)
{
	struct auditor a;

	audit(&a);
	if (a.finding.there)
		fail_msg("%s (%lld), %s %lld: %s: expected %s, found %s", a.finding.subject, (long long)a.finding.id,
			 a.finding.row ? a.finding.row : "", (long long)a.finding.seq, a.finding.what,
			 a.finding.expected, a.finding.found);
}

/* The place and what is wrong there; row NULL: of the subject itself. */
/* named: how the name of the subject begins. */
static inline void assert_found_of(int64_t id, const char *row, int64_t seq, const char *what, const char *named)
{
	struct auditor a;

	audit(&a);
	if (!a.finding.there)
		fail_msg("%s was not found", what);
	if (a.finding.id != id || strcmp(a.finding.what, what) != 0 || !a.finding.row != !row ||
	    (row && strcmp(a.finding.row, row) != 0) || a.finding.seq != seq)
		fail_msg("%s of %lld, %s %lld, was to be found, and %s of %lld, %s %lld was: expected %s, found %s",
			 what, (long long)id, row ? row : "", (long long)seq, a.finding.what, (long long)a.finding.id,
			 a.finding.row ? a.finding.row : "", (long long)a.finding.seq, a.finding.expected,
			 a.finding.found);
	assert_true(a.finding.expected[0] && a.finding.found[0]);
	if (strncmp(a.finding.subject, named, strlen(named)) != 0)
		fail_msg("%s is called %s", named, a.finding.subject);
}

static inline void assert_found(int64_t id, const char *row, int64_t seq, const char *what)
{
	assert_found_of(id, row, seq, what, /* named= */ "");
}

#define HISTORY "history row"
#define LEDGER "ledger entry"

static inline void test_the_store_is_whole(void **state)
{
	struct auditor a;

	(void)state;
	assert_whole();
	audit(&a);
	assert_int_equal(a.counts.subjects, number("SELECT count(*) FROM hx_subject"));
	assert_int_equal(a.counts.history_rows, number("SELECT count(*) FROM hx_history"));
	assert_int_equal(a.counts.steps, number("SELECT count(*) FROM hx_run_step"));
	assert_int_equal(a.counts.accounts, 2);
	assert_int_equal(a.counts.entries, number("SELECT count(*) FROM hx_ledger"));
	assert_int_equal(a.counts.batches, number("SELECT count(*) FROM hx_batch"));
	assert_int_equal(a.counts.items, number("SELECT count(*) FROM hx_batch_item"));
	/* There is something to look at. */
	assert_true(number("SELECT count(*) FROM hx_ledger WHERE reason = 'refund'") >= 2);
	assert_true(number("SELECT count(*) FROM hx_ledger WHERE reason = 'return'") >= 20);
	assert_true(number("SELECT count(*) FROM hx_run_step WHERE undone_at IS NOT NULL") >= 1);
	assert_true(number("SELECT count(*) FROM hx_run_step WHERE made_by IS NOT NULL") == 2);
	assert_true(number("SELECT count(*) FROM hx_run WHERE expired = 1") == 1);
	assert_true(number("SELECT count(*) FROM hx_batch WHERE expired = 2") == 1);
}

#define ON_SQLITE(test) cmocka_unit_test_setup_teardown(test, begin, undo),
#define ON_POSTGRES(test) {#test " on PostgreSQL", test, begin, undo, NULL},

#endif
