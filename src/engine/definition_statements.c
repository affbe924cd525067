/* See definition_statements.h. A table with open addressing: it is never full, so a look ends at a free slot. */
#include "engine/definition_statements.h"

#include "base/hash.h"

_Static_assert((STATEMENTS_SLOTS & (STATEMENTS_SLOTS - 1)) == 0 && STATEMENTS_SLOTS > STATEMENTS_MAX + 1000,
	       "a free slot ends every look");

/* Where it is, or where it belongs. The number of parameters follows from the text. */
static size_t definition_statements_slot_of(const struct statements *s, const char *name, const char *sql)
{
	size_t i = hash_bytes(hash_bytes(0, name, strlen(name)), sql, strlen(sql)) & (STATEMENTS_SLOTS - 1);

	while (s->slots[i] && (strcmp(s->slots[i]->sql, sql) != 0 || strcmp(s->slots[i]->name, name) != 0))
		i = (i + 1) & (STATEMENTS_SLOTS - 1);
	return i;
}

size_t statements_new_in(const struct statements *statements, const struct definition *definition)
{
	size_t n = 0;

	for (size_t i = 0; i < definition->actions_n; i++)
		for (size_t k = 0; k < definition->actions[i].statements_n; k++) {
			const struct action_statement *each = &definition->actions[i].statements[k];

			n += !statements->slots[definition_statements_slot_of(statements, each->name, each->sql)];
		}
	return n;
}

static const struct db_stmt *share(struct statements *s, const struct db_stmt *stmt)
{
	const struct db_stmt **slot = &s->slots[definition_statements_slot_of(s, stmt->name, stmt->sql)];

	if (!*slot && s->n < STATEMENTS_MAX) {
		*slot = stmt;
		s->n++;
	}
	return *slot ? *slot : stmt; /* whoever counts has seen to it that there is room */
}

void statements_share(struct statements *statements, struct sql_action *sql, size_t actions_n)
{
	for (size_t i = 0; i < actions_n; i++)
		for (size_t k = 0; k < sql[i].n; k++)
			sql[i].stmts[k] = share(statements, sql[i].stmts[k]);
}
