-- How many runs of a workflow are in which status (see src/flow/run_count.h). Each change of a status is a row of hx_history: what is
-- written there is written here, by a trigger, so none is forgotten and none counts twice. Changes are appended, and folded into the counts
-- once in a while: a row for each workflow and status that every transition wrote would be one that all of them wait for.
CREATE TABLE hx_run_count (
  workspace TEXT    NOT NULL,
  workflow  TEXT    NOT NULL,
  status    TEXT    NOT NULL,
  n         INTEGER NOT NULL,
  PRIMARY KEY (workspace, workflow, status)
) STRICT, WITHOUT ROWID;

-- from_status '': a new one; to_status '': retention has taken it.
CREATE TABLE hx_run_moved (
  id          INTEGER IDENTITY PRIMARY KEY,
  workspace   TEXT    NOT NULL,
  workflow    TEXT    NOT NULL,
  from_status TEXT    NOT NULL,
  to_status   TEXT    NOT NULL,
  n           INTEGER NOT NULL
) STRICT;

INSERT INTO hx_run_count (workspace, workflow, status, n) SELECT r.workspace, r.workflow, s.status, count(*) FROM hx_run r
  JOIN hx_subject s ON s.id = r.subject WHERE r.expired = 0 GROUP BY r.workspace, r.workflow, s.status;

--@ only sqlite
CREATE TRIGGER hx_run_counted AFTER INSERT ON hx_history WHEN new.from_status <> new.to_status BEGIN
  INSERT INTO hx_run_moved (workspace, workflow, from_status, to_status, n)
    SELECT r.workspace, r.workflow, new.from_status, new.to_status, 1 FROM hx_run r WHERE r.subject = new.subject;
END;
--@ only postgres
-- Of a statement that moves many there is a row for each way that they go.
CREATE FUNCTION hx_run_counted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO hx_run_moved (workspace, workflow, from_status, to_status, n)
    SELECT r.workspace, r.workflow, h.from_status, h.to_status, count(*) FROM fresh h JOIN hx_run r ON r.subject = h.subject
    WHERE h.from_status <> h.to_status GROUP BY r.workspace, r.workflow, h.from_status, h.to_status;
  RETURN NULL;
END $$;
CREATE TRIGGER hx_run_counted AFTER INSERT ON hx_history REFERENCING NEW TABLE AS fresh
  FOR EACH STATEMENT EXECUTE FUNCTION hx_run_counted();
--@ for all
