"""The client of the API: over HTTP, with keys made for what has none, so that each call can be sent again until it is
answered."""
import asyncio
import http.client
import json
import os
import random
import re
import selectors
import time
import urllib.parse
import uuid

UNITS = {"ms": 1, "s": 1000, "m": 60000, "h": 3600000, "d": 86400000}
OVER = ("COMPLETED", "FAILED", "CANCELLED")


class HapaxError(Exception):
    """What the server refuses."""

    def __init__(self, status, problem):
        problem = problem if isinstance(problem, dict) else {}
        super().__init__(problem.get("detail") or problem.get("title") or "HTTP status %d" % status)
        self.status, self.code, self.problem = status, problem.get("code"), problem


def duration(d):
    """Milliseconds of "250ms" "5s" "2m" "24h" "7d", or of a number of them."""
    m = isinstance(d, str) and re.fullmatch(r"([1-9][0-9]*)(ms|s|m|h|d)", d)
    if not m and not (isinstance(d, int) and d > 0):
        raise TypeError('%r is no duration, such as "30s"' % (d,))
    return int(m[1]) * UNITS[m[2]] if m else d


def encode(text):
    return urllib.parse.quote(text, safe="")


def new_key():
    return str(uuid.uuid4())


def _speaks(sock):
    with getattr(selectors, "PollSelector", selectors.SelectSelector)() as it:  # cheaper than the default for one
        it.register(sock, selectors.EVENT_READ)
        return bool(it.select(0))


class Api:
    def __init__(self, server=None, key=None, workspace=None, requester=None, timeout="30s", patience="2m"):
        at = urllib.parse.urlsplit(server or os.environ.get("HAPAX_SERVER") or "http://127.0.0.1:7411")
        line = http.client.HTTPSConnection if at.scheme == "https" else http.client.HTTPConnection
        self.connect, self.base = (line, at.netloc), at.path.rstrip("/") + "/api/v1/"
        self.timeout, self.patience = duration(timeout) / 1000, duration(patience) / 1000
        key = key or os.environ.get("HAPAX_KEY")
        said = {"Authorization": key and "Bearer " + key, "Hapax-Workspace": workspace, "Hapax-Requester": requester,
                "Content-Type": "application/json"}
        self.headers, self.idle = {k: v for k, v in said.items() if v}, []

    def once(self, method, path, text=None, headers=None, timeout=None):
        """One try, on a connection that is idle, or a new one: the status, what the body says, and seconds to wait."""
        try:
            line = self.idle.pop()
        except IndexError:
            line = self.connect[0](self.connect[1])
        line.timeout = timeout or self.timeout
        if line.sock and _speaks(line.sock):
            line.close()  # it has ended, or says what nobody has asked for: the next answer would be taken for another
        if line.sock:
            line.sock.settimeout(line.timeout)
        try:
            line.request(method, self.base + path, text, {**self.headers, **(headers or {})})
            answer = line.getresponse()
            said, after = answer.read(), answer.headers.get("Retry-After", "0")
            try:
                body = json.loads(said) if said else None
            except ValueError:
                if answer.status < 300:
                    raise
                body = None
        except BaseException:
            line.close()
            raise
        self.idle.append(line)
        return answer.status, body, int(after) if after.isdigit() else 0

    def close(self):
        while self.idle:
            self.idle.pop().close()

    def text(self, method, path, text=None, headers=None, timeout=None, until=None):
        """The same bytes again until there is an answer: what has none, or one that is none, was maybe done."""
        deadline, wait = until or time.monotonic() + self.patience, 0.02
        while True:
            try:
                status, body, after = self.once(method, path, text, headers, timeout)
                problem = HapaxError(status, body)
            except (OSError, http.client.HTTPException, ValueError) as error:
                status, body, after, problem = 0, None, 0, error
            if 200 <= status < 400:
                return body
            code, pause = getattr(problem, "code", None), max(after, wait * random.uniform(0.5, 1))
            unsure = status == 0 or status == 429 or status >= 500 or code == "IN_FLIGHT"
            if not unsure or code == "OUTCOME_UNKNOWN" or time.monotonic() + pause > deadline:
                raise problem
            time.sleep(pause)
            wait = min(2 * wait, 5)

    def call(self, method, path, body=None, idempotency_key=None):
        if method == "GET":
            return self.text(method, path)
        return self.text(method, path, json.dumps(body or {}), {"Idempotency-Key": idempotency_key or new_key()})


