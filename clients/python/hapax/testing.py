"""Tests of functions: a function is run against an engine in memory, with fakes for its steps, and with time that is skipped whenever
nothing but time is waited for. Then it is run once more for each order of two workers. The first one stands still at one of its places:
just before an effect, before a call of the journal, or after one that was taken; its lease ends, and the second one goes on. Either the
first has died there; or it goes on as well, when the second has come to one of its own places, or to the end. All come to the same end,
with each effect once."""
import itertools
import json
import os
import re
import subprocess
import threading
import time

from . import Worker
from .client import OVER, Api, Client, HapaxError, encode

LEASE, KILLED = 10000, -1
_plays = itertools.count()


class Killed(Exception):
    """The worker has died: from here on it says and hears nothing."""


class Place:
    def __init__(self, name, call=False, heard=False, claimed=False):
        self.name, self.call, self.heard, self.claimed = name, call, heard, claimed


class Stage:
    def __init__(self, order, lapse):
        (self.at, self.wakes), self.lapse, self.places, self.one = order, lapse, ([], []), threading.Lock()
        self.standing = self.dead = self.over = False
        self.awake, self.rests, self.lapsed = threading.Event(), threading.Event(), None

    def arrive(self, who, place):
        with self.one:
            self.places[who].append(place)
            return len(self.places[who]) - 1

    def come(self, who, place):
        """A worker comes to one of its places."""
        if who == 1:
            if not place.heard and self.arrive(1, place) == self.wakes:
                self.wake()
            return
        if self.arrive(0, place) == self.at:
            with self.one:
                self.standing = not self.over  # when all is over nobody stands still
                if self.standing:
                    self.lapsed = threading.Thread(target=self.lapse, daemon=True)
                    self.lapsed.start()
        self.stand()
        if self.standing and place.claimed:
            raise Killed()  # its lease is over: whoever decided about it was sure of that

    def stand(self):
        if self.standing:
            self.awake.wait()
            if self.dead:
                raise Killed()

    def wake(self):
        """And the other one waits until it has come to its end: it is refused."""
        if self.standing:
            self.awake.set()
            self.rests.wait(1)

    def end(self):
        with self.one:
            self.over = True
        if self.lapsed:
            self.lapsed.join()

    def kill(self):
        self.end()
        self.dead = self.dead or not self.awake.is_set()
        self.awake.set()


class StagedApi(Api):
    def __init__(self, stage, who, **place):
        super().__init__(**place)
        self.stage, self.who, self.calls = stage, who, itertools.count(1)

    def once(self, method, path, *all, **named):
        if self.who == 0 and self.stage.standing:
            if path == "functions/claim":
                time.sleep(0.02)
                return 200, {"turns": []}, 0
            self.stage.stand()
        return super().once(method, path, *all, **named)

    def text(self, method, path, text=None, *more, **named):
        if method == "GET":
            return super().text(method, path, text, *more, **named)
        n = next(self.calls)
        try:
            self.stage.come(self.who, Place("before call %d" % n, call=True))
            answer = super().text(method, path, text, *more, **named)
            self.stage.come(self.who, Place("after call %d" % n, heard=True))
        except Exception:
            self.rest()
            raise
        if json.loads(text).get("end"):
            self.rest()
        return answer

    def rest(self):
        if self.who == 0 and self.stage.standing:
            self.stage.rests.set()


