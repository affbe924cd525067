/*
 * A node that loses PostgreSQL stops acting before its leases lapse, whether the server is gone or only silent. The actions
 * are processes that write down every few milliseconds that they live, with their key and fence: none of them lives any
 * more when the next holder of the same run begins, although its node is stuck in a transaction all the while.
 *
 * Then the store is back: the node that was cut off works again, what it had in mind changes nothing, and each run is
 * recorded once, by the node that took it over.
 */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "support/await.h"
#include "support/pg_proxy.h"
#include "support/scene.h"

#define A 0
#define B 1
#define RUNS_N 6
#define LEASE_MS 2000
#define NOTICE_MS 60000
#define TAKE_OVER_MS 90000
#define LIVES_MAX (4 * RUNS_N)

static struct pg_proxy *proxy;

static int tear_down(void **state)
{
	int rc = scene_tear_down(state);

	pg_proxy_free(proxy);
	proxy = NULL;
	return rc;
}

/* ---- processes that tell that they live ---- */

/* Between its first and its last word. */
struct life {
	char key[100];
	int64_t fence, first_ms, last_ms;
};

static struct life lives[LIVES_MAX];
static size_t lives_n;

static void write_script(struct scene *scene)
{
	char path[600];
	FILE *file;

	snprintf(path, sizeof path, "%s/work.sh", scene->dir);
	file = fopen(path, "w");
	assert_non_null(file);
	fprintf(file,
		"i=0\n"
		"while [ ! -e %s/go ] && [ $i -lt 3000 ]; do\n"
		"  echo \"$HAPAX_IDEMPOTENCY_KEY $HAPAX_FENCE $(date +%%s%%3N)\" >>%s/lives\n"
		"  i=$((i + 1))\n"
		"  sleep 0.02\n"
		"done\n"
		"echo \"{\\\"fence\\\":$HAPAX_FENCE}\"\n",
		scene->dir, scene->dir);
	assert_int_equal(fclose(file), 0);
}

static void read_lives(struct scene *scene)
{
	char path[600], key[100];
	int64_t fence, at_ms;
	FILE *file;

	snprintf(path, sizeof path, "%s/lives", scene->dir);
	file = fopen(path, "r");
	lives_n = 0;
	while (file && fscanf(file, "%99s %" SCNd64 " %" SCNd64, key, &fence, &at_ms) == 3) {
		size_t i = 0;

		while (i < lives_n && (strcmp(lives[i].key, key) != 0 || lives[i].fence != fence))
			i++;
		if (i == lives_n) {
			assert_true(lives_n < LIVES_MAX);
			snprintf(lives[lives_n].key, sizeof lives[0].key, "%s", key);
			lives[lives_n].fence = fence;
			lives[lives_n++].first_ms = at_ms;
		}
		lives[i].last_ms = at_ms;
	}
	if (file)
		fclose(file);
}

static size_t lives_read(struct scene *scene)
{
	read_lives(scene);
	return lives_n;
}

static void let_go(struct scene *scene)
{
	char path[600];
	FILE *file;

	snprintf(path, sizeof path, "%s/go", scene->dir);
	file = fopen(path, "w");
	assert_non_null(file);
	fclose(file);
}

/* ---- the play ---- */

static char ids[RUNS_N][40];

static void begin(struct scene *scene)
{
	char definition[1000];

	proxy = pg_proxy_new(store_pg_port());
	assert_non_null(proxy);
	store_url(scene->store, pg_proxy_port(proxy), "node-a", scene->db_urls[A], sizeof scene->db_urls[A]);
	write_script(scene);
	snprintf(definition, sizeof definition,
		 "{'workflow':'work','kind':'run','actions':{'Work':{'kind':'exec','argv':['/bin/sh','%s/work.sh'],"
		 "'effect':'keyed','timeout':'2m'}},'steps':[{'name':'work','type':'task','action':'Work'}]}",
		 scene->dir);
	scene_define(scene, "work", definition);
	scene_configure(scene, "{'lease':'2s','exec':{'enabled':true}}");
	scene_start(scene, A);
	for (int i = 0; i < RUNS_N; i++)
		snprintf(ids[i], sizeof ids[i], "%s",
			 reply_text(scene_must(scene, A, "POST", "/api/v1/workflow-runs", "{'definitionId':'work'}",
					       201, NULL),
				    "run.id"));
	AWAIT(NOTICE_MS, lives_read(scene) == RUNS_N);
	scene_start(scene, B);
}

