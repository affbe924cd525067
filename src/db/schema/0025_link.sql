-- On SQLite the function hx_link() is the driver's: src/db/link.h.
--@ only postgres
-- How a history row hangs on the one before it: src/db/link.h has the same in C. One SELECT and nothing volatile, so that
-- PostgreSQL puts it in the place of each call.
CREATE FUNCTION hx_link(before bytea, subject bigint, seq bigint, was text, becomes text, version bigint, fence bigint, op bigint,
  at bigint, node text) RETURNS bytea LANGUAGE sql STABLE PARALLEL SAFE
  AS $$ SELECT sha256(coalesce(before, ''::bytea) || convert_to(subject || '|' || seq || '|' || was || '|' || becomes || '|'
    || version || '|' || fence || '|' || op || '|' || at || '|' || node, 'UTF8')) $$;

DROP FUNCTION hx_chain(bytea, text);
