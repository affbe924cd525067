/*
 * hot_writer URL NODE LANES SECONDS : a node that fights over a few hot rows. test_hot_rows starts two of them.
 *
 * CALLERS callers read one of HOT_SUBJECTS subjects and move it on, again and again, against each other and
 * against the other node. At the end it prints what became of them: a line of counts, then for each subject the
 * number of transitions that were acknowledged here.
 */
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/id.h"
#include "chaos/hot_rows.h"
#include "support/transition.h"
#include "task/lanes.h"

#define CALLERS 64
#define DRAIN_MS 10000

struct caller {
	struct seat seat;
	struct transition transition;
	uint64_t random;
};

static struct caller callers[CALLERS];
static struct lanes lanes;
static struct mono_time end_at;
static sem_t ended;
static _Atomic uint64_t acked[HOT_SUBJECTS], lost, unknown, failed;

static uint64_t draw(struct caller *caller, uint64_t below)
{
	caller->random ^= caller->random << 13;
	caller->random ^= caller->random >> 7;
	caller->random ^= caller->random << 17;
	return (caller->random >> 16) % below;
}

static void move_one(struct caller *caller);

static void caller_done(struct seat *seat, enum hx_code code)
{
	struct caller *caller = (struct caller *)seat;

	switch (code) {
	case HX_OK:
		atomic_fetch_add(&acked[caller->transition.move.subject - HOT_FIRST_SUBJECT], 1);
		break;
	case HX_CONCURRENCY_ERROR:
	case HX_WRONG_STATUS:
		atomic_fetch_add(&lost, 1);
		break;
	case HX_OUTCOME_UNKNOWN:
		atomic_fetch_add(&unknown, 1);
		break;
	default:
		atomic_fetch_add(&failed, 1);
	}
	if (clock_mono(clock_system()).ns < end_at.ns)
		move_one(caller);
	else
		sem_post(&ended);
}

static void move_one(struct caller *caller)
{
	bool back = draw(caller, 2);
	struct move move = {HOT_FIRST_SUBJECT + (int64_t)draw(caller, HOT_SUBJECTS), back ? HOT_B : HOT_A,
			    back ? HOT_A : HOT_B};

	transition_init(&caller->transition, &move, /* version= */ 0);
	caller->seat = (struct seat){.task = &caller->transition.task, .done = caller_done};
	if (lane_submit(lanes_of(&lanes, move.subject), &caller->seat))
		abort();
}

int main(int argc, char **argv)
{
	struct lane_options options = {
		.clock = clock_system(),
		.node_number = id_random_node(),
		.seats_max = CALLERS,
		.resolve_ms = 5000,
	};
	struct lane_stats stats;
	struct hx_error err = {0};

	if (argc != 5) {
		fprintf(stderr, "usage: hot_writer URL NODE LANES SECONDS\n");
		return 2;
	}
	options.node = argv[2];
	options.db = (struct db_options){.url = argv[1], .clock = options.clock};
	if (lanes_open(&lanes, &options, strtoul(argv[3], NULL, 10), &err)) {
		fprintf(stderr, "hot_writer: %s\n", err.detail);
		return 1;
	}
	sem_init(&ended, /* pshared= */ 0, 0);
	end_at = mono_add_ms(clock_mono(options.clock), strtol(argv[4], NULL, 10) * 1000);
	for (uint64_t i = 0; i < CALLERS; i++) {
		callers[i].random = (options.node_number * CALLERS + i + 1) * 0x9e3779b97f4a7c15u | 1;
		move_one(&callers[i]);
	}
	for (int i = 0; i < CALLERS; i++)
		while (sem_wait(&ended))
			;
	lanes_stop(&lanes, DRAIN_MS);
	lanes_read_stats(&lanes, &stats);
	printf("%llu %llu %llu %llu %llu\n", (unsigned long long)lost, (unsigned long long)unknown,
	       (unsigned long long)failed, (unsigned long long)stats.group.groups,
	       (unsigned long long)stats.group.retried);
	for (int i = 0; i < HOT_SUBJECTS; i++)
		printf("%llu\n", (unsigned long long)acked[i]);
	lanes_close(&lanes);
	return 0;
}
