/* Entities: create, show, list, fire a step, resolve a held claim. */
#include <stdlib.h>

#include "api/api_gate.h"
#include "api/api_list.h"
#include "api/api_search.h"
#include "base/id.h"
#include "base/json_walk.h"
#include "engine/entity_fire.h"
#include "wire/loop.h"

/* ---- one entity as JSON ---- */

static void add_claim(struct strbuf *text, const struct db_rows *rows, size_t row)
{
	static const struct row_member members[] = {
		{"step", ROW_TEXT, .at = ENTITY_CLAIM_STEP},
		{"requester", ROW_TEXT, .at = ENTITY_CLAIM_REQUESTER},
		{"owner", ROW_TEXT, .at = ENTITY_OWNER},
		{"fence", ROW_INT, .at = ENTITY_FENCE},
		{.name = NULL},
	};
	const struct db_value *owner = db_cell(rows, row, ENTITY_OWNER);
	bool held = owner->type != DB_NULL && slice_is(owner->s, SUBJECT_HELD);

	if (owner->type == DB_NULL) {
		strbuf_add_str(text, "null");
		return;
	}
	strbuf_add_char(text, '{');
	row_json_cells(text, members, rows, row);
	json_more_bool(text, "held", held);
	json_more_time(text, "until", held ? 0 : db_cell(rows, row, ENTITY_UNTIL)->i);
	strbuf_add_char(text, '}');
}

/* What it is searched by, where there is anything. */
static void add_attributes(struct strbuf *text, struct slice kept)
{
	if (!kept.n)
		return;
	json_more(text, "attributes");
	attributes_json(kept, text);
}

static void add_head(struct strbuf *text, const char *workflow, struct slice id, struct slice status, int64_t version,
		     struct slice data)
{
	strbuf_add_char(text, '{');
	json_more_text(text, "workflow", slice_str(workflow));
	json_more_text(text, "id", id);
	json_more_text(text, "status", status);
	json_more_int(text, "version", version);
	json_more_json(text, "data", data);
}

/* One that nobody has claimed. */
static void add_free(struct strbuf *text, const char *workflow, struct slice id, struct slice status, int64_t version,
		     struct slice data, struct slice attributes, struct wall_time at)
{
	add_head(text, workflow, id, status, version, data);
	add_attributes(text, attributes);
	json_more_json(text, "claim", slice_of(NULL, 0));
	json_more_time(text, "updatedAt", at.ms);
	strbuf_add_char(text, '}');
}

/* One row of entity_read. A row of the user's that no step has moved yet has no time. */
static void add_row(struct strbuf *text, const struct workflow *workflow, const struct db_rows *rows, size_t i)
{
	const struct db_value *attributes = db_cell(rows, i, ENTITY_ATTRIBUTES);

	add_head(text, workflow->name, db_cell(rows, i, ENTITY_NAME)->s, db_cell(rows, i, ENTITY_STATUS)->s,
		 db_cell(rows, i, ENTITY_VERSION)->i, db_cell(rows, i, ENTITY_DATA)->s);
	add_attributes(text, attributes->type == DB_NULL ? slice_of(NULL, 0) : attributes->s);
	json_more(text, "claim");
	add_claim(text, rows, i);
	json_more_time(text, "updatedAt", db_cell(rows, i, ENTITY_UPDATED_AT)->i);
	strbuf_add_char(text, '}');
}

static void add_entity(struct api_query *query, const struct db_rows *rows, size_t i)
{
	add_row(&query->text, query->machine->workflow, rows, i);
}

static struct entity_ref ref_of(const struct api_query *query)
{
	return (struct entity_ref){api_workspace(query->call), query->machine, query->name};
}

static uint64_t entities_lane_of(const struct api_query *query)
{
	return entity_hash(api_workspace(query->call), query->machine->workflow->name, query->name);
}

/* ---- create ---- */

/* The name that was given, else the subject's own id. */
static struct slice name_to_create(struct api_query *query)
{
	if (query->name.n)
		return query->name;
	id_format("ent", query->single.fresh_id, query->id);
	return slice_str(query->id);
}

