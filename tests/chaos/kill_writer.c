/*
 * kill_writer URL ACKS PAGE SEED : writes to a store until it is killed. test_kill_nine starts it and kills it.
 *
 * One lane, CALLERS callers that never rest, on KILL_SUBJECTS subjects: plain transitions, claims with an action
 * that says yes, no or nothing at all, and a janitor for the claims that are left behind. Every transition that
 * the engine reports as done is acknowledged by a line "subject version op" at the end of the file ACKS, written
 * before anything else happens; what stands there must never be lost.
 *
 * PAGE is the file of struct kill_page. Its phases come from SQLite's own hooks (a row was written, a commit
 * begins, a statement ended), which are set on whatever connection is opened: the engine does not know of them.
 */
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "chaos/kill_page.h"
#include "flow/janitor.h"
#include "support/claim.h"
#include "support/transition.h"
#include "task/lane.h"

#define CALLERS 64
#define LEASE_MS 40
#define SWEEP_MS 10

struct caller {
	struct seat seat;
	union {
		struct task task;
		struct transition transition;
		struct claim claim;
	} job;
	struct claim_plan plan;
	struct caller *self; /* the input of its action, by which the port finds it again */
	uint64_t random;
};

static struct caller callers[CALLERS];
static struct seat janitor_seat;
static struct janitor janitor;
static struct lane *lane;
static struct kill_page *page;
static int acks_fd;

static uint64_t draw(struct caller *caller, uint64_t below)
{
	caller->random ^= caller->random << 13;
	caller->random ^= caller->random >> 7;
	caller->random ^= caller->random << 17;
	return (caller->random >> 16) % below;
}

static _Noreturn void die(const char *what, const char *words)
{
	fprintf(stderr, "kill_writer, %s: %s\n", what, words);
	exit(1);
}

/* ---- the phases ---- */

static void on_row(void *context, int what, const char *database, const char *table, sqlite3_int64 row)
{
	(void)context, (void)what, (void)database, (void)table, (void)row;
	atomic_store(&page->phase, KILL_WROTE);
}

static int on_commit(void *context)
{
	(void)context;
	if (atomic_load(&page->phase) == KILL_WROTE)
		atomic_store(&page->phase, KILL_COMMITTING);
	return 0;
}

static int on_statement_end(unsigned what, void *context, void *stmt, void *ns)
{
	(void)what, (void)context, (void)ns;
	if (sqlite3_get_autocommit(sqlite3_db_handle(stmt)))
		atomic_store(&page->phase, KILL_QUIET);
	return 0;
}

static int set_hooks(sqlite3 *handle, char **err, const void *api)
{
	(void)err, (void)api;
	sqlite3_update_hook(handle, on_row, NULL);
	sqlite3_commit_hook(handle, on_commit, NULL);
	sqlite3_trace_v2(handle, SQLITE_TRACE_PROFILE, on_statement_end, NULL);
	return SQLITE_OK;
}

/* ---- the work ---- */

static void acknowledge(int64_t subject, int64_t version, int64_t op)
{
	char line[80];
	int n = snprintf(line, sizeof line, "%lld %lld %lld\n", (long long)subject, (long long)version, (long long)op);

	if (write(acks_fd, line, (size_t)n) != n)
		die("acknowledge", "cannot write");
	atomic_fetch_add(&page->acks, 1);
}

static void next_job(struct caller *caller);

static void transition_done(struct seat *seat, enum hx_code code)
{
	struct caller *caller = (struct caller *)seat;
	struct transition *t = &caller->job.transition;

	if (code == HX_OK)
		acknowledge(t->move.subject, t->version, t->stamp.op);
	else if (code != HX_CONCURRENCY_ERROR && code != HX_WRONG_STATUS)
		die("transition", hx_code_name(code));
	next_job(caller);
}

static void claim_done(struct seat *seat, enum hx_code code)
{
	struct caller *caller = (struct caller *)seat;
	struct claim *c = &caller->job.claim;

	if (code == HX_OK)
		acknowledge(caller->plan.subject, c->version, c->stamp.op);
	else if (code == HX_DATA_ERROR ||
		 code == HX_NOT_FOUND) /* STORE_UNAVAILABLE: its lease was over before it began */
		die("claim", hx_code_name(code));
	next_job(caller);
}

