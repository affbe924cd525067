-- API keys (see src/flow/api_key.h): who may ask, in whose name, for which workspace. Only a hash of the key is here.
CREATE TABLE hx_key (
  id         INTEGER PRIMARY KEY, -- stands in the key's text too: by it the row is found
  workspace  TEXT    NOT NULL,
  requester  TEXT    NOT NULL,
  name       TEXT    NOT NULL,
  scope      TEXT    NOT NULL CHECK (scope IN ('read', 'execute', 'admin')),
  digest     BLOB    NOT NULL CHECK (length(digest) = 32),
  created_at INTEGER NOT NULL,
  expires_at INTEGER, -- NULL: never
  revoked_at INTEGER  -- NULL: not yet
) STRICT;

-- One row: raised by whatever makes or revokes a key, so that a server sees with one read whether it knows them all. 0: there
-- has never been a key, and who asks over loopback needs none.
CREATE TABLE hx_keyring (
  id      INTEGER PRIMARY KEY,
  version INTEGER NOT NULL
) STRICT;

INSERT INTO hx_keyring (id, version) VALUES (1, 0);
