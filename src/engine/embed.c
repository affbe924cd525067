/* See embed.h; the contract is in hapax.h. */
#include "engine/embed.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/duration.h"
#include "base/excerpt.h"
#include "base/latch.h"
#include "base/sized.h"
#include "base/utf8.h"

#define DRAIN_MS_DEFAULT 10000
#define TEXTS_BYTES_MAX (64u << 20)
#define FINDINGS_BYTES_MAX (64u << 20)
#define RESULT_BYTES_MAX (512u << 20)
#define LINE_BYTES_MAX 4096
#define NATIVE_THREADS_MAX 64
#define FIRST_BYTES_MAX 210 /* of the first finding, in an error's detail */

/* ---- findings ---- */

static void tell_first(const struct findings *findings, struct slice line, enum hx_code code, struct hx_error *err)
{
	if (line.n > FIRST_BYTES_MAX)
		line.n = utf8_cut(slice_of(line.p, FIRST_BYTES_MAX));
	if (findings->errors > 1)
		(void)error_set(err, code, "%.*s (and %zu more)", SLICE_ARGS(line), findings->errors - 1);
	else
		(void)error_set(err, code, "%.*s", SLICE_ARGS(line));
}

/* All of them to the program; the first error becomes the detail, with the code for the whole. */
static void tell_findings(const struct hx_engine *e, const struct findings *findings, enum hx_code code,
			  struct hx_error *err)
{
	bool told = false;
	LOCAL_STRBUF(line, LINE_BYTES_MAX);

	for (const struct finding *f = findings->first; f; f = f->next) {
		strbuf_reset(&line);
		finding_print(f, &line);
		if (e->on_finding)
			e->on_finding(e->data, line.p);
		if (f->severity == FINDING_ERROR && !told)
			tell_first(findings, strbuf_slice(&line), code, err);
		told |= f->severity == FINDING_ERROR;
	}
}

/* ---- opening ---- */

static const char *kept(struct hx_engine *e, const char *text)
{
	return text ? arena_copy(&e->arena, slice_str(text)).p : NULL;
}

static enum hx_code embed_read_config(struct hx_engine *e, const char *text, struct hx_error *err)
{
	struct findings findings;

	config_init(&e->config);
	if (!text)
		return HX_OK;
	findings_init(&findings, &e->arena);
	config_parse("config", slice_str(kept(e, text)), &e->arena, &findings, &e->config);
	tell_findings(e, &findings, HX_CONFIG_ERROR, err);
	return findings.errors ? HX_CONFIG_ERROR : HX_OK;
}

static const char *node_name(struct hx_engine *e, const struct hx_engine_options *options)
{
	const char *name = options->node ? options->node : e->config.node;

	if (name)
		return kept(e, name);
	if (gethostname(e->node, sizeof e->node - 1) || !engine_node_is_good(e->node))
		memcpy(e->node, "node", sizeof "node");
	return e->node;
}

static const char *first_of(const char *a, const char *b, const char *c)
{
	return a ? a : b ? b : c;
}

static enum hx_code embed_start(struct hx_engine *e, const struct engine_options *options, struct hx_error *err)
{
	struct findings findings;
	enum hx_code code;
	LOCAL_ARENA(arena, FINDINGS_BYTES_MAX);

	findings_init(&findings, &arena);
	code = engine_new(options, &findings, &e->engine, err);
	tell_findings(e, &findings, code, err);
	return code;
}

static enum hx_code open_engine(struct hx_engine *e, const struct hx_engine_options *given, struct hx_error *err)
{
	struct engine_options options = {
		.lanes_n = lanes_wanted(),
		.config = &e->config,
		.loopback_allowed = true, /* nobody but the program itself says what is called */
		.natives = &e->natives,
		.natives_all = true,
		.clock = e->test_clock ? &e->test_clock->clock : &e->clock.clock,
		.log = given->log_fd || given->on_log ? &e->log : NULL,
		.native_slots = (size_t)given->native_threads,
	};
	enum hx_code code = embed_natives_add(e, given->natives, given->natives_n, err);

	if (!code && given->drain_ms < 0)
		code = error_set(err, HX_VALIDATION_ERROR, "drain_ms is from 1 on, or 0 for the default");
	if (!code && (given->native_threads < 0 || given->native_threads > NATIVE_THREADS_MAX))
		code = error_set(err, HX_VALIDATION_ERROR, "native_threads is 1 to %d, or 0 for the default",
				 NATIVE_THREADS_MAX);
	if (!code)
		code = embed_read_config(e, given->config, err);
	if (code)
		return code;
	log_init(&e->log, given->log_fd ? given->log_fd : -1, LOG_LEVEL_INFO, clock_system());
	e->log.sink = given->on_log;
	e->log.sink_data = given->data;
	if (given->on_log)
		e->log.form = LOG_FORM_JSON;
	e->clock.log = options.log;
	options.db_url = kept(e, first_of(given->store, e->config.db, "sqlite:hapax.db"));
	options.workflows_dir = kept(e, first_of(given->workflows, e->config.workflows, NULL));
	options.node = node_name(e, given);
	return e->arena.failed ? arena_error(&e->arena, err) : embed_start(e, &options, err);
}

