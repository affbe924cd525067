"""Hapax for Python: functions whose steps are journalled, and the client of the API. Python 3.9 and later, standard library only."""
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

__all__ = ["AsyncClient", "Client", "Context", "EntryError", "Final", "Function", "HapaxError", "NotDone", "Worker", "duration", "function", "test", "work", "work_async"]


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


class Worker:
    """Takes turns until stop() is called; then what is under way is ended, or given back."""

    def __init__(self, functions, concurrency=16, lease="30s", name=None, keep=200, loop=None, log=None, api=None, fakes=None, **connection):
        self.functions = {(f.name, f.version): f for f in functions}
        self.api, self.lease_ms, self.concurrency, self.keep, self.loop = api or Api(**connection), duration(lease), concurrency, keep, loop
        self.fakes = fakes  # for tests
        self.name = name or "%s-%d-%s" % (socket.gethostname(), os.getpid(), uuid.uuid4().hex[:8])
        self.log = log or (lambda words: print(words, file=sys.stderr))
        self.stopping, self.lock, self.slots = threading.Event(), threading.Lock(), threading.Semaphore(concurrency)
        self.active, self.warm = {}, {}

    def stop(self):
        self.stopping.set()

    def call(self, fn, key, timeout=None, attempt=None):
        """Executes a step: a function, or a coroutine function in the loop of asyncio."""
        more = [attempt] if attempt and len(inspect.signature(fn).parameters) > 1 else []
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
            run.fence, run.sent, run.lease_end, run.gone = t["fence"], sent, sent + self.lease_ms / 1000, threading.Event()
        return run

    def take(self, run, t, sent):
        id, journal, more, gone, keep = t["run"], t["journal"], t["more"], run.gone, False
        try:
            if t.get("lost"):
                journal, more = [], True
            while more:
                page = self.api.text("GET", "functions/runs/%s/journal?fence=%d&after=%d" % (id, t["fence"], journal[-1]["seq"] if journal else 0))
                journal, more = journal + page["journal"], page["more"]
            keep = run.turn(t, [c for c in journal if c["seq"] > t["heard"]], sent)  # what was before that it has heard since it asked for turns
            with self.lock:
                keep = keep and self.active.get(id) is run
                if keep:
                    self.warm[id] = run
                if len(self.warm) > self.keep:
                    self.warm.pop(next(iter(self.warm))).close()
        except Exception as error:
            self.log("%s: %r" % (id, error))
        finally:
            with self.lock:
                if self.active.get(id) is run:
                    del self.active[id]
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

    def run(self):
        """Works until it is stopped."""
        wait_ms, functions = min(5000, self.lease_ms // 2), [{"name": n, "version": v} for n, v in self.functions]
        where, failed, asks = self.api.connect[1], 0, "hapax: asks %s for turns of %s" % (self.api.connect[1], ", ".join("%s %s" % f for f in self.functions))
        self.log(asks)
        threading.Thread(target=self.beat, daemon=True).start()
        with concurrent.futures.ThreadPoolExecutor(self.concurrency) as pool:
            while not self.stopping.is_set():
                if not self.slots.acquire(timeout=0.1):
                    continue
                free = 1
                while free < 25 and self.slots.acquire(blocking=False):
                    free += 1
                with self.lock:
                    warm = [{"run": id, "seq": run.seq} for id, run in {**self.warm, **self.active}.items()]
                sent, turns, problem = time.monotonic(), [], None
                try:
                    ask = {"worker": self.name, "functions": functions, "max": free, "waitMs": wait_ms, "leaseMs": self.lease_ms, "warm": warm}
                    status, body, _ = self.api.once("POST", "functions/claim", json.dumps(ask), timeout=wait_ms / 1000 + self.api.timeout)
                    if status < 300:
                        turns = body["turns"]
                    elif status < 500 and status != 429:
                        raise HapaxError(status, body)
                    else:
                        problem = (body or {}).get("detail") or status
                except HapaxError:
                    self.stop()
                    raise
                except Exception as error:
                    problem = error
                if problem:
                    failed += 1
                    if failed == 3:
                        self.log("hapax: %s takes no call, and is asked on: %s" % (where, problem))
                    time.sleep(random.uniform(0.1, 0.5))
                else:
                    if failed > 2:
                        self.log(asks)
                    failed = 0
                for t in turns:
                    pool.submit(self.take, self.enter(t, sent), t, sent)
                for _ in range(free - len(turns)):
                    self.slots.release()
        for run in self.warm.values():
            run.close()


def test(function, **options):
    """Runs it against an engine in memory, and once more for each of its calls, killed before and after it: see testing.py."""
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
