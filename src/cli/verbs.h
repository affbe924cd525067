/* What the rows of several verbs have in common; for the tables, verbs_*.c. */
#ifndef HX_CLI_VERBS_H
#define HX_CLI_VERBS_H

#include "cli/command.h"
#include "cli/view.h"

/* clang-format off */

#define OPTION_JSON OPTION("json", NULL, "JSON instead of words")
#define OPTION_TIMEOUT OPTION("timeout", "DURATION", "how long to wait for the answer", .env = "HAPAX_TIMEOUT", .fallback = "2m")
#define OPTION_LIMIT OPTION("limit", "N", "at most so many, up to 500", TO(QUERY), .fallback = "50")
#define OPTION_CURSOR OPTION("cursor", "CURSOR", "go on where the last page ended [default: from the first on]", TO(QUERY))

/* The key of a server is not among them: what stands on a command line can be read by everybody on the machine. */
#define CLIENT_OPTIONS                                                                                                 \
	OPTION("server", "URL", "the server to ask, http:// or https://",                                              \
	       .env = "HAPAX_SERVER", .fallback = "http://127.0.0.1:7411"),                                            \
	OPTION("key-file", "FILE", "a file with an API key, - is standard input [default: the key in HAPAX_KEY]"),     \
	OPTION("workspace", "NAME", "the workspace that this is about [default: the key's, without a key default]",    \
	       TO(HEADER, "Hapax-Workspace"), .env = "HAPAX_WORKSPACE"),                                           \
	OPTION("requester", "NAME", "on whose behalf [default: the key's, without a key default]",                     \
	       TO(HEADER, "Hapax-Requester"), .env = "HAPAX_REQUESTER"),                                           \
	OPTION_TIMEOUT, OPTION_JSON
#define PAGE_OPTIONS OPTION_LIMIT, OPTION_CURSOR
#define CLIENT_EXITS                                                                                                   \
	{HX_UNAUTHENTICATED, "the server wants an API key, or this one may not do that"},                              \
	{HX_NOT_FOUND, "there is no such thing here"},                                                                 \
	{HX_TOO_LARGE, "it is too large"},                                                                             \
	{HX_OUTCOME_UNKNOWN, "it is not known whether this took effect"},                                              \
	{HX_SERVER_UNAVAILABLE, "no server can be reached, or it cannot reach its store; nothing was done"},           \
	{HX_BUSY, "the server has too much to do, or is stopping; nothing was done"},                                  \
	{HX_BAD_GATEWAY, "what answers is no hapax server"}

/* clang-format on */

#endif
