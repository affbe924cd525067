-- The engine's tables in a store that is new. What the store of an older program becomes is in 0010_engine_names.

-- A subject is a row that is changed only by guarded transitions (see src/flow/subject.c).
-- fillfactor 80 leaves room for heap-only updates; nothing that heartbeats move is indexed.
CREATE TABLE hx_subject (
  id         bigint PRIMARY KEY,
  kind       bigint NOT NULL,
  status     text   NOT NULL,
  version    bigint NOT NULL,
  op         bigint NOT NULL,
  fence      bigint NOT NULL DEFAULT 0,
  effort     bigint NOT NULL DEFAULT 0, -- definite ends of claims so far: part of the key of the next effect
  doubt      bigint NOT NULL DEFAULT 0, -- a claim ended without an answer: the effect may be there
  owner      text,
  until      bigint,
  updated_at bigint NOT NULL,
  seq        bigint NOT NULL,
  head       bytea  NOT NULL
) WITH (fillfactor = 80);

CREATE INDEX hx_subject_claimed ON hx_subject (id) WHERE owner IS NOT NULL;

CREATE TABLE hx_history (
  subject     bigint NOT NULL,
  seq         bigint NOT NULL,
  from_status text   NOT NULL,
  to_status   text   NOT NULL,
  version     bigint NOT NULL,
  fence       bigint NOT NULL,
  op          bigint NOT NULL,
  node        text   NOT NULL,
  at          bigint NOT NULL,
  hash        bytea  NOT NULL,
  PRIMARY KEY (subject, seq)
);

CREATE FUNCTION hx_chain(head bytea, link text) RETURNS bytea LANGUAGE sql STABLE PARALLEL SAFE
  AS $$ SELECT sha256(coalesce(head, ''::bytea) || convert_to(link, 'UTF8')) $$;

-- What an entity is beside its subject row. `name` is the id that users see.
-- The claim_* columns tell which step claimed it last; they mean something only while the subject is claimed.
CREATE TABLE hx_entity (
  subject         bigint PRIMARY KEY,
  workspace       text NOT NULL,
  workflow        text NOT NULL,
  name            text NOT NULL,
  data            text NOT NULL,
  claim_step      text,
  claim_from      text,
  claim_requester text,
  claim_input     text
) WITH (fillfactor = 80);

CREATE UNIQUE INDEX hx_entity_name ON hx_entity (workspace, workflow, name);

-- Work that is done after a commit. due_at is set exactly while the job may be claimed, so a claim takes it out of
-- the index and heartbeats move nothing that is indexed.
CREATE TABLE hx_job (
  subject    bigint PRIMARY KEY,
  workspace  text   NOT NULL,
  queue      text   NOT NULL,
  workflow   text   NOT NULL,
  action     text   NOT NULL,
  effect_key text   NOT NULL,
  payload    text   NOT NULL,
  attempt    bigint NOT NULL DEFAULT 0,
  due_at     bigint,
  error      text
) WITH (fillfactor = 80);

CREATE TABLE hx_definition (
  name    text   NOT NULL,
  version bigint NOT NULL,
  text    text   NOT NULL,
  at      bigint NOT NULL,
  PRIMARY KEY (name, version)
);

CREATE TABLE hx_entry_lock (
  name  text   PRIMARY KEY,
  token text   NOT NULL,
  until bigint NOT NULL
);

