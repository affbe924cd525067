#!/usr/bin/env bash
# 100,000 runs, made by the engine as the children of ten: a page of a search by attribute takes less than 20 ms, on both stores. HAPAX_RUNS
# has another number of them.
PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=tests/support exec python3 - <<'END'
import os, statistics, time, urllib.parse
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


def measure(hapax, store, name, query):
	times = []
	for round in range(40):
		n = round * 23
		times.append(page(hapax, {key: text.replace("{n}", str(n)).replace("{m}", str(n + 5)) for key, text in query.items()}))
	median = statistics.median(times)
	print(f"# {store}: {name}: {median:.1f} ms, at most {max(times):.1f} ms, a page of 50 of {TREES * ITEMS} runs")
	return median


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
			slow += [(store, name) for name, query in SEARCHES.items() if measure(hapax, store, name, query) >= BAR_MS]
	assert not slow, slow


server.run(globals())
END
