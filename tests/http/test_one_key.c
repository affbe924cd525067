/*
 * Against a service that keeps one answer for each key, over all its paths and for ever, as payment providers do: whatever the
 * engine calls (validation, action, probe, after-effect, compensation, item, void, cleanup) is a call with a key of its own, and
 * what is asked again is asked, and not told from the service's memory.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "support/await.h"
#include "support/scene.h"

#define ARRIVE_MS 60000
#define KEPT_MAX 64
#define ACTION(name, path, more) "'" name "':{'kind':'http','url':'@" path "'" more "}"

/* ---- the service ---- */

struct keeper {
	pthread_mutex_t mutex;
	size_t n;
	struct kept {
		char key[SERVICE_ID_BYTES], path[64], answer[100];
		int status;
	} kept[KEPT_MAX];
	const char *loses; /* a path whose next answer gets lost after the work was done */
	int unknowns;      /* so many probes do not know */
	int rejections;    /* so many validations reject */
};

static struct keeper keeper = {.mutex = PTHREAD_MUTEX_INITIALIZER};

/* Does the work of a path, for the first time under this key. */
static void work(struct keeper *k, struct kept *entry, const struct service_call *call)
{
	const char *answer = "{}";

	entry->status = 200;
	if (strcmp(call->path, "/ask") == 0)
		answer = k->unknowns-- > 0 ? "{\"outcome\":\"unknown\"}"
					   : "{\"outcome\":\"done\",\"output\":\"asked\"}";
	else if (strcmp(call->path, "/check") == 0 && k->rejections-- > 0)
		entry->status = 422;
	snprintf(entry->key, sizeof entry->key, "%s", call->key);
	snprintf(entry->path, sizeof entry->path, "%s", call->path);
	snprintf(entry->answer, sizeof entry->answer, "%s",
		 strcmp(call->path, "/close") == 0 ? "{\"charged\":true}" : answer);
}

static struct kept *find(struct keeper *k, const char *key)
{
	for (size_t i = 0; i < k->n; i++)
		if (strcmp(k->kept[i].key, key) == 0)
			return &k->kept[i];
	return NULL;
}

/* The same key, the same answer, whatever was asked for. */
static int respond(void *context, const struct service_call *call, char *body, size_t bytes)
{
	struct keeper *k = context;
	struct kept *entry;
	int status;

	pthread_mutex_lock(&k->mutex);
	entry = find(k, call->key);
	if (!entry && k->n < KEPT_MAX) {
		entry = &k->kept[k->n++];
		work(k, entry, call);
	}
	status = entry ? entry->status : 500;
	if (entry)
		snprintf(body, bytes, "%s", entry->answer);
	if (k->loses && strcmp(k->loses, call->path) == 0) {
		k->loses = NULL;
		status = 0;
	}
	pthread_mutex_unlock(&k->mutex);
	return status;
}

/* How often the work of a path was done. */
static size_t done(const char *path)
{
	size_t n = 0;

	pthread_mutex_lock(&keeper.mutex);
	for (size_t i = 0; i < keeper.n; i++)
		n += strcmp(keeper.kept[i].path, path) == 0;
	pthread_mutex_unlock(&keeper.mutex);
	return n;
}

static void lose_next(const char *path)
{
	pthread_mutex_lock(&keeper.mutex);
	keeper.loses = path;
	pthread_mutex_unlock(&keeper.mutex);
}

static void begin(struct scene *scene, const char *name, const char *definition)
{
	static const char *const paths[] = {"/check",  "/close", "/ask",   "/mail", "/tell",
					    "/unbook", "/draw",  "/erase", "/void"};

	pthread_mutex_lock(&keeper.mutex);
	keeper.n = 0;
	keeper.loses = NULL;
	keeper.unknowns = keeper.rejections = 0;
	pthread_mutex_unlock(&keeper.mutex);
	for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
		service_play(scene->service, paths[i], &(struct play){.respond = respond, .context = &keeper});
	scene_define(scene, name, definition);
	scene_configure(scene, "{'modules':{'billing':{'janitor':{'every':'100ms','stuck_after':'1s'}}}}");
	scene_start(scene, 0);
}

/* ---- entities, and jobs: their after-effects ---- */

