#!/usr/bin/env bash
# What a supervisor sees of a server: that it is ready, reloads and stops (sd_notify), and what SIGHUP does to a folder of
# definitions. What becomes of requests and runs at a stop is in tests/chaos/test_run_stop.c and test_batch_stop.c.
PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=tests/support exec python3 - <<'END'
import json, os, socket, subprocess
import server
from server import Server, Service, until, write


class Supervisor:
	"""A socket such as systemd's; the address is what NOTIFY_SOCKET says."""

	def __init__(self, dir, abstract):
		self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
		self.socket.settimeout(20)
		self.address = f"@hapax-test-{os.getpid()}" if abstract else str(dir / "notify")
		self.socket.bind(self.address.replace("@", "\0", 1))

	def told(self):
		return self.socket.recv(4096).decode().split("\n")

	def silent(self):
		self.socket.setblocking(False)
		try:
			return not self.socket.recv(4096)
		except BlockingIOError:
			return True
		finally:
			self.socket.settimeout(20)


def noop(name):
	return {"workflow": name, "kind": "run", "actions": {"a": {"kind": "noop"}}, "steps": [{"name": "s", "type": "task", "action": "a"}]}


def check_supervised(dir, abstract):
	write(dir / "flows" / "a.json", noop("a"))
	supervisor = Supervisor(dir, abstract)
	with Server(dir, "serve", "--db", "sqlite:h.db", "--workflows", "flows", env={"NOTIFY_SOCKET": supervisor.address}) as hapax:
		assert supervisor.told() == ["READY=1"]
		hapax.hup()
		reloading = supervisor.told()
		assert reloading[0] == "RELOADING=1" and reloading[1].startswith("MONOTONIC_USEC=") and int(reloading[1][15:]) > 0, reloading
		assert supervisor.told() == ["READY=1"]
		assert supervisor.silent()
		hapax.stop()
		assert supervisor.told() == ["STOPPING=1"]
		assert supervisor.silent()


def test_serve_tells_its_supervisor(dir):
	check_supervised(dir, abstract=False)


def test_the_name_may_be_in_no_file_system(dir):
	check_supervised(dir, abstract=True)


def test_gate_tells_its_supervisor(dir):
	supervisor = Supervisor(dir, abstract=False)
	with Server(dir, "gate", "--upstream", "http://127.0.0.1:1", "--store", "memory:", env={"NOTIFY_SOCKET": supervisor.address}) as gate:
		assert supervisor.told() == ["READY=1"]
		gate.stop()
		assert supervisor.told() == ["STOPPING=1"]


def test_nobody_is_told_who_does_not_start(dir):
	supervisor = Supervisor(dir, abstract=False)
	write(dir / "flows" / "a.json", "{")
	try:
		Server(dir, "serve", "--db", "sqlite:h.db", "--workflows", "flows", env={"NOTIFY_SOCKET": supervisor.address})
	except AssertionError:
		assert supervisor.silent()
	else:
		assert False, "it started"


def test_a_supervisor_that_does_not_listen_is_no_obstacle(dir):
	for address in (str(dir / "nobody"), "@nobody-listens-here", "relative", "", "/", "@", "/" + "x" * 300):
		with Server(dir, "serve", "--db", "sqlite::memory:", env={"NOTIFY_SOCKET": address}) as hapax:
			hapax.stop()


def test_one_bad_file_keeps_all(dir):
	write(dir / "flows" / "a.json", noop("a"))
	with Server(dir, "serve", "--db", "sqlite:h.db", "--workflows", "flows") as hapax:
		versions = lambda: {d["name"]: d["version"] for d in hapax.json("GET", "/api/v1/definitions")["items"]}
		assert versions() == {"a": 1}
		changed = noop("a")
		changed["steps"].append({"name": "t", "type": "task", "action": "a"})
		write(dir / "flows" / "a.json", changed)
		write(dir / "flows" / "b.json", json.dumps(noop("b")).replace('"steps"', '\n\n"stepps"'))
		hapax.hup()
		hapax.await_log("the definitions are kept as they were")
		assert versions() == {"a": 1}, "the good one is not taken without the bad one"
		assert "b.json:3: error:" in hapax.text() and "stepps" in hapax.text() and "unknown field" in hapax.text(), "file, line and reason"
		write(dir / "flows" / "b.json", noop("b"))
		hapax.hup()
		hapax.await_log("the definitions were read again")
		assert versions() == {"a": 2, "b": 1}


def test_a_run_under_way_keeps_its_version(dir):
	with Service() as service:
		definition = lambda path: {"workflow": "order", "kind": "run",
			"actions": {"act": {"kind": "http", "url": service.url + path, "effect": "keyed"}},
			"steps": [{"name": "paid", "type": "external_event", "event": "payment", "timeout": "1h"},
				{"name": "act", "type": "task", "action": "act"}]}
		write(dir / "flows" / "order.json", definition("/old"))
		with Server(dir, "serve", "--db", "sqlite:h.db", "--workflows", "flows") as hapax:
			start = lambda: hapax.json("POST", "/api/v1/workflow-runs", {"definitionId": "order"}, status=201)["run"]["id"]
			old = start()
			until(lambda: hapax.json("GET", f"/api/v1/workflow-runs/{old}")["status"] == "WAITING", "the run to wait")
			write(dir / "flows" / "order.json", definition("/new"))
			hapax.hup()
			hapax.await_log("the definitions were read again")
			new = start()
			for id, version, path in ((old, 1, "/old"), (new, 2, "/new")):
				hapax.json("POST", f"/api/v1/workflow-runs/{id}/events/payment", {})
				run = hapax.json("GET", f"/api/v1/workflow-runs/{id}?wait=20s")
				assert (run["status"], run["definitionVersion"]) == ("COMPLETED", version), run
				assert len(service.await_calls(path)) == 1
			assert len(service.calls) == 2


