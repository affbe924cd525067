/* See why.h. Every sentence begins with because(), which is where it gets its reason. */
#include "flow/why.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/id.h"
#include "base/json_string.h"
#include "base/json_walk.h"
#include "flow/job.h"
#include "model/action.h"

#define WORDS_BYTES_MAX 65536
#define MESSAGE_BYTES_MAX 300

const char *why_reason_name(enum why_reason reason)
{
	static const char *const names[] = {
#define WHY_NAME(name) [WHY_##name] = #name,
		WHY_REASONS(WHY_NAME)
#undef WHY_NAME
	};

	return names[reason];
}

void why_init(struct why *why, const char *node)
{
	why->reason = WHY_REASONS_N;
	why->node = node;
	why->lacks = NULL;
	strbuf_init(&why->words, WORDS_BYTES_MAX);
}

void why_release(struct why *why)
{
	strbuf_release(&why->words);
}

/* ---- words ---- */

/* Texts of the store, as arguments for %.*s, are names: they are short. */
static HX_PRINTF(3, 4) void because(struct why *why, enum why_reason reason, const char *format, ...)
{
	char text[2048];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	why->reason = reason;
	strbuf_add_str(&why->words, text);
}

void why_add_moment(struct why *why, const char *before, int64_t ms)
{
	char time[WALL_TIME_TEXT_BYTES];

	wall_time_format((struct wall_time){ms}, time);
	strbuf_addf(&why->words, "%s%s", before, time);
}

/* Someone else's words, in one line and not too long. */
void why_add_words(struct why *why, struct slice message)
{
	message.n = message.n > MESSAGE_BYTES_MAX ? MESSAGE_BYTES_MAX : message.n;
	for (size_t i = 0; i < message.n; i++)
		strbuf_add_char(&why->words, (unsigned char)message.p[i] < 0x20 ? ' ' : message.p[i]);
}

static void add_message(struct why *why, struct slice message)
{
	strbuf_add_str(&why->words, ": ");
	why_add_words(why, message);
}

static void add_error(struct why *why, struct slice error, struct arena *arena)
{
	struct json message;

	if (error.p && json_find(json_trust(error), slice_str("message"), &message) &&
	    json_type(message) == JSON_STRING)
		add_message(why, json_string_view(message, arena));
}

/* A call stands in our port and has not begun: which limit keeps it there. */
static void add_place(struct why *why, const struct port_sight *sight)
{
	const char *kind = action_kind_name(sight->action->kind);
	bool one = sight->limit == 1;

	strbuf_addf(&why->words, "for a place: %zu %s of the %s \"%s\" %s running, and that is %s", sight->limit,
		    one ? "call" : "calls", sight->of_kind ? "kind" : "action",
		    sight->of_kind ? kind : sight->action->name, one ? "is" : "are",
		    sight->of_share  ? "the share of this workspace"
		    : sight->of_kind ? "the limit of a node"
				     : "its limit");
}

/* After "… is with X": what it waits for there, for how long X has it, or who comes next. */
static void add_hold(struct why *why, const struct port_sight *sight, bool past, int64_t until, const char *next)
{
	if (!past && sight->waiting) {
		strbuf_add_str(&why->words, ", where it waits ");
		add_place(why, sight);
		return;
	}
	strbuf_add_str(&why->words, ", whose lease ");
	why_add_moment(why, past ? "was over at " : "lasts until ", until);
	strbuf_add_str(&why->words, past ? ": it waits for " : " unless it is renewed");
	if (past)
		strbuf_add_str(&why->words, next);
}

#define PROGRAM "a program that has the function \"%s\", which this node does not have"

/* It is due, and nobody takes it here. True: that is so. */
static bool add_function(struct why *why, enum why_reason reason)
{
	if (why->lacks)
		because(why, reason, "is due, and waits for " PROGRAM, why->lacks->function);
	return why->lacks != NULL;
}

#define NEXT_BYTES 300