static void free_engine(struct hx_engine *e)
{
	engine_free(e->engine);
	if (e->door)
		e->door_free(e->door);
	steady_clock_release(&e->clock);
	pthread_cond_destroy(&e->left);
	pthread_mutex_destroy(&e->mutex);
	pthread_mutex_destroy(&e->defining);
	arena_release(&e->arena);
	free(e);
}

enum hx_code embed_open(const struct hx_engine_options *options, struct test_clock *test_clock,
			struct hx_engine **ret_engine, struct hx_error *err)
{
	struct hx_engine_options own;
	struct hx_error unwanted = {0};
	enum hx_code code = SIZED_READ(options, &own, "hx_engine_options", err);
	struct hx_engine *e = code ? NULL : calloc(1, sizeof *e);

	if (!e)
		return code ? code : error_set(err, HX_NO_MEMORY, "an engine");
	e->test_clock = test_clock;
	options = &own;
	err = err ? err : &unwanted; /* inside, everybody has one */
	steady_clock_init(&e->clock, clock_system(), /* log= */ NULL);
	pthread_mutex_init(&e->defining, NULL);
	pthread_mutex_init(&e->mutex, NULL);
	pthread_cond_init(&e->left, NULL);
	arena_init(&e->arena, TEXTS_BYTES_MAX);
	e->drain_ms = options->drain_ms ? options->drain_ms : DRAIN_MS_DEFAULT;
	if (e->drain_ms > DURATION_MS_MAX) /* a program that never gives up says INT64_MAX, and the lanes add to it */
		e->drain_ms = DURATION_MS_MAX;
	e->on_finding = options->on_finding;
	e->data = options->data;
	code = open_engine(e, options, err);
	if (code) {
		free_engine(e);
		return code;
	}
	pthread_mutex_lock(&e->mutex);
	e->opened = true;
	pthread_mutex_unlock(&e->mutex);
	*ret_engine = e;
	return HX_OK;
}

enum hx_code hx_engine_open(const struct hx_engine_options *options, struct hx_engine **ret_engine,
			    struct hx_error *err)
{
	return embed_open(options, /* test_clock= */ NULL, ret_engine, err);
}

/* Whoever waits inside is answered by the stop, and leaves. */
void hx_engine_close(struct hx_engine *engine)
{
	if (!engine)
		return;
	pthread_mutex_lock(&engine->mutex);
	engine->closing = true;
	pthread_mutex_unlock(&engine->mutex);
	if (engine->door)
		engine->door_stop(engine->door);
	engine_stop(engine->engine, engine->drain_ms);
	pthread_mutex_lock(&engine->mutex);
	while (engine->inside)
		pthread_cond_wait(&engine->left, &engine->mutex);
	pthread_mutex_unlock(&engine->mutex);
	free_engine(engine);
}

enum hx_code embed_enter(struct hx_engine *e, struct hx_error *err)
{
	enum hx_code code;

	pthread_mutex_lock(&e->mutex);
	code = e->closing ? HX_STOPPING : e->opened ? HX_OK : HX_BUSY;
	e->inside += code == HX_OK;
	pthread_mutex_unlock(&e->mutex);
	return code ? embed_refuse(err, code, code == HX_BUSY ? "the engine is not open yet" : NULL) : HX_OK;
}

void embed_leave(struct hx_engine *e)
{
	LOCKED(&e->mutex);
	e->inside--;
	pthread_cond_signal(&e->left);
}

/* ---- definitions ---- */

struct defining {
	struct definition_put put;
	struct latch latch;
};

static void put_done(struct definition_put *put, enum hx_code code)
{
	latch_open_with(&((struct defining *)put)->latch, code);
}

static enum hx_code put_and_wait(struct hx_engine *e, struct defining *d, struct hx_error *err)
{
	enum hx_code code;

	latch_init(&d->latch);
	code = engine_put_definition(e->engine, &d->put);
	if (code) {
		latch_release(&d->latch);
		return embed_refuse(err, code, NULL);
	}
	code = latch_wait(&d->latch);
	latch_release(&d->latch);
	if (code == HX_CONFIG_ERROR) /* to the caller it is the definition that is wrong */
		code = HX_DEFINITION_INVALID;
	return code ? error_set(err, code, "%s", d->put.err.detail) : HX_OK;
}

