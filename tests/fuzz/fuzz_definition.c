/*
 * Any bytes as a definition (of an entity, of a run and of a batch), as a configuration, as the SQL of an action, as an address.
 * Beside not crashing:
 *
 *   - there is a workflow exactly if there is no error, and every finding can be printed on one clean line;
 *   - the counts of the findings are those of the list, as long as it is not full;
 *   - an accepted workflow keeps the rules, looked at again in the slowest and plainest way;
 *   - a run can pass each of its steps at most once, and no text is the definition of two kinds;
 *   - every lookup finds what is in the arrays, and a second parse of the kept text gives the same workflow;
 *   - the SQL that comes out of a definition is read by the drivers as it is meant: nothing but ?N is changed in it;
 *   - with any smaller ceiling of memory there is an error and no workflow, or the same workflow.
 */
#include <stdint.h>

#include "base/hash.h"
#include "db/stmt.h"
#include "fuzz/findings.h"
#include "model/batch_definition.h"
#include "model/config.h"
#include "model/lookup.h"
#include "model/run_definition.h"
#include "model/sql_text.h"
#include "model/url.h"

#define AMPLE_BYTES (512u << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* ---- the rules once more, by comparing everything with everything ---- */

static bool same(const char *a, const char *b)
{
	return a && b && strcmp(a, b) == 0;
}

static bool in_status_types(const struct workflow *w, const char *status)
{
	for (size_t i = 0; i < w->statuses_n; i++)
		if (same(w->statuses[i], status))
			return true;
	return false;
}

static void assert_claim_is_alone(const struct workflow *w, const struct step_view *claim)
{
	ASSERT(!same(claim->claim_into, w->initial_status));
	for (size_t i = 0; i < w->steps_n; i++) {
		ASSERT(!same(claim->claim_into, w->steps[i].status));
		for (size_t v = 0; v <= w->requesters_n; v++) {
			const struct step_view *view = &w->steps[i].views[v];

			ASSERT(!same(claim->claim_into, view->successful_state));
			if (same(claim->claim_into, view->claim_into))
				ASSERT(same(claim->revert_to, view->revert_to));
		}
	}
}

static void try_view(const struct workflow *w, const struct step_view *view)
{
	ASSERT(!view->allowed || in_status_types(w, view->successful_state));
	ASSERT((view->claim_into != NULL) == (view->revert_to != NULL) &&
	       (view->claim_into != NULL) == (view->claim_line > 0));
	ASSERT(view->after_effects_n <= STEP_AFTER_EFFECTS_MAX);
	if (view->claim_into) {
		ASSERT(in_status_types(w, view->claim_into) && in_status_types(w, view->revert_to));
		ASSERT(!same(view->claim_into, view->revert_to));
		ASSERT(same(workflow_revert_of(w, slice_str(view->claim_into)), view->revert_to));
		assert_claim_is_alone(w, view);
	}
	if (view->allowed) {
		ASSERT(view->on_unknown != UNKNOWN_REVERT || view->claim_into);
		ASSERT(view->on_unknown != UNKNOWN_PROBE || (view->action && view->action->probe));
	}
}

static void try_action(const struct action *a, bool of_batch)
{
	ASSERT(!a->void_action || (of_batch && a->void_action != a && a->void_action->kind != ACTION_SQL &&
				   a->void_action->kind != ACTION_WORKER));
	ASSERT((a->kind == ACTION_SQL) == (a->effect == EFFECT_TRANSACTIONAL));
	ASSERT((a->kind == ACTION_HTTP) == (a->url != NULL) && (a->kind == ACTION_EXEC) == (a->argv != NULL));
	ASSERT((a->kind == ACTION_SQL) == (a->statements_n > 0) && (a->kind == ACTION_NATIVE) == (a->function != NULL));
	ASSERT((a->kind == ACTION_WORKER) == (a->queue != NULL) && a->timeout_ms > 0 && a->probe != a);
	for (size_t i = 0; i < a->statements_n; i++)
		ASSERT(a->statements[i].name && a->statements[i].sql && a->statements[i].params_n <= ACTION_PARAMS_MAX);
}

