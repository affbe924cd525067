-- What an entity is beside its subject row. `name` is the id that users see.
-- The claim_* columns tell which step claimed it last; they mean something only while the subject is claimed.
CREATE TABLE {hx_}entity (
  subject         INTEGER PRIMARY KEY,
  workspace       TEXT NOT NULL,
  workflow        TEXT NOT NULL,
  name            TEXT NOT NULL,
  data            TEXT NOT NULL,
  claim_step      TEXT,
  claim_from      TEXT,
  claim_requester TEXT,
  claim_input     TEXT
) STRICT, FILLFACTOR 80;

CREATE UNIQUE INDEX {hx_}entity_name ON {hx_}entity (workspace, workflow, name);

-- Work that is done after a commit. due_at is set exactly while the job may be claimed, so a claim takes it out of
-- the index and heartbeats move nothing that is indexed.
CREATE TABLE {hx_}job (
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
) STRICT, FILLFACTOR 80;

--@ only old
CREATE INDEX {hx_}job_due ON {hx_}job (due_at) WHERE due_at IS NOT NULL;
--@ for all

CREATE TABLE {hx_}definition (
  name    TEXT    NOT NULL,
  version INTEGER NOT NULL,
  text    TEXT    NOT NULL,
  at      INTEGER NOT NULL,
  PRIMARY KEY (name, version)
) STRICT, WITHOUT ROWID;

CREATE TABLE {hx_}entry_lock (
  name  TEXT    PRIMARY KEY,
  token TEXT    NOT NULL,
  until INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