/* Who takes a claim over that is past its time. */
static const char *next_holder(const struct why *why, char text[NEXT_BYTES])
{
	if (!why->lacks)
		return "another node to take it over";
	snprintf(text, NEXT_BYTES, PROGRAM ", to take it over", why->lacks->function);
	return text;
}

/*
 * Of a claim of its own a node sees every call: the last one may have ended without anybody knowing how. Another process may have
 * the same name, so only of the one that answers is spoken.
 */
static void add_idle(struct why *why, struct slice owner, bool past, const struct port_sight *sight)
{
	if (!past && slice_is(owner, why->node) && !sight->running && !sight->waiting)
		strbuf_add_str(&why->words, "; no call of it is under way on the node that answers");
}

/* ---- jobs ---- */

static void add_job_due(struct why *why, const struct db_rows *rows)
{
	struct slice queue = db_cell(rows, 0, WHY_CELL_QUEUE)->s;
	int64_t limit = db_cell(rows, 0, WHY_CELL_LIMIT)->i;

	if (slice_is(queue, JOB_QUEUE_AFTER_EFFECTS) && add_function(why, WHY_JOB_FUNCTION))
		return;
	if (slice_is(queue, JOB_QUEUE_AFTER_EFFECTS))
		because(why, WHY_JOB_NODE, "is due, and waits for a node to deliver it");
	else if (limit > 0 && db_cell(rows, 0, WHY_CELL_IN_FLIGHT)->i >= limit)
		because(why, WHY_JOB_LIMIT,
			"waits for a place: %lld %s of the queue \"%.*s\" %s running, and that is its limit",
			(long long)limit, limit == 1 ? "job" : "jobs", SLICE_ARGS(queue), limit == 1 ? "is" : "are");
	else
		because(why, WHY_JOB_WORKER, "waits for a worker to claim from the queue \"%.*s\"", SLICE_ARGS(queue));
}

/* Who has put a right address in the meantime wonders why it is not asked. */
static void add_job_sent(struct why *why, const struct db_rows *rows)
{
	const struct db_value *version = db_cell(rows, 0, WHY_CELL_SENT_VERSION);

	if (version->type != DB_NULL)
		strbuf_addf(
			&why->words,
			"; version %lld of its definition has sent it, and it may have been done: it is sent by that "
			"one again",
			(long long)version->i);
}

/* Nobody has it. */
static void add_job_waits(struct why *why, const struct db_rows *rows)
{
	const struct db_value *due = db_cell(rows, 0, WHY_CELL_DUE_AT), *error = db_cell(rows, 0, WHY_CELL_ERROR);
	int64_t attempt = db_cell(rows, 0, WHY_CELL_ATTEMPT)->i;

	bool later = due->type != DB_NULL && due->i > db_cell(rows, 0, WHY_CELL_NOW)->i;

	if (later && db_cell(rows, 0, WHY_CELL_LINE)->type == DB_INT) {
		why_job_line(why, rows);
	} else if (later) {
		because(why, attempt ? WHY_JOB_RETRY : WHY_JOB_TIMER, "waits for its time, ");
		why_add_moment(why, "", due->i);
	} else {
		add_job_due(why, rows);
	}
	if (attempt)
		strbuf_addf(&why->words, "; attempt %lld did not succeed", (long long)attempt);
	add_job_sent(why, rows);
	if (error->type != DB_NULL)
		add_message(why, error->s);
}

static void add_job_parked(struct why *why, const struct db_rows *rows)
{
	const struct db_value *run = db_cell(rows, 0, WHY_CELL_RUN), *error = db_cell(rows, 0, WHY_CELL_ERROR);

	if (run->type == DB_NULL) {
		because(why, WHY_JOB_PARKED, "is parked, and waits for a person to redrive it");
	} else {
		because(why, WHY_JOB_PARKED_OF_RUN,
			"waits for nothing: it is given up, and its run %s is what may be retried",
			id_text("run", run->i).text);
	}
	add_job_sent(why, rows);
	if (error->type != DB_NULL)
		add_message(why, error->s);
}

