/* See process.h. */
#include "act/process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"

#define FILES_MAX 1024
#define FILE_BYTES_MAX (1ull << 30)
#define MODEST_BYTES_MAX (1ul << 30)
#define MODEST_NICE 10
#define DATA_BYTES_MAX (4ull << 30)
#define CHUNK_BYTES 65536
#define DRAIN_CHUNKS 64 /* what a pipe can hold is read after the end, but not for ever from one who escaped */

struct process {
	pid_t pid;
	int pidfd;
	int in, out, err;         /* our ends */
	int child_out, child_err; /* its ends, ours until the start */
	struct strbuf *output;
	struct process_end *end;
};

static void close_fd(int *fd)
{
	if (*fd >= 0)
		(void)close(*fd); /* nothing of ours is lost: pipes, and a file in memory */
	*fd = -1;
}

/* In a process that was started without standard streams a new descriptor could be 0, 1 or 2. */
static int above_stdio(int fd)
{
	int high;

	if (fd < 0 || fd > STDERR_FILENO)
		return fd;
	high = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	(void)close(fd);
	return high;
}

static bool open_input(struct process *p, struct slice input)
{
	p->in = above_stdio(memfd_create("hapax-input", MFD_CLOEXEC));
	if (p->in < 0)
		return false;
	for (size_t done = 0; done < input.n;) {
		ssize_t n = write(p->in, input.p + done, input.n - done);

		if (n < 0 && errno != EINTR)
			return false;
		done += n > 0 ? (size_t)n : 0;
	}
	return lseek(p->in, 0, SEEK_SET) == 0;
}

static bool open_pipe(int *ret_read, int *ret_write)
{
	int fds[2];

	if (pipe2(fds, O_CLOEXEC) != 0)
		return false;
	*ret_read = above_stdio(fds[0]);
	*ret_write = above_stdio(fds[1]);
	return *ret_read >= 0 && *ret_write >= 0 && fcntl(*ret_read, F_SETFL, O_NONBLOCK) == 0;
}

/* ---- the start ---- */

