/*
 * The statements of sql actions, of entities and of runs alike: made ready for the store once, their parameters looked
 * up when the action is due, and both put into the unit of the transition, so that effect and marker are one write.
 *
 * What a parameter may name: id, workflow, requester, version, key, now, input, and input.a.b for a value below it.
 * For an entity the input is that of the request, for a step of a run its evaluated `input`.
 */
#pragma once

#include "base/arena.h"
#include "base/clock.h"
#include "base/json.h"
#include "db/unit.h"
#include "model/action.h"

/* Lives as long as the program: connections know statements by address. */
struct sql_action {
	size_t n; /* 0: the action is not sql */
	const struct db_stmt *stmts
		[ACTION_STATEMENTS_MAX]; /* the same text may be shared by versions, see engine/definition_statements.h */
};

/* One for each action of a definition, in its order. NULL when the arena is full. */
struct sql_action *sql_actions_new(const struct action *actions, size_t n, struct arena *arena);

/* Texts are borrowed: the values that are looked up point into them. */
struct sql_params {
	struct slice id, workflow, requester, key;
	int64_t version;
	struct wall_time now;
	struct json input;
};
/* Looks the values up, for all statements one after the other. Nothing is guessed: NULL when the arena is full. */
const struct db_value *sql_action_values(const struct action *action, const struct sql_params *params,
					 struct arena *arena);
/*
 * Adds the statements to a unit whose verdict stands before them: at most ACTION_STATEMENTS_MAX lines. They have timeout_ms
 * together (0: the action's own), which is the unit's limit; what it ends with then is HX_ACTION_FAILED, and certain.
 */
void sql_action_add(struct unit *unit, const struct sql_action *sql, const struct action *action,
		    const struct db_value *values, int64_t timeout_ms);
