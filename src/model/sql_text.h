/*
 * The SQL of an action: `:path` parameters become ?1, ?2 …, and what would make the statement more than one
 * statement inside of somebody else's transaction is refused.
 */
#pragma once

#include "base/arena.h"
#include "model/action.h"

#define SQL_TEXT_BYTES_MAX 65536
#define SQL_PATH_BYTES_MAX 128

/*
 * Fills in sql, params_n and params of *ret, which live in the arena. HX_VALIDATION_ERROR with the reason for text
 * that is not one SELECT, INSERT, UPDATE, DELETE, REPLACE, MERGE or WITH, has parameters of another spelling (a
 * store would read them as NULL), an unknown path, too many parameters or a literal without an end, or names what is not for it (sql_reach.h); arena errors.
 */
enum hx_code sql_text_parse(struct slice text, struct arena *a, struct hx_error *err,
			    struct action_statement *ret) HX_MUST_CHECK;
/* The same for the text of an embedding program, whose parameters are ?1, ?2 …, without gaps: params[] stays unset. */
enum hx_code sql_text_parse_numbered(struct slice text, struct arena *a, struct hx_error *err,
				     struct action_statement *ret) HX_MUST_CHECK;
