found: once: Refund has happened twice for one decision, step refund
  refund-clicked-twice.json:4: workflow refund, step refund, effect: the definition says keyed, and the world says that this service does not dedupe by its key
  to blame: assumption A5 of docs/guarantees.md, and not the definition

refund from paid, 0 mishaps, 8 events:
   1. caller-1       fires refund as default; e1 is paid  (refund-clicked-twice.json:6)
   2. node-a         calls Refund, key ent_0000000000001-0-refund  (refund-clicked-twice.json:6)
   3. caller-2       fires refund as default; e1 is paid  (refund-clicked-twice.json:6)
   4. node-b         calls Refund, key ent_0000000000001-0-refund  (refund-clicked-twice.json:6)
   5. Refund         does it, and says so
   6. node-a         e1: paid → refunded
   7. caller-1       hears 200 OK
   8. Refund         does it, and says so

