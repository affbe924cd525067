/*
 * A definition is explored before it is put, or because somebody wants to know: PUT /definitions/{name}?explore=10s.
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
	EXPLORED_PART,   /* time was over: nothing was found until then, and there is no report */
	EXPLORED_NOT,    /* it is not valid, or nothing of it can be explored; no report */
	EXPLORED_FAILED, /* it could not be done: too much memory, the server stops; no report */
};

struct explored {
	enum explored_verdict verdict;
	struct slice report; /* the JSON of `hapax explore --json`; lives as long as the call of done */
};

struct explorer {
	/*
	 * At most for so long; done is called once, in any thread. HX_BUSY: one is being explored already, and done is not called. The text
	 * must live until then.
	 */
	enum hx_code (*begin)(struct explorer *explorer, struct slice text, int64_t ms,
			      void (*done)(void *context, const struct explored *explored), void *context);
};

/*
 * What the query asks for: *ret_ms is 0 where nothing is. False after an answer: it is no such duration, or nobody explores here.
 */
bool api_explore_wanted(struct http_call *call, int64_t *ret_ms);
/* The story of a report as members of a problem: a finding with its line, and who did what. *ret_words for people, in the arena. */
void api_explore_members(struct slice report, struct arena *arena, struct strbuf *members, const char **ret_words);
