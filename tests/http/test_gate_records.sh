#!/usr/bin/env bash
# What becomes of records of a real gate on real stores: whose they are, what a changed byte in one does, which fields are given
# again, and where in a request their keys, tenants and fingerprints may stand.
PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=tests/support exec python3 - <<'END'
import base64, json, os, re, socket, sqlite3, subprocess, urllib.parse
import server
from server import Server, Service, until, write

CONFIG = "gate.json"


def start(dir, service, store="sqlite:g.db", **config):
	write(dir / CONFIG, {"upstream": service.url, "store": store, **config})
	return Server(dir, "gate", "--config", CONFIG, "--admin", "127.0.0.1:0")


def post(gate, path, body=b"{}", **headers):
	return gate.call("POST", path, body, [(name.replace("_", "-"), value) for name, value in headers.items()])


def expect(answer, status, word):
	assert answer[0] == status and word in answer[1] + answer[2].decode(), answer


def metric(gate, name):
	port, gate.port = gate.port, int(re.findall(r'"admin":"127.0.0.1:(\d+)"', gate.text())[-1])
	text = gate.call("GET", "/metrics")[2].decode()
	gate.port = port
	return int(re.search(rf"^{name} (\d+)$", text, re.M)[1])


def jwt(**claims):
	part = lambda value: base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")
	return f"Bearer {part({'alg': 'none'})}.{part(claims)}.x"


def test_another_caller_is_refused(dir):
	with Service() as service, start(dir, service) as gate:
		expect(post(gate, "/p", Idempotency_Key="k", Authorization="Bearer alice"), 200, "created")
		for body in (b"{}", b'{"a":1}'):
			expect(post(gate, "/p", body, Idempotency_Key="k", Authorization="Bearer mallory"), 422, "CALLER_MISMATCH")
			expect(post(gate, "/p", body, Idempotency_Key="k", Cookie="session=mallory"), 422, "CALLER_MISMATCH")
			expect(post(gate, "/p", body, Idempotency_Key="k"), 422, "CALLER_MISMATCH")
		expect(post(gate, "/p", Idempotency_Key="k", Authorization="Bearer alice"), 200, "replayed")
		assert len(service.calls) == 1


def test_a_caller_outlives_its_token(dir):
	with Service() as service:
		with start(dir, service, caller="jwt:sub") as gate:
			assert "does not verify it" in gate.text(), "it is said at the start"
			expect(post(gate, "/p", Idempotency_Key="k", Authorization=jwt(sub="alice", iat=1)), 200, "created")
			expect(post(gate, "/p", Idempotency_Key="k", Authorization=jwt(sub="alice", iat=2)), 200, "replayed")
			expect(post(gate, "/p", Idempotency_Key="k", Authorization=jwt(sub="mallory")), 422, "CALLER_MISMATCH")
			expect(post(gate, "/p", Idempotency_Key="k", Authorization="Bearer alice"), 422, "CALLER_MISMATCH")
		with start(dir, service, "memory:", caller="header:X-User") as gate:
			expect(post(gate, "/p", Idempotency_Key="k", X_User="alice", Authorization="a"), 200, "created")
			expect(post(gate, "/p", Idempotency_Key="k", X_User="alice", Authorization="b"), 200, "replayed")
			expect(post(gate, "/p", Idempotency_Key="k", X_User="mallory", Authorization="a"), 422, "CALLER_MISMATCH")
		with start(dir, service, "memory:", caller=None) as gate:
			expect(post(gate, "/p", Idempotency_Key="k", Authorization="a"), 200, "created")
			expect(post(gate, "/p", Idempotency_Key="k", Authorization="b"), 200, "replayed")


def change_sqlite(dir):
	with sqlite3.connect(dir / "g.db") as db:
		(bytes_, ) = db.execute("SELECT response FROM hx_gate_record").fetchone()
		db.execute("UPDATE hx_gate_record SET response = ?", (bytes_.replace(b'"cents":100', b'"cents":900'), ))


def change_postgres(dir):
	subprocess.run(["psql", "-qXv", "ON_ERROR_STOP=1", os.environ["HAPAX_TEST_PG"], "-c",
		"UPDATE hx_gate_record SET response = overlay(response placing '\\x39'::bytea from length(response) - 3 for 1)"], check=True)


