/*
 * What of a task counts, for the simulator (sim/fingerprint.h): all of it, but for what is named here.
 *
 * Two tasks are in the same state when their bytes are the same. A field that nobody has thought of counts by the bytes that it
 * has: to forget one costs states, and never makes one state of two that differ. Named, in the order in which they stand in
 * the struct, are the fields whose bytes are not what they mean:
 *
 *   IGNORED   it decides nothing; the reason stands beside it
 *   FRESH     an id that nobody else was given: counts as whether there is one
 *   OP        a fresh id under which a unit may be looked up: counts as whether there is one, and whether that unit has landed
 *   MADE      the id of a subject that was made on the way, one of several: counts as its place among them
 *   TEXT      const char *, counts by its text; NULL is none
 *   SLICE     struct slice, counts by its bytes; .p NULL is none
 *   KEY       struct slice, the key of a call: the same, without the fresh id at the end of a question's (flow/call_key.h)
 *   INNER     a struct, or an array of them, with a shape of its own
 *   OBJECT    a pointer to a struct with a shape of its own; NULL is none
 *   TASK      a task, which counts as its kind says; what stands after its end in the same memory is an earlier one's
 *
 * A pointer that is not named counts as an address. That is right for whatever is there for the whole walk.
 *
 * The gaps between fields count, too. A struct that a function returns by value has in them what was on the stack, which may be
 * another in the next walk: such a one has no gaps, or is filled where it stands.
 */
#pragma once

#include <stddef.h>

enum part_kind {
	PART_IGNORED,
	PART_FRESH,
	PART_OP,
	PART_MADE,
	PART_TEXT,
	PART_SLICE,
	PART_KEY,
	PART_INNER,
	PART_OBJECT,
	PART_TASK,
};

struct task_shape;

struct task_part {
	enum part_kind kind;
	unsigned offset, size;
	const struct task_shape *shape; /* INNER, OBJECT */
	const char *name;
};

/* Of a struct of any kind. */
struct task_shape {
	unsigned size;
	unsigned parts_n;
	const struct task_part *parts;
	/* In a copy: makes zero what decides nothing any more where the task stands. May be NULL. */
	void (*forget)(void *copy);
};

/* PART(kind, type, field…): up to 8 fields that stand one after the other. PART_WITH: one with a shape of its own. */
/* clang-format off */
#define PART_WITH(kind, type, field, shape) {PART_##kind, offsetof(type, field), sizeof((type *)0)->field, shape, #field}
/* A task that stands last, in a union with others: the rest of that memory is an earlier one's. */
#define PART_LAST(kind, type, field) {PART_##kind, offsetof(type, field), sizeof(type) - offsetof(type, field), NULL, #field}
/* clang-format on */
#define PART(kind, type, ...)                                                                                          \
	PART_PICK(__VA_ARGS__, PART_8, PART_7, PART_6, PART_5, PART_4, PART_3, PART_2, PART_1, )                       \
	(kind, type, __VA_ARGS__)
#define PART_PICK(a, b, c, d, e, f, g, h, name, ...) name
#define PART_1(kind, type, field) PART_WITH(kind, type, field, NULL)
#define PART_2(kind, type, field, ...) PART_1(kind, type, field), PART_1(kind, type, __VA_ARGS__)
#define PART_3(kind, type, field, ...) PART_1(kind, type, field), PART_2(kind, type, __VA_ARGS__)
#define PART_4(kind, type, field, ...) PART_1(kind, type, field), PART_3(kind, type, __VA_ARGS__)
#define PART_5(kind, type, field, ...) PART_1(kind, type, field), PART_4(kind, type, __VA_ARGS__)
#define PART_6(kind, type, field, ...) PART_1(kind, type, field), PART_5(kind, type, __VA_ARGS__)
#define PART_7(kind, type, field, ...) PART_1(kind, type, field), PART_6(kind, type, __VA_ARGS__)
#define PART_8(kind, type, field, ...) PART_1(kind, type, field), PART_7(kind, type, __VA_ARGS__)

/* SHAPE(type, forget, part…): the initialiser of a const struct task_shape. forget: see above, NULL where all counts always. */
#define SHAPE(type, forget, ...)                                                                                       \
	{                                                                                                              \
		sizeof(type), sizeof((const struct task_part[]){__VA_ARGS__}) / sizeof(struct task_part),              \
			(const struct task_part[]){__VA_ARGS__}, forget                                                \
	}
