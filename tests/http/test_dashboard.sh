#!/usr/bin/env bash
# The dashboard in a real Chromium, on both stores: every page, every button, strangers' texts, two people at once, what attackers try.
# PICTURES=FOLDER keeps what it looked like, in both colours; docs/pictures has those that are .webp.
PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=tests/support:tests/http exec python3 - "$@" <<'END2'
import collections
import gzip
import json
import os
import pathlib
import re
import subprocess
import time
import urllib.parse

import browser
import dashboard_scene as scenes
import dashboard_steps as steps
import server
from dashboard_steps import Store, at, be_still, calm, done, inbox_item, press
from server import ROOT, until

PG = os.environ.get("HAPAX_TEST_PG")
PICTURES = os.environ.get("PICTURES")
steps.need_browser()


def pages_of(scene):
	"""way, and what is to be seen there."""
	quoted = lambda text: urllib.parse.quote(text, safe="")
	evil = scenes.EVIL[:120].replace("\u0007", "")
	yield "inbox", "", "Outcome unknown"
	yield "inbox-kind", "?kind=failed_run", "Run failed"
	yield "runs", "runs", "shipment-1"
	yield "runs-failed", "runs?status=FAILED", "refund-7"
	yield "runs-none", "runs?status=CANCELLED", "Nothing fits this filter."
	yield "run", f"runs/{scene.runs['unknown']}", "12345678901234567890"
	yield "run-failed", f"runs/{scene.runs['failed']}", "the card was declined"
	yield "run-evil", f"runs/{scene.runs['evil']}", "<script>window.hurt=1</script>"
	yield "run-children", f"runs/{scene.runs['parent']}", "Children"
	yield "entities", "entities", "invoice"
	yield "entities-invoice", "entities/invoice", "inv-100"
	yield "entity", "entities/invoice/inv-100", "How it came here"
	yield "entity-evil", f"entities/invoice/{quoted(evil)}", "<img src=x"
	yield "batches", "batches", "render"
	yield "batch", f"batches/{scene.batch}", "46"
	yield "jobs", "jobs", "mail"
	yield "job", f"jobs/{scene.job}", "550 no such mailbox"
	yield "accounts", "accounts", "<b>bob</b>"
	yield "account", "accounts/alice", "Ledger"
	yield "account-evil", f"accounts/{quoted('<b>bob</b>')}", "<b>bob</b>"
	yield "schedules", "schedules", "nightly"
	yield "schedule", "schedules/nightly", "Europe/Amsterdam"
	yield "workflows", "workflows", "shipment"
	yield "workflow", "workflows/order", "Definition"
	yield "workflow-entity", "workflows/invoice", "Picture"
	yield "functions", "functions", "and 1 more"
	yield "gate", "gate", "No record of a gate."
	yield "proof", "proof", "hapax audit --bundle FILE"
	yield "bulk", "bulk?where=" + quoted('status == "FAILED"'), "count them"
	yield "bulk-none", "bulk", "One thing to many runs."
	yield "no-bulk", "bulk/bulk_0000000000000", "NOT_FOUND"
	yield "health", "health", "Due, and not yet taken"
	yield "nowhere", "nowhere/at/all", "There is no such page."
	yield "no-run", "runs/run_0000000000000", "NOT_FOUND"
	yield "broken", "runs/%E0%A4%A", "There is no such page."


# Texts that are hard to read where they stand: below 4.5 to 1 (WCAG AA), 3 to 1 if they are large. What cannot be pressed is left out.
PALE = """(() => {
	const parts = (c) => (c.match(/[\\d.]+/g) || [0, 0, 0, 0]).map(Number), light = (c) => { const [r, g, b] = c.map(v => (v /= 255) <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4); return .2126 * r + .7152 * g + .0722 * b; };
	const ground = (e) => { for (; e; e = e.parentElement) { const [r, g, b, a = 1] = parts(getComputedStyle(e).backgroundColor); if (a > .9) return [r, g, b]; } return [255, 255, 255]; };
	const pale = new Set(), walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
	for (let n; (n = walk.nextNode());) {
		const e = n.parentElement, style = getComputedStyle(e);
		if (!n.data.trim() || e.closest('button:disabled, noscript, option') || !e.getClientRects().length) continue;
		const [a, b] = [light(parts(style.color).slice(0, 3)), light(ground(e))].sort((x, y) => y - x), ratio = (a + .05) / (b + .05);
		if (ratio < (parseFloat(style.fontSize) >= 24 ? 3 : 4.5)) pale.add(`${e.tagName}.${e.className} ${ratio.toFixed(2)}: ${n.data.slice(0, 30)}`);
	}
	return [...pale];
})()"""
# What has no name that a screen reader could say; and what is the same id twice.
NAMELESS = """[...document.querySelectorAll('button, a[href], input, select, textarea, img, [role=img], table, summary')].filter(e => e.getClientRects().length &&
	!(e.getAttribute('aria-label') || e.textContent.trim() || e.getAttribute('alt') || e.labels?.length)).map(e => e.outerHTML.slice(0, 90))
	.concat([...document.querySelectorAll('[id]')].map(e => e.id).filter((id, i, all) => all.indexOf(id) != i))"""
# What stands over its neighbour, or past the edge of what holds it: cells of a row, facts, buttons of a group.
OVERLAPS = """[...document.querySelectorAll('tr, dl.facts, .row, header.title, .item header, .pager, .sent, figcaption')].flatMap(p => {
	const boxes = [...p.children].map(e => [e, e.getBoundingClientRect()]).filter(([e, b]) => b.width > 1 && b.height > 1 && getComputedStyle(e).position != 'absolute');
	return boxes.flatMap(([e, a], i) => boxes.slice(i + 1).filter(([, b]) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1.5 && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 1.5).map(([f]) => `${e.outerHTML.slice(0, 60)} / ${f.outerHTML.slice(0, 60)}`));
})"""


def fit_to_be_seen(page, name):
	wide = page.js("document.documentElement.scrollWidth - innerWidth")
	assert wide <= 0, f"{name} is {wide} pixels too wide"
	for what, asked in (("is hard to read", PALE), ("has no name", NAMELESS), ("overlaps", OVERLAPS)):
		found = page.js(asked)
		assert not found, f"{name}: {what}: {found}"


def walk_pages(page, scene):
	for name, way, words in pages_of(scene):
		at(page, way)
		page.shows(words)
		page.settle()
		for dark in (True, False):
			page.dark(dark)
			fit_to_be_seen(page, f"{name}{', dark' if dark else ''}")
		if PICTURES:
			page.settle()
			page.until("[...document.images].every(i => i.complete)")
			for dark in (False, True):
				page.dark(dark)
				page.picture(pathlib.Path(PICTURES) / f"{name}{'-dark' if dark else ''}.png", whole=True)
			page.dark(False)
		calm(page)


def draw_for_docs(page, scene):
	"""docs/pictures/dashboard-*.webp"""
	page.size(1200, 720)
	for name, way, words, dark in (("inbox", "", "Outcome unknown", False), ("run", f"runs/{scene.runs['unknown']}", "reservation", False), ("batch-dark", f"batches/{scene.batch}", "alice", True)):
		at(page, way)
		page.shows(words)
		page.settle()
		page.dark(dark)
		page.picture(pathlib.Path(PICTURES) / f"dashboard-{name}.webp")
	page.dark(False)
	page.size(1280, 860)


# Tables that are wider than their place: a list is stacked on a small screen, any other can be scrolled where it stands.
CUT_OFF = """[...document.querySelectorAll('main table')].filter(t => {
	const place = t.closest('.scroll'), more = place ? place.scrollWidth - place.clientWidth : 1;
	return !place || place.getBoundingClientRect().right > innerWidth || more > 0 && (t.matches('.rows') || location.hash == '#/health' || getComputedStyle(place).overflowX != 'auto');
}).map(t => t.textContent.slice(0, 60))"""


def walk_small(page, scene):
	page.size(400, 800)
	for name, way, words in pages_of(scene):
		at(page, way)
		page.shows(words)
		page.settle()
		for dark in (True, False):
			page.dark(dark)
			fit_to_be_seen(page, f"at 400 pixels {name}{', dark' if dark else ''}")
			if PICTURES:
				page.picture(pathlib.Path(PICTURES) / f"{name}-400{'-dark' if dark else ''}.png", whole=True)
		cut = page.js(CUT_OFF)
		assert not cut, f"at 400 pixels {name} has {cut} past the edge"
	page.size(1280, 860)


def gone_from_inbox(page, scene, id):
	until(lambda: not [i for i in scene.ask("GET", "attention?limit=500")["items"] if i["id"] == id], f"{id} is not in the inbox any more")
	page.press("r")
	page.until(f"![...document.querySelectorAll('article.item header')].some(a => a.textContent.includes({json.dumps(id)}))", f"{id} has gone from the page")


