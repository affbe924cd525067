-- What a batch is about, as its start says it (JSON; NULL: nothing), and what it is searched by (see src/flow/search.h): the column is
-- what holds, its rows are in hx_attribute.
ALTER TABLE hx_batch ADD COLUMN data TEXT;
ALTER TABLE hx_batch ADD COLUMN attributes TEXT;
