/* What job_claim.c and job_limit.c share: the states of a claim, and its parts. */
#pragma once

#include "flow/job_work.h"
#include "task/shape.h"

enum {
	CLAIM_JOBS_NEW,
	CLAIM_JOBS_CLAIMING,
	CLAIM_JOBS_PICKING,
	CLAIM_JOBS_TAKING,
	CLAIM_JOBS_LINING_UP,
	CLAIM_JOBS_READING,
	CLAIM_JOBS_SLEEPING,
	CLAIM_JOBS_DONE
};

enum { JOBS_PLAIN = 1, JOBS_LIMITED = 2 };

/* ---- job_claim.c ---- */

/* To what is left to be looked at, or to the end of this look. */
void job_claim_go_on(struct job_claim *c, const struct answer *answer);
bool job_claim_has_room(const struct job_claim *c);
bool job_claim_is_given_up(const struct job_claim *c);
void job_claim_take_jobs(struct job_claim *c, const struct db_rows *rows);
void job_claim_end_by_store(struct job_claim *c);
/* The lines that claim. only: this one; 0: any. Then, which of the unit's lines has the rows. */
void job_claim_add(const struct job_claim *c, struct unit *unit, struct slice queues, int64_t only);
unsigned job_claim_line(const struct unit *unit);

/* ---- job_limit.c ---- */

void job_claim_take_picked(struct job_claim *c, const struct answer *answer);
void job_claim_take_taken(struct job_claim *c, const struct answer *answer);
void job_claim_take_lined_up(struct job_claim *c, const struct answer *answer);
void job_claim_build_taking(const struct job_claim *c, struct unit *unit);
void job_claim_build_line_up(const struct job_claim *c, struct unit *unit);
extern const struct task_shape job_picks_shape;
