/* Whose turn it is: slots and the room to wait are shared out between workspaces, however many calls one of them has. */
#include <sched.h>

#include "act/port.h"
#include "unit/act/upstream.h"

#define OK_JSON "HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n{\"a\":1}"

static const struct page pages[] = {{"/hang", PAGE_HANG, OK_JSON}, {"/ok", PAGE_REPLY, OK_JSON}, {0}};

static struct upstream u;
static struct desk desk;
static char slow_url[128], quick_url[128];
static struct action slow, quick;

static void begin(struct port_options options)
{
	upstream_open(&u, pages);
	desk_open(&desk, &options);
	slow = upstream_action(&u, "/hang", slow_url);
	quick = upstream_action(&u, "/ok", quick_url);
	slow.name = "slow";
	quick.name = "quick";
}

/* All that hang are let go, and have an answer. */
static void end(void)
{
	upstream_release(&u);
	for (uint64_t i = 1; i <= desk.last_number; i++)
		desk_wait(&desk, i);
	desk_wait_stats(&desk, 0, 0);
	desk_close(&desk);
	upstream_close(&u);
}

static uint64_t start(const struct action *action, uint64_t tenant)
{
	return desk_start(&desk, action, (struct act_call){.tenant = tenant, .lease = {(int64_t)tenant, 1}});
}

static void start_slow(uint64_t tenant, int n)
{
	for (int i = 0; i < n; i++)
		start(&slow, tenant);
}

static void expect_quick(uint64_t tenant)
{
	desk_expect(desk_wait(&desk, start(&quick, tenant)), ACT_OK, "{\"a\":1}");
}

/* One alone has half of the slots, two together three quarters and so on: there is always one for who has none. */
static void a_slow_neighbour_leaves_slots(void **state)
{
	struct port_sight sight;

	(void)state;
	begin((struct port_options){.http_slots = 8});
	start_slow(1, 20);
	desk_wait_stats(&desk, 4, 16);
	expect_quick(2);
	start_slow(2, 20);
	desk_wait_stats(&desk, 6, 34);
	expect_quick(3);
	start_slow(3, 20);
	desk_wait_stats(&desk, 7, 53);
	expect_quick(4);
	port_look(desk.port, 1, 1, &sight);
	assert_true(sight.of_share && sight.of_kind);
	assert_int_equal(sight.limit, 4);
	assert_int_equal(sight.waiting, 16);
	end();
}

/* What is nobody's in particular has all of them. */
static void who_has_no_workspace_is_not_bounded(void **state)
{
	(void)state;
	begin((struct port_options){.http_slots = 8});
	start_slow(0, 20);
	desk_wait_stats(&desk, 8, 12);
	end();
}

/* An action's own bound is one for all workspaces, and whoever waits for it is not forgotten. */
static void the_bound_of_an_action_is_for_all(void **state)
{
	(void)state;
	begin((struct port_options){.http_slots = 64});
	slow.max_in_flight = 2;
	for (uint64_t tenant = 1; tenant <= 5; tenant++)
		start_slow(tenant, 3);
	upstream_wait(&u, hanging, 2);
	desk_wait_stats(&desk, 2, 13);
	end();
	assert_int_equal(u.hanging_most, 2);
}

/* Who has filled its part of the room to wait is told so, and nobody else. */
static void the_room_to_wait_is_shared_out(void **state)
{
	struct port_stats stats;
	uint64_t mine;

	(void)state;
	begin((struct port_options){.http_slots = 2, .waiting_max = 8});
	start_slow(1, 100);
	port_read_stats(desk.port, &stats);
	assert_int_equal(stats.running, 1);
	assert_int_equal(stats.waiting, 4);
	assert_int_equal(stats.refused, 95);
	start_slow(2, 1); /* has the other slot */
	mine = start(&quick, 2);
	port_read_stats(desk.port, &stats);
	assert_int_equal(stats.waiting, 5);
	upstream_release(&u);
	desk_expect(desk_wait(&desk, mine), ACT_OK, "");
	end();
}

/* With one slot, workspaces take turns, and the actions of one of them take turns within its own. */
static void workspaces_take_turns(void **state)
{
	uint64_t other;

	(void)state;
	begin((struct port_options){.http_slots = 1});
	start_slow(1, 1);
	upstream_wait(&u, hanging, 1);
	for (int i = 0; i < 50; i++)
		start(&quick, 1);
	other = start(&quick, 2);
	upstream_release(&u);
	assert_true(desk_wait(&desk, other)->place <= 3);
	end();
}

/* The bound of an action is one for all workspaces: nobody gets a second place while others have waited for their first. */
static void a_bounded_action_serves_all_in_turn(void **state)
{
	static const char *const bodies[] = {"\"a\"", "\"b\"", "\"c\""};
	size_t served[3] = {0};

	(void)state;
	begin((struct port_options){.http_slots = 8});
	slow.max_in_flight = 1;
	for (uint64_t i = 0; i < 18; i++) {
		struct act_call call = {
			.tenant = 1 + i / 6, .input = slice_str(bodies[i / 6]), .lease = {(int64_t)(1 + i / 6), 1}};

		desk_start(&desk, &slow, call);
	}
	upstream_release(&u);
	for (uint64_t i = 1; i <= desk.last_number; i++)
		desk_wait(&desk, i);
	for (size_t i = 0; i < 9; i++)
		served[u.order[i] - 'a']++;
	for (size_t i = 0; i < 3; i++)
		assert_in_range(served[i], 2, 4);
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_bounded_action_serves_all_in_turn),
		cmocka_unit_test(a_slow_neighbour_leaves_slots),
		cmocka_unit_test(who_has_no_workspace_is_not_bounded),
		cmocka_unit_test(the_bound_of_an_action_is_for_all),
		cmocka_unit_test(the_room_to_wait_is_shared_out),
		cmocka_unit_test(workspaces_take_turns),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
