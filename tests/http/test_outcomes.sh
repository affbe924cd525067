#!/usr/bin/env bash
# The second table of docs/actions.md: a real service gives every answer that there is a line for, once, to every kind of caller,
# and what becomes of that is the table. The first table has a line for each rule of act/status.c (unit/act/test_status compares
# them), and each of those is met here. WRITE=1 writes the page anew.
PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=tests/support exec python3 - <<'END'
import collections, concurrent.futures, http.server, json, os, re, threading, time
import server
from server import Server, until, write

PAGE = server.ROOT / "docs" / "actions.md"
OK, HANGS_UP, CUT = (200, {}, b'{"ok":1}'), None, "cut"
TEXT, JSON = {"Content-Type": "text/plain"}, {"Content-Type": "application/json"}
LATER = {"Retry-After": "2"}


class Line:
	"""What the service says first (before: what it says before that), and which rules of the first table it is for."""

	def __init__(self, words, status, fields=None, body=b"", effect="claimed", action=None, step=None, before=(), rule=None):
		self.words, self.answer = words, status if status in (HANGS_UP, CUT) else (status, fields or {}, body)
		self.effect, self.action, self.step, self.before, self.rule = effect, action or {}, step or {}, list(before), rule

	def sequence(self):
		return [*self.before, self.answer]

	def waits(self):
		return isinstance(self.answer, tuple) and "Retry-After" in self.answer[1]


KEYED = 'of a `keyed` action, with `Retry-After` or after a try that is in doubt'
INVALID = 'with `"is_invalid": true` in the body'
LINES = [
	Line('200, JSON', 200, JSON, b'{"outcome":"done"}', rule="200 to 299"),
	Line('200 `text/plain`, `ok`', 200, TEXT, b"ok", rule="200 to 299"),
	Line('200, bytes that are not UTF-8', 200, {}, b"\xff\xfe", rule="200 to 299"),
	Line('204, or 200 without a body', 204, rule="200 to 299"),
	Line('200, `{"is_invalid": true}`', 200, JSON, b'{"is_invalid":true}', rule="200 to 299"),
	Line('200, declared as JSON, and it is not', 200, JSON, b"ok", rule="200 to 299"),
	Line('200, and its body ends early', CUT),
	Line('no answer: it hangs up, or takes too long', HANGS_UP),
	Line('302', 302, {"Location": "/elsewhere"}, rule="300 to 499"),
	Line('400', 400, {}, b"no", rule="300 to 499"),
	Line('400, `{"is_invalid": true}`', 400, JSON, b'{"is_invalid":true}', rule=f"400 to 499 {INVALID}"),
	Line('404', 404, rule="404 of a cleanup action"),
	Line('410', 410, rule="410 of a cleanup action"),
	Line('422', 422, JSON, b'{"why":"no"}', rule="422"),
	Line('408', 408, rule="408"),
	Line('425', 425, rule="425"),
	Line('429', 429, rule="429"),
	Line('429, `Retry-After: 2`', 429, LATER, rule="429"),
	Line('409, with or without `Retry-After`', 409, LATER, rule="300 to 499"),
	Line('409 of a `keyed` action, on its first try', 409, effect="keyed", rule="300 to 499"),
	Line('409 of a `keyed` action, `Retry-After: 2`', 409, LATER, effect="keyed", rule=f"409 {KEYED}"),
	Line('409 of a `keyed` action, after a try in doubt', 409, effect="keyed", before=[HANGS_UP], rule=f"409 {KEYED}"),
	Line('500', 500, rule="500 to 599"),
	Line('503, `Retry-After: 2`', 503, LATER, rule="503 with `Retry-After`"),
	Line('500, `"on_5xx": "unknown"`', 500, step={"on_5xx": "unknown"}, rule="500 to 599 where `on_5xx` is `unknown`"),
	Line('503, `Retry-After: 2`, `"on_5xx": "unknown"`', 503, LATER, step={"on_5xx": "unknown"}, rule="503 with `Retry-After`"),
	Line('999', 999, rule="any other number"),
	Line('404, `"outcomes": {"404": "done"}`', 404, TEXT, b"gone", action={"outcomes": {"404": "done"}}),
	Line('409, `"outcomes": {"409": "retry"}`', 409, LATER, effect="keyed", action={"outcomes": {"409": "retry"}}),
	Line('502, `"outcomes": {"500-599": "unknown"}`', 502, action={"outcomes": {"500-599": "unknown"}}),
	Line('402, `"outcomes": {"402": "rejected"}`', 402, JSON, b'{"why":"no money"}', action={"outcomes": {"402": "rejected"}}),
	Line('202, `"outcomes": {"202": "failed"}`', 202, action={"outcomes": {"202": "failed"}}),
]


