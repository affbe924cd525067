-- Limits of queues (see src/flow/slot.h). rank: in a line the lowest comes first, and then the oldest. bound: how many might hold one when it
-- was taken, for whoever lets it go.
ALTER TABLE hx_slot ADD COLUMN rank INTEGER NOT NULL DEFAULT 0;
ALTER TABLE hx_slot ADD COLUMN bound INTEGER NOT NULL DEFAULT 0;
DROP INDEX hx_slot_held;
CREATE INDEX hx_slot_line ON hx_slot (name, held, rank, holder);
