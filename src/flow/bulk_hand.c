/* See bulk_hand.h. */
#include "flow/bulk_hand.h"

#include "base/id.h"
#include "base/json_members.h"
#include "base/json_number.h"
#include "base/json_string.h"
#include "base/json_walk.h"
#include "flow/answer.h"
#include "flow/bulk_select.h"
#include "flow/job.h"
#include "flow/shapes.h"
#include "model/text.h"
#include "task/states.h"

enum { HAND_NEW, HAND_READING, HAND_DOING, HAND_LOOKING, HAND_REDRIVING, HAND_RECORDING, HAND_DONE };

#define LOSSES_MAX 5 /* to whoever else changes it: then it is left for later */

/* ---- what an item is told ---- */

/* A member that is a string, decoded; .p NULL: it is not there, or none. */
static struct slice text_member(struct json object, const char *name, struct arena *arena)
{
	struct json value;

	if (!json_find(object, slice_str(name), &value) || json_type(value) != JSON_STRING)
		return slice_of(NULL, 0);
	return json_string_decode(value, arena);
}

static bool request_signal(const struct bulk_spec *spec, struct json arguments, struct arena *arena,
			   struct run_verb_request *rq)
{
	struct json data;

	rq->kind = RUN_EVENT;
	rq->name = text_member(arguments, "event", arena);
	if (json_find(arguments, slice_str("data"), &data))
		rq->data = data.raw;
	rq->own_id = true;
	rq->event_id = slice_str(text_printf(arena, "bulk:%s", id_text("bulk", spec->subject).text));
	return rq->name.n > 0;
}

static bool request_resolve(struct json arguments, struct arena *arena, struct run_verb_request *rq)
{
	struct slice outcome = text_member(arguments, "outcome", arena);
	struct json output;

	rq->kind = RUN_RESOLVE;
	rq->name = text_member(arguments, "step", arena);
	rq->done = slice_is(outcome, "done");
	if (json_find(arguments, slice_str("output"), &output))
		rq->data = output.raw;
	return rq->name.n > 0 && (rq->done || slice_is(outcome, "not_done"));
}

static bool request_migrate(struct json arguments, struct arena *arena, struct run_verb_request *rq,
			    const char **ret_words)
{
	struct json value;
	const char *words = NULL;

	rq->kind = RUN_MIGRATE;
	if (!json_find(arguments, slice_str("definitionVersion"), &value) ||
	    json_int64(value, /* err= */ NULL, &rq->definition_version) || rq->definition_version < 1)
		return false;
	if (!json_find(arguments, slice_str("steps"), &value))
		return true;
	rq->data = run_migrate_renames(value, arena, &words);
	if (words)
		*ret_words = words;
	return rq->data.p;
}

/* Why, for the history; it need not be said. */
static bool read_reason(struct json arguments, struct arena *arena, struct slice *ret_reason)
{
	struct json value;

	if (!json_find(arguments, slice_str("reason"), &value))
		return true;
	*ret_reason = text_member(arguments, "reason", arena);
	return ret_reason->n >= 1 && ret_reason->n <= NOTE_REASON_MAX;
}

static bool has_only(struct json arguments, const char *const *known)
{
	struct json_iter it = json_iter_of(arguments);
	struct json name, value;

	while (json_iter_member(&it, &name, &value))
		if (!slice_in(slice_of(name.raw.p + 1, name.raw.n - 2), known))
			return false;
	return true;
}

