-- One column more than the index of a queue's list has before its order: otherwise SQLite counts what is in flight by that one, which
-- has all jobs of the queue.
DROP INDEX hx_job_in_flight;
CREATE INDEX hx_job_in_flight ON hx_job (workspace, queue, due_at) WHERE in_flight_max > 0 AND due_at IS NULL AND ended_at IS NULL;
