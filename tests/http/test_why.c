/*
 * GET /why/{id}, for every reason that there is (flow/why.h): a real server is brought into each state, on both stores, and
 * the whole sentence is compared, as a pattern. The last test of a store fails for a reason that none has seen.
 *
 * Most states are reached as a user reaches them. Those that last for a moment only (nobody has taken it yet, a lease has just
 * run out) are written into the row, as a crash or a node that is slow to come would leave it.
 */
#include "http/why.h"
#include "http/why_jobs.h"

/* ---- entities ---- */

static const char billing[] =
	"{'workflow':'billing','kind':'entity','status_types':['open','closing','sending','closed','sent'],"
	"'initial_status':'open','actions':{'Close':{'kind':'http','url':'@/close','effect':'claimed'},"
	"'Send':{'kind':'http','url':'@/send','effect':'claimed'}},"
	"'steps':[{'step_id':10,'step_key':'close','status':'open','successful_state':'closed',"
	"'action':'Close','claim_state':['closing','open']},"
	"{'step_id':20,'step_key':'send','status':'open','successful_state':'sent',"
	"'action':'Send','claim_state':['sending','open'],'on_unknown':'hold'}]}";

static void test_entities(void **state)
{
	struct scene *scene = *state;
	struct firing *firing;

	scene_define(scene, "billing", billing);
	/* Nobody sweeps unless somebody asks for it. */
	scene_configure(scene, "{'modules':{'billing':{'janitor':{'external':true,'stuck_after':'1s'}}}}");
	service_play(scene->service, "/send", &(struct play){.how = PLAY_DROP});
	scene_start(scene, 0);
	scene_create(scene, "a");
	because(scene, "entity:billing:a", WHY_ENTITY_STEP, "waits for somebody to fire \"close\", \"send\"");
	scene_fire(scene, 0, "a", "close", 200, NULL);
	because(scene, "entity:billing:a", WHY_ENTITY_END, "waits for nothing: no step leads out of this status");
	scene_sql(scene, "UPDATE hx_subject SET status = 'gone' WHERE id IN (SELECT subject FROM hx_entity)", NULL, 0);
	because(scene, "entity:billing:a", WHY_ENTITY_ORPHAN,
		"waits for a definition that has this status: the one in force does not");
	scene_create(scene, "b");
	scene_fire(scene, 0, "b", "send", 504, "OUTCOME_UNKNOWN");
	because(scene, "entity:billing:b", WHY_ENTITY_HELD,
		"the outcome of the step \"send\" is unknown: it waits for a person to resolve it");
	service_play(scene->service, "/close", &(struct play){.hold = true});
	scene_create(scene, "c");
	firing = firing_start(scene, 0, "c", "close");
	service_await(scene->service, "/close", 2, RUN_ARRIVE_MS);
	because(scene, "entity:billing:c", WHY_ENTITY_CLAIMED,
		"the step \"close\", fired by \"admin\", is with the node \"node-a\"" LASTS);
	scene_kill(scene, 0);
	firing_join(firing, 0, NULL);
	firing_free(firing);
	scene_start(scene, 0);
	because(scene, "entity:billing:c", WHY_ENTITY_LAPSED,
		"the step \"close\", fired by \"admin\", is with the node \"node-a\", whose lease was over at " TIME
		": it waits for the janitor of the module \"billing\"");
	scene_must(scene, 0, "GET", "/api/v1/why/entity:billing:nobody", NULL, 404, "NOT_FOUND");
	scene_stop(scene, 0);
}

/* A step whose call is over and whose outcome is unknown stays with its node until the lease is over, and nobody is at it. */
static void test_a_step_that_nobody_is_at(void **state)
{
	struct scene *scene = *state;

	scene_define(scene, "billing", billing);
	scene_configure(scene, "{'modules':{'billing':{'janitor':{'external':true,'stuck_after':'1h'}}}}");
	service_play(scene->service, "/close", &(struct play){.how = PLAY_DROP});
	scene_start(scene, 0);
	scene_create(scene, "a");
	scene_fire(scene, 0, "a", "close", 504, "OUTCOME_UNKNOWN");
	because(scene, "entity:billing:a", WHY_ENTITY_CLAIMED,
		"the step \"close\", fired by \"admin\", is with the node \"node-a\"" LASTS IDLE);
	/* What another node does is not seen from here. */
	scene_sql(scene, "UPDATE hx_subject SET owner = 'node-x' WHERE owner = 'node-a'", NULL, 0);
	because(scene, "entity:billing:a", WHY_ENTITY_CLAIMED,
		"the step \"close\", fired by \"admin\", is with the node \"node-x\"" LASTS);
	scene_stop(scene, 0);
}

/* ---- runs ---- */

