#!/usr/bin/env bash
# Runs that fail, whose time is over, and that are restarted, while their nodes are killed (-9): one on SQLite, two on PostgreSQL. A run that
# compensates itself has each step undone once, in reverse; who is to hear of a failure hears of it under one key; and of any number of
# restarts that are asked for one makes a run. RUNS and KILLS say how many (tests/soak/failure_kill.sh).
PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=tests/support exec python3 - <<'END'
import os
import fleet
import server
from fleet import RUNS, Fleet
from server import Service, until, write

RUNS_N = int(os.environ.get("RUNS", 12))
KILLS = int(os.environ.get("KILLS", 6))
ENDS = {"CANCELLED", "FAILED", "COMPLETED"}
fleet.seed("failure_kill")


def define(dir, service):
	"""A refusal that follows on a call without an answer proves nothing of that one: `No` has a probe."""
	actions = {name: {"kind": "http", "url": f"{service.url}/{name.lower()}", "effect": "keyed"} for name in ("Do", "Undo", "No", "Look", "Tell")}
	actions["No"]["probe"] = "Look"
	task = lambda name: {"name": name, "type": "task", "action": "Do", "compensate": "Undo"}
	refused = {"name": "refused", "type": "task", "action": "No", "on_unknown": "probe"}
	never = {"name": "never", "type": "external_event", "event": "never"}
	branches = {"x": [task("x1"), never], "y": [task("y1"), {**never, "name": "nor"}]}
	common = {"kind": "run", "lease": "1s", "actions": actions, "failure_after_effect": ["Tell"]}
	write(dir / "workflows/careful.json", {"workflow": "careful", **common, "on_failure": "compensate",
		"steps": [task("a"), task("b"), refused]})
	write(dir / "workflows/hasty.json", {"workflow": "hasty", **common, "on_failure": "compensate", "timeout": "1s",
		"steps": [task("a"), {"name": "both", "type": "parallel", "branches": branches}]})
	write(dir / "workflows/held.json", {"workflow": "held", **common, "steps": [task("a"), task("b"), refused]})
	service.answers["/no"] = (422, b'{"no": true}')
	service.answers["/look"] = (200, b'{"outcome": "not_done"}')


def keys(service, path):
	"""In the order in which they came first."""
	return list(dict.fromkeys(head["idempotency-key"] for at, head, _ in list(service.calls) if at == path))


def start_all(nodes, workflow):
	return [nodes.ask("POST", RUNS, {"definitionId": workflow, "idempotencyKey": f"{workflow}-{n}"})["run"]["id"] for n in range(RUNS_N)]


def await_all(nodes, runs, status):
	def ended(run):
		shown = nodes.ask("GET", f"{RUNS}/{run}")
		return shown if shown["status"] in ENDS else None

	for run in runs:
		shown = until(lambda: ended(run), f"the end of {run}")
		assert shown["status"] == status, shown


def await_told(service, runs):
	"""Each of them once: under one key, whatever was killed."""
	told = lambda: [key.split("/failed/")[0] for key in keys(service, "/tell")]
	until(lambda: set(told()) >= set(runs), "what is told of failures")
	assert sorted(told()) == sorted(runs), keys(service, "/tell")


def check_undone(service):
	"""Each that was done under one key, in the reverse order of its run."""
	step = lambda key: key.rsplit("/", 1)[0]
	of_run = lambda steps: {run: [s for s in steps if s.split("/")[0] == run] for run in {s.split("/")[0] for s in steps}}
	done, undone = [step(k) for k in keys(service, "/do")], [step(k) for k in keys(service, "/undo")]
	assert len(undone) == len(set(undone)), "undone under two keys"
	assert len(done) == len(set(done)), "done under two keys"
	assert of_run(done) == {run: steps[::-1] for run, steps in of_run(undone).items()}


def compensated(dir, store, nodes_n, workflow):
	with Service() as service:
		define(dir, service)
		with Fleet(dir, store, nodes_n) as nodes:
			runs = []
			nodes.rage_while(lambda: runs.extend(start_all(nodes, workflow)), KILLS)
			nodes.rage(KILLS)
			await_all(nodes, runs, "CANCELLED")
			await_told(service, runs)
			check_undone(service)
			errors = {nodes.ask("GET", f"{RUNS}/{run}")["error"]["code"] for run in runs}
			nodes.audit()
			return errors


def test_a_failure_compensates(dir):
	for at in fleet.stores(dir):
		assert compensated(*at, "careful") == {"INVALID"}


def test_time_that_is_over_compensates(dir):
	for at in fleet.stores(dir):
		assert compensated(*at, "hasty") == {"TIMEOUT"}


def restart_all(nodes, runs, ask_n=2):
	"""Of several that are asked for, all but one are told of the other."""
	for run in runs:
		for _ in range(ask_n):
			status, text = nodes.call("POST", f"{RUNS}/{run}/restart", {"from": "b"})
			assert status == 200 or (status == 409 and b"RESTARTED" in text), (status, text)


def check_restarted(nodes, service, runs):
	new = {r["restartOf"]: r["id"] for run in runs for r in [nodes.ask("GET", f"{RUNS}/{nodes.ask('GET', f'{RUNS}/{run}')['restartedBy']}")]}
	assert set(new) == set(runs)
	assert len(nodes.all(f"{RUNS}?definitionId=held")) == 2 * len(runs), "a run was restarted twice"
	await_all(nodes, new.values(), "COMPLETED")
	begun = {key.rsplit("/", 1)[0] for key in keys(service, "/do")}
	assert begun == {f"{run}/{step}" for run in runs for step in "ab"} | {f"{run}/b" for run in new.values()}, begun
	assert not keys(service, "/undo")


def test_a_restart_is_one_run(dir):
	for dir, store, nodes_n in fleet.stores(dir):
		with Service() as service:
			define(dir, service)
			with Fleet(dir, store, nodes_n) as nodes:
				runs = start_all(nodes, "held")
				nodes.rage(KILLS)
				await_all(nodes, runs, "FAILED")
				await_told(service, runs)
				del service.answers["/no"]
				nodes.rage_while(lambda: restart_all(nodes, runs), KILLS)
				check_restarted(nodes, service, runs)
				nodes.audit()


server.run(globals())
END