static enum hx_code define(struct hx_engine *e, const char *name, const char *json, struct hx_error *err)
{
	struct defining d = {.put = {.name = slice_str(name), .text = slice_str(json), .done = put_done}};
	struct findings findings;
	enum hx_code code;
	LOCAL_ARENA(arena, FINDINGS_BYTES_MAX);

	findings_init(&findings, &arena);
	d.put.findings = &findings;
	code = put_and_wait(e, &d, err);
	tell_findings(e, &findings, code, err);
	return code;
}

enum hx_code hx_engine_define(struct hx_engine *engine, const char *name, const char *json, struct hx_error *err)
{
	enum hx_code code = embed_enter(engine, err);

	if (code)
		return code;
	pthread_mutex_lock(&engine->defining);
	code = name && json ? define(engine, name, json, err)
			    : error_set(err, HX_VALIDATION_ERROR, "a definition has a name and a text");
	pthread_mutex_unlock(&engine->defining);
	embed_leave(engine);
	return code;
}

/* ---- a task that is waited for ---- */

struct sitting {
	struct seat seat;
	struct latch latch;
};

static void task_done(struct seat *seat, enum hx_code code)
{
	latch_open_with(&((struct sitting *)seat)->latch, code);
}

enum hx_code embed_carry_out(struct hx_engine *e, uint64_t hash, struct task *task)
{
	struct sitting s = {.seat = {.task = task, .done = task_done}};
	enum hx_code code;

	latch_init(&s.latch);
	code = engine_submit(e->engine, hash, &s.seat);
	if (!code)
		code = latch_wait(&s.latch);
	latch_release(&s.latch);
	return code;
}

/* ---- what calls take ---- */

enum hx_code embed_refuse(struct hx_error *err, enum hx_code code, const char *detail)
{
	return error_set(err, code, "%s", detail ? detail : hx_code_text(code));
}

static enum hx_code check_name(const char *given, const char *what, struct slice *ret_name, struct hx_error *err)
{
	*ret_name = slice_str(given ? given : "default");
	if (entity_name_is_good(*ret_name))
		return HX_OK;
	return error_set(err, HX_VALIDATION_ERROR,
			 "%s is 1 to %d bytes of UTF-8 without control characters, not \"%s\"", what, ENTITY_NAME_MAX,
			 excerpt_of(*ret_name).text);
}

enum hx_code embed_who(const struct hx_caller *caller, struct embed_who *ret_who, struct hx_error *err)
{
	struct hx_caller own = {HX_SIZE(hx_caller)};
	enum hx_code code = caller ? SIZED_READ(caller, &own, "hx_caller", err) : HX_OK;

	if (!code)
		code = check_name(own.workspace, "the workspace", &ret_who->workspace, err);
	return code ? code : check_name(own.requester, "the requester", &ret_who->requester, err);
}

enum hx_code embed_json(const char *text, const char *otherwise, const char *what, size_t bytes_max,
			struct json *ret_value, struct hx_error *err)
{
	struct hx_error why;

	if (json_check(slice_str(text ? text : otherwise), &why, ret_value))
		return error_set(err, HX_VALIDATION_ERROR, "%s: %s", what, why.detail);
	if (ret_value->raw.n > bytes_max)
		return error_set(err, HX_TOO_LARGE, "%s is at most %zu bytes", what, bytes_max);
	return HX_OK;
}

/* ---- results ---- */

enum hx_code embed_begin(struct embed_call *call, struct hx_engine *e, const struct hx_caller *caller,
			 struct hx_error *err)
{
	enum hx_code code = embed_enter(e, err);

	if (code)
		return code;
	call->e = e;
	code = embed_who(caller, &call->who, err);
	call->reply = code ? NULL : calloc(1, sizeof *call->reply);
	if (!code && !call->reply)
		code = error_set(err, HX_NO_MEMORY, "a result");
	if (code)
		embed_leave(e);
	else
		arena_init(&call->reply->arena, RESULT_BYTES_MAX);
	return code;
}

const char *embed_text(struct embed_reply *r, struct slice text)
{
	return text.p ? arena_copy(&r->arena, text).p : NULL;
}

void hx_result_free(struct hx_result *result)
{
	struct embed_reply *r = (struct embed_reply *)result;

	if (!r)
		return;
	arena_release(&r->arena);
	free(r);
}

enum hx_code embed_end(struct embed_call *call, enum hx_code code, enum hx_code also, struct hx_result **ret_result,
		       struct hx_error *err)
{
	struct embed_reply *r = call->reply;
	bool told = code == HX_OK || code == also;

	if (told && r->arena.failed) {
		code = arena_error(&r->arena, err);
		told = false;
	}
	if (told && ret_result)
		*ret_result = &r->result;
	else
		hx_result_free(&r->result);
	embed_leave(call->e);
	return code;
}
