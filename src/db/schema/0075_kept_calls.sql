-- Calls of steps of entities that were begun and have no answer (see src/flow/kept_call.h): one row for each key in doubt.
CREATE TABLE hx_kept_call (
  subject     INTEGER NOT NULL,
  step        TEXT    NOT NULL,
  effort      INTEGER NOT NULL, -- of its key
  from_status TEXT    NOT NULL,
  requester   TEXT    NOT NULL,
  input       TEXT    NOT NULL,
  data        TEXT    NOT NULL, -- of the entity, as it was sent
  address     TEXT,
  version     INTEGER,          -- of the definition; NULL: noted before there was such a column
  open        INTEGER NOT NULL, -- how often it was begun
  op          INTEGER,          -- of the unit that wrote it down; NULL: it was a claim's
  PRIMARY KEY (subject, step, effort)
) STRICT, WITHOUT ROWID;

-- Until now what was begun without a claim stood in the entity's own row, whose claim_open and claim_op nobody reads any more.
INSERT INTO hx_kept_call (subject, step, effort, from_status, requester, input, data, address, version, open, op)
  SELECT e.subject, e.claim_step, e.claim_effort, e.claim_from, e.claim_requester, e.claim_input, e.data, e.claim_address,
    e.claim_version, e.claim_open, NULL
  FROM hx_entity e JOIN hx_subject s ON s.id = e.subject WHERE e.claim_open > 0 AND e.claim_effort = s.effort;
