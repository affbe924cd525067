/* Native actions: the registry, and functions called through a port. */
#include "act/native.h"

#include <sched.h>

#include "unit/act/desk.h"

struct gate {
	pthread_mutex_t mutex;
	pthread_cond_t changed;
	int inside, inside_most;
	bool open;
};

static enum act_outcome echo(void *context, const struct native_call *call, struct strbuf *output)
{
	strbuf_addf(output,
		    "{\"context\":\"%s\",\"input\":%.*s,\"key\":\"%.*s\",\"attempt\":%d,\"fence\":%d,\"ms\":%d}",
		    (const char *)context, SLICE_ARGS(call->input), SLICE_ARGS(call->key), (int)call->attempt,
		    (int)call->fence, (int)call->timeout_ms);
	return ACT_OK;
}

/* What it says is in the context. */
struct saying {
	enum act_outcome outcome;
	const char *output;
};

static enum act_outcome say(void *context, const struct native_call *call, struct strbuf *output)
{
	const struct saying *saying = context;

	(void)call;
	strbuf_add_str(output, saying->output);
	return saying->outcome;
}

static enum act_outcome wait_at_gate(void *context, const struct native_call *call, struct strbuf *output)
{
	struct gate *gate = context;

	(void)call;
	(void)output;
	pthread_mutex_lock(&gate->mutex);
	gate->inside++;
	if (gate->inside > gate->inside_most)
		gate->inside_most = gate->inside;
	pthread_cond_broadcast(&gate->changed);
	while (!gate->open)
		pthread_cond_wait(&gate->changed, &gate->mutex);
	gate->inside--;
	pthread_mutex_unlock(&gate->mutex);
	return ACT_OK;
}

static enum act_outcome until_cancelled(void *context, const struct native_call *call, struct strbuf *output)
{
	(void)context;
	while (!atomic_load(call->cancelled))
		sched_yield();
	strbuf_add_str(output, "was told to stop");
	return ACT_UNKNOWN;
}

static void must_add(struct natives *natives, const char *name, native_function function, void *context)
{
	struct hx_error err;

	if (natives_add(natives, name, function, context, &err))
		fail_msg("%s", err.detail);
}

static struct action native_action(const char *function)
{
	return (struct action){.name = function, .workflow = "w", .kind = ACTION_NATIVE, .function = function};
}

static void test_registry(void **state)
{
	static char names[NATIVES_MAX + 1][16];
	char long_name[NATIVE_NAME_MAX + 2] = {0};
	struct natives natives = {0};
	struct hx_error err;

	(void)state;
	assert_null(natives_find(NULL, "x"));
	assert_null(natives_find(&natives, NULL));
	memset(long_name, 'n', NATIVE_NAME_MAX + 1);
	assert_int_equal(natives_add(&natives, "", echo, NULL, &err), HX_VALIDATION_ERROR);
	assert_int_equal(natives_add(&natives, long_name, echo, NULL, &err), HX_VALIDATION_ERROR);
	must_add(&natives, long_name + 1, echo, NULL);
	assert_int_equal(natives_add(&natives, long_name + 1, echo, NULL, &err), HX_VALIDATION_ERROR);
	for (int i = 1; i < NATIVES_MAX; i++) {
		snprintf(names[i], sizeof names[i], "f%d", i);
		must_add(&natives, names[i], echo, NULL);
	}
	assert_int_equal(natives_add(&natives, "more", echo, NULL, &err), HX_TOO_LARGE);
	assert_string_equal(natives_find(&natives, "f7")->name, "f7");
	assert_null(natives_find(&natives, "f64"));
}

static void test_call(void **state)
{
	struct natives natives = {0};
	struct desk desk;
	struct action action = native_action("echo"), missing = native_action("nobody");
	struct act_call call = {.input = slice_str("[1]"), .key = slice_str("k"), .attempt = 2, .lease.fence = 9};

	(void)state;
	must_add(&natives, "echo", echo, "here");
	desk_open(&desk, &(struct port_options){.natives = &natives});
	desk_expect(desk_wait(&desk, desk_start(&desk, &action, call)), ACT_OK,
		    "{\"context\":\"here\",\"input\":[1],\"key\":\"k\",\"attempt\":2,\"fence\":9,\"ms\":30000}");
	action.timeout_ms = 400;
	desk_expect(desk_wait(&desk, desk_start(&desk, &action, call)), ACT_OK, "\"ms\":400");
	call.timeout_ms = 70;
	desk_expect(desk_wait(&desk, desk_start(&desk, &action, call)), ACT_OK, "\"ms\":70");
	desk_expect(desk_call(&desk, &missing, "{}"), ACT_FAILED_FOR_GOOD, "no native action nobody");
	desk_close(&desk);
}

