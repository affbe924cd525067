/*
 * pickup PUSH_ADDRESS:PORT CLAIM_ADDRESS:PORT TIMES DELAY_MS : how long a due job waits for a worker that waits for it.
 *
 * A worker's claim waits at the one address; a job is pushed at the other, which may be another node. With DELAY_MS 0 it is due
 * at once, and the time counts from its being durable, which is when its push is answered; otherwise from the moment
 * at which it falls due. It ends when the worker has the job, claimed and durable. One at a time, on an idle system.
 * Prints the median and the 99th percentile in milliseconds.
 */
#include "client.h"

#define TIMES_MAX 100000
#define SETTLE_MS 20 /* in which a claim comes to its rest */

static void rest(long ms)
{
	struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};

	nanosleep(&t, NULL);
}

static double wall_seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* When it is due, in the time of workload_seconds(); 0: at once. */
static double push(struct client *c, long delay_ms)
{
	int64_t due_ms = workload_wall_ms() + delay_ms;
	time_t seconds = (time_t)(due_ms / 1000);
	char body[128], text[32];
	struct tm tm;

	if (!delay_ms) {
		client_post(c, "/api/v1/jobs", "", "{\"queue\":\"pickup\"}");
		return 0;
	}
	gmtime_r(&seconds, &tm);
	strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(body, sizeof body, "{\"queue\":\"pickup\",\"runAt\":\"%s.%03dZ\"}", text, (int)(due_ms % 1000));
	client_post(c, "/api/v1/jobs", "", body);
	return workload_seconds() + ((double)due_ms / 1e3 - wall_seconds());
}

static double measure(struct client *pusher, struct client *worker, long delay_ms)
{
	double due_at;

	client_post(worker, "/api/v1/jobs/claim", "",
		    "{\"queues\":[\"pickup\"],\"owner\":\"pickup\",\"leaseMs\":3600000,\"waitMs\":30000}");
	rest(SETTLE_MS);
	due_at = push(pusher, delay_ms);
	for (int answers = 0; answers < 2; answers++)
		client_next();
	if (!strstr(worker->body, "\"id\":\""))
		client_die("claim", worker->body);
	if (!delay_ms)
		due_at = pusher->answered_at;
	/* Both answers travel: on the same node the claim's may even be read first. */
	return worker->answered_at > due_at ? (worker->answered_at - due_at) * 1e3 : 0;
}

int main(int argc, char **argv)
{
	static double waits[TIMES_MAX];
	struct client *pusher, *worker;
	size_t times;
	long delay_ms;

	if (argc != 5) {
		fprintf(stderr, "usage: pickup PUSH_ADDRESS:PORT CLAIM_ADDRESS:PORT TIMES DELAY_MS\n");
		return 2;
	}
	pusher = clients_connect(argv[1], 1);
	worker = clients_connect(argv[2], 1);
	times = workload_number(argv[3], 1, TIMES_MAX);
	delay_ms = (long)workload_number(argv[4], 0, 1000);
	for (size_t i = 0; i < times; i++)
		waits[i] = measure(pusher, worker, delay_ms);
	workload_sort(waits, times);
	printf("%.3f %.3f\n", workload_share_below(waits, times, 0.50), workload_share_below(waits, times, 0.99));
	return 0;
}
