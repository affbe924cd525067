-- Pages of lists: each begins where it was left, in its workspace, and in its queue or workflow if one is asked for. Of constant columns
-- alone, so that nothing but creating a row writes them; the others have few rows, those that people look for.
CREATE INDEX hx_job_listed ON hx_job (workspace, subject);
CREATE INDEX hx_job_listed_queue ON hx_job (workspace, queue, subject);
CREATE INDEX hx_job_listed_parked ON hx_job (workspace, subject) WHERE ended_at IS NOT NULL AND error IS NOT NULL;
CREATE INDEX hx_job_listed_retrying ON hx_job (workspace, subject) WHERE due_at IS NOT NULL AND error IS NOT NULL;
CREATE INDEX hx_run_listed ON hx_run (workspace, subject) WHERE expired = 0;
CREATE INDEX hx_run_listed_workflow ON hx_run (workspace, workflow, subject) WHERE expired = 0;
CREATE INDEX hx_run_listed_person ON hx_run (workspace, subject) WHERE expired = 0 AND awaits = 'person';
CREATE INDEX hx_batch_listed ON hx_batch (workspace, subject) WHERE expired = 0;
CREATE INDEX hx_batch_listed_workflow ON hx_batch (workspace, workflow, subject) WHERE expired = 0;
