-- When runs were begun that have a `rate` (see src/flow/slot.h): as many as their limit looks back on. name: as in hx_slot, where held = 2
-- is one that waits for its time.
CREATE TABLE hx_tick (
  holder INTEGER NOT NULL,
  name   INTEGER NOT NULL,
  at     INTEGER NOT NULL,
  PRIMARY KEY (holder, name)
) STRICT;

CREATE INDEX hx_tick_name ON hx_tick (name, at);
