/* See audit.h. */
#include "engine/audit.h"

#include "db/migrate.h"

#define TRIES_MAX 5 /* of one slice, at a store that is lost for a moment */

/* A slice can be read again: nothing was taken in yet. */
static enum hx_code read_slice(struct db *db, struct unit *unit, struct unit_result *ret_result, struct arena *arena,
			       struct hx_error *err)
{
	enum hx_code code = HX_STORE_UNAVAILABLE;

	for (int i = 0; i < TRIES_MAX && (code == HX_STORE_UNAVAILABLE || code == HX_CONCURRENCY_ERROR); i++) {
		arena_reset(arena);
		code = db_run_unit(db, unit, ret_result, arena, err);
	}
	return code;
}

static enum hx_code audit_read_all(struct db *db, const struct audit_options *options, struct auditor *auditor,
				   struct hx_error *err)
{
	enum hx_code code = HX_OK;
	struct unit_result result;
	struct unit unit;
	LOCAL_ARENA(arena, AUDIT_ARENA_BYTES_MAX);

	while (!code && auditor_ask(auditor, &unit)) {
		code = read_slice(db, &unit, &result, &arena, err);
		if (!code)
			auditor_take(auditor, &result);
		if (!code && options->told)
			options->told(options->context, auditor);
	}
	return code;
}

enum hx_code audit_store(const struct audit_options *options, struct auditor *ret_auditor, struct hx_error *err)
{
	struct db_options db_options = {.url = options->url, .clock = clock_system(), .read_only = true};
	struct db *db = NULL;
	enum hx_code code = db_open(&db_options, &db, err);

	auditor_init(ret_auditor);
	if (!code)
		code = migrate_check(db, err);
	if (!code)
		code = audit_read_all(db, options, ret_auditor, err);
	db_close(db);
	return code;
}
