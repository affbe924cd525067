/* The exec kind with real processes. The shell here is the program that is run, named in argv like any other. */
#include "act/exec.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "unit/act/desk.h"

#define TIMEOUT_MS 1000 /* in which a shell has started a child and written down which, also on a busy machine */

static struct action sh_action(const char *argv[4], const char *script)
{
	argv[0] = "/bin/sh";
	argv[1] = "-c";
	argv[2] = script;
	argv[3] = NULL;
	return (struct action){.name = "x", .workflow = "w", .kind = ACTION_EXEC, .timeout_ms = 30000, .argv = argv};
}

static const struct {
	const char *script;
	enum act_outcome outcome;
	const char *part;
} cases[] = {
	{"exit 0", ACT_OK, "null"},
	{"cat", ACT_OK, "{\"in\":1}"},
	{"cat /dev/stdin", ACT_OK, "{\"in\":1}"},
	{"echo '{\"a\":1}'; echo noise >&2", ACT_OK, "{\"a\":1}"},
	{"echo '{\"is_invalid\":true}'", ACT_INVALID, "{\"is_invalid\":true}"},
	{"echo hello", ACT_UNKNOWN, "not JSON"},
	{"echo '{\"why\":\"x\"}'; exit 65", ACT_INVALID, "{\"why\":\"x\"}"},
	{"echo 'no such account'; exit 65", ACT_INVALID, "\"message\":\"no such account\""},
	{"exit 65", ACT_INVALID, "{\"is_invalid\":true}"},
	{"echo later >&2; exit 75", ACT_FAILED, "exit code 75: later"},
	{"echo wrong >&2; exit 64", ACT_FAILED_FOR_GOOD, "exit code 64: wrong"},
	{"exit 77", ACT_FAILED_FOR_GOOD, "exit code 77"},
	{"exit 78", ACT_FAILED_FOR_GOOD, "exit code 78"},
	{"echo 'Traceback' >&2; exit 1", ACT_UNKNOWN, "exit code 1: Traceback"},
	{"exit 2", ACT_UNKNOWN, "exit code 2"},
	{"exit 255", ACT_UNKNOWN, "exit code 255"},
	{"kill -9 $$", ACT_UNKNOWN, "died of signal 9"},
	{"kill -TERM $$", ACT_UNKNOWN, "died of signal 15"},
	{"printf 'a\\033[31mb' >&2; exit 75", ACT_FAILED, "a\\u001b[31mb"},
	{"seq 100000 >&2; printf 'last words\\n' >&2; exit 75", ACT_FAILED, "99999\\n100000\\nlast words"},
	{"trap '' PIPE; seq 300000 | head -c 1 >/dev/null; exit 0", ACT_OK, "null"},
	{"printf '\"%70000s\"' x", ACT_OK, "   x\""},
	{"sleep 1000 & exit 0", ACT_OK, "null"}, /* nobody waits for a child that was left behind */
};

static void test_exit_codes(void **state)
{
	struct desk desk;
	const char *argv[4];

	(void)state;
	desk_open(&desk, &(struct port_options){.exec_enabled = true});
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct action action = sh_action(argv, cases[i].script);
		const struct desk_answer *answer = desk_call(&desk, &action, "{\"in\":1}");

		if (answer->outcome != cases[i].outcome || !strstr(answer->output, cases[i].part))
			fail_msg("%s: %s: %.400s", cases[i].script, act_outcome_name(answer->outcome), answer->output);
	}
	desk_close(&desk);
}

static void test_off_by_default(void **state)
{
	struct desk desk;
	const char *argv[4];
	struct action action = sh_action(argv, "exit 0");

	(void)state;
	desk_open(&desk, &(struct port_options){0});
	desk_expect(desk_call(&desk, &action, "{}"), ACT_FAILED_FOR_GOOD, "exec actions are off");
	desk_close(&desk);
}

