/* See sqlite_sync.h. */
#include "db/sqlite_sync.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/thread.h"

struct sqlite_sync {
	int fd;
	void (*told)(void *context, int64_t ns);
	void *context;
	struct thread thread;
	_Atomic uint64_t promised, done;
	struct monitor monitor; /* over what follows, and over raising `done` */
	uint64_t asked;
	bool stopping;
};

/* What the kernel could not write it may have forgotten: a second try would succeed, without what is lost. */
_Noreturn static void stop_after_failed_sync(int error)
{
	fprintf(stderr, "hapax: the store could not be synced (%s): stopping, the next start recovers\n",
		strerror(error));
	abort();
}

/* The last number that was asked for; 0: none is left, and none will come. */
static uint64_t next_number(struct sqlite_sync *sync)
{
	LOCKED(&sync->monitor.mutex);
	while (sync->asked == atomic_load(&sync->done) && !sync->stopping)
		monitor_wait(&sync->monitor);
	return sync->asked == atomic_load(&sync->done) ? 0 : sync->asked;
}

static void *sync_run(void *context)
{
	struct sqlite_sync *sync = context;
	uint64_t number;

	while ((number = next_number(sync))) {
		int64_t began_ns = clock_mono(clock_system()).ns;

		if (fdatasync(sync->fd))
			stop_after_failed_sync(errno);
		monitor_lock(&sync->monitor);
		atomic_store(&sync->done, number);
		monitor_wake_all(&sync->monitor);
		monitor_unlock(&sync->monitor);
		sync->told(sync->context, clock_mono(clock_system()).ns - began_ns);
	}
	return NULL;
}

void sqlite_sync_free(struct sqlite_sync *sync)
{
	if (!sync)
		return;
	monitor_stop(&sync->monitor, &sync->stopping, &sync->thread);
	monitor_release(&sync->monitor);
	if (sync->fd >= 0)
		close(sync->fd);
	free(sync);
}

enum hx_code sqlite_sync_new(const char *log_path, void (*told)(void *context, int64_t ns), void *context,
			     struct sqlite_sync **ret, struct hx_error *err)
{
	struct sqlite_sync *sync = calloc(1, sizeof *sync);
	enum hx_code code = HX_OK;

	if (!sync)
		return error_set(err, HX_NO_MEMORY, "open a store");
	monitor_init(&sync->monitor);
	sync->told = told;
	sync->context = context;
	sync->fd = open(log_path, O_RDONLY | O_CLOEXEC);
	if (sync->fd < 0)
		code = error_set(err, HX_STORE_UNAVAILABLE, "%s: %s", log_path, strerror(errno));
	if (!code)
		code = thread_start(&sync->thread, sync_run, sync, "the thread that syncs the store", err);
	return HAND_OVER(code, sync, sqlite_sync_free, ret);
}

void sqlite_sync_promise(struct sqlite_sync *sync)
{
	ASSERT(atomic_load(&sync->promised) == sync->asked); /* which this thread alone writes */
	atomic_store(&sync->promised, sync->asked + 1);
}

void sqlite_sync_ask(struct sqlite_sync *sync)
{
	LOCKED(&sync->monitor.mutex);
	sync->asked++;
	ASSERT(sync->asked == atomic_load(&sync->promised));
	monitor_wake_all(&sync->monitor);
}

uint64_t sqlite_sync_promised(const struct sqlite_sync *sync)
{
	return atomic_load(&sync->promised);
}

bool sqlite_sync_is_done(const struct sqlite_sync *sync, uint64_t number)
{
	return atomic_load(&sync->done) >= number;
}

bool sqlite_sync_wait(struct sqlite_sync *sync, uint64_t number, struct mono_time until)
{
	LOCKED(&sync->monitor.mutex);
	while (!sqlite_sync_is_done(sync, number))
		if (!monitor_wait_until(&sync->monitor, until))
			return sqlite_sync_is_done(sync, number);
	return true;
}
