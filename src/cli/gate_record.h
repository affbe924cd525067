/* The verbs of a gate's records that ask twice: first which record is meant. See gate_record.c. */
#ifndef HX_CLI_GATE_RECORD_H
#define HX_CLI_GATE_RECORD_H

#include "cli/verb.h"
#include "cli/view.h"

VERB_ASKS(gate_ask_show);
VERB_ASKS(gate_ask_resolve);
VERB_ASKS(gate_ask_forget);

/* The records of one key: whose they are. */
extern const struct view gate_records_view;

#endif
