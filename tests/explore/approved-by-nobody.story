found: never: what is never to be is: .ledger.deploy and .steps.review != "COMPLETED"
  approved-by-nobody.json:5: workflow release, never: .ledger.deploy and .steps.review != "COMPLETED"

release, 0 mishaps, 7 events:
   1. node-a         the run is WAITING: it awaits approval review
   2. time           86400.000 s pass
   3. node-a         step review is SKIPPED  (approved-by-nobody.json:8)
   4. node-a         calls deploy, key run_0000000000001/deploy/0  (approved-by-nobody.json:9)
   5. deploy         does it, and says so
   6. node-a         step deploy is COMPLETED  (approved-by-nobody.json:9)
   7. node-a         the run is COMPLETED

