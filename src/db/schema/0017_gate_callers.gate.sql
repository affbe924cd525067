-- Whose request it was, hashed (NULL: not compared, as in all that an older program wrote), and whose record it is, for people.
ALTER TABLE hx_gate_record ADD COLUMN caller BLOB;
ALTER TABLE hx_gate_record ADD COLUMN about BLOB;

-- What waits for a person, or may come to: few, or none.
CREATE INDEX hx_gate_record_held ON hx_gate_record (until) WHERE held = 1 AND status = 1;
