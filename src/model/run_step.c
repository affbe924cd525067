/*
 * The steps of a run definition. One table says which field belongs to which type of step; a field of another type is
 * refused like an unknown one, because whoever wrote it believed in something that does not happen.
 */
#include <stdio.h>

#include "base/clock.h"
#include "model/head.h"
#include "model/run_draft.h"
#include "model/text.h"

static const char *const type_names[] = {"task", "wait", "external_event", "approval", "condition", NULL};

#define TYPES (sizeof type_names / sizeof type_names[0] - 1)

const char *run_step_type_name(enum run_step_type type)
{
	return type_names[type];
}

typedef void read_fn(const struct run_draft *d, const struct reader *r, const struct json_node *node,
		     struct run_step *step);

static void read_action(const struct run_draft *d, const struct reader *r, const struct json_node *node,
			struct run_step *step)
{
	step->action = action_reference(r, node, "action", &d->actions);
}

static void read_compensate(const struct run_draft *d, const struct reader *r, const struct json_node *node,
			    struct run_step *step)
{
	step->compensate = action_reference(r, node, "compensate", &d->actions);
}

static void read_input(const struct run_draft *d, const struct reader *r, const struct json_node *node,
		       struct run_step *step)
{
	(void)d;
	step->input = run_draft_expression(r, node, "input");
}

static void read_retry(const struct run_draft *d, const struct reader *r, const struct json_node *node,
		       struct run_step *step)
{
	(void)d;
	attempt_read_retry(r, node, &step->retry);
}

static void read_lease(const struct run_draft *d, const struct reader *r, const struct json_node *node,
		       struct run_step *step)
{
	(void)d;
	(void)reader_lease(r, node, "lease", &step->lease_ms); /* reported there */
}

static void read_on_unknown(const struct run_draft *d, const struct reader *r, const struct json_node *node,
			    struct run_step *step)
{
	(void)d;
	attempt_read_on_unknown(r, node, "a step of a run", &step->on_unknown);
}

static void read_on_5xx(const struct run_draft *d, const struct reader *r, const struct json_node *node,
			struct run_step *step)
{
	(void)d;
	attempt_read_on_5xx(r, node, &step->unknown_on_5xx);
}

static void read_save_as(const struct run_draft *d, const struct reader *r, const struct json_node *node,
			 struct run_step *step)
{
	(void)d;
	(void)reader_name(r, node, "save_as", &step->save_as); /* reported there */
}

static void read_timeout(const struct run_draft *d, const struct reader *r, const struct json_node *node,
			 struct run_step *step)
{
	(void)d;
	(void)reader_duration(r, node, "timeout", &step->timeout_ms); /* reported there */
}

static void read_on_timeout(const struct run_draft *d, const struct reader *r, const struct json_node *node,
			    struct run_step *step)
{
	static const char *const names[] = {"fail", "continue", NULL};
	int choice;

	(void)d;
	if (reader_choice(r, node, "on_timeout", names, &choice))
		step->goes_on_timed_out = choice == 1;
}

static void read_for(const struct run_draft *d, const struct reader *r, const struct json_node *node,
		     struct run_step *step)
{
	(void)d;
	(void)reader_duration(r, node, "for", &step->for_ms); /* reported there */
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
static void read_until(const struct run_draft *d, const struct reader *r, const struct json_node *node,
		       struct run_step *step)
{
	struct wall_time time;
	struct hx_error err;