static const char entity[] =
	"{'workflow':'billing','kind':'entity','status_types':['approved','closing','closed'],'initial_status':'approved',"
	"'actions':{" ACTION("Check", "/check", ",'effect':'idempotent'") "," ACTION("Close", "/close", ",'effect':'keyed','probe':'Ask'") "," ACTION(
		"Ask", "/ask",
		",'effect':'idempotent'") "," ACTION("Mail", "/mail",
						     ",'effect':'keyed'") "," ACTION("Tell", "/tell",
										     ",'effect':'keyed'") "},"
													  "'steps':[{'step_id':1,'step_key':'close','status':'approved','successful_state':'closed','validation':'Check',"
													  "'action':'Close','success_after_effect':['Mail','Tell'],'claim_state':['closing','approved'],"
													  "'on_unknown':'probe'}]}";

static bool effects_are_there(size_t n)
{
	return done("/mail") == n && done("/tell") == n;
}

static void test_calls_of_an_entity_step(void **state)
{
	struct scene *scene = *state;

	begin(scene, "billing", entity);
	scene_create(scene, "a");
	scene_fire(scene, 0, "a", "close", 200, NULL);
	assert_string_equal(reply_text(&scene->last, "output.charged"), "true");
	assert_int_equal(done("/check"), 1);
	assert_int_equal(done("/close"), 1);
	AWAIT(ARRIVE_MS, effects_are_there(1));

	/* What was rejected is asked anew, not told again. */
	scene_create(scene, "b");
	keeper.rejections = 1;
	scene_fire(scene, 0, "b", "close", 422, "INVALID");
	scene_fire(scene, 0, "b", "close", 200, NULL);
	assert_string_equal(reply_text(&scene->last, "output.charged"), "true");

	/* The probe is asked until it knows: by the step, then by the janitor. */
	scene_create(scene, "c");
	keeper.unknowns = 2;
	lose_next("/close");
	scene_fire(scene, 0, "c", "close", 504, "OUTCOME_UNKNOWN");
	scene_await_status(scene, 0, "c", "closed", ARRIVE_MS);
	assert_true(done("/ask") >= 3);
	assert_int_equal(done("/close"), 3);
	AWAIT(ARRIVE_MS, effects_are_there(3));
	scene_stop(scene, 0);
}

/* ---- a step in doubt ---- */

#define DOUBT(path)                                                                                                    \
	"{'workflow':'billing','kind':'entity','status_types':['approved','closing','closed'],"                        \
	"'initial_status':'approved','actions':{'Close':{'kind':'http','url':'@" path "','effect':'keyed'}},"          \
	"'steps':[{'step_id':1,'step_key':'close','status':'approved','successful_state':'closed','action':'Close',"   \
	"'claim_state':['closing','approved'],'on_unknown':'revert'},"                                                 \
	"{'step_id':2,'step_key':'bare','status':'approved','successful_state':'closed','action':'Close',"             \
	"'on_unknown':'hold'}]}"

static void fire(struct scene *scene, const char *id, const char *step, const char *body, int status, const char *code)
{
	char path[200];

	snprintf(path, sizeof path, "/api/v1/entities/billing/%s/steps/%s", id, step);
	scene_must(scene, 0, "POST", path, body, status, code);
}

/* Begun, done, and its answer lost. */
static void leave_in_doubt(struct scene *scene, const char *id, const char *step)
{
	scene_create(scene, id);
	lose_next("/close");
	fire(scene, id, step, "{'input':{'sum':1,'to':'x'}}", 504, "OUTCOME_UNKNOWN");
	scene_await_status(scene, 0, id, "approved", ARRIVE_MS);
}