static void test_cannot_be_started(void **state)
{
	static const char *const missing[] = {"/nonexistent/program", NULL};
	static const char *const folder[] = {"/tmp", NULL};
	static const char *const nothing[] = {NULL};
	struct action action = {.name = "x", .kind = ACTION_EXEC, .timeout_ms = 30000};
	char script[] = "/tmp/hx-noexec.XXXXXX";
	const char *const no_interpreter[] = {script, NULL};
	int fd = mkstemp(script);
	struct desk desk;

	(void)state;
	assert_int_equal(write(fd, "echo {}\n", 8), 8); /* a shell would run this */
	fchmod(fd, 0755);
	close(fd);
	desk_open(&desk, &(struct port_options){.exec_enabled = true});
	action.argv = missing;
	desk_expect(desk_call(&desk, &action, "{}"), ACT_FAILED_FOR_GOOD, "/nonexistent/program cannot be started");
	action.argv = folder;
	desk_expect(desk_call(&desk, &action, "{}"), ACT_FAILED_FOR_GOOD, "cannot be started");
	action.argv = no_interpreter;
	desk_expect(desk_call(&desk, &action, "{}"), ACT_FAILED_FOR_GOOD, "cannot be started");
	action.argv = nothing;
	desk_expect(desk_call(&desk, &action, "{}"), ACT_FAILED_FOR_GOOD, "no argv");
	action.argv = NULL;
	desk_expect(desk_call(&desk, &action, "{}"), ACT_FAILED_FOR_GOOD, "no argv");
	desk_close(&desk);
	unlink(script);
}

/* Arguments are passed as they are. */
static void test_no_shell(void **state)
{
	static const char *const argv[] = {"printf", "\"%s|%s\"", "$(id) `id` ; $HOME *", "a b", NULL};
	struct action action = {.name = "x", .kind = ACTION_EXEC, .timeout_ms = 30000, .argv = argv};
	struct desk desk;

	(void)state;
	desk_open(&desk, &(struct port_options){.exec_enabled = true});
	desk_expect(desk_call(&desk, &action, "{}"), ACT_OK, "\"$(id) `id` ; $HOME *|a b\"");
	desk_close(&desk);
}

static void test_environment(void **state)
{
	struct act_call call = {.input = slice_str("{}"),
				.key = slice_str("key=1"),
				.attempt = 4,
				.traceparent = slice_str("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01 a=b"),
				.lease.fence = 17};
	const char *argv[4];
	struct action action = sh_action(argv, "env | grep -v '^_=\\|^PWD=\\|^SHLVL=\\|^OLDPWD=' | sort >&2; exit 75");
	const struct desk_answer *answer;
	struct desk desk;

	(void)state;
	setenv("HX_TEST_SECRET", "canary", 1);
	setenv("PATH", "/usr/bin:/bin", 1);
	setenv("LANG", "C.UTF-8", 1);
	desk_open(&desk, &(struct port_options){.exec_enabled = true});
	answer = desk_wait(&desk, desk_start(&desk, &action, call));
	desk_expect(answer, ACT_FAILED,
		    "exit code 75: HAPAX_ATTEMPT=4\\nHAPAX_FENCE=17\\nHAPAX_IDEMPOTENCY_KEY=key=1\\nLANG=C.UTF-8\\n"
		    "PATH=/usr/bin:/bin\\nTRACEPARENT=00-0af7651916cd43dd8448eb211c80319c-");
	assert_non_null(strstr(answer->output, "-01\\nTRACESTATE=a=b"));
	assert_null(strstr(answer->output, "b7ad6b7169203331")); /* it is a span of its own */
	assert_null(strstr(answer->output, "canary"));
	call.key = slice_of("a\0b", 3);
	desk_expect(desk_wait(&desk, desk_start(&desk, &action, call)), ACT_FAILED_FOR_GOOD, "NUL");
	desk_close(&desk);
}

