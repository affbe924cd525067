/*
 * What a call came to: the one place where answers of the outside world become outcomes.
 *
 *   http                                                outcome
 *   nothing was sent (no address, no connection)        FAILED, or FAILED_FOR_GOOD when that cannot change
 *   no whole reply, or a broken one                     UNKNOWN
 *   2xx   no body                                       OK, output null
 *         JSON with "is_invalid": true at the top       INVALID
 *         other JSON                                    OK
 *         anything else                                 UNKNOWN: something was done, but what came back is broken
 *   404, 410 of an action whose gone_is_done            OK, output null
 *   422, other 4xx with "is_invalid": true              INVALID
 *   other 4xx, 3xx (never followed)                     FAILED_FOR_GOOD
 *   5xx                                                 FAILED; UNKNOWN for services that may fail after acting
 *   any other number                                    UNKNOWN
 *
 * The output of OK and INVALID is JSON, that of the others is words for people: printable, short, in UTF-8.
 */
#ifndef HX_ACT_VERDICT_H
#define HX_ACT_VERDICT_H

#include "base/strbuf.h"
#include "task/task.h"

#define VERDICT_WORDS_MAX 2000
#define VERDICT_SHOWN_MAX 300                /* bytes that are shown of what a service said */
#define VERDICT_OUTPUT_BYTES_MAX (16u << 20) /* of a reply, or of what a program prints */

struct verdict {
	enum act_outcome outcome;
	struct slice output; /* in the words, in the text that was judged, or constant */
};

/* One http call, after the fact. */
struct reply {
	bool sent;     /* the request, or a part of it, may have reached the other side */
	bool hopeless; /* with nothing sent: it will be the same the next time */
	bool complete; /* a whole reply was read */
	bool unknown_on_5xx;
	bool gone_is_done;
	const char *fault; /* unless complete: why there is no reply */
	long status;
	struct slice body; /* of a complete reply; of an error at least the beginning */
};

struct verdict verdict_of_reply(const struct reply *reply, struct strbuf *words);
/* What an action that says it is done gave back: JSON, a rejection, nothing, or something broken. */
struct verdict verdict_of_output(struct slice text, struct strbuf *words);
/* What an action that says it rejects gave as its reason. Whatever it is, the output is JSON. */
struct verdict verdict_of_rejection(struct slice text, struct strbuf *words);

/* Everything else is said in words. */
struct verdict verdict_say(enum act_outcome outcome, struct strbuf *words, const char *format, ...) HX_PRINTF(3, 4);
/* Appends foreign text, made printable; "..." is where it was cut to shown_max bytes. */
void verdict_show(struct strbuf *words, struct slice foreign, size_t shown_max);

#endif
