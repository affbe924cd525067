"""The order of examples/order as a function: goods, perhaps a person, a payment, a pause. Its steps happen once; see README.md."""
import os
import signal
import sys

import hapax

# The outside world: a folder with a file for each key. The same key again changes nothing.
ledger = sys.argv[1] if sys.argv[1:] else "ledger"
os.makedirs(ledger, exist_ok=True)


def effect(key, words):
    try:
        with open("%s/%s" % (ledger, key.replace("/", ".")), "x") as file:
            file.write(words + "\n")
    except FileExistsError:
        pass


def reserve(sku, key):
    if sku.startswith("no-"):
        raise hapax.Final("there is no %s on the shelves" % sku[3:])
    effect(key, "reserve " + sku)
    return {"shelf": len(sku)}


@hapax.function("order", version="1")
def order(ctx, input):
    sku = input["sku"]
    shelf = ctx.step("reserve", lambda key: reserve(sku, key), compensate=lambda out, key: effect(key, "release " + sku))["shelf"]
    ok = ctx.approval("approve", timeout="24h") if input["total"] > 1000 else None
    payment = ctx.event("paid", event="payment", timeout="1h")
    ctx.sleep("cooldown", "2s")
    return {"shelf": shelf, "paid": payment["amount"], "approved_by": ok["by"] if ok else "nobody"}


worker = hapax.Worker([order], lease="5s")
signal.signal(signal.SIGTERM, lambda *_: worker.stop())
worker.run()
