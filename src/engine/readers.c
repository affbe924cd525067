/* See readers.h. */
#include "engine/readers.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/thread.h"
#include "task/group.h"
#include "task/trouble.h"

#define READ_BYTES_MAX (256u << 20) /* rows of one unit, as in a lane */
#define URL_BYTES_MAX 4096

struct reader {
	struct readers *all;
	struct db *db;
	struct thread thread;
	struct arena arena;
	struct unit unit;
	struct unit_result result;
	struct group_sink sink;
	struct group_stats stats;
	struct trouble trouble;
	struct task *task;   /* that is being driven */
	struct mono_time by; /* when its asks are given up; ns 0: never */
};

/* The tasks of one workspace that wait: there is one while there are any. */
struct reader_line {
	struct reader_line *next; /* in turn */
	uint64_t tenant;
	size_t n;
	struct seat *first, **last;
};

struct readers {
	struct readers_options options;
	char url[URL_BYTES_MAX];
	struct monitor monitor; /* over what follows */
	bool stopping;
	size_t waiting_n;
	struct reader_line *first, **last; /* workspaces take turns */
	bool by_lane;                      /* constant: there are no threads, the lane reads */
	struct reader readers[READERS_N];
};

/* ---- a task from its start to its end ---- */

static void give(struct reader *r, struct answer *answer)
{
	answer->now = clock_wall(r->all->options.clock);
	answer->mono = clock_mono(r->all->options.clock);
	answer->node = r->all->options.node;
	(void)task_take(r->task, r->task->turn, answer); /* always its own turn: nobody else answers it */
}

static void readers_sink_answer(struct group_sink *sink, size_t i UNUSED, const struct unit_result *result)
{
	struct reader *r = (struct reader *)((char *)sink - offsetof(struct reader, sink));

	give(r, &(struct answer){.kind = ANSWER_COMMIT, .result = result});
}

static void readers_sink_wake(struct group_sink *sink UNUSED, int64_t topic UNUSED)
{
	ASSERT(!"what only reads wakes nobody");
}

/* A group of one: what a lane knows about lost connections holds here too. */
static void run_unit(struct reader *r)
{
	struct unit *units[] = {&r->unit};
	struct group group;

	group_init(&group, units, &r->result, 1);
	group.by = r->by;
	(void)group_run(&group, r->db, &r->arena, /* resolve_ms= */ 0, &r->sink, &r->stats); /* always begun */
	if (r->result.verdict >= UNIT_FAILED || trouble_is_on(&r->trouble))
		trouble_note(&r->trouble, units, &r->result, 1, clock_mono(r->all->options.clock));
	arena_reset(&r->arena);
}

/* Its time has passed while it waited for a reader. */
static void readers_refuse(struct reader *r)
{
	r->result = (struct unit_result){.verdict = UNIT_FAILED, .line = -1};
	error_set(&r->result.error, HX_STORE_UNAVAILABLE, "the store was not to be had in time");
	give(r, &(struct answer){.kind = ANSWER_COMMIT, .result = &r->result});
}

static void drive(struct reader *r, struct seat *seat)
{
	struct ask ask = {.unit = &r->unit};

	r->task = seat->task;
	r->by = seat->by;
	give(r, &(struct answer){.kind = ANSWER_START});
	r->task->kind->ask(r->task, &ask);
	while (ask.kind == ASK_COMMIT) {
		if (r->by.ns && clock_mono(r->all->options.clock).ns >= r->by.ns)
			readers_refuse(r);
		else
			run_unit(r);
		r->task->kind->ask(r->task, &ask);
	}
	ASSERT(ask.kind == ASK_DONE);
	/* What was read may be younger than what the disk has. */
	if (!lane_settle(r->all->options.lane, r->by))
		ask.code = HX_STORE_UNAVAILABLE;
	seat->done(seat, ask.code);
}

/* ---- who waits ---- */

static struct reader_line **line_of(struct readers *all, uint64_t tenant)
{
	struct reader_line **at = &all->first;

	while (*at && (*at)->tenant != tenant)
		at = &(*at)->next;
	return at;
}

static void append_line(struct readers *all, struct reader_line *line)
{
	line->next = NULL;
	*all->last = line;
	all->last = &line->next;
}

/* One workspace has half of the room, two together three quarters: there is some for who has nothing here. */
static enum hx_code line_up(struct readers *all, struct seat *seat)
{
	size_t room = all->options.seats_max - all->waiting_n;
	struct reader_line *line = *line_of(all, seat->tenant);

	if (room == 0 || (seat->tenant && line && line->n >= room))
		return HX_BUSY;
	if (!line) {
		line = calloc(1, sizeof *line);
		if (!line)
			return HX_BUSY;
		line->tenant = seat->tenant;
		line->last = &line->first;
		append_line(all, line);
	}
	seat->next = NULL;
	*line->last = seat;
	line->last = &seat->next;
	line->n++;
	all->waiting_n++;
	return HX_OK;
}

