/* The verbs of a gate's records that ask twice: first which record is meant. See gate_record.c. */
#ifndef HX_CLI_GATE_RECORD_H
#define HX_CLI_GATE_RECORD_H

#include "cli/verb.h"
#include "cli/view.h"

enum hx_code gate_ask_show(struct client *client, const struct command_args *args, struct verb_answer *ret_answer,
			   struct hx_error *err) HX_MUST_CHECK;
enum hx_code gate_ask_resolve(struct client *client, const struct command_args *args, struct verb_answer *ret_answer,
			      struct hx_error *err) HX_MUST_CHECK;
enum hx_code gate_ask_forget(struct client *client, const struct command_args *args, struct verb_answer *ret_answer,
			     struct hx_error *err) HX_MUST_CHECK;

/* The records of one key: whose they are. */
extern const struct view gate_records_view;

#endif
