"""One run of a function, in the memory of a worker: the code, and the journal that it is played against.

What the code asks for (a step, a sleep, an event …) is an entry with a name; what has ended is handed to it in order of
the journal's sequence, one by one, and each time the code goes on until it asks for nothing more. So it goes on the
same way live as in a replay. Nothing is executed before the entries ahead of it have been answered. Of the threads of
a run one is at work at a time: the turn's own, or a piece of synchronous code that it has let go on; what executes
steps, and heartbeats, send it mail.
"""
import collections
import dataclasses
import inspect
import json
import os
import queue
import random
import threading
import time
import typing
import uuid

from .client import HapaxError, duration, encode


class Final(Exception):
    """A step that raises it is not tried again."""


class NotDone(Exception):
    """A claimed step that raises it has certainly done nothing: it is tried again."""


class EntryError(Exception):
    """What an entry failed of: TIMEOUT, REJECTED, CHILD_FAILED, or a step's own error."""

    def __init__(self, e, error=None):
        self.error, self.step = error or e.error or {}, "%s#%d" % e.id if e.n else e.name
        said = self.error if isinstance(self.error, dict) else {"message": str(self.error)}
        self.code = said.get("code")
        super().__init__(said.get("message"))


class Stop(BaseException):
    """The run is not ours any more: the code goes on no further."""


def error_of(error):
    code = getattr(error, "code", None)
    return {**({"code": str(code)} if code else {}), "message": str(error)[:WORDS_MAX] or type(error).__name__}


def failure_of(error):
    return {"state": "failed", "error": error_of(error)}


def failure(code, message, **more):
    return {"state": "failed", "error": {"code": code, "message": message}, **more}


INSTANT, MARKS, WORKS = ("value", "attribute"), ("compensate", "drop"), ("step", "undo")
RELEASED = {"state": "released"}
LOST = ("STALE_FENCE", "SEQ_CONFLICT", "NOT_FOUND")  # it is not ours any more
CALL_MAX, WORDS_MAX = 1000, 10000  # entries of one call; what is kept of an error


@dataclasses.dataclass
class Work:
    """What is to be executed, and how."""
    fn: typing.Callable
    effect: str = "keyed"
    on_unknown: typing.Optional[str] = None
    probe: typing.Optional[typing.Callable] = None
    retry: typing.Optional[dict] = None
    timeout: typing.Any = None
    compensate: typing.Optional[typing.Callable] = None

    def __post_init__(self):
        after = "retry" if self.effect != "claimed" else "probe" if self.probe else "hold"
        self.on_unknown = self.on_unknown or after
        self.probe = None if self.on_unknown == "retry" else self.probe
        self.fields = {"effect": self.effect, "onUnknown": self.on_unknown}
        self.seconds = self.timeout and duration(self.timeout) / 1000
        self.undo = self.compensate and Work(self.compensate)


class Entry:
    """What the wire says of it, and here: asked (by the code), over (handed to the code, or nobody waits for it), sent
    (the engine knows it), busy (being executed), result (of that, not sent yet), due."""
    state, attempt, place, fields, due = "new", 0, 0, {}, 0
    output = error = key = retryAfterMs = onUnknown = result = work = undo = view = handle = None
    asked = over = sent = busy = False

    def __init__(self, kind, name, n, about=None):
        self.kind, self.name, self.n, self.about = kind, name, n, about
        self.id, self.brief = (name, n), {"kind": kind, "name": name, "n": n}

    def update(self, change, **more):
        self.retryAfterMs = None
        self.__dict__.update(change, **more)
        if self.retryAfterMs is not None:
            self.due = time.monotonic() + self.retryAfterMs / 1000

    @property
    def ended(self):
        return self.state in ("done", "dropped") or self.state == "failed" and self.retryAfterMs is None

    @property
    def happened(self):
        """And is to be known, whatever becomes of the turn."""
        return self.result or self.kind == "compensate" and (self.about.sent or self.about.result)

    @property
    def ready(self):
        if self.kind not in WORKS or self.busy or self.result or self.ended:
            return False
        if self.state == "unknown":
            return (self.onUnknown or self.work.on_unknown) != "hold"
        return self.state != "failed" or self.due <= time.monotonic()


