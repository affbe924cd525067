/* Choosing a driver, and running one unit by itself. */
#include "db/driver.h"

#define RESOLVE_WAIT_MS 5000

enum hx_code db_open(const struct db_options *options, struct db **ret_db, struct hx_error *err)
{
	const char *url = options->url;

	ASSERT(options->clock);
	if (strncmp(url, "sqlite:", 7) == 0)
		return db_sqlite.open(options, ret_db, err);
	if (strncmp(url, "postgres://", 11) == 0 || strncmp(url, "postgresql://", 13) == 0)
		return db_postgres.open(options, ret_db, err);
	/* The URL itself is not repeated: it may hold a password. */
	return error_set(err, HX_CONFIG_ERROR, "a store is sqlite:PATH, sqlite::memory: or postgres://…");
}

enum hx_code db_is_over(struct db *db)
{
	int64_t stop = atomic_load_explicit(&db->stop_ns, memory_order_relaxed), now;

	if (!db->limit.ns)
		return HX_OK;
	now = clock_mono(db->clock).ns;
	if (stop && now >= stop)
		return HX_STOPPING;
	return now >= db->limit.ns ? HX_ACTION_FAILED : HX_OK;
}

void db_close(struct db *db)
{
	if (db)
		db->driver->close(db);
}

enum hx_code db_run_unit(struct db *db, struct unit *unit, struct unit_result *ret_result, struct arena *arena,
			 struct hx_error *err)
{
	enum hx_code code = db->driver->begin(db, err);

	if (code)
		return code;
	code = db->driver->execute(db, &unit, 1, ret_result, arena, err);
	if (code)
		return code;
	code = db->driver->commit(db, err);
	if (code == HX_OUTCOME_UNKNOWN)
		code = db->driver->resolve(db, RESOLVE_WAIT_MS, err);
	return code;
}