static const char trip[] = "{'workflow':'trip','kind':'run','actions':{"
			   "'book':{'kind':'http','url':'@/book','effect':'keyed'},"
			   "'unbook':{'kind':'http','url':'@/unbook','effect':'keyed'},"
			   "'pay':{'kind':'http','url':'@/pay','effect':'claimed'}},"
			   "'steps':[{'name':'book','type':'task','action':'book','compensate':'unbook',"
			   "'retry':{'max_attempts':3,'initial':'1h','factor':1,'max':'1h','jitter':false}},"
			   "{'name':'pay','type':'task','action':'pay','retry':{'max_attempts':1}},"
			   "{'name':'paid','type':'external_event','event':'payment','timeout':'24h'},"
			   "{'name':'seen','type':'external_event','event':'receipt'},"
			   "{'name':'boss','type':'approval','timeout':'24h','on_timeout':'fail'},"
			   "{'name':'rest','type':'wait','for':'24h'}]}";

static const char errand[] = "{'workflow':'errand','kind':'run','actions':{'Nothing':{'kind':'noop'}},"
			     "'steps':[{'name':'go','type':'task','action':'Nothing'}]}";

static void new_trip(struct scene *scene, char ret_id[64])
{
	run_create_id(scene, "{'definitionId':'trip'}", ret_id);
}

static void test_runs_that_wait(void **state)
{
	struct scene *scene = *state;
	char id[64], text[64];

	scene_define(scene, "trip", trip);
	scene_define(scene, "errand", errand);
	scene_define(scene, "family", family);
	scene_start(scene, 0);
	run_create_id(scene, "{'definitionId':'family'}", id);
	AWAIT(RUN_ARRIVE_MS,
	      (scene_sql(scene, "SELECT count(*) FROM hx_run WHERE awaits = 'approval ask'", text, sizeof text),
	       strcmp(text, "1") == 0));
	because(scene, id, WHY_RUN_CHILDREN,
		"the step \"kid\" waits for the runs that it has started: 1 is open; it comes down to run_*"
		", which is WAITING (approval ask)");
	run_do(scene, id, "cancel", "{}", 202, "");
	run_await(scene, id, "CANCELLED");
	new_trip(scene, id);
	because(scene, id, WHY_RUN_EVENT, "waits for the event \"payment\", at most until " TIME);
	run_do(scene, id, "events/payment", "{}", 202, "");
	AWAIT(RUN_ARRIVE_MS, strcmp(reply_text(run_show(scene, id), "currentStep"), "seen") == 0);
	because(scene, id, WHY_RUN_EVENT, "waits for the event \"receipt\"");
	run_do(scene, id, "events/receipt", "{}", 202, "");
	because(scene, id, WHY_RUN_APPROVAL, "waits for a person to decide the approval \"boss\", at most until " TIME);
	run_do(scene, id, "pause", "{}", 200, "");
	because(scene, id, WHY_RUN_PAUSED, "waits for a person to resume it");
	run_do(scene, id, "resume", "{}", 200, "");
	because(scene, id, WHY_RUN_APPROVAL, "*");
	run_do(scene, id, "approvals/boss", "{'decision':'approve'}", 200, "");
	because(scene, id, WHY_RUN_TIMER, "the step \"rest\" waits for its time, " TIME);
	scene_sql(scene, "UPDATE hx_run SET due_at = NULL, wait_until = NULL", NULL, 0);
	because(scene, id, WHY_RUN_NODE, "is due, and waits for a node to take it");
	scene_stop(scene, 0);
	scene_sql(scene, "UPDATE hx_run SET definition_version = 99", NULL, 0);
	scene_start(scene, 0);
	because(scene, id, WHY_RUN_VERSION, "waits for version 99 of its definition, which this node does not know");
	run_create_id(scene, "{'definitionId':'errand'}", id);
	because(scene, id, WHY_RUN_COMPLETED, "waits for nothing: it is completed");
	scene_must(scene, 0, "GET", "/api/v1/why/run_0000000000001", NULL, 404, "NOT_FOUND");
	scene_stop(scene, 0);
}

