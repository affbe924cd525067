#!/usr/bin/env python3
"""shell.py WORKER FILE: the third client, examples/functions/worker.sh, against the same engine as the others."""
import os
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from engine import FAULTS, Engine  # noqa: E402


class ShellEngine(Engine):
    def was_done(self, run, e):
        """Its steps tell a file, and nobody else."""
        return "%s %s/%s/%d" % (e["name"], run.id, e["name"], e["n"]) in done()


def done():
    with open(sys.argv[2], "a+") as file:
        file.seek(0)
        return file.read().split("\n")


def main():
    engine, bad = ShellEngine(), 0
    worker = subprocess.Popen([sys.argv[1], sys.argv[2]], env=dict(os.environ, HAPAX_SERVER=engine.url))
    # Each of its calls goes wrong in this way, and is said again: so every other one; all, where the answer comes.
    calls = {fault: range(1, 12, 2) if fault not in ("late", "twice") else range(1, 7) for fault in FAULTS}
    scenes = [{"faults": {}}] + [{"faults": {k: fault for k in calls[fault]}, "late": 0.3, "patience": 0} for fault in FAULTS]
    engine.claim_fault = "in"  # of every other claim that hands out a turn
    runs = [engine.start("run_%d" % i, "parcel", scene) for i, scene in enumerate(scenes)]
    until = time.monotonic() + 240
    with engine.lock:
        while any(r.end is None for r in runs) and time.monotonic() < until and worker.poll() is None:
            engine.changed.wait(0.2)
    worker.kill()
    worker.wait()
    lines = done()
    for run in runs:
        ended = run.end == {"state": "completed", "output": {"weight": 7, "by": {"from": "pickup"}}}
        once = all(lines.count("%s %s/%s/0" % (step, run.id, step)) == 1 for step in ("weigh", "stamp", "ship"))
        wrong = [w for w in engine.wrong if w.startswith(run.id + ":")]
        ok = ended and once and not wrong
        bad += not ok
        print("%s shell: a parcel, %s" % ("ok" if ok else "not ok", "every call: " + run.scene["faults"][1] if run.scene["faults"] else "as it should be"))
        if not ok:
            print("#", run.end, run.status, once, wrong)
    return bad > 0


sys.exit(main())
