/*
 * What must hold, checked by the simulator on every edge:
 *
 *  I1  Never two holders with the same fence; a fence only rises.
 *  I2  A stale holder's finish, release, heartbeat or revert changes no row: whatever wins was based on the row
 *      as it is (its version, or its fence), and a revert only on a claim that is past its time.
 *  I3  Nothing stays claimed once its time has passed and a janitor ran. owner and until are set exactly while
 *      the status is the claim status (where a claim has one: of a run that is driven, both are set or neither).
 *  I4  A unit that is not won leaves no row behind.
 *  I5  Every acknowledged transition is in the history, with the version and fence it was told; the history has
 *      no gaps and its chain verifies up to the head.
 *  I6  Nobody sleeps over a change that it waits for: when nothing else can go on, nobody waits for an
 *      end (flow/end_wait.h) that is there already.
 *  I7  The store never refuses the data of one of our own units.
 *  I8  One key, one request: whatever is sent under a key, by whichever node and however often, is the same text, and to the same
 *      action: unless each try before has said for certain that it did nothing.
 *  I9  A run, a batch and a job go only where a way leads (flow/ways.h).
 *  I10 Whoever comes late changes nothing: what somebody has written, another who had read the same and stood still may want to write at
 *      any moment after that; where what they had read is gone, he has lost. (Who holds what he writes to is alone, and late once the
 *      fence has risen.)
 *  I11 Nothing goes on in circles without that time passes. (In a scenario of a user's, by explore.c.)
 */
#pragma once

#include "sim/sim.h"

/* A subject as the store has it. */
struct sim_row {
	int64_t id, kind, version, fence, until, seq, effort, doubt;
	bool claimed; /* owner is set */
	bool has_until;
	char status[32];
	char head[32];
};

bool sim_read_row(struct sim *sim, int64_t subject, struct sim_row *ret_row);
/* The digest of what the statement, which has no parameters, reads. */
uint64_t sim_hash_answer(struct sim *sim, const struct db_stmt *stmt, uint64_t hash);
/* A digest of all rows, history included. */
uint64_t sim_hash_tables(struct sim *sim);

/* Before a unit runs, and after: I2, I4. What the unit believes of the row stands in its own parameters. */
struct sim_before {
	struct sim_row row;
	uint64_t tables;
};
void invariant_before_unit(struct sim *sim, const struct unit *unit, struct sim_before *ret_before);
void invariant_after_unit(struct sim *sim, const struct unit *unit, const struct sim_before *before,
			  enum unit_verdict verdict);
/* A task is about to be told that it won its unit: I5. */
void invariant_acknowledged(struct sim *sim, const struct unit *unit, const struct unit_result *result);
/* An action of this actor starts under this claim: I1. */
void invariant_act_started(struct sim *sim, unsigned actor, const struct lease *lease);
/* An action is about to be called: I8. */
void invariant_request(struct sim *sim, const struct act_call *call);
/* It says that it was not done: the definition in force may say how it is tried again (docs/actions.md). */
void invariant_failed(struct sim *sim, const struct act_call *call);
/* After every edge: I1, I3, I5 on the rows. */
void invariant_rows(struct sim *sim);
/* Where nothing can go on but time: I6, and I3 by a janitor run to its end. */
void invariant_quiet(struct sim *sim);
/* A task of a user's scenario is about to write what it asks for. True: it is sim->wrote[wrote_n], to be counted if that has won. */
bool invariant_writes(struct sim *sim, const union sim_task *asked);
/* In every state after that: I10. */
void invariant_late(struct sim *sim);
