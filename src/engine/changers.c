/* See changers.h. */
#include "engine/changers.h"

#include <errno.h>
#include <string.h>
#include <time.h>

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
		struct strbuf line;

		if (f->severity != FINDING_ERROR)
			continue;
		n++;
		strbuf_init(&line, LOG_LINE_BYTES_MAX);
		finding_print(f, &line);
		log_error(c->options->log, what, log_slice("finding", strbuf_slice(&line)));
		strbuf_release(&line);
	}
}

static void follow_once(struct changers *c, int64_t *seen)
{
	struct lane_runner runner;
	struct findings findings;
	struct arena arena;
	struct hx_error err = {0};
	size_t changes_n = 0;
	enum hx_code code;

	changers_runner(c, &runner);
	arena_init(&arena, FOLLOW_BYTES_MAX);
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
	arena_release(&arena);
}

/* Versions that have been asked for in vain: another node has put and used them, a moment ago. */
static void bring_wanted(struct changers *c)
{
	static const int64_t topics[] = {RUN_TOPIC, BATCH_TOPIC};
	struct lane_runner runner;
	struct findings findings;
	struct arena arena;
	struct hx_error err = {0};
	size_t loaded_n = 0;

	changers_runner(c, &runner);
	arena_init(&arena, FOLLOW_BYTES_MAX);
	findings_init(&findings, &arena);
	if (definitions_load_wanted(c->definitions, &runner.runner, &findings, &loaded_n, &err))
		log_info(c->options->log, "a definition that runs or batches have is not here yet",
			 log_text("detail", err.detail));
	log_findings(c, &findings, "a definition that runs or batches have cannot serve here");
	arena_release(&arena);
	for (size_t i = 0; loaded_n && i < c->lanes->n; i++)
		lane_wake(c->lanes->lanes[i], topics, sizeof topics / sizeof *topics);
}

void changers_tell_wanted(void *context)
{
	struct changers *c = context;

	pthread_mutex_lock(&c->mutex);
	c->wanted = true;
	pthread_cond_broadcast(&c->stop);
	pthread_mutex_unlock(&c->mutex);
}

/* Until then, or until something is wanted. False: the engine is stopping. */
static bool rest(struct changers *c, int64_t ms)
{
	struct timespec until;
	bool stopping;
	int rc = 0;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += ms / 1000;
	pthread_mutex_lock(&c->mutex);
	while (!c->stopping && !c->wanted && rc != ETIMEDOUT)
		rc = pthread_cond_timedwait(&c->stop, &c->mutex, &until);
	stopping = c->stopping;
	c->wanted = false;
	pthread_mutex_unlock(&c->mutex);
	return !stopping;
}

static void *follow(void *context)
{
	struct changers *c = context;
	int64_t seen = -1;

	while (rest(c, FOLLOW_EVERY_MS)) {
		if (c->on_postgres) /* SQLite has one process: nobody else can put anything */
			follow_once(c, &seen);
		bring_wanted(c);
	}
	return NULL;
}

/* ---- putting ---- */

static void *put(void *context)
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
	pthread_mutex_lock(&c->mutex);
	c->putting = false;
	pthread_mutex_unlock(&c->mutex);
	put->done(put, code);
	return NULL;
}

enum hx_code changers_put(struct changers *c, struct definition_put *definition)
{
	enum hx_code code = HX_OK;

	definition->changers = c;
	pthread_mutex_lock(&c->mutex);
	if (c->stopping) {
		code = HX_STOPPING;
	} else if (c->putting) {
		code = HX_BUSY;
	} else {
		/* The one before is past its work, and at most giving its answer. */
		if (c->put_started)
			pthread_join(c->putter, NULL);
		c->put_started = pthread_create(&c->putter, NULL, put, definition) == 0;
		c->putting = c->put_started;
		code = c->putting ? HX_OK : HX_BUSY;
	}
	pthread_mutex_unlock(&c->mutex);
	return code;
}

void changers_init(struct changers *c, const struct engine_options *options, struct definitions *definitions,
		   struct lanes *lanes)
{
	pthread_condattr_t attr;

	*c = (struct changers){
		.options = options,
		.definitions = definitions,
		.lanes = lanes,
		.config = options->config,
		.on_postgres = strncmp(options->db_url, "sqlite:", 7) != 0,
	};
	pthread_mutex_init(&c->configuring, NULL);
	pthread_mutex_init(&c->mutex, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&c->stop, &attr);
	pthread_condattr_destroy(&attr);
}

void changers_release(struct changers *c)
{
	pthread_cond_destroy(&c->stop);
	pthread_mutex_destroy(&c->mutex);
	pthread_mutex_destroy(&c->configuring);
}

enum hx_code changers_start(struct changers *c, struct hx_error *err)
{
	c->following = pthread_create(&c->follower, NULL, follow, c) == 0;
	return c->following ? HX_OK : error_set(err, HX_INTERNAL, "the definitions of other nodes cannot be followed");
}

void changers_stop(struct changers *c)
{
	pthread_mutex_lock(&c->mutex);
	c->stopping = true;
	pthread_cond_broadcast(&c->stop);
	pthread_mutex_unlock(&c->mutex);
}

/* `stopping` keeps the threads as they are. */
void changers_join(struct changers *c)
{
	if (c->following)
		pthread_join(c->follower, NULL);
	if (c->put_started)
		pthread_join(c->putter, NULL);
	c->following = c->put_started = false;
}
