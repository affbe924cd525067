/* The configuration file. */
#include "definition.h"

static struct config config;

static size_t errors_of(const char *text)
{
	findings_init(&findings, &arena);
	config_parse("c.json", slice_str(json_text(text)), &arena, &findings, &config);
	print_findings();
	assert_int_equal(findings.warnings, 0);
	return findings.errors;
}

static void clean(const char *text)
{
	if (errors_of(text))
		fail_msg("%s", printed.p);
}

static void refused(const char *text, const char *said)
{
	if (errors_of(text) != 1)
		fail_msg("%s\nfor %s", printed.p, text);
	assert_said("c.json:1: error: ", said, NULL);
}

static void short_leases(void **state)
{
	static const char *const words[] = {
		"modules.a.janitor: every is 999ms, shorter than a second: the janitor does little else then",
		"modules.a.janitor: stuck_after is 1ms, shorter than a second: a busy machine loses it",
		"duration: lease is 250ms, shorter than a second: a busy machine loses it",
	};

	(void)state;
	findings_init(&findings, &arena);
	config_parse(
		"c.json",
		slice_str(json_text("{ 'modules': { 'a': { 'janitor': { 'every': '999ms', 'stuck_after': '1ms' } } },"
				    " 'lease': '250ms' }")),
		&arena, &findings, &config);
	print_findings();
	assert_int_equal(findings.errors, 0);
	assert_int_equal(findings.warnings, 3);
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		assert_said("warning: ", words[i], NULL);
	assert_int_equal(config.lease_ms, 250);
	clean("{ 'modules': { 'a': { 'janitor': { 'every': '1s', 'stuck_after': '1s' } } }, 'lease': '1s' }");
}

static void the_contracts_example(void **state)
{
	(void)state;
	clean("{ 'modules': { 'billing': { 'janitor': { 'every': '2m', 'stuck_after': '5m' } } },\n"
	      "  'entry_lock_store': 'redis://127.0.0.1:6379/0', 'retention': { 'runs': '30d', 'batches': '30d', 'jobs': '7d', 'bulks': '90d' },\n"
	      "  'lease': '60s', 'exec': { 'enabled': false }, 'outbound': { 'allow': ['10.0.0.0/8'] } }");
	assert_string_equal(config.file, "c.json");
	assert_int_equal(config.modules_n, 1);
	assert_string_equal(config.modules[0].name, "billing");
	assert_int_equal(config.modules[0].line, 1);
	assert_true(config.modules[0].janitor.declared);
	assert_int_equal(config.modules[0].janitor.every_ms, 120000);
	assert_int_equal(config.modules[0].janitor.stuck_after_ms, 300000);
	assert_string_equal(config.entry_lock_store, "redis://127.0.0.1:6379/0");
	assert_int_equal(config.retain_runs_ms, INT64_C(30) * 86400000);
	assert_int_equal(config.retain_jobs_ms, INT64_C(7) * 86400000);
	assert_int_equal(config.retain_bulks_ms, INT64_C(90) * 86400000);
	assert_int_equal(config.outbound_n, 1);
	assert_string_equal(config.outbound_allow[0], "10.0.0.0/8");
}

static void defaults(void **state)
{
	(void)state;
	clean("{}");
	assert_int_equal(config.modules_n, 0);
	assert_string_equal(config.entry_lock_store, "memory:");
	assert_int_equal(config.lease_ms, 60000);
	assert_false(config.exec_enabled);
	assert_int_equal(config.outbound_n, 0);
	assert_int_equal(config.retain_runs_ms, 0);
	assert_int_equal(config.max_body_bytes, 16777216);
	assert_null(config.db);
	assert_null(config.listen);
	assert_null(config.workflows);
	assert_null(config.node);
}

static void modules_and_janitors(void **state)
{
	(void)state;
	clean("{ 'modules': { 'a': { 'janitor': {} }, 'b': {}, 'c': { 'janitor': { 'external': true, 'stuck_after': '1s' } } } }");
	assert_int_equal(config_module(&config, slice_str("a"))->janitor.every_ms, 120000);
	assert_int_equal(config_module(&config, slice_str("a"))->janitor.stuck_after_ms, 300000);
	assert_true(config_module(&config, slice_str("a"))->janitor.declared);
	assert_false(config_module(&config, slice_str("a"))->janitor.external);
	assert_false(config_module(&config, slice_str("b"))->janitor.declared);
	assert_int_equal(config_module(&config, slice_str("b"))->janitor.stuck_after_ms, 300000);
	assert_true(config_module(&config, slice_str("c"))->janitor.external);
	assert_int_equal(config_module(&config, slice_str("c"))->janitor.stuck_after_ms, 1000);
	assert_null(config_module(&config, slice_str("d")));
	refused("{ 'modules': { 'a': { 'janitr': {} } } }",
		"unknown field: modules.a: \"janitr\"; did you mean \"janitor\"?");
	refused("{ 'modules': { 'a': { 'janitor': { 'evry': '1s' } } } }",
		"unknown field: modules.a.janitor: \"evry\"; did you mean \"every\"?");
	refused("{ 'modules': { 'a': { 'janitor': { 'every': '0s' } } } }",
		"duration: modules.a.janitor: every: \"0s\"");
	refused("{ 'modules': { 'a': { 'janitor': true } } }", "modules.a: janitor must be an object, not true");
	refused("{ 'modules': { 'a b': {} } }", "name: modules.a b: ");
	refused("{ 'modules': [] }", "modules must be an object, not an array");
	refused("{ 'modules': { 'a': 1 } }", "modules.a: a module must be an object, not 1");
}

