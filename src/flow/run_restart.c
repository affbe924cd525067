/* See run_restart.h. */
#include "flow/run_restart.h"

#include "base/json_string.h"
#include "flow/singleton.h"

#define LIST_BYTES_MAX (1u << 20)
#define STATE_BYTES_MAX (48u << 20)

/* clang-format off */

DB_STMT(stmt_old, "run_restarted", "ii", "",
	"UPDATE hx_run SET restarted_by = ?2 WHERE subject = ?1 AND restarted_by IS NULL AND expired = 0");

/* What passes is undone under the keys that it was done under. */
DB_STMT(stmt_new, "run_restart_of", "ii", "",
	"UPDATE hx_run SET restart_of = ?2, renamed = (SELECT o.renamed FROM hx_run o WHERE o.subject = ?2) WHERE subject = ?1");

/* ?4: positions of steps that are to be told the input of the run that has carried them out. */
DB_STMT(stmt_steps, "run_restart_steps", "iiit", "",
	INTO_STEP(", made_by, made_with") " SELECT ?2, t.position, t.status, t.attempt, t.output, t.started_at, t.completed_at,"
	" coalesce(t.made_by, t.run)," /* mutant: undone-under-another-key -> " NULL," */
	" coalesce(t.made_with, CASE WHEN t.position IN (SELECT CAST(value AS bigint) FROM {list4}) THEN r.input END)"
	" FROM hx_run_step t JOIN hx_run r ON r.subject = t.run WHERE t.run = ?1 AND t.position < ?3");

/* Those of the steps that pass, and what is a part of them. */
#define PASS(column) "UPDATE hx_run SET " column " = ?2 WHERE " column " = ?1"
DB_STMT(stmt_children, "run_restart_children", "iit", "", PASS("parent") " AND parent_step IN (SELECT value FROM {list3})");
DB_STMT(stmt_parts, "run_restart_parts", "ii", "", PASS("around"));

DB_STMT(stmt_events, "run_restart_events", "ii", "",
	INTO_EVENT " SELECT ?2, id, name, data, at FROM hx_run_event"
	" WHERE run = ?1 AND taken_by IS NULL AND name LIKE 'event %'");

/* clang-format on */

bool run_has_reached(const struct run_row *row, const struct run_step *step)
{
	const struct run_done *done = row->done;

	while (done && done->step != step)
		done = done->before;
	return done || step->position == row->position;
}

static bool passes(const struct run_done *done, const struct run_restart *restart)
{
	return done->step->position < restart->from->position;
}

size_t run_restart_bytes(const struct run_row *old, const struct run_restart *restart)
{
	size_t bytes = 0;

	for (const struct run_done *done = old->done; done && restart->input.p; done = done->before)
		bytes += passes(done, restart) && done->step->compensate ? old->input.n : 0;
	return bytes;
}

/* [0,2]: those that are undone by what their run was given, where the new one is given something else. */
static void write_positions(const struct run_row *old, const struct run_restart *restart, struct strbuf *list)
{
	strbuf_add_char(list, '[');
	for (const struct run_done *done = old->done; done && restart->input.p; done = done->before)
		if (passes(done, restart) && done->step->compensate)
			strbuf_addf(list, "%s%zu", list->n > 1 ? "," : "", done->step->position);
	strbuf_add_char(list, ']');
}

static bool write_parents(const struct run_row *old, const struct run_restart *restart, struct strbuf *list)
{
	strbuf_add_char(list, '[');
	for (const struct run_done *done = old->done; done; done = done->before)
		if (passes(done, restart) && run_step_has_children(done->step)) {
			strbuf_add_str(list, list->n > 1 ? "," : "");
			json_quote(slice_str(done->step->name), list);
		}
	strbuf_add_char(list, ']');
	return list->n > 2;
}

void run_restart_add(struct unit *unit, const struct stamp *stamp, const struct run_row *old,
		     const struct run_restart *restart)
{
	struct db_value from = db_int(old->subject), to = db_int(restart->subject);
	struct run_spec spec = {
		.subject = restart->subject,
		.workspace = old->workspace,
		.requester = restart->requester,
		.traceparent = restart->traceparent,
		.machine = old->machine,
		.input = restart->input.p ? restart->input : old->input,
		.attributes = restart->attributes,
		.singleton = restart->singleton,
		.joins = true,
	};

	UNIT_ADD(unit, UNIT_VERDICT, &stmt_old, from, to);
	run_create(unit, stamp, &spec);
	UNIT_ADD(unit, UNIT_ANY, &stmt_new, to, from);
	UNIT_ADD(unit, UNIT_ANY, &stmt_steps, from, to, db_int((int64_t)restart->from->position),
		 db_text(restart->positions));
	UNIT_ADD(unit, UNIT_ANY, &stmt_events, from, to);
	if (restart->parents.p) {
		UNIT_ADD(unit, UNIT_ANY, &stmt_children, from, to, db_text(restart->parents));
		UNIT_ADD(unit, UNIT_ANY, &stmt_parts, from, to);
	}
}

/* What the new run is searched by: it begins with what the passed steps have saved. */
static struct slice describe(const struct run_row *old, const struct run_restart *restart, struct arena *arena)
{
	const struct run_done *done = old->done;
	LOCAL_STRBUF(state, STATE_BYTES_MAX);
	LOCAL_STRBUF(steps, STATE_BYTES_MAX);

	while (done && !passes(done, restart))
		done = done->before;
	run_write_state(done, &state);
	run_write_steps(done, &steps);
	struct expression_env env = {.input = json_trust(restart->input.p ? restart->input : old->input),
				     .state = json_trust(strbuf_slice(&state)),
				     .steps = json_trust(strbuf_slice(&steps))};
	return state.failed || steps.failed || old->definition->scope
		       ? slice_of(NULL, 0)
		       : attributes_of(&old->definition->attributes, &env, arena);
}

bool run_restart_prepare(const struct run_row *old, struct arena *arena, struct run_restart *restart)
{
	struct strbuf list;

	strbuf_init(&list, LIST_BYTES_MAX);
	write_positions(old, restart, &list);
	restart->positions = arena_keep(arena, &list);
	strbuf_init(&list, LIST_BYTES_MAX);
	if (write_parents(old, restart, &list))
		restart->parents = arena_keep(arena, &list);
	else
		strbuf_release(&list);
	restart->attributes = describe(old, restart, arena);
	restart->singleton = singleton_name(&old->machine->definition->limits, old->workspace,
					    old->machine->definition->name,
					    restart->input.p ? restart->input : old->input, arena);
	return !arena->failed;
}
