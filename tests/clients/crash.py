"""hapax.test() on an engine in memory: a function that is safe comes to the same end, wherever it is killed; one that is not is found out."""
import asyncio
import sys
import threading
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


# Steps that are coroutines, and that ask which attempt it is, in a function that is one.
@hapax.function("later")
async def later(ctx, input):
    async def charge(key, attempt):
        await asyncio.sleep(0)
        return {"done": attempt > 0}
    return [await ctx.step("charge", charge, effect="claimed"), await ctx.step("send", charge)]


it = hapax.test(later)
ok("asynchronous steps", it["output"] == [{"done": True}] * 2 and it["orders"] > it["crashes"] > 6, it)


# Every order is tried: what the effects of two steps come to, as they should, told by a model of the two workers, against what was seen.
# The first worker's places: the effect of a, before call 1, after it, and the same of b. The second does what is not in the journal by then.
def model():
    for at in range(6):
        done, told = "ab"[:(at + 2) // 3], 0 if at < 2 else 1 if at < 5 else 2  # executed by the first; in the journal
        late, second = {0: "a", 2: "b", 3: "b"}.get(at, ""), ["a", "", "b", ""][2 * told:]
        yield done + "".join(second)
        for j in range(len(second) + 1):
            yield done + "".join(second[:j]) + late + "".join(second[j:])


@hapax.function("two")
def two(ctx, input):
    for step in ("a", "b"):
        ctx.step(step, lambda key: seen.append(key[-3]))


told = []
tried = hapax.test(two, fresh=seen.clear, world=lambda: told.append("".join(seen)))
ok("every order of two workers is tried", (tried["exchanges"], tried["crashes"], tried["orders"]) == (2, 6, 26) and sorted(told[1:]) == sorted(model()), (tried, sorted(told[1:])))


# Mistakes that are planted. A write that is late undoes what came after it: only a worker that goes on after its time shows that.
def found(function, **options):
    try:
        hapax.test(function, **options)
        return "nothing"
    except AssertionError as error:
        return str(error)


@hapax.function("parcel")
def parcel(ctx, input):
    for step in ("packed", "shipped"):
        ctx.step(step, lambda key: world.update(status=key.split("/")[1]))


@hapax.function("pay")
def pay(ctx, input):
    ctx.step("charge", lambda key: world.update(balance=world["balance"] - 10))


world, fresh = {}, lambda: world.update(status=None, balance=100)
once, late = (found(parcel, fresh=fresh, world=lambda: world["status"], crash=crash) for crash in ("once", True))
ok("a late write is found, and only in the order of two workers", once == "nothing" and late.startswith("held before the effect of packed, ") and "world" in late, (once, late))
charged = found(pay, fresh=fresh, world=lambda: world["balance"], crash="once")
ok("a service that does not look at the key is found", charged == "killed before call 1: world 80, and 90 without", charged)


# A probe of a service that is not there would know nothing of what the fake has done.
@hapax.function("probing")
def probing(ctx, input):
    return ctx.step("charge", real, effect="claimed", probe=lambda key: None)


it = hapax.test(probing, steps={"charge": lambda key: "fake"}, crash="once")
ok("the probe of a fake step is asked what it has given", it["output"] == "fake" and it["crashes"] > 3, it)


# Children are functions of their own, whose ids are others each time; what they ask a person, the test answers.
@hapax.function("box")
def box(ctx, input):
    ctx.step("fold", lambda key: input["n"], effect="claimed")
    return ctx.approval("seal?")["by"]


@hapax.function("family")
def family(ctx, input):
    return ctx.all([ctx.later.child("box %d" % n, box, {"n": n}) for n in range(2)])


@hapax.function("careless")
def careless(ctx, input):
    taken.append(1)
    ctx.step("once more %d" % len(taken), lambda key: 1)


@hapax.function("parent")
def parent(ctx, input):
    ctx.child("it", careless, {})


taken = []
it = hapax.test(family, functions=[box], approvals={"seal?": {"by": "ann"}}, crash="once")
ok("children are tested with their parent", it["output"] == ["ann", "ann"] and it["crashes"] > 8 and it["effects"] == ["fold", "fold"], it)
wrong = found(parent, functions=[careless], crash="once")
ok("what a child does otherwise each time is found", wrong.startswith("killed ") and ("effects" in wrong or "status" in wrong), wrong)

# A step that would end the process has failed, and what is no JSON fails the run: at once, and not when ten workers have been lost with it.
@hapax.function("odd")
def odd(ctx, input):
    try:
        ctx.step("exit", lambda key: sys.exit(3), retry={"maxAttempts": 1})
    except hapax.EntryError as error:
        return [error.step, object()]


it = hapax.test(odd, crash=False)
ok("what cannot be written fails the run", it["status"] == "FAILED" and "JSON" in it["error"]["message"] and it["effects"] == ["exit"], it)

# A worker says whom it asks, and that nobody is there.
heard = []
lonely = hapax.Worker([box], server="http://127.0.0.1:1", log=heard.append)
thread = threading.Thread(target=lonely.run)
thread.start()
until = time.monotonic() + 20
while len(heard) < 2 and time.monotonic() < until:
    time.sleep(0.02)
lonely.stop()
thread.join()
ok("a worker says whom it asks, and that nobody answers",
   heard == ["hapax: asks 127.0.0.1:1 for turns of box 1", "hapax: 127.0.0.1:1 takes no call, and is asked on: [Errno 111] Connection refused"], heard)

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
