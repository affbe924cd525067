/*
 * The attributes of a workflow: what its runs (or entities) are searched by. Each is a name and an expression; its value is a string,
 * a number or a boolean, by the type that it has there. Kept, they are one object {name: text that sorts} (base/sortable.h), which
 * where_holds() reads and from which the rows of the index are made.
 *
 *   "attributes": { "customer": ".input.customer", "total": ".state.quote.total" }
 *
 * An expression that has no value, or one that cannot be kept (null, an object, a string of more than 255 characters), leaves its
 * attribute out, which is null in a search: what people look for something by must never stop it.
 */
#pragma once

#include "model/fields.h"
#include "model/where.h"

#define ATTRIBUTES_MAX 16
#define ATTRIBUTE_NAME_MAX 64

struct attribute {
	const char *name;
	const struct expression *expression;
};

struct attributes {
	size_t n;
	const struct attribute *list; /* in the order of the text */
	bool follow;                  /* one of them at least sees more than the input: it may change on the way */
};

/* Can it be written in a condition, and means nothing else there? */
bool attribute_name_is_good(enum where_kind kind, struct slice name);
/* Reads the object into *ret. roots: what their expressions may look at. */
void attributes_read(const struct reader *r, const struct json_node *node, enum where_kind kind,
		     const char *const *roots, struct attributes *ret);
/* The same as a line of a table of fields: their struct is the member `attributes` of S. */
#define FIELD_ATTRIBUTES(S, kind_, roots)                                                                              \
	FIELD_OWN_AT(S, attributes, struct attributes, attributes_read_field), .min = (kind_), .names = (roots)
field_read_fn attributes_read_field;
/* Roots: of what has data; and of a function, whose code has no state that the engine could look at: entries of kind attribute tell of
 * what comes later. */
extern const char *const attribute_data_roots[], *const attribute_input_roots[];
/* Their values as that object, in the arena. .p NULL: there is none (or no room, which the arena remembers). Pure. */
struct slice attributes_of(const struct attributes *attributes, const struct expression_env *env, struct arena *arena);
/* The same over {"data": …}, with memory of its own: none where there is not enough, since it must never stop anything. */
struct slice attributes_of_data(const struct attributes *attributes, struct slice data, struct arena *arena);
/* A kept object, as people see it: {"customer":"c-1","total":120}. */
void attributes_json(struct slice kept, struct strbuf *out);
