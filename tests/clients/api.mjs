// The client of the API, on a real engine: whatever is sent twice with a key is there once.
import hapax, { HapaxError } from "hapax";

const client = hapax.connect({ workspace: "js" });
const ok = (name, holds, words) => console.log(`${holds ? "ok" : "not ok"} js: ${name}${holds ? "" : "\n# " + JSON.stringify(words)}`);
const run = await client.start("pipe", { n: 1 }, { key: "k 1/ä" }), again = await client.start("pipe", { n: 1 }, { key: "k 1/ä" });
ok("a run is started once", run.created && !again.created && run.id === again.id, [run, again]);
const signals = [await client.signal(run.id, "go", { x: 2 }, { id: "e1" }), await client.signal(run.id, "go", { x: 2 }, { id: "e1" })];
ok("an event is sent once", signals[1].duplicate === true, signals);
ok("its output is waited for", (await client.result(run.id, { timeout: "30s" })).x === 2 && (await client.show(run.id)).status === "COMPLETED");
const other = await client.start("pipe", {});
await client.cancel(other.id);
ok("a run is cancelled", (await client.wait(other.id, { timeout: "30s" })).status === "CANCELLED" && (await client.list({ status: "CANCELLED" })).items.length === 1);
await client.entities.create("door", { id: "d/1" });
const fired = await client.entities.fire("door", "d/1", "open");
ok("an entity is fired", fired.entity.status === "open" && (await client.entities.show("door", "d/1")).version === 2 && (await client.entities.list("door")).items.length === 1, fired);
const jobs = [await client.jobs.push("q", { a: 1 }, { key: "j1" }), await client.jobs.push("q", { a: 1 }, { key: "j1" })];
const [job] = (await client.jobs.claim({ queues: ["q"], owner: "me", max: 5, leaseMs: 10000, waitMs: 0 })).jobs;
await client.jobs.complete(job.id, { owner: "me", fence: job.fence, output: 3 });
ok("a job is pushed once, and done", jobs[1].jobs[0].created === false && (await client.jobs.list({ status: "COMPLETED" })).items.length === 1, jobs);
await client.call("POST", "accounts", { id: "acc", balance: 10 });
const batch = await client.batches.start({ workflow: "pack", account: "acc", items: [{ input: {}, cost: 2 }, { input: {}, cost: 3 }], key: "b1" });
const packed = await client.batches.wait(batch.id, { timeout: "30s" });
ok("a batch is run", packed.status === "COMPLETED" && packed.succeeded === 2 && (await client.batches.items(batch.id)).items.length === 2, packed);
const refusal = await client.show("run_nothing").catch((error) => error);
ok("a refusal is an error", refusal instanceof HapaxError && refusal.status === 404 && refusal.code === "NOT_FOUND", refusal);
client.close();
