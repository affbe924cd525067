/*
 * worker ADDRESS:PORT CONNECTIONS JOBS QUEUE : drains a queue over HTTP, as workers outside of the engine do.
 *
 * Each connection is a worker: it claims up to CLAIM_MAX jobs in one request, completes one after the other, and claims
 * again. Prints the jobs that were completed in a second.
 */
#include "client.h"

#define CLAIM_MAX 100

/* What is left of a worker's last claim. */
struct worker {
	char answer[ANSWER_BYTES];
	char *next; /* in the answer; NULL: nothing */
};

static struct worker workers[CLIENTS_MAX];
static const char *queue;

static void claim(struct client *c)
{
	char body[256];

	snprintf(body, sizeof body, "{\"queues\":[\"%s\"],\"owner\":\"worker-%zu\",\"max\":%d,\"waitMs\":1000}", queue,
		 (size_t)(c - clients), CLAIM_MAX);
	client_post(c, "/api/v1/jobs/claim", "", body);
}

/* The next job of the claim is done. False: there is none left. */
static bool complete(struct client *c)
{
	struct worker *w = &workers[c - clients];
	char *id = w->next ? strstr(w->next, "\"id\":\"") : NULL;
	char *fence = id ? strstr(id, "\"fence\":") : NULL;
	char target[128], body[128];

	if (!fence)
		return false;
	w->next = fence;
	id += 6;
	snprintf(target, sizeof target, "/api/v1/jobs/%.*s/complete", (int)strcspn(id, "\""), id);
	snprintf(body, sizeof body, "{\"owner\":\"worker-%zu\",\"fence\":%ld}", (size_t)(c - clients),
		 strtol(fence + 8, NULL, 10));
	client_post(c, target, "", body);
	return true;
}

/* Of a claim: it is kept while its jobs are completed. */
static void keep_claimed(struct client *c)
{
	struct worker *w = &workers[c - clients];

	snprintf(w->answer, sizeof w->answer, "%s", c->body);
	w->next = w->answer;
}

int main(int argc, char **argv)
{
	size_t jobs, done = 0;
	double begin;

	if (argc != 5) {
		fprintf(stderr, "usage: worker ADDRESS:PORT CONNECTIONS JOBS QUEUE\n");
		return 2;
	}
	clients_connect(argv[1], workload_number(argv[2], 1, CLIENTS_MAX));
	jobs = workload_number(argv[3], 1, 100000000);
	queue = argv[4];
	begin = workload_seconds();
	for (size_t i = 0; i < clients_n; i++)
		claim(&clients[i]);
	while (done < jobs) {
		struct client *c = client_next();

		if (strstr(c->body, "\"jobs\":"))
			keep_claimed(c);
		else
			done++;
		if (!complete(c))
			claim(c);
	}
	printf("%.0f\n", (double)done / (workload_seconds() - begin));
	return 0;
}
