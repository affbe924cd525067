/*
 * What the tests of lanes share: callers whose end can be waited for, small tasks that do one thing, a clock that
 * is moved by hand, an action port with a thread of its own, and a way to hold a lane still.
 *
 * Everything that is waited for is changed under `meeting` and announced by `news`; AWAIT(condition) waits for it
 * and fails the test, naming the condition, after AWAIT_MS.
 */
#ifndef HX_TESTS_UNIT_TASK_PARTY_H
#define HX_TESTS_UNIT_TASK_PARTY_H

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "support/claim.h"
#include "support/store.h"
#include "support/subjects.h"
#include "support/transition.h"
#include "support/watch.h"
#include "task/lanes.h"

#define AWAIT_MS 60000
#define START_MS INT64_C(1800000000000)
#define START_MONO_MS 5000
#define FAR_AWAY_MS (INT64_C(1000) * 86400 * 365)
#define KIND 3
#define LEASE_MS 300

/* ---- waiting ---- */

static pthread_mutex_t meeting = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t news = PTHREAD_COND_INITIALIZER;

/* Waits for news, or a little while for what nobody announces. False when the deadline has passed. */
static inline bool await_news(struct mono_time deadline)
{
	struct timespec soon;

	clock_gettime(CLOCK_REALTIME, &soon);
	soon.tv_nsec += 2000000;
	if (soon.tv_nsec >= 1000000000) {
		soon.tv_nsec -= 1000000000;
		soon.tv_sec++;
	}
	pthread_cond_timedwait(&news, &meeting, &soon);
	return clock_mono(clock_system()).ns < deadline.ns;
}