static void try_workflow(const struct workflow *w, struct findings *findings)
{
	struct config config;

	ASSERT(w->name && w->module && w->file && in_status_types(w, w->initial_status));
	for (size_t i = 0; i < w->statuses_n; i++)
		ASSERT(workflow_has_status(w, slice_str(w->statuses[i])));
	for (size_t i = 0; i < w->actions_n; i++)
		try_action(&w->actions[i], /* of_batch= */ false);
	for (size_t i = 0; i < w->steps_n; i++) {
		const struct step *step = &w->steps[i];

		for (size_t v = 0; v <= w->requesters_n; v++)
			if (step->views[v].start == STARTS_HERE)
				ASSERT(workflow_step(w, slice_str(step->step_key), slice_str(step->status),
						     slice_str(v < w->requesters_n ? w->requesters[v] : "default")) ==
				       step);
		ASSERT(workflow_has_step(w, slice_str(step->step_key)));
		for (size_t v = 0; v <= w->requesters_n; v++)
			try_view(w, &step->views[v]);
		for (size_t v = 0; v < w->requesters_n; v++)
			ASSERT(workflow_view(w, step, slice_str(w->requesters[v])) == &step->views[v]);
	}
	config_init(&config);
	coverage_check(&w, 1, &config, findings);
	workflows_check((const struct workflow *const[]){w, w}, 2, findings);
	try_findings(findings);
}

/* ---- runs ---- */

static void try_retry(const struct run_retry *retry)
{
	ASSERT(retry->max_attempts >= 1 && retry->max_attempts <= RUN_ATTEMPTS_MAX && retry->initial_ms > 0);
	ASSERT(retry->initial_ms <= retry->max_ms && retry->factor_thousandths >= 1000 &&
	       retry->factor_thousandths <= RUN_FACTOR_MAX * 1000);
}

static void try_task(const struct run_step *s)
{
	ASSERT((s->type == RUN_TASK) == (s->action != NULL));
	ASSERT(s->type == RUN_TASK || (!s->compensate && !s->input && s->lease_ms == 0));
	try_retry(&s->retry);
	if (s->type == RUN_TASK)
		ASSERT(s->on_unknown != UNKNOWN_REVERT && (s->on_unknown != UNKNOWN_PROBE || s->action->probe));
}

static void try_run_step(const struct run_definition *d, size_t i)
{
	const struct run_step *s = &d->steps[i];

	ASSERT(s->position == i && s->line > 0 && s->name && !same(s->name, RUN_END_NAME));
	ASSERT(run_definition_step(d, slice_str(s->name)) == s);
	for (size_t other = 0; other < i; other++)
		ASSERT(!same(d->steps[other].name, s->name));
	try_task(s);
	ASSERT((s->type == RUN_WAIT) == ((s->for_ms > 0) != (s->until != NULL)));
	ASSERT((s->type == RUN_EXTERNAL_EVENT) == (s->event != NULL) &&
	       (s->type == RUN_CONDITION) == (s->when != NULL));
	ASSERT(s->timeout_ms >= 0 && s->entry_lock_ms >= 0 && s->lease_ms >= 0);
	if (s->type == RUN_CONDITION)
		ASSERT(s->then_position > i && s->then_position <= d->steps_n && s->else_position > i &&
		       s->else_position <= d->steps_n);
}

static bool parse_run(struct slice text, size_t room, const struct run_definition **ret, struct arena *a,
		      struct findings *findings)
{
	arena_init(a, room);
	findings_init(findings, a);
	run_definition_parse("a\x1b.json", text, a, findings, ret);
	ASSERT((*ret != NULL) == (findings->errors == 0));
	return *ret;
}

