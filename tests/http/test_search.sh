#!/usr/bin/env bash
# Searches over HTTP, on both stores: entities and batches by their attributes; what is refused; and what a bulk does to jobs, batches and
# entities.
PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=tests/support exec python3 - <<'END'
import os, urllib.parse
import server
from server import Server, Service, until, write

PG = os.environ.get("HAPAX_TEST_PG")
STORES = ["sqlite:h.db"] + ([PG] if PG else [])
ORDER = {"workflow": "order", "kind": "entity", "status_types": ["open", "paying", "paid"], "initial_status": "open",
	"attributes": {"customer": ".data.customer", "total": ".data.total", "receipt": ".data.paid.receipt"},
	"steps": [{"step_id": 1, "step_key": "pay", "status": "open", "successful_state": "paid", "action": "Pay",
		"claim_state": ["paying", "open"], "save_as": "paid"}]}
OWN = {"workflow": "own", "kind": "entity", "status_types": ["a", "b"], "initial_status": "a",
	"steps": [{"step_id": 1, "step_key": "go", "status": "a", "successful_state": "b"}]}
RUN = {"workflow": "run", "kind": "run", "steps": [{"name": "w", "type": "external_event", "event": "e"}]}


def on_each_store(dir, service):
	for i, store in enumerate(STORES):
		at = dir / str(i)
		at.mkdir()
		for flow in (ORDER | {"actions": {"Pay": {"kind": "http", "url": service.url + "/pay", "effect": "keyed"}}}, OWN, RUN):
			write(at / f"workflows/{flow['workflow']}.json", flow)
		write(at / "config.json", {"modules": {"order": {"janitor": {}}}})
		with Server(at, "serve", "--db", store, "--workflows", "workflows", "--config", "config.json") as hapax:
			yield hapax


def create(hapax, id, data, status=201):
	return hapax.json("POST", "/api/v1/entities/order", {"id": id, "data": data}, status=status)


def page(hapax, status=200, path="/api/v1/entities/order", **query):
	return hapax.json("GET", f"{path}?{urllib.parse.urlencode(query)}", status=status)


def ids(hapax, **query):
	found, cursor = [], None
	while True:
		answer = page(hapax, **query, **({"cursor": cursor} if cursor else {}))
		found += [item["id"] for item in answer["items"]]
		cursor = answer["cursor"]
		if not cursor:
			return found


def test_entities_are_found(dir):
	with Service() as service:
		service.answer = (200, b'{"receipt": "r-7"}')
		for hapax in on_each_store(dir, service):
			for n in range(12):
				made = create(hapax, f"o-{n}", {"customer": f"c-{n % 3}", "total": n * 10})
			assert made["attributes"] == {"customer": "c-2", "total": 110}, made
			assert "attributes" not in create(hapax, "bare", {"customer": {"a": 1}})
			assert ids(hapax, where='customer == "c-1"') == ["o-10", "o-7", "o-4", "o-1"]
			assert ids(hapax, where='customer == "c-1"', order="createdAt", limit=1) == ["o-1", "o-4", "o-7", "o-10"]
			assert ids(hapax, where="total >= 80 and total < 110", order="-total", limit=2) == ["o-10", "o-9", "o-8"]
			assert ids(hapax, where='id == "o-5"') == ["o-5"]
			assert ids(hapax, where="customer == null") == ["bare"]
			assert page(hapax, **{"where": "total <= 10", "limit": 5})["items"] and hapax.json(
				"GET", "/api/v1/entities/order?status=paid&where=total%20%3C%3D%2010", status=200)["items"] == []
			assert ids(hapax, where='held == true') == []
			found = page(hapax, where='id == "o-5"')["items"][0]
			assert found == hapax.json("GET", "/api/v1/entities/order/o-5"), found
			# What a step saves, and what a caller changes.
			fired = hapax.json("POST", "/api/v1/entities/order/o-5/steps/pay", {}, status=200)
			assert fired["entity"]["attributes"] == {"customer": "c-2", "total": 50, "receipt": "r-7"}, fired
			assert ids(hapax, where='receipt == "r-7" and status == "paid"') == ["o-5"]
			changed = hapax.json("POST", "/api/v1/entities/order/o-5/data", {"data": {"customer": "c-9"}, "version": 3}, status=200)
			assert changed["attributes"]["customer"] == "c-9", changed
			assert ids(hapax, where='customer == "c-9"') == ["o-5"]
			assert "o-5" not in ids(hapax, where='customer == "c-2"')
			# Another workspace has none of it.
			other = [("Hapax-Workspace", "other")]
			assert hapax.json("GET", "/api/v1/entities/order?where=total%20%3E%3D%200", headers=other, status=200)["items"] == []


