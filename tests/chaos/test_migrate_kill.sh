#!/usr/bin/env bash
# kill -9, again and again, on runs that are migrated while they are driven, on every store: each step is done once, under the key of the
# version that it was begun with, a run is of one version with its parts, and what is cancelled then is undone under the keys of before.
PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=tests/support exec python3 - <<'END'
import os, random, subprocess, time
import server
from server import Server, Service, until

RUNS = "/api/v1/workflow-runs"
STORES = ["sqlite:h.db"] + ([os.environ["HAPAX_TEST_PG"]] if os.environ.get("HAPAX_TEST_PG") else [])
N, KILLS = 12, 5
SEED = random.randrange(1 << 32)
print(f"# migrate_kill: seed {SEED}")
random.seed(SEED)


def task(name):
	return {"name": name, "type": "task", "action": "Do", "compensate": "Undo"}


def flow(service, a, x, more):
	return {"workflow": "moved", "kind": "run", "lease": "1s", "actions": {
		"Do": {"kind": "http", "url": service.url + "/do", "effect": "keyed"},
		"Undo": {"kind": "http", "url": service.url + "/undo", "effect": "keyed"}},
		"steps": [task(a), {"name": "both", "type": "parallel", "branches": {
			"x": [task(x), {"name": "go", "type": "external_event", "event": "go"}, *more],
			"y": [{"name": "rest", "type": "wait", "for": "1ms"}]}}, task("last")]}


def serve(dir, store):
	return Server(dir, "serve", "--db", store)


def kill(hapax):
	hapax.process.kill()
	hapax.process.wait()


def show(hapax, run):
	return hapax.json("GET", f"{RUNS}/{run}", status=200)


def ask(hapax, *args):
	try:
		return hapax.call(*args)[0]
	except OSError:
		return 0


def migrate_under_kills(dir, store, service, runs, to):
	body = {"definitionVersion": to, "steps": {"a": "b", "x": "z"}}
	for _ in range(KILLS):
		with serve(dir, store) as hapax:
			for run in random.sample(runs, N // 2):
				ask(hapax, "POST", f"{RUNS}/{run}/migrate", body)
			time.sleep(random.uniform(0, 0.1))
			kill(hapax)
	with serve(dir, store) as hapax:
		until(lambda: all(ask(hapax, "POST", f"{RUNS}/{run}/migrate", body) == 200 for run in runs), "all to be migrated")
		for run in runs:
			parts = hapax.json("GET", f"{RUNS}?parent={run}", status=200)["items"]
			assert show(hapax, run)["definitionVersion"] == to and {p["definitionVersion"] for p in parts} == {to}, (run, parts)
			reasons = [row.get("reason") or "" for row in hapax.json("GET", f"{RUNS}/{run}/history?limit=500", status=200)["items"]]
			migrated = [reason for reason in reasons if reason.startswith("migrated ")]
			assert len(migrated) == 1 and migrated[0].endswith(f"to version {to}"), reasons


def keys(service, path):
	return [head["idempotency-key"] for at, head, _ in service.calls if at == path]


def test_each_store(dir):
	for i, store in enumerate(STORES):
		here = dir / str(i)
		here.mkdir()
		with Service() as service:
			with serve(here, store) as hapax:
				hapax.json("PUT", "/api/v1/definitions/moved", flow(service, "a", "x", []))
				runs = [hapax.json("POST", RUNS, {"definitionId": "moved"}, status=201)["run"]["id"] for _ in range(N)]
				to = hapax.json("PUT", "/api/v1/definitions/moved", flow(service, "b", "z", [task("new")]))["version"]
				service.await_calls("/do", N // 2)
				kill(hapax)
			migrate_under_kills(here, store, service, runs, to)
			with serve(here, store) as hapax:
				for run in runs[N // 2:]:
					until(lambda: ask(hapax, "POST", f"{RUNS}/{run}/cancel", {}) in (200, 202), "the cancel")
				for run in runs[:N // 2]:
					until(lambda: ask(hapax, "POST", f"{RUNS}/{run}/events/go", {"id": "e"}) in (200, 202), "the event")
				for n, run in enumerate(runs):
					until(lambda: show(hapax, run)["status"] == ("COMPLETED" if n < N // 2 else "CANCELLED"), f"the end of {run}")
			done, undone = set(keys(service, "/do")), set(keys(service, "/undo"))
			assert not [k for k in done | undone if k.split("/")[1] in ("b", "z")], "a renamed step has another key"
			assert {k.split("/")[0] for k in done if k.split("/")[1] == "a"} == set(runs)
			assert len([k for k in done if k.split("/")[1] == "last"]) == len([k for k in done if k.split("/")[1] == "new"]) == N // 2
			assert {k.split("/")[0] for k in undone if k.split("/")[1] == "a"} == set(runs[N // 2:])
			assert {k.rsplit("/", 1)[0] for k in undone} <= {k.rsplit("/", 1)[0] for k in done}
			audit = subprocess.run([server.HAPAX, "audit", "--db", store], cwd=here, capture_output=True)
			assert audit.returncode == 0, audit.stdout


server.run(globals())
END
