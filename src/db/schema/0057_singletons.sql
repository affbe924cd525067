-- Runs of workflows with a `singleton` that are not terminal, and some that were (see src/flow/singleton.h). name: as in hx_slot.
CREATE TABLE hx_singleton (
  name INTEGER NOT NULL,
  run  INTEGER NOT NULL,
  PRIMARY KEY (name, run)
) STRICT;

CREATE INDEX hx_singleton_run ON hx_singleton (run);
