/* Reading the files of `hapax test`. See example.h. */
#include <stdio.h>

#include "model/fields.h"
#include "trial/example.h"

const char *example_outcome_name(unsigned outcome)
{
	static const char *const names[OUTCOMES_N - MAYS_N] = {"crash", "crash_after", "crash_late",
							       "pause", "pause_after", "pause_late"};

	return outcome < MAYS_N ? trial_may_name(outcome) : names[outcome - MAYS_N];
}

static bool read_outcome(const struct reader *r, const struct json_node *node, struct example_service *service)
{
	const char *names[OUTCOMES_N + 1] = {NULL};
	int outcome;

	for (int i = 0; i < OUTCOMES_N; i++)
		names[i] = example_outcome_name((unsigned)i);
	if (!reader_choice(r, node, "services", names, &outcome))
		return false;
	service->outcomes[service->n++] = (unsigned char)outcome;
	return true;
}

static struct json example_keep(const struct reader *r, const struct json_node *node)
{
	return json_trust(arena_copy(r->arena, node->value.raw));
}

static void read_json(const struct reader *r, const struct json_node *node, const struct field *field, void *ret)
{
	(void)field;
	*(struct json *)ret = example_keep(r, node);
}
#define FIELD_JSON(S, member) FIELD_OWN_AT(S, member, struct json, read_json)

static void read_answers(const struct reader *r, const struct json_node *node, const struct field *field, void *ret)
{
	struct example *example = ret;
	struct example_service *services = reader_map(r, node, field->name, EXAMPLE_SERVICES_MAX, sizeof *services);
	size_t n = 0;

	if (!services)
		return;
	json_node_for_each(member, node)
	{
		struct example_service *service = &services[n];
		bool read = true;

		*service = (struct example_service){.name = reader_keep(r, member->name), .line = member->name_at.line};
		if (member->type != JSON_ARRAY)
			read = read_outcome(r, member, service);
		else if (reader_array(r, member, field->name, 1, EXAMPLE_OUTCOMES_MAX))
			json_node_for_each(outcome, member) read &= read_outcome(r, outcome, service);
		n += read && service->n && service->name;
	}
	example->services = services;
	example->services_n = n;
}

static void read_with(const struct reader *r, const struct json_node *node, const struct field *field, void *ret);

/* clang-format off */
/* Of the first, whose services are those of all, the test itself names the workflow. */
#define GIVEN FIELDS_HERE
#define WITH 2u
static const struct field subject_fields[] = {
	{"workflow", .of = WITH, FIELD_NAME(struct example_subject, workflow), .required = true},
	{"input",    FIELD_JSON(struct example_subject, input)},
	{"status",   FIELD_NAME(struct example_subject, status)},
	{"balance",  .of = GIVEN, FIELD_INT(struct example_subject, balance, 1, EXAMPLE_MONEY_MAX)},
	{"services", .of = GIVEN, FIELD_OWN(read_answers)},
	{"with",     FIELD_OWN_AT(struct example_subject, with, const struct example_subject *, read_with)},
	{0}};

static const struct field when_fields[] = {
	{"start",   FIELD_TEXT(struct example_when, start, EXAMPLE_TEXT_MAX)},
	{"tell",    FIELD_NAME(struct example_when, tell)},
	{"of",      FIELD_TEXT(struct example_when, of, EXAMPLE_TEXT_MAX)},
	{"fire",    FIELD_NAME(struct example_when, fire)},
	{"event",   FIELD_NAME(struct example_when, event)},
	{"approve", FIELD_NAME(struct example_when, approve)},
	{"reject",  FIELD_NAME(struct example_when, reject)},
	{"cancel",  FIELD_BOOL(struct example_when, cancel)},
	{"credit",  FIELD_INT(struct example_when, credit, 1, EXAMPLE_MONEY_MAX)},
	{"accept",  FIELD_INT(struct example_when, accept, 0, 1)},
	{"wait",    FIELD_DURATION(struct example_when, wait_ms)},
	{"land",    FIELD_NAME(struct example_when, land)},
	{"during",  FIELD_NAME(struct example_when, during)},
	{"as",      FIELD_NAME(struct example_when, as)},
	{"input",   FIELD_JSON(struct example_when, input)},
	{"data",    FIELD_JSON(struct example_when, data)},
	{"id",      FIELD_TEXT(struct example_when, id, EXAMPLE_TEXT_MAX)},
	{"answer",  FIELD_NAME(struct example_when, answer)},
	{0}};
