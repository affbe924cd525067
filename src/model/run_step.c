/*
 * The steps of a run definition. One table has the fields, and which types of steps they belong to; a field of another type is
 * refused like an unknown one, because whoever wrote it believed in something that does not happen.
 */
#include <stdio.h>

#include "base/clock.h"
#include "model/head.h"
#include "model/run_draft.h"

#define NAME_OF(type, name, ...) name,
static const char *const type_names[] = {RUN_STEP_TYPES(NAME_OF) NULL};

#define CONCURRENCY_DEFAULT 10
#define ITERATIONS_DEFAULT 1000
#define TYPES (sizeof type_names / sizeof type_names[0] - 1)

const char *run_step_type_name(enum run_step_type type)
{
	return type_names[type];
}

/* "2026-…": no expression begins so, since there is no arithmetic. */
static bool begins_like_time(struct slice text)
{
	size_t n = 0;

	while (n < text.n && text.p[n] >= '0' && text.p[n] <= '9')
		n++;
	return n > 0 && n < text.n && text.p[n] == '-';
}

/* A time as it stands is kept as the expression that gives it: its text with the quotes. */
static void read_until(const struct reader *r, const struct json_node *node, const struct field *field, void *ret)
{
	struct wall_time time;
	struct hx_error err;

	if (node->type != JSON_STRING || !begins_like_time(node->string))
		run_draft_expression(r, node, field, ret);
	else if (wall_time_parse(field->name, node->string, &err, &time) != HX_OK ||
		 expression_parse(node->value.raw, r->arena, &err, ret) != HX_OK)
		reader_report(r, node->at.line, "time", "%s", err.detail);
}

#define TYPE(type) (1u << (type))
#define WITH_ACTION (TYPE(RUN_TASK) | TYPE(RUN_MAP))
#define WITH_INPUT (TYPE(RUN_TASK) | TYPE(RUN_CHILD) | TYPE(RUN_MAP))
#define WITH_EVENT (TYPE(RUN_EXTERNAL_EVENT) | TYPE(RUN_APPROVAL))
#define WITH_OUTPUT (WITH_INPUT | WITH_EVENT | TYPE(RUN_PARALLEL))
#define WITH_TIMEOUT (WITH_ACTION | WITH_EVENT | TYPE(RUN_WAIT))

static const char *const on_timeout_names[] = {"fail", "continue", NULL};
static const char *const on_failure_names[] = {"fail_fast", "collect", NULL};
static const char *const join_names[] = {"all", "any", NULL};

