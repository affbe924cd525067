--@ only postgres new
-- The moment itself, not the transaction's start: after a lock that one may be seconds old.
CREATE FUNCTION hx_now_ms() RETURNS bigint LANGUAGE sql VOLATILE PARALLEL SAFE
  AS $$ SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint $$;
--@ for all

-- One record for each key that was used with the gate (see src/gate/record.c). Rows are appended; only the index of the
-- keys, which are hashes, is written to in a random order, and it is narrow.
-- until is the end of the lease, expires_at the end of the record; sweep_at is when the sweep has a look at it, NULL
-- while it has no end. A completion moves expires_at and leaves sweep_at alone: nothing that it moves is indexed, and the
-- fill factor leaves room for the answer on the same page, so that it is a heap-only update.
CREATE TABLE {hx_}gate_record (
  id          INTEGER IDENTITY PRIMARY KEY,
  key         BLOB    NOT NULL,
  status      INTEGER NOT NULL, -- 1: PROCESSING, 2: COMPLETED
  token       BLOB    NOT NULL,
  fingerprint BLOB    NOT NULL,
  held        INTEGER NOT NULL,
  created_at  INTEGER NOT NULL,
  until       INTEGER NOT NULL,
  expires_at  INTEGER NOT NULL,
  sweep_at    INTEGER,
  takeovers   INTEGER NOT NULL DEFAULT 0,
  key_text    BLOB, -- as the client sent it, and what for: for people
  endpoint    BLOB,
  response    BLOB
) STRICT, FILLFACTOR 50;

CREATE UNIQUE INDEX {hx_}gate_record_key ON {hx_}gate_record (key);
CREATE INDEX {hx_}gate_record_sweep ON {hx_}gate_record (sweep_at) WHERE sweep_at IS NOT NULL;

-- One row: until when it is somebody's turn to sweep.
CREATE TABLE {hx_}gate_turn (
  id    INTEGER PRIMARY KEY,
  until INTEGER NOT NULL
) STRICT;

INSERT INTO {hx_}gate_turn (id, until) VALUES (1, 0);
