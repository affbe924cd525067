/*
 * The value of a source (gate/source.h) in one request. Nothing but the query, the token and the body's strings is decoded.
 *
 * A value is there, absent, or not certain: a parameter or a cookie that is there twice, a query or a body that others may
 * read in another way. What is not certain is never guessed: the upstream might have guessed otherwise.
 */
#pragma once

#include "gate/source.h"
#include "serve/server.h"

/*
 * The value, in the arena or in the request; p NULL: absent. HX_KEY_INVALID: not certain, with the reason. HX_NO_MEMORY,
 * HX_TOO_LARGE: the arena is full.
 */
enum hx_code proxy_source_value(const struct gate_source *source, const struct http_request *request,
				struct arena *arena, struct hx_error *err, struct slice *ret_value) HX_MUST_CHECK;
/* The same where a doubt is no reason to refuse: then all of what it stands in is the value. */
enum hx_code proxy_source_whole(const struct gate_source *source, const struct http_request *request,
				struct arena *arena, struct hx_error *err, struct slice *ret_value) HX_MUST_CHECK;
/* The values of all fields of this name, in their order. NULL: no memory. */
struct slice *proxy_field_values(struct wire_fields fields, struct slice name, struct arena *arena, size_t *ret_n);
/* The values of a name as one, as RFC 9110 (5.3) joins them. p NULL: there is no such field, or (the arena knows) no memory. */
struct slice proxy_field_joined(struct wire_fields fields, struct slice name, struct arena *arena);
