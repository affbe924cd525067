-- A subject is a row that is changed only by guarded transitions (see src/flow/subject.c).
-- The row is narrow because it is hot; payloads live in tables of their own. The fill factor leaves room for heap-only updates.
CREATE TABLE {hx_}subject (
  id         INTEGER PRIMARY KEY,
  kind       INTEGER NOT NULL,
  status     TEXT    NOT NULL,
  version    INTEGER NOT NULL,
  op         INTEGER NOT NULL,
  fence      INTEGER NOT NULL DEFAULT 0,
  effort     INTEGER NOT NULL DEFAULT 0, -- definite ends of claims so far: part of the key of the next effect
  doubt      INTEGER NOT NULL DEFAULT 0, -- a claim ended without an answer: the effect may be there
  owner      TEXT,
  until      INTEGER,
  updated_at INTEGER NOT NULL,
  seq        INTEGER NOT NULL,
  head       BLOB    NOT NULL
) STRICT, FILLFACTOR 80;

-- What a janitor looks through. The key is the id alone: nothing that heartbeats move is indexed.
CREATE INDEX {hx_}subject_claimed ON {hx_}subject (id) WHERE owner IS NOT NULL;

CREATE TABLE {hx_}history (
  subject     INTEGER NOT NULL,
  seq         INTEGER NOT NULL,
  from_status TEXT    NOT NULL,
  to_status   TEXT    NOT NULL,
  version     INTEGER NOT NULL,
  fence       INTEGER NOT NULL,
  op          INTEGER NOT NULL,
  node        TEXT    NOT NULL,
  at          INTEGER NOT NULL,
  hash        BLOB    NOT NULL,
  PRIMARY KEY (subject, seq)
) STRICT, WITHOUT ROWID;

--@ only postgres old
-- The moment itself, not the transaction's start: after a lock that one may be seconds old.
CREATE FUNCTION hx_now_ms() RETURNS bigint LANGUAGE sql VOLATILE PARALLEL SAFE
  AS $$ SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint $$;

--@ only postgres
CREATE FUNCTION hx_chain(head bytea, link text) RETURNS bytea LANGUAGE sql STABLE PARALLEL SAFE
  AS $$ SELECT sha256(coalesce(head, ''::bytea) || convert_to(link, 'UTF8')) $$;
