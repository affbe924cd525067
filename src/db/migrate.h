/*
 * Numbered migrations, embedded in the program at build time from schema/NNNN_name[.gate].sql; scripts/embed-schema.sh says
 * how one text becomes that of each store.
 *
 * All pending ones run in one transaction under the driver's migration lock, so two starting nodes do not
 * race: the second waits, then finds nothing to do. A store with a higher number than the program knows is
 * refused, untouched.
 *
 *   .gate   a store that holds records of `hapax gate` alone needs these and no others; the engine needs all
 *   base    what a new store runs under the numbers 9 and 10. Their own text is for a store that an older program has
 *           made: numbers 1 to 8 gave their tables plain names, which a new store never has, because the user may have
 *           a table `job` of his own
 */
#pragma once

#include "base/packed.h"
#include "base/strbuf.h"
#include "db/driver.h"
#include "db/store_schema.h"

struct db_migration_text {
	int number;
	const char *name;
	bool gate;   /* belongs to the gate's tables */
	int base_at; /* for a store that is new, where it begins in db_schema_texts; -1: the text is for all */
	int text_at;
};

extern const struct db_migration_text db_schema_sqlite[];
extern const size_t db_schema_sqlite_count;
extern const struct db_migration_text db_schema_postgres[];
extern const size_t db_schema_postgres_count;
extern const struct packed db_schema_texts; /* of all, a NUL after each */

enum migrate_part { MIGRATE_ALL, MIGRATE_GATE };

/* A number is below this: the build fails where one is not. */
#define MIGRATE_NUMBERS_MAX 1024

/* A set of them: bit n % 64 of word n / 64. */
struct migrate_numbers {
	uint64_t bits[MIGRATE_NUMBERS_MAX / 64];
};

struct migrate_status {
	int at;                          /* nothing is missing up to this number; 0 for an empty store */
	int known;                       /* the program's */
	struct migrate_numbers done;     /* those that were run */
	char schema[STORE_SCHEMA_BYTES]; /* made if it is not there; "": wherever the search path leads */
};

/* Never changes the store. */
enum hx_code migrate_read_status(struct db *db, struct migrate_status *ret_status, struct hx_error *err) HX_MUST_CHECK;
/* Was it made by version 0.1, whatever it has become since? */
bool migrate_is_old(const struct migrate_status *status);
/* Brings the store up to date. HX_SCHEMA_MISMATCH when the store is newer. */
enum hx_code migrate_run(struct db *db, struct migrate_status *ret_before, struct hx_error *err) HX_MUST_CHECK;
/* --no-migrate: HX_SCHEMA_MISMATCH unless the store is exactly at the program's number. */
enum hx_code migrate_check(struct db *db, struct hx_error *err) HX_MUST_CHECK;
/* The same two for a part of the tables. */
enum hx_code migrate_run_part(struct db *db, enum migrate_part part, struct migrate_status *ret_before,
			      struct hx_error *err) HX_MUST_CHECK;
enum hx_code migrate_check_part(struct db *db, enum migrate_part part, struct hx_error *err) HX_MUST_CHECK;
/* The SQL that migrate_run would run, for those who run it themselves. Empty: nothing to do. */
void migrate_print(const struct db_driver *driver, const struct migrate_status *status, struct strbuf *out);
