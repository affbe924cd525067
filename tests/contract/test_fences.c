/*
 * A server that starts while somebody raises the floor of the fences, interleaved on PostgreSQL statement by statement.
 *
 *   the server    joins: it is in the table of nodes, committed ─▶ reads the floor, and keeps it as long as it lives
 *   the raise     raises the floor ─▶ looks whether there are nodes ─▶ commits, or is refused
 *
 * Not in the simulator, because the guard is made of what the simulator does not have: a row lock that a reader waits for, and a
 * look at what others have committed by then. (On SQLite it is the lock of the file, which is a server's from its start to its end.)
 * And not one of test_pairs.c, because the start is two units: each of them alone comes out as in a serial order without any lock.
 *
 *  F1  In every order of the statements that the locks allow, the server has the floor that the store has.
 *  F2  The floor does not fall.
 */
#include "contract/pairs.h"

#include "engine/fences.h"
#include "flow/node_lease.h"

#define NODE_NUMBER 3
#define FUTURE "9000000000000000"

enum { RAISE, SERVER };

static struct {
	struct unit raise, join, read;
	bool joined; /* the server is at its second unit */
} cast;

static void start_unit(int side, const struct unit *unit)
{
	struct side_plan plan = {.unit = unit, .commits = true};

	side_start(world.side[side], &plan);
}

static void start_all(const char *floor)
{
	char sql[200];

	snprintf(sql, sizeof sql, "DELETE FROM hx_node; UPDATE hx_fences SET floor = %s", floor);
	raw_run(world.watcher, sql, NULL, 0);
	unit_init(&cast.raise, /* op= */ 0);
	fences_ask_raise(&cast.raise);
	unit_init(&cast.join, /* op= */ 0);
	node_take(&cast.join, NODE_NUMBER, "node", /* token= */ 1, /* now_ms= */ 1);
	unit_init(&cast.read, /* op= */ 0);
	fences_ask_floor(&cast.read);
	cast.joined = false;
	start_unit(RAISE, &cast.raise);
	start_unit(SERVER, &cast.join);
}

/* After its first unit comes the second. */
static bool is_ready(int side)
{
	if (side == SERVER && !cast.joined && side_state(world.side[SERVER]) == SIDE_ENDED) {
		assert_non_null(strstr(side_outcome(world.side[SERVER]), "won"));
		cast.joined = true;
		start_unit(SERVER, &cast.read);
	}
	return side_state(world.side[side]) == SIDE_READY;
}

/* One schedule, as run_interleaved() of pairs.h. */
static void run_schedule(struct schedule *schedule)
{
	unsigned given = schedule->n;

	start_all("0");
	for (schedule->n = 0;; schedule->n++) {
		bool ready[2] = {is_ready(RAISE), is_ready(SERVER)};
		unsigned wish = schedule->n < given ? schedule->choice[schedule->n] : RAISE;
		unsigned choice = ready[wish] ? wish : !wish;

		if (!ready[RAISE] && !ready[SERVER])
			break;
		assert_true(schedule->n < DEPTH_MAX);
		schedule->choice[schedule->n] = (unsigned char)choice;
		schedule->both[schedule->n] = ready[RAISE] && ready[SERVER];
		world.blocked += side_step(world.side[choice], world.watcher) == SIDE_BLOCKED;
		if (side_state(world.side[choice]) == SIDE_ENDED && side_state(world.side[!choice]) == SIDE_BLOCKED)
			(void)side_await(world.side[!choice], world.watcher);
	}
	for (int i = 0; i < 2; i++)
		if (side_state(world.side[i]) != SIDE_ENDED)
			fail_msg("both sides wait: a deadlock");
}

static void floor_of_store(char floor[32])
{
	raw_run(world.watcher, "SELECT floor FROM hx_fences", floor, 32);
}

/* On a machine that is very slow the lease of the node may be over before its start is: then it is no node. */
static bool node_is_alive(void)
{
	char n[8];

	raw_run(world.watcher, "SELECT count(*) FROM hx_node WHERE until > hx_now_ms()", n, sizeof n);
	return strcmp(n, "1") == 0;
}

/* In the words of tests/mutants/run. */
static void break_off(const char *name, const struct schedule *schedule, const char *what)
{
	char order[DEPTH_MAX + 1] = "";

	for (unsigned i = 0; schedule && i < schedule->n; i++)
		order[i] = "rs"[schedule->choice[i]];
	fprintf(stderr, "counterexample in %s: order %s\n  the raise: %s\n  the server: %s\n  broken: %s\n", name,
		order, side_outcome(world.side[RAISE]), side_outcome(world.side[SERVER]), what);
	fail();
}

static void a_server_has_the_floor_of_its_store(void **state)
{
	struct schedule schedule = {0};
	long raised = 0, refused = 0;

	(void)state;
	do {
		char floor[32], read[64];

		do
			run_schedule(&schedule);
		while (!node_is_alive());
		world.interleavings++;
		floor_of_store(floor);
		snprintf(read, sizeof read, "line 0: %s\n", floor);
		if (!strstr(side_outcome(world.side[SERVER]), read))
			break_off("a start and a raise", &schedule, "F1: the server has another floor than the store");
		*(strcmp(floor, "0") == 0 ? &refused : &raised) += 1;
	} while (next_schedule(&schedule));
	printf("# a start and a raise: %ld interleavings, raised in %ld of them, refused in %ld; one waited in %ld\n",
	       world.interleavings, raised, refused, world.blocked);
	assert_true(raised && refused && world.blocked);
}

/* A clock that was set back, or a floor that another machine has raised. */
static void a_floor_does_not_fall(void **state)
{
	char floor[32];

	(void)state;
	start_all(FUTURE);
	while (is_ready(RAISE))
		(void)side_step(world.side[RAISE], world.watcher);
	floor_of_store(floor);
	if (strcmp(floor, FUTURE) != 0)
		break_off("a raise by a clock that is behind", NULL, "F2: the floor has fallen");
	assert_non_null(strstr(side_outcome(world.side[RAISE]), "lost"));
	while (is_ready(SERVER))
		(void)side_step(world.side[SERVER], world.watcher);
}

static int take_down(void **state)
{
	(void)state;
	close_world();
	return 0;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_server_has_the_floor_of_its_store),
		cmocka_unit_test(a_floor_does_not_fall),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests_name("fences", tests, set_up, take_down);
}
