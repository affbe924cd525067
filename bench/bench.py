#!/usr/bin/env python3
"""bench.py : the whole benchmark from beginning to end; `make bench` runs it through tests/with-postgres.

Runs the scripts beside it one after the other, shows what they print, keeps every number they measure, and writes
build/bench/report.html and build/bench/raw.json. A script that fails is said on the page, and the next one is run.

  SIZE=0.1     everything a tenth as long (default 1)
  ROUNDS=1     so many rounds (default 3; the median counts)
  PARTS=gate   only these scripts
  --page FILE  only the page, out of a raw.json that is there
"""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys

sys.path.insert(0, os.path.dirname(__file__))
import machine  # noqa: E402
import page  # noqa: E402

PARTS = ("run", "gate", "calls", "runs", "batches", "start")
# What the scripts take from the environment, at SIZE 1, and what is the least that still measures something.
SIZES = {"SQLITE_MOVES": (150000, 4000), "PG_MOVES": (100000, 4000), "GATE_REQUESTS": (40000, 1000), "RUNS": (30000, 640),
         "JOBS": (50000, 2000), "CALLS": (40000, 1000), "PICKUPS": (200, 10), "LANE_MOVES": (150000, 4000)}
BATCHES = (1000, 10000, 100000)


def sizes(share):
    env = {name: str(max(least, int(full * share))) for name, (full, least) in SIZES.items()}
    env["SIZES"] = " ".join(str(max(100, int(n * share))) for n in BATCHES)
    return env


def read_results(folder):
    """Of one script: the numbers of each name, a list for each round, and the verdicts."""
    results, verdicts = {}, []
    for file in sorted(folder.iterdir()):
        lines = file.read_text().splitlines()
        if file.name == "verdicts":
            for words, value, sense, bar in (line.split("\t") for line in lines):
                verdicts.append({"words": words, "value": float(value), "sense": sense, "bar": float(bar) if bar else None})
        else:
            results[file.name] = [[float(n) for n in line.split()] for line in lines]
    return {"results": results, "verdicts": verdicts}


def run_part(part, env):
    """Its exit code. However this ends, the script and what it started have ended before."""
    script = subprocess.Popen([f"bench/{part}.sh"], env=env, start_new_session=True)
    try:
        return script.wait()
    except KeyboardInterrupt:
        os.killpg(script.pid, signal.SIGTERM)
        script.wait()
        raise


def measure(build, out):
    watch = machine.Watch()
    share = float(os.environ.get("SIZE", "1"))
    parts = os.environ.get("PARTS", " ".join(PARTS)).split()
    raw = {"machine": machine.describe(build, out), "size": share, "rounds": int(os.environ.get("ROUNDS", "3")),
           "parts": {}, "failed": []}
    env = {**sizes(share), **os.environ, "BENCH_RAW": str(out / "raw")}
    for part in parts:
        if share < 1 and part == "start" and "ROUNDS" not in os.environ:
            env["ROUNDS"] = "5"
        if run_part(part, env):
            raw["failed"].append(part)
        folder = out / "raw" / part
        raw["parts"][part] = read_results(folder) if folder.is_dir() else {"results": {}, "verdicts": []}
    raw["seconds"] = watch.seconds()
    return raw


class Numbers:
    """The medians of a part's results, by name and column; None where there is none."""

    def __init__(self, raw, part):
        self.results = raw["parts"].get(part, {}).get("results", {})

    def get(self, name, column=0):
        rounds = self.results.get(name)
        return page.median([r[column] for r in rounds]) if rounds else None

    def row(self, label, name, reference, ours=True):
        """A bar: this result over that one, round by round."""
        rounds, others = self.results.get(name), self.results.get(reference)
        if not rounds or not others:
            return []
        ratios = [a[0] / b[0] for a, b in zip(rounds, others)]
        middle = page.median(ratios)
        return [{"label": label, "value": middle, "low": min(ratios), "high": max(ratios), "ours": ours, "text": f"{middle:.2f}"}]


