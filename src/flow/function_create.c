/* How functions come to be, and how those are found that a node has to look at. See function.h. */
#include "flow/function.h"

#include "flow/due_watch.h"

/* clang-format off */

/* ?5 and ?6: of its definition. ?7: when its time is over, the engine looks. ?8: how long that is. ?9: it has a definition. ?10: how long it is kept. */
DB_STMT(stmt_create, "function_create", "ittittiiii", "i",
	INTO_FUNCTION(", keep_ms") " SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?10 WHERE ?9 = 1 OR EXISTS (SELECT 1 FROM hx_function_poll p WHERE p.workspace = ?2 AND p.name = ?3"
	" AND p.at > ?4 - 2592000000)"
	" RETURNING subject");

DB_STMT(stmt_find_polled, "function_find_polled", "tt", "i",
	"SELECT 1 FROM hx_function_poll p WHERE p.workspace = ?1 AND p.name = ?2 AND p.at > (SELECT hx_now_ms()) - 2592000000 LIMIT 1");

DUE_SOURCE_PLAIN(function_due_source, "function", "hx_function", .name = "functions", .topic = FUNCTION_TOPIC, .poll_ms = DUE_POLL_MS);

DB_STMT(stmt_due, "function_due", "i", "",
	"UPDATE hx_function SET due_at = hx_now_ms(), revision = revision + 1{from} WHERE subject = ?1");

/* clang-format on */

static struct db_value number_or_null(int64_t value)
{
	return value ? db_int(value) : db_null();
}

const char *function_on_failure(const struct run_definition *definition)
{
	return definition->compensates ? run_on_failure[1] : NULL;
}

void function_create(struct unit *unit, const struct stamp *stamp, const struct run_spec *spec)
{
	const struct run_definition *definition = spec->machine->definition;
	struct slice name = slice_str(definition->name);

	UNIT_ADD(unit, UNIT_MUST, &stmt_create, db_int(spec->subject), db_text(spec->workspace), db_text(name),
		 db_int(stamp->at.ms), db_optional(slice_str(definition->retry_json)),
		 db_optional(slice_str(function_on_failure(definition))),
		 number_or_null(run_times_out_at(definition, stamp->at.ms)), number_or_null(definition->timeout_ms),
		 db_int(definition->is_defined), number_or_null(definition->keep_ms));
	function_offer(unit, spec->workspace, name, 1);
}

void function_find_polled(struct unit *unit, struct slice workspace, struct slice name)
{
	UNIT_ADD(unit, UNIT_ANY, &stmt_find_polled, db_text(workspace), db_text(name));
}

void function_due(struct unit *unit, int64_t subject)
{
	UNIT_ADD(unit, UNIT_ANY, &stmt_due, db_int(subject));
	unit_wake(unit, FUNCTION_TOPIC);
}
