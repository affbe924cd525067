-- A run that was migrated to another version of its definition (see src/flow/run_fit.h). renamed: the names under which renamed steps are
-- called, as JSON {"name by now": "name in its keys"}; NULL: each under its own.
ALTER TABLE hx_run ADD COLUMN renamed TEXT;
