#!/usr/bin/env bash
# The log of a server that is ready has one form, whatever people and services put into names: one JSON object to a line, of
# printable UTF-8, that names what it is about.
PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=tests/support exec python3 - <<'END'
import json, os, random, re, subprocess, urllib.parse
import server
from server import Server, Service, until, write

# What breaks lines, quotes, terminals and decoders. Each carries a mark by which it is found again.
NASTY = [b'mark"quoted"', b"mark\\back\\", b"mark\nnewline", b"mark\r\ncrlf", b'mark","level":"error', b"mark\x1b[31mred\x1b[0m",
	b"mark\x00nul", b"mark\x07\x08\x7fcontrols", b"mark\xff\xfe\x80invalid", b"mark\xc3", b"mark\xed\xa0\x80surrogate",
	b"mark\xf4\x90\x80\x80beyond", b"mark\xc0\xafoverlong", "mark\u2028\u2029separators".encode(), "mark\u0085nel".encode(),
	"mark\U0001f9ff\U0001d11e".encode(), "mark\u202eright to left".encode(), "mark\ufeff\u200b".encode(), b"mark{}[]:,", b"mark'$(id)`",
	b"mark" + b"x" * 5000, b"mark" + "\u00e9".encode() * 3000, b"mark" + b'"' * 3000, b"mark" + b"\xff" * 3000]

seed = random.randrange(1 << 32)
print(f"# log: names of seed {seed}")
dice = random.Random(seed)
NASTY += [b"mark" + bytes(dice.choice((dice.randrange(256), dice.randrange(32), 0x22, 0x5c, 0xe2, 0x80, 0xa8)) for _ in range(dice.randrange(1, 60)))
	for _ in range(16)]


def once(pairs):
	names = [name for name, _ in pairs]
	assert len(set(names)) == len(names), f"a member comes twice: {names}"
	return dict(pairs)


def lines(hapax):
	"""All of them, each of the form."""
	data = hapax.log.read_bytes()
	assert data.endswith(b"\n"), "the last line is not whole"
	parsed = []
	for line in data[:-1].split(b"\n"):
		text = line.decode("utf-8")  # strictly
		assert len(line) < 4096, f"{len(line)} bytes"
		bad = [c for c in text if ord(c) < 0x20 or 0x7f <= ord(c) < 0xa0 or c in "\u2028\u2029"]
		assert not bad, f"{bad!r} in {text!r}"
		event = json.loads(text, object_pairs_hook=once)
		assert isinstance(event, dict) and event["level"] in ("debug", "info", "warn", "error") and event["message"], text
		assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", event["time"]), text
		parsed.append(event)
	return parsed


def of(events, message):
	return [e for e in events if e["message"].startswith(message)]


def quoted(name):
	return urllib.parse.quote_from_bytes(name, safe="")