def reasons(scene, subject):
	return [row["reason"] for row in scene.ask("GET", f"history/{urllib.parse.quote(subject)}?limit=500")["items"] if row["reason"]]


def walk_inbox(page, scene):
	runs = scene.runs
	done(page, "done", "it was done", {"output": '{"receipt": 12345678901234567890}', "reason": "looked it up"}, within=inbox_item(page, runs["unknown"]))
	until(lambda: scene.ask("GET", f"workflow-runs/{runs['unknown']}")["currentStep"] == "paid", "the run goes on")
	_, _, text = scene.hapax.call("GET", f"/api/v1/workflow-runs/{runs['unknown']}")
	assert b'12345678901234567890' in text, "the output was sent exactly"
	assert "looked it up" in reasons(scene, runs["unknown"])
	done(page, "not done", "it was not done", {"reason": "no trace of it"}, within=inbox_item(page, runs["unknown2"]))
	assert "no trace of it" in reasons(scene, runs["unknown2"])
	done(page, "retry", "retry", {"reason": "the card is good now"}, within=inbox_item(page, runs["failed"]))
	assert "the card is good now" in reasons(scene, runs["failed"])
	done(page, "cancel", "cancel the run", {"reason": "<b>given up</b>"}, within=inbox_item(page, runs["failed2"]))
	gone_from_inbox(page, scene, runs["failed2"])
	assert "<b>given up</b>" in reasons(scene, runs["failed2"])
	done(page, "approve", "approve", {"comment": "welcome"}, within=inbox_item(page, runs["approval"]))
	gone_from_inbox(page, scene, runs["approval"])
	done(page, "reject", "reject", {"comment": "not this time"}, within=inbox_item(page, runs["approval2"]))
	done(page, "resume", "resume", within=inbox_item(page, runs["paused"]))
	gone_from_inbox(page, scene, runs["paused"])
	done(page, "redrive", "redrive", within=inbox_item(page, scene.job))
	gone_from_inbox(page, scene, scene.job)
	done(page, "done", "it was done", {"reason": "saw the receipt"}, within=inbox_item(page, "entity:invoice:inv-100"))
	assert scene.ask("GET", "entities/invoice/inv-100")["status"] == "closed"
	assert "resolved: done: saw the receipt" in reasons(scene, "entity:invoice:inv-100")


def walk_run_buttons(page, scene):
	runs = scene.runs
	at(page, f"runs/{runs['waiting']}")
	done(page, "pause", "pause")
	done(page, "resume", "resume")
	done(page, "signal", "send the event", {"event": "delivered", "id": "d-1", "data": '{"weight": 1.50}'})
	until(lambda: scene.status(runs["waiting"]) == "COMPLETED", "the run ends")
	page.press("r")
	page.shows("COMPLETED")
	page.shows("1.50")
	done(page, "restart", "restart", {"from": "delivered"})
	at(page, "workflows/parcel")
	said = done(page, "start a run", "start a run", {"key": "by-hand-1", "input": '{"n": 1}'})
	assert "is started" in said, said
	at(page, f"runs/{runs['waiting2']}")
	done(page, "cancel", "cancel the run")
	until(lambda: scene.status(runs["waiting2"]) == "CANCELLED", "it is cancelled")


def walk_other_buttons(page, scene, world):
	at(page, "entities/invoice")
	done(page, "create an entity", "create an entity", {"id": "inv-200", "data": '{"a": 1}'})
	at(page, "entities/invoice/inv-200")
	done(page, "approve", "fire approve")
	assert scene.ask("GET", "entities/invoice/inv-200")["status"] == "approved"
	at(page, f"batches/{scene.batch}?item_status=UNKNOWN")
	page.click(".cells button")
	done(page, "done", "it was done", within=".card")
	at(page, f"batches/{scene.batch}?item_status=SUCCEEDED")
	page.until("document.querySelector('.cells button.succeeded')")
	page.click(".cells button")
	done(page, "accept", "accept", within=".card")
	at(page, f"batches/{scene.held}")
	done(page, "start", "start")
	at(page, f"batches/{scene.film}")
	page.click(".actions button", "cancel")
	page.shows("goes back to alice")
	page.click("button:not([type])", "cancel the batch", "form.panel")
	page.until("document.querySelector('form.panel .note.good')")
	world.go.set()
	until(lambda: scene.ask("GET", f"batches/{scene.film}")["status"] == "CANCELLED", "the batch is torn down")
	at(page, "accounts/alice")
	page.click("main td a", f"/{scene.batch}/0/charge/1")
	page.until(f"location.hash == '#/batches/{scene.batch}?item=0' && document.querySelector('.card h3')?.textContent.startsWith('Item 0')", "what an entry was for")
	assert page.js("['succeeded', 'unknown', 'failed'].every(n => getComputedStyle(document.querySelector(`.facts .swatch.${n}`)).backgroundColor == getComputedStyle(document.querySelector(`.cells button.${n}`)).backgroundColor)"), "what the colours of the cells mean"
	at(page, "accounts/alice")
	page.until("['\u22125', '+5'].every(n => [...document.querySelectorAll('td.n')].some(e => e.textContent == n))", "what came and what went")
	done(page, "credit", "credit", {"amount": "500", "key": "gift-1"})
	at(page, "schedules/hourly")
	done(page, "pause", "pause")
	done(page, "resume", "resume")
	done(page, "trigger", "trigger")
	done(page, "delete", "delete the schedule")


def walk_bulk(page, scene):
	"""From a filter to what came of it, which is a filter again."""
	at(page, "runs?status=FAILED&definitionId=refund")
	page.click("main a", "Do something to all of these")
	page.until("location.hash.startsWith('#/bulk?where=')")
	page.click("button", "count them")
	said = page.until("[...document.querySelectorAll('.sum')].find(e => /match/.test(e.textContent))?.textContent", "how many there are")
	n = int(said.split()[0])
	assert n == len([r for r in scene.ask("GET", "workflow-runs?status=FAILED&definitionId=refund&limit=500")["items"]]) > 0, said
	assert page.js("document.querySelector('.choice select').value") == "" and not page.js("[...document.querySelectorAll('main button')].some(b => /carry out/.test(b.textContent))"), "what is done to many has no default"
	page.js("(e => { e.value = 'retry'; e.dispatchEvent(new Event('change', {bubbles: true})); })(document.querySelector('.choice select'))")
	page.click(".actions button", "carry out: retry")
	page.until("document.querySelector('form.panel')")
	page.js("document.querySelector('form.panel #f-reason').focus()")
	page.type("<b>in bulk</b>")
	assert page.js("document.querySelector('form.panel .command code').textContent").startswith("hapax bulk retry --where 'status == ")
	page.click("button:not([type])", "retry all of them", "form.panel")
	page.until("location.hash.startsWith('#/bulk/bulk_')", "its page")
	id = page.js("location.hash").split("/")[-1]
	until(lambda: scene.ask("GET", f"bulk/{id}")["status"] == "COMPLETED", "the bulk has ended")
	page.press("r")
	page.shows("COMPLETED")
	done = scene.ask("GET", f"bulk/{id}")["done"]
	assert done == n and "<b>in bulk</b>" in reasons(scene, scene.ask("GET", f"bulk/{id}/items")["items"][0]["subject"])
	page.click(".results button", f"done {n}")
	page.until("location.hash.startsWith('#/runs?where=id')")
	page.until(f"document.querySelectorAll('tr[data-to]').length == {n}", "those that were done")
	at(page, "bulk")
	page.shows(id)
	calm(page)


def walk_health(page, scene):
	until(lambda: len(scene.ask("GET", "vitals")["rows"]) >= 2, "the first numbers are kept")  # a page that is paused does not ask again
	at(page, "health")
	page.until("document.querySelectorAll('.chart canvas').length == 8", "the last minutes are drawn")
	drawn = """[...document.querySelectorAll('.chart canvas')].map(c => {
		const tones = [...c.closest('.chart').querySelectorAll('.key')].map(k => getComputedStyle(k).color.match(/\\d+/g).map(Number));
		const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data, near = (t, i) => d[i + 3] > 200 && t.every((v, k) => Math.abs(v - d[i + k]) < 24);
		let n = 0;
		for (let i = 0; i < d.length; i += 4) n += tones.some(t => near(t, i));
		return n;
	})"""
	for on in (True, False):
		page.dark(on)
		page.until(f"{drawn}.every(n => n > 5)", "each has a line in a colour of its legend, dark and light")
	page.js("(c => c.dispatchEvent(new MouseEvent('mousemove', {bubbles: true, clientX: c.getBoundingClientRect().right - 3, clientY: c.getBoundingClientRect().top + 20})))(document.querySelector('.chart .u-over'))")
	page.until("/\\d/.test(document.querySelector('.chart .scale').textContent)", "the moment that one points at is told")
	assert page.js("[...document.querySelectorAll('.chart .plot')].every(p => /at the end: .+/.test(p.getAttribute('aria-label')))"), "and all of it in words"
	vitals = scene.ask("GET", "vitals")
	assert vitals["rows"][-1][vitals["columns"].index("storeBytes")] > 100000, "how large the store is"
	page.until("[...document.querySelectorAll('.facts div')].some(d => /^store\\s*[\\d.]+ [KM]iB/.test(d.innerText))", "it is said")
	assert sum(row[vitals["columns"].index("requests")] for row in vitals["rows"]) > 20 and vitals["nodes"][0]["alive"], vitals
	wide = page.js("document.documentElement.scrollWidth - innerWidth")
	assert wide <= 0, f"it is {wide} pixels too wide"
	if PICTURES:
		for dark in (False, True):
			page.dark(dark)
			page.picture(pathlib.Path(PICTURES) / f"health-drawn{'-dark' if dark else ''}.png", whole=True)
		page.dark(False)
	calm(page)


