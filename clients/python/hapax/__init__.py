"""Hapax for Python: functions whose steps are journalled, and the client of the API. Python 3.9 and later, standard
library only."""
import asyncio
import concurrent.futures
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
from .run import Context, EntryError, Final, NotDone, Run

__all__ = ["AsyncClient", "Client", "Context", "EntryError", "Final", "Function", "HapaxError", "NotDone", "Worker",
           "duration", "function", "test", "work", "work_async"]


class Function:
    def __init__(self, name, version, code):
        self.name, self.version, self.code, self.is_async = name, str(version), code, inspect.iscoroutinefunction(code)

    def begin(self, ctx, input):
        return self.code(ctx, input) if self.is_async else lambda: self.code(ctx, input)

    def __call__(self, ctx, input):
        return self.code(ctx, input)


def function(name, version="1"):
    """@hapax.function("checkout", version="1") before `def checkout(ctx, order)`, or `async def`."""
    return lambda code: Function(name, version, code)


def _arguments(fn):
    """How many it takes; a signature is slow to make, and seldom needed."""
    code = None if hasattr(fn, "__wrapped__") else getattr(fn, "__code__", None)
    return code.co_argcount - inspect.ismethod(fn) if code else len(inspect.signature(fn).parameters)


class Worker:
    """Takes turns until stop() is called; then what is under way is ended, or given back."""

    def __init__(self, functions, concurrency=16, lease="30s", name=None, keep=200, loop=None, log=None, api=None,
                 fakes=None, **connection):
        self.functions = {(f.name, f.version): f for f in functions}
        self.api, self.lease_ms, self.loop = api or Api(**connection), duration(lease), loop
        self.concurrency, self.keep, self.fakes = concurrency, keep, fakes  # fakes: for tests
        self.name = name or "%s-%d-%s" % (socket.gethostname(), os.getpid(), uuid.uuid4().hex[:8])
        self.log, self.told, self.failed = log or (lambda words: print(words, file=sys.stderr)), None, 0
        self.stopping, self.lock, self.slots = threading.Event(), threading.Lock(), threading.Semaphore(concurrency)
        self.active, self.warm = {}, {}

    def stop(self):
        self.stopping.set()

    def call(self, fn, key, timeout=None, attempt=None):
        """Executes a step: a function, or a coroutine function in the loop of asyncio."""
        more = [attempt] if attempt and _arguments(fn) > 1 else []
        if inspect.iscoroutinefunction(fn):
            return asyncio.run_coroutine_threadsafe(fn(key, *more), self.home()).result(timeout)
        if not timeout:
            out = fn(key, *more)
            return asyncio.run_coroutine_threadsafe(out, self.home()).result() if inspect.iscoroutine(out) else out
        ended = concurrent.futures.Future()

        def apart():
            try:
                ended.set_result(fn(key, *more))
            except BaseException as error:
                ended.set_exception(error)
        threading.Thread(target=apart, daemon=True).start()
        return ended.result(timeout)

    def home(self):
        with self.lock:
            if not self.loop:
                self.loop = asyncio.new_event_loop()
                threading.Thread(target=self.loop.run_forever, daemon=True).start()
        return self.loop

    def enter(self, t, sent):
        """The run of a turn, in memory: as it is there, or anew."""
        id, fn = t["run"], self.functions[t["function"], t["version"]]
        before = t["from"] and self.active.get(id)
        if before:
            before.gone.wait(1)  # its turn is over, and it is about to hear so
        with self.lock:
            run = self.warm.pop(id, None)
            if run and not (0 < t["from"] <= run.seq and run.fn is fn):
                run.close()
                run = None
            if not run:
                run, t["lost"] = Run(self, t, fn), t["from"] > 0  # it was here, and is not any more
            self.active[id] = run
            t["heard"], run.seq = run.seq, t["seq"]  # and so it is told to the next claim
            run.fence, run.sent, run.lease_end = t["fence"], sent, sent + self.lease_ms / 1000
            run.gone = threading.Event()
        return run

    def journal(self, t):
        """Whole, in pages where it is long."""
        journal, more = ([], True) if t.get("lost") else (t["journal"], t["more"])
        while more:
            after = journal[-1]["seq"] if journal else 0
            page = self.api.text("GET", "functions/runs/%s/journal?fence=%d&after=%d" % (t["run"], t["fence"], after))
            journal, more = journal + page["journal"], page["more"]
        return [c for c in journal if c["seq"] > t["heard"]]  # of what it has not heard since it asked

    def take(self, run, t):
        gone, keep = run.gone, False
        try:
            keep = run.turn(t, self.journal(t))
            with self.lock:
                keep = keep and self.active.get(run.id) is run
                if keep:
                    self.warm[run.id] = run
                if len(self.warm) > self.keep:
                    self.warm.pop(next(iter(self.warm))).close()
        except Exception as error:
            self.log("%s: %r" % (run.id, error))
        finally:
            with self.lock:
                if self.active.get(run.id) is run:
                    del self.active[run.id]
            gone.set()
            if not keep:
                run.close()
            self.slots.release()

    def beat(self):
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            while not self.stopping.wait(max(0.02, self.lease_ms / 12000)) or self.active:
                with self.lock:
                    runs = list(self.active.values())
                list(pool.map(lambda run: run.heartbeat(), runs))
                if self.stopping.is_set():
                    time.sleep(0.02)

    def tell(self, words):
        if words != self.told:
            self.told = words
            self.log("hapax: " + words)

    def claim(self, free):
        """The turns for which there is room, and when they were asked for."""
        functions = [{"name": name, "version": version} for name, version in self.functions]
        asks, where = ", ".join("%s %s" % f for f in self.functions), self.api.connect[1]
        asks = "asks %s for turns of %s" % (where, asks)
        if self.told is None:
            self.tell(asks)
        with self.lock:
            warm = [{"run": id, "seq": run.seq} for id, run in {**self.warm, **self.active}.items()]
        sent, wait_ms = time.monotonic(), min(5000, self.lease_ms // 2)
        ask = json.dumps({"worker": self.name, "functions": functions, "max": free, "waitMs": wait_ms,
                          "leaseMs": self.lease_ms, "warm": warm})
        try:
            status, body, _ = self.api.once("POST", "functions/claim", ask, timeout=wait_ms / 1000 + self.api.timeout)
            problem = status >= 300 and HapaxError(status, body)
        except Exception as error:
            status, problem = 503, error
        if not problem:
            self.failed = 0
            self.tell(asks)
            return body["turns"], sent
        if status < 500 and status != 429:
            self.stop()
            raise problem
        self.failed += 1
        if self.failed == 3:
            self.tell("%s takes no call, and is asked on: %s" % (where, problem))
        time.sleep(random.uniform(0.1, 0.5))
        return [], sent

    def run(self):
        """Works until it is stopped."""
        threading.Thread(target=self.beat, daemon=True).start()
        with concurrent.futures.ThreadPoolExecutor(self.concurrency) as pool:
            while not self.stopping.is_set():
                if not self.slots.acquire(timeout=0.1):
                    continue
                free = 1
                while free < 25 and self.slots.acquire(blocking=False):
                    free += 1
                turns, sent = self.claim(free)
                for t in turns:
                    pool.submit(self.take, self.enter(t, sent), t)
                for _ in range(free - len(turns)):
                    self.slots.release()
        for run in self.warm.values():
            run.close()
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
