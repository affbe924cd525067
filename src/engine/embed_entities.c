/* Entities for an embedding program: create, read, fire a step. See embed.h; the contract is in hapax.h. */
#include "base/excerpt.h"
#include "base/id.h"
#include "base/latch.h"
#include "base/sized.h"
#include "base/trace.h"
#include "base/utf8.h"
#include "engine/definitions.h"
#include "engine/embed.h"
#include "engine/entity_fire.h"
#include "flow/single.h"

#define INPUT_BYTES_MAX (16u << 20) /* as a request's body */

/* Which entity is meant. */
struct entity_call {
	struct embed_call call;
	struct entity_ref ref;
};

/* Rows of the user's own table know no workspaces: they are in the one called `default`, and in no other. */
static enum hx_code find_machine(struct entity_call *call, const char *workflow, struct hx_error *err)
{
	const struct entity_machine *machine = definitions_find(engine_parts(call->call.e->engine)->definitions,
								slice_str(workflow));

	if (!machine || (machine->table && !slice_is(call->call.who.workspace, "default")))
		return error_set(err, HX_NOT_FOUND, "no workflow \"%s\" of kind entity",
				 excerpt_of(slice_str(workflow)).text);
	call->ref.machine = machine;
	return HX_OK;
}

/* After embed_begin(). */
static enum hx_code embed_entities_find(struct entity_call *call, const char *workflow, const char *id,
					struct hx_error *err)
{
	call->ref.workspace = call->call.who.workspace;
	call->ref.name = slice_str(id);
	return find_machine(call, workflow, err);
}

/* Of one that has to be there: what is no name is the name of nothing, and PostgreSQL would refuse the question. */
static enum hx_code find_there(struct entity_call *call, const char *workflow, const char *id, struct hx_error *err)
{
	enum hx_code code = embed_entities_find(call, workflow, id, err);

	if (!code && utf8_valid_bytes(call->ref.name) != call->ref.name.n)
		code = error_set(err, HX_NOT_FOUND, "there is no such entity");
	return code;
}

static uint64_t embed_entities_lane_of(const struct entity_call *call)
{
	return entity_hash(call->ref.workspace, call->ref.machine->workflow->name, call->ref.name);
}

/* ---- create ---- */

struct creation {
	struct single single;
	struct entity_call call;
	struct slice data, attributes;
	char made[ID_TEXT_BYTES];
};

/* The name that was given, else the subject's own id. */
static struct slice name_to_create(struct creation *c, int64_t fresh_id)
{
	if (c->call.ref.name.p)
		return c->call.ref.name;
	id_format("ent", fresh_id, c->made);
	return slice_str(c->made);
}

static void embed_entities_build_create(const struct single *single, struct unit *unit)
{
	struct creation *c = single->context;
	struct entity_ref ref = c->call.ref;

	ref.name = name_to_create(c, single->fresh_id);
	entity_create(unit, &single->stamp, &ref, single->fresh_id, c->data, c->attributes);
}

static enum hx_code embed_entities_answered_create(struct single *single UNUSED, const struct unit_result *result)
{
	return result->verdict == UNIT_WON ? HX_OK : HX_ALREADY_EXISTS;
}

static enum hx_code create(struct creation *c, struct hx_error *err)
{
	struct embed_reply *r = c->call.call.reply;
	enum hx_code code;

	single_init(&c->single, c, embed_entities_build_create, embed_entities_answered_create);
	code = embed_carry_out(c->call.call.e, embed_entities_lane_of(&c->call), &c->single.task);
	if (code)
		return embed_refuse(err, code,
				    code == HX_ALREADY_EXISTS ? "an entity of this id exists already" : NULL);
	r->result = (struct hx_result){
		.id = embed_text(r, name_to_create(c, c->single.fresh_id)),
		.status = embed_text(r, slice_str(c->call.ref.machine->workflow->initial_status)),
		.version = 1,
		.created = 1,
		.data = embed_text(r, c->data),
	};
	return HX_OK;
}

