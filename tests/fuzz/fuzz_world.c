/*
 * The world of `hapax explore`, and the file of `hapax test`, out of any bytes.
 *
 *   - findings are printable, and there is an error whenever something was refused;
 *   - what comes out is within its limits, and its rules can be asked: they are true or not, or an error that says why.
 */
#include <stdint.h>

#include "fuzz/findings.h"
#include "trial/example.h"

#define AMPLE_BYTES (64u << 20)
#define SCRATCH_BYTES (1u << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void try_rule(const struct user_rule *rule)
{
	static const char sight[] = "{\"status\":\"PENDING\",\"doubt\":false,\"steps\":{},\"ledger\":{\"charge\":1}}";
	struct expression_env env = {.whole = json_trust(slice_str(sight))};
	struct arena scratch;
	struct strbuf value;
	struct hx_error err;

	ASSERT(rule->kind < RULE_KINDS_N && rule->expression && rule->text && rule->line > 0);
	arena_init(&scratch, SCRATCH_BYTES);
	strbuf_init(&value, SCRATCH_BYTES);
	ASSERT(expression_eval(rule->expression, &env, &scratch, &err, &value) != HX_OK || value.n > 0);
	strbuf_release(&value);
	arena_release(&scratch);
}

static void try_examples(const uint8_t *data, size_t size, struct arena *arena)
{
	const struct definition_set none = {0};
	struct example_file file;
	struct findings findings;

	findings_init(&findings, arena);
	example_file_parse("t\x1b.json", slice_of(data, size), arena, &findings, &file);
	if (!findings.errors) {
		ASSERT(file.n >= 1 && file.n <= EXAMPLES_MAX && file.definitions_n <= EXAMPLE_PATHS_MAX);
		for (size_t i = 0; i < file.n; i++)
			ASSERT(file.examples[i].name && file.examples[i].then.raw.p &&
			       file.examples[i].whens_n <= EXAMPLE_WHENS_MAX);
		example_file_check(&file, &none, &findings);
		ASSERT(findings.errors); /* nobody has such a workflow */
	}
	try_findings(&findings);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct findings findings;
	struct trial_world world;
	struct arena arena;

	arena_init(&arena, AMPLE_BYTES);
	findings_init(&findings, &arena);
	trial_world_parse("w\x1b.json", slice_of(data, size), &arena, &findings, &world);
	try_findings(&findings);
	ASSERT(world.inputs_n <= TRIAL_INPUTS_MAX && world.services_n <= TRIAL_SERVICES_MAX &&
	       world.rules.n <= USER_RULES_MAX);
	for (size_t i = 0; i < world.inputs_n; i++)
		ASSERT(json_check(world.inputs[i].raw, NULL, &world.inputs[i]) == HX_OK);
	for (size_t i = 0; i < world.services_n; i++)
		ASSERT(world.services[i].name && world.services[i].may < 1u << MAYS_N);
	for (size_t i = 0; i < world.rules.n; i++)
		try_rule(&world.rules.items[i]);
	try_examples(data, size, &arena);
	arena_release(&arena);
	return 0;
}