void why_job(struct why *why, const struct db_rows *rows, const struct port_sight *sight)
{
	struct slice status = db_cell(rows, 0, WHY_CELL_STATUS)->s;
	int64_t until = db_cell(rows, 0, WHY_CELL_UNTIL)->i;
	bool past = until <= db_cell(rows, 0, WHY_CELL_NOW)->i;

	if (slice_is(status, JOB_COMPLETED)) {
		because(why, WHY_JOB_COMPLETED, "waits for nothing: it is completed");
	} else if (slice_is(status, JOB_PARKED)) {
		add_job_parked(why, rows);
	} else if (slice_is(status, JOB_RUNNING)) {
		because(why,
			past             ? WHY_JOB_LAPSED
			: sight->waiting ? WHY_JOB_LIMIT
					 : WHY_JOB_CLAIMED,
			"is under way: attempt %lld is with \"%.*s\"", (long long)db_cell(rows, 0, WHY_CELL_ATTEMPT)->i,
			SLICE_ARGS(db_cell(rows, 0, WHY_CELL_OWNER)->s));
		add_hold(why, sight, past, until, "the janitor");
	} else {
		add_job_waits(why, rows);
	}
}

/* ---- runs ---- */

static bool is_at(const struct run_row *row, const char *status)
{
	return strcmp(row->status, status) == 0;
}

static const char *step_of(const struct run_row *row)
{
	const struct run_definition *definition = row->definition;
	size_t position = row->undo >= 0 ? (size_t)row->undo : row->position;

	return position < definition->steps_n ? definition->steps[position].name : RUN_END_NAME;
}

/* What is tried: the step, or to undo it. */
static const char *deed_of(const struct run_row *row)
{
	return row->undo >= 0 ? "compensating" : "the step";
}

static void add_awaited(struct why *why, const struct run_row *row)
{
	static const char event[] = RUN_AWAITS_EVENT;
	struct slice name = row->awaits;

	if (name.n > sizeof event - 1 && memcmp(name.p, event, sizeof event - 1) == 0)
		because(why, WHY_RUN_EVENT, "waits for the event \"%.*s\"", (int)(name.n - sizeof event + 1),
			name.p + sizeof event - 1);
	else
		because(why, WHY_RUN_APPROVAL, "waits for a person to decide the approval \"%s\"", step_of(row));
	if (row->wait_until)
		why_add_moment(why, ", at most until ", row->wait_until);
}

static void add_timer(struct why *why, const struct run_row *row, struct arena *arena)
{
	bool is_task = row->position < row->definition->steps_n &&
		       row->definition->steps[row->position].type == RUN_TASK;

	/* Without an attempt it is new: who created it takes it at once, and others a moment later. */
	if (row->due_at > row->now && row->attempt && (is_task || row->undo >= 0)) {
		because(why, WHY_RUN_RETRY, "attempt %lld of %s \"%s\" did not succeed: it waits for the next one at ",
			(long long)row->attempt, deed_of(row), step_of(row));
		why_add_moment(why, "", row->due_at);
		add_error(why, run_row_error(row), arena);
	} else if (row->wait_until > row->now) {
		because(why, WHY_RUN_TIMER, "the step \"%s\" waits for its time, ", step_of(row));
		why_add_moment(why, "", row->wait_until);
	} else if (!add_function(why, WHY_RUN_FUNCTION)) {
		because(why, WHY_RUN_NODE, "is due, and waits for a node to take it");
	}
}

