-- Whoever changes the status of a run says so in its unit (see src/flow/run_count.h): a trigger made all that could set it off dearer.
DROP TRIGGER hx_run_made;
DROP TRIGGER hx_run_counted;
