/*
 * A call that is in doubt while its definition is replaced: by a PUT in the middle of the call, and then the node is killed (-9).
 * The new definition leads to another service, with another password. Whoever makes the call again, for an entity's step, its probe
 * or an after-effect, makes it where it was made, with the headers that were meant for there, until an answer settles it.
 *
 * Nor do other steps of the entity settle it, whatever they save, on whichever node, and how often they are killed in between.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/await.h"
#include "support/scene.h"

#define ARRIVE_MS 60000
#define DEFINITION_BYTES 6000
#define OLD "Bearer old"
#define NEW "Bearer new"

/* In 'bare' there is no claim; 'ask' has a probe. The after-effect has attempts left, and rests a second between them. */
static const char definition[] =
	"{'workflow':'billing','kind':'entity','status_types':['approved','closing','asking','due','closed'],"
	"'initial_status':'approved','actions':{"
	"'Close':{'kind':'http','url':'%1$s/close','effect':'keyed','headers':{'Authorization':'%2$s'}},"
	"'Shut':{'kind':'http','url':'%1$s/shut','effect':'claimed','probe':'Ask','headers':{'Authorization':'%2$s'}},"
	"'Ask':{'kind':'http','url':'%1$s/ask','effect':'idempotent','headers':{'Authorization':'%2$s'}},"
	"'Charge':{'kind':'http','url':'%1$s/charge','effect':'keyed','headers':{'Authorization':'%2$s'}},"
	"'Deposit':{'kind':'http','url':'%1$s/deposit','effect':'keyed','headers':{'Authorization':'%2$s'}},"
	"'Balance':{'kind':'http','url':'%1$s/balance','effect':'keyed','headers':{'Authorization':'%2$s'}},"
	"'Edit':{'kind':'http','url':'%1$s/edit','effect':'keyed'},"
	"'Mail':{'kind':'http','url':'%1$s/mail','effect':'keyed','headers':{'Authorization':'%2$s'}}},"
	"'steps':[{'step_id':1,'step_key':'close','status':'approved','successful_state':'closed','action':'Close',"
	"'claim_state':['closing','approved'],'on_unknown':'revert','success_after_effect':['Mail']},"
	"{'step_id':2,'step_key':'bare','status':'approved','successful_state':'closed','action':'Close','on_unknown':'hold'},"
	"{'step_id':3,'step_key':'ask','status':'approved','successful_state':'closed','action':'Shut',"
	"'claim_state':['asking','approved'],'on_unknown':'probe'},"
	"{'step_id':4,'step_key':'charge','status':'approved','successful_state':'approved','action':'Charge',"
	"'claim_state':['closing','approved'],'on_unknown':'revert'},"
	"{'step_id':5,'step_key':'edit','status':'approved','successful_state':'approved','action':'Edit','save_as':'edited',"
	"'claim_state':['closing','approved']},"
	"{'step_id':6,'step_key':'note','status':'approved','successful_state':'approved','action':'Edit'},"
	"{'step_id':7,'step_key':'touch','status':'approved','successful_state':'approved'},"
	"{'step_id':8,'step_key':'pay','status':'approved','successful_state':'due','action':'Deposit','on_unknown':'hold'},"
	"{'step_id':9,'step_key':'pay','status':'due','successful_state':'closed','action':'Balance','on_unknown':'hold'},"
	"{'step_id':10,'step_key':'pay','status':'closed','successful_state':'closed'},"
	"{'step_id':11,'step_key':'waive','status':'approved','successful_state':'due'},"
	"{'step_id':12,'step_key':'open','status':'closed','successful_state':'approved'},"
	"{'step_id':13,'step_key':'remind','status':'approved','successful_state':'approved','action':'Edit','on_unknown':'hold'},"
	"{'step_id':14,'step_key':'remind','status':'due','successful_state':'due','action':'Edit','on_unknown':'hold'}]}";

static struct service *other; /* where the second definition leads */

