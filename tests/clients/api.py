"""The client of the API, on a real engine: whatever is sent twice with a key is there once."""
import asyncio
import json

import hapax

client = hapax.Client(workspace="python")


def ok(name, holds, words=None):
    print("%s python: %s%s" % ("ok" if holds else "not ok", name, "" if holds else "\n# " + json.dumps(words)))


run, again = client.start("pipe", {"n": 1}, key="k 1/ä"), client.start("pipe", {"n": 1}, key="k 1/ä")
ok("a run is started once", run["created"] and not again["created"] and run["id"] == again["id"], [run, again])
signals = [client.signal(run["id"], "go", {"x": 2}, event_id="e1") for _ in range(2)]
ok("an event is sent once", signals[1]["duplicate"] is True, signals)
ok("its output is waited for", client.result(run["id"], "30s")["x"] == 2 and client.show(run["id"])["status"] == "COMPLETED")
other = client.start("pipe")
client.cancel(other["id"])
ok("a run is cancelled", client.wait(other["id"], "30s")["status"] == "CANCELLED" and len(client.list(status="CANCELLED")["items"]) == 1)
client.entity_create("door", "d/1")
fired = client.entity_fire("door", "d/1", "open")
ok("an entity is fired", fired["entity"]["status"] == "open" and client.entity_show("door", "d/1")["version"] == 2 and len(client.entity_list("door")["items"]) == 1, fired)
jobs = [client.job_push("q", {"a": 1}, key="j1") for _ in range(2)]
job = client.job_claim(["q"], "me", max=5)["jobs"][0]
client.job(job["id"], "complete", owner="me", fence=job["fence"], output=3)
ok("a job is pushed once, and done", jobs[1]["jobs"][0]["created"] is False and len(client.job_list(status="COMPLETED")["items"]) == 1, jobs)
client.call("POST", "accounts", {"id": "acc", "balance": 10})
batch = client.batch("pack", "acc", [{"input": {}, "cost": 2}, {"input": {}, "cost": 3}], key="b1")
packed = client.batch_wait(batch["id"], "30s")
ok("a batch is run", packed["status"] == "COMPLETED" and packed["succeeded"] == 2 and len(client.batch_items(batch["id"])["items"]) == 2, packed)
try:
    client.show("run_nothing")
    ok("a refusal is an error", False)
except hapax.HapaxError as error:
    ok("a refusal is an error", error.status == 404 and error.code == "NOT_FOUND", str(error))


async def main():
    it = hapax.AsyncClient(workspace="python")
    shown = await asyncio.gather(it.show(run["id"]), it.show(other["id"]))
    ok("the same with asyncio", [r["status"] for r in shown] == ["COMPLETED", "CANCELLED"], shown)


asyncio.run(main())