static void test_runs_in_line(void **state)
{
	struct scene *scene = *state;
	char first[64], second[64], other[64];

	scene_define(scene, "cargo", cargo);
	scene_define(scene, "mailing", mailing);
	service_play(scene->service, "/load", &(struct play){.hold = true});
	scene_start(scene, 0);
	run_create_id(scene, "{'definitionId':'cargo','input':{'customer':'c-1'}}", first);
	service_await(scene->service, "/load", 1, RUN_ARRIVE_MS);
	run_create_id(scene, "{'definitionId':'cargo','input':{'customer':'c-1'}}", second);
	because(scene, second, WHY_RUN_SLOT,
		"waits for a slot: 1 run of the workflow \"cargo\" is at work for \"c-1\", and that is its limit; "
		"0 are before it in line");
	assert_int_equal(scene_metric(scene, 0, "hapax_runs_in_line_total"), 1);
	run_create_id(scene, "{'definitionId':'cargo','input':{'customer':'c-2'}}", other);
	service_await(scene->service, "/load", 2, RUN_ARRIVE_MS); /* another customer's */
	run_do(scene, second, "cancel", "{}", 200, "");
	because(scene, second, WHY_RUN_CANCELLED, "waits for nothing: it is cancelled");
	service_release(scene->service);
	run_await(scene, first, "COMPLETED");
	run_await(scene, other, "COMPLETED");
	assert_int_equal((int)service_count(scene->service, "/load", NULL), 2);
	service_play(scene->service, "/load", &(struct play){0});
	for (int i = 0; i < 2; i++) {
		run_create_id(scene, "{'definitionId':'cargo','input':{'customer':'c-1'}}", first);
		run_await(scene, first, "COMPLETED");
	}
	run_create_id(scene, "{'definitionId':'cargo','input':{'customer':'c-1'}}", second);
	because(scene, second, WHY_RUN_RATE,
		"waits for its time, " TIME
		": the workflow \"cargo\" has begun as many runs as its rate allows for \"c-1\"");
	run_do(scene, second, "cancel", "{}", 200, "");
	run_create_id(scene, "{'definitionId':'mailing','input':{'customer':'c-1'}}", first);
	because(scene, first, WHY_RUN_DEBOUNCE,
		"waits for its time, " TIME
		": another start before that replaces its input, and puts it off, at most until " TIME);
	scene_stop(scene, 0);
}

static void test_runs_at_work(void **state)
{
	struct scene *scene = *state;
	char id[64];

	scene_define(scene, "trip", trip);
	service_play(scene->service, "/book", &(struct play){.hold = true});
	scene_start(scene, 0);
	new_trip(scene, id);
	service_await(scene->service, "/book", 1, RUN_ARRIVE_MS);
	because(scene, id, WHY_RUN_CLAIMED, "attempt 1 of the step \"book\" is with the node \"node-a\"" LASTS);
	run_do(scene, id, "pause", "{}", 200, "");
	because(scene, id, WHY_RUN_CLAIMED,
		"attempt 1 of the step \"book\" is with the node \"node-a\"" LASTS
		"; the run is paused, and begins nothing else until a person resumes it");
	run_do(scene, id, "cancel", "{}", 202, "");
	because(scene, id, WHY_RUN_CLAIMED,
		"attempt 1 of the step \"book\" is with the node \"node-a\"" LASTS
		"; the run is being cancelled, and what is done is undone after that");
	because_of_row(scene, "UPDATE hx_subject SET until = 1000 WHERE owner = 'node-a'", id, WHY_RUN_LAPSED,
		       "attempt 1 of the step \"book\" is with the node \"node-a\", whose lease was over at "
		       "1970-01-01T00:00:01.000Z: it waits for another node to take it over*");
	scene_kill(scene, 0);
	service_release(scene->service);
	/* Nobody knows whether it was paid for. */
	service_play(scene->service, "/book", &(struct play){0});
	service_play(scene->service, "/pay", &(struct play){.how = PLAY_DROP});
	scene_start(scene, 0);
	new_trip(scene, id);
	because(scene, id, WHY_RUN_UNKNOWN,
		"the outcome of the step \"pay\" is unknown: it waits for a person to resolve it: *");
	run_do(scene, id, "steps/pay/resolve", "{'outcome':'done'}", 200, "");
	because(scene, id, WHY_RUN_EVENT, "*");
	scene_stop(scene, 0);
}

static void test_runs_that_fail(void **state)
{
	struct scene *scene = *state;
	char id[64];

	scene_define(scene, "trip", trip);
	service_play(scene->service, "/book", &(struct play){.status = 503, .body = "\"full\""});
	scene_start(scene, 0);
	new_trip(scene, id);
	because(scene, id, WHY_RUN_RETRY,
		"attempt 1 of the step \"book\" did not succeed: it waits for the next one at " TIME
		": HTTP 503: \"full\"");
	run_do(scene, id, "cancel", "{}", 200, "");
	because(scene, id, WHY_RUN_CANCELLED, "waits for nothing: it is cancelled");
	service_play(scene->service, "/book", &(struct play){0});
	service_play(scene->service, "/pay", &(struct play){.status = 402, .body = "\"no money\""});
	new_trip(scene, id);
	because(scene, id, WHY_RUN_FAILED,
		"has failed at the step \"pay\", and waits for a person to retry or cancel it: HTTP 402: \"no money\"");
	/* What was booked is undone: that is under way, and will be tried again; the other time it is given up. */
	service_play(scene->service, "/unbook", &(struct play){.status = 503, .body = "\"later\"", .hold = true});
	run_do(scene, id, "cancel", "{}", 202, "");
	service_await(scene->service, "/unbook", 1, RUN_ARRIVE_MS);
	because(scene, id, WHY_RUN_CLAIMED, "attempt 1 of compensating \"book\" is with the node \"node-a\"" LASTS);
	service_release(scene->service);
	because(scene, id, WHY_RUN_RETRY,
		"attempt 1 of compensating \"book\" did not succeed: it waits for the next one at " TIME
		": HTTP 503: \"later\"");
	service_play(scene->service, "/unbook", &(struct play){.status = 400, .body = "\"never\""});
	new_trip(scene, id);
	because(scene, id, WHY_RUN_FAILED, "*");
	run_do(scene, id, "restart", "{'from':'pay'}", 200, "");
	because(scene, id, WHY_RUN_RESTARTED, "waits for nothing: it was restarted, and run_* goes on in its place");
	new_trip(scene, id);
	because(scene, id, WHY_RUN_FAILED, "*");
	run_do(scene, id, "cancel", "{}", 202, "");
	because(scene, id, WHY_RUN_NOT_UNDONE,
		"the compensation of the step \"book\" has failed: it waits for a person to retry it: HTTP 400: \"never\"");
	scene_stop(scene, 0);
}

