-- Runs are counted where their status is (see src/flow/run_count.h), on SQLite: a table with a trigger takes what is selected into it
-- by way of a table in memory, which made every row of hx_history, whatever it told of, half as dear again. A new run is PENDING.
--@ only sqlite
DROP TRIGGER hx_run_counted;
CREATE TRIGGER hx_run_made AFTER INSERT ON hx_run WHEN new.expired = 0 BEGIN
  INSERT INTO hx_run_moved (workspace, workflow, from_status, to_status, n) VALUES (new.workspace, new.workflow, '', 'PENDING', 1);
END;
CREATE TRIGGER hx_run_counted AFTER UPDATE OF status ON hx_subject
  WHEN new.status <> old.status AND new.kind IN (6223150775284038661, 4358593838217601458) BEGIN -- run_kind(), function_kind()
  INSERT INTO hx_run_moved (workspace, workflow, from_status, to_status, n)
    SELECT r.workspace, r.workflow, old.status, new.status, 1 FROM hx_run r WHERE r.subject = new.id;
END;
--@ for all