class Handle:
    """What is not there yet. In synchronous functions result() waits for it, in asynchronous ones `await`."""
    done, value, error = False, None, None

    def __init__(self, run, entry=None):
        self.run, self.entry, self.waiters = run, entry, []

    def settle(self, value=None, error=None):
        if not self.done:
            self.done, self.value, self.error = True, value, error
            for waiter in self.waiters:
                waiter(self)
        return self

    def get(self):
        if self.error is not None:
            raise self.error
        return self.value

    def __await__(self):
        if not self.done:
            yield self
        return self.get()

    def result(self):
        self.run.block(self)
        return self.get()


class Threaded:
    """Synchronous code with the face of a coroutine: in a thread of its own, at work only while send() waits for it."""

    def __init__(self, code):
        self.code, self.go, self.said, self.closed = code, threading.Semaphore(0), queue.SimpleQueue(), False
        self.thread = threading.Thread(target=self.body, daemon=True)

    def body(self):
        try:
            self.said.put((None, StopIteration(self.code())))
        except BaseException as error:
            self.said.put((None, RuntimeError("StopIteration") if isinstance(error, StopIteration) else error))

    def send(self, _):
        self.go.release() if self.thread.ident else self.thread.start()
        waits, end = self.said.get()
        if end:
            raise end
        return waits

    def wait(self, handle):
        """In the thread: until the handle is settled."""
        self.said.put((handle, None))
        self.go.acquire()
        if self.closed:
            raise Stop()

    def close(self):
        self.closed = True
        self.go.release()


class Task:
    """A piece of the code: a coroutine, or what has its face."""

    def __init__(self, run, code):
        self.run, self.code, self.handle = run, code if inspect.iscoroutine(code) else Threaded(code), Handle(run)
        run.tasks.append(self)
        run.ready.append(self)

    def resume(self):
        self.run.current = self
        try:
            waits = self.code.send(None)
            while not isinstance(waits, Handle):
                words = "a function waits for what ctx gives it, and for nothing else: put this into a step"
                waits = self.code.throw(Final(words))
            waits.waiters.append(lambda _: self.run.ready.append(self))
        except StopIteration as end:
            self.handle.settle(end.value)
        except Exception as error:
            self.handle.settle(error=error)


