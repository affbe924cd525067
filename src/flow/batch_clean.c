/* See batch_clean.h for the states. */
#include "flow/batch_clean.h"

#include "flow/backoff.h"
#include "flow/shapes.h"
#include "task/pulse.h"
#include "task/states.h"

enum { CLEAN_NEW, CLEAN_READING, CLEAN_ACTING, CLEAN_DONE };

static void end_slice(struct batch_clean *c, enum hx_code code)
{
	c->failed |= code != HX_OK;
	task_end(&c->task, code);
}

static void act_on_next(struct batch_clean *c, const struct answer *answer)
{
	struct lease lease = batch_lease(&c->hold);

	if (c->next == c->items_n) {
		end_slice(c, HX_OK);
	} else if (!lease_is_trusted(&lease, answer->mono)) {
		end_slice(c, HX_STORE_UNAVAILABLE);
	} else {
		const struct batch_call_item *item = &c->items[c->next];
		int64_t pass = c->hold.fence_floor + c->hold.fence; /* mutant: cleanup-key -> int64_t pass = 0; */

		c->key = batch_item_key(c->hold.subject, item->n, "cleanup", pass, c->arena);
		c->body = batch_call_body(&c->hold, "cleanup", item, c->arena);
		if (c->arena->failed)
			end_slice(c, HX_TOO_LARGE);
		else
			task_go(&c->task, CLEAN_ACTING);
	}
}

static void take_clean_read(struct batch_clean *c, const struct answer *answer)
{
	const struct db_rows *rows = &answer->result->rows[1];

	if (answer->result->verdict != UNIT_WON) {
		end_slice(c, answer->result->verdict == UNIT_LOST ? HX_STALE_FENCE : HX_STORE_UNAVAILABLE);
		return;
	}
	ASSERT(rows->n <= CLEAN_SLICE);
	c->hold.since = answer->sent;
	for (size_t i = 0; i < rows->n; i++) {
		const struct db_value *output = db_cell(rows, i, ITEM_OUTPUT);

		if (output->type == DB_NULL)
			output = db_cell(rows, i, ITEM_LATE);
		c->items[i].n = db_cell(rows, i, ITEM_N)->i;
		c->items[i].attempt = db_cell(rows, i, ITEM_ATTEMPT)->i;
		c->items[i].input = arena_copy(c->arena, db_cell(rows, i, ITEM_INPUT)->s);
		c->items[i].output = output->type == DB_NULL ? slice_of(NULL, 0) : arena_copy(c->arena, output->s);
	}
	c->items_n = rows->n;
	act_on_next(c, answer);
}

/* Also a failure for good: the artifact is there, and somebody has to see to it. */
static void batch_clean_take_acted(struct batch_clean *c, const struct answer *answer)
{
	if (answer->outcome == ACT_CLAIM_LOST) {
		end_slice(c, HX_STALE_FENCE);
		return;
	}
	c->hold.since = answer->lease_since;
	if (answer->outcome != ACT_OK) {
		c->failed = true;
		c->why = arena_copy(c->arena, answer->output);
		c->not_before_ms = backoff_not_before(c->not_before_ms, answer->not_before_ms);
	}
	c->next++;
	act_on_next(c, answer);
}

TASK_UNIT(build_clean_read, struct batch_clean, c, item_read_left(unit, &c->hold, c->from, c->from + CLEAN_SLICE));

static struct act_call batch_clean_call_of(const struct batch_clean *c)
{
	return batch_call(&c->hold, c->hold.machine->definition->cleanup_action, c->body, c->key,
			  c->items[c->next].attempt);
}

static const TASK_STATES(struct batch_clean) clean_states[] = {
	[CLEAN_NEW] = {"new", .then = CLEAN_READING},
	[CLEAN_READING] = {"reading what was left", take_clean_read, build_clean_read},
	[CLEAN_ACTING] = {"cleaning up", batch_clean_take_acted, .act = batch_clean_call_of},
	[CLEAN_DONE] = {"done"},
};

/* The items that it has dealt with. */
static void batch_clean_forget(void *copy)
{
	struct batch_clean *c = copy;

	memset(c->items, 0, c->next * sizeof *c->items);
}

static const struct task_shape clean_shape = SHAPE(struct batch_clean, batch_clean_forget,
	PART_WITH(INNER, struct batch_clean, hold, &batch_hold_shape),
	PART(SLICE, struct batch_clean, why),
	PART_WITH(INNER, struct batch_clean, items, &batch_call_item_shape),
	PART(KEY, struct batch_clean, key), PART(SLICE, struct batch_clean, body));

TASK_KIND(clean_kind, "batch cleanup", struct batch_clean, clean_states, .shape = &clean_shape);

void batch_clean_init(struct batch_clean *clean, const struct batch_hold *hold, int64_t from, struct arena *arena)
{
	*clean = (struct batch_clean){.hold = *hold, .from = from, .arena = arena};
	task_init(&clean->task, &clean_kind, /* topic= */ 0);
}