/* ---- batches ---- */

static const char render[] = "{'workflow':'render','kind':'batch','actions':{"
			     "'draw':{'kind':'http','url':'@/draw','effect':'claimed'},"
			     "'erase':{'kind':'http','url':'@/erase','effect':'idempotent'}},"
			     "'item_action':'draw','cleanup_action':'erase','concurrency':1,"
			     "'retry':{'max_attempts':2,'initial':'1h','factor':1,'max':'1h','jitter':false}}";

#define HEAD "{'workflow':'render','account':'alice',"

static void new_batch(struct scene *scene, const char *body, char ret_id[64])
{
	scene_must(scene, 0, "POST", BATCHES, body, 201, "");
	snprintf(ret_id, 64, "%s", reply_text(&scene->last, "id"));
}

static void batch_do(struct scene *scene, const char *id, const char *verb, int status)
{
	char path[200];

	snprintf(path, sizeof path, BATCHES "/%s/%s", id, verb);
	scene_must(scene, 0, "POST", path, NULL, status, "");
}

/* The newest batch, as somebody has left it. */
static const char *row(const char *subject, const char *batch)
{
	static char sql[600];

	snprintf(sql, sizeof sql,
		 "UPDATE hx_subject SET %s WHERE id = (SELECT max(subject) FROM hx_batch);"
		 "UPDATE hx_batch SET %s WHERE subject = (SELECT max(b.subject) FROM hx_batch b)",
		 subject, batch);
	return sql;
}

static void begin_batches(struct scene *scene)
{
	scene_define(scene, "render", render);
	scene_start(scene, 0);
	scene_must(scene, 0, "POST", "/api/v1/accounts", "{'id':'alice','balance':100}", 201, "");
}

static void test_batches_that_wait(void **state)
{
	struct scene *scene = *state;
	char id[64];

	begin_batches(scene);
	new_batch(scene, HEAD "'items':[{'cost':1},{'cost':2}],'hold':true}", id);
	because(scene, id, WHY_BATCH_HELD, "is held with 2 items, and waits for somebody to start it");
	scene_sql(scene,
		  row("status = 'LOADING', owner = 'elsewhere', fence = fence + 1, until = 4000000000000", "total = 2"),
		  NULL, 0);
	because(scene, id, WHY_BATCH_LOADING,
		"its items are being loaded by the node \"elsewhere\", whose lease lasts until 2096-*Z unless it is renewed");
	scene_sql(scene, row("status = 'QUEUED', owner = NULL, until = NULL", "due_at = NULL"), NULL, 0);
	because(scene, id, WHY_BATCH_NODE, "is due, and waits for a node to take it");
	scene_sql(scene, row("status = 'QUEUED'", "due_at = 4000000000000"), NULL, 0);
	because(scene, id, WHY_BATCH_TIMER, "could not be worked on, and waits for a node to look again at 2096-*Z");
	scene_sql(scene, row("status = 'QUEUED'", "definition_version = 99"), NULL, 0);
	because(scene, id, WHY_BATCH_VERSION, "waits for version 99 of its definition, which this node does not know");
	/* Its loader is lost before it was there. */
	new_batch(scene, HEAD "'items':[{'cost':1}],'hold':true}", id);
	because_of_row(
		scene,
		row("status = 'LOADING', owner = 'elsewhere', fence = fence + 1, until = 1000", "loaded_at = NULL"), id,
		WHY_BATCH_LAPSED,
		"its items are being loaded by the node \"elsewhere\", whose lease was over at "
		"1970-01-01T00:00:01.000Z: it waits for another node to take it over");
	because(scene, id, WHY_BATCH_FAILED, "waits for nothing: it was never loaded");
	new_batch(scene, HEAD "'items':[{'cost':90},{'cost':20}]}", id);
	because(scene, id, WHY_BATCH_CREDIT,
		"is out of credit: its next item needs 20, and the account \"alice\" has 10");
	scene_must(scene, 0, "POST", "/api/v1/accounts/alice/credit", "{'amount':10,'key':'k'}", 200, "");
	because(scene, id, WHY_BATCH_COMPLETED, "waits for nothing: it is completed");
	scene_must(scene, 0, "GET", "/api/v1/why/batch_0000000000001", NULL, 404, "NOT_FOUND");
	scene_stop(scene, 0);
}

