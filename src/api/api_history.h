/* The rows of a history, as they are read and as they are shown: for its pages, and for the evidence of a subject. */
#pragma once

#include "api/row_json.h"

/* FROM something that has `h`, a row of hx_history; then HISTORY_NOTED. */
#define HISTORY_COLUMNS                                                                                                \
	"SELECT h.seq, h.from_status, h.to_status, h.version, h.fence, h.op, h.node, h.at, h.hash,"                    \
	" n.step, n.requester, n.reason, n.by_whom, n.output, h.worker FROM "
#define HISTORY_NOTED " LEFT JOIN hx_note n ON n.subject = h.subject AND n.seq = h.seq"
#define HISTORY_OUT                                                                                                    \
	"ittiiitib"                                                                                                    \
	"tttttt"

extern const struct row_member api_history_members[];
/* Of a row: seq, amount, key, reason, balance, at. */
extern const struct row_member api_entry_members[];
