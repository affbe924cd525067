-- What a call that was begun and has no answer was, beside its step, requester and input: the key that it had (effort), where it
-- was sent, and, of steps without a claim, how many were begun under that key. Whoever fires the step again sends the same.
ALTER TABLE hx_entity ADD COLUMN claim_effort bigint;
ALTER TABLE hx_entity ADD COLUMN claim_address text;
ALTER TABLE hx_entity ADD COLUMN claim_open bigint;
