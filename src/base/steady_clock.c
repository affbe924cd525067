/* See steady_clock.h. The way of every read is two loads and a comparison; the mutex is for those who doubt. */
#include "base/steady_clock.h"

#include "base/log.h"

#define SAMPLE_TRIES_MAX 8
#define SAMPLE_NS_MAX 50000000 /* between two looks at the monotonic clock: what stands between them belongs to both */

/* Both clocks of one moment. A thread that was held up in the middle would see a jump where there is none: NULL then. */
struct sample {
	int64_t wall_ms, mono_ms;
	struct mono_time mono;
	bool good;
};

static struct sample steady_clock_look(struct clock *source)
{
	struct sample sample = {0};

	for (int i = 0; i < SAMPLE_TRIES_MAX && !sample.good; i++) {
		struct mono_time before = clock_mono(source);

		sample.wall_ms = clock_wall(source).ms;
		sample.mono = clock_mono(source);
		sample.mono_ms = sample.mono.ns / 1000000;
		sample.good = sample.mono.ns - before.ns <= SAMPLE_NS_MAX; /* mutant: held-up -> sample.good = 1; */
	}
	return sample;
}

static bool is_step(int64_t ms)
{
	return ms > STEADY_STEP_MS || ms < -STEADY_STEP_MS; /* mutant: jump-unnoticed -> return ms < -STEADY_STEP_MS; */
}

enum edge { EDGE_NONE, EDGE_DOUBTED, EDGE_BACK, EDGE_BELIEVED };

/* Statements carry the store's own time, so what can wait for it to be believed is less: see steady_clock_hear(). */
static const struct {
	const char *doubted, *back, *believed;
} words[] = {
	{"the clock of the store's machine has jumped: it is not believed yet, and retention waits",
	 "the clock of the store's machine is back where it was",
	 "the clock of the store's machine has kept its new time, and is believed from now on"},
	{"the clock of this machine has jumped: it is not believed yet, and nothing expires by it",
	 "the clock of this machine is back where it was",
	 "the clock of this machine has kept its new time, and is believed from now on"},
};

static void steady_clock_tell(struct steady_clock *s, enum edge edge, int64_t by_ms)
{
	bool own = s->source != NULL;

	if (edge == EDGE_DOUBTED)
		log_error(s->log, words[own].doubted, log_int("by_ms", by_ms),
			  log_int("believed_in_ms", STEADY_CONFIRM_MS));
	else if (edge == EDGE_BACK)
		log_info(s->log, words[own].back);
	else if (edge == EDGE_BELIEVED)
		log_warn(s->log, words[own].believed, log_int("by_ms", by_ms));
}

static void set_doubt(struct steady_clock *s, bool doubting, int64_t by_ms, struct mono_time since)
{
	s->doubted_ms = by_ms;
	s->since = since;
	atomic_store(&s->doubting, doubting);
	atomic_store(&s->doubt.by_ms, doubting ? by_ms : 0);
}

/* Under the mutex. */
static enum edge step(struct steady_clock *s, const struct sample *sample)
{
	int64_t by_ms = sample->wall_ms - sample->mono_ms - atomic_load(&s->offset_ms);
	bool doubting = atomic_load(&s->doubting);

	if (!is_step(by_ms)) {
		set_doubt(s, false, 0, sample->mono);
		return doubting ? EDGE_BACK : EDGE_NONE;
	}
	if (!doubting || is_step(by_ms - s->doubted_ms)) { /* mutant: jump-after-jump -> if (!doubting) { */
		set_doubt(s, true, by_ms, sample->mono);
		atomic_fetch_add(&s->doubt.jumps, 1); /* who sees it counted sees the doubt, too */
		return EDGE_DOUBTED;
	}
	if (sample->mono.ns < mono_add_ms(s->since, STEADY_CONFIRM_MS).ns) /* mutant: jump-believed -> if (0) */
		return EDGE_NONE;
	atomic_fetch_add(&s->offset_ms, by_ms);
	set_doubt(s, false, 0, sample->mono);
	return EDGE_BELIEVED;
}

/* By somebody who doubts, or has a reason to. Returns what is believed. */
static int64_t steady_clock_judge(struct steady_clock *s, const struct sample *sample, int64_t by_ms)
{
	enum edge edge;
	int64_t offset_ms;

	pthread_mutex_lock(&s->mutex);
	edge = step(s, sample);
	by_ms = edge == EDGE_BELIEVED || edge == EDGE_DOUBTED ? by_ms : 0;
	offset_ms = atomic_load(&s->offset_ms);
	pthread_mutex_unlock(&s->mutex);
	if (edge != EDGE_NONE && s->log)
		steady_clock_tell(s, edge, by_ms);
	return sample->mono_ms + offset_ms;
}

static struct wall_time steady_wall(struct clock *clock)
{
	struct steady_clock *s = (struct steady_clock *)clock;
	int64_t offset_ms = atomic_load(&s->offset_ms);
	struct sample sample = steady_clock_look(s->source);
	int64_t by_ms = sample.wall_ms - sample.mono_ms - offset_ms;

	if (!sample.good)
		return (struct wall_time){sample.mono_ms + offset_ms};
	if (!is_step(by_ms) && !atomic_load(&s->doubting)) {
		/* The small ones are followed. Somebody else was first: then by what he has seen. */
		if (by_ms)
			(void)atomic_compare_exchange_strong(&s->offset_ms, &offset_ms, offset_ms + by_ms);
		return (struct wall_time){sample.wall_ms};
	}
	return (struct wall_time){steady_clock_judge(s, &sample, by_ms)};
}

void steady_clock_hear(struct steady_clock *s, int64_t wall_ms, struct mono_time asked, struct mono_time answered)
{
	struct sample sample = {.wall_ms = wall_ms, .mono = answered, .mono_ms = answered.ns / 1000000, .good = true};
	int64_t by_ms = sample.wall_ms - sample.mono_ms - atomic_load(&s->offset_ms);

	if (answered.ns - asked.ns > STEADY_HEARD_MS_MAX * INT64_C(1000000)) /* mutant: silence-is-a-jump -> if (0) */
		return;
	if (!s->heard)
		atomic_store(&s->offset_ms, sample.wall_ms - sample.mono_ms);
	else if (is_step(by_ms) || atomic_load(&s->doubting))
		(void)steady_clock_judge(s, &sample, by_ms);
	else
		atomic_fetch_add(&s->offset_ms, by_ms);
	s->heard = true;
}

static struct mono_time steady_mono(struct clock *clock)
{
	return clock_mono(((struct steady_clock *)clock)->source);
}

void steady_clock_init(struct steady_clock *steady, struct clock *source, struct log *log)
{
	struct sample sample = source ? steady_clock_look(source) : (struct sample){0};

	*steady = (struct steady_clock){.clock = {.wall = steady_wall, .mono = steady_mono, .doubt = &steady->doubt},
					.source = source,
					.log = log};
	atomic_store(&steady->offset_ms, sample.wall_ms - sample.mono_ms);
	pthread_mutex_init(&steady->mutex, NULL);
}

void steady_clock_release(struct steady_clock *steady)
{
	pthread_mutex_destroy(&steady->mutex);
}
