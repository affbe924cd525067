/* meta: the module, and the user's own table. */
#include "definition.h"

#include "model/user_table.h"

static const char *with_meta(const char *meta)
{
	return text_printf(
		&arena,
		"{ 'workflow': 'w', 'kind': 'entity', 'status_types': ['a'], 'initial_status': 'a', 'steps': [],\n"
		"  'meta': %s }",
		meta);
}

static void refused(const char *meta, const char *said)
{
	assert_errors(with_meta(meta), 1);
	assert_said("w.json:2: error: workflow w: ", said, NULL);
}

static void defaults(void **state)
{
	const struct workflow *w = parse_clean(with_meta("{}"));

	(void)state;
	assert_string_equal(w->module, "w");
	assert_null(w->table.table);
	w = parse_clean(with_meta("{ 'module': 'billing', 'table': 'invoices' }"));
	assert_string_equal(w->module, "billing");
	assert_string_equal(w->table.table, "invoices");
	assert_string_equal(w->table.id, "id");
	assert_string_equal(w->table.status, "status");
	assert_string_equal(w->table.version, "version");
	assert_string_equal(w->table.updated_at, "updated_at");
}

static void columns(void **state)
{
	const struct workflow *w = parse_clean(
		with_meta("{ 'table': 'app.Invoices_1', 'columns': { 'id': 'invoice_id', 'version': 'rev' } }"));

	(void)state;
	assert_string_equal(w->table.table, "app.Invoices_1");
	assert_string_equal(w->table.id, "invoice_id");
	assert_string_equal(w->table.status, "status");
	assert_string_equal(w->table.version, "rev");
	refused("{ 'table': 't', 'columns': { 'id': 'x', 'version': 'X' } }",
		"duplicate: meta.columns: column X has two meanings");
	refused("{ 'table': 't', 'columns': { 'id': 'status' } }", "two meanings");
	refused("{ 'table': 't', 'columns': { 'updated': 'x' } }",
		"unknown field: meta.columns: \"updated\"; did you mean \"updated_at\"?");
	refused("{ 'table': 't', 'columns': { 'id': 7 } }", "meta.columns: id must be a string, not 7");
	refused("{ 'table': 't', 'columns': [] }", "columns must be an object, not an array");
	refused("{ 'columns': { 'id': 'x' } }", "columns without a table");
}

static void identifiers(void **state)
{
	static const char *const bad[] = {"",      "a b", "a;b", "1a",       "a\\\"b",
					  "a.b.c", ".a",  "a.",  "a\\u0000", "\xc3\xa9"};
	char name[IDENTIFIER_BYTES_MAX + 2];

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		refused(text_printf(&arena, "{ 'table': '%s' }", bad[i]), "name: meta: table is");
		refused(text_printf(&arena, "{ 'table': 't', 'columns': { 'status': '%s' } }", bad[i]),
			"name: meta.columns: status is");
	}
	memset(name, 'x', sizeof name);
	name[IDENTIFIER_BYTES_MAX] = '\0';
	parse_clean(with_meta(text_printf(&arena, "{ 'table': '%s.%s' }", name, name)));
	name[IDENTIFIER_BYTES_MAX] = 'x';
	name[IDENTIFIER_BYTES_MAX + 1] = '\0';
	refused(text_printf(&arena, "{ 'table': '%s' }", name), "63 bytes");
}

static void the_rest_of_meta(void **state)
{
	(void)state;
	refused("{ 'modul': 'x' }", "unknown field: meta: \"modul\"; did you mean \"module\"?");
	refused("{ 'module': 'a b' }", "name: meta: module is \"a b\"");
	refused("7", "meta must be an object, not 7");
	refused("null", "meta must be an object, not null");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		model_test(defaults),
		model_test(columns),
		model_test(identifiers),
		model_test(the_rest_of_meta),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
