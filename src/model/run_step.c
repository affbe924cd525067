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
#define WITH_OUTPUT (TYPE(RUN_TASK) | TYPE(RUN_EXTERNAL_EVENT) | TYPE(RUN_APPROVAL))
#define WITH_TIMEOUT (WITH_OUTPUT | TYPE(RUN_WAIT))

static const char *const on_timeout_names[] = {"fail", "continue", NULL};

/* clang-format off */
const struct field run_step_fields[] = {
	{"name",       FIELD_KNOWN},
	{"type",       FIELD_KNOWN},
	{"action",     .of = TYPE(RUN_TASK),           FIELD_ACTION(struct run_step, action), .required = true},
	{"compensate", .of = TYPE(RUN_TASK),           FIELD_ACTION(struct run_step, compensate)},
	{"input",      .of = TYPE(RUN_TASK),           FIELD_EXPRESSION(struct run_step, input)},
	{"retry",      .of = TYPE(RUN_TASK),           FIELD_RETRY(struct run_step, retry)},
	{"lease",      .of = TYPE(RUN_TASK),           FIELD_LEASE(struct run_step, lease_ms)},
	{"on_unknown", .of = TYPE(RUN_TASK),           FIELD_ON_UNKNOWN(struct run_step, on_unknown)},
	{"on_5xx",     .of = TYPE(RUN_TASK),           FIELD_ON_5XX(struct run_step, unknown_on_5xx)},
	{"save_as",    .of = WITH_OUTPUT,              FIELD_NAME(struct run_step, save_as)},
	{"timeout",    .of = WITH_TIMEOUT,             FIELD_DURATION(struct run_step, timeout_ms)},
	{"on_timeout", .of = WITH_TIMEOUT,             FIELD_CHOICE(struct run_step, goes_on_timed_out, on_timeout_names)},
	{"for",        .of = TYPE(RUN_WAIT),           FIELD_DURATION(struct run_step, for_ms)},
	{"until",      .of = TYPE(RUN_WAIT),           FIELD_OWN_AT(struct run_step, until, const struct expression *, read_until)},
	{"event",      .of = TYPE(RUN_EXTERNAL_EVENT), FIELD_NAME(struct run_step, event), .required = true},
	{"entry_lock", .of = TYPE(RUN_APPROVAL),       FIELD_DURATION(struct run_step, entry_lock_ms)},
	{"when",       .of = TYPE(RUN_CONDITION),      FIELD_EXPRESSION(struct run_step, when), .required = true},
	{"then",       .of = TYPE(RUN_CONDITION),      FIELD_KNOWN}, /* of run_path.c, like: */
	{"else",       .of = TYPE(RUN_CONDITION),      FIELD_KNOWN},
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
static void check_task_timeout(const struct reader *r, const struct json_node *node, const struct run_step *step)
{
	const struct json_node *on_timeout = json_node_member(node, "on_timeout");

	attempt_check_timeout(r, json_node_member(node, "timeout"), step->action);
	if (on_timeout && step->on_unknown == UNKNOWN_HOLD)
		reader_warn(r, on_timeout->at.line, "on_timeout",
			    "it never applies: after a timeout the outcome is unknown, and on_unknown is hold");
}

static void check_task(const struct reader *r, const struct json_node *node, struct run_step *step)
{
	if (!step->action)
		return;
	attempt_settle_on_unknown(r, json_node_member(node, "on_unknown"), step->action, &step->on_unknown);
	check_task_timeout(r, node, step);
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

static void check_step(const struct reader *r, const struct json_node *node, struct run_step *step)
{
	switch (step->type) {
	case RUN_TASK:
		check_task(r, node, step);
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
}
