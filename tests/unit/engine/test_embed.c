/* hx_engine_*: opening, defining and closing, and what the program notices of the engine: its signals, its log, its file. */
#include <dirent.h>
#include <signal.h>

#include "engine/embed.h"
#include "unit/engine/embed_test.h"

static void a_bad_definition_changes_nothing(void **state)
{
	char id[64];

	(void)state;
	findings[0] = '\0';
	assert_int_equal(
		hx_engine_define(engine, "order",
				 "{\"workflow\": \"order\", \"kind\": \"run\", \"actions\": {},\n"
				 " \"steps\": [{\"name\": \"pay\", \"type\": \"task\", \"action\": \"charge\",\n"
				 "  \"timeot\": \"1s\"}]}",
				 &error),
		HX_DEFINITION_INVALID);
	assert_int_equal(error.code, HX_DEFINITION_INVALID);
	assert_non_null(strstr(findings, "charge"));
	assert_non_null(strstr(findings, "timeot"));
	assert_non_null(strstr(findings, "timeout"));
	assert_memory_equal(error.detail, findings, 40); /* the first of them */
	assert_int_equal(hx_engine_define(engine, "order", "{", &error), HX_DEFINITION_INVALID);
	assert_int_equal(hx_engine_define(engine, "ordre", ORDER("keyed"), &error), HX_VALIDATION_ERROR);
	assert_non_null(strstr(error.detail, "order"));
	assert_int_equal(hx_engine_define(engine, "order", NULL, &error), HX_VALIDATION_ERROR);
	assert_true(start(&one_order, id));
	completes(id);
}

static void a_function_that_nobody_has_is_named(void **state)
{
	struct hx_engine *none = NULL;

	(void)state;
	assert_int_equal(hx_engine_define(engine, "other",
					  "{\"workflow\": \"other\", \"kind\": \"run\", \"actions\": {\"a\": {\"kind\":"
					  " \"native\", \"function\": \"refund\"}},"
					  " \"steps\": [{\"name\": \"s\", \"type\": \"task\", \"action\": \"a\"}]}",
					  &error),
			 HX_DEFINITION_INVALID);
	assert_non_null(strstr(error.detail, "refund"));
	close_engine(); /* the store has a definition that names "charge" */
	assert_int_equal(try_open(store->url, 0, &none), HX_CONFIG_ERROR);
	assert_null(none);
	assert_non_null(strstr(error.detail, "charge"));
}

static void *close_it(void *context)
{
	hx_engine_close(context);
	return NULL;
}

static void what_is_under_way_ends_before_the_close(void **state)
{
	pthread_t closer;
	char id[64];

	(void)state;
	shut(true);
	assert_true(start(&one_order, id));
	AWAIT(DEADLINE_MS, locked(&bank.calls) == 1);
	assert_int_equal(pthread_create(&closer, NULL, close_it, engine), 0);
	/* It refuses from then on, and the run does not go on: the next step is for the next engine. */
	AWAIT(DEADLINE_MS, hx_run_start(engine, NULL, &one_order, NULL, NULL) == HX_STOPPING);
	assert_false(was_told_to_stop());
	shut(false);
	pthread_join(closer, NULL);
	engine = NULL;
	reopen();
	assert_false(start(&one_order, id));
	completes(id);
	assert_int_equal(locked(&bank.calls), 2); /* one for each step */
	assert_string_not_equal(bank.seen[0].key, bank.seen[1].key);
}

/* However long it takes is a time, too: what a function has done by then is recorded, and not done again. */
static void a_drain_may_be_without_end(void **state)
{
	drain_ms = INT64_MAX;
	reopen();
	what_is_under_way_ends_before_the_close(state);
}

/* The engine is closed and opened again while a function is at work that does not listen: nobody hears what it has done. */
static void reopen_in_the_middle(char *ret_id)
{
	pthread_t closer;

	shut(true);
	assert_true(start(&one_order, ret_id));
	AWAIT(DEADLINE_MS, locked(&bank.calls) == 1);
	assert_int_equal(pthread_create(&closer, NULL, close_it, engine), 0);
	AWAIT(DEADLINE_MS, was_told_to_stop());
	shut(false);
	pthread_join(closer, NULL);
	engine = NULL;
	reopen();
}

static void a_keyed_function_is_asked_again_with_its_key(void **state)
{
	char id[64];

	(void)state;
	drain_ms = 1;
	reopen();
	reopen_in_the_middle(id);
	completes(id);
	assert_int_equal(locked(&bank.calls), 3);
	assert_string_equal(bank.seen[0].key, bank.seen[1].key);
	assert_true(bank.seen[1].fence > bank.seen[0].fence);
	assert_int_equal(locked(&bank.effects), 2); /* the bank knew the key */
}

