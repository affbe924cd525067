/*
 * A worker that waits at one node gets a job that is pushed at the other at once: by notification, and not by the next look
 * that it takes by itself, every two seconds. Also when the sessions that listen were lost in between.
 *
 * And it costs nobody else anything: a job wakes one worker of its queue, not all who wait somewhere. Whoever was woken and cannot
 * take it, because its caller has hung up or its node was killed, is not the end of it.
 */
#include <arpa/inet.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "flow/job_work.h"
#include "support/await.h"
#include "support/scene.h"
#include "support/worker.h"

#define ROUNDS 31
#define WAIT_MS 30000
#define WOKEN_MS_MAX 1000

_Static_assert(WOKEN_MS_MAX < JOB_WORK_POLL_MS, "by looking it would be found in time too");

struct waiter {
	struct worker worker;
	pthread_t thread;
	size_t n;
	int64_t got_at_ms;
};

static void *wait_for_job(void *context)
{
	struct waiter *waiter = context;

	waiter->n = worker_claim(&waiter->worker, 1, WAIT_MS);
	waiter->got_at_ms = await_now_ms();
	return NULL;
}

/* From the push at one node to the answer at the other. */
static int64_t pick_up_ms(struct scene *scene, int pushed_at, int waits_at)
{
	struct waiter waiter = {0};
	int64_t pushed_at_ms;
	int status;

	worker_init(&waiter.worker, scene->nodes[waits_at]->port, "waiter", "mail", /* lease_ms= */ 60000);
	assert_int_equal(pthread_create(&waiter.thread, NULL, wait_for_job, &waiter), 0);
	AWAIT(WAIT_MS, scene_metric(scene, waits_at, "hapax_job_waiters") == 1);
	pushed_at_ms = await_now_ms();
	status = scene_call(scene, pushed_at, "POST", "/api/v1/jobs", "{'queue':'mail'}")->status;
	pthread_join(waiter.thread, NULL);
	assert_int_equal(status, 201);
	assert_string_equal(waiter.worker.wrong, "");
	assert_int_equal(waiter.n, 1);
	assert_int_equal(worker_say(&waiter.worker, &waiter.worker.jobs[0], "complete", "", NULL), 200);
	worker_release(&waiter.worker);
	return waiter.got_at_ms - pushed_at_ms;
}

static int compare(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

static void measure(struct scene *scene, int pushed_at, int waits_at, const char *what)
{
	int64_t ms[ROUNDS];

	for (int i = 0; i < ROUNDS; i++)
		ms[i] = pick_up_ms(scene, pushed_at, waits_at);
	qsort(ms, ROUNDS, sizeof *ms, compare);
	printf("# pick-up of a pushed job, %s: median %lld ms, at most %lld ms (a look every %d ms)\n", what,
	       (long long)ms[ROUNDS / 2], (long long)ms[ROUNDS - 1], JOB_WORK_POLL_MS);
	/* On a busy machine one may take longer for once; without a word from the other node nearly all would. */
	assert_true(ms[ROUNDS * 9 / 10] < WOKEN_MS_MAX);
}

static void test_waiting_worker_is_woken(void **state)
{
	struct scene *scene = *state;

	scene_start(scene, 0);
	scene_start(scene, 1);
	measure(scene, 0, 0, "same node");
	measure(scene, 0, 1, "other node");
	measure(scene, 1, 0, "the other way round");
	scene_stop(scene, 0);
	scene_stop(scene, 1);
}

#define LISTENING                                                                                                      \
	" FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND (query ILIKE '%LISTEN%' OR query ILIKE '%NOTIFY%')"

static int number(struct scene *scene, const char *sql)
{
	char n[32];

	scene_sql(scene, sql, n, sizeof n);
	return atoi(n);
}

static void test_waiting_worker_is_woken_after_the_sessions_were_lost(void **state)
{
	struct scene *scene = *state;
	size_t losses = 0;
	int64_t took_ms;

	scene_start(scene, 0);
	scene_start(scene, 1);
	do { /* on a busy machine it may take longer for once */
		AWAIT(WAIT_MS, number(scene, "SELECT count(*)" LISTENING) == 2);
		assert_int_equal(number(scene, "SELECT count(pg_terminate_backend(pid))" LISTENING), 2);
		/* Nobody hears of this one. Whoever listens again looks at everything, since it cannot know what it has missed. */
		took_ms = pick_up_ms(scene, 0, 1);
		losses++;
		for (int node = 0; node < 2; node++)
			serve_await_log(scene->nodes[node], "notifications of other nodes are heard again", losses,
					WAIT_MS);
	} while (took_ms >= WOKEN_MS_MAX && losses < 5);
	assert_true(took_ms < WOKEN_MS_MAX);
	measure(scene, 0, 1, "other node, after the sessions were lost");
	scene_stop(scene, 0);
	scene_stop(scene, 1);
}

/* ---- who waits elsewhere ---- */

#define IDLE 2000
#define PUSHES 300

/* A claim that waits, on a connection of its own, without a thread. */
static int open_poll(int port, const char *queue)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char body[128], text[512];
	int n;

	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_int_equal(connect(fd, (const struct sockaddr *)&to, sizeof to), 0);
	snprintf(body, sizeof body, "{\"queues\":[\"%s\"],\"owner\":\"idle\",\"waitMs\":%d}", queue, 2 * WAIT_MS);
	n = snprintf(text, sizeof text,
		     "POST /api/v1/jobs/claim HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
		     "Content-Length: %zu\r\n\r\n%s",
		     strlen(body), body);
	assert_int_equal(send(fd, text, (size_t)n, MSG_NOSIGNAL), n);
	return fd;
}