/* clang-format off */
const struct field run_step_fields[] = {
	{"name",        FIELD_KNOWN},
	{"type",        FIELD_KNOWN},
	{"action",      .of = WITH_ACTION,              FIELD_ACTION(struct run_step, action)},
	{"compensate",  .of = WITH_ACTION,              FIELD_ACTION(struct run_step, compensate)},
	{"input",       .of = WITH_INPUT,               FIELD_OWN_AT(struct run_step, input, const struct expression *, run_draft_item_expression)},
	{"retry",       .of = WITH_ACTION,              FIELD_RETRY(struct run_step, retry)},
	{"lease",       .of = WITH_ACTION,              FIELD_LEASE(struct run_step, lease_ms)},
	{"on_unknown",  .of = WITH_ACTION,              FIELD_ON_UNKNOWN(struct run_step, on_unknown)},
	{"on_5xx",      .of = WITH_ACTION,              FIELD_ON_5XX(struct run_step, unknown_on_5xx)},
	{"save_as",     .of = WITH_OUTPUT,              FIELD_NAME(struct run_step, save_as)},
	{"timeout",     .of = WITH_TIMEOUT,             FIELD_DURATION(struct run_step, timeout_ms)},
	{"on_timeout",  .of = WITH_TIMEOUT,             FIELD_CHOICE(struct run_step, goes_on_timed_out, on_timeout_names)},
	{"for",         .of = TYPE(RUN_WAIT),           FIELD_DURATION(struct run_step, for_ms)},
	{"until",       .of = TYPE(RUN_WAIT) | TYPE(RUN_REPEAT), FIELD_OWN_AT(struct run_step, until, const struct expression *, read_until)},
	{"event",       .of = TYPE(RUN_EXTERNAL_EVENT), FIELD_NAME(struct run_step, event), .required = true},
	{"entry_lock",  .of = TYPE(RUN_APPROVAL),       FIELD_DURATION(struct run_step, entry_lock_ms)},
	{"when",        .of = TYPE(RUN_CONDITION),      FIELD_EXPRESSION(struct run_step, when), .required = true},
	{"then",        .of = TYPE(RUN_CONDITION),      FIELD_KNOWN}, /* of run_path.c, like: */
	{"else",        .of = TYPE(RUN_CONDITION),      FIELD_KNOWN},
	{"workflow",    .of = TYPE(RUN_CHILD) | TYPE(RUN_MAP), FIELD_NAME(struct run_step, workflow)},
	{"over",        .of = TYPE(RUN_MAP),            FIELD_EXPRESSION(struct run_step, over), .required = true},
	{"concurrency", .of = TYPE(RUN_MAP),            FIELD_INT(struct run_step, concurrency, 1, RUN_CONCURRENCY_MAX)},
	{"on_failure",  .of = TYPE(RUN_MAP),            FIELD_CHOICE(struct run_step, collects, on_failure_names)},
	{"join",        .of = TYPE(RUN_PARALLEL),       FIELD_CHOICE(struct run_step, joins_any, join_names)},
	{"branches",    .of = TYPE(RUN_PARALLEL),       FIELD_KNOWN}, /* of run_nested.c, like: */
	{"steps",       .of = TYPE(RUN_REPEAT),         FIELD_KNOWN},
	{"every",       .of = TYPE(RUN_REPEAT),         FIELD_DURATION(struct run_step, every_ms)},
	{"max",         .of = TYPE(RUN_REPEAT),         FIELD_INT(struct run_step, iterations_max, 1, RUN_ITERATIONS_MAX)},
	{0}};
/* clang-format on */

static void refuse_field(const struct reader *r, const struct json_node *member, const struct field *misplaced,
			 unsigned of, const char *const *fitting)
{
	char owners[128];
	size_t n = 0;

	if (!misplaced) {
		head_refuse(r, member, misplaced, of, fitting);
		return;
	}
	for (size_t t = 0; t < TYPES; t++)
		if (misplaced->of & TYPE(t))
			n += (size_t)snprintf(owners + n, sizeof owners - n, "%s%s", n ? ", " : "", type_names[t]);
	reader_report(r, member->name_at.line, "unknown field",
		      "\"%s\" does not belong to a step of type %s, only to %s", misplaced->name,
		      type_names[__builtin_ctz(of)], owners);
}

/* ---- what must hold between the fields of one step ---- */

/* Not an error: the step is as safe without it. But it says something that will not happen. */
static void check_action(const struct reader *r, const struct json_node *node, struct run_step *step)
{
	const struct json_node *on_timeout = json_node_member(node, "on_timeout");

	if (!step->action)
		return;
	attempt_settle_on_unknown(r, json_node_member(node, "on_unknown"), step->action, &step->on_unknown);
	attempt_check_timeout(r, json_node_member(node, "timeout"), step->action);
	if (on_timeout && step->on_unknown == UNKNOWN_HOLD)
		reader_warn(r, on_timeout->at.line, "on_timeout",
			    "it never applies: after a timeout the outcome is unknown, and on_unknown is hold");
}

/* Only what a map makes for each of its children may look at the item. */
static void check_input(const struct reader *r, const struct json_node *node, const struct run_step *step)
{
	struct hx_error err;

	if (step->input && expression_check_roots(step->input, expression_run_roots, &err) != HX_OK)
		reader_report(r, json_node_member(node, "input")->at.line, "expression", "input: %s", err.detail);
}

static void check_wait(const struct reader *r, const struct json_node *node)
{
	const struct json_node *time = json_node_member(node, "for"), *until = json_node_member(node, "until");
	const struct json_node *timeout = json_node_member(node, "timeout");

	if (!time && !until)
		reader_report(r, node->at.line, "missing field", "a wait needs \"for\" or \"until\"");
	if (time && until)
		reader_report(r, until->name_at.line, "value", "a wait has \"for\" or \"until\", not both");
	if (time && timeout)
		reader_report(r, timeout->name_at.line, "timeout",
			      "\"for\" says already how long it waits; a timeout goes with \"until\"");
}

