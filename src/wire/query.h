/*
 * Percent-decoding, and the parameters of a query.
 *
 * Strict: an escape is "%" and two hex digits; what comes out is UTF-8 without NUL. A `+` in a query is a space, as
 * HTML forms write it; in a path it is a plus. Names and values are slices of the query where nothing was escaped,
 * otherwise of the arena.
 */
#pragma once

#include "base/arena.h"

#define QUERY_PARAMS_MAX 64

/* HX_VALIDATION_ERROR, or what the arena says. */
enum hx_code percent_decode(struct slice raw, bool plus_is_space, struct arena *arena, struct hx_error *err,
			    struct slice *ret_text) HX_MUST_CHECK;

struct query_param {
	struct slice name;
	struct slice value; /* empty for `?name` and `?name=` alike */
};

struct query {
	const struct query_param *params; /* in the order of the query, repeated ones too */
	size_t n;
};

/* `a=1&b=2`. Empty pieces between two & are skipped. HX_VALIDATION_ERROR also for more than QUERY_PARAMS_MAX. */
enum hx_code query_parse(struct slice raw, struct arena *arena, struct hx_error *err,
			 struct query *ret_query) HX_MUST_CHECK;

/* How many parameters have this name; *ret_value, if not NULL, is that of the first, and untouched if there is none. */
size_t query_find(const struct query *query, const char *name, struct slice *ret_value);
/* For a parameter that makes sense once: *ret_value has p NULL if it is absent; repeated: HX_VALIDATION_ERROR. */
enum hx_code query_get(const struct query *query, const char *name, struct hx_error *err,
		       struct slice *ret_value) HX_MUST_CHECK;
