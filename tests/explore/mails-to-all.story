found: once: mail has happened twice for one decision, step mails
  mails-to-all.json:5: workflow announcement, step mails, on_unknown: retry repeats what may have been done, and the service does not dedupe

announcement, 1 mishap, 6 events:
   1. node-a         the run is WAITING: it awaits child
   2. node-a         starts a run of announcement
   3. node-a         calls mail, key run_000000000000f/mails/0  (mails-to-all.json:5)
   4. time           60 s pass: a node stands still until its lease is over; what it had asked for was done
   5. node-a         calls mail, key run_000000000000f/mails/0  (mails-to-all.json:5)
   6. mail           does it, and says so

