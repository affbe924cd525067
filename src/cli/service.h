/*
 * What `hapax serve` and `hapax gate` are to the system that runs them.
 *
 * systemd wants to hear of a service of Type=notify by a datagram to the socket that NOTIFY_SOCKET names (sd_notify(3)): a path, or
 * with @ in front a name that is in no file system. Without that variable nobody wants to hear anything.
 */
#pragma once

#include <signal.h>

#include "base/log.h"
#include "base/steady_clock.h"

/*
 * How both begin, before their first thread: the signals that end them and SIGHUP are blocked in all threads, to be waited for and
 * never handled; the log goes to standard error; and there are as many descriptors as all clients and all actions together may
 * need, if the system lets us: a login shell has 1024, by which the limit on connections would never be reached, but requests fail.
 */
void service_begin(sigset_t *ret_signals, struct log *log, struct steady_clock *clock);
/* Who waits for it hears that it is ready, and where. */
void service_ready(const char *address);
/* Waits for a signal that ends it; with each SIGHUP before it calls `reload`. */
void service_wait_for_end(const sigset_t *signals, void (*reload)(void *context), void *context);
/* Connections are still taken for so many ms, or until a second signal but SIGHUP comes. */
void service_give_notice(const sigset_t *signals, int64_t ms, struct log *log);

/* Does not wait. Whether it was heard is not ours to know: a service does its work either way. */
void service_tell(const char *state);
/* RELOADING=1, with the moment, by which systemd tells it from the one before. READY=1 ends it. */
void service_tell_reloading(struct clock *clock);
