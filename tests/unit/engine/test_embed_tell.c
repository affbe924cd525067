/* hx_run_tell(), as an embedding program uses it: every verb, in time, too late, twice, and wrong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "hapax.h"
#include "support/await.h"
#include "support/store.h"

#define DEADLINE_MS 60000

static const char definition[] =
	"{\"workflow\": \"order\", \"kind\": \"run\","
	" \"actions\": {\"work\": {\"kind\": \"native\", \"function\": \"work\"},"
	"               \"undo\": {\"kind\": \"native\", \"function\": \"undo\", \"effect\": \"idempotent\"}},"
	" \"steps\": [{\"name\": \"reserve\", \"type\": \"task\", \"action\": \"work\", \"compensate\": \"undo\"},"
	"            {\"name\": \"agree\", \"type\": \"approval\"},"
	"            {\"name\": \"paid\", \"type\": \"external_event\", \"event\": \"payment\", \"save_as\": \"money\"}],"
	" \"output\": \"{money: .state.money, by: .steps.agree.output.by}\"}";

static struct store *store;
static struct hx_engine *engine;
static struct hx_error error;
static struct hx_result *last; /* of the last call that gave one */
static char id[64];
static enum hx_native_outcome work_says;
static _Atomic int worked, undone;

static enum hx_native_outcome work(void *context, const struct hx_native_call *call, struct hx_output *output)
{
	(void)context, (void)call;
	atomic_fetch_add(&worked, 1);
	hx_output_add(output, work_says == HX_NATIVE_DONE ? "7" : "the line went dead");
	return work_says;
}

static enum hx_native_outcome undo(void *context, const struct hx_native_call *call, struct hx_output *output)
{
	(void)context, (void)output;
	atomic_fetch_add(&undone, strstr(call->document, "\"output\":7") != NULL);
	return HX_NATIVE_DONE;
}

static void must(enum hx_code code)
{
	if (code)
		fail_msg("%s: %s", hx_code_name(code), error.detail);
}

static enum hx_code tell(struct hx_message message)
{
	struct hx_caller boss = {HX_SIZE(hx_caller), .requester = "boss"};

	hx_result_free(last);
	last = NULL;
	return hx_run_tell(engine, &boss, id, &message, &last, &error);
}

static bool stands_at(const char *status, const char *step)
{
	hx_result_free(last);
	last = NULL;
	must(hx_run_wait(engine, NULL, id, 0, &last, &error));
	return strcmp(last->status, status) == 0 && (!step || (last->step && strcmp(last->step, step) == 0));
}

static void begin(enum hx_native_outcome says)
{
	struct hx_run_request request = {HX_SIZE(hx_run_request), .workflow = "order"};
	struct hx_result *run;

	work_says = says;
	must(hx_run_start(engine, NULL, &request, &run, &error));
	snprintf(id, sizeof id, "%s", run->id);
	hx_result_free(run);
}

static int set_up(void **state)
{
	struct hx_native natives[] = {{"work", work, NULL}, {"undo", undo, NULL}};
	struct hx_engine_options options = {HX_SIZE(hx_engine_options), .natives = natives, .natives_n = 2};

	worked = undone = 0;
	store = store_new(*(enum store_kind *)*state);
	options.store = store->url;
	must(hx_engine_open(&options, &engine, &error));
	must(hx_engine_define(engine, "order", definition, &error));
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	hx_result_free(last);
	last = NULL;
	hx_engine_close(engine);
	store_free(store);
	return 0;
}