static void entities_build_create(struct api_query *query, struct unit *unit)
{
	struct entity_ref ref = {api_workspace(query->call), query->machine, name_to_create(query)};

	entity_create(unit, &query->single.stamp, &ref, query->single.fresh_id, query->data, query->attributes);
}

static enum hx_code entities_answered_create(struct api_query *query, const struct unit_result *result)
{
	query->detail = "an entity of this id exists already";
	return result->verdict == UNIT_WON ? HX_OK : HX_ALREADY_EXISTS;
}

static void render_create(struct api_query *query)
{
	const struct workflow *workflow = query->machine->workflow;

	query->status = 201;
	query->etag = 1;
	add_free(&query->text, workflow->name, name_to_create(query), slice_str(workflow->initial_status), 1,
		 query->data, query->attributes, query->single.stamp.at);
}

void api_entity_create(struct http_call *call)
{
	static const char *const known[] = {"id", "data", NULL};
	struct api_query query = {
		.call = call,
		.build = entities_build_create,
		.answered = entities_answered_create,
		.render = render_create,
		.machine = api_machine(call),
		.data = slice_str("{}"),
	};
	struct json body, value;

	if (!query.machine || !api_body(call, known, &body))
		return;
	if (json_find(body, slice_str("id"), &value) &&
	    !api_name_member(call, body, "id", "id must be a string", &query.name))
		return;
	if (json_find(body, slice_str("data"), &value))
		query.data = value.raw;
	if (query.data.n > ENTITY_DATA_MAX)
		api_refuse(call, HX_TOO_LARGE, "data is at most 1 MiB");
	else if (query.machine->workflow->table.table)
		api_refuse(call, HX_METHOD_NOT_ALLOWED, "entities of this workflow live in a table of yours");
	else {
		query.attributes = entity_describe(query.machine, query.data, call->arena);
		api_query_ask(&query, entities_lane_of(&query));
	}
}

/* ---- show and list ---- */

static void entities_build_show(struct api_query *query, struct unit *unit)
{
	struct entity_ref ref = ref_of(query);

	entity_read(unit, &ref, slice_str(""));
}

static enum hx_code entities_answered_show(struct api_query *query, const struct unit_result *result)
{
	if (result->rows[0].n == 0) {
		query->detail = "there is no such entity";
		return HX_NOT_FOUND;
	}
	query->etag = db_cell(&result->rows[0], 0, ENTITY_VERSION)->i;
	add_entity(query, &result->rows[0], 0);
	return HX_OK;
}

void api_entity_show(struct http_call *call)
{
	struct api_query query = {
		.call = call,
		.build = entities_build_show,
		.answered = entities_answered_show,
		.machine = api_machine(call),
		.name = call_param(call, "id"),
	};

	if (query.machine)
		api_query_ask(&query, entities_lane_of(&query));
}

static void entities_build_list(struct api_query *query, struct unit *unit)
{
	struct entity_ref ref = ref_of(query);

	entity_list(unit, &ref, query->status_wanted, query->held, query->after, query->limit + 1);
}

const char *const *api_statuses(struct http_call *call, const struct workflow *w)
{
	const char **known = api_alloc(call, (w->statuses_n + 1) * sizeof *known);

	for (size_t i = 0; known && i < w->statuses_n; i++)
		known[i] = w->statuses[i];
	return known;
}

/* False after answering 400. */
static bool has_status(struct http_call *call, const struct workflow *w, struct slice status)
{
	const char *const *known;

	if (workflow_has_status(w, status))
		return true;
	known = api_statuses(call, w);
	return known && api_word_checked(call, status, known, "status", HX_VALIDATION_ERROR);
}

static bool may_be_searched(struct http_call *call, const struct entity_machine *machine)
{
	struct hx_error err;

	if (!machine->table)
		return true;
	error_set(&err, HX_BAD_QUERY, "entities of this workflow live in a table of yours: ask that");
	return api_bad_query(call, &err, 0);
}