bool bulk_request(const struct bulk_spec *spec, struct arena *arena, struct run_verb_request *rq,
		  const char **ret_words)
{
	static const char *const of_signal[] = {"event", "data", NULL},
				 *const of_resolve[] = {"step", "outcome", "output", "reason", NULL},
				 *const of_migrate[] = {"definitionVersion", "steps", NULL}, *const of_none[] = {NULL},
				 *const of_others[] = {"reason", NULL};
	struct json arguments = json_trust(spec->arguments);

	if (slice_is(spec->verb, "signal")) {
		*ret_words = "the arguments of signal are {\"event\": NAME, \"data\": anything}";
		return has_only(arguments, of_signal) && request_signal(spec, arguments, arena, rq);
	}
	if (slice_is(spec->verb, "resolve")) {
		*ret_words =
			"the arguments of resolve are {\"step\": NAME, \"outcome\": \"done\" or \"not_done\", \"output\": anything, \"reason\": TEXT}";
		return has_only(arguments, of_resolve) && request_resolve(arguments, arena, rq) &&
		       read_reason(arguments, arena, &rq->reason);
	}
	if (slice_is(spec->verb, "migrate")) {
		*ret_words =
			"the arguments of migrate are {\"definitionVersion\": N, \"steps\": {\"old name\": \"new name\"}}";
		return has_only(arguments, of_migrate) && request_migrate(arguments, arena, rq, ret_words);
	}
	if (slice_is(spec->kind, "job") || slice_is(spec->kind, "batch")) {
		*ret_words = "this verb has no arguments";
		return has_only(arguments, of_none);
	}
	*ret_words = "the arguments of this verb are {\"reason\": TEXT}, of 1 to 500 bytes";
	rq->kind = slice_is(spec->verb, "cancel") ? RUN_CANCEL : slice_is(spec->verb, "retry") ? RUN_RETRY : RUN_RESUME;
	return has_only(arguments, of_others) && read_reason(arguments, arena, &rq->reason);
}

/* ---- what goes along with the verb ---- */

struct item_along {
	struct run_along run;
	struct batch_along batch;
	struct step_along entity;
	const struct where *where;
	int64_t bulk, n;
	int line; /* of its result, in the unit that was built last; -1: it has none */
};

static void item_add(struct item_along *item, struct unit *unit)
{
	item->line = (int)unit->lines_n;
	bulk_item_ended(unit, item->bulk, item->n, BULK_DONE, slice_of(NULL, 0)); /* mutant: bulk-result-apart */
}

static void run_add(struct run_along *along, const struct run_verb *verb UNUSED, struct unit *unit)
{
	item_add(CONTAINER_OF(along, struct item_along, run), unit);
}

static void batch_add(struct batch_along *along, struct unit *unit)
{
	item_add(CONTAINER_OF(along, struct item_along, batch), unit);
}

static void entity_add(struct step_along *along, const struct entity_step *step UNUSED, const char *status UNUSED,
		       struct unit *unit)
{
	item_add(CONTAINER_OF(along, struct item_along, entity), unit);
}

static void run_won(struct run_along *along UNUSED, const struct unit_result *result UNUSED)
{
}

static void batch_won(struct batch_along *along UNUSED, const struct unit_result *result UNUSED)
{
}

static void entity_won(struct step_along *along UNUSED, const struct unit_result *result UNUSED)
{
}

static bool run_lost(struct run_along *along, const struct unit_result *result)
{
	return result->line == CONTAINER_OF(along, const struct item_along, run)->line;
}

static enum hx_code run_check(struct run_along *along, const struct run_row *row)
{
	const struct item_along *item = CONTAINER_OF(along, const struct item_along, run);
	struct where_subject subject = {.id = row->subject,
					.status = slice_str(row->status),
					.workflow = slice_str(row->machine->definition->name),
					.key = row->key,
					.requester = row->requester,
					.parent = row->parent,
					.created_at = row->created_at,
					.started_at = row->started_at,
					.completed_at = row->completed_at,
					.updated_at = row->updated_at,
					.attributes = json_trust(row->attributes)};

	if (!where_holds(item->where, &subject)) /* mutant: bulk-not-asked-again -> if (0) */
		return HX_NO_LONGER_MATCHES;
	return HX_OK;
}

/* ---- item after item ---- */

static void hand_next(struct bulk_hand *h, const struct answer *answer);

static bool hand_asks_unit(const struct bulk_hand *h)
{
	struct unit unit;
	struct ask ask = {.unit = &unit};

	h->verb.task.kind->ask(&h->verb.task, &ask);
	return ask.kind == ASK_COMMIT;
}

/*
 * The verb goes on as long as it asks for units. One that waits for something else (a definition that is being
 * brought) begins again later.
 */
