-- By which version of its definition a call was made that may have been done: whoever makes it again does so by that one, whatever
-- is in force by then. NULL: nothing is in doubt, or it was begun before there was such a column.
ALTER TABLE hx_entity ADD COLUMN claim_version INTEGER;
ALTER TABLE hx_job ADD COLUMN sent_version INTEGER;
-- Which unit wrote the call of a step without a claim down last: for the one whose commit was not answered.
ALTER TABLE hx_entity ADD COLUMN claim_op INTEGER;
