found: silence: the run is CANCELLED, launch has happened, and the run says that step launch was not done
  orphaned-machine.json:5: workflow machine, step launch, on_5xx: what the service says has failed is believed, and it may fail after it has acted

machine, 1 mishap, 5 events:
   1. node-a         calls launch, key run_0000000000001/launch/0  (orphaned-machine.json:5)
   2. launch         does it, and says that it failed
   3. node-a         the run is WAITING
   4. caller-1       cancels the run
   5. caller-1       the run is CANCELLED

