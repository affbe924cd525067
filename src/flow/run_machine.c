/* A run definition made ready for the store, see run.h. */
#include "flow/run.h"

const struct run_machine *run_machine_new(const struct run_definition *definition, int64_t version, struct arena *arena)
{
	struct run_machine *machine = arena_alloc(arena, sizeof *machine);
	const struct sql_action *sql = sql_actions_new(definition->actions, definition->actions_n, arena);

	if (!machine || !sql)
		return NULL;
	*machine = (struct run_machine){definition, version, sql};
	return machine;
}
