/*
 * Statements of sql actions, shared by their text: connections know a statement by its address and prepare each once, and of a
 * definition that was deployed a hundred times most statements are what they always were.
 *
 *   known   has a statement of this name and text been taken in already?
 *   share   makes the machine's statements those that are there, and takes in the rest. Before anybody else sees the machine,
 *           and only when it is to stay: what was taken in is pointed to for as long as the program runs
 */
#pragma once

#include "flow/sql_action.h"
#include "model/definition.h"

#define STATEMENTS_MAX 20000
#define STATEMENTS_SLOTS 32768 /* a power of two, well above STATEMENTS_MAX */

struct statements {
	size_t n;
	const struct db_stmt *slots[STATEMENTS_SLOTS];
};

/* How many of the definition's are not known. */
size_t statements_new_in(const struct statements *statements, const struct definition *definition);
void statements_share(struct statements *statements, struct sql_action *sql, size_t actions_n);
