/*
 * Who of a group waits for somebody's lock: the subjects that are there and cannot be locked at once. Whoever is known need not be
 * looked for by halves, each of which would wait anew.
 */
#include "db/postgres.h"

DB_STMT(stmt_begin, "begin_blocked", "", "", "BEGIN");
DB_STMT(stmt_there, "subjects_there", "i", "i", "", .set_sql = "SELECT id FROM hx_subject WHERE id = ANY($1)");
DB_STMT(stmt_free, "subjects_free", "i", "i", "",
	.set_sql = "SELECT id FROM hx_subject WHERE id = ANY($1) ORDER BY id FOR UPDATE SKIP LOCKED");

/* How many subjects of each unit are there and not free. */
struct blocked {
	struct unit *const *units;
	size_t n;
	int *counts;
};

static bool is_locked_by(const struct unit *unit, unsigned s)
{
	return !(unit->apart >> s & 1);
}

static void postgres_blocked_count(struct blocked *b, const PGresult *res, int by)
{
	for (int row = 0; row < PQntuples(res); row++) {
		int64_t id = pg_cell_int(res, row, 0);

		for (size_t i = 0; i < b->n; i++)
			for (unsigned s = 0; s < b->units[i]->subjects_n; s++)
				if (b->units[i]->subjects[s] == id && is_locked_by(b->units[i], s))
					b->counts[i] += by;
	}
}

static enum hx_code take_there(void *context, const struct db_stmt *stmt UNUSED, const PGresult *res,
			       struct hx_error *err UNUSED)
{
	postgres_blocked_count(context, res, 1);
	return HX_OK;
}

static enum hx_code take_free(void *context, const struct db_stmt *stmt UNUSED, const PGresult *res,
			      struct hx_error *err UNUSED)
{
	postgres_blocked_count(context, res, -1);
	return HX_OK;
}

static void fill_subjects(struct pg *pg, const struct blocked *b)
{
	size_t n = 0;

	pg_array_start(&pg->arrays[0], 'i');
	for (size_t i = 0; i < b->n; i++)
		for (unsigned s = 0; s < b->units[i]->subjects_n; s++)
			if (is_locked_by(b->units[i], s)) {
				struct db_value id = db_int(b->units[i]->subjects[s]);

				pg_array_add(&pg->arrays[0], &id);
				n++;
			}
	pg_array_end(&pg->arrays[0], n);
}

void pg_find_blocked(struct db *db, struct unit *const units[], size_t n, bool ret_blocked[], struct arena *arena)
{
	struct blocked b = {units, n, arena_zalloc(arena, n * sizeof *b.counts)};
	struct pg *pg = (struct pg *)db;
	struct hx_error err = {0};
	struct pg_trip trip;

	memset(ret_blocked, 0, n * sizeof *ret_blocked);
	if (!b.counts || db->driver->begin(db, &err))
		return;
	pg_trip_start(&trip, pg, arena, &err);
	fill_subjects(pg, &b);
	pg_trip_row(&trip, &stmt_begin, /* params= */ NULL, /* take= */ NULL, NULL);
	pg_trip_set(&trip, &stmt_there, take_there, &b);
	pg_trip_set(&trip, &stmt_free, take_free, &b);
	if (pg_trip_finish(&trip) == HX_OK)
		for (size_t i = 0; i < n; i++)
			ret_blocked[i] = b.counts[i] > 0;
	pg_rollback(db);
}
