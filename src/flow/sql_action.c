/* See sql_action.h. */
#include "flow/sql_action.h"

#include "base/json_number.h"
#include "base/json_string.h"
#include "base/json_walk.h"

/* ---- made ready ---- */

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

static void sql_action_make(const struct action *action, struct arena *arena, struct sql_action *sql)
{
	sql->n = action_is_inside(action) ? action->statements_n : 0;
	for (size_t i = 0; i < sql->n; i++) {
		struct db_stmt *stmt = arena_alloc(arena, sizeof *stmt);

		if (!stmt)
			return;
		*stmt = (struct db_stmt){
			.name = action->statements[i].name,
			.sql = action->statements[i].sql,
			.in = inferred_params(action->statements[i].params_n, arena),
			.out = "",
			.foreign = true,
		};
		sql->stmts[i] = stmt;
	}
}

struct sql_action *sql_actions_new(const struct action *actions, size_t n, struct arena *arena)
{
	struct sql_action *sql = arena_zalloc(arena, (n + 1) * sizeof *sql);

	for (size_t i = 0; sql && i < n; i++)
		sql_action_make(&actions[i], arena, &sql[i]);
	return arena->failed ? NULL : sql;
}

/* ---- values ---- */

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
static struct db_value sql_action_value_of(struct json value, struct arena *arena)
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

static struct db_value param_of(const char *path, const struct sql_params *p, struct arena *arena)
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
	return input_at(p->input, path + 6, &value) ? sql_action_value_of(value, arena) : db_null();
}

static size_t params_of(const struct action *action)
{
	size_t n = 0;

	for (size_t i = 0; i < action->statements_n; i++)
		n += action->statements[i].params_n;
	return n;
}

const struct db_value *sql_action_values(const struct action *action, const struct sql_params *params,
					 struct arena *arena)
{
	struct db_value *values = arena_alloc(arena, (params_of(action) + 1) * sizeof *values);
	size_t n = 0;

	for (size_t i = 0; values && i < action->statements_n; i++)
		for (size_t p = 0; p < action->statements[i].params_n; p++)
			values[n++] = param_of(action->statements[i].params[p], params, arena);
	return arena->failed ? NULL : values;
}

void sql_action_add(struct unit *unit, const struct sql_action *sql, const struct action *action,
		    const struct db_value *values, int64_t timeout_ms)
{
	if (sql->n)
		unit_limit(unit, timeout_ms ? timeout_ms : action->timeout_ms);
	for (size_t i = 0; i < sql->n; i++) {
		const struct action_statement *statement = &action->statements[i];

		unit_add(unit, statement->must ? UNIT_MUST : UNIT_ANY, sql->stmts[i], (unsigned)statement->params_n,
			 values);
		values += statement->params_n;
	}
}
