-- The bulks of a workspace, the newest first, for the dashboard.
CREATE INDEX hx_bulk_workspace ON hx_bulk (workspace, subject);
