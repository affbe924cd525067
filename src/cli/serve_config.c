/* See serve_config.h. */
#include "cli/serve_config.h"

#include <stdlib.h>

#include "base/json_canonical.h"
#include "base/json_string.h"
#include "base/json_walk.h"
#include "model/load.h"

#define ARENA_BYTES_MAX (64u << 20)
#define SCRATCH_BYTES_MAX (64u << 20)
#define TEXT_BYTES_MAX (16u << 20)

static const char *const changeable[] = {"log", "modules", "retention"};

struct serve_config *serve_config_load(const char *path, struct findings *findings)
{
	struct serve_config *c = calloc(1, sizeof *c);

	if (!c)
		return NULL;
	arena_init(&c->arena, ARENA_BYTES_MAX);
	strbuf_init(&c->text, TEXT_BYTES_MAX);
	config_init(&c->config);
	if (path && file_load(path, &c->text, findings))
		config_parse(path, strbuf_slice(&c->text), &c->arena, findings, &c->config);
	return c;
}

void serve_config_free(struct serve_config *config)
{
	while (config) {
		struct serve_config *before = config->before;

		strbuf_release(&config->text);
		arena_release(&config->arena);
		free(config);
		config = before;
	}
}

/* ---- what is said in another way ---- */

/* The same value, however it is written; .p NULL: there is none. */
static struct slice serve_config_value_of(const struct serve_config *c, struct slice name, struct arena *scratch)
{
	struct hx_error err;
	struct json root, value;
	struct slice canonical = {0};
	LOCAL_STRBUF(text, TEXT_BYTES_MAX);

	if (json_check(strbuf_slice(&c->text), &err, &root) == HX_OK && json_find(root, name, &value) &&
	    json_canonical(value, scratch, &err, &text) == HX_OK)
		canonical = arena_copy(scratch, strbuf_slice(&text));
	return canonical;
}

static bool is_changeable(struct slice name)
{
	for (size_t i = 0; i < sizeof changeable / sizeof *changeable; i++)
		if (slice_is(name, changeable[i]))
			return true;
	return false;
}

/* Fields of `a` that are other, or not there, in `b`. those_alone: only the latter. */
static void tell_fields(const struct serve_config *a, const struct serve_config *b, bool those_alone, struct log *log)
{
	struct json root, name, value;
	struct hx_error err;
	struct json_iter it;

	if (json_check(strbuf_slice(&a->text), &err, &root))
		return; /* there is no file */
	it = json_iter_of(root);
	while (json_iter_member(&it, &name, &value)) {
		struct slice field, there;

		LOCAL_ARENA(scratch, SCRATCH_BYTES_MAX);
		field = json_string_decode(name, &scratch);
		there = serve_config_value_of(b, field, &scratch);
		if (!is_changeable(field) &&
		    (!there.p || (!those_alone && !slice_eq(there, serve_config_value_of(a, field, &scratch)))))
			log_warn(log,
				 "a field of the configuration has changed that needs a restart: it stays as it was",
				 log_slice("field", field));
	}
}

void serve_config_settle(struct serve_config *next, const struct serve_config *now, struct log *log)
{
	struct config in_force = now->config;

	tell_fields(next, now, /* those_alone= */ false, log);
	tell_fields(now, next, /* those_alone= */ true, log);
	in_force.file = next->config.file;
	in_force.modules = next->config.modules;
	in_force.modules_n = next->config.modules_n;
	in_force.retain_runs_ms = next->config.retain_runs_ms;
	in_force.retain_batches_ms = next->config.retain_batches_ms;
	in_force.retain_jobs_ms = next->config.retain_jobs_ms;
	in_force.retain_bulks_ms = next->config.retain_bulks_ms;
	in_force.log_level = next->config.log_level;
	next->config = in_force;
}