/* Every run has had two holders, one after the other, with the same key. */
static void check_lives(struct scene *scene, const char *what)
{
	int64_t least_gap_ms = INT64_MAX;
	size_t pairs = 0;

	read_lives(scene);
	for (size_t i = 0; i < lives_n; i++)
		for (size_t k = 0; k < lives_n; k++)
			if (strcmp(lives[i].key, lives[k].key) == 0 && lives[i].fence < lives[k].fence) {
				int64_t gap_ms = lives[k].first_ms - lives[i].last_ms;

				pairs++;
				least_gap_ms = gap_ms < least_gap_ms ? gap_ms : least_gap_ms;
				if (gap_ms <= 0)
					fail_msg("%s: fence %" PRId64 " was still at work %" PRId64
						 " ms after fence %" PRId64 " had begun",
						 lives[i].key, lives[i].fence, -gap_ms, lives[k].fence);
			}
	assert_true(pairs >= RUNS_N);
	printf("# store lost, %s: %zu takeovers, the last holder was gone at least %" PRId64
	       " ms before the next began (lease %d ms)\n",
	       what, pairs, least_gap_ms, LEASE_MS);
}

static void finish_on_b(struct scene *scene)
{
	char path[100];

	AWAIT(TAKE_OVER_MS, lives_read(scene) >= 2 * RUNS_N);
	let_go(scene);
	for (int i = 0; i < RUNS_N; i++) {
		snprintf(path, sizeof path, "/api/v1/workflow-runs/%.39s?wait=20s", ids[i]);
		scene_must(scene, B, "GET", path, NULL, 200, NULL);
		assert_string_equal(reply_text(&scene->last, "status"), "COMPLETED");
		assert_int_equal(reply_int(&scene->last, "steps.0.output.fence"), 2);
	}
	assert_true(scene_metric(scene, B, "hapax_runs_taken_over_total") >= RUNS_N);
}

static void test_silent_store(void **state)
{
	struct scene *scene = *state;
	char path[100];

	begin(scene);
	pg_proxy_stall(proxy);
	finish_on_b(scene);
	check_lives(scene, "silent");
	pg_proxy_drop(proxy); /* and now A can connect again */
	AWAIT(NOTICE_MS, scene_metric(scene, A, "hapax_claim_overruns_total") >= RUNS_N);
	scene_must(scene, A, "POST", "/api/v1/workflow-runs?wait=20s", "{'definitionId':'work'}", 201, NULL);
	assert_string_equal(reply_text(&scene->last, "run.status"), "COMPLETED");
	for (int i = 0; i < RUNS_N; i++) {
		snprintf(path, sizeof path, "/api/v1/history/%.39s", ids[i]);
		scene_must(scene, A, "GET", path, NULL, 200, NULL);
		for (int64_t row = 2; row < (int64_t)reply_count(&scene->last, "items"); row++) {
			snprintf(path, sizeof path, "items.%" PRId64 ".node", row);
			assert_string_equal(reply_text(&scene->last, path), "node-b");
		}
	}
	scene_stop(scene, A);
	scene_stop(scene, B);
}

static void test_store_gone(void **state)
{
	struct scene *scene = *state;

	begin(scene);
	pg_proxy_free(proxy); /* connections end, and new ones are refused */
	proxy = NULL;
	finish_on_b(scene);
	check_lives(scene, "gone");
	AWAIT(NOTICE_MS, scene_metric(scene, A, "hapax_claim_overruns_total") >= RUNS_N);
	scene_call(scene, A, "POST", "/api/v1/workflow-runs", "{'definitionId':'work'}");
	assert_int_equal(scene->last.status, 503);
	scene_kill(scene, A);
	scene_stop(scene, B);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_silent_store, scene_set_up_postgres, tear_down),
		cmocka_unit_test_setup_teardown(test_store_gone, scene_set_up_postgres, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