class Service:
	"""/KIND/LINE: the line's answers, one after the other, and then for ever what is good. Other paths: what is good."""

	def __init__(self):
		self.calls, self.lock, service = collections.defaultdict(list), threading.Lock(), self
		self.more = {}  # answers of other paths, the last one for ever

		class Handler(http.server.BaseHTTPRequestHandler):
			protocol_version = "HTTP/1.1"

			def do_POST(self):
				self.rfile.read(int(self.headers.get("Content-Length") or 0))
				with service.lock:
					service.calls[self.path].append([time.monotonic(), None, self.headers.get("Idempotency-Key")])
					n = len(service.calls[self.path])
				self.reply(service.answer(self.path, n))
				service.calls[self.path][n - 1][1] = time.monotonic()

			def reply(self, answer):
				if answer in (HANGS_UP, CUT):
					if answer == CUT:
						self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{}")
					self.close_connection = True
					return
				status, fields, body = answer
				self.send_response(status)
				for name, value in fields.items():
					self.send_header(name, value)
				if status != 204:
					self.send_header("Content-Length", str(len(body)))
				self.end_headers()
				self.wfile.write(body)

			def log_message(self, *_):
				pass

		class Httpd(http.server.ThreadingHTTPServer):
			daemon_threads, request_queue_size = True, 256

			def handle_error(self, *_):
				pass

		self.httpd = Httpd(("127.0.0.1", 0), Handler)
		self.url = f"http://127.0.0.1:{self.httpd.server_address[1]}"
		threading.Thread(target=self.httpd.serve_forever, daemon=True).start()

	def answer(self, path, n):
		if path in self.more:
			return self.more[path][min(n, len(self.more[path])) - 1]
		kind, line = path.strip("/").split("/")
		if kind == "lost":
			return HANGS_UP
		if kind == "good":
			return OK
		answers = LINES[int(line)].sequence()
		if n <= len(answers):
			return answers[n - 1]
		return (200, JSON, b'{"outcome":"done"}') if kind == "probe" else OK

	def close(self):
		self.httpd.shutdown()
		self.httpd.server_close()


RETRY = {"max_attempts": 3, "initial": "10ms", "max": "10ms", "factor": 1, "jitter": False}


def definitions(dir, url):
	def act(kind, i, **more):
		return {"kind": "http", "url": f"{url}/{kind}/{i}", **more}

	def put(value):
		write(dir / "flows" / f"{value['workflow']}.json", value)

	def entity(name, step, actions, module):
		put({"workflow": name, "kind": "entity", "meta": {"module": module}, "status_types": ["open", "busy", "shut"],
			"initial_status": "open", "actions": actions,
			"steps": [{"step_id": 1, "step_key": "go", "status": "open", "successful_state": "shut", **step}]})

	for i, line in enumerate(LINES):
		own = {"effect": line.effect, **line.action}
		put({"workflow": f"run{i}", "kind": "run", "actions": {"go": act("run", i, **own)},
			"steps": [{"name": "go", "type": "task", "action": "go", "retry": RETRY, **line.step}]})
		entity(f"entity{i}", {"claim_state": ["busy", "open"], "action": "go", **line.step}, {"go": act("entity", i, **own)},
			"quick" if line.before else "slow")
		entity(f"after{i}", {"success_after_effect": ["go"]}, {"go": act("after", i, **own)}, "slow")
		put({"workflow": f"item{i}", "kind": "batch", "actions": {"go": act("item", i, **own)}, "item_action": "go", "retry": RETRY,
			**line.step})
		put({"workflow": f"probe{i}", "kind": "run", "actions": {"go": {**act("lost", i), "probe": "ask"},
			"ask": act("probe", i, **own)},
			"steps": [{"name": "go", "type": "task", "action": "go", "retry": RETRY, "on_unknown": "probe"}]})
		put({"workflow": f"clean{i}", "kind": "batch", "actions": {"go": act("good", i), "drop": act("clean", i, **own)},
			"item_action": "go", "cleanup_action": "drop"})
	write(dir / "config.json", {"modules": {"slow": {"janitor": {"every": "1h", "stuck_after": "1h"}},
		"quick": {"janitor": {"every": "100ms", "stuck_after": "1s"}}}})