class Run:
    def __init__(self, worker, turn, fn):
        self.worker, self.fn, self.id, self.input, self.seq = worker, fn, turn["run"], turn["input"], 0
        self.entries, self.undos, self.uses, self.marked, self.pending = {}, {}, {}, set(), {}
        self.places, self.at, self.outbox, self.inbox, self.groups = [], 0, [], [], []
        self.tasks, self.ready, self.deliveries = [], collections.deque(), collections.deque()
        self.mail, self.calling = queue.SimpleQueue(), threading.Lock()
        self.current = self.main = self.done = self.halt = self.dead = self.ended = self.lone = None
        self.running, self.asked, self.replaying, self.cancelled, self.lease_end = 0, 0, False, False, 0

    def die(self, why):
        self.dead = self.dead or why
        self.mail.put(lambda: None)

    def lapsed(self):
        return time.monotonic() > self.lease_end

    def close(self):
        """The code is left where it is, and its threads end."""
        self.die("closed")
        for task in self.tasks:
            task.code.close()

    # --- what the code asks for, in order

    def ask(self, kind, name, fields, **more):
        if not (isinstance(name, str) and name):
            raise TypeError("a %s needs a name" % kind)
        n = self.uses.get(name, 0)
        ahead = [] if self.cancelled else self.places[self.at:self.at + 1]
        e, following = self.entries.get((name, n)), ahead[0] if ahead else None
        if n and not self.entries[name, n - 1].over:
            words = '"%s" is under way already: what runs at the same time needs names of its own' % name
            return Handle(self).settle(error=Final(words))
        if following and (following is not e or e.kind != kind):
            self.diverge(following, {"kind": kind, "name": name, "n": n})
        if self.dead or self.halt or self.cancelled and not (e and e.kind == kind):
            return Handle(self)  # a cancelled run stops at what is not in its journal
        self.at += following is not None
        self.uses[name] = n + 1
        if not e:
            e = self.entries[name, n] = Entry(kind, name, n)
            self.outbox.append(e)
        e.__dict__.update(more, fields=fields, asked=True, place=self.asked, handle=Handle(self, e))
        self.asked += 1
        if kind in INSTANT:
            if e.state == "new":
                e.state, e.output = "done", fields.get("output")
            e.over = True
            return e.handle.settle(e.output)
        self.pending[e.id] = e
        if e.work and e.work.undo:
            self.compensate(e, e.work.undo)
        return e.handle

    def block(self, handle):
        """A synchronous piece of code waits. In a replay what is next is often just that, and nobody else waits."""
        while not handle.done:
            e = self.deliveries[0] if self.deliveries and not self.ready else None
            if e and e.handle is handle and not handle.waiters and not self.halt:
                self.deliver(self.deliveries.popleft())
            else:
                self.current.code.wait(handle)

    def gather(self, items, race):
        handles = [x if isinstance(x, Handle) else Task(self, x).handle for x in items]
        whole, entries = Handle(self), [h.entry for h in handles]
        group = [] if race or None in entries else [entries]
        self.groups += group

        def one(handle):
            if whole.done or not race and handle.error is None and not all(h.done for h in handles):
                return
            whole.settle(handle.value if race else [h.value for h in handles], handle.error)
            self.groups = [g for g in self.groups if g not in group]
            for e in filter(None, entries if race else []):
                self.drop(e)
        for h in handles:
            if h.done:
                one(h)
            h.waiters.append(one)
        return whole if handles else whole.settle([])

    def diverge(self, expected, found=None):
        self.halt = self.halt or {"state": "diverged", "expected": expected.brief, "found": found or {"kind": "end"}}

    def mark(self, kind, e):
        """Said once about an entry."""
        if (kind, e.id) not in self.marked:
            self.marked.add((kind, e.id))
            self.outbox.append(Entry(kind, e.name, e.n, about=e))

    def compensate(self, e, undo):
        e.undo = undo
        self.mark("compensate", e)

    def drop(self, e):
        """A race's loser; what is being executed, or in doubt, comes to its end, and nobody waits for it."""
        if e.over:
            return
        e.over = True
        if e.state != "unknown":
            self.pending.pop(e.id, None)
            if not e.busy and not e.ended and not (e.kind == "step" and e.state == "new"):
                self.mark("drop", e)

    # --- what has ended, handed to the code in order of seq

    def take(self, c):
        home, id = self.undos if c["kind"] == "undo" else self.entries, (c["name"], c["n"])
        if c["kind"] in MARKS:
            self.marked.add((c["kind"], id))
            return
        if id not in home:
            home[id] = Entry(c["kind"], *id)
            if c["kind"] != "undo":
                self.places.append(home[id])
        e = home[id]
        e.update(c, sent=True)
        if c["kind"] not in ("undo",) + INSTANT and e.ended and e.state != "dropped":
            self.deliveries.append(e)

    def play(self, changes):
        for c in changes:
            self.take(c)
        self.places.sort(key=lambda e: e.i)  # in order of seq they come, also from who had a turn meanwhile
        if not self.main:
            self.main = Task(self, self.fn.begin(Context(self, not self.fn.is_async), self.input))
        self.go_on()
        while self.deliveries and not self.halt and not self.dead:
            e = self.deliveries.popleft()
            if e.asked and not e.over:
                self.deliver(e)
                self.go_on()
            elif not e.over and not self.cancelled:
                self.diverge(e, next((p.brief for p in self.pending.values()), None))

    def go_on(self):
        while self.ready and not self.dead:
            self.ready.popleft().resume()
        if self.main.handle.done and not self.done:
            error, self.done = self.main.handle.error, {"state": "completed", "output": self.main.handle.value}
            if error is not None:
                self.done = {**failure_of(error), **({"step": error.step} if isinstance(error, EntryError) else {})}

    def deliver(self, e):
        e.over = True
        self.pending.pop(e.id, None)
        try:
            if e.state != "done":
                raise EntryError(e)
            e.handle.settle(e.view(e) if e.view else e.output)
        except EntryError as error:
            e.handle.settle(error=error)

    def foreseen(self):
        """Where only this worker can end anything the order of seq is known: the code goes on before the answer."""
        known = [e for e in self.outbox if e.kind == "step" and e.result and e.ended and not e.over]
        own = (e.kind == "step" and e.state != "unknown" and (not e.ended or e in known) for e in self.pending.values())
        return known[0] if known and all(own) else None

    # --- what is said to the engine

    def words(self, e):
        """As it is now: what was never begun and has ended is one entry."""
        if e.about:
            return None if e.kind == "drop" and e.about.ended else e.brief
        said = {**e.brief, **({} if e.sent else e.fields)}
        if e.kind in WORKS:
            if e.over and not e.sent and not e.busy and not e.result:
                e.result = failure("DROPPED", "it lost its race before it began")
            said.update(e.result or {"state": "begun"})
        return said

    def call(self, entries, end=None):
        body = {"worker": self.worker.name, "fence": self.fence, "seq": self.seq, "entries": entries,
                "leaseMs": self.worker.lease_ms, **({"end": end} if end else {})}
        return "functions/runs/%s/journal" % self.id, json.dumps(body)

    def post(self, entries, end=None):
        """Repeated until it is answered."""
        sent, (path, text) = time.monotonic(), self.call(entries, end)
        how = {"timeout": self.worker.lease_ms / 3000, "until": lambda: self.lease_end}
        answer = self.worker.api.text("POST", path, text, **how)
        self.heard(answer, sent)
        return answer

    def send(self, end=None, held=None):
        """One call, with all that is to be said but what is held back. False: refused, or the run is not ours."""
        said = [(e, self.words(e)) for e in self.outbox if e is not held][:CALL_MAX]
        self.outbox = [held] if held else self.outbox[CALL_MAX:]
        try:
            with self.calling:  # a heartbeat may be under way
                self.post([words for _, words in said if words], end)
        except Exception as error:
            return self.refused(error, [e for e, _ in said])
        for e, words in said:
            e.sent, e.result = True, None
            e.state = (words or {}).get("state") or ("open" if e.state == "new" else e.state)
            if e.state == "unknown":
                e.onUnknown = "hold"  # what its worker does not know is for a person
        return True

    def refused(self, error, said):
        """The turn comes to an end, and what stands in our memory is thrown away: with what has happened all the same.
        If that is refused, too (it is too large, or the journal full), a person is asked what was done; at last with
        nothing."""
        code, status, failed = getattr(error, "code", None), getattr(error, "status", 0), failure_of(error)
        self.refusals += 1
        if not isinstance(error, HapaxError) or status >= 500 or code in LOST or self.refusals == 4:
            return self.die("lost")
        self.worker.log("%s: %s (%s)" % (self.id, error, code or status))
        anew, decided = code in ("CANCELLED", "WRONG_STATUS"), set()
        if code == "BAD_ENTRY":  # by a person, meanwhile?
            try:
                decided = {(c["name"], c["n"]) for c in self.post([])["completed"]}
            except Exception:
                pass
            anew = any(e.id in decided for e in said)
        again = [e for e in said if (e.result if self.halt else e.happened) and e.id not in decided]
        for e in again if self.refusals == 2 and not anew else []:
            if e.result["state"] == "done":
                self.settle(e, {**failed, "state": "unknown"})
        self.outbox = (again if anew or self.refusals < 3 else []) + [e for e in self.outbox if e not in again]
        self.halt = RELEASED if anew or self.refusals == 2 else failed
        return False

    def heard(self, answer, sent):
        self.seq, self.sent = max(self.seq, answer["seq"]), max(self.sent, sent)
        self.lease_end = max(self.lease_end, sent + self.worker.lease_ms / 1000)
        if answer.get("paused") or answer.get("cancelled") and not self.cancelled:
            self.halt = self.halt or RELEASED  # the next turn says so
        self.inbox.extend(answer.get("completed") or [])

    def heartbeat(self):
        """Out of sequence, in the thread of heartbeats, and not while a call is on its way, which says as much."""
        sent = time.monotonic()
        if self.lapsed():
            return self.die("lapsed")
        if sent - self.sent < self.worker.lease_ms / 3000 or not self.calling.acquire(blocking=False):
            return None
        try:
            path, text = self.call([])
            status, body, _ = self.worker.api.once("POST", path, text, timeout=self.worker.lease_ms / 3000)
        except Exception:
            return None
        finally:
            self.calling.release()
        if status < 300:
            self.lease_end = max(self.lease_end, sent + self.worker.lease_ms / 1000)
            self.sent = max(self.sent, sent)
            self.mail.put(lambda: self.heard(body, sent))
        elif (body or {}).get("code") == "STALE_FENCE":
            self.die("stale")

    # --- what is executed

    def execute(self, e, inline=False):
        e.busy, e.asks = True, e.state == "unknown" and e.work.probe
        self.running += 1
        e.attempt += not e.asks
        if inline:
            self.attempt(e)
        else:
            threading.Thread(target=self.attempt, args=(e,), daemon=True).start()

    def attempt(self, e):
        """In any thread; the turn's own reads of it in its mail."""
        work, call = e.work, self.worker.call
        key = e.key or "%s/%s/%d%s" % (self.id, encode(e.name), e.n, "/undo" if e.kind == "undo" else "")

        def found():
            out = call(work.probe, key)
            return None if out is None else {"state": "done", "output": out}
        try:
            result = found() if e.asks else {"state": "done", "output": call(work.fn, key, work.seconds, e.attempt)}
            json.dumps(result)
        except Exception as error:
            result = {"state": "unknown", "error": error_of(error)} if e.asks else self.judge(e, error)
            if not e.asks and result["state"] == "unknown" and work.probe:  # in doubt: the probe knows, or nobody does
                try:
                    result = found() or self.judge(e, NotDone(str(error)))
                except Exception:
                    pass
        self.mail.put(lambda: self.attempted(e, result))

    def judge(self, e, error):
        work, said = e.work, failure_of(error)
        if isinstance(error, Final):
            return said
        if work.effect == "claimed" and work.on_unknown != "retry" and not isinstance(error, NotDone):
            return {**said, "state": "unknown"}
        p = {"maxAttempts": 3, "factor": 2, "jitter": True, **(self.retry or {}), **(work.retry or {})}
        wait = duration(p.get("initial", p.get("initialMs", 1000))) * p["factor"] ** (e.attempt - 1)
        part = random.uniform(0.5, 1) if p["jitter"] else 1
        wait = min(wait, duration(p.get("max", p.get("maxMs", 300000)))) * part
        again = {"retryAfterMs": int(getattr(error, "retry_after_ms", wait))} if e.attempt < p["maxAttempts"] else {}
        return {**said, **again}

    def attempted(self, e, result):
        e.busy, self.running = False, self.running - 1
        if result:
            self.settle(e, result)
        elif e.over or self.cancelled and e.kind == "step":
            self.settle(e, failure("DROPPED", "it was not done, and nobody waits for it"))
        else:
            e.update({"state": "failed", "retryAfterMs": 0})  # it was not done: begin again

    def settle(self, e, result):
        e.update(result, result=result)
        if e not in self.outbox:
            self.outbox.append(e)
        if e.over and e.state != "unknown":
            self.pending.pop(e.id, None)

    def read_mail(self, seconds):
        """Waits for some, or for so long."""
        try:
            (self.mail.get(timeout=seconds) if seconds else self.mail.get_nowait())()
            while True:
                self.mail.get_nowait()()
        except queue.Empty:
            pass

    # --- a turn

    def turn(self, turn, journal):
        """True: suspended, and worth to be kept."""
        self.retry, self.cancelled, self.halt, self.ended = turn.get("retry"), turn.get("cancelled"), None, None
        early, self.inbox, self.undoing, self.refusals = self.inbox, [], None, 0
        self.seq = max([turn["seq"]] + [c["seq"] for c in journal[-1:]])
        self.replaying = True
        self.play(early + journal)
        self.replaying = False
        while True:
            self.read_mail(0)
            if self.lapsed():
                self.die("lapsed")
            if self.dead or self.ended:
                return not self.dead and self.ended == "suspended"
            known = None if self.halt or self.inbox else self.foreseen()
            if known:
                self.deliver(known)
                self.go_on()
            elif self.inbox and not self.halt:
                changes, self.inbox = self.inbox, []
                self.play(changes)
            else:
                self.move()

    def end(self, end):
        if self.send(end):
            self.ended = end["state"]

    def move(self):
        """The code asks for nothing more: what is next."""
        if self.worker.stopping.is_set():
            self.halt = self.halt or RELEASED
        halt, pending = self.halt, list(self.pending.values())
        if halt:
            self.outbox = [e for e in self.outbox if halt["state"] != "diverged" and e.happened]
        if len(self.outbox) > CALL_MAX:
            return self.send()
        idle = halt or self.cancelled or self.done and self.done["state"] == "failed"
        steps = [] if idle else [e for e in pending if e.ready]
        if len(steps) == 1 and not self.running and self.alone(steps[0]):  # one write, when it has ended
            self.lone = steps[0]
            if [e for e in self.outbox if e is not self.lone]:
                return self.send(held=self.lone)
            return self.execute(self.lone, inline=len(pending) == 1)
        if steps:
            return self.begin(steps)
        if self.running:
            if [e for e in self.outbox if e is not self.lone or e.result]:
                return self.send()
            due = [e.due - time.monotonic() for e in pending if e.due and not e.busy and not idle]
            return self.read_mail(max(0.001, min([1] + due)))
        if halt:
            return self.end(halt)
        if self.cancelled:
            return self.unwind()
        if not self.done:
            return self.suspend(pending)
        if self.at < len(self.places):
            return self.diverge(self.places[self.at])
        self.outbox = [e for e in self.outbox if not ((e.about or e).kind == "step" and (e.about or e).state == "new")]
        return self.end(self.done)

    def alone(self, e):
        """It needs no word before it is executed: the ask was the last thing that the code did."""
        return e.work.effect != "claimed" and not e.work.undo and (e.state != "new" or self.outbox[-1:] == [e])

    def begin(self, steps):
        """In one call; nothing is executed before it is answered."""
        begun = [e for e in steps if e.state != "begun" and not (e.state == "unknown" and e.work.probe)]
        self.outbox += [e for e in begun if e not in self.outbox]
        while self.outbox:
            if not self.send():
                return None
        if self.lapsed():
            return self.die("lapsed")
        for e in steps:
            if not self.halt:
                self.execute(e)
            elif e.state == "begun":
                self.settle(e, failure("CANCELLED", "not executed", retryAfterMs=0))

    def suspend(self, waits):
        if not waits:
            return self.end({"state": "failed", "error": {"message": "the code waits for nothing that ctx knows"}})
        ids = {e.id for e in waits}
        some = len(waits) > 1 and not any(ids == {e.id for e in group if not e.over} for group in self.groups)
        self.end({"state": "suspended", "awaits": [e.brief for e in waits], **({"any": True} if some else {})})

    def unwind(self):
        """Cancelled: what is in doubt gets an outcome, what is done is undone, in reverse."""
        for e in [o for o in self.pending.values() if o.state == "unknown" and o.ready]:
            if e.work.effect != "claimed" or e.work.probe:
                self.execute(e, inline=True)
            else:
                self.settle(e, {"state": "unknown", "error": {"message": "cancelled while in doubt"}})
        if self.running:
            return None
        done = [o for o in self.entries.values() if o.state == "done" and ("compensate", o.id) in self.marked]
        owed = sorted((o for o in done if o.id not in self.undos or not self.undos[o.id].ended), key=lambda o: -o.place)
        e, last = owed[0] if owed else None, self.undoing
        # What has failed is for a person, when the rest is done. The engine undoes a child, before what is ahead of it.
        if e and last and any(o.kind == "child" and e.place < o.place < last.place for o in self.entries.values()):
            return self.end(RELEASED)
        if self.outbox:
            return self.send()
        if not e:
            return self.end({"state": "undone"})
        if not e.undo:
            return self.diverge(Entry("compensate", e.name, e.n))
        u = self.undos.setdefault(e.id, Entry("undo", e.name, e.n))
        u.work, u.fields = dataclasses.replace(e.undo, fn=lambda key: e.undo.fn(e.output, key)), e.undo.fields
        if not u.ready:
            return self.suspend([u])
        self.undoing = e
        return self.begin([u]) if u.work.effect == "claimed" else self.execute(u, inline=True)


