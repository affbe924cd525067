/* See row_json.h. */
#include "api/row_json.h"

#include "base/hash.h"
#include "model/attributes.h"

static void add_sha256(struct strbuf *text, const char *member, struct slice digest)
{
	char hex[2 * SHA256_BYTES + 1];

	sha256_hex((const uint8_t *)digest.p, hex);
	json_more_text(text, member, slice_str(hex));
}

static void row_json_add_value(struct strbuf *text, const struct row_member *m, const struct db_value *value)
{
	if (value->type == DB_NULL) {
		if (m->kind != ROW_ID && m->kind != ROW_DATA && m->kind != ROW_ATTRIBUTES)
			json_more_json(text, m->name, slice_of(NULL, 0));
		return;
	}
	switch (m->kind) {
	case ROW_TEXT:
	case ROW_WORD:
		json_more_text(text, m->name, value->s);
		break;
	case ROW_NAME:
		json_more_text(text, m->name, value->s.n ? value->s : slice_of(NULL, 0));
		break;
	case ROW_JSON:
	case ROW_DATA:
		json_more_json(text, m->name, value->s);
		break;
	case ROW_ATTRIBUTES:
		json_more(text, m->name);
		attributes_json(value->s, text);
		break;
	case ROW_SHA256:
		add_sha256(text, m->name, value->s);
		break;
	case ROW_COUNT:
	case ROW_INT:
		json_more_int(text, m->name, value->i);
		break;
	case ROW_TIME:
		json_more_time(text, m->name, value->i);
		break;
	case ROW_BOOL:
		json_more_bool(text, m->name, value->i != 0);
		break;
	case ROW_ID:
		json_more_id(text, m->name, m->prefix, value->i);
		break;
	case ROW_OWN:
		ASSERT(!"a column has no words of its own");
	}
}

void row_json_cells(struct strbuf *text, const struct row_member members[], const struct db_rows *rows, size_t i)
{
	for (const struct row_member *m = members; m->name; m++)
		row_json_add_value(text, m, db_cell(rows, i, m->at));
}

static struct db_value row_json_field_of(const void *row, const struct row_member *m)
{
	const void *field = (const char *)row + m->at;

	switch (m->kind) {
	case ROW_INT:
	case ROW_TIME:
		return db_int(*(const int64_t *)field);
	case ROW_ID:
		return *(const int64_t *)field ? db_int(*(const int64_t *)field) : db_null();
	case ROW_COUNT:
		return *(const int64_t *)field < 0 ? db_null() : db_int(*(const int64_t *)field);
	case ROW_BOOL:
		return db_int(*(const bool *)field);
	case ROW_WORD:
		return *(const char *const *)field ? db_str(*(const char *const *)field) : db_null();
	default:
		return ((const struct slice *)field)->p ? db_text(*(const struct slice *)field) : db_null();
	}
}

void row_json_struct(struct strbuf *text, const struct row_member members[], const void *row)
{
	for (const struct row_member *m = members; m->name; m++) {
		struct db_value value;

		if (m->kind == ROW_OWN) {
			m->add(text, row);
			continue;
		}
		value = row_json_field_of(row, m);
		row_json_add_value(text, m, &value);
	}
}

void row_json_object(struct strbuf *text, const struct row_member members[], const void *row)
{
	strbuf_add_char(text, '{');
	row_json_struct(text, members, row);
	strbuf_add_char(text, '}');
}
