#!/usr/bin/env bash
# The dashboard in a real Chromium, where people and texts mean harm or have bad luck: texts of a megabyte, formulas in what is exported; and
# what a person is told before he decides: what was sent, what the probe says, what is at stake, what each attempt said.
PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=tests/support:tests/http exec python3 - "$@" <<'END2'
import csv
import json
import os
import pathlib

import browser
import dashboard_scene as scenes
import dashboard_steps as steps
import server
from dashboard_steps import Store, at, be_still, calm, done, inbox_item
from server import until

PG = os.environ.get("HAPAX_TEST_PG")
MEGABYTE = (("<img src=x onerror=window.hurt=1>" + "\u202e" + "=cmd|' /C calc'!A0 ") * 18000)[:950000]
LONGEST_MS = 100  # of one task, so that nobody sees the page stand still; several times that where other tests run beside it
FORMULAS = ["=1+1", "+1+1", "-1+1", "@SUM(A1)", "\t=1", "\r=1", "=cmd|' /C calc'!A0", "-2", "fine", 'two "quotes", and a comma', '=HYPERLINK("http://evil.example","x")']
steps.need_browser()


def asked_before_it_is_decided(page, scene, world):
	"""What was sent with which key, what the probe says now: it changes nothing, and says so."""
	run = scene.runs["unknown"]
	before = scene.ask("GET", f"workflow-runs/{run}"), len(scene.ask("GET", f"history/{run}?limit=500")["items"])
	card = inbox_item(page, run)
	page.click("button", "what was sent", card)
	page.until(f"document.querySelector('{card} .json')?.textContent.includes('10000000000000000000')", "the input as it was sent")
	assert f"{run}/charge/0" in page.js(f"document.querySelector('{card} .sent').textContent")
	for says, words in (({"outcome": "unknown"}, "does not know"), ({"outcome": "not_done"}, "was not done"), ({"outcome": "done", "output": {"receipt": scenes.MARKUP}}, "was done")):
		world.says = says
		page.click(".sent button", "ask the probe" if "unknown" in says["outcome"] else "ask again", card)
		page.until(f"document.querySelector('{card} .sent .note')?.textContent.includes({json.dumps(words)})", words)
	page.shows(scenes.MARKUP)
	keys = [key for key, _ in world.asked]
	assert len(set(keys)) == 3 and all(key.startswith(f"{run}/charge/0/probe/") for key in keys), keys
	assert all(body["key"] == f"{run}/charge/0" for _, body in world.asked)
	assert (scene.ask("GET", f"workflow-runs/{run}"), len(scene.ask("GET", f"history/{run}?limit=500")["items"])) == before, "a question changes nothing"
	world.asked.clear()
	card = inbox_item(page, "entity:invoice:inv-100")
	entity = scene.ask("GET", "entities/invoice/inv-100")
	page.click(".sent button", "ask the probe", card)
	page.until(f"document.querySelector('{card} .sent .note')?.textContent.includes('was done')", "of an entity, too")
	assert scene.ask("GET", "entities/invoice/inv-100") == entity and world.asked[0][0].startswith("ent_") and "/probe/" in world.asked[0][0], world.asked
	for path, status in ((f"workflow-runs/{run}/steps/reserve/probe", 409), (f"workflow-runs/{scene.runs['failed']}/steps/pay_back/probe", 409), ("workflow-runs/run_0000000000001/steps/charge/probe", 404),
			("entities/invoice/inv-100/steps/approve/probe", 409), ("entities/invoice/nobody/steps/close/probe", 404)):
		scene.ask("POST", path, {}, status=status)
	hidden = scene.hapax.call("POST", f"/api/v1/workflow-runs/{run}/steps/charge/probe", b"{}", [("Hapax-Workspace", "other")])
	assert hidden[0] == 404, "another workspace's"
	assert len(world.asked) == 1, "and nobody was asked for that"
	calm(page)