# --- what one writes

# Options of steps in place of the code's: what `hapax explore` suggests, it tries so.
_tried = json.loads(os.environ.get("HAPAX_TRY", "{}"))


def _decided(e):
    said = e.output or {}
    if said.get("decision") == "approve":
        return said
    message = e.name + ": rejected" + (" by " + said["by"] if said.get("by") else "")
    raise EntryError(e, {**said, "code": "REJECTED", "message": message})


def _timed(timeout):
    return {"timeoutMs": duration(timeout)} if timeout else {}


class Context:
    """What the code of a function asks. In synchronous functions each call waits; those of `later` give a handle for
    all() and race()."""

    def __init__(self, run, blocking):
        self._run, self._blocking, self.id = run, blocking, run.id
        self.later = Context(run, False) if blocking else self

    def _ask(self, kind, name, fields, **more):
        return self._give(self._run.ask(kind, name, fields, **more))

    def _give(self, handle):
        return handle.result() if self._blocking else handle

    def step(self, name, fn, **options):
        options.update({"on_unknown" if o == "onUnknown" else o: value for o, value in _tried.get(name, {}).items()})
        work = Work(fn, **options)
        if self._run.worker.fakes:
            self._run.worker.fakes(name, work)
        return self._ask("step", name, work.fields, work=work)

    def sleep(self, name, time):
        until = {"until": time.isoformat()} if hasattr(time, "isoformat") else {"forMs": duration(time)}
        return self._ask("sleep", name, until)

    def event(self, name, event=None, timeout=None):
        return self._ask("event", name, {"event": event or name, **_timed(timeout)})

    def approval(self, name, timeout=None):
        return self._ask("approval", name, _timed(timeout), view=_decided)

    def child(self, name, function, input=None):
        return self._ask("child", name, {"workflow": getattr(function, "name", function), "input": input or {}})

    def now(self):
        return self._ask("value", "now", {"output": time.time()})

    def random(self):
        return self._ask("value", "random", {"output": random.random()})

    def uuid(self):
        return self._ask("value", "uuid", {"output": str(uuid.uuid4())})

    def attribute(self, name, value):
        return self._ask("attribute", name, {"value": value})

    def patched(self, name):
        """True for runs that come here for the first time with this code, False for those that have been further."""
        run, mark = self._run, "patched " + name
        new = (mark, 0) in run.entries or run.at >= len(run.places) and not run.cancelled
        if mark not in run.uses and new:
            return self._ask("value", mark, {"output": True})
        return self._give(Handle(run).settle(mark in run.uses))

    def compensate(self, name, fn, n=None, **options):
        e = self._run.entries.get((name, self._run.uses.get(name, 0) - 1 if n is None else n))
        if not e or not e.asked:
            raise Final('there is no step "%s" to compensate' % name)
        self._run.compensate(e, Work(fn, **options))

    def all(self, items):
        return self._give(self._run.gather(items, race=False))

    def race(self, items):
        return self._give(self._run.gather(items, race=True))

    def log(self, *words):
        if not self._run.replaying:
            self._run.worker.log("%s: %s" % (self.id, " ".join(map(str, words))))
