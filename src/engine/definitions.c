/* See definitions.h. What a change does is in definition_change.c. */
#include "engine/definitions.h"

#include "engine/definition_change.h"
#include "flow/function.h"

#define ARENA_BYTES_MAX (1u << 30)
#define CHANGE_TRIES_MAX 5
#define STAMP_BYTES_MAX 65536

_Static_assert(DEFINITION_VERSIONS_MAX <= VERSIONS_MAX, "all of them may be of runs");

/* Every new version raises it; no definition is ever taken away. */
DB_STMT(stmt_stamp, "definition_stamp", "", "i",
	"SELECT CAST(coalesce(sum(version), 0) AS bigint) FROM hx_definition");

void definitions_init(struct definitions *defs, const struct natives *natives, void (*wanted)(void *context),
		      void *context)
{
	memset(defs, 0, sizeof *defs);
	pthread_rwlock_init(&defs->lock, NULL);
	pthread_mutex_init(&defs->changing, NULL);
	arena_init(&defs->arena, ARENA_BYTES_MAX);
	defs->trials.arena = &defs->arena;
	defs->natives = natives;
	versions_init(&defs->versions, wanted, context);
}

void definitions_release(struct definitions *defs)
{
	versions_release(&defs->versions);
	arena_release(&defs->arena);
	pthread_mutex_destroy(&defs->changing);
	pthread_rwlock_destroy(&defs->lock);
}

/* ---- changes from outside ---- */

static enum hx_code load(struct change *c, const char *dir, struct clock *clock, const struct config *config,
			 struct hx_error *err)
{
	enum hx_code code = change_add_stored(c, err);

	if (!code && dir)
		code = change_add_folder(c, dir, err);
	if (!code)
		code = change_check(c, config, err);
	if (!code)
		code = change_take(c, clock, err);
	return code ? code : change_load_used(c, err);
}

/* Another node has written the version that we were about to: everything is looked at again, with what it wrote. */
static bool is_to_be_repeated(enum hx_code code, int tries, struct findings *findings, const struct findings *before)
{
	if (code != HX_CONCURRENCY_ERROR || tries == CHANGE_TRIES_MAX)
		return false;
	*findings = *before;
	*findings->last = NULL;
	return true;
}

enum hx_code definitions_load(struct definitions *defs, const char *dir, struct runner *runner, struct clock *clock,
			      const struct config *config, struct findings *findings, struct hx_error *err)
{
	const struct findings before = *findings;
	enum hx_code code;
	int tries = 0;

	do {
		struct change *c = change_begin(defs, runner, findings);

		code = load(c, dir, clock, config, err);
		change_end(c);
	} while (is_to_be_repeated(code, ++tries, findings, &before));
	return code;
}

static enum hx_code put_candidate(struct change *c, struct slice name, struct slice text, struct clock *clock,
				  const struct config *config, int64_t *ret_version, struct hx_error *err)
{
	struct candidate *candidate = NULL;
	char file[WORKFLOW_NAME_MAX + 32];
	enum hx_code code = change_add_stored(c, err);

	if (!code) {
		snprintf(file, sizeof file, "%.*s", SLICE_ARGS(name));
		candidate = change_add_text(c, file, text);
		if (candidate && !slice_is(name, candidate->definition->name))
			code = error_set(err, HX_VALIDATION_ERROR, "the definition's name is \"%s\"",
					 candidate->definition->name);
		else if (candidate && candidate->differs && !config->secrets.given)
			secret_rules_check(&config->secrets, candidate->definition, /* put= */ true, c->findings);
	}
	if (!code)
		code = change_check(c, config, err);
	if (!code)
		code = change_take(c, clock, err);
	if (!code)
		*ret_version = candidate_version(candidate);
	return code;
}

enum hx_code definitions_put(struct definitions *defs, struct slice name, struct slice text, struct runner *runner,
			     struct clock *clock, const struct config *config, struct findings *findings,
			     int64_t *ret_version, struct hx_error *err)
{
	const struct findings before = *findings;
	enum hx_code code;
	int tries = 0;

	do {
		struct change *c = change_begin(defs, runner, findings);

		code = put_candidate(c, name, text, clock, config, ret_version, err);
		change_end(c);
	} while (is_to_be_repeated(code, ++tries, findings, &before));
	return code;
}

/* ---- what other nodes have put ---- */

static enum hx_code read_stamp(struct runner *runner, int64_t *ret_stamp, struct hx_error *err)
{
	LOCAL_UNIT(unit);
	struct unit_result result;
	enum hx_code code;
	LOCAL_ARENA(arena, STAMP_BYTES_MAX);

	unit_add(&unit, UNIT_ANY, &stmt_stamp, 0, NULL);
	code = runner->run(runner, &unit, &result, &arena, err);
	if (!code)
		*ret_stamp = db_cell(&result.rows[0], 0, 0)->i;
	return code;
}

