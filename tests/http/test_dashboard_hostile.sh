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
MEGABYTE = ("<img src=x onerror=window.hurt=1>" + "\u202e" + "=cmd|' /C calc'!A0 ") * 18000
FORMULAS = ["=1+1", "+1+1", "-1+1", "@SUM(A1)", "\t=1", "\r=1", "=cmd|' /C calc'!A0", "-2", "fine", 'two "quotes", and a comma']
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
	"""A text of a megabyte of marks, markup and formulas: cut, and the page does not stand still for it."""
	run = scene.start("parcel", "large", text=MEGABYTE[:950000])
	scene.ask("POST", "entities/invoice", {"id": "large", "data": {"text": MEGABYTE[:950000]}})
	for way in (f"runs/{run}", "entities/invoice/large"):
		page.js("window.longest = 0, new PerformanceObserver(l => l.getEntries().forEach(e => (window.longest = Math.max(longest, e.duration)))).observe({type: 'longtask'})")
		at(page, way)
		page.shows("all 950\u202f000 characters")
		assert page.js("document.body.innerText.length") < 20000, "it is cut"
		print(f"# {way.split('/')[0]} with a text of a megabyte: the longest task {page.js('Math.round(longest)')} ms")
	page.click("button.link", "all 950\u202f000 characters")
	page.until("document.body.innerText.length > 900000", "all of it")
	calm(page)


def formulas(page, scene, dir):
	"""What is exported has no formula in it that a spreadsheet would carry out; what is a number stays one."""
	for i, text in enumerate(FORMULAS):
		scene.ask("POST", "jobs", {"queue": "formulas", "payload": text, "key": f"{i}{text}"}, status=201)
	page.downloads(dir)
	at(page, "jobs?queue=formulas")
	page.click("button", "CSV")
	file = until(lambda: [p for p in dir.glob("*.csv") if p.stat().st_size], "the file")[0]
	rows = until(lambda: list(csv.DictReader(file.open(newline=""))), "its rows")
	assert len(rows) == len(FORMULAS)
	for row in rows:
		for name, text in row.items():
			assert not text[:1] in "=+@\t\r" or not text, (name, text)
			assert not text.startswith("-") or float(text), (name, text)
	calm(page)


def walk(dir, kind):
	with Store(kind) as store, scenes.World() as world, scenes.serve(dir, world, store.url) as hapax, browser.Browser() as chromium:
		scene = scenes.Scene(hapax)
		page = chromium.page(f"http://127.0.0.1:{hapax.port}/")
		be_still(page)
		asked_before_it_is_decided(page, scene, world)
		by_money(page, scene)
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
