/* The layered layout: boxes that do not overlap, ways that keep clear of them, and where it gives up drawing a way. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "model/graph_layout.h"

#define NODES_MAX (LAYOUT_LANES_MAX + 3)
#define EDGES_MAX (NODES_MAX + 1)

static struct arena arena;
static struct layout_node nodes[NODES_MAX];
static struct layout_edge edges[EDGES_MAX];
static struct layout layout;

static int set_up(void **state)
{
	(void)state;
	arena_init(&arena, 64u << 20);
	layout = (struct layout){.arena = &arena, .nodes = nodes, .edges = edges};
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	arena_release(&arena);
	return 0;
}

static size_t node(int width, int height)
{
	nodes[layout.nodes_n] = (struct layout_node){
		.width = width, .height = height, .ports_from = 10, .ports_to = width - 10, .align = LAYOUT_MIDDLE};
	return layout.nodes_n++;
}

static size_t edge(size_t from, size_t to, enum layout_way way)
{
	edges[layout.edges_n] = (struct layout_edge){
		.from = from, .to = to, .way = way, .from_dx = LAYOUT_ANYWHERE, .to_dx = LAYOUT_ANYWHERE};
	return layout.edges_n++;
}

static void lay_out(void)
{
	assert_true(layout_rank(&layout));
	assert_true(layout_place(&layout));
}

static const struct layout_segment *segment(size_t e, size_t i)
{
	assert_true(i < edges[e].n);
	return &layout.segments[edges[e].first + i];
}

static void a_chain_is_one_straight_line(void **state)
{
	(void)state;
	for (int i = 0; i < 6; i++)
		node(60 + 31 * i, 20);
	for (size_t i = 0; i < 5; i++)
		edge(i, i + 1, LAYOUT_DOWN);
	lay_out();
	assert_int_equal(layout.ranks_n, 6);
	assert_int_equal(layout.width, 60 + 31 * 5);
	for (size_t i = 0; i < 5; i++) {
		assert_int_equal(segment(i, 0)->upper_x, segment(0, 0)->upper_x);
		assert_int_equal(segment(i, 0)->lower_x, segment(0, 0)->upper_x);
		assert_true(nodes[i].y + nodes[i].height < nodes[i + 1].y);
	}
}

/* a and b above, c and d below, given in the order in which their ways cross. */
static void ways_that_need_not_cross_do_not(void **state)
{
	size_t a = node(50, 20), b = node(50, 20), c = node(50, 20), d = node(50, 20);
	size_t first = edge(a, d, LAYOUT_DOWN), second = edge(b, c, LAYOUT_DOWN);

	(void)state;
	lay_out();
	assert_int_equal(segment(first, 0)->upper_x < segment(second, 0)->upper_x,
			 segment(first, 0)->lower_x < segment(second, 0)->lower_x);
}

static void ways_up_and_loose_ones_turn_out_as_the_ranks_have_it(void **state)
{
	size_t a = node(50, 20), b = node(50, 20), c = node(50, 20), low = node(50, 20);

	(void)state;
	edge(a, b, LAYOUT_DOWN);
	edge(b, c, LAYOUT_DOWN);
	/* c leads back to a, through one that stands directly above c. */
	edge(c, low, LAYOUT_UP);
	edge(low, a, LAYOUT_UP);
	nodes[low].low = true;
	size_t up = edge(c, a, LAYOUT_LOOSE), down = edge(a, c, LAYOUT_LOOSE), level = edge(b, low, LAYOUT_LOOSE);

	lay_out();
	assert_int_equal(nodes[a].rank, 0);
	assert_int_equal(nodes[b].rank, 1);
	assert_int_equal(nodes[c].rank, 2);
	assert_int_equal(nodes[low].rank, 1);
	assert_int_equal(edges[up].way, LAYOUT_UP);
	assert_int_equal(edges[down].way, LAYOUT_DOWN);
	assert_int_equal(edges[up].n, 2);
	assert_true(edges[level].cut);
	assert_int_equal(edges[level].n, 0);
}

static void a_rank_may_be_wanted(void **state)
{
	size_t a = node(50, 20), b = node(50, 20), alone = node(50, 20);

	(void)state;
	edge(a, b, LAYOUT_DOWN);
	nodes[b].rank = 3;
	nodes[alone].rank = 1;
	lay_out();
	assert_int_equal(nodes[b].rank, 3);
	assert_int_equal(nodes[alone].rank, 1);
	assert_int_equal(edges[0].n, 3);
}

static void where_a_way_touches_may_be_fixed(void **state)
{
	size_t a = node(100, 20), b = node(50, 20);

	(void)state;
	edge(a, b, LAYOUT_DOWN);
	edges[0].from_dx = 5;
	edges[0].to_dx = 45;
	lay_out();
	assert_int_equal(segment(0, 0)->upper_x, nodes[a].x + 5);
	assert_int_equal(segment(0, 0)->lower_x, nodes[b].x + 45);
	assert_int_equal(segment(0, 0)->upper_x, segment(0, 0)->lower_x);
}

/* ---- at random ---- */

static uint64_t seed;

static unsigned chance(unsigned n)
{
	seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
	return (unsigned)(seed >> 33) % n;
}

static void make_random(uint64_t with)
{
	seed = with;
	arena_reset(&arena);
	layout = (struct layout){.arena = &arena, .nodes = nodes, .edges = edges};
	for (unsigned n = 1 + chance(40); n > 0; n--)
		nodes[node(20 + (int)chance(200), 10 + (int)chance(90))].align = (enum layout_align)chance(3);
	for (unsigned n = chance(80); n > 0; n--) {
		size_t a = chance((unsigned)layout.nodes_n), b = chance((unsigned)layout.nodes_n);

		if (a == b)
			continue;
		/* Upwards from the larger number to the smaller: no circle. */
		size_t e = edge(a, b, chance(5) == 0 ? LAYOUT_LOOSE : a < b ? LAYOUT_DOWN : LAYOUT_UP);

		if (chance(3) == 0)
			edges[e].from_dx = nodes[a].width / 2;
	}
}

