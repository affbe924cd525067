-- The example's own tables, in the same store as the engine's. Amounts are in cents, times in milliseconds.
CREATE TABLE invoices (
  number     TEXT   NOT NULL,
  generation BIGINT NOT NULL,
  amount     BIGINT NOT NULL,
  paid       BIGINT NOT NULL,
  retired_at BIGINT,
  PRIMARY KEY (number, generation)
);

CREATE TABLE payments (
  effect      TEXT   PRIMARY KEY,
  invoice     TEXT   NOT NULL,
  amount      BIGINT NOT NULL,
  received_at BIGINT NOT NULL
);
