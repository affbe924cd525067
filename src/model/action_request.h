/*
 * What an http action sends and keeps, where its definition says so: the API of a provider as it is, without an adapter.
 *
 *   "url": "https://api.example.com/v1", "method": "POST", "path": "/customers/{.input.customer}/charges",
 *   "query": { "expand": "\"source\"" }, "headers": { "X-Tenant": ".input.tenant" },
 *   "form": "{amount: .input.total, currency: \"eur\"}", "output": "{id: .body.id}"
 *
 * Whatever is not said is as in every call: POST, the address as it stands, and the envelope as the body. The expressions of a request
 * see the envelope (`.input`, `.data`, `.id` …) and `.key`. All of that is the same in every try under one key, and so is what is made
 * of it: that is why neither the attempt nor a time is among it. `output` sees `.status`, `.headers` and `.body` of a reply that is done.
 */
#pragma once

#include "model/expression.h"

#define REQUEST_HEADERS_MAX 32
#define REQUEST_PIECES_MAX 64

struct action_header {
	const char *name;
	const char *value; /* as written: ${env:NAME} and ${file:PATH} are filled in at the call, never stored */
	const struct expression *from; /* instead of a value */
};

/* A piece of a path: as it stands, or what an expression gives, percent-encoded. */
struct action_piece {
	const char *text;
	const struct expression *from;
};

struct action_request {
	const char *method; /* NULL: POST, or what an expression says */
	const struct expression *method_from;
	size_t path_n; /* "/orders/{.input.id}" */
	const struct action_piece *path;
	const struct expression *path_from; /* or a text, or an array of segments */
	const struct expression *query, *body, *form, *output;
	size_t headers_n;
	const struct action_header *headers;
	const struct expression *headers_from; /* or an object */
};

/* GET, HEAD, POST, PUT, PATCH, DELETE. */
bool request_method_is_known(struct slice method);
