/*
 * The engine in somebody else's program, inside: hx_engine_*, hx_run_* and hx_entity_* of hapax.h, which has the contract.
 *
 *   embed.c            opening, closing, defining; who is inside; a task that is waited for; results
 *   embed_native.c     functions of the program as native actions
 *   embed_runs.c       runs
 *   embed_entities.c   entities
 *   embed_jobs.c       jobs
 *
 * A call of the program is a task in a lane, as a request over HTTP is, and the calling thread waits for its end. The
 * engine is not freed before the last call has left it.
 */
#pragma once

#include <pthread.h>

#include "base/arena.h"
#include "base/json.h"
#include "base/steady_clock.h"
#include "base/test_clock.h"
#include "engine/engine.h"

/* A function of the program's and what it is called with. */
struct embed_native {
	struct hx_engine *engine;
	enum hx_native_outcome (*run)(void *context, const struct hx_native_call *call, struct hx_output *output);
	void *context;
};

struct hx_engine {
	struct engine *engine;
	struct arena arena; /* of the texts that the engine's options refer to */
	struct config config;
	struct log log;
	struct steady_clock clock;
	struct test_clock *test_clock; /* in its place; NULL: none */
	struct natives natives;
	struct embed_native functions[NATIVES_MAX];
	char node[65];
	int64_t drain_ms;
	void (*on_finding)(void *data, const char *line);
	void *data;
	pthread_mutex_t defining; /* one definition at a time */
	pthread_mutex_t mutex;    /* over what follows */
	pthread_cond_t left;
	size_t inside; /* calls that have not returned */
	bool closing;
	bool opened; /* functions may run before */
	/* The API without a socket, made by the first call (api/embed_call.c, which this folder does not know); NULL: not yet. */
	struct embed_door *door;
	void (*door_stop)(struct embed_door *door); /* nothing new comes in */
	void (*door_free)(struct embed_door *door); /* after the engine */
};

/* As hx_engine_open(), with a time that can be skipped (base/test_clock.h), which outlives it; NULL: the machine's. */
enum hx_code embed_open(const struct hx_engine_options *options, struct test_clock *test_clock,
			struct hx_engine **ret_engine, struct hx_error *err) HX_MUST_CHECK;

/* Registers the functions. */
enum hx_code embed_natives_add(struct hx_engine *e, const struct hx_native *natives, size_t n,
			       struct hx_error *err) HX_MUST_CHECK;

/* Every call is between these two, or embed_begin() and embed_end(). HX_STOPPING: the engine is being closed. */
enum hx_code embed_enter(struct hx_engine *e, struct hx_error *err) HX_MUST_CHECK;
void embed_leave(struct hx_engine *e);
/* Carries the task out in the lane of this hash and waits for its end. */
enum hx_code embed_carry_out(struct hx_engine *e, uint64_t hash, struct task *task) HX_MUST_CHECK;

/* The caller with its defaults, as well-formed names. */
struct embed_who {
	struct slice workspace, requester;
};
enum hx_code embed_who(const struct hx_caller *caller, struct embed_who *ret_who, struct hx_error *err) HX_MUST_CHECK;
/* JSON that the program gives. NULL: `otherwise`. */
enum hx_code embed_json(const char *text, const char *otherwise, const char *what, size_t bytes_max,
			struct json *ret_value, struct hx_error *err) HX_MUST_CHECK;
/* Sets the code with these words, NULL: its own. */
enum hx_code embed_refuse(struct hx_error *err, enum hx_code code, const char *detail);

/* A result with the arena that its texts are in. */
struct embed_reply {
	struct hx_result result;
	struct arena arena;
};
/* A copy for the result; NULL: there is none. */
const char *embed_text(struct embed_reply *r, struct slice text);

/* One call that ends with a result: who asks, and where it goes. */
struct embed_call {
	struct hx_engine *e;
	struct embed_who who;
	struct embed_reply *reply;
};
/* Enters the engine; with HX_OK it is left by embed_end(). */
enum hx_code embed_begin(struct embed_call *call, struct hx_engine *e, const struct hx_caller *caller,
			 struct hx_error *err) HX_MUST_CHECK;
/*
 * Hands the reply to the caller when the code is HX_OK (or `also`), and frees it otherwise, or when it is not wanted. Says so
 * when its texts found no memory.
 */
enum hx_code embed_end(struct embed_call *call, enum hx_code code, enum hx_code also, struct hx_result **ret_result,
		       struct hx_error *err) HX_MUST_CHECK;