def items_are_asked(page, scene, world):
	"""Items of a batch, in the inbox and on its page: each has what it sent, and its probe is asked; decided there, one by one."""
	world.asked.clear()
	card = inbox_item(page, scene.batch)
	unknown = [item["n"] for item in scene.ask("GET", f"batches/{scene.batch}/items?status=UNKNOWN&limit=500")["items"]]
	before = scene.ask("GET", f"batches/{scene.batch}"), scene.ask("GET", f"batches/{scene.batch}/items?limit=500"), scene.ask("GET", f"history/{scene.batch}?limit=500")
	one = f"{card} .one"
	page.until(f"document.querySelectorAll('{card} .one').length == 3 && document.querySelector('{one} .sent')", "the first of them")
	page.click("button", "what was sent", one)
	page.until(f"document.querySelector('{one} .json')?.textContent.includes('frame')", "what was sent")
	assert f"Idempotency-Key: {scene.batch}/{unknown[0]}" in page.js(f"document.querySelector('{one} .sent').textContent")
	for says, words in (({"outcome": "not_done"}, "was not done"), ({"outcome": "done", "output": {"receipt": scenes.MARKUP}}, "was done")):
		world.says = says
		page.click(".sent button", "ask the probe" if not world.asked else "ask again", one)
		page.until(f"document.querySelector('{one} .sent .note')?.textContent.includes({json.dumps(words)})", words)
	(key, body), (again, _) = world.asked
	assert key.startswith(f"{scene.batch}/{unknown[0]}/probe/") and key != again and body["key"] == f"{scene.batch}/{unknown[0]}" and body["step"] == "probe" and body["item"]["n"] == unknown[0], world.asked
	assert (scene.ask("GET", f"batches/{scene.batch}"), scene.ask("GET", f"batches/{scene.batch}/items?limit=500"), scene.ask("GET", f"history/{scene.batch}?limit=500")) == before, "a question changes nothing"
	for path, status in ((f"batches/{scene.batch}/items/0/probe", 409), (f"batches/{scene.batch}/items/9999/probe", 404), (f"batches/{scene.batch}/items/x/probe", 404), (f"batches/{scene.held}/items/0/probe", 409)):
		scene.ask("POST", path, {}, status=status)
	for path in (f"items/{unknown[0]}/probe", f"items/{unknown[0]}/sent"):
		hidden = scene.hapax.call("GET" if "sent" in path else "POST", f"/api/v1/batches/{scene.batch}/{path}", b"" if "sent" in path else b"{}", [("Hapax-Workspace", "other")])
		assert hidden[0] == 404, "another workspace's"
	assert len(world.asked) == 2, "and nobody was asked for that"
	done(page, "not done", "it was not done", within=one)
	item = scene.ask("GET", f"batches/{scene.batch}/items?limit=500")["items"][unknown[0]]
	assert item["status"] == "FAILED" and item["charged"] == 0, item
	at(page, f"batches/{scene.batch}?item_status=UNKNOWN&item={unknown[1]}")
	page.until("document.querySelector('.card .sent')", "the item is open by its address")
	page.click(".sent button", "ask the probe", ".card")
	page.until("document.querySelector('.card .note')?.textContent.includes('was done')", "on its page, too")
	calm(page)


