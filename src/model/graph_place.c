/*
 * Where the cells of a row stand, once their order is fixed. Each would like to be where the ways to its neighbours are
 * straight; what all of them get is the nearest to that, by least squares, that keeps them apart (isotonic regression:
 * neighbours that want to overlap become one block, at the mean of what its members want). Rows are settled in turn, down
 * and up, until they hardly move. The ends of ways on the sides of a node are settled in the same way.
 */
#include <limits.h>
#include <stdlib.h>

#include "model/graph_cells.h"

#define ROUNDS 16
#define ROUNDS_OF_MANY 3
#define MANY_SEGMENTS 4000
#define NODE_SPACE 26
#define LANE_SPACE 8
#define PORT_SPACE 14

/* What one of a row wants. */
struct wish {
	int64_t at, weight;
	int64_t gap; /* from it to the next one, at least */
};

struct block {
	int64_t sum, weight;
	size_t n;
};

struct touch {
	int x;
	size_t segment;
};

struct placing {
	struct layout *l;
	struct wish *wishes;
	struct block *blocks;
	struct touch *touches; /* on one side of a node */
};

static int64_t mean(const struct block *b)
{
	return b->sum >= 0 ? b->sum / b->weight : -((-b->sum + b->weight - 1) / b->weight);
}

/* Each `at` becomes what is possible. */
static void settle(struct wish *wishes, size_t n, struct block *blocks)
{
	size_t blocks_n = 0, k = 0;
	int64_t shift = 0;

	/* Less the gaps before it, keeping apart is not to fall behind. */
	for (size_t i = 0; i < n; i++) {
		struct block *b = &blocks[blocks_n++];

		*b = (struct block){(wishes[i].at - shift) * wishes[i].weight, wishes[i].weight, 1};
		shift += wishes[i].gap;
		for (; b > blocks && mean(b - 1) >= mean(b); b--, blocks_n--) {
			b[-1].sum += b->sum;
			b[-1].weight += b->weight;
			b[-1].n += b->n;
		}
	}
	shift = 0;
	for (size_t i = 0; i < blocks_n; i++)
		for (size_t m = 0; m < blocks[i].n; m++, k++) {
			wishes[k].at = mean(&blocks[i]) + shift;
			shift += wishes[k].gap;
		}
}

/* ---- cells ---- */

static int space_between(const struct layout *l, size_t a, size_t b)
{
	return cell_is_lane(l, a) || cell_is_lane(l, b) ? LANE_SPACE : NODE_SPACE;
}

/* Ways that pass through lanes are long, and a long way that is not straight is hard to follow. */
static int64_t weight_of(const struct layout *l, const struct layout_segment *s)
{
	bool upper = cell_is_lane(l, s->upper), lower = cell_is_lane(l, s->lower);

	return upper && lower ? 16 : upper || lower ? 4 : 2;
}

static void wish_by(const struct layout *l, size_t cell, bool by_above, struct wish *wish, int64_t *sum)
{
	const struct layout_cells *c = l->cells;
	const struct layout_sides *side = by_above ? &c->above : &c->below;

	for (size_t k = side->first[cell]; k < side->first[cell + 1]; k++) {
		const struct layout_segment *s = &l->segments[side->segments[k]];
		int64_t weight = weight_of(l, s);

		wish->weight += weight;
		*sum += weight * (by_above ? c->cell[s->upper].x + s->upper_dx - s->lower_dx
					   : c->cell[s->lower].x + s->lower_dx - s->upper_dx);
	}
}

/* Nothing ties it to a place: it stands beside its neighbour. */
static bool is_alone(const struct layout *l, size_t cell)
{
	const struct layout_cells *c = l->cells;

	return c->above.first[cell] == c->above.first[cell + 1] && c->below.first[cell] == c->below.first[cell + 1];
}

static void place_row(struct placing *p, size_t rank, bool by_above, bool by_below)
{
	struct layout_cells *c = p->l->cells;
	const size_t *row = c->row + c->row_first[rank];
	size_t n = row_length(p->l, rank);

	for (size_t i = 0; i < n; i++) {
		struct wish *w = &p->wishes[i];
		int64_t sum = 0;

		*w = (struct wish){.gap = c->cell[row[i]].width +
					  space_between(p->l, row[i], row[i + 1 < n ? i + 1 : i])};
		if (by_above)
			wish_by(p->l, row[i], true, w, &sum);
		if (by_below)
			wish_by(p->l, row[i], false, w, &sum);
		w->at = w->weight > 0 ? sum / w->weight : c->cell[row[i]].x;
		if (is_alone(p->l, row[i]) && i > 0)
			w->at = w[-1].at + w[-1].gap;
		w->weight = w->weight > 0 ? w->weight : 1;
	}
	settle(p->wishes, n, p->blocks);
	for (size_t i = 0; i < n; i++)
		c->cell[row[i]].x = (int)p->wishes[i].at;
}

