/* Opening, finding and closing the lanes of a node. */
#include "task/lanes.h"

#include <unistd.h>

#include "base/id.h"

#define WANTED_MIN 2
#define WANTED_MAX 4

size_t lanes_wanted(void)
{
	long processors = sysconf(_SC_NPROCESSORS_ONLN);

	return processors < WANTED_MIN ? WANTED_MIN : processors > WANTED_MAX ? WANTED_MAX : (size_t)processors;
}

/* The pulse has the first number, the lanes those after it. */
static uint32_t number_of(uint32_t first, size_t i)
{
	return (first + (uint32_t)i) & ID_NODE_MAX;
}

static enum hx_code open_one(struct lane_options options, size_t i, struct lane **ret_lane, struct hx_error *err)
{
	options.node_number = number_of(options.node_number, i);
	options.number = (int64_t)i;
	return lane_new(&options, ret_lane, err);
}

enum hx_code lanes_open(struct lanes *lanes, const struct lane_options *options, size_t n, struct hx_error *err)
{
	bool sqlite = strncmp(options->db.url, "sqlite:", 7) == 0;
	struct lane_options with_pulse = *options, alone = *options;
	const struct aside_options aside = {.db = options->db, .log = options->log, .resolve_ms = options->resolve_ms};
	enum hx_code code = HX_OK;

	ASSERT(n >= 1 && n <= LANES_MAX);
	*lanes = (struct lanes){.clock = options->clock};
	alone.opened = NULL;
	if (!sqlite)
		code = warden_new(options->clock, &lanes->warden, err);
	if (!code && !sqlite)
		code = aside_new(&aside, &lanes->aside, err);
	alone.aside = lanes->aside;
	with_pulse.aside = lanes->aside;
	if (!code && !sqlite)
		code = open_one(alone, 0, &lanes->pulse, err);
	with_pulse.pulse = lanes->pulse;
	with_pulse.warden = lanes->warden;
	for (size_t i = 0; i < (sqlite ? 1 : n) && !code; i++) {
		code = open_one(with_pulse, i + 1, &lanes->lanes[i], err);
		lanes->n += !code;
		with_pulse.opened = NULL;
	}
	if (code && lanes->n == 0)
		db_close(options->opened);
	if (code)
		lanes_close(lanes);
	for (size_t i = 0; i < lanes->n; i++)
		lane_set_peers(lanes->lanes[i], lanes->lanes, lanes->n);
	return code;
}

struct lane *lanes_of(const struct lanes *lanes, int64_t subject)
{
	uint64_t mixed = (uint64_t)subject * 0x9e3779b97f4a7c15u;

	return lanes->lanes[(mixed >> 32) % lanes->n];
}

void lanes_set_node_number(const struct lanes *lanes, uint32_t number)
{
	if (lanes->pulse)
		lane_set_node_number(lanes->pulse, number_of(number, 0));
	for (size_t i = 0; i < lanes->n; i++)
		lane_set_node_number(lanes->lanes[i], number_of(number, i + 1));
}

void lanes_wake(const struct lanes *lanes, const int64_t topics[], size_t n)
{
	for (size_t i = 0; i < lanes->n; i++)
		if (n)
			lane_wake(lanes->lanes[i], topics, n);
		else
			lane_wake_everybody(lanes->lanes[i]);
}

/* To one of them, which passes it on. */
void lanes_offer(const struct lanes *lanes, struct offer offer)
{
	lane_offer(lanes->lanes[0], offer);
}

void lanes_stop(struct lanes *lanes, int64_t drain_ms)
{
	if (lanes->aside)
		aside_stop_at(lanes->aside, mono_add_ms(clock_mono(lanes->clock), drain_ms));
	for (size_t i = 0; i < lanes->n && !lanes->stopping; i++)
		lane_ask_to_stop(lanes->lanes[i], drain_ms);
	lanes->stopping = true;
	for (size_t i = 0; i < lanes->n; i++)
		lane_stop(lanes->lanes[i], drain_ms);
	lane_stop(lanes->pulse, /* drain_ms= */ 0);
}

void lanes_close(struct lanes *lanes)
{
	lanes_stop(lanes, /* drain_ms= */ 0);
	aside_free(lanes->aside); /* first: who has just put mail into a lane may still be about to wake it */
	for (size_t i = 0; i < lanes->n; i++)
		lane_free(lanes->lanes[i]);
	lane_free(lanes->pulse);
	warden_free(lanes->warden);
	*lanes = (struct lanes){0};
}

static void add_stats(struct lane *lane, struct lane_stats *sum)
{
	struct lane_stats one;

	lane_read_stats(lane, &one);
	group_stats_add(&sum->group, &one.group);
	sum->rounds += one.rounds;
	sum->claims_lost += one.claims_lost;
	sum->answers_dropped += one.answers_dropped;
	sum->woken += one.woken;
	sum->refused += one.refused;
	sum->waiting += one.waiting;
	sum->seats += one.seats;
}

void lanes_read_stats(const struct lanes *lanes, struct lane_stats *ret_stats)
{
	*ret_stats = (struct lane_stats){0};
	for (size_t i = 0; i < lanes->n; i++)
		add_stats(lanes->lanes[i], ret_stats);
	if (lanes->pulse) /* on SQLite the one lane has renewed its own leases, too */
		add_stats(lanes->pulse, ret_stats);
	if (lanes->aside)
		aside_read_stats(lanes->aside, &ret_stats->group);
}
