"""
For test_dashboard.sh: a server with something of every noun, all that can wait for a person among it, and strangers' texts in it.
"""
import http.server
import json
import threading

from server import Server, until, write

MARKUP = "<img src=x onerror=\"window.hurt=1\"><script>window.hurt=1</script>"
TURNED = "invoice\u202efdp.exe \u0007bell\u200bno space"
LONG = "long " * 200
EVIL = f"{MARKUP} {TURNED} {{{{7*7}}}} ${{window.hurt=1}} javascript:window.hurt=1"


class World:
	"""Services, by path: /ok does it, /refuse refuses, /vanish hangs up in the middle, /evil refuses with markup, /slow waits for `go`, /flaky
	does it at the third try, /asked is a probe, which says what `says` is."""

	def __init__(self):
		self.go = threading.Event()
		self.says, self.asked, self.tries = {"outcome": "unknown"}, [], 0
		world = self

		class Handler(http.server.BaseHTTPRequestHandler):
			def do_POST(self):
				body = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or b"{}")
				n = (body.get("item") or {}).get("n")
				if self.path == "/slow":
					world.go.wait(60)
				if self.path == "/vanish" or (self.path == "/frame" and n is not None and n % 9 == 4):
					return
				status, answer = 200, {"receipt": "r-%s" % (n if n is not None else "1"), "amount": 12345678901234567890}
				if self.path == "/refuse" or (self.path == "/frame" and n is not None and n % 7 == 5):
					status, answer = 400, {"error": "the card was declined"}
				if self.path == "/asked":
					world.asked.append((self.headers["Idempotency-Key"], body))
					answer = world.says
				if self.path == "/flaky":
					world.tries += 1
					if world.tries < 3:
						status, answer = 503, {"error": f"no place in line {world.tries}"}
				if self.path == "/evil":
					status, answer = 400, {"error": EVIL * (2000 if body.get("input", {}).get("large") else 1)}
				text = json.dumps(answer).encode()
				self.send_response(status)
				self.send_header("Content-Type", "application/json")
				self.send_header("Content-Length", str(len(text)))
				self.end_headers()
				self.wfile.write(text)

			def log_message(self, *_):
				pass

		self.httpd = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
		self.httpd.daemon_threads = True
		self.httpd.handle_error = lambda *_: None
		self.url = f"http://127.0.0.1:{self.httpd.server_address[1]}"
		threading.Thread(target=self.httpd.serve_forever, daemon=True).start()

	def __enter__(self):
		return self

	def __exit__(self, *_):
		self.go.set()
		self.httpd.shutdown()
		self.httpd.server_close()


def http_action(world, path, **more):
	return {"kind": "http", "url": world.url + path, **more}


def run(name, actions, steps, **more):
	return {"workflow": name, "kind": "run", "actions": actions, "steps": steps, **more}


def task(name, action, **more):
	return {"name": name, "type": "task", "action": action, **more}


def definitions(world):
	ok, refuse, vanish = http_action(world, "/ok", effect="keyed"), http_action(world, "/refuse", effect="keyed"), http_action(world, "/vanish")
	asked = {**vanish, "probe": "asked"}
	yield run("order", {"reserve": ok, "charge": asked, "asked": http_action(world, "/asked"), "release": ok, "mail": ok},
		[task("reserve", "reserve", save_as="reservation", compensate="release"), task("charge", "charge", on_unknown="hold"),
		 {"name": "paid", "type": "external_event", "event": "payment", "timeout": "1h"}, task("mail", "mail")], output="{reservation: .state.reservation}", attributes={"amount": ".input.total"})
	yield run("flaky", {"flaky": http_action(world, "/flaky", effect="keyed")}, [task("book", "flaky", retry={"max_attempts": 3, "initial": "20ms"})])
	yield run("refund", {"refuse": refuse, "ok": ok}, [task("look_up", "ok"), task("pay_back", "refuse")], attributes={"amount": ".input.amount"})
	yield run("evil", {"evil": http_action(world, "/evil", effect="keyed")}, [task("__proto__", "evil")])
	yield run("hire", {}, [{"name": "sign", "type": "approval", "timeout": "24h", "on_timeout": "fail"}])
	yield run("parcel", {}, [{"name": "delivered", "type": "external_event", "event": "delivered", "timeout": "48h", "save_as": "proof"}], output=".state.proof")
	yield run("line", {"ok": ok}, [task("pack", "ok")], output="{n: .input.n}")
	yield run("shipment", {"ok": ok}, [task("weigh", "ok"), {"name": "lines", "type": "map", "over": ".input.lines", "workflow": "line", "input": "{n: .index}", "save_as": "lines"}])
	yield {"workflow": "invoice", "kind": "entity", "meta": {"module": "billing"}, "status_types": ["draft", "approved", "closing", "closed"], "initial_status": "draft",
		"actions": {"Close": asked, "asked": http_action(world, "/asked")}, "steps": [{"step_id": 1, "step_key": "approve", "status": "draft", "successful_state": "approved"},
			{"step_id": 2, "step_key": "close", "status": "approved", "claim_state": ["closing", "approved"], "successful_state": "closed", "action": "Close", "on_unknown": "hold"}]}
	yield {"workflow": "render", "kind": "batch", "actions": {"frame": http_action(world, "/frame", probe="asked"), "asked": http_action(world, "/asked"), "delete": ok}, "item_action": "frame", "cleanup_action": "delete", "retry": {"max_attempts": 1}}
	yield {"workflow": "film", "kind": "batch", "actions": {"slow": http_action(world, "/slow", timeout="10m"), "delete": ok}, "item_action": "slow", "cleanup_action": "delete", "concurrency": 2}


