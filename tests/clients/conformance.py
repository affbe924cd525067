#!/usr/bin/env python3
"""conformance.py NAME COMMAND… : plays the engine's side of the protocol of functions to a client, and prints `ok` or `not ok` for each scene.

COMMAND is started with two more arguments, the address of the engine and a worker's name, and works on the functions of functions.mjs
(functions.py). Each scene is run once as it should be; then once more for each of its calls and each way in which a call can go wrong.
"""
import json
import os
import signal
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from engine import FAULTS, Engine  # noqa: E402

DEADLINE = 120
NAPS = 3
BRIEF = os.environ.get("HAPAX_CONFORMANCE") == "brief" and ("after", "lapse after")  # for a second flavour of one client


def output(value):
    return lambda run: run.end == {"state": "completed", "output": value}


def entry(kind, name, state="done", n=0, **more):
    return dict({"kind": kind, "name": name, "n": n, "state": state}, **more)


def steps(run):
    return [s for s, _ in run.effects]


def undone_in_reverse(run):
    undo = list(dict.fromkeys(s for s in steps(run) if s.startswith("undo")))
    return run.end == {"state": "undone"} and undo == ["undo two two", "undo one one"] and "four" not in steps(run)


def failed(code=None, message=None, step=None):
    return lambda run: run.end["state"] == "failed" and run.end["error"].get("message") == message and run.end.get("step") == step


def diverged(expected, found):
    return lambda run: run.end == {"state": "diverged", "expected": expected, "found": found} and not run.effects


def same_order(run):
    """The code has told twice in which order things ended for it, and again at its end, each time from another replay."""
    first, second = ([s for s, k in run.effects if k.endswith("/tell/%d" % n)] for n in (0, 1))
    order = "tell " + "".join(run.end["output"]["order"])
    return len(set(first)) == 1 and len(set(second)) == 1 and second[0].startswith(first[0]) and order.startswith(second[0])


SAID = {"step": "a"}
LOST_RACE = [entry("event", "go", event="go", output=SAID), entry("step", "charge", "unknown", effect="claimed", onUnknown="probe")]

PAGED = "each turn is a replay"

