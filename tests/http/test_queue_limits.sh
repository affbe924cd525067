#!/usr/bin/env bash
# Limits of a queue, over HTTP and on both stores: workers never have more jobs of a customer than they may, one customer with very many
# keeps no other waiting, every claim counts for a rate, who waits says so, and nothing is left when all have ended.
PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=tests/support exec python3 - <<'END'
import collections
import json
import os
import server
import subprocess
import threading
import time
from server import Server, until, write


def served(dir, limits, **more):
	global mail
	mail = f"mail-{dir.name}".replace("_", "-") # tests share a PostgreSQL
	write(dir / "hapax.json", {"queues": {mail: {"limits": limits}}, **more})
	return Server(dir, "serve", *(["--db", os.environ["STORE"]] if os.environ.get("STORE") else []), "--config", "hapax.json")


def push(hapax, *customers, **more):
	jobs = [{"queue": mail, "payload": {"customer": c, "n": n}, **more} for n, c in enumerate(customers)]
	return [j["id"] for j in hapax.json("POST", "/api/v1/jobs", jobs, status=201)["jobs"]]


def claim(hapax, max=1, wait=0, lease=60000, owner="w"):
	return hapax.json("POST", "/api/v1/jobs/claim", {"queues": [mail], "owner": owner, "max": max, "waitMs": wait, "leaseMs": lease}, status=200)["jobs"]


def end(hapax, job, how="complete", owner="w", **more):
	return hapax.json("POST", f"/api/v1/jobs/{job['id']}/{how}", {"owner": owner, "fence": job["fence"], **more}, status=200)


def why(hapax, job):
	return hapax.json("GET", f"/api/v1/why/{job}", status=200)


def customers(jobs):
	return sorted(j["payload"]["customer"] for j in jobs)


BY = {"concurrency": {"by": ".payload.customer", "max": 2}}


def test_so_many_at_once(dir):
	with served(dir, BY) as hapax:
		ids = push(hapax, *["a"] * 5, "b", "c")
		first = claim(hapax, max=10)
		assert customers(first) == ["a", "a", "b", "c"], first
		assert claim(hapax, max=10) == []
		said = why(hapax, ids[2])
		assert said["reason"] == "JOB_LIMIT" and \
			f'waits for a slot: 2 jobs of the queue "{mail}" are at work for "a", and that is its limit; 0 are before it in line' in said["why"], said
		assert '; 2 are before it in line' in why(hapax, ids[4])["why"]
		end(hapax, first[0])
		assert [j["id"] for j in claim(hapax, max=10, wait=5000)] == [ids[2]]
		end(hapax, first[1], "fail", error="no", retryable=False)
		assert [j["id"] for j in claim(hapax, max=10, wait=5000)] == [ids[3]]
		assert "hapax_jobs_in_line_total 0\n" not in hapax.call("GET", "/metrics")[2].decode()


def test_one_of_higher_priority_comes_first(dir):
	with served(dir, {"concurrency": {"max": 1}}) as hapax:
		push(hapax, "a", "b", "c")
		first, = claim(hapax, max=10)
		assert claim(hapax, max=10) == []
		last, = push(hapax, "d", priority=5)
		assert claim(hapax, max=10) == []
		end(hapax, first)
		assert [j["id"] for j in claim(hapax, max=10, wait=5000)] == [last]


def test_a_lost_worker_keeps_its_slot_until_its_lease_is_over(dir):
	with served(dir, {"concurrency": {"max": 1}}) as hapax:
		ids = push(hapax, "a", "b")
		assert claim(hapax, lease=1500)
		began = time.monotonic()
		until(lambda: claim(hapax, max=10, wait=5000), "the slot", 30)
		assert time.monotonic() - began > 1.2


def test_each_claim_counts_for_a_rate(dir):
	with served(dir, {"rate": {"by": ".payload.customer", "max": 2, "per": "2s"}}) as hapax:
		ids = push(hapax, *["a"] * 5, "b")
		times = collections.defaultdict(list)
		assert customers(claim(hapax, max=10)) == ["a", "a", "b"]
		said = why(hapax, ids[2])
		assert said["reason"] == "JOB_TIMER" and f'the queue "{mail}" has begun as many jobs as its rate allows for "a"' in said["why"], said
		began, left = time.monotonic(), 3
		while left:
			left -= len(claim(hapax, max=10, wait=5000))
		assert time.monotonic() - began > 3.5


