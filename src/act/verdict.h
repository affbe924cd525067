/*
 * What a call came to: the one place where answers of the outside world become outcomes.
 *
 *   http                                                outcome
 *   nothing was sent (no address, no connection)        FAILED, or FAILED_FOR_GOOD when that cannot change
 *   no whole reply, or a broken one                     UNKNOWN
 *   a whole one                                         by its status: the table of status.h
 *
 * The body of one that says done:
 *   none                                                OK, output null
 *   JSON, declared or not, "is_invalid": true at its top  INVALID
 *   other JSON                                          OK
 *   declared as JSON, and broken                        UNKNOWN: something was done, but what came back is broken
 *   other text                                          OK, output {"text": …}
 *   bytes that are not UTF-8                            OK, output {"base64": …}
 *
 * The output of OK and INVALID is JSON, that of the others is words for people: printable, short, in UTF-8.
 */
#pragma once

#include "base/strbuf.h"
#include "model/outcomes.h"
#include "task/task.h"

#define VERDICT_WORDS_MAX 2000
#define VERDICT_SHOWN_MAX 300                /* bytes that are shown of what a service said */
#define VERDICT_OUTPUT_BYTES_MAX (16u << 20) /* of a reply, or of what a program prints */

struct verdict {
	enum act_outcome outcome;
	struct slice output; /* in the words, in what was made of the text that was judged, in that text, or constant */
	int64_t not_before_ms; /* no further try for so long from now on; 0: nothing was said */
};

/* One http call, after the fact. */
struct reply {
	bool sent;     /* the request, or a part of it, may have reached the other side */
	bool hopeless; /* with nothing sent: it will be the same the next time */
	bool complete; /* a whole reply was read */
	bool unknown_on_5xx;
	bool gone_is_done;
	bool keyed, in_doubt;            /* the action is keyed; an earlier try under its key is in doubt */
	bool declares_json;              /* by its Content-Type */
	bool tells_when;                 /* it has a Retry-After */
	int64_t not_before_ms;           /* which says this */
	const struct outcomes *outcomes; /* the action's own; NULL: none */
	const char *fault;               /* unless complete: why there is no reply */
	long status;
	struct slice body;   /* of a complete reply; of an error at least the beginning */
	struct strbuf *made; /* for an output that has to be made of it, up to VERDICT_OUTPUT_BYTES_MAX */
};

struct verdict verdict_of_reply(const struct reply *reply, struct strbuf *words);
/* Is the body of such a reply kept whole? Of all others the beginning will do, for the words. */
bool verdict_reads_body(const struct outcomes *outcomes, long status);
/* What an action that says it is done gave back: JSON, a rejection, nothing, or something broken. */
struct verdict verdict_of_output(struct slice text, struct strbuf *words);
/* What an action that says it rejects gave as its reason. Whatever it is, the output is JSON. */
struct verdict verdict_of_rejection(struct slice text, struct strbuf *words);

/*
 * Nothing was sent, and never will be as things are. That is an answer only where nothing was sent before: of an earlier try under the same
 * key it says nothing.
 */
enum act_outcome verdict_never_sent(const struct act_call *call);

/* Everything else is said in words. */
struct verdict verdict_say(enum act_outcome outcome, struct strbuf *words, const char *format, ...) HX_PRINTF(3, 4);
/* Appends foreign text, made printable; "..." is where it was cut to shown_max bytes. */
void verdict_show(struct strbuf *words, struct slice foreign, size_t shown_max);
