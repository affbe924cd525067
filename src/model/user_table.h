/* `meta.table` and `meta.columns`: the user's own table, read. */
#ifndef HX_MODEL_USER_TABLE_H
#define HX_MODEL_USER_TABLE_H

#include "model/reader.h"
#include "model/workflow.h"

/* PostgreSQL cuts longer identifiers in silence. */
#define IDENTIFIER_BYTES_MAX 63

/* *ret names no table when meta has none. Whether table and columns exist is asked at boot, of the store. */
void user_table_read(const struct reader *r, const struct json_node *meta, struct user_table *ret);
/* Both stores see one table: SQLite does not tell capitals from small letters, so neither does this. */
bool user_table_is_same(const struct user_table *a, const struct user_table *b);

#endif