def walk_workflow(page, scene, hapax, world):
	"""What stands where, in the picture and beside it; what has changed between versions; what check says."""
	at(page, "workflows/order")
	pill = "document.querySelector('[data-place=charge] .pill.bad')"
	stand = len([r for r in scene.ask("GET", "workflow-runs?definitionId=order&limit=100")["items"] if r["currentStep"] == "charge"])
	assert stand and page.until(pill + "?.textContent", "how many stand there") == str(stand)
	box = page.js("(e => { const b = e.getBoundingClientRect(), i = document.querySelector('.picture img').getBoundingClientRect(); return b.left >= i.left && b.right <= i.right && b.top >= i.top && b.bottom <= i.bottom && b.width > 40; })(document.querySelector('[data-place=charge]'))")
	assert box, "its place is in the picture"
	definition = next(d for d in scenes.definitions(world) if d["workflow"] == "order")
	assert page.js("[...document.querySelectorAll('main tr')].find(r => r.textContent.startsWith('reserve'))?.textContent.includes('ms')"), "how long it took"
	definition["steps"].insert(0, scenes.task("first", "mail"))
	definition["steps"][2]["on_unknown"] = "retry"
	scene.ask("PUT", "definitions/order", definition)
	page.press("r")
	page.click("a", "what has changed")
	page.shows(".steps[first].action")
	changed = page.js("[...document.querySelectorAll('.difference tbody tr')].map(r => r.className + r.innerText)")
	assert any(".steps[charge].on_unknown" in row and '"hold"' in row and '"retry"' in row for row in changed), changed
	assert not any("[mail]" in row for row in changed), "a step that moved has not changed"
	page.until("document.querySelector('[data-place=first]')", "the new picture")
	page.until("[...document.querySelectorAll('h2')].find(h => h.textContent == 'What check finds')?.nextElementSibling", "what check finds")
	if PICTURES:
		page.picture(pathlib.Path(PICTURES) / "workflow-changed.png", whole=True)
	at(page, "entities/invoice/inv-100")
	page.until("document.querySelector('[data-place=closing] .here') || document.querySelector('[data-place=closed] .here')", "where it is")
	page.until("document.querySelectorAll('.spot .been').length >= 1", "where it was")
	calm(page)


def two_people(chromium, url, scene):
	"""Both see the same, both act: one does it, the other is told; and a double click is one request."""
	run = scene.start("refund", "race-1")
	until(lambda: scene.status(run) == "FAILED", "the run has failed")
	first, second = chromium.page(url), chromium.page(url)
	for page in (first, second):
		be_still(page)
		at(page, f"runs/{run}")
		page.click(".actions button", "retry")
		page.until("document.querySelector('form.panel')")
	version = scene.ask("GET", f"workflow-runs/{run}")["version"]
	first.js("document.querySelector('form.panel button:not([type])').click(), document.querySelector('form.panel').requestSubmit()")
	first.until("document.querySelector('form.panel .note.good')", "the first is done")
	writes = [r for r in first.requests if r["method"] == "POST"]
	assert len(writes) == 1 and re.fullmatch("dashboard-[0-9a-f]{32}", writes[0]["headers"]["Idempotency-Key"]), writes
	assert json.loads(writes[0]["postData"]) == {"version": version}
	until(lambda: scene.status(run) == "FAILED", "it has failed once more")
	second.click("button:not([type])", "retry", "form.panel")
	said = second.until("document.querySelector('form.panel .note.warn')?.textContent", "the second is told")
	assert "You were not the first." in said, said
	now = scene.ask("GET", f"workflow-runs/{run}")["version"]
	second.until(f"[...document.querySelectorAll('.facts dd')].some(d => d.textContent == {json.dumps(str(now))})", "the second sees it as it is")
	for page in (first, second):
		calm(page)
		page.close()


def lost_answer(page, scene, hapax):
	"""No answer came: said so, and pressed again under the same key it is done once."""
	run = scene.start("refund", "lost-1")
	until(lambda: scene.status(run) == "FAILED", "the run has failed")
	at(page, f"runs/{run}")
	page.click(".actions button", "retry")
	page.until("document.querySelector('form.panel')")
	before = len(page.requests)
	page.ask("Network.emulateNetworkConditions", offline=True, latency=0, downloadThroughput=-1, uploadThroughput=-1)
	page.click("button:not([type])", "retry", "form.panel")
	page.until("document.querySelector('form.panel .note.bad')?.textContent.includes('No answer came.')")
	page.ask("Network.emulateNetworkConditions", offline=False, latency=0, downloadThroughput=-1, uploadThroughput=-1)
	page.click("button:not([type])", "retry", "form.panel")
	page.until("document.querySelector('form.panel .note.good')", "it is done")
	keys = {r["headers"]["Idempotency-Key"] for r in page.requests[before:] if r["method"] == "POST"}
	assert len(keys) == 1, keys


def counts(page, scene):
	"""How many there are of each status, which is a filter; as the store has counted them."""
	def shown():
		return page.js("Object.fromEntries([...document.querySelectorAll('.counts a:not(.doubt)')].map(a => [a.querySelector('.status').textContent, Number(a.querySelector('.roll').textContent.replace(/\\D/g, ''))]))")

	def told(workflow=""):
		sums = {}
		for row in scene.ask("GET", f"run-counts?limit=500{workflow and '&definitionId=' + workflow}")["items"]:
			for status, n in row["counts"].items():
				sums[status] = sums.get(status, 0) + n
		return {status: n for status, n in sums.items() if n}
	at(page, "runs")
	page.until("document.querySelectorAll('.counts a').length > 2")
	until(lambda: page.press("r") or page.settle() or shown() == told(), "the counts")
	page.click(".counts a .status", "FAILED")
	page.until("location.hash == '#/runs?status=FAILED' && document.querySelector('.counts a[aria-current]')")
	at(page, "runs?definitionId=order")
	page.click(".counts a", "in doubt")
	page.until("location.hash == '#/runs?definitionId=order&unknown=true' && document.querySelector('.counts a.doubt[aria-current]')")
	page.until("document.querySelectorAll('tr[data-to]').length == 2 && [...document.querySelectorAll('tr[data-to]')].every(r => r.textContent.includes('chargeUNKNOWN') || r.textContent.includes('charge UNKNOWN'))", "what is in doubt is seen in the list")
	assert not page.js("/Do something to all/.test(document.body.innerText)"), "no condition says what is in doubt: a bulk would be about more than is shown"
	page.click(".counts a", "in doubt")
	page.until("location.hash == '#/runs?definitionId=order'")
	page.shows("Do something to all of these")
	at(page, "runs?definitionId=refund")
	until(lambda: page.settle() or shown() == told("refund") != told(), "of one workflow")
	# of what is not counted exactly: as many as there are, since there are fewer than are looked at
	for way, path, more in (("jobs", "jobs", ""), ("jobs?queue=mail", "jobs?queue=mail", "mail"), ("batches", "batches", ""), ("batches?workflow=film", "batches?workflow=film", "film"), ("entities/invoice", "entities/invoice", "invoice")):
		at(page, way)
		there = lambda: dict(collections.Counter(i["status"] for i in scene.ask("GET", path + ("&" if "?" in path else "?") + "limit=500")["items"]))
		until(lambda: page.press("r") or page.settle() or shown() == there() != {}, f"how many of each: {way}")
		assert not [i for i in scene.ask("GET", f"status-counts/{path.split('?')[0].split('/')[0]}?name={more}")["items"] if i["more"]]
	at(page, "batches?workflow=render&cursor=batch_zzzzzzzzzzzzz")
	page.click(".counts a .status", "COMPLETED")
	page.until("location.hash == '#/batches?workflow=render&status=COMPLETED' && document.querySelectorAll('tr[data-to]').length == 1", "a filter beside the other one, from the first page on")
	page.click(".counts a .status", "COMPLETED")
	page.until("location.hash == '#/batches?workflow=render'")
	calm(page)


