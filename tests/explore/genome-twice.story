found: once: impute has happened twice for one decision, step item
  genome-twice.json:5: workflow genome, step item, on_unknown: retry repeats what may have been done, and the service does not dedupe

genome, 1 mishap, 8 events:
   1. node-a         the batch is RUNNING
   2. node-a         item 0 is RUNNING
   3. node-a         calls impute, key batch_0000000000001/0  (genome-twice.json:3)
   4. time           60 s pass: a node stands still until its lease is over; what it had asked for was done
   5. node-b         calls impute, key batch_0000000000001/0  (genome-twice.json:3)
   6. impute         does it, and says so
   7. node-a         item 0 is SUCCEEDED
   8. impute         does it, and says so

