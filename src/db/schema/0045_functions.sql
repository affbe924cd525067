-- Functions (see src/flow/function.h): runs whose steps are code. Their rows of run have the definition_version 0, and are never due
-- there: due_at here is when a node has to look at one, turn_at when a worker may take its next turn.
-- revision rises with every unit that changes the function or its journal, and is what each of them is guarded by.
CREATE TABLE hx_function (
  subject      INTEGER PRIMARY KEY,
  workspace    TEXT    NOT NULL,
  name         TEXT    NOT NULL,
  version      TEXT,    -- the user's word; NULL: it has no entry yet
  turn_version TEXT,    -- of the worker that has, or had, the turn
  worker       TEXT,
  lease_ms     INTEGER NOT NULL DEFAULT 0,
  seq          INTEGER NOT NULL DEFAULT 0, -- of the last change of an entry, or of an end
  taken_seq    INTEGER NOT NULL DEFAULT 0, -- as it was after the last call that was taken
  cold_seq     INTEGER NOT NULL DEFAULT 0, -- whoever knows less than this replays from the beginning
  revision     INTEGER NOT NULL DEFAULT 0,
  entries_n    INTEGER NOT NULL DEFAULT 0,
  bytes        INTEGER NOT NULL DEFAULT 0,
  body_hash    TEXT,    -- of the last call that was taken
  awaits       TEXT,    -- JSON: the places of what it is suspended on and has not ended; NULL: on nothing
  any_of       INTEGER NOT NULL DEFAULT 0,
  lapses       INTEGER NOT NULL DEFAULT 0, -- in a row, without a call that was taken
  held         TEXT,    -- JSON: why it waits for a person, where no entry says it
  failed_at    INTEGER, -- the place of the step that its failure named
  retry        TEXT,    -- JSON: the policy of steps that have none of their own
  on_failure   TEXT,    -- compensate; NULL: it stays FAILED
  turn_at      INTEGER,
  due_at       INTEGER
) STRICT, FILLFACTOR 80;

CREATE INDEX hx_function_turn ON hx_function (workspace, name, turn_at) WHERE turn_at IS NOT NULL;
CREATE INDEX hx_function_due ON hx_function (due_at) WHERE due_at IS NOT NULL;

-- The journal. about: '' for what the code asked for, else what the entry does to the one of that name and n: compensate, undo, drop.
CREATE TABLE hx_entry (
  run          INTEGER NOT NULL,
  i            INTEGER NOT NULL,
  kind         TEXT    NOT NULL,
  about        TEXT    NOT NULL,
  name         TEXT    NOT NULL,
  n            INTEGER NOT NULL,
  label        TEXT    NOT NULL, -- N:NAME, which no other name has
  seq          INTEGER NOT NULL,
  state        TEXT    NOT NULL, -- begun, retry, unknown, open; done, failed, dropped
  ended        INTEGER NOT NULL,
  attempt      INTEGER NOT NULL,
  redo         INTEGER NOT NULL DEFAULT 0, -- part of the key: rises when a person begins it anew
  policy       TEXT,    -- of a step: effect and onUnknown, as "claimed hold"
  detail       TEXT    NOT NULL, -- JSON: what was asked for
  output       TEXT,
  error        TEXT,
  awaits       TEXT,    -- what ends it from outside: event NAME, approval LABEL
  wake_at      INTEGER, -- the end of a sleep, a timeout, the time of the next try
  child        INTEGER,
  started_at   INTEGER NOT NULL,
  completed_at INTEGER,
  PRIMARY KEY (run, i)
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX hx_entry_name ON hx_entry (run, label, about);
CREATE INDEX hx_entry_seq ON hx_entry (run, seq);
CREATE INDEX hx_entry_open ON hx_entry (run, i) WHERE ended = 0;
CREATE INDEX hx_entry_compensate ON hx_entry (run, label) WHERE about = 'compensate';

-- Who polls for what: a name can be started for so long after it was polled for last.
CREATE TABLE hx_function_poll (
  workspace TEXT    NOT NULL,
  name      TEXT    NOT NULL,
  version   TEXT    NOT NULL,
  at        INTEGER NOT NULL,
  PRIMARY KEY (workspace, name, version)
) STRICT, WITHOUT ROWID;

-- Functions that somebody has paused; the number is the kind of functions.
CREATE INDEX hx_subject_paused_function ON hx_subject (id) WHERE status = 'PAUSED' AND kind = 4358593838217601458;
CREATE INDEX hx_function_waiting ON hx_function (turn_at) WHERE turn_at IS NOT NULL;
