#!/usr/bin/env bash
# What steps of entities save, and requests as a service wants them, while nodes are killed (-9): one on SQLite, two on PostgreSQL. A step is
# done exactly with its output, which later steps send; all tries of a call are the same bytes under one key; a change of the data that was
# answered is there; and an entity is found by what its data says. ENTITIES and KILLS say how many and how often.
PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=tests/support exec python3 - <<'END'
import concurrent.futures, http.server, json, os, random, threading, time, urllib.parse
import fleet, server
from fleet import Fleet
from server import Server, until, write

ENTITIES = int(os.environ.get("ENTITIES", 24))
KILLS = int(os.environ.get("KILLS", 6))
BILLS = "/api/v1/entities/bill"
fleet.seed("outputs_kill")


class Provider(http.server.ThreadingHTTPServer):
	"""Knows its keys: who comes again is given what it was given. No two keys are given the same."""
	daemon_threads = True
	request_queue_size = 256

	def __init__(self):
		super().__init__(("127.0.0.1", 0), Call)
		self.lock, self.requests, self.given, self.calls = threading.Lock(), {}, {}, 0
		self.url = f"http://127.0.0.1:{self.server_address[1]}"
		threading.Thread(target=self.serve_forever, daemon=True).start()

	def handle_error(self, *_):
		pass  # a node was killed while it was being answered


class Call(http.server.BaseHTTPRequestHandler):
	protocol_version = "HTTP/1.1"

	def answer(self):
		at, key = self.server, self.headers["Idempotency-Key"]
		request = (self.command, self.path, self.headers["X-Customer"], self.rfile.read(int(self.headers.get("Content-Length") or 0)))
		with at.lock:
			at.calls += 1
			at.requests.setdefault(key, set()).add(request)
			n = at.given.setdefault(key, len(at.given))
		time.sleep(random.uniform(0, 0.1))
		text = json.dumps({"number": n, "more": "than is wanted"}).encode()
		self.send_response(201)
		self.send_header("Content-Type", "application/json")
		self.send_header("Content-Length", str(len(text)))
		self.end_headers()
		self.wfile.write(text)

	do_PUT = do_POST = answer

	def log_message(self, *_):
		pass


def define(dir, url, nodes):
	http = {"kind": "http", "url": url, "effect": "keyed", "timeout": "2s", "headers": {"X-Customer": ".data.customer"},
		"output": "{number: .body.number, status: .status}"}
	write(dir / "workflows/bill.json", {
		"workflow": "bill", "kind": "entity", "status_types": ["draft", "quoting", "quoted", "closed"], "initial_status": "draft",
		"attributes": {"customer": ".data.customer", "quote": ".data.quote.number", "receipt": ".data.receipt.number", "note": ".data.note"},
		"actions": {
			"Quote": {**http, "method": "PUT", "path": "/quotes/{.id}", "query": {"of": ".input.of"}, "body": "{for: .id}"},
			"Close": {**http, "path": "[\"closings\", .id]", "form": {"quote": ".data.quote.number"}}},
		"steps": [
			{"step_id": 1, "step_key": "quote", "status": "draft", "claim_state": ["quoting", "draft"], "successful_state": "quoted",
				"lease": "1s", "action": "Quote", "save_as": "quote"},
			{"step_id": 2, "step_key": "close", "status": "quoted", "successful_state": "closed", "action": "Close", "save_as": "receipt"}]})
	for n in range(nodes):
		write(dir / f"n{n}/hapax.json", {"modules": {"bill": {"janitor": {"every": "200ms", "stuck_after": "1s"}}}})


class Bills(Fleet):
	def __init__(self, dir, store, nodes, url):
		define(dir, url, nodes)
		super().__init__(dir, store, nodes)

	def serve(self, n):
		return Server(self.dir / f"n{n}", "serve", "--db", self.store, "--workflows", str(self.dir / "workflows"), "--node", f"n{n}",
			"--config", "hapax.json")

	def fire(self, id, step, to):
		"""Until it is there: who finds it claimed, in doubt or without a node comes again, with the same."""
		def fired():
			self.call("POST", f"{BILLS}/{id}/steps/{step}", {"input": {"of": f"{step} & <{id}>"}})
			return self.ask("GET", f"{BILLS}/{id}")["status"] == to
		until(fired, f"{id} to be {to}", 120)

	def note(self, id):
		"""A change of its data that was answered; one whose answer is lost has raised the version."""
		def noted():
			bill = self.ask("GET", f"{BILLS}/{id}")
			if bill["data"].get("note") == id:
				return True
			return self.call("POST", f"{BILLS}/{id}/data", {"data": {"note": id}, "version": bill["version"]})[0] == 200
		until(noted, f"the note of {id}", 120)

	def go_through(self, i):
		id = f"b-{i}"
		self.call("POST", BILLS, {"id": id, "data": {"customer": f"c-{i % 3}"}})
		self.fire(id, "quote", "quoted")
		self.note(id)
		self.fire(id, "close", "closed")


def given(provider, method, path, wanted):
	"""What was given to the one key of these calls, which were all the same."""
	keys = [key for key, requests in provider.requests.items() if any(r[0] == method and r[1].split("?")[0] == path for r in requests)]
	assert len(keys) == 1, (path, keys)
	assert provider.requests[keys[0]] == {wanted}, provider.requests[keys[0]]
	return provider.given[keys[0]]


def check(nodes, provider, i):
	id, customer = f"b-{i}", f"c-{i % 3}"
	of = urllib.parse.quote(f"quote & <{id}>", safe="")
	quote = given(provider, "PUT", f"/quotes/{id}", ("PUT", f"/quotes/{id}?of={of}", customer, json.dumps({"for": id}, separators=(",", ":")).encode()))
	receipt = given(provider, "POST", f"/closings/{id}", ("POST", f"/closings/{id}", customer, f"quote={quote}".encode()))
	bill = nodes.ask("GET", f"{BILLS}/{id}")
	assert bill["data"] == {"customer": customer, "quote": {"number": quote, "status": 201}, "note": id,
		"receipt": {"number": receipt, "status": 201}}, bill
	where = urllib.parse.quote(f'customer == "{customer}" and quote == {quote} and receipt == {receipt} and note == "{id}"')
	assert [e["id"] for e in nodes.ask("GET", f"{BILLS}?where={where}")["items"]] == [id]
	done = [h for h in nodes.all(f"/api/v1/history/entity%3Abill%3A{id}") if h["to"] in ("quoted", "closed") and h["from"] != h["to"]]
	assert [(h["step"], h["output"]) for h in done] == [("quote", bill["data"]["quote"]), ("close", bill["data"]["receipt"])], done


def test_killed_while_they_are_at_it(dir):
	for dir, store, nodes_n in fleet.stores(dir):
		provider = Provider()
		with Bills(dir, store, nodes_n, provider.url) as nodes, concurrent.futures.ThreadPoolExecutor(8) as threads:
			nodes.rage_while(lambda: list(threads.map(nodes.go_through, range(ENTITIES))), KILLS)
			for i in range(ENTITIES):
				check(nodes, provider, i)
			print(f"# outputs_kill: {ENTITIES} entities, {provider.calls} calls, {nodes.kills} kills", flush=True)
			assert nodes.kills and len(provider.requests) == 2 * ENTITIES
			nodes.audit()
		provider.shutdown()


server.run(globals())
END
