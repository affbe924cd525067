"""Hapax for Python: functions whose steps are journalled, and the client of the API. Python 3.9 and later, standard
library only."""
import _thread
import asyncio
import functools
import inspect
import json
import os
import random
import socket
import sys
import threading
import time
import uuid

from .client import Api, AsyncClient, Client, HapaxError, duration
from .run import Context, EntryError, Final, NotDone, Run, apart

__all__ = ["AsyncClient", "Client", "Context", "EntryError", "Final", "Function", "HapaxError", "NotDone", "Worker",
           "duration", "function", "test", "work", "work_async"]


class Function:
    def __init__(self, name, version, code):
        self.name, self.version, self.code, self.is_async = name, str(version), code, inspect.iscoroutinefunction(code)

    def __call__(self, ctx, input):
        return self.code(ctx, input)


def function(name, version="1"):
    """@hapax.function("checkout", version="1") before `def checkout(ctx, order)`, or `async def`."""
    return lambda code: Function(name, version, code)


def _arguments(fn):
    """How many it takes; a signature is slow to make, and seldom needed."""
    code = None if hasattr(fn, "__wrapped__") else getattr(fn, "__code__", None)
    return code.co_argcount - inspect.ismethod(fn) if code else len(inspect.signature(fn).parameters)


@functools.lru_cache(None)
def _loop():
    """Where asynchronous steps are executed, if nobody has said where."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, daemon=True).start()
    return loop


class Worker:
    """Takes turns until stop() is called; then what is under way is ended, or given back."""

    def __init__(self, functions, concurrency=16, lease="30s", name=None, keep=200, loop=None, log=None, api=None,
                 fakes=None, **connection):
        self.functions = {(f.name, f.version): f for f in functions}
        self.api, self.lease_ms, self.loop = api or Api(**connection), duration(lease), loop
        self.concurrency, self.keep, self.fakes = concurrency, keep, fakes  # fakes: for tests
        self.name = name or "%s-%d-%s" % (socket.gethostname(), os.getpid(), uuid.uuid4().hex[:8])
        self.log, self.failed = log or (lambda words: print(words, file=sys.stderr)), 0
        self.polled = [{"name": f.name, "version": f.version} for f in functions]
        asked = ", ".join("%(name)s %(version)s" % f for f in self.polled)
        self.asks = "hapax: asks %s for turns of %s" % (self.api.connect[1], asked)
        self.stopping, self.changed, self.active, self.warm = threading.Event(), threading.Condition(), {}, {}

    def stop(self):
        self.stopping.set()

    def call(self, fn, key, attempt=None, timeout=None):
        """Executes a step, in its time: a function, or a coroutine in the loop of asyncio."""
        more = [attempt] if attempt and _arguments(fn) > 1 else []
        seconds = timeout and duration(timeout) / 1000
        out = apart(fn, key, *more).result(seconds) if seconds else fn(key, *more)
        if inspect.iscoroutine(out):
            return asyncio.run_coroutine_threadsafe(out, self.loop or _loop()).result(seconds)
        return out

    def enter(self, t, sent):
        """The run of a turn: with what is in memory of it, or anew."""
        id, fn = t["run"], self.functions[t["function"], t["version"]]
        before = t["from"] and self.active.get(id)
        if before:
            before.gone.wait(1)  # its turn is over, and it is about to hear so
        with self.changed:
            known = self.warm.pop(id, None)
            known = known if known and 0 < t["from"] <= known.seq and known.fn is fn else None
            run = self.active[id] = Run(self, t, fn, sent, known)
        return run, t, known

    def journal(self, t, known):
        """What is not known of it, in pages where it is long."""
        journal, more = (t["journal"], t["more"]) if known or not t["from"] else ([], True)
        while more:
            after = journal[-1]["seq"] if journal else 0
            page = self.api.text("GET", "functions/runs/%s/journal?fence=%d&after=%d" % (t["run"], t["fence"], after))
            journal, more = journal + page["journal"], page["more"]
        return journal

    def take(self, run, t, known):
        keep = False
        try:
            keep = run.turn(self.journal(t, known))
        except BaseException as error:
            self.log("%s: %r" % (run.id, error))
        with self.changed:
            if self.active.get(run.id) is run:
                del self.active[run.id]
                self.warm.update({run.id: run} if keep else {})
            if len(self.warm) > self.keep:
                del self.warm[next(iter(self.warm))]
            self.changed.notify_all()
        run.gone.set()

    def claim(self, free):
        """Takes the turns for which there is room."""
        with self.changed:
            warm = [{"run": id, "seq": run.seq} for id, run in {**self.warm, **self.active}.items()]
        sent, wait_ms = time.monotonic(), min(5000, self.lease_ms // 2)
        ask = json.dumps({"worker": self.name, "functions": self.polled, "max": free, "waitMs": wait_ms,
                          "leaseMs": self.lease_ms, "warm": warm})
        try:
            status, body, _ = self.api.once("POST", "functions/claim", ask, timeout=wait_ms / 1000 + self.api.timeout)
            problem = HapaxError(status, body) if status >= 300 else None
        except Exception as error:
            status, problem = 503, error
        if not problem:
            if self.failed > 2:
                self.log(self.asks)
            self.failed = 0
            for t in body["turns"]:
                _thread.start_new_thread(self.take, self.enter(t, sent))
        elif status < 500 and status != 429:
            raise problem
        else:
            self.failed += 1
            if self.failed == 3:
                self.log("hapax: %s takes no call, and is asked on: %s" % (self.api.connect[1], problem))
            time.sleep(random.uniform(0.1, 0.5))

    def run(self):
        """Works until it is stopped."""
        self.log(self.asks)
        try:
            while not self.stopping.is_set():
                with self.changed:
                    self.changed.wait_for(lambda: len(self.active) < self.concurrency, 0.1)
                    free = self.concurrency - len(self.active)
                if free > 0:
                    self.claim(min(free, 25))
        finally:
            self.stop()
            with self.changed:
                self.changed.wait_for(lambda: not self.active)
            self.api.close()


def test(function, **options):
    """Runs it against an engine in memory, and once more for each order of two workers: see testing.py."""
    from .testing import test as run
    return run(function, **options)


def work(functions, **options):
    """Works on these functions, until the process ends."""
    Worker(functions, **options).run()


async def work_async(functions, **options):
    """The same in the loop of asyncio that is running: it is where asynchronous steps are executed."""
    loop = asyncio.get_running_loop()
    worker = Worker(functions, loop=loop, **options)
    try:
        await loop.run_in_executor(None, worker.run)
    finally:
        worker.stop()
