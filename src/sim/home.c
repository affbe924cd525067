/* See home.h. */
#include "sim/home.h"

#include <stdlib.h>
#include <string.h>

#include "db/migrate.h"

#define READS_SLOTS (1 << 17)

struct sim_home {
	struct sim_home *next; /* idle */
	struct db *db;
	struct reads reads;
	const char *schema;
};

static _Thread_local struct sim_home *idle;

static void home_free(struct sim_home *home)
{
	db_close(home->db);
	reads_release(&home->reads);
	free(home);
}

/* What a savepoint keeps is whole pages, so they are small. */
static enum hx_code fill(struct sim_home *home, struct sim *sim, struct hx_error *err)
{
	struct db_options options = {.url = "sqlite::memory:", .clock = &sim->clock.clock};
	struct migrate_status before;
	enum hx_code code = db_open(&options, &home->db, err);

	if (!code)
		code = home->db->driver->script(home->db, "PRAGMA page_size = 512", err);
	if (!code)
		code = migrate_run(home->db, &before, err);
	if (!code)
		code = home->db->driver->script(home->db, home->schema, err);
	if (!code)
		code = home->db->driver->script(home->db, "SAVEPOINT home", err);
	return code;
}

static struct sim_home *home_new(struct sim *sim, struct hx_error *err)
{
	struct sim_home *home = calloc(1, sizeof *home);

	ASSERT(home);
	home->schema = sim->scenario->user->schema;
	reads_init(&home->reads, READS_SLOTS);
	if (!fill(home, sim, err))
		return home;
	home_free(home);
	return NULL;
}

enum hx_code sim_home_take(struct sim *sim, struct hx_error *err)
{
	struct sim_home *home;

	if (idle && strcmp(idle->schema, sim->scenario->user->schema) != 0)
		sim_homes_release();
	home = idle;
	if (home)
		idle = home->next;
	else if (!(home = home_new(sim, err)))
		return err->code;
	home->db->clock = &sim->clock.clock;
	sim->db = home->db;
	sim->reads = home->reads;
	sim->home = home;
	return HX_OK;
}

void sim_home_give(struct sim *sim)
{
	struct sim_home *home = sim->home;
	struct hx_error err;

	home->reads = sim->reads;
	sim->reads = (struct reads){0};
	sim->db = NULL;
	sim->home = NULL;
	if (home->db->driver->script(home->db, "ROLLBACK TO home", &err)) {
		home_free(home);
		return;
	}
	home->next = idle;
	idle = home;
}

void sim_homes_release(void)
{
	while (idle) {
		struct sim_home *home = idle;

		idle = home->next;
		home_free(home);
	}
}
