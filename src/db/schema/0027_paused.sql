-- Runs that somebody has paused wait for a person, too (see src/flow/attention.h). The number is the kind of runs: an entity may
-- have a status of that name.
CREATE INDEX hx_subject_paused ON hx_subject (id) WHERE status = 'PAUSED' AND kind = 6223150775284038661;
