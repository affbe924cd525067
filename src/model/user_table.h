/* `meta.table` and `meta.columns`: the user's own table, read. */
#pragma once

#include "model/fields.h"
#include "model/workflow.h"

/* PostgreSQL cuts longer identifiers in silence. */
#define IDENTIFIER_BYTES_MAX 63

/* `table`, then `columns`, into a struct user_table. Whether these exist is asked at boot, of the store. */
field_read_fn user_table_read, user_table_read_columns;
/* Of "app.invoices": the schema, empty where none was written, and the table's own name. */
struct slice user_table_schema(const struct user_table *t);
const char *user_table_name(const struct user_table *t);
/* By name, then by schema, those without one first. SQLite does not tell capitals from small letters, so neither does this. */
int user_table_compare(const struct user_table *a, const struct user_table *b);
/* May it be one table? Which schema a bare name is found in, only the store knows: it may be any. */
bool user_table_is_same(const struct user_table *a, const struct user_table *b);
