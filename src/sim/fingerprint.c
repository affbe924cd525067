/* See fingerprint.h. */
#include "sim/fingerprint.h"

#include <stdalign.h>
#include <string.h>

#include "base/hash.h"
#include "task/shape.h"

#define STRUCT_BYTES_MAX 4096
#define QUESTION "/ask_"

enum { NONE = 1, SOME, LANDED }; /* of pointers and fresh ids */

void fingerprint_landed(struct fingerprint_ops *ops, int64_t op)
{
	unsigned char bit = (unsigned char)(1u << op % 8);

	if (op <= 0 || op >= FINGERPRINT_OPS_MAX || ops->landed[op / 8] & bit)
		return;
	ops->landed[op / 8] |= bit;
	ops->n++;
}

static void depends(const struct fingerprint_world *world, unsigned of)
{
	if (world->of)
		*world->of |= of;
}

/* One that the set has no room for counts as the number that it is. */
static uint64_t mix_op(const struct fingerprint_world *world, int64_t op, uint64_t hash)
{
	if (op < 0 || op >= FINGERPRINT_OPS_MAX)
		return hash_mix(hash, (uint64_t)op);
	if (op == 0)
		return hash_mix(hash, NONE);
	if (world->ops->landed[op / 8] >> op % 8 & 1)
		return hash_mix(hash, LANDED);
	depends(world, FINGERPRINT_OF_OPS);
	return hash_mix(hash, SOME);
}

static struct slice without_ask(struct slice key)
{
	const char *ask = key.p ? memmem(key.p, key.n, QUESTION, strlen(QUESTION)) : NULL;

	return ask ? slice_of(key.p, (size_t)(ask - key.p)) : key;
}

static uint64_t mix_made(const struct fingerprint_world *world, int64_t id, uint64_t hash)
{
	if (id <= 0 || !world->place_of_made)
		return hash_mix(hash, (uint64_t)id);
	depends(world, FINGERPRINT_OF_MADE);
	return hash_mix(hash_mix(hash, SOME), (uint64_t)world->place_of_made(world->sim, id));
}

static uint64_t mix_id(const char *of, enum part_kind kind, const struct fingerprint_world *world, uint64_t hash)
{
	int64_t id;

	memcpy(&id, of, sizeof id);
	if (kind == PART_MADE)
		return mix_made(world, id, hash);
	return kind == PART_OP ? mix_op(world, id, hash) : hash_mix(hash, id ? SOME : NONE);
}

static uint64_t mix_text(const char *of, uint64_t hash)
{
	const char *text;

	memcpy(&text, of, sizeof text);
	return text ? hash_bytes(hash_mix(hash, SOME), text, strlen(text)) : hash_mix(hash, NONE);
}

static uint64_t mix_slice(const char *of, enum part_kind kind, uint64_t hash)
{
	struct slice text;

	memcpy(&text, of, sizeof text);
	if (kind == PART_KEY)
		text = without_ask(text);
	return text.p ? hash_bytes(hash_mix(hash, SOME), text.p, text.n) : hash_mix(hash, NONE);
}

static uint64_t mix_object(const char *of, const struct task_shape *shape, const struct fingerprint_world *world,
			   uint64_t hash)
{
	const void *object;

	memcpy(&object, of, sizeof object);
	return object ? fingerprint_struct(object, shape, world, hash_mix(hash, SOME)) : hash_mix(hash, NONE);
}

/* Of one element, where a part is an array. */
static unsigned size_of(const struct task_part *part)
{
	switch (part->kind) {
	case PART_IGNORED:
	case PART_TASK:
		return part->size;
	case PART_FRESH:
	case PART_OP:
	case PART_MADE:
		return sizeof(int64_t);
	case PART_TEXT:
	case PART_OBJECT:
		return sizeof(void *);
	case PART_SLICE:
	case PART_KEY:
		return sizeof(struct slice);
	case PART_INNER:
		return part->shape->size;
	}
	return 0;
}

static uint64_t mix_element(const char *of, const struct task_part *part, const struct fingerprint_world *world,
			    uint64_t hash)
{
	switch (part->kind) {
	case PART_IGNORED:
		break;
	case PART_FRESH:
	case PART_OP:
	case PART_MADE:
		return mix_id(of, part->kind, world, hash);
	case PART_TEXT:
		return mix_text(of, hash);
	case PART_SLICE:
	case PART_KEY:
		return mix_slice(of, part->kind, hash);
	case PART_INNER:
		return fingerprint_struct(of, part->shape, world, hash);
	case PART_OBJECT:
		return mix_object(of, part->shape, world, hash);
	case PART_TASK:
		return fingerprint_task((const struct task *)(const void *)of, world, hash);
	}
	return hash;
}

static uint64_t mix_part(const char *of, const struct task_part *part, const struct fingerprint_world *world,
			 uint64_t hash)
{
	unsigned size = size_of(part);

	ASSERT(part->size % size == 0);
	for (unsigned at = 0; at < part->size; at += size)
		hash = mix_element(of + at, part, world, hash);
	return hash;
}

/* What is between two parts counts by its bytes. */
static uint64_t mix_parts(const char *of, const struct task_shape *shape, const struct fingerprint_world *world,
			  uint64_t hash)
{
	unsigned at = 0;

	for (unsigned i = 0; i < shape->parts_n; i++) {
		const struct task_part *part = &shape->parts[i];

		ASSERT(part->offset >= at && part->offset + part->size <= shape->size);
		if (part->offset > at)
			hash = hash_bytes(hash, of + at, part->offset - at);
		hash = mix_part(of + part->offset, part, world, hash);
		at = part->offset + part->size;
	}
	return shape->size > at ? hash_bytes(hash, of + at, shape->size - at) : hash;
}

uint64_t fingerprint_struct(const void *of, const struct task_shape *shape, const struct fingerprint_world *world,
			    uint64_t hash)
{
	alignas(max_align_t) char copy[STRUCT_BYTES_MAX];

	ASSERT(shape->size <= sizeof copy);
	memcpy(copy, of, shape->size);
	if (shape->forget)
		shape->forget(copy);
	return mix_parts(copy, shape, world, hash);
}

uint64_t fingerprint_task(const struct task *task, const struct fingerprint_world *world, uint64_t hash)
{
	const struct task_kind *kind = task->kind;
	alignas(max_align_t) char copy[STRUCT_BYTES_MAX];
	struct task *head = (struct task *)(void *)copy;

	if (!kind)
		return hash_mix(hash, NONE);
	ASSERT(kind->size <= sizeof copy);
	memcpy(copy, task, kind->size);
	memset(copy, 0, sizeof *head);
	head->kind = kind;
	head->topic = task->topic;
	head->at = task->at;
	head->code = task->code;
	head->woken = task->woken;
	return kind->shape ? fingerprint_struct(copy, kind->shape, world, hash) : hash_bytes(hash, copy, kind->size);
}
