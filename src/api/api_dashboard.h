/*
 * The dashboard: a page at `/`, and what it is made of at `/ui/…`. The files of web/ are part of the program (scripts/embed-web.sh),
 * compressed as they are sent. They are the same for everybody, and hold nothing of any workspace: whoever may see what is the API's
 * to say, whose client the page is, like any other.
 *
 * Every URL in them is relative, so that all of it may stand under a prefix of somebody's proxy.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "serve/router.h"

struct web_file {
	const char *name; /* as it follows "/ui/" */
	const char *type;
	const char *etag;
	bool gzip; /* the bytes are */
	const unsigned char *bytes;
	size_t n;
};
extern const struct web_file web_files[];
extern const size_t web_files_n;

#define DASHBOARD_ROUTES 3
/* They are no part of the API, and not in its reference. */
extern const struct route api_dashboard_routes[DASHBOARD_ROUTES];