static void test_descriptors_signals_limits(void **state)
{
	int leak = open("/dev/null", O_RDONLY), high = fcntl(leak, F_DUPFD, 100); /* without close-on-exec */
	const char *argv[4];
	struct desk desk;
	struct action action;

	(void)state;
	desk_open(&desk, &(struct port_options){.exec_enabled = true});
	/* 3 is ls's own look at the folder. */
	action = sh_action(argv, "exec ls /proc/self/fd | tr '\\n' ' ' | sed 's/.*/\"&\"/'");
	desk_expect(desk_call(&desk, &action, "{}"), ACT_OK, "\"0 1 2 3 \"");
	action = sh_action(argv, "sed -n 's/^SigBlk:.*\\(.\\{16\\}\\)$/\"\\1\"/p' /proc/self/status");
	desk_expect(desk_call(&desk, &action, "{}"), ACT_OK, "\"0000000000000000\"");
	/* Set just after the start, so the program waits for it. */
	action = sh_action(argv, "until [ $(ulimit -n) -le 1024 ] && [ $(ulimit -t) != unlimited ]; do :; done; "
				 "echo \"[$(ulimit -c), $(ulimit -n)]\"");
	desk_expect(desk_call(&desk, &action, "{}"), ACT_OK, "[0, ");
	desk_close(&desk);
	close(leak);
	close(high);
}

/* The limits at work. They are set just after the start, the one of time last, so the program waits for that. */
static void test_limits_from_inside(void **state)
{
	static const char wait[] = "until [ $(ulimit -t) != unlimited ]; do :; done";
	char script[600], expected[64], far[200];
	const char *argv[] = {"bash", "-c", script, NULL};
	struct action action = {.name = "x", .kind = ACTION_EXEC, .timeout_ms = 30000, .argv = argv};
	struct rlimit files;
	struct desk desk;

	(void)state;
	getrlimit(RLIMIT_NOFILE, &files);
	files.rlim_cur = files.rlim_max < 2000 ? files.rlim_max : 2000; /* more than a program gets */
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &files), 0);
	desk_open(&desk, &(struct port_options){.exec_enabled = true});
	/* As many files as it may have; the number of the last one shows how many those are. */
	snprintf(script, sizeof script, "%s; while exec {fd}</dev/null; do last=$fd; done 2>/dev/null; echo $last",
		 wait);
	snprintf(expected, sizeof expected, "%ld", (files.rlim_cur < 1024 ? (long)files.rlim_cur : 1024) - 1);
	desk_expect(desk_call(&desk, &action, "{}"), ACT_OK, expected);
	/* A file as long as it may be, with nothing in it but its last byte; and one byte longer. */
	snprintf(far, sizeof far, "%s/hx-far", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
	for (int past = 0; past <= 1; past++) {
		snprintf(script, sizeof script,
			 "%s; trap '' XFSZ; printf x | dd of=%s bs=1 seek=%d 2>/dev/null; echo $?; rm %s", wait, far,
			 (1 << 30) - 1 + past, far);
		desk_expect(desk_call(&desk, &action, "{}"), ACT_OK, past ? "1" : "0");
	}
	snprintf(script, sizeof script, "%s; echo [$(ulimit -d), $(ulimit -c)]", wait);
	desk_expect(desk_call(&desk, &action, "{}"), ACT_OK, "[4194304, 0]");
	desk_close(&desk);
}

/* ---- ending it ---- */

/* A zombie is dead: who reaps it is the affair of the machine's first process. */
static bool is_alive(int pid)
{
	char path[64], text[512] = {0};
	FILE *file;
	char *bracket;

	snprintf(path, sizeof path, "/proc/%d/stat", pid);
	file = fopen(path, "r");
	if (!file)
		return false;
	text[fread(text, 1, sizeof text - 1, file)] = '\0';
	fclose(file);
	bracket = strrchr(text, ')');
	return bracket && bracket[2] != 'Z' && bracket[2] != 'X';
}

