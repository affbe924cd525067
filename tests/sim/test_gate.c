/*
 * The gate, explored: requests with one key, each the guard of gate/guard.h over the units of gate/record.h, with a fake
 * service for it whose effects are counted. Nothing renews their leases, and a call may last longer than its lease:
 * the slow holder and the one who took over from it are both at work then.
 *
 * Besides the invariants G1 to G5 of record.c, which are checked around every unit:
 *  G6  An execution begins only under a record that is PROCESSING, with this token and fingerprint, within its lease; and
 *      while it lasts, within its lease, no other one begins.
 *  G7  A live record goes only if no execution under it has happened or may yet happen.
 *  G8  Whoever is told CREATED finds its own bytes in the store, at that moment and until they expire.
 *  G9  Whoever is told REPLAYED got the bytes that are, or were last, in the store.
 *  G10 Whoever is told conflict, mismatch, released or store_error has executed nothing.
 *  G11 With `hold`, one record sees one execution.
 *  G12 Whoever is told REPLAYED, and whoever executes, is the caller of the record.
 *  G13 What a person decides about is PROCESSING, under the token that was seen, and its lease is over; so what is held is
 *      executed again only after somebody has said that it was not done, and never after "done".
 *  G14 Where version 0.1 has left a record of the same request under another key, nothing is executed while that one is completed
 *      or its lease lasts, and who is told REPLAYED got its bytes, or those of the record after it.
 *
 * tests/mutants/run builds this program once more for every guard it removes.
 */
#include "sim/gate_checks.h"
#include "sim/walks.h"

/* ---- scenarios ---- */

static const struct plan first = {.number = 1, .key = 1, .fingerprint = 1, .early = true};
static const struct plan second = {.number = 2, .key = 1, .fingerprint = 1};
static const struct plan third = {.number = 3, .key = 1, .fingerprint = 1};
static const struct plan other = {.number = 4, .key = 1, .fingerprint = 2};
static const struct plan first_held = {.number = 1, .key = 1, .fingerprint = 1, .early = true, .hold = true};
static const struct plan second_held = {.number = 2, .key = 1, .fingerprint = 1, .hold = true};

static const struct plan alice = {.number = 1, .key = 1, .fingerprint = 1, .caller = 1, .early = true};
static const struct plan alice_again = {.number = 2, .key = 1, .fingerprint = 1, .caller = 1};
static const struct plan mallory = {.number = 3, .key = 1, .fingerprint = 1, .caller = 2};

#define GATE_SCENARIO .check = check, .rows = &gate_rows, .world = WORLD_PLAIN

/* Each on a node of its own: only the rows stand between them. */
static const struct sim_scenario pair = {
	.name = "a request and its retry on two nodes",
	.nodes_n = 2,
	.cast_n = 2,
	.cast = {{"first", 0, false, init_request, &first}, {"second", 1, false, init_request, &second}},
	.bounds = {.lapses = 2, .crashes = 1, .lost_answers = 2, .failures = 1},
	GATE_SCENARIO,
};

static const struct sim_scenario three = {
	.name = "a request and two retries on three nodes",
	.nodes_n = 3,
	.cast_n = 3,
	.cast = {{"first", 0, false, init_request, &first},
		 {"second", 1, false, init_request, &second},
		 {"third", 2, false, init_request, &third}},
	.bounds = {.lapses = 2, .crashes = 0, .lost_answers = 1, .failures = 0},
	GATE_SCENARIO,
};

static const struct sim_scenario mixed = {
	.name = "a request, its retry and one with another body on three nodes",
	.nodes_n = 3,
	.cast_n = 3,
	.cast = {{"first", 0, false, init_request, &first},
		 {"second", 1, false, init_request, &second},
		 {"other", 2, false, init_request, &other}},
	.bounds = {.lapses = 1, .crashes = 1, .lost_answers = 1, .failures = 0},
	GATE_SCENARIO,
};

