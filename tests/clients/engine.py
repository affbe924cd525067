"""The engine's side of the protocol of functions, for the conformance script: small, strict, in memory, and unkind on request.

It takes nothing that the contract does not allow: what a client does wrong becomes an entry of Engine.wrong. Each run may have
faults: at the k-th of its journal calls (`faults`), of the pages of its journal (`page_faults`), of its heartbeats (`beat_faults`); every
other claim that hands out turns may have one. What ends from outside (sleeps, events, approvals, children) ends when the scene says so.
"""
import http.server
import json
import math
import socket
import threading
import time
import urllib.request

FAULTS = ("before", "in", "after", "late", "twice", "busy", "lapse before", "lapse after")  # what can become of an exchange
ABOUT = ("compensate", "undo", "drop")
OUTPUT_MAX = 1048576
WAITING = ("sleep", "event", "approval", "child")
FIELDS = {"step": {"state", "effect", "onUnknown", "output", "error", "retryAfterMs"}, "sleep": {"until", "forMs"}, "event": {"event", "timeoutMs"},
          "approval": {"timeoutMs"}, "child": {"workflow", "input"}, "value": {"output"}, "attribute": {"value"}, "compensate": set(), "drop": set()}
FIELDS["undo"] = FIELDS["step"]


class Refused(Exception):
    def __init__(self, status, code, detail=""):
        super().__init__(detail)
        self.status, self.code, self.detail = status, code, detail


class Run:
    def __init__(self, id, function, scene):
        self.id, self.function, self.scene = id, function, scene
        self.input = scene.get("input", {})
        self.version = scene.get("version", "1")
        self.entries, self.index, self.seq, self.taken, self.fence = [], {}, 0, 0, 0
        self.worker, self.until, self.last, self.held_until = None, 0, None, 0
        self.status, self.awaits, self.any = "PENDING", None, False
        self.cancelled = self.paused = self.cold = self.overtaken = False
        self.said = None  # the last call that has come, whatever became of it
        self.calls = self.turns = self.replays = self.pages = self.beats = 0
        self.told_n = self.told_bytes = 0  # entries of its journal that workers were told of, and their bytes
        self.unheard = False  # the turn was handed out, and the answer lost: nobody knows of it
        self.end = None
        self.effects = []  # (step, key) as they were executed
        self.retry_at = {}  # by place: when a step that has failed is to be tried again
        for e in scene.get("journal", []):
            self.add(dict(e))

    def add(self, e):
        self.seq += 1
        e.update(i=len(self.entries), seq=self.seq)
        e.setdefault("attempt", 1)
        self.entries.append(e)
        self.index[e["name"], e["n"], e["kind"] if e["kind"] in ABOUT else ""] = e
        self.note_retry(e)
        return e

    def find(self, e):
        return self.index.get((e["name"], e["n"], e["kind"] if e["kind"] in ABOUT else ""))

    def change(self, e, **more):
        self.seq += 1
        e.update(seq=self.seq, **more)
        self.note_retry(e)

    def note_retry(self, e):
        if "retryAfterMs" in e:
            self.retry_at[e["i"]] = time.monotonic() + e["retryAfterMs"] / 1000

    def left(self, e):
        """Of the time until it is tried again, in ms."""
        return max(0, math.ceil(1000 * (self.retry_at[e["i"]] - time.monotonic())))

    def told(self, e):
        """As a worker is told of it: what is left, not what was said once. Who comes anew would otherwise wait anew."""
        return dict(e, retryAfterMs=self.left(e)) if "retryAfterMs" in e else dict(e)

    def ended(self, e):
        return e["state"] in ("done", "dropped") or e["state"] == "failed" and "retryAfterMs" not in e