static void test_batches_at_work(void **state)
{
	struct scene *scene = *state;
	char id[64];

	service_play(scene->service, "/draw", &(struct play){.hold = true});
	begin_batches(scene);
	new_batch(scene, HEAD "'items':[{'cost':1},{'cost':1},{'cost':1}]}", id);
	service_await(scene->service, "/draw", 1, RUN_ARRIVE_MS);
	because(scene, id, WHY_BATCH_CLAIMED,
		"it is with the node \"node-a\"" LASTS "; 1 of 3 items are under way, 2 wait for their turn");
	batch_do(scene, id, "cancel", 202);
	because(scene, id, WHY_BATCH_CLAIMED,
		"it is with the node \"node-a\"" LASTS
		"; 1 of 3 items are under way, 2 wait for their turn, and its cancel is requested");
	service_play(scene->service, "/erase", &(struct play){.status = 503, .body = "\"disk\"", .hold = true});
	service_release(scene->service);
	because(scene, id, WHY_BATCH_TORN_DOWN, "it is being torn down by the node \"node-a\"" LASTS);
	service_await(scene->service, "/erase", 1, RUN_ARRIVE_MS);
	service_release(scene->service);
	because(scene, id, WHY_BATCH_CLEANUP,
		"its teardown has not succeeded yet, and waits for the next try at " TIME ": *HTTP 503: \"disk\"");
	service_play(scene->service, "/erase", &(struct play){.hold = true});
	because(scene, id, WHY_BATCH_TORN_DOWN,
		"it is being torn down by the node \"node-a\"" LASTS
		"; its last try did not succeed: *HTTP 503: \"disk\"");
	service_play(scene->service, "/erase", &(struct play){0});
	service_release(scene->service);
	because(scene, id, WHY_BATCH_CANCELLED, "waits for nothing: it is cancelled");
	/* One that fails is tried again much later; one that nobody knows of is for a person. */
	service_play(scene->service, "/draw", &(struct play){.status = 503});
	new_batch(scene, HEAD "'items':[{'cost':1}]}", id);
	because(scene, id, WHY_BATCH_RETRY,
		"waits for items whose last try did not succeed; the next one is due at " TIME);
	service_play(scene->service, "/draw", &(struct play){.how = PLAY_DROP});
	new_batch(scene, HEAD "'items':[{'cost':1},{'cost':1}]}", id);
	because(scene, id, WHY_BATCH_UNKNOWN,
		"waits for a person to resolve 2 of its items, whose outcome is unknown; it is completed");
	scene_stop(scene, 0);
}

/* ---- places among the calls that run at once ---- */

#define PLACE(action) "waits for a place: 1 call of the action \"" action "\" is running, and that is its limit"
#define HERE "is with the node \"node-a\""

static const char narrow_bill[] =
	"{'workflow':'billing','kind':'entity','status_types':['open','closing','closed'],'initial_status':'open',"
	"'actions':{'Close':{'kind':'http','url':'@/close','effect':'claimed','max_in_flight':1},"
	"'Mail':{'kind':'http','url':'@/mail','effect':'keyed','max_in_flight':1}},"
	"'steps':[{'step_id':10,'step_key':'close','status':'open','successful_state':'closed','action':'Close',"
	"'claim_state':['closing','open']},"
	"{'step_id':20,'step_key':'skip','status':'open','successful_state':'closed','success_after_effect':['Mail']}]}";

static const char narrow_trip[] = "{'workflow':'trip','kind':'run','actions':{"
				  "'book':{'kind':'http','url':'@/book','effect':'keyed','max_in_flight':1}},"
				  "'steps':[{'name':'book','type':'task','action':'book'}]}";

static const char narrow_render[] = "{'workflow':'render','kind':'batch','actions':{"
				    "'draw':{'kind':'http','url':'@/draw','effect':'claimed','max_in_flight':1},"
				    "'erase':{'kind':'http','url':'@/erase','effect':'idempotent'}},"
				    "'item_action':'draw','cleanup_action':'erase','concurrency':3}";