def test_names_and_words_of_others(dir):
	node = b'n"\\\x1b[31m\n' + "\U0001f9ff".encode()
	with Service() as service:
		act = lambda path: {"kind": "http", "url": service.url + path, "effect": "keyed", "on_unknown": "hold"}
		write(dir / "flows" / "billing.json", {"workflow": "billing", "kind": "entity", "status_types": ["open", "closed"],
			"initial_status": "open", "actions": {"close": {k: v for k, v in act("/close").items() if k != "on_unknown"},
				"mail": {k: v for k, v in act("/mail").items() if k != "on_unknown"}},
			"steps": [{"step_id": 1, "step_key": "close", "status": "open", "successful_state": "closed", "action": "close",
					"on_unknown": "hold"},
				{"step_id": 2, "step_key": "plain", "status": "open", "successful_state": "closed", "success_after_effect": ["mail"]}]})
		with Server(dir, "serve", "--db", "sqlite:h.db", "--workflows", "flows", "--node", os.fsdecode(node)) as hapax:
			created = []
			for i, name in enumerate(NASTY):
				for method, path in (("GET", "/api/v1/entities/{}/a"), ("POST", "/api/v1/entities/{}"), ("GET", "/api/v1/entities/billing/{}"),
						("POST", "/api/v1/entities/billing/{}/steps/close"), ("POST", "/api/v1/entities/billing/a/steps/{}"),
						("POST", "/api/v1/workflow-runs/{}/cancel"), ("POST", "/api/v1/workflow-runs/run_0/events/{}"),
						("GET", "/api/v1/jobs?queue={}"), ("GET", "/api/v1/history/{}"), ("PUT", "/api/v1/definitions/{}"), ("GET", "/api/v1/why/{}"),
						("POST", "/api/v1/modules/{}/sweep"), ("GET", "/{}")):
					hapax.call(method, path.format(quoted(name)), {})
				for header in ("Hapax-Workspace", "Hapax-Requester", "Idempotency-Key", "traceparent", "tracestate", "User-Agent", "X-API-Key"):
					hapax.call("POST", "/api/v1/jobs", {"queue": "q"}, [(header, name)])
				text = name.decode("utf-8", "surrogateescape")
				for path, body in (("/api/v1/jobs", {"queue": text, "key": text}), ("/api/v1/jobs/claim", {"queues": [text], "owner": text}),
						("/api/v1/workflow-runs", {"definitionId": text, "idempotencyKey": text}), ("/api/v1/accounts", {"id": text, "balance": 1})):
					hapax.call("POST", path, json.dumps(body, ensure_ascii=False).encode("utf-8", "surrogateescape"))
				body = json.dumps({"id": text[:200]}, ensure_ascii=False).encode("utf-8", "surrogateescape")
				if hapax.call("POST", "/api/v1/entities/billing", body)[0] == 201:
					created.append(name[:200])
				hapax.raw(b"GET /" + name + b" HTTP/1.1\r\nHost: " + name + b"\r\nConnection: close\r\n\r\n")
			assert len(created) >= 8, created
			# Outcomes that nobody knows are logged with the id, and deliveries that fail with the service's words.
			service.answer = None
			for name in created:
				status = hapax.call("POST", f"/api/v1/entities/billing/{quoted(name)}/steps/close", {})[0]
				assert status == 504, status
			for i, name in enumerate(NASTY):
				service.answer = (400, name)
				hapax.json("POST", "/api/v1/entities/billing", {"id": f"plain{i}"}, status=201)
				hapax.json("POST", f"/api/v1/entities/billing/plain{i}/steps/plain", {}, status=200)
				service.await_calls("/mail", i + 1)
			until(lambda: hapax.text().count("a job was not delivered") >= len(NASTY), "the failed deliveries")
			events = lines(hapax)
			unknown, failed = of(events, "a step's outcome") or [e for e in events if e.get("step") == "close"], of(events, "a job was not delivered")
			assert len(unknown) >= len(created) and all("mark" in e["id"] and e["workflow"] == "billing" for e in unknown), unknown[:2]
			assert all(e["id"].startswith("job_") and e["code"] and "mark" in e["error"] for e in failed), failed[:2]
			hapax.stop()
			assert of(lines(hapax), "stopping")