# What the API has, by its name here: arguments are those of the path, then those that are named after it;
# all others are named, and the query of a GET, or members of the body.
ROUTES = """
show          GET  workflow-runs/{id}
list          GET  workflow-runs
cancel        POST workflow-runs/{id}/cancel
retry         POST workflow-runs/{id}/retry
pause         POST workflow-runs/{id}/pause
resume        POST workflow-runs/{id}/resume
resolve       POST workflow-runs/{id}/steps/{step}/resolve outcome
schedule      PUT  schedules/{name}
batch_show    GET  batches/{id}
batch_items   GET  batches/{id}/items
batch_cancel  POST batches/{id}/cancel
entity_create POST entities/{workflow} id data
entity_list   GET  entities/{workflow}
entity_show   GET  entities/{workflow}/{id}
entity_fire   POST entities/{workflow}/{id}/steps/{step}
job_list      GET  jobs
"""


def _method(route):
    method, path, *more = route
    holes = re.findall(r"{(\w+)}", path)

    def call(self, /, *args, **given):
        given.update(zip(holes + more, args))
        if len(args) > len(holes + more) or not given.keys() >= set(holes):
            raise TypeError("it takes %s" % ", ".join(holes + more))
        at = path.format(**{hole: encode(given.pop(hole)) for hole in holes})
        if method != "GET":
            return self.call(method, at, given)
        query = urllib.parse.urlencode({k: v for k, v in given.items() if v is not None})
        return self.call(method, at + ("?" + query if query else ""))
    return call


class Client:
    """start, show, wait, signal, cancel, batches, entities, jobs (ROUTES). What changes something has a key, and can be
    sent again."""

    def __init__(self, **connection):
        self.api = Api(**connection)
        self.call, self.close = self.api.call, self.api.close

    def _wait(self, show, id, timeout):
        until = time.monotonic() + (duration(timeout) / 1000 if timeout else 1e9)
        while True:
            it = show(id, wait="%dms" % max(1, min(20000, int(1000 * (until - time.monotonic())))))
            if it["status"] in OVER or time.monotonic() >= until:
                return it

    def wait(self, id, timeout=None):
        return self._wait(self.show, id, timeout)

    def batch_wait(self, id, timeout=None):
        return self._wait(self.batch_show, id, timeout)

    def start(self, function, input=None, key=None, signal=None):
        body = {"definitionId": getattr(function, "name", function), "input": input or {}}
        event = {"signal": {"id": new_key(), **signal}} if signal else {}
        said = self.call("POST", "workflow-runs", {**body, **event, "idempotencyKey": key or new_key()})
        return {**said["run"], "created": said["created"]}

    def result(self, id, timeout=None):
        it = self.wait(id, timeout)
        if it["status"] == "COMPLETED":
            return it["output"]
        raise RuntimeError("%s is %s: %s" % (id, it["status"], it["error"]))

    def verb(self, id, verb, /, **body):
        return self.call("POST", "workflow-runs/%s/%s" % (encode(id), verb), body)

    def signal(self, id, event, data=None, event_id=None):
        return self.verb(id, "events/" + encode(event), id=event_id or new_key(), data=data)

    def approve(self, id, step, decision="approve", **more):
        return self.verb(id, "approvals/" + encode(step), decision=decision, **more)

    def batch(self, workflow, account, items, key=None, **more):
        body = {"workflow": workflow, "account": account, "items": items, "idempotencyKey": key or new_key()}
        return self.call("POST", "batches", {**body, **more})

    def job_push(self, queue, payload=None, key=None, **more):
        return self.call("POST", "jobs", {"queue": queue, "payload": payload, "key": key or new_key(), **more})

    def job_claim(self, queues, owner, max=1, leaseMs=30000, waitMs=0):
        body = {"queues": queues, "owner": owner, "max": max, "leaseMs": leaseMs, "waitMs": waitMs}
        return self.call("POST", "jobs/claim", body)

    def job(self, id, verb, /, **body):
        """heartbeat, complete, fail or redrive."""
        return self.call("POST", "jobs/%s/%s" % (encode(id), verb), body)


for _name, *_route in map(str.split, ROUTES.strip().splitlines()):
    setattr(Client, _name, _method(_route))


class AsyncClient:
    """The same for asyncio: every method is awaited."""

    def __init__(self, **connection):
        self.client = Client(**connection)

    def __getattr__(self, name):
        method = getattr(self.client, name)
        return lambda *all, **named: asyncio.get_running_loop().run_in_executor(None, lambda: method(*all, **named))
