-- How the step where a run stood was left when its compensation began: attempt, step_status, error and the rest of the row are
-- those of the compensation from then on. NULL: nothing is being compensated.
ALTER TABLE hx_run ADD COLUMN stood_attempt INTEGER;
ALTER TABLE hx_run ADD COLUMN stood_started_at INTEGER;
ALTER TABLE hx_run ADD COLUMN stood_status TEXT;
ALTER TABLE hx_run ADD COLUMN stood_error TEXT;
-- Of those that are being compensated already, the words of the step are there unless those of a compensation have replaced them.
UPDATE hx_run SET stood_attempt = 0,
  stood_status = CASE WHEN coalesce(awaits, '') <> 'person' THEN step_status END,
  stood_error = CASE WHEN coalesce(awaits, '') <> 'person' THEN error END
  WHERE undo IS NOT NULL;
