-- Since when the other side has been saying that an earlier try under the same key is under way; NULL: it does not say so.
-- It is asked again without using an attempt, and not for ever (src/flow/backoff.h).
ALTER TABLE hx_run ADD COLUMN unsettled_since INTEGER;
ALTER TABLE hx_job ADD COLUMN unsettled_since INTEGER;
ALTER TABLE hx_batch_item ADD COLUMN unsettled_since INTEGER;
