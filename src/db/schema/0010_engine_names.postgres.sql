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
