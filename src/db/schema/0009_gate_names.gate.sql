--@ a new store runs 0003 in place of this
-- All of ours under hx_: the store may be a database of the user's, who has a table `job`, too.
ALTER TABLE gate_record RENAME TO hx_gate_record;
ALTER TABLE gate_turn RENAME TO hx_gate_turn;

--@ only sqlite
-- SQLite cannot rename an index: it is made anew.
DROP INDEX gate_record_key;
CREATE UNIQUE INDEX hx_gate_record_key ON hx_gate_record (key);
DROP INDEX gate_record_sweep;
CREATE INDEX hx_gate_record_sweep ON hx_gate_record (sweep_at) WHERE sweep_at IS NOT NULL;

--@ only postgres
ALTER SEQUENCE gate_record_id_seq RENAME TO hx_gate_record_id_seq;
ALTER INDEX gate_record_pkey RENAME TO hx_gate_record_pkey;
ALTER INDEX gate_turn_pkey RENAME TO hx_gate_turn_pkey;
ALTER INDEX gate_record_key RENAME TO hx_gate_record_key;
ALTER INDEX gate_record_sweep RENAME TO hx_gate_record_sweep;
