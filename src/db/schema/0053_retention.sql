-- Names that nobody polls for any more are found by their time, and forgotten (see src/flow/function_poll.c).
CREATE INDEX hx_function_poll_at ON hx_function_poll (at);
-- Retention of bulks (see src/flow/bulk.h). expired: 1 while its items are being deleted, 2 when they are gone and its key alone is left.
ALTER TABLE hx_bulk ADD COLUMN expired INTEGER NOT NULL DEFAULT 0;

CREATE INDEX hx_bulk_ended ON hx_bulk (completed_at) WHERE expired < 2 AND completed_at IS NOT NULL;
