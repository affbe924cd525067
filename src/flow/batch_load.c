/* See batch_load.h. */
#include "flow/batch_load.h"

#include <string.h>

#include "base/json_string.h"
#include "flow/answer.h"
#include "task/states.h"

#define LOSSES_MAX 10

enum { LOAD_NEW, LOAD_READING, LOAD_CLEARING, LOAD_LOADING, LOAD_LOOKING_UP, LOAD_DONE };
enum { LINE_ACCOUNT, LINE_KEY }; /* of READING, for a new one */

static void end_load(struct batch_load *l, enum hx_code code, const char *detail)
{
	l->detail = detail;
	task_end(&l->task, code);
}

static bool is_new(const struct batch_load *l)
{
	return l->rq->machine != NULL;
}

static bool is_last(const struct batch_load *l)
{
	return l->to == l->total;
}

/* Its own unit then has both ends of the loading. */
static bool is_whole(const struct batch_load *l)
{
	return is_new(l) && l->first && is_last(l);
}

/* ---- slices ---- */

static void batch_load_add_item(struct strbuf *rows, struct json item)
{
	struct json cost, input = json_trust(slice_str("null"));
	bool priced = json_find(item, slice_str("cost"), &cost);

	ASSERT(priced); /* the request was checked */
	(void)json_find(item, slice_str("input"), &input);
	strbuf_addf(rows, "%s[%.*s,", rows->n > 1 ? "," : "", (int)cost.raw.n, cost.raw.p);
	json_quote(input.raw, rows);
	strbuf_add_char(rows, ']');
}

/* As many of the items as belong into one unit. */
static void cut_slice(struct batch_load *l)
{
	struct json item;
	LOCAL_STRBUF(rows, 2 * BATCH_SLICE_BYTES + 8 * BATCH_INPUT_BYTES_MAX);

	strbuf_add_char(&rows, '[');
	for (l->to = l->from; l->to < l->total && l->to - l->from < BATCH_SLICE && rows.n < BATCH_SLICE_BYTES;
	     l->to++) {
		bool there = json_iter_element(&l->rest, &item);

		ASSERT(there);
		batch_load_add_item(&rows, item);
	}
	strbuf_add_char(&rows, ']');
	l->rows = arena_copy(l->arena, strbuf_slice(&rows));
	if (rows.failed || l->arena->failed)
		end_load(l, HX_TOO_LARGE, "there is no memory for so many items at once");
}

/* ---- the batch after it, for whoever tells of it in the very unit ---- */

static void foresee_new(struct batch_load *l)
{
	const struct batch_load_request *rq = l->rq;

	l->row = (struct batch_row){
		.subject = l->hold.subject,
		.account = l->hold.account,
		.status = rq->held ? BATCH_PENDING : BATCH_QUEUED,
		.version = is_whole(l) ? 1 : 3,
		.machine = rq->machine,
		.definition_version = rq->machine->version,
		.needs = -1,
		.loaded = true,
		.total = l->total,
		.due_at = rq->held ? 0 : l->stamp.at.ms,
		.created_at = l->created_at,
		.workspace = rq->workspace,
		.workflow = slice_str(rq->machine->definition->name),
		.requester = rq->requester,
		.trace = rq->trace,
		.key = rq->key,
		.account_name = rq->account,
		.data = rq->data,
		.attributes = rq->attributes,
	};
}

static void start_slice(struct batch_load *l, const struct answer *answer)
{
	l->stamp = flow_stamp(answer);
	task_go(&l->task, LOAD_LOADING);
	cut_slice(l);
	if (is_last(l) && is_new(l)) {
		foresee_new(l);
	} else if (is_last(l)) {
		l->row = l->was;
		l->row.version += 2;
		l->row.fence = l->hold.fence;
		l->row.total = l->total;
	}
}

/* ---- beginning ---- */

/* From the first item on, whatever was begun before. */
static void start_loading(struct batch_load *l, const struct answer *answer, int64_t subject, int64_t account,
			  int64_t fence, int64_t from)
{
	l->hold = (struct batch_hold){
		.subject = subject, .account = account, .fence = fence, .lease_ms = l->rq->policy->lease_ms};
	l->first = true;
	l->from = from;
	l->total = from + l->rq->items_n;
	l->rest = json_iter_of(l->rq->items);
	start_slice(l, answer);
}

static void start_new(struct batch_load *l, const struct answer *answer, int64_t account)
{
	l->created_at = answer->now.ms;
	start_loading(l, answer, answer->more_ids[0], account, /* fence= */ 1, /* from= */ 0);
}

