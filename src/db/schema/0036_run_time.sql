-- When the time of a whole run is over (`timeout` of its definition; see src/flow/run_failure.c). NULL: it may take for ever.
ALTER TABLE hx_run ADD COLUMN times_out_at INTEGER;
