-- What a run is beside its subject row (see src/flow/run.h). The unique index is what makes a key create one run.
-- How far it has come stands in run_step alone. The columns from at_step to wait_until tell of the step at at_step; when
-- the run has come further, they mean nothing.
-- due_at is when a node has to look at the run; NULL while one holds it, and while nothing but an event, a worker or a
-- person can move it. expired: retention has taken all but the key and, in the subject, the head of the history.
CREATE TABLE run (
  subject            bigint PRIMARY KEY,
  workspace          text    NOT NULL,
  workflow           text    NOT NULL,
  definition_version bigint NOT NULL,
  run_key            text,
  requester          text    NOT NULL,
  trace              text,
  input              text    NOT NULL,
  output             text,
  error              text,    -- JSON: {"code", "message", "step"}
  at_step            bigint NOT NULL DEFAULT 0,
  attempt            bigint NOT NULL DEFAULT 0, -- begun so far
  redo               bigint NOT NULL DEFAULT 0, -- part of the key of the effect: rises when a person starts it anew
  step_status        text,    -- FAILED or UNKNOWN; NULL: what the run's own status says
  step_started_at    bigint,
  awaits             text,    -- what else moves it: event NAME, approval, job, person; NULL: nothing
  job                bigint, -- the job that carries the step out
  undo               bigint, -- the position that is being compensated
  wait_until         bigint, -- the end of a wait, of a timeout, of a backoff
  due_at             bigint,
  created_at         bigint NOT NULL,
  started_at         bigint,
  completed_at       bigint,
  expired            bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 80);

CREATE UNIQUE INDEX run_key ON run (workspace, run_key) WHERE run_key IS NOT NULL;
CREATE INDEX run_due ON run (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX run_workflow ON run (workflow, definition_version);
CREATE INDEX run_completed ON run (completed_at) WHERE completed_at IS NOT NULL AND expired = 0;

-- A step that is done: COMPLETED or SKIPPED, written once. What a condition jumped over has no row.
CREATE TABLE run_step (
  run          bigint NOT NULL,
  position     bigint NOT NULL,
  status       text    NOT NULL,
  attempt      bigint NOT NULL,
  output       text    NOT NULL,
  started_at   bigint NOT NULL,
  completed_at bigint NOT NULL,
  undone_at    bigint, -- the marker of its compensation
  PRIMARY KEY (run, position)
);

-- Events and decisions that have come for a run; the primary key is what drops a duplicate. The name is what the run
-- would await for it: "event NAME", "approval STEP".
CREATE TABLE run_event (
  run      bigint NOT NULL,
  id       text    NOT NULL,
  name     text    NOT NULL,
  data     text    NOT NULL,
  at       bigint NOT NULL,
  taken_by bigint, -- the position that took it
  PRIMARY KEY (run, name, id)
);

-- Jobs of workers. run: whose step it is. repeatable: its effect is safe to repeat after a worker was lost over it.
-- error is NULL while AVAILABLE for the first time and when COMPLETED, never when RETRYING or PARKED.
ALTER TABLE job ADD COLUMN priority bigint NOT NULL DEFAULT 0;
ALTER TABLE job ADD COLUMN job_key text;
ALTER TABLE job ADD COLUMN run bigint;
ALTER TABLE job ADD COLUMN repeatable bigint NOT NULL DEFAULT 0;
ALTER TABLE job ADD COLUMN attempts_max bigint NOT NULL DEFAULT 8;
ALTER TABLE job ADD COLUMN retry_initial_ms bigint NOT NULL DEFAULT 1000;
ALTER TABLE job ADD COLUMN retry_max_ms bigint NOT NULL DEFAULT 300000;
ALTER TABLE job ADD COLUMN retry_factor bigint NOT NULL DEFAULT 2000; -- thousandths
ALTER TABLE job ADD COLUMN jitter bigint NOT NULL DEFAULT 1;
ALTER TABLE job ADD COLUMN output text;
ALTER TABLE job ADD COLUMN in_flight_max bigint NOT NULL DEFAULT 0; -- of its queue; 0: no bound
ALTER TABLE job ADD COLUMN ended_at bigint; -- set while COMPLETED or PARKED

UPDATE job SET ended_at = (SELECT updated_at FROM subject WHERE id = job.subject)
  WHERE subject IN (SELECT id FROM subject WHERE status IN ('COMPLETED', 'PARKED'));

-- The grade is what a claim goes by: jobs of one bound and one priority (-1000 to 1000), of those with one bound the
-- better ones first. A claim looks at the first job of each grade that there is, not at all that wait.
ALTER TABLE job ADD COLUMN grade bigint GENERATED ALWAYS AS (in_flight_max * 4096 + 1000 - priority) STORED;

-- Every job is in one of these while it may be claimed: the engine's own by time, those of workers by queue.
DROP INDEX job_due;
CREATE INDEX job_due_here ON job (due_at) WHERE due_at IS NOT NULL AND queue = 'after-effects';
CREATE INDEX job_due ON job (workspace, queue, grade, due_at) WHERE due_at IS NOT NULL AND queue <> 'after-effects';
CREATE INDEX job_in_flight ON job (workspace, queue) WHERE in_flight_max > 0 AND due_at IS NULL AND ended_at IS NULL;
CREATE UNIQUE INDEX job_key ON job (workspace, queue, job_key) WHERE job_key IS NOT NULL;
CREATE INDEX job_over ON job (ended_at) WHERE ended_at IS NOT NULL AND (error IS NULL OR run IS NOT NULL);

-- How many more jobs of this queue may be claimed, exact over all nodes: whoever asks is the only one until its commit, and
-- a volatile function counts on a snapshot of its own, taken behind the lock. 0 also while another claims there: nobody
-- waits.
CREATE FUNCTION hx_job_room(space text, line text, bound bigint) RETURNS bigint LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  IF NOT pg_try_advisory_xact_lock(hashtextextended(line, hashtextextended(space, 4851071241877))) THEN
    RETURN 0;
  END IF;
  RETURN bound - (SELECT count(*) FROM job
                   WHERE workspace = space AND queue = line AND in_flight_max > 0 AND due_at IS NULL AND ended_at IS NULL);
END $$;

-- The nodes that are alive: each has one number for its ids, leased for as long as it renews it.
CREATE TABLE node (
  number     bigint PRIMARY KEY,
  name       text    NOT NULL,
  token      bigint NOT NULL,
  started_at bigint NOT NULL,
  until      bigint NOT NULL
) WITH (fillfactor = 80);
