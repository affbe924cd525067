"""Tests of functions: a function is run against an engine in memory, with fakes for its steps, and with time that is skipped whenever
nothing but time is waited for; and then once more for each of its calls of the journal, with a worker that dies just before it was sent, or just after it was taken. It has to
come to the same end, with each effect once."""
import json
import os
import re
import subprocess
import threading
import time

from . import Worker
from .client import OVER, Api, Client, HapaxError, encode


class Killed(BaseException):
    """The worker has died: from here on it says and hears nothing."""


class MortalApi(Api):
    def __init__(self, crash, died, **place):
        super().__init__(**place)
        self.crash, self.died, self.calls, self.dead, self.one = crash, died, 0, False, threading.Lock()

    def kill(self):
        with self.one:
            first, self.dead = not self.dead, True
        self.died(first)
        raise Killed()

    def once(self, *all, **named):
        if self.dead:
            raise Killed()
        return super().once(*all, **named)

    def text(self, method, path, *more, **named):
        with self.one:
            self.calls += method == "POST" and path.endswith("/journal")
            hit = self.crash and self.calls == self.crash[0] and method == "POST"
        if self.dead or hit and self.crash[1] == "before":
            self.kill()
        answer = super().text(method, path, *more, **named)
        if hit:
            self.kill()
        return answer


def _play(server, function, input, steps, events, approvals, functions, timeout, crash):
    place, effects, outputs, workers = {"server": server, "workspace": "crash-%d-%s" % crash if crash else "plain"}, [], {}, []
    client, sent, over = Client(**place), set(), threading.Event()
    replacing = threading.Lock()
    skip = lambda **by: client.call("POST", "test-clock", by)  # noqa: E731

    def fakes(name, real, effect):
        def fake(key):
            effects.append((name, key, effect))
            outputs[key] = (steps or {}).get(name, real)(key)
            return outputs[key]
        return fake

    def worker(crash=None):
        def run():
            try:
                it.run()
            except Killed:
                pass
        def replace(first):
            it.stop()
            with replacing:
                if not over.is_set():
                    skip(skipMs=2000)  # its lease is over, or that of a turn which it was given when it was dead
                if first and not over.is_set():  # else it has died with its last call, and nobody takes its place
                    worker()
        api = MortalApi(crash, replace, **place)
        it = Worker(functions or [function], api=api, fakes=fakes, lease="2s", concurrency=4, log=lambda words: None)
        workers.append(it)
        threading.Thread(target=run, daemon=True).start()
        return api
    api = worker(crash)
    try:
        until, run = time.monotonic() + timeout, None
        while not run:  # a name can be started as soon as it is polled for
            try:
                run = client.start(function, input)
            except HapaxError:
                if time.monotonic() > until:
                    raise
                time.sleep(0.02)
        for event, data in (events or {}).items():
            client.signal(run["id"], event, data)
        while run["status"] not in OVER:
            if time.monotonic() > until:
                raise AssertionError("%s is %s at %s" % (run["id"], run["status"], run["currentStep"]))
            time.sleep(0.02)
            run = client.show(run["id"])
            acted = run["status"] != "WAITING"
            for step in run["steps"]:
                base, n = re.fullmatch(r"(.*?)(?:#(\d+))?", step["name"], re.S).groups()
                key = "%s/%s/%s" % (run["id"], encode(base), n or 0)
                try:
                    if step["status"] == "WAITING" and step["name"] in (approvals or {}) and step["name"] not in sent:
                        acted = True
                        client.approve(run["id"], step["name"], **approvals[step["name"]])
                        sent.add(step["name"])
                    if step["status"] == "UNKNOWN":  # the test is the person who knows
                        acted = True
                        client.resolve(run["id"], step["name"], **({"outcome": "done", "output": outputs[key]} if key in outputs else {"outcome": "not_done"}))
                except HapaxError:
                    pass
            if not acted:
                skip(toNext=True)
        return run, effects, api.calls
    finally:
        with replacing:
            over.set()
        for it in workers:
            it.stop()


def test(function, input=None, steps=None, events=None, approvals=None, functions=None, crash=True, loose=False, timeout=60, hapax=None):
    """Its status, output, error, effects (the names of the steps that were executed) and the number of crashes. AssertionError: it broke."""
    program = hapax or os.environ.get("HAPAX") or "hapax"
    engine = subprocess.Popen([program, "serve", "--db", "sqlite::memory:", "--test-clock", "--listen", "127.0.0.1:0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        server = next((line.split()[1] for line in engine.stdout if line.startswith("ready ")), None)
        if not server:
            raise RuntimeError("%s serve has ended" % program)
        play = lambda crash: _play(server, function, input or {}, steps, events, approvals, functions, timeout, crash)  # noqa: E731
        run, effects, calls = play(None)
        crashes = [(at, when) for at in range(1, calls + 1) for when in ("before", "after")] if crash else []
        keys = lambda run, effects: sorted({key.replace(run["id"], "RUN") for _, key, _ in effects})  # noqa: E731
        for at, when in crashes:  # one after the other: time is skipped for all
            other, did, _ = play((at, when))
            claimed = [key for _, key, effect in did if effect == "claimed"]
            same = [("status", other["status"], run["status"]), ("effects", keys(other, did), keys(run, effects)), ("claimed", len(claimed), len(set(claimed)))]
            same += [] if loose else [("output", json.dumps(other["output"], sort_keys=True), json.dumps(run["output"], sort_keys=True))]
            for what, a, b in same:
                assert a == b, "killed %s call %d: %s %s, and %s without" % (when, at, what, a, b)
        return {"status": run["status"], "output": run["output"], "error": run["error"], "effects": [name for name, _, _ in effects], "crashes": len(crashes)}
    finally:
        engine.kill()
        engine.wait()
