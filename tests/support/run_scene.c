/* See run_scene.h. */
#include "support/run_scene.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/await.h"

void run_create_id(struct scene *scene, const char *body, char ret_id[64])
{
	scene_must(scene, 0, "POST", RUNS, body, 201, "");
	snprintf(ret_id, 64, "%s", reply_text(&scene->last, "run.id"));
}

struct reply *run_show(struct scene *scene, const char *id)
{
	char path[200];

	snprintf(path, sizeof path, RUNS "/%s", id);
	return scene_must(scene, 0, "GET", path, NULL, 200, "");
}

void run_await(struct scene *scene, const char *id, const char *status)
{
	int64_t until = await_now_ms() + RUN_ARRIVE_MS;

	for (;;) {
		run_show(scene, id);
		if (strcmp(reply_text(&scene->last, "status"), status) == 0)
			return;
		if (await_now_ms() > until)
			fail_msg("%s was to be %s, and is: %s", id, status, scene->last.body);
		await_pause();
	}
}

struct reply *run_do(struct scene *scene, const char *id, const char *verb, const char *body, int status,
		     const char *code)
{
	char path[400];

	snprintf(path, sizeof path, RUNS "/%s/%s", id, verb);
	return scene_must(scene, 0, "POST", path, body, status, code);
}

struct reply *run_keyed(struct scene *scene, const char *method, const char *path, const char *key, const char *body,
			int status, const char *outcome)
{
	char *text = scene_text(scene, body ? body : "");
	char fields[300], wanted[100];

	snprintf(fields, sizeof fields, "Idempotency-Key: %s\r\n", key);
	snprintf(wanted, sizeof wanted, "\r\nIdempotency-Status: %s\r\n", outcome);
	reply_release(&scene->last);
	if (!client_call_with(scene->admin[0], method, path, fields, text, strlen(text), &scene->last))
		fail_msg("%s %s was not answered", method, path);
	free(text);
	if (scene->last.status != status ||
	    (*outcome ? !strcasestr(scene->last.head, wanted) : !!strcasestr(scene->last.head, "Idempotency-")))
		fail_msg("%s %s with %s was to be %d %s, and is: %s%s", method, path, key, status, outcome,
			 scene->last.head, scene->last.body);
	return &scene->last;
}

void run_why(struct scene *scene, const char *id, const char *words)
{
	char path[200];

	snprintf(path, sizeof path, "/api/v1/why/%s", id);
	scene_must(scene, 0, "GET", path, NULL, 200, "");
	assert_string_equal(reply_text(&scene->last, "id"), id);
	if (!strstr(reply_text(&scene->last, "why"), words))
		fail_msg("\"%s\" was to be said of %s, and it is: %s", words, id, scene->last.body);
}

int run_knock(struct scene *scene, const char *method, const char *path, const char *body)
{
	struct sockaddr_in to = {.sin_family = AF_INET,
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
				 .sin_port = htons((uint16_t)scene->nodes[0]->port)};
	char *text = scene_text(scene, body), request[1000];
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
	snprintf(request, sizeof request, "%s %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %zu\r\n\r\n%s", method,
		 path, strlen(text), text);
	assert_int_equal(write(fd, request, strlen(request)), strlen(request));
	free(text);
	return fd;
}

const char *run_path(const char *format, int i)
{
	static char paths[4][100];
	static unsigned turn;
	char *path = paths[turn++ % 4];

	snprintf(path, sizeof paths[0], format, i);
	return path;
}

/* ---- in the background ---- */

static void *run_in_background(void *context)
{
	struct run_call *call = context;

	/* The join looks at the status. */
	(void)client_call_with(call->client, call->method, call->path, call->fields, call->body, strlen(call->body),
			       &call->reply);
	return NULL;
}

struct run_call *run_call_start(struct scene *scene, const char *method, const char *path, const char *fields,
				const char *body)
{
	struct run_call *call = calloc(1, sizeof *call);

	assert_non_null(call);
	call->client = client_new(scene->nodes[0]->port, "admin");
	call->body = scene_text(scene, body ? body : "");
	snprintf(call->method, sizeof call->method, "%s", method);
	snprintf(call->path, sizeof call->path, "%s", path);
	snprintf(call->fields, sizeof call->fields, "%s", fields);
	assert_int_equal(pthread_create(&call->thread, NULL, run_in_background, call), 0);
	return call;
}

struct reply *run_call_join(struct run_call *call, int status)
{
	pthread_join(call->thread, NULL);
	if (call->reply.status != status)
		fail_msg("%s %s was to be %d, and is %d %s", call->method, call->path, status, call->reply.status,
			 call->reply.body ? call->reply.body : "");
	return &call->reply;
}

void run_call_free(struct run_call *call)
{
	client_free(call->client);
	reply_release(&call->reply);
	free(call->body);
	free(call);
}
