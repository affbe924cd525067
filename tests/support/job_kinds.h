/* The units of jobs and of accounts, for the list in unit_kinds.h, which says how both are called by numbers. */
#ifndef HX_TESTS_SUPPORT_JOB_KINDS_H
#define HX_TESTS_SUPPORT_JOB_KINDS_H

#include "support/run_kinds.h"

kind_build job_make, job_push_key, job_claim_due, job_claim_live, job_complete_plain, job_beat, job_complete, job_fail,
	job_fail_for_good, job_lapse, job_withdraw_waiting, job_withdraw_running, job_redrive_parked, job_expire_done;
kind_build account_make, account_make_other, account_credit_key, account_credit_own, account_look;

#endif
