/*
 * One http call: the request that it makes, the reply that it gathers, and what is known about both.
 *
 *   transfer_new()    address taken apart, headers filled in; or the reason why this call can never be made
 *   … wire/upstream   the call, which is sent once; the reply is gathered within its ceiling
 *   transfer_judge()  how it ended and what was replied become an outcome
 *
 * Used by the thread of its loop alone.
 */
#pragma once

#include "act/http.h"
#include "act/secret.h"
#include "base/arena.h"
#include "base/strbuf.h"
#include "wire/upstream.h"

#define TRANSFER_HEAD_BYTES_MAX 65536 /* of the head of a reply (wire/upstream_answer.c) */
#define TRANSFER_ERROR_BODY_MAX 65536 /* so much is kept of a reply that is no success */

struct transfer {
	struct upstream_call call;
	struct job *job;
	void *home;          /* http.c's */
	struct slice origin; /* of the action's url: scheme, host and port */
	bool secure;
	struct secrets secrets;
	struct arena arena;
	struct strbuf body; /* of the request, where the action shapes it */
	struct strbuf reply;
	struct strbuf made; /* of a reply that is no JSON, or where the action shapes its output */
	bool keeps_whole;   /* the reply */
	bool reply_too_long;
	struct transfer *next, **slot; /* http.c's list */
};

/* HX_CONFIG_ERROR: this call can never be made (the detail says why, without values); HX_NO_MEMORY. */
enum hx_code transfer_new(struct job *job, const struct http_options *options, struct transfer **ret_transfer,
			  struct hx_error *err) HX_MUST_CHECK;
/* Overwrites the secrets in its request. While the job is there. */
void transfer_wipe(struct transfer *transfer);
/* Its call is over, or was never begun, and it is wiped. Takes NULL and half-built ones. */
void transfer_free(struct transfer *transfer);

/* After the call's end. The output is in the words or in the transfer. */
struct verdict transfer_judge(struct transfer *transfer, enum upstream_end end, struct strbuf *words);
