/*
 * Waiting for a run or a batch to end (flow/end_wait.h), for a client that asked with `wait`. It takes a seat in a lane, and no
 * thread; that the client has gone, or that the server stops, is noticed when it looks.
 */
#pragma once

#include "api/api.h"
#include "engine/runs.h"
#include "flow/end_wait.h"

#define API_WAIT_MS_MAX 300000

#define API_WAIT_NEW 1

struct api_wait;

/* What is waited for. */
struct api_wait_kind {
	void (*read)(struct unit *unit, struct slice workspace, int64_t subject);
	/* What was read, into text, status, version and over. */
	enum hx_code (*show)(struct api_wait *wait, const struct unit_result *result);
	/* By its status alone; NULL: only a read can tell. */
	bool (*has_ended)(struct slice status);
	int64_t (*topic)(int64_t subject);
	/* The same without a read: of one with `known`, when the waiting itself has failed. */
	void (*show_known)(struct api_wait *wait);
	/* What a problem with this code says; NULL: the code says it all. */
	const char *(*detail)(enum hx_code code);
};

/* Of the end of what has a status: told by the topic of its subject, and by its row. */
#define API_WAIT_END(read_, show_, has_ended_, show_known_, detail_)                                                   \
	{                                                                                                              \
		read_, show_, has_ended_, subject_end_topic, show_known_, detail_                                      \
	}

/* What stands before `text` is whoever's waits. */
struct api_wait {
	struct seat seat;
	struct end_wait wait;
	const struct api_wait_kind *kind;
	struct http_call *call;
	int64_t subject;
	int64_t wait_ms;
	int wrap;          /* how it is told: the kind's own words, of which API_WAIT_NEW says that it was created */
	const void *known; /* NULL, or what is told if the waiting fails. Lives as long as the exchange */
	bool begun;        /* it was created just now: nothing is to be found out by reading it */
	uint64_t lane;     /* by whose hash it waits; 0: the subject's */
	struct run_watch watch; /* of a run that is driven in that lane: shows it, and sets `over` of both */
	/* What is told. */
	struct strbuf text;
	int status;
	int64_t version; /* 0: no ETag */
	bool over;       /* its end has come */
};

/* `wait` of the query; 0: there is none. False after answering 400. */
bool api_wait_parse(struct http_call *call, int64_t *ret_ms);
/*
 * Answers the call, at the latest after wait_ms; 0: as it is now. What is asked for is the call, the kind, the subject and what
 * follows it in the struct; it is copied.
 */
void api_wait_start(const struct api_wait *asked);