/* What is in the memory of one node is not in that of another. */
static void assert_another_node_tells_the_lease(struct scene *scene, const char *id)
{
	char path[100];

	scene_start(scene, 1);
	snprintf(path, sizeof path, "/api/v1/why/%s", id);
	scene_must(scene, 1, "GET", path, NULL, 200, "");
	assert_string_equal(reply_text(&scene->last, "reason"), "RUN_CLAIMED");
	scene_stop(scene, 1);
}

static void because_of_place_of_entity(struct scene *scene, struct firing *ret_firings[2])
{
	scene_create(scene, "a");
	scene_create(scene, "b");
	ret_firings[0] = firing_start(scene, 0, "a", "close");
	service_await(scene->service, "/close", 1, RUN_ARRIVE_MS);
	ret_firings[1] = firing_start(scene, 0, "b", "close");
	because(scene, "entity:billing:b", WHY_ENTITY_LIMIT,
		"the step \"close\", fired by \"admin\", " HERE ", where it " PLACE("Close"));
	because(scene, "entity:billing:a", WHY_ENTITY_CLAIMED, "the step \"close\", fired by \"admin\", " HERE LASTS);
}

static void because_of_place_of_job(struct scene *scene)
{
	char id[64];

	scene_create(scene, "c");
	scene_fire(scene, 0, "c", "skip", 200, NULL);
	service_await(scene->service, "/mail", 1, RUN_ARRIVE_MS);
	scene_create(scene, "d");
	scene_fire(scene, 0, "d", "skip", 200, NULL);
	scene_must(scene, 0, "GET", JOBS, NULL, 200, "");
	snprintf(id, sizeof id, "%s", reply_text(&scene->last, "items.1.id"));
	because(scene, id, WHY_JOB_LIMIT, "is under way: attempt 1 is with \"node-a\", where it " PLACE("Mail"));
}

static void because_of_place_of_run(struct scene *scene)
{
	char id[64];

	run_create_id(scene, "{'definitionId':'trip'}", id);
	service_await(scene->service, "/book", 1, RUN_ARRIVE_MS);
	run_create_id(scene, "{'definitionId':'trip'}", id);
	because(scene, id, WHY_RUN_LIMIT, "attempt 1 of the step \"book\" " HERE ", where it " PLACE("book"));
	if (scene->store->kind == STORE_POSTGRES)
		assert_another_node_tells_the_lease(scene, id);
	run_do(scene, id, "pause", "{}", 200, "");
	because(scene, id, WHY_RUN_LIMIT,
		"attempt 1 of the step \"book\" " HERE
		", where it " PLACE("book") "; the run is paused, and begins nothing else until a person resumes it");
}

static void because_of_place_of_batch(struct scene *scene)
{
	char id[64];

	scene_must(scene, 0, "POST", "/api/v1/accounts", "{'id':'alice','balance':100}", 201, "");
	new_batch(scene, HEAD "'items':[{'cost':1},{'cost':1}]}", id);
	AWAIT(RUN_ARRIVE_MS, has_reason(scene, id, WHY_BATCH_LIMIT) && strstr(scene->last.body, "2 of 2"));
	because(scene, id, WHY_BATCH_LIMIT,
		"it " HERE LASTS "; 2 of 2 items are under way, 0 wait for their turn; 1 of its calls " PLACE("draw"));
}

/* Two of each, of which one at a time is carried out. What waits for its place has been claimed all the same. */
static void test_places(void **state)
{
	static const char *const paths[] = {"/close", "/mail", "/book", "/draw"};
	struct scene *scene = *state;
	struct firing *firings[2];

	scene_define(scene, "billing", narrow_bill);
	scene_define(scene, "trip", narrow_trip);
	scene_define(scene, "render", narrow_render);
	scene_configure(scene, "{'modules':{'billing':{'janitor':{'external':true,'stuck_after':'1h'}}}}");
	for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
		service_play(scene->service, paths[i], &(struct play){.hold = true});
	scene_start(scene, 0);
	because_of_place_of_entity(scene, firings);
	because_of_place_of_job(scene);
	because_of_place_of_run(scene);
	because_of_place_of_batch(scene);
	scene_kill(scene, 0);
	service_release(scene->service);
	for (size_t i = 0; i < 2; i++) {
		firing_join(firings[i], 0, NULL);
		firing_free(firings[i]);
	}
}

#define CHORES (PORT_EXEC_SHARE + 1)

static bool one_has_reason(struct scene *scene, char (*ids)[64], enum why_reason reason, const char **ret_id)
{
	for (size_t i = 0; i < CHORES; i++)
		if (has_reason(scene, ids[i], reason)) {
			*ret_id = ids[i];
			return true;
		}
	return false;
}