def test_what_is_refused(dir):
	with Service() as service:
		for hapax in on_each_store(dir, service):
			def refused(position=None, words="", **query):
				problem = page(hapax, status=400, **query)
				assert problem["code"] == "BAD_QUERY" and problem.get("position") == position and words in problem["detail"], problem
			refused(1, 'did you mean "customer"', where='custmer == "c-1"')
			refused(11, "status", where='status == "paied"')
			refused(words="updatedAt", order="-updatedAt")
			refused(words='did you mean "total"', order="totl")
			refused(words="updatedAt", order="updatedAt", path="/api/v1/workflow-runs")
			assert page(hapax, status=400, where="total > 1", held="true")["code"] == "VALIDATION_ERROR"
			assert page(hapax, status=400, where="total > 1", cursor="run_1")["code"] == "VALIDATION_ERROR"
			assert page(hapax, status=404, path="/api/v1/entities/odrer", where="total > 1")["code"] == "NOT_FOUND"


def test_jobs_are_redriven_in_bulk(dir):
	with Service() as service:
		for hapax in on_each_store(dir, service):
			hapax.json("POST", "/api/v1/jobs", [{"queue": "mail" if n % 2 else "sms", "payload": n} for n in range(20)])
			claimed = hapax.json("POST", "/api/v1/jobs/claim", {"queues": ["mail", "sms"], "owner": "me", "max": 20}, status=200)["jobs"]
			assert len(claimed) == 20, claimed
			for job in claimed:
				hapax.json("POST", f"/api/v1/jobs/{job['id']}/fail", {"owner": "me", "fence": job["fence"], "error": "no", "retryable": False}, status=200)
			bulk = {"verb": "redrive", "kind": "job", "where": 'status == "PARKED" and queue == "mail"'}
			assert hapax.json("POST", "/api/v1/bulk", bulk | {"dryRun": True}, status=200)["selected"] == 10
			id = hapax.json("POST", "/api/v1/bulk", bulk, status=202)["id"]
			ended = hapax.json("GET", f"/api/v1/bulk/{id}?wait=60s", status=200)
			assert (ended["status"], ended["done"]) == ("COMPLETED", 10), ended
			items = hapax.json("GET", f"/api/v1/bulk/{id}/items", status=200)["items"]
			assert all(item["subject"].startswith("job_") and item["result"] == "done" for item in items), items
			jobs = hapax.json("GET", "/api/v1/jobs?limit=100", status=200)["items"]
			assert {job["queue"] for job in jobs if job["status"] == "PARKED"} == {"sms"}, jobs
			assert {job["queue"] for job in jobs if job["status"] == "AVAILABLE"} == {"mail"}, jobs
			for bad in (bulk | {"verb": "cancel"}, bulk | {"kind": "run"}, bulk | {"arguments": {"reason": "x"}}, bulk | {"kind": "jobb"}):
				assert hapax.json("POST", "/api/v1/bulk", bad, status=400)["code"] == "VALIDATION_ERROR"
			assert hapax.json("POST", "/api/v1/bulk", bulk | {"where": "custmer == 1"}, status=400)["code"] == "BAD_QUERY"


def carried_out(hapax, bulk):
	"""The results of a bulk, by subject."""
	id = hapax.json("POST", "/api/v1/bulk", bulk, status=202)["id"]
	ended = hapax.json("GET", f"/api/v1/bulk/{id}?wait=60s", status=200)
	assert ended["status"] == "COMPLETED", ended
	items = hapax.json("GET", f"/api/v1/bulk/{id}/items", status=200)["items"]
	assert len(items) == ended["selected"], (items, ended)
	return {item["subject"]: item.get("code", item["result"]) for item in items}


