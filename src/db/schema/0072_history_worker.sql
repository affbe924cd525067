-- Which worker a claim gave a job, or a turn of a function, to; NULL: no worker did it. Beside the row, and not in its hash, as notes are: it
-- is no table of notes because each claim would then write one row more.
ALTER TABLE hx_history ADD COLUMN worker TEXT;
