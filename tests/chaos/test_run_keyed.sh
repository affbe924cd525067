#!/usr/bin/env bash
# A keyed step through `hapax gate` in front of a slow service, and kill -9 of `hapax serve` in the middle of the call. The next
# one asks again under the same key: the gate is still at it (409), and that settles nothing. When the service has answered, the
# gate replays it. One effect, the run is COMPLETED with its answer, and no person was asked.
PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=tests/support exec python3 - <<'END'
import concurrent.futures, json
import server
from server import Server, Service, until, write


def serve(dir, gate):
	write(dir / "flows" / "order.json", {"workflow": "order", "kind": "run",
		"actions": {"charge": {"kind": "http", "url": f"http://127.0.0.1:{gate.port}/charge", "effect": "keyed"}},
		"steps": [{"name": "charge", "type": "task", "action": "charge", "save_as": "charge",
			"retry": {"max_attempts": 2, "initial": "10ms", "max": "10ms", "factor": 1, "jitter": False}}],
		"output": "{charge: .state.charge}"})
	return Server(dir, "serve", "--db", "sqlite:h.db", "--workflows", "flows")


def killed_in_the_middle(dir, fingerprint):
	dir.mkdir()
	write(dir / "gate.json", {"fingerprint": fingerprint, "processing_ttl": "9s", "upstream_timeout": "8s"})
	with Service() as service:
		service.hold.clear()
		service.answer = (201, b'{"payment":7}')
		with Server(dir, "gate", "--upstream", service.url, "--store", "sqlite:g.db", "--config", "gate.json") as gate:
			with serve(dir, gate) as hapax:
				run = hapax.json("POST", "/api/v1/workflow-runs", {"definitionId": "order", "input": {"amount": 5}}, status=201)["run"]["id"]
				service.await_calls("/charge")
				hapax.process.kill()
				hapax.process.wait()
			with serve(dir, gate) as hapax:
				show = lambda: hapax.json("GET", f"/api/v1/workflow-runs/{run}")
				met = until(lambda: (r := show()) and r["status"] == "WAITING" and r, "the answer of the gate")
				assert "HTTP 409" in json.dumps(met) and "IN_FLIGHT" in json.dumps(met), met
				assert met["steps"][0]["status"] != "UNKNOWN", met
				service.hold.set()
				end = until(lambda: (r := show()) and r["status"] in ("COMPLETED", "FAILED") and r, "the end of the run")
				assert end["status"] == "COMPLETED" and end["output"] == {"charge": {"payment": 7}}, end
				assert end["steps"][0]["attempt"] == 2, "the try that was killed, and the one that was asked again"
				assert len(service.calls) == 1, service.calls


def test_one_effect_with_fingerprints_and_without(dir):
	with concurrent.futures.ThreadPoolExecutor(2) as pool:  # at once: what takes its time is the Retry-After of the gate
		for end in [pool.submit(killed_in_the_middle, dir / str(on), on) for on in (True, False)]:
			end.result()


server.run(globals())
END