static void write_definition(char text[DEFINITION_BYTES], struct service *service, const char *password)
{
	char url[100];

	snprintf(url, sizeof url, "http://127.0.0.1:%d", service_port(service));
	assert_true(snprintf(text, DEFINITION_BYTES, definition, url, password) < DEFINITION_BYTES);
}

static void begin(struct scene *scene)
{
	char text[DEFINITION_BYTES];

	other = service_new();
	write_definition(text, scene->service, OLD);
	scene_define(scene, "billing", text);
	scene_configure(scene, "{'modules':{'billing':{'janitor':{'every':'100ms','stuck_after':'1s'}}},'lease':'1s'}");
	scene_start(scene, 0);
}

static void end(struct scene *scene)
{
	scene_stop(scene, 0);
	service_free(other);
}

/* By the API, and in the folder, as a deployment does. */
static void replace(struct scene *scene)
{
	char text[DEFINITION_BYTES];

	write_definition(text, other, NEW);
	scene_must(scene, 0, "PUT", "/api/v1/definitions/billing", text, 200, NULL);
	scene_define(scene, "billing", text);
}

static void hold(struct scene *scene, const char *path)
{
	service_play(scene->service, path, &(struct play){.hold = true});
}

/* The definition is replaced while the one call of this path is under way, and its node is killed. Then it is there again. */
static void kill_in_the_middle(struct scene *scene, const char *path)
{
	service_await(scene->service, path, 1, ARRIVE_MS);
	replace(scene);
	scene_kill(scene, 0);
	service_play(scene->service, path, &(struct play){0});
	service_release(scene->service);
	scene_start(scene, 0);
}

/* The call of this path was made n times at the first service, the same one, and never at the second. */
static void assert_kept(struct scene *scene, const char *path, size_t n)
{
	struct service_call first = service_call(scene->service, path, 0);

	assert_int_equal(service_count(scene->service, path, NULL), n);
	assert_int_equal(service_count(other, path, NULL), 0);
	for (size_t i = 0; i < n; i++) {
		struct service_call call = service_call(scene->service, path, i);

		assert_string_equal(call.key, first.key);
		assert_string_equal(call.body, first.body);
		assert_string_equal(call.authorization, OLD);
	}
}

/* And what is not in doubt goes by the definition in force. */
static void assert_new_ones_go_elsewhere(struct scene *scene, const char *step, const char *path)
{
	size_t before = service_count(scene->service, path, NULL), there = service_count(other, path, NULL);

	scene_create(scene, "new");
	scene_fire(scene, 0, "new", step, 200, NULL);
	AWAIT(ARRIVE_MS, service_count(other, path, NULL) == there + 1);
	assert_string_equal(service_call(other, path, there).authorization, NEW);
	assert_int_equal(service_count(scene->service, path, NULL), before);
}

static void step_in_doubt(struct scene *scene, const char *step)
{
	struct firing *firing;

	begin(scene);
	hold(scene, "/close");
	scene_create(scene, "a");
	firing = firing_start(scene, 0, "a", step);
	kill_in_the_middle(scene, "/close");
	firing_join(firing, 0, NULL);
	firing_free(firing);
	scene_await_status(scene, 0, "a", "approved", ARRIVE_MS);
	scene_fire(scene, 0, "a", step, 200, NULL);
	assert_kept(scene, "/close", 2);
	assert_new_ones_go_elsewhere(scene, step, "/close");
	end(scene);
}

static void test_a_step_under_a_claim(void **state)
{
	step_in_doubt(*state, "close");
}

static void test_a_step_without_a_claim(void **state)
{
	step_in_doubt(*state, "bare");
}

/* The service that was called is the one that knows. */
static void test_a_probe(void **state)
{
	struct scene *scene = *state;
	struct firing *firing;

	begin(scene);
	hold(scene, "/shut");
	service_play(scene->service, "/ask", &(struct play){.body = "{\"outcome\":\"done\",\"output\":1}"});
	service_play(other, "/ask", &(struct play){.body = "{\"outcome\":\"not_done\"}"});
	scene_create(scene, "a");
	firing = firing_start(scene, 0, "a", "ask");
	kill_in_the_middle(scene, "/shut");
	firing_join(firing, 0, NULL);
	firing_free(firing);
	scene_await_status(scene, 0, "a", "closed", ARRIVE_MS);
	assert_kept(scene, "/shut", 1);
	assert_kept(scene, "/ask", 1);
	end(scene);
}

