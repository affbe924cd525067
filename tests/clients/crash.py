"""hapax.test() on an engine in memory: a function that is safe comes to the same end, wherever it is killed; one that is not is found out."""
import time

import hapax
from hapax.client import Api


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

# A worker that dies with the very last call of a run is not replaced when the run has ended meanwhile: nobody would ever stop that one.
claims, call, once = [], Api.call, Api.once


def slow_call(self, method, path, body=None, **more):
    if path == "test-clock" and "skipMs" in body:
        time.sleep(0.5)
    return call(self, method, path, body, **more)


def counted_once(self, method, path, *all, **more):
    claims.append(path == "functions/claim")
    return once(self, method, path, *all, **more)


Api.call, Api.once = slow_call, counted_once
hapax.test(hapax.function("brief")(lambda ctx, input: 1))
time.sleep(0.5)
claims.clear()
time.sleep(1.5)
ok("nobody works on when the test is over", sum(claims) == 0, "%d claims" % sum(claims))