def change_redis(dir):
	url = urllib.parse.urlsplit(os.environ["HAPAX_TEST_REDIS"])
	bulk = lambda *words: b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)
	script = b"""for _, k in ipairs(redis.call('KEYS', 'hapax:gate:*')) do
		local r = redis.call('TYPE', k).ok == 'hash' and redis.call('HGET', k, 'response')
		if r then redis.call('HSET', k, 'response', (string.gsub(r, ':100}', ':900}'))) end
	end
	return 1"""
	with socket.create_connection((url.hostname, url.port)) as s, s.makefile("rb") as replies:
		words = [[word.encode() for word in ("AUTH", url.username, url.password) if word]] if url.password else []
		for command in words + [[b"SELECT", url.path[1:].encode() or b"0"], [b"EVAL", script, b"0"]]:
			s.sendall(bulk(*command))
			answer = replies.readline()
			assert answer in (b"+OK\r\n", b":1\r\n"), answer


def damage(dir, store, change):
	with Service() as service:
		service.answer = 200, b'{"cents":100}'
		with start(dir, service, store, name="damaged") as gate:
			expect(post(gate, "/pay", Idempotency_Key="k"), 200, "created")
			gate.stop()
		change(dir)
		with start(dir, service, store, name="damaged") as gate:
			for _ in range(2):
				expect(post(gate, "/pay", Idempotency_Key="k"), 500, "RECORD_DAMAGED")
			assert len(service.calls) == 1, "it is never executed again by itself"
			assert metric(gate, "hapax_gate_damaged_total") == 2
			assert '"code":"RECORD_DAMAGED"' in gate.text()


def test_a_changed_byte_in_sqlite_is_noticed(dir):
	damage(dir, "sqlite:g.db", change_sqlite)


def test_a_changed_byte_in_postgres_is_noticed(dir):
	damage(dir, os.environ["HAPAX_TEST_PG"], change_postgres)


def test_a_changed_byte_in_redis_is_noticed(dir):
	damage(dir, os.environ["HAPAX_TEST_REDIS"], change_redis)


def test_an_answer_of_the_version_before_is_replayed(dir):
	with Service() as service:
		with start(dir, service) as gate:
			expect(post(gate, "/pay", Idempotency_Key="k", Authorization="a"), 200, "created")
			gate.stop()
		with sqlite3.connect(dir / "g.db") as db: # without a sum, and without a caller
			(bytes_, ) = db.execute("SELECT response FROM hx_gate_record").fetchone()
			db.execute("UPDATE hx_gate_record SET response = ?, caller = NULL, about = NULL", (b"H1" + bytes_[10:], ))
		with start(dir, service) as gate:
			expect(post(gate, "/pay", Idempotency_Key="k", Authorization="b"), 200, "replayed")
			assert len(service.calls) == 1


def test_what_is_forbidden_later_is_not_replayed(dir):
	with Service() as service:
		service.fields = {"X-Kept": "yes", "X-Leaks": "secret"}
		with start(dir, service, replay_headers=["x-kept", "x-leaks"]) as gate:
			expect(post(gate, "/leak", Idempotency_Key="l"), 200, "created")
			assert "X-Leaks: secret" in post(gate, "/leak", Idempotency_Key="l")[1]
			gate.stop()
		with start(dir, service, replay_headers=["x-kept"]) as gate:
			status, head, _ = post(gate, "/leak", Idempotency_Key="l")
			assert "replayed" in head and "X-Kept: yes" in head and "X-Leaks" not in head and "Content-Type" in head, head


def test_a_key_may_stand_anywhere(dir):
	routes = [{"match": "POST /q", "key": "query:id"}, {"match": "POST /c", "key": "cookie:cart", "caller": None},
		{"match": "POST /orders/*/pay", "key": "path:2", "scope": "global"},
		{"match": "POST /both", "key": ["header:X-Shop", "json:/id"]}, {"match": "POST /opt", "key": ["header:X-Shop", "query:id"], "required": False}]
	with Service() as service, start(dir, service, routes=routes) as gate:
		for path, headers in (("/q?id=a%20b", {}), ("/c", {"Cookie": "a=1; cart=7"}), ("/orders/17/pay", {}), ("/both", {"X_Shop": "s/1"})):
			expect(post(gate, path, b'{"id":42}', **headers), 200, "created")
			expect(post(gate, path, b'{"id":42}', **headers), 200, "replayed")
		expect(post(gate, "/q?id=a+b&x=1", b'{"id":42}'), 200, "replayed")
		expect(post(gate, "/orders/18/pay", b'{"id":42}'), 200, "created")
		expect(post(gate, "/both", b'{"id":43}', X_Shop="s/1"), 200, "created")
		expect(post(gate, "/q"), 400, "KEY_REQUIRED")
		expect(post(gate, "/q?id=1&id=2"), 400, "KEY_INVALID")
		expect(post(gate, "/c", Cookie="cart=1; cart=2"), 400, "KEY_INVALID")
		expect(post(gate, "/both", b'{"id":1}'), 400, "KEY_INVALID")
		expect(post(gate, "/opt?id=1"), 400, "KEY_INVALID") # a half of it is no reason to run unprotected
		assert post(gate, "/opt")[0] == 200
		admin = re.findall(r'"admin":"([^"]*)"', gate.text())[-1]
		shown = subprocess.run([server.HAPAX, "gate", "show", "s%2F1/#42", "--admin", admin, "--json"], capture_output=True, check=True)
		item, = json.loads(shown.stdout)["items"]
		assert (item["route"], item["gate"], item["tenant"]) == ("POST /both", "gate", None), item