static void place_rows(struct placing *p)
{
	size_t rounds = p->l->segments_n > MANY_SEGMENTS ? ROUNDS_OF_MANY : ROUNDS, ranks = p->l->ranks_n;

	for (size_t round = 0; round < rounds; round++) {
		bool both = round * 2 >= rounds;

		for (size_t r = 0; r < ranks; r++)
			place_row(p, r, /* by_above= */ true, both);
		for (size_t r = ranks; r > 0; r--)
			place_row(p, r - 1, both, /* by_below= */ true);
	}
}

static void move_to_zero(struct layout *l)
{
	struct layout_cells *c = l->cells;
	int least = c->n ? c->cell[0].x : 0;

	for (size_t i = 1; i < c->n; i++)
		least = c->cell[i].x < least ? c->cell[i].x : least;
	for (size_t i = 0; i < c->n; i++)
		c->cell[i].x -= least;
}

/* ---- straight ways ---- */

/* How far a cell may move while all others stay. */
static void find_room(const struct layout *l, size_t cell, int *ret_least, int *ret_most)
{
	const struct layout_cells *c = l->cells;
	const struct layout_cell *this = &c->cell[cell];
	const size_t *row = c->row + c->row_first[this->rank];

	*ret_least = INT_MIN / 2;
	*ret_most = INT_MAX / 2;
	if (this->at > 0)
		*ret_least = c->cell[row[this->at - 1]].x + c->cell[row[this->at - 1]].width +
			     space_between(l, row[this->at - 1], cell);
	if (this->at + 1 < row_length(l, (size_t)this->rank))
		*ret_most = c->cell[row[this->at + 1]].x - space_between(l, cell, row[this->at + 1]) - this->width;
}

static int between(int at, int least, int most)
{
	return at < least ? least : at > most ? most : at;
}

/* The k-th lane of an edge, counted from where the edge begins. */
static size_t graph_place_lane_of(const struct layout *l, const struct layout_edge *e, size_t k)
{
	return l->segments[e->first + (e->way == LAYOUT_UP ? e->n - 2 - k : k)].lower;
}

/* How many lanes after `from` can be straight with it, and where. */
static size_t find_run(const struct layout *l, const struct layout_edge *e, size_t from, int *ret_least, int *ret_most)
{
	size_t to = from;

	find_room(l, graph_place_lane_of(l, e, from), ret_least, ret_most);
	for (to++; to + 1 < e->n; to++) {
		int least, most;

		find_room(l, graph_place_lane_of(l, e, to), &least, &most);
		if (least > *ret_most || most < *ret_least)
			break;
		*ret_least = least > *ret_least ? least : *ret_least;
		*ret_most = most < *ret_most ? most : *ret_most;
	}
	return to;
}

/* From where it begins: each run of lanes that can be straight is, and goes on where the last one was if it can. */
static void straighten(const struct layout *l, const struct layout_edge *e)
{
	bool up = e->way == LAYOUT_UP;
	const struct layout_segment *first = &l->segments[e->first + (up ? e->n - 1 : 0)];
	int x = l->cells->cell[e->from].x + (up ? first->lower_dx : first->upper_dx) - LANE_WIDTH / 2, least, most;

	for (size_t k = 0; k + 1 < e->n;) {
		size_t to = find_run(l, e, k, &least, &most);

		for (x = between(x, least, most); k < to; k++)
			l->cells->cell[graph_place_lane_of(l, e, k)].x = x;
	}
}

/* Narrows down where a node may stand so that its free ways on one side are straight. False: nowhere. */
static bool narrow(const struct layout *l, size_t node, bool above, int *least, int *most)
{
	const struct layout_cells *c = l->cells;
	const struct layout_sides *side = above ? &c->above : &c->below;

	for (size_t k = side->first[node]; k < side->first[node + 1]; k++) {
		const struct layout_segment *s = &l->segments[side->segments[k]];
		int x = above ? c->cell[s->upper].x + s->upper_dx : c->cell[s->lower].x + s->lower_dx;

		if (!(above ? s->lower_free : s->upper_free))
			continue;
		*least = x - l->nodes[node].ports_to > *least ? x - l->nodes[node].ports_to : *least;
		*most = x - l->nodes[node].ports_from < *most ? x - l->nodes[node].ports_from : *most;
	}
	return *least <= *most;
}