FILM = {"workflow": "film", "kind": "batch", "attributes": {"title": ".data.title", "reels": ".data.reels", "none": ".data.more"},
	"actions": {"render": {"kind": "noop"}}, "item_action": "render"}


def test_batches_are_found_and_done_in_bulk(dir):
	with Service() as service:
		for hapax in on_each_store(dir, service):
			hapax.json("PUT", "/api/v1/definitions/film", FILM, status=200)
			hapax.json("POST", "/api/v1/accounts", {"id": "ann", "balance": 1000}, status=201)

			def start(key, data, **more):
				return hapax.json("POST", "/api/v1/batches", {"workflow": "film", "account": "ann", "items": [{"cost": 5}],
					"idempotencyKey": key, "data": data, "hold": True} | more, status=201)

			def found(**query):
				return [b["idempotencyKey"] for b in page(hapax, path="/api/v1/batches", **query)["items"]]

			made = [start(f"b{n}", {"title": f"t{n % 2}", "reels": n}) for n in range(6)]
			# One that is loaded in several units has them as well.
			start("long", {"title": "t9"}, items=[{"cost": 0}] * 1200)
			assert made[1]["data"] == {"title": "t1", "reels": 1} and made[1]["attributes"] == {"title": "t1", "reels": 1}, made[1]
			assert found(where='title == "t1"') == ["b5", "b3", "b1"] and found(where='title == "t9"') == ["long"]
			assert found(where="reels >= 2 and title == \"t0\"", order="-reels") == ["b4", "b2"]
			assert found(where='title == "t1" and status == "COMPLETED"') == []
			assert page(hapax, 400, path="/api/v1/batches", where="titel == 1")["code"] == "BAD_QUERY"
			for bad in ([], "x", None, {"a": "x" * 17000}):
				status = hapax.call("POST", "/api/v1/batches", {"workflow": "film", "account": "ann", "items": [{"cost": 5}], "data": bad})[0]
				assert status == (413 if isinstance(bad, dict) else 400), (bad, status)

			bulk = {"verb": "start", "kind": "batch", "where": 'title == "t0" and reels > 0'}
			assert hapax.json("POST", "/api/v1/bulk", bulk | {"dryRun": True}, status=200)["selected"] == 2
			assert carried_out(hapax, bulk) == {made[2]["id"]: "done", made[4]["id"]: "done"}
			for n in (2, 4):
				ended = hapax.json("GET", f"/api/v1/batches/{made[n]['id']}?wait=60s", status=200)
				assert ended["status"] == "COMPLETED" and ended["charged"] == 5, ended
			cancel = {"verb": "cancel", "kind": "batch", "where": 'workflow == "film" and reels < 6'}
			results = carried_out(hapax, cancel)
			assert [results[b["id"]] for b in made] == ["done", "done", "ALREADY_COMPLETED", "done", "ALREADY_COMPLETED", "done"], results
			for n in (0, 1, 3, 5):
				ended = hapax.json("GET", f"/api/v1/batches/{made[n]['id']}?wait=20s", status=200)
				assert ended["status"] == "CANCELLED", ended
			assert set(carried_out(hapax, cancel | {"where": 'title == "t1"'}).values()) == {"unchanged"}
			for bad in (bulk | {"verb": "resolve"}, cancel | {"arguments": {"reason": "x"}}):
				assert hapax.json("POST", "/api/v1/bulk", bad, status=400)["code"] == "VALIDATION_ERROR"


