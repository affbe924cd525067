/*
 * Signals are the program's: threads that the library makes block all of them. A new thread inherits the mask of the one that
 * makes it, so whoever makes threads does so between these two.
 */
#ifndef HX_BASE_SIGNALS_H
#define HX_BASE_SIGNALS_H

#include <pthread.h>
#include <signal.h>

static inline void signals_block(sigset_t *ret_before)
{
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, ret_before);
}

static inline void signals_restore(const sigset_t *before)
{
	pthread_sigmask(SIG_SETMASK, before, NULL);
}

#endif
