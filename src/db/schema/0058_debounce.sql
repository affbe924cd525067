-- Runs that are put off while starts come (see src/flow/debounce.h). until, in hx_singleton: it is begun by then at the latest; NULL: the
-- row is of a singleton. alias_of: the row is nothing but another key of that run: it has no subject, and counts as expired.
ALTER TABLE hx_singleton ADD COLUMN until INTEGER;
ALTER TABLE hx_run ADD COLUMN alias_of INTEGER;