static void a_claimed_function_is_not_asked_again(void **state)
{
	char id[64];

	(void)state;
	drain_ms = 1;
	reopen();
	must(hx_engine_define(engine, "order", ORDER("claimed"), &error));
	reopen_in_the_middle(id);
	AWAIT(DEADLINE_MS, is_at(id, "WAITING")); /* for a person */
	assert_int_equal(locked(&bank.calls), 1);
	must(hx_run_tell(engine, NULL, id,
			 &(struct hx_message){HX_SIZE(hx_message), .verb = HX_VERB_DONE, .name = "pay"}, NULL, &error));
	completes(id);
	assert_int_equal(locked(&bank.calls), 2);
}

struct waiter {
	char id[64];
	enum hx_code code;
};

static void *wait_for_it(void *context)
{
	struct waiter *w = context;

	w->code = hx_run_wait(engine, NULL, w->id, /* timeout_ms= */ -1, NULL, NULL);
	return NULL;
}

static bool is_inside(void)
{
	bool inside;

	pthread_mutex_lock(&engine->mutex);
	inside = engine->inside > 0;
	pthread_mutex_unlock(&engine->mutex);
	return inside;
}

static void a_close_ends_the_waiting(void **state)
{
	static const char waits[] = "{\"workflow\": \"nap\", \"kind\": \"run\", \"steps\": ["
				    "{\"name\": \"sleep\", \"type\": \"wait\", \"for\": \"1h\"}]}";
	struct waiter w;
	pthread_t thread;

	(void)state;
	must(hx_engine_define(engine, "nap", waits, &error));
	assert_true(start(&(struct hx_run_request){HX_SIZE(hx_run_request), .workflow = "nap"}, w.id));
	AWAIT(DEADLINE_MS, is_at(w.id, "WAITING"));
	assert_int_equal(pthread_create(&thread, NULL, wait_for_it, &w), 0);
	AWAIT(DEADLINE_MS, is_inside());
	hx_engine_close(engine);
	pthread_join(thread, NULL);
	engine = NULL;
	assert_int_equal(w.code, HX_STOPPING);
}

static void one_file_has_one_engine(void **state)
{
	struct store *other = store_new(STORE_SQLITE_FILE);
	struct hx_engine *second = NULL;
	struct hx_result *run = NULL, *end = NULL;

	(void)state;
	assert_int_equal(try_open(store->url, 1, &second), HX_BUSY);
	assert_null(second);
	must(try_open(other->url, 1, &second)); /* another file is another matter */
	must(hx_engine_define(second, "order", ORDER("keyed"), &error));
	must(hx_run_start(second, NULL, &one_order, &run, &error));
	must(hx_run_wait(second, NULL, run->id, DEADLINE_MS, &end, &error));
	assert_string_equal(end->status, "COMPLETED");
	assert_int_equal(hx_run_wait(engine, NULL, run->id, 0, NULL, &error), HX_NOT_FOUND);
	hx_result_free(run);
	hx_result_free(end);
	hx_engine_close(second);
	store_free(other);
	reopen(); /* and the file is free again */
}

/* Of every thread of this process: does it block this signal? */
static size_t threads_that_take(int signal)
{
	DIR *dir = opendir("/proc/self/task");
	struct dirent *entry;
	size_t n = 0;

	assert_non_null(dir);
	while ((entry = readdir(dir))) {
		char path[300], line[200];
		unsigned long long blocked = ~0ull;
		FILE *file;

		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof path, "/proc/self/task/%s/status", entry->d_name);
		file = fopen(path, "r");
		while (file && fgets(line, sizeof line, file))
			sscanf(line, "SigBlk: %llx", &blocked);
		if (file)
			fclose(file);
		n += !(blocked >> (signal - 1) & 1);
	}
	closedir(dir);
	return n;
}

static void the_programs_signals_are_left_alone(void **state)
{
	struct hx_gate_options options = {HX_SIZE(hx_gate_options), .store_url = "sqlite::memory:"};
	struct sigaction pipe_action;
	struct hx_gate *gate;
	sigset_t mask;

	(void)state;
	must(hx_gate_open(&options, &gate, &error));
	must(hx_engine_define(engine, "order", ORDER("idempotent"), &error));
	/* The one of the test. One that has just ended may still be seen, without its mask. */
	AWAIT(DEADLINE_MS, threads_that_take(SIGTERM) == 1 && threads_that_take(SIGPIPE) == 1);
	sigaction(SIGPIPE, NULL, &pipe_action);
	assert_true(pipe_action.sa_handler == SIG_DFL);
	pthread_sigmask(SIG_SETMASK, NULL, &mask);
	assert_false(sigismember(&mask, SIGTERM));
	hx_gate_close(gate);
}