def conditions(page, scene):
	"""Batches and entities are found by a condition; from any filter of any list one comes to what can be done to all of it."""
	at(page, "batches?where=" + urllib.parse.quote("total == 12"))
	page.until(f"document.querySelectorAll('tr[data-to]').length == 1 && document.querySelector('tr[data-to]').textContent.includes({json.dumps(scene.film)})", "by how many items it has")
	at(page, "entities/invoice?where=" + urllib.parse.quote('id == "inv-100"'))
	page.until("document.querySelectorAll('tr[data-to]').length == 1 && document.querySelector('tr[data-to]').textContent.includes('inv-100')", "by its id")
	for way, kind, verbs, n in (("entities/invoice?status=closing", "entity", 2, "1 entity matches."), ("batches?workflow=render", "batch", 2, "2 batches match."), ("jobs?queue=mail&status=PARKED", "job", 1, "1 job matches.")):
		at(page, way)
		page.click("main a", "Do something to all of these")
		page.until(f"location.hash.startsWith('#/bulk?kind={kind}&where=')")
		page.click("button", "count them")
		page.until(f"document.querySelector('.actions .sum')?.textContent.trim() == {json.dumps(n)}", n)
		assert page.js("document.querySelectorAll('.choice option').length") == verbs + 1, "what can be done to these, and nothing else"
	calm(page)


def keyboard(page, scene):
	at(page, "runs")
	page.until("document.querySelectorAll('tr[data-to]').length > 3")
	page.js("document.activeElement.blur()")
	page.press("j")
	page.press("j")
	page.press("k")
	assert page.js("[...document.querySelectorAll('tr[data-to]')].indexOf(document.activeElement)") == 0
	page.press("Enter")
	page.until("location.hash.startsWith('#/runs/run_')")
	page.press("g")
	page.press("b")
	page.until("location.hash == '#/batches'")
	page.press("?")
	page.until("document.querySelector('.help')")
	page.press("Escape")
	page.until("!document.querySelector('.help')")
	page.press("/")
	page.until("document.activeElement.id == 'search'")
	page.type(scene.batch)
	page.js("document.querySelector('form.search').requestSubmit()")
	page.until(f"location.hash == '#/batches/{scene.batch}'")
	page.js("document.activeElement.blur()")
	page.press("/")
	page.type("shipment-1")
	page.js("document.querySelector('form.search').requestSubmit()")
	page.until("document.querySelectorAll('tr[data-to]').length == 1 && document.body.innerText.includes('shipment-1')", "the run of a key is found")
	calm(page)


def walk(dir, kind):
	with Store(kind) as store, scenes.World() as world, scenes.serve(dir, world, store.url) as hapax:
		scene = scenes.Scene(hapax)
		url = f"http://127.0.0.1:{hapax.port}/"
		with browser.Browser() as chromium:
			page = chromium.page(url)
			page.dark(False)
			be_still(page)
			walk_pages(page, scene)
			if PICTURES and kind == "sqlite":
				draw_for_docs(page, scene)
			if kind == "sqlite":
				walk_small(page, scene)
				keyboard(page, scene)
			counts(page, scene)
			conditions(page, scene)
			walk_inbox(page, scene)
			walk_run_buttons(page, scene)
			walk_other_buttons(page, scene, world)
			walk_bulk(page, scene)
			walk_health(page, scene)
			walk_workflow(page, scene, hapax, world)
			two_people(chromium, url, scene)
			calm(page)
			lost_answer(page, scene, hapax)
			assert page.js("window.hurt === undefined") and not page.violations()


def test_every_page_and_button_on_sqlite(dir):
	walk(dir, "sqlite")


if PG:
	def test_every_page_and_button_on_postgres(dir):
		walk(dir, "postgres")


def test_empty_pages_say_what_to_type(dir):
	(dir / "workflows").mkdir()
	with server.Server(dir, "serve", "--db", "sqlite:h.db", "--workflows", "workflows") as hapax, browser.Browser() as chromium:
		page = chromium.page(f"http://127.0.0.1:{hapax.port}/")
		page.shows("Nothing waits for you.")
		for way, words in (("runs", "hapax run start"), ("entities", "hapax serve"), ("batches", "hapax batch start"), ("jobs", "hapax job push"), ("accounts", "hapax account create"),
				("schedules", "hapax schedule put"), ("workflows", "hapax init"), ("functions", "hapax init"), ("bulk", "hapax bulk retry"), ("health", "Nothing.")):
			at(page, way)
			page.shows(words)
			if PICTURES:
				page.picture(pathlib.Path(PICTURES) / f"empty-{way}.png")
		if PICTURES:
			at(page, "")
			page.shows("Nothing waits for you.")
			page.picture(pathlib.Path(PICTURES) / "empty-inbox.png")
		calm(page)


def head_of(hapax, path, headers=()):
	status, head, body = hapax.call("GET", path, headers=headers)
	fields = {}
	for line in head.split("\r\n")[1:]:
		name, _, value = line.partition(": ")
		fields.setdefault(name.lower(), []).append(value)
	return status, fields, body


def test_files_are_small_and_say_what_they_are(dir):
	with server.Server(dir, "serve", "--db", "sqlite:h.db") as hapax:
		files = [p for p in (ROOT / "web").rglob("*") if p.suffix in (".js", ".css", ".svg", ".html")]
		assert len(files) > 8
		total = 0
		for file in files:
			name = str(file.relative_to(ROOT / "web"))
			path = "/" if name == "index.html" else "/ui/" + name
			status, fields, body = head_of(hapax, path)
			assert status == 200, (path, status)
			total += len(body)
			plain = gzip.decompress(body) if fields.get("content-encoding") == ["gzip"] else body
			lines = file.read_bytes().splitlines(keepends=True)
			if file.suffix == ".js" and "vendor" not in file.parts:  # comments are for those who read it here
				lines = [line for line in lines if not line.lstrip().startswith(b"// ")]
			assert plain == b"".join(lines), f"{path} is another file"
			(etag,) = fields["etag"]
			assert head_of(hapax, path, [("If-None-Match", etag)])[0] == 304
			policy = fields["content-security-policy"][0]
			assert policy.startswith("default-src 'none';") and "unsafe" not in policy and "*" not in policy and "http" not in policy, policy
			for name, value in (("x-content-type-options", "nosniff"), ("x-frame-options", "DENY"), ("cache-control", "no-cache"), ("referrer-policy", "no-referrer"),
					("cross-origin-opener-policy", "same-origin"), ("cross-origin-resource-policy", "same-origin")):
				assert fields[name] == [value], (path, name, fields.get(name))
			plain = plain.removeprefix(b"/*! https://github.com/leeoniya/uPlot (v1.6.32) */")  # whose it is
			assert b"://" not in plain or name.endswith("svg") or all(w in (b"www.w3.org", b"") for w in re.findall(rb"https?://([^/\"'` )]*)", plain)), f"{path} names a place elsewhere"
		print(f"# the dashboard is {total} bytes as it is sent, {len(files)} files")
		assert total < 120 * 1024, total
		for path in ("/ui/nothing.js", "/ui/..%2f..%2fMakefile", "/ui/vendor/..%2fapp.js", "/ui/vendor/README.md", "/ui/index.html/"):
			assert head_of(hapax, path)[0] == 404, path


def test_libraries_are_as_they_were_published(dir):
	import hashlib
	readme = (ROOT / "web/vendor/README.md").read_text()
	rows = re.findall(r"^\| `([^`]*)` \|.*\| `([0-9a-f]{64})` \|$", readme, re.M)
	assert {name for name, _ in rows} == {p.name for p in (ROOT / "web/vendor").iterdir() if p.suffix in (".js", ".css")}
	for name, hash in rows:
		text = (ROOT / "web/vendor" / name).read_bytes()
		if name == "hooks.js":
			text = text.replace(b'from"./preact.js"', b'from"preact"')
		text = text.removesuffix(b"export default uPlot;\n")
		assert hashlib.sha256(text).hexdigest() == hash, name


def test_under_a_prefix(dir):
	"""Behind a proxy that serves it at /tools/hapax/."""
	import http.server, threading, http.client
	with server.Server(dir, "serve", "--db", "sqlite:h.db") as hapax:
		class Proxy(http.server.BaseHTTPRequestHandler):
			def do_GET(self):
				if not self.path.startswith("/tools/hapax/"):
					self.send_error(404)
					return
				upstream = http.client.HTTPConnection("127.0.0.1", hapax.port)
				upstream.request("GET", self.path.removeprefix("/tools/hapax"), headers={"Host": "localhost"})
				answer = upstream.getresponse()
				text = answer.read()
				self.send_response(answer.status)
				for name, value in answer.getheaders():
					if name.lower() not in ("connection", "transfer-encoding"):
						self.send_header(name, value)
				self.end_headers()
				self.wfile.write(text)

			def log_message(self, *_):
				pass
		proxy = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Proxy)
		proxy.daemon_threads = True
		proxy.handle_error = lambda *_: None  # the stream of changes ends in the middle
		threading.Thread(target=proxy.serve_forever, daemon=True).start()
		with browser.Browser() as chromium:
			page = chromium.page(f"http://127.0.0.1:{proxy.server_address[1]}/tools/hapax/")
			page.shows("Nothing waits for you.")
			calm(page)
		proxy.shutdown()
		proxy.server_close()