/* User and system time of a process. */
static int64_t cpu_ms(pid_t pid)
{
	char path[64], text[1024] = "", *at;
	unsigned long long user, kernel;
	FILE *f;

	snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
	f = fopen(path, "r");
	assert_non_null(f);
	(void)!fread(text, 1, sizeof text - 1, f);
	fclose(f);
	at = strrchr(text, ')');
	assert_non_null(at);
	assert_int_equal(sscanf(at + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu", &user, &kernel), 2);
	return (int64_t)(user + kernel) * 1000 / sysconf(_SC_CLK_TCK);
}

struct cost {
	int64_t wakes, cpu_ms;
};

/* Of pushing jobs that nobody waits for. */
static struct cost push_some(struct scene *scene)
{
	struct cost cost = {scene_metric(scene, 0, "hapax_wakes_total"), cpu_ms(scene->nodes[0]->pid)};

	for (int i = 0; i < PUSHES; i++)
		scene_must(scene, 0, "POST", "/api/v1/jobs", "{'queue':'mail'}", 201, NULL);
	return (struct cost){scene_metric(scene, 0, "hapax_wakes_total") - cost.wakes,
			     cpu_ms(scene->nodes[0]->pid) - cost.cpu_ms};
}

static void test_idle_polls_elsewhere_cost_a_push_nothing(void **state)
{
	struct scene *scene = *state;
	static int fds[IDLE];
	struct cost before, with;

	scene_start(scene, 0);
	before = push_some(scene);
	for (int i = 0; i < IDLE; i++) {
		char queue[16];

		snprintf(queue, sizeof queue, "idle%d", i % 10);
		fds[i] = open_poll(scene->nodes[0]->port, queue);
	}
	AWAIT(WAIT_MS, scene_metric(scene, 0, "hapax_job_waiters") == IDLE);
	with = push_some(scene);
	printf("# %d pushes: %lld wakes and %lld ms of processor; with %d idle polls %lld wakes and %lld ms\n", PUSHES,
	       (long long)before.wakes, (long long)before.cpu_ms, IDLE, (long long)with.wakes, (long long)with.cpu_ms);
	/* One of each queue looks by time every two seconds, and is not woken for it. */
	assert_int_equal(with.wakes, before.wakes);
	assert_true(with.cpu_ms <= 2 * before.cpu_ms + 100);
	/* One job, one of the 200 that wait for it. */
	scene_must(scene, 0, "POST", "/api/v1/jobs", "{'queue':'idle7'}", 201, NULL);
	AWAIT(WAIT_MS, scene_metric(scene, 0, "hapax_job_waiters") == IDLE - 1);
	assert_int_equal(scene_metric(scene, 0, "hapax_wakes_total") - with.wakes - before.wakes, 1);
	for (int i = 0; i < IDLE; i++)
		close(fds[i]);
	scene_stop(scene, 0);
}

static void test_who_has_hung_up_passes_it_on(void **state)
{
	struct scene *scene = *state;
	int gone[20];

	scene_start(scene, 0);
	for (int i = 0; i < 20; i++)
		gone[i] = open_poll(scene->nodes[0]->port, "mail");
	AWAIT(WAIT_MS, scene_metric(scene, 0, "hapax_job_waiters") == 20);
	for (int i = 0; i < 20; i++)
		close(gone[i]);
	/* A node that has not seen it yet gives the job to one of them, who keeps it until its lease is over. */
	AWAIT(WAIT_MS, scene_metric(scene, 0, "hapax_connections_open") < 20);
	/* The job meets those first that came first. */
	for (int i = 0; i < 3; i++) {
		struct waiter waiter = {0};
		int64_t pushed_at_ms;

		worker_init(&waiter.worker, scene->nodes[0]->port, "waiter", "mail", /* lease_ms= */ 60000);
		assert_int_equal(pthread_create(&waiter.thread, NULL, wait_for_job, &waiter), 0);
		AWAIT(WAIT_MS, scene_metric(scene, 0, "hapax_job_waiters") >= 1);
		pushed_at_ms = await_now_ms();
		scene_must(scene, 0, "POST", "/api/v1/jobs", "{'queue':'mail'}", 201, NULL);
		pthread_join(waiter.thread, NULL);
		assert_int_equal(waiter.n, 1);
		assert_true(waiter.got_at_ms - pushed_at_ms < WOKEN_MS_MAX);
		worker_release(&waiter.worker);
	}
	scene_stop(scene, 0);
}

/* It was offered to a worker of the node where it was pushed, and that node is killed: the other node's worker gets it all the same. */
static void test_a_woken_worker_whose_node_is_killed_is_not_the_end(void **state)
{
	struct scene *scene = *state;
	struct waiter here = {0}, there = {0};

	scene_start(scene, 0);
	scene_start(scene, 1);
	worker_init(&here.worker, scene->nodes[0]->port, "here", "mail", /* lease_ms= */ 1000);
	worker_init(&there.worker, scene->nodes[1]->port, "there", "mail", /* lease_ms= */ 60000);
	assert_int_equal(pthread_create(&here.thread, NULL, wait_for_job, &here), 0);
	assert_int_equal(pthread_create(&there.thread, NULL, wait_for_job, &there), 0);
	for (int node = 0; node < 2; node++)
		AWAIT(WAIT_MS, scene_metric(scene, node, "hapax_job_waiters") == 1);
	scene_must(scene, 0, "POST", "/api/v1/jobs", "{'queue':'mail'}", 201, NULL);
	scene_kill(scene, 0);
	pthread_join(there.thread, NULL);
	assert_int_equal(there.n, 1);
	pthread_join(here.thread, NULL);
	worker_release(&here.worker);
	worker_release(&there.worker);
	scene_stop(scene, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_waiting_worker_is_woken, scene_set_up_postgres, scene_tear_down),
		cmocka_unit_test_setup_teardown(test_waiting_worker_is_woken_after_the_sessions_were_lost,
						scene_set_up_postgres, scene_tear_down),
		cmocka_unit_test_setup_teardown(test_idle_polls_elsewhere_cost_a_push_nothing, scene_set_up_sqlite,
						scene_tear_down),
		cmocka_unit_test_setup_teardown(test_idle_polls_elsewhere_cost_a_push_nothing, scene_set_up_postgres,
						scene_tear_down),
		cmocka_unit_test_setup_teardown(test_who_has_hung_up_passes_it_on, scene_set_up_postgres,
						scene_tear_down),
		cmocka_unit_test_setup_teardown(test_a_woken_worker_whose_node_is_killed_is_not_the_end,
						scene_set_up_postgres, scene_tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