def test_with_both_one_waits_for_one_thing(dir):
	with served(dir, {**BY, "rate": {"max": 3, "per": "3s"}}) as hapax:
		push(hapax, *["a"] * 4, "b")
		first = claim(hapax, max=10)
		assert customers(first) == ["a", "a", "b"]
		for job in first:
			end(hapax, job)
		done, deadline = 0, time.monotonic() + 20
		while done < 2 and time.monotonic() < deadline:
			for job in claim(hapax, max=10, wait=1000):
				end(hapax, job)
				done += 1
		assert done == 2


def test_many_do_not_starve_the_others(dir):
	"""One customer with 120 jobs before all others, who have 6 each; three workers. Never more than 2 of one, and each gets its turn."""
	with served(dir, BY) as hapax:
		push(hapax, *["big"] * 120)
		push(hapax, *[f"c{n % 5}" for n in range(30)])
		lock, now, order, most = threading.Lock(), collections.Counter(), [], collections.Counter()

		def work(owner):
			while len(order) < 150:
				for job in claim(hapax, max=3, wait=500, owner=owner):
					of = job["payload"]["customer"]
					with lock:
						now[of] += 1
						most[of] = max(most[of], now[of])
					with lock:
						now[of] -= 1
						order.append(of)
					end(hapax, job, owner=owner)
		workers = [threading.Thread(target=work, args=(f"w{n}",)) for n in range(3)]
		for w in workers:
			w.start()
		for w in workers:
			w.join(120)
		assert len(order) == 150, len(order)
		assert max(most.values()) <= 2, most
		last = max(i for i, of in enumerate(order) if of != "big")
		assert last < 90, f"a customer with 6 jobs had to wait for {last} others"


def test_a_step_of_a_run(dir):
	mail = f"mail-{dir.name}".replace("_", "-")
	write(dir / "flows/ship.json", {"workflow": "ship", "kind": "run", "actions": {"mail": {"kind": "worker", "queue": mail, "effect": "keyed"}},
		"steps": [{"name": "mail", "type": "task", "action": "mail"}]})
	with served(dir, {"concurrency": {"by": ".payload.input.customer", "max": 1}}, workflows="flows") as hapax:
		start = lambda: hapax.json("POST", "/api/v1/workflow-runs", {"definitionId": "ship", "input": {"customer": "a"}}, status=201)["run"]["id"]
		first, second, third = start(), start(), start()
		job, = claim(hapax, max=10, wait=5000)
		until(lambda: claim(hapax, max=10) == [] and "waits for a slot" in why(hapax, third)["why"], "it to stand in line")
		hapax.json("POST", f"/api/v1/workflow-runs/{second}/cancel", {})
		until(lambda: hapax.json("GET", f"/api/v1/workflow-runs/{second}")["status"] == "CANCELLED", "it to leave the line")
		end(hapax, job)
		after, = claim(hapax, max=10, wait=5000)
		assert after["payload"]["id"] == third
		end(hapax, after)


def test_what_is_refused(dir):
	(dir / "flows").mkdir()
	for queues, words in (
		({"mail": {"limits": {"singleton": {}}}}, b'"singleton" is about starts of runs; actions and queues have "concurrency" and "rate"'),
		({"mail": {"limits": {"concurrency": {"by": ".input.customer", "max": 1}}}}, b'payload'),
		({"mail": {"limit": {}}}, b'limits'),
		({"after-effects": {}}, b"the engine's own")):
		write(dir / "hapax.json", {"queues": queues})
		answer = subprocess.run([server.HAPAX, "check", "--config", "hapax.json", "flows"], cwd=dir, capture_output=True, check=False)
		assert answer.returncode == 1 and words in answer.stdout + answer.stderr, (queues, answer)


if not os.environ.get("STORE"):
	server.run(globals())
	if os.environ.get("HAPAX_TEST_PG"):
		os.environ["STORE"] = os.environ["HAPAX_TEST_PG"]
if os.environ.get("STORE"):
	server.run(globals())
END
