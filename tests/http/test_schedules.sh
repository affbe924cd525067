#!/usr/bin/env bash
# Schedules over HTTP: what is put is shown and does what it says; slots that meet, slots that were missed, a backfill, a trigger; each slot
# once, through a kill.
PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=tests/support exec python3 - <<'END2'
import contextlib
import datetime
import server
import sqlite3
import subprocess
import time
from server import Server, Service, until, write

BASE = "/api/v1/schedules"


def serve(dir):
	write(dir / "workflows/quick.json", {"workflow": "quick", "kind": "run", "actions": {"a": {"kind": "noop"}},
		"steps": [{"name": "a", "type": "task", "action": "a"}]})
	write(dir / "workflows/open.json", {"workflow": "open", "kind": "run",
		"steps": [{"name": "go", "type": "external_event", "event": "go"}]})
	write(dir / "workflows/pack.json", {"workflow": "pack", "kind": "batch", "actions": {"one": {"kind": "noop"}}, "item_action": "one"})
	return Server(dir, "serve", "--db", "sqlite:h.db", "--workflows", "workflows")


def put(hapax, name, body, status=201):
	return hapax.json("PUT", f"{BASE}/{name}", body, status=status)


def show(hapax, name):
	return hapax.json("GET", f"{BASE}/{name}", status=200)


def runs(hapax, name):
	"""Of its slots, in their order: key to run."""
	found, cursor = {}, ""
	while True:
		page = hapax.json("GET", f"/api/v1/workflow-runs?limit=500{cursor}", status=200)
		for run in page["items"]:
			if (run["idempotencyKey"] or "").startswith(f"schedule:{name}:2"):
				assert run["idempotencyKey"] not in found, "one slot, two runs"
				found[run["idempotencyKey"]] = run
		if not page["cursor"]:
			return dict(sorted(found.items()))
		cursor = f"&cursor={page['cursor']}"


def slot(key):
	return int(datetime.datetime.fromisoformat(key.split(":", 2)[2].replace("Z", "+00:00")).timestamp())


def slots(hapax, name):
	return [slot(key) for key in runs(hapax, name)]


def kill(hapax):
	hapax.process.kill()
	hapax.process.wait()


def go(hapax, run):
	hapax.json("POST", f"/api/v1/workflow-runs/{run['id']}/events/go", {}, status=202)


