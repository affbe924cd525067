/*
 * See user_table.h. Identifiers are plain: letters, digits and '_', a table with one '.' behind its schema. They are
 * quoted wherever they are used; that they need no quoting keeps one spelling of a table from becoming two.
 */
#include "model/user_table.h"

#include <strings.h>

#include "base/excerpt.h"

static bool is_identifier(struct slice name)
{
	for (size_t i = 0; i < name.n; i++) {
		char c = name.p[i];

		if (!((c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_' || (i && c >= '0' && c <= '9')))
			return false;
	}
	return name.n > 0 && name.n <= IDENTIFIER_BYTES_MAX;
}

static bool is_table(struct slice name)
{
	const char *dot = memchr(name.p, '.', name.n);
	size_t schema_n = dot ? (size_t)(dot - name.p) : 0;

	if (!dot)
		return is_identifier(name);
	return is_identifier(slice_of(name.p, schema_n)) && is_identifier(slice_of(dot + 1, name.n - schema_n - 1));
}

static void read_table(const struct reader *r, const struct json_node *node, struct user_table *ret)
{
	if (!reader_string(r, node, "table"))
		return;
	if (!is_table(node->string))
		reader_report(r, node->at.line, "name",
			      "table is \"%s\"; a table is letters, digits and '_', with its schema and a '.' in front "
			      "if need be, each of at most %d bytes",
			      excerpt_of(node->string).text, IDENTIFIER_BYTES_MAX);
	ret->table = reader_keep(r, node->string);
}

static void read_column(const struct reader *r, const struct json_node *columns, const char *what, const char **ret)
{
	const struct json_node *node = json_node_member(columns, what);

	if (!reader_string(r, node, what))
		return;
	if (!is_identifier(node->string))
		reader_report(r, node->at.line, "name", "%s is \"%s\"; a column is 1 to %d letters, digits and '_'",
			      what, excerpt_of(node->string).text, IDENTIFIER_BYTES_MAX);
	*ret = reader_keep(r, node->string);
}

static void check_distinct(const struct reader *r, const struct json_node *columns, const struct user_table *t)
{
	const char *const names[] = {t->id, t->status, t->version, t->updated_at};

	for (size_t i = 0; i < 4; i++)
		for (size_t j = 0; j < i; j++)
			if (names[i] && names[j] && strcasecmp(names[i], names[j]) == 0)
				reader_report(r, columns->at.line, "duplicate", "column %s has two meanings", names[i]);
}

static void read_columns(const struct reader *outer, const struct json_node *columns, struct user_table *ret)
{
	static const char *const known[] = {"id", "status", "version", "updated_at", NULL};
	struct reader r = *outer;

	r.where = "meta.columns";
	if (!reader_object(outer, columns, "columns"))
		return;
	reader_known(&r, columns, known);
	read_column(&r, columns, "id", &ret->id);
	read_column(&r, columns, "status", &ret->status);
	read_column(&r, columns, "version", &ret->version);
	read_column(&r, columns, "updated_at", &ret->updated_at);
	check_distinct(&r, columns, ret);
}

void user_table_read(const struct reader *r, const struct json_node *meta, struct user_table *ret)
{
	const struct json_node *table = json_node_member(meta, "table");
	const struct json_node *columns = json_node_member(meta, "columns");

	if (columns && !table)
		reader_report(r, columns->name_at.line, "missing field", "columns without a table");
	*ret = (struct user_table){0};
	if (!table)
		return;
	*ret = (struct user_table){.id = "id", .status = "status", .version = "version", .updated_at = "updated_at"};
	read_table(r, table, ret);
	read_columns(r, columns, ret);
}

struct slice user_table_schema(const struct user_table *t)
{
	const char *dot = strchr(t->table, '.');

	return slice_of(t->table, dot ? (size_t)(dot - t->table) : 0);
}

const char *user_table_name(const struct user_table *t)
{
	const char *dot = strchr(t->table, '.');

	return dot ? dot + 1 : t->table;
}

int user_table_compare(const struct user_table *a, const struct user_table *b)
{
	struct slice x = user_table_schema(a), y = user_table_schema(b);
	int order = strcasecmp(user_table_name(a), user_table_name(b));

	if (!order)
		order = strncasecmp(x.p, y.p, x.n < y.n ? x.n : y.n);
	return order ? order : (x.n > y.n) - (x.n < y.n);
}

bool user_table_is_same(const struct user_table *a, const struct user_table *b)
{
	if (!a->table || !b->table || strcasecmp(user_table_name(a), user_table_name(b)) != 0)
		return false;
	return !user_table_schema(a).n || !user_table_schema(b).n || user_table_compare(a, b) == 0;
}