static void hand_go(struct bulk_hand *h, const struct answer *answer)
{
	h->verb.task.kind->take(&h->verb.task, answer);
	if (task_is_done(&h->verb.task))
		hand_next(h, answer);
	else if (!hand_asks_unit(h))
		task_end(&h->task, HX_BUSY);
}

static enum where_kind hand_of(const struct bulk_hand *h)
{
	return bulk_noun(h->row.spec.kind)->of;
}

/* What is told of an item, and the request of its verb, both as new. NULL: there is no room, and the hand has ended. */
static struct run_verb_request *hand_request(struct bulk_hand *h)
{
	struct run_verb_request *rq = arena_zalloc(h->arena, sizeof *rq);
	const char *words;

	h->along = arena_zalloc(h->arena, sizeof *h->along);
	if (!rq || !h->along) {
		task_end(&h->task, HX_TOO_LARGE);
		return NULL;
	}
	*h->along = (struct item_along){.run = {.add = run_add, .won = run_won, .lost = run_lost, .check = run_check},
					.batch = {.add = batch_add, .won = batch_won},
					.entity = {.add = entity_add, .won = entity_won},
					.where = h->where,
					.bulk = h->bulk,
					.n = h->items[h->at].n,
					.line = -1};
	*rq = (struct run_verb_request){.workspace = h->row.spec.workspace,
					.requester = h->row.spec.requester,
					.subject = h->items[h->at].subject,
					.policy = h->policy->runs,
					.along = &h->along->run};
	(void)bulk_request(&h->row.spec, h->arena, rq, &words); /* it fitted when the bulk was made */
	return rq;
}

static void hand_begin_run(struct bulk_hand *h, const struct answer *answer)
{
	struct run_verb_request *rq = hand_request(h);

	if (!rq)
		return;
	run_verb_init(&h->verb.run, rq, h->arena);
	task_go(&h->task, HAND_DOING);
	hand_go(h, answer);
}

static void hand_look(struct bulk_hand *h, const struct answer *answer)
{
	h->stamp = flow_stamp(answer);
	task_go(&h->task, HAND_LOOKING);
}

static void hand_begin(struct bulk_hand *h, const struct answer *answer)
{
	arena_rewind(h->arena, h->mark); /* the runs may be large, each of them */
	h->losses = 0;
	if (hand_of(h) == WHERE_RUN)
		hand_begin_run(h, answer);
	else
		hand_look(h, answer);
}

static void hand_record(struct bulk_hand *h, const struct answer *answer, enum hx_code code)
{
	h->result = !code ? BULK_UNCHANGED : code == HX_NO_LONGER_MATCHES ? BULK_SKIPPED : BULK_REFUSED;
	h->code = code ? slice_str(hx_code_name(code)) : slice_of(NULL, 0);
	h->stamp = flow_stamp(answer);
	task_go(&h->task, HAND_RECORDING);
}

static void hand_go_on(struct bulk_hand *h, const struct answer *answer)
{
	h->after = h->items[h->at++].n;
	if (h->at < h->items_n)
		hand_begin(h, answer);
	else
		task_end(&h->task, HX_OK);
}

/* It may pass: the item stays open, and the bulk is looked at again. */
static bool may_pass(enum hx_code code)
{
	return code == HX_STORE_UNAVAILABLE || code == HX_OUTCOME_UNKNOWN || code == HX_BUSY ||
	       code == HX_CONFIG_ERROR || code == HX_CONCURRENCY_ERROR || code == HX_NO_MEMORY || code == HX_STOPPING;
}

/*
 * With HX_OK: was the item's result written in the verb's unit? If not, it was so already, or somebody else has done
 * the item.
 */
static bool hand_told(const struct bulk_hand *h)
{
	const struct run_verb *run = &h->verb.run;

	switch (hand_of(h)) {
	case WHERE_RUN:
		return run->changed || (run->duplicate && run->kind != RUN_EVENT);
	case WHERE_BATCH:
		return slice_is(h->row.spec.verb, "cancel") ? h->verb.cancel.changed : h->verb.batch.changed;
	default: /* a claim that is held is resolved by whoever says so first */
		return true;
	}
}

