#!/usr/bin/env bash
# The limits of the programs as people start them, each at the limit and one past it: body, head, query, depth of JSON, connections.
# What a server does about slow, idle and greedy clients is in tests/http/test_limits.c.
PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=tests/support exec python3 - <<'END'
import gzip, json, re, resource, socket
import server
from server import Server, Service, read_answer, until, write

MIB = 1 << 20
LINE, HEAD, FIELDS, DEPTH, CONNECTIONS = 8192, 32768, 100, 64, 10000


def chunked(pieces):
	return b"".join(b"%x\r\n%s\r\n" % (len(p), p) for p in pieces) + b"0\r\n\r\n"


def run_of(n):
	"""A request to start a run of a workflow that there is not, of exactly n bytes: who answers 404 has read it."""
	start, end = b'{"definitionId":"none"', b"}"
	return start + b" " * (n - len(start) - len(end)) + end


def post(hapax, path, body, chunks=0, fields=b""):
	head = b"POST " + path.encode() + b" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n" + fields
	if chunks:
		step = (len(body) + chunks - 1) // chunks
		return hapax.raw(head + b"Transfer-Encoding: chunked\r\n\r\n" + chunked([body[i:i + step] for i in range(0, len(body), step)]))
	return hapax.raw(head + b"Content-Length: %d\r\n\r\n" % len(body) + body)


def refused(answer, status, code, detail=""):
	assert answer[0] == status and json.loads(answer[2])["code"] == code and detail in json.loads(answer[2])["detail"], answer


