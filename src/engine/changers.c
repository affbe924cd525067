/* See changers.h. */
#include "engine/changers.h"

#include <string.h>

#include "flow/batch.h"
#include "flow/run.h"

#define FOLLOW_EVERY_MS 1000
#define FOLLOW_BYTES_MAX (64u << 20)
#define FOLLOW_FINDINGS_MAX 20 /* logged; the rest is counted */

void changers_runner(struct changers *c, struct lane_runner *runner)
{
	lane_runner_init(runner, c->lanes->lanes[0], c->on_postgres);
}

/* ---- following what other nodes put ---- */

/* Errors only: of warnings the node that has put it was told. */
static void log_findings(struct changers *c, const struct findings *findings, const char *what)
{
	size_t n = 0;

	for (const struct finding *f = findings->first; f && n < FOLLOW_FINDINGS_MAX; f = f->next) {
		if (f->severity != FINDING_ERROR)
			continue;
		n++;
		LOCAL_STRBUF(line, LOG_LINE_BYTES_MAX);
		finding_print(f, &line);
		log_error(c->options->log, what, log_slice("finding", strbuf_slice(&line)));
	}
}

static void follow_once(struct changers *c, int64_t *seen)
{
	struct lane_runner runner;
	struct findings findings;
	struct hx_error err = {0};
	size_t changes_n = 0;
	enum hx_code code;

	changers_runner(c, &runner);
	LOCAL_ARENA(arena, FOLLOW_BYTES_MAX);
	findings_init(&findings, &arena);
	pthread_mutex_lock(&c->configuring);
	code = definitions_follow(c->definitions, seen, &runner.runner, c->options->clock, c->config, &findings,
				  &changes_n, &err);
	pthread_mutex_unlock(&c->configuring);
	if (!code && changes_n)
		log_info(c->options->log, "definitions that another node has put are in force",
			 log_int("definitions", (int64_t)changes_n));
	if (code == HX_CONFIG_ERROR) {
		log_findings(c, &findings, "a definition of another node is not valid here");
		log_error(c->options->log,
			  "another node has put definitions that cannot be in force here: the old ones are kept",
			  log_text("detail", err.detail), log_int("errors", (int64_t)findings.errors));
	}
	/* Anything else is the store's trouble, and the next round asks again; or it was not asked at all. */
}

/* Versions that have been asked for in vain: another node has put and used them, a moment ago. */
static void bring_wanted(struct changers *c)
{
	static const int64_t topics[] = {RUN_TOPIC, BATCH_TOPIC};
	struct lane_runner runner;
	struct findings findings;
	struct hx_error err = {0};
	size_t loaded_n = 0;

	changers_runner(c, &runner);
	LOCAL_ARENA(arena, FOLLOW_BYTES_MAX);
	findings_init(&findings, &arena);
	if (definitions_load_wanted(c->definitions, &runner.runner, &findings, &loaded_n, &err))
		log_info(c->options->log, "a definition that runs or batches have is not here yet",
			 log_text("detail", err.detail));
	log_findings(c, &findings, "a definition that runs or batches have cannot serve here");
	for (size_t i = 0; loaded_n && i < c->lanes->n; i++)
		lane_wake(c->lanes->lanes[i], topics, sizeof topics / sizeof *topics);
}

void changers_tell_wanted(void *context)
{
	struct changers *c = context;

	monitor_raise(&c->monitor, &c->wanted);
}

/* Until then, or until something is wanted. False: the engine is stopping. */
static bool changers_rest(struct changers *c, int64_t ms)
{
	struct mono_time until = time_in_ms(ms);
	bool stopping;

	LOCKED(&c->monitor.mutex);
	while (!c->stopping && !c->wanted && monitor_wait_until(&c->monitor, until))
		;
	stopping = c->stopping;
	c->wanted = false;
	return !stopping;
}

static void *follow(void *context)
{
	struct changers *c = context;
	int64_t seen = -1;

	while (changers_rest(c, FOLLOW_EVERY_MS)) {
		if (c->on_postgres) /* SQLite has one process: nobody else can put anything */
			follow_once(c, &seen);
		bring_wanted(c);
	}
	return NULL;
}

/* ---- putting ---- */

static void *changers_put_aside(void *context)
{
	struct definition_put *put = context;
	struct changers *c = put->changers;
	struct lane_runner runner;
	enum hx_code code;

	changers_runner(c, &runner);
	pthread_mutex_lock(&c->configuring);
	code = definitions_put(c->definitions, put->name, put->text, &runner.runner, c->options->clock, c->config,
			       put->findings, &put->version, &put->err);
	pthread_mutex_unlock(&c->configuring);
	/* Before the answer, so that whoever got it can put the next. */
	monitor_lock(&c->monitor);
	c->putting = false;
	monitor_unlock(&c->monitor);
	put->done(put, code);
	return NULL;
}

enum hx_code changers_put(struct changers *c, struct definition_put *definition)
{
	enum hx_code code = HX_OK;
	struct hx_error err;

	definition->changers = c;
	LOCKED(&c->monitor.mutex);
	if (c->stopping) {
		code = HX_STOPPING;
	} else if (c->putting) {
		code = HX_BUSY;
	} else {
		/* The one before is past its work, and at most giving its answer. */
		thread_join(&c->putter);
		c->putting = thread_start(&c->putter, changers_put_aside, definition, "the thread of a definition",
					  &err) == HX_OK;
		code = c->putting ? HX_OK : HX_BUSY;
	}
	return code;
}

void changers_init(struct changers *c, const struct engine_options *options, struct definitions *definitions,
		   struct lanes *lanes)
{
	*c = (struct changers){
		.options = options,
		.definitions = definitions,
		.lanes = lanes,
		.config = options->config,
		.on_postgres = strncmp(options->db_url, "sqlite:", 7) != 0,
	};
	pthread_mutex_init(&c->configuring, NULL);
	monitor_init(&c->monitor);
}

void changers_release(struct changers *c)
{
	monitor_release(&c->monitor);
	pthread_mutex_destroy(&c->configuring);
}

enum hx_code changers_start(struct changers *c, struct hx_error *err)
{
	return thread_start(&c->follower, follow, c, "the thread that follows other nodes' definitions", err);
}

void changers_stop(struct changers *c)
{
	monitor_raise(&c->monitor, &c->stopping);
}

/* `stopping` keeps the threads as they are. */
void changers_join(struct changers *c)
{
	thread_join(&c->follower);
	thread_join(&c->putter);
}
