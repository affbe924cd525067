/*
 * The HTTP API for an embedding program, without a socket: hx_call() and what belongs to it. The contract is in hapax.h.
 *
 *   hx_call        ─▶ door ─▶ router ─▶ handler … answered ─▶ the latch that the caller waits at
 *   hx_call_start  ─▶ door ─▶ router ─▶ handler … answered ─▶ ended calls, the descriptor ─▶ hx_engine_dispatch: done()
 *
 * The door is a server that listens nowhere (inner.h), and is made by the first call. Each call that was begun has its done() called
 * once: by a dispatch, or by the close.
 */
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "api/api.h"
#include "base/json_string.h"
#include "base/json_walk.h"
#include "base/latch.h"
#include "base/sized.h"
#include "engine/embed.h"
#include "serve/inner.h"

#define HEAD_BYTES_MAX 32768
#define ANSWER_BYTES_MAX (512u << 20)

struct door_call {
	struct http_inner inner;
	struct hx_engine *e;
	struct arena arena;                                                    /* of what was asked */
	struct latch latch;                                                    /* of one that is waited for */
	void (*done)(void *data, enum hx_code code, struct hx_answer *answer); /* NULL: it is waited for */
	void *data;
	enum hx_code code;
	struct hx_answer *answer; /* NULL: there was no memory */
	struct door_call *next;
};

struct embed_door {
	struct api api;
	struct router *router;
	struct http_server *server;
	int fd;
	pthread_mutex_t mutex; /* over what follows */
	struct door_call *first, **last;
};

/* An answer with the arena that its texts are in. */
struct kept_answer {
	struct hx_answer answer;
	struct arena arena;
};

/* ---- the answer ---- */

static struct hx_answer *embed_call_keep(const struct http_answer *answer)
{
	struct kept_answer *kept = calloc(1, sizeof *kept);

	if (!kept)
		return NULL;
	arena_init(&kept->arena, ANSWER_BYTES_MAX);
	kept->answer.status = answer->status;
	kept->answer.body_bytes = answer->body.n;
	kept->answer.body = arena_copy(&kept->arena, answer->body.p ? answer->body : slice_str("")).p;
	if (kept->answer.body)
		return &kept->answer;
	hx_answer_free(&kept->answer);
	return NULL;
}

void hx_answer_free(struct hx_answer *answer)
{
	struct kept_answer *kept = (struct kept_answer *)answer;

	if (!kept)
		return;
	arena_release(&kept->arena);
	free(kept);
}

static void call_free(struct door_call *call)
{
	arena_release(&call->arena);
	free(call);
}

/* The engine is there until it is left, and the door as long as it. */
static void tell_ended(struct door_call *call)
{
	struct hx_engine *e = call->e;
	struct embed_door *door = e->door;
	uint64_t one = 1;

	pthread_mutex_lock(&door->mutex);
	call->next = NULL;
	*door->last = call;
	door->last = &call->next;
	pthread_mutex_unlock(&door->mutex);
	(void)!write(door->fd, &one, sizeof one); /* it cannot be full */
	embed_leave(e);
}

static void embed_call_answered(struct http_inner *inner, const struct http_answer *answer)
{
	struct door_call *call = (struct door_call *)inner;

	call->code = api_code_of(answer);
	call->answer = embed_call_keep(answer);
	if (!call->answer)
		call->code = call->code ? call->code
					: HX_OUTCOME_UNKNOWN; /* it may have been done, and cannot be told */
	if (call->done)
		tell_ended(call);
	else
		latch_open(&call->latch);
}

/* ---- the door ---- */

static size_t dispatch(struct embed_door *door)
{
	struct door_call *call;
	uint64_t told;
	size_t n = 0;

	(void)!read(door->fd, &told, sizeof told); /* none: nothing has ended since the last time */
	pthread_mutex_lock(&door->mutex);
	call = door->first;
	door->first = NULL;
	door->last = &door->first;
	pthread_mutex_unlock(&door->mutex);
	for (struct door_call *next; call; call = next, n++) {
		next = call->next;
		call->done(call->data, call->code, call->answer);
		call_free(call);
	}
	return n;
}

