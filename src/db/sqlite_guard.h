/*
 * What a statement of the user's may do on SQLite: read and write tables that are not the engine's, and nothing else. SQLite asks
 * whenever it prepares one (also anew, after the schema has changed), of each table, column and function in it, and in the
 * views and triggers that it comes to.
 */
#pragma once

#include <sqlite3.h>
#include <stdbool.h>

struct sqlite_guard {
	bool foreign; /* a statement of the user's is being prepared or run: the guard is in force */
	bool denied;  /* what that statement fails of */
};

/* *guard must outlive the handle. */
int sqlite_guard_set(sqlite3 *handle, struct sqlite_guard *guard);
