/*
 * Values as PostgreSQL's wire has them, in binary both ways: an int8 is 8 bytes, high byte first; text and bytea
 * are their own bytes. Text would cost a conversion on both sides, and quoting for the arrays. Only where the
 * server is to infer the type from the parameter's place (letter s) is the value sent as text.
 *
 * An array of one dimension:
 *
 *   | 1: dimensions | 1: may hold NULL | type of elements | n | 1: first index | element … |
 *        int32             int32            int32         int32     int32
 *   element: | length, -1 for NULL | bytes |
 */
#include "db/postgres.h"

#include <stdio.h>

enum { OID_BOOL = 16, OID_BYTEA = 17, OID_NAME = 19, OID_INT8 = 20, OID_INT2 = 21, OID_INT4 = 23, OID_TEXT = 25 };
enum { OID_VARCHAR = 1043, OID_BYTEA_ARRAY = 1001, OID_TEXT_ARRAY = 1009, OID_INT8_ARRAY = 1016 };

Oid pg_type(char letter, bool array)
{
	switch (letter) {
	case 'i':
		return array ? OID_INT8_ARRAY : OID_INT8;
	case 't':
		return array ? OID_TEXT_ARRAY : OID_TEXT;
	case 'b':
		return array ? OID_BYTEA_ARRAY : OID_BYTEA;
	case 's':
		ASSERT(!array);
		return 0;
	}
	ASSERT(!"a parameter is i, t, b or s");
	return 0;
}

static void put32(unsigned char bytes[4], uint32_t v)
{
	for (int i = 0; i < 4; i++)
		bytes[i] = (unsigned char)(v >> (24 - 8 * i));
}

static void put64(unsigned char bytes[8], uint64_t v)
{
	put32(bytes, (uint32_t)(v >> 32));
	put32(bytes + 4, (uint32_t)v);
}

/* As text, which libpq takes to end at its NUL. */
static enum hx_code set_inferred(struct pg_params *p, unsigned i, const struct db_value *value, struct arena *arena,
				 struct hx_error *err)
{
	p->formats[i] = 0;
	if (value->type == DB_INT) {
		snprintf(p->numbers[i], sizeof p->numbers[i], "%lld", (long long)value->i);
		p->values[i] = p->numbers[i];
		return HX_OK;
	}
	if (value->s.n && memchr(value->s.p, '\0', value->s.n))
		return error_set(err, HX_DATA_ERROR, "postgres: a text holds a NUL");
	p->values[i] = arena_copy(arena, value->s).p;
	return p->values[i] ? HX_OK : error_set(err, HX_TOO_LARGE, "postgres: the group is too large for its memory");
}

enum hx_code pg_params_set(struct pg_params *p, unsigned i, char letter, const struct db_value *value,
			   struct arena *arena, struct hx_error *err)
{
	p->formats[i] = 1;
	p->lengths[i] = 0;
	p->values[i] = NULL;
	if (value->type == DB_NULL)
		return HX_OK;
	if (value->type != DB_INT && value->s.n > PG_VALUE_BYTES_MAX)
		return error_set(err, HX_TOO_LARGE, "postgres: a value is too large");
	if (letter == 's')
		return set_inferred(p, i, value, arena, err);
	if (value->type == DB_INT) {
		put64((unsigned char *)p->numbers[i], (uint64_t)value->i);
		p->values[i] = p->numbers[i];
		p->lengths[i] = 8;
	} else {
		/* libpq takes NULL for the SQL NULL, so an empty value needs an address. */
		p->values[i] = value->s.p ? value->s.p : "";
		p->lengths[i] = (int)value->s.n;
	}
	return HX_OK;
}

static void add32(struct strbuf *out, uint32_t v)
{
	unsigned char bytes[4];

	put32(bytes, v);
	strbuf_add(out, bytes, sizeof bytes);
}

void pg_array_start(struct strbuf *out, char letter)
{
	strbuf_reset(out);
	add32(out, 1);
	add32(out, 1); /* NULLs are allowed; that there is none need not be said */
	add32(out, pg_type(letter, /* array= */ false));
	add32(out, 0); /* the number, known at the end */
	add32(out, 1);
}

void pg_array_add(struct strbuf *out, const struct db_value *value)
{
	unsigned char bytes[8];

	switch (value->type) {
	case DB_NULL:
		add32(out, UINT32_MAX);
		break;
	case DB_INT:
		add32(out, 8);
		put64(bytes, (uint64_t)value->i);
		strbuf_add(out, bytes, sizeof bytes);
		break;
	case DB_TEXT:
	case DB_BLOB:
		add32(out, (uint32_t)value->s.n);
		strbuf_add_slice(out, value->s);
		break;
	}
}

void pg_array_end(struct strbuf *out, size_t n)
{
	if (!out->failed)
		put32((unsigned char *)out->p + 12, (uint32_t)n);
}

static bool column_fits(Oid type, char letter)
{
	switch (letter) {
	case 'i':
		return type == OID_INT8 || type == OID_INT4 || type == OID_INT2 || type == OID_BOOL;
	case 't':
		return type == OID_TEXT || type == OID_VARCHAR || type == OID_NAME;
	}
	return type == OID_BYTEA;
}

enum hx_code pg_check_columns(const PGresult *res, const struct db_stmt *stmt, int skip, struct hx_error *err)
{
	int n = (int)strlen(stmt->out);

	if (n == 0 && !stmt->counted)
		skip = 0;
	if (PQnfields(res) != skip + n)
		return error_set(err, HX_INTERNAL, "%s: returns %d columns and declares %d", stmt->name, PQnfields(res),
				 skip + n);
	for (int i = 0; i < n; i++)
		if (!column_fits(PQftype(res, skip + i), stmt->out[i]))
			return error_set(err, HX_INTERNAL, "%s: column %d is declared as %c and has type %u",
					 stmt->name, i + 1, stmt->out[i], PQftype(res, skip + i));
	return HX_OK;
}

int64_t pg_cell_int(const PGresult *res, int row, int column)
{
	const unsigned char *bytes = (const unsigned char *)PQgetvalue(res, row, column);
	int n = PQgetlength(res, row, column);
	uint64_t v = 0;

	for (int i = 0; i < n; i++)
		v = v << 8 | bytes[i];
	switch (n) {
	case 2:
		return (int16_t)v;
	case 4:
		return (int32_t)v;
	}
	return (int64_t)v;
}

struct db_value pg_cell(const PGresult *res, int row, int column, char letter, struct arena *arena)
{
	struct slice bytes;

	if (PQgetisnull(res, row, column))
		return db_null();
	if (letter == 'i')
		return db_int(pg_cell_int(res, row, column));
	bytes = slice_of(PQgetvalue(res, row, column), (size_t)PQgetlength(res, row, column));
	bytes = arena_copy(arena, bytes);
	return letter == 't' ? db_text(bytes) : db_blob(bytes);
}