# name: function, the scene, what must hold at the end, whether each of its calls is to go wrong in each way
SCENES = {
    "three keyed steps are three calls": ("three", {}, lambda r: output({"out": ["a", "b", "c"]})(r) and ("faults" in r.scene or r.calls == 3), True),
    "a claimed step is begun before it is executed": ("claim", {"input": {"customer": "ada"}, "ahead": {"charge": ["now", "uuid", "random"], "send": ["customer"]}},
        lambda r: r.end["state"] == "completed" and r.end["output"]["values"] and r.end["output"]["now"] == [e for e in r.entries if e["name"] == "now"][0]["output"], True),
    "sleep, event, approval, child": ("waits", {}, output({"event": {"from": "paid"}, "by": "ann", "child": {"from": "pack"}}), True),
    "what ends at once": ("waits", {"at_once": True}, output({"event": {"from": "paid"}, "by": "ann", "child": {"from": "pack"}}), False),
    "each turn is a replay": ("waits", {"always_cold": True, "page": 1}, output({"event": {"from": "paid"}, "by": "ann", "child": {"from": "pack"}}), False),
    "parallel steps begin in one call": ("parallel", {"ahead": {s: ["x", "y", "z", "w"] for s in "xyw"}},
        lambda r: r.end["state"] == "completed" and r.end["output"]["n"] == 4 and r.end["output"]["after"] == "after", True),
    "a race drops its loser": ("race", {"never": ["limit"]},
        lambda r: r.end["output"] == {"first": {"from": "go"}, "after": "after"} and [e["state"] for e in r.entries if e["name"] == "limit"][0] == "dropped", True),
    "a race with two ends": ("race", {"ends": ["go", "limit"]}, lambda r: r.end["output"] == {"first": {"from": "go"}, "after": "after"}, False),
    "a step and an event": ("mixed", {"never": ["never"]}, output({"all": ["p", "go"], "first": "q"}), True),
    "a name used again gets a number": ("loop", {}, lambda r: output({"out": ["s", "s", "s"]})(r) and {k for _, k in r.effects} == {"%s/s/%d" % (r.id, n) for n in range(3)}, True),
    "a name used twice at once is refused": ("twice", {}, output({"refused": True}), False),
    "errors are tried again": ("retried", {}, output({"s": {"attempt": 3}, "t": {"attempt": 2}}), False),
    "Final is not tried again": ("refused", {}, lambda r: failed(message="card declined", step="card")(r) and len({k for s, k in r.effects if s == "card"}) == 1, True),
    "a timeout is an error": ("caught", {"timeout": ["never"]}, output({"code": "TIMEOUT", "step": "never"}), False),
    "a rejection is an error": ("rejected", {"decision": "reject"}, output({"code": "REJECTED", "by": "ann"}), False),
    "cancelled while it waits": ("undone", {"cancel_at": "suspend"}, undone_in_reverse, True),
    "cancelled in the middle of a step": ("undone", {"cancel_at": "three"}, undone_in_reverse, True),
    "a failure that is undone": ("fails", {"undo_failure": True}, lambda r: r.end == {"state": "undone"} and "undo one" in steps(r), True),
    "an undo that fails": ("unhappy", {"cancel_at": "suspend"}, lambda r: r.end == {"state": "undone"} and "undo one" in steps(r) and
        [e["state"] for e in r.entries if e["kind"] == "undo"] == ["failed", "done"], False),
    "paused in the middle of a step": ("three", {"pause_at": "b"}, output({"out": ["a", "b", "c"]}), False),
    "stolen in the middle of a step": ("three", {"steal_at": "b"}, output({"out": ["a", "b", "c"]}), False),
    "stolen in the middle of a claim": ("claim", {"input": {"customer": "ada"}, "steal_at": "charge"}, lambda r: r.end["state"] == "completed" and steps(r).count("charge") == 1, False),
    "another name in the journal": ("diverges", {"journal": [entry("step", "z", output=SAID)]}, diverged({"kind": "step", "name": "z", "n": 0}, {"kind": "step", "name": "a", "n": 0}), False),
    "another kind in the journal": ("diverges", {"journal": [entry("sleep", "a")]}, diverged({"kind": "sleep", "name": "a", "n": 0}, {"kind": "step", "name": "a", "n": 0}), False),
    "another order in the journal": ("diverges", {"journal": [entry("step", "b", output=SAID), entry("step", "a", output=SAID)]},
        diverged({"kind": "step", "name": "b", "n": 0}, {"kind": "step", "name": "a", "n": 0}), False),
    "more in the journal than in the code": ("diverges", {"journal": [entry("step", s, output=SAID) for s in "abc"]}, diverged({"kind": "step", "name": "c", "n": 0}, {"kind": "end"}), False),
    "a divergence later on": ("diverges", {"journal": [entry("step", "a", output=SAID), entry("event", "b", "open", event="b")]},
        diverged({"kind": "event", "name": "b", "n": 0}, {"kind": "step", "name": "b", "n": 0}), False),
    "a probe that finds it": ("probed", {"input": {"found": True}, "journal": [entry("step", "charge", "unknown", effect="claimed", onUnknown="probe")]},
        lambda r: output({"out": {"step": "found"}})(r) and not r.effects, True),
    "a probe that does not": ("probed", {"input": {"found": False}, "journal": [entry("step", "charge", "unknown", effect="claimed", onUnknown="probe")]},
        lambda r: output({"out": {"step": "charge"}})(r) and "faults" in r.scene or steps(r) == ["charge"], False),
    "a race whose loser is in doubt": ("outrun", {"input": {"found": True}, "journal": LOST_RACE},
        lambda r: output({"first": SAID})(r) and not r.effects and [e["state"] for e in r.entries if e["name"] == "charge"] == ["done"], True),
    "a race whose loser was not done": ("outrun", {"input": {"found": False}, "journal": LOST_RACE},
        lambda r: output({"first": SAID})(r) and not r.effects and [e["state"] for e in r.entries if e["name"] == "charge"] == ["failed"], False),
    "a person decides what is to be begun again": ("undone", {"journal": [entry("step", "one", "unknown", effect="keyed", onUnknown="retry"), entry("compensate", "one")],
        "decide": "one", "never": ["go"], "cancel_at": "suspend"}, lambda r: undone_in_reverse(r) and "one" not in steps(r), True),
    "a turn is given back where a child is to be undone": ("between", {"never": ["stop"], "cancel_at": "stop"},
        lambda r: undone_in_reverse(r) and r.released, True),
    "a claimed step in doubt is held": ("doubtful", {"input": {}}, lambda r: output({"out": {"step": "charge"}})(r) and steps(r) == ["charge"], False),
    "a claimed step in doubt is asked for": ("doubtful", {"input": {"probe": "found"}}, lambda r: output({"out": {"step": "found"}})(r) and steps(r) == ["charge"], False),
    "a claimed step in doubt that was not done": ("doubtful", {"input": {"probe": "missing"}}, output({"out": {"attempt": 2}}), False),
    "a probe that has no answer": ("doubtful", {"input": {"probe": "broken"}}, lambda r: output({"out": {"step": "charge"}})(r) and steps(r) == ["charge"], False),
    "a long step is kept by heartbeats": ("long", {}, lambda r: output({"out": {"step": "long"}})(r) and r.turns == 1, False),
    "branches with steps of their own": ("branches", {"ends": ["nap b", "nap a"], "one_by_one": True}, output({"out": ["second a", "second b"]}), True),
    "a step that is asked for while another is executed": ("overlap", {},
        lambda r: output({"out": ["second", "slow"]})(r) and ("faults" in r.scene or steps(r) == ["quick", "second", "slow"]), True),
    "what another worker began meanwhile": ("rejoined", {"elsewhere": [entry("step", s, effect="keyed") for s in "ab"]},
        lambda r: output({"out": ["a", "b"]})(r) and not r.effects and r.turns == 2 and not r.replays, False),
    "more at once than one call takes": ("fan", {"input": {"n": 1001}}, lambda r: output({"n": 1001})(r) and len({e["name"] for e in r.entries}) == 1001, False),
    "what there is no room for is done, and a person is asked": ("large", {},
        lambda r: output({"out": ["keyed", "charge"]})(r) and steps(r) == ["keyed", "charge"], False),
    "patched code, a new run": ("patched", {"always_cold": True}, output({"isNew": True}), True),
    "patched code, an old run": ("patched", {"journal": [entry("step", "a", output=SAID), entry("step", "b", output=SAID)]}, output({"isNew": False}), False),
    "code that waits for something of its own": ("foreign", {"always_cold": True}, output({"out": SAID}), False),
    "the order of ends, warm": ("order", {"ends": ["e", "s"], "one_by_one": True}, same_order, False),
    "the order of ends, cold": ("order", {"ends": ["e", "s"], "always_cold": True}, same_order, True),
    "the order of ends, at once": ("order", {"ends": ["e", "s"], "at_once": True, "always_cold": True}, same_order, False),
}