enum hx_code definitions_follow(struct definitions *defs, int64_t *seen, struct runner *runner, struct clock *clock,
				const struct config *config, struct findings *findings, size_t *ret_changes_n,
				struct hx_error *err)
{
	int64_t stamp = 0;
	struct change *c;
	enum hx_code code = read_stamp(runner, &stamp, err);

	*ret_changes_n = 0;
	if (code || stamp == *seen)
		return code;
	/* The stamp is older than what is read now: what comes in between is looked at twice, and never missed. */
	c = change_begin(defs, runner, findings);
	code = change_add_stored(c, err);
	*ret_changes_n = change_count(c);
	if (!code)
		code = change_check(c, config, err);
	if (!code)
		code = change_take(c, clock, err);
	if (!code || code == HX_CONFIG_ERROR)
		*seen = stamp; /* a set that is not valid here stays so until it changes */
	change_end(c);
	return code;
}

enum hx_code definitions_load_wanted(struct definitions *defs, struct runner *runner, struct findings *findings,
				     size_t *ret_loaded_n, struct hx_error *err)
{
	struct wanted_version wanted;
	enum hx_code code = HX_OK;

	*ret_loaded_n = 0;
	while (!code && versions_next(&defs->versions, &wanted)) {
		struct change *c = change_begin(defs, runner, findings);
		struct slice name = slice_str(wanted.workflow);

		code = change_load_version(c, name, wanted.version, err);
		if (code == HX_CONFIG_ERROR || code == HX_NOT_FOUND) {
			change_tell_unreadable(findings, name, wanted.version, err->detail);
			versions_settle(&defs->versions, &wanted, /* hopeless= */ true);
			code = HX_OK;
		} else if (!code) {
			versions_settle(&defs->versions, &wanted, /* hopeless= */ false);
			*ret_loaded_n += 1;
		}
		change_end(c);
	}
	return code;
}

/* ---- reading ---- */

static const struct machine *find_current(struct definitions *defs, struct slice workflow)
{
	const struct machine *found = NULL;

	pthread_rwlock_rdlock(&defs->lock);
	for (size_t i = 0; i < defs->n && !found; i++)
		if (slice_is(workflow, defs->current[i]->definition->name))
			found = defs->current[i];
	pthread_rwlock_unlock(&defs->lock);
	return found;
}

/* What is in force under this name, if it is of this kind. */
#define CURRENT_OF(name, type, kind)                                                                                   \
	const struct type *name(struct definitions *defs, struct slice workflow)                                       \
	{                                                                                                              \
		const struct machine *machine = find_current(defs, workflow);                                          \
                                                                                                                       \
		return machine ? machine->kind : NULL;                                                                 \
	}
CURRENT_OF(definitions_find, entity_machine, entity)
CURRENT_OF(definitions_run, run_machine, run)
CURRENT_OF(definitions_function, run_machine, function)
CURRENT_OF(definitions_batch, batch_machine, batch)

bool definitions_may_be_function(struct definitions *defs, struct slice name)
{
	const struct machine *machine = find_current(defs, name);

	return name.n && name.n <= FUNCTION_NAME_BYTES_MAX && (!machine || machine->function);
}

static const struct machine *find_version(struct definitions *defs, struct slice workflow, int64_t version)
{
	const struct machine *machine = versions_find(&defs->versions, workflow, version);

	if (!machine)
		versions_want(&defs->versions, workflow, version);
	return machine;
}

const struct run_machine *definitions_run_version(struct definitions *defs, struct slice workflow, int64_t version)
{
	const struct machine *machine = find_version(defs, workflow, version);

	return machine ? machine->run : NULL;
}

const struct batch_machine *definitions_batch_version(struct definitions *defs, struct slice workflow, int64_t version)
{
	const struct machine *machine = find_version(defs, workflow, version);

	return machine ? machine->batch : NULL;
}

const struct workflow *definitions_entity_version(const void *context, struct slice workflow, int64_t version)
{
	const struct machine *machine = find_version((struct definitions *)context, workflow, version);

	return machine ? machine->definition->entity : NULL;
}

const struct action *definitions_action(struct definitions *defs, struct slice workflow, struct slice action,
					int64_t *version)
{
	const struct machine *machine = *version ? find_version(defs, workflow, *version)
						 : find_current(defs, workflow);

	if (machine)
		*version = machine->version;
	for (size_t i = 0; machine && i < machine->definition->actions_n; i++)
		if (slice_is(action, machine->definition->actions[i].name))
			return &machine->definition->actions[i];
	return NULL;
}

void definitions_each(struct definitions *defs, void (*fn)(void *, const struct machine *), void *context)
{
	pthread_rwlock_rdlock(&defs->lock);
	for (size_t i = 0; i < defs->n; i++)
		fn(context, defs->current[i]);
	pthread_rwlock_unlock(&defs->lock);
}
