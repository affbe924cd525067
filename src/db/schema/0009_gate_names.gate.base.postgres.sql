-- The gate's tables in a store that is new. What the store of an older program becomes is in 0009_gate_names.

-- The moment itself, not the transaction's start: behind a lock that one may be seconds old.
CREATE FUNCTION hx_now_ms() RETURNS bigint LANGUAGE sql VOLATILE PARALLEL SAFE
  AS $$ SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint $$;

-- One record for each key that was used with the gate (see src/gate/record.c).
-- until is the end of the lease, expires_at the end of the record; sweep_at is when the sweep has a look at it, NULL
-- while it has no end. A completion moves expires_at and leaves sweep_at alone: nothing that it moves is indexed, and
-- fillfactor 50 leaves room for the answer on the same page, so that it is a heap-only update.
CREATE TABLE hx_gate_record (
  id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  key         bytea  NOT NULL,
  status      bigint NOT NULL, -- 1: PROCESSING, 2: COMPLETED
  token       bytea  NOT NULL,
  fingerprint bytea  NOT NULL,
  held        bigint NOT NULL,
  created_at  bigint NOT NULL,
  until       bigint NOT NULL,
  expires_at  bigint NOT NULL,
  sweep_at    bigint,
  takeovers   bigint NOT NULL DEFAULT 0,
  key_text    bytea, -- as the client sent it, and what for: for people
  endpoint    bytea,
  response    bytea
) WITH (fillfactor = 50);

CREATE UNIQUE INDEX hx_gate_record_key ON hx_gate_record (key);
CREATE INDEX hx_gate_record_sweep ON hx_gate_record (sweep_at) WHERE sweep_at IS NOT NULL;

-- One row: until when it is somebody's turn to sweep.
CREATE TABLE hx_gate_turn (
  id    bigint PRIMARY KEY,
  until bigint NOT NULL
);

INSERT INTO hx_gate_turn (id, until) VALUES (1, 0);
