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

bool flow_rests(struct patience *p, struct task *task, const struct answer *answer, int resting)
{
	if (p->gives_up_at.ns && answer->mono.ns >= p->gives_up_at.ns)
		return false;
	if (!p->gives_up_at.ns)
		p->gives_up_at = mono_add_ms(answer->mono, FLOW_PATIENCE_MS);
	p->rests_until = mono_add_ms(answer->mono, FLOW_REST_MS);
	p->rests_from = task->at;
	task_go(task, resting);
	return true;
}