-- What a run is beside its subject row (see src/flow/run.h). The unique index is what makes a key create one run.
-- How far it has come stands in run_step alone. The columns from at_step to wait_until tell of the step at at_step; when
-- the run has come further, they mean nothing.
-- due_at is when a node has to look at the run; NULL while one holds it, and while nothing but an event, a worker or a
-- person can move it. expired: retention has taken all but the key and, in the subject, the head of the history.
CREATE TABLE hx_run (
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

CREATE UNIQUE INDEX hx_run_key ON hx_run (workspace, run_key) WHERE run_key IS NOT NULL;
CREATE INDEX hx_run_due ON hx_run (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX hx_run_workflow ON hx_run (workflow, definition_version);
CREATE INDEX hx_run_completed ON hx_run (completed_at) WHERE completed_at IS NOT NULL AND expired = 0;

-- A step that is done: COMPLETED or SKIPPED, written once. What a condition jumped over has no row.
CREATE TABLE hx_run_step (
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
CREATE TABLE hx_run_event (
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
ALTER TABLE hx_job ADD COLUMN priority bigint NOT NULL DEFAULT 0;
ALTER TABLE hx_job ADD COLUMN job_key text;
ALTER TABLE hx_job ADD COLUMN run bigint;
ALTER TABLE hx_job ADD COLUMN repeatable bigint NOT NULL DEFAULT 0;
ALTER TABLE hx_job ADD COLUMN attempts_max bigint NOT NULL DEFAULT 8;
ALTER TABLE hx_job ADD COLUMN retry_initial_ms bigint NOT NULL DEFAULT 1000;
ALTER TABLE hx_job ADD COLUMN retry_max_ms bigint NOT NULL DEFAULT 300000;
ALTER TABLE hx_job ADD COLUMN retry_factor bigint NOT NULL DEFAULT 2000; -- thousandths
ALTER TABLE hx_job ADD COLUMN jitter bigint NOT NULL DEFAULT 1;
ALTER TABLE hx_job ADD COLUMN output text;
ALTER TABLE hx_job ADD COLUMN in_flight_max bigint NOT NULL DEFAULT 0; -- of its queue; 0: no bound
ALTER TABLE hx_job ADD COLUMN ended_at bigint; -- set while COMPLETED or PARKED

-- The grade is what a claim goes by: jobs of one bound and one priority (-1000 to 1000), of those with one bound the
-- better ones first. A claim looks at the first job of each grade that there is, not at all that wait.
ALTER TABLE hx_job ADD COLUMN grade bigint GENERATED ALWAYS AS (in_flight_max * 4096 + 1000 - priority) STORED;

-- Every job is in one of these while it may be claimed: the engine's own by time, those of workers by queue.
CREATE INDEX hx_job_due_here ON hx_job (due_at) WHERE due_at IS NOT NULL AND queue = 'after-effects';
CREATE INDEX hx_job_due ON hx_job (workspace, queue, grade, due_at) WHERE due_at IS NOT NULL AND queue <> 'after-effects';
CREATE INDEX hx_job_in_flight ON hx_job (workspace, queue) WHERE in_flight_max > 0 AND due_at IS NULL AND ended_at IS NULL;
CREATE UNIQUE INDEX hx_job_key ON hx_job (workspace, queue, job_key) WHERE job_key IS NOT NULL;
CREATE INDEX hx_job_over ON hx_job (ended_at) WHERE ended_at IS NOT NULL AND (error IS NULL OR run IS NOT NULL);

-- How many more jobs of this queue may be claimed, exact over all nodes: whoever asks is the only one until its commit, and
-- a volatile function counts on a snapshot of its own, taken behind the lock. 0 also while another claims there: nobody
-- waits.
CREATE FUNCTION hx_job_room(space text, line text, bound bigint) RETURNS bigint LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  IF NOT pg_try_advisory_xact_lock(hashtextextended(line, hashtextextended(space, 4851071241877))) THEN
    RETURN 0;
  END IF;
  RETURN bound - (SELECT count(*) FROM hx_job
                   WHERE workspace = space AND queue = line AND in_flight_max > 0 AND due_at IS NULL AND ended_at IS NULL);
END $$;

-- The nodes that are alive: each has one number for its ids, leased for as long as it renews it.
CREATE TABLE hx_node (
  number     bigint PRIMARY KEY,
  name       text    NOT NULL,
  token      bigint NOT NULL,
  started_at bigint NOT NULL,
  until      bigint NOT NULL
) WITH (fillfactor = 80);

-- Money (see src/flow/account.h). An account is a subject that stays OPEN: its row there is what units lock. What happened to it
-- is told by the ledger: every entry has a key of its own, and the balance is their sum.
CREATE TABLE hx_account (
  subject    bigint PRIMARY KEY,
  workspace  text    NOT NULL,
  name       text    NOT NULL, -- the id that users see
  balance    bigint NOT NULL CHECK (balance >= 0),
  seq        bigint NOT NULL,
  created_at bigint NOT NULL
) WITH (fillfactor = 80);

CREATE UNIQUE INDEX hx_account_name ON hx_account (workspace, name);

CREATE TABLE hx_ledger (
  account bigint NOT NULL,
  seq     bigint NOT NULL,
  amount  bigint NOT NULL,
  key     text    NOT NULL,
  reason  text    NOT NULL, -- opening, credit; of batches: charge, return, refund
  balance bigint NOT NULL, -- behind this entry
  op      bigint NOT NULL,
  at      bigint NOT NULL,
  PRIMARY KEY (account, seq)
) WITH (fillfactor = 80);

-- Keys of users and keys that the engine makes never meet: those of the engine begin with a slash, which users' may not.
CREATE UNIQUE INDEX hx_ledger_key ON hx_ledger (account, key);

-- What a batch is beside its subject row (see src/flow/batch.h). Counts and sums are those of its items, kept in the units
-- that change them. due_at is when a node has to look at it; NULL while one holds it, and while only a caller can move it.
CREATE TABLE hx_batch (
  subject            bigint PRIMARY KEY,
  workspace          text    NOT NULL,
  workflow           text    NOT NULL,
  definition_version bigint NOT NULL,
  batch_key          text,
  requester          text    NOT NULL,
  trace              text,
  account            bigint NOT NULL, -- the subject of hx_account
  cancel_requested   bigint NOT NULL DEFAULT 0,
  needs              bigint, -- OUT_OF_CREDIT: what the next item costs
  total              bigint NOT NULL DEFAULT 0, -- items from here on are being loaded, or were by somebody who is lost
  next_n             bigint NOT NULL DEFAULT 0, -- items from here on were never begun
  succeeded          bigint NOT NULL DEFAULT 0,
  failed             bigint NOT NULL DEFAULT 0,
  unknown            bigint NOT NULL DEFAULT 0,
  accepted           bigint NOT NULL DEFAULT 0,
  cancelled          bigint NOT NULL DEFAULT 0,
  charged            bigint NOT NULL DEFAULT 0, -- ever debited, less what was returned for failures
  refunded           bigint NOT NULL DEFAULT 0,
  late               bigint NOT NULL DEFAULT 0, -- successes that came after their item was cancelled
  flipped_to         bigint NOT NULL DEFAULT 0, -- teardown: items before this one are decided
  cleanups           bigint NOT NULL DEFAULT 0, -- teardowns that were let go so far: for the backoff
  error              text,
  due_at             bigint,
  created_at         bigint NOT NULL,
  loaded_at          bigint, -- NULL: its creation was never acknowledged
  started_at         bigint,
  completed_at       bigint,
  expired            bigint NOT NULL DEFAULT 0 -- by retention: 1: its items are being deleted, 2: they are gone
) WITH (fillfactor = 80);

CREATE UNIQUE INDEX hx_batch_key ON hx_batch (workspace, batch_key) WHERE batch_key IS NOT NULL;
CREATE INDEX hx_batch_due ON hx_batch (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX hx_batch_needs ON hx_batch (account) WHERE needs IS NOT NULL;
CREATE INDEX hx_batch_workflow ON hx_batch (workflow, definition_version);
CREATE INDEX hx_batch_completed ON hx_batch (completed_at) WHERE completed_at IS NOT NULL AND expired < 2;

-- charged is what it has cost so far and nothing has given back. moved is what the unit that last changed it (op) has moved
-- on the account because of it: the ledger is written from that. fence is that of the holder that began it last.
CREATE TABLE hx_batch_item (
  batch    bigint NOT NULL,
  n        bigint NOT NULL,
  input    text    NOT NULL,
  cost     bigint NOT NULL CHECK (cost >= 0),
  charged  bigint NOT NULL DEFAULT 0,
  status   text    NOT NULL DEFAULT 'PENDING',
  decision text, -- NULL, accepted or cancelled
  attempt  bigint NOT NULL DEFAULT 0, -- calls begun
  failures bigint NOT NULL DEFAULT 0, -- answers that count against its attempts
  losses   bigint NOT NULL DEFAULT 0, -- holders lost over it
  doubt    bigint NOT NULL DEFAULT 0, -- 1: a call may have been done, and nobody knows; 2: one was in doubt once
  fence    bigint NOT NULL DEFAULT 0,
  moved    bigint NOT NULL DEFAULT 0,
  op       bigint NOT NULL DEFAULT 0,
  due_at   bigint, -- PENDING, once begun: not before
  output   text,    -- its artifact
  late     text,    -- a success that came after it was cancelled: shown, never charged
  error    text,
  PRIMARY KEY (batch, n)
) WITH (fillfactor = 80);

-- Begun and not ended: a few.
CREATE INDEX hx_batch_item_open ON hx_batch_item (batch, status, due_at)
  WHERE decision IS NULL AND attempt > 0 AND status IN ('PENDING', 'RUNNING');
-- Of these, at rest and paid for: seldom any.
CREATE INDEX hx_batch_item_paid ON hx_batch_item (batch, due_at)
  WHERE decision IS NULL AND status = 'PENDING' AND doubt = 1;

-- API keys (see src/flow/api_key.h): who may ask, in whose name, for which workspace. Only a hash of the key is here.
CREATE TABLE hx_key (
  id         bigint PRIMARY KEY, -- stands in the key's text too: by it the row is found
  workspace  text   NOT NULL,
  requester  text   NOT NULL,
  name       text   NOT NULL,
  scope      text   NOT NULL CHECK (scope IN ('read', 'execute', 'admin')),
  digest     bytea  NOT NULL CHECK (length(digest) = 32),
  created_at bigint NOT NULL,
  expires_at bigint, -- NULL: never
  revoked_at bigint  -- NULL: not yet
);

-- One row: raised by whatever makes or revokes a key, so that a server sees with one read whether it knows them all. 0: there
-- has never been a key, and who asks over loopback needs none.
CREATE TABLE hx_keyring (
  id      bigint PRIMARY KEY,
  version bigint NOT NULL
);

INSERT INTO hx_keyring (id, version) VALUES (1, 0);

-- One row: what is added to every fence that leaves the store (see src/engine/fences.h).
CREATE TABLE hx_fences (
  id    bigint PRIMARY KEY,
  floor bigint NOT NULL
);

INSERT INTO hx_fences (id, floor) VALUES (1, 0);
