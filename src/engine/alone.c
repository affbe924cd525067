/* See alone.h. */
#include "engine/alone.h"

#include "base/steady_clock.h"
#include "flow/batch.h"
#include "flow/job.h"
#include "flow/node_lease.h"
#include "flow/run.h"

#define ALONE_BYTES_MAX (1u << 16)

/* How far the clock was set back, at least, since the last start and the last claim; 0: it was not, or by next to nothing. */
static enum hx_code read_set_back(struct db *db, struct arena *arena, int64_t *ret_ms, struct hx_error *err)
{
	struct unit_result result;
	LOCAL_UNIT(unit);
	int64_t back_ms;
	enum hx_code code;

	node_last_seen(&unit);
	subject_last_seen(&unit);
	code = db_run_unit(db, &unit, &result, arena, err);
	if (code)
		return code;
	back_ms = db_cell(&result.rows[0], 0, 0)->i;
	if (db_cell(&result.rows[1], 0, 0)->type == DB_INT && db_cell(&result.rows[1], 0, 0)->i > back_ms)
		back_ms = db_cell(&result.rows[1], 0, 0)->i;
	*ret_ms = back_ms > STEADY_STEP_MS ? back_ms : 0;
	return HX_OK;
}

static enum hx_code begin_alone(struct db *db, struct arena *arena, struct log *log, struct hx_error *err)
{
	struct unit_result result;
	LOCAL_UNIT(unit);
	int64_t back_ms = 0;
	enum hx_code code = read_set_back(db, arena, &back_ms, err);

	if (code)
		return code;
	if (back_ms)
		log_warn(
			log,
			"the clock of this machine was set back since the store was last in use: what is left of a lease "
			"counts from now",
			log_int("by_ms", back_ms));
	subject_end_claims(&unit, run_kind());   /* mutant: alone-runs */
	subject_end_claims(&unit, batch_kind()); /* mutant: alone-batches */
	job_end_deliveries(&unit);               /* mutant: alone-after-effects */
	if (back_ms)
		subject_advance_claims(&unit, back_ms); /* mutant: alone-set-back -> ; */
	node_end_all(&unit);
	return db_run_unit(db, &unit, &result, arena, err);
}

enum hx_code alone_begin(struct db *db, struct log *log, struct hx_error *err)
{
	if (db->driver != &db_sqlite) /* mutant: alone-on-postgresql -> if (!db) */
		return HX_OK;
	LOCAL_ARENA(arena, ALONE_BYTES_MAX);
	return begin_alone(db, &arena, log, err);
}
