-- Who holds a slot of a limit, and who waits for one (see src/flow/slot.h). name: the limit with its key, as a hash; key: the same for
-- people. limit_key of a run: that of the run around it, whose part it is.
CREATE TABLE hx_slot (
  name   INTEGER NOT NULL,
  holder INTEGER NOT NULL,
  held   INTEGER NOT NULL, -- 0: it waits
  at     INTEGER NOT NULL,
  key    TEXT    NOT NULL,
  PRIMARY KEY (name, holder)
) STRICT;

CREATE INDEX hx_slot_held ON hx_slot (name) WHERE held = 1;
CREATE INDEX hx_slot_holder ON hx_slot (holder);
ALTER TABLE hx_run ADD COLUMN limit_key TEXT;
