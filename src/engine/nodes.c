/* See nodes.h. */
#include "engine/nodes.h"

#include <stdio.h>
#include <sys/random.h>

#include "db/driver.h"
#include "engine/engine.h"

#define JOIN_TRIES_MAX 100
#define JOIN_BYTES_MAX (1u << 20)

static uint64_t random_number(void)
{
	uint64_t n = 0;

	/* 8 bytes never block once the machine has booted. */
	ASSERT(getrandom(&n, sizeof n, 0) == sizeof n);
	return n >> 1;
}

/* One try to take a number. HX_BUSY: somebody was first, or all are taken (*ret_number is -1). */
static enum hx_code try_join(struct nodes *nodes, struct db *db, struct arena *arena, int64_t *ret_number,
			     struct hx_error *err)
{
	LOCAL_UNIT(unit);
	struct unit_result result;
	enum hx_code code;

	node_scan(&unit);
	code = db_run_unit(db, &unit, &result, arena, err);
	if (code)
		return code;
	*ret_number = node_choose(&result.rows[0], random_number());
	if (*ret_number < 0)
		return HX_BUSY;
	unit_init(&unit, /* op= */ 0);
	node_take(&unit, *ret_number, nodes->name, nodes->token, clock_wall(nodes->clock).ms);
	code = db_run_unit(db, &unit, &result, arena, err);
	return code ? code : result.verdict == UNIT_WON ? HX_OK : HX_BUSY;
}

/* Renews what was taken a moment ago, and hears whether somebody else has the name. */
static enum hx_code look_for_namesakes(struct nodes *nodes, struct db *db, struct arena *arena, bool *ret_twin,
				       struct hx_error *err)
{
	LOCAL_UNIT(unit);
	struct unit_result result;
	enum hx_code code;

	arena_reset(arena);
	node_renew(&unit, nodes->lease.number, nodes->token, nodes->name);
	code = db_run_unit(db, &unit, &result, arena, err);
	*ret_twin = !code && result.verdict == UNIT_WON && db_cell(&result.rows[3], 0, 0)->i > 0;
	return code;
}

/* Somebody may be called that by his own wish. */
static enum hx_code be_unique(struct nodes *nodes, struct db *db, struct arena *arena, struct hx_error *err)
{
	const char *given = nodes->name;
	bool twin = false;
	enum hx_code code = look_for_namesakes(nodes, db, arena, &twin, err);

	for (int i = 1; i <= 4 && twin && !code; i++) {
		snprintf(nodes->unique, sizeof nodes->unique, "%s%.*s%d", given, i, "####", (int)nodes->lease.number);
		nodes->name = nodes->unique;
		code = look_for_namesakes(nodes, db, arena, &twin, err);
	}
	return code;
}

void nodes_leave(struct nodes *nodes, const char *url)
{
	struct db_options options = {.url = url, .clock = nodes->clock};
	struct unit_result result;
	struct hx_error err;
	LOCAL_UNIT(unit);
	struct db *db = NULL;

	if (db_open(&options, &db, &err))
		return; /* its time ends by itself */
	LOCAL_ARENA(arena, JOIN_BYTES_MAX);
	node_leave(&unit, nodes->lease.number, nodes->token);
	if (db_run_unit(db, &unit, &result, &arena, &err))
		log_debug(nodes->log, "this node's place among the others ends by its time",
			  log_text("node", nodes->name));
	db_close(db);
}

enum hx_code nodes_join(struct nodes *nodes, struct db *db, const char *name, struct clock *clock, struct hx_error *err)
{
	enum hx_code code = HX_BUSY;
	int64_t number = 0;

	*nodes = (struct nodes){.name = name, .clock = clock, .token = (int64_t)random_number()};
	steady_clock_init(&nodes->store_clock, /* source= */ NULL, /* log= */ NULL);
	LOCAL_ARENA(arena, JOIN_BYTES_MAX);
	for (int i = 0; i < JOIN_TRIES_MAX && code == HX_BUSY && number >= 0; i++) {
		arena_reset(&arena);
		code = try_join(nodes, db, &arena, &number, err);
	}
	nodes->lease.number = number;
	nodes->renewed = clock_mono(clock);
	if (!code)
		code = be_unique(nodes, db, &arena, err); /* mutant: one-name-for-two -> ; */
	if (code == HX_BUSY)
		return error_set(
			err, HX_BUSY,
			"all %d numbers for nodes are taken; those of nodes that have ended are free %d s later",
			NODES_MAX, NODE_LEASE_MS / 1000);
	return code;
}

