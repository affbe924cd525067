/*
 * An external worker: claims jobs over HTTP, and says how they went. It has a name and a node that it speaks to, or a
 * caller that goes to whichever answers; one thread at a time. Nothing here fails the test.
 */
#ifndef HX_TESTS_SUPPORT_WORKER_H
#define HX_TESTS_SUPPORT_WORKER_H

#include "support/fleet.h"

#define WORKER_JOBS_MAX 100

/* A job in hand. */
struct worker_job {
	char id[40], key[200]; /* key: what makes its effect one */
	int64_t fence, attempt;
};

struct worker {
	struct client *client;
	struct caller *caller; /* not NULL: through this one, which is the test's */
	char name[40];
	const char *queue;
	int64_t lease_ms;
	struct worker_job jobs[WORKER_JOBS_MAX]; /* of the last claim */
	char wrong[400];                         /* the first answer that could not be right; empty: none */
};

void worker_init(struct worker *worker, int port, const char *name, const char *queue, int64_t lease_ms);
void worker_release(struct worker *worker);
/* Returns how many jobs it has got. An answer that is not one is noted as wrong. */
size_t worker_claim(struct worker *worker, size_t max, int64_t wait_ms);
/*
 * Says something on a job, "complete", "fail" or "heartbeat", under the worker's name and the fence of the claim; with more
 * members after them, such as ,"output":1 (or empty). Returns the status, and the problem's code (40 bytes, may be NULL).
 */
int worker_say(struct worker *worker, const struct worker_job *job, const char *verb, const char *more, char *ret_code);
void worker_note_wrong(struct worker *worker, const char *what, const struct reply *reply);

#endif