/* The action begins: by now the claim itself is durable, and is acknowledged. */
static void start_action(struct act_port *port, const struct act_call *call, struct ticket ticket)
{
	struct caller *caller;
	uint64_t luck;

	(void)port;
	memcpy(&caller, call->input.p, sizeof caller);
	luck = draw(caller, 10);
	acknowledge(caller->plan.subject, caller->job.claim.version, caller->job.claim.stamp.op);
	lane_answer(ticket, luck < 6 ? ACT_OK : luck < 9 ? ACT_FAILED : ACT_UNKNOWN, slice_str("{}"));
}

static void next_job(struct caller *caller)
{
	int64_t subject = KILL_FIRST_SUBJECT + (int64_t)draw(caller, KILL_SUBJECTS);

	if (draw(caller, 10) < 6) {
		bool opens = draw(caller, 2);
		struct move move = {subject, opens ? KILL_SHUT : KILL_OPEN, opens ? KILL_OPEN : KILL_SHUT};

		transition_init(&caller->job.transition, &move, /* version= */ 0);
		caller->seat = (struct seat){.task = &caller->job.task, .done = transition_done};
	} else {
		caller->self = caller;
		caller->plan = (struct claim_plan){
			.subject = subject,
			.from = KILL_OPEN,
			.claim_into = KILL_WORKING,
			.successful_state = KILL_SHUT,
			.revert_to = KILL_OPEN,
			.lease_ms = LEASE_MS,
			.action = "act",
			.input = slice_of(&caller->self, sizeof caller->self),
		};
		claim_init(&caller->job.claim, &caller->plan);
		caller->seat = (struct seat){.task = &caller->job.task, .done = claim_done};
	}
	if (lane_submit(lane, &caller->seat))
		die("submit", "not taken in");
}

static void sweep(struct seat *seat, enum hx_code code)
{
	static const struct janitor_rule rule = {.kind = KILL_KIND, .claim_into = KILL_WORKING, .revert_to = KILL_OPEN};
	static const struct janitor_rules rules = {1, &rule};

	if (code)
		die("janitor", hx_code_name(code));
	janitor_init(&janitor, &rules, /* budget= */ KILL_SUBJECTS, mono_add_ms(clock_mono(clock_system()), SWEEP_MS));
	*seat = (struct seat){.task = &janitor.task, .done = sweep};
	if (lane_submit(lane, seat))
		die("submit", "not taken in");
}

static void open_files(const char *acks_path, const char *page_path)
{
	int fd = open(page_path, O_RDWR | O_CLOEXEC);

	acks_fd = open(acks_path, O_WRONLY | O_APPEND | O_CLOEXEC);
	page = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof *page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (acks_fd < 0 || page == MAP_FAILED)
		die("open", "the acknowledgements or the page");
	close(fd);
}

int main(int argc, char **argv)
{
	struct act_port port = {.start = start_action};
	struct lane_options options = {
		.clock = clock_system(),
		.node = "kill_writer",
		.node_number = 1,
		.seats_max = CALLERS + 1,
		.resolve_ms = 1000,
		.act = &port,
		.renew = subject_heartbeat,
	};
	struct hx_error err = {0};
	uint64_t seed;

	if (argc != 5)
		die("usage", "kill_writer URL ACKS PAGE SEED");
	open_files(argv[2], argv[3]);
	seed = strtoull(argv[4], NULL, 10);
	options.db = (struct db_options){.url = argv[1], .clock = options.clock, .exclusive = true};
	if (sqlite3_auto_extension((void (*)(void))set_hooks) || lane_new(&options, &lane, &err))
		die("open", err.detail);
	for (uint64_t i = 0; i < CALLERS; i++) {
		callers[i].random = (seed * CALLERS + i + 1) * 0x9e3779b97f4a7c15u | 1;
		next_job(&callers[i]);
	}
	sweep(&janitor_seat, HX_OK);
	for (;;)
		pause();
}
