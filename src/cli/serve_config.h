/*
 * The configuration of a server over its life: read at the start, and again with each reload.
 *
 *   changes while it runs    modules, retention
 *   with a restart only      all other fields: they are settled at the start, and one that is said in another way is told by name;
 *                            what is in force stays in force, all of it
 *
 * A configuration that has been in force is kept as long as the process lives: tasks and janitors point into it.
 */
#pragma once

#include "base/log.h"
#include "base/strbuf.h"
#include "model/config.h"

struct serve_config {
	struct config config;
	struct arena arena;
	struct strbuf text; /* as the file has it; empty: there is none */
	struct serve_config *before;
};

/* NULL: no memory. What is wrong with it stands in the findings. */
struct serve_config *serve_config_load(const char *path, struct findings *findings);
/* With all that were before it. Takes NULL. */
void serve_config_free(struct serve_config *config);
/* Makes the next one fit to be taken into force after `now`, and tells of fields that it wants otherwise in vain. */
void serve_config_settle(struct serve_config *next, const struct serve_config *now, struct log *log);