/* True: it is one. */
static bool try_run(struct slice text)
{
	const struct run_definition *d = NULL, *again = NULL;
	struct findings findings, more;
	struct arena a, b;
	bool accepted = parse_run(text, AMPLE_BYTES, &d, &a, &findings);

	try_findings(&findings);
	if (accepted) {
		ASSERT(d->name && d->module && d->file && d->steps_n >= 1 && d->steps_n <= WORKFLOW_STEPS_MAX);
		for (size_t i = 0; i < d->actions_n; i++)
			try_action(&d->actions[i], /* of_batch= */ false);
		for (size_t i = 0; i < d->steps_n; i++)
			try_run_step(d, i);
		ASSERT(parse_run(d->text, AMPLE_BYTES, &again, &b, &more));
		ASSERT(again->steps_n == d->steps_n && more.warnings == findings.warnings);
		arena_release(&b);
	}
	if (parse_run(text, hash_bytes(5, text.p, text.n) % (16 * text.n + 4096), &again, &b, &more))
		ASSERT(accepted);
	try_findings(&more);
	arena_release(&b);
	arena_release(&a);
	return accepted;
}

/* ---- batches ---- */

static bool engine_calls(const struct action *a)
{
	return a->kind != ACTION_SQL && a->kind != ACTION_WORKER;
}

static void try_batch_fields(const struct batch_definition *d)
{
	ASSERT(d->name && d->module && d->file && d->item_action && engine_calls(d->item_action));
	ASSERT(!d->cleanup_action || (engine_calls(d->cleanup_action) && d->cleanup_action != d->item_action));
	ASSERT(d->after_effects_n <= STEP_AFTER_EFFECTS_MAX);
	for (size_t i = 0; i < d->after_effects_n; i++) {
		ASSERT(engine_calls(d->after_effects[i]));
		for (size_t other = 0; other < i; other++)
			ASSERT(d->after_effects[i] != d->after_effects[other]);
	}
	ASSERT(d->concurrency >= 1 && d->concurrency <= BATCH_CONCURRENCY_MAX && d->cancel_check_every >= 1 &&
	       d->cancel_check_every <= BATCH_CANCEL_CHECK_MAX && d->timeout_ms >= 0 && d->lease_ms >= 0);
	ASSERT(d->on_unknown != UNKNOWN_REVERT &&
	       (d->on_unknown != UNKNOWN_PROBE || engine_calls(d->item_action->probe)));
	try_retry(&d->retry);
	for (size_t i = 0; i < d->actions_n; i++)
		try_action(&d->actions[i], /* of_batch= */ true);
}

static bool parse_batch(struct slice text, size_t room, const struct batch_definition **ret, struct arena *a,
			struct findings *findings)
{
	arena_init(a, room);
	findings_init(findings, a);
	batch_definition_parse("a\x1b.json", text, a, findings, ret);
	ASSERT((*ret != NULL) == (findings->errors == 0));
	return *ret;
}

/* True: it is one. */
static bool try_batch(struct slice text)
{
	const struct batch_definition *d = NULL, *again = NULL;
	struct findings findings, more;
	struct arena a, b;
	bool accepted = parse_batch(text, AMPLE_BYTES, &d, &a, &findings);

	try_findings(&findings);
	if (accepted) {
		try_batch_fields(d);
		ASSERT(parse_batch(d->text, AMPLE_BYTES, &again, &b, &more));
		ASSERT(again->actions_n == d->actions_n && more.warnings == findings.warnings);
		arena_release(&b);
	}
	if (parse_batch(text, hash_bytes(7, text.p, text.n) % (16 * text.n + 4096), &again, &b, &more))
		ASSERT(accepted);
	try_findings(&more);
	arena_release(&b);
	arena_release(&a);
	return accepted;
}

/* ---- the texts ---- */

static bool parse(struct slice text, size_t room, const struct workflow **ret, struct arena *a,
		  struct findings *findings)
{
	arena_init(a, room);
	findings_init(findings, a);
	workflow_parse("a\x1b.json", text, a, findings, ret);
	ASSERT((*ret != NULL) == (findings->errors == 0));
	return *ret;
}

