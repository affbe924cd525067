"""The functions of the conformance script, in Python: functions.mjs has the same in JavaScript. With a third argument, `async`, they are asynchronous."""
import json
import re
import signal
import sys
import time
import urllib.request

import hapax
from hapax import Final, NotDone

server, name = sys.argv[1:3]


def act(step, claimed=False):
    """What a step does: it is counted by its key."""
    def do(key):
        body = json.dumps({"step": step, "key": key, "claimed": claimed}).encode()
        urllib.request.urlopen(urllib.request.Request(server + "/effect", body)).read()
        return {"step": step}
    return do


def undo(step):
    return lambda out, key: act(step % out["step"] if "%" in step else step)(key)


def then(*actions):
    """Several things in one step; a value that is an exception is raised."""
    def do(key, attempt):
        for action in actions:
            out = action(key) if action.__code__.co_argcount == 1 else action(key, attempt)
            if isinstance(out, Exception):
                raise out
        return out
    return do


def three(ctx, input):
    out = []
    for step in ("a", "b", "c"):
        out.append(ctx.step(step, act(step))["step"])
    return {"out": out}


def claim(ctx, input):
    now, uuid, random = ctx.now(), ctx.uuid(), ctx.random()
    paid = ctx.step("charge", act("charge", True), effect="claimed")
    ctx.attribute("customer", input["customer"])
    sent = ctx.step("send", act("send"))
    return {"paid": paid, "sent": sent, "values": now > 0 and len(uuid) == 36 and random < 1, "now": now, "uuid": uuid}


def waits(ctx, input):
    ctx.sleep("nap", "2d")
    event = ctx.event("paid", event="payment", timeout="1h")
    ok = ctx.approval("ship it?", timeout="1d")
    child = ctx.child("pack", "packing", {"boxes": 2})
    return {"event": event, "by": ok["by"], "child": child}


def parallel(ctx, input):
    out = ctx.all([ctx.later.step("x", act("x")), ctx.later.step("y", act("y", True), effect="claimed"), ctx.later.child("z", "packing"), ctx.later.step("w", act("w"))])
    after = ctx.step("after", act("after"))
    return {"n": len(out), "after": after["step"]}


def race(ctx, input):
    first = ctx.race([ctx.later.event("go"), ctx.later.sleep("limit", "1h")])
    after = ctx.step("after", act("after"))
    return {"first": first, "after": after["step"]}


def mixed(ctx, input):
    x, go = ctx.all([ctx.later.step("p", act("p")), ctx.later.event("go")])
    first = ctx.race([ctx.later.step("q", act("q")), ctx.later.event("never")])
    return {"all": [x["step"], go["from"]], "first": first["step"]}


def loop(ctx, input):
    out = []
    for _ in range(3):
        out.append(ctx.step("s", act("s"))["step"])
    return {"out": out}


def twice(ctx, input):
    one, words = ctx.later.step("s", act("s")), ""
    try:
        ctx.step("s", act("s"))
    except Final as error:
        words = str(error)
    ctx.all([one])
    return {"refused": bool(re.search("under way", words))}


def retried(ctx, input):
    s = ctx.step("s", then(act("s"), lambda key, attempt: RuntimeError("not yet") if attempt < 3 else {"attempt": attempt}))
    t = ctx.step("t", then(act("t", True), lambda key, attempt: NotDone("busy") if attempt < 2 else {"attempt": attempt}), effect="claimed")
    return {"s": s, "t": t}


def refused(ctx, input):
    ctx.step("s", act("s"))
    ctx.step("card", then(act("card"), lambda key: Final("card declined")))


def caught(ctx, input):
    try:
        ctx.event("never", timeout="1s")
    except hapax.EntryError as error:
        return {"code": error.code, "step": error.step}


def rejected(ctx, input):
    try:
        ctx.approval("ok?")
    except hapax.EntryError as error:
        return {"code": error.code, "by": error.error["by"]}


def undone(ctx, input):
    ctx.step("one", act("one"), compensate=undo("undo one %s"))
    ctx.step("two", act("two"))
    ctx.compensate("two", undo("undo two %s"))
    ctx.step("three", act("three"))
    ctx.event("go")
    ctx.step("four", act("four"))
    return {}


def no_way_back(out, key):
    raise Final("no way back")


def unhappy(ctx, input):
    ctx.step("one", act("one"), compensate=undo("undo one"))
    ctx.step("two", act("two"), compensate=no_way_back)
    ctx.event("go")


def fails(ctx, input):
    ctx.step("one", act("one"), compensate=undo("undo one"))
    raise Final("no")


def diverges(ctx, input):
    ctx.step("a", act("a"))
    ctx.step("b", act("b"))
    return {}


def probed(ctx, input):
    probe = lambda key: {"step": "found"} if input["found"] else None
    out = ctx.step("charge", act("charge", True), effect="claimed", on_unknown="probe", probe=probe)
    return {"out": out}


def outrun(ctx, input):
    probe = lambda key: {"step": "found"} if input["found"] else None
    return {"first": ctx.race([ctx.later.event("go"), ctx.later.step("charge", act("charge", True), effect="claimed", probe=probe)])}


