/* Workers of the simulations of runs, and whoever ends the claims of those who died. */
#ifndef HX_TESTS_SIM_RUN_WORKERS_H
#define HX_TESTS_SIM_RUN_WORKERS_H

#include "sim/run_world.h"
#include "sim/worker.h"

static const struct db_stmt stmt_job_due = {
	.name = "sim_job_due",
	.sql = "SELECT subject, 0 FROM hx_job WHERE due_at <= hx_now_ms() AND queue <> 'after-effects'",
	.in = "",
	.out = "ii",
};

static const struct db_stmt stmt_job_past = {
	.name = "sim_job_past",
	.sql = "SELECT j.subject, s.fence FROM hx_job j JOIN hx_subject s ON s.id = j.subject"
	       " WHERE s.status = 'RUNNING' AND s.until <= hx_now_ms()",
	.in = "",
	.out = "ii",
};

static inline bool job_is_due(struct sim *sim)
{
	return ask_store(sim, &stmt_job_due).rows[0].n > 0;
}

static inline bool job_is_past(struct sim *sim)
{
	return ask_store(sim, &stmt_job_past).rows[0].n > 0;
}

static const struct job_claim_request workers[] = {
	{.workspace = {"default", 7},
	 .owner = {"w1", 2},
	 .queues_n = 1,
	 .queues = {{"stock", 5}},
	 .max = 1,
	 .lease_ms = 60000},
	{.workspace = {"default", 7},
	 .owner = {"w2", 2},
	 .queues_n = 1,
	 .queues = {{"stock", 5}},
	 .max = 1,
	 .lease_ms = 60000},
};

/* A claim has to do with its job, and with what the run does about it. */
static inline void init_worker(union sim_task *task, const void *plan, struct arena *texts)
{
	struct unit_result due = ask_store(fixture.sim, &stmt_job_due);

	worker_init(task, plan, due.rows[0].n ? db_cell(&due.rows[0], 0, 0)->i : -1, RUN, texts);
}

static inline void init_lapser(union sim_task *task, const void *plan, struct arena *texts)
{
	struct unit_result past = ask_store(fixture.sim, &stmt_job_past);

	(void)plan;
	lapser_init(task, &past.rows[0], texts);
}

#endif