class Conformance:
    def __init__(self, client, command):
        self.client, self.command = client, command
        self.engine, self.bad, self.workers = Engine(), 0, []

    def worker(self):
        self.workers.append(subprocess.Popen(self.command + [self.engine.url, "worker-%d" % len(self.workers)]))
        return self.workers[-1]

    def result(self, name, ok, words=""):
        print("%s %s: %s" % ("ok" if ok else "not ok", self.client, name), flush=True)
        if not ok:
            print("#", words)
            self.bad += 1

    def wait(self, runs, deadline=DEADLINE):
        until = time.monotonic() + deadline
        with self.engine.lock:
            while any(r.end is None for r in runs) and time.monotonic() < until and self.workers[-1].poll() is None:
                self.engine.changed.wait(0.2)
        if self.workers[-1].poll() is not None:
            self.result("the worker is there", False, "it has ended with %s" % self.workers[-1].poll())
            sys.exit(1)

    def judge(self, run, holds):
        """What is wrong with a run that should have ended, or nothing."""
        if run.end is None:
            return "%s has not ended: %s, %s" % (run.id, run.status, [(e["name"], e["state"]) for e in run.entries[-20:]])
        wrong = [w for w in self.engine.wrong if w.startswith(run.id + ":")]
        if wrong:
            return wrong[0]
        if not holds(run):
            return "%s: %s, effects %s, %d calls" % (run.id, json.dumps(run.end), run.effects, run.calls)
        for step in ("charge", "y", "long"):
            if steps(run).count(step) > 1 and run.function not in ("doubtful", "probed"):
                return "%s: the claimed step %s was executed %d times" % (run.id, step, steps(run).count(step))

    def play(self):
        plain = {name: self.engine.start("run_%d" % i, function, dict(scene)) for i, (name, (function, scene, _, _)) in enumerate(SCENES.items())}
        self.worker()
        self.wait(plain.values())
        for name, run in plain.items():
            problem = self.judge(run, SCENES[name][2])
            self.result(name, not problem, problem)
        if self.client == "js":
            self.result("calls of many runs are one request", self.engine.many)
        for fault in BRIEF or FAULTS:
            self.fault(fault, plain)

    def fault(self, fault, plain):
        """Every call of every scene that can be disturbed goes wrong in this way, all at the same time."""
        runs = []
        for name, (function, scene, holds, disturbed) in SCENES.items():
            for k in range(1, plain[name].calls + 1 if disturbed else 0):
                id = "run_%s_%d_%d" % (fault.replace(" ", "_"), list(SCENES).index(name), k)
                runs.append((self.engine.start(id, function, dict(scene, faults={k: fault})), holds, "%s, call %d" % (name, k)))
        self.engine.old = fault == "twice"
        self.engine.claim_fault = fault if "lapse" not in fault else None  # of every other claim that hands out turns, too
        runs += self.other_exchanges(fault, plain)
        self.wait([run for run, _, _ in runs])
        self.engine.claim_fault = None
        problems = ["%s: %s" % (where, problem) for run, holds, where in runs for problem in [self.judge(run, holds)] if problem]
        self.result("%d calls that go wrong: %s" % (len(runs), fault), not problems, "\n# ".join(problems[:5]))

    def other_exchanges(self, fault, plain):
        """Each page of a journal that is read in pages, and heartbeats."""
        function, scene, holds, _ = SCENES[PAGED]
        for k in range(1, plain[PAGED].pages + 1):
            id = "run_%s_page_%d" % (fault.replace(" ", "_"), k)
            yield self.engine.start(id, function, dict(scene, page_faults={k: fault})), holds, "page %d" % k
        if "lapse" not in fault:
            run = self.engine.start("run_%s_beat" % fault, "long", {"beat_faults": {1: fault, 3: fault}})
            yield run, output({"out": {"step": "long"}}), "heartbeats"

    def kill(self):
        """The worker is killed at each call of a run, before and after it was taken; another one goes on."""
        runs, self.engine.forgiving = [], True
        for name in ("claim", "parallel", "three"):
            for k in range(1, 5):
                worker = self.workers[-1]
                run = self.engine.start("run_kill_%s_%d" % (name, k), name, {"input": {"customer": "ada"}, "faults": {k: "late"}, "late": 5, "slow": 0.1})
                until = time.monotonic() + DEADLINE
                with self.engine.lock:
                    while run.calls < k and run.end is None and time.monotonic() < until:
                        self.engine.changed.wait(0.05)
                worker.kill()
                worker.wait()
                self.engine.drain()  # what it has done is done before anybody is asked whether it was
                with self.engine.lock:
                    if run.worker:
                        self.engine.lapse(run)
                self.worker()
                runs.append(run)
        self.wait(runs)
        problems = [p for p in (self.judge(run, lambda r: r.end["state"] == "completed") for run in runs) if p]
        self.result("killed at %d calls" % len(runs), not problems, "\n# ".join(problems[:5]))

    def late(self):
        """A turn that is handed out to a claim that has waited: much of its lease is over, and it says no more than any other."""
        until = time.monotonic() + DEADLINE
        with self.engine.lock:
            while not 1.8 < time.monotonic() - self.engine.waits < 2.3 and time.monotonic() < until:
                self.engine.changed.wait(0.05)
        run = self.engine.start("run_late", "three", {})
        self.wait([run])
        problem = self.judge(run, lambda r: r.end["state"] == "completed" and r.calls == 3)
        self.result("a claim that has waited costs no call", not problem, problem)

    def stop(self):
        """Told to stop in the middle of a step, a worker ends the step and gives the run back."""
        run = self.engine.start("run_stop", "long", {"input": {"ms": 1000}})
        until = time.monotonic() + DEADLINE
        with self.engine.lock:
            while not any(e["state"] == "begun" for e in run.entries) and time.monotonic() < until:
                self.engine.changed.wait(0.1)
        last = self.workers[-1]
        last.send_signal(signal.SIGTERM)
        code = last.wait(30)
        self.result("a worker that is stopped gives back what it has", code == 0 and getattr(run, "released", run.end is not None) and steps(run) == ["long"],
                    "exit code %s, %s" % (code, run.status))
        self.worker()
        self.wait([run])
        problem = self.judge(run, output({"out": {"step": "long"}}))
        self.result("and another one goes on", not problem, problem)

    def used(self):
        """Of the worker: seconds of a processor, and bytes of memory."""
        with open("/proc/%d/stat" % self.workers[-1].pid) as file:
            words = file.read().rpartition(")")[2].split()
        return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK"), int(words[21]) * os.sysconf("SC_PAGE_SIZE")

    def many(self, n):
        """A journal of n steps is replayed once, by a step more and some naps: the run, and what its worker has used for it."""
        scene = {"input": {"n": n + 1, "naps": NAPS}, "journal": [entry("step", "s", n=i, output={"step": "s"}) for i in range(n)]}
        seconds, bytes = self.used()
        run = self.engine.start("run_many_%d" % n, "many", scene)
        self.wait([run])
        return run, self.used()[0] - seconds, self.used()[1] - bytes

    def big(self):
        """Seconds of a busy machine say nothing, so what is asked is: does it grow with the journal alone, and what was told how often?"""
        some, less, _ = self.many(2500)
        run, more, bytes = self.many(10000)
        problem = self.judge(run, output({"n": 10001})) or self.judge(some, output({"n": 2501}))
        print("# %s: a journal of 10,000 steps is replayed in %.2f s of a processor, one of 2,500 in %.2f s; %.0f MB" % (self.client, more, less, bytes / 1e6))
        self.result("a journal of 10,000 steps is replayed", not problem and steps(run) == ["s"] and run.turns == NAPS + 1, problem or run.turns)
        self.result("in a time that grows as it does", more < 8 * max(less, 0.1), "%.2f s, and %.2f s for a fourth" % (more, less))
        self.result("in memory that is bounded", bytes < 200e6, bytes)
        self.result("a warm worker is told only what is new", run.told_n <= 10001 + 2 * NAPS and run.pages == 0,
                    "%d entries, %d bytes, %d pages" % (run.told_n, run.told_bytes, run.pages))


def main():
    it = Conformance(sys.argv[1], sys.argv[2:])
    try:
        it.play()
        it.big()
        it.late()
        if not BRIEF:
            it.kill()
        it.stop()
        for words in [w for w in it.engine.wrong if w.startswith("claim:")][:3]:
            it.result("claims", False, words)
    finally:
        for worker in it.workers:
            worker.kill()
            worker.wait()
    return it.bad > 0


sys.exit(main())
