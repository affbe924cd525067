#!/usr/bin/env bash
# 100,000 runs, made by the engine as the children of ten: a page of a search by attribute takes less than 20 ms, on both stores. HAPAX_RUNS
# has another number of them. Each page is asked for five times, and the quickest counts. A machine that has more to do than processors
# says nothing about times: there the processor time of the server and of its store is judged.
PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=tests/support exec python3 - <<'END'
import os, statistics, subprocess, time, urllib.parse
import server
from server import Server, until, write

RUNS = "/api/v1/workflow-runs"
PG = os.environ.get("HAPAX_TEST_PG")
STORES = {"SQLite": "sqlite:h.db"} | ({"PostgreSQL": PG} if PG else {})
TREES = 10
ITEMS = int(os.environ.get("HAPAX_RUNS", "100000")) // TREES
CUSTOMERS = 1000
BAR_MS = 20
MANY = {"workflow": "many", "kind": "run", "steps": [{"name": "all", "type": "map", "over": ".input.items", "workflow": "one",
	"input": "{customer: .item, total: .index}", "concurrency": 200}]}
ONE = {"workflow": "one", "kind": "run", "attributes": {"customer": ".input.customer", "total": ".input.total"},
	"actions": {"Nothing": {"kind": "noop"}}, "steps": [{"name": "do", "type": "task", "action": "Nothing"}]}
SEARCHES = {
	"one customer": {"where": 'customer == "c-{n}"'},
	"one customer, by total": {"where": 'customer == "c-{n}"', "order": "-total"},
	"one customer, above a total": {"where": 'customer == "c-{n}" and total >= 100'},
	"a few totals": {"where": "total >= {n} and total < {m}"},
	"the largest totals": {"order": "-total"},
}


def page(hapax, query):
	begun = time.monotonic()
	items = hapax.json("GET", f"{RUNS}?{urllib.parse.urlencode(query)}", status=200)["items"]
	took_ms = (time.monotonic() - begun) * 1000
	assert items or "{" in str(query), query
	return took_ms


def processes(hapax, url):
	"""The server, and the sessions of its store."""
	if url.startswith("sqlite"):
		return [hapax.process.pid]
	sessions = "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
	return [hapax.process.pid] + subprocess.check_output(["psql", "-XAt", url, "-c", sessions], text=True).split()


def cpu_ms(pids):
	ticks = 0
	for pid in pids:
		fields = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()
		ticks += int(fields[11]) + int(fields[12])
	return ticks * 1000 / os.sysconf("SC_CLK_TCK")


def measure(hapax, store, url, name, query):
	times, pids = [], processes(hapax, url)
	begun = cpu_ms(pids)
	for round in range(40):
		asked = {key: text.replace("{n}", str(round * 23)).replace("{m}", str(round * 23 + 5)) for key, text in query.items()}
		times.append(min(page(hapax, asked) for _ in range(5)))
	median, cpu = statistics.median(times), (cpu_ms(pids) - begun) / 200
	busy = os.getloadavg()[0] > os.cpu_count()
	print(f"# {store}: {name}: {median:.1f} ms, at most {max(times):.1f} ms, {cpu:.1f} ms of a processor"
		f"{' (which is busy)' if busy else ''}, a page of 50 of {TREES * ITEMS} runs")
	return cpu if busy else median


def test_a_page_of_many(dir):
	slow = []
	for store, url in STORES.items():
		(dir / store).mkdir()
		for flow in (MANY, ONE):
			write(dir / store / f"workflows/{flow['workflow']}.json", flow)
		with Server(dir / store, "serve", "--db", url, "--workflows", "workflows") as hapax:
			items = [f"c-{n % CUSTOMERS}" for n in range(ITEMS)]
			trees = [hapax.json("POST", RUNS, {"definitionId": "many", "input": {"items": items}})["run"]["id"] for _ in range(TREES)]
			for tree in trees:
				until(lambda: hapax.json("GET", f"{RUNS}/{tree}")["status"] == "COMPLETED", "all of them", seconds=3600)
			slow += [(store, name) for name, query in SEARCHES.items() if measure(hapax, store, url, name, query) >= BAR_MS]
	assert not slow, slow


server.run(globals())
END