/* Was it refused because it has changed since it was looked at? (A run is looked at by the verb itself.) */
static bool hand_has_changed(const struct bulk_hand *h, enum hx_code code)
{
	bool lost = code == HX_CONCURRENCY_ERROR || code == HX_STALE_FENCE;

	if (code && hand_of(h) == WHERE_ENTITY)               /* whose step says first that its status does not fit */
		lost |= h->verb.entity.version != h->version; /* mutant: bulk-told-of-another -> ; */
	return lost && hand_of(h) != WHERE_RUN;
}

static void hand_next(struct bulk_hand *h, const struct answer *answer)
{
	enum hx_code code = h->verb.task.code;
	bool passes = may_pass(code);

	if (hand_has_changed(h, code) && h->losses++ < LOSSES_MAX) {
		hand_look(h, answer);
		return;
	}
	if (passes || (h->arena->failed && h->at > 0)) {
		h->more = !passes;
		task_end(&h->task, passes ? code : HX_OK);
		return;
	}
	if (!code && hand_told(h)) {
		h->ended += hand_of(h) != WHERE_RUN || h->verb.run.changed;
		hand_go_on(h, answer);
		return;
	}
	hand_record(h, answer, code);
}

/* Lost by the line of its result: whoever has done the item has told so. */
static bool hand_was_late(const struct bulk_hand *h, const struct answer *answer)
{
	return hand_of(h) != WHERE_RUN && answer->result->verdict == UNIT_LOST && h->along->line >= 0 &&
	       answer->result->line == h->along->line;
}

static void hand_did(struct bulk_hand *h, const struct answer *answer)
{
	bool late = hand_was_late(h, answer);

	if (hand_of(h) != WHERE_RUN)
		h->along->line = -1;
	if (late)
		hand_go_on(h, answer);
	else
		hand_go(h, answer);
}

/* ---- batches and entities ---- */

static void hand_begin_batch(struct bulk_hand *h, const struct answer *answer)
{
	struct run_verb_request *rq = hand_request(h);
	struct batch_verb_request *batch = rq ? arena_zalloc(h->arena, sizeof *batch) : NULL;

	if (!batch) {
		task_end(&h->task, HX_TOO_LARGE);
		return;
	}
	if (slice_is(h->row.spec.verb, "cancel")) {
		batch_cancel_init(&h->verb.cancel, rq->workspace, rq->subject, h->policy->batches, h->arena);
		h->verb.cancel.version = h->version;
		h->verb.cancel.along = &h->along->batch;
		h->verb.cancel.leaves = true;
	} else {
		*batch = (struct batch_verb_request){.kind = BATCH_START,
						     .workspace = rq->workspace,
						     .subject = rq->subject,
						     .version = h->version,
						     .policy = h->policy->batches,
						     .along = &h->along->batch};
		batch_verb_init(&h->verb.batch, batch, h->arena);
	}
	task_go(&h->task, HAND_DOING);
	hand_go(h, answer);
}

static void hand_begin_entity(struct bulk_hand *h, const struct answer *answer, const struct where_subject *seen)
{
	const struct entity_machine *machine = h->policy->entity_of(h->policy->context, seen->workflow);
	struct run_verb_request *rq = hand_request(h);
	struct step_request *step = rq ? arena_zalloc(h->arena, sizeof *step) : NULL;

	if (!step) {
		task_end(&h->task, HX_TOO_LARGE);
		return;
	}
	if (!machine || machine->table) {
		hand_record(h, answer, HX_NOT_FOUND);
		return;
	}
	*step = (struct step_request){
		.mode = rq->done ? STEP_RESOLVE_DONE : STEP_RESOLVE_NOT_DONE,
		.ref = {rq->workspace, machine, arena_copy(h->arena, seen->name)},
		.step_key = rq->name,
		.requester = rq->requester,
		.input = json_trust(rq->data.p ? rq->data : slice_str("null")),
		.version = h->version,
		.reason = rq->reason,
		.along = &h->along->entity,
		.workflow_of = h->policy->workflow_of,
		.context = h->policy->context,
	};
	entity_step_init(&h->verb.entity, step, h->arena);
	task_go(&h->task, HAND_DOING);
	hand_go(h, answer);
}