def store_rows(raw):
    numbers, rows = Numbers(raw, "run"), []
    for store in ("sqlite", "postgres"):
        for callers in (64, 512):
            reference = f"{store}.{callers}.raw"
            lanes = sorted(n for n in numbers.results if n.startswith(f"{store}.{callers}.lane"))
            if reference not in numbers.results:
                continue
            rows.append({"label": f"{'SQLite' if store == 'sqlite' else 'PostgreSQL'}, {callers} callers"})
            rows += numbers.row("the bare store", reference, reference, ours=False)
            for lane in lanes:
                count = lane.rsplit("lane", 1)[1]
                rows += numbers.row(f"the engine, {count} lanes" if count else "the engine", lane, reference)
    return rows


def gate_rows(raw):
    names = (("ceiling.echo", "raw echo, hardly reading", False), ("echo", "our HTTP server, plain echo", True),
             ("ceiling.record", "raw: a gate record, synced", False), ("ceiling.entity", "raw: with the rows of an entity", False),
             ("api.plain", "API, created without a key", True), ("api.created", "API, created with a key", True),
             ("api.replayed", "API, replayed", True), ("proxy.bare", "gate, passing through", True),
             ("proxy.created", "gate, created", True), ("proxy.replayed", "gate, replayed", True))
    numbers, rows = Numbers(raw, "gate"), []
    for connections in (64, 256):
        found = [r for name, words, ours in names for r in numbers.row(words, f"{name}.{connections}", f"echo.{connections}", ours)]
        rows += [{"label": f"{connections} connections"}] + found if found else []
    return rows


def jobs_rows(raw):
    names = (("push", "jobs pushed one by one"), ("push.bulk", "jobs pushed 100 at a time"), ("deliver", "drained by the dispatcher"),
             ("claim", "claimed from a queue, in process"), ("workers", "drained by 64 workers over HTTP"))
    numbers, rows = Numbers(raw, "runs"), []
    for store, title in (("sqlite", "SQLite"), ("postgres", "PostgreSQL")):
        found = [r for name, words in names for r in numbers.row(words, f"{store}.{name}", f"{store}.lane")]
        rows += [{"label": f"{title}: of its own lane's transitions"}] + found if found else []
    return rows


def runs_lines(raw):
    numbers, under_way = Numbers(raw, "runs"), (1, 16, 64, 256)
    series = [(s, [numbers.get(f"{s}.runs.{n}") for n in under_way]) for s in ("sqlite", "postgres")]
    unit = next((v[0] for _, v in series if v[0]), None)
    if not unit:
        return ""
    return page.line_plot(under_way, [
        {"label": {"sqlite": "SQLite", "postgres": "PostgreSQL"}[s], "values": [v / unit if v else None for v in values], "ours": True,
         "text": page.times(values[-1] / unit) if values[-1] else ""} for s, values in series],
        "runs under way", f"runs per second, against {'SQLite' if series[0][1][0] else 'PostgreSQL'} with one under way")


def call_lines(raw):
    numbers = Numbers(raw, "calls")
    under_way = sorted(int(n.rsplit(".", 1)[1]) for n in numbers.results if n.startswith("calls."))
    values = [numbers.get(f"calls.{n}") for n in under_way]
    if not values:
        return ""
    series = {"label": "an http call", "values": [v / values[0] for v in values], "ours": True, "text": page.times(values[-1] / values[0])}
    return page.line_plot(under_way, [series], "calls under way", f"CPU of one call, against one with {under_way[0]} under way")


def batch_lines(raw):
    numbers = Numbers(raw, "batches")
    sizes_found = sorted({int(n.rsplit(".", 1)[1]) for n in numbers.results if ".work." in n})
    series = []
    for store in ("sqlite", "postgres"):
        for what in ("load", "work", "teardown"):
            values = [numbers.get(f"{store}.{what}.{n}") for n in sizes_found]
            if values and all(values):
                series.append({"label": f"{what}, {store}", "values": [v / values[0] for v in values], "ours": store == "sqlite",
                               "text": page.times(values[-1] / values[0])})
    return page.line_plot(sizes_found, series, "items in the batch", "cost of one item, against one of the smallest batch") if series else ""


def verdict_rows(raw):
    rows = []
    for part in raw["parts"].values():
        for v in part["verdicts"]:
            if v["bar"] is not None:
                sense = "at least" if v["sense"] == "least" else "at most"
                rows.append({"label": v["words"], **{k: v[k] for k in ("value", "sense", "bar")},
                             "text": f"{page.plain(v['value'])} ({sense} {page.plain(v['bar'])})"})
    return rows


