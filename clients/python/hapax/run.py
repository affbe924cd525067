"""One turn of a function's run, in a worker: the code, and the journal that it is played against.

What the code asks for (a step, a sleep, an event …) is an entry with a name; what has ended is handed to it in order
of the journal's sequence, one by one, and each time the code goes on until it asks for nothing more. So it goes on the
same way live as in a replay. Nothing is executed before the entries ahead of it have been answered.

A turn has one thread. Synchronous code runs in it, and where that waits, the turn goes on within its call (advance);
when the turn is over, Stop leaves the code. The next turn begins it anew, with the entries that are in memory or with
those that the engine sends. Steps have threads of their own, which send the turn mail.
"""
import _thread
import collections
import concurrent.futures
import copy
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
        self.error, self.step = error or e.error or {}, "%s#%d" % e.id if e.n else e.name
        said = self.error if isinstance(self.error, dict) else {"message": str(self.error)}
        self.code = said.get("code")
        super().__init__(said.get("message"))


class Stop(BaseException):
    """The turn is over: the code goes on no further."""


def failure(error, code=None, **more):
    code, words = code or getattr(error, "code", None), str(error)[:WORDS_MAX] or type(error).__name__
    return {"state": "failed", "error": {**({"code": str(code)} if code else {}), "message": words}, **more}


INSTANT, MARKS, WORKS = ("value", "attribute"), ("compensate", "drop"), ("step", "undo")
RELEASED = {"state": "released"}
LOST = ("STALE_FENCE", "SEQ_CONFLICT", "NOT_FOUND")  # it is not ours any more
ANEW = ("CANCELLED", "WRONG_STATUS")  # the next turn says what is to be done
CALL_MAX, WORDS_MAX = 1000, 10000  # entries of one call; what is kept of an error


class Work:
    """What is to be executed, and how."""

    def __init__(self, fn, effect="keyed", on_unknown=None, probe=None, retry=None, timeout=None, compensate=None):
        self.fn, self.effect, self.retry, self.timeout = fn, effect, retry, timeout
        self.on_unknown = on_unknown or ("retry" if effect != "claimed" else "probe" if probe else "hold")
        self.probe = None if self.on_unknown == "retry" else probe
        self.undo = compensate and Work(compensate)
        self.fields = {"effect": effect, "onUnknown": self.on_unknown}


class Entry:
    """What the wire says of it, and here: asked (by the code), over (handed to the code, or nobody waits for it), sent
    (the engine knows it), busy (being executed), result (of that, not sent yet), due."""
    state, attempt, fields, due = "new", 0, {}, 0
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
    def told(self):
        """To the code, that it has ended."""
        return self.kind not in ("undo",) + INSTANT and self.ended and self.state != "dropped"

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

    def then(self, waiter):
        waiter(self) if self.done else self.waiters.append(waiter)

    def get(self):
        if self.error is not None:
            raise self.error
        return self.value

    def __await__(self):
        if not self.done:
            yield self
        return self.get()

    def result(self):
        while not self.done:
            self.run.current.block(self) if self.run.current else self.run.advance()
        return self.get()


def apart(fn, *all):
    """What comes of it, in a thread of its own."""
    ended = concurrent.futures.Future()

    def body():
        try:
            ended.set_result(fn(*all))
        except BaseException as error:
            ended.set_exception(error)
    _thread.start_new_thread(body, ())
    return ended