/* A few pixels to the side often make a way straight that would end beside the node. */
static void nudge(const struct layout *l, size_t node)
{
	int least, most;

	find_room(l, node, &least, &most);
	if (narrow(l, node, true, &least, &most) && narrow(l, node, false, &least, &most))
		l->cells->cell[node].x = between(l->cells->cell[node].x, least, most);
}

/* ---- where ways touch nodes ---- */

static int by_x(const void *a, const void *b)
{
	const struct touch *x = a, *y = b;

	if (x->x != y->x)
		return x->x < y->x ? -1 : 1;
	return (x->segment > y->segment) - (x->segment < y->segment);
}

/* Those of a side that may touch anywhere, by where they come from. */
static size_t find_touches(struct placing *p, size_t node, bool above)
{
	const struct layout_cells *c = p->l->cells;
	const struct layout_sides *side = above ? &c->above : &c->below;
	size_t n = 0;

	for (size_t k = side->first[node]; k < side->first[node + 1]; k++) {
		const struct layout_segment *s = &p->l->segments[side->segments[k]];

		if (above ? s->lower_free : s->upper_free)
			p->touches[n++] = (struct touch){above ? c->cell[s->upper].x + s->upper_dx
							       : c->cell[s->lower].x + s->lower_dx,
							 side->segments[k]};
	}
	if (n > 1)
		qsort(p->touches, n, sizeof *p->touches, by_x);
	return n;
}

/* Straight above or below where they come from, if that is on the node; apart, if there is room for it. */
static void spread_touches(struct placing *p, const struct layout_node *node, int x, size_t n)
{
	int64_t room = node->ports_to - node->ports_from, last = (int64_t)n - 1;
	int64_t gap = last * PORT_SPACE > room ? room / last : PORT_SPACE;

	for (size_t i = 0; i < n; i++)
		p->wishes[i] = (struct wish){p->touches[i].x, 1, gap};
	settle(p->wishes, n, p->blocks);
	for (size_t i = 0; i < n; i++) {
		int64_t least = x + node->ports_from + (int64_t)i * gap;
		int64_t most = x + node->ports_to - (last - (int64_t)i) * gap;

		p->touches[i].x = (int)(p->wishes[i].at < least  ? least
					: p->wishes[i].at > most ? most
								 : p->wishes[i].at);
	}
}

static void place_touches(struct placing *p, size_t node, bool above)
{
	int x = p->l->cells->cell[node].x;
	size_t n = find_touches(p, node, above);

	spread_touches(p, &p->l->nodes[node], x, n);
	for (size_t i = 0; i < n; i++) {
		struct layout_segment *s = &p->l->segments[p->touches[i].segment];

		*(above ? &s->lower_dx : &s->upper_dx) = p->touches[i].x - x;
	}
}

bool layout_place_x(struct layout *l)
{
	struct placing p = {.l = l};
	size_t most = l->cells->n > l->segments_n ? l->cells->n : l->segments_n;

	p.wishes = arena_alloc(l->arena, most * sizeof *p.wishes);
	p.blocks = arena_alloc(l->arena, most * sizeof *p.blocks);
	p.touches = arena_alloc(l->arena, l->segments_n * sizeof *p.touches);
	if (l->arena->failed)
		return false;
	place_rows(&p);
	for (size_t i = 0; i < l->edges_n; i++)
		if (l->edges[i].n > 1)
			straighten(l, &l->edges[i]);
	for (size_t i = 0; i < l->nodes_n; i++)
		nudge(l, i);
	move_to_zero(l);
	for (size_t i = 0; i < l->nodes_n; i++) {
		place_touches(&p, i, /* above= */ true);
		place_touches(&p, i, /* above= */ false);
	}
	for (size_t i = 0; i < l->segments_n; i++) {
		struct layout_segment *s = &l->segments[i];

		s->upper_x = l->cells->cell[s->upper].x + s->upper_dx;
		s->lower_x = l->cells->cell[s->lower].x + s->lower_dx;
	}
	return true;
}