static void in_doubt(struct scene *scene, const char *step)
{
	begin(scene, "billing", DOUBT("/close"));
	leave_in_doubt(scene, "a", step);
	scene_show(scene, 0, "a");

	char before[50];

	snprintf(before, sizeof before, "%s", reply_text(&scene->last, "version"));
	fire(scene, "a", step, "{'input':{'sum':2,'to':'x'}}", 409, "IN_DOUBT");
	fire(scene, "a", step, "{}", 409, "IN_DOUBT");
	scene_show(scene, 0, "a");
	assert_string_equal(reply_text(&scene->last, "status"), "approved");
	assert_string_equal(reply_text(&scene->last, "version"), before);
	assert_int_equal(service_count(scene->service, "/close", NULL), 1);

	/* It survives a kill, and a definition that leads elsewhere: what was sent is sent again, and where. */
	scene_kill(scene, 0);
	scene_define(scene, "billing", DOUBT("/tell"));
	scene_start(scene, 0);
	fire(scene, "a", step, "{'input':{'sum':2,'to':'x'}}", 409, "IN_DOUBT");
	fire(scene, "a", step, "{'input': {'to':'x', 'sum':1}}", 200, NULL);
	assert_int_equal(service_count(scene->service, "/close", NULL), 2);
	assert_int_equal(service_count(scene->service, "/tell", NULL), 0);
	assert_string_equal(service_call(scene->service, "/close", 0).body,
			    service_call(scene->service, "/close", 1).body);
	assert_int_equal(done("/close"), 1);

	/* What was not done is no doubt: another input, under another key, to where the definition says now. */
	scene_create(scene, "b");
	service_play(scene->service, "/tell", &(struct play){.status = 500});
	fire(scene, "b", step, "{'input':1}", 502, "ACTION_FAILED");
	service_play(scene->service, "/tell", &(struct play){.respond = respond, .context = &keeper});
	fire(scene, "b", step, "{'input':2}", 200, NULL);
	assert_int_equal(service_count(scene->service, "/tell", NULL), 2);
	scene_stop(scene, 0);
}

static void test_in_doubt_under_a_claim(void **state)
{
	in_doubt(*state, "close");
}

static void test_in_doubt_without_a_claim(void **state)
{
	in_doubt(*state, "bare");
}

/* ---- runs ---- */

static const char run[] =
	"{'workflow':'trip','kind':'run','actions':{" ACTION("book", "/close", ",'effect':'claimed','probe':'ask'") "," ACTION(
		"ask", "/ask",
		",'effect':'idempotent'") "," ACTION("unbook", "/unbook",
						     ",'effect':'keyed'") "},"
									  "'steps':[{'name':'book','type':'task','action':'book','on_unknown':'probe','compensate':'unbook','save_as':'b',"
									  "'retry':{'max_attempts':5,'initial':'10ms'}},{'name':'yes','type':'approval'}]}";

static bool run_is(struct scene *scene, const char *id, const char *status, const char *step)
{
	char path[200];

	snprintf(path, sizeof path, "/api/v1/workflow-runs/%s", id);
	scene_must(scene, 0, "GET", path, NULL, 200, NULL);
	return strcmp(reply_text(&scene->last, "status"), status) == 0 &&
	       (!step || strcmp(reply_text(&scene->last, "currentStep"), step) == 0);
}

static void test_calls_of_a_run(void **state)
{
	struct scene *scene = *state;
	char id[100], path[200];

	begin(scene, "trip", run);
	keeper.unknowns = 1;
	lose_next("/close");
	scene_must(scene, 0, "POST", "/api/v1/workflow-runs", "{'definitionId':'trip'}", 201, NULL);
	snprintf(id, sizeof id, "%s", reply_text(&scene->last, "run.id"));
	AWAIT(ARRIVE_MS, run_is(scene, id, "WAITING", "yes"));
	assert_string_equal(reply_text(&scene->last, "state.b"), "asked");
	assert_int_equal(done("/ask"), 2);
	assert_int_equal(done("/close"), 1);
	snprintf(path, sizeof path, "/api/v1/workflow-runs/%s/cancel", id);
	scene_call(scene, 0, "POST", path, "{}");
	AWAIT(ARRIVE_MS, run_is(scene, id, "CANCELLED", NULL));
	assert_int_equal(done("/unbook"), 1);
	scene_stop(scene, 0);
}

/* ---- batches ---- */

