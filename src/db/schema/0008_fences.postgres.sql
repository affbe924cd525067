-- One row: what is added to every fence that leaves the store (see src/engine/fences.h).
CREATE TABLE hx_fences (
  id    bigint PRIMARY KEY,
  floor bigint NOT NULL
);

INSERT INTO hx_fences (id, floor) VALUES (1, 0);