class Walk:
	def __init__(self, hapax, service):
		self.hapax, self.service = hapax, service

	def json(self, i, method, path, body=None, **more):
		return self.hapax.json(method, "/api/v1" + path, body, [("Hapax-Workspace", f"line{i}")], **more)

	def calls(self, kind, i):
		return self.service.calls[f"/{kind}/{i}"]

	def again(self, kind, i, words, attempts=None):
		"""It was called again: when, and under which key."""
		calls, line = self.calls(kind, i), LINES[i]
		n = len(line.sequence())
		assert len(calls) == n + 1, f"{kind} {line.words}: {len(calls)} calls"
		if kind not in ("probe", "clean"):  # each of these is a question, or a pass, of its own
			assert len({c[2] for c in calls}) == 1, f"{kind} {line.words}: another key"
		if line.waits():
			rest = calls[n][0] - calls[n - 1][1]
			assert rest >= 1.99, f"{kind} {line.words}: again after {rest} s"
			words += ", after 2 s"
		if attempts is not None and attempts < n + 1:
			words += ", no attempt used"
		return words

	def once(self, kind, i):
		n = len(self.calls(kind, i))
		assert n == len(LINES[i].sequence()), f"{kind} {LINES[i].words}: {n} calls"

	def run_of(self, i, workflow):
		id = self.json(i, "POST", "/workflow-runs", {"definitionId": workflow}, status=201)["run"]["id"]
		return until(lambda: (run := self.json(i, "GET", f"/workflow-runs/{id}")) and (run["status"] in ("COMPLETED", "FAILED") or
			run["steps"][0]["status"] == "UNKNOWN") and run, f"{workflow} {LINES[i].words}")

	def run(self, i):
		run = self.run_of(i, f"run{i}")
		step = run["steps"][0]
		if run["status"] == "COMPLETED" and step["output"] == {"ok": 1}:
			return self.again("run", i, "tried again", step["attempt"])
		self.once("run", i)
		if run["status"] == "COMPLETED":
			return f"`COMPLETED`, `{json.dumps(step['output'])}`"
		return f"`{run['status']}`, `{run['error']['code']}`" if run["status"] == "FAILED" else "`UNKNOWN`, held"

	def fire(self, i):
		status, head, body = self.hapax.call("POST", f"/api/v1/entities/entity{i}/x/steps/go", {},
			[("Hapax-Workspace", f"line{i}")])
		later = re.search(r"(?i)\r\nretry-after: (\d+)", head)
		return status, json.loads(body), later and later[1]

	def entity(self, i):
		self.json(i, "POST", f"/entities/entity{i}", {"id": "x"}, status=201)
		show = lambda: self.json(i, "GET", f"/entities/entity{i}/x")
		for _ in LINES[i].before:
			assert self.fire(i)[0] == 504
			until(lambda: show()["status"] == "open", "the janitor")
		status, body, later = self.fire(i)
		now = show()["status"]
		self.once("entity", i)
		if status == 200:
			assert now == "shut"
			return f"200, `{json.dumps(body['output'])}`"
		assert later == ("2" if LINES[i].waits() and status != 422 and now != "shut" and self.may_follow(i) else None), (LINES[i].words, later)
		words = f"{status} `{body['code']}`, " + {"open": "given back", "busy": "claim kept"}[now]
		return words + (f", `Retry-After: {later}`" if later else "")

	def may_follow(self, i):
		"""A time is passed on only where another try may come to something."""
		return LINES[i].answer[0] != 409 or LINES[i].effect == "keyed"

	def after(self, i):
		self.json(i, "POST", f"/entities/after{i}", {"id": "x"}, status=201)
		self.json(i, "POST", f"/entities/after{i}/x/steps/go", {}, status=200)
		job = until(lambda: (j := self.json(i, "GET", "/jobs")["items"][0])["status"] in ("COMPLETED", "PARKED") and j, "the job")
		if job["status"] == "COMPLETED" and len(self.calls("after", i)) > len(LINES[i].sequence()):
			return self.again("after", i, "tried again", job["attempt"])
		self.once("after", i)
		return f"`{job['status']}`"

	def batch(self, i, workflow, items):
		self.json(i, "POST", "/accounts", {"id": workflow, "balance": 1}, status=201)
		made = self.json(i, "POST", "/batches", {"workflow": workflow, "account": workflow,
			"items": [{"input": {}, "cost": 1}] * items}, status=201)
		return made.get("id") or made["batch"]["id"]

	def item(self, i):
		id = self.batch(i, f"item{i}", 1)
		until(lambda: self.json(i, "GET", f"/batches/{id}")["status"] == "COMPLETED", f"the batch of {LINES[i].words}")
		item = self.json(i, "GET", f"/batches/{id}/items")["items"][0]
		if item["status"] == "SUCCEEDED" and item["output"] == {"ok": 1}:
			return self.again("item", i, "tried again")
		self.once("item", i)
		if item["status"] == "SUCCEEDED":
			return f"`SUCCEEDED`, `{json.dumps(item['output'])}`"
		return f"`{item['status']}`, " + ("returned" if item["charged"] == 0 else "stays charged")

	def probe(self, i):
		run = self.run_of(i, f"probe{i}")
		assert run["status"] == "COMPLETED", run
		if len(self.calls("probe", i)) == 1:
			return "done"
		return self.again("probe", i, "asked again")

	def clean(self, i):
		id = self.batch(i, f"clean{i}", 2)
		until(lambda: self.json(i, "GET", f"/batches/{id}")["status"] == "OUT_OF_CREDIT", "its stop")
		self.json(i, "POST", f"/batches/{id}/cancel", {})
		until(lambda: self.json(i, "GET", f"/batches/{id}")["status"] == "CANCELLED", f"the teardown of {LINES[i].words}")
		if len(self.calls("clean", i)) == 1:
			return "done"
		return self.again("clean", i, "called again")

	def cell(self, kind, i):
		line = LINES[i]
		if (line.step and kind in ("after", "probe", "clean")) or (line.before and kind in ("probe", "clean")):
			return "–"
		return getattr(self, kind)(i)


