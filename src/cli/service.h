/*
 * What `hapax serve` and `hapax gate` are to the system that runs them.
 *
 * systemd wants to hear of a service of Type=notify by a datagram to the socket that NOTIFY_SOCKET names (sd_notify(3)): a path, or
 * with @ in front a name that is in no file system. Without that variable nobody wants to hear anything.
 */
#ifndef HX_CLI_SERVICE_H
#define HX_CLI_SERVICE_H

#include <signal.h>

#include "base/clock.h"

/* Does not wait. Whether it was heard is not ours to know: a service does its work either way. */
void service_tell(const char *state);
/* RELOADING=1, with the moment, by which systemd tells it from the one before. READY=1 ends it. */
void service_tell_reloading(struct clock *clock);
/* So many ms, or until one of these signals (which are blocked) but SIGHUP comes. */
void service_wait(const sigset_t *signals, int64_t ms);
/*
 * As many descriptors as all clients and all actions together may need, if the system lets us: a login shell has 1024, by which
 * the limit on connections would never be reached, but requests fail.
 */
void service_raise_descriptors(void);

#endif