/* An action without a limit of its own waits for those of its kind: here programs that end when the pipe is closed. */
static void test_places_of_a_kind(void **state)
{
	struct scene *scene = *state;
	char ids[CHORES][64], pipe[400], definition[1000];
	const char *id = NULL;
	int fd;

	snprintf(pipe, sizeof pipe, "%s/pipe", scene->dir);
	assert_int_equal(mkfifo(pipe, 0600), 0);
	fd = open(pipe, O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0);
	snprintf(definition, sizeof definition,
		 "{'workflow':'chore','kind':'run','actions':{'Wait':{'kind':'exec','argv':['/bin/cat','%s']}},"
		 "'steps':[{'name':'wait','type':'task','action':'Wait','retry':{'max_attempts':1}}]}",
		 pipe);
	scene_define(scene, "chore", definition);
	scene_configure(scene, "{'exec':{'enabled':true}}");
	scene_start(scene, 0);
	for (size_t i = 0; i < CHORES; i++)
		run_create_id(scene, "{'definitionId':'chore'}", ids[i]);
	AWAIT(RUN_ARRIVE_MS, one_has_reason(scene, ids, WHY_RUN_LIMIT, &id));
	because(scene, id, WHY_RUN_LIMIT,
		"attempt 1 of the step \"wait\" " HERE ", where it waits for a place: " STRING_OF(
			PORT_EXEC_SHARE) " calls of the kind \"exec\" are running, and that is the share of this workspace");
	unlink(pipe); /* the one that waits would open it when nobody is there to close it */
	close(fd);
	scene_stop(scene, 0);
}

/* ---- functions that another program has ---- */

#define PROGRAM "waits for a program that has the function \"pay\", which this node does not have"

/* As a program that embeds the library has left it: by the API it would be refused. */
static void leave_definition(struct scene *scene, const char *name, const char *text)
{
	char sql[1000];

	snprintf(sql, sizeof sql, "INSERT INTO hx_definition (name, version, text, at) VALUES ('%s', 1, '%s', 1)", name,
		 text);
	for (char *p = sql; *p; p++)
		*p = *p == '`' ? '"' : *p;
	scene_sql(scene, sql, NULL, 0);
}

static void test_functions(void **state)
{
	struct scene *scene = *state;
	char id[64];

	scene_start(scene, 0);
	scene_stop(scene, 0);
	leave_definition(scene, "errand",
			 "{`workflow`:`errand`,`kind`:`run`,`actions`:{`pay`:{`kind`:`native`,`function`:`pay`}},"
			 "`steps`:[{`name`:`a`,`type`:`task`,`action`:`pay`}]}");
	leave_definition(scene, "many",
			 "{`workflow`:`many`,`kind`:`batch`,`actions`:{`pay`:{`kind`:`native`,`function`:`pay`}},"
			 "`item_action`:`pay`}");
	leave_definition(scene, "bill",
			 "{`workflow`:`bill`,`kind`:`entity`,`status_types`:[`open`,`paid`],`initial_status`:`open`,"
			 "`actions`:{`pay`:{`kind`:`native`,`function`:`pay`}},`steps`:[{`step_id`:1,`step_key`:`pay`,"
			 "`status`:`open`,`successful_state`:`paid`,`success_after_effect`:[`pay`]}]}");
	scene_start(scene, 0);
	run_create_id(scene, "{'definitionId':'errand'}", id);
	because(scene, id, WHY_RUN_FUNCTION, "is due, and " PROGRAM);
	scene_sql(scene, "UPDATE hx_subject SET owner = 'gone', fence = fence + 1, until = 1 WHERE status = 'PENDING'",
		  NULL, 0);
	because(scene, id, WHY_RUN_FUNCTION, "*: it " PROGRAM ", to take it over");
	scene_must(scene, 0, "POST", "/api/v1/accounts", "{'id':'alice','balance':100}", 201, NULL);
	scene_must(scene, 0, "POST", "/api/v1/batches", "{'workflow':'many','account':'alice','items':[{'cost':7}]}",
		   201, NULL);
	snprintf(id, sizeof id, "%s", reply_text(&scene->last, "id"));
	because(scene, id, WHY_BATCH_FUNCTION, "is due, and " PROGRAM);
	scene_must(scene, 0, "POST", "/api/v1/entities/bill", "{'id':'a'}", 201, NULL);
	scene_must(scene, 0, "POST", "/api/v1/entities/bill/a/steps/pay", "{}", 200, NULL);
	scene_must(scene, 0, "GET", JOBS, NULL, 200, "");
	snprintf(id, sizeof id, "%s", reply_text(&scene->last, "items.0.id"));
	because(scene, id, WHY_JOB_FUNCTION, "is due, and " PROGRAM);
	scene_stop(scene, 0);
}

/* ---- schedules ---- */

static void put(struct scene *scene, const char *name, const char *body, char id[ID_TEXT_BYTES])
{
	char path[100];

	snprintf(path, sizeof path, "/api/v1/schedules/%s", name);
	scene_must(scene, 0, "PUT", path, body, 201, NULL);
	snprintf(id, ID_TEXT_BYTES, "%s", reply_text(&scene->last, "id"));
}

