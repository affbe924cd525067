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
