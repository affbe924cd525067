"""One run of a function, in the memory of a worker: the code, and the journal that it is played against.

What the code asks for (a step, a sleep, an event …) is an entry with a name; what has ended is handed to it in order of the journal's
sequence, one by one, and each time the code goes on until it asks for nothing more. So it goes on the same way live as in a replay.
Nothing is executed before the entries ahead of it have been answered. Of the threads of a run one is at work at a time: the turn's
own, or a piece of synchronous code that it has let go on; what executes steps, and heartbeats, send it mail.
"""
import collections
import inspect
import json
import os
import queue
import random
import threading
import time
import uuid

from .client import HapaxError, duration, encode


class Final(Exception):
    """A step that raises it is not tried again."""


class NotDone(Exception):
    """A claimed step that raises it has certainly done nothing: it is tried again."""


class EntryError(Exception):
    """What an entry failed of: TIMEOUT, REJECTED, CHILD_FAILED, or a step's own error."""

    def __init__(self, e, error=None):
        self.error, self.step = error or e.error or {}, e.label
        self.code = self.error.get("code") if isinstance(self.error, dict) else None
        super().__init__(self.error.get("message") if isinstance(self.error, dict) else str(self.error))


class Stop(BaseException):
    """The run is not ours any more: the code goes on no further."""


def error_of(error):
    code = getattr(error, "code", None)
    return {**({"code": str(code)} if code else {}), "message": str(error) or type(error).__name__}


def failure(code, message):
    return {"state": "failed", "error": {"code": code, "message": message}}


class Entry:
    """What the wire says of it, and here: asked (by the code), over (handed to the code, or nobody waits for it), sent (the engine knows
    it), busy (being executed), result (of that, not sent yet), due."""
    state, attempt, place, fields = "new", 0, 0, {}
    output = error = key = retryAfterMs = result = due = work = undo = view = mark = about = handle = None
    asked = over = sent = busy = False

    def __init__(self, kind, name, n, about=None):
        self.kind, self.name, self.n, self.about = kind, name, n, about
        self.id, self.brief, self.label = (name, n), {"kind": kind, "name": name, "n": n}, "%s#%d" % (name, n) if n else name

    def update(self, change, **more):
        self.retryAfterMs = None
        self.__dict__.update(change, **more)
        if self.retryAfterMs is not None:
            self.due = time.monotonic() + self.retryAfterMs / 1000
        return self

    @property
    def ended(self):
        return self.state in ("done", "dropped") or self.state == "failed" and self.retryAfterMs is None


class Handle:
    """What is not there yet. In synchronous functions result() waits for it, in asynchronous ones `await`."""

    def __init__(self, run, entry=None):
        self.run, self.entry, self.done, self.value, self.error, self.waiters = run, entry, False, None, None, []

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
    """Synchronous code with the face of a coroutine: in a thread of its own, which is at work only while send() waits for it."""

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
                waits = self.code.throw(Final("a function waits for what ctx gives it, and for nothing else: put this into a step"))
            waits.waiters.append(lambda _: self.run.ready.append(self))
        except StopIteration as end:
            self.handle.settle(end.value)
        except Exception as error:
            self.handle.settle(error=error)


CALL_MAX = 500  # entries of one call, each perhaps with its mark: the engine takes 1,000
INSTANT, MARKS, WORKS = ("value", "attribute"), ("compensate", "drop"), ("step", "undo")


