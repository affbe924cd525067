/*
 * Why does it not go on? One sentence on what a run, a batch, a job or an entity is waiting for: which lease, timer, event,
 * worker, limit, money or person. Read beside the lanes, from the rows alone.
 */
#include <stdio.h>

#include "base/id.h"
#include "base/json_string.h"
#include "base/json_walk.h"
#include "engine/runs.h"
#include "flow/job.h"
#include "flow/run.h"
#include "http/api.h"
#include "http/batch_wait.h"
#include "http/run_json.h"
#include "http/run_wait.h"

#define ROW_BYTES_MAX (512u << 20)
#define WORDS_BYTES_MAX 65536
#define MESSAGE_BYTES_MAX 300

/* clang-format off */

enum { JOB_ID, STATUS, OWNER, UNTIL, QUEUE, ATTEMPT, DUE_AT, ERROR, LIMIT, IN_FLIGHT, NOW };

/* in_flight_max bounds all jobs of a queue that are RUNNING and have such a bound. */
#define WHY_JOB                                                                                                        \
	"SELECT j.subject, s.status, s.owner, s.until, j.queue, j.attempt, j.due_at, j.error, j.in_flight_max,"         \
	" (SELECT count(*) FROM job k WHERE k.workspace = j.workspace AND k.queue = j.queue"                           \
	" AND k.in_flight_max > 0 AND k.due_at IS NULL AND k.ended_at IS NULL), hx_now_ms()"                   \
	" FROM job j JOIN subject s ON s.id = j.subject WHERE "
#define WHY_JOB_OUT "ittitiitiii"

static const struct db_stmt stmt_job = {
	.name = "why_job",
	.sql = WHY_JOB "j.workspace = ?1 AND j.subject = ?2",
	.in = "ti",
	.out = WHY_JOB_OUT,
};

static const struct db_stmt stmt_job_of_run = {
	.name = "why_job_of_run",
	.sql = WHY_JOB "j.subject = (SELECT r.job FROM run r WHERE r.workspace = ?1 AND r.subject = ?2)",
	.in = "ti",
	.out = WHY_JOB_OUT,
};

#define LINE_JOB_OF_RUN 3 /* behind those of run_read() */

/* clang-format on */

/* ---- words ---- */

static void add_moment(struct strbuf *words, const char *before, int64_t ms)
{
	char time[WALL_TIME_TEXT_BYTES];

	wall_time_format((struct wall_time){ms}, time);
	strbuf_addf(words, "%s%s", before, time);
}

/* Someone else's words, in one line and not too long. */
static void add_message(struct strbuf *words, struct slice message)
{
	strbuf_add_str(words, ": ");
	message.n = message.n > MESSAGE_BYTES_MAX ? MESSAGE_BYTES_MAX : message.n;
	for (size_t i = 0; i < message.n; i++)
		strbuf_add_char(words, (unsigned char)message.p[i] < 0x20 ? ' ' : message.p[i]);
}

static void add_error(struct strbuf *words, struct slice error, struct arena *arena)
{
	struct json message;

	if (error.p && json_find(json_trust(error), slice_str("message"), &message) &&
	    json_type(message) == JSON_STRING)
		add_message(words, json_string_view(message, arena));
}

/* {"id", "status", "why"}; the words are without a full stop. */
static void answer(struct api_query *query, struct slice status, const struct strbuf *words)
{
	strbuf_add_str(&query->text, "{\"id\":");
	json_quote(call_param(query->call, "id"), &query->text);
	strbuf_add_str(&query->text, ",\"status\":");
	json_quote(status, &query->text);
	strbuf_add_str(&query->text, ",\"why\":");
	json_quote(strbuf_slice(words), &query->text);
	strbuf_add_char(&query->text, '}');
}

/* ---- jobs ---- */

