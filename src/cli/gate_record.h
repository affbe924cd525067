/* The verbs of a gate's records that ask twice: first which record is meant. See gate_record.c. */
#pragma once

#include "cli/verb.h"
#include "cli/view.h"

VERB_ASKS(gate_ask_show);
VERB_ASKS(gate_ask_resolve);
VERB_ASKS(gate_ask_forget);

/* The records of one key: whose they are. */
extern const struct view gate_records_view;
