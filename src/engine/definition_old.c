/*
 * Versions of definitions that are not in force any more and that runs, batches or calls in doubt still have. They were checked when
 * they were put, so here they are only read. See definition_change.h.
 */
#include "engine/definition_change.h"

#include <stdio.h>

/* What old versions may take, so that there is always room to put new ones. */
#define OLD_VERSIONS_MAX (DEFINITION_VERSIONS_MAX / 2)
#define OLD_STATEMENTS_MAX (DEFINITION_STATEMENTS_MAX / 2)

/*
 * What runs and batches refer to: first those that have not ended, since nothing but their version lets them go on; then those that
 * have, because whoever shows one needs its steps. Of each the newest first.
 */
#define HAS(table, more)                                                                                               \
	"EXISTS (SELECT 1 FROM " table " s WHERE s.workflow = d.name AND s.definition_version = d.version" more ")"
#define USED(more) HAS("hx_run", more) " OR " HAS("hx_batch", more)

DB_STMT(stmt_used, "definition_used", "", "ti",
	"SELECT d.name, d.version FROM hx_definition d WHERE " USED("")
	" ORDER BY CASE WHEN " USED(" AND s.completed_at IS NULL") " THEN 0 ELSE 1 END, d.version DESC, d.name");

DB_STMT(stmt_text, "definition_text", "ti", "t",
	"SELECT text FROM hx_definition WHERE name = ?1 AND version = ?2");

static enum hx_code read_version(struct change *c, struct slice name, int64_t version, struct slice *ret_text,
				 struct hx_error *err)
{
	LOCAL_UNIT(unit);
	struct unit_result result;
	enum hx_code code;

	UNIT_ADD(&unit, UNIT_ANY, &stmt_text, db_text(name), db_int(version));
	code = c->runner->run(c->runner, &unit, &result, &c->scratch, err);
	if (!code && result.rows[0].n == 0)
		code = error_set(err, HX_NOT_FOUND, "the store has no such version");
	if (!code)
		*ret_text = db_cell(&result.rows[0], 0, 0)->s;
	return code;
}

static const char *first_error(const struct findings *said)
{
	for (const struct finding *f = said->first; f; f = f->next)
		if (f->severity == FINDING_ERROR)
			return f->text;
	return "out of memory";
}

/* An entity's is only called by, and brings none. */
static bool has_room_for_statements(const struct definitions *defs, const struct machine *machine)
{
	return machine->definition->entity ||
	       defs->tables_n + defs->statements.n + change_statements(defs, machine->definition) <= OLD_STATEMENTS_MAX;
}

/* Nobody can put such a one (definition_change.c). */
static bool has_changed_kind(const struct definitions *defs, const struct definition *definition)
{
	for (size_t i = 0; i < defs->n; i++)
		if (strcmp(defs->current[i]->definition->name, definition->name) == 0)
			return strcmp(defs->current[i]->definition->kind, definition->kind) != 0;
	return false;
}

/* The version that a run or a batch has may serve it, whatever is in force now: it was checked when it was put. */
static struct machine *old_machine(struct change *c, struct slice name, struct slice text, int64_t version,
				   struct hx_error *err)
{
	struct machine *machine;
	struct findings said;
	char file[WORKFLOW_NAME_MAX + 64];

	snprintf(file, sizeof file, "stored:%.*s@%lld", SLICE_ARGS(name), (long long)version);
	findings_init(&said, &c->scratch);
	machine = change_machine(c, slice_str(file), text, version, /* columns= */ NULL, &said);
	if (machine)
		change_check_natives(c->defs, machine->definition, /* is_new= */ false,
				     c->defs->natives_all ? &said : c->findings);
	if (!machine || said.errors)
		error_set(err, HX_CONFIG_ERROR, "%s", first_error(&said));
	else if (has_changed_kind(c->defs, machine->definition))
		error_set(err, HX_CONFIG_ERROR, "it is of kind %s, and what is in force is not",
			  machine->definition->kind);
	else if (c->defs->versions_n >= OLD_VERSIONS_MAX || !has_room_for_statements(c->defs, machine))
		error_set(err, HX_CONFIG_ERROR, "too many versions are in use");
	else
		return machine;
	return NULL;
}

static enum hx_code load(struct change *c, struct slice name, int64_t version, struct hx_error *err)
{
	struct definitions *defs = c->defs;
	struct arena_mark mark = arena_mark(&defs->arena);
	struct machine *machine;
	struct slice text;
	enum hx_code code = read_version(c, name, version, &text, err);

	if (code)
		return code;
	machine = old_machine(c, name, text, version, err);
	if (!machine) {
		arena_rewind(&defs->arena, mark);
		return HX_CONFIG_ERROR;
	}
	change_keep(defs, machine);
	versions_add(&defs->versions, machine);
	return HX_OK;
}

/* The texts of all versions together may be more than the scratch arena takes. */
enum hx_code change_load_version(struct change *c, struct slice name, int64_t version, struct hx_error *err)
{
	struct arena_mark mark = arena_mark(&c->scratch);
	enum hx_code code = HX_OK;

	if (!versions_find(&c->defs->versions, name, version))
		code = load(c, name, version, err);
	arena_rewind(&c->scratch, mark);
	return code;
}

void change_tell_unreadable(struct findings *findings, struct slice name, int64_t version, const char *why)
{
	char workflow[WORKFLOW_NAME_MAX + 1];

	snprintf(workflow, sizeof workflow, "%.*s", SLICE_ARGS(name));
	findings_add(
		findings,
		(struct finding){
			.severity = FINDING_WARNING, .file = "stored", .workflow = workflow, .rule = "version"},
		"version %lld, which runs, batches or calls in doubt still have, cannot serve here, and they stand still: %s",
		(long long)version, why);
}

enum hx_code change_load_used(struct change *c, struct hx_error *err)
{
	LOCAL_UNIT(unit);
	struct unit_result used;
	enum hx_code code;

	unit_add(&unit, UNIT_ANY, &stmt_used, 0, NULL);
	code = c->runner->run(c->runner, &unit, &used, &c->scratch, err);
	for (size_t i = 0; !code && i < used.rows[0].n; i++) {
		struct slice name = db_cell(&used.rows[0], i, 0)->s;
		int64_t version = db_cell(&used.rows[0], i, 1)->i;

		code = change_load_version(c, name, version, err);
		if (code == HX_CONFIG_ERROR) {
			change_tell_unreadable(c->findings, name, version, err->detail);
			code = HX_OK;
		}
	}
	return code;
}
