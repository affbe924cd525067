/* The `actions` of a definition, read. */
#pragma once

#include "model/action.h"
#include "model/fields.h"

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
/* The action that a step names, of r->actions; NULL where there is none, which is reported. */
const struct action *action_reference(const struct reader *r, const struct json_node *node, const char *what);
field_read_fn action_read;
#define FIELD_ACTION(S, member) FIELD_OWN_AT(S, member, const struct action *, action_read)
/* model/action_request.c: of http. Each gets the request, or the expression that is its piece. */
field_read_fn request_read_method, request_read_path, request_read_headers, request_read_object, request_read_output;
/* What must hold between them. */
void request_check(const struct reader *r, const struct json_node *node, const struct action_request *request);
/* Reports what an action cannot be used for. True: it is so. */
typedef bool action_refuse_fn(const struct reader *r, const struct json_node *node, const char *what,
			      const struct action *action);
/* What the engine does not call by itself: sql runs in a unit, and workers fetch theirs. */
action_refuse_fn action_refuse_uncalled;
/* An action with limits where nobody would count it. */
bool action_refuse_limited(const struct reader *r, const struct json_node *node, const char *what,
			   const struct action *action, const char *why);
/* After-effects: at most STEP_AFTER_EFFECTS_MAX, none of them refused, and none twice. */
void action_read_effects(const struct reader *r, const struct json_node *node, const char *what,
			 action_refuse_fn *refuse, const struct action **list, size_t *n);
/* Warns of effect `claimed` on what is called again after a crash, done or not. */
void action_warn_claimed(const struct reader *r, const struct json_node *node, const char *what,
			 const struct action *action);
/* What a name that is not in the list was probably meant to be. */
struct suggestion action_suggest(const struct reader *r, const struct action_list *list, struct slice name);