static void test_schedules(void **state)
{
	struct scene *scene = *state;
	char id[ID_TEXT_BYTES];

	scene_define(scene, "long", "{'workflow':'long','kind':'run','steps':[{'name':'w','type':'wait','for':'1h'}]}");
	scene_start(scene, 0);
	put(scene, "yearly", "{'workflow':'long','cron':'0 0 1 1 *'}", id);
	because(scene, id, WHY_SCHEDULE_SLOT, "waits for its next slot, at 20*-01-01T00:00:00.000Z");
	scene_must(scene, 0, "POST", "/api/v1/schedules/yearly/pause", NULL, 200, NULL);
	because(scene, id, WHY_SCHEDULE_PAUSED, "waits for a person to resume it");
	put(scene, "over", "{'workflow':'long','every':'1d','to':'2020-01-01T00:00:00Z'}", id);
	because(scene, id, WHY_SCHEDULE_END, "waits for nothing: no slot is left");
	put(scene, "busy", "{'workflow':'long','every':'1s','overlap':'queue'}", id);
	because(scene, id, WHY_SCHEDULE_OPEN, "* slot*wait* for what it has started before to end");
	put(scene, "lost", "{'workflow':'long','cron':'0 0 1 1 *'}", id);
	scene_sql(
		scene,
		"UPDATE hx_schedule SET due_at = 1, slot_at = 1000, text = replace(text, 'long', 'gone') WHERE name = 'lost'",
		NULL, 0);
	because(scene, id, WHY_SCHEDULE_DUE,
		"cannot be started unless somebody polls for it: its workflow is not known here; its slot is due since *");
	scene_stop(scene, 0);
}

/* ---- functions: code of workers ---- */

static void test_turns(void **state)
{
	static const char claim[] = "{'worker':'w','functions':[{'name':'fn','version':'1'}]}";
	struct scene *scene = *state;
	char id[64], path[200];

	scene_start(scene, 0);
	scene_must(scene, 0, "POST", "/api/v1/functions/claim", claim, 200, NULL);
	run_create_id(scene, "{'definitionId':'fn'}", id);
	because(scene, id, WHY_FUNCTION_WORKER, "its turn is due, and waits for a worker that polls for \"fn\"");
	scene_sql(scene, "UPDATE hx_function_poll SET at = 1; UPDATE hx_function SET turn_at = 1", NULL, 0);
	because(scene, id, WHY_FUNCTION_UNPOLLED, "its turn is due, and nobody polls for \"fn\"");
	scene_must(scene, 0, "POST", "/api/v1/functions/claim", claim, 200, NULL);
	because(scene, id, WHY_RUN_CLAIMED, "its turn is with the worker \"w\", whose lease lasts until " TIME);
	snprintf(path, sizeof path, "/api/v1/functions/runs/%s/journal", id);
	scene_must(scene, 0, "POST", path, "{'worker':'w','fence':1,'seq':0,'end':{'state':'diverged'}}", 200, NULL);
	because(scene, id, WHY_FUNCTION_HELD,
		"is held for a person to retry or cancel it: the journal does not fit the code");
	scene_stop(scene, 0);
}

/* ---- all of them ---- */

static void assert_all_seen(bool postgres)
{
	for (int i = 0; i < WHY_REASONS_N; i++)
		if (!seen[postgres][i])
			fail_msg("no test brings a server to %s", why_reason_name((enum why_reason)i));
}

static void test_every_reason_was_seen_on_sqlite(void **state)
{
	(void)state;
	assert_all_seen(false);
}

static void test_every_reason_was_seen_on_postgres(void **state)
{
	(void)state;
	assert_all_seen(true);
}

#define BOTH(test)                                                                                                     \
	cmocka_unit_test_setup_teardown(test, scene_set_up_sqlite, scene_tear_down),                                   \
		cmocka_unit_test_setup_teardown(test, scene_set_up_postgres, scene_tear_down)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		BOTH(test_entities),
		BOTH(test_a_step_that_nobody_is_at),
		BOTH(test_jobs),
		BOTH(test_jobs_of_runs),
		BOTH(test_after_effects),
		BOTH(test_runs_that_wait),
		BOTH(test_runs_at_work),
		BOTH(test_runs_in_line),
		BOTH(test_runs_that_fail),
		BOTH(test_batches_that_wait),
		BOTH(test_batches_at_work),
		BOTH(test_places),
		BOTH(test_functions),
		BOTH(test_schedules),
		BOTH(test_turns),
		cmocka_unit_test_setup_teardown(test_places_of_a_kind, scene_set_up_sqlite, scene_tear_down),
		cmocka_unit_test(test_every_reason_was_seen_on_sqlite),
		cmocka_unit_test(test_every_reason_was_seen_on_postgres),
	};

	ONLY_THE_NAMED(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
