/*
 * A definition is explored before it is put, PUT /definitions/{name}?explore=10s, or because somebody wants to know: the dashboard asks for
 * one that is in force, POST /definitions/{name}/explore.
 *
 * The simulator is no part of the API, nor of the library: who serves says how to explore (cli/explorer.h does it in a process of its
 * own). Where nobody does, what is asked to be explored is refused.
 */
#pragma once

#include "serve/router.h"

#define EXPLORE_MS_MIN 1000
#define EXPLORE_MS_MAX 60000

enum explored_verdict {
	EXPLORED_CLEAN,  /* all within the bounds, and no rule was broken */
	EXPLORED_BROKEN, /* the report tells how */
	EXPLORED_PART,   /* time was over: nothing was found until then; there may be no report */
	EXPLORED_NOT,    /* it is not valid, or nothing of it can be explored; no report */
	EXPLORED_FAILED, /* it could not be done: too much memory, the server stops; no report */
};

struct explored {
	enum explored_verdict verdict;
	struct slice report; /* the JSON of `hapax explore --json`; lives as long as the call of done */
};

/* What is to be explored; the text must live until it is done. */
struct explore_wish {
	struct slice text;
	int64_t ms;    /* at most for so long */
	bool suggests; /* changes that might help are tried as well */
};

struct explorer {
	/* done is called once, in any thread. HX_BUSY: one is being explored already, and done is not called. */
	enum hx_code (*begin)(struct explorer *explorer, const struct explore_wish *wish,
			      void (*done)(void *context, const struct explored *explored), void *context);
};

/*
 * What the query asks for: *ret_ms is 0 where nothing is. False after an answer: it is no such duration, or nobody explores here.
 */
bool api_explore_wanted(struct http_call *call, const char *parameter, int64_t *ret_ms);
/* Of the definition in force, ?for=10s: the report as it is, whatever was found. */
void api_definition_explore(struct http_call *call);
/* False after an answer: one is being explored already. */
bool api_explore_begin(struct http_call *call, const struct explore_wish *wish,
		       void (*done)(void *context, const struct explored *explored), void *context);
/* The story of a report as members of a problem: a finding with its line, and who did what. *ret_words for people, in the arena. */
void api_explore_members(struct slice report, struct arena *arena, struct strbuf *members, const char **ret_words);
