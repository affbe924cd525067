/* See fences.h. */
#include "engine/fences.h"

#include "db/migrate.h"
#include "flow/node_lease.h"

#define BYTES_MAX 65536

/* The lock of a start waits for a raise that is under way, and the other way round: see fences_raise(). */
DB_STMT(stmt_floor, "fences_floor", "", "i",
	"SELECT floor FROM hx_fences WHERE id = 1",
	.pg_sql = "SELECT floor FROM hx_fences WHERE id = 1 FOR SHARE" /* mutant: floor-not-waited-for */
);

#define NOW "hx_now_ms() / 1000 * 1000000" /* mutant: floor-by-count -> #define NOW "(floor + 1000000)" */
DB_STMT(stmt_raise, "fences_raise", "", "i",
	"UPDATE hx_fences SET floor = " NOW " WHERE id = 1"
	" AND floor <= " NOW /* mutant: floor-lowered */
	" RETURNING floor");

/* On SQLite the lock of the file says whether there is a server; a row here may be of one that is dead. */
DB_STMT(stmt_alone, "fences_alone", "", "i",
	"SELECT 1",
	.pg_sql = "SELECT CAST(1 AS bigint) WHERE NOT EXISTS (SELECT 1 FROM hx_node WHERE until > hx_now_ms())");

static enum hx_code fences_run(struct db *db, struct unit *unit, struct unit_result *ret_result, int64_t *ret_floor,
			       struct hx_error *err)
{
	LOCAL_ARENA(arena, BYTES_MAX);
	enum hx_code code = db_run_unit(db, unit, ret_result, &arena, err);

	if (!code && ret_result->verdict == UNIT_WON)
		*ret_floor = db_cell(&ret_result->rows[0], 0, 0)->i;
	return code;
}

void fences_ask_floor(struct unit *unit)
{
	unit_add(unit, UNIT_MUST, &stmt_floor, 0, NULL);
}

enum hx_code fences_read_floor(struct db *db, int64_t *ret_floor, struct hx_error *err)
{
	struct unit_result result;
	LOCAL_UNIT(unit);
	enum hx_code code;

	fences_ask_floor(&unit);
	code = fences_run(db, &unit, &result, ret_floor, err);
	if (!code && result.verdict != UNIT_WON)
		code = error_set(err, HX_STORE_UNAVAILABLE, "the store has no floor of its fences");
	return code;
}

/* The nodes are looked for after the lock of the row: one that has read it before has joined before. */
void fences_ask_raise(struct unit *unit)
{
	unit_add(unit, UNIT_VERDICT, &stmt_raise, 0, NULL);
	unit_add(unit, UNIT_MUST, &stmt_alone, 0, NULL); /* mutant: raised-beside-nodes */
}

static enum hx_code raise_in(struct db *db, int64_t *ret_floor, struct hx_error *err)
{
	struct unit_result result;
	LOCAL_UNIT(unit);
	enum hx_code code;

	fences_ask_raise(&unit);
	code = fences_run(db, &unit, &result, ret_floor, err);
	if (!code && result.verdict == UNIT_REFUSED)
		code = error_set(err, HX_BUSY,
				 "nodes are at work on this store: stop them all; it is known %d s later at the most",
				 NODE_LEASE_MS / 1000);
	if (!code && result.verdict == UNIT_LOST)
		code = error_set(err, HX_CONFIG_ERROR,
				 "the clock is behind the time at which the fences were raised last: set it right");
	return code;
}

enum hx_code fences_raise(const char *url, int64_t *ret_floor, struct hx_error *err)
{
	struct db_options options = {.url = url, .clock = clock_system(), .exclusive = true};
	struct db *db = NULL;
	enum hx_code code = db_open(&options, &db, err);

	if (!code)
		code = migrate_check(db, err);
	if (!code)
		code = raise_in(db, ret_floor, err);
	db_close(db);
	return code;
}