class Branch:
    """A piece of the code beside others: a coroutine, or what has its face."""

    def __init__(self, run, code):
        self.run, self.handle, self.code = run, Handle(run), code if inspect.iscoroutine(code) else self.threaded(code)
        self.go, self.rests, self.waits, self.closed = threading.Semaphore(0), threading.Semaphore(0), None, False
        run.branches.append(self)
        run.ready.append(self)

    def resume(self):
        try:
            waits = self.code.send(None)
            while not isinstance(waits, Handle):
                words = "a function waits for what ctx gives it, and for nothing else: put this into a step"
                waits = self.code.throw(Final(words))
            waits.then(lambda _: self.run.ready.append(self))
        except StopIteration as end:
            self.handle.settle(end.value)
        except Exception as error:
            self.handle.settle(error=error)

    def threaded(self, code):
        """Synchronous code: in a thread, which is at work only while this waits until it rests."""
        ended = apart(code)
        ended.add_done_callback(lambda _: self.rests.release())
        try:
            while self.rests.acquire() and not ended.done():
                yield self.waits
                self.go.release()
            return ended.result()
        finally:
            self.closed = True
            self.go.release()

    def block(self, handle):
        """In that thread."""
        self.waits = handle
        self.rests.release()
        self.go.acquire()
        if self.closed:
            raise Stop()


