/*
 * One store, two drivers: what the engine asks of SQLite and of PostgreSQL.
 *
 * A connection belongs to one thread at a time. The life of a transaction:
 *
 *        begin ──▶ execute (once or more) ──▶ commit ──▶ HX_OK: durable (with `later`: once durable() says so)
 *                       │                        ├─▶ HX_STORE_UNAVAILABLE: certainly nothing happened
 *                       │ not HX_OK              └─▶ HX_OUTCOME_UNKNOWN ──▶ resolve
 *                       ▼
 *                 rolled back already: nothing happened, and no verdict of it counts
 *
 * Units of one group see each other's writes on SQLite (they run one after the other); on PostgreSQL a group
 * may hold at most one unit of a subject (`one_unit_per_subject`), so there is nothing to see.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"
#include "db/unit.h"

struct db_options {
	const char *url;         /* sqlite:PATH, sqlite::memory:, postgres://… */
	struct clock *clock;     /* hx_now_ms() on SQLite, and how long to wait; never NULL */
	int64_t lock_timeout_ms; /* PostgreSQL: how long a group waits for rows of other nodes; 0: 2000 */
	bool read_only;          /* for lists, and verbs beside a running server: never writes, never checkpoints */
	bool exclusive;          /* SQLite: hold the file's locks, so that a second server is refused */
	const char *sql_role; /* PostgreSQL: the role that statements of the user's run as; NULL: the session's own */
	bool stay_unchecked;  /* tests only: accept a PostgreSQL with fsync off */
};

/*
 * How long whoever uses the connection can wait, and what it does meanwhile. Set before begin, and between two calls; it
 * counts for all that follows, until it is set anew. Zeroed: the driver's own limits.
 */
struct db_patience {
	struct mono_time by; /* no call waits for the store past this moment; ns 0: as long as the driver itself does */
	void (*tick)(void *context); /* several times a second, in the middle of a wait; must not use the connection */
	void *context;
	bool reads; /* the next transaction only reads: SQLite's write lock is not asked for */
};

/* What all drivers' connections start with; drivers embed it as their first member. */
struct db {
	const struct db_driver *driver;
	struct clock *clock;
	/*
	 * Set before begin, for units with a limit (unit.h): the statements that run then are ended, a lock that is waited
	 * for included, and execute says HX_ACTION_FAILED. Deferred constraints are checked by execute, and not left for
	 * the commit. ns 0: none of this. A rollback clears it.
	 */
	struct mono_time limit;
	/* From any thread: the same, for a program that ends; execute then says HX_STOPPING. 0: never. */
	_Atomic int64_t stop_ns;
	/* PostgreSQL, from the next begin on: how long a lock is waited for, where no limit is set. 0: as it was opened. */
	int64_t lock_wait_ms;
	struct db_patience patience;
	/* Set before execute: its units are all that the transaction has. Then one that only reads may be over with it, and commit finds
	 * nothing left to do: PostgreSQL saves two of three trips. SQLite saves most savepoints, since it may begin it anew. */
	bool whole;
	/*
	 * Set before begin, by a user who tells nobody of it until durable() says so: the next commit need not wait for the disk. Without
	 * it a transaction begins when all before it is durable.
	 */
	bool later;
	bool may_be_later;  /* constant once it is open: `later` changes anything, and there is durable() to ask */
	uint64_t committed; /* by commit, with `later`: the number to ask durable() for */
	_Atomic int64_t durable_ns; /* what the last commit has waited for the disk, or would have without `later` */
	/* From a thread of the store's, when something has become durable. Set before the first `later`; may be NULL. */
	void (*told)(void *context);
	/* By execute, now and then between two units; must not use the connection. May be NULL. */
	void (*between)(void *context);
	void *told_context; /* of both */
};

struct db_driver {
	const char *name;
	bool one_unit_per_subject;
	bool one_writer; /* begin waits for the lock of the whole store, unless what follows only reads */
	/* Opens a transaction that no other migration can be in at the same time. */
	const char *migrate_begin;

	enum hx_code (*open)(const struct db_options *options, struct db **ret_db, struct hx_error *err);
	/* Takes NULL. An open transaction is rolled back. */
	void (*close)(struct db *db);

