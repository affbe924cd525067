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

#define LOSSES_MAX 5 /* to whoever else changes a job: then it is left for later */

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
				 *const of_migrate[] = {"definitionVersion", "steps", NULL},
				 *const of_redrive[] = {NULL}, *const of_others[] = {"reason", NULL};
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
	if (slice_is(spec->verb, "redrive")) {
		*ret_words = "redrive has no arguments";
		return has_only(arguments, of_redrive);
	}
	*ret_words = "the arguments of this verb are {\"reason\": TEXT}, of 1 to 500 bytes";
	rq->kind = slice_is(spec->verb, "cancel") ? RUN_CANCEL : slice_is(spec->verb, "retry") ? RUN_RETRY : RUN_RESUME;
	return has_only(arguments, of_others) && read_reason(arguments, arena, &rq->reason);
}

/* ---- what goes along with the verb ---- */

struct item_along {
	struct run_along along;
	const struct where *where;
	int64_t bulk, n;
	int line; /* of its result, in the unit that was built last */
};

static void item_add(struct run_along *along, const struct run_verb *verb UNUSED, struct unit *unit)
{
	struct item_along *item = (struct item_along *)along;

	item->line = (int)unit->lines_n;
	bulk_item_ended(unit, item->bulk, item->n, BULK_DONE, slice_of(NULL, 0)); /* mutant: bulk-result-apart */
}

static void item_won(struct run_along *along UNUSED, const struct unit_result *result UNUSED)
{
}

static bool item_lost(struct run_along *along, const struct unit_result *result)
{
	return result->line == ((const struct item_along *)along)->line;
}