# A holder dies: whoever ends its claim says whose it was, by its name and by what the keys of its effects begin with.
def test_the_janitor_names_what_it_ends(dir):
	with Service() as service:
		write(dir / "flows" / "b.json", {"workflow": "b", "kind": "entity", "meta": {"module": "m"}, "status_types": ["open", "closing", "closed"],
			"initial_status": "open", "actions": {"close": {"kind": "http", "url": service.url + "/close", "effect": "claimed"}},
			"steps": [{"step_id": 1, "step_key": "close", "status": "open", "claim_state": ["closing", "open"], "successful_state": "closed", "action": "close"}]})
		write(dir / "hapax.json", {"modules": {"m": {"janitor": {"every": "200ms", "stuck_after": "1s"}}}})
		start = lambda: Server(dir, "serve", "--db", "sqlite:h.db", "--workflows", "flows", "--config", "hapax.json")
		with start() as hapax:
			hapax.json("POST", "/api/v1/entities/b", {"id": "a"}, status=201)
			service.hold.clear()
			with hapax.open() as s:
				s.sendall(b"POST /api/v1/entities/b/a/steps/close HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n")
				key = service.await_calls("/close")[0][1]["idempotency-key"]
				hapax.process.kill()
		with start() as hapax:
			hapax.await_log("stuck claims were ended")
			(ended,) = of(lines(hapax), "a stuck claim was ended")
			assert ended["subject"].startswith("ent_") and key.startswith(ended["subject"] + "-"), (ended, key)
			hapax.json("GET", f"/api/v1/why/entity:{ended['workflow']}:{ended['id']}", status=200)
			assert (ended["workflow"], ended["id"]) == ("b", "a"), ended
			assert (ended["module"], ended["fence"], ended["status"]) == ("m", 1, "closing"), ended


# A reload tells what is wrong with files; their names and all that is in them are others'.
def test_findings_of_a_reload_are_events(dir):
	write(dir / "flows" / "good.json", {"workflow": "good", "kind": "run", "actions": {"a": {"kind": "noop"}},
		"steps": [{"name": "s", "type": "task", "action": "a"}]})
	with Server(dir, "serve", "--db", "sqlite:h.db", "--workflows", "flows") as hapax:
		for i, name in enumerate(NASTY):
			if b"/" not in name and b"\x00" not in name:
				path = os.fsencode(dir) + b"/flows/" + name[:200] + b".json"
				with open(path, "wb") as f:
					f.write(b'{"workflow": "' + name + b'", "kind": "run",\n "unknown": "' + name + b'", "steps": []}')
		hapax.hup()
		hapax.await_log("the definitions are kept as they were")
		events = lines(hapax)
		found = of(events, "a definition is not valid")
		assert len(found) >= 15 and all("mark" in e["file"] for e in found), found[:3]
		assert all(e["level"] == "error" and "mark" in e["finding"] for e in found)
		(kept,) = of(events, "the definitions are kept as they were")
		assert kept["level"] == "error" and kept["code"] == "CONFIG_ERROR" and kept["detail"], kept
		assert hapax.call("GET", "/readyz")[0] == 200


# Beside an error a doubt is still a doubt.
def test_a_reload_tells_doubts_from_errors(dir):
	flow = lambda name, **more: {"workflow": name, "kind": "entity", "status_types": ["open", "closing", "closed", "never"], "initial_status": "open",
		"steps": [{"step_id": 1, "step_key": "close", "status": "open", "successful_state": "closed", **more}], "actions": {"a": {"kind": "noop"}}}
	write(dir / "flows" / "a.json", flow("a"))
	with Server(dir, "serve", "--db", "sqlite:h.db", "--workflows", "flows") as hapax:
		write(dir / "flows" / "b.json", flow("b", claim_state=["closing", "open"], action="a"))  # and no janitor covers that
		hapax.hup()
		hapax.await_log("the definitions are kept as they were")
		errors, doubts = of(lines(hapax), "a definition is not valid"), of(lines(hapax), "a definition is doubtful")
		assert errors and all(e["level"] == "error" and " error: " in e["finding"] for e in errors), errors
		assert doubts and all(e["level"] == "warn" and " warning: " in e["finding"] for e in doubts), doubts


# Warnings of a start that succeeds are events as well; who is refused gets plain text (tests/http/test_entity_definitions.c).
def test_warnings_at_the_start_are_events(dir):
	write(dir / "flows" / "b.json", {"workflow": "b", "kind": "entity", "status_types": ["open", "closed", "never"], "initial_status": "open",
		"steps": [{"step_id": 1, "step_key": "close", "status": "open", "successful_state": "closed"}]})
	with Server(dir, "serve", "--db", "sqlite::memory:", "--workflows", "flows") as hapax:
		events = lines(hapax)
		(doubt,) = of(events, "a definition or the configuration is doubtful")
		assert doubt["level"] == "warn" and "never" in doubt["finding"] and doubt["file"].endswith("b.json"), doubt
		assert of(events, "the store is in memory")


