/*
 * The other side of an action port in tests: hands calls in, waits for answers with a deadline.
 *
 * A ticket's lane is opaque to the port, so here it is the desk itself.
 */
#ifndef HX_TESTS_ACT_DESK_H
#define HX_TESTS_ACT_DESK_H

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

#include "act/port.h"
#include "model/action.h"

#define DESK_ANSWERS_MAX 1024
#define DESK_PATIENCE_S 60

struct desk_answer {
	bool here;
	unsigned times;
	int64_t not_before_ms;
	size_t place; /* the how-manieth answer it was */
	enum act_outcome outcome;
	char *output;
	size_t output_n;
};

struct desk {
	pthread_mutex_t mutex;
	pthread_cond_t changed;
	uint64_t last_number;
	size_t answers_n;
	struct desk_answer answers[DESK_ANSWERS_MAX]; /* by number */
	struct port *port;
	struct outbound outbound;
};

static inline struct timespec desk_deadline(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	ts.tv_sec += DESK_PATIENCE_S;
	return ts;
}

static inline void desk_take(struct ticket ticket, enum act_outcome outcome, struct slice output, int64_t not_before_ms)
{
	struct desk *desk = (struct desk *)(void *)ticket.lane;
	struct desk_answer *answer = &desk->answers[ticket.number];

	pthread_mutex_lock(&desk->mutex);
	answer->times++;
	if (!answer->here) {
		answer->here = true;
		answer->outcome = outcome;
		answer->not_before_ms = not_before_ms;
		answer->output = malloc(output.n + 1);
		memcpy(answer->output, output.n ? output.p : "", output.n);
		answer->output[output.n] = '\0';
		answer->output_n = output.n;
		answer->place = desk->answers_n++;
	}
	pthread_cond_broadcast(&desk->changed);
	pthread_mutex_unlock(&desk->mutex);
}

static inline void desk_open(struct desk *desk, const struct port_options *options)
{
	struct port_options with = *options;
	pthread_condattr_t attr;
	struct hx_error err;

	memset(desk, 0, sizeof *desk);
	pthread_mutex_init(&desk->mutex, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&desk->changed, &attr);
	pthread_condattr_destroy(&attr);
	outbound_init(&desk->outbound, /* loopback= */ true);
	if (!with.outbound)
		with.outbound = &desk->outbound;
	with.answer = desk_take;
	if (port_new(&with, &desk->port, &err))
		fail_msg("%s", err.detail);
}

static inline void desk_close(struct desk *desk)
{
	port_free(desk->port);
	for (size_t i = 0; i < DESK_ANSWERS_MAX; i++) {
		assert_true(desk->answers[i].times <= 1);
		free(desk->answers[i].output);
	}
	pthread_cond_destroy(&desk->changed);
	pthread_mutex_destroy(&desk->mutex);
}

static inline struct ticket desk_ticket(struct desk *desk, uint64_t number)
{
	return (struct ticket){(struct lane *)(void *)desk, number};
}

/* The texts are wiped right after the start: the port must have copied them. */
static inline uint64_t desk_start(struct desk *desk, const struct action *action, struct act_call call)
{
	char *input = malloc(call.input.n + 1);

	memcpy(input, call.input.n ? call.input.p : "", call.input.n);
	call.action = action;
	call.input.p = input;
	call.attempt = call.attempt ? call.attempt : 1;
	assert_true(desk->last_number + 1 < DESK_ANSWERS_MAX);
	desk->last_number++;
	port_act(desk->port)->start(port_act(desk->port), &call, desk_ticket(desk, desk->last_number));
	port_act(desk->port)->flush(port_act(desk->port));
	memset(input, 'x', call.input.n);
	free(input);
	return desk->last_number;
}

static inline void desk_abort(struct desk *desk, uint64_t number)
{
	port_act(desk->port)->abort(port_act(desk->port), desk_ticket(desk, number));
}

static inline const struct desk_answer *desk_wait(struct desk *desk, uint64_t number)
{
	struct timespec deadline = desk_deadline();
	bool here;

	pthread_mutex_lock(&desk->mutex);
	while (!(here = desk->answers[number].here))
		if (pthread_cond_timedwait(&desk->changed, &desk->mutex, &deadline))
			break;
	pthread_mutex_unlock(&desk->mutex);
	if (!here)
		fail_msg("call %d got no answer", (int)number);
	return &desk->answers[number];
}

static inline bool desk_has(struct desk *desk, uint64_t number)
{
	bool here;

	pthread_mutex_lock(&desk->mutex);
	here = desk->answers[number].here;
	pthread_mutex_unlock(&desk->mutex);
	return here;
}

static inline const struct desk_answer *desk_call(struct desk *desk, const struct action *action, const char *input)
{
	struct act_call call = {.input = slice_str(input), .key = slice_str("k1")};

	return desk_wait(desk, desk_start(desk, action, call));
}

#define desk_expect(answer_, outcome_, part_)                                                                          \
	do {                                                                                                           \
		const struct desk_answer *a_ = (answer_);                                                              \
		if (a_->outcome != (outcome_) || !strstr(a_->output, (part_)))                                         \
			fail_msg("%s: %.300s; expected %s: %s", act_outcome_name(a_->outcome), a_->output,             \
				 act_outcome_name(outcome_), (part_));                                                 \
	} while (0)

/* Waits for a state of the port that nobody announces. */
static inline void desk_wait_stats(struct desk *desk, size_t running, size_t waiting)
{
	struct timespec deadline = desk_deadline(), now;
	struct port_stats stats;

	do {
		port_read_stats(desk->port, &stats);
		if (stats.running == running && stats.waiting == waiting)
			return;
		sched_yield();
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while (now.tv_sec < deadline.tv_sec);
	fail_msg("%zu running and %zu waiting, not %zu and %zu", stats.running, stats.waiting, running, waiting);
}

#endif
