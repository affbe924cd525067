/* See graph_layout.h: ranks, cells, and y. */
#include "model/graph_layout.h"

#include "model/graph_cells.h"

#define GAP_MIN 34
#define GAP_MAX 110
#define GAP_PER_SLANT 9 /* a way that goes so much to the side wants a pixel more of height */

/* ---- ranks ---- */

static size_t upper_of(const struct layout_edge *e)
{
	return e->way == LAYOUT_UP ? e->to : e->from;
}

static size_t lower_of(const struct layout_edge *e)
{
	return e->way == LAYOUT_UP ? e->from : e->to;
}

/* Per node, the edges that leave it downwards; loose ones are not among them. */
struct downwards {
	size_t *first; /* nodes_n + 1 */
	size_t *edges;
	size_t *unranked; /* how many come from above and are not ranked yet */
	size_t *order;    /* nodes, those above before those below */
};

static bool find_downwards(const struct layout *l, struct downwards *d)
{
	d->first = arena_zalloc(l->arena, (l->nodes_n + 2) * sizeof *d->first);
	d->edges = arena_alloc(l->arena, l->edges_n * sizeof *d->edges);
	d->order = arena_alloc(l->arena, l->nodes_n * sizeof *d->order);
	d->unranked = arena_zalloc(l->arena, l->nodes_n * sizeof *d->unranked);
	if (l->arena->failed)
		return false;
	for (size_t i = 0; i < l->edges_n; i++)
		if (l->edges[i].way != LAYOUT_LOOSE) {
			d->first[upper_of(&l->edges[i]) + 2]++;
			d->unranked[lower_of(&l->edges[i])]++;
		}
	for (size_t i = 2; i < l->nodes_n + 2; i++)
		d->first[i] += d->first[i - 1];
	/* first[i + 1] is where the next edge of i goes, and at the end where those of i + 1 begin. */
	for (size_t i = 0; i < l->edges_n; i++)
		if (l->edges[i].way != LAYOUT_LOOSE)
			d->edges[d->first[upper_of(&l->edges[i]) + 1]++] = i;
	return true;
}

/* The longest path from above: a node is ranked when all above it are. */
static void rank_by_path(struct layout *l, const struct downwards *d)
{
	size_t n = 0;

	for (size_t i = 0; i < l->nodes_n; i++)
		if (d->unranked[i] == 0)
			d->order[n++] = i;
	for (size_t i = 0; i < n; i++)
		for (size_t k = d->first[d->order[i]]; k < d->first[d->order[i] + 1]; k++) {
			size_t lower = lower_of(&l->edges[d->edges[k]]);

			if (l->nodes[lower].rank <= l->nodes[d->order[i]].rank)
				l->nodes[lower].rank = l->nodes[d->order[i]].rank + 1;
			if (--d->unranked[lower] == 0)
				d->order[n++] = lower;
		}
	ASSERT(n == l->nodes_n);
}

static void sink_low_ones(struct layout *l, const struct downwards *d)
{
	for (size_t i = l->nodes_n; i > 0; i--) {
		size_t node = d->order[i - 1];
		int highest = -1;

		for (size_t k = d->first[node]; l->nodes[node].low && k < d->first[node + 1]; k++) {
			int rank = l->nodes[lower_of(&l->edges[d->edges[k]])].rank;

			highest = highest < 0 || rank < highest ? rank : highest;
		}
		if (highest > 0)
			l->nodes[node].rank = highest - 1;
	}
}

static int span_of(const struct layout *l, const struct layout_edge *e)
{
	return l->nodes[lower_of(e)].rank - l->nodes[upper_of(e)].rank;
}

/* A loose edge between two of one rank has no gap to go through: it is cut. */
static void settle_loose_ones(struct layout *l)
{
	for (size_t i = 0; i < l->edges_n; i++) {
		struct layout_edge *e = &l->edges[i];

		if (e->way == LAYOUT_LOOSE)
			e->way = l->nodes[e->from].rank < l->nodes[e->to].rank ? LAYOUT_DOWN : LAYOUT_UP;
		e->cut = span_of(l, e) <= 0;
	}
}

