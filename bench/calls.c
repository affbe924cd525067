/*
 * calls URL UNDER_WAY CALLS : so many http calls through the action port, UNDER_WAY at a time, with nothing around them:
 * no store, no lane. Prints what one costs this process, in microseconds of CPU, and how many there were in a second.
 *
 * The cost is what is looked at. It is the same on a busy machine, and must not grow with the number that is under way.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "act/port.h"
#include "workload.h"

static struct {
	pthread_mutex_t mutex;
	pthread_cond_t done;
	struct port *port;
	struct action action;
	uint64_t started, answered, all;
} bench = {.mutex = PTHREAD_MUTEX_INITIALIZER, .done = PTHREAD_COND_INITIALIZER};

static void start(uint64_t number)
{
	struct act_call call = {
		.action = &bench.action,
		.input = slice_str("{\"workflow\":\"bench\",\"id\":\"run-1\",\"step\":\"one\",\"attempt\":1,"
				   "\"input\":{\"a\":1},\"data\":{}}"),
		.key = slice_str("run-1/one"),
		.attempt = 1};

	port_act(bench.port)->start(port_act(bench.port), &call, (struct ticket){NULL, number});
}

/* Each answer begins the next call, in the thread that brought it. */
static void answered(struct ticket ticket, enum act_outcome outcome, struct slice output, int64_t not_before_ms)
{
	uint64_t next = 0;

	(void)ticket;
	(void)not_before_ms;
	if (outcome != ACT_OK) {
		fprintf(stderr, "calls: %s: %.*s\n", act_outcome_name(outcome), SLICE_ARGS(output));
		exit(1);
	}
	pthread_mutex_lock(&bench.mutex);
	if (bench.started < bench.all)
		next = ++bench.started;
	if (++bench.answered == bench.all)
		pthread_cond_signal(&bench.done);
	pthread_mutex_unlock(&bench.mutex);
	if (next)
		start(next);
}

static void run(uint64_t under_way, uint64_t calls)
{
	pthread_mutex_lock(&bench.mutex);
	bench.answered = 0;
	bench.all = calls;
	bench.started = under_way < calls ? under_way : calls;
	pthread_mutex_unlock(&bench.mutex);
	for (uint64_t i = 1; i <= under_way && i <= calls; i++)
		start(i);
	pthread_mutex_lock(&bench.mutex);
	while (bench.answered < calls)
		pthread_cond_wait(&bench.done, &bench.mutex);
	pthread_mutex_unlock(&bench.mutex);
}

static double cpu_seconds(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
	       (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

int main(int argc, char **argv)
{
	static struct outbound outbound;
	uint64_t under_way = argc == 4 ? strtoull(argv[2], NULL, 10) : 0,
		 calls = argc == 4 ? strtoull(argv[3], NULL, 10) : 0;
	struct hx_error err;
	double cpu, wall;

	if (!under_way || !calls) {
		fprintf(stderr, "usage: calls URL UNDER_WAY CALLS\n");
		return 2;
	}
	outbound_init(&outbound, /* loopback= */ true);
	bench.action = (struct action){.name = "echo",
				       .workflow = "bench",
				       .kind = ACTION_HTTP,
				       .effect = EFFECT_KEYED,
				       .timeout_ms = 60000,
				       .url = argv[1]};
	if (port_new(&(struct port_options){.http_slots = under_way, .outbound = &outbound, .answer = answered},
		     &bench.port, &err)) {
		fprintf(stderr, "calls: %s\n", err.detail);
		return 1;
	}
	run(under_way, 2 * under_way); /* the connections are there */
	cpu = cpu_seconds();
	wall = workload_seconds();
	run(under_way, calls);
	cpu = cpu_seconds() - cpu;
	wall = workload_seconds() - wall;
	port_free(bench.port);
	printf("%.1f us of CPU for a call, %.0f calls/s with %llu under way\n", cpu * 1e6 / (double)calls,
	       (double)calls / wall, (unsigned long long)under_way);
	return 0;
}
