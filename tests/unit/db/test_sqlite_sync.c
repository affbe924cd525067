/* Commits that do not wait for the disk: who hears of them, and when; and what a machine that stops finds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>
#include <sqlite3.h>

#include "base/thread.h"
#include "db/driver.h"
#include "support/disk.h"
#include "support/must_hold.h"
#include "support/store.h"

static const struct db_stmt put = {
	.name = "test_sync_put",
	.sql = "INSERT INTO t (n, bytes) VALUES (?1, randomblob(?2))",
	.in = "ii",
	.out = "",
};
static const struct db_stmt count = {.name = "test_sync_count", .sql = "SELECT count(*) FROM t", .in = "", .out = "i"};

struct scene {
	struct store *store;
	const char *path;
	struct db *db;
	struct arena arena;
	int64_t n; /* rows */
};

static struct scene begin(void)
{
	struct scene scene = {.store = store_new(STORE_SQLITE_FILE)};
	struct db_options options = {.url = scene.store->url, .clock = clock_system(), .exclusive = true};
	struct hx_error err;

	disk_hold(false); /* the test before may have failed while it was held up */
	scene.path = scene.store->url + strlen("sqlite:");
	if (db_open(&options, &scene.db, &err) ||
	    scene.db->driver->script(scene.db, "CREATE TABLE t (n INTEGER PRIMARY KEY, bytes BLOB NOT NULL)", &err))
		fail_msg("%s", err.detail);
	assert_true(scene.db->may_be_later);
	arena_init(&scene.arena, 1 << 20);
	disk.here_n = disk.aside_n = disk.of_file = disk.of_log = 0;
	return scene;
}

static void end(struct scene *scene)
{
	char command[1500];

	disk_hold(false);
	db_close(scene->db);
	arena_release(&scene->arena);
	snprintf(command, sizeof command, "rm -f %s.disk* %s.again* %s.taken*", scene->path, scene->path, scene->path);
	assert_int_equal(system(command), 0);
	store_free(scene->store);
	*disk.store = '\0';
}

/* A transaction with a row of so many bytes; NULL: one that counts them. */
static int64_t transact(struct scene *scene, bool later, const int64_t *bytes)
{
	struct db *db = scene->db;
	struct unit unit, *units[] = {&unit};
	struct unit_result result;
	struct hx_error err;

	unit_init(&unit, /* op= */ 0);
	if (bytes)
		UNIT_ADD(&unit, UNIT_MUST, &put, db_int(++scene->n), db_int(*bytes));
	else
		UNIT_ADD(&unit, UNIT_MUST, &count);
	db->patience.reads = !bytes;
	db->later = later;
	if (db->driver->begin(db, &err) || db->driver->execute(db, units, 1, &result, &scene->arena, &err) ||
	    db->driver->commit(db, &err))
		fail_msg("%s", err.detail);
	db->later = false;
	db->patience.reads = false;
	assert_int_equal(result.verdict, UNIT_WON);
	return bytes ? 0 : db_cell(&result.rows[0], 0, 0)->i;
}

static void put_later(struct scene *scene, int64_t bytes)
{
	(void)transact(scene, /* later= */ true, &bytes);
}

/* -1: there is no such table. */
static int64_t rows_of(const char *path)
{
	sqlite3 *other = NULL;
	sqlite3_stmt *stmt = NULL;
	int64_t n = -1;

	if (sqlite3_open(path, &other) == SQLITE_OK &&
	    sqlite3_prepare_v2(other, "SELECT count(*) FROM t", -1, &stmt, NULL) == SQLITE_OK &&
	    sqlite3_step(stmt) == SQLITE_ROW)
		n = sqlite3_column_int64(stmt, 0);
	sqlite3_finalize(stmt);
	sqlite3_close(other);
	return n;
}

static void a_commit_is_seen_before_it_is_durable_and_says_so(void **state)
{
	struct scene scene = begin();

	(void)state;
	disk_hold(true);
	put_later(&scene, 10);
	assert_int_equal(rows_of(scene.path), 1);
	MUST_HOLD(!scene.db->driver->durable(scene.db, scene.db->committed, /* wait= */ false),
		  "a commit is durable that the disk is still at");
	put_later(&scene, 10); /* it needs no word of the disk's */
	assert_int_equal(transact(&scene, /* later= */ true, NULL), 2);
	MUST_HOLD(!scene.db->driver->durable(scene.db, scene.db->committed, /* wait= */ false),
		  "what reads is over before what it has read is durable");
	disk_hold(false);
	assert_true(scene.db->driver->durable(scene.db, scene.db->committed, /* wait= */ true));
	end(&scene);
}

/* ---- who has to wait ---- */

struct waiter {
	struct scene *scene;
	struct thread thread;
	_Atomic bool over;
};

