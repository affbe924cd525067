/*
 * The layout at work: nodes and lanes alike are cells, each in the row of its rank, and every edge is a chain of segments
 * from one row to the next.
 */
#pragma once

#include <stdint.h>

#include "model/graph_layout.h"

#define LANE_WIDTH 4

struct layout_cell {
	int width;
	int rank;
	size_t at; /* its place in its row */
	int x;
};

/* Per cell, its segments on one side. */
struct layout_sides {
	size_t *first; /* n + 1 */
	size_t *segments;
};

struct layout_cells {
	size_t n; /* nodes first, then lanes */
	struct layout_cell *cell;
	size_t *row_first; /* ranks_n + 1, into: */
	size_t *row;       /* cells, rank by rank, from left to right */
	struct layout_sides above, below;
};

static inline bool cell_is_lane(const struct layout *l, size_t cell)
{
	return cell >= l->nodes_n;
}

static inline size_t row_length(const struct layout *l, size_t rank)
{
	return l->cells->row_first[rank + 1] - l->cells->row_first[rank];
}

/* graph_order.c: who stands beside whom. False: the arena has failed. */
bool layout_order(struct layout *l) HX_MUST_CHECK;
/* graph_place.c: x of every cell, then of the ends of every segment. */
bool layout_place_x(struct layout *l) HX_MUST_CHECK;
