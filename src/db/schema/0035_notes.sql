-- What a change of an entity was about, for people: beside its history row, written in the same unit (see src/flow/subject.h).
-- by_whom: a person who decided, or the janitor. output: of the action, where it is short.
CREATE TABLE hx_note (
  subject   INTEGER NOT NULL,
  seq       INTEGER NOT NULL,
  step      TEXT,
  requester TEXT,
  reason    TEXT,
  by_whom   TEXT,
  output    TEXT,
  PRIMARY KEY (subject, seq)
) STRICT, WITHOUT ROWID;