#define AWAIT(condition)                                                                                               \
	do {                                                                                                           \
		struct mono_time await_deadline = mono_add_ms(clock_mono(clock_system()), AWAIT_MS);                   \
		bool await_in_time = true;                                                                             \
		pthread_mutex_lock(&meeting);                                                                          \
		while (!(condition) && await_in_time)                                                                  \
			await_in_time = await_news(await_deadline);                                                    \
		pthread_mutex_unlock(&meeting);                                                                        \
		if (!await_in_time)                                                                                    \
			fail_msg("waited in vain for: %s", #condition);                                                \
	} while (0)

/* ---- a clock moved by hand ---- */

struct hand_clock {
	struct clock clock;
	_Atomic int64_t wall_ms, mono_ms;
};

static inline struct wall_time hand_clock_wall(struct clock *c)
{
	return (struct wall_time){((struct hand_clock *)c)->wall_ms};
}

static inline struct mono_time hand_clock_mono(struct clock *c)
{
	return (struct mono_time){((struct hand_clock *)c)->mono_ms * 1000000};
}

/* What the monotonic clock shows at this wall time, if nobody sets that one. */
static inline struct mono_time mono_when(int64_t wall_ms)
{
	return mono_add_ms((struct mono_time){START_MONO_MS * INT64_C(1000000)}, wall_ms - START_MS);
}

/* ---- tasks that do one thing ---- */

/* Commits one unit and keeps what came of it. */
struct probe {
	struct task task;
	void (*build)(struct unit *unit, const struct probe *probe);
	int64_t subject, number;
	struct stamp stamp;
	enum { PROBE_NEW, PROBE_ASKING, PROBE_DONE } at;
	enum unit_verdict verdict;
	enum hx_code error;
	size_t rows_n;
	int64_t ints[8];
	char text[64]; /* the first text of the first row */
};

static inline void probe_take(struct task *task, const struct answer *answer)
{
	struct probe *p = (struct probe *)task;

	if (p->at == PROBE_NEW) {
		p->stamp = (struct stamp){answer->id, answer->now, answer->node};
		p->at = PROBE_ASKING;
		return;
	}
	p->at = PROBE_DONE;
	p->verdict = answer->result->verdict;
	if (p->verdict == UNIT_FAILED)
		p->error = answer->result->error.code;
	if (p->verdict != UNIT_WON)
		return;
	p->rows_n = answer->result->rows[0].n;
	for (size_t i = 0; p->rows_n && i < answer->result->rows[0].columns && i < 8; i++) {
		const struct db_value *cell = db_cell(&answer->result->rows[0], 0, i);

		if (cell->type == DB_INT)
			p->ints[i] = cell->i;
		else if (cell->type == DB_TEXT)
			snprintf(p->text, sizeof p->text, "%.*s", SLICE_ARGS(cell->s));
	}
}

static inline void probe_ask(const struct task *task, struct ask *ask)
{
	const struct probe *p = (const struct probe *)task;

	if (p->at == PROBE_DONE) {
		ask->kind = ASK_DONE;
		ask->code = p->verdict == UNIT_WON    ? HX_OK
			    : p->verdict == UNIT_LOST ? HX_CONCURRENCY_ERROR
						      : HX_INTERNAL;
		return;
	}
	ask->kind = ASK_COMMIT;
	unit_init(ask->unit, p->stamp.op);
	p->build(ask->unit, p);
}

static const struct task_kind probe_kind = {.name = "probe", .take = probe_take, .ask = probe_ask};

static inline void build_create(struct unit *unit, const struct probe *p)
{
	subject_create(unit, &p->stamp, p->subject, KIND, "open");
}

static inline void build_read(struct unit *unit, const struct probe *p)
{
	subject_read(unit, p->subject);
}

/* Ends the claim with the fence `number`, whoever has it. */
static inline void build_release(struct unit *unit, const struct probe *p)
{
	subject_release(unit, &p->stamp, &(struct move){p->subject, "busy", "open"}, p->number, /* answered= */ true);
}

/* Sleeps until a time or a wake on its topic, `wakes_wanted` times. */
struct sleeper {
	struct task task;
	struct mono_time until;
	unsigned wakes, wakes_wanted;
};

static inline void sleeper_take(struct task *task, const struct answer *answer)
{
	((struct sleeper *)task)->wakes += answer->kind == ANSWER_WOKE;
}

static inline void sleeper_ask(const struct task *task, struct ask *ask)
{
	const struct sleeper *s = (const struct sleeper *)task;

	ask->kind = s->wakes < s->wakes_wanted ? ASK_SLEEP : ASK_DONE;
	ask->until = s->until;
	ask->code = HX_OK;
}

static const struct task_kind sleeper_kind = {.name = "sleeper", .take = sleeper_take, .ask = sleeper_ask};

/* Asks for one action and keeps its outcome. */
struct actor {
	struct task task;
	struct lease lease;
	bool hear_out;
	bool again; /* once more, without a lease */
	bool acted;
	enum act_outcome outcome;
	bool overrun;
	char output[32];
};

static inline void actor_take(struct task *task, const struct answer *answer)
{
	struct actor *a = (struct actor *)task;

	if (answer->kind == ANSWER_ACT) {
		a->acted = !a->again;
		if (a->again)
			a->lease = (struct lease){0};
		a->again = false;
		a->outcome = answer->outcome;
		a->overrun = answer->overrun;
		snprintf(a->output, sizeof a->output, "%.*s", SLICE_ARGS(answer->output));
	}
}

static inline void actor_ask(const struct task *task, struct ask *ask)
{
	const struct actor *a = (const struct actor *)task;

	ask->kind = a->acted ? ASK_DONE : ASK_ACT;
	ask->code = HX_OK;
	ask->act = (struct act_call){.action = "act", .lease = a->lease, .hear_out = a->hear_out};
}

static const struct task_kind actor_kind = {.name = "actor", .take = actor_take, .ask = actor_ask};

/* ---- callers ---- */

struct caller {
	struct seat seat;
	bool done;
	enum hx_code code;
	union {
		struct probe probe;
		struct sleeper sleeper;
		struct actor actor;
		struct transition transition;
		struct claim claim;
		struct watch watch;
	};
};

static inline void caller_done(struct seat *seat, enum hx_code code)
{
	struct caller *c = (struct caller *)seat;

	pthread_mutex_lock(&meeting);
	c->code = code;
	c->done = true;
	pthread_cond_broadcast(&news);
	pthread_mutex_unlock(&meeting);
}

/* After the init of its task. */
static inline void caller_sit(struct caller *c, struct task *task)
{
	c->done = false;
	c->seat = (struct seat){.task = task, .done = caller_done};
}

static inline void caller_probe(struct caller *c, void (*build)(struct unit *, const struct probe *), int64_t subject,
				int64_t number)
{
	c->probe = (struct probe){.build = build, .subject = subject, .number = number};
	task_init(&c->probe.task, &probe_kind, /* topic= */ 0);
	caller_sit(c, &c->probe.task);
}

static inline void caller_sleep(struct caller *c, int64_t until_ms, int64_t topic)
{
	c->sleeper = (struct sleeper){.until = mono_when(until_ms), .wakes_wanted = 1};
	task_init(&c->sleeper.task, &sleeper_kind, topic);
	caller_sit(c, &c->sleeper.task);
}

static inline void caller_act(struct caller *c, struct lease lease)
{
	c->actor = (struct actor){.lease = lease};
	task_init(&c->actor.task, &actor_kind, /* topic= */ 0);
	caller_sit(c, &c->actor.task);
}

static inline void caller_act_heard_out(struct caller *c, struct lease lease)
{
	caller_act(c, lease);
	c->actor.hear_out = true;
}

static inline void caller_move(struct caller *c, int64_t subject, int64_t version)
{
	transition_init(&c->transition, &(struct move){subject, "open", "open"}, version);
	caller_sit(c, &c->transition.task);
}

static inline void caller_watch(struct caller *c, int64_t subject, const char *wanted, int64_t deadline_ms)
{
	watch_init(&c->watch, subject, wanted, mono_when(deadline_ms));
	caller_sit(c, &c->watch.task);
}

static inline void caller_claim(struct caller *c, const struct claim_plan *plan)
{
	claim_init(&c->claim, plan);
	caller_sit(c, &c->claim.task);
}

static inline void submit(struct lane *lane, struct caller *c)
{
	assert_int_equal(lane_submit(lane, &c->seat), HX_OK);
}

static inline bool is_done(const struct caller *c)
{
	pthread_mutex_lock(&meeting);
	bool done = c->done;

	pthread_mutex_unlock(&meeting);
	return done;
}

/* Under `meeting`. */
static inline size_t count_done(const struct caller callers[], size_t n)
{
	size_t done = 0;

	for (size_t i = 0; i < n; i++)
		done += callers[i].done;
	return done;
}

/* Runs one probe to its end. */
static inline struct probe ask_lane(struct lane *lane, void (*build)(struct unit *, const struct probe *),
				    int64_t subject, int64_t number)
{
	struct caller c;

	caller_probe(&c, build, subject, number);
	submit(lane, &c);
	AWAIT(c.done);
	return c.probe;
}

/* ---- a lane held still: inside of a done() that does not return ---- */

static bool lane_is_held, lane_may_go;

static inline void held_done(struct seat *seat, enum hx_code code)
{
	(void)seat, (void)code;
	pthread_mutex_lock(&meeting);
	lane_is_held = true;
	pthread_cond_broadcast(&news);
	while (!lane_may_go)
		pthread_cond_wait(&news, &meeting);
	lane_is_held = false;
	pthread_mutex_unlock(&meeting);
}

static inline void hold_lane(struct lane *lane, struct caller *holder)
{
	lane_may_go = false;
	caller_probe(holder, build_read, 1, 0);
	holder->seat.done = held_done;
	submit(lane, holder);
	AWAIT(lane_is_held);
}

static inline void let_lane_go(void)
{
	pthread_mutex_lock(&meeting);
	lane_may_go = true;
	pthread_cond_broadcast(&news);
	pthread_mutex_unlock(&meeting);
	AWAIT(!lane_is_held);
}

/* ---- an action port with a thread of its own ---- */

#define ACTS_MAX 256

struct test_port {
	struct act_port port;
	pthread_t thread;
	bool held;  /* the thread answers nothing; the test may */
	bool queue; /* what was started waits for its turn, and can be taken back */
	bool quit;
	enum act_outcome outcome;
	size_t started_n, answered_n, aborted_n, withdrawn_n;
	struct ticket tickets[ACTS_MAX];
	int64_t fences[ACTS_MAX];
	uint64_t aborted[ACTS_MAX];
};

static inline void port_start(struct act_port *port, const struct act_call *call, struct ticket ticket)
{
	struct test_port *p = (struct test_port *)port;

	pthread_mutex_lock(&meeting);
	ASSERT(p->started_n < ACTS_MAX);
	p->fences[p->started_n] = call->lease.fence;
	p->tickets[p->started_n++] = ticket;
	pthread_cond_broadcast(&news);
	pthread_mutex_unlock(&meeting);
}

static inline void port_abort(struct act_port *port, struct ticket ticket)
{
	struct test_port *p = (struct test_port *)port;

	pthread_mutex_lock(&meeting);
	ASSERT(p->aborted_n < ACTS_MAX);
	p->aborted[p->aborted_n++] = ticket.number;
	pthread_cond_broadcast(&news);
	pthread_mutex_unlock(&meeting);
}

static inline bool port_withdraw(struct act_port *port, struct ticket ticket)
{
	struct test_port *p = (struct test_port *)port;
	bool waits;

	(void)ticket; /* tests have one call when they ask for this */
	pthread_mutex_lock(&meeting);
	waits = p->queue && p->withdrawn_n == 0;
	p->withdrawn_n += waits;
	pthread_cond_broadcast(&news);
	pthread_mutex_unlock(&meeting);
	return waits;
}

static inline void *port_run(void *context)
{
	struct test_port *p = context;

	pthread_mutex_lock(&meeting);
	while (!p->quit) {
		if (p->held || p->answered_n == p->started_n) {
			pthread_cond_wait(&news, &meeting);
			continue;
		}
		struct ticket ticket = p->tickets[p->answered_n++];
		enum act_outcome outcome = p->outcome;

		pthread_mutex_unlock(&meeting);
		lane_answer(ticket, outcome, slice_str("{\"done\":true}"));
		pthread_mutex_lock(&meeting);
	}
	pthread_mutex_unlock(&meeting);
	return NULL;
}

static inline void port_set(struct test_port *p, bool held, bool quit)
{
	pthread_mutex_lock(&meeting);
	p->held = held;
	p->quit = quit;
	pthread_cond_broadcast(&news);
	pthread_mutex_unlock(&meeting);
}

/* ---- all of it together ---- */

struct party {
	struct store *store;
	struct hand_clock clock;
	struct test_port port;
	struct lane_options options;
	struct lane *lane;
};

static struct party party;

static inline void party_start_with(enum store_kind kind, size_t seats_max, int64_t store_timeout_ms)
{
	struct hx_error err;

	memset(&party.port, 0, sizeof party.port);
	party.store = store_new(kind);
	party.clock.clock = (struct clock){.wall = hand_clock_wall, .mono = hand_clock_mono};
	party.clock.wall_ms = START_MS;
	party.clock.mono_ms = START_MONO_MS;
	party.port.port = (struct act_port){.start = port_start, .abort = port_abort, .withdraw = port_withdraw};
	assert_int_equal(pthread_create(&party.port.thread, NULL, port_run, &party.port), 0);
	party.options = (struct lane_options){
		.db = {.url = party.store->url, .clock = &party.clock.clock, .exclusive = true},
		.migrate = true,
		.clock = &party.clock.clock,
		.node = "here",
		.node_number = 5,
		.seats_max = seats_max,
		.resolve_ms = 1000,
		.act = &party.port.port,
		.renew = subject_heartbeat,
		.store_timeout_ms = store_timeout_ms,
	};
	if (lane_new(&party.options, &party.lane, &err) != HX_OK)
		fail_msg("%s", err.detail);
}

static inline void party_start(enum store_kind kind, size_t seats_max)
{
	party_start_with(kind, seats_max, /* store_timeout_ms= */ 0);
}

static inline void party_end(void)
{
	if (!party.store)
		return;
	pthread_mutex_lock(&meeting);
	lane_may_go = true; /* a test may have failed while it held the lane */
	pthread_cond_broadcast(&news);
	pthread_mutex_unlock(&meeting);
	lane_stop(party.lane, /* drain_ms= */ 0);
	port_set(&party.port, false, /* quit= */ true);
	pthread_join(party.port.thread, NULL);
	lane_free(party.lane);
	party.lane = NULL;
	store_free(party.store);
	party.store = NULL;
}

/* Moves both clocks and tells the lane. */
static inline void party_pass_ms(int64_t ms)
{
	party.clock.wall_ms += ms;
	party.clock.mono_ms += ms;
	lane_nudge(party.lane);
}

static inline struct lane_stats party_stats(void)
{
	struct lane_stats stats;

	lane_read_stats(party.lane, &stats);
	return stats;
}

#endif
