/*
 * load ADDRESS:PORT CONNECTIONS REQUESTS KEYS TARGET BODY [EXPECTED] : so many requests, as fast as they are answered.
 *
 * One thread, CONNECTIONS keep-alive connections, one request under way on each: POST TARGET with BODY and a key.
 *
 *   KEYS 0    no key at all                       plain HTTP, a pass-through
 *   KEYS -1   a new key for every request         created
 *   KEYS n    n keys in turn, each used once before the measurement begins      replayed
 *   KEYS nb   the same, with the key in the body alone (its "#")
 *
 * A "#" in BODY becomes the number of the key, so that each key has one body. Prints requests per second, and the median and
 * the 99th percentile of their latency in milliseconds. An answer that is not 2xx, does not contain EXPECTED, or with
 * KEYS n and nothing expected does not say that it is a replay, ends it with an error.
 */
#include "client.h"

static const char *target, *body, *expected;
static long keys;
static bool keys_in_body;
static unsigned long next_key;
static bool measuring;
static char run_id[32];

static void ask(struct client *c)
{
	unsigned long number = keys > 0 ? next_key++ % (unsigned long)keys : next_key++;
	static char text[REQUEST_BYTES];
	char digits[32], field[128] = "";
	size_t n = 0;

	snprintf(digits, sizeof digits, "%lu", number);
	for (const char *p = body; *p && n + sizeof digits < sizeof text; p++) {
		if (*p == '#') {
			memcpy(text + n, digits, strlen(digits));
			n += strlen(digits);
		} else {
			text[n++] = *p;
		}
	}
	text[n] = '\0';
	if (keys && !keys_in_body)
		snprintf(field, sizeof field, "Idempotency-Key: \"%s-%lu\"\r\n", run_id, number);
	client_post(c, target, field, text);
}

static void check_answer(const struct client *c)
{
	if (measuring && keys > 0 && !*expected && !strcasestr(c->answer, "\r\nidempotency-replayed: true\r\n"))
		client_die("this is no replay", c->answer);
	if (!strstr(c->body, expected))
		client_die("this was not expected", c->answer);
}

/* Seconds from the first request to the last answer; the latency of each in milliseconds. */
static double run(size_t connections, size_t requests, double *latencies)
{
	double begin = workload_seconds();
	size_t started = 0, done = 0;

	for (; started < connections && started < requests; started++)
		ask(&clients[started]);
	while (done < started) {
		struct client *c = client_next();

		check_answer(c);
		latencies[done++] = (c->answered_at - c->asked_at) * 1e3;
		if (started < requests) {
			started++;
			ask(c);
		}
	}
	return workload_seconds() - begin;
}

int main(int argc, char **argv)
{
	size_t connections, requests;
	double *latencies, seconds;
	char *rest;

	if (argc != 7 && argc != 8) {
		fprintf(stderr, "usage: load ADDRESS:PORT CONNECTIONS REQUESTS KEYS TARGET BODY [EXPECTED]\n");
		return 2;
	}
	connections = workload_number(argv[2], 1, CLIENTS_MAX);
	requests = workload_number(argv[3], 1, 100000000);
	keys = strtol(argv[4], &rest, 10);
	keys_in_body = *rest == 'b';
	target = argv[5];
	body = argv[6];
	expected = argc == 8 ? argv[7] : "";
	snprintf(run_id, sizeof run_id, "%lld-%d", (long long)workload_wall_ms(), (int)getpid());
	latencies = calloc(requests > (size_t)labs(keys) ? requests : (size_t)labs(keys), sizeof *latencies);
	if (!latencies)
		return 1;
	clients_connect(argv[1], connections);
	if (keys > 0)
		run(connections, (size_t)keys, latencies);
	measuring = true;
	seconds = run(connections, requests, latencies);
	workload_sort(latencies, requests);
	printf("%.0f %.3f %.3f\n", (double)requests / seconds, workload_share_below(latencies, requests, 0.50),
	       workload_share_below(latencies, requests, 0.99));
	free(latencies);
	return 0;
}
