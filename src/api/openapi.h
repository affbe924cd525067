/*
 * The API, described in OpenAPI 3.1: GET /api/v1/openapi.json. Paths, operations, parameters, bodies, answers and the
 * codes that each can answer come from the table of routes (api_routes.c) and the list of codes (hapax.h); schemas, and
 * words for people, from openapi.json, which becomes part of the program.
 *
 * docs/api-reference.md is made out of the document (scripts/api-reference.py).
 */
#pragma once

#include "base/packed.h"
#include "base/strbuf.h"
#include "serve/router.h"

#define OPENAPI_BYTES_MAX (1u << 20)

/* openapi.json, as it was written. */
extern const struct packed openapi_words;

/* What stands in front of the route included, but not what is refused before one is found. */
bool openapi_can_answer(const struct route *route, enum hx_code code);
/* A route that names a schema that is not there, or has no id, is a programmer's mistake. Look at text->failed. */
void openapi_write(const struct route routes[], size_t n, struct strbuf *text);

void api_openapi(struct http_call *call);
