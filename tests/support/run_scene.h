/*
 * A scene with runs: creating one, looking at it, waiting for a status of it, and calls in the background. For the test's own
 * thread.
 */
#ifndef HX_TESTS_SUPPORT_RUN_SCENE_H
#define HX_TESTS_SUPPORT_RUN_SCENE_H

#include "support/scene.h"

#define RUNS "/api/v1/workflow-runs"
#define RUN_ARRIVE_MS 60000

/* A new run, which must be created; its reply is scene->last. */
void run_create_id(struct scene *scene, const char *body, char ret_id[64]);
struct reply *run_show(struct scene *scene, const char *id);
/* Waits until it is in this status; scene->last is the run then. */
void run_await(struct scene *scene, const char *id, const char *status);
/* A verb, "cancel" or "events/payment": the status of the answer must be this, and the code (NULL: any). */
struct reply *run_do(struct scene *scene, const char *id, const char *verb, const char *body, int status,
		     const char *code);
/* A call with an Idempotency-Key, whose Idempotency-Status must be this ("": none). */
struct reply *run_keyed(struct scene *scene, const char *method, const char *path, const char *key, const char *body,
			int status, const char *outcome);
/* What it waits for, according to /why, must have these words in it. */
void run_why(struct scene *scene, const char *id, const char *words);
/* Sends a request and reads no answer: the connection, for the test to close. */
int run_knock(struct scene *scene, const char *method, const char *path, const char *body);
/* A path of a reply with a number in it; in turn one of a few buffers. */
const char *run_path(const char *format, int i) __attribute__((format(printf, 1, 0)));

/* A call in the background, by a caller of its own. */
struct run_call {
	pthread_t thread;
	struct client *client;
	char method[8], path[300], fields[200];
	char *body;
	struct reply reply;
};
struct run_call *run_call_start(struct scene *scene, const char *method, const char *path, const char *fields,
				const char *body);
/* Waits for its answer, which must have this status. */
struct reply *run_call_join(struct run_call *call, int status);
void run_call_free(struct run_call *call);

#endif