def serve(dir, world, db="sqlite:h.db", *more):
	for definition in definitions(world):
		write(dir / f"workflows/{definition['workflow']}.json", definition)
	write(dir / "config.json", {"modules": {"billing": {"janitor": {"every": "1h", "stuck_after": "1h"}}}})
	return Server(dir, "serve", "--db", db, "--workflows", "workflows", "--config", "config.json", *more)


class Scene:
	"""All of it, made over the API; `ask` is the server's own json()."""

	def __init__(self, hapax, headers=()):
		self.hapax, self.headers = hapax, headers
		self.fill()

	def ask(self, method, path, body=None, status=None):
		return self.hapax.json(method, "/api/v1/" + path, body, headers=self.headers, status=status)

	def start(self, workflow, key, **given):
		return self.ask("POST", "workflow-runs", {"definitionId": workflow, "idempotencyKey": key, "input": given})["run"]["id"]

	def status(self, id):
		return self.ask("GET", f"workflow-runs/{id}")["status"]

	def fill(self):
		self.runs = {
			"unknown": self.start("order", "order-1001", sku="lamp", total=90, exact=12345678901234567890.0, big=10**19),
			"unknown2": self.start("order", "order-1002", sku="desk", total=410),
			"failed": self.start("refund", "refund-7", order="order-0993", amount=120),
			"failed2": self.start("refund", "refund-8", order="order-0994", amount=20),
			"evil": self.start("evil", EVIL[:200], **{MARKUP: EVIL, "long": LONG, "nested": {"a": [1, {"b": EVIL}], "__proto__": {"hurt": 1}}}),
			"approval": self.start("hire", "hire-12", name="Ann Verweij", salary=5200),
			"approval2": self.start("hire", "hire-13", name="Jo"),
			"waiting": self.start("parcel", "parcel-1"), "paused": self.start("parcel", "parcel-2"), "waiting2": self.start("parcel", "parcel-3"),
			"parent": self.start("shipment", "shipment-1", lines=[1, 2, 3]), "flaky": self.start("flaky", "seat-12"),
		}
		self.ask("POST", "entities/invoice", {"id": "inv-100", "data": {"customer": "Acme", "amount": 12000, "exact": 0.10}})
		for id in ("inv-100", EVIL[:120]):
			if id != "inv-100":
				self.ask("POST", "entities/invoice", {"id": id.replace("\u0007", ""), "data": {"name": EVIL}})
		self.ask("POST", "entities/invoice/inv-100/steps/approve", {})
		self.ask("POST", "entities/invoice/inv-100/steps/close", {}, status=504)
		self.ask("POST", "accounts", {"id": "alice", "balance": 100000})
		self.ask("POST", "accounts", {"id": "<b>bob</b>", "balance": 0})
		items = [{"input": {"frame": n}, "cost": 5} for n in range(60)]
		self.batch = self.ask("POST", "batches", {"workflow": "render", "account": "alice", "items": items, "idempotencyKey": "film-1"})["id"]
		self.film = self.ask("POST", "batches", {"workflow": "film", "account": "alice", "items": items[:12]})["id"]
		self.held = self.ask("POST", "batches", {"workflow": "render", "account": "alice", "items": items[:3], "hold": True})["id"]
		self.job = self.ask("POST", "jobs", {"queue": "mail", "payload": {"to": "ann@example.org", "words": EVIL}, "key": "mail-1"})["jobs"][0]["id"]
		(job,) = self.ask("POST", "jobs/claim", {"queues": ["mail"], "owner": "w1", "max": 1, "leaseMs": 60000})["jobs"]
		self.ask("POST", f"jobs/{job['id']}/fail", {"owner": "w1", "fence": job["fence"], "error": "550 no such mailbox " + MARKUP, "retryable": False})
		self.ask("POST", "functions/claim", {"worker": "<i>w</i>", "functions": [{"name": "greet", "version": "1"}, {"name": "greet", "version": "2"}], "waitMs": 0})
		self.ask("PUT", "schedules/nightly", {"workflow": "parcel", "cron": "0 6 * * *", "timezone": "Europe/Amsterdam"})
		self.ask("PUT", "schedules/hourly", {"workflow": "parcel", "every": "1h"})
		for which, wanted in (("unknown", "WAITING"), ("unknown2", "WAITING"), ("failed", "FAILED"), ("failed2", "FAILED"), ("evil", "FAILED"), ("approval", "WAITING"), ("approval2", "WAITING"), ("waiting", "WAITING"), ("paused", "WAITING"), ("waiting2", "WAITING"), ("parent", "COMPLETED"), ("flaky", "COMPLETED")):
			until(lambda: self.status(self.runs[which]) == wanted, f"{which} {wanted}")
		self.ask("POST", f"workflow-runs/{self.runs['paused']}/pause", {})
		until(lambda: self.ask("GET", f"batches/{self.batch}")["status"] == "COMPLETED", "the batch")
		until(lambda: self.ask("GET", f"batches/{self.film}")["running"] > 0, "the film")
