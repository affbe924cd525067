/*
 * hapax db backup beside a server that is busy: every copy is whole, keeps all promises, and a server goes on from it; one that
 * is killed in the middle leaves none. And what a restore means for fences: after hapax db raise-fences nobody ever sees one
 * that is not higher than all before, of no subject, neither of one that is made anew under its old name.
 */
#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "engine/audit.h"
#include "support/await.h"
#include "support/fleet.h"
#include "support/worker.h"

#define CALLERS 4
#define COPIES 5
#define KILLS_MAX 100
#define ITEMS 300

static const char billing[] =
	"{'workflow':'billing','kind':'entity','status_types':['open','closing','closed'],'initial_status':'open',"
	"'actions':{'Close':{'kind':'http','url':'@/close','effect':'claimed'},'Mail':{'kind':'noop'}},"
	"'steps':[{'step_id':1,'step_key':'close','status':'open','successful_state':'closed','action':'Close',"
	"'success_after_effect':['Mail'],'claim_state':['closing','open']},"
	"{'step_id':2,'step_key':'open','status':'closed','successful_state':'open'}]}";
static const char render[] =
	"{'workflow':'render','kind':'batch','actions':{'One':{'kind':'noop'},'Delete':{'kind':'noop'}},"
	"'item_action':'One','cleanup_action':'Delete','concurrency':8}";

/* One item that is done, and one that there is no money for: it waits to be cancelled. */
static const char poster[] = "{'workflow':'poster','kind':'batch','actions':{'One':{'kind':'noop'},"
			     "'Delete':{'kind':'http','url':'@/delete','effect':'idempotent'}},"
			     "'item_action':'One','cleanup_action':'Delete','concurrency':1}";

/* ---- the program ---- */

extern char **environ;

static pid_t start(const char *verb, const char *file, const char *url)
{
	char program[512];
	/* clang-format off */
	const char *with_file[] = {program, "db", verb, file, "--db", url, NULL};
	const char *without[] = {program, "db", verb, "--db", url, NULL};
	/* clang-format on */
	const char *build = getenv("HAPAX_BUILD");
	pid_t pid;

	snprintf(program, sizeof program, "%s/hapax", build && *build ? build : "build");
	assert_int_equal(posix_spawn(&pid, program, NULL, NULL, (char *const *)(file ? with_file : without), environ),
			 0);
	return pid;
}

