/*
 * The scene of an end-to-end test: a fresh store, one to three real nodes on it, the service that plays the actions, a
 * folder with the definitions and the configuration. One per test; the teardown removes all of it.
 *
 * Definitions and configurations are written with ' for ", and @ for the address of the service:
 *
 *	scene_define(scene, "billing", "{'workflow':'billing', … 'url':'@/close' …}");
 *	scene_configure(scene, "{'modules':{'billing':{'janitor':{'every':'200ms','stuck_after':'1s'}}}}");
 *	scene_start(scene, 0);
 *	scene_create(scene, "a");
 *	scene_fire(scene, 0, "a", "close", 200);
 *
 * All of it is for the test's own thread.
 */
#ifndef HX_TESTS_SUPPORT_SCENE_H
#define HX_TESTS_SUPPORT_SCENE_H

#include <pthread.h>

#include "support/client.h"
#include "support/serve.h"
#include "support/service.h"
#include "support/store.h"

#define SCENE_NODES_MAX 3
#define SCENE_WORKFLOW "billing"

struct scene {
	struct store *store;
	struct service *service;
	struct serve *nodes[SCENE_NODES_MAX];
	struct client *admin[SCENE_NODES_MAX]; /* the test's own callers, as the requester "admin" */
	char dir[256], workflows[300], config[300];
	char db_urls[SCENE_NODES_MAX][512]; /* the store's, unless a test puts a proxy in between */
	struct reply last;                  /* of scene_call() and those built on it */
};

/* cmocka fixtures: *state is a scene on a fresh store, with nothing started. */
int scene_set_up_sqlite(void **state);
int scene_set_up_postgres(void **state);
int scene_tear_down(void **state);

/* Text with ' for " and @ for the address of the service. The caller frees it. */
char *scene_text(const struct scene *scene, const char *text);
/* NAME.json in the workflows folder, or gone when the text is NULL. */
void scene_define(struct scene *scene, const char *name, const char *text);
void scene_configure(struct scene *scene, const char *text);
/* Node 0, 1 or 2; its log has the same name for all its lives. */
void scene_start(struct scene *scene, int node);
struct serve_options scene_options(struct scene *scene, int node);
/* Stops the node as SIGTERM does, or as kill -9 does; it may be started again. */
void scene_stop(struct scene *scene, int node);
void scene_kill(struct scene *scene, int node);

/* A call by "admin"; the body with ' for ", or NULL. The reply is valid until the next one. It must be answered. */
struct reply *scene_call(struct scene *scene, int node, const char *method, const char *path, const char *body);
/* The same, and the status must be this; and the code of a problem (NULL: any). */
struct reply *scene_must(struct scene *scene, int node, const char *method, const char *path, const char *body,
			 int status, const char *code);
/* A new entity of the workflow SCENE_WORKFLOW, on node 0. */
void scene_create(struct scene *scene, const char *id);
/* Fires a step. */
struct reply *scene_fire(struct scene *scene, int node, const char *id, const char *step, int status, const char *code);
/* GET of the entity. */
struct reply *scene_show(struct scene *scene, int node, const char *id);
void scene_assert(struct scene *scene, int node, const char *id, const char *status, int64_t version);
/* Waits until the entity is in this status. Nodes that cannot say are asked again. */
void scene_await_status(struct scene *scene, int node, const char *id, const char *status, int64_t deadline_ms);
/* SQL on the store from outside, which must succeed; its first cell, as text, goes to ret_cell (may be NULL). */
void scene_sql(struct scene *scene, const char *sql, char *ret_cell, size_t cell_bytes);
/* How many jobs there are in all. */
size_t scene_jobs(struct scene *scene, int node);
/* A number of /metrics. */
int64_t scene_metric(struct scene *scene, int node, const char *name);

/* A step fired in the background, by a caller of its own. */
struct firing {
	pthread_t thread;
	struct client *client;
	char path[600];
	struct reply reply; /* of the test after the join */
};
struct firing *firing_start(struct scene *scene, int node, const char *id, const char *step);
/* Waits for its answer, which must be this (status 0: any, or none). */
struct reply *firing_join(struct firing *firing, int status, const char *code);
void firing_free(struct firing *firing);

#endif
