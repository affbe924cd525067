/* See described.h. */
#include "support/described.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "api/openapi.h"

/* By segments; {name} stands for any that is not empty. Returns how many are literal, -1: it does not fit. */
static int literals_that_fit(const char *pattern, const char *path)
{
	int literals = 0;

	while (*pattern == '/' && *path == '/') {
		size_t wanted_n = strcspn(++pattern, "/"), n = strcspn(++path, "/?");
		bool is_param = *pattern == '{';

		if (is_param ? n == 0 : n != wanted_n || memcmp(pattern, path, n) != 0)
			return -1;
		literals += !is_param;
		pattern += wanted_n;
		path += n;
	}
	return *pattern || (*path && *path != '?') ? -1 : literals;
}

static const struct route *route_of(const char *method, const char *path)
{
	const char *served_by = strcmp(method, "HEAD") == 0 ? "GET" : method;
	const struct route *best = NULL;
	size_t n;
	const struct route *routes = api_routes(&n);
	int most = -1;

	for (size_t i = 0; i < n; i++) {
		int literals = strcmp(routes[i].method, served_by) == 0 ? literals_that_fit(routes[i].pattern, path)
									: -1;

		if (literals > most) {
			most = literals;
			best = &routes[i];
		}
	}
	return best;
}

static bool succeeds_with(const struct route *route, int status)
{
	for (size_t i = 0; i < ROUTE_ANSWERS_MAX && route->answers[i].status; i++)
		if (route->answers[i].status == status)
			return true;
	return false;
}

/* What the server says before a route is asked. */
static bool is_of_the_server(enum hx_code code)
{
	return code == HX_BAD_REQUEST || code == HX_REQUEST_TIMEOUT || code == HX_URI_TOO_LONG ||
	       code == HX_UNSUPPORTED_ENCODING || code == HX_EXPECTATION_FAILED || code == HX_HEAD_TOO_LARGE ||
	       code == HX_VERSION_NOT_SUPPORTED;
}

static bool can_fail_with(const struct route *route, const char *name)
{
	for (int code = HX_OK + 1; code < HX_CODE_COUNT; code++)
		if (strcmp(hx_code_name(code), name) == 0)
			return is_of_the_server(code) || openapi_can_answer(route, code);
	return false;
}

void described_check(const char *method, const char *path, int status, const char *code)
{
	const struct route *route = route_of(method, path);

	if (!route || route->scope == ROUTE_PUBLIC ||
	    (*code ? can_fail_with(route, code) : succeeds_with(route, status)))
		return;
	fprintf(stderr, "%s %s: %d %s is not described (src/api/api_routes.c)\n", method, path, status, code);
	abort();
}
