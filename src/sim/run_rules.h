/*
 * What must hold of the rows of all runs, whatever their definitions say: for the engine's own scenarios and for those of a user's
 * definition. (The names are those of flow/run.h.)
 */
#pragma once

#include "sim/sim.h"

/* That whoever changes the status of a run has said so (flow/run_count.h). Runs that a scenario begins with are to be counted, too. */
#define RUNS_MISCOUNTED                                                                                                                           \
	" (SELECT count(*) FROM (SELECT r.workflow, s.status, count(*) AS n FROM hx_run r JOIN hx_subject s ON s.id = r.subject GROUP BY 1, 2) a" \
	" LEFT JOIN (SELECT workflow, status, sum(n) AS n FROM (SELECT workflow, to_status AS status, n FROM hx_run_moved"                        \
	" UNION ALL SELECT workflow, from_status, -n FROM hx_run_moved UNION ALL SELECT workflow, status, n FROM hx_run_count) GROUP BY 1, 2) c"  \
	" ON c.workflow = a.workflow AND c.status = a.status WHERE c.n IS NULL OR c.n <> a.n)"
#define RUNS_MISCOUNTED_WORDS "the counts by status are not what there is"

#define RUNS_SETUP_COUNTED                                                                                             \
	"INSERT INTO hx_run_moved (workspace, workflow, from_status, to_status, n)"                                    \
	" SELECT workspace, workflow, '', 'PENDING', 1 FROM hx_run"

/* What is broken is a violation. */
void sim_check_runs(struct sim *sim);
/* A count that is wrong stays so: it is enough to ask for it at the end. */
void sim_check_counts(struct sim *sim);
/* L1, and L3: who holds a slot of a limit is at work. */
void sim_check_slots(struct sim *sim);