/* The longest ones go first, all of one length together: what is drawn does not depend on who came first. */
static bool cut_long_ones(struct layout *l)
{
	size_t *lanes = arena_zalloc(l->arena, (l->ranks_n + 1) * sizeof *lanes), longest, sum = 0;

	if (!lanes)
		return false;
	for (size_t i = 0; i < l->edges_n; i++)
		if (!l->edges[i].cut)
			lanes[span_of(l, &l->edges[i])] += (size_t)span_of(l, &l->edges[i]) - 1;
	for (longest = 1; longest < l->ranks_n && sum + lanes[longest + 1] <= LAYOUT_LANES_MAX; longest++)
		sum += lanes[longest + 1];
	for (size_t i = 0; i < l->edges_n; i++)
		if (span_of(l, &l->edges[i]) > (int)longest)
			l->edges[i].cut = true;
	return true;
}

bool layout_rank(struct layout *l)
{
	struct downwards d;

	if (!find_downwards(l, &d))
		return false;
	rank_by_path(l, &d);
	sink_low_ones(l, &d);
	l->ranks_n = 0;
	for (size_t i = 0; i < l->nodes_n; i++)
		if ((size_t)l->nodes[i].rank >= l->ranks_n)
			l->ranks_n = (size_t)l->nodes[i].rank + 1;
	settle_loose_ones(l);
	return cut_long_ones(l);
}

/* ---- cells ---- */

static int dx_of(const struct layout *l, size_t node, int dx)
{
	const struct layout_node *n = &l->nodes[node];

	return dx == LAYOUT_ANYWHERE ? (n->ports_from + n->ports_to) / 2 : dx;
}

static bool allocate_cells(struct layout *l)
{
	struct layout_cells *c = l->cells = arena_zalloc(l->arena, sizeof *c);
	size_t lanes = 0;

	if (!c)
		return false;
	l->segments_n = 0;
	for (size_t i = 0; i < l->edges_n; i++)
		if (!l->edges[i].cut) {
			l->segments_n += (size_t)span_of(l, &l->edges[i]);
			lanes += (size_t)span_of(l, &l->edges[i]) - 1;
		}
	l->segments = arena_zalloc(l->arena, l->segments_n * sizeof *l->segments);
	c->cell = arena_zalloc(l->arena, (l->nodes_n + lanes) * sizeof *c->cell);
	c->row = arena_zalloc(l->arena, (l->nodes_n + lanes) * sizeof *c->row);
	c->row_first = arena_zalloc(l->arena, (l->ranks_n + 2) * sizeof *c->row_first);
	c->above.first = arena_zalloc(l->arena, (l->nodes_n + lanes + 2) * sizeof *c->above.first);
	c->below.first = arena_zalloc(l->arena, (l->nodes_n + lanes + 2) * sizeof *c->below.first);
	c->above.segments = arena_zalloc(l->arena, l->segments_n * sizeof *c->above.segments);
	c->below.segments = arena_zalloc(l->arena, l->segments_n * sizeof *c->below.segments);
	return !l->arena->failed;
}

/* A segment for each gap, with a lane in each rank between. */
static void chain_edge(struct layout *l, struct layout_edge *e, size_t *segments_n)
{
	size_t upper = upper_of(e), lower = lower_of(e);
	int upper_dx = e->way == LAYOUT_UP ? e->to_dx : e->from_dx;
	int lower_dx = e->way == LAYOUT_UP ? e->from_dx : e->to_dx;

	e->first = *segments_n;
	e->n = e->cut ? 0 : (size_t)span_of(l, e);
	for (size_t i = 0; i < e->n; i++) {
		struct layout_segment *s = &l->segments[(*segments_n)++];

		s->upper_free = i == 0 && upper_dx == LAYOUT_ANYWHERE;
		s->lower_free = i + 1 == e->n && lower_dx == LAYOUT_ANYWHERE;
		s->upper = i == 0 ? upper : l->cells->n - 1;
		s->upper_dx = i == 0 ? dx_of(l, upper, upper_dx) : LANE_WIDTH / 2;
		s->lower = i + 1 == e->n ? lower : l->cells->n;
		s->lower_dx = i + 1 == e->n ? dx_of(l, lower, lower_dx) : LANE_WIDTH / 2;
		if (i + 1 < e->n)
			l->cells->cell[l->cells->n++] = (struct layout_cell){.width = LANE_WIDTH,
									     .rank = l->nodes[upper].rank + (int)i + 1};
	}
}

