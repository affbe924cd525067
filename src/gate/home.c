/* See home.h. Opened from the store outwards, closed in the reverse order. */
#include "gate/home.h"

#include <stdlib.h>

#include "base/id.h"
#include "db/migrate.h"
#include "gate/redis.h"
#include "gate/sweeper.h"

#define SEATS_MAX 20000
#define RESOLVE_MS 5000

struct gate_home {
	struct gate_home_options options;
	struct lanes lanes; /* n is 0 where there are none */
	struct gate_store *store;
	struct gate_sweeper *sweeper;
	struct sentinel *sentinel;
	enum gate_lasting lasting;
};

static bool has_prefix(const char *text, const char *prefix)
{
	return strncmp(text, prefix, strlen(prefix)) == 0;
}

static enum hx_code open_lanes(struct gate_home *home, struct hx_error *err)
{
	struct lane_options options = {
		.db = {.url = home->options.url, .clock = home->options.clock, .exclusive = true},
		.clock = home->options.clock,
		.log = home->options.log,
		.node = "gate",
		.node_number = id_random_node(),
		.seats_max = SEATS_MAX,
		.resolve_ms = RESOLVE_MS,
		.store_timeout_ms = home->options.store_timeout_ms,
	};
	struct migrate_status before;
	enum hx_code code = db_open(&options.db, &options.opened, err);

	if (code)
		return code;
	code = home->options.no_migrate ? migrate_check_part(options.opened, MIGRATE_GATE, err)
					: migrate_run_part(options.opened, MIGRATE_GATE, &before, err);
	if (code) {
		db_close(options.opened);
		return code;
	}
	options.db.exclusive = false; /* the opened one has the lock, and the first lane takes it over */
	return lanes_open(&home->lanes, &options, lanes_wanted(), err);
}

static enum hx_code open_sql(struct gate_home *home, struct hx_error *err)
{
	enum hx_code code = open_lanes(home, err);

	return code ? code : gate_sql_new(&home->lanes, home->options.clock, &home->store, err);
}

static enum hx_code open_redis(struct gate_home *home, struct hx_error *err)
{
	bool durable = false;
	enum hx_code code = gate_redis_new(home->options.url, home->options.clock, &home->store, &durable, err);

	home->lasting = durable ? GATE_LASTS : GATE_MAY_BE_LOST;
	return code;
}

static enum hx_code home_open_store(struct gate_home *home, struct hx_error *err)
{
	const char *url = home->options.url;

	if (strcmp(url, "memory:") == 0 || strcmp(url, "sqlite::memory:") == 0)
		home->lasting = GATE_ENDS_WITH_US;
	if (strcmp(url, "memory:") == 0)
		return gate_memory_new(GATE_MEMORY_RECORDS_MAX, GATE_MEMORY_BYTES_MAX, home->options.clock,
				       &home->store, err);
	if (redis_url_is(url))
		return open_redis(home, err);
	if (has_prefix(url, "sqlite:") || has_prefix(url, "postgres:") || has_prefix(url, "postgresql:"))
		return open_sql(home, err);
	return error_set(
		err, HX_CONFIG_ERROR,
		"this is not a store; write memory:, sqlite:PATH, postgres://... or redis://HOST:PORT/DB (also rediss, redis+unix, redis+sentinel)");
}

static enum hx_code start_sentinel(struct gate_home *home, struct hx_error *err)
{
	struct sentinel_options options = {
		.lanes = &home->lanes, .timeout_ms = home->options.store_timeout_ms, .log = home->options.log};

	return sentinel_new(&options, &home->sentinel, err);
}

enum hx_code gate_home_open(const struct gate_home_options *options, struct gate_home **ret_home, struct hx_error *err)
{
	struct gate_home *home = calloc(1, sizeof *home);
	enum hx_code code;

	if (!home)
		return error_set(err, HX_NO_MEMORY, "a store for the gate");
	home->options = *options;
	code = home_open_store(home, err);
	if (!code)
		home->store->timeout_ms = options->store_timeout_ms;
	if (!code && options->recall)
		gate_store_recall(home->store);
	if (!code && home->lanes.n && options->store_timeout_ms)
		code = start_sentinel(home, err);
	if (!code && (options->sweep_every_ms || options->held))
		code = gate_sweeper_new(home->store, options->sweep_every_ms, options->held, &home->sweeper, err);
	if (code)
		gate_home_close(home, /* drain_ms= */ 0);
	else
		*ret_home = home;
	return code;
}

struct gate_store *gate_home_store(struct gate_home *home)
{
	return home->store;
}

const struct lanes *gate_home_lanes(const struct gate_home *home)
{
	return home->lanes.n ? &home->lanes : NULL;
}

struct sentinel *gate_home_sentinel(const struct gate_home *home)
{
	return home->sentinel;
}

enum gate_lasting gate_home_lasting(const struct gate_home *home)
{
	return home->lasting;
}

void gate_home_close(struct gate_home *home, int64_t drain_ms)
{
	if (!home)
		return;
	sentinel_stop(home->sentinel);
	lanes_stop(&home->lanes, drain_ms); /* which answers the sweep, too */
	sentinel_free(home->sentinel);
	gate_sweeper_free(home->sweeper);
	gate_store_free(home->store);
	lanes_close(&home->lanes);
	free(home);
}
