/*
 * A layered layout, from above to below: boxes of given sizes on ranks, and the ways between them.
 *
 *   rank 0        ┌──────┐            Boxes of one rank stand side by side and never overlap.
 *                 └┬────┬┘            A way bends only in the gap between two ranks; where it passes a rank, it has a
 *   gap            │     ╲            lane of its own there. So no way ever crosses a box, and only ways cross ways.
 *   rank 1      ┌──┴──┐   │ lane
 *               └──┬──┘   │
 *   gap            │     ╱
 *   rank 2        ┌┴────┴┐
 *                 └──────┘
 *
 *   layout_rank    ranks: the longest path from above. Known then: which way each edge goes, and which are cut
 *   layout_place   order in the ranks (barycentres, the best of some sweeps), then x, then y, then where edges touch
 *
 * All is whole numbers and the order of the input: the same picture everywhere. Bounded: where lanes would be more than
 * LAYOUT_LANES_MAX the longest edges are cut, that is left out, and whoever draws says at their ends where they lead.
 */
#pragma once

#include <stddef.h>

#include "base/arena.h"

#define LAYOUT_LANES_MAX 4000
#define LAYOUT_ANYWHERE (-1)

enum layout_align { LAYOUT_TOP, LAYOUT_MIDDLE, LAYOUT_BOTTOM };
/* LOOSE: as the ranks have it, on which it has no influence; DOWN or UP after layout_rank(). The others make no circle. */
enum layout_way { LAYOUT_DOWN, LAYOUT_UP, LAYOUT_LOOSE };

struct layout_node {
	int rank; /* the least that it may have, then the one that it has */
	bool low; /* directly above the highest of those below it, not directly below the lowest of those above */
	/* Wanted by layout_place: */
	int width, height;
	int ports_from, ports_to; /* between which edges touch it, from its left side */
	enum layout_align align;  /* in a rank that is higher than it */
	/* The result: */
	int x, y;
};

struct layout_edge {
	size_t from, to;
	enum layout_way way;
	/* Wanted by layout_place: where it touches, from the left side of each, or LAYOUT_ANYWHERE. */
	int from_dx, to_dx;
	/* The result: */
	bool cut;
	size_t first, n; /* of layout.segments, from above to below; none when it is cut */
};

/* A piece of an edge, in one gap: from (upper_x, rank_bottom[rank]) to (lower_x, rank_top[rank + 1]). */
struct layout_segment {
	size_t upper, lower; /* cells: nodes, and lanes after them */
	int upper_dx, lower_dx;
	bool upper_free, lower_free; /* where it touches is for the layout to choose */
	int upper_x, lower_x;
};

struct layout {
	struct arena *arena;
	size_t nodes_n, edges_n;
	struct layout_node *nodes;
	struct layout_edge *edges;
	/* The result: */
	size_t ranks_n;
	int *rank_top, *rank_bottom;
	size_t segments_n;
	struct layout_segment *segments;
	int width, height;
	/* Its own: */
	struct layout_cells *cells;
};

/* False: the arena has failed. */
bool layout_rank(struct layout *l) HX_MUST_CHECK;
bool layout_place(struct layout *l) HX_MUST_CHECK;
