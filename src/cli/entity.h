/* The verb of entities that is more than its row in the table. */
#pragma once

#include "cli/verb.h"

/* `entity list`, and with --held and no WORKFLOW what `attention` lists of held claims. */
VERB_ASKS(entity_ask_list);