# Which program, on which store, and what has been in force since when; a password is not in it.
def test_starts_and_changes_are_events(dir):
	noop = lambda steps: {"workflow": "good", "kind": "run", "actions": {"a": {"kind": "noop"}},
		"steps": [{"name": f"s{i}", "type": "task", "action": "a"} for i in range(steps)]}
	stores = [("sqlite:h.db", "sqlite:h.db")]
	if "HAPAX_TEST_PG" in os.environ:
		user, place = os.environ["HAPAX_TEST_PG"].removeprefix("postgres://").split("@")
		schema = f"logs_{os.getpid()}"
		sql = lambda text: subprocess.run(["psql", "-qX", os.environ["HAPAX_TEST_PG"], "-c", text], check=True, stderr=subprocess.DEVNULL)
		sql(f"CREATE SCHEMA {schema}")
		stores.append((f"postgres://{user}:secret@{place}?options=-csearch_path%3D{schema}", "postgres://" + place))
	for url, name in stores:
		home = dir / url.split(":")[0]
		home.mkdir()
		write(home / "flows" / "good.json", noop(1))
		with Server(home, "serve", "--db", url, "--workflows", "flows", "--node", "n1") as hapax:
			(start,) = of(lines(hapax), "serving")
			assert (start["level"], start["store"], start["node"], start["definitions"]) == ("info", name, "n1", 1), start
			assert re.fullmatch(r"\d+\.\d+\.\d+", start["version"]) and start["address"] == f"127.0.0.1:{hapax.port}", start
			in_force = lambda: [(e["workflow"], e["version"]) for e in of(lines(hapax), "a definition is in force")]
			for i in (1, 2, 2):
				hapax.json("PUT", "/api/v1/definitions/put", {**noop(i), "workflow": "put"}, status=200)
			assert in_force() == [("put", 1), ("put", 2)], in_force()
			write(home / "flows" / "good.json", noop(2))
			hapax.hup()
			hapax.await_log("the definitions were read again")
			assert in_force() == [("put", 1), ("put", 2), ("good", 2)], in_force()
			assert "secret" not in hapax.text()
			hapax.stop()
	if len(stores) > 1:
		sql(f"DROP SCHEMA {schema} CASCADE")


def test_gate(dir):
	write(dir / "gate.json", {"processing_ttl": "1s", "upstream_timeout": "2s", "routes": [{"match": "POST /lost*", "on_lost": "hold"}]})
	with Service() as service:
		with Server(dir, "gate", "--upstream", service.url, "--store", "sqlite:g.db", "--config", "gate.json") as gate:
			for i, name in enumerate(NASTY):
				for header in ("Idempotency-Key", "X-Other"):
					gate.call("POST", "/" + quoted(name)[:3000], {}, [(header, name)])
					gate.raw(b"POST /" + name + b" HTTP/1.1\r\nHost: a\r\nConnection: close\r\n" + header.encode() + b": " + name + b"\r\nContent-Length: 0\r\n\r\n")
				service.answer = None
				gate.call("POST", "/lost" + quoted(name)[:3000], {}, [("Idempotency-Key", name)])
				gate.call("POST", "/lost" + quoted(name)[:3000], {}, [("Idempotency-Key", f"good{i}")])
				service.answer = (200, b"{}")
			events = lines(gate)
			ended = of(events, "a guarded request has ended")
			assert len(ended) >= 15 and all(e.get("record") and "mark" in e["path"] for e in ended), len(ended)
			assert len(of(events, "the configuration is doubtful")) == 1
			gate.stop()
			lines(gate)


server.run(globals())
END
