/* See probe.h. */
#include "flow/probe.h"

#include "base/json_string.h"
#include "base/json_walk.h"

enum probe_says probe_read(const struct answer *answer, struct slice *ret_output)
{
	struct json value;

	if (answer->outcome != ACT_OK || !json_find(json_trust(answer->output), slice_str("outcome"), &value) ||
	    json_type(value) != JSON_STRING)
		return PROBE_UNKNOWN;
	if (json_string_is(value, slice_str("not_done")))
		return PROBE_NOT_DONE;
	if (!json_string_is(value, slice_str("done")))
		return PROBE_UNKNOWN;
	*ret_output = slice_str("null");
	if (json_find(json_trust(answer->output), slice_str("output"), &value))
		*ret_output = value.raw;
	return PROBE_DONE;
}

enum heard probe_heard(const struct answer *answer, struct slice *ret_output)
{
	static const enum heard heard[] = {
		[PROBE_UNKNOWN] = HEARD_PROBE_UNKNOWN, [PROBE_DONE] = HEARD_DONE, [PROBE_NOT_DONE] = HEARD_NOT_DONE};

	return heard[probe_read(answer, ret_output)];
}

enum probe_says probe_told(const struct answer *answer, struct arena *arena, struct slice *ret_output)
{
	struct slice output = {0};
	enum probe_says says = probe_read(answer, &output);

	if (says == PROBE_UNKNOWN && answer->outcome != ACT_OK)
		output = answer->output;
	*ret_output = output.p ? arena_copy(arena, output) : output;
	return says;
}

const char *probe_missing(const struct action *probe)
{
	if (!probe)
		return "its action declares no probe: there is nobody to ask";
	return action_absent(probe) ? "its probe is a function that this program does not have" : NULL;
}
