/* What the rows of several verbs have in common; for the tables, verbs_*.c. */
#pragma once

#include "cli/command.h"
#include "cli/view.h"

/* clang-format off */

SHARED_OPTION(option_json, "json", NULL, "JSON instead of words");
#define OPTION_JSON (&option_json)
#define OPTION_TIMEOUT \
	OPTION("timeout", "DURATION", "how long to wait for the answer", .env = "HAPAX_TIMEOUT", .fallback = "2m")
SHARED_OPTION(option_cursor, "cursor", "CURSOR", "go on where the last page ended [default: from the first on]", TO(QUERY));
#define OPTION_CURSOR (&option_cursor)
#define SEARCH_OPTIONS \
	OPTION("where", "CONDITION", "only those of which this is true: 'customer == \"c-1\" and total >= 100' [default: all]", TO(QUERY)), \
		OPTION("order", "NAME", "by createdAt or an attribute; with - before it the last first [default: -createdAt]", TO(QUERY))
SHARED_OPTION(option_limit, "limit", "N", "at most so many, up to 500", TO(QUERY), .fallback = "50");
#define PAGE_OPTIONS (&option_limit), OPTION_CURSOR

/* clang-format on */
