/* See sql_reach.h. */
#include "model/sql_reach.h"

#include <stdbool.h>
#include <string.h>
#include <strings.h>

#define NAME_BYTES 64 /* a longer one is none of those that are looked for */

/* All that begin with pg_ are PostgreSQL's own, and most of them are for administrators; these are for everybody. */
static const char *const harmless[] = {"pg_sleep",         "pg_sleep_for",       "pg_sleep_until",
				       "pg_typeof",        "pg_column_size",     "pg_get_serial_sequence",
				       "pg_size_pretty",   "pg_size_bytes",      "pg_client_encoding",
				       "pg_jit_available", "pg_current_xact_id", NULL};

/* Beside those: a '*' stands for whatever follows. */
static const char *const reaching[] = {"set_config",       "setval",         "query_to_xml*",    "cursor_to_xml*",
				       "table_to_xml*",    "schema_to_xml*", "database_to_xml*", "ts_stat",
				       "ts_rewrite",       "lo_import",      "lo_export",        "dblink*",
				       "crosstab*",        "connectby",      "xpath_table",      "load_extension",
				       "binary_upgrade_*", "postgres_fdw_*", "fts3_tokenizer",   NULL};

/*
 * Tables and views of PostgreSQL that show what is in everybody's tables (pg_stats, the parts of long values), or change what is
 * everybody's (pg_settings): wherever they are named. The plan of a statement shows them, too (engine/definition_trial.c), but not
 * where a parameter decides whether they are read.
 */
static const char *const catalogs[] = {
	"pg_stat*",     "pg_toast*",        "pg_largeobject*", "pg_settings", "pg_file_settings", "pg_db_role_setting",
	"pg_auth*",     "pg_shadow",        "pg_user*",        "pg_roles",    "pg_group",         "pg_hba_file_rules",
	"pg_proc",      "pg_class",         "pg_attribute",    "pg_attrdef",  "pg_rewrite",       "pg_prepared_*",
	"pg_locks",     "pg_cursors",       "pg_views",        "pg_matviews", "pg_rules",         "pg_subscription*",
	"pg_foreign_*", "pg_replication_*", "pg_publication*", NULL};

struct token {
	char name[NAME_BYTES]; /* folded; empty for what is no name */
	bool calls;            /* an opening bracket comes next */
};

static bool starts_name(char c)
{
	return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_' || (unsigned char)c >= 0x80;
}

static bool continues_name(char c)
{
	return starts_name(c) || (c >= '0' && c <= '9') || c == '$';
}

/* A doubled quote does not end it. */
static const char *after_quoted(const char *p)
{
	const char *end = strchr(p + 1, *p);

	while (end && end[1] == *p)
		end = strchr(end + 2, *p);
	return end ? end + 1 : p + strlen(p);
}

static bool is_listed(const char *const *list, const char *name)
{
	for (; *list; list++) {
		size_t n = strlen(*list);

		if ((*list)[n - 1] == '*' ? strncmp(name, *list, n - 1) == 0 : strcmp(name, *list) == 0)
			return true;
	}
	return false;
}

/* Reads one token; a name in quotes is one, too, and capitals in it make no other of it here. */
static const char *next_token(const char *p, struct token *token)
{
	const char *start = *p == '"' ? p + 1 : p, *end = p + 1;
	size_t n;

	token->name[0] = '\0';
	if (*p == '\'')
		return after_quoted(p);
	if (*p == '"')
		end = after_quoted(p);
	else if (starts_name(*p))
		for (; continues_name(*end); end++)
			;
	else
		return end;
	n = (size_t)(end - start) - (*p == '"' && end > start);
	for (size_t i = 0; i < n && n < NAME_BYTES; i++)
		token->name[i] = start[i] >= 'A' && start[i] <= 'Z' ? (char)(start[i] + 32) : start[i];
	token->name[n < NAME_BYTES ? n : 0] = '\0';
	for (p = end; *p == ' ' || (*p >= '\t' && *p <= '\r'); p++)
		;
	token->calls = *p == '(';
	return end;
}

enum hx_code sql_reach_check(const char *sql, struct hx_error *err)
{
	struct token token = {0};
	bool into = false; /* what comes after INTO is a table, and a bracket its columns */

	for (const char *p = sql, *next; *p; p = next) {
		next = next_token(p, &token);
		if (!token.name[0])
			continue;
		if ((*p == 'u' || *p == 'U') && next[0] == '&' && next[1] == '"')
			return error_set(err, HX_VALIDATION_ERROR, "names with U& are not for sql actions");
		if (strncmp(token.name, "hx_", 3) == 0 && !(token.calls && strcmp(token.name, "hx_now_ms") == 0))
			return error_set(err, HX_VALIDATION_ERROR,
					 "%s: names that begin with hx_ are the engine's own, and not for sql actions",
					 token.name);
		if (token.calls && !into &&
		    (is_listed(reaching, token.name) ||
		     (strncmp(token.name, "pg_", 3) == 0 && !is_listed(harmless, token.name))))
			return error_set(err, HX_VALIDATION_ERROR,
					 "%s() reaches out of the statement, and is not for sql actions", token.name);
		if (is_listed(catalogs, token.name))
			return error_set(err, HX_VALIDATION_ERROR, "%s is PostgreSQL's own, and not for sql actions",
					 token.name);
		into = strcmp(token.name, "into") == 0;
	}
	return HX_OK;
}
