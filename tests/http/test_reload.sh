#!/usr/bin/env bash
# SIGHUP reads configuration and definitions again, as one: a module that is added covers the definitions that come with it, what cannot
# change without a restart is told by name, and what is not valid changes nothing. `hapax dev` does it by itself when a file is saved.
PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=tests/support exec python3 - <<'END'
import json, threading
import server
from server import Server, Service, until, write

SOON = 30


def entity(name, module, service):
	return {"workflow": name, "kind": "entity", "meta": {"module": module},
		"status_types": ["open", "busy", "done"], "initial_status": "open",
		"actions": {"Act": {"kind": "http", "url": service.url + "/act", "effect": "claimed", "timeout": "60s"}},
		"steps": [{"step_id": 1, "step_key": "act", "status": "open", "claim_state": ["busy", "open"],
			"successful_state": "done", "action": "Act"}]}


def modules(*names, every="1s"):
	return {name: {"janitor": {"every": every, "stuck_after": "1s"}} for name in names}


def serve(dir, verb="serve"):
	args = [] if verb == "dev" else ["--workflows", "workflows", "--config", "hapax.json"]
	return Server(dir, verb, "--db", "sqlite:h.db", *args)


def events(hapax, message):
	lines = [json.loads(l) for l in hapax.text().splitlines() if l.startswith("{")]
	return [e for e in lines if e["message"] == message]


def reloaded(hapax, act, message="the definitions were read again"):
	before = len(events(hapax, message))
	act()
	until(lambda: len(events(hapax, message)) > before, message, SOON)


def is_there(hapax, workflow):
	return hapax.call("POST", f"/api/v1/entities/{workflow}", {"id": "probe"})[0] in (201, 409)


def test_a_module_is_added(dir):
	with Service() as service:
		write(dir / "workflows/one.json", entity("one", "first", service))
		write(dir / "hapax.json", {"modules": modules("first")})
		with serve(dir) as hapax:
			# The definition alone is refused: nobody would sweep what it claims.
			write(dir / "workflows/two.json", entity("two", "second", service))
			reloaded(hapax, hapax.hup, "the configuration is kept as it was, too")
			assert not is_there(hapax, "two")
			assert any("second" in e.get("finding", "") for e in events(hapax, "a definition is not valid"))
			# With its module it is taken, and swept from then on, also what is left by a holder that is gone.
			write(dir / "hapax.json", {"modules": modules("first", "second")})
			reloaded(hapax, hapax.hup)
			hapax.json("POST", "/api/v1/entities/two", {"id": "a"}, status=201)
			service.hold.clear()
			threading.Thread(target=lambda: hapax.call("POST", "/api/v1/entities/two/a/steps/act", {}), daemon=True).start()
			service.await_calls("/act", 1)
			assert hapax.json("POST", "/api/v1/modules/second/sweep", {}, status=200)["reverted"] == 0
			hapax.process.kill()
			hapax.process.wait()
			service.hold.set()
		with serve(dir) as hapax:
			until(lambda: hapax.json("GET", "/api/v1/entities/two/a")["status"] == "open", "the janitor of the new module", SOON)


def test_a_janitor_comes_with_a_reload(dir):
	"""The claim is there before its module is swept by this process: the reload alone brings the janitor."""
	with Service() as service:
		write(dir / "workflows/one.json", entity("one", "first", service))
		write(dir / "hapax.json", {"modules": {"first": {"janitor": {"external": True, "stuck_after": "1s"}}}})
		with serve(dir) as hapax:
			hapax.json("POST", "/api/v1/entities/one", {"id": "a"}, status=201)
			service.hold.clear()
			threading.Thread(target=lambda: hapax.call("POST", "/api/v1/entities/one/a/steps/act", {}), daemon=True).start()
			service.await_calls("/act", 1)
			hapax.process.kill()
			hapax.process.wait()
			service.hold.set()
		with serve(dir) as hapax:
			assert hapax.json("GET", "/api/v1/entities/one/a")["status"] == "busy"
			write(dir / "hapax.json", {"modules": modules("first")})
			reloaded(hapax, hapax.hup)
			until(lambda: hapax.json("GET", "/api/v1/entities/one/a")["status"] == "open", "the janitor that the reload brought", SOON)
			# Taken away again while a definition claims under it: refused.
			write(dir / "hapax.json", {})
			reloaded(hapax, hapax.hup, "the configuration is kept as it was, too")
			assert hapax.call("POST", "/api/v1/modules/first/sweep", {})[0] == 200


