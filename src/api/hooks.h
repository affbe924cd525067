/* The hooks of a server: as the configuration declares them, with their secrets filled in. Immutable while it serves. */
#pragma once

#include "api/hook_signature.h"
#include "base/arena.h"
#include "model/config.h"

#define HOOK_BODY_BYTES_MAX (1u << 20)

struct hook {
	const struct hook_config *config;
	struct hook_keys keys;
};

struct hooks {
	size_t n;
	struct hook *list;
	struct arena arena;
};

/*
 * In zeroed memory; the configuration must outlive it. HX_CONFIG_ERROR, naming the hook and never a secret: one is empty, cannot be
 * read, or is of no form that its scheme has.
 */
enum hx_code hooks_init(struct hooks *hooks, const struct config *config, struct hx_error *err) HX_MUST_CHECK;
/* Safe on a zeroed struct. */
void hooks_release(struct hooks *hooks);
/* NULL: none of this name. */
const struct hook *hooks_find(const struct hooks *hooks, struct slice name);
