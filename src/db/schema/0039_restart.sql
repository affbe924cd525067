-- A run that was restarted and the run that goes on in its place know each other (see src/flow/run_restart.h). made_by: the run that has
-- carried the step out, where that is another: its compensation has that one's key. made_with: that run's input, where this one has another.
ALTER TABLE hx_run ADD COLUMN restart_of INTEGER;
ALTER TABLE hx_run ADD COLUMN restarted_by INTEGER;
ALTER TABLE hx_run_step ADD COLUMN made_by INTEGER;
ALTER TABLE hx_run_step ADD COLUMN made_with TEXT;