static int set_attributes(posix_spawnattr_t *attr)
{
	sigset_t none, all;
	int failure;

	sigemptyset(&none);
	sigfillset(&all);
	failure = posix_spawnattr_setflags(attr,
					   POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	if (!failure)
		failure = posix_spawnattr_setpgroup(attr, 0);
	if (!failure)
		failure = posix_spawnattr_setsigmask(attr, &none);
	if (!failure)
		failure = posix_spawnattr_setsigdefault(attr, &all);
	return failure;
}

static int set_files(posix_spawn_file_actions_t *files, const struct process *p)
{
	int failure = posix_spawn_file_actions_adddup2(files, p->in, STDIN_FILENO);

	if (!failure)
		failure = posix_spawn_file_actions_adddup2(files, p->child_out, STDOUT_FILENO);
	if (!failure)
		failure = posix_spawn_file_actions_adddup2(files, p->child_err, STDERR_FILENO);
	if (!failure)
		failure = posix_spawn_file_actions_addclosefrom_np(files, STDERR_FILENO + 1);
	return failure;
}

/* argv is not changed, whatever its type in POSIX says. */
static int spawn(struct process *p, const struct process_plan *plan)
{
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attr;
	int failure = posix_spawn_file_actions_init(&files);

	if (failure)
		return failure;
	failure = posix_spawnattr_init(&attr);
	if (!failure) {
		failure = set_attributes(&attr);
		if (!failure)
			failure = set_files(&files, p);
		if (!failure)
			failure = posix_spawnp(&p->pid, plan->argv[0], &files, &attr, (char *const *)plan->argv,
					       plan->envp);
		(void)posix_spawnattr_destroy(&attr);
	}
	(void)posix_spawn_file_actions_destroy(&files);
	return failure;
}

/* Only downwards: what the operator gave us less of, the program gets less of. */
static void limit(pid_t pid, enum __rlimit_resource resource, rlim_t most)
{
	struct rlimit now;

	if (prlimit(pid, resource, NULL, &now) != 0)
		return; /* it is gone already */
	if (now.rlim_max > most)
		now.rlim_max = most;
	if (now.rlim_cur > now.rlim_max)
		now.rlim_cur = now.rlim_max;
	(void)prlimit(pid, resource, &now, NULL);
}

static void set_limits(pid_t pid, int64_t timeout_ms)
{
	long cores = sysconf(_SC_NPROCESSORS_ONLN);

	limit(pid, RLIMIT_CORE, 0);
	limit(pid, RLIMIT_NOFILE, FILES_MAX);
	limit(pid, RLIMIT_FSIZE, FILE_BYTES_MAX);
	limit(pid, RLIMIT_DATA, DATA_BYTES_MAX);
	limit(pid, RLIMIT_CPU, (rlim_t)(timeout_ms / 1000 + 2) * (rlim_t)(cores > 0 ? cores : 1));
}

/* 0 or an errno. */
static int process_start(struct process *p, const struct process_plan *plan)
{
	int failure;

	if (!open_input(p, plan->input) || !open_pipe(&p->out, &p->child_out) || !open_pipe(&p->err, &p->child_err))
		return errno ? errno : EIO;
	failure = spawn(p, plan);
	close_fd(&p->in);
	close_fd(&p->child_out);
	close_fd(&p->child_err);
	if (!failure)
		set_limits(p->pid, plan->timeout_ms);
	if (!failure && plan->modest) {
		limit(p->pid, RLIMIT_DATA, MODEST_BYTES_MAX);
		/* Above 19 is 19. If it fails, it is gone already. */
		(void)setpriority(PRIO_PROCESS, (id_t)p->pid, getpriority(PRIO_PROCESS, 0) + MODEST_NICE);
	}
	return failure;
}

/* ---- while it runs ---- */

static void keep_tail(struct process_end *end, const char *bytes, size_t n)
{
	size_t old;

	if (n > sizeof end->tail) {
		bytes += n - sizeof end->tail;
		n = sizeof end->tail;
	}
	old = end->tail_n < sizeof end->tail - n ? end->tail_n : sizeof end->tail - n;
	memmove(end->tail, end->tail + end->tail_n - old, old);
	memcpy(end->tail + old, bytes, n);
	end->tail_n = old + n;
}

/* One chunk. False: nothing more for now, or for ever (then the descriptor is closed). */
static bool read_chunk(int *fd, char *chunk, ssize_t *ret_n)
{
	*ret_n = 0;
	if (*fd < 0)
		return false;
	*ret_n = read(*fd, chunk, CHUNK_BYTES);
	if (*ret_n > 0)
		return true;
	if (*ret_n == 0 || (errno != EAGAIN && errno != EINTR))
		close_fd(fd);
	return false;
}

static bool read_both(struct process *p)
{
	char chunk[CHUNK_BYTES];
	bool more = false;
	ssize_t n;

	if (read_chunk(&p->out, chunk, &n)) {
		strbuf_add(p->output, chunk, (size_t)n);
		more = true;
	}
	if (read_chunk(&p->err, chunk, &n)) {
		keep_tail(p->end, chunk, (size_t)n);
		more = true;
	}
	return more;
}

static int wait_ms(struct mono_time deadline)
{
	int64_t ns = deadline.ns - clock_mono(clock_system()).ns;

	if (ns <= 0)
		return 0;
	return ns / 1000000 < 60000 ? (int)(ns / 1000000) + 1 : 60000;
}

/* Follows it until it ends by itself (PROCESS_EXITED for now) or there is a reason to end it. */
static enum process_fate follow(struct process *p, const struct process_plan *plan)
{
	struct mono_time deadline = mono_add_ms(clock_mono(clock_system()), plan->timeout_ms);

	for (;;) {
		int timeout = wait_ms(deadline);
		struct pollfd fds[] = {
			{.fd = plan->wake_fd, .events = POLLIN},
			{.fd = p->pidfd, .events = POLLIN},
			{.fd = p->out, .events = POLLIN}, /* poll() passes over those that are -1 */
			{.fd = p->err, .events = POLLIN},
		};

		if (timeout == 0)
			return PROCESS_TIMED_OUT;
		if (poll(fds, 4, timeout) < 0 && errno != EINTR && errno != EAGAIN)
			return PROCESS_LOST;
		if (fds[0].revents)
			return PROCESS_CANCELLED;
		if (fds[1].revents)
			return PROCESS_EXITED;
		(void)read_both(p);
		if (p->output->failed)
			return PROCESS_FLOODED;
	}
}

/* ---- the end ---- */

/* The leader is not reaped yet, so nobody else can have its number: the kill reaches this group or nobody. */
static void reap(struct process *p)
{
	siginfo_t info = {0};

	(void)kill(-p->pid, SIGKILL); /* fails when only the dead are left */
	for (int i = 0; i < DRAIN_CHUNKS && read_both(p); i++)
		;
	while (waitid(P_PID, (id_t)p->pid, &info, WEXITED) != 0)
		if (errno != EINTR) {
			if (p->end->fate == PROCESS_EXITED) {
				p->end->fate = PROCESS_LOST;
				p->end->code = errno;
			}
			return;
		}
	if (p->end->fate != PROCESS_EXITED)
		return;
	p->end->code = info.si_status;
	if (info.si_code != CLD_EXITED)
		p->end->fate = PROCESS_SIGNALLED;
	else if (p->output->failed)
		p->end->fate = PROCESS_FLOODED;
}

static void watch(struct process *p, const struct process_plan *plan)
{
	p->pidfd = pidfd_open(p->pid, 0);
	if (p->pidfd < 0) {
		p->end->fate = PROCESS_LOST;
		p->end->code = errno;
	} else {
		p->end->fate = follow(p, plan);
	}
	reap(p);
}

void process_run(const struct process_plan *plan, struct strbuf *out, struct process_end *ret_end)
{
	struct process p = {.output = out, .end = ret_end};
	int *const fds[] = {&p.in, &p.child_out, &p.child_err, &p.out, &p.err, &p.pidfd};

	for (size_t i = 0; i < sizeof fds / sizeof *fds; i++)
		*fds[i] = -1;

	*ret_end = (struct process_end){.fate = PROCESS_NOT_STARTED};
	errno = 0;
	ret_end->code = process_start(&p, plan);
	if (!ret_end->code)
		watch(&p, plan);
	for (size_t i = 0; i < sizeof fds / sizeof *fds; i++)
		close_fd(fds[i]);
}
