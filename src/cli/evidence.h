/* hapax evidence: the evidence of a subject, as a file. For the table of verbs. */
#pragma once

#include "cli/verb.h"

VERB_ASKS(evidence_ask);
enum hx_code evidence_print(struct client *client, struct json answer, struct hx_error *err) HX_MUST_CHECK;
