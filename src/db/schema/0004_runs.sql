-- What a run is beside its subject row (see src/flow/run.h). The unique index is what makes a key create one run.
-- How far it has come stands in run_step alone. The columns from at_step to wait_until tell of the step at at_step; when
-- the run has come further, they mean nothing.
-- due_at is when a node has to look at the run; NULL while one holds it, and while nothing but an event, a worker or a
-- person can move it. expired: retention has taken all but the key and, in the subject, the head of the history.
CREATE TABLE {hx_}run (
  subject            INTEGER PRIMARY KEY,
  workspace          TEXT    NOT NULL,
  workflow           TEXT    NOT NULL,
  definition_version INTEGER NOT NULL,
  run_key            TEXT,
  requester          TEXT    NOT NULL,
  trace              TEXT,
  input              TEXT    NOT NULL,
  output             TEXT,
  error              TEXT,    -- JSON: {"code", "message", "step"}
  at_step            INTEGER NOT NULL DEFAULT 0,
  attempt            INTEGER NOT NULL DEFAULT 0, -- begun so far
  redo               INTEGER NOT NULL DEFAULT 0, -- part of the key of the effect: rises when a person starts it anew
  step_status        TEXT,    -- FAILED or UNKNOWN; NULL: what the run's own status says
  step_started_at    INTEGER,
  awaits             TEXT,    -- what else moves it: event NAME, approval, job, person; NULL: nothing
  job                INTEGER, -- the job that carries the step out
  undo               INTEGER, -- the position that is being compensated
  wait_until         INTEGER, -- the end of a wait, of a timeout, of a backoff
  due_at             INTEGER,
  created_at         INTEGER NOT NULL,
  started_at         INTEGER,
  completed_at       INTEGER,
  expired            INTEGER NOT NULL DEFAULT 0
) STRICT, FILLFACTOR 80;

CREATE UNIQUE INDEX {hx_}run_key ON {hx_}run (workspace, run_key) WHERE run_key IS NOT NULL;
CREATE INDEX {hx_}run_due ON {hx_}run (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX {hx_}run_workflow ON {hx_}run (workflow, definition_version);
CREATE INDEX {hx_}run_completed ON {hx_}run (completed_at) WHERE completed_at IS NOT NULL AND expired = 0;

-- A step that is done: COMPLETED or SKIPPED, written once. What a condition jumped over has no row.
CREATE TABLE {hx_}run_step (
  run          INTEGER NOT NULL,
  position     INTEGER NOT NULL,
  status       TEXT    NOT NULL,
  attempt      INTEGER NOT NULL,
  output       TEXT    NOT NULL,
  started_at   INTEGER NOT NULL,
  completed_at INTEGER NOT NULL,
  undone_at    INTEGER, -- the marker of its compensation
  PRIMARY KEY (run, position)
) STRICT, WITHOUT ROWID;

-- Events and decisions that have come for a run; the primary key is what drops a duplicate. The name is what the run
-- would await for it: "event NAME", "approval STEP".
CREATE TABLE {hx_}run_event (
  run      INTEGER NOT NULL,
  id       TEXT    NOT NULL,
  name     TEXT    NOT NULL,
  data     TEXT    NOT NULL,
  at       INTEGER NOT NULL,
  taken_by INTEGER, -- the position that took it
  PRIMARY KEY (run, name, id)
) STRICT, WITHOUT ROWID;

-- Jobs of workers. run: whose step it is. repeatable: its effect is safe to repeat after a worker was lost over it.
-- error is NULL while AVAILABLE for the first time and when COMPLETED, never when RETRYING or PARKED.
ALTER TABLE {hx_}job ADD COLUMN priority INTEGER NOT NULL DEFAULT 0;
ALTER TABLE {hx_}job ADD COLUMN job_key TEXT;
ALTER TABLE {hx_}job ADD COLUMN run INTEGER;
ALTER TABLE {hx_}job ADD COLUMN repeatable INTEGER NOT NULL DEFAULT 0;
ALTER TABLE {hx_}job ADD COLUMN attempts_max INTEGER NOT NULL DEFAULT 8;
ALTER TABLE {hx_}job ADD COLUMN retry_initial_ms INTEGER NOT NULL DEFAULT 1000;
ALTER TABLE {hx_}job ADD COLUMN retry_max_ms INTEGER NOT NULL DEFAULT 300000;
ALTER TABLE {hx_}job ADD COLUMN retry_factor INTEGER NOT NULL DEFAULT 2000; -- thousandths
ALTER TABLE {hx_}job ADD COLUMN jitter INTEGER NOT NULL DEFAULT 1;
ALTER TABLE {hx_}job ADD COLUMN output TEXT;
ALTER TABLE {hx_}job ADD COLUMN in_flight_max INTEGER NOT NULL DEFAULT 0; -- of its queue; 0: no bound
ALTER TABLE {hx_}job ADD COLUMN ended_at INTEGER; -- set while COMPLETED or PARKED

--@ only old
UPDATE {hx_}job SET ended_at = (SELECT updated_at FROM {hx_}subject WHERE id = {hx_}job.subject)
  WHERE subject IN (SELECT id FROM {hx_}subject WHERE status IN ('COMPLETED', 'PARKED'));
--@ for all

-- The grade is what a claim goes by: jobs of one bound and one priority (-1000 to 1000), of those with one bound the
-- better ones first. A claim looks at the first job of each grade that there is, not at all that wait.
ALTER TABLE {hx_}job ADD COLUMN grade INTEGER GENERATED ALWAYS AS (in_flight_max * 4096 + 1000 - priority) VIRTUAL;

-- Every job is in one of these while it may be claimed: the engine's own by time, those of workers by queue.
--@ only old
DROP INDEX {hx_}job_due;
--@ for all
CREATE INDEX {hx_}job_due_here ON {hx_}job (due_at) WHERE due_at IS NOT NULL AND queue = 'after-effects';
CREATE INDEX {hx_}job_due ON {hx_}job (workspace, queue, grade, due_at) WHERE due_at IS NOT NULL AND queue <> 'after-effects';
CREATE INDEX {hx_}job_in_flight ON {hx_}job (workspace, queue) WHERE in_flight_max > 0 AND due_at IS NULL AND ended_at IS NULL;
CREATE UNIQUE INDEX {hx_}job_key ON {hx_}job (workspace, queue, job_key) WHERE job_key IS NOT NULL;
CREATE INDEX {hx_}job_over ON {hx_}job (ended_at) WHERE ended_at IS NOT NULL AND (error IS NULL OR run IS NOT NULL);

--@ only postgres
-- How many more jobs of this queue may be claimed, exact over all nodes: whoever asks is the only one until its commit, and
-- a volatile function counts on a snapshot of its own, taken after the lock. 0 also while another claims there: nobody
-- waits.
CREATE FUNCTION hx_job_room(space text, line text, bound bigint) RETURNS bigint LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  IF NOT pg_try_advisory_xact_lock(hashtextextended(line, hashtextextended(space, 4851071241877))) THEN
    RETURN 0;
  END IF;
  RETURN bound - (SELECT count(*) FROM {hx_}job
                   WHERE workspace = space AND queue = line AND in_flight_max > 0 AND due_at IS NULL AND ended_at IS NULL);
END $$;
--@ for all

-- The nodes that are alive: each has one number for its ids, leased for as long as it renews it.
CREATE TABLE {hx_}node (
  number     INTEGER PRIMARY KEY,
  name       TEXT    NOT NULL,
  token      INTEGER NOT NULL,
  started_at INTEGER NOT NULL,
  until      INTEGER NOT NULL
) STRICT, FILLFACTOR 80;
