/*
 * Who changes what is in force: the thread that follows what other nodes put, and brings the versions that runs and batches want;
 * the thread that puts a definition here; and the configuration that definitions are checked against.
 */
#pragma once

#include "base/thread.h"

#include "engine/definitions.h"
#include "engine/engine.h"
#include "engine/runner.h"

struct changers {
	const struct engine_options *options;
	struct definitions *definitions;
	struct lanes *lanes;
	bool on_postgres;                      /* SQLite has one process: nobody else can put anything */
	_Atomic(const struct config *) config; /* in force: engine_reload() changes it */
	pthread_mutex_t configuring; /* definitions are checked against the configuration that is in force then */
	struct monitor monitor;      /* over all that follows */
	bool stopping;
	bool wanted;  /* a version that a run or a batch has and we do not */
	bool putting; /* the putter has not come to its end */
	struct thread follower, putter;
};

/* All are borrowed, and may be filled in later: they are used from changers_start() on. */
void changers_init(struct changers *c, const struct engine_options *options, struct definitions *definitions,
		   struct lanes *lanes);
enum hx_code changers_start(struct changers *c, struct hx_error *err) HX_MUST_CHECK;
/* Before the lanes stop: nothing new begins. */
void changers_stop(struct changers *c);
/* After the lanes have stopped, which ends whatever a changer waits for. */
void changers_join(struct changers *c);
void changers_release(struct changers *c);

/* See engine_put_definition(). */
enum hx_code changers_put(struct changers *c, struct definition_put *definition) HX_MUST_CHECK;
/* From any thread; context: the changers. */
void changers_tell_wanted(void *context);
/* What asks the store on behalf of a change. */
void changers_runner(struct changers *c, struct lane_runner *runner);
