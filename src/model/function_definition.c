/*
 * A definition of kind function: what holds for the runs of a function that workers carry out (flow/function.h). It has no steps, these are
 * code; a function without one has the defaults. What it says is kept with a run when it is started.
 */
#include "model/head.h"
#include "model/run_definition.h"
#include "model/text.h"

/* clang-format off */
const struct field function_fields[] = {
	{"workflow",   FIELD_KNOWN},
	{"kind",       FIELD_KNOWN},
	{"meta",       FIELD_KNOWN},
	{"retry",      FIELD_RETRY(struct run_definition, retry)},
	{"timeout",    FIELD_DURATION(struct run_definition, timeout_ms)},
	{"on_failure", FIELD_CHOICE(struct run_definition, compensates, run_on_failure)},
	{"lease",      FIELD_LEASE(struct run_definition, lease_ms)},
	{"attributes", FIELD_ATTRIBUTES(struct run_definition, WHERE_RUN, attribute_input_roots)},
	{"limits",     FIELD_OWN_AT(struct run_definition, limits, struct limits, limits_read)},
	{"retention",  FIELD_DURATION(struct run_definition, keep_ms)},
	{0}};
/* clang-format on */

static const char *retry_json(const struct run_retry *retry, struct arena *arena)
{
	return text_printf(
		arena, "{\"maxAttempts\":%lld,\"initialMs\":%lld,\"factor\":%lld.%03lld,\"maxMs\":%lld,\"jitter\":%s}",
		(long long)retry->max_attempts, (long long)retry->initial_ms,
		(long long)(retry->factor_thousandths / 1000), (long long)(retry->factor_thousandths % 1000),
		(long long)retry->max_ms, retry->jitter ? "true" : "false");
}

static void read_function(const struct reader *r, const struct json_node *root, const struct head *head,
			  struct arena *scratch UNUSED, const void **ret_definition)
{
	struct run_definition *definition = arena_alloc(r->arena, sizeof *definition);

	if (!definition)
		return;
	*definition = (struct run_definition){HEAD_OF(head), .is_function = true, .is_defined = true,
					      .retry = run_retry_default};
	fields_take(r, root, function_fields, FIELDS_HERE, definition);
	definition->retry_json = retry_json(&definition->retry, r->arena);
	*ret_definition = definition;
}

void function_definition_parse(const char *file, struct slice text, struct arena *arena, struct findings *findings,
			       const struct run_definition **ret)
{
	*ret = head_read("function", function_fields, file, text, arena, findings, read_function);
}