def test_claims_are_resolved_in_bulk(dir):
	with Service() as service:
		service.answer = (500, b"{}")
		bill = {"workflow": "bill", "kind": "entity", "meta": {"module": "order"}, "status_types": ["open", "closing", "closed"],
			"initial_status": "open", "attributes": {"customer": ".data.customer"},
			"actions": {"Close": {"kind": "http", "url": service.url + "/close"}},
			"steps": [{"step_id": 1, "step_key": "close", "status": "open", "claim_state": ["closing", "open"], "successful_state": "closed",
				"action": "Close", "on_unknown": "hold", "on_5xx": "unknown"}]}
		for hapax in on_each_store(dir, service):
			hapax.json("PUT", "/api/v1/definitions/bill", bill, status=200)
			for n in range(5):
				hapax.json("POST", "/api/v1/entities/bill", {"id": f"e{n}", "data": {"customer": f"c{n % 2}"}}, status=201)
			for n in range(4):
				hapax.json("POST", f"/api/v1/entities/bill/e{n}/steps/close", {}, status=504)
			resolve = {"verb": "resolve", "kind": "entity", "where": 'workflow == "bill" and customer == "c0"',
				"arguments": {"step": "close", "outcome": "done", "output": {"by": "hand"}, "reason": "seen"}}
			assert carried_out(hapax, resolve) == {"entity:bill:e0": "done", "entity:bill:e2": "done", "entity:bill:e4": "WRONG_STATUS"}
			held = resolve | {"where": 'workflow == "bill" and held == true', "arguments": {"step": "close", "outcome": "not_done"}}
			assert carried_out(hapax, held) == {"entity:bill:e1": "done", "entity:bill:e3": "done"}
			assert carried_out(hapax, held) == {}
			statuses = [hapax.json("GET", f"/api/v1/entities/bill/e{n}", status=200) for n in range(5)]
			assert [e["status"] for e in statuses] == ["closed", "open", "closed", "open", "open"] and not any(e["claim"] for e in statuses)
			last = hapax.json("GET", "/api/v1/history/entity:bill:e0", status=200)["items"][-1]
			assert last["reason"] == "resolved: done: seen" and last["by"] == "default", last
			for where, code in (("held == true", "BAD_QUERY"), ('workflow == "bill" or held == true', "BAD_QUERY"),
					('workflow == "bill" and status == "opne"', "BAD_QUERY"), ('workflow == "bill" and custmer == 1', "BAD_QUERY"),
					('workflow == "bil"', "NOT_FOUND")):
				answer = hapax.json("POST", "/api/v1/bulk", resolve | {"where": where}, status=404 if code == "NOT_FOUND" else 400)
				assert answer["code"] == code, (where, answer)


def test_runs_are_counted(dir):
	with Service() as service:
		for hapax in on_each_store(dir, service):
			def counts(**query):
				answer = page(hapax, path="/api/v1/run-counts", **query)
				return {item["definitionId"]: {k: n for k, n in item["counts"].items() if n} for item in answer["items"]}
			assert counts() == {}
			runs = [hapax.json("POST", "/api/v1/workflow-runs", {"definitionId": "run"}, status=201)["run"]["id"] for _ in range(30)]
			until(lambda: counts() == {"run": {"WAITING": 30}}, "all of them to wait")
			for run in runs[:10]:
				hapax.json("POST", f"/api/v1/workflow-runs/{run}/events/e", {"id": "1"}, status=202)
			hapax.json("POST", f"/api/v1/workflow-runs/{runs[-1]}/cancel", {})
			until(lambda: counts() == {"run": {"WAITING": 19, "COMPLETED": 10, "CANCELLED": 1}}, "those that have ended")
			listed = [item["status"] for item in page(hapax, path="/api/v1/workflow-runs", limit=100)["items"]]
			assert {status: listed.count(status) for status in listed} == counts()["run"]
			assert counts(definitionId="other") == {} and counts(definitionId="run") == counts()
			assert page(hapax, path="/api/v1/run-counts", limit=1)["cursor"] is None
			other = hapax.json("GET", "/api/v1/run-counts", headers=[("Hapax-Workspace", "other")], status=200)
			assert other["items"] == [], other


def test_another_definition_is_followed(dir):
	with Service() as service:
		for hapax in on_each_store(dir, service):
			hapax.json("POST", "/api/v1/entities/own", {"id": "x", "data": {"n": 5}}, status=201)
			hapax.json("PUT", "/api/v1/definitions/own", OWN | {"attributes": {"n": ".data.n"}}, status=200)
			assert ids(hapax, path="/api/v1/entities/own", where="n == 5") == []
			hapax.json("POST", "/api/v1/entities/own/x/steps/go", {}, status=200)
			assert ids(hapax, path="/api/v1/entities/own", where="n == 5") == ["x"]


server.run(globals())
END
