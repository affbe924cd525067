"""entrants.py : how each who takes part in the race is started, and stopped. race.py asks them.

A Stage owns every process of one measurement and the folder it works in; whatever happens it ends them. The peers are Node
programs beside this file, copied to where npm has put their packages; ours are the programs of the build.
"""

import contextlib
import ctypes
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import time
import urllib.request

ORDER = {"sku": "a-#", "quantity": 3}
STEPS = ("reserve", "charge", "ship")
SECONDS_TO_START = 60
CLIENT = pathlib.Path(__file__).resolve().parents[2] / "clients/js"


class Failed(Exception):
    """One who takes part could not; the words are for the report."""


def die_with_parent():
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def get(url, data=None, seconds=300):
    request = urllib.request.Request(url, data=data, headers={"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=seconds) as answer:
        return json.loads(answer.read() or b"null")


class Stage:
    def __init__(self, race):
        self.race, self.processes, self.began = race, [], 0.0
        self.folder = race.out / "stage"

    def __enter__(self):
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        return self

    def __exit__(self, *_):
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def stop(self):
        for process in self.processes:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
        for process in self.processes:
            try:
                process.wait(timeout=15)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            process.stdout.close()
        self.processes = []

    def start(self, *command, env=None):
        """A process that is ended with the stage. Its log is kept beside it, for the words of a failure."""
        self.began = time.monotonic()
        with open(self.folder / "log", "ab") as log:
            process = subprocess.Popen([str(c) for c in command], env={**os.environ, "TMPDIR": str(self.folder), **(env or {})}, stdout=subprocess.PIPE,
                                       stderr=log, start_new_session=True, preexec_fn=die_with_parent)
        self.processes.append(process)
        return process

    def ready(self, *command, env=None):
        """Starts it and waits for its line "ready"; the rest of that line."""
        process = self.start(*command, env=env)
        for line in process.stdout:
            if line.startswith(b"ready"):
                return line.decode().split()[1:]
        raise Failed(self.last_words(process, command))

    def last_words(self, process, command):
        process.wait(timeout=20)
        lines = [l for l in (self.folder / "log").read_text(errors="replace").splitlines() if l.strip()]
        errors = [l for l in lines if "Error" in l or "error" in l] or lines[-1:]
        return f"{pathlib.Path(command[1] if len(command) > 1 else command[0]).name} ended with {process.returncode}: {' '.join(errors[:1])[:300]}"

    def node(self, script, *arguments):
        """A peer's program that says ready."""
        return self.ready(self.race.node(), self.race.peers / script, *arguments, env=self.race.peer_env())

    def load(self, address, connections, requests, keys, target, body, expected=None):
        """Rate, and latencies in ms: median and 99th percentile."""
        command = [self.race.build / "bench/load", address, connections, max(connections, requests), keys, target, body]
        return [float(n) for n in output_of(*command, *([expected] if expected else [])).split()]


def output_of(*command):
    """What a program of the benchmark prints."""
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, check=False, preexec_fn=die_with_parent)
    if done.returncode:
        raise Failed(" ".join(done.stderr.split())[:300] or f"{command[0]} ended with {done.returncode}")
    return done.stdout


def bare(url):
    return url.removeprefix("http://")


def write_workflow(folder, action):
    folder.mkdir(exist_ok=True)
    steps = [{"name": s, "type": "task", "action": s} for s in STEPS]
    steps[0] |= {"input": "{sku: .input.sku}", "save_as": "reservation"}
    text = {"workflow": "order", "kind": "run", "actions": {s: action(s) for s in STEPS}, "steps": steps, "output": "{reservation: .state.reservation}"}
    (folder / "order.json").write_text(json.dumps(text))


def write_after_effect(folder):
    folder.mkdir(exist_ok=True)
    step = {"step_id": 1, "step_key": "finish", "status": "open", "successful_state": "done", "success_after_effect": ["mail"]}
    text = {"workflow": "parcel", "kind": "entity", "status_types": ["open", "done"], "initial_status": "open",
            "actions": {"mail": {"kind": "native", "function": "mail", "effect": "keyed"}}, "steps": [step]}
    (folder / "parcel.json").write_text(json.dumps(text))


class Hapax:
    """Runs of three steps, on a store, with steps that are native, or http calls to a service in Node or in C."""

    ours = True

    def __init__(self, store, steps, nodes=1):
        self.store, self.steps, self.nodes = store, steps, nodes
        where = {"native": "native steps", "node": "steps in a Node service", "c": "steps in a C service"}[steps]
        self.label = f"Hapax, {'SQLite' if store == 'sqlite' else 'PostgreSQL'}{', two nodes' if nodes > 1 else ''}, {where}"
        self.needs = {"postgres"} if store == "postgres" else set()
        self.needs |= {"node"} if steps == "node" else set()

    def open(self, stage):
        self.service = None
        if self.steps == "native":
            write_workflow(stage.folder / "workflows", lambda s: {"kind": "native", "function": s, "effect": "keyed"})
        else:
            url = stage.node("service.mjs")[0] if self.steps == "node" else stage.ready(stage.race.build / "bench/raw_http", "127.0.0.1:0", "echo")[0]
            self.service = url if self.steps == "node" else None
            write_workflow(stage.folder / "workflows", lambda s: {"kind": "http", "url": f"{url}/{s}", "effect": "keyed"})
        store = f"sqlite:{stage.folder}/race.db" if self.store == "sqlite" else stage.race.fresh_database()
        self.addresses = [bare(self.start(stage, store, f"node-{n + 1}")) for n in range(self.nodes)]

    def start(self, stage, store, name):
        if self.steps == "native":
            return stage.ready(stage.race.build / "bench/run_server", store, stage.folder / "workflows", name)[0]
        return stage.ready(stage.race.build / "hapax", "serve", "--db", store, "--listen", "127.0.0.1:0", "--workflows",
                           stage.folder / "workflows", "--node", name)[0]

    def runs(self, stage, under_way, requests):
        body = json.dumps({"definitionId": "order", "input": ORDER, "idempotencyKey": f"{under_way}-{requests}-#"})
        return self.load(stage, under_way, requests, 0, body, '"status":"COMPLETED"')

    def replay(self, stage, under_way, requests, keys):
        body = json.dumps({"definitionId": "order", "input": ORDER, "idempotencyKey": "again-#"})
        return self.load(stage, under_way, requests, f"{keys}b", body, '"status":"COMPLETED"')

    def load(self, stage, under_way, requests, keys, body, expected):
        n = min(len(self.addresses), under_way)
        if n == 1:
            return stage.load(self.addresses[0], under_way, requests, keys, "/api/v1/workflow-runs?wait=30s", body, expected)
        return stage.race.both(lambda i: stage.load(self.addresses[i], under_way // n, requests // n, keys, "/api/v1/workflow-runs?wait=30s",
                                                    body.replace("#", f"{i}-#"), expected), n)

    def steps_done(self):
        return get(f"{self.service}/count")["steps"] if self.service else None


class HapaxFunction(Hapax):
    """Functions of three steps, which are code of one worker in Node: what a handler is for Restate."""

    def __init__(self, store):
        super().__init__(store, "node")
        self.label = f"Hapax, {'SQLite' if store == 'sqlite' else 'PostgreSQL'}, a function in a Node worker"

    def open(self, stage):
        store = f"sqlite:{stage.folder}/race.db" if self.store == "sqlite" else stage.race.fresh_database()
        server = stage.ready(stage.race.build / "hapax", "serve", "--db", store, "--listen", "127.0.0.1:0", "--node", "node-1")[0]
        self.addresses = [bare(server)]
        self.service = stage.node("function.mjs", server, CLIENT)[0]

    def steps_done(self):
        return super().steps_done() - len(STEPS)  # of the run by which it knew that it is ready


class Restate:
    label, ours, needs = "Restate, steps in a Node service", False, {"node", "restate"}

    def open(self, stage):
        self.control, _, service = stage.node("restate.mjs")
        self.ingress, admin = restate_server(stage)
        get(f"http://{admin}/deployments", json.dumps({"uri": service}).encode())

    def runs(self, stage, under_way, requests):
        return stage.load(self.ingress, under_way, requests, -1, "/order/process", json.dumps(ORDER), '"status":"COMPLETED"')

    def replay(self, stage, under_way, requests, keys):
        return stage.load(self.ingress, under_way, requests, keys, "/order/process", json.dumps(ORDER), '"status":"COMPLETED"')

    def steps_done(self):
        return get(f"{self.control}/count")["steps"]


def restate_server(stage):
    """The server with its defaults (its log is synced), on loopback and ports of its own; where its ingress and its admin are."""
    ingress, admin, fabric = free_port(), free_port(), free_port()
    env = {"RESTATE_BASE_DIR": str(stage.folder / "restate"), "RESTATE_NODE_NAME": "race", "RESTATE_BIND_IP": "127.0.0.1",
           "RESTATE_LISTEN_MODE": "tcp", "RESTATE_BIND_PORT": str(fabric), "RESTATE_INGRESS__BIND_PORT": str(ingress),
           "RESTATE_ADMIN__BIND_PORT": str(admin), "RESTATE_DISABLE_TELEMETRY": "true", "DO_NOT_TRACK": "1", "RESTATE_LOG_FILTER": "warn"}
    process = stage.start(stage.race.restate(), "--no-logo", env=env)
    until_healthy(stage, process, f"http://127.0.0.1:{ingress}/restate/health", f"http://127.0.0.1:{admin}/health")
    return f"127.0.0.1:{ingress}", f"127.0.0.1:{admin}"


def until_healthy(stage, process, *urls):
    deadline = time.monotonic() + SECONDS_TO_START
    left = list(urls)
    while left:
        try:
            urllib.request.urlopen(left[0], timeout=5).close()
            left.pop(0)
        except OSError as error:
            if process.poll() is not None or time.monotonic() > deadline:
                raise Failed(f"restate-server did not start: {error}") from error
            time.sleep(0.002)


class Dbos:
    label, ours, needs = "DBOS, PostgreSQL, steps in its Node process", False, {"node", "dbos", "postgres"}

    def open(self, stage):
        stage.race.fresh_database()
        self.url = stage.node("dbos.mjs", "serve")[0]

    def runs(self, stage, under_way, requests):
        return stage.load(bare(self.url), under_way, requests, -1, "/order", json.dumps(ORDER), '"status":"COMPLETED"')

    def replay(self, stage, under_way, requests, keys):
        return stage.load(bare(self.url), under_way, requests, keys, "/order", json.dumps(ORDER), '"status":"COMPLETED"')

    def steps_done(self):
        return get(f"{self.url}/count")["steps"]


RUNNERS = {
    "hapax-sqlite-native": Hapax("sqlite", "native"),
    "hapax-sqlite-c": Hapax("sqlite", "c"),
    "hapax-sqlite-node": Hapax("sqlite", "node"),
    "hapax-postgres-native": Hapax("postgres", "native"),
    "hapax-postgres-two": Hapax("postgres", "native", nodes=2),
    "hapax-postgres-node": Hapax("postgres", "node"),
    "hapax-sqlite-function": HapaxFunction("sqlite"),
    "hapax-postgres-function": HapaxFunction("postgres"),
    "restate": Restate(),
    "dbos": Dbos(),
}

# Peers that are job queues: who, what they need.
QUEUES = {"graphile": ("graphile-worker, PostgreSQL", {"node", "graphile", "postgres"}), "pgboss": ("pg-boss, PostgreSQL", {"node", "pgboss", "postgres"}),
          "bullmq": ("BullMQ, Redis", {"node", "bullmq", "redis"}), "dbos": ("DBOS queue, PostgreSQL", {"node", "dbos", "postgres"})}

# How each is set up, for the page. Whatever is not said is as it comes.
SETTINGS = {
    "Hapax": "as it comes. SQLite: WAL, synchronous FULL. Native steps are C functions in the server (bench/run_server); http steps are the "
             "actions of hapax serve; runs are started with an idempotency key and awaited over HTTP (?wait). Workers, 64 connections: claim 100 "
             "jobs in a request and complete each in one of its own; native actions are carried out by the engine itself. Functions: one worker of the "
             "client in clients/js with concurrency 256, three keyed ctx.step",
    "Restate": "one node of restate-server with its defaults: 24 partitions, replicated loglet of one, RocksDB's log synced; telemetry off "
               "(it still looks for a newer version of itself when it starts). "
               "The handler has three ctx.run blocks; it is called over HTTP through the ingress with an Idempotency-Key. Jobs are one-way "
               "sends; those already in a handler when the clock starts are not counted",
    "DBOS": "DBOS.launch with its defaults, a plain Node HTTP server before it; a workflow with the key as its id and three DBOS.runStep. "
            "Jobs: a queue with workerConcurrency 100 and minPollingIntervalMs 100 (its default is 1000)",
    "graphile-worker": "the settings of its page on performance: 24 concurrent jobs, local queue of 500, completions in batches",
    "pg-boss": "4 workers that fetch 100 at a time and again at once while fetches are full (burstWhenBatchFull)",
    "BullMQ": "one worker with concurrency 50, completed jobs removed; Redis with appendonly and appendfsync always, no eviction",
    "Middleware": "a table of keys in PostgreSQL, an insert before and an update after the work, 20 connections, prepared statements",
    "PostgreSQL": "a private server, fsync and synchronous_commit on, everything else as it comes; one database for each measurement",
    "The load": "one C program with keep-alive connections, one request under way on each, the same for all",
}
