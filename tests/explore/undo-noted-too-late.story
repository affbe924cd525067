found: undone: the run is CANCELLED, book has happened, and cancel has not
  undo-noted-too-late.json:7: workflow trip, step hotel, compensate: it is undone while an earlier call may still happen

trip, 1 mishap, 4 events:
   1. node-a         calls book, key run_0000000000001/hotel/0  (undo-noted-too-late.json:7)
   2. book           does it, and says that it failed
   3. node-a         the run is CANCELLING
   4. node-a         the run is CANCELLED