def steps_of_workers_are_asked(page, scene, world):
	"""A worker that was lost with its job: the probe of the action can be asked. A function's step is code, and the page says so."""
	action = {"kind": "worker", "queue": "packing", "probe": "asked"}
	scene.ask("PUT", "definitions/packing", scenes.run("packing", {"pack": action, "asked": scenes.http_action(world, "/asked")}, [scenes.task("pack", "pack", timeout="2s", on_unknown="hold")]))
	packing, greet = scene.start("packing", "packing-1", box=7), scene.start("greet", "greet-1")
	(job,) = until(lambda: scene.ask("POST", "jobs/claim", {"queues": ["packing"], "owner": "w1", "max": 1, "leaseMs": 60000})["jobs"], "its job")
	(turn,) = until(lambda: scene.ask("POST", "functions/claim", {"worker": "w", "functions": [{"name": "greet", "version": "2"}], "waitMs": 0, "leaseMs": 1000})["turns"], "its turn")
	scene.ask("POST", f"functions/runs/{greet}/journal", {"worker": "w", "fence": turn["fence"], "seq": turn["seq"], "leaseMs": 1000, "entries": [{"kind": "step", "name": "pay<b>", "n": 0, "effect": "claimed", "state": "begun"}]})
	until(lambda: scene.ask("GET", f"why/{packing}")["reason"] == "RUN_UNKNOWN" and scene.ask("GET", f"why/{greet}")["reason"] == "RUN_UNKNOWN", "both are in doubt")
	world.asked.clear()
	world.says = {"outcome": "not_done"}
	card = inbox_item(page, packing)
	page.until(f"document.querySelector('{card} .sent')?.textContent.includes({json.dumps(job['idempotencyKey'])})", "the key that its worker got")
	page.click(".sent button", "ask the probe", card)
	page.until(f"document.querySelector('{card} .sent .note')?.textContent.includes('was not done')", "what it says")
	((key, body),) = world.asked
	assert key.startswith(f"{packing}/pack/0/probe/") and body["key"] == job["idempotencyKey"] == f"{packing}/pack/0" and body["input"]["box"] == 7, world.asked
	card = inbox_item(page, greet)
	page.until(f"/is code/.test(document.querySelector('{card} .sent')?.textContent) && document.querySelector('{card} .sent code').textContent == {json.dumps(greet + '/pay%3Cb%3E/0')}", "where to look")
	assert page.js(f"[...document.querySelectorAll('{card} .actions button')].map(b => b.textContent).join()") == "done,not done,cancel", "and can be decided"
	assert not page.js(f"[...document.querySelectorAll('{card} .sent button')].some(b => /probe/.test(b.textContent))")
	assert page.js(f"document.querySelector('{card} .actions button').title").startswith("You have looked"), "a button says what it would do before it is pressed"
	assert [i["step"] for i in scene.ask("GET", "attention?limit=500")["items"] if i["id"] == greet] == ["pay<b>"], "which step of the function it is"
	calm(page)


def a_function(page, scene):
	"""Its entries say what they are, its leases whose they were, and nothing tells of a definition that it does not have."""
	run, other = scene.start("greet", "greet-2"), "<i>w</i> 2"
	claim = lambda worker: until(lambda: scene.ask("POST", "functions/claim", {"worker": worker, "functions": [{"name": "greet", "version": "2"}], "waitMs": 0})["turns"], "its turn")[0]
	turn = claim(other)
	scene.ask("POST", f"functions/runs/{run}/journal", {"worker": other, "fence": turn["fence"], "seq": turn["seq"], "end": {"state": "released"}})
	turn = claim("w")
	scene.ask("POST", "jobs", [{"queue": "parcels <b>"}] * 3, status=201)
	assert len(scene.ask("POST", "jobs/claim", {"queues": ["parcels <b>"], "owner": other, "max": 2, "leaseMs": 60000})["jobs"]) == 2
	at(page, "health")
	page.until("[...document.querySelectorAll('section')].find(s => s.querySelector('h2')?.textContent == 'Workers')?.querySelectorAll('tr[data-row]').length >= 2", "who has leased what")
	workers = {(w["name"], w["of"], w["leases"]) for w in scene.ask("GET", "vitals")["workers"]}
	assert workers == {(other, "parcels <b>", 2), ("w", "greet", 1)}, workers
	hidden = scene.hapax.json("GET", "/api/v1/vitals", headers=[("Hapax-Workspace", "other")])
	assert hidden["workers"] == [], "those of another workspace"
	awaits = [{"kind": "child", "name": f"box {n}", "n": 0} for n in range(3)]
	scene.ask("POST", f"functions/runs/{run}/journal", {"worker": "w", "fence": turn["fence"], "seq": turn["seq"],
		"entries": [{"kind": "sleep", "name": "rest", "n": 0, "forMs": 3600000}] + [{**a, "workflow": "hire", "input": {}} for a in awaits], "end": {"state": "suspended", "awaits": awaits}})
	at(page, f"runs/{run}")
	page.until("document.querySelectorAll('.waterfall .step-name small').length == 4", "what each of them is")
	leases = page.until("(r => r?.innerText.includes('taken') && [r.innerText, ...[...r.querySelectorAll('.taken')].map(e => e.title)])(document.querySelector('.leases'))", "who had its turns")
	assert "taken 2 times, by 2" in leases[0] and leases[0].endswith("fence 2, w"), leases
	assert leases[1].startswith(f"fence 1: taken by {other} through ") and leases[2].startswith("fence 2: taken by w through "), leases
	names = "JSON.stringify([...document.querySelectorAll('.history [data-name=node]')].map(e => (/ for (.*)/.exec(e.textContent) || [])[1] ?? ''))"
	page.until(f"{names} == {json.dumps(json.dumps(['', other, '', 'w', ''], separators=(',', ':')))}", "as its history has it")
	assert page.js("[...document.querySelectorAll('.step-name')].find(e => e.textContent.startsWith('rest')).textContent") == "rest sleep"
	page.until("[...document.querySelectorAll('main table td:nth-child(2)')].map(e => e.textContent).filter(t => /^box/.test(t)).join() == 'box 0,box 1,box 2'", "its children, as they were begun")
	assert page.js("[...document.querySelectorAll('.facts dt')].some(e => e.textContent == 'function')") and not page.js("/definition 0/.test(document.body.innerText)")
	page.click("main a", "greet", ".facts")
	page.shows("A function needs none")
	assert page.js("[...document.querySelectorAll('main .empty a')].map(a => a.getAttribute('href')).join()") == "#/functions,#/runs?definitionId=greet"
	calm(page)


