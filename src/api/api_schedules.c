/* Schedules: put, show, list, pause, resume, trigger, backfill, delete. What they are is flow/schedule.h. */
#include "api/api_list.h"
#include "base/json_string.h"
#include "base/json_walk.h"
#include "engine/run_start.h"
#include "engine/schedules.h"
#include "flow/schedule_verb.h"
#include "model/reader.h"

#define TASK_BYTES_MAX (64u << 20)
#define NEXT_N 10

static const char no_schedule[] = "there is no such schedule";

static uint64_t schedules_lane_of(const struct http_call *call, struct slice name)
{
	return entity_hash(api_workspace(call), "schedule", name);
}

static const struct schedule_policy *schedules_policy_of(const struct http_call *call)
{
	return api_parts(call)->schedule_policy;
}

/* ---- what is shown ---- */

/* The next slots, as they are named: the start may be later by its jitter. */
static void add_next(struct strbuf *text, const void *of)
{
	const struct schedule_row *row = of;
	int64_t slot = row->now;
	char time[WALL_TIME_TEXT_BYTES];

	json_more(text, "next");
	strbuf_add_char(text, '[');
	for (int i = 0; row->spec.timing.zone && i < NEXT_N && (slot = schedule_slot_after(row, slot)); i++) {
		wall_time_format((struct wall_time){slot}, time);
		strbuf_addf(text, "%s\"%s\"", i ? "," : "", time);
	}
	strbuf_add_char(text, ']');
}

/* What is started, in the order of enum schedule_starts; also how its ids begin. */
static const char *const things[] = {"run", "batch", "job"};

static void add_last(struct strbuf *text, const void *of)
{
	const struct schedule_row *row = of;

	json_more(text, "last");
	if (!row->last_at) {
		strbuf_add_str(text, "null");
		return;
	}
	strbuf_add_char(text, '{');
	json_more_time(text, "slot", row->last_slot);
	json_more_time(text, "startedAt", row->last_at);
	if (row->last_run)
		json_more_id(text, things[row->spec.starts], things[row->spec.starts], row->last_run);
	strbuf_add_char(text, '}');
}

/* What it says, without its brackets. */
static void add_text(struct strbuf *text, const void *of)
{
	const struct schedule_row *row = of;

	strbuf_add_char(text, ',');
	strbuf_add(text, row->text.p + 1, row->text.n - 2);
}

static void add_waiting(struct strbuf *text, const void *of)
{
	const struct schedule_row *row = of;

	json_more_int(text, "waiting", row->waiting > row->queued ? row->waiting : row->queued);
}

#define AT(field) .at = offsetof(struct schedule_row, field)

static const struct row_member shown_members[] = {
	ROW_SAME(TEXT, name),
	{"id", ROW_ID, AT(subject), .prefix = "sched"},
	{"text", ROW_OWN, .add = add_text},
	ROW_SAME(BOOL, paused),
	{"next", ROW_OWN, .add = add_next},
	{"last", ROW_OWN, .add = add_last},
	{"waiting", ROW_OWN, .add = add_waiting},
	ROW_SAME(INT, open),
	ROW_SAME(INT, started),
	ROW_SAME(INT, skipped),
	ROW_SAME(INT, missed),
	ROW_SAME(TEXT, requester),
	ROW_SAME(INT, version),
	{"createdAt", ROW_TIME, AT(created_at)},
	{"updatedAt", ROW_TIME, AT(updated_at)},
	{.name = NULL},
};

static void write_schedule(const void *of, struct strbuf *text)
{
	row_json_object(text, shown_members, of);
}

static enum hx_code schedules_add_row(struct api_query *query, const struct db_rows *rows, size_t i)
{
	struct schedule_row row;
	enum hx_code code;

	LOCAL_ARENA(arena, TASK_BYTES_MAX);
	code = schedule_row_take(rows, i, schedules_policy_of(query->call), &arena, &row);
	if (code && code != HX_DATA_ERROR)
		return code;
	write_schedule(&row, &query->text);
	query->etag = query->list ? 0 : row.version;
	return HX_OK;
}

static void schedules_build_show(struct api_query *query, struct unit *unit)
{
	schedule_read(unit, 0, api_workspace(query->call), query->name);
}

