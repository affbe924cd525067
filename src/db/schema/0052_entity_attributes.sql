-- What entities are searched by (see src/flow/search.h): the column is what holds, its rows are in hx_attribute. The index is of constant
-- columns alone, so that nothing but creating an entity writes it: the order in which they were created.
ALTER TABLE hx_entity ADD COLUMN attributes TEXT;

CREATE INDEX hx_entity_listed ON hx_entity (workspace, workflow, subject);
