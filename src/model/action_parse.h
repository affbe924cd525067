/* The `actions` of a definition, read. */
#ifndef HX_MODEL_ACTION_PARSE_H
#define HX_MODEL_ACTION_PARSE_H

#include "model/action.h"
#include "model/reader.h"

struct action_list {
	size_t n;
	struct action *items; /* by name */
};

/*
 * Reads all of them, with a finding for everything that is wrong; an action with faults stays in the list, so that
 * a step that names it is not blamed too. node may be NULL: there are none.
 */
void actions_parse(const struct reader *r, const struct json_node *node, struct action_list *ret);
/* NULL: there is no such action. */
const struct action *action_named(const struct action_list *list, struct slice name);
/* The action that a step names; NULL where there is none, which is reported. */
const struct action *action_reference(const struct reader *r, const struct json_node *node, const char *what,
				      const struct action_list *list);
/* Appends to a list that must not name one twice: that is reported, and it stays out. */
void action_add_once(const struct reader *r, const struct json_node *node, const char *what,
		     const struct action *action, const struct action **list, size_t *n);
/* Reports what the engine does not call by itself: sql runs in a unit, and workers fetch theirs. True: it is so. */
bool action_refuse_uncalled(const struct reader *r, const struct json_node *node, const char *what,
			    const struct action *action);
/* Warns of effect `claimed` on what is called again after a crash, done or not. */
void action_warn_claimed(const struct reader *r, const struct json_node *node, const char *what,
			 const struct action *action);
/* What a name that is not in the list was probably meant to be. */
struct suggestion action_suggest(const struct reader *r, const struct action_list *list, struct slice name);

#endif
