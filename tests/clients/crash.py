"""hapax.test() on an engine in memory: a function that is safe comes to the same end, wherever it is killed; one that is not is found out."""
import hapax


def real(key):
    raise RuntimeError("the real one")


@hapax.function("checkout")
def checkout(ctx, input):
    stock = ctx.step("reserve", real)
    paid = ctx.step("charge", real, effect="claimed")
    ctx.sleep("cooling off", "2d")
    both = ctx.all([ctx.later.step("x", lambda key: 1), ctx.later.step("y", lambda key: 2, effect="claimed")])
    ok = ctx.approval("ship it?", timeout="1d")
    pay = ctx.event("payment")
    return {"stock": stock, "paid": paid, "both": both, "by": ok["by"], "pay": pay}


@hapax.function("bad")
def bad(ctx, input):
    ctx.step("a", lambda key: 1)
    seen.append(1)
    return {"n": len(seen)}


def ok(name, holds, words):
    print("%s python: %s%s" % ("ok" if holds else "not ok", name, "" if holds else "\n# %s" % words))


seen, words = [], "nothing was found"
it = hapax.test(checkout, input={"sku": "lamp"}, steps={"reserve": lambda key: 4, "charge": lambda key: "paid"},
                approvals={"ship it?": {"by": "ann"}}, events={"payment": {"amount": 3}})
wanted = {"stock": 4, "paid": "paid", "both": [1, 2], "by": "ann", "pay": {"amount": 3}}
ok("killed everywhere, the same end", it["status"] == "COMPLETED" and it["crashes"] > 8 and it["output"] == wanted, it)
try:
    hapax.test(bad)
except AssertionError as error:
    words = str(error)
ok("what differs in a replay is found", words.startswith("killed") and "output" in words, words)