class Run:
    def __init__(self, worker, turn, fn, sent, known):
        """`known`: the turn before, if that was here."""
        self.worker, self.fn, self.id, self.input, self.fence = worker, fn, turn["run"], turn["input"], turn["fence"]
        self.seq, self.retry, self.cancelled = turn["seq"], turn["retry"], turn["cancelled"]
        self.entries, self.undos, self.marked = (known.entries, known.undos, known.marked) if known else ({}, {}, set())
        self.uses, self.pending, self.at, self.outbox, self.groups = {}, {}, 0, [], []
        self.branches, self.ready, self.news = [], collections.deque(), collections.deque()
        self.mail, self.gone, self.running, self.refusals = queue.SimpleQueue(), threading.Event(), 0, 0
        self.current = self.done = self.halt = self.dead = self.ended = self.undoing = None
        self.sent, self.lease_end = sent, sent + worker.lease_ms / 1000

    # --- what the code asks for, in order

    def ask(self, kind, name, fields, **more):
        if not (isinstance(name, str) and name):
            raise TypeError("a %s needs a name" % kind)
        json.dumps(fields)  # if it cannot be said it is not asked
        n = self.uses.get(name, 0)
        following = None if self.cancelled or self.at == len(self.places) else self.places[self.at]
        e = self.entries.get((name, n))
        if n and not self.entries[name, n - 1].over:
            words = '"%s" is under way already: what runs at the same time needs names of its own' % name
            return Handle(self).settle(error=Final(words))
        if following and (following is not e or e.kind != kind):
            self.diverge(following, {"kind": kind, "name": name, "n": n})
        if self.dead or self.ended or self.halt or self.cancelled and not (e and e.kind == kind):
            return Handle(self)  # a cancelled run stops at what is not in its journal
        self.at += following is not None
        self.uses[name] = n + 1
        if not e:
            e = self.entries[name, n] = Entry(kind, name, n)
            self.outbox.append(e)
        e.__dict__.update(more, fields=fields, asked=True, handle=Handle(self, e))
        if kind in INSTANT:
            if e.state == "new":
                e.state, e.output = "done", fields.get("output")
            e.over = True
            return e.handle.settle(e.output)
        self.pending[e.id] = e
        if e.work and e.work.undo:
            self.compensate(e, e.work.undo)
        return e.handle

    def gather(self, items, race):
        handles, whole = [x if isinstance(x, Handle) else Branch(self, x).handle for x in items], Handle(self)
        entries = [h.entry for h in handles]

        def one(handle):
            if race or handle.error is not None or all(h.done for h in handles):
                whole.settle(handle.value if race else [h.value for h in handles], handle.error)
            for e in filter(None, entries if race else ()):
                self.drop(e)
        for h in handles:
            h.then(one)
        if not race and None not in entries:
            self.groups.append((whole, entries))
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

    # --- what the engine says, handed to the code in order of seq, one by one

    def hear(self, changes):
        """What is done and said is noted, and what has ended waits for the code."""
        for c in changes:
            home, id = self.undos if c["kind"] == "undo" else self.entries, (c["name"], c["n"])
            if c["kind"] in MARKS:
                self.marked.add((c["kind"], id))
                continue
            e = home[id] = home.get(id) or Entry(c["kind"], *id)
            e.update(c, sent=True)
            if e.told and not e.over:
                self.news.append(e)

    def replay(self, journal):
        """The turn begins with what is in memory, and in the journal: laid out by place, and handed over by seq."""
        for e in self.entries.values():
            e.__dict__.update(asked=False, over=False, busy=False, result=None)
        self.hear(sorted(journal, key=lambda c: c["i"]))
        self.places = list(self.entries.values())
        self.news = collections.deque(sorted((e for e in self.places if e.told), key=lambda e: e.seq))
        self.replaying = bool(self.news)

    def deliver(self, e):
        if e.over:
            return
        if not e.asked:
            return None if self.cancelled else self.diverge(e, next((p.brief for p in self.pending.values()), None))
        e.over = True
        self.pending.pop(e.id, None)
        try:
            if e.state != "done":
                raise EntryError(e)
            e.handle.settle(e.view(e) if e.view else e.output)
        except EntryError as error:
            e.handle.settle(error=error)

    def foreseen(self):
        """Where only this worker can end anything the order of seq is known before the answer: the code goes on."""
        e = next((e for e in self.outbox if e.kind == "step" and e.result and e.ended and not e.over), None)
        return e if e and all(o.kind == "step" and o.state != "unknown" for o in self.pending.values()) else None

    # --- what is said to the engine

    def words(self, e):
        """As it is now: what was never begun and has ended is one entry."""
        if e.about:
            return None if e.kind == "drop" and e.about.ended else e.brief
        said = {**e.brief, **({} if e.sent else e.fields)}
        if e.kind in WORKS:
            if e.over and not e.sent and not e.busy and not e.result:
                e.result = failure("it lost its race before it began", "DROPPED")
            said.update(e.result or {"state": "begun"})
        return said

    def post(self, entries, end=None):
        """Repeated until it is answered; with nothing to say it is a heartbeat."""
        worker, sent = self.worker, time.monotonic()
        text = json.dumps({"worker": worker.name, "fence": self.fence, "seq": self.seq, "entries": entries,
                           "leaseMs": worker.lease_ms, **({"end": end} if end else {})})
        answer = worker.api.text("POST", "functions/runs/%s/journal" % self.id, text, timeout=worker.lease_ms / 3000,
                                 until=self.lease_end)
        self.seq, self.sent, self.lease_end = answer["seq"], sent, sent + worker.lease_ms / 1000
        if answer["paused"] or answer["cancelled"] and not self.cancelled:
            self.halt = self.halt or RELEASED  # the next turn says so
        return answer["completed"]

    def send(self, end=None, held=None):
        """One call, with all that is to be said but what is held back. False: refused, or the run is not ours."""
        said = [(e, self.words(e)) for e in self.outbox if e is not held][:CALL_MAX]
        self.outbox = [held] if held else self.outbox[CALL_MAX:]
        try:
            news = self.post([words for _, words in said if words], end)
        except Exception as error:
            return self.refused(error, [e for e, _ in said])
        for e, words in said:
            e.sent, e.result = True, None
            e.state = (words or {}).get("state") or ("open" if e.state == "new" else e.state)
            if e.state == "unknown":
                e.onUnknown = "hold"  # what its worker does not know is for a person
        self.hear(news)
        self.ended = end and end["state"]
        return True

    def refused(self, error, said):
        """The turn comes to an end, and what stands in our memory is thrown away: with what has happened all the same.
        If that is refused, too (it is too large, or the journal full), a person is asked what was done."""
        code, decided = getattr(error, "code", None), set()
        self.refusals += 1
        if not isinstance(error, HapaxError) or error.status >= 500 or code in LOST or self.refusals == 3:
            self.dead = "lost"
            return False
        self.worker.log("%s: %s (%s)" % (self.id, error, code or error.status))
        if code == "BAD_ENTRY":  # by a person, meanwhile?
            try:
                decided = {(c["name"], c["n"]) for c in self.post([])}
            except Exception:
                pass
        anew = code in ANEW or any(e.id in decided for e in said)
        again = [e for e in said if (e.result if self.halt else e.happened) and e.id not in decided]
        for e in again if self.refusals == 2 and not anew else []:
            if e.result["state"] == "done":
                self.settle(e, failure(error, state="unknown"))
        self.outbox = again + [e for e in self.outbox if e not in again]
        self.halt = RELEASED if anew or self.refusals == 2 else failure(error)
        return False

    # --- what is executed

    def execute(self, e):
        e.busy = True
        self.running += 1
        _thread.start_new_thread(self.attempt, (e, e.state == "unknown" and e.work.probe))

    def attempt(self, e, asks):
        """In a thread of its own, whose result is mail."""
        work, call = e.work, self.worker.call
        key = e.key or "%s/%s/%d%s" % (self.id, encode(e.name), e.n, "/undo" if e.kind == "undo" else "")

        def found(otherwise):
            out = call(work.probe, key)
            return otherwise if out is None else {"state": "done", "output": out}
        try:
            if asks:
                again = {} if e.over or self.cancelled and e.kind == "step" else {"retryAfterMs": 0}
                result = found(failure("it was not done", "NOT_DONE", **again))
            else:
                e.attempt += 1
                result = {"state": "done", "output": call(work.fn, key, e.attempt, work.timeout)}
            json.dumps(result)
        except BaseException as error:
            result = failure(error, state="unknown") if asks else self.judge(e, error)
            if not asks and result["state"] == "unknown" and work.probe:  # in doubt: the probe knows, or nobody does
                try:
                    result = found(self.judge(e, NotDone(str(error))))
                except Exception:
                    pass
        self.mail.put((e, result))

    def judge(self, e, error):
        work = e.work
        if isinstance(error, Final):
            return failure(error)
        if work.effect == "claimed" and work.on_unknown != "retry" and not isinstance(error, NotDone):
            return failure(error, state="unknown")
        p = {"maxAttempts": 3, "factor": 2, "jitter": True, **(self.retry or {}), **(work.retry or {})}
        wait = duration(p.get("initial", p.get("initialMs", 1000))) * p["factor"] ** (e.attempt - 1)
        part = random.uniform(0.5, 1) if p["jitter"] else 1
        wait = min(wait, duration(p.get("max", p.get("maxMs", 300000)))) * part
        again = {"retryAfterMs": int(getattr(error, "retry_after_ms", wait))} if e.attempt < p["maxAttempts"] else {}
        return failure(error, **again)

    def settle(self, e, result):
        e.update(result, result=result)
        if e not in self.outbox:
            self.outbox.append(e)
        if e.over and e.state != "unknown":
            self.pending.pop(e.id, None)

    def read_mail(self, *seconds):
        """What was executed meanwhile; or waits for the next."""
        try:
            e, result = self.mail.get(bool(seconds), *seconds)
            e.busy, self.running = False, self.running - 1
            self.settle(e, result)
        except queue.Empty:
            pass

    # --- a turn

    def turn(self, journal):
        """True: suspended, and worth to be kept."""
        self.replay(journal)
        try:
            try:
                out = self.fn.code(Context(self, not self.fn.is_async), self.input)
                out = Branch(self, out).handle.result() if self.fn.is_async else out
                self.done = {"state": "completed", "output": out}
                json.dumps(out)
            except Exception as error:
                self.done = failure(error, **({"step": error.step} if isinstance(error, EntryError) else {}))
            while True:
                self.advance()
        except Stop:
            return not self.dead and self.ended == "suspended"
        finally:
            for branch in self.branches:
                branch.code.close()

    def advance(self):
        """The code waits, or has ended: what is next. It is left where it stands when the turn is over."""
        if self.ready:
            self.current = self.ready.popleft()
            self.current.resume()
            self.current = None
            return
        while not self.mail.empty():
            self.read_mail()
        if time.monotonic() > self.lease_end:
            self.dead = "lapsed"
        if self.dead or self.ended:
            raise Stop()
        self.replaying = self.replaying and bool(self.news)
        e = None if self.halt else self.news.popleft() if self.news else self.foreseen()
        if e:
            self.deliver(e)
        else:
            self.move()

    def move(self):
        """The code asks for nothing more: what is next."""
        if self.worker.stopping.is_set():
            self.halt = self.halt or RELEASED
        halt, pending = self.halt, list(self.pending.values())
        if halt:
            self.outbox = [e for e in self.outbox if halt["state"] != "diverged" and e.happened]
        if len(self.outbox) > CALL_MAX:
            return self.send()
        idle = halt or self.done and self.done["state"] == "failed" and not self.cancelled
        mine = [] if idle else [e for e in pending if not self.cancelled or e.state == "unknown"]
        steps = [e for e in mine if e.ready]
        if steps:
            return self.begin(steps)
        if self.running:
            return self.wait(mine)
        if halt:
            return self.send(halt)
        if self.cancelled:
            return self.unwind()
        if not self.done:
            return self.send() if any(e.ended for e in pending) else self.suspend(pending)
        if self.at < len(self.places):
            return self.diverge(self.places[self.at])
        self.outbox = [e for e in self.outbox if not ((e.about or e).kind == "step" and (e.about or e).state == "new")]
        return self.send(self.done)

    def wait(self, pending):
        """For what is executed."""
        now = time.monotonic()
        beat = self.sent + self.worker.lease_ms / 3000 - now
        if not all(e.busy for e in self.outbox):
            return self.send()
        if beat <= 0:
            return self.send(held=next(iter(self.outbox), None))  # a heartbeat
        return self.read_mail(max(0.001, min([beat] + [e.due - now for e in pending if e.due and not e.busy])))

    def begin(self, steps):
        """In one call, which is answered before anything is executed. One that is not claimed, and the last that the
        code has asked for, needs no word before: it is one write, when it has ended."""
        e, last = steps[0], self.outbox[-1:]
        plain = e.work.effect != "claimed" and not e.work.undo and (e.state != "new" or last == [e])
        lone = e if plain and len(steps) == 1 and not self.running else None
        for e in steps:
            asks = e.state == "unknown" and e.work.probe
            if e is not lone and e.state != "begun" and not asks and e not in self.outbox:
                self.outbox.append(e)
        if lone and [e for e in self.outbox if e is not lone]:
            return self.send(held=lone)
        while not lone and self.outbox:
            if not self.send():
                return None
        for e in steps if time.monotonic() < self.lease_end else ():
            if not self.halt:
                self.execute(e)
            elif e.state == "begun":
                self.settle(e, failure("not executed", retryAfterMs=0))

    def suspend(self, waits):
        if not waits:
            return self.send(failure("the code waits for nothing that ctx knows"))
        ids = {e.id for e in waits}
        alls = [{e.id for e in group if not e.over} for whole, group in self.groups if not whole.done]
        some = len(waits) > 1 and ids not in alls
        self.send({"state": "suspended", "awaits": [e.brief for e in waits], **({"any": True} if some else {})})

    def unwind(self):
        """Cancelled, and nothing is in doubt: what is done is undone, in reverse."""
        all, last, over = list(self.entries.values()), self.undoing, {id for id, u in self.undos.items() if u.ended}
        owed = [o for o in all if o.state == "done" and ("compensate", o.id) in self.marked and o.id not in over]
        e = owed[-1] if owed else None
        # What has failed is for a person, when the rest is done. The engine undoes a child, before what is ahead of it.
        if e and last and any(o.kind == "child" for o in all[all.index(e):all.index(last)]):
            return self.send(RELEASED)
        if self.outbox:
            return self.send()
        if not e:
            return self.send({"state": "undone"})
        if not e.undo:
            return self.diverge(Entry("compensate", e.name, e.n))
        u = self.undos.setdefault(e.id, Entry("undo", e.name, e.n))
        u.work, u.fields = copy.copy(e.undo), e.undo.fields
        u.work.fn = lambda key: e.undo.fn(e.output, key)
        if not u.ready:
            return self.suspend([u])
        self.undoing = e
        self.outbox.append(u)
        return self.begin([u])


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