KINDS = {"run": "step of a run", "entity": "step of an entity", "after": "after-effect", "item": "item", "probe": "probe", "clean": "cleanup"}


def between(text, name):
	return re.search(rf"<!-- {name} -->\n(.*?)<!-- /{name} -->\n", text, re.S)


def test_every_rule_is_met(dir):
	rules = [row.split(" | ")[0][2:] for row in between(PAGE.read_text(), "statuses")[1].splitlines()[2:]]
	assert len(rules) > 10 and set(rules) == {line.rule for line in LINES if line.rule}, set(rules) ^ {l.rule for l in LINES if l.rule}


def test_what_each_caller_does(dir):
	service = Service()
	definitions(dir, service.url)
	with Server(dir, "serve", "--db", "sqlite:h.db", "--workflows", "flows", "--config", "config.json") as hapax:
		walk = Walk(hapax, service)
		with concurrent.futures.ThreadPoolExecutor(24) as pool:
			cells = {(kind, i): pool.submit(walk.cell, kind, i) for i in range(len(LINES)) for kind in KINDS}
		table = "| the first answer | " + " | ".join(KINDS.values()) + " |\n|" + " --- |" * (len(KINDS) + 1) + "\n"
		for i, line in enumerate(LINES):
			table += f"| {line.words} | " + " | ".join(cells[kind, i].result() for kind in KINDS) + " |\n"
	service.close()
	page = PAGE.read_text()
	old = between(page, "outcomes")
	if os.environ.get("WRITE"):
		PAGE.write_text(page[:old.start(1)] + table + page[old.end(1):])
		old = between(PAGE.read_text(), "outcomes")
	for was, now in zip(old[1].splitlines(), table.splitlines()):
		assert was == now, f"docs/actions.md has another line (WRITE=1 writes it anew)\n{was}\n{now}"
	assert old[1] == table, "docs/actions.md has another number of lines"
	print(f"# {len(LINES)} answers, {len(LINES) * len(KINDS)} callers")


