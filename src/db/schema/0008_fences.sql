-- One row: what is added to every fence that leaves the store (see src/engine/fences.h).
CREATE TABLE hx_fences (
  id    INTEGER PRIMARY KEY,
  floor INTEGER NOT NULL
) STRICT;

INSERT INTO hx_fences (id, floor) VALUES (1, 0);
