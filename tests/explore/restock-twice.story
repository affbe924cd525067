found: never: what is never to be is: .ledger.Restock > 1
  restock-twice.json:6: workflow sale, never: .ledger.Restock > 1

sale from paid, 0 mishaps, 14 events:
   1. caller-1       fires refund as default; e1 is paid  (restock-twice.json:9)
   2. node-a         e1: paid → refunded
   3. node-a         the after-effect Restock is written down
   4. caller-1       hears 200 OK
   5. caller-2       fires close as default; e1 is refunded  (restock-twice.json:11)
   6. node-b         e1: refunded → cancelled
   7. node-b         the after-effect Restock is written down
   8. caller-2       hears 200 OK
   9. node-a         calls Restock, key ent_0000000000001-0-refund/after/Restock  (restock-twice.json:9)
  10. Restock        does it, and says so
  11. node-a         the after-effect Restock is COMPLETED
  12. node-a         calls Restock, key ent_0000000000001-1-close/after/Restock  (restock-twice.json:11)
  13. Restock        does it, and says so
  14. node-a         the after-effect Restock is COMPLETED