static void test_an_after_effect(void **state)
{
	struct scene *scene = *state;

	begin(scene);
	hold(scene, "/mail");
	scene_create(scene, "a");
	scene_fire(scene, 0, "a", "close", 200, NULL);
	kill_in_the_middle(scene, "/mail");
	service_await(scene->service, "/mail", 2, ARRIVE_MS);
	assert_new_ones_go_elsewhere(scene, "close", "/mail");
	assert_int_equal(service_count(other, "/mail", "a"), 0);
	assert_string_equal(service_call(scene->service, "/mail", 0).key, service_call(scene->service, "/mail", 1).key);
	assert_string_equal(service_call(scene->service, "/mail", 0).body,
			    service_call(scene->service, "/mail", 1).body);
	assert_string_equal(service_call(scene->service, "/mail", 1).authorization, OLD);
	end(scene);
}

/* It is certain that nothing was done: the next try goes where the definition in force says. */
static void test_an_after_effect_without_doubt(void **state)
{
	struct scene *scene = *state;

	begin(scene);
	service_play(scene->service, "/mail", &(struct play){.status = 500});
	scene_create(scene, "a");
	scene_fire(scene, 0, "a", "close", 200, NULL);
	service_await(scene->service, "/mail", 1, ARRIVE_MS);
	replace(scene);
	AWAIT(ARRIVE_MS, service_count(other, "/mail", "a") == 1);
	assert_string_equal(service_call(other, "/mail", 0).authorization, NEW);
	end(scene);
}

/* A person lets one that is parked in doubt try again: where it may have been done, under the same key, also after a refusal. */
static void test_a_redrive_in_doubt(void **state)
{
	struct scene *scene = *state;
	char id[100], path[200];

	begin(scene);
	service_play(scene->service, "/mail", &(struct play){.how = PLAY_DROP});
	scene_create(scene, "a");
	scene_fire(scene, 0, "a", "close", 200, NULL);
	service_await(scene->service, "/mail", 1, ARRIVE_MS);
	scene_must(scene, 0, "GET", "/api/v1/jobs", NULL, 200, NULL);
	snprintf(id, sizeof id, "%s", reply_text(&scene->last, "items.0.id"));
	replace(scene);
	/* Seven attempts later; nobody wants to wait for their backoff. */
	scene_stop(scene, 0);
	scene_sql(scene, "UPDATE hx_job SET attempt = 7, due_at = 0 WHERE due_at IS NOT NULL", NULL, 0);
	scene_start(scene, 0);
	snprintf(path, sizeof path, "/api/v1/jobs/%s", id);
	AWAIT(ARRIVE_MS,
	      strcmp(reply_text(scene_must(scene, 0, "GET", path, NULL, 200, NULL), "status"), "PARKED") == 0);
	snprintf(path, sizeof path, "/api/v1/why/%s", id);
	assert_non_null(strstr(reply_text(scene_must(scene, 0, "GET", path, NULL, 200, NULL), "why"),
			       "version 1 of its definition has sent it, and it may have been done"));
	size_t before = service_count(scene->service, "/mail", NULL);
	snprintf(path, sizeof path, "/api/v1/jobs/%s/redrive", id);
	service_play(scene->service, "/mail", &(struct play){.status = 500});
	scene_call(scene, 0, "POST", path, "{}");
	service_await(scene->service, "/mail", before + 1, ARRIVE_MS);
	service_play(scene->service, "/mail", &(struct play){0});
	snprintf(path, sizeof path, "/api/v1/jobs/%s", id);
	AWAIT(ARRIVE_MS,
	      strcmp(reply_text(scene_must(scene, 0, "GET", path, NULL, 200, NULL), "status"), "COMPLETED") == 0);
	assert_kept(scene, "/mail", before + 2);
	end(scene);
}