/* The version guards its taking, and with it the fence. */
static void start_more(struct batch_load *l, const struct answer *answer)
{
	if (l->was.total + l->rq->items_n > BATCH_ITEMS_MAX)
		end_load(l, HX_TOO_LARGE, "a batch has at most 1,000,000 items");
	else
		start_loading(l, answer, l->was.subject, l->was.account, l->was.fence + 1, l->was.total);
}

static void read_load_again(struct batch_load *l, enum hx_code code)
{
	task_go(&l->task, LOAD_READING);
	if (l->losses++ == LOSSES_MAX)
		end_load(l, code, NULL);
}

/* ---- what was read ---- */

static bool is_at(const struct batch_row *row, const char *status)
{
	return strcmp(row->status, status) == 0;
}

/* What another has not finished loading does not exist yet, nor is it certain that it ever will. */
static void meet_loader(struct batch_load *l, const struct answer *answer)
{
	if (l->was.past) {
		l->stamp = flow_stamp(answer);
		task_go(&l->task, LOAD_CLEARING);
	} else if (is_new(l)) {
		end_load(l, HX_IN_FLIGHT, "a batch with this key is being loaded at this moment");
	} else {
		end_load(l, HX_CLAIM_FAILED, "items are being added to this batch at this moment");
	}
}

static void batch_load_take_found(struct batch_load *l, const struct answer *answer)
{
	if (is_at(&l->was, BATCH_LOADING)) {
		meet_loader(l, answer);
	} else if (is_new(l)) {
		l->row = l->was;
		end_load(l, l->was.expired ? HX_RUN_EXPIRED : HX_OK,
			 "the batch has ended long ago, and only its key is kept");
	} else if (is_at(&l->was, BATCH_PENDING)) {
		start_more(l, answer);
	} else {
		end_load(l, HX_WRONG_STATUS, "items are added while a batch is held, before it is started");
	}
}

static void take_load_read(struct batch_load *l, const struct answer *answer)
{
	const struct db_rows *rows = answer->result->rows;
	size_t line = is_new(l) ? LINE_KEY : 0;
	bool found;

	if (answer->result->verdict != UNIT_WON) {
		end_load(l, HX_STORE_UNAVAILABLE, NULL);
		return;
	}
	found = (!is_new(l) || l->rq->key.p) && rows[line].n > 0;
	if (found)
		batch_row_take(&rows[line], 0, /* policy= */ NULL, l->arena, &l->was);
	if (l->arena->failed)
		end_load(l, HX_TOO_LARGE, NULL);
	else if (found)
		batch_load_take_found(l, answer);
	else if (!is_new(l))
		end_load(l, HX_NOT_FOUND, "there is no such batch");
	else if (rows[LINE_ACCOUNT].n == 0)
		end_load(l, HX_NOT_FOUND, "there is no such account");
	else
		start_new(l, answer, db_cell(&rows[LINE_ACCOUNT], 0, 0)->i);
}

/* ---- what was written ---- */

static void take_won(struct batch_load *l, const struct answer *answer)
{
	if (is_last(l)) {
		l->changed = true;
		end_load(l, HX_OK, NULL);
	} else if (l->rq->until.ns && answer->mono.ns >= l->rq->until.ns) {
		end_load(l, HX_STORE_UNAVAILABLE, "the store took longer than a request may; nothing was loaded");
	} else {
		l->first = false;
		l->from = l->to;
		start_slice(l, answer);
	}
}

/* The first takes the batch: somebody may have been faster, and it is as if this one came later. */
static void lost_load(struct batch_load *l, const struct answer *answer UNUSED)
{
	if (l->first)
		read_load_again(l, HX_CONCURRENCY_ERROR);
	else
		end_load(l, HX_STALE_FENCE, "loading took longer than its lease; nothing was loaded");
}

/* Items are replaced by themselves. Only what takes the batch, or lets it go, must not be done twice. */
static void unsure_of_load(struct batch_load *l, const struct answer *answer UNUSED)
{
	if (l->first || is_last(l))
		task_go(&l->task, LOAD_LOOKING_UP);
	else if (l->losses++ == LOSSES_MAX)
		end_load(l, HX_STORE_UNAVAILABLE, NULL);
}

static void load_written(struct batch_load *l, const struct answer *answer)
{
	if (is_last(l) && l->rq->along)
		l->rq->along->won(l->rq->along, answer->result);
	take_won(l, answer);
}

