-- Runs that are kept for as long as their own definition says (see src/flow/run_retention.c). keep_ms: of a function, as it was when its run
-- was started. keep_until: of a run that has ended, or whose tree is gone already; NULL: as the configuration says.
ALTER TABLE hx_function ADD COLUMN keep_ms INTEGER;
ALTER TABLE hx_run ADD COLUMN keep_until INTEGER;
DROP INDEX hx_run_completed;
CREATE INDEX hx_run_completed ON hx_run (completed_at) WHERE completed_at IS NOT NULL AND expired = 0 AND keep_until IS NULL;
CREATE INDEX hx_run_kept ON hx_run (keep_until) WHERE keep_until IS NOT NULL AND expired = 0;