def ago(seconds):
	return datetime.datetime.fromtimestamp(int(time.time()) - seconds, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def test_what_is_put_is_shown(dir):
	with serve(dir) as hapax:
		body = {"workflow": "quick", "input": {"b": 1.50, "a": 2}, "cron": "30 2 * * *", "timezone": "Europe/Berlin", "overlap": "queue",
			"catchUp": "last", "jitter": "90s", "from": "2026-03-28T00:00:00Z", "to": "2100-01-01T00:00:00Z"}
		made = put(hapax, "a", body)
		for member, value in body.items():
			if member not in ("from", "to"):
				assert made[member] == value, (member, made)
		assert made["from"] == "2026-03-28T00:00:00.000Z" and len(made["next"]) == 10 and made["paused"] is False
		assert put(hapax, "a", body, 200)["version"] == 1, "an unchanged put changes something"
		assert put(hapax, "a", {**body, "input": {"a": 2, "b": 1.5}}, 200)["version"] == 1, "the same in another order"
		assert put(hapax, "a", {**body, "jitter": "91s"}, 200)["version"] == 2
		assert put(hapax, "a", {**body, "paused": True}, 200)["paused"] is True
		assert put(hapax, "a", body, 200)["paused"] is True, "a put that says nothing of it resumes it"
		assert hapax.json("POST", f"{BASE}/a/resume", status=200)["paused"] is False
		assert [s["name"] for s in hapax.json("GET", BASE, status=200)["items"]] == ["a"]
		assert hapax.json("GET", BASE, headers=[("Hapax-Workspace", "other")], status=200)["items"] == []
		hapax.json("GET", f"{BASE}/a", headers=[("Hapax-Workspace", "other")], status=404)


def test_what_is_refused(dir):
	good = {"workflow": "quick", "every": "1d"}
	with serve(dir) as hapax:
		for change, code, words in (
				({"evry": "1s"}, 400, "evry"), ({"cron": "* * * * *"}, 400, "cron"), ({"every": None}, 400, "every"),
				({"every": "1500ms"}, 400, "whole seconds"), ({"every": "0s"}, 400, "0s"), ({"overlap": "maybe"}, 400, "maybe"),
				({"catchUp": "sometimes"}, 400, "catchUp"), ({"timezone": "../etc/passwd"}, 400, "timezone"),
				({"timezone": "Europe/Nowhere"}, 400, "Nowhere"), ({"jitter": "-1s"}, 400, "jitter"), ({"from": "soon"}, 400, "from"),
				({"from": "2026-01-02T00:00:00Z", "to": "2026-01-01T00:00:00Z"}, 400, "to"), ({"paused": "no"}, 400, "paused"),
				({"workflow": "quikc"}, 404, "quick"), ({"workflow": "pack"}, 404, "pack"), ({"input": []}, 400, "input"),
				({"workflow": None, "batch": {"workflow": "pack", "account": "a", "items": []}}, 400, "items"),
				({"workflow": None, "batch": {"workflow": "pack", "account": "a", "items": [{"cost": 1000000001}]}}, 400, "1000000000"),
				({"workflow": None, "batch": {"workflow": "pack", "account": "a", "items": [{"cost": 1.0}]}}, 400, "whole number"),
				({"workflow": None, "batch": {"workflow": "pack", "account": "a", "items": [{"cost": 1, "inptu": {}}]}}, 400, "inptu")):
			answer = hapax.json("PUT", f"{BASE}/x", {**good, **change}, status=code)
			assert words in answer["detail"], answer
		put(hapax, "most", {"batch": {"workflow": "pack", "account": "a", "items": [{"cost": 1000000000}, {"cost": 0}]}, "every": "1d"})
		hapax.json("PUT", f"{BASE}/a%20b", good, status=400)
		hapax.json("GET", f"{BASE}/x", status=404)
		answer = hapax.json("POST", "/api/v1/workflow-runs", {"definitionId": "quick", "idempotencyKey": "schedule:x:2026-11-16T09:00:00Z"}, status=400)
		assert answer["code"] == "KEY_RESERVED"


def test_each_slot_once_through_kills(dir):
	with serve(dir) as hapax:
		put(hapax, "tick", {"workflow": "quick", "every": "1s", "overlap": "allow", "catchUp": "all"})
		until(lambda: runs(hapax, "tick"), "a slot")
		kill(hapax)
	for _ in range(3):
		with serve(dir) as hapax:
			n = len(runs(hapax, "tick"))
			until(lambda: len(runs(hapax, "tick")) > n, "another slot")
			kill(hapax)
	with serve(dir) as hapax:
		time_now = int(time.time())
		until(lambda: slots(hapax, "tick")[-1] > time_now, "the slots of the pauses, and another one")
		found = slots(hapax, "tick")
		assert found == list(range(found[0], found[-1] + 1)), "a slot is missing"
		put(hapax, "tick", {"workflow": "quick", "every": "1s", "overlap": "allow", "catchUp": "all", "paused": True}, 200)
		shown = show(hapax, "tick")
		assert shown["started"] == len(slots(hapax, "tick")) and shown["missed"] == 0, shown


def missed(dir, catch_up):
	"""Down for 4 s at least, at a slot each second: which slots of that time were started?"""
	with serve(dir) as hapax:
		put(hapax, "tick", {"workflow": "quick", "every": "1s", "overlap": "allow", "catchUp": catch_up})
		until(lambda: runs(hapax, "tick"), "a slot")
		kill(hapax)
	down = int(time.time())
	until(lambda: time.time() > down + 5, "a while without a node")
	up = int(time.time())
	with serve(dir) as hapax:
		until(lambda: slots(hapax, "tick")[-1] > up + 1, "a slot after it")
		return [s for s in slots(hapax, "tick") if down + 1 < s < up], down, up, show(hapax, "tick")["missed"]


def test_missed_slots(dir):
	for name, wanted in (("none", lambda n: n == 0), ("last", lambda n: n <= 1), ("2s", lambda n: n <= 2)): # less where the start takes its time
		(dir / name).mkdir()
		found, down, up, n = missed(dir / name, name)
		assert wanted(len(found)) and n >= 2, (name, found, down, up, n)


def test_slots_that_meet(dir):
	with serve(dir) as hapax:
		for overlap in ("skip", "queue", "cancel"):
			put(hapax, overlap, {"workflow": "open", "every": "1s", "overlap": overlap})
		until(lambda: show(hapax, "skip")["skipped"] >= 2, "skipped ones")
		until(lambda: show(hapax, "queue")["waiting"] >= 2, "waiting ones")
		assert len(runs(hapax, "skip")) == len(runs(hapax, "queue")) == 1, "two at once"
		first = next(iter(runs(hapax, "queue").values()))
		go(hapax, first)
		until(lambda: len(runs(hapax, "queue")) == 2, "the next of the queue")
		found = slots(hapax, "queue")
		assert found[1] == found[0] + 1, "not the next in order"
		until(lambda: len(runs(hapax, "cancel")) >= 3, "cancelled ones")
		states = [run["status"] for run in runs(hapax, "cancel").values()]
		assert set(states[:-1]) == {"CANCELLED"}, states
		hapax.json("DELETE", f"{BASE}/skip", status=200)
		hapax.json("GET", f"{BASE}/skip", status=404)


def test_a_pause_is_not_made_up_for(dir):
	with serve(dir) as hapax:
		put(hapax, "tick", {"workflow": "quick", "every": "1s", "overlap": "allow", "catchUp": "all"})
		until(lambda: runs(hapax, "tick"), "a slot")
		hapax.json("POST", f"{BASE}/tick/pause", status=200)
		before = int(time.time()) # what has come by then is not of the pause
		until(lambda: time.time() > before + 4, "slots of the pause")
		resumed = int(time.time())
		hapax.json("POST", f"{BASE}/tick/resume", status=200)
		until(lambda: slots(hapax, "tick")[-1] > resumed, "a slot after it")
		assert not [s for s in slots(hapax, "tick") if before < s <= resumed - 1] and show(hapax, "tick")["missed"] == 0


def test_trigger_and_backfill(dir):
	with serve(dir) as hapax:
		put(hapax, "d", {"workflow": "quick", "cron": "0 9 * * *", "timezone": "America/New_York"})
		first = hapax.json("POST", f"{BASE}/d/trigger", {"id": "x"}, status=201)
		assert first["run"]["idempotencyKey"] == "schedule:d:trigger:x" and first["created"]
		again = hapax.json("POST", f"{BASE}/d/trigger", {"id": "x"}, status=200)
		assert again["run"]["id"] == first["run"]["id"] and not again["created"]
		wanted = ["schedule:d:2026-03-07T14:00:00Z", "schedule:d:2026-03-08T13:00:00Z", "schedule:d:2026-03-09T13:00:00Z"]
		for _ in range(2):
			answer = hapax.json("POST", f"{BASE}/d/backfill", {"from": "2026-03-07T14:00:00Z", "to": "2026-03-09T13:00:00Z"}, status=202)
			assert answer["slots"] == 3, answer
			until(lambda: list(runs(hapax, "d")) == wanted and show(hapax, "d")["waiting"] == 0, "its slots, once each")
		hapax.json("POST", f"{BASE}/d/backfill", {"from": "2026-03-07T14:00:00Z", "to": "2126-03-07T14:00:00Z"}, status=400)
		hapax.json("POST", f"{BASE}/d/backfill", {"from": "2020-01-01T00:00:00Z", "to": "2026-03-07T14:00:00Z"}, status=413)
		hapax.json("DELETE", f"{BASE}/d", status=200)
		put(hapax, "d", {"workflow": "quick", "cron": "0 9 * * *", "timezone": "America/New_York"})
		hapax.json("POST", f"{BASE}/d/backfill", {"from": "2026-03-07T14:00:00Z", "to": "2026-03-10T13:00:00Z"}, status=202)
		until(lambda: len(runs(hapax, "d")) == 4 and show(hapax, "d")["waiting"] == 0, "one that is new")


def test_fires_a_step(dir):
	with Service() as service:
		write(dir / "workflows/doc.json", {"workflow": "doc", "kind": "entity", "status_types": ["open"], "initial_status": "open",
			"actions": {"Ping": {"kind": "http", "url": service.url + "/ping", "effect": "keyed"}},
			"steps": [{"step_id": 1, "step_key": "ping", "status": "open", "successful_state": "open", "action": "Ping"}]})
		with serve(dir) as hapax:
			hapax.json("POST", "/api/v1/entities/doc", {"id": "d1"}, status=201)
			put(hapax, "bad", {"fire": {"workflow": "quick", "id": "d1", "step": "ping"}, "every": "1s"}, 404)
			put(hapax, "f", {"fire": {"workflow": "doc", "id": "d1", "step": "ping", "input": {"n": 1}}, "every": "1s"})
			service.await_calls("/ping", 2)
			first = hapax.json("POST", f"{BASE}/f/trigger", {"id": "x"}, status=201)
			again = hapax.json("POST", f"{BASE}/f/trigger", {"id": "x"}, status=200)
			assert first["job"]["id"] == again["job"]["id"] and first["job"]["idempotencyKey"] == "schedule:f:trigger:x", again
			hapax.json("POST", f"{BASE}/f/pause", status=200)
			until(lambda: all(j["status"] == "COMPLETED" for j in hapax.json("GET", "/api/v1/jobs", status=200)["items"]), "all fired")
			jobs = hapax.json("GET", "/api/v1/jobs", status=200)["items"]
			assert len(jobs) == len([c for c in service.calls if c[0] == "/ping"]) >= 3, jobs


def test_files(dir):
	file = dir / "workflows/nightly.json"
	text = {"schedule": "nightly", "kind": "schedule", "workflow": "quick", "cron": "0 3 * * *", "timezone": "Europe/Berlin", "catch_up": "last"}
	write(file, text)
	with serve(dir) as hapax:
		shown = until(lambda: hapax.call("GET", f"{BASE}/nightly")[0] == 200 and show(hapax, "nightly"), "the schedule of the file")
		assert (shown["catchUp"], shown["version"]) == ("last", 1), shown
		hapax.json("POST", f"{BASE}/nightly/pause", status=200)
	with serve(dir) as hapax:
		assert show(hapax, "nightly")["paused"] is True, "a restart has resumed it"
		write(file, {**text, "jitter": "5m"})
		hapax.hup()
		until(lambda: show(hapax, "nightly")["jitter"] == "5m", "the change, after a reload")
		write(file, {**text, "cron": "0 33 * * *"})
		hapax.hup()
		hapax.await_log("nightly.json:")
		assert show(hapax, "nightly")["cron"] == "0 3 * * *"


def test_one_workspace_does_not_stop_the_others(dir):
	"""More schedules that cannot start than a node has room for what rests: one of somebody else starts all the same."""
	evil = {"batch": {"workflow": "pack", "account": "nobody", "items": [{"cost": 1}]}, "every": "1s"}
	with serve(dir) as hapax:
		for i in range(700):
			hapax.json("PUT", f"{BASE}/e{i}", evil, headers=[("Hapax-Workspace", "evil")], status=201)
		hapax.await_log("there is no such account")
		put(hapax, "tick", {"workflow": "quick", "every": "1s"})
		until(lambda: len(runs(hapax, "tick")) >= 2, "slots of another workspace")
		shown = hapax.json("GET", f"{BASE}/e0", headers=[("Hapax-Workspace", "evil")], status=200)
		assert (shown["started"], shown["missed"]) == (0, 0), shown


def poll(hapax, name, workspace="default", wait=0):
	return hapax.json("POST", "/api/v1/functions/claim", {"worker": "w", "functions": [{"name": name, "version": "1"}], "max": 1, "waitMs": wait},
		headers=[("Hapax-Workspace", workspace)], status=200)["turns"]


def test_functions(dir):
	"""A name that somebody polls for in this workspace can be started by a schedule, once for each slot."""
	body = {"workflow": "report", "every": "1s", "input": {"team": "sales"}, "overlap": "allow"}
	with serve(dir) as hapax:
		assert "report" in put(hapax, "r", body, status=404)["detail"]
		poll(hapax, "report", workspace="other")
		put(hapax, "r", body, status=404)
		assert "kind" in put(hapax, "r", {**body, "workflow": "pack"}, status=404)["detail"]
		poll(hapax, "report")
		put(hapax, "r", body)
		put(hapax, "r", body, status=200)
		turn, = until(lambda: poll(hapax, "report", wait=5000), "a slot")
		assert turn["input"] == {"team": "sales"} and turn["key"].startswith("schedule:r:2"), turn
		hapax.json("POST", f"/api/v1/functions/runs/{turn['run']}/journal", {"worker": "w", "fence": turn["fence"], "seq": turn["seq"],
			"end": {"state": "completed", "output": {"orders": 3}}}, status=200)
		assert hapax.json("GET", f"/api/v1/workflow-runs/{turn['run']}", status=200)["output"] == {"orders": 3}
		until(lambda: len(runs(hapax, "r")) >= 2, "the next slot")
		first = hapax.json("POST", f"{BASE}/r/trigger", {"id": "t1"}, status=201)
		again = hapax.json("POST", f"{BASE}/r/trigger", {"id": "t1"}, status=200)
		assert first["run"]["id"] == again["run"]["id"] and first["run"]["definitionId"] == "report", (first, again)


def test_a_function_that_nobody_polls_for_any_more(dir):
	"""Its slot stays, rests and is told; it is started when somebody polls again."""
	with serve(dir) as hapax:
		poll(hapax, "report")
		at = put(hapax, "r", {"workflow": "report", "every": "1h"})["id"]
		with contextlib.closing(sqlite3.connect(dir / "h.db", timeout=30)) as store, store:
			store.execute("DELETE FROM hx_function_poll")
			store.execute("UPDATE hx_schedule SET slot_at = due_at - 1000, due_at = due_at - 3700000")
			store.execute("UPDATE hx_schedule SET slot_at = due_at")
		assert "nobody polls" in hapax.json("POST", f"{BASE}/r/trigger", {}, status=404)["detail"]
		hapax.await_log("nobody polls for such a function")
		assert "polls for it" in hapax.json("GET", f"/api/v1/why/{at}", status=200)["why"]
		assert not runs(hapax, "r") and show(hapax, "r")["started"] == 0
		until(lambda: poll(hapax, "report", wait=5000), "its slot, late")


def test_a_function_in_the_way_is_cancelled(dir):
	with serve(dir) as hapax:
		poll(hapax, "report")
		put(hapax, "r", {"workflow": "report", "every": "1s", "overlap": "cancel"})
		cancelled = lambda: hapax.json("GET", "/api/v1/workflow-runs?status=CANCELLED", status=200)["items"]
		until(lambda: cancelled() and len(runs(hapax, "r")) >= 2, "one cancelled for the next")


def test_the_audit_knows_schedules(dir):
	with serve(dir) as hapax:
		put(hapax, "r", {"workflow": "quick", "every": "1h"})
		put(hapax, "d", {"workflow": "quick", "every": "1h"})
		hapax.json("POST", f"{BASE}/r/pause", status=200)
		hapax.json("DELETE", f"{BASE}/d", status=200)
		audit = subprocess.run([server.HAPAX, "audit", "--db", f"sqlite:{dir}/h.db"], capture_output=True, text=True)
		assert audit.returncode == 0, audit


def test_batches(dir):
	with serve(dir) as hapax:
		hapax.json("POST", "/api/v1/accounts", {"id": "acme", "balance": 100}, status=201)
		put(hapax, "b", {"batch": {"workflow": "pack", "account": "acme", "items": [{"cost": 2, "input": {"n": 1}}, {"cost": 3}]}, "every": "1s",
			"overlap": "allow"})
		batches = lambda: hapax.json("GET", "/api/v1/batches?status=COMPLETED", status=200)["items"]
		until(lambda: len(batches()) >= 2, "two slots")
		hapax.json("POST", f"{BASE}/b/pause", status=200)
		keys = [b["idempotencyKey"] for b in batches()]
		assert len(set(keys)) == len(keys) and all(key.startswith("schedule:b:2") for key in keys)
		assert all(b["total"] == 2 and b["charged"] == 5 for b in batches()), batches()


server.run(globals(), at_once=4)
END2
