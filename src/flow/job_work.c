/* Jobs of runs: what the units of a run say about the jobs of its steps. See job_work.h. */
#include "flow/job_work.h"

#include "model/run_definition.h"

/* After job_insert(), in the same unit: nobody sees the job before it is whose it is. */
DB_STMT(stmt_of_run, "job_of_run", "iiiiiiiii", "",
	"UPDATE hx_job SET run = ?2, repeatable = ?3, attempts_max = ?4, retry_initial_ms = ?5, retry_max_ms = ?6,"
	" retry_factor = ?7, jitter = ?8, in_flight_max = ?9{from} WHERE subject = ?1");

void job_insert_of_run(struct unit *unit, const struct stamp *stamp, const struct job_of_run *job)
{
	const struct run_retry *retry = job->retry;

	job_insert(unit, stamp, &job->spec);
	UNIT_ADD(unit, UNIT_ANY, &stmt_of_run, db_int(job->spec.subject), db_int(job->run), db_int(job->repeatable),
		 db_int(retry->max_attempts), db_int(retry->initial_ms), db_int(retry->max_ms),
		 db_int(retry->factor_thousandths), db_int(retry->jitter), db_int(job->in_flight_max));
}

void job_withdraw(struct unit *unit, const struct stamp *stamp, int64_t subject, int64_t version, const char *status,
		  const char *words)
{
	struct move move = {subject, status, JOB_PARKED};
	struct job_ending ending = {.due_in_ms = -1, .error = slice_str(words)};

	subject_withdraw(unit, stamp, &move, version);
	job_end(unit, subject, &ending); /* mutant: withdraw-without-row */
	slot_forget(unit, subject);      /* mutant: withdrawn-with-its-slot */
}
