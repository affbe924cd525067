-- What a run that waits for its children looks at (see src/flow/run_children.c): those that are open, by themselves, and those that have
-- ended, by how. Either is the only index that has what the look asks for, so that no statistics, and no lack of them, lead to another.
DROP INDEX hx_run_child_state;
CREATE INDEX hx_run_child_open ON hx_run (parent, parent_step, parent_n) WHERE child = 'open';
CREATE INDEX hx_run_child_ended ON hx_run (parent, parent_step, child, parent_n) WHERE child <> 'open';
