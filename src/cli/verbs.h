/* What the rows of several verbs have in common; for the tables, verbs_*.c. */
#pragma once

#include "cli/command.h"
#include "cli/view.h"

/* clang-format off */

#define OPTION_JSON OPTION("json", NULL, "JSON instead of words")
#define OPTION_TIMEOUT \
	OPTION("timeout", "DURATION", "how long to wait for the answer", .env = "HAPAX_TIMEOUT", .fallback = "2m")
#define OPTION_CURSOR \
	OPTION("cursor", "CURSOR", "go on where the last page ended [default: from the first on]", TO(QUERY))
#define SEARCH_OPTIONS \
	OPTION("where", "CONDITION", "only those of which this is true: 'customer == \"c-1\" and total >= 100' [default: all]", TO(QUERY)), \
		OPTION("order", "NAME", "by createdAt or an attribute; with - before it the last first [default: -createdAt]", TO(QUERY))
#define PAGE_OPTIONS \
	OPTION("limit", "N", "at most so many, up to 500", TO(QUERY), .fallback = "50"), OPTION_CURSOR

/* clang-format on */