static void find_side(const struct layout *l, bool above, struct layout_sides *side)
{
	for (size_t i = 0; i < l->segments_n; i++)
		side->first[(above ? l->segments[i].lower : l->segments[i].upper) + 2]++;
	for (size_t i = 2; i < l->cells->n + 2; i++)
		side->first[i] += side->first[i - 1];
	for (size_t i = 0; i < l->segments_n; i++)
		side->segments[side->first[(above ? l->segments[i].lower : l->segments[i].upper) + 1]++] = i;
}

static void find_rows(const struct layout *l)
{
	struct layout_cells *c = l->cells;

	for (size_t i = 0; i < c->n; i++)
		c->row_first[c->cell[i].rank + 2]++;
	for (size_t r = 2; r < l->ranks_n + 2; r++)
		c->row_first[r] += c->row_first[r - 1];
	for (size_t i = 0; i < c->n; i++) {
		size_t *next = &c->row_first[c->cell[i].rank + 1];

		c->row[*next] = i;
		(*next)++;
	}
	for (size_t r = 0; r < l->ranks_n; r++)
		for (size_t i = c->row_first[r]; i < c->row_first[r + 1]; i++)
			c->cell[c->row[i]].at = i - c->row_first[r];
}

static bool make_cells(struct layout *l)
{
	size_t segments_n = 0;

	if (!allocate_cells(l))
		return false;
	for (size_t i = 0; i < l->nodes_n; i++)
		l->cells->cell[i] = (struct layout_cell){.width = l->nodes[i].width, .rank = l->nodes[i].rank};
	l->cells->n = l->nodes_n;
	for (size_t i = 0; i < l->edges_n; i++)
		chain_edge(l, &l->edges[i], &segments_n);
	find_side(l, /* above= */ true, &l->cells->above);
	find_side(l, /* above= */ false, &l->cells->below);
	find_rows(l);
	return true;
}

/* ---- y ---- */

/* The gap below a rank: higher where ways go far to the side, so that they do not lie flat. */
static int gap_below(const struct layout *l, size_t rank)
{
	const struct layout_cells *c = l->cells;
	int slant = 0;

	for (size_t i = c->row_first[rank]; i < c->row_first[rank + 1]; i++)
		for (size_t k = c->below.first[c->row[i]]; k < c->below.first[c->row[i] + 1]; k++) {
			const struct layout_segment *s = &l->segments[c->below.segments[k]];
			int dx = s->lower_x > s->upper_x ? s->lower_x - s->upper_x : s->upper_x - s->lower_x;

			slant = dx > slant ? dx : slant;
		}
	return GAP_MIN + slant / GAP_PER_SLANT > GAP_MAX ? GAP_MAX : GAP_MIN + slant / GAP_PER_SLANT;
}

static bool place_y(struct layout *l)
{
	int y = 0;

	l->rank_top = arena_zalloc(l->arena, l->ranks_n * sizeof *l->rank_top);
	l->rank_bottom = arena_zalloc(l->arena, l->ranks_n * sizeof *l->rank_bottom);
	if (l->arena->failed)
		return false;
	for (size_t i = 0; i < l->nodes_n; i++) {
		int *height = &l->rank_bottom[l->nodes[i].rank];

		*height = l->nodes[i].height > *height ? l->nodes[i].height : *height;
	}
	for (size_t r = 0; r < l->ranks_n; r++) {
		l->rank_top[r] = y;
		l->rank_bottom[r] += y;
		y = l->rank_bottom[r] + gap_below(l, r);
	}
	l->height = l->ranks_n ? l->rank_bottom[l->ranks_n - 1] : 0;
	return true;
}

static void place_nodes(struct layout *l)
{
	l->width = 0;
	for (size_t i = 0; i < l->nodes_n; i++) {
		struct layout_node *n = &l->nodes[i];
		int spare = l->rank_bottom[n->rank] - l->rank_top[n->rank] - n->height;

		n->x = l->cells->cell[i].x;
		n->y = l->rank_top[n->rank] + (n->align == LAYOUT_TOP      ? 0
					       : n->align == LAYOUT_BOTTOM ? spare
									   : spare / 2);
		l->width = n->x + n->width > l->width ? n->x + n->width : l->width;
	}
	for (size_t i = l->nodes_n; i < l->cells->n; i++)
		if (l->cells->cell[i].x + LANE_WIDTH > l->width)
			l->width = l->cells->cell[i].x + LANE_WIDTH;
}

bool layout_place(struct layout *l)
{
	if (!make_cells(l) || !layout_order(l) || !layout_place_x(l) || !place_y(l))
		return false;
	place_nodes(l);
	return true;
}
