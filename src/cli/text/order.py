"""A function: its steps are code, and each of them is done once, wherever the program that does them is stopped."""
import hapax


def effect(key, words):
    """The outside world: a file, for a start. The key is the same each time that a step is tried: services take it as their Idempotency-Key."""
    with open("effects.log", "a") as log:
        log.write("%s %s\n" % (key, words))
    return words


@hapax.function("order", version="1")
def order(ctx, input):
    item, total = input["item"], input["total"]
    ctx.attribute("item", item)  # hapax run list --where 'item == "lamp"'
    ctx.step("reserve", lambda key: effect(key, "reserve " + item), compensate=lambda out, key: effect(key, "put %s back" % item))
    approved = ctx.approval("approve", timeout="1d") if total > 100 else None
    ctx.sleep("rest", "2s")  # or "2d": no process waits
    paid = ctx.step("charge", lambda key: effect(key, "charge %s" % total), effect="claimed")  # never twice: see the README
    return {"paid": paid, "approved_by": approved["by"] if approved else "nobody"}
