/* See fields.h. */
#include "model/fields.h"

#include <stdio.h>

#define WHERE_BYTES 160

/* ---- one field ---- */

static bool read_choice(const struct reader *r, const struct json_node *node, const struct field *field, void *ret)
{
	int choice = 0;

	ASSERT(field->size == sizeof(bool) || field->size == sizeof choice);
	if (!reader_choice(r, node, field->name, field->names, &choice))
		return false;
	if (field->size == sizeof(bool))
		*(bool *)ret = choice == 1;
	else
		memcpy(ret, &choice, sizeof choice);
	return true;
}

static bool read_size(const struct reader *r, const struct json_node *node, const struct field *field, size_t *ret)
{
	int64_t value = 0;

	if (!reader_int(r, node, field->name, field->min, field->max, &value))
		return false;
	*ret = (size_t)value;
	return true;
}

bool fields_object(const struct reader *outer, const struct json_node *node, const char *what,
		   const struct field *fields, void *ret)
{
	struct reader r = *outer;
	char where[WHERE_BYTES];

	if (!reader_object(outer, node, what))
		return false;
	snprintf(where, sizeof where, "%s%s%s", outer->where ? outer->where : "", outer->where ? "." : "", what);
	r.where = where;
	fields_read(&r, node, fields, ret);
	return true;
}

/* False: it is not what it should be, which is reported where the value is read, and *ret is as it was. */
static bool read_value(const struct reader *r, const struct json_node *node, const struct field *field, void *ret)
{
	const char *what = field->name;

	switch (field->kind) {
	case FIELD_IS_KNOWN:
		return true;
	case FIELD_IS_TEXT:
		return reader_text(r, node, what, (size_t)field->max, ret);
	case FIELD_IS_NAME:
		return reader_name(r, node, what, ret);
	case FIELD_IS_STORE:
	case FIELD_IS_ANY_STORE:
		return reader_store(r, node, what, field->kind == FIELD_IS_ANY_STORE, ret);
	case FIELD_IS_ADDRESS:
		return reader_address(r, node, what, ret);
	case FIELD_IS_BOOL:
		return reader_bool(r, node, what, ret);
	case FIELD_IS_INT:
		return reader_int(r, node, what, field->min, field->max, ret);
	case FIELD_IS_SIZE:
		return read_size(r, node, field, ret);
	case FIELD_IS_DURATION:
		return reader_duration(r, node, what, ret);
	case FIELD_IS_LEASE:
		return reader_lease(r, node, what, ret);
	case FIELD_IS_CHOICE:
		return read_choice(r, node, field, ret);
	case FIELD_IS_OBJECT:
		return fields_object(r, node, what, field->fields, ret);
	case FIELD_IS_OWN:
		field->own(r, node, field, ret);
		return true;
	}
	ASSERT(!"a kind has its reader");
	return false;
}

void field_read(const struct reader *r, const struct json_node *node, const struct field *field, void *ret)
{
	if (node)
		(void)read_value(r, node, field, (char *)ret + field->offset);
}

/* ---- the whole object ---- */

static bool is_of(const struct field *field, unsigned of)
{
	return !field->of || (field->of & of);
}

const struct field *field_named(const struct field *fields, struct slice name)
{
	for (; fields->name; fields++)
		if (slice_is(name, fields->name))
			return fields;
	return NULL;
}

void field_refuse(const struct reader *r, const struct json_node *member, const struct field *misplaced UNUSED,
		  unsigned of UNUSED, const char *const *fitting)
{
	reader_report(r, member->name_at.line, "unknown field", "\"%s\"%s", excerpt_of(member->name).text,
		      reader_suggest(r, member->name, fitting).text);
}

void fields_check(const struct reader *r, const struct json_node *object, const struct field *fields, unsigned of,
		  field_refuse_fn *refuse)
{
	const char *fitting[FIELDS_MAX + 1] = {NULL};
	size_t n = 0;

	for (const struct field *field = fields; field->name; field++) {
		ASSERT(n < FIELDS_MAX);
		if (is_of(field, of))
			fitting[n++] = field->name;
	}
	json_node_for_each(member, object)
	{
		const struct field *field = field_named(fields, member->name);

		if (!field || !is_of(field, of))
			refuse(r, member, field, of, fitting);
	}
}

void fields_take(const struct reader *r, const struct json_node *object, const struct field *fields, unsigned of,
		 void *ret)
{
	for (const struct field *field = fields; field->name; field++) {
		bool required = field->required && of != FIELDS_ANYWHERE;

		if (is_of(field, of))
			field_read(r,
				   required ? reader_required(r, object, field->name)
					    : json_node_member(object, field->name),
				   field, ret);
	}
}

void fields_read(const struct reader *r, const struct json_node *object, const struct field *fields, void *ret)
{
	fields_check(r, object, fields, FIELDS_HERE, field_refuse);
	fields_take(r, object, fields, FIELDS_HERE, ret);
}
