-- What the definition of a function says for its runs, as it was when each of them was started (see src/flow/function.h).
ALTER TABLE hx_function ADD COLUMN timeout_ms INTEGER;
