/*
 * The members of an object as a table: a line for each field says what it is called, how it is read and where its value goes.
 *
 *   static const struct field retry_fields[] = {
 *   	{"max_attempts", FIELD_INT(struct run_retry, max_attempts, 1, RUN_ATTEMPTS_MAX)},
 *   	{"initial",      FIELD_DURATION(struct run_retry, initial_ms)},
 *   	{"factor",       FIELD_OWN(read_factor)},
 *   	{0}};
 *
 * A member that no line names is refused with the nearest name, because a silently ignored field is an unprotected step. One
 * that is not there, or is not what it should be, leaves the struct as it was: defaults are set before. A line whose member
 * has another type than its field does not compile.
 *
 * Fields are read in the order of the table, whatever the order of the text. Every table is called …fields, and
 * tests/unit/test_man.sh looks up its names in the manual.
 */
#pragma once

#include "model/reader.h"

#define FIELDS_MAX 40 /* of one table */

enum field_kind {
	FIELD_IS_KNOWN,
	FIELD_IS_TEXT,
	FIELD_IS_NAME,
	FIELD_IS_STORE,
	FIELD_IS_ANY_STORE,
	FIELD_IS_ADDRESS,
	FIELD_IS_BOOL,
	FIELD_IS_INT,
	FIELD_IS_SIZE,
	FIELD_IS_DURATION,
	FIELD_IS_LEASE,
	FIELD_IS_CHOICE,
	FIELD_IS_OBJECT,
	FIELD_IS_OWN,
};

struct field;
/* Reads what no kind is for. The node is never NULL; ret is the struct, or the member that the line names. */
typedef void field_read_fn(const struct reader *r, const struct json_node *node, const struct field *field, void *ret);

/* There are some three hundred, so that it has no gaps. */
struct field {
	const char *name; /* NULL: the end of the table */
	field_read_fn *own;
	union {
		const char *const *names;   /* of a choice */
		const struct field *fields; /* of an object */
	};
	union {
		int64_t min; /* of a number */
		size_t size; /* of a choice: its member's */
	};
	int64_t max; /* of a number, or a text, in bytes */
	unsigned of; /* the places that it belongs to, a bit each, where the table is for several; 0: to all */
	unsigned short offset;
	enum field_kind kind : 8;
	bool required;
};

/* ---- the kinds ---- */

#define FIELD_MEMBER(S, member) (((S *)NULL)->member)
#define FIELD_AT(kind_, S, member, type)                                                                               \
	.kind = (kind_), .offset = _Generic(FIELD_MEMBER(S, member), type : offsetof(S, member))

#define FIELD_TEXT(S, member, bytes_max) FIELD_AT(FIELD_IS_TEXT, S, member, const char *), .max = (bytes_max)
#define FIELD_NAME(S, member) FIELD_AT(FIELD_IS_NAME, S, member, const char *)
#define FIELD_STORE(S, member) FIELD_AT(FIELD_IS_STORE, S, member, const char *)
#define FIELD_ANY_STORE(S, member) FIELD_AT(FIELD_IS_ANY_STORE, S, member, const char *)
#define FIELD_ADDRESS(S, member) FIELD_AT(FIELD_IS_ADDRESS, S, member, const char *)
#define FIELD_BOOL(S, member) FIELD_AT(FIELD_IS_BOOL, S, member, bool)
#define FIELD_INT(S, member, from, to) FIELD_AT(FIELD_IS_INT, S, member, int64_t), .min = (from), .max = (to)
#define FIELD_SIZE(S, member, from, to) FIELD_AT(FIELD_IS_SIZE, S, member, size_t), .min = (from), .max = (to)
#define FIELD_DURATION(S, member) FIELD_AT(FIELD_IS_DURATION, S, member, int64_t)
#define FIELD_LEASE(S, member) FIELD_AT(FIELD_IS_LEASE, S, member, int64_t)
/* An enum whose values are the places in the list, which ends with NULL; or a bool: is it the second of two? */
#define FIELD_CHOICE(S, member, list)                                                                                  \
	.kind = FIELD_IS_CHOICE, .offset = offsetof(S, member), .size = sizeof FIELD_MEMBER(S, member), .names = (list)
/* An object with a table of its own, whose struct is a member; or, as a part, which goes into the same struct. */
#define FIELD_OBJECT(S, member, table) .kind = FIELD_IS_OBJECT, .offset = offsetof(S, member), .fields = (table)
#define FIELD_PART(table) .kind = FIELD_IS_OBJECT, .fields = (table)
/* Known here, so that it is not refused, and read by itself. */
#define FIELD_KNOWN .kind = FIELD_IS_KNOWN
/* Anything else: its own function gets the whole struct, or the member. */
#define FIELD_OWN(function) .kind = FIELD_IS_OWN, .own = (function)
#define FIELD_OWN_AT(S, member, type, function) FIELD_AT(FIELD_IS_OWN, S, member, type), .own = (function)

/* ---- the whole object ---- */

/* A table for one place: all members that it does not name are refused, all others read. */
void fields_read(const struct reader *r, const struct json_node *object, const struct field *fields, void *ret);

/* In two steps, where not every field belongs to this place, or where nobody knows which place it is. */
#define FIELDS_HERE 1u /* of a table for one place */
#define FIELDS_ANYWHERE (~0u)
/*
 * Refuses a member. misplaced: the field that it would be elsewhere, and not where `of` says; NULL: there is none. fitting:
 * what there is here.
 */
typedef void field_refuse_fn(const struct reader *r, const struct json_node *member, const struct field *misplaced,
			     unsigned of, const char *const *fitting);
field_refuse_fn field_refuse; /* "rety"; did you mean "retry"? */
void fields_check(const struct reader *r, const struct json_node *object, const struct field *fields, unsigned of,
		  field_refuse_fn *refuse);
/* The fields of these places into the struct; FIELDS_ANYWHERE: of all, and none is required. */
void fields_take(const struct reader *r, const struct json_node *object, const struct field *fields, unsigned of,
		 void *ret);
/* One field alone. The node may be NULL: it is not there. */
void field_read(const struct reader *r, const struct json_node *node, const struct field *field, void *ret);
/* A member that is an object, with findings that say so. False: it is none, which is reported. */
bool fields_object(const struct reader *r, const struct json_node *node, const char *what, const struct field *fields,
		   void *ret);
/* NULL: the table does not name it. */
const struct field *field_named(const struct field *fields, struct slice name);
