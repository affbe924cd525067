/*
 * Who stands beside whom in a rank, so that ways cross little: each row is sorted by where its neighbours in the next row
 * are on average, down and up in turn, then neighbours change places where that is better, and the order with the fewest
 * crossings is kept. Equal averages keep their order,
 * so that the text of a definition decides where nothing else does.
 */
#include <stdlib.h>
#include <string.h>

#include "model/graph_cells.h"

#define ROUNDS 12
#define ROUNDS_OF_MANY 2
#define SWAPS 4
#define MANY_SEGMENTS 4000
#define STRIDE 1024 /* from one place in a row to the next */

struct sorted {
	int64_t key;
	size_t at;
	size_t cell;
};

struct ends {
	int dx;
	size_t at;
};

struct ordering {
	struct layout *l;
	struct sorted *sorted; /* of one row */
	struct ends *ends;     /* of the segments below one cell */
	uint64_t *tree;        /* of one row: how many ways end there, as a Fenwick tree */
	size_t *best;          /* rows */
};

static int by_key(const void *a, const void *b)
{
	const struct sorted *x = a, *y = b;

	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	return (x->at > y->at) - (x->at < y->at);
}

static int by_end(const void *a, const void *b)
{
	const struct ends *x = a, *y = b;

	if (x->dx != y->dx)
		return x->dx < y->dx ? -1 : 1;
	return (x->at > y->at) - (x->at < y->at);
}

/* ---- crossings ---- */

static void tree_add(uint64_t *tree, size_t n, size_t at)
{
	for (size_t i = at + 1; i <= n; i += i & -i)
		tree[i]++;
}

static uint64_t tree_sum_below(const uint64_t *tree, size_t at)
{
	uint64_t sum = 0;

	for (size_t i = at; i > 0; i -= i & -i)
		sum += tree[i];
	return sum;
}

/* Between a rank and the next one: of each way, how many that began before it end after it. */
static uint64_t crossings_below(struct ordering *o, size_t rank)
{
	const struct layout_cells *c = o->l->cells;
	size_t length = row_length(o->l, rank + 1);
	uint64_t crossings = 0, ended = 0;

	memset(o->tree, 0, (length + 1) * sizeof *o->tree);
	for (size_t i = c->row_first[rank]; i < c->row_first[rank + 1]; i++) {
		size_t cell = c->row[i], n = 0;

		for (size_t k = c->below.first[cell]; k < c->below.first[cell + 1]; k++) {
			const struct layout_segment *s = &o->l->segments[c->below.segments[k]];

			o->ends[n++] = (struct ends){s->upper_dx, c->cell[s->lower].at};
		}
		if (n > 1)
			qsort(o->ends, n, sizeof *o->ends, by_end);
		for (size_t k = 0; k < n; k++) {
			crossings += ended++ - tree_sum_below(o->tree, o->ends[k].at + 1);
			tree_add(o->tree, length, o->ends[k].at);
		}
	}
	return crossings;
}

static uint64_t crossings(struct ordering *o)
{
	uint64_t sum = 0;

	for (size_t r = 0; r + 1 < o->l->ranks_n; r++)
		sum += crossings_below(o, r);
	return sum;
}

/* ---- sweeps ---- */

/* Where in its row a way touches a cell. */
static int64_t touch(const struct layout_cell *cell, int dx)
{
	return (int64_t)cell->at * STRIDE + (cell->width > 0 ? (int64_t)dx * STRIDE / cell->width : 0);
}

/* Where the other end of a segment touches. */
static int64_t other_end(const struct layout *l, size_t segment, bool above)
{
	const struct layout_segment *s = &l->segments[segment];

	return above ? touch(&l->cells->cell[s->upper], s->upper_dx) : touch(&l->cells->cell[s->lower], s->lower_dx);
}

