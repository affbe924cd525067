#!/usr/bin/env python3
"""shell.py WORKER FILE: the third client, examples/functions/worker.sh, against the same engine as the others."""
import os
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from engine import Engine  # noqa: E402


def main():
    engine, bad = Engine(), 0
    worker = subprocess.Popen([sys.argv[1], sys.argv[2]], env=dict(os.environ, HAPAX_SERVER=engine.url))
    faults = [{}] + [{k: "after"} for k in range(1, 7)] + [{2: "before"}, {3: "in"}, {4: "busy"}, {6: "lapse before"}, {1: "lapse after"}]
    runs = [engine.start("run_%d" % i, "parcel", {"faults": f}) for i, f in enumerate(faults)]
    until = time.monotonic() + 120
    with engine.lock:
        while any(r.end is None for r in runs) and time.monotonic() < until and worker.poll() is None:
            engine.changed.wait(0.2)
    worker.kill()
    worker.wait()
    with open(sys.argv[2]) as file:
        lines = file.read().split("\n")
    for run in runs:
        ended = run.end == {"state": "completed", "output": {"weight": 7, "by": {"from": "pickup"}}}
        once = all(lines.count("%s %s/%s/0" % (step, run.id, step)) == 1 for step in ("weigh", "stamp", "ship"))
        wrong = [w for w in engine.wrong if w.startswith(run.id + ":")]
        ok = ended and once and not wrong
        bad += not ok
        print("%s shell: a parcel, %s" % ("ok" if ok else "not ok", run.scene["faults"] or "as it should be"))
        if not ok:
            print("#", run.end, run.status, once, wrong)
    return bad > 0


sys.exit(main())
