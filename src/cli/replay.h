/*
 * A test of `hapax test`, once more on a real server: a process of this program, with a store and a port of its own, whose services are
 * a mock (mock.h). It must come to the end that it came to in memory: the same status, the same output, the same effects, also
 * where that end breaks a rule. Then what is broken there is no invention of the simulator's.
 *
 *   definitions, their addresses those of the mock ─▶ a folder ─▶ hapax serve, on loopback
 *   given    what the mock does, call by call
 *   when     the calls of the API, each where nothing goes on any more, or during a call, which the mock holds
 *   time     is skipped by the server's clock for tests, whose store is in memory; where somebody is killed there is a file, and time
 *            is real; so it is on PostgreSQL, and whoever stands still there is a process that is stopped
 *
 * A server that is there already is not asked: definitions would be replaced there and stay, time cannot be skipped, nobody be killed.
 */
#pragma once

#include "trial/example.h"

/* store: a database of PostgreSQL, where each test has a schema of its own; NULL: SQLite.
 * Sets `real` of each result that came to an end; where it is not the same the test has failed. */
enum hx_code replay_run(const struct definition_set *set, const struct trial_world *world, const char *store,
			struct arena *arena, struct example_report *report, struct hx_error *err) HX_MUST_CHECK;