/* ---- what it is before that ---- */

/* The version was read before the row: what passes the guard of that version is what was read. */
enum { LOOK_VERSION, LOOK_ROW };
enum { SEEN_STATUS, SEEN_VERSION }; /* of subject_read() */
#define REDRIVE_LINE_VERSION 0

static bool hand_store_failed(struct bulk_hand *h, const struct answer *answer)
{
	enum unit_verdict verdict = answer->result->verdict;

	if (verdict == UNIT_FAILED || verdict == UNIT_UNKNOWN)
		task_end(&h->task,
			 HX_STORE_UNAVAILABLE); /* the item is open, or has its result: whoever comes next sees */
	return verdict == UNIT_FAILED || verdict == UNIT_UNKNOWN;
}

static void hand_redrive(struct bulk_hand *h, const struct answer *answer)
{
	h->stamp = flow_stamp(answer);
	task_go(&h->task, HAND_REDRIVING);
}

static void hand_looked(struct bulk_hand *h, const struct answer *answer)
{
	const struct db_rows *version = &answer->result->rows[LOOK_VERSION], *row = &answer->result->rows[LOOK_ROW];
	struct where_subject seen;

	if (hand_store_failed(h, answer))
		return;
	if (version->n == 0 || row->n == 0) {
		hand_record(h, answer, HX_NOT_FOUND);
		return;
	}
	seen = search_subject(row, 0);
	h->version = db_cell(version, 0, SEEN_VERSION)->i;
	if (!where_holds(h->where, &seen)) /* mutant: bulk-looks-away -> if (0) */
		hand_record(h, answer, HX_NO_LONGER_MATCHES);
	else if (hand_of(h) == WHERE_BATCH)
		hand_begin_batch(h, answer);
	else if (hand_of(h) == WHERE_ENTITY && seen.held)
		hand_begin_entity(h, answer, &seen);
	else if (slice_is(seen.status, JOB_PARKED) && hand_of(h) == WHERE_JOB)
		hand_redrive(h, answer);
	else
		hand_record(h, answer, HX_WRONG_STATUS);
}

static void build_redriving(const struct bulk_hand *h, struct unit *unit)
{
	const struct bulk_item *item = &h->items[h->at];

	job_redrive_at(unit, &h->stamp, h->row.spec.workspace, item->subject, h->version);
	bulk_item_ended(unit, h->bulk, item->n, BULK_DONE, slice_of(NULL, 0)); /* mutant: bulk-job-result-apart */
}

static void hand_redrove(struct bulk_hand *h, const struct answer *answer)
{
	const struct unit_result *result = answer->result;
	struct unit unit;

	if (hand_store_failed(h, answer))
		return;
	unit_init(&unit, h->stamp.op);
	build_redriving(h, &unit);
	if (result->verdict == UNIT_WON || result->line == (int)unit.lines_n - 1) {
		h->ended += result->verdict == UNIT_WON;
		hand_go_on(h, answer);
	} else if (result->line != REDRIVE_LINE_VERSION) {
		hand_record(h, answer, job_redriven(result));
	} else if (h->losses++ < LOSSES_MAX) {
		hand_look(h, answer);
	} else {
		task_end(&h->task, HX_CONCURRENCY_ERROR);
	}
}

static void build_looking(const struct bulk_hand *h, struct unit *unit)
{
	subject_read(unit, h->items[h->at].subject);
	search_read_one(unit, hand_of(h), h->row.spec.workspace, h->items[h->at].subject);
}

/* Lost: it has a result. Unknown: whoever comes next sees. */
static void hand_recorded(struct bulk_hand *h, const struct answer *answer)
{
	enum unit_verdict verdict = answer->result->verdict;

	if (verdict == UNIT_FAILED || verdict == UNIT_UNKNOWN) {
		task_end(&h->task, HX_STORE_UNAVAILABLE);
		return;
	}
	h->ended += verdict == UNIT_WON;
	hand_go_on(h, answer);
}

