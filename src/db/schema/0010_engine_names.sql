--@ a new store runs 0001 0002 0004 0005 0006 0007 0008 in place of this
-- All of ours under hx_: the store may be a database of the user's, who has a table `job`, too.
ALTER TABLE subject RENAME TO hx_subject;
ALTER TABLE history RENAME TO hx_history;
ALTER TABLE entity RENAME TO hx_entity;
ALTER TABLE job RENAME TO hx_job;
ALTER TABLE definition RENAME TO hx_definition;
ALTER TABLE entry_lock RENAME TO hx_entry_lock;
ALTER TABLE run RENAME TO hx_run;
ALTER TABLE run_step RENAME TO hx_run_step;
ALTER TABLE run_event RENAME TO hx_run_event;
ALTER TABLE node RENAME TO hx_node;

--@ only sqlite
-- SQLite cannot rename an index: it is made anew.
DROP INDEX subject_claimed;
CREATE INDEX hx_subject_claimed ON hx_subject (id) WHERE owner IS NOT NULL;
DROP INDEX entity_name;
CREATE UNIQUE INDEX hx_entity_name ON hx_entity (workspace, workflow, name);
DROP INDEX job_due_here;
CREATE INDEX hx_job_due_here ON hx_job (due_at) WHERE due_at IS NOT NULL AND queue = 'after-effects';
DROP INDEX job_due;
CREATE INDEX hx_job_due ON hx_job (workspace, queue, grade, due_at) WHERE due_at IS NOT NULL AND queue <> 'after-effects';
DROP INDEX run_key;
CREATE UNIQUE INDEX hx_run_key ON hx_run (workspace, run_key) WHERE run_key IS NOT NULL;
DROP INDEX run_due;
CREATE INDEX hx_run_due ON hx_run (due_at) WHERE due_at IS NOT NULL;
DROP INDEX run_workflow;
CREATE INDEX hx_run_workflow ON hx_run (workflow, definition_version);
DROP INDEX run_completed;
CREATE INDEX hx_run_completed ON hx_run (completed_at) WHERE completed_at IS NOT NULL AND expired = 0;
DROP INDEX job_in_flight;
CREATE INDEX hx_job_in_flight ON hx_job (workspace, queue) WHERE in_flight_max > 0 AND due_at IS NULL AND ended_at IS NULL;
DROP INDEX job_key;
CREATE UNIQUE INDEX hx_job_key ON hx_job (workspace, queue, job_key) WHERE job_key IS NOT NULL;
DROP INDEX job_over;
CREATE INDEX hx_job_over ON hx_job (ended_at) WHERE ended_at IS NOT NULL AND (error IS NULL OR run IS NOT NULL);

--@ only postgres
ALTER INDEX subject_pkey RENAME TO hx_subject_pkey;
ALTER INDEX history_pkey RENAME TO hx_history_pkey;
ALTER INDEX entity_pkey RENAME TO hx_entity_pkey;
ALTER INDEX job_pkey RENAME TO hx_job_pkey;
ALTER INDEX definition_pkey RENAME TO hx_definition_pkey;
ALTER INDEX entry_lock_pkey RENAME TO hx_entry_lock_pkey;
ALTER INDEX run_pkey RENAME TO hx_run_pkey;
ALTER INDEX run_step_pkey RENAME TO hx_run_step_pkey;
ALTER INDEX run_event_pkey RENAME TO hx_run_event_pkey;
ALTER INDEX node_pkey RENAME TO hx_node_pkey;
ALTER INDEX subject_claimed RENAME TO hx_subject_claimed;
ALTER INDEX entity_name RENAME TO hx_entity_name;
ALTER INDEX job_due_here RENAME TO hx_job_due_here;
ALTER INDEX job_due RENAME TO hx_job_due;
ALTER INDEX run_key RENAME TO hx_run_key;
ALTER INDEX run_due RENAME TO hx_run_due;
ALTER INDEX run_workflow RENAME TO hx_run_workflow;
ALTER INDEX run_completed RENAME TO hx_run_completed;
ALTER INDEX job_in_flight RENAME TO hx_job_in_flight;
ALTER INDEX job_key RENAME TO hx_job_key;
ALTER INDEX job_over RENAME TO hx_job_over;

CREATE OR REPLACE FUNCTION hx_job_room(space text, line text, bound bigint) RETURNS bigint LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  IF NOT pg_try_advisory_xact_lock(hashtextextended(line, hashtextextended(space, 4851071241877))) THEN
    RETURN 0;
  END IF;
  RETURN bound - (SELECT count(*) FROM hx_job
                   WHERE workspace = space AND queue = line AND in_flight_max > 0 AND due_at IS NULL AND ended_at IS NULL);
END $$;
