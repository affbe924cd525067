/* See service.h. */
#include "cli/service.h"

#include <inttypes.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define DESCRIPTORS 65536

/* False: there is none, or it is no name of a socket. */
static bool socket_address(struct sockaddr_un *ret_address, socklen_t *ret_n)
{
	const char *name = getenv("NOTIFY_SOCKET");
	size_t n = name ? strlen(name) : 0;

	*ret_address = (struct sockaddr_un){.sun_family = AF_UNIX};
	if (n < 2 || n >= sizeof ret_address->sun_path || (name[0] != '/' && name[0] != '@'))
		return false;
	memcpy(ret_address->sun_path, name, n);
	if (name[0] == '@')
		ret_address->sun_path[0] = '\0';
	*ret_n = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n);
	return true;
}

void service_tell(const char *state)
{
	struct sockaddr_un address;
	socklen_t n;
	int fd;

	if (!socket_address(&address, &n))
		return;
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return;
	(void)sendto(fd, state, strlen(state), MSG_NOSIGNAL, (const struct sockaddr *)&address, n);
	close(fd);
}

void service_tell_reloading(struct clock *clock)
{
	char state[80];

	snprintf(state, sizeof state, "RELOADING=1\nMONOTONIC_USEC=%" PRId64, clock_mono(clock).ns / 1000);
	service_tell(state);
}

/* ---- its life ---- */

static void raise_descriptors(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur >= DESCRIPTORS)
		return;
	limit.rlim_cur = limit.rlim_max < DESCRIPTORS ? limit.rlim_max : DESCRIPTORS;
	(void)setrlimit(RLIMIT_NOFILE, &limit); /* what there is has to do then */
}

void service_begin(sigset_t *signals, struct log *log, struct steady_clock *clock)
{
	sigemptyset(signals);
	sigaddset(signals, SIGTERM);
	sigaddset(signals, SIGINT);
	sigaddset(signals, SIGHUP);
	pthread_sigmask(SIG_BLOCK, signals, NULL);
	signal(SIGPIPE, SIG_IGN);
	raise_descriptors();
	log_init(log, STDERR_FILENO, LOG_LEVEL_INFO, clock_system());
	steady_clock_init(clock, clock_system(), log);
}

void service_ready(const char *address)
{
	printf("ready http://%s\n", address);
	fflush(stdout);
	service_tell("READY=1");
}

void service_wait_for_end(const sigset_t *signals, void (*reload)(void *context), void *context)
{
	int signal = SIGHUP;

	for (;;) {
		if (sigwait(signals, &signal))
			continue;
		if (signal != SIGHUP)
			return;
		reload(context);
	}
}

void service_give_notice(const sigset_t *signals, int64_t ms, struct log *log)
{
	struct mono_time until = mono_add_ms(clock_mono(clock_system()), ms);
	int64_t left;
	int signal;

	if (ms)
		log_info(log, "a stop is announced: /readyz says so, connections are still taken", log_int("ms", ms));
	while ((left = until.ns - clock_mono(clock_system()).ns) > 0) {
		signal = sigtimedwait(signals, NULL,
				      &(struct timespec){.tv_sec = left / 1000000000, .tv_nsec = left % 1000000000});
		if (signal > 0 && signal != SIGHUP)
			return;
	}
}
