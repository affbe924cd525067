-- Keys of workers (see src/flow/api_key.h): another word for the scope.
--@ only sqlite
CREATE TABLE hx_key_next (
  id         INTEGER PRIMARY KEY,
  workspace  TEXT    NOT NULL,
  requester  TEXT    NOT NULL,
  name       TEXT    NOT NULL,
  scope      TEXT    NOT NULL CHECK (scope IN ('read', 'execute', 'admin', 'worker')),
  digest     BLOB    NOT NULL CHECK (length(digest) = 32),
  created_at INTEGER NOT NULL,
  expires_at INTEGER,
  revoked_at INTEGER
) STRICT;
INSERT INTO hx_key_next (id, workspace, requester, name, scope, digest, created_at, expires_at, revoked_at)
  SELECT id, workspace, requester, name, scope, digest, created_at, expires_at, revoked_at FROM hx_key;
DROP TABLE hx_key;
ALTER TABLE hx_key_next RENAME TO hx_key;
--@ only postgres
ALTER TABLE hx_key DROP CONSTRAINT hx_key_scope_check;
ALTER TABLE hx_key ADD CONSTRAINT hx_key_scope_check CHECK (scope IN ('read', 'execute', 'admin', 'worker'));
