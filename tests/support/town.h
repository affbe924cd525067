/*
 * A town: a store in which a bit of everything has happened, through a real server: entities (also in a table of the user's),
 * runs that completed, failed, were retried, restarted, undone and still wait, jobs of workers, accounts, batches that completed, were
 * cancelled, are out of credit, are held; and one run and one batch that retention has stripped. For tests that look at a whole
 * store.
 */
#ifndef HX_TESTS_SUPPORT_TOWN_H
#define HX_TESTS_SUPPORT_TOWN_H

#include "support/run_scene.h"

/* Subjects of it. */
struct town {
	int64_t entity, paper;               /* closed under a claim; the shadow of a row of the user's table */
	int64_t run, undone_run, old_run;    /* COMPLETED with a worker's step; CANCELLED; stripped */
	int64_t job, run_job;                /* pushed, COMPLETED; that of the run's step */
	int64_t account;                     /* alice, who pays for all of these: */
	int64_t batch, cancelled, old_batch; /* COMPLETED; CANCELLED with refunds, in several slices; stripped */
};

/* Definitions and configuration, before the start; then what happens, on node 0, which is stopped at the end. */
void town_define(struct scene *scene);
void town_live(struct scene *scene, struct town *ret_town);

#endif
