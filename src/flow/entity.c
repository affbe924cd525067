/* Statements of the entity table, and the statements that sql actions bring along. See entity.h. */
#include "flow/entity.h"

#include "base/json_number.h"
#include "base/json_string.h"
#include "base/json_walk.h"

#define ENTITY_SELECT                                                                                                  \
	"SELECT e.subject, s.status, s.version, s.fence, s.effort, s.owner, s.until, s.updated_at, e.data,"            \
	" e.claim_step, e.claim_from, e.claim_requester, e.claim_input, e.name, e.workspace, s.doubt"                  \
	" FROM entity e JOIN subject s ON s.id = e.subject"
#define ENTITY_OUT "itiiitiittttttti"

/* clang-format off */

static const struct db_stmt stmt_create = {
	.name = "entity_create",
	.sql = "INSERT INTO entity (subject, workspace, workflow, name, data) VALUES (?1, ?2, ?3, ?4, ?5)"
	       " ON CONFLICT (workspace, workflow, name) DO NOTHING",
	.in = "itttt",
	.out = "",
};

static const struct db_stmt stmt_read = {
	.name = "entity_read",
	.sql = ENTITY_SELECT " WHERE e.workspace = ?1 AND e.workflow = ?2 AND e.name = ?3",
	.in = "ttt",
	.out = ENTITY_OUT,
};

static const struct db_stmt stmt_read_subject = {
	.name = "entity_read_subject",
	.sql = ENTITY_SELECT " WHERE e.subject = ?1",
	.in = "i",
	.out = ENTITY_OUT,
};

static const struct db_stmt stmt_list = {
	.name = "entity_list",
	.sql = ENTITY_SELECT " WHERE e.workspace = ?1 AND e.workflow = ?2 AND e.name > ?3"
	       " AND (?4 = '' OR s.status = ?4) AND (?5 = 0 OR s.owner = 'held') ORDER BY e.name LIMIT ?6",
	.in = "ttttii",
	.out = ENTITY_OUT,
};

static const struct db_stmt stmt_note_claim = {
	.name = "entity_note_claim",
	.sql = "UPDATE entity SET claim_step = ?2, claim_from = ?5, claim_requester = ?3, claim_input = ?4{from}"
	       " WHERE subject = ?1",
	.in = "itttt",
	.out = "",
};

/* clang-format on */

/* ---- the machine ---- */

/* Parameters of sql actions are 's': the store infers their type from where they stand. */
static const char *inferred_params(size_t n, struct arena *arena)
{
	char *in = arena_alloc(arena, n + 1);

	if (in) {
		memset(in, 's', n);
		in[n] = '\0';
	}
	return in;
}

static void make_sql(const struct action *action, struct arena *arena, struct entity_sql *sql)
{
	sql->n = action->kind == ACTION_SQL ? action->statements_n : 0;
	for (size_t i = 0; i < sql->n; i++)
		sql->stmts[i] = (struct db_stmt){
			.name = action->statements[i].name,
			.sql = action->statements[i].sql,
			.in = inferred_params(action->statements[i].params_n, arena),
			.out = "",
		};
}

const struct entity_machine *entity_machine_new(const struct workflow *workflow, const struct entity_table *table,
						struct arena *arena)
{
	struct entity_machine *machine = arena_zalloc(arena, sizeof *machine);
	struct entity_sql *sql = arena_zalloc(arena, (workflow->actions_n + 1) * sizeof *sql);

	if (!machine || !sql)
		return NULL;
	for (size_t i = 0; i < workflow->actions_n; i++)
		make_sql(&workflow->actions[i], arena, &sql[i]);
	*machine = (struct entity_machine){workflow, subject_kind("entity:", workflow->name), sql, table};
	return arena->failed ? NULL : machine;
}

/* ---- units ---- */

void entity_create(struct unit *unit, const struct stamp *stamp, const struct entity_ref *ref, int64_t subject,
		   struct slice data)
{
	const struct workflow *workflow = ref->machine->workflow;

	UNIT_ADD(unit, UNIT_VERDICT, &stmt_create, db_int(subject), db_text(ref->workspace), db_str(workflow->name),
		 db_text(ref->name), db_text(data));
	subject_insert(unit, stamp, subject, ref->machine->kind, workflow->initial_status);
}

void entity_adopt(struct unit *unit, const struct stamp *stamp, const struct entity_ref *ref, struct slice name,
		  int64_t subject, const char *status)
{
	UNIT_ADD(unit, UNIT_VERDICT, &stmt_create, db_int(subject), db_str(""), db_str(ref->machine->workflow->name),
		 db_text(name), db_str("{}"));
	subject_insert(unit, stamp, subject, ref->machine->kind, status);
}

