/* See sentinel.h. */
#include "task/sentinel.h"

#include <stdlib.h>

#include "base/thread.h"
#include "task/states.h"

#define AWAY_MS 250
#define PROBES_MAX (LANES_MAX + 1) /* the pulse, too */

struct probe {
	struct task task;
	struct seat seat;
	struct sentinel *sentinel;
	struct lane *lane;
	bool sent; /* the lane has come to it, and has asked the store */
	bool ok;
	/* under the mutex */
	bool out;
};

struct sentinel {
	struct sentinel_options options;
	struct probe probes[PROBES_MAX];
	size_t probes_n;
	struct thread thread;
	struct monitor monitor; /* over what follows */
	bool stopping;
	const char *why; /* NULL: the store is there */
	struct sentinel_question *waiting;
};

/* ---- a probe ---- */

/* The temporary table is each connection's own. What is deleted is nothing; that it could be, needs the lock. */
DB_STMT(stmt_probe, "probe", "", "", "DELETE FROM hx_ids WHERE place < 0", .pg_sql = "SELECT 1");

enum { PROBE_NEW, PROBE_ASKED, PROBE_BACK };

static void sentinel_take_probed(struct probe *p, const struct answer *answer)
{
	p->ok = answer->result->verdict == UNIT_WON;
	p->sent = answer->sent.ns != 0;
	task_end(&p->task, HX_OK);
}

static void build_probe(const struct probe *p UNUSED, struct unit *unit)
{
	unit_add(unit, UNIT_ANY, &stmt_probe, 0, NULL);
}

static const TASK_STATES(struct probe) probe_states[] = {
	[PROBE_NEW] = {"new", .then = PROBE_ASKED},
	[PROBE_ASKED] = {"asked", sentinel_take_probed, build_probe},
	[PROBE_BACK] = {"back"},
};

TASK_KIND(probe_kind, "probe", struct probe, probe_states);

static void probe_done(struct seat *seat, enum hx_code code)
{
	struct probe *p = (struct probe *)((char *)seat - offsetof(struct probe, seat));

	LOCKED(&p->sentinel->monitor.mutex);
	p->ok &= code == HX_OK;
	p->out = false;
	monitor_wake_all(&p->sentinel->monitor);
}

static void send_probe(struct sentinel *s, struct probe *p, struct mono_time by)
{
	p->ok = p->sent = false;
	task_init(&p->task, &probe_kind, /* topic= */ 0);
	p->seat = (struct seat){.task = &p->task, .done = probe_done, .deadline = by};
	p->out = true;
	monitor_unlock(&s->monitor); /* a lane may answer at once */
	if (lane_submit_own(p->lane, &p->seat) != HX_OK)
		probe_done(&p->seat, HX_STOPPING);
	monitor_lock(&s->monitor);
}

/* ---- rounds, under the mutex ---- */

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
		if (s->probes[i].out || !s->probes[i].sent)
			return "a lane does not move: it waits for the store, or for a statement";
	for (size_t i = 0; i < s->probes_n; i++)
		if (!s->probes[i].ok)
			return "the store is lost";
	return NULL;
}

static void sentinel_look(struct sentinel *s)
{
	/* Three quarters of the time: who has asked is answered within all of it. */
	struct mono_time by = time_in_ms(s->options.timeout_ms - s->options.timeout_ms / 4);
	struct mono_time until = mono_add_ms(by, s->options.timeout_ms / 8);

	for (size_t i = 0; i < s->probes_n; i++)
		if (!s->probes[i].out)
			send_probe(s, &s->probes[i], by);
	while (probes_out(s) && !s->stopping && monitor_wait_until(&s->monitor, until))
		;
}

static void sentinel_note(struct sentinel *s, const char *why)
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
	monitor_unlock(&s->monitor);
	for (struct sentinel_question *next; question; question = next) {
		next = question->next;
		question->answered(question, why);
	}
	monitor_lock(&s->monitor);
}

/* Until somebody asks, or it is time to look again. */
static void sentinel_rest(struct sentinel *s)
{
	int64_t ms = s->why ? AWAY_MS : s->options.every_ms;
	struct mono_time until = ms ? time_in_ms(ms) : (struct mono_time){INT64_MAX};

	while (!s->stopping && !s->waiting && monitor_wait_until(&s->monitor, until))
		;
}

static void *sentinel_run(void *context)
{
	struct sentinel *s = context;

	LOCKED(&s->monitor.mutex);
	while (!s->stopping) {
		sentinel_rest(s);
		if (s->stopping)
			break;
		sentinel_look(s);
		if (s->stopping)
			break;
		sentinel_note(s, verdict(s));
		answer_all(s, s->why);
	}
	answer_all(s, "it is stopping");
	return NULL;
}

/* ---- from outside ---- */

static void sentinel_destroy(struct sentinel *s)
{
	monitor_release(&s->monitor);
	free(s);
}

enum hx_code sentinel_new(const struct sentinel_options *options, struct sentinel **ret_sentinel, struct hx_error *err)
{
	struct sentinel *s = calloc(1, sizeof *s);
	const struct lanes *lanes = options->lanes;
	enum hx_code code;

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
	monitor_init(&s->monitor);
	code = thread_start(&s->thread, sentinel_run, s, "the sentinel's thread", err);
	return HAND_OVER(code, s, sentinel_destroy, ret_sentinel);
}

void sentinel_ask(struct sentinel *s, struct sentinel_question *question)
{
	const char *why;

	monitor_lock(&s->monitor);
	why = s->stopping ? "it is stopping" : s->why;
	if (!why) {
		question->next = s->waiting;
		s->waiting = question;
		monitor_wake_all(&s->monitor);
	}
	monitor_unlock(&s->monitor);
	if (why)
		question->answered(question, why);
}

bool sentinel_sees_store(struct sentinel *s)
{
	LOCKED(&s->monitor.mutex);
	return !s->why;
}

void sentinel_stop(struct sentinel *s)
{
	if (s)
		monitor_stop(&s->monitor, &s->stopping, &s->thread);
}

void sentinel_free(struct sentinel *s)
{
	if (!s)
		return;
	sentinel_stop(s);
	sentinel_destroy(s);
}