static void approved_and_paid(void **state)
{
	struct hx_message payment = {HX_SIZE(hx_message), .verb = HX_VERB_EVENT, .name = "payment",
				     .data = "{\"cents\": 1200}", .event_id = "p-1"};

	(void)state;
	begin(HX_NATIVE_DONE);
	must(tell(payment)); /* before its wait: it is kept */
	assert_true(last->created);
	must(tell(payment)); /* again */
	assert_false(last->created);
	AWAIT(DEADLINE_MS, stands_at("WAITING", "agree"));
	assert_int_equal(
		tell((struct hx_message){HX_SIZE(hx_message), .verb = HX_VERB_APPROVE, .name = "agree", .version = 1}),
		HX_CONCURRENCY_ERROR);
	must(tell((struct hx_message){HX_SIZE(hx_message), .verb = HX_VERB_APPROVE, .name = "agree"}));
	AWAIT(DEADLINE_MS, stands_at("COMPLETED", NULL));
	assert_string_equal(last->output, "{\"money\":{\"cents\": 1200},\"by\":\"boss\"}");
	assert_int_equal(tell((struct hx_message){HX_SIZE(hx_message), .verb = HX_VERB_REJECT, .name = "agree"}),
			 HX_WRONG_STATUS);
	assert_int_equal(tell((struct hx_message){HX_SIZE(hx_message), .verb = HX_VERB_CANCEL}), HX_ALREADY_COMPLETED);
	must(tell(payment));
	assert_false(last->created);
	assert_int_equal(worked, 1);
}

static void rejected(void **state)
{
	(void)state;
	begin(HX_NATIVE_DONE);
	AWAIT(DEADLINE_MS, stands_at("WAITING", "agree"));
	must(tell((struct hx_message){HX_SIZE(hx_message), .verb = HX_VERB_REJECT, .name = "agree"}));
	AWAIT(DEADLINE_MS, stands_at("FAILED", "agree"));
	assert_non_null(strstr(last->error, "\"step\":\"agree\""));
	assert_true(last->ended);
}

static void cancelled_and_compensated_once(void **state)
{
	(void)state;
	begin(HX_NATIVE_DONE);
	AWAIT(DEADLINE_MS, stands_at("WAITING", "agree"));
	must(tell((struct hx_message){HX_SIZE(hx_message), .verb = HX_VERB_CANCEL}));
	assert_true(last->created);
	must(tell((struct hx_message){HX_SIZE(hx_message), .verb = HX_VERB_CANCEL}));
	assert_false(last->created);
	AWAIT(DEADLINE_MS, stands_at("CANCELLED", NULL));
	assert_int_equal(undone, 1);
}

static void paused_and_resumed(void **state)
{
	(void)state;
	begin(HX_NATIVE_DONE);
	AWAIT(DEADLINE_MS, stands_at("WAITING", "agree"));
	must(tell((struct hx_message){HX_SIZE(hx_message), .verb = HX_VERB_PAUSE}));
	assert_string_equal(last->status, "PAUSED");
	assert_int_equal(tell((struct hx_message){HX_SIZE(hx_message), .verb = HX_VERB_RETRY}), HX_WRONG_STATUS);
	must(tell((struct hx_message){HX_SIZE(hx_message), .verb = HX_VERB_RESUME}));
	AWAIT(DEADLINE_MS, stands_at("WAITING", "agree"));
	assert_int_equal(worked, 1);
}

static void failed_and_retried(void **state)
{
	(void)state;
	begin(HX_NATIVE_FAILED_FOR_GOOD);
	AWAIT(DEADLINE_MS, stands_at("FAILED", "reserve"));
	work_says = HX_NATIVE_DONE;
	must(tell((struct hx_message){HX_SIZE(hx_message), .verb = HX_VERB_RETRY}));
	AWAIT(DEADLINE_MS, stands_at("WAITING", "agree"));
	assert_int_equal(worked, 2);
}