/* Somebody is at it; what comes after that is said too. */
static void add_under_way(struct why *why, const struct run_row *row, const struct db_rows *job,
			  const struct port_sight *sight)
{
	bool lacks = row->past && why->lacks;
	char next[NEXT_BYTES];

	if (row->owned) {
		because(why,
			lacks            ? WHY_RUN_FUNCTION
			: row->past      ? WHY_RUN_LAPSED
			: sight->waiting ? WHY_RUN_LIMIT
					 : WHY_RUN_CLAIMED,
			"attempt %lld of %s \"%s\" is with the node \"%.*s\"", (long long)row->attempt, deed_of(row),
			step_of(row), SLICE_ARGS(row->owner));
		add_hold(why, sight, row->past, row->until, next_holder(why, next));
		add_idle(why, row->owner, row->past, sight);
	} else {
		strbuf_addf(&why->words, "the step \"%s\" is the job %s, which ", step_of(row),
			    id_text("job", db_cell(job, 0, WHY_CELL_SUBJECT)->i).text);
		why_job(why, job, sight);
	}
	if (is_at(row, RUN_PAUSED))
		strbuf_add_str(&why->words, "; the run is paused, and begins nothing else until a person resumes it");
	else if (is_at(row, RUN_CANCELLING) && row->undo < 0)
		strbuf_add_str(&why->words, "; the run is being cancelled, and what is done is undone after that");
}

/*
 * Nobody is at it, and nobody will be before a person says something. True: that is so. The status of the step alone does not
 * tell: a run that is being cancelled keeps the one that the step had before.
 */
static bool add_person(struct why *why, const struct run_row *row, struct arena *arena)
{
	bool held = slice_is(row->awaits, RUN_AWAITS_PERSON);

	if (is_at(row, RUN_FAILED))
		because(why, WHY_RUN_FAILED,
			"has failed at the step \"%s\", and waits for a person to retry or cancel it", step_of(row));
	else if (held && slice_is(row->step_status, RUN_STEP_UNKNOWN))
		because(why, WHY_RUN_UNKNOWN,
			"the outcome of the step \"%s\" is unknown: it waits for a person to resolve it", step_of(row));
	else if (held)
		because(why, WHY_RUN_NOT_UNDONE,
			"the compensation of the step \"%s\" has failed: it waits for a person to retry it",
			step_of(row));
	else
		return false;
	add_error(why, row->error, arena);
	return true;
}

static void add_restarted(struct why *why, const struct run_row *row)
{
	char id[ID_TEXT_BYTES];

	id_format("run", row->restarted_by, id);
	because(why, WHY_RUN_RESTARTED, "waits for nothing: it was restarted, and %s goes on in its place", id);
}

/* What else it reckons with. */
static void add_outlook(struct why *why, const struct run_row *row, struct arena *arena)
{
	bool goes_on = is_at(row, RUN_PENDING) || is_at(row, RUN_WAITING) || is_at(row, RUN_RUNNING);

	if (goes_on && row->times_out_at)
		why_add_moment(why,
			       row->times_out_at > row->now ? "; the time of the whole run is over at "
							    : "; the time of the whole run was over at ",
			       row->times_out_at);
	if (is_at(row, RUN_CANCELLING) && row->definition->compensates && run_row_error(row).p) {
		strbuf_add_str(&why->words, "; the run cancels itself, because it has failed");
		add_error(why, row->stood.set ? row->stood.error : row->error, arena);
	}
}

/* It has not begun, and every start puts it off. */
static bool is_put_off(const struct run_row *row)
{
	return row->machine->definition->limits.debounce.for_ms && is_at(row, RUN_PENDING) && !row->started_at &&
	       !row->parent && row->due_at > row->now;
}

static void add_put_off(struct why *why, const struct run_row *row)
{
	int64_t at_most_ms = row->machine->definition->limits.debounce.at_most_ms;

	because(why, WHY_RUN_DEBOUNCE, "waits for its time, ");
	why_add_moment(why, "", row->due_at);
	strbuf_add_str(&why->words, ": another start before that replaces its input, and puts it off");
	if (at_most_ms)
		why_add_moment(why, ", at most until ", row->created_at + at_most_ms);
}