def make_key(dir, scope, workspace="shop", db="sqlite:h.db"):
	out = subprocess.run([server.HAPAX, "key", "create", "--scope", scope, "--workspace", workspace, "--requester", f"{scope}-person", "--db", db, "--json"], cwd=dir, capture_output=True, check=True, text=True)
	made = json.loads(out.stdout)
	return made["key"], made["id"]


def enter(page, key):
	page.until("document.querySelector('#key')", "the field for a key")
	page.js("(e => { e.focus(); e.select(); })(document.querySelector('#key'))")
	page.type(key)
	page.click("button", "log in", ".login")


def cookies(page):
	return page.ask("Network.getCookies", urls=[page.js("location.origin") + "/api/v1/attention"])["cookies"]


def test_login_with_a_key(dir):
	with scenes.World() as world, scenes.serve(dir, world) as hapax, browser.Browser() as chromium:
		admin, admin_id = make_key(dir, "admin")
		reader, _ = make_key(dir, "read")
		scene = scenes.Scene(hapax, [("Authorization", f"Bearer {admin}")])
		url = f"http://127.0.0.1:{hapax.port}/"
		page = chromium.page(url, context=chromium.context())
		page.shows("This server wants an API key.")
		if PICTURES:
			for dark in (False, True):
				page.dark(dark)
				page.picture(pathlib.Path(PICTURES) / f"login{'-dark' if dark else ''}.png")
			page.dark(False)
		enter(page, admin[:-1] + ("0" if admin[-1] != "0" else "1"))
		page.shows("this API key is not known")
		enter(page, admin)
		page.shows("Outcome unknown")
		page.shows("shop · admin-person · admin")
		be_still(page)
		(cookie,) = cookies(page)
		assert cookie["httpOnly"] and cookie["sameSite"] == "Strict" and cookie["path"] == "/api/v1" and admin[20:] not in cookie["value"], cookie
		assert page.js("document.cookie + JSON.stringify(localStorage) + JSON.stringify(sessionStorage)") == "{}{}", "a script could read it"
		done(page, "retry", "retry", {"reason": "with a session"}, within=inbox_item(page, scene.runs["failed"]))
		(row,) = [r for r in scene.ask("GET", f"history/{scene.runs['failed']}?limit=100")["items"] if r["by"]]
		assert (row["reason"], row["by"]) == ("with a session", "admin-person"), row
		at(page, "workflows/order")
		page.until("document.images.length && document.images[0].complete && document.images[0].naturalWidth > 100", "the picture comes with the cookie")

		other = chromium.page(url, context=chromium.context())
		enter(other, reader)
		other.shows("Outcome unknown")
		be_still(other)
		other.settle()
		assert other.js("document.querySelectorAll('main .actions button').length") == 0, "who may only read has no buttons"
		if PICTURES:
			other.picture(pathlib.Path(PICTURES) / "inbox-read-only.png")
		at(other, "workflows/order")
		other.shows("Its text is for keys with the scope admin.")

		subprocess.run([server.HAPAX, "key", "revoke", admin_id, "--db", "sqlite:h.db"], cwd=dir, check=True, capture_output=True)
		until(lambda: hapax.call("GET", "/api/v1/attention", headers=[("Authorization", f"Bearer {admin}")])[0] == 401, "the key is revoked")
		page.press("r")
		page.shows("You are logged out")
		other.press("r")
		other.shows("Its text is for")
		other.click("button", "log out", ".who")
		other.shows("This server wants an API key.")
		assert not cookies(other)
		for p in (page, other):
			calm(p)