static void door_stop(struct embed_door *door)
{
	atomic_store(&door->api.ready, false);
	http_server_stop(door->server, /* drain_ms= */ 0);
}

static void door_free(struct embed_door *door)
{
	if (door->fd >= 0)
		(void)dispatch(door);
	http_server_free(door->server);
	router_free(door->router);
	if (door->fd >= 0)
		close(door->fd);
	pthread_mutex_destroy(&door->mutex);
	free(door);
}

static enum hx_code door_new(struct hx_engine *e, struct embed_door **ret_door, struct hx_error *err)
{
	struct server_options options = server_options_default();
	struct embed_door *door = calloc(1, sizeof *door);
	enum hx_code code = HX_OK;

	if (!door)
		return error_set(err, HX_NO_MEMORY, "the calls");
	door->api = (struct api){.engine = e->engine, .loopback = true, .ready = true, .test_clock = e->test_clock};
	door->last = &door->first;
	pthread_mutex_init(&door->mutex, NULL);
	door->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	door->router = api_router_new(&door->api);
	options.listen = NULL;
	options.loops = 1;
	options.handle = router_handle;
	options.data = door->router;
	if (!door->router || door->fd < 0)
		code = error_set(err, HX_NO_MEMORY, "the calls");
	if (!code)
		code = http_server_new(&options, &door->server, err);
	return HAND_OVER(code, door, door_free, ret_door);
}

/* Made by the first who needs it. */
static enum hx_code door_of(struct hx_engine *e, struct embed_door **ret_door, struct hx_error *err)
{
	enum hx_code code = HX_OK;

	LOCKED(&e->mutex);
	if (!e->door)
		code = e->closing ? embed_refuse(err, HX_STOPPING, NULL) : door_new(e, &e->door, err);
	e->door_stop = door_stop;
	e->door_free = door_free;
	*ret_door = e->door;
	return code;
}

/* ---- asking ---- */

static bool is_clean(const char *text)
{
	for (; text && *text; text++)
		if ((unsigned char)*text < ' ' || *text == 0x7f)
			return false;
	return true;
}

static void add_field(struct strbuf *head, const char *name, const char *value)
{
	if (value)
		strbuf_addf(head, "%s: %s\r\n", name, value);
}

static enum hx_code write_head(struct door_call *call, const struct hx_call_request *rq, struct hx_error *err)
{
	if (!rq->method || !rq->path || rq->path[0] != '/' || strpbrk(rq->method, " ") || strpbrk(rq->path, " "))
		return error_set(err, HX_VALIDATION_ERROR,
				 "a call has a method, and a path that begins with / and is encoded");
	if (!is_clean(rq->method) || !is_clean(rq->path) || !is_clean(rq->key) || !is_clean(rq->content_type))
		return error_set(err, HX_VALIDATION_ERROR, "a call's head has no control characters");
	LOCAL_STRBUF(head, HEAD_BYTES_MAX);
	strbuf_addf(&head, "%s %s HTTP/1.1\r\nHost: localhost\r\n", rq->method, rq->path);
	add_field(&head, "Content-Type", rq->content_type ? rq->content_type : "application/json");
	add_field(&head, "Idempotency-Key", rq->key);
	strbuf_add_str(&head, "\r\n");
	if (!head.failed)
		call->inner.head = arena_copy(&call->arena, strbuf_slice(&head));
	return call->inner.head.p ? HX_OK : error_set(err, HX_TOO_LARGE, "the head of a call is at most 32 KiB");
}