void api_entity_list(struct http_call *call)
{
	static const struct api_search search = {
		.of = WHERE_ENTITY, .column = ENTITY_SUBJECT, .read = entity_list_these};
	static const struct api_list list = {
		.build = entities_build_list,
		.search = &search,
		.filters = {FILTER_TEXT("status", status_wanted), FILTER_FLAG("held", held)},
		.cursor = CURSOR_TEXT,
		.prefix = "ent", /* of the cursors of searches */
		.slice_line = 1,
		.column = ENTITY_NAME,
		.add = add_entity,
	};
	const struct entity_machine *machine = api_machine(call);
	struct api_query *query;

	if (machine && api_search_wanted(call)) {
		if (may_be_searched(call, machine))
			api_search(call, &list, machine);
		return;
	}
	query = machine ? api_list_new(call, &list) : NULL;
	if (!query || (query->status_wanted.n && !has_status(call, machine->workflow, query->status_wanted)))
		return;
	query->machine = machine;
	api_query_read(query);
}

/* ---- fire and resolve ---- */

struct fire {
	struct entity_fire fire;
	struct step_along along; /* the record of its Idempotency-Key */
	struct http_call *call;
	void (*write)(const void *of, struct strbuf *text); /* what is told of it, of a struct fired */
};

/* The step as it is told when it is done, or before, in the unit that gets it done. */
struct fired {
	const struct entity_step *step;
	const char *status;
	int64_t version;
	struct wall_time at;
};

static void write_fired(const void *of, struct strbuf *text)
{
	const struct fired *fired = of;
	const struct entity_step *s = fired->step;

	strbuf_add_str(text, "{\"entity\":");
	add_free(text, s->rq->ref.machine->workflow->name, s->name, slice_str(fired->status), fired->version, s->data,
		 s->attributes, fired->at);
	json_more_json(text, "output", s->output.n ? s->output : slice_of(NULL, 0));
	strbuf_add_char(text, '}');
}

/* A question has changed nothing: it tells what it was told. */
static void write_asked(const void *of, struct strbuf *text)
{
	const struct entity_step *s = ((const struct fired *)of)->step;

	api_write_probed(text, s->says, s->output);
}

static void write_changed(const void *of, struct strbuf *text)
{
	const struct fired *fired = of;
	const struct entity_step *s = fired->step;

	add_free(text, s->rq->ref.machine->workflow->name, s->name, slice_str(fired->status), fired->version, s->data,
		 s->attributes, fired->at);
}

static void respond_fired(struct fire *fire)
{
	const struct entity_step *s = &fire->fire.step;
	struct fired fired = {s, s->status, s->version, s->updated_at};

	api_tell(fire->call, &(struct api_told){200, s->rq->mode == STEP_ASK ? 0 : s->version, fire->write, &fired});
}

static void entities_add_record(struct step_along *along, const struct entity_step *s, const char *status,
				struct unit *unit)
{
	struct fire *fire = CONTAINER_OF(along, struct fire, along);
	struct fired fired = {s, status, s->version + 1, s->stamp.at};

	api_gate_carry(fire->call->gate, &(struct api_told){200, fired.version, fire->write, &fired}, unit);
}

static void entities_record_written(struct step_along *along, const struct unit_result *result)
{
	api_gate_carried(CONTAINER_OF(along, struct fire, along)->call->gate, result);
}

/* The caller sees what the action itself said: words as the detail, a rejection as it came. */
static void respond_refused(struct fire *fire, enum hx_code code)
{
	struct slice output = fire->fire.step.output;
	struct problem problem = {.code = code, .detail = output};

	if (code == HX_ACTION_FAILED || code == HX_LIMITED ||
	    code == HX_OUTCOME_UNKNOWN) /* what its service asks for, the caller is asked for */
		problem.retry_after_s = (unsigned)((fire->fire.step.not_before_ms + 999) / 1000);
	LOCAL_STRBUF(members, API_TEXT_BYTES_MAX);
	if (code == HX_INVALID && output.n) {
		strbuf_add_str(&members, "\"output\":");
		strbuf_add_slice(&members, output);
		problem.detail = slice_str("the action rejected its input");
		problem.members = strbuf_slice(&members);
	}
	http_respond_problem(fire->call->exchange, &problem);
}

static void fire_done(struct entity_fire *entity_fire, enum hx_code code)
{
	struct fire *fire = (struct fire *)entity_fire;

	if (code == HX_OK)
		respond_fired(fire);
	else
		respond_refused(fire, code);
	entity_fire_release(&fire->fire);
	free(fire);
}