static enum hx_code item_check(struct run_along *along, const struct run_row *row)
{
	const struct item_along *item = (const struct item_along *)along;
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

static void hand_begin_run(struct bulk_hand *h, const struct answer *answer)
{
	struct run_verb_request *rq;
	struct item_along *along;
	const char *words;

	arena_rewind(h->arena, h->mark); /* the runs may be large, each of them */
	rq = arena_zalloc(h->arena, sizeof *rq);
	along = arena_zalloc(h->arena, sizeof *along);
	if (!rq || !along) {
		task_end(&h->task, HX_TOO_LARGE);
		return;
	}
	*along = (struct item_along){
		.along = {.add = item_add, .won = item_won, .lost = item_lost, .check = item_check},
		.where = h->where,
		.bulk = h->bulk,
		.n = h->items[h->at].n,
		.line = -1};
	*rq = (struct run_verb_request){.workspace = h->row.spec.workspace,
					.requester = h->row.spec.requester,
					.subject = h->items[h->at].subject,
					.policy = h->policy,
					.along = &along->along};
	(void)bulk_request(&h->row.spec, h->arena, rq, &words); /* it fitted when the bulk was made */
	run_verb_init(&h->verb, rq, h->arena);
	task_go(&h->task, HAND_DOING);
	h->verb.task.kind->take(&h->verb.task, answer);
	if (task_is_done(&h->verb.task))
		hand_next(h, answer);
}

static void hand_look(struct bulk_hand *h, const struct answer *answer)
{
	h->verb.stamp = flow_stamp(answer);
	task_go(&h->task, HAND_LOOKING);
}

static void hand_begin(struct bulk_hand *h, const struct answer *answer)
{
	h->losses = 0;
	if (bulk_noun(h->row.spec.kind)->of == WHERE_JOB)
		hand_look(h, answer);
	else
		hand_begin_run(h, answer);
}

static void hand_record(struct bulk_hand *h, const struct answer *answer, enum hx_code code)
{
	h->result = !code ? BULK_UNCHANGED : code == HX_NO_LONGER_MATCHES ? BULK_SKIPPED : BULK_REFUSED;
	h->code = code ? slice_str(hx_code_name(code)) : slice_of(NULL, 0);
	h->verb.stamp = flow_stamp(answer);
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

static void hand_next(struct bulk_hand *h, const struct answer *answer)
{
	const struct run_verb *v = &h->verb;
	enum hx_code code = v->task.code;

	if (may_pass(code) || (h->arena->failed && h->at > 0)) {
		h->more = !may_pass(code);
		task_end(&h->task, may_pass(code) ? code : HX_OK);
		return;
	}
	if (!code && (v->changed || (v->duplicate && v->kind != RUN_EVENT))) {
		h->ended += v->changed;
		hand_go_on(h, answer);
		return;
	}
	hand_record(h, answer, code);
}

static void hand_did(struct bulk_hand *h, const struct answer *answer)
{
	h->verb.task.kind->take(&h->verb.task, answer);
	if (task_is_done(&h->verb.task))
		hand_next(h, answer);
}

/* ---- jobs ---- */

/* The version was read before the row: what passes the guard of that version is what was read. */
enum { LOOK_VERSION, LOOK_ROW };
enum { SEEN_STATUS, SEEN_VERSION }; /* of subject_read() */
#define REDRIVE_LINE_VERSION 0

static bool hand_job_failed(struct bulk_hand *h, const struct answer *answer)
{
	enum unit_verdict verdict = answer->result->verdict;

	if (verdict == UNIT_FAILED || verdict == UNIT_UNKNOWN)
		task_end(&h->task,
			 HX_STORE_UNAVAILABLE); /* the item is open, or has its result: whoever comes next sees */
	return verdict == UNIT_FAILED || verdict == UNIT_UNKNOWN;
}

static void hand_looked(struct bulk_hand *h, const struct answer *answer)
{
	const struct db_rows *version = &answer->result->rows[LOOK_VERSION], *row = &answer->result->rows[LOOK_ROW];

	if (hand_job_failed(h, answer))
		return;
	if (version->n == 0 || row->n == 0) {
		hand_record(h, answer, HX_NOT_FOUND);
	} else if (!search_holds(h->where, row, 0)) { /* mutant: bulk-job-not-asked-again -> } else if (0) { */
		hand_record(h, answer, HX_NO_LONGER_MATCHES);
	} else if (!slice_is(search_row_status(row, 0), JOB_PARKED)) {
		hand_record(h, answer, HX_WRONG_STATUS);
	} else {
		h->version = db_cell(version, 0, SEEN_VERSION)->i;
		h->verb.stamp = flow_stamp(answer);
		task_go(&h->task, HAND_REDRIVING);
	}
}

static void build_redriving(const struct bulk_hand *h, struct unit *unit)
{
	const struct bulk_item *item = &h->items[h->at];

	job_redrive_at(unit, &h->verb.stamp, h->row.spec.workspace, item->subject, h->version);
	bulk_item_ended(unit, h->bulk, item->n, BULK_DONE, slice_of(NULL, 0)); /* mutant: bulk-job-result-apart */
}

static void hand_redrove(struct bulk_hand *h, const struct answer *answer)
{
	const struct unit_result *result = answer->result;
	struct unit unit;

	if (hand_job_failed(h, answer))
		return;
	unit_init(&unit, h->verb.stamp.op);
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
	search_read_one(unit, WHERE_JOB, h->row.spec.workspace, h->items[h->at].subject);
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
	h->verb.stamp = flow_stamp(answer);
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
	[HAND_LOOKING] = {"looking at a job", hand_looked, build_looking},
	[HAND_REDRIVING] = {"redriving a job", hand_redrove, build_redriving},
	[HAND_RECORDING] = {"recording a result", hand_recorded, build_result},
	[HAND_DONE] = {"done"},
};

TASK_KIND(hand_kind, "bulk hand", struct bulk_hand, hand_states, .op = offsetof(struct bulk_hand, verb.stamp.op));

void bulk_hand_init(struct bulk_hand *h, int64_t bulk, int64_t hand, int64_t hands, int64_t after,
		    const struct run_policy *policy, struct arena *arena)
{
	*h = (struct bulk_hand){
		.bulk = bulk, .hand = hand, .hands = hands, .after = after, .policy = policy, .arena = arena};
	task_init(&h->task, &hand_kind, /* topic= */ 0);
}