/* True: it is one. */
static bool try_definition(struct slice text)
{
	const struct workflow *w = NULL, *again = NULL;
	struct findings findings, more;
	struct arena a, b;
	bool accepted = parse(text, AMPLE_BYTES, &w, &a, &findings);

	try_findings(&findings);
	if (accepted) {
		ASSERT(parse(w->text, AMPLE_BYTES, &again, &b, &more));
		ASSERT(again->steps_n == w->steps_n && again->statuses_n == w->statuses_n &&
		       again->requesters_n == w->requesters_n && more.warnings == findings.warnings);
		arena_release(&b);
		try_workflow(w, &findings);
	}
	if (parse(text, hash_bytes(3, text.p, text.n) % (16 * text.n + 4096), &again, &b, &more))
		ASSERT(accepted);
	try_findings(&more);
	arena_release(&b);
	arena_release(&a);
	return accepted;
}

static void try_config(struct slice text)
{
	struct findings findings;
	struct config config;
	struct arena a;

	arena_init(&a, AMPLE_BYTES);
	findings_init(&findings, &a);
	config_parse("c.json", text, &a, &findings, &config);
	try_findings(&findings);
	ASSERT(config.lease_ms > 0 && config.max_body_bytes > 0 && config.entry_lock_store && config.file);
	for (size_t i = 0; i < config.modules_n; i++)
		ASSERT(config_module(&config, slice_str(config.modules[i].name)));
	arena_release(&a);
}

/* src/db/stmt.c looks for parameters and markers by its own, simpler, idea of quotes; it must be enough. */
static void try_expansion(const struct action_statement *statement)
{
	struct db_stmt stmt = {.name = "s", .sql = statement->sql, .in = "", .out = ""};
	struct strbuf sqlite, postgres;
	size_t changed = 0;

	strbuf_init(&sqlite, 1u << 20);
	strbuf_init(&postgres, 1u << 20);
	ASSERT(!stmt_has_set_form(&stmt) || strchr(statement->sql, '\'') || strchr(statement->sql, '"'));
	stmt_expand(&stmt, STMT_SQLITE, &sqlite);
	stmt_expand(&stmt, STMT_POSTGRES_ROW, &postgres);
	ASSERT(!sqlite.failed && !postgres.failed && sqlite.n == postgres.n);
	ASSERT(strcmp(sqlite.p, statement->sql) == 0);
	for (size_t i = 0; i < sqlite.n; i++) {
		if (sqlite.p[i] == postgres.p[i])
			continue;
		ASSERT(sqlite.p[i] == '?' && postgres.p[i] == '$' && sqlite.p[i + 1] >= '1' && sqlite.p[i + 1] <= '9');
		changed++;
	}
	ASSERT(changed >= statement->params_n && (changed > 0) == (statement->params_n > 0));
	strbuf_release(&sqlite);
	strbuf_release(&postgres);
}

static void try_parts(struct slice text)
{
	struct action_statement statement = {0};
	struct hx_error err = {0};
	struct arena a;

	arena_init(&a, AMPLE_BYTES);

	enum hx_code code = sql_text_parse(text, &a, &err, &statement);

	ASSERT((code == HX_OK) == (statement.sql != NULL));
	if (code == HX_OK) {
		try_expansion(&statement);
		/* What came out has no parameters of ours any more: only ?N, which nobody may write. */
		struct action_statement second = {0};
		enum hx_code again = sql_text_parse(slice_str(statement.sql), &a, &err, &second);

		ASSERT(statement.params_n > 0 || again == HX_OK);
		ASSERT(second.params_n == 0);
	} else {
		assert_clean_text(slice_str(err.detail));
	}
	if (url_check(text, &err) != HX_OK)
		assert_clean_text(slice_str(err.detail));
	arena_release(&a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice text = slice_of(data, size);

	int kinds = try_definition(text) + try_run(text) + try_batch(text);

	ASSERT(kinds <= 1);
	try_config(text);
	try_parts(text);
	return 0;
}
