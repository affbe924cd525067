/* Definitions and configuration from files. */
#include "definition.h"

#include <fcntl.h>
#include <ftw.h>
#include <sys/stat.h>
#include <unistd.h>

#include "model/load.h"

static char dir[4000];
static struct definition_set set;

static int set_up_folder(void **state)
{
	const char *tmp = getenv("TMPDIR");

	snprintf(dir, sizeof dir, "%s/load.XXXXXX", tmp ? tmp : "/tmp");
	if (!mkdtemp(dir))
		return -1;
	memset(&set, 0, sizeof set);
	return set_up(state);
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	(void)st;
	(void)flag;
	(void)ftw;
	return remove(path);
}

static int tear_down_folder(void **state)
{
	nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	return tear_down(state);
}

static const char *path_of(const char *name)
{
	return text_printf(&arena, "%s/%s", dir, name);
}

static void write_file(const char *name, const char *text)
{
	FILE *f = fopen(path_of(name), "w");

	assert_non_null(f);
	fputs(json_text(text), f);
	fclose(f);
}

static void write_workflow(const char *file, const char *name)
{
	write_file(
		file,
		text_printf(
			&arena,
			"{ 'workflow': '%s', 'kind': 'entity', 'status_types': ['a'], 'initial_status': 'a', 'steps': [] }",
			name));
}

static void a_folder_in_the_order_of_its_names(void **state)
{
	(void)state;
	write_workflow("b.json", "two");
	write_workflow("a.json", "one");
	write_workflow("B.json", "zero");
	write_workflow("c.txt", "not");
	write_workflow(".d.json", "hidden");
	write_workflow("json", "not");
	definition_set_load(dir, &arena, &findings, &set);
	print_findings();
	assert_int_equal(findings.errors, 0);
	assert_int_equal(set.n, 3);
	assert_int_equal(set.files_n, 3);
	assert_string_equal(set.items[0]->name, "zero");
	assert_string_equal(set.items[1]->name, "one");
	assert_string_equal(set.items[2]->name, "two");
	assert_string_equal(set.items[1]->file, path_of("a.json"));
	definition_set_load(text_printf(&arena, "%s/", dir), &arena, &findings, &set);
	assert_string_equal(set.items[4]->file, path_of("a.json"));
}

static void all_kinds_stand_in_one_folder(void **state)
{
	(void)state;
	write_workflow("a.json", "entity");
	write_file("b.json", "{ 'kind': 'run', 'workflow': 'order', 'actions': { 'x': { 'kind': 'noop' } },\n"
			     "  'steps': [ { 'name': 's', 'type': 'task', 'action': 'x' } ] }");
	write_file("c.json", "{ 'kind': 'batch', 'workflow': 'render', 'item_action': 'x',\n"
			     "  'actions': { 'x': { 'kind': 'noop' } } }");
	write_file("d.json", "{ 'kind': 'run', 'workflow': 'bad', 'steps': [\n{ 'name': 's', 'type': 'tsak' } ] }");
	write_file("e.json", "{ 'kind': 'batch', 'workflow': 'worse' }");
	definition_set_load(dir, &arena, &findings, &set);
	print_findings();
	assert_int_equal(set.n, 3);
	assert_string_equal(set.items[0]->kind, "entity");
	assert_string_equal(set.items[1]->kind, "run");
	assert_string_equal(set.items[1]->name, "order");
	assert_string_equal(set.items[1]->module, "order");
	assert_string_equal(set.items[1]->file, path_of("b.json"));
	assert_int_equal(set.items[1]->actions_n, 1);
	assert_ptr_equal(set.items[1]->actions, set.items[1]->run->actions);
	assert_string_equal(set.items[2]->kind, "batch");
	assert_ptr_equal(set.items[2]->actions, set.items[2]->batch->actions);
	assert_int_equal(findings.errors, 2);
	assert_said("e.json:1: error: workflow worse: ", "\"item_action\"", NULL);
	assert_said("d.json:2: error: workflow bad", "tsak", NULL);
}

static void a_single_file_has_any_name(void **state)
{
	(void)state;
	write_workflow("x.txt", "one");
	definition_set_load(path_of("x.txt"), &arena, &findings, &set);
	assert_int_equal(set.n, 1);
}

static void what_cannot_be_read_is_a_finding(void **state)
{
	(void)state;
	definition_set_load(path_of("nowhere.json"), &arena, &findings, &set);
	definition_set_load(dir, &arena, &findings, &set);
	mkdir(path_of("folder.json"), 0700);
	write_workflow("good.json", "good");
	write_file("bad.json", "{");
	definition_set_load(dir, &arena, &findings, &set);
	print_findings();
	assert_said("nowhere.json: error: file: No such file or directory", NULL);
	assert_said(dir, "file: there is no *.json in this folder", NULL);
	assert_said("folder.json: error: file: Is a directory", NULL);
	assert_said("bad.json:1: error: json: ", NULL);
	assert_int_equal(findings.errors, 4);
	assert_int_equal(set.n, 1);
	assert_int_equal(set.files_n, 3);
}

static void a_file_is_read_up_to_its_limit(void **state)
{
	int fd;

	(void)state;
	fd = open(path_of("large.json"), O_WRONLY | O_CREAT, 0600);
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, 100 << 20), 0);
	close(fd);
	definition_set_load(path_of("large.json"), &arena, &findings, &set);
	print_findings();
	assert_said("large.json: error: limit: the definition has 16777217 bytes; at most 16777216", NULL);
	assert_int_equal(findings.errors, 1);
}

static void so_many_and_no_more(void **state)
{
	(void)state;
	write_workflow("w.json", "w");
	for (size_t i = 0; i < DEFINITION_FILES_MAX; i++)
		definition_set_load(path_of("w.json"), &arena, &findings, &set);
	assert_int_equal(findings.errors, 0);
	assert_int_equal(set.n, DEFINITION_FILES_MAX);
	definition_set_load(path_of("w.json"), &arena, &findings, &set);
	definition_set_load(path_of("w.json"), &arena, &findings, &set);
	assert_int_equal(findings.errors, 1);
	assert_int_equal(set.n, DEFINITION_FILES_MAX);
}

static void a_configuration(void **state)
{
	struct config config;

	(void)state;
	write_file("c.json", "{ 'lease': '5s' }");
	config_load(path_of("c.json"), &arena, &findings, &config);
	assert_int_equal(findings.errors, 0);
	assert_int_equal(config.lease_ms, 5000);
	config_load(path_of("d.json"), &arena, &findings, &config);
	print_findings();
	assert_said("d.json: error: file: No such file or directory", NULL);
	assert_int_equal(config.lease_ms, 60000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, set_up_folder, tear_down_folder)
		T(a_folder_in_the_order_of_its_names),
		T(all_kinds_stand_in_one_folder),
		T(a_single_file_has_any_name),
		T(what_cannot_be_read_is_a_finding),
		T(a_file_is_read_up_to_its_limit),
		T(so_many_and_no_more),
		T(a_configuration),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
