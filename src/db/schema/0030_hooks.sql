-- Deliveries to hooks that were taken (see src/flow/hook.h): what a hook has seen, by the event's id or its body, and until when it is
-- remembered. n names the row for whoever lets it go.
CREATE TABLE hx_hook_seen (
	hook TEXT NOT NULL,
	name TEXT NOT NULL,
	n INTEGER NOT NULL,
	until INTEGER NOT NULL,
	PRIMARY KEY (hook, name)
);
CREATE UNIQUE INDEX hx_hook_seen_n ON hx_hook_seen (n);
CREATE INDEX hx_hook_seen_until ON hx_hook_seen (until);
