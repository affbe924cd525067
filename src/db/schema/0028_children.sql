-- Runs that a run has started (see src/flow/run_children.h). parent, parent_step and parent_n: whose child it is, of which step, and which
-- of them; `child` is how the parent sees it. scope: the part of the definition that it carries out; around: the run whose input, state
-- and events a part sees. asked: what the parent wants of it. winner: the first branch that was done, of the step where the run stands.
ALTER TABLE hx_run ADD COLUMN parent INTEGER;
ALTER TABLE hx_run ADD COLUMN parent_step TEXT;
ALTER TABLE hx_run ADD COLUMN parent_n INTEGER;
ALTER TABLE hx_run ADD COLUMN child TEXT; -- open, done, failed, cancelled
ALTER TABLE hx_run ADD COLUMN scope TEXT;
ALTER TABLE hx_run ADD COLUMN around INTEGER;
ALTER TABLE hx_run ADD COLUMN depth INTEGER NOT NULL DEFAULT 0;
ALTER TABLE hx_run ADD COLUMN asked TEXT; -- cancel, fail, pause, resume, retry
ALTER TABLE hx_run ADD COLUMN winner INTEGER;

CREATE UNIQUE INDEX hx_run_child ON hx_run (parent, parent_step, parent_n) WHERE parent IS NOT NULL;
CREATE INDEX hx_run_child_state ON hx_run (parent, parent_step, child, parent_n) WHERE parent IS NOT NULL;
CREATE INDEX hx_run_asked ON hx_run (subject) WHERE asked IS NOT NULL AND asked NOT IN ('fail', 'cancelling');
CREATE INDEX hx_run_around ON hx_run (around, child) WHERE around IS NOT NULL;