	/*
	 * Connects again when the connection was lost. HX_STORE_UNAVAILABLE when it cannot, within its time;
	 * HX_CONCURRENCY_ERROR when another program has SQLite's write lock, and nothing else is wrong.
	 */
	enum hx_code (*begin)(struct db *db, struct hx_error *err);
	/*
	 * Runs the units and fills results[0..n), with rows in the arena. WON, LOST and REFUSED are verdicts, to
	 * be believed once commit says so. Otherwise the transaction is gone and the code says what to do:
	 *   HX_DATA_ERROR         some unit's data was refused (err has the store's words): bisect
	 *   HX_CONCURRENCY_ERROR  deadlock, lock timeout or serialisation: run the same group again
	 *   HX_ACTION_FAILED      the limit has passed
	 *   HX_STOPPING           it was ended because the program ends
	 *   HX_STORE_UNAVAILABLE  the connection is lost
	 *   HX_NO_MEMORY, HX_TOO_LARGE   the arena is full
	 */
	enum hx_code (*execute)(struct db *db, struct unit *const units[], size_t n, struct unit_result results[],
				struct arena *arena, struct hx_error *err);
	/* Besides, as execute: HX_DATA_ERROR (a deferred constraint), HX_CONCURRENCY_ERROR: nothing happened. */
	enum hx_code (*commit)(struct db *db, struct hx_error *err);
	/* Is the commit with this number durable, and all before it? Waits for that, ticking. NULL where db->may_be_later never is. */
	bool (*durable)(struct db *db, uint64_t number, bool wait);
	/* From any thread: waits until all is durable that other connections could see by now. False: that moment has come (ns 0: never). */
	bool (*settle)(struct db *db, struct mono_time by);
	void (*rollback)(struct db *db);
	/*
	 * After HX_CONCURRENCY_ERROR, outside of a transaction: which of the units have a subject that somebody keeps locked
	 * right now? A hint, by the time that it is told. NULL: the store has no such locks.
	 */
	void (*find_blocked)(struct db *db, struct unit *const units[], size_t n, bool ret_blocked[],
			     struct arena *arena);
	/*
	 * After HX_OUTCOME_UNKNOWN: connects again and waits, at most wait_ms, until the store itself knows.
	 * HX_OK: it was committed. HX_STORE_UNAVAILABLE: it certainly was not. HX_OUTCOME_UNKNOWN: still open.
	 */
	enum hx_code (*resolve)(struct db *db, int64_t wait_ms, struct hx_error *err);
	/* Runs a text of several statements without parameters (migrations, tests). */
	enum hx_code (*script)(struct db *db, const char *sql, struct hx_error *err);
	/* The schema of its own that the URL asks for (store_schema.h); NULL: none. The entry is NULL where there are no schemas. */
	const char *(*schema)(const struct db *db);
	/* Between groups: SQLite checkpoints when `idle` or when its log has grown large. */
	void (*tend)(struct db *db, bool idle);
};

extern const struct db_driver db_sqlite;
extern const struct db_driver db_postgres;

/* For the drivers: what to say of statements that run now, HX_OK: let them. */
enum hx_code db_is_over(struct db *db);

/* For the drivers, in their waits: lets the user of the connection do what cannot wait. */
static inline void db_tick(struct db *db)
{
	if (db->patience.tick)
		db->patience.tick(db->patience.context);
}

/* For the drivers: `limit`, or the moment at which the user's patience ends, if that is earlier. */
static inline struct mono_time db_wait_until(const struct db *db, struct mono_time limit)
{
	return db->patience.by.ns && db->patience.by.ns < limit.ns ? db->patience.by : limit;
}

/* Picks the driver by the URL's scheme. The schema is not touched: see migrate.h. */
enum hx_code db_open(const struct db_options *options, struct db **ret_db, struct hx_error *err) HX_MUST_CHECK;
void db_close(struct db *db);
/* begin, execute one unit, commit (resolving an unknown outcome for wait_ms): for tests, verbs and migrations. */
enum hx_code db_run_unit(struct db *db, struct unit *unit, struct unit_result *ret_result, struct arena *arena,
			 struct hx_error *err) HX_MUST_CHECK;
