-- Limits of actions (see src/flow/slot.h). action: whose slot it is; NULL: the workflow's.
ALTER TABLE hx_slot ADD COLUMN action TEXT;

-- A run may begin an action many times, and each counts: nth tells them apart. until: when it counts no more, and may go.
CREATE TABLE hx_ticks (
  holder INTEGER NOT NULL,
  name   INTEGER NOT NULL,
  nth    INTEGER NOT NULL,
  at     INTEGER NOT NULL,
  until  INTEGER NOT NULL,
  PRIMARY KEY (holder, name, nth)
) STRICT;
INSERT INTO hx_ticks (holder, name, nth, at, until) SELECT holder, name, 0, at, at + 2678400000 FROM hx_tick;
DROP TABLE hx_tick;
ALTER TABLE hx_ticks RENAME TO hx_tick;
CREATE INDEX hx_tick_name ON hx_tick (name, at);
CREATE INDEX hx_tick_until ON hx_tick (until);