def scene(dir, service, definition, **answers):
	service.more = {f"/{name}": list(those) for name, those in answers.items()}
	write(dir / "flows" / "w.json", {"workflow": "w", **definition})
	write(dir / "config.json", {"modules": {"m": {"janitor": {"every": "1h", "stuck_after": "1h"}},
		"quick": {"janitor": {"every": "100ms", "stuck_after": "1s"}}}})
	return Server(dir, "serve", "--db", "sqlite:h.db", "--workflows", "flows", "--config", "config.json")


def entity_of(url, effect, **step):
	act = lambda path: {"kind": "http", "url": f"{url}/{path}", "effect": effect}
	return {"kind": "entity", "meta": {"module": "m"}, "status_types": ["open", "busy", "shut"], "initial_status": "open",
		"actions": {"act": act("act"), "look": act("look")},
		"steps": [{"step_id": 1, "step_key": "go", "status": "open", "successful_state": "shut", "action": "act", **step}]}


def fired(hapax):
	status, head, body = hapax.call("POST", "/api/v1/entities/w/x/steps/go", {})
	later = re.search(r"(?i)\r\nretry-after: (\d+)", head)
	return status, json.loads(body).get("code"), later and later[1], hapax.json("GET", "/api/v1/entities/w/x")["status"]


def test_keyed_step_without_a_claim(dir):
	"""Nobody has noted whether there was a try before: it is told as a failure, and the key stays."""
	service = Service()
	with scene(dir, service, entity_of(service.url, "keyed"), act=[(409, {}, b""), (409, LATER, b""), OK]) as hapax:
		hapax.json("POST", "/api/v1/entities/w", {"id": "x"}, status=201)
		assert fired(hapax) == (502, "ACTION_FAILED", None, "open")
		assert fired(hapax) == (504, "OUTCOME_UNKNOWN", "2", "open")
		assert fired(hapax) == (200, None, None, "shut")
		assert len(service.calls["/act"]) == 3 and len({c[2] for c in service.calls["/act"]}) == 1, service.calls
	service.close()


def test_validation(dir):
	service = Service()
	definition = entity_of(service.url, "claimed", claim_state=["busy", "open"], validation="look")
	with scene(dir, service, definition, look=[(429, LATER, b""), (404, LATER, b""), (200, TEXT, b"fine")], act=[OK]) as hapax:
		hapax.json("POST", "/api/v1/entities/w", {"id": "x"}, status=201)
		assert fired(hapax) == (502, "ACTION_FAILED", "2", "open")
		assert fired(hapax) == (502, "ACTION_FAILED", None, "open")
		assert not service.calls["/act"]
		assert fired(hapax) == (200, None, None, "shut")
	service.close()


