-- A subject is a row that is changed only by guarded transitions (see src/flow/subject.c).
-- fillfactor 80 leaves room for heap-only updates; nothing that heartbeats move is indexed.
CREATE TABLE subject (
  id         bigint PRIMARY KEY,
  kind       bigint NOT NULL,
  status     text   NOT NULL,
  version    bigint NOT NULL,
  op         bigint NOT NULL,
  fence      bigint NOT NULL DEFAULT 0,
  effort     bigint NOT NULL DEFAULT 0, -- definite ends of claims so far: part of the key of the next effect
  doubt      bigint NOT NULL DEFAULT 0, -- a claim ended without an answer: the effect may be there
  owner      text,
  until      bigint,
  updated_at bigint NOT NULL,
  seq        bigint NOT NULL,
  head       bytea  NOT NULL
) WITH (fillfactor = 80);

CREATE INDEX subject_claimed ON subject (id) WHERE owner IS NOT NULL;

CREATE TABLE history (
  subject     bigint NOT NULL,
  seq         bigint NOT NULL,
  from_status text   NOT NULL,
  to_status   text   NOT NULL,
  version     bigint NOT NULL,
  fence       bigint NOT NULL,
  op          bigint NOT NULL,
  node        text   NOT NULL,
  at          bigint NOT NULL,
  hash        bytea  NOT NULL,
  PRIMARY KEY (subject, seq)
);

-- The moment itself, not the transaction's start: behind a lock that one may be seconds old.
CREATE FUNCTION hx_now_ms() RETURNS bigint LANGUAGE sql VOLATILE PARALLEL SAFE
  AS $$ SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint $$;

CREATE FUNCTION hx_chain(head bytea, link text) RETURNS bytea LANGUAGE sql STABLE PARALLEL SAFE
  AS $$ SELECT sha256(coalesce(head, ''::bytea) || convert_to(link, 'UTF8')) $$;