static enum hx_code schedules_answered_show(struct api_query *query, const struct unit_result *result)
{
	query->detail = no_schedule;
	return result->rows[0].n ? schedules_add_row(query, &result->rows[0], 0) : HX_NOT_FOUND;
}

void api_schedule_show(struct http_call *call)
{
	struct api_query query = {.call = call,
				  .build = schedules_build_show,
				  .answered = schedules_answered_show,
				  .name = call_param(call, "name")};

	api_query_ask(&query, schedules_lane_of(call, query.name));
}

static void schedules_build_list(struct api_query *query, struct unit *unit)
{
	schedule_list(unit, api_workspace(query->call), query->after, query->limit + 1);
}

static void add_listed(struct api_query *query, const struct db_rows *rows, size_t i)
{
	if (schedules_add_row(query, rows, i))
		query->text.failed = true;
}

const struct api_list api_schedule_list = {
	.build = schedules_build_list,
	.cursor = CURSOR_TEXT,
	.column = SCHEDULE_NAME,
	.add = add_listed,
};

/* ---- verbs ---- */

struct schedule_call {
	struct api_task task;
	struct schedule_verb verb;
	struct schedule_verb_request rq;
	struct schedule_spec spec;
};

static void write_triggered(const void *of, struct strbuf *text)
{
	const struct schedule_verb *verb = of;
	const char *thing = things[verb->row.spec.starts];

	strbuf_add_char(text, '{');
	json_more(text, thing);
	strbuf_add_char(text, '{');
	json_more_id(text, "id", thing, verb->start.subject);
	json_more_text(text, verb->start.run ? "definitionId" : "workflow", verb->row.spec.workflow);
	json_more_text(text, "idempotencyKey", verb->start.key);
	strbuf_add_char(text, '}');
	json_more_bool(text, "created", verb->changed);
	strbuf_add_char(text, '}');
}

/* Of a backfill and of a deletion. */
static void write_named(const void *of, struct strbuf *text)
{
	const struct schedule_verb *verb = of;

	strbuf_add_char(text, '{');
	json_more_text(text, "name", verb->row.name);
	if (verb->rq->kind == SCHEDULE_DELETE)
		json_more_bool(text, "deleted", true);
	else
		json_more_int(text, "slots", verb->slots_n);
	strbuf_add_char(text, '}');
}

static void verb_done(struct seat *seat, enum hx_code code)
{
	struct schedule_call *sc = (struct schedule_call *)seat;
	const struct schedule_verb *verb = &sc->verb;
	struct api_told told = {200, .etag_version = verb->row.version, .write = write_schedule, .of = &verb->row};
	const char *detail = verb->detail;

	if (sc->rq.kind == SCHEDULE_PUT && verb->created)
		told.status = 201;
	else if (sc->rq.kind == SCHEDULE_TRIGGER)
		told = (struct api_told){verb->changed ? 201 : 200, .write = write_triggered, .of = verb};
	else if (sc->rq.kind == SCHEDULE_BACKFILL || sc->rq.kind == SCHEDULE_DELETE)
		told = (struct api_told){sc->rq.kind == SCHEDULE_DELETE ? 200 : 202, .write = write_named, .of = verb};
	if (code == HX_NOT_FOUND && sc->rq.of_function)
		detail = api_no_workflow_words(sc->task.call, sc->spec.workflow, "run");
	api_task_end(&sc->task, code, detail, &told);
}

/* NULL after answering. */
static struct schedule_call *call_new(struct http_call *call, enum schedule_verb_kind kind)
{
	struct schedule_call *sc = api_task_new(call, sizeof *sc, TASK_BYTES_MAX, verb_done);

	if (!sc)
		return NULL;
	sc->rq = (struct schedule_verb_request){.kind = kind,
						.workspace = api_workspace(call),
						.requester = api_requester(call),
						.name = call_param(call, "name"),
						.policy = schedules_policy_of(call)};
	return sc;
}

static void call_start(struct schedule_call *sc)
{
	schedule_verb_init(&sc->verb, &sc->rq, &sc->task.arena);
	api_task_start(&sc->task, &sc->verb.task, schedules_lane_of(sc->task.call, sc->rq.name));
}