static void modules_at_the_limit(void **state)
{
	struct strbuf sb;

	(void)state;
	strbuf_init(&sb, 100000);
	strbuf_add_str(&sb, "{ 'modules': { 'm': {}");
	for (int i = 1; i < CONFIG_MODULES_MAX; i++)
		strbuf_addf(&sb, ", 'm%d': {}", i);
	clean(text_printf(&arena, "%s } }", sb.p));
	assert_int_equal(config.modules_n, CONFIG_MODULES_MAX);
	refused(text_printf(&arena, "%s, 'more': {} } }", sb.p), "limit: modules has 201 entries; at most 200");
	strbuf_release(&sb);
}

static void stores_and_addresses(void **state)
{
	(void)state;
	clean("{ 'db': 'sqlite:x.db', 'listen': '[::1]:0', 'workflows': 'flows', 'node': 'n1', 'max_body_bytes': 1048576 }");
	assert_string_equal(config.db, "sqlite:x.db");
	assert_string_equal(config.listen, "[::1]:0");
	assert_string_equal(config.workflows, "flows");
	assert_string_equal(config.node, "n1");
	assert_int_equal(config.max_body_bytes, 1048576);
	clean("{ 'db': 'postgres://h/d', 'entry_lock_store': 'memory:' }");
	refused("{ 'db': 'memory:' }", "db is not a store");
	refused("{ 'db': 'sqlite:' }", "db is not a store");
	refused("{ 'db': 'mysql://secret@h' }", "value: db is not a store");
	assert_not_said("secret"); /* a store's address may hold a password */
	refused("{ 'entry_lock_store': 'rediss' }", "entry_lock_store is not a store");
	refused("{ 'listen': '7411' }", "listen is \"7411\"");
	refused("{ 'listen': ':7411' }", "write it as ADDRESS:PORT");
	refused("{ 'listen': 'h:65536' }", "write it as ADDRESS:PORT");
	refused("{ 'node': 'a b' }", "name: node is");
	refused("{ 'max_body_bytes': 0 }", "max_body_bytes is 0");
	refused("{ 'lease': '1.5s' }", "duration: lease: \"1.5s\"");
}

static void networks(void **state)
{
	static const char *const bad[] = {"10.0.0.0",  "10.0.0.0/33", "10.0.0/8", "::/129",     "x/8",
					  "10.0.0.0/", "10.0.0.0/8x", "/8",       "10.0.0.1/8", "fc00::1/64"};

	(void)state;
	clean("{ 'outbound': { 'allow': ['0.0.0.0/0', '::1/128', 'fd00::/8', '127.0.0.1/32'] } }");
	assert_int_equal(config.outbound_n, 4);
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		refused(text_printf(&arena, "{ 'outbound': { 'allow': ['%s'] } }", bad[i]), "is not a network");
	refused("{ 'outbound': { 'alow': [] } }", "unknown field: outbound: \"alow\"; did you mean \"allow\"?");
	refused("{ 'exec': { 'enable': true } }", "unknown field: exec: \"enable\"; did you mean \"enabled\"?");
	refused("{ 'retention': { 'run': '1d' } }", "unknown field: retention: \"run\"; did you mean \"runs\"?");
	refused("{ 'modles': {} }", "unknown field: \"modles\"; did you mean \"modules\"?");
}

static void all_findings_in_the_order_of_the_text(void **state)
{
	(void)state;
	assert_int_equal(errors_of("{ 'lease': 1,\n 'x': 2,\n 'db': 3 }"), 3);
	assert_int_equal(findings.first->line, 1);
	assert_int_equal(findings.first->next->line, 2);
	assert_int_equal(findings.first->next->next->line, 3);
	assert_int_equal(config.lease_ms, 60000); /* what could not be read has its default */
	assert_int_equal(errors_of("{ 'lease': "), 1);
	assert_said("c.json:1: error: json: column ", NULL);
	assert_int_equal(errors_of("[]"), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		model_test(the_contracts_example),
		model_test(short_leases),
		model_test(defaults),
		model_test(modules_and_janitors),
		model_test(modules_at_the_limit),
		model_test(stores_and_addresses),
		model_test(networks),
		model_test(all_findings_in_the_order_of_the_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
