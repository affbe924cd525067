/*
 * What a task is told apart by: all its bytes, but for what its kind names (task/shape.h).
 *
 * Fresh ids are other numbers in every schedule. So it counts whether there is one; of one that a unit goes by, also whether that
 * unit has landed, which is what a look-up finds; of one that a subject has, its place among the subjects.
 */
#pragma once

#include "task/task.h"

#define FINGERPRINT_OPS_MAX 16384

/* The units that have landed, by their op: a set, part of the state of the world. */
struct fingerprint_ops {
	unsigned n;
	unsigned char landed[FINGERPRINT_OPS_MAX / 8];
};

/* What besides the task has decided its fingerprint. */
enum { FINGERPRINT_OF_OPS = 1, FINGERPRINT_OF_MADE = 2 };

struct sim;

/* What ids are looked up in. */
struct fingerprint_world {
	const struct fingerprint_ops *ops;
	/* How many subjects have a smaller id. NULL: ids count as the numbers that they are. */
	int64_t (*place_of_made)(struct sim *sim, int64_t subject);
	struct sim *sim;
	unsigned *of; /* these are added; may be NULL */
};

void fingerprint_landed(struct fingerprint_ops *ops, int64_t op);
/* The task without its turn, which rises with every answer. */
uint64_t fingerprint_task(const struct task *task, const struct fingerprint_world *world, uint64_t hash);
/* A struct, by its shape. */
uint64_t fingerprint_struct(const void *of, const struct task_shape *shape, const struct fingerprint_world *world,
			    uint64_t hash);