/* ---- while another step is done ---- */

/* The other steps are done, in order; each of them has its own key each time. */
static void edit_in_between(struct scene *scene, int node)
{
	const char *const steps[] = {"edit", "note", "touch", "edit"};

	for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
		scene_fire(scene, node, "a", steps[i], 200, NULL);
}

static size_t kept_calls(struct scene *scene)
{
	char cell[20];

	scene_sql(scene, "SELECT count(*) FROM hx_kept_call", cell, sizeof cell);
	return (size_t)atoi(cell);
}

/* The node that charges is killed, another step is done, the definition is another, and it is charged again: the service sees one call. */
static void test_another_step_in_between(void **state)
{
	struct scene *scene = *state;
	struct firing *firing;

	begin(scene);
	hold(scene, "/charge");
	scene_create(scene, "a");
	scene_fire(scene, 0, "a", "edit", 200, NULL);
	firing = firing_start(scene, 0, "a", "charge");
	kill_in_the_middle(scene, "/charge");
	firing_join(firing, 0, NULL);
	firing_free(firing);
	scene_await_status(scene, 0, "a", "approved", ARRIVE_MS);
	edit_in_between(scene, 0);
	assert_int_equal(kept_calls(scene), 1);
	assert_non_null(
		strstr(reply_text(scene_must(scene, 0, "GET", "/api/v1/why/entity:billing:a", NULL, 200, NULL), "why"),
		       "what the step \"charge\" has begun has no answer"));
	scene_kill(scene, 0);
	scene_start(scene, 0);
	scene_must(scene, 0, "POST", "/api/v1/entities/billing/a/steps/charge", "{'input':{'other':1}}", 409,
		   "IN_DOUBT");
	service_play(scene->service, "/charge", &(struct play){.how = PLAY_DROP});
	scene_fire(scene, 0, "a", "charge", 504, "OUTCOME_UNKNOWN");
	scene_await_status(scene, 0, "a", "approved", ARRIVE_MS);
	edit_in_between(scene, 0);
	service_play(scene->service, "/charge", &(struct play){0});
	scene_fire(scene, 0, "a", "charge", 200, NULL);
	assert_kept(scene, "/charge", 3);
	assert_int_equal(kept_calls(scene), 0);
	/* It was answered: the next one is another charge, as the definition in force has it. */
	scene_fire(scene, 0, "a", "charge", 200, NULL);
	assert_int_equal(service_count(other, "/charge", NULL), 1);
	assert_string_not_equal(service_call(other, "/charge", 0).key, service_call(scene->service, "/charge", 0).key);
	end(scene);
}

/* Of one entity at once: a claim's that was reverted, and that of a step without a claim. Each is made again as it was. */
static void test_two_in_doubt(void **state)
{
	struct scene *scene = *state;

	begin(scene);
	scene_create(scene, "a");
	service_play(scene->service, "/charge", &(struct play){.how = PLAY_DROP});
	service_play(scene->service, "/edit", &(struct play){.how = PLAY_DROP});
	scene_fire(scene, 0, "a", "note", 504, "OUTCOME_UNKNOWN");
	scene_fire(scene, 0, "a", "charge", 504, "OUTCOME_UNKNOWN");
	scene_await_status(scene, 0, "a", "approved", ARRIVE_MS);
	scene_fire(scene, 0, "a", "note", 504, "OUTCOME_UNKNOWN");
	assert_int_equal(kept_calls(scene), 2);
	scene_must(scene, 0, "POST", "/api/v1/entities/billing/a/data", "{'data':{'x':1},'version':3}", 409,
		   "IN_DOUBT");
	scene_fire(scene, 0, "a", "touch", 200, NULL);
	scene_must(scene, 0, "POST", "/api/v1/entities/billing/a/data", "{'data':{'x':1},'version':4}", 200, NULL);
	service_play(scene->service, "/charge", &(struct play){0});
	service_play(scene->service, "/edit", &(struct play){0});
	scene_fire(scene, 0, "a", "charge", 200, NULL);
	scene_fire(scene, 0, "a", "note", 200, NULL);
	assert_kept(scene, "/charge", 2);
	service_await(scene->service, "/edit", 3, ARRIVE_MS);
	assert_string_equal(service_call(scene->service, "/edit", 2).key, service_call(scene->service, "/edit", 0).key);
	assert_string_equal(service_call(scene->service, "/edit", 2).body,
			    service_call(scene->service, "/edit", 0).body);
	assert_int_equal(kept_calls(scene), 0);
	end(scene);
}

