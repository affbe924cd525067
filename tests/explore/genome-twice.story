found: once: impute has happened twice for one decision, step item
  genome-twice.json:5: workflow genome, step item, on_unknown: retry repeats what may have been done, and the service does not dedupe

genome, 1 mishap, 6 events:
   1. node-a         the batch is RUNNING
   2. node-a         item 0 is RUNNING
   3. node-a         calls impute, key batch_0000000000001/0  (genome-twice.json:3)
   4. impute         does it, and says so; whoever called stands still with that until its lease is over
   5. node-b         calls impute, key batch_0000000000001/0  (genome-twice.json:3)
   6. impute         does it, and says so