def check_body(hapax, path, most, status, limit="max_body_bytes"):
	for chunks in (0, 1, 3):
		assert post(hapax, path, run_of(most), chunks)[0] == status, f"{most} bytes in {chunks} chunks"
		refused(post(hapax, path, run_of(most + 1), chunks), 413, "TOO_LARGE", f"{limit} is {most}")
	# A body that says that it is too large is refused before it is sent.
	refused(hapax.raw(b"POST " + path.encode() + b" HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % (most + 1)), 413, "TOO_LARGE", f"{limit} is {most}")


def test_body(dir):
	with Server(dir, "serve", "--db", "sqlite:h.db") as hapax:
		check_body(hapax, "/api/v1/workflow-runs", 16 * MIB, 404)


def test_body_as_configured(dir):
	write(dir / "hapax.json", {"max_body_bytes": 1024})
	with Server(dir, "serve", "--db", "sqlite:h.db", "--config", "hapax.json") as hapax:
		check_body(hapax, "/api/v1/workflow-runs", 1024, 404)


def test_body_at_the_gate(dir):
	write(dir / "gate.json", {"routes": [{"match": "POST /small", "required": False, "max_request_bytes": 1000}, {"match": "POST /*", "required": False}]})
	with Service() as service, Server(dir, "gate", "--upstream", service.url, "--store", "memory:", "--config", "gate.json") as gate:
		check_body(gate, "/any", MIB, 200, "max_request_bytes")
		assert {len(c[2]) for c in service.calls} == {MIB}
		service.calls.clear()
		for chunks in (0, 3):
			assert post(gate, "/small", run_of(1000), chunks)[0] == 200
			refused(post(gate, "/small", run_of(1001), chunks), 413, "TOO_LARGE", "max_request_bytes is 1000")
		assert [len(c[2]) for c in service.calls] == [1000, 1000], "nothing too large was passed on"


def get(hapax, path, fields=b""):
	return hapax.raw(b"GET " + path + b" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n" + fields + b"\r\n")


def check_head(hapax, ok):
	"""`ok` is what a request for /healthz?x that is within all limits is answered."""
	base = len(b"GET  HTTP/1.1")
	path = lambda n: b"/healthz?x=" + b"y" * (n - base - len(b"/healthz?x="))
	assert get(hapax, path(LINE))[0] == ok, "the longest query"
	assert get(hapax, path(LINE + 1))[0] == 414
	have = len(b"GET /healthz?x= HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
	field = lambda n: b"X: " + b"v" * (n - 5) + b"\r\n"
	assert get(hapax, b"/healthz?x=", field(HEAD - have))[0] == ok, "the longest head"
	assert get(hapax, b"/healthz?x=", field(HEAD - have + 1))[0] == 431
	assert get(hapax, b"/healthz?x=", b"X: v\r\n" * (FIELDS - 2))[0] == ok, "the most fields"
	assert get(hapax, b"/healthz?x=", b"X: v\r\n" * (FIELDS - 1))[0] == 431


def test_head(dir):
	with Server(dir, "serve", "--db", "sqlite::memory:") as hapax:
		ok = get(hapax, b"/healthz?x=")[0]
		assert ok in (200, 400)
		check_head(hapax, ok)


def test_head_at_the_gate(dir):
	with Service() as service, Server(dir, "gate", "--upstream", service.url, "--store", "memory:") as gate:
		# One field and a few bytes less: the gate's own request has to fit into the limits of the service (Python's has 100 fields).
		base = len(b"GET  HTTP/1.1")
		assert get(gate, b"/" + b"y" * (LINE - base - 1))[0] == 200
		n = len(service.calls)
		refused(get(gate, b"/" + b"y" * (LINE - base)), 414, "URI_TOO_LONG")
		refused(get(gate, b"/", b"X: v\r\n" * (FIELDS - 1)), 431, "HEAD_TOO_LARGE") # the gate, not the service, which has the same limit
		refused(get(gate, b"/", b"X: " + b"v" * HEAD + b"\r\n"), 431, "HEAD_TOO_LARGE")
		assert len(service.calls) == n


def test_encoding(dir):
	path, body = "/api/v1/workflow-runs", run_of(100)
	with Server(dir, "serve", "--db", "sqlite::memory:") as hapax:
		for name in (b"gzip", b"identity, gzip", b""):
			refused(post(hapax, path, gzip.compress(body), fields=b"Content-Encoding: %s\r\n" % name), 415, "UNSUPPORTED_ENCODING", "without Content-Encoding")
		assert "Accept-Encoding: identity" in hapax.raw(b"POST /api/v1/jobs HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Encoding: br\r\nContent-Length: 0\r\n\r\n")[1]
		for name in (b"identity", b"Identity"):
			assert post(hapax, path, body, fields=b"Content-Encoding: %s\r\n" % name)[0] == 404, "it was read"
	with Service() as service, Server(dir, "gate", "--upstream", service.url, "--store", "memory:") as gate:
		assert post(gate, "/any", gzip.compress(body), fields=b"Content-Encoding: gzip\r\nIdempotency-Key: k\r\n")[0] == 200
		assert gzip.decompress(service.calls[0][2]) == body, "the gate passes it on as it is"


def test_nothing_here(dir):
	with Server(dir, "serve", "--db", "sqlite::memory:") as hapax:
		for path in (b"/api/v1", b"/api/v1/", b"/api/v1/rnus/"):
			refused(get(hapax, path), 404, "NOT_FOUND", "described at /api/v1/openapi.json")
		for path in (b"//", b"/api/v1/jobs/", b"/healthz/", b"/api/v1/jobs/claim/", b"/api/v1/batches/b%22/items/"):
			refused(get(hapax, path), 404, "NOT_FOUND", "without its last \"/\" there is: \"%s\"" % path[:-1].decode())


def nested(depth):
	return "[" * depth + "]" * depth


def is_too_deep(answer):
	return answer[0] in (400, 422) and b"deep" in answer[2]


def test_depth_in_every_route(dir):
	with Server(dir, "serve", "--db", "sqlite:h.db") as hapax:
		routes = [(method.upper(), re.sub(r"\{\w+\}", "a", path)) for path, item in hapax.json("GET", "/api/v1/openapi.json")["paths"].items()
			for method in item if method in ("post", "put")]
		routes = [(m, p if p.startswith("/api/") else "/api/v1" + p) for m, p in routes]
		assert len(routes) > 20, routes
		deep, known = [], 0
		for method, path in routes:
			for body, least in (('{"data":%s}' % nested(DEPTH - 1), False), ('{"data":%s}' % nested(DEPTH), True), (nested(DEPTH), False), (nested(DEPTH + 1), True)):
				answer = hapax.call(method, path, body.encode())
				assert answer[0] not in (0, 500, 503), (method, path, answer)
				assert not is_too_deep(answer) or least, (method, path, "at the limit", answer)
				known += is_too_deep(answer)
		assert known >= len(routes), "most routes read their body before they look for what is in the path"


# Where it is kept and handed on it is part of something larger: that must not be too deep by then.
def test_the_deepest_goes_all_the_way(dir):
	with Service() as service:
		act = {"kind": "http", "url": service.url + "/act", "effect": "keyed"}
		write(dir / "flows" / "e.json", {"workflow": "e", "kind": "entity", "status_types": ["open", "closed"], "initial_status": "open",
			"actions": {"act": act}, "steps": [{"step_id": 1, "step_key": "go", "status": "open", "successful_state": "closed", "action": "act",
				"success_after_effect": ["act"]}]})
		write(dir / "flows" / "r.json", {"workflow": "r", "kind": "run", "actions": {"act": act},
			"steps": [{"name": "wait", "type": "external_event", "event": "go", "timeout": "1h", "save_as": "got"},
				{"name": "act", "type": "task", "action": "act", "input": "{a: .input.a, got: .state.got}", "save_as": "out"}], "output": "{a: .input.a, out: .state.out}"})
		with Server(dir, "serve", "--db", "sqlite:h.db", "--workflows", "flows") as hapax:
			hapax.json("POST", "/api/v1/entities/e", b'{"id":"a","data":%s}' % nested(DEPTH - 1).encode(), status=201)
			service.answer = (200, nested(DEPTH).encode())
			hapax.json("POST", "/api/v1/entities/e/a/steps/go", b'{"input":%s}' % nested(DEPTH - 1).encode(), status=200)
			service.await_calls("/act", 2)
			hapax.json("POST", "/api/v1/jobs", b'{"queue":"q","payload":%s}' % nested(DEPTH - 1).encode(), status=201)
			job = hapax.json("POST", "/api/v1/jobs/claim", {"queues": ["q"], "owner": "w"}, status=200)["jobs"][0]
			assert json.dumps(job["payload"]) == nested(DEPTH - 1)
			hapax.json("POST", f"/api/v1/jobs/{job['id']}/complete", b'{"owner":"w","fence":%d,"output":%s}' % (job["fence"], nested(DEPTH - 1).encode()), status=200)
			run = hapax.json("POST", "/api/v1/workflow-runs", b'{"definitionId":"r","input":{"a":%s}}' % nested(DEPTH - 2).encode(), status=201)["run"]["id"]
			hapax.json("POST", f"/api/v1/workflow-runs/{run}/events/go", b'{"data":%s}' % nested(DEPTH - 3).encode())
			end = hapax.json("GET", f"/api/v1/workflow-runs/{run}?wait=20s")
			assert end["status"] in ("COMPLETED", "FAILED"), end
			assert end["status"] == "COMPLETED" or "deep" in json.dumps(end["error"]), end["error"]


def open_many(hapax, n, say):
	many = []
	for _ in range(n):
		s = hapax.open()
		s.sendall(say)
		many.append(s)
	return many


def answers(s):
	s.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
	return s.recv(1 << 16)[:12]


def check_connections(hapax, opened):
	"""All that may be there are at work: one more waits until one of them has gone. `opened` is how many the server has."""
	many = open_many(hapax, CONNECTIONS, b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n")
	try:
		many[-1].sendall(b"\r\n")
		assert many[-1].recv(1 << 16).startswith(b"HTTP/1.1 "), "the last one that may be there is served"
		many[-1].sendall(b"GET /healthz HTTP/1.1\r\n")  # and at work again
		with hapax.open() as extra:
			extra.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
			extra.settimeout(0.3)
			try:
				got = extra.recv(100)
				assert False, f"one too many was served: {got}"
			except TimeoutError:
				pass
			extra.settimeout(20)
			many.pop(0).close()
			assert read_answer(extra)[0] in (200, 404), "it has its place"
	finally:
		for s in many:
			s.close()


def half_sent(hapax, n, length, sent, fields=b""):
	"""So many clients that have said how much they send, have sent a part of it, and send no more."""
	head = b"POST /api/v1/jobs HTTP/1.1\r\nHost: localhost\r\n" + fields + b"Content-Length: %d\r\n\r\n" % length
	return open_many(hapax, n, head + b" " * sent)


def resident(hapax):
	with open(f"/proc/{hapax.process.pid}/status") as status:
		return int(re.search(r"VmRSS:\s+(\d+) kB", status.read())[1]) * 1024


def test_half_sent_bodies_hold_up_nobody(dir):
	with Server(dir, "serve") as hapax:
		slow = half_sent(hapax, 20, 15 * MIB, 12 * MIB) + half_sent(hapax, 1, 16 * MIB, 16 * MIB - 1)  # 256 MiB, but for a byte
		try:
			seen = [0] * 20
			until(lambda: seen.append(resident(hapax)) or seen[-1] > 255 * MIB and seen[-1] == seen[-20], "all that was sent to be held")
			for _ in range(20):
				status, _, body = hapax.call("POST", "/api/v1/jobs", {"queue": "q"})
				assert status == 201, body
			# A large one has room, too, as soon as the first of those have had their second.
			large = {"queue": "q", "payload": "x" * (8 * MIB)}
			until(lambda: hapax.call("POST", "/api/v1/jobs", large)[0] in (201, 413, 400), "room for a large body", 20)
		finally:
			for s in slow:
				s.close()


def enough_descriptors():
	soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
	if hard < CONNECTIONS + 200:
		print(f"# no more than {hard} descriptors: connections are not tried")
		return False
	resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
	return True


def few_descriptors(dir, *args):
	"""As from a login shell: the program itself asks for what it needs."""
	soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
	resource.setrlimit(resource.RLIMIT_NOFILE, (1024, hard))
	try:
		return Server(dir, *args)
	finally:
		resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_connections(dir):
	if enough_descriptors():
		with few_descriptors(dir, "serve", "--db", "sqlite::memory:") as hapax:
			check_connections(hapax, CONNECTIONS)
			until(lambda: "hapax_connections_open 1\n" in hapax.call("GET", "/metrics")[2].decode(), "the end of all connections")
			assert "no connection can be accepted" not in hapax.text(), "its own limit is the one that was met"


def test_connections_of_the_gate(dir):
	if enough_descriptors():
		with Service() as service, few_descriptors(dir, "gate", "--upstream", service.url, "--store", "memory:") as gate:
			check_connections(gate, CONNECTIONS)
			assert "no connection can be accepted" not in gate.text()


server.run(globals())
END