static void add_job_waits(struct strbuf *words, const struct db_rows *rows)
{
	const struct db_value *due = db_cell(rows, 0, DUE_AT), *limit = db_cell(rows, 0, LIMIT);
	struct slice queue = db_cell(rows, 0, QUEUE)->s;

	if (due->type != DB_NULL && due->i > db_cell(rows, 0, NOW)->i) {
		add_moment(words, "waits for its time, ", due->i);
	} else if (slice_is(queue, JOB_QUEUE_AFTER_EFFECTS)) {
		strbuf_add_str(words, "is due, and waits for a node to deliver it");
	} else if (limit->type != DB_NULL && limit->i > 0 && db_cell(rows, 0, IN_FLIGHT)->i >= limit->i) {
		strbuf_addf(words,
			    "waits for a place: %lld jobs of the queue \"%.*s\" are running, and that is its limit",
			    (long long)limit->i, (int)queue.n, queue.p);
	} else {
		strbuf_addf(words, "waits for a worker to claim from the queue \"%.*s\"", (int)queue.n, queue.p);
	}
	if (db_cell(rows, 0, ATTEMPT)->i)
		strbuf_addf(words, "; attempt %lld did not succeed", (long long)db_cell(rows, 0, ATTEMPT)->i);
	if (db_cell(rows, 0, ERROR)->type != DB_NULL)
		add_message(words, db_cell(rows, 0, ERROR)->s);
}

static void add_job_words(struct strbuf *words, const struct db_rows *rows)
{
	struct slice status = db_cell(rows, 0, STATUS)->s, owner = db_cell(rows, 0, OWNER)->s;
	const struct db_value *until = db_cell(rows, 0, UNTIL), *error = db_cell(rows, 0, ERROR);
	bool past = until->type != DB_NULL && until->i <= db_cell(rows, 0, NOW)->i;

	if (slice_is(status, JOB_COMPLETED)) {
		strbuf_add_str(words, "waits for nothing: it is completed");
	} else if (slice_is(status, JOB_PARKED)) {
		strbuf_add_str(words, "is parked, and waits for a person to redrive it");
		if (error->type != DB_NULL)
			add_message(words, error->s);
	} else if (slice_is(status, JOB_RUNNING)) {
		strbuf_addf(words, "attempt %lld is with \"%.*s\", whose lease ",
			    (long long)db_cell(rows, 0, ATTEMPT)->i, (int)owner.n, owner.p);
		add_moment(words, past ? "was over at " : "lasts until ", until->i);
		strbuf_add_str(words, past ? ": it waits for the janitor" : " unless it is renewed");
	} else {
		add_job_waits(words, rows);
	}
}

static void build_job(const struct single *single, struct unit *unit)
{
	const struct api_query *query = single->context;

	UNIT_ADD(unit, UNIT_ANY, &stmt_job, db_text(api_workspace(query->call)), db_int(query->subject));
}

static enum hx_code answered_job(struct single *single, const struct unit_result *result)
{
	struct api_query *query = single->context;
	const struct db_rows *rows = &result->rows[0];
	struct strbuf words;

	query->detail = "there is no such job";
	if (rows->n == 0)
		return HX_NOT_FOUND;
	strbuf_init(&words, WORDS_BYTES_MAX);
	add_job_words(&words, rows);
	answer(query, db_cell(rows, 0, STATUS)->s, &words);
	strbuf_release(&words);
	return HX_OK;
}

/* ---- runs ---- */

static bool is_at(const struct run_row *row, const char *status)
{
	return strcmp(row->status, status) == 0;
}

static const char *step_of(const struct run_row *row)
{
	const struct run_definition *definition = row->machine->definition;
	size_t position = row->undo >= 0 ? (size_t)row->undo : row->position;

	return position < definition->steps_n ? definition->steps[position].name : RUN_END_NAME;
}

static void add_awaited(struct strbuf *words, const struct run_row *row)
{
	static const char event[] = RUN_AWAITS_EVENT;
	struct slice name = row->awaits;

	if (name.n > sizeof event - 1 && memcmp(name.p, event, sizeof event - 1) == 0)
		strbuf_addf(words, "waits for the event \"%.*s\"", (int)(name.n - sizeof event + 1),
			    name.p + sizeof event - 1);
	else
		strbuf_addf(words, "waits for a person to decide the approval \"%s\"", step_of(row));
	if (row->wait_until)
		add_moment(words, ", at most until ", row->wait_until);
}