static enum hx_code embed_call_fill(struct door_call *call, const struct hx_caller *caller,
				    const struct hx_call_request *request, struct hx_error *err)
{
	struct hx_call_request own;
	struct embed_who who;
	size_t body_bytes;
	enum hx_code code = SIZED_READ(request, &own, "hx_call_request", err);

	if (!code)
		code = embed_who(caller, &who, err);
	if (!code)
		code = write_head(call, &own, err);
	if (code)
		return code;
	body_bytes = own.body && !own.body_bytes ? strlen(own.body) : own.body_bytes;
	call->inner.workspace = arena_copy(&call->arena, who.workspace);
	call->inner.requester = arena_copy(&call->arena, who.requester);
	if (own.body)
		call->inner.body = arena_copy(&call->arena, slice_of(own.body, body_bytes));
	call->inner.answered = embed_call_answered;
	return call->arena.failed ? arena_error(&call->arena, err) : HX_OK;
}

/* Between enter and leave. With HX_OK it is under way. */
static enum hx_code embed_call_begin(struct hx_engine *e, const struct hx_caller *caller,
				     const struct hx_call_request *request, struct door_call *call,
				     struct hx_error *err)
{
	struct embed_door *door = NULL;
	enum hx_code code;

	call->e = e;
	arena_init(&call->arena, ANSWER_BYTES_MAX);
	code = embed_call_fill(call, caller, request, err);
	if (!code)
		code = door_of(e, &door, err);
	if (!code && http_inner_call(door->server, &call->inner))
		code = embed_refuse(err, HX_STOPPING, NULL);
	return code;
}

/* The words of a problem are the error's, too. */
static enum hx_code tell_problem(const struct door_call *call, struct hx_error *err)
{
	struct json body, detail;

	(void)embed_refuse(err, call->code, NULL);
	if (!err || !call->answer || json_check(slice_str(call->answer->body), /* err= */ NULL, &body) ||
	    json_type(body) != JSON_OBJECT || !json_find(body, slice_str("detail"), &detail) ||
	    json_type(detail) != JSON_STRING)
		return call->code;
	LOCAL_ARENA(arena, 65536);
	(void)error_set(err, call->code, "%.*s", SLICE_ARGS(json_string_decode(detail, &arena)));
	return call->code;
}

enum hx_code hx_call(struct hx_engine *engine, const struct hx_caller *caller, const struct hx_call_request *request,
		     struct hx_answer **ret_answer, struct hx_error *err)
{
	struct door_call call = {0};
	enum hx_code code = embed_enter(engine, err);

	if (code)
		return code;
	if (ret_answer)
		*ret_answer = NULL;
	latch_init(&call.latch);
	code = embed_call_begin(engine, caller, request, &call, err);
	if (!code) {
		latch_wait(&call.latch);
		code = call.code ? tell_problem(&call, err) : HX_OK;
		if (ret_answer)
			*ret_answer = call.answer;
		else
			hx_answer_free(call.answer);
	}
	latch_release(&call.latch);
	arena_release(&call.arena);
	embed_leave(engine);
	return code;
}

enum hx_code hx_call_start(struct hx_engine *engine, const struct hx_caller *caller,
			   const struct hx_call_request *request,
			   void (*done)(void *data, enum hx_code code, struct hx_answer *answer), void *data,
			   struct hx_error *err)
{
	struct door_call *call;
	enum hx_code code = embed_enter(engine, err);

	if (code)
		return code;
	call = calloc(1, sizeof *call);
	if (!call || !done) {
		free(call);
		embed_leave(engine);
		return error_set(err, done ? HX_NO_MEMORY : HX_VALIDATION_ERROR, "a call that is begun has a done()");
	}
	call->done = done;
	call->data = data;
	code = embed_call_begin(engine, caller, request, call, err);
	if (code) {
		call_free(call);
		embed_leave(engine); /* else it is left when the call has ended */
	}
	return code;
}

int hx_engine_fd(struct hx_engine *engine)
{
	struct embed_door *door = NULL;
	struct hx_error err;

	return door_of(engine, &door, &err) ? -1 : door->fd;
}

size_t hx_engine_dispatch(struct hx_engine *engine)
{
	struct embed_door *door;

	pthread_mutex_lock(&engine->mutex);
	door = engine->door;
	pthread_mutex_unlock(&engine->mutex);
	return door ? dispatch(door) : 0;
}