class Engine:
    def __init__(self):
        self.lock = threading.RLock()
        self.changed = threading.Condition(self.lock)
        self.runs, self.wrong, self.claims, self.claim_fault, self.open = {}, [], 0, None, 0
        self.handler = type("Handler", (Handler,), {"engine": self})
        self.waits = None  # since when the last claim does
        self.many, self.old = 0, False  # requests of many calls; an engine that does not know these
        self.forgiving = False  # workers are being killed: leases run out
        self.server = Server(("127.0.0.1", 0), self.handler)
        self.server.engine = self
        self.url = "http://127.0.0.1:%d" % self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def start(self, id, function, scene):
        with self.lock:
            self.runs[id] = Run(id, function, scene)
            self.changed.notify_all()
            return self.runs[id]

    def drain(self):
        """All that workers have said who are dead now has been heard: connections are taken in the order of their coming."""
        urllib.request.urlopen(urllib.request.Request(self.url + "/effect", b'{"key": "", "step": ""}')).read()
        with self.lock:
            while self.open:
                self.changed.wait(0.2)

    def blame(self, run, words):
        self.wrong.append("%s: %s" % (run.id if run else "claim", words))

    # --- time and the outside world

    def lapse(self, run):
        """The worker's lease is over: what it had begun is unknown, and a person or the next worker says what it was."""
        run.worker, run.cold, run.last = None, True, None  # a call that was taken is not answered again: who sent it has the turn no more
        for e in run.entries:
            if e["state"] == "begun":
                run.change(e, state="unknown")
        self.resolve(run)
        run.status = "PENDING"
        self.changed.notify_all()

    def lapse_in_time(self, run):
        """A lease that runs out in earnest does so when what was claimed has long happened."""
        with self.lock:
            until = time.monotonic() + run.scene.get("patience", 5)
            while time.monotonic() < until and [e for e in run.entries if e["state"] == "begun" and e.get("effect") == "claimed" and not self.was_done(run, e)]:
                self.changed.wait(0.1)
            if run.end is None and run.worker:
                self.lapse(run)

    def resolve(self, run):
        """A person looks at what is held, and knows by the key whether it was done."""
        for e in run.entries:
            if e["state"] == "unknown" and e.get("onUnknown", "hold") == "hold":
                done = {"state": "done", "output": {"step": e["name"]}}
                run.change(e, **(done if self.was_done(run, e) else {"state": "failed", "retryAfterMs": 0}))

    def was_done(self, run, e):
        return "%s/%s/%d" % (run.id, e["name"], e["n"]) in [key for _, key in run.effects]

    def end_open(self, run):
        order = run.scene.get("ends", [])
        waiting = [e for e in run.entries if e["state"] == "open"]
        waiting.sort(key=lambda e: order.index(e["name"]) if e["name"] in order else len(order))
        for e in waiting:
            if e["name"] in run.scene.get("never", []):
                continue
            if e["name"] in run.scene.get("timeout", []):
                run.change(e, state="failed", error={"code": "TIMEOUT", "message": "it took too long"})
            elif e["kind"] == "approval":
                run.change(e, state="done", output={"decision": run.scene.get("decision", "approve"), "by": "ann", "comment": None})
            else:
                run.change(e, state="done", output={"from": e["name"]} if e["kind"] != "sleep" else None)
            if run.scene.get("one_by_one"):
                break

    def due(self, run):
        if run.status != "WAITING" or run.paused:
            return run.status == "PENDING" and not run.paused
        if run.cancelled:
            return True
        awaited = [run.find(a) for a in run.awaits]
        retries = [e for e in awaited if e["state"] == "failed" and "retryAfterMs" in e and not run.left(e)]
        over = [run.ended(e) for e in awaited]
        failed = any(e["state"] == "failed" and run.ended(e) for e in awaited)
        return (any(over) if run.any else all(over)) or failed or bool(retries)

    # --- the calls

    def claim(self, body, alive):
        deadline = time.monotonic() + min(body.get("waitMs", 0), 25000) / 1000
        for name, top in (("waitMs", 25000), ("leaseMs", 600000)):
            if not (isinstance(body.get(name), int) and 0 <= body[name] <= top):
                self.blame(None, "%s is %r" % (name, body.get(name)))
        polled = {(f["name"], f["version"]) for f in body["functions"]}
        warm = {w["run"]: w["seq"] for w in body.get("warm", [])}
        with self.lock:
            self.waits = time.monotonic()
            while alive():
                turns = []
                for run in self.runs.values():
                    if run.worker and time.monotonic() > run.until:
                        if not self.forgiving and not run.unheard:
                            self.blame(run, "the lease ran out")
                        self.lapse(run)
                    if run.turns == 1 and run.scene.get("elsewhere") and not warm.get(run.id):
                        continue  # it is for who has it in memory
                    if run.end is None and run.worker is None and self.due(run) and (run.function, run.version) in polled and len(turns) < body["max"]:
                        turns.append(self.hand_out(run, body, warm))
                if turns or time.monotonic() > deadline:
                    return {"turns": turns}
                self.changed.wait(min(0.2, max(0.001, deadline - time.monotonic())))
            return {"turns": []}

    def hand_out(self, run, body, warm):
        run.fence += 1
        run.turns += 1
        run.unheard = False
        run.worker, run.status, run.awaits, run.last = body["worker"], "RUNNING", None, None
        run.until = time.monotonic() + body["leaseMs"] / 1000
        since = warm.get(run.id, 0)
        if run.cold or since > run.seq or run.scene.get("always_cold"):
            since = 0
        run.cold = False
        if run.turns == 2:
            self.had_a_turn(run)
        run.replays += since == 0 and run.turns > 1
        run.taken = max(run.taken, 0)
        journal, more = self.page(run, since)
        return {"run": run.id, "function": run.function, "version": run.version, "key": None, "fence": run.fence, "seq": run.seq, "input": run.input,
                "attempt": 1, "retry": {"maxAttempts": 3, "initialMs": 20, "factor": 1, "maxMs": 50, "jitter": False}, "leaseUntil": "2026-01-01T00:00:00.000Z",
                "from": since, "journal": journal, "more": more, "cancelled": run.cancelled}

    def had_a_turn(self, run):
        """Another worker, meanwhile: what it began there has ended in the other order."""
        elsewhere = [run.add(dict(e, state="begun")) for e in run.scene.get("elsewhere", [])]
        for e in reversed(elsewhere):
            run.change(e, state="done", output={"step": e["name"]})

    def page(self, run, after):
        all = sorted((e for e in run.entries if e["seq"] > after), key=lambda e: e["seq"])
        size = run.scene.get("page", 1000000)
        page = [run.told(e) for e in all[:size]]
        run.told_n += len(page)
        run.told_bytes += len(json.dumps(page))
        return page, len(all) > size

    def lose(self, answer):
        """Nobody has heard of these turns. Their leases are over soon."""
        with self.lock:
            for t in answer["turns"]:
                run = self.runs[t["run"]]
                if run.fence == t["fence"]:
                    run.unheard, run.until = True, time.monotonic() + 0.2

    def hold_up(self, answer):
        """Half of their leases, or more, is over when these turns are heard of: with a call that is late, too, they may run out."""
        with self.lock:
            for t in answer["turns"]:
                self.runs[t["run"]].unheard = True

    def read(self, id, query):
        with self.lock:
            run = self.runs.get(id)
            if not run:
                raise Refused(404, "NOT_FOUND")
            if int(query["fence"]) != run.fence:
                raise Refused(409, "STALE_FENCE")
            journal, more = self.page(run, int(query["after"]))
            return {"journal": journal, "seq": run.seq, "more": more}

    def journal(self, id, text, alive):
        with self.lock:
            run, body = self.runs.get(id), json.loads(text)
            if not run:
                raise Refused(404, "NOT_FOUND")
            if set(body) - {"worker", "fence", "seq", "entries", "end", "leaseMs"}:
                self.blame(run, "unknown members %s" % sorted(body))
            heartbeat = not body.get("entries") and not body.get("end")
            mine = body["worker"] == run.worker and body["fence"] == run.fence
            if run.last and run.last[0] == text and body["fence"] == run.fence:
                return run.last[1]
            if not mine:
                raise Refused(409, "STALE_FENCE")
            if body["seq"] > run.seq:
                self.blame(run, "seq %d of %d" % (body["seq"], run.seq))
            if not heartbeat and body["seq"] < run.taken:
                if alive():  # else it is what was sent again since, and answered
                    self.blame(run, "a call in conflict: seq %d, taken at %d" % (body["seq"], run.taken))
                raise Refused(409, "SEQ_CONFLICT")
            run.until = max(run.until, time.monotonic() + body.get("leaseMs", 1000) / 1000)
            if not heartbeat:
                self.decide(run, body)
                self.check(run, body)
                self.apply(run, body)
            own = {(e["kind"], e["name"], e["n"]) for e in body.get("entries") or [] if e.get("state") in ("done", "failed")}
            told = [dict(e) for e in sorted(run.entries, key=lambda e: e["seq"]) if e["seq"] > body["seq"] and run.ended(e)]
            for e in told:
                if (e["kind"], e["name"], e["n"]) in own and e["kind"] not in WAITING:
                    e.pop("output", None)
            answer = {"seq": run.seq, "completed": told, "cancelled": run.cancelled, "paused": run.paused, "leaseUntil": "2026-01-01T00:00:00.000Z"}
            if not heartbeat:
                run.last = (text, answer)
                run.taken = run.seq
                if run.status == "WAITING" and not run.scene.get("at_once"):
                    self.end_open(run)
            self.changed.notify_all()
            return answer

    def decide(self, run, body):
        """A person says what became of a step at the very moment at which a worker begins it again."""
        for e in run.entries:
            if e["name"] == run.scene.get("decide") and e["state"] == "unknown" and run.find(e) is e and [o for o in body["entries"] if o["name"] == e["name"]]:
                run.change(e, state="done", output={"step": e["name"]})
                run.overtaken = True

    def check(self, run, body):
        """All or nothing: everything is looked at before anything is changed."""
        begun = {(e["name"], e["n"]) for e in run.entries if e["state"] == "begun" and e["kind"] in ("step", "undo")}
        fresh = set()
        if len(json.dumps(body)) > OUTPUT_MAX:
            raise Refused(413, "TOO_LARGE", "output is too large")
        if len(body["entries"]) > 1000:
            self.refuse(run, "TOO_LARGE", "%d entries" % len(body["entries"]))
        for e in body["entries"]:
            bad = set(e) - {"kind", "name", "n"} - FIELDS[e["kind"]]
            if bad:
                self.refuse(run, "BAD_ENTRY", "%s has %s" % (e["kind"], bad))
            o = run.find(e)
            outcome = e["kind"] in ("step", "undo") and (e["state"] != "begun" or o and o["state"] == "unknown")  # of what is in doubt
            if run.cancelled and not outcome and e["kind"] not in ("compensate", "undo"):
                raise Refused(409, "CANCELLED")
            if run.paused and (not outcome or e["state"] == "begun"):
                raise Refused(409, "WRONG_STATUS")
            id = (e["kind"] if e["kind"] in ABOUT else "", e["name"], e["n"])
            uses = [x for x in run.entries if x["name"] == e["name"] and x["kind"] not in ABOUT]
            new = len([x for x in fresh if x[1] == e["name"] and x[0] == ""])
            if e["kind"] in ABOUT and e["kind"] != "undo":
                if o or id in fresh:
                    self.refuse(run, "BAD_ENTRY", "%s of %s twice" % (e["kind"], e["name"]))
                if e["n"] >= len(uses) + new:
                    self.refuse(run, "BAD_ENTRY", "%s of %s, which is not there" % (e["kind"], e["name"]))
            elif o or id in fresh:
                if not o or o["kind"] != e["kind"] or e["kind"] not in ("step", "undo"):
                    self.refuse(run, "BAD_ENTRY", "%s %s is there" % (e["kind"], e["name"]))
                if run.ended(o) and run.overtaken and o["seq"] > body["seq"]:
                    raise Refused(422, "BAD_ENTRY", "%s has ended" % o["name"])  # nobody's fault
                if run.ended(o) or o["state"] == "begun" and e["state"] == "begun":
                    self.refuse(run, "BAD_ENTRY", "%s is %s, and not %s again" % (o["name"], o["state"], e["state"]))
            elif e["kind"] != "undo" and e["n"] != len(uses) + new:
                self.refuse(run, "BAD_ENTRY", "%s number %d, of %d" % (e["name"], e["n"], len(uses) + new))
            if e["kind"] in ("step", "undo"):
                (begun.add if e["state"] == "begun" else begun.discard)((e["name"], e["n"]))
                if e.get("effect", (o or {}).get("effect")) == "claimed" and e["state"] == "done" and not (o and o["state"] in ("begun", "unknown")):
                    self.refuse(run, "BAD_ENTRY", "%s is claimed, and was not begun" % e["name"])
            fresh.add(id)
        self.check_end(run, body.get("end"), begun, body)

    def check_end(self, run, end, begun, body):
        if not end:
            return
        if begun:
            self.refuse(run, "STEP_OPEN", "begun: %s" % sorted(begun))
        doubtful = [e["name"] for e in run.entries if e["state"] == "unknown" and e["onUnknown"] != "hold" and
                    not [x for x in body["entries"] if (x["kind"], x["name"], x["n"]) == (e["kind"], e["name"], e["n"])]]
        if doubtful and end["state"] in ("completed", "undone"):
            self.refuse(run, "STEP_OPEN", "in doubt: %s" % doubtful)
        if run.cancelled and end["state"] not in ("undone", "failed", "suspended", "released", "diverged"):
            raise Refused(409, "CANCELLED")
        if run.paused and end["state"] != "released":
            raise Refused(409, "WRONG_STATUS")
        if end["state"] == "suspended":
            named = [(e["kind"], e["name"], e["n"]) for e in body["entries"]]
            over = [(e["kind"], e["name"], e["n"]) for e in body["entries"] if e.get("state") in ("done", "failed") and "retryAfterMs" not in e]
            for a in end["awaits"]:
                o = run.find(a)
                id = (a["kind"], a["name"], a["n"])
                if not o and id not in named or id in over or o and run.ended(o) and o["seq"] <= body["seq"]:
                    self.refuse(run, "NOTHING_TO_WAIT_FOR", "%s" % a)
            if not end["awaits"]:
                self.refuse(run, "NOTHING_TO_WAIT_FOR", "nothing")

    def refuse(self, run, code, words):
        self.blame(run, "%s: %s" % (code, words))
        raise Refused(422, code, words)

    def apply(self, run, body):
        for e in body["entries"]:
            o = run.find(e)
            if o:
                o.pop("retryAfterMs", None)
                run.change(o, **dict(e, attempt=o["attempt"] + (o["state"] != "begun")))
            else:
                e = dict(e)
                if e["kind"] in WAITING:
                    e["state"] = "open"
                else:
                    e.setdefault("state", "done")
                o = run.add(e)
            if o["state"] == "unknown":
                o["onUnknown"] = "hold"  # what its worker does not know, a person has to
            if e["kind"] == "drop":
                about = run.find(dict(e, kind="step"))
                if not run.ended(about):
                    run.change(about, state="dropped")
        if run.scene.get("at_once"):
            self.end_open(run)
        self.resolve(run)
        end = body.get("end")
        if end:
            run.seq += 1
            run.worker_was, run.worker = run.worker, None
            if end["state"] == "suspended":
                run.status, run.awaits, run.any = "WAITING", end["awaits"], end.get("any", False)
                if run.cancelled is False and run.scene.get("cancel_at") in ["suspend"] + [a["name"] for a in end["awaits"]]:
                    self.cancel(run)
                if run.scene.get("pause_at") == "suspend":
                    run.paused = False
            elif end["state"] == "released":
                run.status, run.paused, run.cold, run.released = "PENDING", False, True, True
            elif end["state"] == "failed" and run.scene.get("undo_failure") and not run.cancelled:
                self.cancel(run)
                run.status = "PENDING"
            else:
                run.status, run.end = "ENDED", end

    def cancel(self, run):
        run.cancelled = True
        for e in run.entries:
            if e["state"] == "open" or e["state"] == "failed" and "retryAfterMs" in e:
                run.change(e, state="dropped")
        self.changed.notify_all()

    def effect(self, body):
        """A step of a function has done something. Was it allowed to?"""
        run = self.runs.get(body["key"].split("/")[0])
        if not run:
            return {"n": 0}
        time.sleep(run.scene.get("slow", 0))  # on its way, whatever becomes of the worker meanwhile
        with self.lock:
            run.effects.append((body["step"], body["key"]))
            self.changed.notify_all()
            # In the journal there has to be what the scene wants ahead of this step; and a claim, if it is claimed.
            there = [e["name"] for e in run.entries]
            for name in run.scene.get("ahead", {}).get(body["step"], []):
                if name not in there:
                    self.blame(run, "%s was executed before %s was in the journal" % (body["step"], name))
            if body.get("claimed") and not any(e["name"] == body["step"] and e["state"] == "begun" for e in run.entries):
                self.blame(run, "%s was executed without a claim" % body["step"])
            if run.scene.get("cancel_at") == body["step"]:
                self.cancel(run)
            if run.scene.get("pause_at") == body["step"] and not getattr(run, "released", False):
                run.paused = True
            if run.scene.get("steal_at") == body["step"] and run.fence == 1:
                self.lapse(run)
            return {"n": len([k for _, k in run.effects if k == body["key"]])}