def by_money(page, scene):
	at(page, "?order=money")
	page.until("document.querySelectorAll('article.item .money').length >= 4", "what is at stake")
	listed = scene.ask("GET", "attention?order=money&limit=500")["items"]
	sums = [item["money"] or 0 for item in listed]
	assert sums == sorted(sums, reverse=True) and sums[0] == 410 and 265 in sums, sums
	assert {(i["kind"], i["id"]) for i in listed} == {(i["kind"], i["id"]) for i in scene.ask("GET", "attention?limit=500")["items"]}
	paged, cursor = [], ""
	while cursor is not None:
		one = scene.ask("GET", f"attention?order=money&limit=2{cursor and '&cursor=' + cursor}")
		paged, cursor = paged + one["items"], one["cursor"]
	assert paged == listed, "page by page it is the same"
	wanted = json.dumps([i["id"] for i in listed])
	page.until(f"JSON.stringify([...document.querySelectorAll('article.item')].map(a => a.querySelector('.id').textContent)) == JSON.stringify({wanted})", "the most first")
	calm(page)


def what_differs_between_attempts(page, scene):
	at(page, f"runs/{scene.runs['flaky']}")
	page.click("button.step-line")
	rows = page.until("(r => r.length == 3 && r.map(x => x.innerText))([...document.querySelectorAll('.attempts tbody tr')])", "three attempts")
	assert "no place in line 1" in rows[0] and "no place in line 2" in rows[1] and rows[2].endswith("done"), rows
	assert page.js("[...document.querySelectorAll('.attempts mark')].map(m => m.textContent)") == ["2"], "what differs is marked, and nothing else"
	calm(page)


