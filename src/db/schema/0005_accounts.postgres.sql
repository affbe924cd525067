-- Named with hx_ because users have accounts of their own, maybe in the same database.
-- Money (see src/flow/account.h). An account is a subject that stays OPEN: its row there is what units lock. What happened to it
-- is told by the ledger: every entry has a key of its own, and the balance is their sum.
CREATE TABLE hx_account (
  subject    bigint PRIMARY KEY,
  workspace  text    NOT NULL,
  name       text    NOT NULL, -- the id that users see
  balance    bigint NOT NULL CHECK (balance >= 0),
  seq        bigint NOT NULL,
  created_at bigint NOT NULL
) WITH (fillfactor = 80);

CREATE UNIQUE INDEX hx_account_name ON hx_account (workspace, name);

CREATE TABLE hx_ledger (
  account bigint NOT NULL,
  seq     bigint NOT NULL,
  amount  bigint NOT NULL,
  key     text    NOT NULL,
  reason  text    NOT NULL, -- opening, credit; of batches: charge, return, refund
  balance bigint NOT NULL, -- behind this entry
  op      bigint NOT NULL,
  at      bigint NOT NULL,
  PRIMARY KEY (account, seq)
) WITH (fillfactor = 80);

-- Keys of users and keys that the engine makes never meet: those of the engine begin with a slash, which users' may not.
CREATE UNIQUE INDEX hx_ledger_key ON hx_ledger (account, key);