static void add_timer(struct strbuf *words, const struct run_row *row, struct arena *arena)
{
	bool is_task = row->position < row->machine->definition->steps_n &&
		       row->machine->definition->steps[row->position].type == RUN_TASK;

	if (row->due_at > row->now && (is_task || row->undo >= 0)) {
		strbuf_addf(words, "attempt %lld of the step \"%s\" did not succeed: ", (long long)row->attempt,
			    step_of(row));
		add_moment(words, "it waits for the next one at ", row->due_at);
		add_error(words, run_json_error(row), arena);
	} else if (row->wait_until > row->now) {
		strbuf_addf(words, "the step \"%s\" waits for its time, ", step_of(row));
		add_moment(words, "", row->wait_until);
	} else {
		strbuf_add_str(words, "is due, and waits for a node to take it");
	}
}

static void add_holder(struct strbuf *words, const struct run_row *row)
{
	strbuf_addf(words, "attempt %lld of %s \"%s\" is with the node \"%.*s\", whose lease ", (long long)row->attempt,
		    row->undo >= 0 ? "compensating" : "the step", step_of(row), (int)row->owner.n, row->owner.p);
	add_moment(words, row->past ? "was over at " : "lasts until ", row->until);
	strbuf_add_str(words, row->past ? ": it waits for another node to take it over" : " unless it is renewed");
}

static void add_run_words(struct strbuf *words, const struct run_row *row, const struct db_rows *job,
			  struct arena *arena)
{
	char id[ID_TEXT_BYTES];

	if (is_at(row, RUN_COMPLETED) || is_at(row, RUN_CANCELLED)) {
		strbuf_addf(words, "waits for nothing: it is %s",
			    is_at(row, RUN_COMPLETED) ? "completed" : "cancelled");
	} else if (is_at(row, RUN_FAILED)) {
		strbuf_addf(words, "has failed at the step \"%s\", and waits for a person to retry or cancel it",
			    step_of(row));
		add_error(words, row->error, arena);
	} else if (row->owned) {
		add_holder(words, row);
	} else if (slice_is(row->step_status, RUN_STEP_UNKNOWN)) {
		strbuf_addf(words, "the outcome of the step \"%s\" is unknown: it waits for a person to resolve it",
			    step_of(row));
		add_error(words, row->error, arena);
	} else if (slice_is(row->step_status, RUN_STEP_FAILED)) {
		strbuf_addf(words, "the compensation of the step \"%s\" has failed: it waits for a person to retry it",
			    step_of(row));
		add_error(words, row->error, arena);
	} else if (row->job && job->n) {
		id_format("job", db_cell(job, 0, JOB_ID)->i, id);
		strbuf_addf(words, "the step \"%s\" is the job %s, which ", step_of(row), id);
		add_job_words(words, job);
	} else if (is_at(row, RUN_PAUSED)) {
		strbuf_add_str(words, "is paused, and waits for a person to resume it");
	} else if (row->awaits.p) {
		add_awaited(words, row);
	} else {
		add_timer(words, row, arena);
	}
}

static void build_run(const struct single *single, struct unit *unit)
{
	const struct api_query *query = single->context;
	struct slice workspace = api_workspace(query->call);

	run_read(unit, workspace, query->subject);
	ASSERT(unit->lines_n == LINE_JOB_OF_RUN);
	UNIT_ADD(unit, UNIT_ANY, &stmt_job_of_run, db_text(workspace), db_int(query->subject));
}

static enum hx_code answered_run(struct single *single, const struct unit_result *result)
{
	struct api_query *query = single->context;
	const struct run_policy *policy = runs_policy(engine_runs(api_of(query->call)->engine));
	struct strbuf words;
	struct arena arena;
	struct run_row row;
	enum hx_code code;

	arena_init(&arena, ROW_BYTES_MAX);
	strbuf_init(&words, WORDS_BYTES_MAX);
	code = run_row_take(result, policy->machine_of, policy->context, &arena, &row);
	if ((!code || code == HX_CONFIG_ERROR) && row.expired)
		code = HX_RUN_EXPIRED;
	if (!code)
		add_run_words(&words, &row, &result->rows[LINE_JOB_OF_RUN], &arena);
	if (code == HX_CONFIG_ERROR) /* nothing else can be what it waits for */
		strbuf_addf(&words, "waits for version %lld of its definition, which this node does not know",
			    (long long)db_cell(&result->rows[0], 0, RUN_DEFINITION_VERSION)->i);
	if (!code || code == HX_CONFIG_ERROR) {
		answer(query, slice_str(row.status), &words);
		code = HX_OK;
	}
	query->detail = run_wait_detail(code);
	strbuf_release(&words);
	arena_release(&arena);
	return code;
}

