# A worker in ten lines of Python. One that outlives its engine, and shows what a fence is for: ../order/worker.py
import json, os, urllib.request
def ask(path, **body):
    url = os.environ.get("HAPAX_SERVER", "http://127.0.0.1:7411") + "/api/v1/jobs/" + path
    return json.load(urllib.request.urlopen(urllib.request.Request(url, json.dumps(body).encode())))
while True:
    for job in ask("claim", queues=["hello"], owner="python", max=10, leaseMs=30000, waitMs=20000)["jobs"]:
        try: end, said = "complete", {"output": "hello " + job["payload"]["name"]}  # the work
        except Exception as problem: end, said = "fail", {"error": repr(problem)}
        ask(job["id"] + "/" + end, owner="python", fence=job["fence"], **said)