/* False after answering 404. */
static bool has_step(struct http_call *call, const struct workflow *w)
{
	struct slice step_key = call_param(call, "step");
	const char **known;

	if (workflow_has_step(w, step_key))
		return true;
	known = api_alloc(call, (w->steps_n + 1) * sizeof *known);
	for (size_t i = 0; known && i < w->steps_n; i++)
		known[i] = w->steps[i].step_key;
	return known && api_word_checked(call, step_key, known, "step", HX_NOT_FOUND);
}

/* What the step is fired with, or what a person says that it put out; absent: null. */
static void fire_start(struct http_call *call, const struct step_request *rq, struct json body, const char *member)
{
	struct fire *fire = calloc(1, sizeof *fire);

	if (!fire) {
		http_respond_code(call->exchange, HX_BUSY, NULL);
		return;
	}
	fire->call = call;
	fire->write = rq->mode == STEP_CHANGE ? write_changed : rq->mode == STEP_ASK ? write_asked : write_fired;
	fire->fire.rq = *rq;
	fire->fire.rq.ref.workspace = api_workspace(call);
	fire->fire.rq.ref.name = call_param(call, "id");
	fire->fire.rq.step_key = rq->mode == STEP_CHANGE ? slice_str("data") : call_param(call, "step");
	fire->fire.rq.requester = api_requester(call);
	fire->fire.rq.traceparent = api_traceparent(call);
	fire->fire.rq.along = call->gate ? &fire->along : NULL;
	fire->fire.rq.input = json_trust(slice_str("null"));
	(void)json_find(body, slice_str(member), &fire->fire.rq.input);
	fire->fire.done = fire_done;
	fire->along = (struct step_along){.add = entities_add_record, .won = entities_record_written};
	entity_fire_start(&fire->fire, api_of(call)->engine);
}

void api_entity_fire(struct http_call *call)
{
	static const char *const known[] = {"input", "version", NULL};
	struct step_request rq = {.mode = STEP_FIRE, .ref.machine = api_machine(call)};
	struct json body;

	if (rq.ref.machine && has_step(call, rq.ref.machine->workflow) && api_body(call, known, &body) &&
	    api_version(call, body, &rq.version))
		fire_start(call, &rq, body, "input");
}

void api_entity_resolve(struct http_call *call)
{
	static const char *const known[] = {"outcome", "output", "version", "reason", NULL};
	struct step_request rq = {.ref.machine = api_machine(call)};
	struct json body;
	bool done;

	if (!rq.ref.machine || !has_step(call, rq.ref.machine->workflow) || !api_body(call, known, &body) ||
	    !api_either(call, body, "outcome", "done", "not_done", &done) || !api_version(call, body, &rq.version) ||
	    !api_reason(call, body, &rq.reason))
		return;
	rq.mode = done ? STEP_RESOLVE_DONE : STEP_RESOLVE_NOT_DONE;
	fire_start(call, &rq, body, "output");
}

void api_entity_probe(struct http_call *call)
{
	struct step_request rq = {.mode = STEP_ASK, .ref.machine = api_machine(call)};

	if (rq.ref.machine && has_step(call, rq.ref.machine->workflow))
		fire_start(call, &rq, json_trust(slice_str("{}")), "input");
}

void api_entity_data(struct http_call *call)
{
	static const char *const known[] = {"data", "version", NULL};
	struct step_request rq = {.mode = STEP_CHANGE, .ref.machine = api_machine(call)};
	struct json body, data;

	if (!rq.ref.machine || !api_body(call, known, &body) || !api_version(call, body, &rq.version))
		return;
	if (rq.ref.machine->workflow->table.table)
		api_refuse(call, HX_METHOD_NOT_ALLOWED, "entities of this workflow live in a table of yours");
	else if (!json_find(body, slice_str("data"), &data) || json_type(data) != JSON_OBJECT)
		api_refuse(call, HX_VALIDATION_ERROR,
			   "data must be an object: what it names is changed, null takes it away");
	else if (!rq.version)
		api_refuse(call, HX_VALIDATION_ERROR, "version is missing: the one that was seen");
	else
		fire_start(call, &rq, body, "data");
}