/* clang-format on */

static void read_with(const struct reader *r, const struct json_node *node, const struct field *field, void *ret)
{
	struct example_subject *subject = arena_zalloc(r->arena, sizeof *subject);

	if (!subject || !reader_object(r, node, field->name))
		return;
	subject->line = node->at.line;
	fields_check(r, node, subject_fields, WITH, field_refuse);
	fields_take(r, node, subject_fields, WITH, subject);
	*(const struct example_subject **)ret = subject;
}

static void read_when(const struct reader *r, const struct json_node *node, const struct field *field, void *ret)
{
	struct example *example = ret;
	struct example_when *whens = reader_list(r, node, field->name, 1, EXAMPLE_WHENS_MAX, sizeof *whens);
	size_t n = 0;

	if (!whens)
		return;
	json_node_for_each(member, node)
	{
		struct example_when *w = &whens[n++];
		int said;

		if (!reader_object(r, member, "what is done"))
			continue;
		*w = (struct example_when){.line = member->at.line, .accept = -1};
		fields_read(r, member, when_fields, w);
		said = (w->fire != NULL) + (w->event != NULL) + (w->approve != NULL) + (w->reject != NULL) + w->cancel +
		       (w->wait_ms > 0) + (w->land != NULL) + (w->start != NULL) + (w->tell != NULL) + (w->credit > 0) +
		       (w->accept >= 0);
		if (said != 1)
			reader_report(
				r, member->at.line, "when",
				"it is one of fire, event, approve, reject, cancel, wait, land, start, tell, credit and accept");
		if (w->during && w->wait_ms)
			reader_report(r, member->at.line, "when",
				      "nobody waits during a call: it waits for its answer");
	}
	example->whens = whens;
	example->whens_n = n;
}

static void read_then(const struct reader *r, const struct json_node *node, const struct field *field, void *ret)
{
	struct example *example = ret;
	static const char *const known[] = {"status", "doubt", "steps", "ledger", "output", "tables", "with", NULL};

	if (!reader_object(r, node, field->name))
		return;
	json_node_for_each(member, node)
	{
		const char *const *name = known;

		while (*name && !slice_is(member->name, *name))
			name++;
		if (!*name)
			reader_report(r, member->name_at.line, "unknown field", "\"%s\"%s",
				      excerpt_of(member->name).text, reader_suggest(r, member->name, known).text);
	}
	example->then = example_keep(r, node);
	example->then_line = node->at.line;
}

/* clang-format off */
static const struct field example_fields[] = {
	{"name",     FIELD_TEXT(struct example, name, EXAMPLE_TEXT_MAX), .required = true},
	{"workflow", FIELD_NAME(struct example, first.workflow)},
	{"given",    FIELD_PART(subject_fields)},
	{"when",     FIELD_OWN(read_when)},
	{"then",     FIELD_OWN(read_then), .required = true},
	{0}};
/* clang-format on */

static void read_tests(const struct reader *outer, const struct json_node *node, const struct field *field, void *ret)
{
	struct example_file *file = ret;
	struct example *examples = reader_list(outer, node, field->name, 1, EXAMPLES_MAX, sizeof *examples);
	struct reader r = *outer;
	size_t n = 0;

	if (!examples)
		return;
	json_node_for_each(member, node)
	{
		const struct json_node *name = json_node_member(member, "name");
		char where[100];

		if (!reader_object(outer, member, "a test"))
			continue;
		snprintf(where, sizeof where, "test \"%s\"",
			 name && name->type == JSON_STRING ? excerpt_of(name->string).text : "?");
		r.where = where;
		examples[n].line = examples[n].first.line = member->at.line;
		fields_read(&r, member, example_fields, &examples[n++]);
	}
	file->examples = examples;
	file->n = n;
}

static void read_definitions(const struct reader *r, const struct json_node *node, const struct field *field, void *ret)
{
	struct example_file *file = ret;
	const char **to = file->definitions;

	if (node->type != JSON_ARRAY) {
		file->definitions_n = reader_text(r, node, field->name, EXAMPLE_TEXT_MAX, to);
		return;
	}
	if (reader_array(r, node, field->name, 1, EXAMPLE_PATHS_MAX))
		json_node_for_each(path, node) file->definitions_n += reader_text(
			r, path, field->name, EXAMPLE_TEXT_MAX, &to[file->definitions_n]);
}

