/* The verb of entities that is more than its row in the table. */
#ifndef HX_CLI_ENTITY_H
#define HX_CLI_ENTITY_H

#include "cli/verb.h"

/* `entity list`, and with --held and no WORKFLOW what `attention` lists of held claims. */
VERB_ASKS(entity_ask_list);

#endif
