found: never: what is never to be is: .status == "CANCELLED" and .ledger.settle and (.ledger.refund | not)
  settled-while-cancelled.json:6: workflow settlement, never: .status == "CANCELLED" and .ledger.settle and (.ledger.refund | not)

settlement, 0 mishaps, 12 events:
   1. node-a         the run is WAITING: it awaits child
   2. node-a         starts a run of settlement
   3. node-a         starts a run of settlement
   4. node-a         calls settle, key run_000000000000f/settle/0  (settled-while-cancelled.json:9)
   5. caller-1       cancels the run
   6. caller-1       the run is CANCELLING
   7. node-b         the run is CANCELLING
   8. settle         does it, and says so
   9. node-a         step both is COMPLETED  (settled-while-cancelled.json:8)
  10. node-a         the run is CANCELLED
  11. node-a         the run is CANCELLED
  12. node-a         the run is CANCELLED