/* On one node their units share batches, and a crash takes them all. */
static const struct sim_scenario together = {
	.name = "a request, its retry and one with another body on one node",
	.nodes_n = 1,
	.cast_n = 3,
	.cast = {{"first", 0, false, init_request, &first},
		 {"second", 0, false, init_request, &second},
		 {"other", 0, false, init_request, &other}},
	.bounds = {.lapses = 1, .crashes = 1, .lost_answers = 1, .failures = 0},
	GATE_SCENARIO,
};

static const struct sim_scenario held = {
	.name = "on_lost hold, a request and its retry on two nodes",
	.nodes_n = 2,
	.cast_n = 2,
	.cast = {{"first", 0, false, init_request, &first_held}, {"second", 1, false, init_request, &second_held}},
	.bounds = {.lapses = 2, .crashes = 1, .lost_answers = 2, .failures = 1},
	GATE_SCENARIO,
};

/* The same key and body, and another caller. */
static const struct sim_scenario callers = {
	.name = "a request, its retry and another caller's on three nodes",
	.nodes_n = 3,
	.cast_n = 3,
	.cast = {{"alice", 0, false, init_request, &alice},
		 {"alice again", 1, false, init_request, &alice_again},
		 {"mallory", 2, false, init_request, &mallory}},
	.bounds = {.lapses = 1, .crashes = 0, .lost_answers = 1, .failures = 0},
	GATE_SCENARIO,
};

static const struct sim_scenario resolved_not_done = {
	.name = "on_lost hold, and a person who says that it was not done",
	.nodes_n = 3,
	.cast_n = 3,
	.cast = {{"first", 0, false, init_request, &first_held},
		 {"second", 1, false, init_request, &second_held},
		 {"person", 2, false, init_person, &not_done}},
	.bounds = {.lapses = 1, .crashes = 0, .lost_answers = 1, .failures = 0},
	GATE_SCENARIO,
};

static const struct sim_scenario resolved_done = {
	.name = "on_lost hold, and a person who says that it was done",
	.nodes_n = 3,
	.cast_n = 3,
	.cast = {{"first", 0, false, init_request, &first_held},
		 {"second", 1, false, init_request, &second_held},
		 {"person", 2, false, init_person, &done}},
	.bounds = {.lapses = 1, .crashes = 0, .lost_answers = 1, .failures = 0},
	GATE_SCENARIO,
};

static const struct sim_scenario swept = {
	.name = "a request, its retry and a sweep on three nodes",
	.nodes_n = 3,
	.cast_n = 3,
	.cast = {{"first", 0, false, init_request, &first},
		 {"second", 1, false, init_request, &second},
		 {"sweep", 2, true, init_sweep, NULL}},
	.bounds = {.lapses = 3, .crashes = 0, .lost_answers = 1, .failures = 0},
	GATE_SCENARIO,
};

/* A store that version 0.1 has left a moment ago. */
static const struct plan first_after = {.number = 1, .key = 1, .fingerprint = 1, .old = true, .early = true};
static const struct plan second_after = {.number = 2, .key = 1, .fingerprint = 1, .old = true};

static const struct db_stmt stmt_old = {
	.name = "sim_gate_old",
	.sql = "INSERT INTO hx_gate_record (key, token, fingerprint, status, held, created_at, until, expires_at, sweep_at, response)"
	       " VALUES (?1, ?2, ?3, ?4, 0, hx_now_ms(), hx_now_ms() + ?5, hx_now_ms() + ?6, hx_now_ms() + ?6, ?7)",
	.in = "bbbiiib",
	.out = "",
};

static void leave(struct sim *sim, int64_t status, int64_t expires_ms, struct db_value response)
{
	static const unsigned char token[HX_GATE_TOKEN_BYTES] = {OLD_ANSWER}, print[HX_GATE_KEY_BYTES] = {1};
	struct unit unit;

	unit_init(&unit, 0);
	UNIT_ADD(&unit, UNIT_ANY, &stmt_old, db_blob(slice_of(old_key, sizeof old_key)),
		 db_blob(slice_of(token, sizeof token)), db_blob(slice_of(print, sizeof print)), db_int(status),
		 db_int(LEASE_MS), db_int(expires_ms), response);
	(void)sim_run_unit(sim, &unit);
}