static enum hx_code check_create(struct creation *c, const char *id, const char *data, struct hx_error *err)
{
	struct json value;
	enum hx_code code = embed_json(data, "{}", "data", ENTITY_DATA_MAX, &value, err);

	if (code)
		return code;
	if (id && !entity_name_is_good(c->call.ref.name))
		return error_set(err, HX_VALIDATION_ERROR,
				 "an id is 1 to %d bytes of UTF-8 without control characters, not \"%s\"",
				 ENTITY_NAME_MAX, excerpt_of(c->call.ref.name).text);
	if (c->call.ref.machine->table)
		return error_set(err, HX_METHOD_NOT_ALLOWED, "entities of this workflow live in a table of yours");
	c->data = value.raw;
	c->attributes = entity_describe(c->call.ref.machine, c->data, &c->call.call.reply->arena);
	return HX_OK;
}

enum hx_code hx_entity_create(struct hx_engine *engine, const struct hx_caller *caller, const char *workflow,
			      const char *id, const char *data, struct hx_result **ret_result, struct hx_error *err)
{
	struct creation c = {0};
	enum hx_code code = embed_begin(&c.call.call, engine, caller, err);

	if (code)
		return code;
	code = embed_entities_find(&c.call, workflow, id, err);
	if (!code)
		code = check_create(&c, id, data, err);
	if (!code)
		code = create(&c, err);
	return embed_end(&c.call.call, code, /* also= */ HX_OK, ret_result, err);
}

/* ---- read ---- */

struct reading {
	struct single single;
	struct entity_call call;
};

static void build_read(const struct single *single, struct unit *unit)
{
	entity_read(unit, &((const struct reading *)single->context)->call.ref, slice_str(""));
}

static enum hx_code answered_read(struct single *single, const struct unit_result *result)
{
	struct embed_reply *r = ((struct reading *)single->context)->call.call.reply;
	const struct db_rows *rows = &result->rows[0];

	if (rows->n == 0)
		return HX_NOT_FOUND;
	r->result = (struct hx_result){
		.id = embed_text(r, db_cell(rows, 0, ENTITY_NAME)->s),
		.status = embed_text(r, db_cell(rows, 0, ENTITY_STATUS)->s),
		.version = db_cell(rows, 0, ENTITY_VERSION)->i,
		.data = embed_text(r, db_cell(rows, 0, ENTITY_DATA)->s),
	};
	return HX_OK;
}

enum hx_code hx_entity_read(struct hx_engine *engine, const struct hx_caller *caller, const char *workflow,
			    const char *id, struct hx_result **ret_result, struct hx_error *err)
{
	struct reading reading = {0};
	enum hx_code code = embed_begin(&reading.call.call, engine, caller, err);

	if (code)
		return code;
	code = find_there(&reading.call, workflow, id, err);
	if (!code) {
		single_init(&reading.single, &reading, build_read, answered_read);
		code = embed_carry_out(engine, embed_entities_lane_of(&reading.call), &reading.single.task);
		/* In the user's own table an id that its column's type does not take is the id of nothing. */
		if (code == HX_DATA_ERROR && reading.call.ref.machine->table)
			code = HX_NOT_FOUND;
		if (code == HX_OUTCOME_UNKNOWN) /* a read has none: it is asked again */
			code = HX_STORE_UNAVAILABLE;
		if (code)
			(void)embed_refuse(err, code, code == HX_NOT_FOUND ? "there is no such entity" : NULL);
	}
	return embed_end(&reading.call.call, code, /* also= */ HX_OK, ret_result, err);
}

/* ---- fire ---- */

struct firing {
	struct entity_fire fire;
	struct latch latch;
};

static void fire_done(struct entity_fire *fire, enum hx_code code)
{
	latch_open_with(&((struct firing *)fire)->latch, code);
}

