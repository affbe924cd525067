-- The engine's tables in a store that is new. What the store of an older program becomes is in 0010_engine_names.

-- A subject is a row that is changed only by guarded transitions (see src/flow/subject.c).
-- The row is narrow because it is hot; payloads live in tables of their own.
CREATE TABLE hx_subject (
  id         INTEGER PRIMARY KEY,
  kind       INTEGER NOT NULL,
  status     TEXT    NOT NULL,
  version    INTEGER NOT NULL,
  op         INTEGER NOT NULL,
  fence      INTEGER NOT NULL DEFAULT 0,
  effort     INTEGER NOT NULL DEFAULT 0, -- definite ends of claims so far: part of the key of the next effect
  doubt      INTEGER NOT NULL DEFAULT 0, -- a claim ended without an answer: the effect may be there
  owner      TEXT,
  until      INTEGER,
  updated_at INTEGER NOT NULL,
  seq        INTEGER NOT NULL,
  head       BLOB    NOT NULL
) STRICT;

-- What a janitor looks through. The key is the id alone: nothing that heartbeats move is indexed.
CREATE INDEX hx_subject_claimed ON hx_subject (id) WHERE owner IS NOT NULL;

CREATE TABLE hx_history (
  subject     INTEGER NOT NULL,
  seq         INTEGER NOT NULL,
  from_status TEXT    NOT NULL,
  to_status   TEXT    NOT NULL,
  version     INTEGER NOT NULL,
  fence       INTEGER NOT NULL,
  op          INTEGER NOT NULL,
  node        TEXT    NOT NULL,
  at          INTEGER NOT NULL,
  hash        BLOB    NOT NULL,
  PRIMARY KEY (subject, seq)
) STRICT, WITHOUT ROWID;

-- What an entity is beside its subject row. `name` is the id that users see.
-- The claim_* columns tell which step claimed it last; they mean something only while the subject is claimed.
CREATE TABLE hx_entity (
  subject         INTEGER PRIMARY KEY,
  workspace       TEXT NOT NULL,
  workflow        TEXT NOT NULL,
  name            TEXT NOT NULL,
  data            TEXT NOT NULL,
  claim_step      TEXT,
  claim_from      TEXT,
  claim_requester TEXT,
  claim_input     TEXT
) STRICT;

CREATE UNIQUE INDEX hx_entity_name ON hx_entity (workspace, workflow, name);

-- Work that is done after a commit. due_at is set exactly while the job may be claimed, so a claim takes it out of
-- the index and heartbeats move nothing that is indexed.
CREATE TABLE hx_job (
  subject    INTEGER PRIMARY KEY,
  workspace  TEXT    NOT NULL,
  queue      TEXT    NOT NULL,
  workflow   TEXT    NOT NULL,
  action     TEXT    NOT NULL,
  effect_key TEXT    NOT NULL,
  payload    TEXT    NOT NULL,
  attempt    INTEGER NOT NULL DEFAULT 0,
  due_at     INTEGER,
  error      TEXT
) STRICT;

CREATE TABLE hx_definition (
  name    TEXT    NOT NULL,
  version INTEGER NOT NULL,
  text    TEXT    NOT NULL,
  at      INTEGER NOT NULL,
  PRIMARY KEY (name, version)
) STRICT, WITHOUT ROWID;