class Run:
    def __init__(self, worker, turn, fn):
        self.worker, self.fn, self.id, self.input, self.seq = worker, fn, turn["run"], turn["input"], 0
        self.entries, self.undos, self.uses, self.marked, self.pending = {}, {}, {}, set(), {}
        self.places, self.at, self.outbox, self.inbox, self.groups = [], 0, [], [], []
        self.tasks, self.ready, self.deliveries, self.mail, self.calling = [], collections.deque(), collections.deque(), queue.SimpleQueue(), threading.Lock()
        self.current = self.main = self.done = self.diverged = self.dead = self.ended = self.lone = None
        self.running, self.asked, self.replaying, self.cancelled, self.paused, self.lease_end = 0, 0, False, False, False, 0

    def key(self, e):
        return e.key or "%s/%s/%d%s" % (self.id, encode(e.name), e.n, "/undo" if e.kind == "undo" else "")

    def die(self, why):
        self.dead = self.dead or why
        self.mail.put(lambda: None)

    def close(self):
        """The code is left where it is, and its threads end."""
        self.die("closed")
        for task in self.tasks:
            task.code.close()

    # --- what the code asks for, in order

    def ask(self, kind, name, fields, **more):
        if not (isinstance(name, str) and name):
            raise TypeError("a %s needs a name" % kind)
        n, e = self.uses.get(name, 0), self.entries.get((name, self.uses.get(name, 0)))
        following = self.places[self.at] if self.at < len(self.places) and not self.cancelled else None
        if n and not self.entries[name, n - 1].over:
            return Handle(self).settle(error=Final('"%s" is under way already: what runs at the same time needs names of its own' % name))
        if following and (following is not e or e.kind != kind):
            self.diverge(following, {"kind": kind, "name": name, "n": n})
        if self.dead or self.diverged or self.cancelled and not (e and e.kind == kind):
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
        if e.work and e.work.get("undo"):
            self.compensate(e, e.work["undo"])
        return e.handle

    def block(self, handle):
        """A synchronous piece of code waits. In a replay what is next is often just that, and nobody else waits for it."""
        while not handle.done:
            e = self.deliveries[0] if self.deliveries and not self.ready else None
            if e and e.handle is handle and not handle.waiters and not self.diverged:
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

    def diverge(self, expected, found):
        self.diverged = self.diverged or {"state": "diverged", "expected": expected.brief, "found": found or {"kind": "end"}}

    def mark(self, kind, e):
        """Said once about an entry."""
        mark = Entry(kind, e.name, e.n, about=e)
        if (kind, e.id) in self.marked:
            return
        self.marked.add((kind, e.id))
        if kind == "compensate" and e.state == "new":
            e.mark = mark  # goes with its entry
        else:
            self.outbox.append(mark)

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
        if c["kind"] in MARKS:
            self.marked.add((c["kind"], (c["name"], c["n"])))
            return None
        home, id = self.undos if c["kind"] == "undo" else self.entries, (c["name"], c["n"])
        if id not in home:
            home[id] = Entry(c["kind"], *id)
            if c["kind"] != "undo":
                self.places.append(home[id])
        return home[id].update(c, sent=True)

    def play(self, changes):
        self.deliveries.extend([e for e in map(self.take, changes) if e and e.kind not in ("undo",) + INSTANT and e.ended and e.state != "dropped"])
        self.places.sort(key=lambda e: e.i)  # they come in order of seq, also from another worker that had a turn meanwhile
        if not self.main:
            self.main = Task(self, self.fn.begin(Context(self, not self.fn.is_async), self.input))
        self.go_on()
        while self.deliveries and not self.diverged and not self.dead:
            e = self.deliveries.popleft()
            if e.over:
                continue
            if e.asked:
                self.deliver(e)
                self.go_on()
            elif not self.cancelled:
                self.diverge(e, next((p.brief for p in self.pending.values()), None))

    def go_on(self):
        while self.ready and not self.dead:
            self.ready.popleft().resume()
        if self.main.handle.done and not self.done:
            error = self.main.handle.error
            if error is None:
                self.done = {"state": "completed", "output": self.main.handle.value}
            else:
                self.done = {"state": "failed", "error": error_of(error), **({"step": error.step} if isinstance(error, EntryError) else {})}

    def deliver(self, e):
        e.over = True
        self.pending.pop(e.id, None)
        if e.state != "done":
            return e.handle.settle(error=EntryError(e))
        try:
            e.handle.settle(e.view(e) if e.view else e.output)
        except EntryError as error:
            e.handle.settle(error=error)

    # --- what is said to the engine

    def wire(self, e):
        """As it is now: what was never begun and has ended is one entry."""
        if e.about:
            return [] if e.kind == "drop" and e.about.ended else [e.brief]
        said = {**e.brief, **({} if e.sent else e.fields)}
        if e.kind in WORKS:
            if e.over and not e.sent and not e.result:
                e.result = failure("DROPPED", "it lost its race before it began")
            said.update(e.result or {"state": "begun"})
            e.__dict__.update(e.result or {"state": "begun"}, result=None)
        elif e.state == "new":
            e.state = "open"
        e.sent, mark, e.mark = True, e.mark, None  # said once, with the first word about it
        return [said, mark.brief] if mark else [said]

    def call(self, entries, end=None):
        body = {"worker": self.worker.name, "fence": self.fence, "seq": self.seq, "entries": entries, "end": end, "leaseMs": self.worker.lease_ms}
        if not end:
            del body["end"]
        return "functions/runs/%s/journal" % self.id, json.dumps(body)

    def send(self, end=None, hold=None):
        """One call, repeated until it is answered. False: not taken as it was meant; the run is cancelled, paused, or not ours any more."""
        held = [hold] if hold else []
        todo, self.outbox = [e for e in self.outbox if e is not hold], held
        if len(todo) > CALL_MAX:  # the first of them by themselves
            self.outbox = todo[:CALL_MAX]
            taken = self.send()
            self.outbox = todo[CALL_MAX:] + self.outbox + held
            return taken and self.send(end, hold)
        said = [(e, entry) for e in todo for entry in self.wire(e)]
        with self.calling:  # a heartbeat may be under way
            taken = self.tell(said, end)
        if taken is None:
            self.die("lost")
        return bool(taken)

    def post(self, entries, end=None):
        sent, (path, text) = time.monotonic(), self.call(entries, end)
        answer = self.worker.api.text("POST", path, text, timeout=self.worker.lease_ms / 3000, until=lambda: self.lease_end)
        self.heard(answer, sent)
        return answer

    def ended_since(self):
        """What has ended since, and we have not done: the names of these."""
        try:
            return {(c["name"], c["n"]) for c in self.post([])["completed"]}
        except Exception:
            return set()

    def tell(self, said, end):
        """None: it is not ours any more."""
        for tries in range(3):
            try:
                self.post([entry for _, entry in said], end)
                return tries == 0
            except Exception as error:
                code, status = getattr(error, "code", None), getattr(error, "status", 0)
                if self.dead or not isinstance(error, HapaxError) or not 400 <= status < 500 or code in ("STALE_FENCE", "SEQ_CONFLICT", "NOT_FOUND"):
                    return None
                self.worker.log("%s: %s (%s)" % (self.id, error, code or status))
                cancelled, paused = code == "CANCELLED", code == "WRONG_STATUS"
                decided = self.ended_since() if code == "BAD_ENTRY" else set()  # by a person, meanwhile: then it is played anew
                anew = any(e.id in decided for e, _ in said)
                end = None if cancelled or paused else {"state": "released"} if anew else {"state": "failed", "error": error_of(error)}
                self.cancelled, self.paused = self.cancelled or cancelled, self.paused or paused
                said = [it for it in self.outcomes(said, cancelled) if it[0].id not in decided]
                if not end and not said:
                    return False
        return None

    def outcomes(self, said, cancelled):
        """Of what was refused: what has happened all the same, and is to be known. All else stops here."""
        begins = {(w["name"], w["n"]) for _, w in said if w["kind"] in WORKS and w["state"] == "begun"}
        kept = []
        for e, w in said:
            if w["kind"] in WORKS and w["state"] != "begun" or cancelled and w["kind"] == "compensate" and (w["name"], w["n"]) not in begins:
                kept.append((e, w))
            else:
                e.over = True
                if not e.about:
                    self.pending.pop(e.id, None)
        return kept

    def heard(self, answer, sent):
        self.seq, self.sent = max(self.seq, answer["seq"]), max(self.sent, sent)
        self.lease_end = max(self.lease_end, sent + self.worker.lease_ms / 1000)
        self.cancelled, self.paused = self.cancelled or answer.get("cancelled"), self.paused or answer.get("paused")
        self.inbox.extend(answer.get("completed") or [])

    def heartbeat(self):
        """Out of sequence, in the thread of heartbeats, and not while a call is on its way, which says as much."""
        sent = time.monotonic()
        if sent > self.lease_end:
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
            self.lease_end, self.sent = max(self.lease_end, sent + self.worker.lease_ms / 1000), max(self.sent, sent)
            self.mail.put(lambda: self.heard(body, sent))
        elif (body or {}).get("code") == "STALE_FENCE":
            self.die("stale")

    # --- what is executed

    def is_ready(self, e):
        if e.kind not in WORKS or e.busy or e.result or e.ended:
            return False
        if e.state == "unknown":
            return e.work["on_unknown"] != "hold"
        return e.state != "failed" or (e.due or 0) <= time.monotonic()

    def execute(self, e, inline=False):
        e.busy, e.asks = True, e.state == "unknown" and e.work["probe"]
        self.running += 1
        if not e.asks:
            e.attempt += 1
        if inline:
            self.attempt(e)
        else:
            threading.Thread(target=self.attempt, args=(e,), daemon=True).start()

    def attempt(self, e):
        """In any thread; the turn's own reads of it in its mail."""
        work, key = e.work, self.key(e)

        def found():
            out = self.worker.call(work["probe"], key)
            return None if out is None else {"state": "done", "output": out}
        try:
            result = found() if e.asks else {"state": "done", "output": self.worker.call(work["fn"], key, timeout=work["timeout"], attempt=e.attempt)}
            json.dumps(result)
        except Exception as error:
            result = {"state": "unknown", "error": error_of(error)} if e.asks else self.judge(e, error)
            if not e.asks and result["state"] == "unknown" and work["probe"]:  # in doubt: the probe knows, or nobody does
                try:
                    result = found() or self.judge(e, NotDone(str(error)))
                except Exception:
                    pass
        self.mail.put(lambda: self.attempted(e, result))

    def judge(self, e, error):
        said, work, p = error_of(error), e.work, {"maxAttempts": 3, "factor": 2, "jitter": True, **(self.retry or {}), **(e.work["retry"] or {})}
        if isinstance(error, Final):
            return {"state": "failed", "error": said}
        if work["effect"] == "claimed" and work["on_unknown"] != "retry" and not isinstance(error, NotDone):
            return {"state": "unknown", "error": said}
        wait = duration(p.get("initial", p.get("initialMs", 1000))) * p["factor"] ** (e.attempt - 1)
        wait = min(wait, duration(p.get("max", p.get("maxMs", 300000)))) * (random.uniform(0.5, 1) if p["jitter"] else 1)
        again = {"retryAfterMs": int(getattr(error, "retry_after_ms", wait))} if e.attempt < p["maxAttempts"] else {}
        return {"state": "failed", "error": said, **again}

    def attempted(self, e, result):
        e.busy, self.running = False, self.running - 1
        if result is None and not e.over:
            e.update({"state": "failed", "retryAfterMs": 0})  # it was not done: begin again
        else:
            self.settle(e, result or failure("DROPPED", "it was not done, and lost its race"))

    def settle(self, e, result):
        e.update(result, result=result)
        if e not in self.outbox:
            self.outbox.append(e)
        if e.over and e.state != "unknown":
            self.pending.pop(e.id, None)

    def foreseen(self):
        """Where nobody but this worker can end anything the order of seq is known before the answer, and the code goes on at once."""
        known = [e for e in self.outbox if e.kind == "step" and e.result and e.ended and not e.over]
        if known and all(e.kind == "step" and e.state != "unknown" and (not e.ended or e in known) for e in self.pending.values()):
            return known[0]
        return None

    def read_mail(self, seconds):
        """Waits for some, or for so long."""
        try:
            (self.mail.get(timeout=seconds) if seconds else self.mail.get_nowait())()
            while True:
                self.mail.get_nowait()()
        except queue.Empty:
            pass

    # --- a turn

    def turn(self, turn, journal, sent):
        """True: suspended, and worth to be kept."""
        self.retry, self.cancelled, self.paused, self.ended = turn.get("retry"), turn.get("cancelled"), False, None
        early, self.inbox, self.seq = self.inbox, [], max([turn["seq"]] + [c["seq"] for c in journal[-1:]])
        self.replaying = True
        self.play(early + journal)
        self.replaying = False
        while True:
            self.read_mail(0)
            if time.monotonic() > self.lease_end:
                self.die("lapsed")
            if self.dead or self.ended:
                return not self.dead and self.ended == "suspended"
            known = None if self.diverged or self.inbox else self.foreseen()
            if known:
                self.deliver(known)
                self.go_on()
            elif self.inbox and not self.diverged:
                changes, self.inbox = self.inbox, []
                self.play(changes)
            else:
                self.move()

    def end(self, end):
        if self.send(end):
            self.ended = end["state"]

    def move(self):
        """The code asks for nothing more: what is next."""
        if self.diverged:
            self.outbox = []
            return self.end(self.diverged)
        if self.running:
            if [e for e in self.outbox if e is not self.lone or e.result]:
                self.lone = None
                return self.send()
            self.read_mail(max(0.001, min([1] + [e.due - time.monotonic() for e in self.pending.values() if e.due and not e.busy])))
            again = [e for e in self.pending.values() if e.state == "failed" and self.is_ready(e)]
            return again and not self.cancelled and not self.paused and not self.dead and self.begin(again)
        self.lone = None
        if self.cancelled:
            return self.unwind()
        if self.paused or self.worker.stopping.is_set():
            self.outbox = [e for e in self.outbox if e.result]
            return self.end({"state": "released"})
        steps = [] if self.done and self.done["state"] == "failed" else [e for e in self.pending.values() if self.is_ready(e)]
        one = steps[0] if len(steps) == 1 else None
        if one and one.work["effect"] != "claimed" and not one.work.get("undo") and (one.state != "new" or self.outbox[-1:] == [one]):  # one write, when it has ended
            if [e for e in self.outbox if e is not one]:
                return self.send(hold=one if one.state == "new" else None)
            self.lone = one
            return self.execute(one, inline=len(self.pending) == 1)
        if steps:
            return self.begin(steps)
        if self.done:
            if self.at < len(self.places):
                return self.diverge(self.places[self.at], None)
            self.outbox = [e for e in self.outbox if not (e.kind == "step" and e.state == "new")]
            return self.end(self.done)
        return self.suspend(list(self.pending.values()))

    def begin(self, steps):
        """In one call; nothing is executed before it is answered."""
        begun, doubted = [e for e in steps if not (e.state == "unknown" and e.work["probe"])], [e for e in steps if e.state == "unknown"]
        self.outbox += [e for e in begun if e not in self.outbox]
        if self.outbox and not self.send():
            return
        if time.monotonic() > self.lease_end:
            return self.die("lapsed")
        for e in steps:
            if not self.cancelled:
                self.execute(e)
            elif e in doubted:
                e.state = "unknown"  # another one may have done it: unwind finds out
            elif not e.over and e in begun:
                self.settle(e, failure("CANCELLED", "not executed"))

    def suspend(self, waits):
        ids = {e.id for e in waits}
        whole = any(ids == {e.id for e in group if not e.over} for group in self.groups)
        if not waits:
            return self.end({"state": "failed", "error": {"message": "the code waits for nothing that ctx knows"}})
        self.end({"state": "suspended", "awaits": [e.brief for e in waits], **({"any": True} if len(waits) > 1 and not whole else {})})

    def unwind(self):
        """Cancelled: what is in doubt gets an outcome, what is done is undone, in reverse."""
        for e in [o for o in self.pending.values() if o.state == "unknown" and self.is_ready(o)]:
            if e.work["effect"] == "claimed" and not e.work["probe"]:
                self.settle(e, {"state": "unknown", "error": {"message": "cancelled while in doubt"}})
            else:
                self.execute(e, inline=True)
                self.read_mail(0)
            if not e.result and not e.ended:
                self.settle(e, failure("CANCELLED", "it was not done"))
        done = [o for o in self.entries.values() if o.state == "done" and ("compensate", o.id) in self.marked]
        owed = sorted(done, key=lambda o: -o.place)
        for e, following in zip(owed, owed[1:] + [None]):
            u = self.undos.setdefault(e.id, Entry("undo", e.name, e.n))
            if u.ended:
                continue  # undone; or it has failed, and a person is asked when the rest is
            if not e.undo:
                return self.diverge(Entry("compensate", e.name, e.n), None)
            u.work = {**e.undo, "fn": lambda key, *more, e=e: e.undo["fn"](e.output, key)}
            u.fields = {"effect": u.work["effect"], "onUnknown": u.work["on_unknown"]}
            if not self.is_ready(u):
                return self.suspend([u])
            if u.work["effect"] == "claimed":
                self.outbox.append(u)
                if not self.send():
                    return None
            self.execute(u, inline=True)
            self.read_mail(0)
            if u.ended and following and any(o.kind == "child" and following.place < o.place < e.place for o in self.entries.values()):
                return self.end({"state": "released"})  # the engine undoes the child before the next one
            return self.send()  # and once more, for the next one
        return self.end({"state": "undone"})


