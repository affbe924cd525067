/*
 * The head of a definition of kind run or batch: its name, its kind and its module; and the fields that it does not
 * have, because they belong to another kind. Whoever wrote such a field believed in something that does not happen.
 */
#ifndef HX_MODEL_HEAD_H
#define HX_MODEL_HEAD_H

#include "model/reader.h"

struct head {
	const char *name;
	const char *module; /* meta.module, default: the name */
	const char *file;
	struct slice text; /* the definition as written */
};

/*
 * From the root, which is an object; what is wrong is reported, and further findings name the workflow. A definition
 * that says no kind is taken for one of r->kind, so that all its faults are seen. False: it is of another kind.
 */
bool head_read(struct reader *r, const struct json_node *root, struct slice text, struct head *ret);

/* Reports every member that is not in the list, which ends with NULL. */
void head_known(const struct reader *r, const struct json_node *object, const char *const *known);
/* Reports a member that is not one of `known`, naming the kinds of definition that have it, or the nearest of them. */
void head_refuse_field(const struct reader *r, const struct json_node *member, const char *const *known);

#endif
