/*
 * Errors as the outside sees them: application/problem+json (RFC 9457), made of a code of hapax.h and a detail.
 *
 *	{"type":"urn:hapax:problem:CLAIM_FAILED","title":"another operation is already in progress",
 *	 "status":409,"detail":"invoice 7 is being closed","code":"CLAIM_FAILED"}
 *
 * 409, 429 and 503 carry Retry-After.
 */
#pragma once

#include "serve/server.h"

#define PROBLEM_RETRY_AFTER_S 1
#define PROBLEM_RETRY_LATE_S 60 /* where nothing changes for a long time */

struct problem {
	enum hx_code code;       /* the status is the code's */
	struct slice detail;     /* any bytes; empty: the title says it all, and is repeated here */
	struct slice members;    /* more members as JSON, `"findings":[…]`; empty: none */
	unsigned retry_after_s;  /* 0: PROBLEM_RETRY_AFTER_S where one is due */
	struct wire_field field; /* one more for the head; its texts live as long as the arena. Name empty: none */
};

/* Its JSON. Appends. */
void problem_write(const struct problem *problem, struct strbuf *text);
/* The answer, with its texts in the arena. Without memory it is the bare status. */
void problem_answer(const struct problem *problem, struct arena *arena, struct http_answer *ret_answer);

/* Answers with it; as http_respond(). */
void http_respond_problem(struct http_exchange *exchange, const struct problem *problem);
/* The same for a code and a detail (NULL: none), and for what a call has left in its error. */
void http_respond_code(struct http_exchange *exchange, enum hx_code code, const char *detail);
void http_respond_error(struct http_exchange *exchange, const struct hx_error *err);
