/*
 * Two nodes (real processes) write the same few hot rows on PostgreSQL, for five seconds, or with HAPAX_SOAK a
 * minute. They have different numbers of lanes, so that their groups overlap in every way.
 *
 * What must come out: for every subject, version = 1 + what the two nodes acknowledged for it, with a history to
 * match; and every deadlock that PostgreSQL saw was met by a group that was run again and counted.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "chaos/hot_rows.h"
#include "support/audit.h"
#include "support/soak.h"
#include "support/store.h"
#include "support/subjects.h"

#define NODES 2
#define SECONDS soak_or(60, 5)

struct node {
	pid_t pid;
	FILE *out;
	unsigned long long lost, unknown, failed, batches, retried;
	unsigned long long acked[HOT_SUBJECTS];
};

static void create_subjects(struct db *db)
{
	struct arena arena;
	struct hx_error err = {0};

	arena_init(&arena, 1u << 20);
	for (int64_t subject = HOT_FIRST_SUBJECT; subject < HOT_FIRST_SUBJECT + HOT_SUBJECTS; subject++) {
		struct stamp stamp = {.op = subject, .at = clock_wall(clock_system()), .node = "test_hot_rows"};
		struct unit unit;
		struct unit_result result;

		unit_init(&unit, stamp.op);
		subject_create(&unit, &stamp, subject, /* kind= */ 1, HOT_A);
		if (db_run_unit(db, &unit, &result, &arena, &err) || result.verdict != UNIT_WON)
			fail_msg("create: %s", err.detail);
	}
	arena_release(&arena);
}

static void start_node(struct node *node, const struct store *store, const char *name, const char *lanes,
		       const char *seconds)
{
	const char *build = getenv("HAPAX_BUILD");
	char program[512];
	pid_t parent = getpid();
	int out[2];

	snprintf(program, sizeof program, "%s/tests/chaos/hot_writer", build && *build ? build : "build");
	assert_int_equal(pipe(out), 0);
	node->pid = fork();
	assert_true(node->pid >= 0);
	if (node->pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(out[1], STDOUT_FILENO);
		close(out[0]);
		close(out[1]);
		if (getppid() == parent)
			execl(program, program, store->url, name, lanes, seconds, (char *)NULL);
		_exit(127);
	}
	close(out[1]);
	node->out = fdopen(out[0], "r");
}

/* Reads its report (which waits for its end; the runner's time limit is the deadline). */
static void end_node(struct node *node)
{
	int status;

	if (fscanf(node->out, "%llu %llu %llu %llu %llu", &node->lost, &node->unknown, &node->failed, &node->batches,
		   &node->retried) != 5)
		fail_msg("a node did not report");
	for (int i = 0; i < HOT_SUBJECTS; i++)
		assert_int_equal(fscanf(node->out, "%llu", &node->acked[i]), 1);
	fclose(node->out);
	assert_int_equal(waitpid(node->pid, &status, 0), node->pid);
	assert_int_equal(status, 0);
}

/* The histories, against what was acknowledged; returns the number of transitions. */
static unsigned long long audit_rows(struct db *db, const struct node nodes[NODES])
{
	struct audit audit = {.db = db};
	struct hx_error err = {0};
	unsigned long long sum = 0;

	arena_init(&audit.arena, AUDIT_BYTES_MAX);
	for (int i = 0; i < HOT_SUBJECTS; i++) {
		unsigned long long acked = nodes[0].acked[i] + nodes[1].acked[i];
		int64_t rows = audit_subject(&audit, HOT_FIRST_SUBJECT + i, &err);

		if (rows < 0)
			fail_msg("%s", err.detail);
		if ((unsigned long long)rows != 1 + acked)
			fail_msg("subject %d: %lld history rows, %llu transitions acknowledged", HOT_FIRST_SUBJECT + i,
				 (long long)rows, acked);
		sum += acked;
	}
	arena_release(&audit.arena);
	return sum;
}

static unsigned long long deadlocks(PGconn *raw)
{
	char cell[32];

	raw_run(raw, "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()", cell, sizeof cell);
	return strtoull(cell, NULL, 10);
}

static void two_nodes_write_the_same_rows(void **state)
{
	struct store *store = store_new(STORE_POSTGRES);
	struct db *db = store_open_migrated(store);
	PGconn *raw = store_raw(store);
	unsigned long long before = deadlocks(raw), dead, sum;
	struct node nodes[NODES] = {0};
	char seconds[16];

	(void)state;
	snprintf(seconds, sizeof seconds, "%d", SECONDS);
	create_subjects(db);
	start_node(&nodes[0], store, "node-1", "4", seconds);
	start_node(&nodes[1], store, "node-2", "3", seconds);
	end_node(&nodes[0]);
	end_node(&nodes[1]);
	sum = audit_rows(db, nodes);
	dead = deadlocks(raw) - before;
	printf("# hot rows: %d nodes, %d rows, %s s: %llu transitions acknowledged, %llu races lost, %llu batches;"
	       " %llu deadlocks, %llu batches run again; versions add up, chains verify\n",
	       NODES, HOT_SUBJECTS, seconds, sum, nodes[0].lost + nodes[1].lost, nodes[0].batches + nodes[1].batches,
	       dead, nodes[0].retried + nodes[1].retried);
	for (int i = 0; i < NODES; i++) {
		assert_true(nodes[i].batches > 0 && nodes[i].lost > 0);
		assert_int_equal(nodes[i].unknown, 0);
		assert_int_equal(nodes[i].failed, 0);
	}
	assert_true(dead <= nodes[0].retried + nodes[1].retried);
	PQfinish(raw);
	db_close(db);
	store_free(store);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(two_nodes_write_the_same_rows)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
