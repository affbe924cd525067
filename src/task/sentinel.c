/* See sentinel.h. */
#include "task/sentinel.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

#define AWAY_MS 250
#define PROBES_MAX (LANES_MAX + 1) /* the pulse, too */

struct probe {
	struct task task;
	struct seat seat;
	struct sentinel *sentinel;
	struct lane *lane;
	enum { PROBE_NEW, PROBE_ASKED, PROBE_BACK } at;
	bool ok;
	/* under the mutex */
	bool out;
};

struct sentinel {
	struct sentinel_options options;
	struct probe probes[PROBES_MAX];
	size_t probes_n;
	pthread_t thread;
	pthread_mutex_t mutex; /* over what follows */
	pthread_cond_t changed;
	bool stopping, joined;
	const char *why; /* NULL: the store is there */
	struct sentinel_question *waiting;
};

/* ---- a probe ---- */

/* The temporary table is each connection's own. What is deleted is nothing; that it could be, needs the lock. */
static const struct db_stmt stmt_probe = {
	.name = "probe",
	.sql = "DELETE FROM hx_ids WHERE place < 0",
	.pg_sql = "SELECT 1",
	.in = "",
	.out = "",
};

static void probe_take(struct task *task, const struct answer *answer)
{
	struct probe *p = (struct probe *)task;

	p->at = p->at == PROBE_NEW ? PROBE_ASKED : PROBE_BACK;
	p->ok = answer->kind == ANSWER_COMMIT && answer->result->verdict == UNIT_WON;
}

static void probe_ask(const struct task *task, struct ask *ask)
{
	if (((const struct probe *)task)->at == PROBE_BACK) {
		ask->kind = ASK_DONE;
		ask->code = HX_OK;
		return;
	}
	ask->kind = ASK_COMMIT;
	unit_init(ask->unit, /* op= */ 0);
	unit_add(ask->unit, UNIT_ANY, &stmt_probe, 0, NULL);
}

static const struct task_kind probe_kind = {
	.name = "probe",
	.size = sizeof(struct probe),
	.take = probe_take,
	.ask = probe_ask,
};

static void probe_done(struct seat *seat, enum hx_code code)
{
	struct probe *p = (struct probe *)((char *)seat - offsetof(struct probe, seat));

	pthread_mutex_lock(&p->sentinel->mutex);
	p->ok &= code == HX_OK;
	p->out = false;
	pthread_cond_broadcast(&p->sentinel->changed);
	pthread_mutex_unlock(&p->sentinel->mutex);
}

/* Three quarters of the time: who has asked is answered within all of it. */
static int64_t probe_ms(const struct sentinel *s)
{
	return s->options.timeout_ms - s->options.timeout_ms / 4;
}

static void send_probe(struct sentinel *s, struct probe *p, struct mono_time by)
{
	p->at = PROBE_NEW;
	p->ok = false;
	task_init(&p->task, &probe_kind, /* topic= */ 0);
	p->seat = (struct seat){.task = &p->task, .done = probe_done, .deadline = by};
	p->out = true;
	pthread_mutex_unlock(&s->mutex); /* a lane may answer at once */
	if (lane_submit_own(p->lane, &p->seat) != HX_OK)
		probe_done(&p->seat, HX_STOPPING);
	pthread_mutex_lock(&s->mutex);
}

/* ---- rounds, under the mutex ---- */

static struct timespec timespec_of(struct mono_time t)
{
	return (struct timespec){.tv_sec = t.ns / 1000000000, .tv_nsec = t.ns % 1000000000};
}

static size_t probes_out(const struct sentinel *s)
{
	size_t n = 0;

	for (size_t i = 0; i < s->probes_n; i++)
		n += s->probes[i].out;
	return n;
}

static const char *verdict(const struct sentinel *s)
{
	for (size_t i = 0; i < s->probes_n; i++)
		if (s->probes[i].out)
			return "a lane does not move: it waits for the store, or for a statement";
	for (size_t i = 0; i < s->probes_n; i++)
		if (!s->probes[i].ok)
			return "the store is lost";
	return NULL;
}

static void look(struct sentinel *s)
{
	struct mono_time now = clock_mono(clock_system()), by = mono_add_ms(now, probe_ms(s));
	struct timespec until = timespec_of(mono_add_ms(by, s->options.timeout_ms / 8));
	int rc = 0;

	for (size_t i = 0; i < s->probes_n; i++)
		if (!s->probes[i].out)
			send_probe(s, &s->probes[i], by);
	while (probes_out(s) && !s->stopping && rc != ETIMEDOUT)
		rc = pthread_cond_timedwait(&s->changed, &s->mutex, &until);
}