/* The first of the workspace whose turn it is, which is the last in turn then. */
static struct seat *take_first(struct readers *all)
{
	struct reader_line *line = all->first;
	struct seat *seat = line ? line->first : NULL;

	if (!line)
		return NULL;
	all->first = line->next;
	if (!all->first)
		all->last = &all->first;
	line->first = seat->next;
	line->n--;
	all->waiting_n--;
	if (line->first)
		append_line(all, line);
	else
		free(line);
	return seat;
}

/* The next that waits; NULL: there is none any more, and none will come. */
static struct seat *take_seat(struct readers *all, bool *ret_stopping)
{
	struct seat *seat;

	LOCKED(&all->monitor.mutex);
	while (!all->first && !all->stopping)
		monitor_wait(&all->monitor);
	seat = take_first(all);
	*ret_stopping = all->stopping;
	return seat;
}

static void *readers_run(void *context)
{
	struct reader *r = context;
	struct seat *seat;
	bool stopping;

	while ((seat = take_seat(r->all, &stopping))) {
		if (stopping)
			seat->done(seat, HX_STOPPING);
		else
			drive(r, seat);
	}
	return NULL;
}

/* ---- from outside ---- */

/*
 * A read-only connection to PostgreSQL is content with a standby, which may lag behind what was committed. Where the
 * url leaves the choice among several servers open, the readers ask for the one that the lanes write to.
 */
static enum hx_code set_url(struct readers *all, struct hx_error *err)
{
	static const char choice[] = "target_session_attrs=";
	const char *url = all->options.url;
	bool chosen = strncmp(url, "postgres", 8) != 0 || strstr(url, choice);
	int n = chosen ? snprintf(all->url, sizeof all->url, "%s", url)
		       : snprintf(all->url, sizeof all->url, "%s%s%sread-write", url, strchr(url, '?') ? "&" : "?",
				  choice);

	return n < (int)sizeof all->url ? HX_OK : error_set(err, HX_CONFIG_ERROR, "the store's url is too long");
}

static enum hx_code reader_start(struct readers *all, struct reader *r, struct hx_error *err)
{
	struct db_options db = {.url = all->url, .clock = all->options.clock, .read_only = true};
	enum hx_code code = db_open(&db, &r->db, err);

	r->all = all;
	r->sink = (struct group_sink){.answer = readers_sink_answer, .wake = readers_sink_wake};
	r->trouble = (struct trouble){.log = all->options.log, .who = "reader", .number = r - all->readers};
	arena_init(&r->arena, READ_BYTES_MAX);
	return code ? code : thread_start(&r->thread, readers_run, r, "a reader's thread", err);
}

enum hx_code readers_new(const struct readers_options *options, struct readers **ret, struct hx_error *err)
{
	struct readers *all = calloc(1, sizeof *all);
	enum hx_code code;

	if (!all)
		return error_set(err, HX_NO_MEMORY, "the readers");
	all->options = *options;
	all->last = &all->first;
	all->by_lane = strcmp(options->url, "sqlite::memory:") == 0;
	monitor_init(&all->monitor);
	code = set_url(all, err);
	for (size_t i = 0; i < READERS_N && !code && !all->by_lane; i++)
		code = reader_start(all, &all->readers[i], err);
	return HAND_OVER(code, all, readers_free, ret);
}

enum hx_code readers_submit(struct readers *readers, struct seat *seat)
{
	enum hx_code code = HX_OK;

	LOCKED(&readers->monitor.mutex);
	if (readers->stopping) {
		code = HX_STOPPING;
	} else if (readers->by_lane) {
		code = lane_submit(readers->options.lane, seat);
	} else {
		seat->by = (struct mono_time){0};
		if (readers->options.store_timeout_ms)
			seat->by = mono_add_ms(clock_mono(readers->options.clock), readers->options.store_timeout_ms);
		code = line_up(readers, seat);
		if (!code)
			monitor_wake_one(&readers->monitor);
	}
	return code;
}

void readers_stop(struct readers *readers)
{
	if (!readers)
		return;
	monitor_raise(&readers->monitor, &readers->stopping);
	for (size_t i = 0; i < READERS_N; i++)
		thread_join(&readers->readers[i].thread);
}

void readers_free(struct readers *readers)
{
	if (!readers)
		return;
	readers_stop(readers);
	for (size_t i = 0; i < READERS_N; i++) {
		db_close(readers->readers[i].db);
		arena_release(&readers->readers[i].arena);
	}
	monitor_release(&readers->monitor);
	free(readers);
}