def serve_at(dir, port):
	"""The same server at the same address once more."""
	process = subprocess.Popen([server.HAPAX, "serve", "--db", "sqlite:h.db", "--workflows", "workflows", "--config", "config.json", "--listen", f"127.0.0.1:{port}"],
		cwd=dir, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
	assert process.stdout.readline().startswith(b"ready "), "it did not become ready"
	return process


def test_changes_appear_by_themselves(dir):
	with scenes.World() as world, scenes.serve(dir, world) as hapax, browser.Browser() as chromium:
		start = lambda key: hapax.json("POST", "/api/v1/workflow-runs", {"definitionId": "parcel", "idempotencyKey": key})["run"]["id"]
		url = f"http://127.0.0.1:{hapax.port}/"
		first = chromium.page(url + "#/runs")
		first.until("document.querySelector('button.live.live')", "the page is live")
		second = chromium.page(url + "#/runs")
		second.until("document.querySelector('button.live.live')", "so is the other")
		first.ask("Emulation.setFocusEmulationEnabled", enabled=True)  # both are looked at
		second.ask("Emulation.setFocusEmulationEnabled", enabled=True)
		streams = [r["url"] for page in (first, second) for r in page.requests if r["url"].endswith("/changes")]
		assert len(streams) == 1, f"one connection for all tabs: {streams}"
		run = start("one")
		first.shows(run)
		second.shows(run)
		second.click("button.live")
		second.shows("paused")
		run = start("two")
		first.shows(run)
		assert run not in second.text(), "a pause is one"
		second.click("button.live")
		second.shows(run)
		asked = len(first.requests)
		for i in range(200):
			start(f"many-{i}")
		first.shows(start("last"))
		asked = len([r for r in first.requests[asked:] if "workflow-runs" in r["url"]])
		print(f"# 201 runs started: the page asked {asked} times")
		assert asked < 100, asked
		hapax.process.kill()
		hapax.process.wait()
		first.shows("connection lost")
		second.shows("connection lost")
		again = serve_at(dir, hapax.port)
		try:
			until(lambda: hapax.call("GET", "/readyz")[0] == 200, "it is there again")
			run = start("after")
			first.until("document.querySelector('button.live.live')", "the page is live again")
			first.shows(run)
			second.shows(run)
			first.close()
			second.until("document.querySelector('button.live.live')")
			second.shows(start("alone"))
			again.send_signal(15)
			assert again.wait(30) == 0, "open pages do not keep it from stopping"
		finally:
			again.kill()
			again.wait()
			again.stdout.close()
		assert not second.violations() and not second.complaints, second.complaints


def test_a_batch_is_cancelled_though_the_server_dies(dir):
	"""Pressed, and killed in the middle: nobody knows, pressed again it is done once, and all the money is back."""
	with scenes.World() as world, scenes.serve(dir, world) as hapax, browser.Browser() as chromium:
		ask = lambda method, path, body=None: hapax.json(method, "/api/v1/" + path, body)
		ask("POST", "accounts", {"id": "alice", "balance": 1000})
		batch = ask("POST", "batches", {"workflow": "film", "account": "alice", "items": [{"input": {}, "cost": 5}] * 12})["id"]
		until(lambda: ask("GET", f"batches/{batch}")["running"] > 0, "it is under way")
		page = chromium.page(f"http://127.0.0.1:{hapax.port}/#/batches/{batch}")
		be_still(page)
		page.click(".actions button", "cancel")
		page.shows("goes back to alice")
		hapax.process.send_signal(19)  # it takes the request, and never answers
		os.waitpid(hapax.process.pid, os.WUNTRACED)  # until all of its threads stand still, one of them may answer
		page.js("document.querySelector('form.panel button:not([type])').click()")
		time.sleep(0.3)
		hapax.process.kill()
		hapax.process.wait()
		page.until("document.querySelector('form.panel .note.bad')?.textContent.includes('No answer came.')", "the page says that it does not know")
		again = serve_at(dir, hapax.port)
		try:
			world.go.set()
			until(lambda: hapax.call("GET", "/readyz")[0] == 200, "it is there again")
			page.js("document.querySelector('form.panel button:not([type])').click()")
			page.until("document.querySelector('form.panel .note.good, form.panel .note.warn')", "it is done")
			until(lambda: ask("GET", f"batches/{batch}")["status"] == "CANCELLED", "the batch is torn down")
			keys = {r["headers"]["Idempotency-Key"] for r in page.requests if r["method"] == "POST"}
			assert len(keys) == 1, keys
			assert ask("GET", "accounts/alice")["balance"] == 1000
			page.press("r")
			page.shows("CANCELLED")
		finally:
			again.kill()
			again.wait()
			again.stdout.close()
		assert not page.violations() and not page.complaints, page.complaints


def test_who_was_lost_is_told_from_who_let_go(dir):
	"""A node dies with a run: the lease after it is one that was taken over. What was given to a worker, and came back, is not."""
	with scenes.World() as world, scenes.serve(dir, world) as hapax, browser.Browser() as chromium:
		ask = lambda method, path, body=None: hapax.json(method, "/api/v1/" + path, body)
		ask("PUT", "definitions/long", scenes.run("long", {"slow": scenes.http_action(world, "/slow", effect="keyed", timeout="10m")}, [scenes.task("wait", "slow")]))
		ask("PUT", "definitions/pack", scenes.run("pack", {"pack": {"kind": "worker", "queue": "pack"}}, [scenes.task("pack", "pack")]))
		long, packing = (ask("POST", "workflow-runs", {"definitionId": d})["run"]["id"] for d in ("long", "pack"))
		(job,) = until(lambda: ask("POST", "jobs/claim", {"queues": ["pack"], "owner": "<i>ann</i>", "max": 1, "leaseMs": 60000})["jobs"], "its job")
		page = chromium.page(f"http://127.0.0.1:{hapax.port}/#/runs/{packing}")
		page.shows("leased by <i>ann</i>")
		page.click(".waterfall a", "its job")
		page.until(f"location.hash == '#/jobs/{job['id']}' && [...document.querySelectorAll('.history [data-name=node]')].some(e => e.textContent.endsWith(' for <i>ann</i>'))", "who got it, and when")
		ask("POST", f"jobs/{job['id']}/complete", {"owner": "<i>ann</i>", "fence": job["fence"]})
		until(lambda: ask("GET", f"workflow-runs/{packing}")["status"] == "COMPLETED", "it is packed")
		assert until(lambda: ask("GET", f"workflow-runs/{long}")["owner"], "a node has it") == ask("GET", "vitals")["node"]
		hapax.process.kill()
		hapax.process.wait()
		world.go.set()
		again = serve_at(dir, hapax.port)
		try:
			until(lambda: ask("GET", f"workflow-runs/{long}")["status"] == "COMPLETED", "it is done by the next one")
			for run, words in ((long, "taken 2 times, 1 taken over"), (packing, "taken 2 times")):
				at(page, f"runs/{run}")
				page.until(f"[...document.querySelectorAll('.leases .quiet')].some(e => e.innerText.replace(/\\s+/g, ' ') == {json.dumps(words)})", words)
			calm(page)
		finally:
			again.kill()
			again.wait()
			again.stdout.close()


def test_open_pages_cost_a_push_nothing(dir):
	with server.Server(dir, "serve", "--db", "sqlite:h.db") as hapax:
		def push():
			began = time.monotonic()
			for i in range(20):
				hapax.json("POST", "/api/v1/jobs", [{"queue": "q"}] * 50, status=201)
			return time.monotonic() - began
		push()
		alone = push()
		pages = [hapax.open() for _ in range(200)]
		for page in pages:
			page.sendall(b"GET /api/v1/changes HTTP/1.1\r\nHost: localhost\r\n\r\n")
		texts = [b""] * len(pages)
		began = time.monotonic()

		def hear(enough):
			for i, page in enumerate(pages):
				while not enough(texts[i]):
					piece = page.recv(65536)
					assert piece, "the stream has ended"
					texts[i] += piece
		hear(lambda text: text.count(b"data: ") >= 1)
		before = push()
		hear(lambda text: text.count(b"data: ") >= 2 and text.endswith(b"\r\n"))
		events = max(text.count(b"data: ") for text in texts)
		took = time.monotonic() - began
		print(f"# 1000 jobs pushed in {alone:.2f} s alone, {before:.2f} s before 200 open pages, each of which heard {events} events")
		assert events <= 2 * took + 4, f"{events} events in {took} s"
		assert took < 30, f"a push was told after {took} s: not by itself, but by what came later"
		marks = [re.findall(rb"data: (\S+)", text) for text in texts]
		assert all(m[0].split(b"-")[0] == marks[0][0].split(b"-")[0] for m in marks) and all(b"id: " + m[-1] in t for m, t in zip(marks, texts))
		for page in pages:
			page.close()
		hapax.stop()


def test_the_chain_is_verified_in_the_browser(dir):
	import sqlite3
	with scenes.World() as world, scenes.serve(dir, world) as hapax, browser.Browser() as chromium:
		run = hapax.json("POST", "/api/v1/workflow-runs", {"definitionId": "refund"})["run"]["id"]
		until(lambda: hapax.json("GET", f"/api/v1/workflow-runs/{run}")["status"] == "FAILED", "the run has failed")
		rows = hapax.json("GET", f"/api/v1/history/{run}")["items"]
		page = chromium.page(f"http://127.0.0.1:{hapax.port}/#/runs/{run}")
		page.click(".proof button", "verify the chain")
		page.shows(f"All {len(rows)} rows are what was written")
		page.shows(rows[-1]["hash"])
		with sqlite3.connect(dir / "h.db", timeout=30) as store:
			store.execute("UPDATE hx_history SET node = 'elsewhere' WHERE seq = 2")
		store.close()
		page.click(".proof button", "verify the chain")
		page.shows("Row 2 is not what was written")
		# for a time range: what holds is counted, what does not is named
		other = hapax.json("POST", "/api/v1/workflow-runs", {"definitionId": "parcel"})["run"]["id"]
		hapax.json("POST", "/api/v1/entities/invoice", {"id": "inv-1", "data": {}})
		at(page, "proof")
		page.click("main button", "verify")
		page.shows("One does not hold.")
		assert page.js("[...document.querySelectorAll('main tbody tr')].map(r => r.textContent)") == [f"{run}Row 2 is not what was written: its hash is another."]
		page.until("[...document.querySelectorAll('.sum')].some(e => e.innerText.endsWith('rows of 3 histories'))", "all were verified")
		with sqlite3.connect(dir / "h.db", timeout=30) as store:
			store.execute("UPDATE hx_history SET node = (SELECT node FROM hx_history WHERE seq = 1 LIMIT 1) WHERE seq = 2")
		store.close()
		page.click("main button", "verify")
		page.shows("All of it holds.")
		with sqlite3.connect(dir / "h.db", timeout=30) as store:
			store.execute("UPDATE hx_subject SET status = 'COMPLETED' WHERE status = 'FAILED'")
		store.close()
		page.click("main button", "verify")
		page.shows("It is COMPLETED, and its history ends with FAILED.")
		at(page, "proof?from=yesterday-ish")
		page.click("main button", "verify")
		page.shows("is no time")
		calm(page)
		# of an entity, too; and all of it as a file that is checked elsewhere
		hapax.json("POST", "/api/v1/entities/invoice", {"id": "a:b/c <i>", "data": {}})
		page.downloads(dir)
		at(page, "entities/invoice/" + urllib.parse.quote("a:b/c <i>", safe=""))
		page.click(".proof button", "verify the chain")
		page.shows("One row is what was written")
		page.click(".proof button", "download the evidence")
		page.shows("hapax audit --bundle FILE")
		file = until(lambda: list(dir.glob("evidence-*.json")), "the file")[0]
		assert file.name == "evidence-entity_invoice_a_b_c_i_.json", file.name
		audit = lambda: subprocess.run([server.HAPAX, "audit", "--bundle", file.name], cwd=dir, capture_output=True, text=True)
		until(lambda: audit().returncode == 0, "the evidence is whole")
		assert json.loads(file.read_text())["subject"]["head"] in page.text()
		file.write_text(file.read_text().replace("draft", "drift", 1))
		assert audit().returncode == 1
		calm(page)


def test_attacks(dir):
	"""What a page of elsewhere, another program on this machine, or a stolen piece of a session can do: nothing."""
	with scenes.World() as world, scenes.serve(dir, world) as hapax:
		open_run = hapax.json("POST", "/api/v1/workflow-runs", {"definitionId": "parcel"})["run"]["id"]
		here, there = f"127.0.0.1:{hapax.port}", "http://evil.example"

		def ask(method, path, *headers, host=here):
			head = "".join(f"{name}: {value}\r\n" for name, value in headers)
			status, fields, body = hapax.raw(f"{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nContent-Length: 0\r\n{head}\r\n".encode())
			return status, fields, body

		def expect(what, status, *asked, **more):
			got, head, body = ask(*asked, **more)
			assert got == status, f"{what}: {got}, not {status}: {body[:300]}"
			assert "access-control-allow" not in head.lower(), f"{what}: another origin may read it"
			return head

		cancel = f"/api/v1/workflow-runs/{open_run}/cancel"
		# without keys
		expect("DNS rebinding, reading", 403, "GET", "/api/v1/attention", host="evil.example")
		expect("DNS rebinding, writing", 403, "POST", cancel, host="evil.example")
		expect("a page of elsewhere posts a form", 403, "POST", cancel, ("Origin", there))
		expect("a page that hides its origin", 403, "POST", cancel, ("Origin", "null"))
		expect("a page of elsewhere, by the browser's own word", 403, "POST", cancel, ("Sec-Fetch-Site", "cross-site"))
		expect("it asks what it may (preflight)", 405, "OPTIONS", cancel, ("Origin", there), ("Access-Control-Request-Method", "POST"))
		head = expect("a picture of a workflow as a page", 200, "GET", "/api/v1/definitions/order/graph")
		assert "default-src 'none'" in head and "sandbox" in head and "script-src" not in head, head
		assert hapax.json("GET", f"/api/v1/workflow-runs/{open_run}")["status"] in ("PENDING", "RUNNING", "WAITING")

		# with keys
		key, id = make_key(dir, "admin", "default")
		make_key(dir, "read", "default")
		until(lambda: ask("GET", "/api/v1/attention")[0] == 401, "keys are wanted")
		bearer = ("Authorization", f"Bearer {key}")
		own = ("Origin", f"http://{here}")
		head = expect("a session", 200, "POST", "/api/v1/session", bearer, own)
		(set_cookie,) = [line.split(": ", 1)[1] for line in head.split("\r\n") if line.lower().startswith("set-cookie")]
		assert "; HttpOnly; SameSite=Strict;" in set_cookie and "Domain" not in set_cookie and "Path" not in set_cookie, set_cookie
		value = set_cookie.split(";")[0]
		cookie = ("Cookie", f"theme=dark; {value}; other=1")
		expect("the session reads", 200, "GET", "/api/v1/attention", cookie)
		expect("the session, by the browser's word", 200, "GET", "/api/v1/attention", cookie, ("Sec-Fetch-Site", "same-origin"))
		expect("CSRF: no origin at all", 403, "POST", cancel, cookie)
		expect("CSRF: a form of elsewhere", 403, "POST", cancel, cookie, ("Origin", there))
		expect("CSRF: an origin that is hidden", 403, "POST", cancel, cookie, ("Origin", "null"))
		expect("CSRF: another port of this machine", 403, "POST", cancel, cookie, ("Origin", "http://127.0.0.1:1"))
		expect("CSRF: the same, by the browser's word", 403, "POST", cancel, cookie, own, ("Sec-Fetch-Site", "same-site"))
		expect("CSRF: two origins", 403, "POST", cancel, cookie, own, ("Origin", there))
		expect("CSRF: an address that was typed posts nothing", 403, "POST", cancel, cookie, ("Sec-Fetch-Site", "none"))
		expect("another page reads with the session", 403, "GET", "/api/v1/attention", cookie, ("Sec-Fetch-Site", "cross-site"))
		expect("login by another page", 403, "POST", "/api/v1/session", bearer, ("Origin", there))
		expect("logout by another page", 403, "DELETE", "/api/v1/session", cookie, ("Origin", there))
		for what, text in (("a bit of its mac", value[:-1] + ("0" if value[-1] != "0" else "1")), ("a longer life", value[:35] + "9" + value[36:]), ("nothing", "hapax_session="), ("a key in its place", f"hapax_session={key}")):
			if text != value:
				expect(f"a forged session: {what}", 401, "GET", "/api/v1/attention", ("Cookie", text))
		expect("a session where a key belongs", 401, "GET", "/api/v1/attention", ("Authorization", f"Bearer {value.split('=')[1]}"))
		expect("a session for a session", 200, "POST", "/api/v1/session", cookie, own)
		assert "set-cookie" not in expect("and it gets no longer", 200, "POST", "/api/v1/session", cookie, own).lower()
		assert "; Secure" in expect("behind TLS it is never sent in the clear", 200, "POST", "/api/v1/session", bearer, own, ("X-Forwarded-Proto", "https"))
		assert "no-store" in expect("caches keep nothing of it", 200, "GET", "/api/v1/session", cookie)
		run = ask("GET", f"/api/v1/workflow-runs/{open_run}", bearer)[2]
		assert json.loads(run)["status"] in ("PENDING", "RUNNING", "WAITING"), "nobody has cancelled it"
		expect("our own page does", 200, "POST", cancel, cookie, own)
		subprocess.run([server.HAPAX, "key", "revoke", id, "--db", "sqlite:h.db"], cwd=dir, check=True, capture_output=True)
		until(lambda: ask("GET", "/api/v1/attention", cookie)[0] == 401, "the session ends with its key")
		# strangers' pages cannot frame it or read its files
		_, fields, _ = head_of(hapax, "/")
		assert "frame-ancestors 'none'" in fields["content-security-policy"][0] and fields["cross-origin-resource-policy"] == ["same-origin"]


def test_ten_thousand_rows(dir):
	"""They are all there, only those that are seen are drawn, and scrolling through them does not stand still."""
	with server.Server(dir, "serve", "--db", "sqlite:h.db") as hapax, browser.Browser() as chromium:
		for _ in range(10):
			hapax.json("POST", "/api/v1/jobs", [{"queue": "q"}] * 1000, status=201)
		page = chromium.page(f"http://127.0.0.1:{hapax.port}/#/jobs")
		be_still(page)
		page.until("document.querySelector('.counts a')?.innerText.replace(/\\s/g, ' ') == 'AVAILABLE 5 000+'", "at least so many")
		page.click("button", "all of them")
		page.until("document.querySelector('.pager')?.textContent.startsWith('10\u202f000 shown')", "all of them")
		first = page.js("document.querySelector('tr[data-row] a').textContent")
		drawn = page.js("document.querySelectorAll('tr[data-row]').length")
		assert drawn < 400, drawn
		page.js("window.longest = 0, new PerformanceObserver(l => l.getEntries().forEach(e => (window.longest = Math.max(longest, e.duration)))).observe({type: 'longtask'})")
		for part in (0.25, 0.5, 1):
			page.js(f"(e => e.scrollTop = e.scrollHeight * {part})(document.scrollingElement)")
			page.until(f"[...document.querySelectorAll('tr[data-row]')].some(r => (b => b.top > 0 && b.bottom < innerHeight)(r.getBoundingClientRect()) && r.dataset.row >= {int(10000 * part) - 100})", f"rows at {part}")
			assert page.js("document.querySelectorAll('tr[data-row]').length") < 400
		print(f"# the longest task while scrolling: {page.js('Math.round(longest)')} ms")
		page.js("scrollTo(0, 0)")
		page.until(f"document.querySelector('tr[data-row] a').textContent == {json.dumps(first)}", "the first again")
		page.js("document.scrollingElement.scrollTop = document.scrollingElement.scrollHeight")
		page.until("document.querySelector('tr[data-row=\"9999\"]')", "the last")
		page.click("summary", "columns")
		page.click(".columns-menu input")
		page.until("!document.querySelector('th:nth-child(2)').textContent.includes('queue') && location.hash.includes('hide=queue')", "without the queue")
		calm(page)


if PG:
	def test_held_requests_of_a_gate(dir):
		"""A gate that keeps its records in the server's store: what it holds is in the inbox, and is resolved there and on its page."""
		evil = "k-<b>3</b>"
		with Store("postgres") as store, scenes.World() as world, scenes.serve(dir, world, store.url) as hapax, browser.Browser() as chromium:
			server.write(dir / "gate.json", {"upstream": world.url, "store": store.url, "name": "shop", "on_lost": "hold", "processing_ttl": "1s", "upstream_timeout": "900ms"})
			with server.Server(dir, "gate", "--config", "gate.json") as gate:
				for key in ("k-1", "k-2", evil):
					status, _, text = gate.call("POST", "/vanish", b"{}", [("Idempotency-Key", key)])
					assert status in (502, 504), (status, text)
				assert gate.call("POST", "/ok", b"{}", [("Idempotency-Key", "k-fine")])[0] == 200
				records = lambda query: hapax.json("GET", "/api/v1/gate/records" + query)["items"]
				until(lambda: len(records("?held=true")) == 3, "they are held")
				assert {r["status"] for r in records("")} == {"held", "completed"} and [r["gate"] for r in records("?key=k-fine")] == ["shop"]
				page = chromium.page(f"http://127.0.0.1:{hapax.port}/")
				be_still(page)
				page.shows("Request held")
				page.until("document.querySelector('.badge')?.textContent == '3'", "they are counted")
				page.shows(evil)
				assert "done" in done(page, "done", "it was done", within=inbox_item(page, "k-1"))
				assert gate.call("POST", "/vanish", b"{}", [("Idempotency-Key", "k-1")])[2].find(b"RESPONSE_NOT_STORED") > 0
				at(page, "gate?held=true")
				page.until("document.querySelectorAll('tr[data-row]').length == 2")
				page.js("[...document.querySelectorAll('tr[data-row]')].find(r => r.textContent.includes('k-2')).id = 'row'")
				# somebody else was faster: the loser is told
				(two,) = records("?key=k-2")
				hapax.json("POST", f"/api/v1/gate/records/{two['record']}/resolve", {"outcome": "not_done"})
				said = press(page, "done", "it was done", within="#row")
				assert "there is no such record" in said or "Nothing was done" in said, said
				at(page, "gate")
				page.shows("k-fine")
				if PICTURES:
					for dark in (False, True):
						page.dark(dark)
						page.picture(pathlib.Path(PICTURES) / f"gate-records{'-dark' if dark else ''}.png", whole=True)
					page.size(400, 800)
					page.picture(pathlib.Path(PICTURES) / "gate-records-400.png", whole=True)
				calm(page)
				# they are of no workspace: nobody else's
				shop, other = make_key(dir, "admin", "shop", store.url)[0], make_key(dir, "execute", "default", store.url)[0]
				mine = make_key(dir, "admin", "default", store.url)[0]
				until(lambda: hapax.call("GET", "/api/v1/attention")[0] == 401, "keys are wanted")
				ask = lambda key, method, path: hapax.call(method, "/api/v1/gate/records" + path, b'{"outcome":"done"}' if method == "POST" else b"", [("Authorization", f"Bearer {key}")])[0]
				assert [ask(k, "GET", "") for k in (shop, other, mine)] == [403, 403, 200]
				assert [ask(k, "POST", f"/{two['record']}/resolve") for k in (shop, other, mine)] == [403, 403, 404]
				assert ask(mine, "POST", "/nonsense/resolve") == 400


def test_lists_are_of_ones_own_workspace(dir):
	with scenes.World() as world, scenes.serve(dir, world) as hapax:
		shop, other = make_key(dir, "admin", "shop")[0], make_key(dir, "read", "other")[0]
		until(lambda: hapax.call("GET", "/api/v1/attention")[0] == 401, "keys are wanted")
		ask = lambda key, path, body=None: hapax.json("POST" if body else "GET", "/api/v1/" + path, body, headers=[("Authorization", f"Bearer {key}")])
		ask(shop, "functions/claim", {"worker": "w", "functions": [{"name": "greet", "version": "1"}], "waitMs": 0})
		ask(shop, "jobs", {"queue": "secret-queue"})
		bulk = ask(shop, "bulk", {"verb": "cancel", "kind": "run", "where": 'key == "none"'})["id"]
		assert [f["name"] for f in ask(shop, "functions")["items"]] == ["greet"] and [b["id"] for b in ask(shop, "bulk")["items"]] == [bulk]
		assert ask(other, "functions")["items"] == [] == ask(other, "bulk")["items"]
		until(lambda: "secret-queue" in json.dumps(ask(shop, "vitals")), "what is due is counted")
		assert "secret-queue" not in json.dumps(ask(other, "vitals"))
		assert hapax.call("GET", "/api/v1/vitals")[0] == 401


def test_a_server_elsewhere(dir):
	"""hapax dashboard: the pages here, the API there, the key in between; and what attackers try with it."""
	with scenes.World() as world, scenes.serve(dir, world) as hapax, browser.Browser() as chromium:
		key, id = make_key(dir, "admin", "default")
		bearer = [("Authorization", f"Bearer {key}")]
		until(lambda: hapax.call("GET", "/api/v1/attention")[0] == 401, "keys are wanted")
		run = hapax.json("POST", "/api/v1/workflow-runs", {"definitionId": "refund"}, headers=bearer)["run"]["id"]
		until(lambda: hapax.json("GET", f"/api/v1/workflow-runs/{run}", headers=bearer)["status"] == "FAILED", "the run has failed")
		there = f"http://127.0.0.1:{hapax.port}"
		start = lambda *args, **env: subprocess.Popen([server.HAPAX, "dashboard", "--server", there, *args], cwd=dir, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
			env={**{k: v for k, v in os.environ.items() if not k.startswith("HAPAX_")}, **env})
		for code, words, args, env in ((77, "API key", ["--listen", "127.0.0.1:0"], {}), (78, "this machine alone", ["--listen", "0.0.0.0:0"], {"HAPAX_KEY": key}), (69, "", ["--listen", "127.0.0.1:0", "--server", "http://127.0.0.1:1"], {})):
			process = start(*args, **env)
			_, said = process.communicate(timeout=60)
			assert process.returncode == code and words in said.decode(), (args, process.returncode, said)
		process = start("--listen", "127.0.0.1:0", HAPAX_KEY=key)
		try:
			url = process.stdout.readline().decode().split()[1]
			token = re.fullmatch(r"http://127\.0\.0\.1:\d+/([0-9a-f]{32})/", url)[1]
			page = chromium.page(url)
			page.shows("Run failed")
			be_still(page)
			done(page, "retry", "retry", {"reason": "from afar"}, within=inbox_item(page, run))
			rows = hapax.json("GET", f"/api/v1/history/{run}", headers=bearer)["items"]
			assert "from afar" in [row["reason"] for row in rows]
			at(page, "workflows/order")
			page.until("document.images.length && document.images[0].complete && document.images[0].naturalWidth > 100", "the picture")
			calm(page)
			assert not page.ask("Network.getCookies", urls=[url])["cookies"]
			assert key not in page.js("document.documentElement.outerHTML")

			port = int(url.split(":")[2].split("/")[0])
			near = server.Server.__new__(server.Server)
			near.port = port
			own = ("Origin", f"http://127.0.0.1:{port}")

			def expect(what, status, method, path, *headers, host=f"127.0.0.1:{port}"):
				lines = "".join(f"{name}: {value}\r\n" for name, value in headers)
				got, head, body = near.raw(f"{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nContent-Length: 0\r\n{lines}\r\n".encode())
				assert got == status, f"{what}: {got}, not {status}: {body[:300]}"
				assert "set-cookie" not in head.lower() and "access-control" not in head.lower(), (what, head)
				return body
			api = f"/{token}/api/v1/"
			cancel = api + f"workflow-runs/{run}/cancel"
			expect("the page", 200, "GET", f"/{token}/")
			expect("a file", 200, "GET", f"/{token}/ui/app.js")
			expect("it reads", 200, "GET", api + "attention")
			expect("without the token", 404, "GET", "/api/v1/attention")
			expect("with another token", 404, "GET", f"/{'0' * 32}/api/v1/attention")
			expect("with a part of it", 404, "GET", f"/{token[:-1]}/api/v1/attention")
			expect("what is no part of the API", 404, "GET", f"/{token}/metrics")
			expect("DNS rebinding", 403, "GET", api + "attention", host="evil.example")
			expect("a page of elsewhere", 403, "GET", api + "attention", ("Sec-Fetch-Site", "cross-site"))
			expect("another port of this machine", 403, "GET", api + "attention", ("Sec-Fetch-Site", "same-site"))
			expect("CSRF: no origin", 403, "POST", cancel)
			expect("CSRF: another origin", 403, "POST", cancel, ("Origin", "http://evil.example"))
			expect("CSRF: another port", 403, "POST", cancel, ("Origin", "http://127.0.0.1:1"))
			expect("a login gives no cookie", 200, "POST", api + "session", own)
			expect("a key of the page's is not passed on", 200, "GET", api + "attention", ("Authorization", "Bearer hx_nonsense"))
			expect("the page itself", 200, "POST", cancel, own)
			hapax.process.kill()
			hapax.process.wait()
			expect("it is not there any more", 502, "GET", api + "attention")
			process.send_signal(15)
			assert process.wait(30) == 0
		finally:
			process.kill()
			process.wait()
			process.stdout.close()
			process.stderr.close()


def test_what_is_passed_on(dir):
	"""Of a request to hapax dashboard the server elsewhere gets what the API reads, and nothing else."""
	subprocess.run([server.HAPAX, "db", "migrate", "--db", "sqlite:h.db"], cwd=dir, check=True, capture_output=True)
	key, _ = make_key(dir, "admin", "default")
	with server.Service() as service:
		service.fields = {"Set-Cookie": "a=b", "ETag": '"7"', "Server": "x"}
		process = subprocess.Popen([server.HAPAX, "dashboard", "--server", service.url, "--workspace", "shop", "--listen", "127.0.0.1:0"], cwd=dir, stdout=subprocess.PIPE, env={**os.environ, "HAPAX_KEY": key})
		try:
			url = process.stdout.readline().decode().split()[1]
			host, token = url.split("/")[2:4]
			near = server.Server.__new__(server.Server)
			near.port = int(host.split(":")[1])
			body = b'{"a": 12345678901234567890}'
			status, head, text = near.raw(f"POST /{token}/api/v1/jobs/x%2Fy?a=%20b HTTP/1.1\r\nHost: {host}\r\nOrigin: http://{host}\r\nReferer: {url}\r\nCookie: hapax_session=stolen\r\nAuthorization: Bearer hx_other\r\n"
				f"Hapax-Workspace: another\r\nX-Forwarded-For: 1.2.3.4\r\nIdempotency-Key: k-1\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
			assert status == 200 and text == b"{}" and 'etag: "7"' in head.lower() and "set-cookie" not in head.lower(), (head, text)
			path, headers, sent = service.calls[-1]
			assert path == "/api/v1/jobs/x%2Fy?a=%20b" and sent == body, service.calls[-1]
			assert set(headers) == {"host", "authorization", "content-length", "hapax-workspace", "idempotency-key", "content-type"}, headers
			assert headers["authorization"] == f"Bearer {key}" and headers["host"] in service.url and headers["hapax-workspace"] == "shop", headers
		finally:
			process.terminate()
			assert process.wait(30) == 0
			process.stdout.close()


server.run(globals())
END2