class Server(http.server.ThreadingHTTPServer):
    request_queue_size, daemon_threads, engine = 256, True, None

    def count(self, by):
        with self.engine.lock:
            self.engine.open += by
            self.engine.changed.notify_all()

    def process_request(self, request, address):
        self.count(1)
        super().process_request(request, address)

    def process_request_thread(self, request, address):
        super().process_request_thread(request, address)
        self.count(-1)

    def handle_error(self, *words):
        pass  # connections that the client has closed


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    engine = None

    def log_message(self, *words):
        pass

    def do_GET(self):
        path, _, query = self.path.partition("?")
        run = self.engine.runs.get(path.split("/")[-2])
        fault = self.count(run, "pages", "page_faults")
        self.reply(lambda: self.engine.read(run.id, dict(q.split("=") for q in query.split("&"))), fault, run)

    def count(self, run, what, faults):
        with self.engine.lock:
            setattr(run, what, getattr(run, what) + 1)
            return run.scene.get(faults, {}).get(getattr(run, what))

    def do_POST(self):
        text = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
        parts = self.path.split("/")
        if self.path == "/effect":
            return self.reply(lambda: self.engine.effect(json.loads(text)))
        if parts[-1] == "claim":
            return self.claim(json.loads(text))
        if parts[-2:] == ["functions", "journal"]:
            return self.journals(text)
        self.reply(lambda: self.engine.journal(parts[-2], text, self.alive), self.fault(parts[-2], text), self.engine.runs.get(parts[-2]))

    def fault(self, id, text):
        body = json.loads(text)
        beat, run = not body.get("entries") and not body.get("end"), self.engine.runs.get(id)
        with self.engine.lock:  # what is sent again since another one's call was late is no other call; nor is what was given up
            lost = not self.alive()
            again = lost or run and not beat and run.said == text
            if run and not beat and not lost:
                run.said = text
        return None if again else self.count(run, *(("beats", "beat_faults") if beat else ("calls", "faults")))

    def journals(self, text):
        """Calls of many runs. One that finds the store busy is told so by itself; what else goes wrong with one goes wrong with all."""
        if self.engine.old:
            return self.reply(lambda: self.engine.read(None, {}))
        with self.engine.lock:
            self.engine.many += 1
        calls, end = [], 0
        for id in [c["run"] for c in json.loads(text)["calls"]]:
            start = text.index('"call":', end) + len('"call":')
            end = json.JSONDecoder().raw_decode(text, start)[1]
            calls.append((id, text[start:end], self.fault(id, text[start:end])))  # the bytes, which are the same if it comes alone

        def answer(id, call, fault):
            status, said = self.answer(lambda: self.engine.journal(id, call, self.alive), fault)
            return {"status": status, "body": said}
        bad = [(self.engine.runs[id], fault) for id, _, fault in calls if fault and fault != "busy"]
        self.reply(lambda: {"answers": [answer(*c) for c in calls]}, bad[0][1] if bad else None, *(run for run, _ in bad))

    def claim(self, body):
        fault = self.engine.claim_fault
        if fault in ("before", "busy"):  # once: there is no telling whether there would have been turns
            self.engine.claim_fault = None
            return self.reply(None, fault)
        answer = self.engine.claim(body, self.alive)
        with self.engine.lock:
            self.engine.claims += bool(answer["turns"])
            still = fault == self.engine.claim_fault  # it may have waited since another kind of fault
            fault = fault if answer["turns"] and self.engine.claims % 2 and still else None
        if fault in ("in", "after"):
            self.engine.lose(answer)
        if fault == "late":
            self.engine.hold_up(answer)
        if self.reply(lambda: answer, fault) == "too late":
            self.engine.lose(answer)

    def alive(self):
        try:
            return self.connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) != b""
        except BlockingIOError:
            return True
        except OSError:
            return False

    def cut(self):
        self.close_connection = True
        try:
            self.connection.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass

    def answer(self, call, fault):
        if fault == "busy":
            return 503, {"code": "STORE_UNAVAILABLE"}
        try:
            return 200, call()
        except Refused as error:
            return error.status, {"status": error.status, "code": error.code, "detail": error.detail}

    def reply(self, call, fault=None, *runs):
        if fault in ("before", "lapse before"):
            for run in runs if fault == "lapse before" else ():
                self.engine.lapse_in_time(run)
            return self.cut()
        status, said = self.answer(call, fault)
        for run in runs if fault == "lapse after" else ():
            self.engine.lapse_in_time(run)
        if fault in ("after", "lapse after"):
            return self.cut()
        until = time.monotonic() + max([run.scene.get("late", 2.2) for run in runs if run], default=2.2)
        while fault == "late" and time.monotonic() < until:
            if not self.alive():
                self.cut()
                return "too late"  # for who has asked: a claim that had waited already is given up meanwhile, with its turns
            time.sleep(0.05)
        text = json.dumps(said).encode()
        head = "HTTP/1.1 %d X\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % (status, len(text))
        bytes = head.encode() + text
        try:
            if fault == "in":
                self.wfile.write(bytes[: len(bytes) - len(text) // 2 - 1])
                self.wfile.flush()
                return self.cut()
            self.wfile.write(bytes * (2 if fault == "twice" else 1))
            self.wfile.flush()
        except OSError:
            self.close_connection = True