def test_scope_tenant_and_fingerprint_are_declared(dir):
	routes = [{"match": "POST /t", "tenant": "jwt:/org/id", "caller": None}, {"match": "POST /s", "scope": ["endpoint", "query:region", "json:/to"], "fingerprint": False},
		{"match": "POST /f", "fingerprint": ["body", "query", "header:X-Version"]}, {"match": "POST /n", "fingerprint": ["query:a"]}]
	with Service() as service, start(dir, service, routes=routes) as gate:
		for org in (1, 2):
			expect(post(gate, "/t", Idempotency_Key="k", Authorization=jwt(org={"id": org})), 200, "created")
		expect(post(gate, "/t", Idempotency_Key="k", Authorization=jwt(org={"id": 2}, iat=9)), 200, "replayed")
		for path, body in (("/s?region=eu", b'{"to":1}'), ("/s?region=us", b'{"to":1}'), ("/s?region=us", b'{"to":2}')):
			expect(post(gate, path, body, Idempotency_Key="k"), 200, "created")
		expect(post(gate, "/s?x=1&region=us", b'{"to":2,"a":1}', Idempotency_Key="k"), 200, "replayed")
		expect(post(gate, "/f?a=1", Idempotency_Key="k", X_Version="1"), 200, "created")
		expect(post(gate, "/f?a=1", Idempotency_Key="k", X_Version="1"), 200, "replayed")
		expect(post(gate, "/f?a=1", Idempotency_Key="k", X_Version="2"), 422, "FINGERPRINT_MISMATCH")
		expect(post(gate, "/f?a=1", Idempotency_Key="k"), 422, "FINGERPRINT_MISMATCH")
		expect(post(gate, "/f?a=2", Idempotency_Key="k", X_Version="1"), 422, "FINGERPRINT_MISMATCH")
		expect(post(gate, "/f?a=1", b'{"a":1}', Idempotency_Key="k", X_Version="1"), 422, "FINGERPRINT_MISMATCH")
		expect(post(gate, "/n?a=1", Idempotency_Key="k"), 200, "created")
		expect(post(gate, "/n?a=1&b=2", b"[1]", Idempotency_Key="k"), 200, "replayed")
		expect(post(gate, "/n?a=2", Idempotency_Key="k"), 422, "FINGERPRINT_MISMATCH")


def test_events_are_logged_at_the_level_that_is_chosen(dir):
	outcomes = lambda gate: [line.get("outcome") for line in map(json.loads, gate.text().splitlines()) if line["message"] == "a guarded request has ended"]
	with Service() as service:
		with start(dir, service) as gate:
			expect(post(gate, "/p", Idempotency_Key="k"), 200, "created")
			gate.stop()
			assert outcomes(gate) == []
		with start(dir, service, log={"level": "debug"}) as gate:
			expect(post(gate, "/p", Idempotency_Key="k"), 200, "replayed")
			expect(post(gate, "/p", Idempotency_Key="new"), 200, "created")
			until(lambda: outcomes(gate) == ["replayed", "created"], "both events in the log")
	write(dir / "serve.json", {"log": {"level": "debug"}})
	with Server(dir, "serve", "--config", "serve.json", "--db", "sqlite::memory:") as hapax:
		expect(post(hapax, "/api/v1/jobs", b'{"queue":"q"}', Idempotency_Key="k"), 201, "created")
		hapax.await_log('"level":"debug","message":"an idempotency key was used","outcome":"created"')


server.run(globals())
END