def tiles(raw):
    run, gate, runs = Numbers(raw, "run"), Numbers(raw, "gate"), Numbers(raw, "runs")

    def tile(numbers, name, reference, words, small):
        rows = numbers.row("", name, reference)
        return (rows[0]["value"] if rows else None, words, small)

    return [tile(run, "sqlite.64.lane", "sqlite.64.raw", "of bare SQLite", "transitions of the engine, 64 callers"),
            tile(gate, "api.replayed.64", "echo.64", "of a plain echo", "the API's replay of a key, 64 connections"),
            tile(gate, "proxy.created.64", "proxy.bare.64", "of passing through", "the gate with a new key, 64 connections"),
            tile(runs, "sqlite.runs.256", "sqlite.runs.1", "with 256 under way", "runs of three steps on SQLite, against one under way")]


def make_page(raw):
    out = page.Page("Hapax, measured", machine.lead(raw["machine"], raw["seconds"]))
    if raw["failed"]:
        out.words("These parts failed and are not here, or not whole: " + ", ".join(raw["failed"]) + ".", "bad")
    for warning in machine.warnings(raw["machine"]):
        out.words(warning, "bad")
    if raw["size"] < 1:
        out.words(f"A small run, {raw['size']:g} of the usual size: it tries the scripts out, its numbers say little.", "bad")
    out.tiles(tiles(raw))
    rows = verdict_rows(raw)
    out.plot("What is asked of it", "Each number as a share of its bar. Green has reached it, red has not.", page.bullet_plot(rows) if rows else "")
    for title, words, rows in (
            ("The engine and the bare store", "Guarded transitions in a second; the bare store is 1.", store_rows(raw)),
            ("What a key costs", "Requests in a second; our own server with nothing after it is 1.", gate_rows(raw))):
        out.plot(title, words + " Thin lines: the slowest and the fastest round.", page.bar_rows(rows) if rows else "")
    out.plot("Runs of three native steps", "Created over HTTP with a key, and awaited. Both axes are logarithmic: a distance is a ratio.",
             runs_lines(raw))
    rows = jobs_rows(raw)
    out.plot("Jobs", "Jobs in a second, as a share of the transitions that a lane of that store does.", page.bar_rows(rows) if rows else "")
    out.plot("Calls to services", "A flat line: a call costs the same however many are under way.", call_lines(raw))
    out.plot("Batches", "A flat line: an item costs the same however large its batch is.", batch_lines(raw))
    out.table("All numbers, medians of this machine", ("part", "name", "median", "rounds"),
              [(part, name, f"{page.median([r[0] for r in rounds]):,.5g}", " · ".join(" ".join(f"{n:g}" for n in r) for r in rounds))
               for part, body in raw["parts"].items() for name, rounds in body["results"].items() if rounds], 2, folded=True)
    versions = ", ".join(f"{k} {v}" for k, v in raw["machine"]["versions"].items() if v)
    out.words(f"{versions}. Linux {raw['machine']['kernel']}, {raw['machine']['memory_gib']} GiB. Median of {raw['rounds']} rounds; "
              "ratios are of this run on this machine, and what they are taken from is in raw.json beside this page.")
    return out.html()


def main():
    if len(sys.argv) == 3 and sys.argv[1] == "--page":
        sys.stdout.write(make_page(json.loads(pathlib.Path(sys.argv[2]).read_text())))
        return 0
    build = pathlib.Path(os.environ["HAPAX_BUILD"])
    out = build / "bench"
    shutil.rmtree(out / "raw", ignore_errors=True)
    machine.end_on_signals()
    try:
        raw = measure(build, out)
    except KeyboardInterrupt:
        return 130
    (out / "raw.json").write_text(json.dumps(raw, indent=1) + "\n")
    (out / "report.html").write_text(make_page(raw))
    print(f"\ntook {machine.spell(raw['seconds'])}; the page is {os.path.relpath(out)}/report.html, the numbers {os.path.relpath(out)}/raw.json")
    for part in raw["failed"]:
        print(f"bench/{part}.sh FAILED")
    return 1 if raw["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