/* `pay` is a deposit, or the balance, or nothing, as the status is: what is in doubt of the one is none of the others. */
static void test_one_name_several_actions(void **state)
{
	struct scene *scene = *state;

	begin(scene);
	scene_create(scene, "a");
	service_play(scene->service, "/deposit", &(struct play){.how = PLAY_DROP});
	scene_fire(scene, 0, "a", "pay", 504, "OUTCOME_UNKNOWN");
	scene_fire(scene, 0, "a", "waive", 200, NULL);
	service_play(scene->service, "/balance", &(struct play){.how = PLAY_DROP});
	scene_fire(scene, 0, "a", "pay", 504, "OUTCOME_UNKNOWN");
	assert_int_equal(kept_calls(scene), 2);
	replace(scene);
	service_play(scene->service, "/balance", &(struct play){0});
	scene_fire(scene, 0, "a", "pay", 200, NULL);
	assert_kept(scene, "/balance", 2);
	scene_fire(scene, 0, "a", "pay", 200, NULL); /* calls nobody */
	assert_int_equal(service_count(scene->service, "/deposit", NULL), 1);
	assert_int_equal(kept_calls(scene), 1);
	scene_fire(scene, 0, "a", "open", 200, NULL);
	service_play(scene->service, "/deposit", &(struct play){0});
	scene_fire(scene, 0, "a", "pay", 200, NULL);
	assert_kept(scene, "/deposit", 2);
	assert_int_equal(kept_calls(scene), 0);
	assert_string_not_equal(service_call(scene->service, "/deposit", 0).key,
				service_call(scene->service, "/balance", 0).key);
	end(scene);
}

/* One action from two statuses is one effect. */
static void test_one_name_one_action(void **state)
{
	struct scene *scene = *state;

	begin(scene);
	scene_create(scene, "a");
	service_play(scene->service, "/edit", &(struct play){.how = PLAY_DROP});
	scene_fire(scene, 0, "a", "remind", 504, "OUTCOME_UNKNOWN");
	scene_fire(scene, 0, "a", "waive", 200, NULL);
	service_play(scene->service, "/edit", &(struct play){0});
	scene_fire(scene, 0, "a", "remind", 200, NULL);
	assert_int_equal(service_count(scene->service, "/edit", NULL), 2);
	assert_string_equal(service_call(scene->service, "/edit", 1).key, service_call(scene->service, "/edit", 0).key);
	assert_int_equal(kept_calls(scene), 0);
	end(scene);
}

#define ON_BOTH(test)                                                                                                  \
	cmocka_unit_test_setup_teardown(test, scene_set_up_sqlite, scene_tear_down),                                   \
	{                                                                                                              \
#test " on PostgreSQL", test, scene_set_up_postgres, scene_tear_down, NULL                             \
	}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(test_a_step_under_a_claim),
		ON_BOTH(test_a_step_without_a_claim),
		ON_BOTH(test_another_step_in_between),
		ON_BOTH(test_two_in_doubt),
		ON_BOTH(test_one_name_several_actions),
		ON_BOTH(test_one_name_one_action),
		ON_BOTH(test_a_probe),
		ON_BOTH(test_an_after_effect),
		ON_BOTH(test_a_redrive_in_doubt),
		ON_BOTH(test_an_after_effect_without_doubt),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