void entity_read(struct unit *unit, const struct entity_ref *ref)
{
	if (ref->machine->table) {
		UNIT_ADD(unit, UNIT_ANY, &ref->machine->table->read, db_str(ref->machine->workflow->name),
			 db_text(ref->name));
		return;
	}
	UNIT_ADD(unit, UNIT_ANY, &stmt_read, db_text(ref->workspace), db_str(ref->machine->workflow->name),
		 db_text(ref->name));
}

void entity_read_subject(struct unit *unit, int64_t subject)
{
	UNIT_ADD(unit, UNIT_ANY, &stmt_read_subject, db_int(subject));
}

void entity_list(struct unit *unit, const struct entity_ref *ref, struct slice status, bool held, struct slice after,
		 int64_t limit)
{
	const struct entity_table *table = ref->machine->table;
	struct db_value workflow = db_str(ref->machine->workflow->name);

	if (table && after.n)
		UNIT_ADD(unit, UNIT_ANY, &table->list_after, workflow, db_text(status), db_int(held), db_int(limit),
			 db_text(after));
	else if (table)
		UNIT_ADD(unit, UNIT_ANY, &table->list, workflow, db_text(status), db_int(held), db_int(limit));
	else
		UNIT_ADD(unit, UNIT_ANY, &stmt_list, db_text(ref->workspace), workflow, db_text(after), db_text(status),
			 db_int(held), db_int(limit));
}

void entity_note_claim(struct unit *unit, int64_t subject, struct slice step, const char *from, struct slice requester,
		       struct slice input)
{
	UNIT_ADD(unit, UNIT_ANY, &stmt_note_claim, db_int(subject), db_text(step), db_text(requester), db_text(input),
		 db_str(from));
}

/* ---- sql actions ---- */

/* The value at "a.b" below the input; false: there is none. */
static bool input_at(struct json input, const char *path, struct json *ret)
{
	while (*path) {
		size_t n = strcspn(path, ".");

		if (!json_find(input, slice_of(path, n), &input))
			return false;
		path += n + (path[n] == '.');
	}
	*ret = input;
	return true;
}

/* Whole numbers stay numbers, strings are decoded; what SQL has no word for goes as its JSON text. */
static struct db_value value_of(struct json value, struct arena *arena)
{
	int64_t number;

	switch (json_type(value)) {
	case JSON_NULL:
		return db_null();
	case JSON_NUMBER:
		if (json_int64(value, /* err= */ NULL, &number) == HX_OK)
			return db_int(number);
		return db_text(value.raw);
	case JSON_STRING:
		return db_text(json_string_decode(value, arena));
	default:
		return db_text(value.raw);
	}
}

static struct db_value param_of(const char *path, const struct entity_params *p, struct arena *arena)
{
	struct json value;

	if (strcmp(path, "id") == 0)
		return db_text(p->id);
	if (strcmp(path, "workflow") == 0)
		return db_text(p->workflow);
	if (strcmp(path, "requester") == 0)
		return db_text(p->requester);
	if (strcmp(path, "key") == 0)
		return db_text(p->key);
	if (strcmp(path, "version") == 0)
		return db_int(p->version);
	if (strcmp(path, "now") == 0)
		return db_int(p->now.ms);
	if (strcmp(path, "input") == 0)
		return db_text(p->input.raw);
	ASSERT(strncmp(path, "input.", 6) == 0); /* the model lets no other through */
	return input_at(p->input, path + 6, &value) ? value_of(value, arena) : db_null();
}

const struct db_value *entity_sql_values(const struct action *action, const struct entity_params *params,
					 struct arena *arena)
{
	struct db_value *values = arena_alloc(arena,
					      (ACTION_STATEMENTS_MAX * ACTION_PARAMS_MAX) * sizeof(struct db_value));
	size_t n = 0;

	for (size_t i = 0; values && i < action->statements_n; i++)
		for (size_t p = 0; p < action->statements[i].params_n; p++)
			values[n++] = param_of(action->statements[i].params[p], params, arena);
	return arena->failed ? NULL : values;
}

void entity_add_sql(struct unit *unit, const struct entity_machine *machine, const struct action *action,
		    const struct db_value *values)
{
	const struct entity_sql *sql = &machine->sql[action - machine->workflow->actions];

	for (size_t i = 0; i < sql->n; i++) {
		const struct action_statement *statement = &action->statements[i];

		unit_add(unit, statement->must ? UNIT_MUST : UNIT_ANY, &sql->stmts[i], (unsigned)statement->params_n,
			 values);
		values += statement->params_n;
	}
}