/* Its exit code, or minus the signal that ended it. */
static int ended(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static int run(const char *verb, const char *file, const char *url)
{
	return ended(start(verb, file, url));
}

static bool is_there(const char *path)
{
	return access(path, F_OK) == 0;
}

/* How many files of the scene's folder begin like this. */
static size_t files(const struct scene *scene, const char *beginning)
{
	DIR *dir = opendir(scene->dir);
	size_t n = 0;

	assert_non_null(dir);
	for (struct dirent *e = readdir(dir); e; e = readdir(dir))
		n += strncmp(e->d_name, beginning, strlen(beginning)) == 0;
	closedir(dir);
	return n;
}

/* ---- a store that is a file ---- */

static void assert_whole(const char *url)
{
	static const struct db_stmt check = {
		.name = "test_check", .sql = "PRAGMA integrity_check", .in = "", .out = "t"};
	struct audit_options options = {.url = url};
	struct auditor *a = malloc(sizeof *a);
	struct hx_error err = {0};
	struct unit_result result;
	struct arena arena;
	struct unit unit;
	struct db *db;

	assert_non_null(a);
	if (audit_store(&options, a, &err) != HX_OK)
		fail_msg("%s: %s", url, err.detail);
	if (a->finding.there)
		fail_msg("%s: %s: %s: expected %s, found %s", url, a->finding.subject, a->finding.what,
			 a->finding.expected, a->finding.found);
	auditor_release(a);
	free(a);
	db = store_open_url(url, clock_system());
	arena_init(&arena, 1u << 20);
	unit_init(&unit, 0);
	unit_add(&unit, UNIT_ANY, &check, 0, NULL);
	assert_int_equal(db_run_unit(db, &unit, &result, &arena, &err), HX_OK);
	assert_true(slice_is(db_cell(&result.rows[0], 0, 0)->s, "ok"));
	arena_release(&arena);
	db_close(db);
}

/* ---- those who are busy ---- */

struct crowd {
	struct fleet fleet;
	_Atomic bool stops;
	_Atomic size_t done;
	char *order;
};

struct member {
	struct crowd *crowd;
	struct caller *caller;
	pthread_t thread;
	int i;
};

static void do_entity(struct member *m, const char *step)
{
	struct reply reply = {0};
	char path[100];

	snprintf(path, sizeof path, "/api/v1/entities/billing/e%d/steps/%s", m->i, step);
	(void)caller_call(m->caller, "POST", path, "", &reply);
	atomic_fetch_add(&m->crowd->done, reply.status == 200);
	reply_release(&reply);
}

static void do_batch(struct member *m)
{
	struct reply reply = {0};
	char path[100], id[64] = "";

	if (caller_call(m->caller, "POST", "/api/v1/batches", m->crowd->order, &reply) && reply.status == 201)
		(void)sscanf(strstr(reply.body, "batch_"), "%63[a-z0-9_]", id);
	reply_release(&reply);
	if (!id[0] || caller_draw(m->caller, 2))
		return;
	snprintf(path, sizeof path, "/api/v1/batches/%s/cancel", id);
	(void)caller_call(m->caller, "POST", path, "", &reply);
	reply_release(&reply);
}

static void *be_busy(void *context)
{
	struct member *m = context;

	while (!atomic_load(&m->crowd->stops)) {
		if (caller_draw(m->caller, 30) == 0)
			do_batch(m);
		do_entity(m, "close");
		do_entity(m, "open");
	}
	return NULL;
}

static void set_out(struct crowd *crowd, struct scene *scene)
{
	struct strbuf order;

	scene_define(scene, "billing", billing);
	scene_define(scene, "render", render);
	scene_configure(scene, "{'lease':'5s','modules':{'billing':{'janitor':{'every':'1s','stuck_after':'5s'}}}}");
	fleet_start(&crowd->fleet, scene, 1);
	scene_must(scene, 0, "POST", "/api/v1/accounts", "{'id':'alice','balance':1000000}", 201, NULL);
	for (int i = 0; i < CALLERS; i++) {
		char id[16];

		snprintf(id, sizeof id, "e%d", i);
		scene_create(scene, id);
	}
	strbuf_init(&order, 1u << 20);
	strbuf_add_str(&order, "{\"workflow\":\"render\",\"account\":\"alice\",\"items\":[{\"cost\":1}");
	for (int i = 1; i < ITEMS; i++)
		strbuf_add_str(&order, ",{\"cost\":1}");
	strbuf_add_str(&order, "]}");
	crowd->order = strdup(order.p);
	strbuf_release(&order);
}

static void gather(struct crowd *crowd, struct member members[CALLERS])
{
	for (int i = 0; i < CALLERS; i++) {
		members[i] = (struct member){
			.crowd = crowd, .caller = caller_new(&crowd->fleet, (uint64_t)i + 1), .i = i};
		assert_int_equal(pthread_create(&members[i].thread, NULL, be_busy, &members[i]), 0);
	}
}

static void part(struct crowd *crowd, struct member members[CALLERS])
{
	atomic_store(&crowd->stops, true);
	for (int i = 0; i < CALLERS; i++) {
		pthread_join(members[i].thread, NULL);
		caller_free(members[i].caller);
	}
}

/* ---- backups ---- */

/*
 * A signal in the middle of the copy: what came in time leaves no copy, what came too late a whole one. Each has a name of its own,
 * because looking into a whole one leaves its log beside it.
 */
static size_t interrupt(struct scene *scene, int number)
{
	char beginning[40], url[420];
	const char *file = url + strlen("sqlite:");
	size_t hits = 0;

	for (int i = 0; i < KILLS_MAX && hits < 3; i++) {
		pid_t pid;
		int how;

		snprintf(beginning, sizeof beginning, "cut-%d-%d.db", number, i);
		snprintf(url, sizeof url, "sqlite:%s/%s", scene->dir, beginning);
		pid = start("backup", file, scene->store->url);
		AWAIT(60000, files(scene, beginning) > 0);
		kill(pid, number);
		how = ended(pid);
		if (is_there(file)) {
			assert_whole(url);
			continue;
		}
		assert_int_equal(how, -number);
		assert_true(number == SIGKILL || files(scene, beginning) == 0);
		hits++;
	}
	return hits;
}

static void go_on_from(struct scene *scene, const char *url)
{
	struct serve_options options = scene_options(scene, 0);
	struct client *client;
	struct reply reply;
	struct serve *node;

	options.db_url = url;
	node = serve_start(&options);
	client = client_new(node->port, "admin");
	for (int i = 0; i < CALLERS; i++) {
		char path[100];

		snprintf(path, sizeof path, "/api/v1/entities/billing/e%d", i);
		assert_true(client_call(client, "GET", path, "", 0, &reply) && reply.status == 200);
		reply_release(&reply);
	}
	assert_true(client_call(client, "POST", "/api/v1/entities/billing", "{\"id\":\"after\"}", 14, &reply));
	assert_int_equal(reply.status, 201);
	reply_release(&reply);
	assert_true(client_call(client, "POST", "/api/v1/entities/billing/after/steps/close", "", 0, &reply));
	assert_int_equal(reply.status, 200);
	reply_release(&reply);
	client_free(client);
	serve_stop(node);
	serve_free(node);
	assert_whole(url);
}

static void test_backups_beside_a_busy_server(void **state)
{
	struct scene *scene = *state;
	struct crowd *crowd = calloc(1, sizeof *crowd);
	char urls[COPIES][420]; /* sqlite:FILE */
	struct member members[CALLERS];
	size_t cut, killed;

	assert_non_null(crowd);
	set_out(crowd, scene);
	gather(crowd, members);
	for (int i = 0; i < COPIES; i++) {
		size_t before = atomic_load(&crowd->done);

		snprintf(urls[i], sizeof urls[i], "sqlite:%s/copy-%d.db", scene->dir, i);
		AWAIT(60000, atomic_load(&crowd->done) > before + 50);
		assert_int_equal(run("backup", urls[i] + strlen("sqlite:"), scene->store->url), 0);
		assert_int_equal(run("backup", urls[i] + strlen("sqlite:"), scene->store->url), 5);
		assert_whole(urls[i]);
	}
	cut = interrupt(scene, SIGINT);
	killed = interrupt(scene, SIGKILL);
	part(crowd, members);
	printf("# %d backups beside %zu steps, %zu interrupted and %zu killed in the middle\n", COPIES,
	       atomic_load(&crowd->done), cut, killed);
	assert_true(cut && killed);
	fleet_stop(&crowd->fleet);
	assert_whole(scene->store->url);
	go_on_from(scene, urls[0]);
	go_on_from(scene, urls[COPIES - 1]);
	fleet_release(&crowd->fleet);
	free(crowd->order);
	free(crowd);
}

/* ---- fences ---- */

/* A service that remembers the highest fence of each entity. */
static void assert_fences_rise(struct scene *scene)
{
	size_t n = service_count(scene->service, "/close", NULL);

	for (size_t i = 0; i < n; i++) {
		struct service_call call = service_call(scene->service, "/close", i);

		for (size_t k = 0; k < i; k++) {
			struct service_call before = service_call(scene->service, "/close", k);

			if (strcmp(before.id, call.id) == 0 && before.fence >= call.fence)
				fail_msg("%s: fence %lld behind %lld", call.id, (long long)call.fence,
					 (long long)before.fence);
		}
	}
}

static void close_and_open(struct scene *scene, const char *id)
{
	scene_fire(scene, 0, id, "close", 200, NULL);
	scene_fire(scene, 0, id, "open", 200, NULL);
}

static void copy_file(const char *from, const char *to)
{
	char line[1000];

	snprintf(line, sizeof line, "cp '%s' '%s'", from, to);
	assert_int_equal(system(line), 0);
}

/* As docs/operations.md says. */
static void restore(struct scene *scene, const char *copy)
{
	const char *path = scene->store->url + strlen("sqlite:");
	char log[600];

	unlink(path);
	snprintf(log, sizeof log, "%s-wal", path);
	unlink(log);
	snprintf(log, sizeof log, "%s-shm", path);
	unlink(log);
	copy_file(copy, path);
	assert_int_equal(run("raise-fences", NULL, scene->store->url), 0);
}

static struct worker_job claim(struct scene *scene, struct worker *worker)
{
	worker_init(worker, scene->nodes[0]->port, "ann", "stock", 60000);
	assert_int_equal(worker_claim(worker, 1, /* wait_ms= */ 30000), 1);
	return worker->jobs[0];
}

static void hold_batch(struct scene *scene, char ret_path[100])
{
	scene_must(scene, 0, "POST", "/api/v1/accounts", "{'id':'bob','balance':1}", 201, NULL);
	scene_must(scene, 0, "POST", "/api/v1/batches",
		   "{'workflow':'poster','account':'bob','hold':true,'items':[{'cost':1},{'cost':1}]}", 201, NULL);
	snprintf(ret_path, 100, "/api/v1/batches/%s", reply_text(&scene->last, "id"));
}

static bool has_status(struct scene *scene, const char *path, const char *status)
{
	return strcmp(reply_text(scene_must(scene, 0, "GET", path, NULL, 200, NULL), "status"), status) == 0;
}

/* What it has made is deleted, under a key that no service has ever seen. */
static void cancel_batch(struct scene *scene, const char *path)
{
	char verb[120];
	size_t n;

	snprintf(verb, sizeof verb, "%s/start", path);
	scene_must(scene, 0, "POST", verb, NULL, 200, NULL);
	AWAIT(60000, has_status(scene, path, "OUT_OF_CREDIT"));
	snprintf(verb, sizeof verb, "%s/cancel", path);
	(void)scene_call(scene, 0, "POST", verb, NULL);
	AWAIT(60000, has_status(scene, path, "CANCELLED"));
	n = service_count(scene->service, "/delete", NULL);
	assert_true(n > 0);
	for (size_t i = 0; i + 1 < n; i++)
		assert_string_not_equal(service_call(scene->service, "/delete", i).key,
					service_call(scene->service, "/delete", n - 1).key);
}

static void set_out_alone(struct scene *scene)
{
	scene_define(scene, "poster", poster);
	scene_define(scene, "billing", billing);
	scene_configure(scene, "{'modules':{'billing':{'janitor':{'every':'1s','stuck_after':'5s'}}}}");
	scene_start(scene, 0);
}

static void test_fences_rise_across_restores(void **state)
{
	struct scene *scene = *state;
	struct worker_job job, again;
	struct worker worker;
	int64_t last = 0;
	char copy[400], code[40], batch[100];

	set_out_alone(scene);
	scene_create(scene, "old");
	close_and_open(scene, "old");
	scene_must(scene, 0, "POST", "/api/v1/jobs", "{'queue':'stock'}", 201, NULL);
	hold_batch(scene, batch);
	snprintf(copy, sizeof copy, "%s/copy.db", scene->dir);
	assert_int_equal(run("backup", copy, scene->store->url), 0);
	for (int life = 0; life < 3; life++) {
		/* What is lost with the store, and done once more from the backup. */
		close_and_open(scene, "old");
		close_and_open(scene, "old");
		scene_create(scene, "new");
		close_and_open(scene, "new");
		cancel_batch(scene, batch);
		job = claim(scene, &worker);
		assert_true(job.fence > last);
		last = job.fence;
		worker_release(&worker);
		assert_int_equal(run("raise-fences", NULL, scene->store->url), 75);
		scene_kill(scene, 0);
		AWAIT(3000, (int64_t)time(NULL) > last / 1000000); /* the floor is of this second */
		restore(scene, copy);
		assert_whole(scene->store->url);
		scene_start(scene, 0);
	}
	/* Who held a job before holds it no more; who claims it now is above. */
	worker_init(&worker, scene->nodes[0]->port, "ann", "stock", 60000);
	assert_int_equal(worker_say(&worker, &job, "complete", "", code), 409);
	assert_string_equal(code, "STALE_FENCE");
	worker_release(&worker);
	again = claim(scene, &worker);
	assert_string_equal(again.id, job.id);
	assert_true(again.fence > job.fence);
	assert_int_equal(worker_say(&worker, &again, "heartbeat", "", code), 200);
	assert_int_equal(worker_say(&worker, &again, "complete", "", code), 200);
	worker_release(&worker);
	close_and_open(scene, "old");
	assert_int_equal(service_count(scene->service, "/close", "new"), 3);
	assert_fences_rise(scene);
	scene_stop(scene, 0);
	assert_whole(scene->store->url);
}

static void test_fences_are_raised_for_all_nodes(void **state)
{
	struct scene *scene = *state;

	set_out_alone(scene);
	scene_create(scene, "a");
	close_and_open(scene, "a");
	assert_int_equal(run("raise-fences", NULL, scene->store->url), 75);
	scene_kill(scene, 0);
	assert_int_equal(run("raise-fences", NULL, scene->store->url), 75); /* its lease lasts */
	scene_sql(scene, "UPDATE hx_node SET until = 0", NULL, 0);
	assert_int_equal(run("raise-fences", NULL, scene->store->url), 0);
	assert_int_equal(run("backup", "/nowhere/copy.db", scene->store->url), 78);
	scene_start(scene, 0);
	scene_start(scene, 1);
	close_and_open(scene, "a");
	scene_fire(scene, 1, "a", "close", 200, NULL);
	assert_true(service_call(scene->service, "/close", 1).fence > 1000000000000);
	assert_fences_rise(scene);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_backups_beside_a_busy_server, scene_set_up_sqlite,
						scene_tear_down),
		cmocka_unit_test_setup_teardown(test_fences_rise_across_restores, scene_set_up_sqlite, scene_tear_down),
		cmocka_unit_test_setup_teardown(test_fences_are_raised_for_all_nodes, scene_set_up_postgres,
						scene_tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
