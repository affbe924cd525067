/*
 * The outside world of a batch: a store of artifacts that knows keys. It lives in the test's process, so it outlives whoever
 * is killed.
 *
 *   /render   makes the artifact of the key, once: a later call with the key makes nothing and is answered as the first one was,
 *             also when the artifact was deleted meanwhile. A key that was voided is refused (410).
 *   /delete   deletes the artifact of the item that the body names; one that is not there: 404. A cleanup key that was answered
 *             before is answered from memory, and nothing is deleted then: so it is that services dedupe.
 *   /void     from now on the item's key makes nothing.
 *   /tell     the final totals of a batch. It never misbehaves: jobs are tested elsewhere.
 *
 * How it misbehaves is a matter of chance (artifacts_behave). Its effect is there at the beginning of a call or at its end,
 * after the hold of service_play().
 *
 * All functions may be called from any thread, and none fails the test, except where they say so.
 */
#ifndef HX_TESTS_SUPPORT_ARTIFACTS_H
#define HX_TESTS_SUPPORT_ARTIFACTS_H

#include "support/service.h"

/* In percent of the calls. */
struct artifacts_habits {
	unsigned fails;   /* 500, nothing done; of a delete or void only the first one of an artifact */
	unsigned refuses; /* 422, nothing done; renders only */
	unsigned drops;   /* no answer; with the effect or without */
	int64_t works_ms; /* a call takes up to this */
};

struct artifact {
	char key[64];
	bool made, there, voided;
	size_t calls;      /* of /render */
	size_t late_calls; /* of those: begun after the key was voided */
	size_t refused;    /* of those: answered with 410 */
	size_t deletes, voids;
};

struct artifacts;

/* From now on it plays the four paths of this service. `unnoted` as in struct play. */
struct artifacts *artifacts_new(struct service *service, bool unnoted);
/* The service is gone. Takes NULL. */
void artifacts_free(struct artifacts *artifacts);
/* Fails the test. */
void artifacts_behave(struct artifacts *artifacts, const struct artifacts_habits *habits);
/* Calls of this path from now on are answered after service_release(). Fails the test. */
void artifacts_hold(struct artifacts *artifacts, const char *path, bool hold);

/* By the key of an item. False: it was never heard of. */
bool artifacts_find(struct artifacts *artifacts, const char *key, struct artifact *ret);
/* Calls of this path so far, from their beginning on. */
size_t artifacts_begun(struct artifacts *artifacts, const char *path);
/* How many there are at this moment; how many were ever made, and calls for those that were made already. */
size_t artifacts_there(struct artifacts *artifacts);
size_t artifacts_made(struct artifacts *artifacts);
size_t artifacts_repeated(struct artifacts *artifacts);
/* Deletes of this batch that were begun, and those that were answered with 200 or 404. */
void artifacts_cleaned(struct artifacts *artifacts, const char *batch, size_t *ret_begun, size_t *ret_answered);
/* The last word on the end of a batch; empty: none. */
void artifacts_told(struct artifacts *artifacts, const char *batch, char *ret_body, size_t bytes);
/* Words on the first call that must never have been; NULL: there is none. */
const char *artifacts_wrong(struct artifacts *artifacts);

#endif
