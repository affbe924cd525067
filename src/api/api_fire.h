/*
 * Jobs of the engine's own that fire a step of an entity (flow/hook.h): each is a call of our own API, from within, with the job's key as
 * its Idempotency-Key. So a delivery that is repeated, because a node died or an answer was lost, fires it once.
 */
#pragma once

#include "act/native.h"
#include "serve/server.h"

struct api_fire {
	_Atomic(struct http_server *) server; /* NULL: not yet, or no more */
};

/* A native function; its context is the struct api_fire. */
enum act_outcome api_fire(void *context, const struct native_call *call, struct strbuf *output);
