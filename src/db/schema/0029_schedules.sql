-- Schedules (see src/flow/schedule.h). text: what was put, in one spelling. revision rises with every change of the row, and is what each
-- of them is guarded by. slot_at: the next slot that nobody has decided about; NULL: there is none, or it is paused. due_at: when a node
-- has to look at it.
CREATE TABLE hx_schedule (
  subject    INTEGER PRIMARY KEY,
  workspace  TEXT    NOT NULL,
  name       TEXT    NOT NULL,
  requester  TEXT    NOT NULL,
  text       TEXT    NOT NULL,
  paused     INTEGER NOT NULL DEFAULT 0,
  revision   INTEGER NOT NULL DEFAULT 1,
  slot_at    INTEGER,
  due_at     INTEGER,
  last_slot  INTEGER, -- the last that was started, when, and what
  last_at    INTEGER,
  last_run   INTEGER,
  started    INTEGER NOT NULL DEFAULT 0, -- slots
  skipped    INTEGER NOT NULL DEFAULT 0, -- by overlap
  missed     INTEGER NOT NULL DEFAULT 0, -- nobody was there, and catchUp does not want them
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT, FILLFACTOR 80;

CREATE UNIQUE INDEX hx_schedule_name ON hx_schedule (workspace, name);
CREATE INDEX hx_schedule_due ON hx_schedule (due_at) WHERE due_at IS NOT NULL;

-- Slots that wait for what was started before them to end, or that a person wants (backfill).
CREATE TABLE hx_schedule_slot (
  schedule INTEGER NOT NULL,
  slot_at  INTEGER NOT NULL,
  backfill INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (schedule, slot_at)
) STRICT, WITHOUT ROWID;

-- What was started and may not have ended: runs and batches, by their subject.
CREATE TABLE hx_schedule_open (
  schedule INTEGER NOT NULL,
  subject  INTEGER NOT NULL,
  PRIMARY KEY (schedule, subject)
) STRICT, WITHOUT ROWID;
