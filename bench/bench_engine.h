/*
 * An engine as `hapax serve` starts one, with native actions: reserve, charge and ship are the steps of a run, mail is an
 * after-effect. Each does next to nothing, so that what is measured is the engine.
 */
#ifndef BENCH_ENGINE_H
#define BENCH_ENGINE_H

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "act/native.h"
#include "db/sqlite_memory.h"
#include "engine/engine.h"

#define BENCH_DRAIN_MS 10000

static inline enum act_outcome bench_native(void *context, const struct native_call *call, struct strbuf *output)
{
	(void)context;
	strbuf_addf(output, "{\"attempt\":%lld,\"receipt\":\"%.*s\"}", (long long)call->attempt, (int)call->key.n,
		    call->key.p);
	return ACT_OK;
}

static inline _Noreturn void bench_die(const char *what, const struct hx_error *err)
{
	fprintf(stderr, "%s: %s\n", what, err->detail);
	exit(1);
}

/* Never returns NULL. Everything that the engine borrows lives as long as the program. */
static inline struct engine *bench_engine_new(const char *url, const char *workflows, const char *node)
{
	static const char *const names[] = {"reserve", "charge", "ship", "mail"};
	static struct natives natives;
	static struct config config;
	static struct log log;
	struct engine_options options = {
		.db_url = url,
		.node = node,
		.lanes_n = lanes_wanted(),
		.workflows_dir = workflows,
		.config = &config,
		.loopback_allowed = true,
		.natives = &natives,
		.clock = clock_system(),
		.log = &log,
	};
	struct findings findings;
	struct engine *engine;
	struct hx_error err;
	struct arena arena;

	sqlite_memory_own(); /* as in main.c */
	config_init(&config);
	log_init(&log, STDERR_FILENO, LOG_LEVEL_WARN, options.clock);
	arena_init(&arena, 64u << 20);
	findings_init(&findings, &arena);
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (natives_add(&natives, names[i], bench_native, NULL, &err))
			bench_die(names[i], &err);
	if (engine_new(&options, &findings, &engine, &err)) {
		findings_print(&findings, stderr);
		bench_die("engine", &err);
	}
	arena_release(&arena);
	return engine;
}

#endif