CREATE TABLE hx_entry_lock (
  name  TEXT    PRIMARY KEY,
  token TEXT    NOT NULL,
  until INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- What a run is beside its subject row (see src/flow/run.h). The unique index is what makes a key create one run.
-- How far it has come stands in run_step alone. The columns from at_step to wait_until tell of the step at at_step; when
-- the run has come further, they mean nothing.
-- due_at is when a node has to look at the run; NULL while one holds it, and while nothing but an event, a worker or a
-- person can move it. expired: retention has taken all but the key and, in the subject, the head of the history.
CREATE TABLE hx_run (
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
) STRICT;

CREATE UNIQUE INDEX hx_run_key ON hx_run (workspace, run_key) WHERE run_key IS NOT NULL;
CREATE INDEX hx_run_due ON hx_run (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX hx_run_workflow ON hx_run (workflow, definition_version);
CREATE INDEX hx_run_completed ON hx_run (completed_at) WHERE completed_at IS NOT NULL AND expired = 0;

-- A step that is done: COMPLETED or SKIPPED, written once. What a condition jumped over has no row.
CREATE TABLE hx_run_step (
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
CREATE TABLE hx_run_event (
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
ALTER TABLE hx_job ADD COLUMN priority INTEGER NOT NULL DEFAULT 0;
ALTER TABLE hx_job ADD COLUMN job_key TEXT;
ALTER TABLE hx_job ADD COLUMN run INTEGER;
ALTER TABLE hx_job ADD COLUMN repeatable INTEGER NOT NULL DEFAULT 0;
ALTER TABLE hx_job ADD COLUMN attempts_max INTEGER NOT NULL DEFAULT 8;
ALTER TABLE hx_job ADD COLUMN retry_initial_ms INTEGER NOT NULL DEFAULT 1000;
ALTER TABLE hx_job ADD COLUMN retry_max_ms INTEGER NOT NULL DEFAULT 300000;
ALTER TABLE hx_job ADD COLUMN retry_factor INTEGER NOT NULL DEFAULT 2000; -- thousandths
ALTER TABLE hx_job ADD COLUMN jitter INTEGER NOT NULL DEFAULT 1;
ALTER TABLE hx_job ADD COLUMN output TEXT;
ALTER TABLE hx_job ADD COLUMN in_flight_max INTEGER NOT NULL DEFAULT 0; -- of its queue; 0: no bound
ALTER TABLE hx_job ADD COLUMN ended_at INTEGER; -- set while COMPLETED or PARKED

-- The grade is what a claim goes by: jobs of one bound and one priority (-1000 to 1000), of those with one bound the
-- better ones first. A claim looks at the first job of each grade that there is, not at all that wait.
ALTER TABLE hx_job ADD COLUMN grade INTEGER GENERATED ALWAYS AS (in_flight_max * 4096 + 1000 - priority) VIRTUAL;

-- Every job is in one of these while it may be claimed: the engine's own by time, those of workers by queue.
CREATE INDEX hx_job_due_here ON hx_job (due_at) WHERE due_at IS NOT NULL AND queue = 'after-effects';
CREATE INDEX hx_job_due ON hx_job (workspace, queue, grade, due_at) WHERE due_at IS NOT NULL AND queue <> 'after-effects';
CREATE INDEX hx_job_in_flight ON hx_job (workspace, queue) WHERE in_flight_max > 0 AND due_at IS NULL AND ended_at IS NULL;
CREATE UNIQUE INDEX hx_job_key ON hx_job (workspace, queue, job_key) WHERE job_key IS NOT NULL;
CREATE INDEX hx_job_over ON hx_job (ended_at) WHERE ended_at IS NOT NULL AND (error IS NULL OR run IS NOT NULL);

-- The nodes that are alive: each has one number for its ids, leased for as long as it renews it.
CREATE TABLE hx_node (
  number     INTEGER PRIMARY KEY,
  name       TEXT    NOT NULL,
  token      INTEGER NOT NULL,
  started_at INTEGER NOT NULL,
  until      INTEGER NOT NULL
) STRICT;

-- Money (see src/flow/account.h). An account is a subject that stays OPEN: its row there is what units lock. What happened to it
-- is told by the ledger: every entry has a key of its own, and the balance is their sum.
CREATE TABLE hx_account (
  subject    INTEGER PRIMARY KEY,
  workspace  TEXT    NOT NULL,
  name       TEXT    NOT NULL, -- the id that users see
  balance    INTEGER NOT NULL CHECK (balance >= 0),
  seq        INTEGER NOT NULL,
  created_at INTEGER NOT NULL
) STRICT;

CREATE UNIQUE INDEX hx_account_name ON hx_account (workspace, name);

CREATE TABLE hx_ledger (
  account INTEGER NOT NULL,
  seq     INTEGER NOT NULL,
  amount  INTEGER NOT NULL,
  key     TEXT    NOT NULL,
  reason  TEXT    NOT NULL, -- opening, credit; of batches: charge, return, refund
  balance INTEGER NOT NULL, -- behind this entry
  op      INTEGER NOT NULL,
  at      INTEGER NOT NULL,
  PRIMARY KEY (account, seq)
) STRICT, WITHOUT ROWID;

-- Keys of users and keys that the engine makes never meet: those of the engine begin with a slash, which users' may not.
CREATE UNIQUE INDEX hx_ledger_key ON hx_ledger (account, key);

-- What a batch is beside its subject row (see src/flow/batch.h). Counts and sums are those of its items, kept in the units
-- that change them. due_at is when a node has to look at it; NULL while one holds it, and while only a caller can move it.
CREATE TABLE hx_batch (
  subject            INTEGER PRIMARY KEY,
  workspace          TEXT    NOT NULL,
  workflow           TEXT    NOT NULL,
  definition_version INTEGER NOT NULL,
  batch_key          TEXT,
  requester          TEXT    NOT NULL,
  trace              TEXT,
  account            INTEGER NOT NULL, -- the subject of hx_account
  cancel_requested   INTEGER NOT NULL DEFAULT 0,
  needs              INTEGER, -- OUT_OF_CREDIT: what the next item costs
  total              INTEGER NOT NULL DEFAULT 0, -- items from here on are being loaded, or were by somebody who is lost
  next_n             INTEGER NOT NULL DEFAULT 0, -- items from here on were never begun
  succeeded          INTEGER NOT NULL DEFAULT 0,
  failed             INTEGER NOT NULL DEFAULT 0,
  unknown            INTEGER NOT NULL DEFAULT 0,
  accepted           INTEGER NOT NULL DEFAULT 0,
  cancelled          INTEGER NOT NULL DEFAULT 0,
  charged            INTEGER NOT NULL DEFAULT 0, -- ever debited, less what was returned for failures
  refunded           INTEGER NOT NULL DEFAULT 0,
  late               INTEGER NOT NULL DEFAULT 0, -- successes that came after their item was cancelled
  flipped_to         INTEGER NOT NULL DEFAULT 0, -- teardown: items before this one are decided
  cleanups           INTEGER NOT NULL DEFAULT 0, -- teardowns that were let go so far: for the backoff
  error              TEXT,
  due_at             INTEGER,
  created_at         INTEGER NOT NULL,
  loaded_at          INTEGER, -- NULL: its creation was never acknowledged
  started_at         INTEGER,
  completed_at       INTEGER,
  expired            INTEGER NOT NULL DEFAULT 0 -- by retention: 1: its items are being deleted, 2: they are gone
) STRICT;

CREATE UNIQUE INDEX hx_batch_key ON hx_batch (workspace, batch_key) WHERE batch_key IS NOT NULL;
CREATE INDEX hx_batch_due ON hx_batch (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX hx_batch_needs ON hx_batch (account) WHERE needs IS NOT NULL;
CREATE INDEX hx_batch_workflow ON hx_batch (workflow, definition_version);
CREATE INDEX hx_batch_completed ON hx_batch (completed_at) WHERE completed_at IS NOT NULL AND expired < 2;

-- charged is what it has cost so far and nothing has given back. moved is what the unit that last changed it (op) has moved
-- on the account because of it: the ledger is written from that. fence is that of the holder that began it last.
CREATE TABLE hx_batch_item (
  batch    INTEGER NOT NULL,
  n        INTEGER NOT NULL,
  input    TEXT    NOT NULL,
  cost     INTEGER NOT NULL CHECK (cost >= 0),
  charged  INTEGER NOT NULL DEFAULT 0,
  status   TEXT    NOT NULL DEFAULT 'PENDING',
  decision TEXT, -- NULL, accepted or cancelled
  attempt  INTEGER NOT NULL DEFAULT 0, -- calls begun
  failures INTEGER NOT NULL DEFAULT 0, -- answers that count against its attempts
  losses   INTEGER NOT NULL DEFAULT 0, -- holders lost over it
  doubt    INTEGER NOT NULL DEFAULT 0, -- 1: a call may have been done, and nobody knows; 2: one was in doubt once
  fence    INTEGER NOT NULL DEFAULT 0,
  moved    INTEGER NOT NULL DEFAULT 0,
  op       INTEGER NOT NULL DEFAULT 0,
  due_at   INTEGER, -- PENDING, once begun: not before
  output   TEXT,    -- its artifact
  late     TEXT,    -- a success that came after it was cancelled: shown, never charged
  error    TEXT,
  PRIMARY KEY (batch, n)
) STRICT;

-- Begun and not ended: a few.
CREATE INDEX hx_batch_item_open ON hx_batch_item (batch, status, due_at)
  WHERE decision IS NULL AND attempt > 0 AND status IN ('PENDING', 'RUNNING');
-- Of these, at rest and paid for: seldom any.
CREATE INDEX hx_batch_item_paid ON hx_batch_item (batch, due_at)
  WHERE decision IS NULL AND status = 'PENDING' AND doubt = 1;

-- API keys (see src/flow/api_key.h): who may ask, in whose name, for which workspace. Only a hash of the key is here.
CREATE TABLE hx_key (
  id         INTEGER PRIMARY KEY, -- stands in the key's text too: by it the row is found
  workspace  TEXT    NOT NULL,
  requester  TEXT    NOT NULL,
  name       TEXT    NOT NULL,
  scope      TEXT    NOT NULL CHECK (scope IN ('read', 'execute', 'admin')),
  digest     BLOB    NOT NULL CHECK (length(digest) = 32),
  created_at INTEGER NOT NULL,
  expires_at INTEGER, -- NULL: never
  revoked_at INTEGER  -- NULL: not yet
) STRICT;

-- One row: raised by whatever makes or revokes a key, so that a server sees with one read whether it knows them all. 0: there
-- has never been a key, and who asks over loopback needs none.
CREATE TABLE hx_keyring (
  id      INTEGER PRIMARY KEY,
  version INTEGER NOT NULL
) STRICT;

INSERT INTO hx_keyring (id, version) VALUES (1, 0);

-- One row: what is added to every fence that leaves the store (see src/engine/fences.h).
CREATE TABLE hx_fences (
  id    INTEGER PRIMARY KEY,
  floor INTEGER NOT NULL
) STRICT;

INSERT INTO hx_fences (id, floor) VALUES (1, 0);
