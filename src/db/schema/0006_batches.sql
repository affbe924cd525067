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
) STRICT, FILLFACTOR 80;

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
) STRICT, FILLFACTOR 80;

-- Begun and not ended: a few.
CREATE INDEX hx_batch_item_open ON hx_batch_item (batch, status, due_at)
  WHERE decision IS NULL AND attempt > 0 AND status IN ('PENDING', 'RUNNING');
-- Of these, at rest and paid for: seldom any.
CREATE INDEX hx_batch_item_paid ON hx_batch_item (batch, due_at)
  WHERE decision IS NULL AND status = 'PENDING' AND doubt = 1;
