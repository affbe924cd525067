-- What a call that was begun and has no answer was, beside its step, requester and input: the key that it had (effort), where it
-- was sent, and, of steps without a claim, how many were begun under that key. Whoever fires the step again sends the same.
ALTER TABLE hx_entity ADD COLUMN claim_effort INTEGER;
ALTER TABLE hx_entity ADD COLUMN claim_address TEXT;
ALTER TABLE hx_entity ADD COLUMN claim_open INTEGER;