#define BATCH(on_unknown)                                                                                                                                                                                                                                        \
	"{'workflow':'film','kind':'batch','actions':{" ACTION("draw", "/draw", ",'effect':'keyed','probe':'ask','void':'void'") "," ACTION(                                                                                                                     \
		"ask", "/ask",                                                                                                                                                                                                                                   \
		",'effect':'idempotent'") "," ACTION("void", "/void",                                                                                                                                                                                            \
						     ",'effect':'keyed'") "," ACTION("erase", "/erase",                                                                                                                                                          \
										     ",'effect':'keyed'") "," ACTION("tell",                                                                                                                                     \
														     "/tell",                                                                                                                                    \
														     ",'effect':'keyed'") "},"                                                                                                                   \
																	  "'item_action':'draw','cleanup_action':'erase','done_after_effect':['tell'],'concurrency':1,'on_unknown':'" on_unknown \
																	  "',"                                                                                                                   \
																	  "'retry':{'max_attempts':5,'initial':'10ms'}}"

static bool batch_is(struct scene *scene, const char *id, const char *status)
{
	char path[200];

	snprintf(path, sizeof path, "/api/v1/batches/%s", id);
	scene_must(scene, 0, "GET", path, NULL, 200, NULL);
	return strcmp(reply_text(&scene->last, "status"), status) == 0;
}

static void order(struct scene *scene, char id[100])
{
	scene_must(scene, 0, "POST", "/api/v1/accounts", "{'id':'alice','balance':100}", 201, NULL);
	scene_must(scene, 0, "POST", "/api/v1/batches",
		   "{'workflow':'film','account':'alice','items':[{'input':1,'cost':1},{'input':2,'cost':1}]}", 201,
		   NULL);
	snprintf(id, 100, "%s", reply_text(&scene->last, "id"));
}

static void test_probes_of_a_batch(void **state)
{
	struct scene *scene = *state;
	char id[100];

	begin(scene, "film", BATCH("probe"));
	keeper.unknowns = 1;
	lose_next("/draw");
	order(scene, id);
	AWAIT(ARRIVE_MS, batch_is(scene, id, "COMPLETED"));
	assert_int_equal(reply_int(&scene->last, "succeeded"), 2);
	assert_int_equal(done("/draw"), 2);
	assert_int_equal(done("/ask"), 2);
	AWAIT(ARRIVE_MS, done("/tell") == 1);
	scene_stop(scene, 0);
}

static void test_teardown_of_a_batch(void **state)
{
	struct scene *scene = *state;
	char id[100], path[200];

	begin(scene, "film", BATCH("hold"));
	service_play(scene->service, "/draw", &(struct play){.respond = respond, .context = &keeper, .hold = true});
	lose_next("/draw");
	order(scene, id);
	service_await(scene->service, "/draw", 1, ARRIVE_MS);
	service_release_one(scene->service);
	service_await(scene->service, "/draw", 2, ARRIVE_MS);
	snprintf(path, sizeof path, "/api/v1/batches/%s/cancel", id);
	scene_must(scene, 0, "POST", path, NULL, 202, NULL);
	service_release(scene->service);
	AWAIT(ARRIVE_MS, batch_is(scene, id, "CANCELLED"));
	assert_int_equal(done("/draw"), 2);
	assert_int_equal(done("/void"), 1);
	assert_int_equal(done("/erase"), 2);
	AWAIT(ARRIVE_MS, done("/tell") == 1);
	scene_stop(scene, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_calls_of_an_entity_step, scene_set_up_sqlite, scene_tear_down),
		cmocka_unit_test_setup_teardown(test_in_doubt_under_a_claim, scene_set_up_sqlite, scene_tear_down),
		{"test_in_doubt_under_a_claim on PostgreSQL", test_in_doubt_under_a_claim, scene_set_up_postgres,
		 scene_tear_down, NULL},
		cmocka_unit_test_setup_teardown(test_in_doubt_without_a_claim, scene_set_up_sqlite, scene_tear_down),
		{"test_in_doubt_without_a_claim on PostgreSQL", test_in_doubt_without_a_claim, scene_set_up_postgres,
		 scene_tear_down, NULL},
		cmocka_unit_test_setup_teardown(test_calls_of_a_run, scene_set_up_sqlite, scene_tear_down),
		cmocka_unit_test_setup_teardown(test_probes_of_a_batch, scene_set_up_sqlite, scene_tear_down),
		cmocka_unit_test_setup_teardown(test_teardown_of_a_batch, scene_set_up_sqlite, scene_tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