uint32_t nodes_number(const struct nodes *nodes)
{
	return (uint32_t)nodes->lease.number * NODE_NUMBERS;
}

static void tell_late(struct nodes *nodes)
{
	int64_t since_ms = (clock_mono(nodes->clock).ns - nodes->renewed.ns) / 1000000;

	if (since_ms < NODE_LEASE_MS || nodes->late)
		return;
	nodes->late = true;
	log_error(nodes->log, "this node could not renew its lease in time: others may count it as gone",
		  log_text("node", nodes->name), log_int("number", nodes->lease.number),
		  log_int("silent_ms", since_ms));
}

/* It only rises: an answer may be older than what is known. */
static void hear_floor(struct nodes *nodes)
{
	if (nodes->lease.floor <= atomic_load(nodes->fence_floor))
		return;
	atomic_store(nodes->fence_floor, nodes->lease.floor);
	log_warn(nodes->log,
		 "the fences of the store were raised behind this node's back: its own are above them from now on",
		 log_text("node", nodes->name), log_int("above", nodes->lease.floor));
}

/* It was out of sight for so long that another was started under its name. Claims are told apart by their fences all the same. */
static void tell_twin(struct nodes *nodes)
{
	if (nodes->lease.namesakes && !nodes->twin)
		log_error(nodes->log, "another node has come to have this node's name: restart one of them",
			  log_text("node", nodes->name), log_int("number", nodes->lease.number));
	nodes->twin = nodes->lease.namesakes != 0;
}

static void renewed(struct nodes *nodes)
{
	tell_twin(nodes);
	if (nodes->lease.store_ms)
		steady_clock_hear(&nodes->store_clock, nodes->lease.store_ms, nodes->lease.asked,
				  nodes->lease.answered);
	nodes->renewed = clock_mono(nodes->clock);
	hear_floor(nodes);
	atomic_store(&nodes->metrics->nodes_live, (uint64_t)nodes->lease.live);
	if (nodes->late)
		log_info(nodes->log, "this node has renewed its lease again", log_text("node", nodes->name));
	nodes->late = false;
}

static enum hx_code nodes_submit(struct nodes *nodes, int64_t number, int64_t in_ms)
{
	struct mono_time at = mono_add_ms(clock_mono(nodes->clock), in_ms);
	/* Not in line with the groups of a lane, where there is a choice. */
	struct lane *lane = nodes->lanes->pulse ? nodes->lanes->pulse : nodes->lanes->lanes[0];

	node_lease_init(&nodes->lease, nodes->name, nodes->token, number, at);
	return lane_submit_own(lane, &nodes->seat);
}

static void nodes_ended(struct seat *seat, enum hx_code code)
{
	struct nodes *nodes = (struct nodes *)((char *)seat - offsetof(struct nodes, seat));
	int64_t number = nodes->lease.number;
	int64_t again_ms = NODES_RENEW_MS;

	if (code == HX_STOPPING)
		return;
	if (code == HX_OK) {
		lanes_set_node_number(nodes->lanes, nodes_number(nodes));
		renewed(nodes);
	} else if (code == HX_STALE_FENCE) {
		log_error(nodes->log, "another node has this node's number: it takes another",
			  log_text("node", nodes->name), log_int("number", number));
		number = -1;
		again_ms = 0;
	} else {
		tell_late(nodes);
		again_ms = NODES_RENEW_MS / 4;
	}
	(void)nodes_submit(nodes, number, again_ms); /* refused only when the lane ends */
}

enum hx_code nodes_start(struct nodes *nodes, const struct lanes *lanes, _Atomic int64_t *fence_floor,
			 struct engine_metrics *metrics, struct log *log)
{
	nodes->lanes = lanes;
	nodes->fence_floor = fence_floor;
	nodes->metrics = metrics;
	nodes->log = log;
	nodes->store_clock.log = log;
	nodes->seat = (struct seat){.task = &nodes->lease.task, .done = nodes_ended};
	return nodes_submit(nodes, nodes->lease.number, /* in_ms= */ 0);
}
