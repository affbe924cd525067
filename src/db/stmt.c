/* One statement text, three forms: the expansion of the markers described in stmt.h. */
#include "db/stmt.h"

#include <ctype.h>

#include "base/error.h"

static const char *stmt_text_of(const struct db_stmt *stmt, enum stmt_form form)
{
	if (form == STMT_POSTGRES_SET && stmt->set_sql)
		return stmt->set_sql;
	return form != STMT_SQLITE && stmt->pg_sql ? stmt->pg_sql : stmt->sql;
}

bool stmt_has_set_form(const struct db_stmt *stmt)
{
	const char *text = stmt_text_of(stmt, STMT_POSTGRES_ROW);

	if (stmt->foreign || strchr(stmt->in, 's'))
		return false; /* the user's own text: nothing in it is a marker */
	return stmt->set_sql || strstr(text, "{from}") || strstr(text, "{join}");
}

bool stmt_is_empty(const struct db_stmt *stmt, enum stmt_form form)
{
	return stmt_text_of(stmt, form)[0] == '\0';
}

bool stmt_writes(const struct db_stmt *stmt, enum stmt_form form)
{
	return !stmt_is_empty(stmt, form) && strncmp(stmt_text_of(stmt, form), "SELECT", 6) != 0;
}

static const char *array_type(char letter)
{
	switch (letter) {
	case 'i':
		return "int8[]";
	case 't':
		return "text[]";
	case 'b':
		return "bytea[]";
	}
	ASSERT(!"a parameter is i, t or b");
	return NULL;
}

/* "unnest($1::int8[], $2::text[]) WITH ORDINALITY AS u(p1, p2, ord)" */
static void add_unnest(const struct db_stmt *stmt, struct strbuf *out)
{
	strbuf_add_str(out, "unnest(");
	for (int i = 0; stmt->in[i]; i++)
		strbuf_addf(out, "%s$%d::%s", i ? ", " : "", i + 1, array_type(stmt->in[i]));
	strbuf_add_str(out, ") WITH ORDINALITY AS u(");
	for (int i = 0; stmt->in[i]; i++)
		strbuf_addf(out, "p%d, ", i + 1);
	strbuf_add_str(out, "ord)");
}

/* What stands before the number of a parameter. */
static const char *parameter(enum stmt_form form)
{
	return form == STMT_POSTGRES_SET ? "u.p" : form == STMT_SQLITE ? "?" : "$";
}

static bool add_list(struct slice name, enum stmt_form form, struct strbuf *out)
{
	if (name.n != 5 || memcmp(name.p, "list", 4) != 0)
		return false;
	strbuf_addf(out,
		    form == STMT_SQLITE ? "json_each(%s%c) AS q" : "json_array_elements_text(%s%c::json) AS q(value)",
		    parameter(form), name.p[4]);
	return true;
}

static void add_marker(const struct db_stmt *stmt, struct slice name, enum stmt_form form, struct strbuf *out)
{
	bool set = form == STMT_POSTGRES_SET;
	bool from = slice_is(name, "from"), join = slice_is(name, "join"), u = slice_is(name, "u");

	if (add_list(name, form, out))
		return;
	ASSERT(from || join || slice_is(name, "ord") || (u && set));
	if (!set)
		return;
	if (from || join || u) {
		strbuf_add_str(out, from ? " FROM " : join ? ", " : "");
		add_unnest(stmt, out);
	} else {
		strbuf_add_str(out, "u.ord, ");
	}
}

/*
 * The beginning or the end of what stands there for one store; *off counts those that are not for this form. False: it is neither.
 */
static bool take_section(struct slice name, enum stmt_form form, unsigned *off)
{
	bool sqlite = slice_is(name, "sqlite");

	if (slice_is(name, "end")) {
		*off -= *off > 0;
		return true;
	}
	if (!sqlite && !slice_is(name, "postgres"))
		return false;
	*off += *off > 0 || sqlite != (form == STMT_SQLITE);
	return true;
}

/* The end of a quoted text: what stands in it is the user's, or data. A doubled quote just begins the next one. */
static const char *quoted_end(const char *p)
{
	const char *end = strchr(p + 1, *p);

	return end ? end + 1 : p + strlen(p);
}

void stmt_expand(const struct db_stmt *stmt, enum stmt_form form, struct strbuf *out)
{
	bool set = form == STMT_POSTGRES_SET;
	const char *p = stmt_text_of(stmt, form);
	unsigned off = 0;

	while (*p) {
		if (*p == '{') {
			const char *end = strchr(p, '}');
			struct slice name = slice_of(p + 1, (size_t)(end - p - 1));

			ASSERT(end);
			if (!take_section(name, form, &off) && !off)
				add_marker(stmt, name, form, out);
			p = end + 1;
		} else if (*p == '\'' || *p == '"') {
			const char *end = quoted_end(p);

			strbuf_add(out, p, off ? 0 : (size_t)(end - p));
			p = end;
		} else if (off) {
			p++;
		} else if (*p == '?' && isdigit((unsigned char)p[1])) {
			strbuf_add_str(out, parameter(form));
			p++;
		} else {
			strbuf_add_char(out, *p++);
		}
	}
	if (set && stmt->counted && !stmt->set_sql)
		strbuf_add_str(out, " RETURNING u.ord");
}
