"""The function on an engine in memory: to its end without waiting, and then in every order of two workers, the first of which dies or is late."""
import hapax
from order import order

steps = {"reserve": lambda key: "reserved", "charge": lambda key: "charged"}
it = hapax.test(order, input={"item": "lamp", "total": 120}, steps=steps, approvals={"approve": {"by": "ann"}})
assert (it["status"], it["output"]) == ("COMPLETED", {"paid": "charged", "approved_by": "ann"}), it
print("ok: %d crashes, %d orders of two workers, always the same end" % (it["crashes"], it["orders"]))