/* The tree is followed to the run that the others wait for; why that one does not go on it says itself. */
static void add_children(struct why *why, const struct run_row *row, const struct db_rows *child)
{
	enum { OPEN, SUBJECT, STATUS, AWAITS };
	char id[ID_TEXT_BYTES];

	because(why, WHY_RUN_CHILDREN, "the step \"%s\" waits for the runs that it has started", step_of(row));
	if (child->n == 0)
		return;
	id_format("run", db_cell(child, 0, SUBJECT)->i, id);
	strbuf_addf(&why->words, ": %lld %s open; it comes down to %s, which is ",
		    (long long)db_cell(child, 0, OPEN)->i, db_cell(child, 0, OPEN)->i == 1 ? "is" : "are", id);
	strbuf_add_slice(&why->words, db_cell(child, 0, STATUS)->s);
	if (db_cell(child, 0, AWAITS)->type == DB_NULL)
		return;
	strbuf_add_str(&why->words, " (");
	why_add_words(why, db_cell(child, 0, AWAITS)->s);
	strbuf_add_char(&why->words, ')');
}

static void add_run(struct why *why, const struct run_row *row, const struct unit_result *lines,
		    const struct port_sight *sight, struct arena *arena)
{
	const struct db_rows *job = &lines->rows[WHY_LINE_JOB_OF_RUN], *slot = &lines->rows[WHY_LINE_SLOT];

	if (row->restarted_by)
		add_restarted(why, row);
	else if (is_at(row, RUN_COMPLETED))
		because(why, WHY_RUN_COMPLETED, "waits for nothing: it is completed");
	else if (is_at(row, RUN_CANCELLED))
		because(why, WHY_RUN_CANCELLED, "waits for nothing: it is cancelled");
	else if (row->owned)
		add_under_way(why, row, job, sight);
	else if (add_person(why, row, arena))
		return;
	else if (row->job && job->n)
		add_under_way(why, row, job, sight);
	else if (is_at(row, RUN_PAUSED))
		because(why, WHY_RUN_PAUSED, "waits for a person to resume it");
	else if (slot->n && row->due_at > row->now)
		why_slot(why, row, slot);
	else if (is_put_off(row))
		add_put_off(why, row);
	else if (slice_is(row->awaits, RUN_AWAITS_CHILD))
		add_children(why, row, &lines->rows[WHY_LINE_CHILD]);
	else if (row->awaits.p)
		add_awaited(why, row);
	else
		add_timer(why, row, arena);
}

void why_run(struct why *why, const struct run_row *row, const struct unit_result *lines,
	     const struct port_sight *sight, struct arena *arena)
{
	add_run(why, row, lines, sight, arena);
	add_outlook(why, row, arena);
}

void why_run_version(struct why *why, int64_t version)
{
	because(why, WHY_RUN_VERSION, "waits for version %lld of its definition, which this node does not know",
		(long long)version);
}

/* ---- batches ---- */

static bool batch_is_at(const struct batch_row *row, const char *status)
{
	return strcmp(row->status, status) == 0;
}

static void add_batch_holder(struct why *why, const struct batch_row *row, const struct port_sight *sight)
{
	static const struct port_sight whole; /* some of its calls may wait, never the batch as a whole */
	bool loading = batch_is_at(row, BATCH_LOADING), torn_down = batch_is_at(row, BATCH_CANCELLING);
	bool lacks = row->past && why->lacks;
	char next[NEXT_BYTES];

	because(why,
		lacks            ? WHY_BATCH_FUNCTION
		: row->past      ? WHY_BATCH_LAPSED
		: sight->waiting ? WHY_BATCH_LIMIT
		: loading        ? WHY_BATCH_LOADING
		: torn_down      ? WHY_BATCH_TORN_DOWN
				 : WHY_BATCH_CLAIMED,
		"%s the node \"%.*s\"",
		loading     ? "its items are being loaded by"
		: torn_down ? "it is being torn down by"
			    : "it is with",
		SLICE_ARGS(row->owner));
	add_hold(why, &whole, row->past, row->until, next_holder(why, next));
	if (!row->past && batch_is_at(row, BATCH_RUNNING))
		strbuf_addf(&why->words, "; %lld of %lld items are under way, %lld wait for their turn%s",
			    (long long)row->running, (long long)row->total, (long long)batch_pending(row),
			    row->cancel_requested ? ", and its cancel is requested" : "");
	if (!row->past && sight->waiting) {
		strbuf_addf(&why->words, "; %zu of its calls %s ", sight->waiting,
			    sight->waiting > 1 ? "wait" : "waits");
		add_place(why, sight);
	}
	if (torn_down && row->error.p) {
		strbuf_add_str(&why->words, "; its last try did not succeed");
		add_message(why, row->error);
	}
}

