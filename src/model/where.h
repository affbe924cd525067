/*
 * What a search asks for and a bulk works on: a condition over the fields and attributes of a subject.
 *
 *   where  = and { "or" and }
 *   and    = not { "and" not }
 *   not    = "not" not | "(" where ")" | test
 *   test   = name ( "==" | "!=" | "<" | "<=" | ">" | ">=" ) value | name "startswith" string | name "in" "[" value { "," value } "]"
 *   value  = string | number | "true" | "false" | "null"         string, number: as in JSON
 *   name   = letter or _ { letter, digit or _ }                  a field of the kind (where_fields in where.c), else an attribute
 *
 * It is two-valued. What is missing is null. ==: the same type and the same value. < <= > >=: both numbers or both strings, else
 * false; so `not (total < 5)` is true of what has no total. Strings are ordered by code points, numbers are exact.
 *
 * No SQL is ever made of it: fixed statements bring candidates, and where_holds() decides, for a page as for the unit of an item.
 * A value alone is no condition: nothing means "everything" by leaving something out.
 */
#pragma once

#include <stdint.h>

#include "base/arena.h"
#include "base/json.h"
#include "base/sortable.h"

#define WHERE_BYTES_MAX 4096
#define WHERE_DEPTH_MAX 16 /* brackets and nots */
#define WHERE_TESTS_MAX 64
#define WHERE_VALUES_MAX 100 /* in all lists */
#define WHERE_CONJUNCTS_MAX 8

enum where_kind { WHERE_RUN, WHERE_ENTITY, WHERE_BATCH, WHERE_JOB };

/* As a row has it. Strings: p NULL is null; ids and times: 0 is null. What the kind does not have is not looked at. */
struct where_subject {
	struct slice status, workflow, key, requester, account, queue;
	struct slice name; /* the id of an entity */
	int64_t id, parent;
	int64_t created_at, started_at, completed_at, updated_at;
	int64_t total;
	bool held;
	struct json attributes; /* {name: sortable text}; raw.p NULL: there are none */
};

enum where_op { WHERE_EQ, WHERE_NE, WHERE_LT, WHERE_LE, WHERE_GT, WHERE_GE, WHERE_STARTS, WHERE_IN };
enum where_type { WHERE_ATTRIBUTE, WHERE_STRING, WHERE_TIME, WHERE_ID, WHERE_NUMBER, WHERE_BOOL };

struct where_value {
	struct slice sortable; /* p NULL: null. Of a string that is to begin something: the text with its tag */
	int64_t number;        /* of a time (ms) or an id, which is not compared as text; 0: null */
};

struct where_test {
	struct slice name;
	enum where_type type;
	bool steady; /* a field that does not change while the status does not; false for attributes */
	enum where_op op;
	const struct where_value *values; /* one, but for WHERE_IN */
	size_t values_n;
	size_t member; /* the field's place in struct where_subject */
	size_t at;     /* where the name stands in the text, in bytes */
};

struct where_node;

struct where {
	enum where_kind kind;
	struct slice text;
	const struct where_test *tests; /* all of them, in the order of the text */
	size_t tests_n;
	const struct where_node *root;
};

struct where_names {
	enum where_kind kind;
	const char *const *statuses; /* that there are, ending with NULL; NULL: any will do */
};

/*
 * Names that are no field are attributes, known or not (where_unknown()). Borrows the text. HX_BAD_QUERY: the detail is "column N:
 * what is wrong", N in characters from 1 and also in *ret_column (which may be NULL).
 */
enum hx_code where_parse(struct slice text, const struct where_names *names, struct arena *arena, struct hx_error *err,
			 size_t *ret_column, const struct where **ret) HX_MUST_CHECK;

/* Pure, without memory. */
bool where_holds(const struct where *where, const struct where_subject *subject);

/*
 * The first test from *at on whose name is an attribute that the list, which ends with NULL, does not have; NULL: all are known.
 * *at goes on after it. A name that is nowhere is refused: `custmer != "c-1"` would be everybody.
 */
const struct where_test *where_unknown(const struct where *where, const char *const *known, size_t *at);
/* Refuses that name, with the nearest of the kind's fields and of these. Always HX_BAD_QUERY, or HX_NO_MEMORY. */
enum hx_code where_refuse_name(const struct where *where, const struct where_test *test, const char *const *known,
			       struct hx_error *err, size_t *ret_column);

/* The tests that all that matches must pass: those joined by `and` at the top. For the plan of a search. */
size_t where_conjuncts(const struct where *where, const struct where_test *out[WHERE_CONJUNCTS_MAX]);

/* Is it a field of this kind, or a word of the grammar? An attribute of it must not be called so. */
bool where_is_reserved(enum where_kind kind, struct slice name);
/* The names of the kind's fields, ending with NULL. */
const char *const *where_field_names(enum where_kind kind);
