-- Limits of functions (see src/flow/function_limit.c). limit_max: of one that holds a slot, or stands in line for one or for its time, how many
-- may hold one; NULL: it never had to do with a limit.
ALTER TABLE hx_function ADD COLUMN limit_max INTEGER;