/* The caller sees what the action itself said: words as the detail, a rejection as the output. */
static enum hx_code take_fired(struct embed_reply *r, const struct entity_step *s, enum hx_code code,
			       struct hx_error *err)
{
	bool has_json = code == HX_OK || code == HX_INVALID;

	r->result = (struct hx_result){
		.id = embed_text(r, s->name),
		.status = embed_text(r, slice_str(s->status)),
		.version = s->version,
		.data = embed_text(r, s->data),
		.output = embed_text(r, has_json && s->output.n ? s->output : slice_of(NULL, 0)),
	};
	if (code && !has_json && s->output.n)
		return error_set(err, code, "%.*s", SLICE_ARGS(s->output));
	return code ? embed_refuse(err, code, NULL) : HX_OK;
}

/* What is asked for, whether a step is to be fired or its outcome told. */
struct wanted {
	const char *workflow, *id;
	struct step_request rq;
	const char *given, *given_as; /* JSON: what the step is fired with, or what a person says that it put out */
};

static enum hx_code fire(struct entity_call *call, const struct wanted *wanted, struct hx_error *err)
{
	struct firing f = {.fire = {.rq = wanted->rq, .done = fire_done}};
	char trace[TRACE_PARENT_BYTES];
	enum hx_code code = find_there(call, wanted->workflow, wanted->id, err);

	if (!code)
		code = embed_json(wanted->given, "null", wanted->given_as, INPUT_BYTES_MAX, &f.fire.rq.input, err);
	if (code)
		return code;
	f.fire.rq.ref = call->ref;
	f.fire.rq.requester = call->call.who.requester;
	f.fire.rq.traceparent = trace_new(trace);
	latch_init(&f.latch);
	entity_fire_start(&f.fire, call->call.e->engine);
	code = take_fired(call->call.reply, &f.fire.step, latch_wait(&f.latch), err);
	entity_fire_release(&f.fire);
	latch_release(&f.latch);
	return code;
}

/* code: of reading the request. */
static enum hx_code fire_call(struct hx_engine *engine, const struct hx_caller *caller, enum hx_code code,
			      const struct wanted *wanted, struct hx_result **ret_result, struct hx_error *err)
{
	struct entity_call call = {0};
	enum hx_code begun = embed_begin(&call.call, engine, caller, err);

	if (begun)
		return begun;
	return embed_end(&call.call, code ? code : fire(&call, wanted, err), /* also= */ HX_INVALID, ret_result, err);
}

enum hx_code hx_entity_fire(struct hx_engine *engine, const struct hx_caller *caller,
			    const struct hx_fire_request *request, struct hx_result **ret_result, struct hx_error *err)
{
	struct hx_fire_request own = {0};
	enum hx_code code = SIZED_READ(request, &own, "hx_fire_request", err);
	struct wanted wanted = {
		.workflow = own.workflow,
		.id = own.id,
		.rq = {.mode = STEP_FIRE, .step_key = slice_str(own.step), .version = own.version},
		.given = own.input,
		.given_as = "input",
	};

	return fire_call(engine, caller, code, &wanted, ret_result, err);
}

/* ---- resolve ---- */

enum hx_code hx_entity_resolve(struct hx_engine *engine, const struct hx_caller *caller,
			       const struct hx_resolve_request *request, struct hx_result **ret_result,
			       struct hx_error *err)
{
	struct hx_resolve_request own = {0};
	enum hx_code code = SIZED_READ(request, &own, "hx_resolve_request", err);
	struct wanted wanted = {
		.workflow = own.workflow,
		.id = own.id,
		.rq = {.mode = own.done ? STEP_RESOLVE_DONE : STEP_RESOLVE_NOT_DONE, .step_key = slice_str(own.step)},
		.given = own.output,
		.given_as = "output",
	};

	return fire_call(engine, caller, code, &wanted, ret_result, err);
}
