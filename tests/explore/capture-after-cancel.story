found: never: what is never to be is: .ledger.Capture and .ledger.Void
  capture-after-cancel.json:6: workflow purchase, never: .ledger.Capture and .ledger.Void

purchase from authorised, 0 mishaps, 9 events:
   1. caller-1       fires capture as default; e1 is authorised  (capture-after-cancel.json:8)
   2. node-a         calls Capture, key ent_0000000000001-0-capture  (capture-after-cancel.json:8)
   3. caller-2       fires cancel as default; e1 is authorised  (capture-after-cancel.json:9)
   4. node-b         calls Void, key ent_0000000000001-0-cancel  (capture-after-cancel.json:9)
   5. Capture        does it, and says so
   6. node-a         e1: authorised → captured
   7. caller-1       hears 200 OK
   8. Void           does it, and says so
   9. caller-2       hears 409 CONCURRENCY_ERROR

