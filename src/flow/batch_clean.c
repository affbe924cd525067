/* See batch_clean.h for the states. */
#include "flow/batch_clean.h"

#include "flow/answer.h"
#include "flow/backoff.h"
#include "flow/shapes.h"
#include "task/pulse.h"

static void end(struct batch_clean *c, enum hx_code code)
{
	c->failed |= code != HX_OK;
	c->code = code;
	c->at = CLEAN_DONE;
}

static struct lease lease_of(const struct batch_clean *c)
{
	return (struct lease){c->hold.subject, c->hold.fence, c->hold.lease_ms, c->hold.since};
}

static void act_on_next(struct batch_clean *c, const struct answer *answer)
{
	struct lease lease = lease_of(c);

	if (c->next == c->items_n) {
		end(c, HX_OK);
	} else if (!lease_is_trusted(&lease, answer->mono)) {
		end(c, HX_STORE_UNAVAILABLE);
	} else {
		const struct batch_call_item *item = &c->items[c->next];
		int64_t pass = c->hold.fence_floor + c->hold.fence; /* mutant: cleanup-key -> int64_t pass = 0; */

		c->key = batch_item_key(c->hold.subject, item->n, "cleanup", pass, c->arena);
		c->body = batch_call_body(&c->hold, "cleanup", item, c->arena);
		if (c->arena->failed)
			end(c, HX_TOO_LARGE);
		else
			c->at = CLEAN_ACTING;
	}
}

static void take_read(struct batch_clean *c, const struct answer *answer)
{
	const struct db_rows *rows = &answer->result->rows[1];

	if (answer->result->verdict != UNIT_WON) {
		end(c, answer->result->verdict == UNIT_LOST ? HX_STALE_FENCE : HX_STORE_UNAVAILABLE);
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
static void take_acted(struct batch_clean *c, const struct answer *answer)
{
	if (answer->outcome == ACT_CLAIM_LOST) {
		end(c, HX_STALE_FENCE);
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

static void take(struct task *task, const struct answer *answer)
{
	struct batch_clean *c = (struct batch_clean *)task;

	switch (c->at) {
	case CLEAN_NEW:
		c->at = CLEAN_READING;
		break;
	case CLEAN_READING:
		take_read(c, answer);
		break;
	case CLEAN_ACTING:
		take_acted(c, answer);
		break;
	case CLEAN_DONE:
		ASSERT(!"a task that is done takes no answer");
	}
}

static void ask(const struct task *task, struct ask *ask)
{
	const struct batch_clean *c = (const struct batch_clean *)task;

	switch (c->at) {
	case CLEAN_DONE:
		ask->kind = ASK_DONE;
		ask->code = c->code;
		break;
	case CLEAN_ACTING:
		ask->kind = ASK_ACT;
		ask->act = (struct act_call){
			.action = c->hold.machine->definition->cleanup_action,
			.input = c->body,
			.key = c->key,
			.attempt = c->items[c->next].attempt,
			.traceparent = c->hold.trace,
			.lease = lease_of(c),
		};
		break;
	default:
		ask->kind = ASK_COMMIT;
		unit_init(ask->unit, /* op= */ 0);
		item_read_left(ask->unit, &c->hold, c->from, c->from + CLEAN_SLICE);
	}
}

static const char *where(const struct task *task)
{
	static const char *const names[] = {"new", "reading what was left", "cleaning up", "done"};

	return names[((const struct batch_clean *)task)->at];
}

/* The items that it has dealt with. */
static void forget(void *copy)
{
	struct batch_clean *c = copy;

	memset(c->items, 0, c->next * sizeof *c->items);
}

/* clang-format off */
static const struct task_shape shape = SHAPE(struct batch_clean, forget,
	PART_WITH(INNER, struct batch_clean, hold, &batch_hold_shape),
	PART(SLICE, struct batch_clean, why),
	PART_WITH(INNER, struct batch_clean, items, &batch_call_item_shape),
	PART(KEY, struct batch_clean, key), PART(SLICE, struct batch_clean, body));
/* clang-format on */

static const struct task_kind kind = {
	.name = "batch cleanup",
	.size = sizeof(struct batch_clean),
	.take = take,
	.ask = ask,
	.where = where,
	.shape = &shape,
};

void batch_clean_init(struct batch_clean *clean, const struct batch_hold *hold, int64_t from, struct arena *arena)
{
	*clean = (struct batch_clean){.hold = *hold, .from = from, .arena = arena};
	task_init(&clean->task, &kind, /* topic= */ 0);
}
