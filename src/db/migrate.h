/*
 * Numbered migrations, embedded in the program at build time from schema/NNNN_name.{sqlite,postgres}.sql.
 *
 * All pending ones run in one transaction under the driver's migration lock, so two starting nodes do not
 * race: the second waits, then finds nothing to do. A store with a higher number than the program knows is
 * refused, untouched.
 */
#ifndef HX_DB_MIGRATE_H
#define HX_DB_MIGRATE_H

#include "base/strbuf.h"
#include "db/driver.h"

struct db_migration_text {
	int number;
	const char *name;
	const char *text;
};

extern const struct db_migration_text db_schema_sqlite[];
extern const size_t db_schema_sqlite_count;
extern const struct db_migration_text db_schema_postgres[];
extern const size_t db_schema_postgres_count;

struct migrate_status {
	int at;    /* the store's number, 0 for an empty store */
	int known; /* the program's */
};

/* Never changes the store. */
enum hx_code migrate_read_status(struct db *db, struct migrate_status *ret_status, struct hx_error *err) HX_MUST_CHECK;
/* Brings the store up to date. HX_SCHEMA_MISMATCH when the store is newer. */
enum hx_code migrate_run(struct db *db, struct migrate_status *ret_before, struct hx_error *err) HX_MUST_CHECK;
/* --no-migrate: HX_SCHEMA_MISMATCH unless the store is exactly at the program's number. */
enum hx_code migrate_check(struct db *db, struct hx_error *err) HX_MUST_CHECK;
/* The SQL that migrate_run would run from `at` on, for those who run it themselves. Empty: nothing to do. */
void migrate_print(const struct db_driver *driver, int at, struct strbuf *out);

#endif
