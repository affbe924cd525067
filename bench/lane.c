/*
 * lane URL CALLERS MOVES [LANES] : the engine at the work of raw_sqlite and raw_postgres.
 *
 * One lane on SQLite, LANES (CONNECTIONS) lanes on PostgreSQL, and in front of them one thread with CALLERS transitions
 * under way at any time, as a thread that serves HTTP has them: it submits, hears of the end through a queue of
 * its own and submits the next. Batches are what group commit makes of that. A transition that is under way holds
 * its subject, so that its version is known: each is one unit, and each must win.
 *
 *        ┌── submit ──▶ inbox ─▶ lane ─┐
 *   driver                             │ done(), in the lane's thread
 *        └──── finished (a stack) ◀────┘
 */
#include <errno.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/id.h"
#include "db/migrate.h"
#include "flow/single.h"
#include "task/lanes.h"
#include "workload.h"

#define CALLERS_MAX 2048
#define DRAIN_MS 10000

struct caller {
	struct seat seat;
	struct single transition;
	struct move move;
	uint32_t subject;
	enum hx_code code;
	struct caller *next;
};

static struct caller callers[CALLERS_MAX];
static int64_t versions[SUBJECTS];

/* Subjects that are not under way, in the order in which they will be. */
static uint32_t waiting[SUBJECTS];
static size_t waiting_first, waiting_n;

/* Pushed to by the lanes, emptied by the driver; the event tells it that there is something again. */
static _Atomic(struct caller *) finished;
static int finished_event;

static _Noreturn void die(const char *what, const struct hx_error *err)
{
	fprintf(stderr, "lane, %s: %s\n", what, err->detail);
	exit(1);
}

static void caller_done(struct seat *seat, enum hx_code code)
{
	struct caller *caller = (struct caller *)seat, *before = atomic_load_explicit(&finished, memory_order_relaxed);

	caller->code = code;
	do
		caller->next = before;
	while (!atomic_compare_exchange_weak_explicit(&finished, &before, caller, memory_order_release,
						      memory_order_relaxed));
	/* From here on it is the driver's. */
	if (!before && eventfd_write(finished_event, 1))
		abort();
}

/* Waits until somebody has finished; all who have, the first one first. */
static struct caller *take_finished(void)
{
	struct caller *list, *in_order = NULL;
	eventfd_t ignored;

	while (!(list = atomic_exchange_explicit(&finished, NULL, memory_order_acquire)))
		if (eventfd_read(finished_event, &ignored) && errno != EINTR)
			abort();
	while (list) {
		struct caller *next = list->next;

		list->next = in_order;
		in_order = list;
		list = next;
	}
	return in_order;
}

static void build_transition(const struct single *single, struct unit *unit)
{
	const struct caller *caller = single->context;

	subject_transition(unit, &single->stamp, &caller->move, versions[caller->subject]);
}

static enum hx_code moved(struct single *single, const struct unit_result *result)
{
	const struct caller *caller = single->context;

	if (result->verdict != UNIT_WON)
		return HX_CONCURRENCY_ERROR;
	versions[caller->subject] = db_cell(&result->rows[0], 0, 0)->i;
	return HX_OK;
}

static void start(struct caller *caller, const struct lanes *lanes)
{
	uint32_t i = caller->subject = waiting[waiting_first];

	caller->move = (struct move){FIRST_SUBJECT + i, workload_status[(versions[i] + 1) % 2],
				     workload_status[versions[i] % 2]};
	waiting_first = (waiting_first + 1) % SUBJECTS;
	waiting_n--;
	single_init(&caller->transition, caller, build_transition, moved);
	caller->seat = (struct seat){.task = &caller->transition.task, .done = caller_done};
	if (lane_submit(lanes_of(lanes, caller->move.subject), &caller->seat)) {
		fprintf(stderr, "lane: a transition was not taken in\n");
		exit(1);
	}
}

static void end(struct caller *caller)
{
	if (caller->code) {
		fprintf(stderr, "lane: a transition ended with %s\n", hx_code_name(caller->code));
		exit(1);
	}
	waiting[(waiting_first + waiting_n++) % SUBJECTS] = caller->subject;
}

static void measure(const struct lanes *lanes, size_t callers_n, uint64_t moves)
{
	uint64_t started = callers_n, done = 0;
	double begin = workload_seconds(), seconds = 0;
	struct lane_stats stats;

	for (size_t i = 0; i < callers_n; i++)
		start(&callers[i], lanes);
	while (done < started) {
		for (struct caller *caller = take_finished(), *next; caller; caller = next, done++) {
			next = caller->next;
			end(caller);
			if (started < moves && seconds < SECONDS_MAX) {
				start(caller, lanes);
				started++;
			}
		}
		seconds = workload_seconds() - begin;
	}
	lanes_read_stats(lanes, &stats);
	workload_print(done, stats.group.groups, seconds);
}

/* The schema, and all subjects in their first status. */
static void set_up(const struct db_options *options)
{
	static struct unit units[GROUP_UNITS_MAX];
	static struct unit_result results[GROUP_UNITS_MAX];
	struct unit *all[GROUP_UNITS_MAX];
	struct migrate_status before;
	struct hx_error err;
	struct arena arena;
	struct db *db;

	arena_init(&arena, 64u << 20);
	if (db_open(options, &db, &err) || migrate_run(db, &before, &err))
		die("set up", &err);
	for (size_t i = 0, n; i < SUBJECTS; i += n) {
		for (n = 0; n < GROUP_UNITS_MAX && i + n < SUBJECTS; n++) {
			int64_t id = FIRST_SUBJECT + (int64_t)(i + n);
			struct stamp stamp = {id, {workload_wall_ms()}, workload_node};

			unit_init(&units[n], id);
			subject_insert(&units[n], &stamp, id, /* kind= */ 1, workload_status[0]);
			all[n] = &units[n];
			versions[i + n] = 1;
		}
		if (db->driver->begin(db, &err) || db->driver->execute(db, all, n, results, &arena, &err) ||
		    db->driver->commit(db, &err))
			die("create", &err);
		arena_reset(&arena);
	}
	arena_release(&arena);
	db_close(db);
}

int main(int argc, char **argv)
{
	struct lane_options options = {
		.clock = clock_system(),
		.node = workload_node,
		.node_number = id_random_node(),
		.seats_max = CALLERS_MAX,
		.resolve_ms = 5000,
	};
	struct hx_error err;
	struct lanes lanes;
	size_t lanes_n;

	if (argc != 4 && argc != 5) {
		fprintf(stderr, "usage: lane URL CALLERS MOVES [LANES]\n");
		return 2;
	}
	options.db = (struct db_options){.url = argv[1], .clock = options.clock, .exclusive = true};
	finished_event = eventfd(0, EFD_CLOEXEC);
	workload_order(waiting);
	waiting_n = SUBJECTS;
	set_up(&options.db);
	lanes_n = argc == 5 ? workload_number(argv[4], 1, LANES_MAX) : CONNECTIONS;
	if (lanes_open(&lanes, &options, lanes_n, &err))
		die("open", &err);
	measure(&lanes, workload_number(argv[2], 1, CALLERS_MAX), workload_number(argv[3], 1, 100000000));
	lanes_stop(&lanes, DRAIN_MS);
	lanes_close(&lanes);
	close(finished_event);
	return 0;
}
