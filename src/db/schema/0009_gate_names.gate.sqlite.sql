-- All of ours under hx_: the store may be a database of the user's, who has a table `job`, too.
-- SQLite cannot rename an index: it is made anew.
ALTER TABLE gate_record RENAME TO hx_gate_record;
ALTER TABLE gate_turn RENAME TO hx_gate_turn;
DROP INDEX gate_record_key;
CREATE UNIQUE INDEX hx_gate_record_key ON hx_gate_record (key);
DROP INDEX gate_record_sweep;
CREATE INDEX hx_gate_record_sweep ON hx_gate_record (sweep_at) WHERE sweep_at IS NOT NULL;