static void test_what_it_says(void **state)
{
	static struct {
		struct saying said;
		enum act_outcome outcome;
		const char *part;
	} cases[] = {
		{{ACT_OK, ""}, ACT_OK, "null"},
		{{ACT_OK, "{}"}, ACT_OK, "{}"},
		{{ACT_OK, "{\"is_invalid\":true}"}, ACT_INVALID, "true"},
		{{ACT_OK, "no json"}, ACT_UNKNOWN, "not JSON"},
		{{ACT_INVALID, "{\"why\":1}"}, ACT_INVALID, "{\"why\":1}"},
		{{ACT_INVALID, "too late"}, ACT_INVALID, "\"message\":\"too late\""},
		{{ACT_FAILED, "busy\n"}, ACT_FAILED, "busy\\n"},
		{{ACT_FAILED_FOR_GOOD, "never"}, ACT_FAILED_FOR_GOOD, "never"},
		{{ACT_UNKNOWN, "perhaps"}, ACT_UNKNOWN, "perhaps"},
		{{ACT_CLAIM_LOST, ""}, ACT_UNKNOWN, "no outcome"},
		{{(enum act_outcome)77, ""}, ACT_UNKNOWN, "no outcome"},
	};
	size_t n = sizeof cases / sizeof *cases;
	struct natives natives = {0};
	struct desk desk;
	char names[16][16];

	(void)state;
	for (size_t i = 0; i < n; i++) {
		snprintf(names[i], sizeof names[i], "f%d", (int)i);
		must_add(&natives, names[i], say, &cases[i].said);
	}
	desk_open(&desk, &(struct port_options){.natives = &natives});
	for (size_t i = 0; i < n; i++) {
		struct action action = native_action(names[i]);

		desk_expect(desk_call(&desk, &action, "{}"), cases[i].outcome, cases[i].part);
	}
	desk_close(&desk);
}

static void test_slots(void **state)
{
	struct gate gate = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, 0, false};
	struct natives natives = {0};
	struct action action = native_action("gate");
	struct desk desk;

	(void)state;
	must_add(&natives, "gate", wait_at_gate, &gate);
	desk_open(&desk, &(struct port_options){.natives = &natives, .native_slots = 3});
	for (int i = 0; i < 10; i++)
		desk_start(&desk, &action, (struct act_call){.input = slice_str("{}")});
	desk_wait_stats(&desk, 3, 7);
	pthread_mutex_lock(&gate.mutex);
	while (gate.inside < 3)
		pthread_cond_wait(&gate.changed, &gate.mutex);
	gate.open = true;
	pthread_cond_broadcast(&gate.changed);
	pthread_mutex_unlock(&gate.mutex);
	for (uint64_t i = 1; i <= 10; i++)
		desk_expect(desk_wait(&desk, i), ACT_OK, "null");
	assert_int_equal(gate.inside_most, 3);
	desk_close(&desk);
}

static void test_is_told_of_abort_and_stop(void **state)
{
	struct natives natives = {0};
	struct action action = native_action("f");
	struct desk desk;

	(void)state;
	must_add(&natives, "f", until_cancelled, NULL);
	desk_open(&desk, &(struct port_options){.natives = &natives});
	uint64_t aborted = desk_start(&desk, &action, (struct act_call){.input = slice_str("{}")});
	uint64_t stopped = desk_start(&desk, &action, (struct act_call){.input = slice_str("{}")});

	desk_wait_stats(&desk, 2, 0);
	desk_abort(&desk, aborted);
	desk_wait_stats(&desk, 1, 0);
	port_stop(desk.port, /* grace_ms= */ 1);
	assert_false(desk.answers[aborted].here);
	/* Told in the middle, or before it began. */
	assert_true(desk.answers[stopped].outcome == ACT_UNKNOWN || desk.answers[stopped].outcome == ACT_FAILED);
	desk_close(&desk);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_registry),
		cmocka_unit_test(test_call),
		cmocka_unit_test(test_what_it_says),
		cmocka_unit_test(test_slots),
		cmocka_unit_test(test_is_told_of_abort_and_stop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
