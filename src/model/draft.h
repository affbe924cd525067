/*
 * A definition while it is being read: the workflow so far, and the text that it comes from. Lives for one workflow_parse().
 *
 *   workflow.c   top level, statuses, names      ─▶ requesters of all maps
 *   step.c       the fields of each step         ─▶ one view per requester and one for anyone else
 *   rules.c      the rules over these views, each finding with the requesters that it holds for
 *   graph.c      the steps among each other: twice the same one, statuses that none of them reaches
 */
#pragma once

#include "model/action_parse.h"
#include "model/lookup.h"
#include "model/requester.h"

/* The fields of a step that something asks for by their number, which is their place in step_fields[]. */
enum step_field { STEP_SUCCESSFUL_STATE, STEP_CLAIM, STEP_ACTION, STEP_VALIDATION, STEP_ON_UNKNOWN };
#define STEP_FIELDS_MAX 20

struct draft_step {
	const struct json_node *node;
	const char *label;                               /* the step_key, or "#3" where that is not usable */
	const struct json_node *fields[STEP_FIELDS_MAX]; /* by step_fields[]; NULL: not given */
	const struct json_node *status;                  /* one for all, or a map; NULL: not given */
};

struct draft {
	struct reader r; /* its arena is the workflow's, its draft is this */
	struct arena *scratch;
	struct workflow *w;
	struct workflow_index *index;
	struct requesters requesters;
	struct step *steps;         /* those of w */
	struct draft_step *sources; /* one per step; those that one step with a map of statuses became are alike */
	const struct json_node *status_types;
};

/* step.c: the status of this name. Reports one that is not in status_types, unless those could not be read at all. */
const char *draft_status(const struct reader *r, const struct json_node *node, const char *what);
/* Reads step i from the node and collects its requesters; reports everything but the rules. How many steps it became. */
size_t draft_step_read(struct draft *d, size_t i, const struct json_node *node);
/* No more than so many. */
size_t draft_step_statuses_max(const struct json_node *node);
/* Once all requesters are known: the views of step i. False: the arena has failed. */
bool draft_step_views(struct draft *d, size_t i);
/* What holds for the requester of a view; NULL: nothing. */
const struct json_node *draft_value(const struct draft *d, size_t i, size_t field, size_t view);
/* The reader whose findings name step i. */
struct reader draft_step_reader(const struct draft *d, size_t i);

/* A claim as it is written. */
enum claim_form { CLAIM_ABSENT, CLAIM_NULL, CLAIM_MALFORMED, CLAIM_PAIR };
enum claim_form claim_form(const struct json_node *node, struct slice *ret_into, struct slice *ret_revert);

/* rules.c: the eight rules and what else holds between the values of one view. */
void draft_check_rules(struct draft *d);
/* graph.c: duplicate step_id, duplicate (step_key, status). */
void draft_check_duplicates(const struct draft *d);
/* Warns of statuses that nothing reaches. */
void draft_check_reach(const struct draft *d);
