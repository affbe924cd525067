found: ends: nothing goes on any more, and it is not so: .status != "CANCELLED" or (.ledger.create | not) or .ledger.reject
  no-way-back.json:6: workflow ticket, ends: .status != "CANCELLED" or (.ledger.create | not) or .ledger.reject

ticket, 0 mishaps, 6 events:
   1. node-a         calls create, key run_0000000000001/create/0  (no-way-back.json:8)
   2. caller-1       cancels the run
   3. caller-1       the run is CANCELLING
   4. create         does it, and says so
   5. node-a         step create is COMPLETED  (no-way-back.json:8)
   6. node-a         the run is CANCELLED

