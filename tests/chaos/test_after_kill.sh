#!/usr/bin/env bash
# kill -9 on SQLite: the next start knows that it is alone, and goes on with what the dead node had, after-effects too, without waiting
# for leases of the dead. A worker outlives the node: its job stays its own.
PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=tests/support exec python3 - <<'END'
import json
import server
from server import Server, Service, until, write

LEASE = 600  # seconds that nobody could wait out
SOON = 25


def serve(dir, service):
	write(dir / "workflows/order.json", {
		"workflow": "order", "kind": "entity", "status_types": ["open", "sent"], "initial_status": "open",
		"actions": {"Mail": {"kind": "http", "url": service.url + "/mail", "effect": "keyed", "timeout": "60s"}},
		"steps": [{"step_id": 1, "step_key": "send", "status": "open", "successful_state": "sent",
			"success_after_effect": ["Mail"]}],
	})
	write(dir / "hapax.json", {"lease": f"{LEASE}s"})
	return Server(dir, "serve", "--db", "sqlite:h.db", "--workflows", "workflows", "--config", "hapax.json")


def kill(hapax):
	hapax.process.kill()
	hapax.process.wait()


def jobs(hapax, queue):
	return hapax.json("GET", f"/api/v1/jobs?queue={queue}", status=200)["items"]


def test_an_after_effect_goes_on_at_once(dir):
	with Service() as service:
		with serve(dir, service) as hapax:
			service.hold.clear()
			hapax.json("POST", "/api/v1/entities/order", {"id": "a"}, status=201)
			hapax.json("POST", "/api/v1/entities/order/a/steps/send", {}, status=200)
			service.await_calls("/mail", 1)
			kill(hapax)
		service.hold.set()
		with serve(dir, service) as hapax:
			until(lambda: [j["status"] for j in jobs(hapax, "after-effects")] == ["COMPLETED"], "the mail of the dead node", SOON)
		keys = [head["idempotency-key"] for _, head, _ in service.calls]
		assert len(keys) == 2 and len(set(keys)) == 1, keys


def test_a_worker_keeps_its_job(dir):
	with Service() as service:
		with serve(dir, service) as hapax:
			hapax.json("POST", "/api/v1/jobs", [{"queue": "q", "payload": 1}], status=201)
			(job,) = hapax.json("POST", "/api/v1/jobs/claim", {"owner": "w", "queues": ["q"], "leaseMs": LEASE * 1000},
				status=200)["jobs"]
			kill(hapax)
		with serve(dir, service) as hapax:
			# Behind the first sweep of the start, which would have ended it: what it finds is told in the log, or it is there.
			hapax.json("POST", "/api/v1/entities/order", {"id": "b"}, status=201)
			hapax.json("POST", "/api/v1/entities/order/b/steps/send", {}, status=200)
			until(lambda: jobs(hapax, "after-effects")[0]["status"] == "COMPLETED", "work of the new life", SOON)
			assert hapax.json("POST", "/api/v1/jobs/claim", {"owner": "x", "queues": ["q"]}, status=200)["jobs"] == []
			status, _, body = hapax.call("POST", f"/api/v1/jobs/{job['id']}/complete",
				{"owner": "w", "fence": job["fence"], "output": 2})
			assert status == 200, body
			assert [j["status"] for j in jobs(hapax, "q")] == ["COMPLETED"]
			assert "a stuck claim was ended" not in hapax.text()


server.run(globals())
END
