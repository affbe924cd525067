/* See exec.h for the table. A call is carried out by one thread of a pool: a process is dearer than a thread. */
#include "act/exec.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sysexits.h>
#include <unistd.h>

#include "act/pool.h"
#include "act/process.h"
#include "base/arena.h"
#include "base/excerpt.h"
#include "base/trace.h"

#define TAIL_SHOWN_MAX (6 * PROCESS_TAIL_BYTES) /* all of it: a tail is not cut at its end */
#define ENV_MAX 8
#define ENV_BYTES_MAX (256u << 10)

struct exec {
	struct kind kind;
	struct pool pool;
	pthread_mutex_t mutex; /* of every job's wake_fd */
};

/* ---- the environment ---- */

struct environment {
	struct arena arena;
	size_t n;
	char *list[ENV_MAX + 1];
};

static void env_add(struct environment *env, const char *name, struct slice value)
{
	size_t name_n = strlen(name);
	char *text = arena_alloc(&env->arena, name_n + value.n + 2);

	if (!text)
		return; /* arena.failed says so */
	memcpy(text, name, name_n);
	text[name_n] = '=';
	if (value.n)
		memcpy(text + name_n + 1, value.p, value.n);
	text[name_n + 1 + value.n] = '\0';
	ASSERT(env->n < ENV_MAX);
	env->list[env->n++] = text;
}

static void env_add_int(struct environment *env, const char *name, int64_t value)
{
	char text[24];

	snprintf(text, sizeof text, "%" PRId64, value);
	env_add(env, name, slice_str(text));
}

static void env_inherit(struct environment *env, const char *name, const char *otherwise)
{
	const char *value = getenv(name);

	env_add(env, name, slice_str(value ? value : otherwise));
}

static void env_init(struct environment *env, const struct act_call *call)
{
	*env = (struct environment){0};
	arena_init(&env->arena, ENV_BYTES_MAX);
	env_inherit(env, "PATH", "/usr/local/bin:/usr/bin:/bin");
	env_inherit(env, "LANG", "C.UTF-8");
	env_add(env, "HAPAX_IDEMPOTENCY_KEY", call->key);
	env_add_int(env, "HAPAX_ATTEMPT", call->attempt);
	env_add_int(env, "HAPAX_FENCE", act_fence(call));
	if (call->traceparent.n)
		env_add(env, "TRACEPARENT", trace_parent(call->traceparent));
	if (trace_state(call->traceparent).n)
		env_add(env, "TRACESTATE", trace_state(call->traceparent));
}

/* ---- how it ended ---- */

static struct verdict say_with_tail(enum act_outcome outcome, const struct process_end *end, struct strbuf *words)
{
	struct slice tail = slice_of(end->tail, end->tail_n);

	while (tail.n && strchr("\r\n\t ", tail.p[tail.n - 1]))
		tail.n--;
	while (tail.n && ((unsigned char)tail.p[0] & 0xc0) == 0x80) { /* cut inside of a character */
		tail.p++;
		tail.n--;
	}
	if (tail.n) {
		strbuf_add_str(words, ": ");
		verdict_show(words, tail, TAIL_SHOWN_MAX);
	}
	return (struct verdict){outcome, strbuf_slice(words), 0};
}

static enum act_outcome outcome_of_exit(int code)
{
	switch (code) {
	case EX_TEMPFAIL:
		return ACT_FAILED;
	case EX_USAGE:
	case EX_NOPERM:
	case EX_CONFIG:
		return ACT_FAILED_FOR_GOOD;
	default:
		return ACT_UNKNOWN;
	}
}

static struct verdict judge_exit(const struct process_end *end, struct slice output, struct strbuf *words)
{
	if (end->code == 0)
		return verdict_of_output(output, words);
	if (end->code == EX_DATAERR)
		return verdict_of_rejection(output, words);
	(void)verdict_say(ACT_UNKNOWN, words, "exit code %d", end->code);
	return say_with_tail(outcome_of_exit(end->code), end, words);
}

static bool is_shortage(int error)
{
	return error == EAGAIN || error == ENOMEM || error == EMFILE || error == ENFILE || error == ENOSPC;
}