/* ---- batches ---- */

static void add_batch_holder(struct strbuf *words, const struct batch_row *row)
{
	const char *what = strcmp(row->status, BATCH_LOADING) == 0      ? "its items are being loaded by"
			   : strcmp(row->status, BATCH_CANCELLING) == 0 ? "it is being torn down by"
									: "it is with";

	strbuf_addf(words, "%s the node \"%.*s\", whose lease ", what, (int)row->owner.n, row->owner.p);
	add_moment(words, row->past ? "was over at " : "lasts until ", row->until);
	strbuf_add_str(words, row->past ? ": it waits for another node to take it over" : " unless it is renewed");
	if (!row->past && strcmp(row->status, BATCH_RUNNING) == 0)
		strbuf_addf(words, "; %lld of %lld items are under way, %lld wait for their turn",
			    (long long)row->running, (long long)row->total, (long long)batch_pending(row));
	if (!row->past && strcmp(row->status, BATCH_RUNNING) == 0 && row->cancel_requested)
		strbuf_add_str(words, ", and its cancel is requested");
}

/* Nobody holds it. */
static void add_batch_rest(struct strbuf *words, const struct batch_row *row)
{
	bool resting = row->due_at > row->now;

	if (strcmp(row->status, BATCH_CANCELLING) == 0) {
		strbuf_add_str(words, "its teardown has not succeeded yet, and ");
		add_moment(words, resting ? "waits for the next try at " : "is due since ", row->due_at);
		if (row->error.p)
			add_message(words, row->error);
	} else if (resting && row->retry_at) {
		add_moment(words, "waits for items whose last try did not succeed; the next one is due at ",
			   row->due_at);
	} else if (resting) {
		add_moment(words, "waits for its time, ", row->due_at);
	} else {
		strbuf_add_str(words, "is due, and waits for a node to take it");
	}
	if (row->cancel_requested && strcmp(row->status, BATCH_CANCELLING) != 0)
		strbuf_add_str(words, "; its cancel is requested");
}

static void add_batch_words(struct strbuf *words, const struct batch_row *row)
{
	if (strcmp(row->status, BATCH_COMPLETED) == 0 && row->unknown > 0) {
		strbuf_addf(
			words,
			"waits for a person to resolve %lld of its items, whose outcome is unknown; it is completed",
			(long long)row->unknown);
	} else if (strcmp(row->status, BATCH_FAILED) == 0) {
		strbuf_add_str(words, "waits for nothing: it was never loaded");
	} else if (batch_is_terminal(row->status)) {
		strbuf_addf(words, "waits for nothing: it is %s",
			    strcmp(row->status, BATCH_COMPLETED) == 0 ? "completed" : "cancelled");
	} else if (row->owned) {
		add_batch_holder(words, row);
	} else if (strcmp(row->status, BATCH_PENDING) == 0) {
		strbuf_addf(words, "is held with %lld items, and waits for somebody to start it",
			    (long long)row->total);
	} else if (strcmp(row->status, BATCH_OUT_OF_CREDIT) == 0 && row->needs > row->balance &&
		   !row->cancel_requested) {
		strbuf_addf(words, "is out of credit: its next item needs %lld, and the account \"%.*s\" has %lld",
			    (long long)row->needs, (int)row->account_name.n, row->account_name.p,
			    (long long)row->balance);
	} else {
		add_batch_rest(words, row);
	}
}

static void build_batch(const struct single *single, struct unit *unit)
{
	const struct api_query *query = single->context;

	batch_read(unit, api_workspace(query->call), query->subject);
}

static enum hx_code answered_batch(struct single *single, const struct unit_result *result)
{
	struct api_query *query = single->context;
	struct batch_row row;
	struct strbuf words;
	struct arena arena;
	enum hx_code code;

	arena_init(&arena, ROW_BYTES_MAX);
	strbuf_init(&words, WORDS_BYTES_MAX);
	code = batch_wait_take(result, &arena, &row);
	if (!code) {
		add_batch_words(&words, &row);
		answer(query, slice_str(row.status), &words);
	}
	query->detail = batch_detail(code);
	strbuf_release(&words);
	arena_release(&arena);
	return code;
}