def a_megabyte(page, scene):
	"""Texts of a megabyte of marks, markup and formulas as input, data, error, payload and key: cut, and the page does not stand still."""
	large = scene.start("parcel", "large", text=MEGABYTE)
	failed = scene.start("evil", "k" * 255, large=True)
	scene.ask("POST", "entities/invoice", {"id": "large", "data": {"text": MEGABYTE}})
	job = scene.ask("POST", "jobs", {"queue": "large", "payload": MEGABYTE, "key": MEGABYTE[:250]}, status=201)["jobs"][0]["id"]
	(claimed,) = scene.ask("POST", "jobs/claim", {"queues": ["large"], "owner": "w1", "max": 1, "leaseMs": 60000})["jobs"]
	scene.ask("POST", f"jobs/{job}/fail", {"owner": "w1", "fence": claimed["fence"], "error": MEGABYTE[:60000], "retryable": False})
	until(lambda: scene.status(failed) == "FAILED", "it has failed")
	page.js("window.tasks = [], new PerformanceObserver(l => window.tasks.push(...l.getEntries().map(e => e.duration))).observe({type: 'longtask'})")
	worst = {}
	for way, words in ((f"runs/{large}", "all 950\u202f000 characters"), ("runs?definitionId=parcel", "large"), ("entities/invoice/large", "all 950\u202f000 characters"), (f"jobs/{job}", "all 950\u202f000 characters"), ("jobs?queue=large", "PARKED"), (f"runs/{failed}", "window.hurt=1"), ("", "Job parked")):
		best = []
		for _ in range(3):  # a machine that does other things, too
			at(page, "nowhere")
			page.shows("There is no such page.")
			page.js("window.tasks.length = 0")
			at(page, way)
			page.shows(words)
			page.settle()
			best.append(page.js("Math.round(Math.max(0, ...window.tasks))"))
		assert page.js("document.body.innerText.length") < 40000, f"{way} is cut"
		worst[way.split("/")[0].split("?")[0] or "inbox"] = max(worst.get(way.split("/")[0].split("?")[0] or "inbox", 0), min(best))
	print(f"# the longest task with texts of a megabyte, in ms: {worst}")
	assert max(worst.values()) < 4 * LONGEST_MS, worst
	at(page, f"runs/{large}")
	page.click("button.link", "all 950\u202f000 characters")
	page.until("document.body.innerText.length > 900000", "all of it")
	calm(page)


def formulas(page, scene, dir):
	"""What is exported has no formula in it that a spreadsheet would carry out; what is a number stays one, and nothing is lost."""
	ids = {}
	for text in FORMULAS:
		key = text if text.isprintable() else ascii(text)  # a key has no control characters
		ids[scene.ask("POST", "jobs", {"queue": "formulas", "payload": text, "key": key}, status=201)["jobs"][0]["id"]] = {"key": key, "payload": text}
	page.downloads(dir)
	at(page, "jobs?queue=formulas")
	page.click("button", "CSV")
	file = until(lambda: [p for p in dir.glob("*.csv") if p.stat().st_size], "the file")[0]
	rows = until(lambda: list(csv.DictReader(file.open(newline=""))), "its rows")
	assert {row["id"] for row in rows} == set(ids)
	for row in rows:
		for name, text in row.items():
			assert text[:1] not in tuple("=+@\t\r"), (name, text)
			assert not text.startswith("-") or float(text), (name, text)
		for name, wanted in ids[row["id"]].items():
			assert row[name] == ("'" + wanted if wanted[0] in "=+-@\t\r" and wanted != "-2" else wanted), (name, row[name], wanted)
	calm(page)


def walk(dir, kind):
	with Store(kind) as store, scenes.World() as world, scenes.serve(dir, world, store.url) as hapax, browser.Browser() as chromium:
		scene = scenes.Scene(hapax)
		page = chromium.page(f"http://127.0.0.1:{hapax.port}/")
		be_still(page)
		asked_before_it_is_decided(page, scene, world)
		by_money(page, scene)
		items_are_asked(page, scene, world)
		steps_of_workers_are_asked(page, scene, world)
		a_function(page, scene)
		what_differs_between_attempts(page, scene)
		if kind == "sqlite":
			a_megabyte(page, scene)
			formulas(page, scene, dir)


def test_what_is_told_before_it_is_decided_on_sqlite(dir):
	walk(dir, "sqlite")


if PG:
	def test_what_is_told_before_it_is_decided_on_postgres(dir):
		walk(dir, "postgres")


server.run(globals())
END2