def refused(dir, *args, env=None, code=78):
	"""The words of a start that ends with this code; 78: a supervisor does not try it again."""
	clean = {k: v for k, v in os.environ.items() if not k.startswith("HAPAX_")}
	process = subprocess.run([server.HAPAX, *args], cwd=dir, capture_output=True, timeout=60, env={**clean, **(env or {})})
	assert process.returncode == code and not process.stdout, process
	return process.stderr.decode()


def test_a_start_that_cannot_be_leaves_nothing(dir):
	write(dir / "hapax.json", {"workflows": "nowhere"})
	assert '--workflows, or HAPAX_WORKFLOWS: "there"' in refused(dir, "serve", "--workflows", "there")
	assert '--workflows, or HAPAX_WORKFLOWS: "there"' in refused(dir, "serve", env={"HAPAX_WORKFLOWS": "there"})
	assert '"workflows" in the configuration: "nowhere" cannot be read: No such file' in refused(dir, "serve", "--config", "hapax.json")
	assert "upstream" in refused(dir, "gate", "--upstream", "foo")
	assert os.listdir(dir) == ["hapax.json"], os.listdir(dir)


def test_a_start_that_is_refused_makes_no_store(dir):
	write(dir / "bad" / "a.json", "{")
	write(dir / "claims" / "c.json", {"workflow": "c", "kind": "entity", "status_types": ["open", "busy", "done"], "initial_status": "open",
		"actions": {"Act": {"kind": "http", "url": "http://127.0.0.1:1/", "effect": "claimed"}},
		"steps": [{"step_id": 1, "step_key": "act", "status": "open", "successful_state": "done", "action": "Act", "claim_state": ["busy", "open"]}]})
	write(dir / "net.json", {"outbound": {"allow": ["10.0.0.0/8"]}, "entry_lock_store": "redis://h:no-port"})
	before = sorted(os.listdir(dir))
	with socket.create_server(("127.0.0.1", 0)) as taken:
		address = "127.0.0.1:%d" % taken.getsockname()[1]
		assert "bad/a.json:1: error" in refused(dir, "serve", "--workflows", "bad", "--listen", "127.0.0.1:0")
		assert "janitor" in refused(dir, "serve", "--workflows", "claims", "--listen", "127.0.0.1:0")
		assert "without API keys" in refused(dir, "serve", "--listen", "0.0.0.0:0", "--tls-terminated")
		assert "schema" in refused(dir, "serve", "--no-migrate", "--listen", "127.0.0.1:0")
		refused(dir, "serve", "--config", "net.json", "--listen", "127.0.0.1:0")
		assert address in refused(dir, "serve", "--listen", address, code=75)
		gate = ("gate", "--upstream", "http://127.0.0.1:1")
		assert address in refused(dir, *gate, "--listen", address, code=75)
		assert address in refused(dir, *gate, "--listen", "127.0.0.1:0", "--admin", address, code=75)
	assert sorted(os.listdir(dir)) == before, os.listdir(dir)


def test_what_was_tried_first_is_told_once(dir):
	write(dir / "flows" / "a.json", {"workflow": "a", "kind": "entity", "status_types": ["open", "done", "nowhere"],
		"initial_status": "open", "steps": [{"step_id": 1, "step_key": "end", "status": "open", "successful_state": "done"}]})
	with Server(dir, "serve", "--workflows", "flows") as hapax:
		assert hapax.text().count("nowhere") == 1, hapax.text()
		assert (dir / "hapax.db").exists()


def test_a_role_without_rights_is_told_which(dir):
	pg, name = os.environ.get("HAPAX_TEST_PG"), f"service_{os.getpid()}"
	if not pg:
		print("# postgres: no server here")
		return

	def sql(text):
		subprocess.run(["psql", "-qX", pg, "-v", "ON_ERROR_STOP=1", "-c", text], check=True, stderr=subprocess.DEVNULL)

	as_role = pg.replace("//hapax@", f"//{name}@") + f"?options=-csearch_path%3D{name}"
	sql(f"CREATE ROLE {name} LOGIN; CREATE SCHEMA {name}; GRANT USAGE ON SCHEMA {name} TO {name}")
	try:
		words = refused(dir, "serve", "--db", as_role)
		assert f"permission denied for schema {name}" in words and "hapax db migrate" in words, words
		subprocess.run([server.HAPAX, "db", "migrate", "--db", f"{pg}?options=-csearch_path%3D{name}"], check=True, stdout=subprocess.DEVNULL)
		words = refused(dir, "serve", "--db", as_role)
		assert "42501 permission denied for table hx_schema_version" in words, words
	finally:
		sql(f"DROP SCHEMA {name} CASCADE; DROP ROLE {name}")


def test_probes_are_answered_in_plain_text(dir):
	with Server(dir, "serve", "--db", "sqlite::memory:") as hapax:
		for path in ("/healthz", "/readyz"):
			status, head, _ = hapax.call("GET", path)
			assert status == 200 and "\r\nContent-Type: text/plain; charset=utf-8\r\n" in head + "\r\n", head
		assert "\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n" in hapax.call("GET", "/metrics")[1] + "\r\n"


server.run(globals())
END