class Play:
    """One run, from its start to its end."""

    def __init__(self, server, function, o, order=(None, KILLED)):
        self.function, self.o, self.workers, self.effects, self.outputs, self.sent = function, o, [], [], {}, set()
        self.place = {"server": server, "workspace": "play-%d" % next(_plays)}
        self.client, self.stage = Client(**self.place), Stage(order, self.lapse)

    def skip(self, **by):
        return self.client.call("POST", "test-clock", by)

    def lapse(self):
        self.skip(skipMs=LEASE)
        if not self.stage.over:  # else it has stopped with its last call, and nobody takes its place
            self.add(1)

    def add(self, who):
        def fakes(name, work):
            effect, fake = work.effect, (self.o["steps"] or {}).get(name)
            execute = fake or work.fn
            if fake and work.probe:  # the real one knows nothing of it
                work.probe = lambda key: (True if self.outputs[key] is None else self.outputs[key]) if key in self.outputs else None

            def staged(key, attempt):
                self.stage.come(who, Place("before the effect of " + name, claimed=effect == "claimed"))
                self.effects.append((name, key, effect))
                self.outputs[key] = worker.call(execute, key, attempt=attempt)
                return self.outputs[key]
            work.fn = staged
        # The first one has no claim under way that could get its own turn again.
        worker = Worker([self.function, *(self.o["functions"] or [])], api=StagedApi(self.stage, who, **self.place), fakes=fakes, lease=LEASE,
                        concurrency=4 if who else 1, log=lambda words: None)
        thread = threading.Thread(target=worker.run, daemon=True)
        self.workers.append((worker, thread))
        thread.start()

    def start(self, until):
        while True:  # a name can be started as soon as it is polled for
            try:
                return self.client.start(self.function, self.o["input"] or {})
            except HapaxError:
                if time.monotonic() > until:
                    raise
                time.sleep(0.005)

    def act(self, id, step, held):
        """What a person does about a step: the test is the one who knows. False: nothing is to be done, or a worker is to find out about it."""
        name, (base, n) = step["name"], re.fullmatch(r"(.*?)(?:#(\d+))?", step["name"], re.S).groups()
        key, approvals = "%s/%s/%s" % (id, encode(base), n or 0), self.o["approvals"] or {}
        try:
            if step["status"] == "WAITING" and name in approvals and key not in self.sent:
                self.client.approve(id, name, **approvals[name])
                self.sent.add(key)
                return True
            if step["status"] == "UNKNOWN" and held:
                done = {"outcome": "done", "output": self.outputs[key]} if key in self.outputs else {"outcome": "not_done"}
                self.client.resolve(id, name, **done)
        except HapaxError:
            pass
        return step["status"] == "UNKNOWN" and held

    def run(self):
        until = time.monotonic() + self.o["timeout"]
        if self.o["fresh"]:
            self.o["fresh"]()
        self.add(0)
        run = self.start(until)
        for event, data in (self.o["events"] or {}).items():
            self.client.signal(run["id"], event, data)
        while run["status"] not in OVER:
            if time.monotonic() > until:
                raise AssertionError("%s is %s at %s" % (run["id"], run["status"], run["currentStep"]))
            time.sleep(0.005)
            run = self.client.show(run["id"])
            waits, tree = run["status"] == "WAITING", [run] if run["status"] not in OVER else []
            if any(step["kind"] == "child" and step["status"] == "WAITING" for step in run["steps"]):  # the workspace is this play's alone
                tree += [self.client.show(child["id"]) for child in self.client.list(limit=500)["items"] if child.get("parent")]
            acted = [self.act(one["id"], step, one["status"] == "WAITING") for one in tree for step in one["steps"]]
            if waits and not any(acted):
                self.skip(toNext=True)
        self.stage.end()
        if self.stage.wakes >= len(self.stage.places[1]):
            self.stage.wake()
        world = self.o["world"] and self.o["world"]()
        named = [key.replace(run["id"], "RUN") for key in {key for _, key, _ in self.effects}]
        keys = sorted(re.sub("^run_[0-9a-z]+", "CHILD", key) for key in named)  # ids are other ones each time
        claimed = [key for _, key, effect in self.effects if effect == "claimed"]
        said = {"status": run["status"], "output": run["output"], "effects": keys, "claimed twice": len(claimed) - len(set(claimed)), "world": world}
        self.said = {what: json.dumps(value, sort_keys=True) for what, value in said.items()}
        return run

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stage.kill()
        for worker, _ in self.workers:
            worker.stop()
        self.client.close()


def test(function, input=None, steps=None, events=None, approvals=None, functions=None, crash=True, loose=False, fresh=None, world=None, timeout=60, hapax=None):
    """Its status, output, error, effects (the names of the steps that were executed), and the numbers of exchanges, of crashes and of orders
    of two workers. AssertionError: it broke. crash: False, "once" (the first worker dies, and never goes on), or True: every order.
    fresh() is called before each run, for fakes that remember; world() says what they have come to, which has to be the same each time."""
    o = {"input": input, "steps": steps, "events": events, "approvals": approvals, "functions": functions, "fresh": fresh, "world": world, "timeout": timeout}
    program = hapax or os.environ.get("HAPAX") or "hapax"
    command = [program, "serve", "--db", "sqlite::memory:", "--test-clock", "--listen", "127.0.0.1:0"]
    engine = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)

    def play(where, *order):
        """As it was without a second worker, or it broke."""
        with Play(server, function, o, *order) as it:
            it.run()
        for what, value in it.said.items():
            assert value == plain.said[what] or loose and what == "output", "%s: %s %s, and %s without" % (where, what, value, plain.said[what])
        return it.stage.places[1]
    try:
        server = next((line.split()[1] for line in engine.stdout if line.startswith("ready ")), None)
        if not server:
            raise RuntimeError("%s serve has ended" % program)
        with Play(server, function, o) as plain:
            run = plain.run()
        places, orders = plain.stage.places[0], 0
        for at, place in enumerate(places if crash else []):  # one after the other: time is skipped for all
            others = play("killed " + place.name, (at, KILLED)) + [Place("the end")]
            others = [] if place.claimed or crash == "once" else others  # where the first one may go on
            for wakes, other in enumerate(others):
                play("held %s, and on again at the second worker's %s" % (place.name, other.name), (at, wakes))
            orders += 1 + len(others)
        return {"status": run["status"], "output": run["output"], "error": run["error"], "effects": [name for name, _, _ in plain.effects],
                "exchanges": sum(place.call for place in places), "crashes": len(places) if crash else 0, "orders": orders}
    finally:
        engine.kill()
        engine.stdout.close()
        engine.wait()
