/* For who tells of a workflow that is in force. */
#pragma once

#include "api/api_list.h"
#include "engine/definitions.h"

struct sought_definition {
	struct slice name;
	const struct definition *definition; /* it stays, also when another is put */
	int64_t version;
};

/* That which the path names. False after answering: there is none. */
bool api_definition_sought(struct http_call *call, struct sought_definition *ret);
