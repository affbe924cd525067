-- What an entity is beside its subject row. `name` is the id that users see.
-- The claim_* columns tell which step claimed it last; they mean something only while the subject is claimed.
CREATE TABLE entity (
  subject         bigint PRIMARY KEY,
  workspace       text NOT NULL,
  workflow        text NOT NULL,
  name            text NOT NULL,
  data            text NOT NULL,
  claim_step      text,
  claim_from      text,
  claim_requester text,
  claim_input     text
) WITH (fillfactor = 80);

CREATE UNIQUE INDEX entity_name ON entity (workspace, workflow, name);

-- Work that is done after a commit. due_at is set exactly while the job may be claimed, so a claim takes it out of
-- the index and heartbeats move nothing that is indexed.
CREATE TABLE job (
  subject    bigint PRIMARY KEY,
  workspace  text   NOT NULL,
  queue      text   NOT NULL,
  workflow   text   NOT NULL,
  action     text   NOT NULL,
  effect_key text   NOT NULL,
  payload    text   NOT NULL,
  attempt    bigint NOT NULL DEFAULT 0,
  due_at     bigint,
  error      text
) WITH (fillfactor = 80);

CREATE INDEX job_due ON job (due_at) WHERE due_at IS NOT NULL;

CREATE TABLE definition (
  name    text   NOT NULL,
  version bigint NOT NULL,
  text    text   NOT NULL,
  at      bigint NOT NULL,
  PRIMARY KEY (name, version)
);

CREATE TABLE entry_lock (
  name  text   PRIMARY KEY,
  token text   NOT NULL,
  until bigint NOT NULL
);