static void sort_row(struct ordering *o, size_t rank, bool by_above)
{
	struct layout_cells *c = o->l->cells;
	const struct layout_sides *side = by_above ? &c->above : &c->below;
	size_t *row = c->row + c->row_first[rank], n = row_length(o->l, rank);
	size_t there = row_length(o->l, by_above ? rank - 1 : rank + 1);

	for (size_t i = 0; i < n; i++) {
		size_t first = side->first[row[i]], end = side->first[row[i] + 1];
		int64_t sum = 0;

		for (size_t k = first; k < end; k++)
			sum += other_end(o->l, side->segments[k], by_above);
		/* One that nothing ties keeps its place, in proportion. */
		o->sorted[i].key = end > first ? sum / (int64_t)(end - first)
					       : (int64_t)(i * 2 + 1) * STRIDE * (int64_t)there / (int64_t)(n * 2);
		o->sorted[i].at = i;
		o->sorted[i].cell = row[i];
	}
	qsort(o->sorted, n, sizeof *o->sorted, by_key);
	for (size_t i = 0; i < n; i++) {
		row[i] = o->sorted[i].cell;
		c->cell[row[i]].at = i;
	}
}

static void keep_if_better(struct ordering *o, uint64_t *fewest)
{
	uint64_t now = crossings(o);

	if (now >= *fewest)
		return;
	*fewest = now;
	memcpy(o->best, o->l->cells->row, o->l->cells->n * sizeof *o->best);
}

/* How many crossings fewer there are when b stands before a, which now stands before it. */
static int64_t gain_on_side(const struct layout *l, size_t a, size_t b, bool above)
{
	const struct layout_sides *side = above ? &l->cells->above : &l->cells->below;
	int64_t gain = 0;

	for (size_t i = side->first[a]; i < side->first[a + 1]; i++)
		for (size_t k = side->first[b]; k < side->first[b + 1]; k++) {
			int64_t of_a = other_end(l, side->segments[i], above);
			int64_t of_b = other_end(l, side->segments[k], above);

			gain += (of_a > of_b) - (of_a < of_b);
		}
	return gain;
}

/* What averages do not see: two neighbours that had better change places. */
static void swap_neighbours(struct ordering *o)
{
	struct layout_cells *c = o->l->cells;

	for (size_t r = 0; r < o->l->ranks_n; r++)
		for (size_t i = c->row_first[r]; i + 1 < c->row_first[r + 1]; i++) {
			size_t a = c->row[i], b = c->row[i + 1];

			if (gain_on_side(o->l, a, b, true) + gain_on_side(o->l, a, b, false) <= 0)
				continue;
			c->row[i] = b;
			c->row[i + 1] = a;
			c->cell[b].at--;
			c->cell[a].at++;
		}
}

static void graph_order_sweep(struct ordering *o)
{
	bool many = o->l->segments_n > MANY_SEGMENTS;
	size_t rounds = many ? ROUNDS_OF_MANY : ROUNDS;
	uint64_t fewest = UINT64_MAX;

	keep_if_better(o, &fewest);
	for (size_t round = 0; round < rounds && fewest > 0; round++) {
		for (size_t r = 1; r < o->l->ranks_n; r++)
			sort_row(o, r, /* by_above= */ true);
		keep_if_better(o, &fewest);
		for (size_t r = o->l->ranks_n - 1; r > 0; r--)
			sort_row(o, r - 1, /* by_above= */ false);
		keep_if_better(o, &fewest);
		for (size_t i = 0; i < SWAPS && !many; i++)
			swap_neighbours(o);
		keep_if_better(o, &fewest);
	}
}

bool layout_order(struct layout *l)
{
	struct layout_cells *c = l->cells;
	struct ordering o = {.l = l};

	o.sorted = arena_alloc(l->arena, c->n * sizeof *o.sorted);
	o.ends = arena_alloc(l->arena, l->segments_n * sizeof *o.ends);
	o.tree = arena_alloc(l->arena, (c->n + 1) * sizeof *o.tree);
	o.best = arena_alloc(l->arena, c->n * sizeof *o.best);
	if (l->arena->failed || l->ranks_n == 0)
		return !l->arena->failed;
	graph_order_sweep(&o);
	memcpy(c->row, o.best, c->n * sizeof *c->row);
	for (size_t r = 0; r < l->ranks_n; r++)
		for (size_t i = c->row_first[r]; i < c->row_first[r + 1]; i++)
			c->cell[c->row[i]].at = i - c->row_first[r];
	return true;
}