/* A step that waits for ever does not time out. */
static void check_on_timeout(const struct reader *r, const struct json_node *node)
{
	const struct json_node *on_timeout = json_node_member(node, "on_timeout");

	if (on_timeout && !json_node_member(node, "timeout"))
		reader_report(r, on_timeout->name_at.line, "on_timeout",
			      "it needs a timeout: without one the step never times out");
}

/* Of which workflow, or by which action; what only a task has goes with the action. */
static void check_map(const struct reader *r, const struct json_node *node, struct run_step *step)
{
	static const char *const of_task[] = {"compensate", "retry",   "lease",     "on_unknown",
					      "on_5xx",     "timeout", "on_timeout"};
	const struct json_node *action = json_node_member(node, "action"),
			       *workflow = json_node_member(node, "workflow");

	if (!action && !workflow)
		reader_report(r, node->at.line, "missing field", "a map needs \"workflow\" or \"action\"");
	if (action && workflow)
		reader_report(r, workflow->name_at.line, "value", "a map has \"workflow\" or \"action\", not both");
	for (size_t i = 0; !action && i < sizeof of_task / sizeof *of_task; i++) {
		const struct json_node *member = json_node_member(node, of_task[i]);

		if (member)
			reader_report(r, member->name_at.line, "value",
				      "\"%s\" goes with \"action\": a workflow says it in its own steps", of_task[i]);
	}
	check_action(r, node, step);
}

static void check_step(const struct reader *r, const struct json_node *node, struct run_step *step)
{
	switch (step->type) {
	case RUN_TASK:
		(void)reader_required(r, node, "action");
		check_input(r, node, step);
		check_action(r, node, step);
		return;
	case RUN_CHILD:
		(void)reader_required(r, node, "workflow");
		check_input(r, node, step);
		return;
	case RUN_MAP:
		check_map(r, node, step);
		return;
	case RUN_REPEAT:
		(void)reader_required(r, node, "until");
		return;
	case RUN_WAIT:
		check_wait(r, node);
		check_on_timeout(r, node);
		return;
	case RUN_EXTERNAL_EVENT:
	case RUN_APPROVAL:
		check_on_timeout(r, node);
		return;
	case RUN_CONDITION:
	case RUN_PARALLEL:
		return;
	}
	ASSERT(!"a type has its rules");
}

/* ---- a step ---- */

struct reader run_draft_reader(const struct run_draft *d, size_t i)
{
	struct reader r = d->r;

	r.place.step = d->sources[i].label;
	return r;
}

static void read_name(const struct reader *r, const struct json_node *node, struct run_step *step)
{
	const struct json_node *name = reader_required(r, node, "name");

	if (!reader_name(r, name, "name", &step->name))
		return;
	if (slice_is(name->string, RUN_END_NAME))
		reader_report(r, name->at.line, "name",
			      "no step can be called \"" RUN_END_NAME
			      "\": in then and else that is the end of the run");
}

void run_draft_step(struct run_draft *d, size_t i, const struct json_node *node)
{
	struct run_step *step = &d->steps[i];
	int type = 0;

	d->sources[i].node = node;
	d->sources[i].label = reader_label(json_node_member(node, "name"), i, d->scratch);
	step->position = i;
	step->line = node->at.line;
	step->retry = run_retry_default;
	step->concurrency = CONCURRENCY_DEFAULT;
	step->iterations_max = ITERATIONS_DEFAULT;

	struct reader r = run_draft_reader(d, i);

	d->sources[i].may_jump_away = true;
	if (!reader_object(&r, node, "a step"))
		return;
	read_name(&r, node, step);
	if (!reader_choice(&r, reader_required(&r, node, "type"), "type", type_names, &type)) {
		fields_check(&r, node, run_step_fields, FIELDS_ANYWHERE, refuse_field);
		fields_take(&r, node, run_step_fields, FIELDS_ANYWHERE, step);
		return;
	}
	d->sources[i].may_jump_away = false;
	step->type = (enum run_step_type)type;
	fields_check(&r, node, run_step_fields, TYPE(type), refuse_field);
	fields_take(&r, node, run_step_fields, TYPE(type), step);
	check_step(&r, node, step);
	run_draft_parts(d, i, node);
}