/* clang-format off */
static const struct field file_fields[] = {
	{"definitions", FIELD_OWN(read_definitions)},
	{"world",       FIELD_TEXT(struct example_file, world, EXAMPLE_TEXT_MAX)},
	{"tests",       FIELD_OWN(read_tests), .required = true},
	{0}};
/* clang-format on */

static void read_file(const struct reader *r, const struct json_node *root, void *ret)
{
	if (reader_object(r, root, "a file of tests"))
		fields_read(r, root, file_fields, ret);
}

void example_file_parse(const char *file, struct slice text, struct arena *arena, struct findings *findings,
			struct example_file *ret)
{
	struct reader r = {.findings = findings, .arena = arena, .place = {.file = file}};

	*ret = (struct example_file){0};
	if (!reader_configuration(&r, text, read_file, ret, &ret->file))
		*ret = (struct example_file){0};
}

/* ---- what it names ---- */

const struct definition *example_definition(const struct definition_set *set, const struct example_subject *subject)
{
	for (size_t i = 0; subject->workflow && i < set->n; i++)
		if (strcmp(set->items[i]->name, subject->workflow) == 0)
			return set->items[i];
	return subject->workflow || !set->n ? NULL : set->items[0];
}

#define NAMES_MAX 1000

struct names {
	size_t n;
	const char *list[NAMES_MAX + 1];
};

static void add_name(struct names *names, const char *name)
{
	if (names->n < NAMES_MAX)
		names->list[names->n++] = name;
}

static void add_actions(const struct definition_set *set, struct names *names)
{
	for (size_t i = 0; i < set->n; i++)
		for (size_t a = 0; a < set->items[i]->actions_n; a++)
			add_name(names, set->items[i]->actions[a].name);
}

static void add_steps(const struct run_definition *d, struct names *names, bool events)
{
	for (size_t i = 0; i < d->steps_n; i++) {
		if (events && d->steps[i].type == RUN_EXTERNAL_EVENT)
			add_name(names, d->steps[i].event);
		if (!events && d->steps[i].type == RUN_APPROVAL)
			add_name(names, d->steps[i].name);
		for (size_t p = 0; p < d->steps[i].parts_n; p++)
			add_steps(d->steps[i].parts[p].definition, names, events);
	}
}

static void check_status(const struct reader *r, const struct example_subject *subject, const struct definition *d)
{
	struct names statuses = {0};

	for (size_t i = 0; d->entity && i < d->entity->statuses_n; i++)
		add_name(&statuses, d->entity->statuses[i]);
	if (subject->status && d->entity)
		user_rules_want(r, subject->line, statuses.list, "the status", slice_str(subject->status));
	if (subject->balance && !d->batch)
		reader_report(r, subject->line, "given", "a balance is for a batch");
	if (subject->status && !d->entity)
		reader_report(r, subject->line, "given", "a %s begins PENDING: status is for an entity",
			      d->run ? "run" : "batch");
}

static void check_when_of_entity(const struct reader *r, const struct example_when *w, const struct workflow *of)
{
	struct names keys = {0};

	for (size_t i = 0; i < of->steps_n; i++)
		add_name(&keys, of->steps[i].step_key);
	if (w->fire)
		user_rules_want(r, w->line, keys.list, "a step", slice_str(w->fire));
	else
		reader_report(r, w->line, "when", "what is done to an entity is fire, wait or land");
}

static void check_when_of_run(const struct reader *r, const struct example_when *w, const struct run_definition *d)
{
	struct names events = {0}, approvals = {0};
	const char *decided = w->approve ? w->approve : w->reject;

	add_steps(d, &events, /* events= */ true);
	add_steps(d, &approvals, /* events= */ false);
	if (w->fire || w->credit || w->accept >= 0)
		reader_report(r, w->line, "when",
			      w->fire ? "a run is not fired: it begins by itself"
				      : "credit and accept are for a batch");
	if (w->event)
		user_rules_want(r, w->line, events.list, "the event", slice_str(w->event));
	if (decided)
		user_rules_want(r, w->line, approvals.list, "an approval", slice_str(decided));
}

/* Which of them a text means, "order" or "order/2"; as many as there are: none. */
static unsigned subject_named(const struct definition_set *set, const struct example *e, const char *text)
{
	const char *slash = strchr(text, '/');
	size_t n = slash ? (size_t)(slash - text) : strlen(text);
	unsigned i = 0, wanted = !slash ? 1 : slash[1] && !slash[2] ? (unsigned)(slash[1] - '0') : 0;

	for (const struct example_subject *s = &e->first; s; s = s->with, i++) {
		const struct definition *d = example_definition(set, s);

		if (d && strlen(d->name) == n && memcmp(d->name, text, n) == 0 && !--wanted)
			break;
	}
	return i;
}