static void failed_load(struct batch_load *l, const struct answer *answer)
{
	end_load(l, flow_failure(answer->result), NULL);
}

TASK_VERDICTS(take_load_written, struct batch_load, [UNIT_WON] = load_written, [UNIT_LOST] = lost_load,
	      [UNIT_REFUSED] = lost_load, [UNIT_FAILED] = failed_load, [UNIT_UNKNOWN] = unsure_of_load);

static void take_load_looked_up(struct batch_load *l, const struct answer *answer)
{
	if (answer->result->verdict != UNIT_WON) {
		end_load(l, is_last(l) ? HX_OUTCOME_UNKNOWN : HX_STORE_UNAVAILABLE, NULL);
	} else if (answer->result->rows[0].n > 0) {
		take_won(l, answer);
	} else if (l->first) {
		read_load_again(l, HX_STORE_UNAVAILABLE);
	} else {
		l->stamp = flow_stamp(answer);
		task_go(&l->task, LOAD_LOADING);
		if (l->losses++ == LOSSES_MAX)
			end_load(l, HX_STORE_UNAVAILABLE, NULL);
	}
}

/* Won or lost, by us or by another: what is there now is read. */
static void take_cleared(struct batch_load *l, const struct answer *answer)
{
	if (answer->result->verdict == UNIT_FAILED)
		end_load(l, flow_failure(answer->result), NULL);
	else
		read_load_again(l, HX_STORE_UNAVAILABLE);
}

/* ---- units ---- */

static void build_load_read(const struct batch_load *l, struct unit *unit)
{
	if (!is_new(l)) {
		batch_read(unit, l->rq->workspace, l->rq->subject);
		return;
	}
	account_read(unit, l->rq->workspace, l->rq->account);
	if (l->rq->key.p)
		batch_read_key(unit, l->rq->workspace, l->rq->key);
}

static struct batch_spec spec_of(const struct batch_load *l)
{
	return (struct batch_spec){
		.subject = l->hold.subject,
		.account = l->hold.account,
		.workspace = l->rq->workspace,
		.requester = l->rq->requester,
		.trace = l->rq->trace,
		.key = l->rq->key,
		.data = l->rq->data,
		.attributes = l->rq->attributes,
		.machine = l->rq->machine,
	};
}

static void build_slice(const struct batch_load *l, struct unit *unit)
{
	struct batch_spec spec;

	if (is_new(l) && l->first) {
		spec = spec_of(l);
		batch_create(unit, &l->stamp, &spec, l->hold.lease_ms);
	} else if (l->first) {
		batch_load_more(unit, &l->stamp, &l->was, l->hold.lease_ms);
	}
	batch_load_slice(unit, &l->hold, l->from, l->rows);
	if (is_last(l))
		batch_load_end(unit, &l->stamp, &l->hold, l->total, is_new(l) && !l->rq->held);
}

static void build_loading(const struct batch_load *l, struct unit *unit)
{
	struct batch_spec spec;

	if (is_whole(l)) {
		spec = spec_of(l);
		batch_create_whole(unit, &l->stamp, &spec, l->rows, l->total, !l->rq->held);
	} else {
		build_slice(l, unit);
	}
	if (is_last(l) && l->rq->along)
		l->rq->along->add(l->rq->along, unit);
}

TASK_UNIT(build_clear, struct batch_load, l, batch_load_lost(unit, &l->stamp, &l->was));

static void build_load_look_up(const struct batch_load *l, struct unit *unit)
{
	unit_touch(unit, l->hold.account); /* of a batch that is not there, nothing else can be held */
	subject_look_up(unit, l->hold.subject, l->stamp.op);
}

static const TASK_STATES(struct batch_load) load_states[] = {
	[LOAD_NEW] = {"new", .then = LOAD_READING},
	[LOAD_READING] = {"reading", take_load_read, build_load_read},
	[LOAD_CLEARING] = {"ending another's loading", take_cleared, build_clear},
	[LOAD_LOADING] = {"loading", take_load_written, build_loading},
	[LOAD_LOOKING_UP] = {"looking up its op", take_load_looked_up, build_load_look_up},
	[LOAD_DONE] = {"done"},
};

TASK_KIND_STAMPED(load_kind, "batch_load", struct batch_load, load_states);

void batch_load_init(struct batch_load *load, const struct batch_load_request *rq, struct arena *arena)
{
	*load = (struct batch_load){.rq = rq, .arena = arena};
	task_init(&load->task, &load_kind, /* topic= */ 0);
}