static int wait_for_pid(const char *path)
{
	struct timespec deadline = desk_deadline(), now;
	int pid = 0;

	do {
		FILE *file = fopen(path, "r");

		if (file) {
			if (fscanf(file, "%d\n", &pid) != 1 || fgetc(file) != '.')
				pid = 0;
			fclose(file);
		}
		sched_yield();
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while (pid == 0 && now.tv_sec < deadline.tv_sec);
	assert_true(pid > 0);
	return pid;
}

static void wait_until_dead(int pid)
{
	struct timespec deadline = desk_deadline(), now;

	do {
		if (!is_alive(pid))
			return;
		sched_yield();
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while (now.tv_sec < deadline.tv_sec);
	fail_msg("process %d is still alive", pid);
}

struct family {
	char path[64], script[256];
	const char *argv[4];
	struct action action;
};

/* A program with a child that would live for long, and the child's number in a file. */
static void family_init(struct family *f)
{
	snprintf(f->path, sizeof f->path, "%s/hx-pid.XXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
	close(mkstemp(f->path));
	snprintf(f->script, sizeof f->script, "trap '' TERM INT; sleep 1000 & printf '%%d\\n.' $! >%s; wait", f->path);
	f->action = sh_action(f->argv, f->script);
}

static void test_timeout_kills_the_group(void **state)
{
	struct family f;
	struct desk desk;

	(void)state;
	family_init(&f);
	f.action.timeout_ms = TIMEOUT_MS;
	desk_open(&desk, &(struct port_options){.exec_enabled = true});
	desk_expect(desk_call(&desk, &f.action, "{}"), ACT_UNKNOWN, "killed after 1000 ms");
	wait_until_dead(wait_for_pid(f.path));
	desk_close(&desk);
	unlink(f.path);
}

static void test_timeout_of_the_call(void **state)
{
	struct family f;
	struct desk desk;

	(void)state;
	family_init(&f);
	f.action.timeout_ms = 3600000;
	desk_open(&desk, &(struct port_options){.exec_enabled = true});
	desk_expect(desk_wait(&desk, desk_start(&desk, &f.action, (struct act_call){.timeout_ms = TIMEOUT_MS})),
		    ACT_UNKNOWN, "killed after 1000 ms");
	wait_until_dead(wait_for_pid(f.path));
	desk_close(&desk);
	unlink(f.path);
}

static void test_abort_kills_the_group(void **state)
{
	struct family f;
	struct desk desk;
	int pid;

	(void)state;
	family_init(&f);
	desk_open(&desk, &(struct port_options){.exec_enabled = true});
	uint64_t number = desk_start(&desk, &f.action, (struct act_call){.input = slice_str("{}")});

	pid = wait_for_pid(f.path);
	assert_true(is_alive(pid));
	desk_abort(&desk, number);
	wait_until_dead(pid);
	desk_wait_stats(&desk, 0, 0);
	desk_close(&desk);
	assert_false(desk.answers[number].here);
	unlink(f.path);
}

static void test_stop_kills_the_group(void **state)
{
	struct family f;
	struct desk desk;
	int pid;

	(void)state;
	family_init(&f);
	desk_open(&desk, &(struct port_options){.exec_enabled = true});
	uint64_t number = desk_start(&desk, &f.action, (struct act_call){.input = slice_str("{}")});

	pid = wait_for_pid(f.path);
	port_stop(desk.port, /* grace_ms= */ 10);
	desk_expect(&desk.answers[number], ACT_UNKNOWN, "killed: the call was cancelled");
	wait_until_dead(pid);
	desk_close(&desk);
	unlink(f.path);
}

/* A daemon gets away, as the manual says, with our pipe in its hands; the call ends all the same. */
static void test_a_daemon_does_not_hold_up_the_call(void **state)
{
	struct family f;
	struct desk desk;
	int pid;

	(void)state;
	family_init(&f);
	snprintf(f.script, sizeof f.script,
		 "setsid sh -c 'printf \"%%d\\n.\" $$ >%s; exec sleep 1000' & until [ -s %s ]; do :; done", f.path,
		 f.path);
	desk_open(&desk, &(struct port_options){.exec_enabled = true});
	desk_expect(desk_call(&desk, &f.action, "{}"), ACT_OK, "null");
	desk_close(&desk);
	pid = wait_for_pid(f.path);
	assert_true(is_alive(pid));
	kill(pid, SIGKILL);
	unlink(f.path);
}

static void test_ceilings(void **state)
{
	char script[128];
	const char *argv[4];
	struct desk desk;
	struct action action;
	size_t n = 4u << 20;
	char *input = malloc(n + 1);

	(void)state;
	memset(input, '7', n);
	input[n] = '\0';
	desk_open(&desk, &(struct port_options){.exec_enabled = true});
	snprintf(script, sizeof script, "printf 1; head -c %u /dev/zero | tr '\\0' 1", VERDICT_OUTPUT_BYTES_MAX - 1);
	action = sh_action(argv, script);
	assert_int_equal(desk_call(&desk, &action, "{}")->outcome, ACT_OK);
	snprintf(script, sizeof script, "head -c %u /dev/zero | tr '\\0' 1", VERDICT_OUTPUT_BYTES_MAX + 1);
	action = sh_action(argv, script);
	desk_expect(desk_call(&desk, &action, "{}"), ACT_UNKNOWN, "killed: it wrote more than");
	action = sh_action(argv, "yes");
	desk_expect(desk_call(&desk, &action, "{}"), ACT_UNKNOWN, "killed: it wrote more than");
	action = sh_action(argv, "wc -c");
	desk_expect(desk_call(&desk, &action, input), ACT_OK, "4194304");
	action = sh_action(argv, "exit 0"); /* does not read it */
	desk_expect(desk_call(&desk, &action, input), ACT_OK, "null");
	desk_close(&desk);
	free(input);
}

static void test_many_at_once(void **state)
{
	const char *argv[4];
	struct action action = sh_action(argv, "cat");
	struct desk desk;

	(void)state;
	desk_open(&desk, &(struct port_options){.exec_enabled = true, .exec_slots = 6});
	for (int i = 0; i < 60; i++)
		desk_start(&desk, &action, (struct act_call){.input = slice_str("[1]")});
	for (uint64_t i = 1; i <= 60; i++)
		desk_expect(desk_wait(&desk, i), ACT_OK, "[1]");
	desk_close(&desk);
}

static size_t open_descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	size_t n = 0;

	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

static void test_leaves_no_descriptor(void **state)
{
	static const char *const missing[] = {"/nonexistent/program", NULL};
	const char *argv[4];
	struct action action = sh_action(argv, "cat");
	struct desk desk;
	size_t before;

	(void)state;
	desk_open(&desk, &(struct port_options){.exec_enabled = true});
	before = open_descriptors();
	for (int i = 0; i < 10; i++) {
		action.argv = i % 2 ? argv : missing;
		desk_call(&desk, &action, "{}");
	}
	desk_wait_stats(&desk, 0, 0);
	assert_int_equal(open_descriptors(), before);
	desk_close(&desk);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_exit_codes),
		cmocka_unit_test(test_off_by_default),
		cmocka_unit_test(test_cannot_be_started),
		cmocka_unit_test(test_no_shell),
		cmocka_unit_test(test_environment),
		cmocka_unit_test(test_descriptors_signals_limits),
		cmocka_unit_test(test_limits_from_inside),
		cmocka_unit_test(test_timeout_kills_the_group),
		cmocka_unit_test(test_timeout_of_the_call),
		cmocka_unit_test(test_abort_kills_the_group),
		cmocka_unit_test(test_stop_kills_the_group),
		cmocka_unit_test(test_a_daemon_does_not_hold_up_the_call),
		cmocka_unit_test(test_ceilings),
		cmocka_unit_test(test_many_at_once),
		cmocka_unit_test(test_leaves_no_descriptor),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
