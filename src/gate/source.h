/*
 * Where in a request a value stands: what makes up a key, tells tenants and callers apart, or counts for a scope or a
 * fingerprint. Declared in the configuration as KIND:NAME; who reads requests (proxy/proxy_source.c) finds the value.
 *
 *   header:NAME    all fields of that name, joined as RFC 9110 (5.3) has it; in a key, one structured-field string
 *   cookie:NAME    the cookie of that name
 *   query:NAME     the parameter of that name, decoded
 *   path:N         the Nth segment of the path as it was sent, from 1
 *   json:/POINTER  a string or a number in the body
 *   jwt:CLAIM      a string or a number among the claims of the bearer token in Authorization, by its name or by a JSON
 *                  Pointer. The token is read and NOT verified: that is for whoever stands in front or behind
 */
#pragma once

#include "base/arena.h"
#include "base/slice.h"

#define GATE_SOURCE_SEGMENT_MAX 99
#define GATE_SOURCE_FORMS                                                                                              \
	"\"header:NAME\", \"cookie:NAME\", \"query:NAME\", \"path:N\", \"json:/POINTER\" or \"jwt:CLAIM\""

enum gate_source_kind {
	GATE_SOURCE_NONE,
	GATE_SOURCE_HEADER,
	GATE_SOURCE_COOKIE,
	GATE_SOURCE_QUERY,
	GATE_SOURCE_PATH,
	GATE_SOURCE_JSON,
	GATE_SOURCE_JWT,
};

struct gate_source {
	enum gate_source_kind kind;
	struct slice name; /* HEADER: in lower case; COOKIE, QUERY: as it is; JSON, JWT: a checked JSON Pointer */
	unsigned segment;  /* PATH */
	const char *text;  /* as it was written */
	const char *label; /* what it is called: of a header its name as it was written, of all else the text */
};

/* False: the text is none of these forms, or there is no memory (which the arena knows). */
bool gate_source_parse(struct slice text, struct arena *arena, struct gate_source *ret_source);
/* A name in lower case, copied. */
struct slice gate_keep_lower(struct arena *arena, struct slice text);
