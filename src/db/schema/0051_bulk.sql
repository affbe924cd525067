-- One verb for many (see src/flow/bulk.h). after_id: up to where the selection has come. due_at: when a node has to look at it; while one
-- does, it is a little ahead.
CREATE TABLE hx_bulk (
  subject      INTEGER PRIMARY KEY,
  workspace    TEXT    NOT NULL,
  requester    TEXT    NOT NULL,
  bulk_key     TEXT,
  verb         TEXT    NOT NULL,
  kind         TEXT    NOT NULL,
  condition    TEXT    NOT NULL,
  arguments    TEXT    NOT NULL, -- JSON
  state        TEXT    NOT NULL, -- SELECTING, RUNNING, COMPLETED, CANCELLING, CANCELLED
  after_id     INTEGER NOT NULL DEFAULT 0,
  selected     INTEGER NOT NULL DEFAULT 0,
  due_at       INTEGER,
  created_at   INTEGER NOT NULL,
  completed_at INTEGER
) STRICT, FILLFACTOR 80;

CREATE UNIQUE INDEX hx_bulk_key ON hx_bulk (workspace, bulk_key) WHERE bulk_key IS NOT NULL;
CREATE INDEX hx_bulk_due ON hx_bulk (due_at) WHERE due_at IS NOT NULL;

-- result: NULL while nothing has come of it; then done, unchanged, refused, skipped or cancelled, once.
CREATE TABLE hx_bulk_item (
  bulk    INTEGER NOT NULL,
  n       INTEGER NOT NULL,
  subject INTEGER NOT NULL,
  result  TEXT,
  code    TEXT,
  PRIMARY KEY (bulk, n)
) STRICT, WITHOUT ROWID, FILLFACTOR 80;

CREATE INDEX hx_bulk_item_open ON hx_bulk_item (bulk, n) WHERE result IS NULL;
