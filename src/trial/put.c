/*
 * A new version of an entity's definition, put at any moment while callers and a janitor are at work (`--diff`). It is written by the unit by
 * which the engine writes it: where somebody would be left behind, it is refused (flow/entity_orphans.h). After that callers come to nodes
 * that have heard of it, and to others that have not.
 */
#include "flow/entity_orphans.h"
#include "trial/parts.h"

DB_STMT(stmt_written, "trial_written", "", "i", "SELECT max(version) FROM hx_definition");

bool trial_is_put(struct sim *sim)
{
	struct unit_result result = trial_ask(sim, &stmt_written);

	return db_cell(&result.rows[0], 0, 0)->i > 1;
}

const struct trial_machine *trial_in_force(struct sim *sim)
{
	const struct trial_machine *m = trial_of(sim)->machine;

	return m->entity && m->next && trial_is_put(sim) ? m->next : m;
}

/* ---- the task ---- */

static void put_take(struct task *task, const struct answer *answer)
{
	if (answer->kind == ANSWER_START)
		task->at = 1;
	else
		task->at = 2, task->code = answer->result->verdict == UNIT_WON ? HX_OK : HX_CONFIG_ERROR;
}

static void put_ask(const struct task *task, struct ask *ask)
{
	ask->kind = task->at == 2 ? ASK_DONE : ASK_COMMIT;
	ask->code = task->code;
	if (task->at == 1) {
		unit_init(ask->unit, /* op= */ 0);
		orphans_add_version(ask->unit, &((const struct trial_put *)task)->trial->new_version);
	}
}

static const char *put_where(const struct task *task)
{
	(void)task;
	return "putting a version";
}

static const struct task_kind put_kind = {
	.name = "put",
	.size = sizeof(struct trial_put),
	.take = put_take,
	.ask = put_ask,
	.where = put_where,
};

void trial_put_init(union sim_task *task, struct trial *t)
{
	struct trial_put *put = (struct trial_put *)task;

	*put = (struct trial_put){.trial = t};
	task_init(&put->task, &put_kind, /* topic= */ 0);
}

/* What it would leave behind. */
void trial_put_prepare(struct trial *t)
{
	const struct workflow *before = t->machine->of->entity, *after = t->machine->next->of->entity;
	LOCAL_STRBUF(lost, 1u << 20);
	LOCAL_STRBUF(claims, 1u << 20);

	t->new_version = (struct new_version){
		.workflow = t->machine->of->name, .version = t->machine->next->version, .text = slice_str("{}")};
	if (orphan_list(before, after, &lost))
		t->new_version.lost = arena_copy(t->arena, strbuf_slice(&lost));
	if (orphan_list_claims(before, after, &claims))
		t->new_version.lost_claims = arena_copy(t->arena, strbuf_slice(&claims));
}
