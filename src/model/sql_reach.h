/*
 * What the text of a sql action may not name, as far as the text shows it: tables and functions of the engine (hx_…), and functions
 * that reach out of the statement: settings, sessions, locks and messages of the whole server, and those that run text as SQL.
 *
 * A definition is refused for it when it is checked. It is not the guard: views, triggers and functions of the user's have names of
 * their own. Those are met when the statement is prepared (SQLite's authorizer) and when it has run (db/postgres_guard.h).
 */
#pragma once

#include "base/error.h"

/* The text as sql_text.h leaves it: no comments, and one way of quoting. HX_VALIDATION_ERROR with the name. */
enum hx_code sql_reach_check(const char *sql, struct hx_error *err) HX_MUST_CHECK;
