/* See answer.h. */
#include "flow/answer.h"

enum hx_code flow_failure(const struct unit_result *result)
{
	return result->error.code == HX_DATA_ERROR ? HX_DATA_ERROR : HX_STORE_UNAVAILABLE;
}

struct stamp flow_stamp(const struct answer *answer)
{
	return (struct stamp){.op = answer->id, .at = answer->now, .node = answer->node};
}