/* What it starts is there. False after answering. */
static bool target_checked(struct http_call *call, const struct schedule_spec *spec)
{
	static const char *const kinds[] = {"run", "batch", "entity"};
	const struct schedule_policy *policy = schedules_policy_of(call);
	bool there = schedule_may_be_function(policy, spec) || schedule_is_known(policy, spec);

	if (!there)
		api_no_workflow(call, spec->workflow, kinds[spec->starts]);
	return there;
}

static bool read_put(struct http_call *call, struct schedule_call *sc)
{
	struct hx_error err;
	struct json body;
	struct strbuf text;

	if (!name_is_valid(sc->rq.name))
		return api_invalid(call, "the name of a schedule has 1 to 64 characters of A-Z a-z 0-9 _ . -");
	if (!api_body(call, schedule_members, &body))
		return false;
	if (schedule_spec_read(body, /* file= */ false, &sc->task.arena, &err, &sc->spec)) {
		http_respond_error(call->exchange, &err);
		return false;
	}
	sc->spec.timing.zone = sc->rq.policy->zone_of(sc->rq.policy->context, sc->spec.timezone);
	if (!sc->spec.timing.zone)
		return api_invalid(call, "timezone: there is no %.*s in the system's tzdata",
				   SLICE_ARGS(sc->spec.timezone));
	strbuf_init(&text, API_TEXT_BYTES_MAX);
	schedule_spec_write(&sc->spec, &text);
	sc->rq.text = arena_keep(&sc->task.arena, &text);
	sc->rq.spec = &sc->spec;
	sc->rq.of_function = schedule_may_be_function(sc->rq.policy, &sc->spec);
	return target_checked(call, &sc->spec) && (sc->rq.text.p || api_refuse(call, HX_TOO_LARGE, NULL));
}

void api_schedule_put(struct http_call *call)
{
	struct schedule_call *sc = call_new(call, SCHEDULE_PUT);

	if (!sc)
		return;
	if (read_put(call, sc))
		call_start(sc);
	else
		api_task_free(&sc->task);
}

/* Pause, resume, delete. */
void api_schedule_verb(struct http_call *call)
{
	static const char *const nothing[] = {NULL};
	struct schedule_call *sc;
	struct json body;

	if (!api_body(call, nothing, &body))
		return;
	sc = call_new(call, (enum schedule_verb_kind)call->route->verb);
	if (sc)
		call_start(sc);
}

void api_schedule_trigger(struct http_call *call)
{
	static const char *const known[] = {"id", NULL};
	struct slice id = {NULL, 0};
	struct schedule_call *sc;
	struct json body, value;

	if (!api_body(call, known, &body))
		return;
	if (json_find(body, slice_str("id"), &value) && !api_key_checked(call, value, "id", &id))
		return;
	if (id.n > 100) {
		api_refuse(call, HX_VALIDATION_ERROR, "id has at most 100 bytes");
		return;
	}
	sc = call_new(call, SCHEDULE_TRIGGER);
	if (!sc)
		return;
	sc->rq.id = id;
	call_start(sc);
}

/* False after answering. */
static bool read_time(struct http_call *call, struct json body, const char *member, int64_t *ret_ms)
{
	struct wall_time time;
	struct hx_error err;
	struct json value;

	if (!json_find(body, slice_str(member), &value) || json_type(value) != JSON_STRING)
		return api_invalid(call, "%s is a time like \"2026-11-15T05:39:00.000Z\"", member);
	if (wall_time_parse(member, json_string_view(value, call->arena), &err, &time)) {
		http_respond_error(call->exchange, &err);
		return false;
	}
	*ret_ms = time.ms;
	return true;
}

void api_schedule_backfill(struct http_call *call)
{
	static const char *const known[] = {"from", "to", NULL};
	struct schedule_call *sc;
	int64_t from_ms, to_ms;
	struct json body;

	if (!api_body(call, known, &body) || !read_time(call, body, "from", &from_ms) ||
	    !read_time(call, body, "to", &to_ms))
		return;
	if (to_ms < from_ms) {
		api_refuse(call, HX_VALIDATION_ERROR, "to is not before from");
		return;
	}
	sc = call_new(call, SCHEDULE_BACKFILL);
	if (!sc)
		return;
	sc->rq.from_ms = from_ms;
	sc->rq.to_ms = to_ms;
	call_start(sc);
}