/* ---- entities ---- */

static void add_steps_from(struct strbuf *words, const struct workflow *workflow, struct slice status)
{
	size_t n = 0;

	for (size_t i = 0; i < workflow->steps_n; i++)
		if (slice_is(status, workflow->steps[i].status))
			strbuf_addf(words, "%s\"%s\"", n++ ? ", " : "waits for somebody to fire ",
				    workflow->steps[i].step_key);
	if (!n)
		strbuf_add_str(words, "waits for nothing: no step leads out of this status");
}

static void add_entity_words(struct strbuf *words, const struct workflow *workflow, const struct db_rows *rows,
			     int64_t now_ms)
{
	const struct db_value *owner = db_cell(rows, 0, ENTITY_OWNER);
	struct slice step = db_cell(rows, 0, ENTITY_CLAIM_STEP)->s;
	bool past;

	if (owner->type == DB_NULL) {
		add_steps_from(words, workflow, db_cell(rows, 0, ENTITY_STATUS)->s);
		return;
	}
	if (slice_is(owner->s, SUBJECT_HELD)) {
		strbuf_addf(words, "the outcome of the step \"%.*s\" is unknown: it waits for a person to resolve it",
			    (int)step.n, step.p);
		return;
	}
	past = db_cell(rows, 0, ENTITY_UNTIL)->i <= now_ms;
	strbuf_addf(words, "the step \"%.*s\" is with the node \"%.*s\", whose lease ", (int)step.n, step.p,
		    (int)owner->s.n, owner->s.p);
	add_moment(words, past ? "was over at " : "lasts until ", db_cell(rows, 0, ENTITY_UNTIL)->i);
	strbuf_add_str(words, past ? ": it waits for the janitor" : " unless it is renewed");
}

static void build_entity(const struct single *single, struct unit *unit)
{
	const struct api_query *query = single->context;
	struct entity_ref ref = {api_workspace(query->call), query->machine, query->name};

	entity_read(unit, &ref);
}

static enum hx_code answered_entity(struct single *single, const struct unit_result *result)
{
	struct api_query *query = single->context;
	const struct db_rows *rows = &result->rows[0];
	struct strbuf words;

	query->detail = "there is no such entity";
	if (rows->n == 0)
		return HX_NOT_FOUND;
	strbuf_init(&words, WORDS_BYTES_MAX);
	add_entity_words(&words, query->machine->workflow, rows,
			 clock_wall(engine_clock(api_of(query->call)->engine)).ms);
	answer(query, db_cell(rows, 0, ENTITY_STATUS)->s, &words);
	strbuf_release(&words);
	return HX_OK;
}

/* ---- the question ---- */

static void ask_by_id(struct http_call *call, int64_t subject, void (*build)(const struct single *, struct unit *),
		      enum hx_code (*answered)(struct single *, const struct unit_result *))
{
	struct api_query *query = api_query_new(call, build, answered);

	if (!query)
		return;
	query->subject = subject;
	api_query_read(query);
}

static void ask_entity(struct http_call *call, struct slice workflow, struct slice name)
{
	const struct entity_machine *machine = api_machine_named(call, workflow);
	struct api_query *query;

	if (!machine) {
		api_no_workflow(call, workflow, "entity");
		return;
	}
	query = api_query_new(call, build_entity, answered_entity);
	if (!query)
		return;
	query->machine = machine;
	query->name = name;
	api_query_read(query);
}

void api_why(struct http_call *call)
{
	struct slice id = call_param(call, "id"), workflow, name;
	int64_t subject;

	if (id_parse("run", id, &subject))
		ask_by_id(call, subject, build_run, answered_run);
	else if (id_parse("batch", id, &subject))
		ask_by_id(call, subject, build_batch, answered_batch);
	else if (id_parse("job", id, &subject))
		ask_by_id(call, subject, build_job, answered_job);
	else if (api_entity_split(id, &workflow, &name))
		ask_entity(call, workflow, name);
	else
		http_respond_code(call->exchange, HX_NOT_FOUND,
				  "a subject is entity:WORKFLOW:ID or the id of a run, a batch or a job");
}
