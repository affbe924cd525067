/*
 * For tests of Idempotency-Key at our own API: entities to be created and moved, calls with a key, also in the background.
 */
#ifndef HX_TESTS_HTTP_KEYED_CALLS_H
#define HX_TESTS_HTTP_KEYED_CALLS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "gate/recall.h"

#include "support/await.h"
#include "support/scene.h"

#define ARRIVE_MS 60000
#define CREATE "/api/v1/entities/billing"

static const char definition[] =
	"{'workflow':'billing','kind':'entity','status_types':['approved','closing','closed','asking','told'],"
	"'initial_status':'approved','actions':{"
	"'Close':{'kind':'http','url':'@/close','effect':'claimed'},"
	"'Mail':{'kind':'http','url':'@/mail','effect':'keyed'}},"
	"'steps':[{'step_id':20,'step_key':'close','status':'approved','successful_state':'closed',"
	"'action':'Close','claim_state':['closing','approved']},"
	"{'step_id':21,'step_key':'ask','status':'approved','successful_state':'closed',"
	"'action':'Close','claim_state':['asking','approved'],'on_unknown':'hold'},"
	"{'step_id':30,'step_key':'tell','status':'approved','successful_state':'told',"
	"'success_after_effect':['Mail']}]}";

static const char configuration[] =
	"{'modules':{'billing':{'janitor':{'every':'100ms','stuck_after':'1s'}}},'lease':'1s'}";

static inline void begin(struct scene *scene, int nodes)
{
	scene_define(scene, "billing", definition);
	scene_configure(scene, configuration);
	for (int node = 0; node < nodes; node++)
		scene_start(scene, node);
}

/* ---- calls with a key ---- */

/* A body with ' for ", NULL: none. Like scene_call, with a key as it stands in the head; its reply is scene->last. */
static inline struct reply *keyed(struct scene *scene, int node, const char *method, const char *path, const char *key,
				  const char *body)
{
	char *text = scene_text(scene, body ? body : "");
	char fields[600];

	snprintf(fields, sizeof fields, "Idempotency-Key: %s\r\n", key);
	reply_release(&scene->last);
	if (!client_call_with(scene->admin[node], method, path, fields, text, strlen(text), &scene->last))
		fail_msg("%s %s was not answered", method, path);
	free(text);
	return &scene->last;
}

static inline const char *field_of(const struct reply *reply, const char *name)
{
	static char values[4][200];
	static unsigned turn;
	char *value = values[turn++ % 4], wanted[60];
	const char *at;

	snprintf(wanted, sizeof wanted, "\r\n%s: ", name);
	at = strcasestr(reply->head, wanted);
	snprintf(value, sizeof values[0], "%.*s", at ? (int)strcspn(at + strlen(wanted), "\r") : 0,
		 at ? at + strlen(wanted) : "");
	return value;
}

/* status "": there is no Idempotency-Status. */
static inline struct reply *must(struct scene *scene, const char *method, const char *path, const char *key,
				 const char *body, int status, const char *code, const char *outcome)
{
	struct reply *reply = keyed(scene, 0, method, path, key, body);

	if (reply->status != status || strcmp(reply->code, code) != 0 ||
	    strcmp(field_of(reply, "Idempotency-Status"), outcome) != 0 ||
	    (strcmp(field_of(reply, "Idempotency-Replayed"), "true") == 0) != (strcmp(outcome, "replayed") == 0))
		fail_msg("%s %s with %s: to be %d %s %s, and is: %s%.600s", method, path, key, status, code, outcome,
			 reply->head, reply->body);
	return reply;
}

/* A creation whose answer is too large to be recalled (gate/recall.h): every repetition asks the store. */
static inline const char *large(void)
{
	static char text[RECALL_BYTES_MAX + 100];

	snprintf(text, sizeof text, "{'data':{'x':'%0*d'}}", RECALL_BYTES_MAX, 0);
	return text;
}

/* An answer to compare others with. */
struct memory {
	int status;
	char *body;
	char type[100], etag[40];
};

static inline struct memory remember(const struct reply *reply)
{
	struct memory m = {.status = reply->status, .body = strdup(reply->body)};

	snprintf(m.type, sizeof m.type, "%s", field_of(reply, "Content-Type"));
	snprintf(m.etag, sizeof m.etag, "%s", field_of(reply, "ETag"));
	return m;
}

static inline void assert_same(const struct reply *reply, const struct memory *m)
{
	assert_int_equal(reply->status, m->status);
	assert_string_equal(reply->body, m->body);
	assert_string_equal(field_of(reply, "Content-Type"), m->type);
	assert_string_equal(field_of(reply, "ETag"), m->etag);
}

static inline int64_t count(struct scene *scene, const char *sql)
{
	char cell[64];

	scene_sql(scene, sql, cell, sizeof cell);
	return strtoll(cell, NULL, 10);
}

static inline int64_t outcomes(struct scene *scene, const char *outcome)
{
	char name[80];

	snprintf(name, sizeof name, "hapax_gate_outcomes_total{outcome=\"%s\"}", outcome);
	return scene_metric(scene, 0, name);
}

/* As after 60 s: the holder of every record that is not completed is not trusted any more. */
static inline void end_leases(struct scene *scene)
{
	scene_sql(scene, "UPDATE hx_gate_record SET until = 1 WHERE status = 1", NULL, 0);
}

/* A call in the background. */
struct background {
	pthread_t thread;
	struct client *client;
	const char *path;
	char fields[100];
	struct reply reply;
};

static inline void *run_call(void *context)
{
	struct background *b = context;

	(void)client_call_with(b->client, "POST", b->path, b->fields, "{}", 2,
			       &b->reply); /* the test sees the status */
	return NULL;
}

static inline void start_call(struct scene *scene, int node, struct background *b, const char *path, const char *key)
{
	b->client = client_new(scene->nodes[node]->port, "admin");
	b->path = path;
	snprintf(b->fields, sizeof b->fields, "Idempotency-Key: %s\r\n", key);
	assert_int_equal(pthread_create(&b->thread, NULL, run_call, b), 0);
}

static inline struct reply *join_call(struct background *b)
{
	pthread_join(b->thread, NULL);
	return &b->reply;
}

static inline void free_call(struct background *b)
{
	client_free(b->client);
	reply_release(&b->reply);
}

#define ON_BOTH(test)                                                                                                  \
	{#test " on SQLite", test, scene_set_up_sqlite, scene_tear_down, NULL},                                        \
	{                                                                                                              \
#test " on PostgreSQL", test, scene_set_up_postgres, scene_tear_down, NULL                             \
	}

#define ON_SQLITE(test) cmocka_unit_test_setup_teardown(test, scene_set_up_sqlite, scene_tear_down)

#endif
