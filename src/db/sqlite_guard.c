/* See sqlite_guard.h. */
#include "db/sqlite_guard.h"

#include <string.h>
#include <strings.h>

static bool has_prefix(const char *name, const char *prefix)
{
	return name && strncasecmp(name, prefix, strlen(prefix)) == 0;
}

/* pragma_… are pragmas that are read like tables, dbstat and sqlite_dbpage the pages of the file. */
static bool may_read(const char *table)
{
	return !has_prefix(table, "hx_") && !has_prefix(table, "pragma_") && !has_prefix(table, "dbstat") &&
	       !has_prefix(table, "sqlite_dbpage");
}

static bool may_call(const char *function)
{
	if (has_prefix(function, "hx_"))
		return strcasecmp(function, "hx_now_ms") == 0;
	return strcasecmp(function, "load_extension") != 0 && strcasecmp(function, "fts3_tokenizer") != 0;
}

static bool is_allowed(int action, const char *a, const char *b)
{
	switch (action) {
	case SQLITE_SELECT:
	case SQLITE_RECURSIVE:
		return true;
	case SQLITE_READ:
		return may_read(a);
	case SQLITE_INSERT:
	case SQLITE_UPDATE:
	case SQLITE_DELETE:
		return may_read(a) && !has_prefix(a, "sqlite_");
	case SQLITE_FUNCTION:
		return may_call(b);
	case SQLITE_PRAGMA: /* asked for by full-text tables of the user's, and changes nothing */
		return strcasecmp(a, "data_version") == 0 && !b;
	}
	return false; /* schema, transactions, savepoints, ATTACH, DETACH, ANALYZE … */
}

static int sqlite_guard_judge(void *context, int action, const char *a, const char *b, const char *schema,
			      const char *inner)
{
	struct sqlite_guard *guard = context;

	(void)schema, (void)inner;
	if (!guard->foreign || is_allowed(action, a, b))
		return SQLITE_OK;
	guard->denied = true;
	return SQLITE_DENY; /* mutant: guard-authorizer -> return SQLITE_OK; */
}

int sqlite_guard_set(sqlite3 *handle, struct sqlite_guard *guard)
{
	return sqlite3_set_authorizer(handle, sqlite_guard_judge, guard);
}
