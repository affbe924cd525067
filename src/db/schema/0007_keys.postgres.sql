-- API keys (see src/flow/api_key.h): who may ask, in whose name, for which workspace. Only a hash of the key is here.
CREATE TABLE hx_key (
  id         bigint PRIMARY KEY, -- stands in the key's text too: by it the row is found
  workspace  text   NOT NULL,
  requester  text   NOT NULL,
  name       text   NOT NULL,
  scope      text   NOT NULL CHECK (scope IN ('read', 'execute', 'admin')),
  digest     bytea  NOT NULL CHECK (length(digest) = 32),
  created_at bigint NOT NULL,
  expires_at bigint, -- NULL: never
  revoked_at bigint  -- NULL: not yet
);

-- One row: raised by whatever makes or revokes a key, so that a server sees with one read whether it knows them all. 0: there
-- has never been a key, and who asks over loopback needs none.
CREATE TABLE hx_keyring (
  id      bigint PRIMARY KEY,
  version bigint NOT NULL
);

INSERT INTO hx_keyring (id, version) VALUES (1, 0);
