-- What runs are searched by (see src/flow/search.h). The column is what holds: {name: text that sorts}; the rows are made of it, in the
-- same unit, so that they can be found by name and value. Those of one kind: subject_kind() of hx_subject.
ALTER TABLE hx_run ADD COLUMN attributes TEXT;

CREATE TABLE hx_attribute (
  subject   INTEGER NOT NULL,
  name      TEXT    NOT NULL,
  workspace TEXT    NOT NULL,
  kind      INTEGER NOT NULL,
--@ only sqlite
  value     TEXT    NOT NULL,
--@ only postgres
  value     TEXT    COLLATE "C" NOT NULL,
--@ for all
  PRIMARY KEY (subject, name)
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX hx_attribute_found ON hx_attribute (workspace, kind, name, value, subject);