def between(ctx, input):
    ctx.step("one", act("one"), compensate=undo("undo one %s"))
    ctx.child("pack", "packing", {})
    ctx.step("two", act("two"), compensate=undo("undo two %s"))
    ctx.event("stop")


def doubtful(ctx, input):
    def probe(key):
        if input["probe"] == "broken":
            raise RuntimeError("no answer")
        return {"step": "found"} if input["probe"] == "found" else None
    work = then(act("charge", True), lambda key, attempt: RuntimeError("connection reset") if attempt == 1 else {"attempt": attempt})
    out = ctx.step("charge", work, effect="claimed", probe=probe if "probe" in input else None)
    return {"out": out}


def long(ctx, input):
    out = ctx.step("long", then(lambda key: time.sleep(input.get("ms", 6000) / 1000), act("long", True)), effect="claimed")
    return {"out": out}


def patched(ctx, input):
    ctx.step("a", act("a"))
    new = ctx.patched("better")
    ctx.step("b2" if new else "b", act("b"))
    return {"isNew": new}


def foreign(ctx, input):
    out = ctx.step("a", act("a"))
    ctx.sleep("nap", "1s")
    return {"out": out}


def order(ctx, input):
    order = []

    def note(handle, name):
        handle.waiters.append(lambda _: order.append(name))
        return handle
    e, s, a, b = (note(h, name) for h, name in ((ctx.later.event("e"), "e"), (ctx.later.sleep("s", "1s"), "s"), (ctx.later.step("a", act("a")), "a"),
                                                (ctx.later.step("b", act("b")), "b")))
    ctx.race([e, s])
    ctx.all([a, b])
    ctx.step("tell", act("tell " + "".join(order)))
    ctx.sleep("again", "1s")
    ctx.step("tell", act("tell " + "".join(order)))
    return {"order": order}


def branches(ctx, input):
    def branch(x):
        ctx.step("first " + x, act("first " + x))
        ctx.sleep("nap " + x, "1s")
        return ctx.step("second " + x, act("second " + x))["step"]
    return {"out": ctx.all([lambda: branch("a"), lambda: branch("b")])}


def overlap(ctx, input):
    def branch(x):
        ctx.step(x, act(x))
        return ctx.step("second", act("second", True), effect="claimed")["step"]
    a, slow = ctx.all([lambda: branch("quick"), ctx.later.step("slow", then(lambda key: time.sleep(1), act("slow")))])
    return {"out": [a, slow["step"]]}


def rejoined(ctx, input):
    ctx.sleep("nap", "1s")
    out = ctx.all([ctx.later.step("a", act("a")), ctx.later.step("b", act("b"))])
    return {"out": [x["step"] for x in out]}


def fan(ctx, input):
    out = ctx.all([ctx.later.child("c %d" % i, "packing") for i in range(input["n"])])
    return {"n": len(out)}


def large(ctx, input):
    out = ctx.step("keyed", then(act("keyed"), lambda key: "x" * 2000000))
    paid = ctx.step("charge", then(act("charge", True), lambda key: "x" * 2000000), effect="claimed")
    return {"out": [out["step"], paid["step"]]}


def many(ctx, input):
    for _ in range(input["n"]):
        ctx.step("s", act("s"))
    for _ in range(input["naps"]):
        ctx.sleep("nap", "1s")
    return {"n": input["n"]}


def asynchronous(source):
    """The same functions as coroutines: their calls of ctx are awaited, but for those of later and compensate."""
    out = re.sub(r"^( *)def (\w+)\((ctx, input|x)\)", r"\1async def \2(\3)", source, flags=re.M)
    out = re.sub(r"ctx\.(step|sleep|event|approval|child|all|race|now|random|uuid|attribute|patched)(\()", r"(await ctx.\1\2", out)
    return out.replace("lambda: branch", "branch")


def close_brackets(text):
    """`(await ctx.step(…)` gets its end."""
    marker, at = "(await ctx.", 0
    while (at := text.find(marker, at)) >= 0:
        depth, k = 0, at + 1
        while True:
            depth += (text[k] == "(") - (text[k] == ")")
            k += 1
            if depth == 0 and text[k - 1] == ")":
                break
        text, at = text[:k] + ")" + text[k:], at + 1
    return text


if sys.argv[3:] == ["async"]:
    text = open(__file__, encoding="utf-8").read()
    text = text[text.index("def three"):text.index("def asynchronous")]
    exec(close_brackets(asynchronous(text)))  # noqa: S102
FUNCTIONS = "three claim waits parallel race mixed loop twice retried refused caught rejected undone unhappy fails diverges probed outrun between doubtful long patched foreign order branches overlap rejoined fan large many"
worker = hapax.Worker([hapax.Function(f, "1", globals()[f]) for f in FUNCTIONS.split()], server=server, name=name, lease="5s", concurrency=64, timeout="1s", log=lambda words: None)
signal.signal(signal.SIGTERM, lambda *_: worker.stop())
worker.run()
