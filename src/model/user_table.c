/*
 * See user_table.h. Identifiers are plain: letters, digits and '_', a table with one '.' after its schema. They are
 * quoted wherever they are used; that they need no quoting keeps one spelling of a table from becoming two.
 */
#include "model/user_table.h"

#include <strings.h>

#include "base/excerpt.h"
#include "model/text.h"

static bool is_identifier(struct slice name)
{
	return text_is_identifier(name) && name.n <= IDENTIFIER_BYTES_MAX;
}

static bool is_table(struct slice name)
{
	const char *dot = memchr(name.p, '.', name.n);
	size_t schema_n = dot ? (size_t)(dot - name.p) : 0;

	if (!dot)
		return is_identifier(name);
	return is_identifier(slice_of(name.p, schema_n)) && is_identifier(slice_of(dot + 1, name.n - schema_n - 1));
}

void user_table_read(const struct reader *r, const struct json_node *node, const struct field *field, void *ret)
{
	struct user_table *t = ret;

	*t = (struct user_table){.id = "id", .status = "status", .version = "version", .updated_at = "updated_at"};
	if (!reader_string(r, node, field->name))
		return;
	if (!is_table(node->string))
		reader_report(r, node->at.line, "name",
			      "table is \"%s\"; a table is letters, digits and '_', with its schema and a '.' in front "
			      "if need be, each of at most %d bytes",
			      excerpt_of(node->string).text, IDENTIFIER_BYTES_MAX);
	t->table = reader_keep(r, node->string);
}

static void read_column(const struct reader *r, const struct json_node *node, const struct field *field, void *ret)
{
	const char **column = ret;

	if (!reader_string(r, node, field->name))
		return;
	if (!is_identifier(node->string))
		reader_report(r, node->at.line, "name", "%s is \"%s\"; a column is 1 to %d letters, digits and '_'",
			      field->name, excerpt_of(node->string).text, IDENTIFIER_BYTES_MAX);
	*column = reader_keep(r, node->string);
}

static void check_distinct(const struct reader *outer, const struct json_node *columns, const struct user_table *t)
{
	const char *const names[] = {t->id, t->status, t->version, t->updated_at};
	struct reader r = *outer;

	r.where = "meta.columns";
	for (size_t i = 0; i < 4; i++)
		for (size_t j = 0; j < i; j++)
			if (names[i] && names[j] && strcasecmp(names[i], names[j]) == 0)
				reader_report(&r, columns->at.line, "duplicate", "column %s has two meanings",
					      names[i]);
}

#define FIELD_COLUMN(member) FIELD_OWN_AT(struct user_table, member, const char *, read_column)

static const struct field column_fields[] = {{"id", FIELD_COLUMN(id)},
					     {"status", FIELD_COLUMN(status)},
					     {"version", FIELD_COLUMN(version)},
					     {"updated_at", FIELD_COLUMN(updated_at)},
					     {0}};

void user_table_read_columns(const struct reader *r, const struct json_node *node, const struct field *field, void *ret)
{
	const struct user_table *t = ret;

	if (!t->id) /* user_table_read() was not called */
		reader_report(r, node->name_at.line, "missing field", "columns without a table");
	else if (fields_object(r, node, field->name, column_fields, ret))
		check_distinct(r, node, t);
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
