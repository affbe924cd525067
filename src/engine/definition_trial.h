/*
 * The statements of sql actions, checked by the store itself: each is explained once, with NULL for its parameters, so
 * that a wrong name is found when the definition is put, and not by the first entity or run that comes to that step. So is
 * one that reaches what is the engine's, by a view or a trigger: SQLite refuses to prepare it, and PostgreSQL's plan names the
 * relations (as far as the plan goes: what functions do is seen when they run, db/postgres_guard.h).
 *
 * Connections know a statement by its address, so a trial is never forgotten; the same text is the same trial.
 */
#pragma once

#include "engine/runner.h"
#include "model/definition.h"

#define DEFINITION_TRIALS_MAX 1000 /* different statements that were tried, of refused definitions too */

struct trial;

struct trials {
	struct arena *arena; /* as long as the program */
	struct trial *first;
	size_t n;
};

/*
 * A statement of this text that stays, as connections want it; `in` and `out` are the caller's, and stay too. `foreign` as in
 * stmt.h. NULL: too many.
 */
const struct db_stmt *trials_statement(struct trials *trials, const struct strbuf *sql, const char *in, const char *out,
				       bool foreign);
/* What is wrong with a statement is a finding; any other code is the store's trouble. Rows go to the scratch arena. */
enum hx_code trials_run(struct trials *trials, const struct definition *definition, struct runner *runner,
			struct arena *scratch, struct findings *findings, struct hx_error *err) HX_MUST_CHECK;