static void add_teardown(struct why *why, const struct batch_row *row)
{
	because(why, WHY_BATCH_CLEANUP, "its teardown has not succeeded yet, and ");
	why_add_moment(why, row->due_at > row->now ? "waits for the next try at " : "is due since ", row->due_at);
	if (row->error.p)
		add_message(why, row->error);
}

/* Nobody holds it, and it is not for a person. */
static void add_batch_rest(struct why *why, const struct batch_row *row)
{
	if (!row->machine) {
		because(why, WHY_BATCH_VERSION,
			"waits for version %lld of its definition, which this node does not know",
			(long long)row->definition_version);
	} else if (batch_is_at(row, BATCH_CANCELLING)) {
		add_teardown(why, row);
	} else if (row->due_at > row->now && row->retry_at) {
		because(why, WHY_BATCH_RETRY,
			"waits for items whose last try did not succeed; the next one is due at ");
		why_add_moment(why, "", row->due_at);
	} else if (row->due_at > row->now) {
		because(why, WHY_BATCH_TIMER, "could not be worked on, and waits for a node to look again at ");
		why_add_moment(why, "", row->due_at);
	} else if (!add_function(why, WHY_BATCH_FUNCTION)) {
		because(why, WHY_BATCH_NODE, "is due, and waits for a node to take it");
	}
	if (row->cancel_requested && !batch_is_at(row, BATCH_CANCELLING))
		strbuf_add_str(&why->words, "; its cancel is requested");
}

static void add_batch_end(struct why *why, const struct batch_row *row)
{
	if (batch_is_at(row, BATCH_FAILED))
		because(why, WHY_BATCH_FAILED, "waits for nothing: it was never loaded");
	else if (batch_is_at(row, BATCH_CANCELLED))
		because(why, WHY_BATCH_CANCELLED, "waits for nothing: it is cancelled");
	else if (row->unknown > 0)
		because(why, WHY_BATCH_UNKNOWN,
			"waits for a person to resolve %lld of its items, whose outcome is unknown; it is completed",
			(long long)row->unknown);
	else
		because(why, WHY_BATCH_COMPLETED, "waits for nothing: it is completed");
}

void why_batch(struct why *why, const struct batch_row *row, const struct port_sight *sight)
{
	if (batch_is_terminal(row->status))
		add_batch_end(why, row);
	else if (row->owned)
		add_batch_holder(why, row, sight);
	else if (batch_is_at(row, BATCH_PENDING))
		because(why, WHY_BATCH_HELD, "is held with %lld items, and waits for somebody to start it",
			(long long)row->total);
	else if (batch_is_at(row, BATCH_OUT_OF_CREDIT) && row->needs > row->balance && !row->cancel_requested)
		because(why, WHY_BATCH_CREDIT,
			"is out of credit: its next item needs %lld, and the account \"%.*s\" has %lld",
			(long long)row->needs, SLICE_ARGS(row->account_name), (long long)row->balance);
	else
		add_batch_rest(why, row);
}

/* ---- entities ---- */

static bool is_parked(const struct db_rows *effects, size_t i)
{
	return slice_is(db_cell(effects, i, WHY_EFFECT_STATUS)->s, JOB_PARKED);
}

/* Of one that waits for nothing itself. */
static enum why_reason end_of(const struct db_rows *effects)
{
	for (size_t i = 0; i < effects->n; i++)
		if (is_parked(effects, i))
			return WHY_ENTITY_PARKED;
	return effects->n ? WHY_ENTITY_EFFECTS : WHY_ENTITY_END;
}