def test_what_needs_a_restart_is_named(dir):
	with Service() as service:
		write(dir / "workflows/one.json", entity("one", "first", service))
		config = {"modules": modules("first"), "lease": "30s", "node": "here"}
		write(dir / "hapax.json", config)
		message = "a field of the configuration has changed that needs a restart: it stays as it was"
		with serve(dir) as hapax:
			reloaded(hapax, hapax.hup)
			assert events(hapax, message) == []
			write(dir / "hapax.json", {"modules": modules("first", "second"), "lease": "31s", "exec": {"enabled": True},
				"retention": {"jobs": "7d"}})
			reloaded(hapax, hapax.hup)
			assert sorted(e["field"] for e in events(hapax, message)) == ["exec", "lease", "node"], events(hapax, message)
			assert hapax.json("POST", "/api/v1/modules/second/sweep", {}, status=200)["reverted"] == 0


def test_what_is_not_valid_changes_nothing(dir):
	with Service() as service:
		write(dir / "workflows/one.json", entity("one", "first", service))
		write(dir / "hapax.json", {"modules": modules("first")})
		with serve(dir) as hapax:
			refused = "the configuration is kept as it was, too"
			write(dir / "hapax.json", {"modules": modules("first", "second"), "modulse": {}})
			reloaded(hapax, hapax.hup, refused)
			assert any("modulse" in e["finding"] for e in events(hapax, "the configuration is not valid"))
			assert hapax.call("POST", "/api/v1/modules/second/sweep", {})[0] == 404
			# A good configuration with a bad definition: neither.
			write(dir / "hapax.json", {"modules": modules("first", "second")})
			write(dir / "workflows/two.json", '{"workflow": "two"')
			reloaded(hapax, hapax.hup, refused)
			assert hapax.call("POST", "/api/v1/modules/second/sweep", {})[0] == 404
			(dir / "workflows/two.json").unlink()
			reloaded(hapax, hapax.hup)
			assert hapax.call("POST", "/api/v1/modules/second/sweep", {})[0] == 200


def test_retention_begins_with_a_reload(dir):
	with Service() as service:
		write(dir / "workflows/run.json", {"workflow": "run", "kind": "run", "actions": {"n": {"kind": "noop"}},
			"steps": [{"name": "s", "type": "task", "action": "n"}]})
		write(dir / "hapax.json", {})
		with serve(dir) as hapax:
			hapax.json("POST", "/api/v1/workflow-runs?wait=20s", {"definitionId": "run"}, status=201)
			write(dir / "hapax.json", {"retention": {"runs": "100ms"}})
			reloaded(hapax, hapax.hup)
			until(lambda: b"hapax_runs_expired_total 1\n" in hapax.call("GET", "/metrics")[2], "the run to be let go", SOON)


def test_dev_watches(dir):
	with Service() as service:
		write(dir / "workflows/one.json", entity("one", "first", service))
		write(dir / "hapax.json", {"modules": modules("first")})
		with serve(dir, "dev") as hapax:
			hapax.await_log("watching for changes")
			assert is_there(hapax, "one")
			# A file that is not whole is told of, in words for whoever saved it.
			write(dir / "workflows/two.json", '{"workflow": "two", "kind": "run",')
			hapax.await_log("workflows/two.json:1: error:")
			assert not is_there(hapax, "two")
			# As editors do it: a new file in the place of the old one.
			write(dir / "workflows/.two.tmp", entity("two", "first", service))
			(dir / "workflows/.two.tmp").rename(dir / "workflows/two.json")
			until(lambda: is_there(hapax, "two"), "the definition that was saved", SOON)
			write(dir / "hapax.json", {"modules": modules("first", "second")})
			until(lambda: hapax.call("POST", "/api/v1/modules/second/sweep", {})[0] == 200, "the module that was saved", SOON)
			reloaded(hapax, hapax.hup)
			hapax.stop()


server.run(globals())
END