static void a_person_says_what_nobody_knows(void **state)
{
	(void)state;
	begin(HX_NATIVE_UNKNOWN);
	AWAIT(DEADLINE_MS, stands_at("WAITING", "reserve"));
	must(tell((struct hx_message){HX_SIZE(hx_message), .verb = HX_VERB_NOT_DONE, .name = "reserve"}));
	AWAIT(DEADLINE_MS, worked == 2 && stands_at("WAITING", "reserve")); /* tried again, and unknown again */
	must(tell((struct hx_message){HX_SIZE(hx_message), .verb = HX_VERB_DONE, .name = "reserve", .data = "7"}));
	AWAIT(DEADLINE_MS, stands_at("WAITING", "agree"));
	assert_int_equal(tell((struct hx_message){HX_SIZE(hx_message), .verb = HX_VERB_DONE, .name = "reserve"}),
			 HX_WRONG_STATUS);
	assert_int_equal(worked, 2);
}

static void nonsense_is_refused(void **state)
{
	struct hx_caller other = {HX_SIZE(hx_caller), .workspace = "other"};

	(void)state;
	begin(HX_NATIVE_DONE);
	AWAIT(DEADLINE_MS, stands_at("WAITING", "agree"));
	assert_int_equal(tell((struct hx_message){HX_SIZE(hx_message), .verb = HX_VERBS}), HX_VALIDATION_ERROR);
	assert_int_equal(tell((struct hx_message){HX_SIZE(hx_message), .verb = HX_VERB_EVENT}), HX_VALIDATION_ERROR);
	assert_int_equal(tell((struct hx_message){HX_SIZE(hx_message), .verb = HX_VERB_EVENT, .name = "payement"}),
			 HX_NOT_FOUND);
	assert_int_equal(
		tell((struct hx_message){HX_SIZE(hx_message), .verb = HX_VERB_EVENT, .name = "payment", .data = "{"}),
		HX_VALIDATION_ERROR);
	assert_int_equal(tell((struct hx_message){HX_SIZE(hx_message), .verb = HX_VERB_EVENT, .name = "payment",
						  .event_id = ""}),
			 HX_VALIDATION_ERROR);
	assert_int_equal(
		tell((struct hx_message){HX_SIZE(hx_message), .verb = HX_VERB_EVENT, .name = "payment", .version = 2}),
		HX_VALIDATION_ERROR);
	assert_int_equal(tell((struct hx_message){HX_SIZE(hx_message), .verb = HX_VERB_CANCEL, .data = "1"}),
			 HX_VALIDATION_ERROR);
	assert_int_equal(tell((struct hx_message){HX_SIZE(hx_message), .verb = HX_VERB_CANCEL, .version = -1}),
			 HX_VALIDATION_ERROR);
	assert_int_equal(tell((struct hx_message){HX_SIZE(hx_message), .verb = HX_VERB_CANCEL, .event_id = "x"}),
			 HX_VALIDATION_ERROR);
	assert_int_equal(tell((struct hx_message){HX_SIZE(hx_message), .verb = HX_VERB_APPROVE, .name = "paid"}),
			 HX_NOT_FOUND);
	assert_int_equal(hx_run_tell(engine, &other, id,
				     &(struct hx_message){HX_SIZE(hx_message), .verb = HX_VERB_CANCEL}, NULL, &error),
			 HX_NOT_FOUND);
	assert_int_equal(hx_run_tell(engine, NULL, "run_1",
				     &(struct hx_message){HX_SIZE(hx_message), .verb = HX_VERB_CANCEL}, NULL, NULL),
			 HX_NOT_FOUND);
	assert_true(stands_at("WAITING", "agree"));
}

static enum store_kind sqlite = STORE_SQLITE_FILE, postgres = STORE_POSTGRES;

/* clang-format off */
#define ON(name, store) {#name " on " #store, name, set_up, tear_down, &store}
#define TEST(name) ON(name, sqlite), ON(name, postgres)
/* clang-format on */

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(approved_and_paid),
		TEST(rejected),
		TEST(cancelled_and_compensated_once),
		ON(paused_and_resumed, sqlite),
		ON(failed_and_retried, sqlite),
		TEST(a_person_says_what_nobody_knows),
		ON(nonsense_is_refused, sqlite),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