/* To whom it is done. */
static const struct definition *check_subject(const struct reader *r, const struct definition_set *set,
					      const struct example *e, struct example_when *w)
{
	const char *text = w->start ? w->start : w->of;
	const struct example_subject *s = &e->first;

	w->subject = text ? subject_named(set, e, text) : 0;
	for (unsigned i = 0; s && i < w->subject; i++)
		s = s->with;
	if (!s)
		reader_report(r, w->line, "when", "the test is about no %s: `with` of given names others", text);
	return s ? example_definition(set, s) : NULL;
}

static void check_when(const struct reader *r, const struct definition *d, const struct example_when *w)
{
	if (w->wait_ms || w->land || w->tell)
		return;
	if (w->start && !d->run)
		reader_report(r, w->line, "when", "what begins is a run: %s is there", d->name);
	else if (!w->start && d->entity)
		check_when_of_entity(r, w, d->entity);
	else if (!w->start && d->run)
		check_when_of_run(r, w, d->run);
	else if (d->batch && !w->cancel && !w->credit && w->accept < 0)
		reader_report(r, w->line, "when", "what is done to a batch is cancel, credit, accept, wait or land");
}

static void check_subjects(const struct reader *r, const struct definition_set *set, const struct example *e)
{
	unsigned n = 0;

	for (const struct example_subject *s = &e->first; s; s = s->with) {
		const struct definition *d = example_definition(set, s);

		if (!d || d->function)
			reader_report(r, s->line, "workflow", "there is no run, no entity and no batch %s",
				      s->workflow ? s->workflow : "in the definitions");
		else
			check_status(r, s, d);
		if (n++ && d && d->batch)
			reader_report(r, s->line, "with", "a batch meets nobody");
	}
	if (n > EXAMPLE_SUBJECTS_MAX)
		reader_report(r, e->line, "with", "they are %d at most", EXAMPLE_SUBJECTS_MAX);
}

static void check_then(const struct reader *r, const struct example *e, const struct names *actions)
{
	const struct json_node *of, *ledger;
	struct hx_error err;

	if (json_tree_parse(e->then.raw, UINT16_MAX, r->arena, &err, &of))
		return;
	for (; of; of = json_node_member(of, "with")) {
		if (!reader_object(r, of, "then"))
			return;
		ledger = json_node_member(of, "ledger");
		if (ledger && reader_object(r, ledger, "ledger"))
			json_node_for_each(member, ledger) user_rules_want(r, e->then_line + member->name_at.line - 1,
									   actions->list, "an action", member->name);
	}
}

static void check_whens(const struct reader *r, const struct example *e, const struct names *actions)
{
	struct names codes = {0};

	for (int i = 0; i < HX_CODE_COUNT; i++)
		add_name(&codes, hx_code_name(i));
	for (size_t i = 0; i < e->whens_n; i++) {
		const struct example_when *w = &e->whens[i];

		if (w->answer)
			user_rules_want(r, w->line, codes.list, "the code", slice_str(w->answer));
		if (w->land || w->tell)
			user_rules_want(r, w->line, actions->list, "an action", slice_str(w->land ? w->land : w->tell));
		if (w->during)
			user_rules_want(r, w->line, actions->list, "an action", slice_str(w->during));
	}
}

void example_file_check(const struct example_file *file, const struct definition_set *set, struct findings *findings)
{
	struct reader r = {.findings = findings, .arena = findings->arena, .place = {.file = file->file}};
	struct names actions = {0};

	add_actions(set, &actions);
	for (size_t i = 0; i < file->n; i++) {
		const struct example *e = &file->examples[i];

		check_subjects(&r, set, e);
		for (size_t s = 0; s < e->services_n; s++)
			user_rules_want(&r, e->services[s].line, actions.list, "an action",
					slice_str(e->services[s].name));
		check_whens(&r, e, &actions);
		check_then(&r, e, &actions);
		for (size_t w = 0; w < e->whens_n; w++) {
			struct example_when *when = (struct example_when *)(uintptr_t)&e->whens[w];
			const struct definition *d = check_subject(&r, set, e, when);

			if (d)
				check_when(&r, d, when);
		}
	}
}
