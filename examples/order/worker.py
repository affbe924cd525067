#!/usr/bin/env python3
# A worker in a few lines of Python: claims jobs by long poll, does them, says how it went.
#   worker.py LEDGER        HAPAX_SERVER says where the engine is
import json, os, sys, time, urllib.request


def work(job):
    """The effect: a file for each key, which can be made only once. That is what "effect": "keyed" promises."""
    sku = job["payload"]["input"]["sku"]
    if sku.startswith("no-"):
        raise LookupError(f"there is no {sku[3:]} on the shelves")
    print(job["queue"], sku, "attempt", job["attempt"], "fence", job["fence"], flush=True)
    try:
        with open(f"{sys.argv[1]}/{job['idempotencyKey'].replace('/', '.')}", "x") as file:
            file.write(f"{job['queue']} {sku}\n")
    except FileExistsError:
        print("  was done before", flush=True)
    return {"shelf": len(sku)}


# The worker itself.
def ask(path, **body):
    url = os.environ.get("HAPAX_SERVER", "http://127.0.0.1:7411") + "/api/v1/jobs/" + path
    try:
        return json.load(urllib.request.urlopen(urllib.request.Request(url, json.dumps(body).encode()), timeout=60))
    except Exception as problem:  # the engine is away, or the job is another's by now: claiming again heals both
        print(path.split("/")[-1] + ":", problem, flush=True)
        time.sleep(1)
        return {"jobs": []}


while True:
    for job in ask("claim", queues=["reserve", "release"], owner="python", max=1, leaseMs=3000, waitMs=20000)["jobs"]:
        mine = {"owner": "python", "fence": job["fence"]}
        try:
            ask(job["id"] + "/complete", **mine, output=work(job))
        except Exception as problem:
            ask(job["id"] + "/fail", **mine, error=str(problem), retryable=not isinstance(problem, LookupError))
