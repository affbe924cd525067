-- What waits for a person (see src/flow/attention.h), found without a look at what does not.
CREATE INDEX hx_run_attention ON hx_run (subject)
  WHERE expired = 0 AND (awaits = 'person' OR awaits LIKE 'approval %' OR (completed_at IS NOT NULL AND step_status = 'FAILED'));
CREATE INDEX hx_job_attention ON hx_job (ended_at) WHERE ended_at IS NOT NULL AND error IS NOT NULL AND run IS NULL;
CREATE INDEX hx_batch_attention ON hx_batch (subject) WHERE expired = 0 AND (unknown > 0 OR cleanups > 0);