/* Whatever the entity waits for, they go their own way. */
static void add_effects(struct why *why, const struct db_rows *effects)
{
	for (size_t i = 0; i < effects->n && i < WHY_EFFECTS_MAX; i++) {
		strbuf_addf(&why->words, "; its after-effect \"%.*s\", the job %s, is %s",
			    SLICE_ARGS(db_cell(effects, i, WHY_EFFECT_ACTION)->s),
			    id_text("job", db_cell(effects, i, WHY_EFFECT_JOB)->i).text,
			    is_parked(effects, i) ? "parked, and waits for a person to redrive it"
						  : "still to be delivered");
	}
	if (effects->n > WHY_EFFECTS_MAX)
		strbuf_add_str(&why->words, "; and there are more of them");
}

static void add_steps_from(struct why *why, const struct workflow *workflow, struct slice status,
			   const struct db_rows *effects)
{
	size_t n = 0;

	for (size_t i = 0; i < workflow->steps_n; i++)
		if (slice_is(status, workflow->steps[i].status)) {
			if (!n++)
				because(why, WHY_ENTITY_STEP, "waits for somebody to fire ");
			strbuf_addf(&why->words, "%s\"%s\"", n > 1 ? ", " : "", workflow->steps[i].step_key);
		}
	if (!n)
		because(why, end_of(effects), "waits for nothing: no step leads out of this status");
}

/* Of several the one that was begun last; a claim that was reverted is in doubt before it is put away. */
static void add_kept(struct why *why, const struct db_rows *rows)
{
	int step = db_cell(rows, 0, ENTITY_DOUBT)->i ? ENTITY_CLAIM_STEP : ENTITY_KEPT_STEP;

	if (db_cell(rows, 0, step)->type != DB_NULL)
		strbuf_addf(&why->words,
			    "; what the step \"%.*s\" has begun has no answer: fired again, it makes the same call",
			    SLICE_ARGS(db_cell(rows, 0, step)->s));
}

void why_entity(struct why *why, const struct workflow *workflow, const struct db_rows *rows,
		const struct db_rows *effects, const struct port_sight *sight, int64_t now_ms)
{
	const struct db_value *owner = db_cell(rows, 0, ENTITY_OWNER);
	struct slice status = db_cell(rows, 0, ENTITY_STATUS)->s;
	struct slice step = db_cell(rows, 0, ENTITY_CLAIM_STEP)->s;
	struct slice requester = db_cell(rows, 0, ENTITY_CLAIM_REQUESTER)->s;
	int64_t until = db_cell(rows, 0, ENTITY_UNTIL)->i;
	bool past = until <= now_ms;
	char janitor[256];

	/* Whoever is at it may still bring it out of there. */
	if (!workflow_has_status(workflow, status) && (owner->type == DB_NULL || past)) {
		because(why, WHY_ENTITY_ORPHAN,
			"waits for a definition that has this status: the one in force does not");
	} else if (owner->type == DB_NULL) {
		add_steps_from(why, workflow, status, effects);
		add_kept(why, rows);
	} else if (slice_is(owner->s, SUBJECT_HELD)) {
		because(why, WHY_ENTITY_HELD,
			"the outcome of the step \"%.*s\" is unknown: it waits for a person to resolve it",
			SLICE_ARGS(step));
	} else {
		because(why,
			past             ? WHY_ENTITY_LAPSED
			: sight->waiting ? WHY_ENTITY_LIMIT
					 : WHY_ENTITY_CLAIMED,
			"the step \"%.*s\", fired by \"%.*s\", is with the node \"%.*s\"", SLICE_ARGS(step),
			SLICE_ARGS(requester), SLICE_ARGS(owner->s));
		snprintf(janitor, sizeof janitor, "the janitor of the module \"%s\"", workflow->module);
		add_hold(why, sight, past, until, janitor);
		add_idle(why, owner->s, past, sight);
	}
	add_effects(why, effects);
}