static struct verdict exec_judge(const struct job *job, const struct process_end *end, struct slice output,
				 struct strbuf *words)
{
	switch (end->fate) {
	case PROCESS_EXITED:
		return judge_exit(end, output, words);
	case PROCESS_NOT_STARTED:
		return verdict_say(is_shortage(end->code) ? ACT_FAILED : verdict_never_sent(&job->call), words,
				   "%s cannot be started: %s", excerpt_of(slice_str(job->action->argv[0])).text,
				   strerrordesc_np(end->code));
	case PROCESS_SIGNALLED:
		(void)verdict_say(ACT_UNKNOWN, words, "died of signal %d", end->code);
		break;
	case PROCESS_TIMED_OUT:
		(void)verdict_say(ACT_UNKNOWN, words, "killed after %" PRId64 " ms", job_timeout_ms(job));
		break;
	case PROCESS_CANCELLED:
		(void)verdict_say(ACT_UNKNOWN, words, "killed: the call was cancelled");
		break;
	case PROCESS_FLOODED:
		(void)verdict_say(ACT_UNKNOWN, words, "killed: it wrote more than %u bytes", VERDICT_OUTPUT_BYTES_MAX);
		break;
	case PROCESS_LOST:
		(void)verdict_say(ACT_UNKNOWN, words, "how it ended is lost: %s", strerrordesc_np(end->code));
		break;
	}
	return say_with_tail(ACT_UNKNOWN, end, words);
}

/* ---- a call ---- */

static struct verdict run_program(struct job *job, int wake_fd, struct strbuf *out, struct strbuf *words)
{
	struct process_plan plan = {
		.argv = job->action->argv,
		.input = job->call.input,
		.timeout_ms = job_timeout_ms(job),
		.wake_fd = wake_fd,
	};
	struct environment env;
	struct process_end end;
	struct verdict verdict;

	env_init(&env, &job->call);
	plan.envp = env.list;
	if (env.arena.failed) {
		verdict = verdict_say(ACT_FAILED, words, "there is no room for the environment");
	} else {
		process_run(&plan, out, &end);
		verdict = exec_judge(job, &end, strbuf_slice(out), words);
	}
	arena_release(&env.arena);
	return verdict;
}

static struct verdict call(struct job *job, int wake_fd, struct strbuf *out, struct strbuf *words)
{
	const struct act_call *call = &job->call;

	if (!job->action->argv || !job->action->argv[0])
		return verdict_say(verdict_never_sent(call), words, "the action has no argv");
	if (memchr(call->key.p, '\0', call->key.n) || memchr(call->traceparent.p, '\0', call->traceparent.n))
		return verdict_say(verdict_never_sent(call), words, "the key or the traceparent holds a NUL");
	if (wake_fd < 0)
		return verdict_say(ACT_FAILED, words, "no descriptor is left");
	if (atomic_load(&job->cancelled))
		return verdict_say(ACT_FAILED, words, "cancelled before it began");
	return run_program(job, wake_fd, out, words);
}

static void set_wake_fd(struct exec *exec, struct job *job, int fd)
{
	LOCKED(&exec->mutex);
	job->wake_fd = fd;
}

/* The descriptor stands in the job before `cancelled` is looked at, so a cancel is seen in one way or the other. */
static void exec_run(struct kind *kind, struct job *job)
{
	struct exec *exec = (struct exec *)kind;
	int wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	struct verdict verdict;

	LOCAL_STRBUF(out, VERDICT_OUTPUT_BYTES_MAX);
	LOCAL_STRBUF(words, VERDICT_WORDS_MAX);
	set_wake_fd(exec, job, wake_fd);
	verdict = call(job, wake_fd, &out, &words);
	set_wake_fd(exec, job, -1);
	if (wake_fd >= 0)
		(void)close(wake_fd); /* an eventfd has nothing to lose */
	port_job_done(job, verdict);
}

/* ---- from the port ---- */

static void exec_start(struct kind *kind, struct job *job)
{
	pool_put(&((struct exec *)kind)->pool, job);
}

static void exec_flush(struct kind *kind)
{
	pool_flush(&((struct exec *)kind)->pool);
}

static void exec_cancel(struct kind *kind, struct job *job)
{
	struct exec *exec = (struct exec *)kind;

	LOCKED(&exec->mutex);
	if (job->wake_fd >= 0)
		(void)eventfd_write(job->wake_fd, 1); /* fails only when it is full of earlier ones */
}

static void free_kind(struct kind *kind)
{
	struct exec *exec = (struct exec *)kind;

	pool_release(&exec->pool);
	pthread_mutex_destroy(&exec->mutex);
	free(exec);
}

enum hx_code exec_kind_new(size_t slots, struct kind **ret_kind, struct hx_error *err)
{
	struct exec *exec = calloc(1, sizeof *exec);
	enum hx_code code;

	if (!exec)
		return error_set(err, HX_NO_MEMORY, "exec actions");
	exec->kind = (struct kind){
		.start = exec_start, .flush = exec_flush, .cancel = exec_cancel, .free = free_kind, .slots = slots};
	pthread_mutex_init(&exec->mutex, NULL);
	code = pool_init(&exec->pool, slots, exec_run, &exec->kind, err);
	return HAND_OVER(code, &exec->kind, free_kind, ret_kind);
}