static void *settle(void *context)
{
	struct waiter *w = context;

	w->over = w->scene->db->driver->settle(w->scene->db, (struct mono_time){0});
	return NULL;
}

static void *lose_at_once(void *context)
{
	struct waiter *w = context;

	(void)transact(w->scene, /* later= */ false, NULL);
	w->over = true;
	return NULL;
}

/* It is not over while the disk is held up; a moment is enough to see that, and too short for none who waits. */
static void waits_for_the_disk(void *(*run)(void *), const char *broken)
{
	struct scene scene = begin();
	struct waiter w = {.scene = &scene};
	struct hx_error err;

	disk_hold(true);
	put_later(&scene, 10);
	assert_int_equal(thread_start(&w.thread, run, &w, "a test's thread", &err), HX_OK);
	for (int i = 0; i < 50 && !w.over; i++)
		usleep(1000);
	MUST_HOLD(!w.over, broken);
	disk_hold(false);
	thread_join(&w.thread);
	assert_true(w.over);
	end(&scene);
}

static void who_reads_beside_waits_for_what_it_may_have_seen(void **state)
{
	(void)state;
	waits_for_the_disk(settle, "somebody is told what the machine could still lose");
}

static void a_wait_for_the_disk_has_an_end(void **state)
{
	struct scene scene = begin();

	(void)state;
	disk_hold(true);
	put_later(&scene, 10);
	assert_false(scene.db->driver->settle(scene.db, time_in_ms(5)));
	disk_hold(false);
	assert_true(scene.db->driver->settle(scene.db, (struct mono_time){0}));
	end(&scene);
}

static void who_tells_at_once_begins_when_all_before_is_durable(void **state)
{
	(void)state;
	waits_for_the_disk(lose_at_once, "a transaction that waits for no disk is told of one that is not durable");
}

/* ---- a machine that stops ---- */

/* What the disk has, opened as the next start would: how many rows there are. */
static int64_t rows_on_disk(const struct scene *scene)
{
	char command[2000];
	int64_t n;

	snprintf(command, sizeof command, "cp %s.disk %s.again && cp %s.disk-wal %s.again-wal && rm -f %s.again-shm",
		 scene->path, scene->path, scene->path, scene->path, scene->path);
	pthread_mutex_lock(&disk.mutex);
	assert_int_equal(system(command), 0);
	pthread_mutex_unlock(&disk.mutex);
	snprintf(command, sizeof command, "%s.again", scene->path);
	n = rows_of(command);
	return n;
}

/* Small and large, later and at once, with a log that is copied back and begins anew: what is said to be durable is on the disk. */
static void what_is_durable_survives_the_machine(void **state)
{
	struct scene scene = begin();
	struct db *db = scene.db;

	(void)state;
	snprintf(disk.store, sizeof disk.store, "%s", scene.path);
	db->driver->tend(db, /* idle= */ true); /* copies of both are there from now on */
	for (int i = 0; i < 150; i++) {
		int64_t bytes = i % 7 == 3 ? 300000 : 50 * i, rows;

		(void)transact(&scene, /* later= */ i % 5 != 4, &bytes);
		if (i % 30 == 20)
			db->driver->tend(db, /* idle= */ true);
		if (i % 5 != 4)
			(void)db->driver->durable(db, db->committed, /* wait= */ i % 3 == 0);
		if (i % 5 != 4 && !db->driver->durable(db, db->committed, /* wait= */ false))
			continue;
		rows = rows_on_disk(&scene);
		MUST_HOLD(rows == scene.n, "what was said to be durable is not on the disk");
	}
	assert_true(disk_syncs(/* aside= */ true) > 50);
	end(&scene);
}

/* Frames of a log that begins anew, and its old head: the next start would copy old pages over younger ones. */
static void the_head_of_a_log_is_there_before_its_frames(void **state)
{
	struct scene scene = begin();
	unsigned before;

	(void)state;
	put_later(&scene, 10);
	scene.db->driver->tend(scene.db, /* idle= */ true);
	before = disk_syncs(/* aside= */ false);
	put_later(&scene, 10);
	MUST_HOLD(disk_syncs(/* aside= */ false) > before, "frames may reach the disk before the head of their log");
	before = disk_syncs(/* aside= */ false);
	put_later(&scene, 10);
	assert_int_equal(disk_syncs(/* aside= */ false), before);
	end(&scene);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_commit_is_seen_before_it_is_durable_and_says_so),
		cmocka_unit_test(who_reads_beside_waits_for_what_it_may_have_seen),
		cmocka_unit_test(a_wait_for_the_disk_has_an_end),
		cmocka_unit_test(who_tells_at_once_begins_when_all_before_is_durable),
		cmocka_unit_test(what_is_durable_survives_the_machine),
		cmocka_unit_test(the_head_of_a_log_is_there_before_its_frames),
	};

	ONLY_THE_NAMED(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