def test_probe_of_a_claim(dir):
	"""The janitor asks again when the lease is over, and not before the service wants it."""
	service = Service()
	definition = entity_of(service.url, "claimed", claim_state=["busy", "open"], lease="1s", on_unknown="probe")
	definition["meta"]["module"] = "quick"
	definition["actions"]["act"]["probe"] = "look"
	with scene(dir, service, definition, act=[HANGS_UP], look=[(429, {"Retry-After": "4"}, b""), (200, JSON, b'{"outcome":"done"}')]) as hapax:
		hapax.json("POST", "/api/v1/entities/w", {"id": "x"}, status=201)
		assert fired(hapax) == (504, "OUTCOME_UNKNOWN", "4", "busy")
		until(lambda: hapax.json("GET", "/api/v1/entities/w/x")["status"] == "shut", "the janitor")
		first, second = service.calls["/look"]
		assert second[0] - first[1] >= 3.9, service.calls["/look"]
	service.close()


def test_ten_minutes_are_the_end(dir):
	"""A Retry-After beyond them is not waited for: a person is asked at once."""
	service, busy = Service(), (409, {"Retry-After": "601"}, b"")
	act = lambda path: {"kind": "http", "url": f"{service.url}/{path}", "effect": "keyed"}
	write(dir / "flows" / "r.json", {"workflow": "r", "kind": "run", "actions": {"go": act("run")},
		"steps": [{"name": "go", "type": "task", "action": "go"}]})
	write(dir / "flows" / "b.json", {"workflow": "b", "kind": "batch", "actions": {"go": act("item")}, "item_action": "go"})
	definition = entity_of(service.url, "keyed", success_after_effect=["look"])
	with scene(dir, service, definition, run=[busy], item=[busy], act=[OK], look=[busy]) as hapax:
		run = hapax.json("POST", "/api/v1/workflow-runs", {"definitionId": "r"}, status=201)["run"]["id"]
		held = until(lambda: (r := hapax.json("GET", f"/api/v1/workflow-runs/{run}"))["steps"][0]["status"] == "UNKNOWN" and r, "the run")
		assert held["status"] == "WAITING" and held["steps"][0]["attempt"] == 1, held
		hapax.json("POST", "/api/v1/accounts", {"id": "a", "balance": 1}, status=201)
		made = hapax.json("POST", "/api/v1/batches", {"workflow": "b", "account": "a", "items": [{"input": {}, "cost": 1}]}, status=201)
		batch = "/api/v1/batches/" + (made.get("id") or made["batch"]["id"])
		until(lambda: hapax.json("GET", batch + "/items")["items"][0]["status"] == "UNKNOWN", "the item")
		hapax.json("POST", "/api/v1/entities/w", {"id": "x"}, status=201)
		assert fired(hapax)[0] == 200
		until(lambda: hapax.json("GET", "/api/v1/jobs")["items"][0]["status"] == "PARKED", "the job")
		assert [len(service.calls[p]) for p in ("/run", "/item", "/look")] == [1, 1, 1], service.calls
	service.close()


def test_void(dir):
	"""No refund before the key is void: the batch rests for as long as the service asks."""
	service = Service()
	act = lambda path, **more: {"kind": "http", "url": f"{service.url}/{path}", **more}
	definition = {"kind": "batch", "actions": {"make": act("make", effect="keyed", void="annul"), "annul": act("annul", effect="keyed")},
		"item_action": "make", "on_unknown": "hold"}
	with scene(dir, service, definition, make=[HANGS_UP], annul=[(429, LATER, b""), OK]) as hapax:
		hapax.json("POST", "/api/v1/accounts", {"id": "a", "balance": 1}, status=201)
		made = hapax.json("POST", "/api/v1/batches", {"workflow": "w", "account": "a", "items": [{"input": {}, "cost": 1}] * 2}, status=201)
		batch = "/api/v1/batches/" + (made.get("id") or made["batch"]["id"])
		until(lambda: hapax.json("GET", batch)["status"] == "OUT_OF_CREDIT", "its stop")
		hapax.json("POST", batch + "/cancel", {})
		until(lambda: hapax.json("GET", batch)["status"] == "CANCELLED", "its end")
		first, second = service.calls["/annul"]
		assert second[0] - first[1] >= 1.99, service.calls["/annul"]
		assert hapax.json("GET", "/api/v1/accounts/a")["balance"] == 1
	service.close()


server.run(globals())
END