static void assert_boxes_are_apart(void)
{
	for (size_t i = 0; i < layout.nodes_n; i++) {
		const struct layout_node *a = &nodes[i];

		assert_true(a->x >= 0 && a->x + a->width <= layout.width);
		assert_true(a->y >= layout.rank_top[a->rank] && a->y + a->height <= layout.rank_bottom[a->rank]);
		for (size_t k = i + 1; k < layout.nodes_n; k++)
			if (nodes[k].rank == a->rank)
				assert_true(nodes[k].x >= a->x + a->width || a->x >= nodes[k].x + nodes[k].width);
	}
	for (size_t r = 1; r < layout.ranks_n; r++)
		assert_true(layout.rank_top[r] > layout.rank_bottom[r - 1]);
}

static void assert_lane_is_clear(int rank, int x)
{
	for (size_t i = 0; i < layout.nodes_n; i++)
		if (nodes[i].rank == rank && x >= nodes[i].x && x <= nodes[i].x + nodes[i].width)
			fail_msg("seed %lu: a way goes through a box", (unsigned long)seed);
}

static void assert_way(const struct layout_edge *e)
{
	const struct layout_node *upper = &nodes[e->way == LAYOUT_UP ? e->to : e->from];
	const struct layout_node *lower = &nodes[e->way == LAYOUT_UP ? e->from : e->to];
	const struct layout_segment *s = &layout.segments[e->first];

	if (e->cut)
		return;
	assert_int_equal(e->n, lower->rank - upper->rank);
	assert_in_range(s[0].upper_x, upper->x, upper->x + upper->width);
	assert_in_range(s[e->n - 1].lower_x, lower->x, lower->x + lower->width);
	for (size_t i = 0; i + 1 < e->n; i++) {
		assert_int_equal(s[i].lower_x, s[i + 1].upper_x);
		assert_lane_is_clear(upper->rank + (int)i + 1, s[i].lower_x);
	}
}

static void boxes_are_apart_and_ways_keep_clear_of_them(void **state)
{
	(void)state;
	for (uint64_t with = 1; with <= 1000; with++) {
		make_random(with);
		lay_out();
		assert_boxes_are_apart();
		for (size_t i = 0; i < layout.edges_n; i++)
			assert_way(&edges[i]);
	}
}

static void the_same_input_has_the_same_places(void **state)
{
	static struct layout_node before[NODES_MAX];

	(void)state;
	for (uint64_t with = 1; with <= 50; with++) {
		make_random(with);
		lay_out();
		memcpy(before, nodes, layout.nodes_n * sizeof *nodes);
		make_random(with);
		lay_out();
		for (size_t i = 0; i < layout.nodes_n; i++)
			assert_true(before[i].x == nodes[i].x && before[i].y == nodes[i].y);
	}
}

/* ---- limits ---- */

/* A chain, and one way past all of it: so many lanes. */
static void make_chain_with_lanes(size_t lanes)
{
	for (size_t i = 0; i < lanes + 2; i++)
		node(40, 10);
	for (size_t i = 0; i < lanes + 1; i++)
		edge(i, i + 1, LAYOUT_DOWN);
	edge(0, lanes + 1, LAYOUT_DOWN);
}

static void lanes_up_to_the_limit(void **state)
{
	(void)state;
	make_chain_with_lanes(LAYOUT_LANES_MAX);
	lay_out();
	assert_false(edges[layout.edges_n - 1].cut);
	assert_int_equal(edges[layout.edges_n - 1].n, LAYOUT_LANES_MAX + 1);
}

static void one_lane_more_and_the_longest_way_is_cut(void **state)
{
	(void)state;
	make_chain_with_lanes(LAYOUT_LANES_MAX + 1);
	lay_out();
	assert_true(edges[layout.edges_n - 1].cut);
	for (size_t i = 0; i + 1 < layout.edges_n; i++)
		assert_false(edges[i].cut);
}

static void nothing_at_all(void **state)
{
	(void)state;
	lay_out();
	assert_int_equal(layout.width, 0);
	assert_int_equal(layout.height, 0);
}

/* With every ceiling that is too low it says so, and writes nothing where it must not. */
static void an_arena_that_is_too_small(void **state)
{
	size_t bytes = 0;
	bool done = false;

	(void)state;
	for (; !done && bytes < 1u << 20; bytes += 64) {
		make_random(7);
		arena_release(&arena);
		arena_init(&arena, bytes);
		done = layout_rank(&layout) && layout_place(&layout);
		assert_int_equal(done, !arena.failed);
	}
	assert_true(done && bytes > 1000);
}

#define layout_test(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		layout_test(a_chain_is_one_straight_line),
		layout_test(ways_that_need_not_cross_do_not),
		layout_test(ways_up_and_loose_ones_turn_out_as_the_ranks_have_it),
		layout_test(a_rank_may_be_wanted),
		layout_test(where_a_way_touches_may_be_fixed),
		layout_test(boxes_are_apart_and_ways_keep_clear_of_them),
		layout_test(the_same_input_has_the_same_places),
		layout_test(lanes_up_to_the_limit),
		layout_test(one_lane_more_and_the_longest_way_is_cut),
		layout_test(nothing_at_all),
		layout_test(an_arena_that_is_too_small),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