static void leave_completed(struct sim *sim)
{
	static const unsigned char answer = OLD_ANSWER;

	leave(sim, 2, TTL_MS, db_blob(slice_of(&answer, 1)));
}

static void leave_open(struct sim *sim)
{
	leave(sim, 1, LEASE_MS + TTL_MS, db_null());
}

#define AFTER_UPGRADE                                                                                                  \
	.nodes_n = 2, .cast_n = 2,                                                                                     \
	.cast = {{"first", 0, false, init_request, &first_after}, {"second", 1, false, init_request, &second_after}},  \
	.bounds = {.lapses = 2, .crashes = 1, .lost_answers = 1, .failures = 1}, GATE_SCENARIO

static const struct sim_scenario old_completed = {
	.name = "a request and its retry, which version 0.1 has answered",
	.setup = leave_completed,
	AFTER_UPGRADE,
};

static const struct sim_scenario old_open = {
	.name = "a request and its retry, which version 0.1 was at",
	.setup = leave_open,
	AFTER_UPGRADE,
};

/* Larger than can be walked through: for the random walks. */
static const struct plan sixth = {.number = 6, .key = 2, .fingerprint = 1, .hold = true};
static const struct plan seventh = {.number = 7, .key = 2, .fingerprint = 1, .hold = true};
static const struct plan eighth = {.number = 8, .key = 2, .fingerprint = 2, .hold = true};

static const struct sim_scenario crowd = {
	.name = "seven requests with two keys and a sweep on three nodes",
	.nodes_n = 3,
	.cast_n = 8,
	.cast = {{"first", 0, false, init_request, &first},
		 {"second", 1, false, init_request, &second},
		 {"third", 0, false, init_request, &third},
		 {"other", 2, false, init_request, &other},
		 {"sixth", 0, false, init_request, &sixth},
		 {"seventh", 1, false, init_request, &seventh},
		 {"eighth", 2, false, init_request, &eighth},
		 {"sweep", 1, true, init_sweep, NULL}},
	.bounds = {.lapses = 6, .crashes = 2, .lost_answers = 4, .failures = 3},
	GATE_SCENARIO,
};

static void explore(const struct sim_scenario *scenario)
{
	walk_all(scenario, STATES_MAX);
}

#define EXHAUSTIVE(scenario)                                                                                           \
	static void exhaustive_##scenario(void **state)                                                                \
	{                                                                                                              \
		(void)state;                                                                                           \
		explore(&scenario);                                                                                    \
	}

EXHAUSTIVE(pair)
EXHAUSTIVE(three)
EXHAUSTIVE(mixed)
EXHAUSTIVE(together)
EXHAUSTIVE(held)
EXHAUSTIVE(swept)
EXHAUSTIVE(callers)
EXHAUSTIVE(resolved_not_done)
EXHAUSTIVE(resolved_done)
EXHAUSTIVE(old_completed)
EXHAUSTIVE(old_open)

static void random_crowd(void **state)
{
	bool soak = getenv("HAPAX_SOAK") != NULL;
	unsigned runs = soak ? 200000 : 2000;

	(void)state;
	(void)walk_at_random(&crowd, runs, 120);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(exhaustive_pair),          cmocka_unit_test(exhaustive_three),
		cmocka_unit_test(exhaustive_mixed),         cmocka_unit_test(exhaustive_together),
		cmocka_unit_test(exhaustive_held),          cmocka_unit_test(exhaustive_swept),
		cmocka_unit_test(exhaustive_callers),       cmocka_unit_test(exhaustive_resolved_not_done),
		cmocka_unit_test(exhaustive_resolved_done), cmocka_unit_test(exhaustive_old_completed),
		cmocka_unit_test(exhaustive_old_open),      cmocka_unit_test(random_crowd),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