def _work(fn, effect="keyed", on_unknown=None, probe=None, retry=None, timeout=None, compensate=None):
    on_unknown = on_unknown or ("retry" if effect != "claimed" else "probe" if probe else "hold")
    return {"fn": fn, "effect": effect, "on_unknown": on_unknown, "probe": None if on_unknown == "retry" else probe, "retry": retry,
            "timeout": timeout and duration(timeout) / 1000, "undo": compensate and _work(compensate)}


def _decided(e):
    if e.output and e.output.get("decision") == "approve":
        return e.output
    by = (e.output or {}).get("by")
    raise EntryError(e, {**(e.output or {}), "code": "REJECTED", "message": "%s: rejected%s" % (e.name, " by " + by if by else "")})


_tried = json.loads(os.environ.get("HAPAX_TRY", "{}"))  # options of steps in place of the code's: what `hapax explore` suggests, it tries so


class Context:
    """What the code of a function asks. In synchronous functions each call waits; those of `later` give a handle for all() and race()."""

    def __init__(self, run, blocking):
        self._run, self._blocking, self.id = run, blocking, run.id
        self.later = Context(run, False) if blocking else self

    def _ask(self, kind, name, fields, **more):
        return self._give(self._run.ask(kind, name, fields, **more))

    def _give(self, handle):
        return handle.result() if self._blocking else handle

    def step(self, name, fn, **options):
        options.update({"on_unknown" if o == "onUnknown" else o: value for o, value in _tried.get(name, {}).items()})
        fakes = self._run.worker.fakes
        work = _work(fakes(name, fn, options.get("effect", "keyed")) if fakes else fn, **options)
        return self._ask("step", name, {"effect": work["effect"], "onUnknown": work["on_unknown"]}, work=work)

    def sleep(self, name, time):
        return self._ask("sleep", name, {"until": time.isoformat()} if hasattr(time, "isoformat") else {"forMs": duration(time)})

    def event(self, name, event=None, timeout=None):
        return self._ask("event", name, {"event": event or name, **({"timeoutMs": duration(timeout)} if timeout else {})})

    def approval(self, name, timeout=None):
        return self._ask("approval", name, {"timeoutMs": duration(timeout)} if timeout else {}, view=_decided)

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
        """True for runs that come here for the first time with this code, False for those that have been further with older code."""
        run, mark = self._run, "patched " + name
        new = (mark, 0) in run.entries or run.at >= len(run.places) and not run.cancelled
        if mark not in run.uses and new:
            return self._ask("value", mark, {"output": True})
        return self._give(Handle(run).settle(mark in run.uses))

    def compensate(self, name, fn, n=None, **options):
        n = self._run.uses.get(name, 0) - 1 if n is None else n
        e = self._run.entries.get((name, n))
        if not e or not e.asked:
            raise Final('there is no step "%s" to compensate' % name)
        self._run.compensate(e, _work(fn, **options))

    def all(self, items):
        return self._give(self._run.gather(items, race=False))

    def race(self, items):
        return self._give(self._run.gather(items, race=True))

    def log(self, *words):
        if not self._run.replaying:
            self._run.worker.log("%s: %s" % (self.id, " ".join(map(str, words))))