static void hand_start(struct bulk_hand *h, const struct answer *answer)
{
	h->stamp = flow_stamp(answer);
	task_go(&h->task, HAND_READING);
}

static void hand_read(struct bulk_hand *h, const struct answer *answer)
{
	const struct db_rows *items = &answer->result->rows[1];

	if (answer->result->verdict != UNIT_WON) {
		task_end(&h->task, HX_STORE_UNAVAILABLE);
		return;
	}
	if (!bulk_row_take(&answer->result->rows[0], h->arena, &h->row) || !slice_is(h->row.state, BULK_RUNNING) ||
	    items->n == 0) {
		task_end(&h->task, HX_OK);
		return;
	}
	h->items_n = items->n;
	h->more = items->n == BULK_PAGE;
	for (size_t i = 0; i < items->n; i++)
		h->items[i] = (struct bulk_item){db_cell(items, i, 0)->i, db_cell(items, i, 1)->i};
	h->where = bulk_where(&h->row.spec, h->arena);
	h->mark = arena_mark(h->arena);
	if (h->where)
		hand_begin(h, answer);
	else
		task_end(&h->task, HX_INTERNAL);
}

static void build_reading(const struct bulk_hand *h, struct unit *unit)
{
	bulk_read(unit, slice_of(NULL, 0), h->bulk);
	bulk_read_open(unit, h->bulk, h->after, h->hand, h->hands);
	if (h->hand == 0)
		bulk_renew(unit, h->bulk);
}

static void build_doing(const struct bulk_hand *h, struct unit *unit)
{
	struct ask ask = {.unit = unit};

	h->verb.task.kind->ask(&h->verb.task, &ask);
	ASSERT(ask.kind == ASK_COMMIT);
}

TASK_UNIT(build_result, struct bulk_hand, h, bulk_item_ended(unit, h->bulk, h->items[h->at].n, h->result, h->code));

static const TASK_STATES(struct bulk_hand) hand_states[] = {
	[HAND_NEW] = {"new", hand_start},
	[HAND_READING] = {"reading", hand_read, build_reading},
	[HAND_DOING] = {"doing an item", hand_did, build_doing},
	[HAND_LOOKING] = {"looking at an item", hand_looked, build_looking},
	[HAND_REDRIVING] = {"redriving a job", hand_redrove, build_redriving},
	[HAND_RECORDING] = {"recording a result", hand_recorded, build_result},
	[HAND_DONE] = {"done"},
};

/* Of a verb that is done nothing counts, and its request is made of the item. */
static void bulk_hand_forget(void *copy)
{
	struct bulk_hand *h = copy;

	if (h->task.at != HAND_DOING)
		memset(&h->verb, 0, sizeof h->verb);
	else if (hand_of(h) == WHERE_RUN)
		h->verb.run.rq = NULL;
}

static const struct task_shape hand_shape = SHAPE(struct bulk_hand, bulk_hand_forget,
	PART(IGNORED, struct bulk_hand, row, where), /* what it says of itself never changes */
	PART(IGNORED, struct bulk_hand, mark), /* of memory */
	PART(TASK, struct bulk_hand, verb),
	PART(IGNORED, struct bulk_hand, along), /* made of the item, and of the unit that is built */
	PART_WITH(INNER, struct bulk_hand, stamp, &stamp_noted_shape),
	PART(TEXT, struct bulk_hand, result),
	PART(SLICE, struct bulk_hand, code));

TASK_KIND_STAMPED(hand_kind, "bulk hand", struct bulk_hand, hand_states, .shape = &hand_shape);

void bulk_hand_init(struct bulk_hand *h, int64_t bulk, int64_t hand, int64_t hands, int64_t after,
		    const struct bulk_policy *policy, struct arena *arena)
{
	*h = (struct bulk_hand){
		.bulk = bulk, .hand = hand, .hands = hands, .after = after, .policy = policy, .arena = arena};
	task_init(&h->task, &hand_kind, /* topic= */ 0);
}