static void note(struct sentinel *s, const char *why)
{
	if (why && !s->why)
		log_error(s->options.log, "the store is lost: this node is not ready", log_text("detail", why));
	else if (!why && s->why)
		log_info(s->options.log, "the store is back");
	s->why = why;
}

static void answer_all(struct sentinel *s, const char *why)
{
	struct sentinel_question *question = s->waiting;

	s->waiting = NULL;
	pthread_mutex_unlock(&s->mutex);
	for (struct sentinel_question *next; question; question = next) {
		next = question->next;
		question->answered(question, why);
	}
	pthread_mutex_lock(&s->mutex);
}

/* Until somebody asks, or it is time to look again. */
static void rest(struct sentinel *s)
{
	int64_t ms = s->why ? AWAY_MS : s->options.every_ms;
	struct timespec until = timespec_of(mono_add_ms(clock_mono(clock_system()), ms));
	int rc = 0;

	while (!s->stopping && !s->waiting && rc != ETIMEDOUT)
		rc = ms ? pthread_cond_timedwait(&s->changed, &s->mutex, &until)
			: pthread_cond_wait(&s->changed, &s->mutex);
}

static void *run(void *context)
{
	struct sentinel *s = context;

	pthread_mutex_lock(&s->mutex);
	while (!s->stopping) {
		rest(s);
		if (s->stopping)
			break;
		look(s);
		if (s->stopping)
			break;
		note(s, verdict(s));
		answer_all(s, s->why);
	}
	answer_all(s, "it is stopping");
	pthread_mutex_unlock(&s->mutex);
	return NULL;
}

/* ---- from outside ---- */

static void destroy(struct sentinel *s)
{
	pthread_cond_destroy(&s->changed);
	pthread_mutex_destroy(&s->mutex);
	free(s);
}

enum hx_code sentinel_new(const struct sentinel_options *options, struct sentinel **ret_sentinel, struct hx_error *err)
{
	struct sentinel *s = calloc(1, sizeof *s);
	const struct lanes *lanes = options->lanes;
	pthread_condattr_t attr;
	sigset_t all, before;
	int rc;

	if (!s)
		return error_set(err, HX_NO_MEMORY, "the sentinel");
	ASSERT(options->timeout_ms > 0);
	s->options = *options;
	for (size_t i = 0; i < lanes->n; i++)
		s->probes[s->probes_n++].lane = lanes->lanes[i];
	if (lanes->pulse)
		s->probes[s->probes_n++].lane = lanes->pulse;
	for (size_t i = 0; i < s->probes_n; i++)
		s->probes[i].sentinel = s;
	pthread_mutex_init(&s->mutex, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&s->changed, &attr);
	pthread_condattr_destroy(&attr);
	/* Signals are for the program's own threads. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = pthread_create(&s->thread, NULL, run, s);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (rc) {
		destroy(s);
		return error_set(err, HX_NO_MEMORY, "the sentinel's thread");
	}
	*ret_sentinel = s;
	return HX_OK;
}

void sentinel_ask(struct sentinel *s, struct sentinel_question *question)
{
	const char *why;

	pthread_mutex_lock(&s->mutex);
	why = s->stopping ? "it is stopping" : s->why;
	if (!why) {
		question->next = s->waiting;
		s->waiting = question;
		pthread_cond_broadcast(&s->changed);
	}
	pthread_mutex_unlock(&s->mutex);
	if (why)
		question->answered(question, why);
}

bool sentinel_sees_store(struct sentinel *s)
{
	bool there;

	pthread_mutex_lock(&s->mutex);
	there = !s->why;
	pthread_mutex_unlock(&s->mutex);
	return there;
}

void sentinel_stop(struct sentinel *s)
{
	if (!s || s->joined)
		return;
	pthread_mutex_lock(&s->mutex);
	s->stopping = true;
	pthread_cond_broadcast(&s->changed);
	pthread_mutex_unlock(&s->mutex);
	pthread_join(s->thread, NULL);
	s->joined = true;
}

void sentinel_free(struct sentinel *s)
{
	if (!s)
		return;
	sentinel_stop(s);
	destroy(s);
}