static void what_an_operator_has_to_know_is_logged(void **state)
{
	struct hx_native natives[] = {{"charge", charge, &bank}};
	struct hx_engine_options options = {HX_SIZE(hx_engine_options), .store = store->url, .natives = natives,
					    .natives_n = 1};
	FILE *log = tmpfile();
	char text[4000] = "", id[64];

	(void)state;
	close_engine();
	options.log_fd = fileno(log);
	must(hx_engine_open(&options, &engine, &error));
	must(hx_engine_define(engine, "order", ORDER("claimed"), &error));
	bank.says[0] = HX_NATIVE_UNKNOWN;
	assert_true(start(&one_order, id));
	AWAIT(DEADLINE_MS, is_at(id, "WAITING"));
	close_engine();
	rewind(log);
	assert_true(fread(text, 1, sizeof text - 1, log) > 0);
	assert_non_null(strstr(text, "held for a person"));
	assert_non_null(strstr(text, id));
	fclose(log);
}

static void a_folder_has_definitions_too(void **state)
{
	struct hx_native natives[] = {{"charge", charge, &bank}};
	struct hx_engine_options options = {HX_SIZE(hx_engine_options),
					    .store = "sqlite::memory:", .workflows = store->dir, .natives = natives};
	char path[300], id[64];
	FILE *file;

	(void)state;
	snprintf(path, sizeof path, "%s/order.json", store->dir);
	file = fopen(path, "w");
	assert_non_null(file);
	fputs(ORDER("keyed"), file);
	fclose(file);
	close_engine();
	assert_int_equal(hx_engine_open(&options, &engine, NULL), HX_CONFIG_ERROR); /* without the function */
	options.natives_n = 1;
	must(hx_engine_open(&options, &engine, &error));
	assert_true(start(&one_order, id));
	completes(id);
	remove(path);
}

static enum hx_code open_with(const struct hx_engine_options *options)
{
	struct hx_engine *none = NULL;
	enum hx_code code = hx_engine_open(options, &none, &error);

	assert_null(none);
	return code;
}

static void bad_options_are_refused(void **state)
{
	struct hx_native natives[HX_NATIVES_MAX + 1];
	char names[HX_NATIVES_MAX + 1][20];

	(void)state;
	for (size_t i = 0; i <= HX_NATIVES_MAX; i++) {
		snprintf(names[i], sizeof names[i], "f%zu", i);
		natives[i] = (struct hx_native){names[i], charge, NULL};
	}
#define OPEN(...)                                                                                                      \
	open_with(&(struct hx_engine_options){HX_SIZE(hx_engine_options), .store = "sqlite::memory:", __VA_ARGS__})
	assert_int_equal(OPEN(.natives = natives, .natives_n = HX_NATIVES_MAX + 1), HX_TOO_LARGE);
	natives[1].name = natives[0].name;
	assert_int_equal(OPEN(.natives = natives, .natives_n = 2), HX_VALIDATION_ERROR);
	natives[1].run = NULL;
	assert_int_equal(OPEN(.natives = natives, .natives_n = 2), HX_VALIDATION_ERROR);
	assert_int_equal(OPEN(.drain_ms = -1), HX_VALIDATION_ERROR);
	assert_int_equal(OPEN(.node = "a|b"), HX_CONFIG_ERROR);
	assert_int_equal(OPEN(.config = "{\"lease\": \"0s\"}"), HX_CONFIG_ERROR);
	assert_non_null(strstr(error.detail, "lease"));
	assert_int_equal(OPEN(.workflows = "/nowhere"), HX_CONFIG_ERROR);
	assert_non_null(strstr(error.detail, "/nowhere"));
#undef OPEN
	assert_int_equal(
		open_with(&(struct hx_engine_options){HX_SIZE(hx_engine_options), .store = "sqlite:/nowhere/x.db"}),
		HX_STORE_UNAVAILABLE);
	assert_int_equal(open_with(&(struct hx_engine_options){HX_SIZE(hx_engine_options), .store = "mysql://x"}),
			 HX_CONFIG_ERROR);
	hx_engine_close(NULL);
	hx_result_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_bad_definition_changes_nothing),
		TEST(a_function_that_nobody_has_is_named),
		TEST(what_is_under_way_ends_before_the_close),
		ON(a_drain_may_be_without_end, sqlite),
		ON(a_keyed_function_is_asked_again_with_its_key, sqlite),
		ON(a_claimed_function_is_not_asked_again, sqlite),
		TEST(a_close_ends_the_waiting),
		ON(one_file_has_one_engine, sqlite),
		TEST(the_programs_signals_are_left_alone),
		ON(what_an_operator_has_to_know_is_logged, sqlite),
		ON(a_folder_has_definitions_too, sqlite),
		ON(bad_options_are_refused, sqlite),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