	(void)d;
	if (node->type != JSON_STRING || !begins_like_time(node->string))
		step->until = run_draft_expression(r, node, "until");
	else if (wall_time_parse("until", node->string, &err, &time) != HX_OK ||
		 expression_parse(node->value.raw, r->arena, &err, &step->until) != HX_OK)
		reader_report(r, node->at.line, "time", "%s", err.detail);
}

static void read_event(const struct run_draft *d, const struct reader *r, const struct json_node *node,
		       struct run_step *step)
{
	(void)d;
	(void)reader_name(r, node, "event", &step->event); /* reported there */
}

static void read_entry_lock(const struct run_draft *d, const struct reader *r, const struct json_node *node,
			    struct run_step *step)
{
	(void)d;
	(void)reader_duration(r, node, "entry_lock", &step->entry_lock_ms); /* reported there */
}

static void read_when(const struct run_draft *d, const struct reader *r, const struct json_node *node,
		      struct run_step *step)
{
	(void)d;
	step->when = run_draft_expression(r, node, "when");
}

#define TYPE(type) (1u << (type))
#define ALL (~0u)
#define WITH_OUTPUT (TYPE(RUN_TASK) | TYPE(RUN_EXTERNAL_EVENT) | TYPE(RUN_APPROVAL))
#define WITH_TIMEOUT (WITH_OUTPUT | TYPE(RUN_WAIT))

/* clang-format off */
static const struct field {
	const char *name;
	unsigned types;
	read_fn *read; /* NULL: read by itself */
} fields[] = {
	{"name",       ALL,                      NULL},
	{"type",       ALL,                      NULL},
	{"action",     TYPE(RUN_TASK),           read_action},
	{"compensate", TYPE(RUN_TASK),           read_compensate},
	{"input",      TYPE(RUN_TASK),           read_input},
	{"retry",      TYPE(RUN_TASK),           read_retry},
	{"lease",      TYPE(RUN_TASK),           read_lease},
	{"on_unknown", TYPE(RUN_TASK),           read_on_unknown},
	{"on_5xx",     TYPE(RUN_TASK),           read_on_5xx},
	{"save_as",    WITH_OUTPUT,              read_save_as},
	{"timeout",    WITH_TIMEOUT,             read_timeout},
	{"on_timeout", WITH_TIMEOUT,             read_on_timeout},
	{"for",        TYPE(RUN_WAIT),           read_for},
	{"until",      TYPE(RUN_WAIT),           read_until},
	{"event",      TYPE(RUN_EXTERNAL_EVENT), read_event},
	{"entry_lock", TYPE(RUN_APPROVAL),       read_entry_lock},
	{"when",       TYPE(RUN_CONDITION),      read_when},
	{"then",       TYPE(RUN_CONDITION),      NULL},
	{"else",       TYPE(RUN_CONDITION),      NULL},
};
/* clang-format on */

#define FIELDS (sizeof fields / sizeof fields[0])

static const struct field *field_named(struct slice name)
{
	for (size_t i = 0; i < FIELDS; i++)
		if (slice_is(name, fields[i].name))
			return &fields[i];
	return NULL;
}

static void report_misplaced(const struct reader *r, const struct json_node *member, const struct field *field,
			     const char *type)
{
	char owners[128];
	size_t n = 0;

	for (size_t t = 0; t < TYPES; t++)
		if (field->types & TYPE(t))
			n += (size_t)snprintf(owners + n, sizeof owners - n, "%s%s", n ? ", " : "", type_names[t]);
	reader_report(r, member->name_at.line, "unknown field",
		      "\"%s\" does not belong to a step of type %s, only to %s", field->name, type, owners);
}

static void check_fields(const struct reader *r, const struct json_node *node, unsigned types, const char *type)
{
	const char *fitting[FIELDS + 1] = {NULL};
	size_t n = 0;

	for (size_t i = 0; i < FIELDS; i++)
		if (fields[i].types & types)
			fitting[n++] = fields[i].name;
	json_node_for_each(member, node)
	{
		const struct field *field = field_named(member->name);

		if (!field)
			head_refuse_field(r, member, fitting);
		else if (!(field->types & types))
			report_misplaced(r, member, field, type);
	}
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
	(void)reader_required(r, node, "action");
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
		(void)reader_required(r, node, "event");
		check_on_timeout(r, node);
		return;
	case RUN_APPROVAL:
		check_on_timeout(r, node);
		return;
	case RUN_CONDITION:
		(void)reader_required(r, node, "when");
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

static void read_fields(const struct run_draft *d, const struct reader *r, const struct json_node *node, unsigned types,
			struct run_step *step)
{
	for (size_t f = 0; f < FIELDS; f++) {
		const struct json_node *value = json_node_member(node, fields[f].name);

		if (value && fields[f].read && (fields[f].types & types))
			fields[f].read(d, r, value, step);
	}
}

void run_draft_step(struct run_draft *d, size_t i, const struct json_node *node)
{
	const struct json_node *name = json_node_member(node, "name");
	struct run_step *step = &d->steps[i];
	int type = 0;

	d->sources[i].node = node;
	d->sources[i].label = name && name->type == JSON_STRING && name_is_valid(name->string)
				      ? name->string.p
				      : text_printf(d->scratch, "#%zu", i + 1);
	step->position = i;
	step->line = node->at.line;
	step->retry = run_retry_default;

	struct reader r = run_draft_reader(d, i);

	d->sources[i].may_jump_away = true;
	if (!reader_object(&r, node, "a step"))
		return;
	read_name(&r, node, step);
	if (!reader_choice(&r, reader_required(&r, node, "type"), "type", type_names, &type)) {
		check_fields(&r, node, ALL, "unknown");
		read_fields(d, &r, node, ALL, step);
		return;
	}
	d->sources[i].may_jump_away = false;
	step->type = (enum run_step_type)type;
	check_fields(&r, node, TYPE(type), type_names[type]);
	read_fields(d, &r, node, TYPE(type), step);
	check_step(&r, node, step);
}
