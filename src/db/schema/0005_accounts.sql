-- Named with hx_ because users have accounts of their own, maybe in the same database.
-- Money (see src/flow/account.h). An account is a subject that stays OPEN: its row there is what units lock. What happened to it
-- is told by the ledger: every entry has a key of its own, and the balance is their sum.
CREATE TABLE hx_account (
  subject    INTEGER PRIMARY KEY,
  workspace  TEXT    NOT NULL,
  name       TEXT    NOT NULL, -- the id that users see
  balance    INTEGER NOT NULL CHECK (balance >= 0),
  seq        INTEGER NOT NULL,
  created_at INTEGER NOT NULL
) STRICT, FILLFACTOR 80;

CREATE UNIQUE INDEX hx_account_name ON hx_account (workspace, name);

CREATE TABLE hx_ledger (
  account INTEGER NOT NULL,
  seq     INTEGER NOT NULL,
  amount  INTEGER NOT NULL,
  key     TEXT    NOT NULL,
  reason  TEXT    NOT NULL, -- opening, credit; of batches: charge, return, refund
  balance INTEGER NOT NULL, -- behind this entry
  op      INTEGER NOT NULL,
  at      INTEGER NOT NULL,
  PRIMARY KEY (account, seq)
) STRICT, WITHOUT ROWID, FILLFACTOR 80;

-- Keys of users and keys that the engine makes never meet: those of the engine begin with a slash, which users' may not.
CREATE UNIQUE INDEX hx_ledger_key ON hx_ledger (account, key);
